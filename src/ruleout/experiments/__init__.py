"""Experiments: the paper's tables as data, run once each, kept in a ledger."""

from ruleout.experiments.driver import drive, work
from ruleout.experiments.ledger import Failure, Ledger
from ruleout.experiments.plans import plan
from ruleout.experiments.printed import TABLES, Printed, printed, printed_for
from ruleout.experiments.protocols import PROTOCOLS, Protocol, protocol
from ruleout.experiments.records import Record
from ruleout.experiments.running import run
from ruleout.experiments.specs import Spec

__all__ = [
    "PROTOCOLS",
    "TABLES",
    "Failure",
    "Ledger",
    "Printed",
    "Protocol",
    "Record",
    "Spec",
    "drive",
    "plan",
    "printed",
    "printed_for",
    "protocol",
    "run",
    "work",
]
