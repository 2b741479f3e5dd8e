"""``ruleout draw``: from true labels to ruled-out classes, for experiments."""

from pathlib import Path
from typing import Annotated

import typer

from ruleout.cli import shared_options as options
from ruleout.cli.common import Source, friendly, tell


@friendly()
@Source.from_options("label", "classes", "labels_file", "separator", data=options.Data)
def draw(
    source: Source,
    out: Annotated[Path, "FILE", "Written by its suffix, as DATA is read."],
    law: Annotated[
        str,
        "How many are ruled out: released, paper, a number, or a probability per size, "
        "as in 0.5,0.3,0.2. With mistakes in a tenth of the rows: released~0.1; with preferences: "
        "weak:released, strong:released.",
    ] = "released",
    seed: Annotated[int, typer.Option(min=0, help="The same seed draws the same.")] = 0,
    keep_label: Annotated[bool, "Write the true labels, too."] = False,
    sets_only: Annotated[bool, "Write the sets alone, without the features."] = False,
) -> None:
    """Replace true labels by classes that were ruled out, drawn at random.

    The column 'excluded' takes the place of the label column; all other columns stay.
    """
    from ruleout.datasets.tables import Request, redraw

    source = source.need_column("--label", given=source.label is not None)
    ask = Request(**source.asked)
    sets, notes = redraw(source.data, out, ask, _law(law), seed, keep_label, sets_only)
    tell(notes)
    typer.echo(f"{sets!r}\nWritten: {out}")


def _law(text: str) -> str | int | list[float]:
    """Read a name, a number, or probabilities with commas."""
    if text.isascii() and text.isdigit():
        return int(text)
    if "," not in text:
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        problem = f"{text!r} is not a law; write probabilities as in --law 0.5,0.3,0.2"
        raise typer.BadParameter(problem) from None
