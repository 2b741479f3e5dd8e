"""Reports for the tests: a realistic one and a hostile one, all numbers made up."""

from __future__ import annotations

import numpy as np

from ruleout.report import (
    CellTable,
    Curves,
    Histogram,
    Line,
    Listing,
    Matrix,
    Note,
    Part,
    Ranks,
    Reliability,
    Report,
    Score,
    ScoreTable,
    Section,
    TableCell,
    TableRow,
)

HOSTILE = (
    "<script>alert(1)</script>",
    "\"quotes\" & 'apostrophes'",
    "two\nlines\tand a tab",
    "مرحبا بالعالم",
    "x" * 200,
    "🦊🐈‍⬛ 汉字",
    "]]><!-- -->",
    "nul \x00 bell \x07 half \ud800",
    "</style></svg></table>",
    "{{ 7 * 7 }}",
)

ROWS = (  # name, label, family, form, level
    ("log", "LOG", "upper-bound", "whole", 0.945),
    ("exp", "EXP", "upper-bound", "whole", 0.941),
    ("mae", "MAE", "bounded", "whole", 0.902),
    ("mse", "MSE", "bounded", "whole", 0.931),
    ("gce", "GCE", "bounded", "whole", 0.927),
    ("phuber", "PHuber-CE", "bounded", "whole", 0.918),
    ("cce", "CCE", "unbounded", "whole", 0.889),
    ("ga-before", "GA", "before-shuffle", "pairs-before", 0.871),
    ("nn-before", "NN", "before-shuffle", "pairs-before", 0.842),
    ("free-before", "FREE", "before-shuffle", "pairs-before", 0.793),
    ("pc-before", "PC", "before-shuffle", "pairs-before", 0.812),
    ("forward-before", "Forward", "before-shuffle", "pairs-before", 0.926),
    ("ga-after", "GA", "after-shuffle", "pairs-after", 0.868),
    ("nn-after", "NN", "after-shuffle", "pairs-after", 0.851),
    ("free-after", "FREE", "after-shuffle", "pairs-after", 0.781),
    ("pc-after", "PC", "after-shuffle", "pairs-after", 0.823),
    ("forward-after", "Forward", "after-shuffle", "pairs-after", 0.938),
    ("clpl", "CLPL", "partial-label", "whole", 0.904),
)
DIGITS = [str(digit) for digit in range(10)]


def scores(trials: int = 3) -> ScoreTable:
    random = np.random.default_rng(0)
    rows = []
    for place, (name, label, family, form, level) in enumerate(ROWS):
        each = level + random.normal(0, 0.004 + 0.002 * (place % 4), trials)
        mean, seconds = float(each.mean()), float(random.uniform(0.8, 75))
        rows.append(
            Score(
                name,
                mean,
                float(each.std(ddof=1)) if trials > 1 else None,
                label=label,
                family=family,
                form=form,
                mark="•" if mean < 0.93 else "",
                p_value=float(random.uniform(1e-5, 0.04 if mean < 0.93 else 0.6)),
                chosen={
                    "learning rate": float(random.choice([1e-3, 1e-4, 1e-5])),
                    "weight decay": float(random.choice([1e-3, 1e-5])),
                },
                estimate=mean - 0.004,
                estimate_error=0.006,
                seconds=seconds,
                trials=each,
            )
        )
    rows.append(Score("cross entropy", 0.968, 0.002, family="true labels", reference=True))
    return ScoreTable("Eighteen approaches, digits, linear model", rows, ours="LOG")


def curves(epochs: int = 150) -> Curves:
    random = np.random.default_rng(1)
    lines, x = [], np.arange(1, epochs + 1)
    for place, (name, _, family, _, level) in enumerate(ROWS):
        mean = level - (level - 0.1) * np.exp(-x / (4 + 3 * (place % 5)))
        mean = mean + random.normal(0, 0.003, epochs)
        wide = 0.006 + 0.02 * np.exp(-x / 30)
        lines.append(Line(name, x, mean, mean - wide, mean + wide, family))
    return Curves(
        "Test accuracy while training",
        lines,
        y_label="Test accuracy",
        band_label="± standard deviation of 3 trials",
        unit="percent",
        visible=["log", "exp", "ga-before", "free-after", "forward-after"],
    )


