"""The numbers of the team page, from the answer log alone."""

from ruleout.web.team.agreement import Agreement, cohen, fleiss, pairs, ratings, team_agreement
from ruleout.web.team.gold import GoldScore, Rate, gold_scores
from ruleout.web.team.growth import Growth, growth
from ruleout.web.team.inference import inferred_pairs
from ruleout.web.team.knowledge import Clash, Knowledge, clashes, knowledge
from ruleout.web.team.people import Annotator, annotators
from ruleout.web.team.uniformity import Test, Uniformity, uniformity

__all__ = [
    "Agreement",
    "Annotator",
    "Clash",
    "GoldScore",
    "Growth",
    "Knowledge",
    "Rate",
    "Test",
    "Uniformity",
    "annotators",
    "clashes",
    "cohen",
    "fleiss",
    "gold_scores",
    "growth",
    "inferred_pairs",
    "knowledge",
    "pairs",
    "ratings",
    "team_agreement",
    "uniformity",
]
