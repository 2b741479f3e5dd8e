"""The page about labelling says what works: its commands run, in their order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import ruleout as ro
from ruleout.cli import app
from ruleout.web import Reply, Store

PAGE = Path(__file__).parents[2] / "docs" / "labelling.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the docs are not part of this checkout")


def answered(store: Store, **_: Any) -> None:
    """Answer truthfully, in the place of serving."""
    from sklearn.datasets import load_digits

    target, ann = load_digits().target, store.user("Ann")
    truth = {number: target[int(item.name.split(".")[0])] for number, item in store.items()}
    while questions := store.next(ann, 1):
        one = questions[0]
        kind: Any = "yes" if truth[one.item] in one.proposed else "no"
        store.answer(ann, Reply(id=f"reply-{one.id}", kind=kind, question=one.id))


@pytest.mark.slow
def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ruleout.web.service.serve", answered)
    page = PAGE.read_text()
    for code in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S):
        exec(code, {})
    lines = "".join(re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)).splitlines()
    words = [shlex.split(line)[1:] for line in lines]
    assert [one[1] if one[0] == "label" else one[0] for one in words] == (
        ["init", "serve", *["users"] * 3, "status", "fit", "evaluate", "resolve", "export", "fit"]
    )
    for one in words:
        found = CliRunner().invoke(app, one)
        assert found.exit_code == 0, found.output
        if one[1] == "init":
            assert found.stdout.split("/join/")[0] in page
    sets = ro.LabelSets.read("export/sets.csv")
    assert 50 < len(sets) < 200
    for model in ("model", "other"):
        assert (tmp_path / model / "card.json").is_file()