def sizes(classes: int = 10, rows: int = 1437) -> Histogram:
    random = np.random.default_rng(2)
    law = np.exp(-((np.arange(1, classes) - classes / 2) ** 2) / (classes / 2))
    expected = rows * law / law.sum()
    return Histogram("Sizes of the label sets", random.poisson(expected), expected=expected)


def calibration() -> Reliability:
    sure = np.linspace(0.15, 0.97, 10)
    right = np.array([-0.06, 0.22, 0.31, 0.36, 0.5, 0.55, 0.7, 0.77, 0.9, 1.02])
    rows = np.array([6, 14, 22, 31, 40, 44, 60, 90, 210, 620])
    error = 0.9 / np.sqrt(rows)
    return Reliability("Reliability", sure, right, rows, error=error, estimated=True)


def pairs(classes: int = 10) -> Matrix:
    random = np.random.default_rng(3)
    counts = random.poisson(random.gamma(2, 30, (classes, classes)))
    np.fill_diagonal(counts, random.poisson(4, classes))
    names = DIGITS if classes == 10 else [f"class {place}" for place in range(classes)]
    diagonal = "the class predicted had been ruled out, so the prediction is wrong."
    return Matrix("Ruled out against predicted", names, names, counts, diagonal=diagonal)


def ranks() -> Ranks:
    named = [f"{label} ({family})" for _, label, family, *_ in ROWS]
    groups = [(0, 5), (3, 9), (7, 17), (10, 17)]
    return Ranks(
        "Average ranks",
        named,
        np.linspace(1.4, 17.2, len(ROWS)),
        families=[family for _, _, family, *_ in ROWS],
        groups=groups,
        p_values=[None, *np.linspace(0.9, 1e-5, len(ROWS) - 1)],
    )


def cells(columns: int = 4, epochs: int = 250) -> CellTable:
    """Make a table in the paper's shape; the seventh row failed on the second data set."""
    random = np.random.default_rng(4)
    rows = []
    for place, (_, label, family, _, level) in enumerate(ROWS):
        made = [
            TableCell(None, paper_mean=level, paper_std=0.01, note="failed three times: overflow")
            if (place, column) == (6, 1)
            else _cell(random, level - 0.1 * column, epochs)
            for column in range(columns)
        ]
        rows.append(TableRow(family, label, made))
    names = ["Yeast", "Texture", "Dermatology", "Synthetic Control", *map(str, range(columns))]
    return CellTable("UCI, linear model", names[:columns], rows, ours=["LOG"] * columns, name="uci")


def _cell(random: np.random.Generator, level: float, epochs: int) -> TableCell:
    trials = level + random.normal(0, 0.008, 5)
    mean, std, x = float(trials.mean()), float(trials.std(ddof=1)), np.arange(1, epochs + 1)
    rise = mean - mean * np.exp(-x / 9) + random.normal(0, 0.004, epochs)
    far = (mean - level) / np.hypot(std, 0.002)
    return TableCell(
        mean,
        std,
        mark="•" if mean < 0.9 else "",
        holm="•" if mean < 0.85 else "",
        p_value=0.012,
        p_holm=0.2,
        paper_mean=level,
        paper_std=0.002,
        verdict="agrees" if abs(far) < 2 else "better" if far > 0 else "worse",
        trials=trials,
        chosen={"learning rate": 1e-3, "weight decay": 1e-5},
        facts={
            "criterion": "93.80 ± 0.41 %",
            "oracle": "94.60 %",
            "seconds": 12.5,
            "key": "9f" * 8,
        },
        curves=[
            Line("test", x, rise, rise - 0.01, rise + 0.01),
            Line("training", x, 1.02 * rise, 1.02 * rise - 0.01, 1.02 * rise + 0.01),
        ],
    )


