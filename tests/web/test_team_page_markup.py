"""The team page as HTML: well formed, inert whatever people typed, and nothing inline."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from report.markup import pictures, read
from web.teams import CLASSES, LEAD, START, TEAM, Member, label, page, project

from ruleout.web.team.team_page import numbers, team_view

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></svg><script>alert(2)</script>",
    "{{ 1234 * 4321 }}{% raw %}",
    "' onmouseover='alert(3)",
    "&lt;b&gt; &amp; \u202egnp.tac",
    "javascript:alert(4)//",
    "汉字" * 30,
)


def _checked(text: str) -> str:
    """Check that a page is well formed and has nothing inline; return it."""
    found = read(text)
    for element in found.elements:
        assert element.name not in ("script", "style", "iframe", "object"), element
        loud = [name for name in element.attributes if name == "style" or name.startswith("on")]
        assert not loud, element
        for name in ("href", "src", "action"):
            address = element.attributes.get(name, "/")
            assert address.startswith(("/", "#")), element
    ids = [element.attributes["id"] for element in found.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for picture in pictures(text):
        assert picture.get("role") == "img" or picture.get("aria-hidden") == "true"
        if picture.get("role") == "img":
            labels = str(picture.get("aria-labelledby")).split()
            assert [child.get("id") for child in picture[:2]] == labels
            assert all(child.text for child in picture[:2])
    return text


def test_a_full_page_is_well_formed_and_holds_what_the_view_holds(tmp_path: Path) -> None:
    with project(tmp_path, 120, known=24, rounds=3, gold_rate=0.2) as store:
        label(store)
        view = team_view(store)
    text = _checked(page(view))
    found = read(text)
    for one in view.people:
        rows = [row.text for row in found.all("tr") if one.user.name in row.text]
        assert len(rows) == 2  # who they are, and how far to trust them
        assert re.search(rf"\b{one.did.answers}\b", rows[0])
        assert one.gold.sensitivity is not None
        low, high = one.gold.sensitivity.interval
        assert f"({100 * low:.0f}–{100 * high:.0f} %)" in rows[1]
        assert f"{one.gold.sensitivity.right} of {one.gold.sensitivity.asked}" in rows[1]
        assert one.agreement.kappa is not None
        assert f"{one.agreement.kappa:.2f}".replace("-", "−") in rows[1]
    assert len(view.clashes) == 12
    assert len(found.all("form")) == 26  # log out, invite, each of the twelve, each contradiction
    assert all("a-token" in form for form in _forms(text))


def _forms(text: str) -> list[str]:
    return re.findall("<form.*?</form>", text, re.DOTALL)


def test_every_download_is_linked(tmp_path: Path) -> None:
    with project(tmp_path, 3) as store:
        links = [one.attributes.get("href") for one in read(page(team_view(store))).all("a")]
    for name in ("sets.csv", "sets-intersection.csv", "log.csv", "contradictions.csv"):
        assert f"/team/export/{name}" in links


def test_an_empty_project_has_a_page(tmp_path: Path) -> None:
    with project(tmp_path, 3) as store:
        text = _checked(page(team_view(store)))
    said = " ".join(" ".join(one.text.split()) for one in read(text).all("p", "missing"))
    for words in ("no answers yet", "two people", "gold questions", "No set has been proposed"):
        assert words in said


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_only_text(tmp_path: Path, name: str) -> None:
    classes = [name, f"{name} again", "plain"]
    items = [f"{name}/{n}" + "x" * 3000 * (n == 0) for n in range(30)]
    user = name.replace("\u202e", "")[:64].strip()  # the store refuses names that cannot be seen
    team = (Member(user, 0.5, 0.5), *TEAM[:2])
    with project(tmp_path, classes=classes, names=items, known=6, rounds=3, gold_rate=0.2) as store:
        label(store, team)
        view = team_view(store)
    assert view.clashes
    text = _checked(page(view, invite=f"https://host/join/{name}", invited=name, problem=name))
    found = read(text)
    sent = [one.attributes.get("value") for one in found.all("input")]
    assert user in sent  # forms send the name back as it is
    assert "5332114" not in text
    assert max(map(len, re.findall(">([^<]*)<", text))) < 1000  # long names are cut


def test_long_names_are_cut_and_whole_in_the_title(tmp_path: Path) -> None:
    names = [f"{'deep/' * 60}{n}.png" for n in range(12)]
    with project(tmp_path, names=names, rounds=3) as store:
        label(store, (Member("wrong", 0, 0), *TEAM[:2]))
        view = team_view(store)
    clash = view.clashes[0].item.name
    short, _ = view.named(clash, 60)
    assert len(short) == 60
    assert short.endswith(".png")
    assert f'title="{clash}">{short}</bdi>' in page(view)


def test_an_invite_link_is_shown_where_there_is_one(tmp_path: Path) -> None:
    with project(tmp_path, 3) as store:
        view = team_view(store)
    told = read(page(view, invite="https://host/join/abc", invited="Bob"))
    (link,) = [one for one in told.all("input") if one.attributes.get("id") == "link"]
    assert link.attributes["value"] == "https://host/join/abc"
    assert "readonly" in link.attributes
    assert "Send this link to Bob" in " ".join(told.all("div", "told")[0].text.split())
    assert 'id="link"' not in page(view)
    assert 'role="alert"' in page(view, problem="the name is taken; choose another")


def test_leads_cannot_close_their_own_account(tmp_path: Path) -> None:
    with project(tmp_path, 3) as store:
        for name in (LEAD.name, "Bob", "Cy"):
            store.add_user(name)
        store.disable("Cy")
        text = page(team_view(store, START))
    forms = [form for form in _forms(text) if "/team/disable" in form]
    assert [re.findall('value="([^"]*)"', form) for form in forms] == [
        ["a-token", "Bob", "1"],
        ["a-token", "Cy", "0"],
    ]


def test_a_thousand_classes_make_no_endless_page(tmp_path: Path) -> None:
    classes = [f"class {n}" for n in range(1000)]
    with project(tmp_path, 100, classes=classes, cap=20, rounds=2) as store:
        label(store, TEAM[:4])
        text = _checked(page(team_view(store)))
    assert len(text) < 150_000
    assert "Shown are the 20 of 1,000 classes" in text


def test_pictures_have_the_numbers_beside_them(tmp_path: Path) -> None:
    with project(tmp_path, 40, rounds=2) as store:
        label(store, TEAM[:3])
        view, proposed = team_view(store), numbers(store).draws
    found = read(page(view))
    drawn, sizes = found.all("figure")[0].text, found.all("figure")[2].text
    assert f"{80} answers about 40 items" in " ".join(drawn.split())
    assert proposed is not None
    assert all(str(seen) in sizes for seen in proposed.sizes.tolist())
    counts = found.all("figure")[3].text
    assert all(name in counts for name in CLASSES)
