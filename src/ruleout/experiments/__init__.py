"""Experiments: the paper's tables as data, run once each, kept in a ledger."""

from ruleout.experiments.ledger import Failure, Holdings, Ledger, Record, gather
from ruleout.experiments.plans import TABLES, Printed, plan, printed, printed_for
from ruleout.experiments.reports import (
    FORMATS,
    PaperTable,
    page,
    paper_tables,
    verdict,
    write_report,
)
from ruleout.experiments.runner import cost, count_models, drive, estimate, run, work
from ruleout.experiments.specs import PROTOCOLS, Protocol, Spec, protocol

__all__ = [
    "FORMATS",
    "PROTOCOLS",
    "TABLES",
    "Failure",
    "Holdings",
    "Ledger",
    "PaperTable",
    "Printed",
    "Protocol",
    "Record",
    "Spec",
    "cost",
    "count_models",
    "drive",
    "estimate",
    "gather",
    "page",
    "paper_tables",
    "plan",
    "printed",
    "printed_for",
    "protocol",
    "run",
    "verdict",
    "work",
    "write_report",
]
