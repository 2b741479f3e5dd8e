"""Write reproduction.md, its figures and the README's table from the ledgers under results/.

    python docs/reproduction.py

Numbers come from the ledgers; what was tried and why is in reproduction-notes.md, by hand.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import isnan, nan
from pathlib import Path
from statistics import fmean

import numpy as np

from ruleout.comparison.significance import Ranking, rank_approaches
from ruleout.datasets.registry import find
from ruleout.experiments import (
    TABLES,
    PaperTable,
    Record,
    Spec,
    count_models,
    gather,
    paper_tables,
    plan,
    printed,
    verdict,
    write_report,
)
from ruleout.experiments.plans import printed_for
from ruleout.experiments.reports import (
    ABOUT_RANKS,
    columns,
    count,
    difference,
    differing,
    draw,
    draw_ranks,
    findings,
    ranking_facts,
    rankings,
    title_of,
    trends,
)
from ruleout.labels import size_law
from ruleout.methods import approach
from ruleout.report import markdown
from ruleout.report.number_format import p_value
from ruleout.theory import bound, error_bound, linear_complexity, lipschitz

sys.path.insert(0, str(Path(__file__).parent))
import cost_model
from measured import read
from pictures import write_small

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
PICTURES = Path("_static", "reproduction")


def tables() -> dict[str, PaperTable]:
    return {table.cells.name: table for table in paper_tables(gather(RESULTS / "ledger"))}


def beside_paper(found: dict[str, PaperTable]) -> dict[str, PaperTable]:
    """Return the tables that the paper has, in its order."""
    return {name: found[name] for name in TABLES if name in found}


def document() -> str:
    """Return the page."""
    found = tables()
    main = beside_paper(found)
    variants = paper_tables(gather(RESULTS / "variants"))
    parts = [
        _head(main),
        _counts(main),
        _FIGURES,
        "## The tables\n",
        "Beneath each of our numbers stands the paper's and the difference.\n",
        *map(_table, main.values()),
        _sentences(main),
        _orders(main),
        _ranks(main),
        *(_trends(table) for name, table in main.items() if name.startswith("fixed")),
        _scaling(main["uci"], found["uci-standardised"]),
        _apart(main),
        _variants(main["uci"], variants),
        _costs(main),
        "```{include} reproduction-notes.md\n```\n",
    ]
    return "\n".join(parts)


_NAMES = {
    "uci": "the UCI table",
    "linear": "the\nlinear table",
    "deep": "the deep table",
    "fixed-linear": "the table of\nfixed sizes with linear models",
    "fixed-mlp": "that with MLPs",
}


def _head(main: dict[str, PaperTable]) -> str:
    names = [_NAMES[name] for name in main]
    listed = ", ".join(names[:-2]) + ", " * (len(names) > 2) + " and ".join(names[-2:])
    records = [one for table in main.values() for one in table.records]
    agree = [one for one in records if verdict(one) == "agrees"]
    told = {"CELLS": len(records), "LISTED": listed, "DIFFER": differing(records)}
    tested, alike = ([one for one in some if len(one.accuracy) > 1] for some in (records, agree))
    told |= {"AMONG": differing(agree), "AGREE": len(agree), "CHANCE": round(len(tested) / 20)}
    told |= {"TESTED": len(tested), "BOTH": len(alike) - differing(agree)}
    left = len(records) - len(tested)
    told |= {"ALONE": f" The {left} cells of one trial are not tested." if left else ""}
    text = _HEAD
    for name, value in told.items():
        text = text.replace(name, str(value))
    return text


_HEAD = """# The paper, run again

<!-- Written by docs/reproduction.py from results/: do not edit. -->

Feng et al. (ICML 2020) print 518 accuracies. This page sets CELLS of them, LISTED, \
beside our own, computed with the protocol of the authors' released code:
{doc}`experiments` says how to run it again, and `results/README.md` on which machines it ran. All
numbers come from the ledger in `results/`, which holds every trial and the criterion of every
configuration, but for what is told at the end of things that were tried.

