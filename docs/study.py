"""The study of labelling.md: accuracy against the number of questions, with a simulated annotator.

    python docs/study.py --run digits fashion-mnist   # measures: src/ruleout/learning/study.csv
    python docs/study.py                        # draws the figure and writes the tables

The annotator knows the true class and answers truthfully. Questions walk over the training rows in
a random order, again and again when there are more questions than rows. The same questions teach
in four ways; a true label counts as one question, though it takes longer to give.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ruleout as ro
from ruleout.learning.planning import FILE, Measured, Point, points, read_study
from ruleout.selection import search
from ruleout.training import Trial, Watch

HERE = Path(__file__).parent
FIGURE = HERE / "_static" / "labelling-study.png"
PAGE = HERE / "labelling-study.md"
TRIALS = 5
GRID = {"learning_rate": [1e-3, 1e-2, 1e-1], "weight_decay": [1e-5, 1e-3]}
WAYS = ("labels", "intersection", "answers", "no")
BUDGETS = {
    "digits": (100, 200, 400, 800, 1400, 2800, 5600),
    "fashion-mnist": (300, 1_000, 3_000, 10_000, 30_000, 60_000, 120_000),
}


@dataclass(frozen=True)
class Task:
    """A data set with rows to test on."""

    name: str
    x: NDArray[Any]
    y: NDArray[Any]
    test: Watch
    classes: int


def task(name: str) -> Task:
    data = ro.datasets.load(name)
    if data.test is not None:
        (x, y), (more, true) = data.train, data.test
    else:  # digits: a fifth is for testing
        rows = np.random.default_rng(0).permutation(len(data.train[0]))
        x, y = data.train[0][rows[:1400]], data.train[1][rows[:1400]]
        more, true = data.train[0][rows[1400:]], data.train[1][rows[1400:]]
    return Task(name, x, y, Watch(true, x=more), len(data.classes))


def trial(task: Task, way: str, questions: int, seed: int) -> Trial:
    """Ask so many questions, and return what they teach in one of the ways."""
    n = len(task.x)
    walk = np.random.default_rng([seed, 1]).permutation(n)
    about = walk[np.arange(questions) % n]
    if way == "labels":
        return Trial(ro.LabelSets.from_labels(task.y[about], task.classes), about, seed=seed)
    asked = ro.propose(questions, task.classes, "released", seed=seed)
    answers = ro.answer(asked, task.y, about)
    if way == "no":
        answers = ro.Answers(answers.no, np.zeros(int((~answers.yes).sum()), bool),
                             answers.items[~answers.yes])  # fmt: skip
    rows, sets, rates = answers.per_item()
    return Trial(sets, rows, rate=rates if way == "answers" else None, seed=seed)


def measure(task: Task, way: str, questions: int, model: str, device: str) -> list[Measured]:
    """Train on each trial, settings chosen without true labels, and test."""
    trials = [trial(task, way, questions, seed) for seed in range(TRIALS)]
    even = len({len(one.sets) for one in trials}) == 1  # then they are trained at once
    accuracy = [
        value
        for together in ([trials] if even else [[one] for one in trials])
        for value in tested(task, together, model, device)
    ]
    return [
        Measured(task.name, model, way, questions, seed, float(value))
        for seed, value in enumerate(accuracy)
    ]


def tested(task: Task, trials: list[Trial], model: str, device: str) -> NDArray[Any]:
    epochs = max(10, -(-1500 // -(-len(trials[0].sets) // 256)))
    found = search(
        task.x, trials, approach="log", model=model, grid=GRID, epochs=epochs, per_trial=True,
        watch={"test": task.test}, every=epochs, device=device,
        precision="tf32" if device == "cuda" else "float32",
    )  # fmt: skip
    assert found.final is not None
    final: NDArray[Any] = found.final.history["test/accuracy"][:, 0, -1]
    return final


def run(names: list[str], model: str, device: str, out: Path) -> None:
    """Measure what is not in the file yet, line by line."""
    known = {(m.data, m.model, m.way, m.questions) for m in read_study(out)}
    for name in names:
        data = task(name)
        for questions in BUDGETS[name]:
            for way in WAYS:
                beyond = way == "labels" and questions > len(data.x)
                if beyond or (name, model, way, questions) in known:
                    continue
                rows = measure(data, way, questions, model, device)
                append(out, rows)
                mean = np.mean([row.accuracy for row in rows])
                print(f"{name} {model} {way} {questions}: {mean:.4f}", flush=True)


def append(out: Path, rows: list[Measured]) -> None:
    fresh = not out.exists()
    with out.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(["data", "model", "way", "questions", "trial", "accuracy"])
        writer.writerows(astuple(replace(row, accuracy=round(row.accuracy, 5))) for row in rows)


# ---------------------------------------------------------------------- figure and page

_NAMES = {
    "labels": "true labels",
    "intersection": "yes and no, what is left possible",
    "answers": "yes and no, unbiased risk",
    "no": "no alone, as in the paper",
}
_COLOURS = {"labels": "0.45", "intersection": "#4477aa", "answers": "#228833", "no": "#cc6677"}


def curves(trials: list[Measured]) -> dict[tuple[str, str], dict[str, list[Point]]]:
    """Return the points of each way, by data set and model."""
    found: dict[tuple[str, str], dict[str, list[Point]]] = {}
    for data, model, way in dict.fromkeys((m.data, m.model, m.way) for m in trials):
        own = [m for m in trials if (m.data, m.model, m.way) == (data, model, way)]
        found.setdefault((data, model), {})[way] = points(own)
    return found


def draw(trials: list[Measured], path: Path) -> None:
    from matplotlib.figure import Figure

    panels = curves(trials)
    page = Figure(figsize=(4.2 * len(panels), 3.6), layout="constrained")
    for axes, ((data, model), ways) in zip(
        page.subplots(1, len(panels), squeeze=False).flat, panels.items(), strict=True
    ):
        for way in WAYS:
            q = [point.questions for point in ways[way]]
            mean = np.array([point.accuracy for point in ways[way]])
            error = np.array([point.error for point in ways[way]])
            style = "--" if way == "labels" else "-"
            axes.plot(q, mean, style, marker="o", markersize=3, color=_COLOURS[way],
                      label=_NAMES[way])  # fmt: skip
            axes.fill_between(q, mean - error, mean + error, color=_COLOURS[way], alpha=0.2)
        axes.set_xscale("log")
        axes.set_title(f"{data}, {model}", fontsize=10)
        axes.set_xlabel("questions")
        axes.grid(alpha=0.25)
    page.axes[0].set_ylabel("test accuracy")
    page.axes[0].legend(fontsize=8, loc="lower right")
    page.savefig(path, dpi=130)


def document(trials: list[Measured]) -> str:
    """Return the part of the page that the numbers write."""
    from ruleout.learning.planning import label_ratio  # late: measuring needs no database

    parts = ["<!-- Written by docs/study.py from src/ruleout/learning/study.csv: do not edit. -->"]
    for (data, model), ways in curves(trials).items():
        budgets = sorted({point.questions for line in ways.values() for point in line})
        head = ["questions", *(_NAMES[way] for way in WAYS)]
        lines = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
        for budget in budgets:
            cells = [_cell(ways[way], budget) for way in WAYS]
            lines.append(f"| {budget:,} | " + " | ".join(cells) + " |")
        parts.append(f"**{data}, {model}**\n\n" + "\n".join(lines))
    ratios = [label_ratio(way, trials) for way in WAYS[1:]]
    told = "; ".join(
        f"{_NAMES[one.way]} {one.middle:.1f} ({one.low:.1f} to {one.high:.1f})" for one in ratios
    )
    parts.append(
        f"Questions that teach as much as one true label, the middle of all accuracies that both "
        f"reached, and the extremes: {told}."
    )
    return "\n\n".join(parts) + "\n"


def _cell(line: list[Point], budget: float) -> str:
    found = [point for point in line if point.questions == budget]
    return f"{100 * found[0].accuracy:.1f} ± {100 * found[0].error:.1f}" if found else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", nargs="+", metavar="DATA", choices=[*BUDGETS])
    parser.add_argument("--model", default="linear")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=FILE)
    asked = parser.parse_args()
    if asked.run:
        run(asked.run, asked.model, asked.device, asked.out)
        return
    trials = read_study()
    draw(trials, FIGURE)
    PAGE.write_text(document(trials), encoding="utf-8")
    print(f"drawn: {FIGURE}; written: {PAGE}")


if __name__ == "__main__":
    main()
