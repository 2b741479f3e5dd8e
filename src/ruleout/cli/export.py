"""``ruleout export``: a model as a file for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from ruleout.cli import shared_options as options
from ruleout.cli.common import friendly, tell
from ruleout.labels.errors import InputError


@friendly()
def export(model: options.Model, onnx: Annotated[Path, "FILE", "The ONNX file to write."]) -> None:
    """Write a model as ONNX, which runs without ruleout and torch.

    Rows go in as 'x', 'probabilities' come out; class names are in the metadata. Needs
    the extra "export".
    """
    from ruleout.estimator import load

    if onnx.suffix.lower() != ".onnx":
        raise InputError("the name of an ONNX file ends in .onnx", "name another", file=onnx)
    clf = load(model)
    clf.export(onnx)
    if words := clf.reading_.get("text"):
        tell([f"x holds numbers, not text: the words of {', '.join(words)} are in card.json."])
    shape = " × ".join(map(str, clf.module_.example_shape))  # type: ignore[arg-type]
    typer.echo(f"Rows of {shape} numbers, {len(clf.classes_)} classes.\nWritten: {onnx}")
