"""Experiments: the paper's tables as data, run once each, kept in a ledger."""

from ruleout.experiments.ledger import Failure, Holdings, Ledger, MissingLedgerError, Record, gather
from ruleout.experiments.plans import TABLES, Printed, plan, printed, printed_for
from ruleout.experiments.ray_engine import drive_ray
from ruleout.experiments.reports import (
    FORMATS,
    PaperTable,
    page,
    paper_tables,
    verdict,
    write_report,
)
from ruleout.experiments.runner import (
    check_specs,
    cost,
    count_models,
    drive,
    estimate,
    run,
    work,
)
from ruleout.experiments.specs import PROTOCOLS, Protocol, Spec, protocol

__all__ = ["PROTOCOLS", "Protocol", "Spec", "protocol"]
__all__ += ["TABLES", "Printed", "plan", "printed", "printed_for"]
__all__ += ["check_specs", "cost", "count_models", "drive", "drive_ray", "estimate", "run", "work"]
__all__ += ["Failure", "Holdings", "Ledger", "MissingLedgerError", "Record", "gather"]
__all__ += ["FORMATS", "PaperTable", "page", "paper_tables", "verdict", "write_report"]
