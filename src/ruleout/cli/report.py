"""``ruleout report``: pages, tables and figures from ledgers."""

from pathlib import Path
from typing import Annotated

import typer

from ruleout.cli.common import check_folder, friendly, parse_names
from ruleout.labels.errors import counted, nearest


@friendly()
def report(
    ledgers: Annotated[
        list[str],
        typer.Argument(
            metavar="LEDGER…", help="Ledgers (files, postgresql://…), or folders of Parquet files."
        ),
    ],
    out: Annotated[Path, "DIR", "The folder to write to."],
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="A,B,…",
            help="html, latex, markdown, csv, parquet, png, pdf. By default all.",
        ),
    ] = None,
) -> None:
    """Write what ledgers hold: a page, tables in the paper's shape, figures, data files.

    Nothing is computed. Of several ledgers each cell counts once.
    """
    from ruleout.experiments import FORMATS, gather, write_report

    wanted = parse_names(formats) if formats else list(FORMATS)
    for name in wanted:
        if name not in FORMATS:
            say = nearest(name, FORMATS, f"say {', '.join(FORMATS)}")
            raise typer.BadParameter(f"unknown format {name!r}; {say}")
    check_folder(out)
    held = gather(*ledgers)
    made = write_report(held, out, wanted)
    left = len(held.specs) - len(held.records)
    typer.echo(counted(len(held.records), "cell") + (f", {left} without a result" if left else ""))
    for file in made:
        typer.echo(str(file))
