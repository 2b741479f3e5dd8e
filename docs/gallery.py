"""The gallery: every file in examples/ with what it prints.

    python docs/gallery.py       # runs them, and writes examples/output

The page is put together at each build. A test runs the examples and compares what they print.
"""

from __future__ import annotations

import ast
import io
import runpy
from contextlib import redirect_stdout
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"
#: In the order of the page.
NAMES = ("own_loss", "own_module", "images", "text", "candidates", "labelling_project")


def output_of(name: str) -> Path:
    return EXAMPLES / "output" / f"{name}.txt"


def run(name: str) -> str:
    """Run an example; return what it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        runpy.run_path(str(EXAMPLES / f"{name}.py"))
    return printed.getvalue()


def section(name: str) -> str:
    """Return an example as a section: its docstring, its code, what it prints."""
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    module = ast.parse(source)
    title, _, text = (ast.get_docstring(module) or "").partition("\n\n")
    code = "\n".join(source.splitlines()[module.body[0].end_lineno :]).strip()
    printed = output_of(name).read_text(encoding="utf-8").strip()
    parts = [f"## {title.rstrip('.')}", text, f"```python\n{code}\n```"]
    return "\n\n".join([*parts, f"```text\n{printed}\n```", f"`examples/{name}.py`"])


def write_gallery(path: Path) -> None:
    path.write_text("\n\n".join(map(section, NAMES)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in NAMES:
        output_of(name).parent.mkdir(exist_ok=True)
        output_of(name).write_text(run(name), encoding="utf-8")
        print(f"{output_of(name)}\n{output_of(name).read_text()}")
