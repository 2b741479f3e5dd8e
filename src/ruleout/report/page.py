"""The page: a report in, one file of HTML out that asks for nothing from elsewhere."""

import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from markupsafe import Markup

from ruleout.labels.atomic import write_text
from ruleout.report import charts, number_format, parts
from ruleout.report.number_format import known, number, p_value, points, signed, text, value
from ruleout.report.svg import fill
from ruleout.report.table_writers import Cell, Table, csv, latex, legend, one_line


def render(report: parts.Report) -> str:
    """Return the page as text; the same report always gives the same text.

    A policy inside the page forbids every request and every script but its own.

    >>> page = render(parts.Report("Digits", ["LOG wins."]))
    >>> "LOG wins." in page, "http://" in page, "https://" in page
    (True, False, False)
    """
    style, script = (_assets(report, kind) for kind in ("css", "js"))
    digests = (b64encode(sha256(one.encode()).digest()).decode() for one in (style, script))
    allowed = "style-src 'sha256-{}'; script-src 'sha256-{}'".format(*digests)
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    facts = [(name, text(value)) for name, value in report.facts.items()]
    told: dict[str, Any] = {"style": style, "script": script, "policy": policy, "facts": facts}
    colours, sections = _colours(report), []  # id, title, text and the markup of the parts
    for i, section in enumerate(report.sections, 1):
        laid = [view(part, f"p{i}-{j}", colours) for j, part in enumerate(section.parts, 1)]
        sections.append((f"s{i}", section.title, section.text, laid))
    return str(fill("report.html", report=report, sections=sections, **told))


def write(report: parts.Report, path: str | Path) -> Path:
    """Write the page; the file appears whole or not at all. Returns where it is.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(parts.Report("Digits"), f"{folder}/report.html").name
    'report.html'
    """
    return write_text(path, render(report))


def _colours(report: parts.Report) -> dict[str, int]:
    """Give every family its colour, the same one all over the page."""
    names: dict[str, int] = {}
    for part in _parts(report):
        found = [row.family for row in part.rows] if isinstance(part, parts.ScoreTable) else []
        found += [row.group for row in part.rows] if isinstance(part, parts.CellTable) else []
        found += [line.family for line in part.lines] if isinstance(part, parts.Curves) else []
        found += part.families if isinstance(part, parts.Ranks) else []
        for family in filter(None, found):
            names.setdefault(family, len(names) % charts.COLOURS)
    return names


def _parts(report: parts.Report) -> Iterator[parts.Part]:
    return (part for section in report.sections for part in section.parts)


def _assets(report: parts.Report, kind: str) -> Markup:
    """Return the style sheet or the script, with what cells need only where there are any."""
    names = [{"css": "style.css", "js": "script.js"}[kind]]
    names += [f"cells.{kind}"] * any(isinstance(part, parts.CellTable) for part in _parts(report))
    folder = files("ruleout.report").joinpath("templates")
    return Markup("".join(folder.joinpath(name).read_text("utf-8") for name in names))


def view(part: parts.Part, key: str, colours: Mapping[str, int]) -> Markup:
    """Return the markup of a part; `key` makes its ids unique on the page."""
    match part:
        case parts.Note():
            return fill("note.html", part=part)
        case parts.Listing():
            pairs = part.rows.items() if isinstance(part.rows, Mapping) else part.rows
            rows = [(name, text(value)) for name, value in pairs]
            return fill("listing.html", part=part, rows=rows)
        case parts.ScoreTable():
            told = {"LaTeX": score_latex(part), "CSV": score_csv(part)}
            view = score_view(part, colours)
            return fill("scores.html", part=part, key=key, table=view, copies=told)
        case parts.CellTable():
            told = {"LaTeX": latex(part), "CSV": csv(part)}
            view = cell_view(part, key, colours)
            return fill("cells.html", part=part, key=key, table=view, copies=told)
        case parts.Curves():
            return _curves(part, key, colours)
        case parts.Histogram():
            return fill("histogram.html", part=part, key=key, **charts.histogram(part))
        case parts.Reliability():
            return fill("reliability.html", part=part, key=key, **charts.reliability(part))
        case parts.Matrix():
            return fill("heatmap.html", part=part, key=key, **charts.heatmap(part))
        case parts.Ranks():
            return fill("ranks.html", part=part, key=key, **charts.ranks(part, colours))
    raise TypeError(f"a {type(part).__name__} is not a part of a report")


