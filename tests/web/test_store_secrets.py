"""What annotators see tells nothing of an item: neither its class folder nor gold."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from web.made import Make, make_items, said, sparse_lots

from ruleout.web import Event, Settings, Store
from ruleout.web import store as store_module
from ruleout.web.proposals import Proposer


@pytest.fixture
def other_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every project have a secret of its own, as outside of the tests."""
    numbers = count(1)
    monkeypatch.setattr(store_module, "new_secret", lambda: next(numbers))
    monkeypatch.setattr(store_module, "_lots", sparse_lots)


def _ranks(store: Store, asked: int) -> tuple[list[int], list[int]]:
    """Return the numbers of items in the order of asking, and their places in sorted names."""
    rank = {number: place for place, (number, _) in enumerate(store.items())}
    numbers = [question.item for question in store.next(store.add_user("Ann"), asked)]
    return numbers, [rank[number] for number in numbers]


@pytest.mark.usefixtures("other_secrets")
def test_numbers_and_order_tell_nothing_about_names(quick_folder: Path) -> None:
    settings, found = Settings(classes=tuple("abc")), []
    for project in range(20):
        url = f"sqlite:///{quick_folder / str(project)}"
        with Store.create(url, settings, make_items(60)) as store:
            numbers, ranks = _ranks(store, 60)
            assert len({*numbers}) == 60
            found.append((numbers, ranks))
    for this in range(2):  # a number, and a place in the order of asking
        told = [(one[0] if this == 0 else range(60), one[1]) for one in found]
        values = [stats.spearmanr(seen, ranks).pvalue for seen, ranks in told]
        assert stats.kstest(values, "uniform").pvalue > 1e-3
    assert len({tuple(ranks) for _, ranks in found}) == 20


def test_items_come_in_the_order_they_were_given(make: Make) -> None:
    store = make(30)
    assert [item.name for _, item in store.items()] == [f"{n}.png" for n in range(30)]
    assert [number for number, _ in store.items()] != list(range(1, 31))
    assert [item.name for _, item in store.items(3, 4)] == ["2.png", "3.png"]
    for number, item in store.items():
        assert store.item(number) == item


def test_who_knows_settings_and_numbers_cannot_foretell_gold(make: Make) -> None:
    """Else an annotator could draw every proposal again and see which are not of the law."""
    store = make(make_items(200, gold=60), gold_rate=0.5)
    ann = store.add_user("Ann")
    asked = store.next(ann, 100)
    guess = Proposer(store.settings)
    plain = [guess.proposal(one.item, one.round).classes == one.proposed for one in asked]
    assert sum(plain) < 40  # by chance
    last = [0, *(one.id for one in asked[:-1])]
    right = [guess.is_gold(ann.id, id_) == one.gold for id_, one in zip(last, asked, strict=True)]
    assert abs(np.mean(right) - 0.5) < 0.2


def test_who_let_whom_in_and_out_is_kept(make: Make) -> None:
    store = make()
    lea = store.add_user("Lea", "lead")
    store.accept(store.invite("Ann", by=lea), "hash")
    store.invite("Ann", by=lea)
    store.disable("Ann", by=lea)
    store.disable("Ann", False)
    found = store.events()
    assert [(one.by, one.action, one.user) for one in found] == [
        (None, "added", "Lea"), ("Lea", "invited", "Ann"), ("Ann", "accepted", "Ann"),
        ("Lea", "reset", "Ann"), ("Lea", "closed", "Ann"), (None, "opened", "Ann"),
    ]  # fmt: skip
    assert all(isinstance(one, Event) for one in found)
    store.answer(lea, said("no", store.next(lea)[0].id))
    assert store.events() == found
