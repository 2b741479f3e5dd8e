"""Images: only what is one, only from the folder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from web.service.client import Client
from web.service.conftest import MakeSite
from web.service.site import PNG, Site

from ruleout.web import Item
from ruleout.web.items import Limits


def lead_of(make_site: MakeSite, *paths: str, **more: object) -> tuple[Site, Client]:
    """Return a site with items of these paths, and a lead, who may see all."""
    items = [Item(name=f"n{n}", kind="image", path=path) for n, path in enumerate(paths)]
    site = make_site(items=items, **more)
    return site, site.login("Lea", "lead")


@pytest.mark.parametrize("path", ["../secret.png", "/etc/passwd", "a/../../secret.png", "..", ".",
                                  "", "absent.png", "x" * 5000, "a/" * 3000,
                                  "images\\..\\s.png"])  # fmt: skip
def test_no_path_leads_out_of_the_folder(make_site: MakeSite, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.png").write_bytes(PNG)
    _, lead = lead_of(make_site, path)
    response = lead.get("/items/1")
    assert (response.status_code, response.json()["reason"]) == (404, "unknown")


def test_links_are_followed_inside_the_folder_alone(make_site: MakeSite, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(PNG)
    site, lead = lead_of(make_site, "out.png", "in.png", "circle.png", "folder/secret.png")
    (site.images / "real.png").write_bytes(PNG)
    (site.images / "out.png").symlink_to(tmp_path / "secret.png")
    (site.images / "in.png").symlink_to("real.png")
    (site.images / "circle.png").symlink_to("circle.png")
    (site.images / "folder").symlink_to(tmp_path)
    found = [lead.get(f"/items/{n}").status_code for n in (1, 2, 3, 4)]
    assert found == [404, 200, 404, 404]


def test_images_are_served_where_files_open_otherwise(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, lead = lead_of(make_site, "real.png")
    (site.images / "real.png").write_bytes(PNG)
    monkeypatch.delattr(os, "O_NOFOLLOW")  # as on Windows
    monkeypatch.delattr(os, "O_NONBLOCK")
    assert lead.get("/items/1").content == PNG


def test_pipes_and_folders_are_no_images(make_site: MakeSite) -> None:
    site, lead = lead_of(make_site, "pipe.png", "folder.png")
    os.mkfifo(site.images / "pipe.png")
    (site.images / "folder.png").mkdir()
    assert [lead.get(f"/items/{n}").status_code for n in (1, 2)] == [404, 404]


@pytest.mark.parametrize("content", [
    b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    b"<!doctype html><script>alert(1)</script>", b"", b"%PDF-1.4", b"GIF8",
    b"<?xml version='1.0'?>",
    b"\xef\xbb\xbf<svg/>", b"MZ" + bytes(100),
])  # fmt: skip
def test_what_is_no_image_is_not_served(make_site: MakeSite, content: bytes) -> None:
    site, lead = lead_of(make_site, "fake.png")
    (site.images / "fake.png").write_bytes(content)
    assert lead.get("/items/1").status_code == 404


def test_the_content_says_the_type_and_headers_keep_it_harmless(make_site: MakeSite) -> None:
    site, lead = lead_of(make_site, '<b>".html')
    (site.images / '<b>".html').write_bytes(b"GIF89a<script>alert(1)</script>")
    response = lead.get("/items/1")
    assert response.headers["content-type"] == "image/gif"
    assert response.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-disposition"] == "inline"
    assert response.headers["cache-control"].startswith("private")


def test_a_large_image_is_sent_in_pieces_and_a_larger_one_not(make_site: MakeSite) -> None:
    limits = Limits(image_bytes=5_000_000)
    site, lead = lead_of(make_site, "large.png", "larger.png", limits=limits)
    large = PNG + bytes(4_000_000)
    (site.images / "large.png").write_bytes(large)
    (site.images / "larger.png").write_bytes(PNG + bytes(5_000_000))
    (first, _), (second, _) = site.store.items()
    assert lead.get(f"/items/{first}").content == large
    assert lead.get(f"/items/{second}").status_code == 404


def test_who_has_the_image_is_told_so(make_site: MakeSite) -> None:
    site, lead = lead_of(make_site, "a.png")
    (site.images / "a.png").write_bytes(PNG)
    tag = lead.get("/items/1").headers["etag"]
    again = lead.get("/items/1", headers={"if-none-match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert lead.get("/items/1", headers={"if-none-match": '"x"'}).status_code == 200
    (site.images / "a.png").write_bytes(PNG + b"changed")
    assert lead.get("/items/1", headers={"if-none-match": tag}).status_code == 200


def test_an_image_that_was_replaced_is_not_shown(make_site: MakeSite) -> None:
    """Answers about another picture would be answers about nothing."""
    large, digest = PNG + bytes(3_000_000), hashlib.sha256
    items = [
        Item(name="a", kind="image", path="a.png", sha256=digest(PNG).hexdigest()),
        Item(name="b", kind="image", path="b.png", sha256=digest(large).hexdigest()),
    ]
    site = make_site(items=items)
    lead = site.login("Lea", "lead")
    for (number, item), right in zip(site.store.items(), (PNG, large), strict=True):
        file = site.images / str(item.path)
        file.write_bytes(right)
        assert lead.get(f"/items/{number}").content == right
        assert lead.get(f"/items/{number}").content == right
        file.write_bytes(right[:-1] + b"!")
        os.utime(file, ns=(0, 0))  # a copy that kept the time of the picture it is of
        told = lead.get(f"/items/{number}")
        assert (told.status_code, told.json()["reason"]) == (409, "conflict")
        file.write_bytes(right)
        assert lead.get(f"/items/{number}").content == right


def test_an_image_is_read_for_its_hash_once(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = Item(name="a", kind="image", path="a.png", sha256=hashlib.sha256(PNG).hexdigest())
    site = make_site(items=[item])
    (site.images / "a.png").write_bytes(PNG)
    lead = site.login("Lea", "lead")
    assert lead.get("/items/1").status_code == 200
    monkeypatch.delattr(hashlib, "file_digest")
    assert lead.get("/items/1").status_code == 200


def test_the_tag_opens_nothing_for_others(site: Site) -> None:
    ann, lead = site.login(), site.login("Lea", "lead")
    tag = lead.get("/items/1").headers["etag"]
    assert ann.get("/items/1", headers={"if-none-match": tag}).status_code in (404,)


def test_text_has_no_image(make_site: MakeSite) -> None:
    site = make_site(items=[Item(name="1", kind="text", text="x", path="0.png")])
    assert site.login("Lea", "lead").get("/items/1").status_code == 404


CORPUS = [
    "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "..%252f..%252fetc%252fpasswd", "%2e%2e/%2e%2e/x",
    "..\\..\\windows\\win.ini", "..%5c..%5cwin.ini", "%00", "style.css%00.png", "....//....//etc",
    "/etc/passwd", "%2fetc%2fpasswd", "~root", "file:///etc/passwd", "x" * 20_000, "%ff%fe",
    "..;/x",
    "..%c0%af..%c0%afetc", "..%ef%bc%8f..%ef%bc%8fetc", ".", "..", "%20", "?../..", "log.csv/..",
    "base.html", "../pages/base.html", "__init__.py", "../service/app.py", "CON", "-1", "0", "1e3",
    "99999999999999999999", "NaN", "1%0a", "%31%00", "log.csv%0d%0aSet-Cookie:a=b",
]  # fmt: skip


@pytest.mark.parametrize("place", ["/static/", "/items/", "/team/export/", "/join/"])
def test_no_address_leads_elsewhere(site: Site, place: str) -> None:
    lead = site.login("Lea", "lead")
    for trick in CORPUS:
        status, headers, content = lead.raw(place + trick)
        assert status in (404, 422), trick
        assert b"root:" not in content
        assert "set-cookie" not in headers
