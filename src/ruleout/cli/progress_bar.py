"""How far a command is, on stderr: a bar with the time left, or lines where no terminal is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

Progress: TypeAlias = Callable[[str, float, float], None]


class Watch:
    """What a command calls with a stage, how much of it is done, and how much there is."""

    def __init__(self, show: Progress, say: Callable[[str], None]) -> None:
        self._show, self.say = show, say

    def __call__(self, stage: str, done: float, total: float) -> None:
        self._show(stage, done, total)


@contextmanager
def watching(
    line: Callable[[str, float, float], str] | None = None, *, whole: bool = False
) -> Iterator[Watch]:
    """Show progress, one bar for each stage, or a single one of the `whole`.

    Parameters
    ----------
    line
        Writes the line for places that are not a terminal: one for each stage of the whole, or for
        each quarter of a stage. None: there only what is said is printed.
    whole
        Whether all stages count towards one end.
    """
    from rich.console import Console

    console = Console(stderr=True)

    def say(text: str) -> None:
        console.print(text, highlight=False, soft_wrap=True, markup=False)

    if not console.is_terminal:
        seen: set[Any] = set()

        def tell(stage: str, done: float, total: float) -> None:
            key = stage if whole else (stage, int(4 * done / total))
            if line is not None and key not in seen:
                say(line(stage, done, total))
            seen.add(key)

        yield Watch(tell, say)
        return
    from rich import progress as rich

    left = rich.TimeRemainingColumn(elapsed_when_finished=True)
    columns = ("{task.description:<16}", rich.BarColumn(None), "{task.percentage:3.0f} %", left)
    with rich.Progress(*columns, console=console, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: float, total: float) -> None:
            key = "" if whole else stage
            if key not in tasks:
                tasks[key] = bar.add_task(stage)
            bar.update(tasks[key], completed=done, total=total, description=stage)

        yield Watch(show, say)
