"""What the commands of a labelling project share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from ruleout.cli.common import friendly

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["ADDRESS", "Place", "in_time", "join_link", "labelling", "parse_origin", "show"]

#: Where `ruleout label serve` answers unless told otherwise.
ADDRESS = "http://127.0.0.1:8765"

Place = Annotated[Path, typer.Argument(metavar="PROJECT", help="The folder of the project.")]

_WIDE = 1000  # characters

#: Modules of the extra ``label``.
_EXTRA = {"alembic", "argon2", "fastapi", "sqlalchemy", "starlette", "uvicorn"}


@contextmanager
def labelling() -> Iterator[None]:
    """Say in one sentence what is wrong, as `friendly`; an absent extra and database included."""
    with friendly(), _sentences():
        yield


@contextmanager
def _sentences() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").split(".")[0]
        if name not in _EXTRA:
            raise
        problem = f"labelling needs the package {name}, which is absent"
        raise ValueError(f"{problem}; run pip install 'ruleout[label]'") from None
    except RuntimeError as error:
        from ruleout.web import UnavailableError  # late: it loads SQLAlchemy

        if not isinstance(error, UnavailableError):
            raise
        raise ValueError(str(error)) from None


def parse_origin(text: str) -> str:
    """Read the address of the service as browsers see it.

    >>> parse_origin("https://label.example.org/")
    'https://label.example.org'
    """
    origin = text.rstrip("/")
    try:
        parts = urlsplit(origin)
        whole = f"{parts.scheme}://{parts.netloc}" == origin and parts.port != 0
    except ValueError:  # a port that is none
        whole = False
    if not whole or parts.scheme not in ("http", "https") or not parts.hostname or "@" in origin:
        raise typer.BadParameter(f"{text!r} is not an origin; write https://label.example.org")
    return origin


def join_link(token: str, origin: str = ADDRESS) -> str:
    """Return where somebody chooses a password.

    >>> join_link("abc")
    'http://127.0.0.1:8765/join/abc'
    """
    return f"{origin}/join/{token}"


def in_time(seconds: float | None) -> str:
    """Show a duration roughly.

    >>> in_time(20), in_time(61), in_time(90), in_time(7300), in_time(None)
    ('a minute', 'a minute', '2 minutes', '2.0 hours', 'unknown yet')
    """
    if seconds is None:
        return "unknown yet"
    if seconds == 0:
        return "none"
    if seconds < 90:
        return "a minute"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:,.1f} hours"


def show(grid: Table) -> None:
    """Print a table; in a file or a pipe, each of its rows on one line."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = _WIDE
    console.print(grid, highlight=False)