def _curves(part: parts.Curves, key: str, colours: Mapping[str, int]) -> Markup:
    if not part.lines:
        return fill("figure.html", part=part, key=key, rows=(), full=True)
    on = part.visible
    if on is None:
        order = sorted(part.lines, key=lambda line: charts.end_of(line, -np.inf), reverse=True)
        on = [line.name for line in (order if len(order) <= 7 else order[:5])]
    view = charts.curve_view(part, 300 if part.half else 420, colours, set(on))
    groups: dict[str, list[dict[str, object]]] = {}
    for line in view["lines"]:
        groups.setdefault(line["family"], []).append(line)
    return fill("curves.html", part=part, key=key, still=False, groups=groups, **view)


_FIELDS = (
    *("name", "label", "family", "form", "score", "spread", "mark", "p_value"),
    *("estimate", "estimate_error", "seconds", "reference"),
)
_PAPER = 7  # the colour of the paper's bar
_VERDICTS = {"agrees": "agrees with", "better": "better than", "worse": "worse than"}


class _Column(NamedTuple):
    """A head, and of every row what it shows and is sorted by; an empty key comes last."""

    label: str
    sort: str  # "number" or "text"
    under: str
    kind: str
    cells: list[tuple[str, str]]


_Show: TypeAlias = Callable[[object], str]


def score_view(table: parts.ScoreTable, colours: Mapping[str, int]) -> dict[str, Any]:
    """Lay out a table: only columns that some row fills, the best score marked."""
    rows = _ordered(table)
    show: _Show = points if table.unit == "percent" else number
    bars = [
        charts.Bar("", row.score, row.spread, row.trials, colours.get(row.family, 0))
        for row in rows
    ]
    scores = [row.score for row in rows if known(row.score) and not row.reference]
    pick = max if table.higher_is_better else min
    best = show(pick(scores)) if scores else None  # as shown: what looks equal is equally bold
    return {
        "rows": rows,
        "bars": bars,
        "best": [not row.reference and show(row.score) == best for row in rows],
        "columns": _columns(table, rows, show),
        "show": show,
        "legend": _score_legend(table),
        **charts.dots(bars, 8, 162, 4, table.unit),
    }


def score_latex(part: parts.ScoreTable) -> str:
    view, rows = score_view(part, {}), []
    for place, row in enumerate(view["rows"]):
        score, *cells = (column.cells[place][0] for column in view["columns"])
        rows.append([row.name, Cell(score, view["best"][place], row.mark), *cells])
    heads = ["Approach", *(column.label for column in view["columns"])]
    return Table(heads, rows, part.title, " ".join(view["legend"])).latex()


def score_csv(part: parts.ScoreTable) -> str:
    """Write a table as CSV: every digit, one column for each chosen setting."""
    settings = _settings(part.rows)
    rows = [
        [*(getattr(row, name) for name in _FIELDS), *map(row.chosen.get, settings)]
        for row in _ordered(part)
    ]
    return Table([*_FIELDS, *settings], rows).csv()


def _ordered(table: parts.ScoreTable) -> list[parts.Score]:
    if table.order == "given":
        return list(table.rows)
    sign = -1 if table.higher_is_better else 1
    return sorted(table.rows, key=lambda row: sign * row.score if known(row.score) else math.inf)


def _settings(rows: Sequence[parts.Score]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.chosen))


