"""Write which.md, the guide "which approach for which sets", and its figure from results/beyond.

    python docs/which.py

The ledger is that of ``ruleout paper beyond``; what was not run is not in it, and the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, ttest_rel

from ruleout.comparison.significance import Ranking, rank_approaches
from ruleout.experiments import Record, gather, plan
from ruleout.experiments.reports import draw_ranks, title_of
from ruleout.experiments.specs import NAMES

HERE = Path(__file__).parent
LEDGER = HERE.parent / "results" / "beyond"
FIGURE = Path("_static", "beyond-ranks")

#: Laws: what sets they make.
LAWS = {
    "released": "random sets of all sizes",
    "fixed:1": "one class ruled out at random",
    "fixed:k-2": "all but two classes ruled out at random",
    "strong:released": "biased sets: some wrong classes are favoured, by a matrix",
    "released~0.2": "random sets, a fifth of them wrong (and nobody says so)",
    "given": "real boards: the sets that came with the data",
}
Column = dict[str, Record]

PAGE = """\
# Which approach for which sets

Written by `docs/which.py` from `results/beyond`, the ledger of `ruleout paper beyond`: approaches
of the paper and later ones, and `auto`, each with settings chosen without true labels from eight,
100 epochs, five trials (of large data sets MLPs search in one of them). What is not in the ledger
is not on this page. {run}

## In short

| sets | columns | best, by mean rank | LOG, behind the best | `auto`, behind the best |
|---|---|---|---|---|
{short}

A column is a data set and a model. Mean ranks are over the columns of a law in which all single
approaches were run; how far LOG and `auto` are behind the best single approach is in points, on
average (below zero: ahead), and in brackets over how many columns. Approaches that are told how
sets came about (`likelihood` with error rates, `forward` or `cpe-f` with a matrix) are not here:
they know more; {{doc}}`honest` says what that is worth.

## Several, of which one is chosen without true labels

| tried, and the most accurate one taken, as far as sets tell | {laws} |
|---|{lines}|
{several}

In points behind the approach that true labels would have named, on average over the columns of a
law. The lists were made with this ledger in sight; the last row has, for each data set, the four
approaches of which the chosen one lost least on all others. In code:
`grid={{"approach": ["log", "rc"], "learning_rate": [0.1, 0.01, 0.001]}}`.

## Over all columns

![Average ranks of single approaches over {columns} columns]({figure}.png)

Average ranks of the single approaches over {columns} columns. Bars join approaches that Wilcoxon's
signed-rank test with Holm's correction does not tell apart at 5 %; columns of one data set are not
independent, so its p-values are too small.

## `auto` against LOG, column by column

| sets | data | model | LOG | `auto` | difference, p | best single approach |
|---|---|---|---|---|---|---|
{rows}

