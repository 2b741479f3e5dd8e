"""Downloads of the team page: the very files that an export writes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from web.service.site import Site

from ruleout.labels import LabelSets
from ruleout.web.project_export import write_bundle


@pytest.mark.parametrize(
    ("name", "how", "file"),
    [
        ("sets.csv", "no", "sets.csv"),
        ("sets-intersection.csv", "intersection", "sets.csv"),
        ("log.csv", "no", "log.csv"),
        ("contradictions.csv", "intersection", "contradictions.csv"),
    ],
)
def test_a_download_is_the_file_of_the_export(
    site: Site, tmp_path: Path, name: str, how: str, file: str
) -> None:
    ann = site.login("Ann")
    for number, question in enumerate(ann.api("/api/next", {"count": 5}).json()["questions"]):
        told = {"id": f"a{number}", "kind": "no", "question": question["id"]}
        assert ann.api("/api/answer", told).status_code == 200
    got = site.login("Lea", "lead").get(f"/team/export/{name}")
    assert got.headers["content-disposition"] == f'attachment; filename="{name}"'
    write_bundle(site.store, tmp_path / "export", how=how)  # type: ignore[arg-type]
    assert got.content == (tmp_path / "export" / file).read_bytes()
    if name.startswith("sets"):
        (tmp_path / name).write_bytes(got.content)
        assert len(LabelSets.read(tmp_path / name, classes=tuple("abcdef"))) == 5
        first = next(csv.reader(got.text.splitlines()))
        assert first[:3] == ["file", "excluded", "weight"]