def _columns(table: parts.ScoreTable, rows: Sequence[parts.Score], show: _Show) -> list[_Column]:
    """Return the score, then the columns that some row fills."""

    def own(name: str) -> list[Any]:
        found = [getattr(row, name) for row in rows]
        return [one if known(one) or isinstance(one, str) else None for one in found]

    def measured(label: str, name: str, error: str, said: str, kind: str = "") -> _Column:
        means, errors = own(name), own(error)
        sign = "\N{NO-BREAK SPACE}(%)" if table.unit == "percent" else ""
        under = said if any(map(known, errors)) else ""
        shown = [value(*both, show) for both in zip(means, errors, strict=True)]
        return _column(f"{label}{sign}", means, shown, under, kind)

    score = (table.score_label, "score", "spread", f"mean ± {table.spread_label}", "score")
    families, forms, seconds, tests = map(own, ("family", "form", "seconds", "p_value"))
    chosen = {name: [row.chosen.get(name) for row in rows] for name in _settings(rows)}
    found = [
        measured(*score),
        _column("Family", families, [text(one or None) for one in families], kind="family"),
        _column("Batches", forms, [text(one or None) for one in forms]),
        _column("p\N{NON-BREAKING HYPHEN}value", tests, map(p_value, tests)),
        measured(table.estimate_label, "estimate", "estimate_error", "± standard error"),
        *(
            _column(name[:1].upper() + name[1:], held, number_format.numbers(held))
            for name, held in chosen.items()
        ),
        _column("Time", seconds, map(number_format.duration, seconds)),
    ]
    return [one for one in found if one.kind == "score" or any(key for _, key in one.cells)]


def _column(
    label: str, values: Sequence[object], shown: Iterable[str], under: str = "", kind: str = ""
) -> _Column:
    numeric = all(known(value) for value in values if value is not None)
    keys = [
        "" if one is None else repr(float(one)) if numeric and known(one) else text(one)
        for one in values
    ]
    sort = "number" if numeric else "text"
    return _Column(label, sort, under, kind, list(zip(shown, keys, strict=True)))


def _score_legend(table: parts.ScoreTable) -> list[str]:
    rows, ours = table.rows, f" ({table.ours})" if table.ours else ""
    lines = ["Bold: the best."] if sum(known(row.score) for row in rows) > 1 else []
    if any(row.reference for row in rows):
        lines.append("Italic: for comparison only.")
    if any(row.mark for row in rows):
        lines.append(
            f"• our best approach{ours} is significantly better than this row, ○ significantly "
            f"worse ({table.test_label}). No mark: no significant difference."
        )
    if any(len(row.trials) for row in rows):
        lines.append("Faint ticks: single trials. Open a row to read them.")
    return lines


def cell_view(table: parts.CellTable, key: str, colours: Mapping[str, int]) -> dict[str, Any]:
    """Lay out a table; `key` makes ids unique on the page."""
    rows = [
        [
            _cell(table, row, column, f"{key}-{place}-{column}", colours.get(row.group, 0))
            for column in range(len(table.columns))
        ]
        for place, row in enumerate(table.rows)
    ]
    told = legend(table)
    return {
        "rows": rows,
        "colours": colours,
        "total": _total(table.cells),
        "beside": table.beside_paper,
        "holm": any(cell.holm for cell in table.cells),
        "legend": [told[name] for name in ("numbers", "best", "marks") if name in told],
    }


