"""The tables of approaches: formulas from the registry, times and accuracies as recorded."""

from __future__ import annotations

import csv
import inspect
import re
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import ruleout as ro
from ruleout.experiments import printed
from ruleout.methods import PAPER, Approach

sys.path.insert(0, str(Path(__file__).parent))
from measured import RESULTS, origin, read

ACCURACIES = RESULTS.parent.parent / "results"

_RULES = {
    "free": r"$\sum_j L_j$",
    "nn": r"$\sum_j \max(0, L_j)$",
    "ga": r"$\sum_j L_j$, or where some $L_j < 0$: $-\sum_j \min(0, n_j L_j)$",
    "scarce": r"$\sum_c (1 - \pi_c) W_c + |A_c - (1 - \pi_c) R_c|$",
}
_SUFFIXES = {"-2019": "; $L_j$ with the share of $j$", "-by-excluded": "; $V_c$ in place of $L_j$"}

#: When to use what. Accuracies in the second table are what these sentences lean on.
_WHEN = {
    "log": "Start here.",
    "exp": "Beside LOG, where features are scaled. On raw ones it falls behind.",
    "mae": "A bounded loss. Scale the features: on raw ones it is the last of its kind.",
    "mse": "A bounded loss, near LOG where features are scaled.",
    "gce": "A bounded loss; `q` leads from cross entropy (0) to half of MAE (1).",
    "phuber": "A bounded loss; `tau` says where cross entropy is cut.",
    "cce": "To compare with: it is not bounded.",
    "ga": "To compare with. In a loop of your own always hand in `prior`.",
    "nn": "To compare with.",
    "free": "To compare with: it is not bounded.",
    "pc": "Few classes: after shuffle its work grows with their square.",
    "pc-ramp": "To compare with PC.",
    "ova": "To compare with PC.",
    "ova-ramp": "To compare with OVA.",
    "forward": "Where it is known how likely each class is ruled out: `transition`.",
    "clpl": "Linear models: it is convex in the logits.",
    "likelihood": "Where some of what was said is wrong: `error`, or rows of `ro.evidence`.",
    "cc": "Beside LOG, where rows should count alike, whatever they rule out.",
    "scarce": "Where some classes are ruled out more often than others; `class_prior`.",
    "scl-nl": "To compare with: its gradient is Forward's.",
    "scl-exp": "To compare with.",
    "l-uw": "To compare with L-W.",
    "l-w": "To compare with.",
    "op": "To compare with.",
    "cpe-i": "To compare with; where a matrix is known, `nearest_row` names classes.",
    "cpe-f": "Where a matrix Q says how classes are chosen: Forward for sets of any size.",
    "cpe-t": "Where Q is to be learnt, from a model that is mostly right; see `ro.find_origin`.",
    "op-w": "To compare with OP.",
    "proden": "Where candidate sets come from a real source, not by chance: try it beside CC.",
    "balanced-proden": "Where rare classes stand beside frequent ones in the sets; `balance`.",
    "rc": "To compare with PRODEN. Each step costs a second pass.",
    "cavl": "To compare with PRODEN.",
    "pop": "Made for wrong candidates that look like the true class. Up to epoch 21 it is PRODEN.",
    "crosel": "To compare with PRODEN, which it is up to epoch 10.",
    "lws": "To compare with PRODEN; `beta` weighs what was ruled out.",
    "log-unlabelled": "Where most rows rule nothing out: they learn, too; `strength`.",
    "conformal": "To compare with what it cleans for, which it is up to epoch 11; `alpha`.",
    "log-text": "To follow the paper's text to the letter.",
    "exp-text": "To follow the paper's text to the letter.",
}


def stem(row: Approach) -> str:
    return row.source.name


def formula(row: Approach) -> str:
    """Return what an approach computes: the first sentence of its loss, or the rule."""
    name = stem(row)
    for rule, says in _RULES.items():
        ends = {rule: "", **{rule + end: more for end, more in _SUFFIXES.items()}}
        if name in ends:
            return says + ends[name]
    summary = (inspect.getdoc(row.source.function) or "").partition("\n\n")[0].replace("\n", " ")
    return re.sub(r":math:`([^`]*)`", r"$\1$", summary).rstrip(".")


def when(row: Approach) -> str:
    """Return when to use an approach; variants of a rule are used as the rule is."""
    name = stem(row)
    return _WHEN.get(name) or _WHEN.get(name.partition("-")[0], "–")


def accuracies() -> dict[str, list[float]]:
    """Return the mean accuracies of each approach: linear table, UCI, UCI standardised."""
    found: dict[str, list[float]] = defaultdict(list)
    rows = {(one.group, one.approach): one.row for one in printed()}
    for file, table in (
        ("accuracy", "linear"),
        ("accuracy", "uci"),
        ("accuracy-standardised", "uci"),
    ):
        means = defaultdict(list)
        with open(ACCURACIES / f"{file}.csv", newline="", encoding="utf-8") as lines:
            for cell in csv.DictReader(lines):
                if cell["table"] == table:
                    means[rows[cell["group"], cell["approach"]]].append(float(cell["mean"]))
        for name, each in means.items():
            found[name].append(fmean(each))
    return found


def what() -> list[str]:
    lines = ["| name | in tables | what it computes | when to use it |", "|---|---|---|---|"]
    for name in ro.approaches():
        row = ro.approach(name)
        says = formula(row).replace("|", r"\|")  # else the cell would end there
        lines.append(f"| `{name}` | {row.label} | {says} | {when(row)} |")
    return lines


def costs() -> list[str]:
    told, reached = read("approaches"), accuracies()
    heads = ["name", "batches", "every answer", "epoch, linear", "epoch, MLP",
             "linear table", "UCI", "UCI, scaled", "published"]  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "|---|---|---|---:|---:|---:|---:|---:|---|"]
    for name in ro.approaches():
        row = ro.approach(name)
        spent = (told or {"results": {}})["results"].get(name, {})
        times = [f"{spent[model]:.1f}" if spent else "–" for model in ("linear", "mlp")]
        means = [f"{mean:.1f}" for mean in reached[name]] if name in PAPER else ["–"] * 3
        cells = [f"`{name}`", row.form, "yes" if row.takes_rate else "–", *times, *means, row.paper]
        lines.append("| " + " | ".join(cells) + " |")
    if told is not None:
        machine = f"{told['machine']['cpu']}, {told['machine']['threads']} threads"
        lines += ["", f"Times: {origin(told, machine)}"]
    return lines


def write_table(path: Path) -> None:
    path.write_text("\n".join(what()) + "\n", encoding="utf-8")
    path.with_name("approaches-costs.md").write_text("\n".join(costs()) + "\n", encoding="utf-8")
