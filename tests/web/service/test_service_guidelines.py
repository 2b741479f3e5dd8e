"""Guidelines: what the folder of a project tells annotators, and nothing else of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from web.service.conftest import MakeSite
from web.service.site import PNG

from ruleout.labels.errors import InputError
from ruleout.web.service.guidelines import rendered


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    for name in ("a/1.png", "a/2.png", "b/1.png", "unknown/1.png", "a/notes.txt"):
        (place / "examples" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "examples" / name).write_bytes(PNG if name.endswith("png") else b"secret")
    (place / "guidelines.md").write_text("# Rules\n\n- **Look** twice\n- <script>alert(1)</script>")
    return place


def test_the_page_shows_guidelines_and_examples(make_site: MakeSite, folder: Path) -> None:
    site = make_site(guidelines=folder)
    ann = site.login("Ann")
    page = ann.page("/").text
    assert "<h3>Rules</h3><ul><li><b>Look</b> twice</li><li>&lt;script&gt;alert(1)" in page
    assert "Guide\n" in page
    assert page.count('src="/examples/') == 3  # of classes alone
    got = ann.get("/examples/1")
    assert (got.status_code, got.content) == (200, PNG)
    assert got.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert site.client().get("/examples/1").status_code == 401
    assert [ann.get(f"/examples/{n}").status_code for n in ("0", "9", "x")] == [422, 404, 422]
    (folder / "guidelines.md").write_text("Anew")
    assert "<p>Anew</p>" in ann.page("/").text


def test_without_guidelines_there_is_only_help(make_site: MakeSite) -> None:
    page = make_site().login("Ann").page("/").text
    assert "Guidelines" not in page
    assert "autofocus>Close" in page


def test_links_do_not_lead_out_of_the_examples(make_site: MakeSite, folder: Path) -> None:
    (folder / "secret.png").write_bytes(PNG)
    os.symlink(folder / "secret.png", folder / "examples" / "a" / "3.png")
    with pytest.raises(InputError, match="leads out of the folder"):
        make_site(guidelines=folder)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x" * 100_001])
def test_bad_guidelines_are_one_sentence(make_site: MakeSite, folder: Path, content: bytes) -> None:
    (folder / "guidelines.md").write_bytes(content)
    with pytest.raises(InputError, match=r"guidelines\.md"):
        make_site(guidelines=folder)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("", ""),
        ("a\nb", "<p>a<br>b</p>"),
        ("## H\ntext", "<h3>H</h3><p>text</p>"),
        ("a **b** *c*", "<p>a <b>b</b> *c*</p>"),
        ('"><img src=x>', "<p>&#34;&gt;&lt;img src=x&gt;</p>"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
    ],
)
def test_little_markdown_and_no_html(text: str, html: str) -> None:
    assert rendered(text) == html
