"""Write reproduction.md and its figures from the ledgers under results/, and the tables there.

    python docs/reproduction.py

Numbers come from the ledgers; what was tried and why is in reproduction-notes.md, by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from scipy.stats import ttest_ind_from_stats

from ruleout.experiments import (
    TABLES,
    PaperTable,
    Record,
    gather,
    paper_tables,
    verdict,
    write_report,
)
from ruleout.experiments.plans import printed_for
from ruleout.experiments.reports import columns, count, difference, draw, findings, trends
from ruleout.methods import approach
from ruleout.report import markdown
from ruleout.report.number_format import p_value
from ruleout.theory import bound, error_bound, linear_complexity, lipschitz

sys.path.insert(0, str(Path(__file__).parent))
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
        *(_trends(table) for name, table in main.items() if name.startswith("fixed")),
        _scaling(main["uci"], found["uci-standardised"]),
        _apart(main),
        _variants(main["uci"], variants),
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
    told = {"CELLS": len(records), "LISTED": listed, "DIFFER": _differ(records)}
    told |= {"AMONG": _differ(agree), "AGREE": len(agree), "CHANCE": round(len(records) / 20)}
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
configuration.

A cell *agrees* when the two means differ by at most
$2\\sqrt{s_\\mathrm{paper}^2 + s_\\mathrm{ours}^2}$, with the standard deviations over five trials;
otherwise it is *better* or *worse* than the paper's. That is a wide range: it asks whether two runs
could be like each other, not whether their means are the same. Welch's t-test of two means, five
trials each, at 5 % without correction, says that DIFFER of the CELLS means differ, AMONG of them
among the AGREE that agree. If all were the same, about CHANCE would.
"""


_FIGURES = f"""## In pictures

![Our accuracy against the printed one, a point for each cell]({PICTURES}/cells.png)

A point for each cell, with one standard deviation over the trials to each side. On the dashed line
ours and the paper's are the same.

### Figure 1: test accuracy by epoch

The losses of the unbiased estimator, with the configurations that were chosen. Bands: one standard
deviation over the trials.

![Test accuracy by epoch, a panel for each data set]({PICTURES}/figure-1.png)

### Figure 2: training accuracy by epoch

True labels measure it; they neither train nor choose.

![Training accuracy by epoch, a panel for each data set]({PICTURES}/figure-2.png)
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
    return "## In short\n\n" + _grid(heads, rows)


def _upper(records: list[Record]) -> list[Record]:
    return [one for one in records if one.spec.approach in ("exp", "log")]


def _told(records: list[Record]) -> list[object]:
    told = count(records)
    good = told["agrees"] + told["better"]
    share = round(100 * good / told["run"])
    share = min(share, 99) if good < told["run"] else share
    counts = [told["run"], told["agrees"], told["better"], told["worse"]]
    return [*counts, f"{share} %", _differ(records)]


def _differ(records: Sequence[Record]) -> int:
    """Count the means that differ from the printed ones by Welch's test at 5 %."""
    found = 0
    for one in records:
        paper = printed_for(one.spec)
        if paper is not None:
            ours = (100 * one.mean, 100 * one.std, len(one.accuracy))
            theirs = (paper.mean, paper.std, _PRINTED_TRIALS)
            found += ttest_ind_from_stats(*ours, *theirs, equal_var=False).pvalue < 0.05
    return found


_PRINTED_TRIALS = 5


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
        "## The paper's sentences\n\nSignificant means a paired t-test over the five trials at "
        "5 %, as in the paper.\n\n" + "\n".join(lines) + "\n"
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
            rows.append([head, *(f"{mean:.1f}" for part in means for mean in part), said])
    heads = ["data set", *(f"{who} {family}" for who in ("ours,", "paper,")
             for family in _FAMILIES), "order"]  # fmt: skip
    return (
        "## The order of the families\n\nMean accuracy of the losses of each family. The order is "
        f"the paper's on {same} of {total} data sets.\n\n" + _grid(heads, rows)
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
        rows.append([f"Theorem 4, {approach(loss).label}", *shares, "", "", "falls"])
    heads = ["approach", *(f"s = {size}" for size in sizes), "p", "p after Holm", "accuracy"]
    return (
        f"## More classes ruled out: {table.cells.title}\n\n"
        f"Does accuracy rise with s, the number of classes that are ruled out? Page's test of "
        f"ordered means over the five trials says so for {rises} of {len(found)} approaches, after "
        "Holm's correction at 5 %. The last rows are the bound of Theorem 4 on the excess risk of "
        "the unbiased estimator, as a share of the bound at the first s (60,000 rows, linear "
        "models of norm 1 on features of norm 1, δ = 0.05): it falls as s grows.\n\n"
        + _grid(heads, rows)
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
        "before training again on all rows.\n\n" + _grid(heads, rows)
    )


def _far(record: Record) -> list[object]:
    found, row = printed_for(record.spec), approach(record.spec.approach)
    assert found is not None
    rate, decay = (f"{record.configuration[n]:g}" for n in ("learning_rate", "weight_decay"))
    form = "" if row.form == "whole" else f" ({row.form.removeprefix('pairs-')})"
    size = f", {found.sizes}" if found.sizes.startswith("s=") else ""
    return [
        f"{found.dataset}{size}, {found.approach}{form}",
        f"{100 * record.mean:.2f} ± {100 * record.std:.2f}",
        f"{found.mean:.2f} ± {found.std:.2f}",
        f"{difference(record):+.2f}",
        verdict(record),
        f"{rate} / {decay}",
        f"{100 * record.estimate:.2f}",
        f"{100 * record.oracle[0]:.2f}",
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


def _gaps(column: dict[str, Record]) -> list[float]:
    return [gap for one in column.values() if (gap := difference(one)) is not None]


def write() -> None:
    """Write the tables in results/, the page and its figures."""
    held = gather(RESULTS / "ledger")
    write_report(held, RESULTS, ["latex", "markdown", "csv"])
    (HERE / PICTURES).mkdir(exist_ok=True)
    draw([one for one in held.records if one.spec.features == "raw"], HERE / PICTURES, ["png"])
    draw_cells(beside_paper(tables()), HERE / PICTURES / "cells.png")
    for file in (HERE / PICTURES).glob("*.png"):
        write_small(file.read_bytes(), file)
    (HERE / "reproduction.md").write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    write()
