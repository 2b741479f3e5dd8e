"""Experiments: the paper's tables as data, run once each, kept in a ledger."""

from ruleout.experiments.driver import drive, work
from ruleout.experiments.holdings import Holdings, gather
from ruleout.experiments.ledger import Failure, Ledger
from ruleout.experiments.pages import page
from ruleout.experiments.plans import plan
from ruleout.experiments.printed import TABLES, Printed, printed, printed_for
from ruleout.experiments.protocols import PROTOCOLS, Protocol, protocol
from ruleout.experiments.records import Record
from ruleout.experiments.running import run
from ruleout.experiments.specs import Spec
from ruleout.experiments.tabling import PaperTable, paper_tables
from ruleout.experiments.verdicts import verdict
from ruleout.experiments.writing import FORMATS, write_report

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
    "drive",
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