A cell *agrees* when the two means differ by at most
$2\\sqrt{s_\\mathrm{paper}^2 + s_\\mathrm{ours}^2}$, with the standard deviations over five trials;
otherwise it is *better* or *worse* than the paper's. That is a wide range: it asks whether two runs
could be like each other, not whether their means are the same. Welch's t-test of two means, five
trials each, at 5 % without correction, says that DIFFER of the TESTED means differ, AMONG of them
among the AGREE that agree: BOTH cells are like the paper's by both. If all means were the same,
about CHANCE would differ.ALONE
"""


_FIGURES = f"""## In pictures

![Our accuracy against the printed one, a point for each cell]({PICTURES}/cells.png)

A point for each cell, with one standard deviation over the trials to each side. On the dashed line
ours and the paper's are the same.

### Figure 1: test accuracy by epoch

The losses of the unbiased estimator, with the configurations that were chosen. Bands: one standard
deviation over the trials. The paper's figures have panels of MNIST, Kuzushiji, Fashion and
CIFAR-10, each with two models; those of the UCI data sets and 20Newsgroups are ours. Of
those of CIFAR-10 the one with ResNet is run, one trial of each loss, chosen by halving.

![Test accuracy by epoch, a panel for each data set and model]({PICTURES}/figure-1.png)

### Figure 2: training accuracy by epoch

True labels measure it; they neither train nor choose.