def _cell(
    table: parts.CellTable, row: parts.TableRow, place: int, key: str, colour: int
) -> dict[str, Any]:
    """Collect what a cell is called, says and draws; its numbers the template writes itself."""
    cell, beside = row.cells[place], table.beside_paper
    names = f"{one_line(row.label)}, {one_line(table.columns[place])}"
    kinds = ["cell", "best" * cell.best, _shade(cell) if beside else ""]
    against = _against_paper(cell) if beside else ""
    said = [f"{names}: {value(cell.mean, cell.std)}", cell.note, against]
    bars = [charts.Bar("Ours", cell.mean, cell.std, cell.trials, colour)] * known(cell.mean)
    if beside and known(cell.paper_mean):
        bars.append(charts.Bar("Paper", cell.paper_mean, cell.paper_std, (), _PAPER))
    return {
        "cell": cell,
        "key": key,
        "kind": " ".join(filter(None, kinds)),
        "said": "; ".join(filter(None, said)),
        "verdict": _sentence(against),
        "marked": _sentence(_marked(table, row, place)),
        "bars": bars if len(bars) > 1 or (bars and len(cell.trials)) else [],
        **charts.dots(bars, 46, 346, 6, "percent"),
        "curve": _curve(table, row, place, key),
    }


def _shade(cell: parts.TableCell) -> str:
    """Name the shade of a cell: how far it lies from the paper; without that, by its verdict."""
    far = cell.distance
    if far is None:
        return {"better": "up2", "worse": "down2"}.get(cell.verdict, "")
    step = sum(abs(far) > edge for edge in (1, 2, 4))  # combined standard deviations
    return f"{'up' if far > 0 else 'down'}{step}" if step else ""


def _sentence(said: str) -> str:
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _total(cells: Sequence[parts.TableCell]) -> str:
    """Say in one line how many cells agree with the paper."""
    agree, better, worse, none = (
        sum(cell.verdict == name for cell in cells) for name in ("agrees", "better", "worse", "")
    )
    words = {
        "agree with the paper" if agree != 1 else "agrees with the paper": agree,
        "better" if agree else "better than the paper": better,
        "worse" if agree or better else "worse than the paper": worse,
        "without a verdict": none,
    }
    told = [f"{count} {said}" for said, count in words.items() if count]
    return f"{len(cells)} cell{'s' * (len(cells) != 1)}: {', '.join(told)}."


def _against_paper(cell: parts.TableCell) -> str:
    """Say how a cell compares with the paper, in words."""
    if not known(cell.paper_mean):
        return "the paper has no number"
    if cell.difference is None:
        return f"the paper: {value(cell.paper_mean, cell.paper_std)}"
    said = f"{signed(cell.difference)} points"
    if known(cell.distance):
        said += f", {abs(cell.distance):.1f} combined standard deviations"
    verdict = _VERDICTS.get(cell.verdict)
    return f"{verdict} the paper: {said}" if verdict else f"{said} from the paper"


def _marked(table: parts.CellTable, row: parts.TableRow, place: int) -> str:
    """Say what the mark means, with the p-values; nothing of the row that others compare with."""
    cell, ours = row.cells[place], one_line(table.ours[place]) if table.ours else ""
    found = [one_line(table.test_label)]
    for before, p in (("", cell.p_value), ("after Holm's correction ", cell.p_holm)):
        if known(p):
            equal = "" if p_value(p).startswith("<") else "=\N{NO-BREAK SPACE}"
            found.append(f"{before}p\N{NO-BREAK SPACE}{equal}{p_value(p)}")
    if not (cell.mark or (len(found) > 1 and ours != one_line(row.label))):
        return ""
    ours = ours or "our best approach"
    said = f"no significant difference to {ours}"
    if cell.mark:
        said = f"{ours} is significantly {'better' if cell.mark == '•' else 'worse'}"
        said += ", though not after the correction" * (known(cell.p_holm) and not cell.holm)
    return f"{said} ({', '.join(found)})"


def _curve(table: parts.CellTable, row: parts.TableRow, place: int, key: str) -> Markup | None:
    lines = row.cells[place].curves
    if not lines:
        return None
    title = f"{one_line(row.label)} on {one_line(table.columns[place])}: accuracy by epoch"
    chart = parts.Curves(title, lines, y_label="Accuracy", unit="percent")
    view = charts.curve_view(chart, 250, {}, {line.name for line in lines})
    return fill("curves.svg", part=chart, key=f"{key}-c", still=True, **view)
