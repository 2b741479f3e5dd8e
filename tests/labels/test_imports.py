"""Labels start fast: torch stays out until a loss is asked for."""

from __future__ import annotations

import subprocess
import sys


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_labels_never_load_torch() -> None:
    code = """
import sys, tempfile, ruleout as ro
with tempfile.TemporaryDirectory() as folder:
    for suffix in ("csv", "jsonl", "parquet", "npz"):
        ro.draw([0, 1, 2], 4).write(f"{folder}/sets.{suffix}")
        ro.LabelSets.read(f"{folder}/sets.{suffix}")
heavy = {"torch", "sklearn", "polars", "scipy", "matplotlib", "typer"}  # pyarrow may load pandas
print(sorted(heavy & set(sys.modules)))"""
    assert run(code) == "[]"


def test_the_public_face_is_all_there() -> None:
    code = "import ruleout as ro; print([name for name in ro.__all__ if not hasattr(ro, name)])"
    assert run(code) == "[]"


def test_approaches_stays_a_function_whatever_was_imported_first() -> None:
    code = """
import ruleout.methods, ruleout.testing
import ruleout as ro
print(callable(ro.approaches), callable(ro.approach))"""
    assert run(code) == "True True"