def hostile_cells() -> CellTable:
    """Every text is one of the hostile ones."""
    bad, line = list(HOSTILE), Line(HOSTILE[0], [1, 2], [0.1, 0.2])
    rows = [
        TableRow(
            name,
            name,
            [
                TableCell(0.5, 0.1, mark="•", paper_mean=0.5, chosen={name: name}, curves=[line]),
                TableCell(None, facts={name: name}, note=name),
            ],
        )
        for name in bad
    ]
    return CellTable(
        bad[0],
        bad[:2],
        rows,
        ours=bad[:2],
        test_label=bad[0],
        verdict_label=bad[8],
        note=bad[0],
        name=bad[0],
    )


def realistic() -> Report:
    facts = {
        "data": "digits, 8 × 8 pixels",
        "rows": 1437,
        "classes": 10,
        "law": "released",
        "model": "linear",
        "grid": "6 configurations",
        "trials": 3,
        "epochs": 150,
        "device": "cuda, NVIDIA H200",
        "precision": "float32",
        "seed": 0,
        "versions": "ruleout 0.1.0, torch 2.9.0",
        "time": "4 min 05 s",
    }
    summary = [
        "LOG is the best of eighteen approaches: 94.6 % of the test rows, from labels that only "
        "say what each digit is not.",
        "With true labels the same model reaches 96.8 %.",
        "Learning rate and weight decay were chosen without a single true label.",
    ]
    versions = Listing("Versions", {"python": "3.11.7", "ruleout": "0.1.0", "torch": "2.9.0"})
    grid = Listing("Grid", {"learning rate": "1e-05, 1e-04, 1e-03", "weight decay": "1e-05, 1e-03"})
    sections = [
        Section("Scores", [scores()], "Mean test accuracy, each with its chosen configuration."),
        Section("Learning", [curves(), ranks()]),
        Section("Labels and predictions", [sizes(), calibration(), pairs()]),
        Section(
            "How it was run",
            [
                Note("12 rows ruled out every class but one and count as labelled.", "warning"),
                Note("Trials differ in the sets drawn and in the order of batches."),
                grid,
                versions,
            ],
        ),
    ]
    return Report("What each digit is not", summary, facts, sections)


def hostile() -> Report:
    """Every text of every part is one of the hostile ones."""
    bad, nan = list(HOSTILE), float("nan")
    rows = [
        Score(name, 0.5, nan, label=name, family=name, form=name, chosen={name: name}, trials=[nan])
        for name in bad
    ]
    lines = [Line(name, [0, 1], [0.1, 0.2], family=name) for name in bad]
    counts = np.ones((len(bad), len(bad)))
    parts: list[Part] = [
        ScoreTable(bad[0], rows, score_label=bad[1], spread_label=bad[2], ours=bad[3], note=bad[0]),
        Curves(bad[0], lines, x_label=bad[0], y_label=bad[4], band_label=bad[8], note=bad[0]),
        Histogram(bad[0], [1, 2], expected=[1, 2], x_label=bad[0], y_label=bad[4], note=bad[0]),
        Reliability(bad[0], [0.5], [0.5], [3], note=bad[0]),
        Matrix(bad[0], bad, bad, counts, row_label=bad[0], column_label=bad[8], diagonal=bad[0]),
        Ranks(bad[0], bad, range(len(bad)), families=bad, groups=[(0, 9)], note=bad[0]),
        Listing(bad[0], [(name, name) for name in bad], note=bad[0]),
        hostile_cells(),
        *(Note(name, "warning") for name in bad),
    ]
    facts = {name: name for name in bad}
    return Report(bad[0], bad, facts, [Section(name, parts, name) for name in bad[:3]])
