"""The team page: its numbers, from the answer log alone, and :func:`team_view`, what it shows."""

from ruleout.web.answer_log import Clash, Knowledge, clashes, knowledge
from ruleout.web.reliability import GoldScore, Rate, gold_scores
from ruleout.web.team.agreement import (
    Agreement,
    Team,
    cohen,
    decided_by_all,
    fleiss,
    inferred_by_all,
    inferred_pairs,
    pairs,
    ratings,
    team_agreement,
)
from ruleout.web.team.annotators import Annotator, Growth, annotators, growth, paces
from ruleout.web.team.proposal_uniformity import Uniformity, uniformity
from ruleout.web.team.team_page import TeamView, team_view

__all__ = [
    "Agreement",
    "Annotator",
    "Clash",
    "GoldScore",
    "Growth",
    "Knowledge",
    "Rate",
    "Team",
    "TeamView",
    "Uniformity",
    "annotators",
    "clashes",
    "cohen",
    "decided_by_all",
    "fleiss",
    "gold_scores",
    "growth",
    "inferred_by_all",
    "inferred_pairs",
    "knowledge",
    "paces",
    "pairs",
    "ratings",
    "team_agreement",
    "team_view",
    "uniformity",
]
