"""``ruleout evaluate``: how good a model is, with true labels or without."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from ruleout.cli import shared_options as options
from ruleout.cli.common import UNKNOWN, Source, friendly, show_rows, tell, verdict
from ruleout.labels.errors import counted
from ruleout.labels.origins import may_err, says

if TYPE_CHECKING:
    from ruleout.datasets import Finding, Table
    from ruleout.estimator import RuleOutClassifier
    from ruleout.estimator.scorers import Share
    from ruleout.learning import Review

_TRAINED = "these {} also trained the model, so what they say of it is too good"
_TESTED = 200_000  # rows, the first: more would show nothing new of how sets came about


@friendly()
@Source.from_options(
    *("label", *options.SETS, *options.ANSWERS, *options.COLUMNS),
    *("group", "unlabelled", "skip_bad_rows"),
)
def evaluate(
    model: options.Model,
    source: Source,
    device: options.Device = "cpu",
    as_json: options.AsJson = False,
) -> None:
    """Judge a model by true labels, or by what was ruled out.

    From sets the accuracy is estimated, if they are drawn at random and none is wrong; where a test
    rejects that, none is printed. Of a labelling project every yes and no counts, and beside them
    the items whose class is known.
    """
    source = source if source.label else source.with_board()
    known = bool(source.label or source.sets)
    source = source.need_column("--label, --excluded or --candidates", given=known)
    clf, tables, items = source.with_model(model, device)
    found = _judged(clf, tables) if items is None else _judged_items(clf, items, source.data)
    names = clf.classes_.tolist()
    if as_json:
        typer.echo(json.dumps(_plain(found, names)))
    else:
        _print(found, names)


def _judged(clf: RuleOutClassifier, tables: Iterator[Table]) -> dict[str, Any]:
    from ruleout.datasets.data_checks import MISTAKES, Inspection
    from ruleout.estimator.inputs import positions
    from ruleout.estimator.scorers import LabelScores, SetScores
    from ruleout.training.validation import together

    scores: dict[str, Any] = {}
    seen, rows, some = None, 0, list(islice(tables, 2))
    told = heard = 0  # by which rows are known again: all, and those of which anything is said
    groups = together(some[0].x, some[0].groups) if len(some) == 1 else None
    for table in chain(some, tables):
        probabilities, told = clf.predict_proba(table.x), told + clf.sum_rows(table.x)
        if table.labels is not None:
            codes = positions(table.labels, clf.classes_)
            scores.setdefault("labels", LabelScores()).add(probabilities, codes, groups)
        if table.sets is not None:
            said = table.sets if table.evidence is None else table.evidence
            heard += clf.sum_rows(table.x[says(said)]) if says(said).any() else 0
            scores.setdefault("sets", SetScores()).add(probabilities, said, groups=groups)
            seen, raw = seen or Inspection(table.sets.classes), table.raw or table
            if (own := slice(max(0, _TESTED - rows))).stop:
                predicted = probabilities if raw is table else clf.predict_proba(raw.x)
                assert raw.sets is not None  # as in what was made of them
                labels = None if raw.labels is None else raw.labels[own]
                truth = None if raw.known is None else raw.truth(own)
                seen.add(raw.sets[own], raw.x[own], labels, predicted[own].argmax(1), truth)
            rows += len(raw)
    found = {name: score.result() for name, score in scores.items()}
    if clf.record_.get("rows") in {f"{one % 2**64:016x}" for one in (told, heard)}:
        tell([_TRAINED.format("rows")])
    if groups is not None:
        many = f"{len(groups):,} rows are {counted(groups.max() + 1, 'group')} of equal rows"
        tell([f"{many}, or as named; intervals of accuracy count groups"])
    if seen is not None:
        findings = seen.findings()
        equal = next((one for one in findings if one.name == "equal rows"), None)
        if len(some) > 1 and equal is not None and equal.numbers["rows"]:
            say = "count each as a row: where they speak of one thing, the intervals are too narrow"
            tell([f"{equal.message} These {say}."])
        about = verdict(findings, table.evidence)
        explained = MISTAKES if may_err(table.evidence) else ()  # by error rates
        why = [one for one in clf.record_.get("rejected", ()) if one not in explained]
        if why and "p" in about.numbers and about.level != "warning":
            say = f"The sets that trained the model failed tests ({', '.join(why)}): where these"
            say += " came about alike, an accuracy is off, even if they are too few to show it."
            about = replace(about, message=f"{about.message} {say}")
        found["sets"] = _assumed(found["sets"], about)
    return found


def _assumed(found: dict[str, Any], told: Finding) -> dict[str, Any]:
    """Say beside what sets tell what that assumes; an accuracy that means nothing is left out."""
    if told.level != "warning":
        return found | {"assumption": told.message}
    return found | {"accuracy": None, "why": told.message}


def _judged_items(clf: RuleOutClassifier, items: Review, data: Path) -> dict[str, Any]:
    from ruleout.datasets.data_checks import Inspection
    from ruleout.estimator.inputs import per_row
    from ruleout.estimator.scorers import LabelScores, SetScores
    from ruleout.learning.training_data import contradiction_notes

    left = items.contradictions if items.evidence is None else ()
    tell(contradiction_notes(left, "they are left out"))
    probabilities = clf.predict_proba(items.table.x)
    found, gold = {}, items.gold >= 0
    if gold.any():
        found["labels"] = LabelScores().add(probabilities[gold], items.gold[gold]).result()
    if len(items.answers):
        answers = per_row(items.answers, len(items.table))
        told = (probabilities, *answers)
        if items.evidence is not None:
            told = probabilities[~gold], items.evidence[(~gold).nonzero()[0]], None
        found["answers"] = SetScores().add(*told).result()
        seen = Inspection(answers[0].classes)
        seen.add(answers[0], items.table.x, predicted=probabilities.argmax(1))
        found["answers"] = _assumed(found["answers"], verdict(seen.findings(), items.evidence))
        if clf.reading_.get("project") == items.table.reading.get("project"):
            tell([_TRAINED.format("answers")])
    if not found:
        raise ValueError(
            f"{data}: no item has an answer to a random set or a known class, which judging needs; "
            "label some first, or judge by a table of rows with --label"
        )
    return found


def _plain(found: Any, names: list[Any]) -> Any:
    """Return what JSON can hold; what is not a finite number becomes null."""
    if isinstance(found, dict):
        plain = {name: _plain(value, names) for name, value in found.items() if name != "classes"}
        if "classes" in found:
            columns = {"class": names, **{n: v.tolist() for n, v in found["classes"].items()}}
            rows = zip(*columns.values(), strict=True)
            plain["classes"] = [_plain(dict(zip(columns, row, strict=True)), names) for row in rows]
        return plain
    if isinstance(found, tuple):
        return _plain(cast("Share", found)._asdict(), names)
    return None if isinstance(found, float) and not isfinite(found) else found


def _print(found: dict[str, Any], names: list[Any]) -> None:
    if "labels" in found:
        told = found["labels"]
        typer.echo(f"By the true labels of {counted(told['rows'], 'row')}:")
        typer.echo(f"  accuracy           {_interval(told['accuracy'])}")
        typer.echo(f"  calibration error  {told['calibration_error']:.4f} (ECE, 15 bins)")
        _table(told["classes"], names)
    for name, what in (("sets", "what was ruled out in"), ("answers", "the answers about")):
        if name not in found:
            continue
        told = found[name]
        typer.echo(f"By {what} {counted(told['rows'], 'row' if name == 'sets' else 'item')}:")
        if told["accuracy"] is not None:
            typer.echo(f"  accuracy           {_interval(told['accuracy'])}")
        share = _interval(told["consistency"])
        typer.echo(f"  consistency        {share} (predictions not ruled out)")
        if told["accuracy"] is None or isfinite(told["accuracy"].estimate):
            typer.echo(f"  {told.get('assumption') or told['why']}")


def _interval(share: Share) -> str:
    if not isfinite(share.estimate):
        return f"unknown: {UNKNOWN}"
    return f"{share.estimate:.4f}, 95 % interval {share.low:.3f} to {share.high:.3f}"


def _table(columns: dict[str, Any], names: list[Any]) -> None:
    rows = []
    for place, name in enumerate(names):
        many, *shares = (values[place] for values in columns.values())
        cells = ("–" if share != share else f"{share:.3f}" for share in shares)
        rows.append((name, f"{many:,}", *cells))
    show_rows(("class", *map(str.capitalize, columns)), rows, framed=True)