![Training accuracy by epoch, a panel for each data set and model]({PICTURES}/figure-2.png)
"""

_VERDICTS = {"agrees": ("#0072b2", "o"), "better": ("#009e73", "^"), "worse": ("#d55e00", "v")}


def draw_cells(main: dict[str, PaperTable], file: Path) -> None:
    """Draw every cell: what is printed to the right, ours upwards."""
    from matplotlib.figure import Figure

    high = -(-len(main) // 2)
    page = Figure(figsize=(7.6, 3.4 * high + 0.3), layout="constrained")
    places = list(page.subplots(high, 2, squeeze=False).flat)
    for axes, table in zip(places, main.values(), strict=False):
        some = 100 * table.records[0].mean
        axes.axline((some, some), slope=1, color="0.6", linewidth=0.8, linestyle="--")
        for said, (colour, sign) in _VERDICTS.items():
            cells = [(one, printed_for(one.spec)) for one in table.records if verdict(one) == said]
            told = [(p.mean, 100 * one.mean, p.std, 100 * one.std) for one, p in cells if p]
            if told:
                x, y, wide, tall = zip(*told, strict=True)
                own = {"color": colour, "markersize": 3.5, "elinewidth": 0.5}
                axes.errorbar(x, y, tall, wide, sign, label=f"{len(told)} {_TOLD[said]}", **own)
        axes.set_title(table.cells.title, fontsize=9)
        axes.set_xlabel("printed, %", fontsize=8)
        axes.set_ylabel("ours, %", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.25)
        axes.legend(fontsize=7, frameon=False, loc="upper left")
    for axes in places[len(main) :]:
        axes.set_visible(False)
    page.savefig(file, dpi=150, metadata={"Software": None})


_TOLD = {"agrees": "agree", "better": "better", "worse": "worse"}


def draw_proof(main: dict[str, PaperTable], file: Path) -> None:
    """Draw all cells in one picture, and of each table how many agree: the README begins so."""
    from matplotlib.figure import Figure

    page = Figure(figsize=(8.4, 3.5), layout="constrained")
    axes, bars = page.subplots(1, 2, width_ratios=[1, 1.15])
    records = [one for table in main.values() for one in table.records]
    axes.axline((50, 50), slope=1, color="0.6", linewidth=0.8, linestyle="--")
    starts = [0] * len(main)
    for said, (colour, sign) in _VERDICTS.items():
        cells = [(one, printed_for(one.spec)) for one in records if verdict(one) == said]
        axes.plot([p.mean for _, p in cells if p], [100 * one.mean for one, p in cells if p],
                  sign, color=colour, markersize=3, alpha=0.75, markeredgewidth=0)  # fmt: skip
        found = [count(table.records)[said] for table in main.values()]
        label = f"{sum(found)} {_TOLD[said]}"
        bars.barh(range(len(main)), found, left=starts, color=colour, height=0.62, label=label)
        starts = [a + b for a, b in zip(starts, found, strict=True)]
    every = [len(plan(name)) for name in main]
    left = [a - b for a, b in zip(every, starts, strict=True)]
    bars.barh(range(len(main)), left, left=starts, color="0.87", height=0.62,
              label=f"{sum(left)} not run")  # fmt: skip
    bars.set_yticks(range(len(main)), [_SHORT[name] for name in main], fontsize=8)
    bars.set(xlim=(0, 142), ylim=(len(main) - 0.5, -0.5))
    bars.spines[["top", "right"]].set_visible(False)
    bars.legend(loc="lower center", bbox_to_anchor=(0.4, 1),
                ncols=4, fontsize=7.5, frameon=False, handlelength=1, columnspacing=1)  # fmt: skip
    axes.set_xlabel("accuracy printed in the paper, %", fontsize=8)
    axes.set_ylabel("ours, %", fontsize=8)
    bars.set_xlabel("cells", fontsize=8)
    axes.grid(alpha=0.25)
    for one in (axes, bars):
        one.tick_params(labelsize=8)
    page.savefig(file, dpi=150, metadata={"Software": None})


_SHORT = {
    "uci": "UCI, linear",
    "linear": "benchmarks, linear",
    "deep": "benchmarks, deep",
    "fixed-linear": "one size, linear",
    "fixed-mlp": "one size, MLP",
}


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _grid(heads: list[str], rows: list[list[object]]) -> str:
    lines = [_row(list(heads)), _row(["---"] + ["---:"] * (len(heads) - 1))]
    return "\n".join([*lines, *map(_row, rows)]) + "\n"


def _counts(main: dict[str, PaperTable]) -> str:
    rows: list[list[object]] = []
    both: list[Record] = []
    for name, table in main.items():
        records = table.records
        both += records
        rows.append([f"{name}, all", *_told(records)])
        rows.append([f"{name}, EXP and LOG", *_told(_upper(records))])
        rows += [[f"{name}, {d}", *_told(list(c.values()))] for d, c in columns(records).items()]
    whole = "both" if len(main) == 2 else "all tables"
    rows.append([f"**{whole}, all**", *_told(both)])
    rows.append([f"**{whole}, EXP and LOG**", *_told(_upper(both))])
    heads = ["cells", "run", "agree", "better", "worse", "agree or better", "differ (Welch)"]
    return "## In short\n\n" + _grid(heads, rows) + _not_run(both)


def _not_run(records: Sequence[Record]) -> str:
    there = {printed_for(one.spec) for one in records}
    left = Counter(
        ", ".join([one.dataset, one.model, *([one.sizes] if one.sizes.startswith("s=") else [])])
        for one in printed()
        if one not in there
    )
    told = "; ".join(f"{name}: {number}" for name, number in left.items())
    return f"\nNot run: {left.total()} cells ({told}).\n" if left else ""


def _upper(records: list[Record]) -> list[Record]:
    return [one for one in records if one.spec.approach in ("exp", "log")]


_START, _END = "<!-- cells: written by docs/reproduction.py -->", "<!-- end of cells -->"


def renewed(readme: str) -> str:
    """Return the README with its table of cells as it should be."""
    main = beside_paper(tables())
    records = [one for table in main.values() for one in table.records]
    rows: list[list[object]] = [
        [
            table.cells.title,
            f"{len(table.records)} of {len(plan(name))}",
            *_told(table.records)[1:4],
        ]
        for name, table in main.items()
    ]
    news = [r for r in records if verdict(r) == "better" and r.spec.dataset == "20newsgroups"]
    said = (
        f"{len(records)} of the paper's {len(printed())} cells are run; of the "
        f"{count(records)['better']} better ones {len(news)} are 20 Newsgroups."
    )
    table = _grid(["cells beside the paper's", "run", "agree", "better", "worse"], rows)
    before, rest = readme.split(_START)
    return f"{before}{_START}\n{table}\n{said}\n{_END}{rest.split(_END)[1]}"


def _told(records: list[Record]) -> list[object]:
    told = count(records)
    good = told["agrees"] + told["better"]
    share = round(100 * good / told["run"])
    share = min(share, 99) if good < told["run"] else share
    counts = [told["run"], told["agrees"], told["better"], told["worse"]]
    return [*counts, f"{share} %", differing(records)]


def _table(table: PaperTable) -> str:
    title, _, rest = markdown(table.cells).partition("\n")
    return f"### {title.strip('*')}\n{rest}"


def _sentences(main: dict[str, PaperTable]) -> str:
    rows: list[list[object]] = []
    for name, table in main.items():
        rows += [[one.claim, name, one.holds, one.counts] for one in findings(table.records)]
    heads = _row(["what the paper says", "table", "here", "counted"])
    lines = [heads, _row(["---"] * 4), *map(_row, rows)]
    return (
        "## The paper's sentences\n\nIn short, and asked of every table, also where the paper "
        "speaks of others: that on CCE is about Figure 1. The last of each table is no sentence, "
        "but the paper's marks. Significant means a paired t-test over the five trials at 5 %, "
        "as in the paper. The sentence on bounded losses holds if all are better in every case; "
        "that on MAE if it is significantly worse than the best other somewhere, and in less than "
        "half of all cases; those on the upper bounds in more than half of the cases; marks, if "
        "nine of ten are the same. In part: where at least some cases are so.\n\n"
        + "\n".join(lines)
        + "\n"
    )


_FAMILIES = ("upper-bound", "bounded", "unbounded")


def _orders(main: dict[str, PaperTable]) -> str:
    rows: list[list[object]] = []
    same = total = 0
    for name, table in main.items():
        if name.startswith("fixed"):  # one data set
            continue
        for head, column in columns(table.records).items():
            pairs: dict[str, list[tuple[float, float]]] = {family: [] for family in _FAMILIES}
            for row, record in column.items():
                theirs = printed_for(record.spec)
                if theirs is not None and approach(row).family in pairs:
                    pairs[approach(row).family].append((100 * record.mean, theirs.mean))
            if not all(pairs.values()):
                continue
            means = [[fmean(pair[who] for pair in pairs[f]) for f in _FAMILIES] for who in (0, 1)]
            ours, paper = (
                [_FAMILIES[place] for place in sorted(range(3), key=lambda n, of=of: -of[n])]
                for of in means
            )
            total, same = total + 1, same + (ours == paper)
            said = "the same" if ours == paper else f"ours: {' > '.join(ours)}"
            model = next(iter(column.values())).spec.model
            rows.append([head, model, *(f"{mean:.1f}" for part in means for mean in part), said])
    heads = ["data set", "model", *(f"{who} {family}" for who in ("ours,", "paper,")
             for family in _FAMILIES), "order"]  # fmt: skip
    return (
        "## The order of the families\n\nMean accuracy of the losses of each family. The order is "
        f"the paper's in {same} of {total} columns, a data set and a model each.\n\n"
        + _grid(heads, rows)
    )


def ranking(main: dict[str, PaperTable]) -> Ranking:
    found = rankings(list(main.values()))[""]
    assert isinstance(found, Ranking)
    return found


def _ranks(main: dict[str, PaperTable]) -> str:
    found = ranking(main)
    told = "\n".join(f"- {name}: {value}." for name, value in ranking_facts(found).items())
    level = [name for name, p in zip(found.names, found.p_holm[0], strict=True) if p >= 0.05][1:]
    each = _each_set_once(main, found)
    order = [f"{title_of(n)} {r:.1f}" for n, r in zip(each.names, each.ranks, strict=True)]
    return (
        f"## Over all tables\n\n{ABOUT_RANKS}\n\n{told}\n\n{title_of(found.names[0])} is first "
        f"with an average rank of {found.ranks[0]:.1f}. Not told apart from it: "
        f"{', '.join(map(title_of, level)) or 'none'}.\n\n![Average ranks of the approaches, with "
        f"bars that join those not told apart]({PICTURES}/ranks.png)\n\n"
        f"With each data set once (the mean accuracy of its columns) the {len(each.blocks)} data "
        f"sets give {', '.join(order[:5])}, …, {order[-1]}; Friedman's test: F = {each.f:.2f}, "
        f"p {p_value(each.p_value)}. To tell one of so many pairs apart it takes {each.enough} "
        "data sets.\n"
    )


def _each_set_once(main: dict[str, PaperTable], found: Ranking) -> Ranking:
    scores: dict[str, dict[str, list[float]]] = {}
    for record in (one for table in main.values() for one in table.records):
        spec = record.spec
        if (spec.dataset, spec.model, spec.law) in found.blocks and spec.approach in found.names:
            own = scores.setdefault(spec.dataset, {})
            own.setdefault(spec.approach, []).append(record.mean)
    return rank_approaches(
        {data: {name: fmean(means) for name, means in own.items()} for data, own in scores.items()}
    )


def _trends(table: PaperTable) -> str:
    """Say whether accuracy rises with the size of the sets, beside what Theorem 4 says."""
    sizes, found = trends(table.records)
    if not found:
        return ""
    rises = sum(one.p_holm < 0.05 for one in found)
    rows: list[list[object]] = [
        [one.label, *(f"{mean:.1f}" for mean in one.means), p_value(one.p_value),
         p_value(one.p_holm), "rises" if one.p_holm < 0.05 else "not shown"]
        for one in found
    ]  # fmt: skip
    for loss in ("mae", "mse", "gce", "phuber"):
        bounds = [_bound(loss, size) for size in sizes]
        shares = [f"{one / bounds[0]:.2f}" for one in bounds]
        falls = all(a > b for a, b in pairwise(bounds))
        last = ["", "", "falls" if falls else "not always lower"]
        rows.append([f"Theorem 4, {approach(loss).label}", *shares, *last])
    heads = ["approach", *(f"s = {size}" for size in sizes), "p", "p after Holm", "accuracy"]
    return (
        f"## More classes ruled out: {table.cells.title}\n\n"
        f"Does accuracy rise with s, the number of classes that are ruled out? Page's test of "
        f"ordered means over the five trials says so for {rises} of {len(found)} approaches, after "
        "Holm's correction at 5 %. It asks for a trend over all sizes, which can come from the "
        "first of them alone. The last rows are the bound of Theorem 4 on the excess risk of "
        "the unbiased estimator, as a share of the bound at the first s (60,000 rows, linear "
        "models of norm 1 on features of norm 1, δ = 0.05, beneath MLPs, too): it falls as s "
        "grows.\n\n" + _grid(heads, rows)
    )


def _bound(loss: str, size: int) -> float:
    counts = [60_000 if s == size else 0 for s in range(1, 10)]
    return float(
        error_bound(
            lipschitz(loss), 10, size, counts, 0.05, bound(loss),
            lambda n: linear_complexity(n, weight_norm=1, feature_norm=1),
        )
    )  # fmt: skip


def _scaling(raw: PaperTable, scaled: PaperTable) -> str:
    """Say what standardising features does to the UCI table."""
    before, after = columns(raw.records), columns(scaled.records)
    rows: list[list[object]] = []
    for dataset, column in before.items():
        other = after[dataset]
        lift = [100 * (other[name].mean - one.mean) for name, one in column.items()]
        rows.append(
            [dataset, *(_pair(column[n], other[n]) for n in ("log", "exp", "mae", "cce")),
             f"{fmean(lift):+.1f}", f"{sum(one > 0 for one in lift)} of {len(lift)}",
             f"{_lead(column):+.1f} → {_lead(other):+.1f}"]
        )  # fmt: skip
    heads = ["data set", "LOG", "EXP", "MAE", "CCE", "mean change", "approaches higher",
             "lead of LOG"]  # fmt: skip
    title, _, rest = markdown(scaled.cells).partition("\n")
    asked = findings(scaled.records)
    said = "\n".join(f"- {one.claim} It {one.holds}: {one.counts}." for one in asked)
    return (
        "## What scaling the features does\n\nThe paper does not say whether features were scaled. "
        "Raw features give its pattern. With features standardised by the training rows of each "
        "trial the same 72 cells are (raw → standardised):\n\n"
        + _grid(heads, rows)
        + "\nThe lead of LOG is its accuracy less that of the best approach other than EXP and "
        f"LOG.\n\nThe paper's sentences on this table:\n\n{said}\n\n### {title.strip('*')}\n{rest}"
    )


def _pair(one: Record, other: Record) -> str:
    return f"{100 * one.mean:.1f} → {100 * other.mean:.1f}"


def _lead(column: dict[str, Record]) -> float:
    others = [one.mean for name, one in column.items() if name not in ("exp", "log")]
    return 100 * (column["log"].mean - max(others))


def _apart(main: dict[str, PaperTable]) -> str:
    """List the cells that do not agree."""
    rows: list[list[object]] = []
    for table in main.values():
        for column in columns(table.records).values():
            rows += [_far(one) for one in column.values() if verdict(one) in ("better", "worse")]
    heads = ["cell", "ours", "paper", "difference", "verdict", "chosen rate / decay",
             "criterion", "best on test rows"]  # fmt: skip
    return (
        "## Cells that do not agree\n\n*Criterion* is the accuracy estimated without true labels "
        "for what was chosen; *best on test rows* is what a choice by true labels would have given "
        "before training again on all rows, in the trials that searched. On Kuzushiji the "
        "criterion is 4 to 20 points above the accuracy on the test rows: rows set aside of the "
        "training data are easier there.\n\n" + _grid(heads, rows)
    )


def _far(record: Record) -> list[object]:
    found, row = printed_for(record.spec), approach(record.spec.approach)
    assert found is not None
    rate, decay = (f"{record.configuration[n]:g}" for n in ("learning_rate", "weight_decay"))
    form = "" if row.form == "whole" else f" ({row.form.removeprefix('pairs-')})"
    size = f", {found.sizes}" if found.sizes.startswith("s=") else ""
    where = f" ({found.model})" if found.dataset == "CIFAR-10" else ""
    return [
        f"{found.dataset}{where}{size}, {found.approach}{form}",
        f"{100 * record.mean:.2f}" + ("" if isnan(record.std) else f" ± {100 * record.std:.2f}"),
        f"{found.mean:.2f} ± {found.std:.2f}",
        f"{difference(record):+.2f}",
        verdict(record),
        f"{rate} / {decay}",
        *("–" if isnan(one) else f"{100 * one:.2f}" for one in (record.estimate, record.oracle[0])),
    ]


def _variants(main: PaperTable, variants: list[PaperTable]) -> str:
    names = {
        "": "as above (seed 0)",
        "seed-1": "other splits, sets and weights (seed 1)",
        "seed-2": "other splits, sets and weights (seed 2)",
        "per-trial": "every trial chooses its own configuration",
        "text": "protocol of the text (law, factor 2, GA/NN/FREE of the theorem, no refit)",
    }
    rows: list[list[object]] = []
    for table in [main, *(one for one in variants if one.setting in names)]:
        if not table.cells.name.startswith("uci"):
            continue
        gaps = {d: fmean(_gaps(c)) for d, c in columns(table.records).items()}
        told = _told(table.records)
        rows.append([names[table.setting], *told[1:4], *(f"{gap:+.1f}" for gap in gaps.values())])
    heads = ["UCI table, raw features", "agree", "better", "worse",
             *(f"{name}, mean difference" for name in columns(main.records))]  # fmt: skip
    return (
        "## The same table under other settings\n\n72 cells each, the same grid and epochs "
        "(`results/variants`).\n\n" + _grid(heads, rows)
    )


def _runs() -> list[dict[str, str]]:
    with open(RESULTS / "runs.csv", newline="") as lines:
        return list(csv.DictReader(lines))


def _costs(main: dict[str, PaperTable]) -> str:
    """Say how long it all took, what the cost model says, and what single runs would take."""
    rows: list[list[object]] = []
    for name, table in main.items():
        own = [run for run in _runs() if run["table"] == name]
        timed, cells = sum(int(run["cells"]) for run in own), len(table.records)
        wall = f"{sum(int(run['seconds']) for run in own) / 3600:.2f}"
        where = ", ".join(dict.fromkeys(run["where"] for run in own))
        workers = sum(one.seconds for one in table.records) / 3600
        alone = sum(_alone(one.spec, one.about["device"]) for one in table.records) / 3600
        models = sum(count_models(one.spec) for one in table.records)
        rows.append(
            [name, where, cells, f"{models:,}", f"{workers:.2f}",
             wall if timed == cells else f"{wall} ({timed} of the cells)",
             "not measured" if isnan(alone) else f"{alone:,.0f}"]
        )  # fmt: skip
    heads = ["table", "on", "cells", "models", "hours of workers", "hours from start to end",
             "one at a time, hours"]  # fmt: skip
    told = {name: f"{value:.{digits}f}" for name, (value, digits) in _predicted(main).items()}
    said = _COSTS.format(**told) + _ahead(main["fixed-mlp"])
    return f"## What it cost\n\n{_grid(heads, rows)}\n{said}"


def _ahead(table: PaperTable) -> str:
    """Say what was predicted of the last cells before they were run, and what they took."""
    last = ("fixed:6", "fixed:7", "fixed:8")
    took = [
        one.seconds
        for one in table.records
        if one.spec.law in last and one.spec.approach.endswith("-before")
    ]
    so_far = f"{len(took)} of them have taken" if 0 < len(took) < 15 else "They took"
    measured = f"{so_far} {sum(took):,.0f}." if took else "They have not been run."
    return (
        "\nThe 15 cells of `fixed-mlp` before shuffle with six to eight classes were predicted on "
        f"2026-11-18, before they were run: 8,183 seconds of workers. {measured}\n"
    )


_COSTS = """\
Hours of workers are the seconds of all cells, as the ledger has them. Several workers share a
machine; `results/runs.csv` has how many, and how long each run took from start to end. On one H200
that is hours of the GPU.