p is that of a paired t-test over the trials. `auto` is worse than LOG at the 5 % level in {worse}
of {count} columns; with no difference at all, chance would say so in about {chance:.1f}. `auto`
brings columns of very different sizes to one range before it trains, and predicts by several
models; the single approaches here do neither. These choose one configuration for all trials, by the
mean over them, where `auto` has the sets of one trial: LOG on yeast with one class ruled out has
46.8 (MLP) and 44.1 (linear) that way, 43.7 and 42.2 where each trial chooses for itself.
"""


def columns() -> dict[str, dict[tuple[str, str], Column]]:
    """Return records by law, then by data set and model, then by approach."""
    found: dict[str, dict[tuple[str, str], Column]] = {law: {} for law in LAWS}
    for record in gather(LEDGER).records:
        spec = record.spec
        found[spec.law].setdefault((spec.dataset, spec.model), {})[spec.approach] = record
    return found


def mean_rank(found: Mapping[tuple[str, str], Column]) -> list[tuple[float, str]]:
    """Return the mean rank of each single approach that was run in all columns, the best first."""
    names = sorted(set.intersection(*(set(own) for own in found.values())) - {"auto"})
    means = np.array([[own[name].mean for name in names] for own in found.values()])
    return sorted(zip(rankdata(-means, axis=1).mean(0).tolist(), names, strict=True))


def summary(found: Mapping[str, Mapping[tuple[str, str], Column]]) -> list[str]:
    """Return a line for each law: which approaches rank best, and what LOG and `auto` lose."""
    lines = []
    for law, own in found.items():
        if not own:
            continue
        ranks = "; ".join(f"{title_of(name)} ({rank:.1f})" for rank, name in mean_rank(own)[:4])
        told = []
        for name in ("log", "auto"):
            lost = [100 * (best(c).mean - c[name].mean) for c in own.values() if name in c]
            told.append(f"{np.mean(lost):.1f} ({len(lost)})" if lost else "not run")
        lines.append(f"| {LAWS[law]} (`{law}`) | {len(own)} | {ranks} | {' | '.join(told)} |")
    return lines


#: Lists of which accuracy, estimated from sets, chooses one.
LISTS = (("log",), ("rc",), ("log", "proden"), ("log", "proden", "crosel"),
         ("log", "proden", "crosel", "rc"))  # fmt: skip
RANDOM = ("released", "fixed:1", "fixed:k-2", "released~0.2")


def several(found: Mapping[str, Mapping[tuple[str, str], Column]]) -> list[str]:
    """Return a line for each list: how far the one that is chosen is behind the best approach."""
    own = [(law, data, c) for law in RANDOM for (data, _), c in found[law].items()]
    names = sorted(set.intersection(*(set(column) for *_, column in own)) - {"auto"})
    means = np.array([[column[name].mean for name in names] for *_, column in own])
    judged = np.array([[column[name].estimate for name in names] for *_, column in own])
    judged, lost = np.nan_to_num(judged, nan=-1), 100 * (means.max(1, keepdims=True) - means)

    def behind(lists: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """Return what is lost in each column, ``[lists, columns]``."""
        at, rows = np.array(lists), np.arange(len(own))
        chosen = at[np.arange(len(at))[:, None], judged[:, at].argmax(-1).T]
        return np.asarray(lost[rows, chosen])

    lines = {
        ", ".join(map(title_of, some)): behind([[names.index(name) for name in some]])[0]
        for some in LISTS
    }
    fours, sets = behind(list(combinations(range(len(names)), 4))), np.array([d for _, d, _ in own])
    other = [fours[fours[:, sets != data].mean(1).argmin(), c] for c, data in enumerate(sets)]
    lines["the four that were best on the other data sets"] = np.array(other)
    laws = np.array([law for law, *_ in own])
    return [
        f"| {name} | {' | '.join(f'{values[laws == law].mean():.1f}' for law in RANDOM)} |"
        for name, values in lines.items()
    ]


def best(column: Column) -> Record:
    """Return the best single approach of a column."""
    return max((r for name, r in column.items() if name != "auto"), key=lambda r: r.mean)


def against_log(found: Mapping[str, Mapping[tuple[str, str], Column]]) -> tuple[list[str], int]:
    """Return a line for each column that compares `auto` with LOG; how many are worse at 5 %."""
    lines, worse = list[str](), 0
    for law, own in found.items():
        for (data, model), column in sorted(own.items()):
            if "auto" not in column:
                continue
            auto, log = column["auto"].accuracy, column["log"].accuracy
            p = float(ttest_rel(auto, log).pvalue) if not np.array_equal(auto, log) else 1.0
            worse += bool(auto.mean() < log.mean() and p < 0.05)
            single = best(column)
            both = f"{100 * log.mean():.1f} | {100 * auto.mean():.1f}"
            off = f"{100 * (auto.mean() - log.mean()):+.1f}, p = {p:.3f}"
            first = f"{title_of(single.spec.approach)} {100 * single.mean:.1f}"
            lines.append(f"| `{law}` | {data} | {model} | {both} | {off} | {first} |")
    return lines, worse


def ranking(found: Mapping[str, Mapping[tuple[str, str], Column]]) -> Ranking:
    """Rank single approaches over all columns."""
    every = {
        (data, model, law): {name: one.mean for name, one in column.items() if name != "auto"}
        for law, own in found.items()
        for (data, model), column in own.items()
    }
    return rank_approaches(every)


def document() -> str:
    """Return the page."""
    found = {law: _complete(own) for law, own in columns().items()}
    done, wanted = {str(one.spec) for one in gather(LEDGER).records}, plan("beyond")
    left = dict.fromkeys(f"{one.dataset} ({one.model})" for one in wanted if str(one) not in done)
    run = f"{sum(str(one) in done for one in wanted)} of {len(wanted)} cells are run."
    if left:
        run += f" Not run, or not all of it: {', '.join(left)}."
    rows, worse = against_log(found)
    told = {"figure": FIGURE.as_posix(), "columns": len(ranking(found).blocks)}
    told |= {"worse": worse, "count": len(rows), "chance": 0.025 * len(rows)}
    told |= {
        "laws": " | ".join(f"`{law}`" for law in RANDOM),
        "lines": "|".join("---" for _ in RANDOM),
    }
    told |= {name: "\n".join(part(found)) for name, part in PARTS.items()}
    return PAGE.format(run=run, rows="\n".join(rows), **told)


PARTS = {"short": summary, "several": several}


def _complete(found: Mapping[tuple[str, str], Column]) -> dict[tuple[str, str], Column]:
    """Leave out columns that lack a single approach."""
    singles = set(NAMES["beyond"]["approaches"]) - {"auto"}
    return {place: own for place, own in found.items() if singles <= own.keys()}


def main() -> None:
    (HERE / "which.md").write_text(document())
    found = {law: _complete(own) for law, own in columns().items()}
    draw_ranks(ranking(found), HERE / FIGURE, ["png"])


if __name__ == "__main__":
    main()
