"""The team page: its numbers, from the answer log alone, and :func:`team_view`, what it shows."""

from ruleout.web.team.agreement import Agreement, cohen, fleiss, pairs, ratings, team_agreement
from ruleout.web.team.gold import GoldScore, Rate, gold_scores
from ruleout.web.team.growth import Growth, growth
from ruleout.web.team.inference import inferred_pairs
from ruleout.web.team.knowledge import Clash, Knowledge, clashes, knowledge
from ruleout.web.team.page import team_view
from ruleout.web.team.people import Annotator, annotators, paces
from ruleout.web.team.rest import Team, decided_by_all, inferred_by_all
from ruleout.web.team.uniformity import Uniformity, uniformity
from ruleout.web.team.views import TeamView

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