*One at a time* was not run but scaled from a sample. A plain PyTorch loop, one model after the
other, takes {gpu_linear} ms a step (linear) and {gpu_mlp} ms (MLP) on the H200, timed in one run
with the stacks (`benchmarks/results/engine-cuda.json`), and {cpu_linear} ms on the two cores
(`engine.json`). The table has that times the steps of all models, without choosing and testing.

`ruleout paper linear-mlp --search-trials 1 --device cuda --precision tf32` computes all of it from
nothing ({{doc}}`experiments`). We ran it in pieces, table by table, never in one go. On the H200
{done} of its cells took {measured} hours of workers; from three cells of each data set and model
the cost model says {told} ({low} to {high} in eight of ten draws). For all {cells} it says {whole}
hours, which six workers on one H200 would do in {wall} minutes. The {pieces} pieces that were run
there, all but UCI, took {minutes} minutes together, with {least} to {most} workers and at times
other programs beside them.
"""


def _predicted(main: dict[str, PaperTable]) -> dict[str, tuple[float, int]]:
    """Return the numbers of the text, each with its digits."""
    groups = cost_model.grouped(gather(RESULTS / "ledger").records)
    beside = {one.spec for table in main.values() for one in table.records}
    kept = [
        [one for one in of if one.spec in beside and one.spec.model in ("linear", "mlp")]
        for of in groups.values()
    ]
    draws = np.sum([cost_model.from_three(of) for of in kept if of], axis=0)
    told, low, high = (one / 3600 for one in cost_model.middle(draws.tolist()))
    cells = cost_model.whole(groups)
    pieces = [run for run in _runs() if run["where"] == "H200" and run["models"] != "convolutions"]
    workers = [int(run["workers"]) for run in pieces]
    return {
        "gpu_linear": (1e3 * _step("linear", "cuda"), 2),
        "gpu_mlp": (1e3 * _step("mlp", "cuda"), 2),
        "cpu_linear": (1e3 * _step("linear", "cpu"), 2),
        "done": (sum(map(len, kept)), 0),
        "measured": (sum(one.seconds for of in kept for one in of) / 3600, 1),
        "told": (told, 1),
        "low": (low, 1),
        "high": (high, 1),
        "cells": (len(cells), 0),
        "whole": (sum(cells) / 3600, 1),
        "wall": (cost_model.finished(cells, 6) / 60, 0),
        "pieces": (len(pieces), 0),
        "minutes": (sum(int(run["seconds"]) for run in pieces) / 60, 0),
        "least": (min(workers), 0),
        "most": (max(workers), 0),
    }


def _step(model: str, device: str) -> float:
    """Return the seconds of a step of a plain loop, as benchmarks/engine.py has it; else NaN."""
    told = read("engine-cuda" if device == "cuda" else "engine")
    assert told is not None
    rows = told["results"]["rows"]
    if device == "cpu":
        return float(rows[0]["plain ms"]) / 1e3 / -(-1797 // 256) if model == "linear" else nan
    runs = {row["models"]: row["one plain eager run s"] / row["epochs"] for row in rows[::-1]}
    return float(runs.get(f"180 {model}", nan)) / -(-60_000 // 256)


def _alone(spec: Spec, device: str) -> float:
    """Return the seconds of training every model of a cell by itself, scaled from that step."""
    entry = find(spec.dataset)
    rows = entry.rows[0] * (1.0 if entry.rows[1] else 1 - spec.test_share)
    if approach(spec.runs).form == "pairs-before":
        k = len(entry.classes)
        rows *= float(np.arange(1, k) @ size_law(spec.law, k))
    grid = (count_models(spec) - spec.trials) * (1 - spec.share)  # some rows choose
    steps = (grid + spec.trials) * spec.epochs * rows / spec.batch_size
    return steps * _step(spec.model, device)


def _gaps(column: dict[str, Record]) -> list[float]:
    return [gap for one in column.values() if (gap := difference(one)) is not None]


def write() -> None:
    """Write the tables in results/, the page and its figures, and the README's table."""
    held = gather(RESULTS / "ledger")
    write_report(held, RESULTS, ["latex", "markdown", "csv"])
    (HERE / PICTURES).mkdir(exist_ok=True)
    main = beside_paper(tables())
    draw(list(main.values()), HERE / PICTURES, ["png"])
    draw_cells(main, HERE / PICTURES / "cells.png")
    draw_proof(main, HERE / PICTURES / "proof.png")
    draw_ranks(ranking(main), HERE / PICTURES / "ranks", ["png"])
    for file in (HERE / PICTURES).glob("*.png"):
        write_small(file.read_bytes(), file)
    (HERE / "reproduction.md").write_text(document(), encoding="utf-8")
    readme = HERE.parent / "README.md"
    readme.write_text(renewed(readme.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
