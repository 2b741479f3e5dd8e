"""``approach="auto"``: what it tries, by which criterion, and that it is saved and says why."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ruleout as ro
from ruleout.estimator.auto import Auto
from ruleout.estimator.classifier import Committee
from ruleout.labels.errors import InputError
from ruleout.labels.origins import named_origin
from ruleout.selection.origin_search import FoundOrigin
from ruleout.training import Trial

X, Y = ro.datasets.load("digits").train
SETS = ro.draw(Y, classes=10, law=3, seed=0)


def neighbours(y: Any) -> ro.LabelSets:
    """Rule out only the three classes after the true one: nothing like chance."""
    out = np.zeros((len(y), 10), bool)
    for step in (1, 2, 3):
        out[np.arange(len(y)), (y + step) % 10] = True
    return ro.LabelSets(out, 10)


def nothing() -> FoundOrigin:
    return FoundOrigin(None, None, {}, "no matrix helps")


def test_random_sets_are_judged_by_accuracy() -> None:
    plan = Auto.of(X, Trial(SETS), "linear", {}, nothing)
    assert plan.criterion == "accuracy"
    assert {one["approach"] for one in plan.grid} == {"log", "proden"}
    assert "do not reject" in plan.why


def test_sets_that_are_not_random_are_judged_by_likelihood() -> None:
    plan = Auto.of(X, Trial(neighbours(Y)), "mlp", {}, nothing)
    assert plan.criterion == "calibrated"
    assert "log" not in {one["approach"] for one in plan.grid}
    assert "sets are not random" in plan.why
    assert "no matrix helps" in plan.why
    assert {one["model.norm"] for one in plan.grid} == {True}
    linear = Auto.of(X, Trial(neighbours(Y)), "linear", {}, nothing)
    assert {one["approach"] for one in linear.grid} == {"cc", "proden"}
    random = Auto.of(X, Trial(SETS), "mlp", {}, nothing)
    assert {one["model.norm"] for one in random.grid} == {True, False}


def test_evidence_is_learned_by_the_likelihood() -> None:
    said = ro.evidence(SETS, error=0.05)
    plan = Auto.of(X, Trial(said.sets, evidence=said), "linear", {}, nothing)
    assert {one["approach"] for one in plan.grid} == {"likelihood"}


def test_approaches_that_accuracy_does_not_tell_apart_predict_together() -> None:
    plan = Auto.of(X, Trial(SETS), "linear", {}, nothing)
    grid = [{"approach": name, "learning_rate": rate} for name in ("a", "b") for rate in (0.1, 1)]
    errors = np.full(4, 0.01)
    near, far = np.array([0.5, 0.8, 0.78, 0.2]), np.array([0.5, 0.8, 0.77, np.nan])
    assert plan.choices(grid, near, errors) == [grid[1], grid[2]]
    assert plan.choices(grid, far, errors) == [grid[1]]
    foretold = plan._replace(criterion="calibrated")
    assert foretold.choices(grid, far, errors) == [grid[1], grid[2]]


def test_widths_that_a_user_gives_stay() -> None:
    plan = Auto.of(X[:500], Trial(SETS[:500]), "mlp", {"hidden": (30,)}, nothing)
    assert not any("model.hidden" in one for one in plan.grid)


def test_auto_learns_says_why_and_is_saved(tmp_path: Path) -> None:
    clf = ro.RuleOutClassifier(approach="auto", epochs=40, random_state=0)
    clf.fit(X[:400], SETS[:400])
    assert clf.score(X[600:], Y[600:]) > 0.7
    assert clf.configuration_["approach"] in ("log", "proden")
    assert clf.auto_.endswith("chosen by accuracy")
    assert isinstance(clf.module_, Committee)
    names = [one["approach"] for one in clf.record_["members"]]
    assert names in ([names[0]] * 5, ["log", "proden"] * 3, ["proden", "log"] * 3)
    clf.save(tmp_path / "model")
    again = ro.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(X[:50]), clf.predict_proba(X[:50]))
    assert again.get_params()["approach"] == "auto"


def test_where_a_matrix_can_be_learnt_the_likelihood_under_it_is_taken() -> None:
    """Of sets of all sizes three classes are nearly always out, and three seldom."""
    sets = named_origin("strong:released", 10).draw(Y, 10, seed=3)
    clf, told = ro.RuleOutClassifier(approach="auto", epochs=40, random_state=0), list[Any]()
    clf.fit(X[:800], sets[:800], progress=lambda *stage: told.append(stage))
    done = [m / n for name, m, n in told if name == "learning how sets came about"]
    assert done == sorted(done)
    assert 0 < done[0] < 0.1
    assert done[-1] in (6 / 7, 1)  # less without names for clusters
    assert {one["approach"] for one in clf.record_["members"]} == {"likelihood"}
    assert "a learnt matrix" in clf.auto_
    assert clf.criterion_.name == "calibrated"
    plain = ro.RuleOutClassifier(approach="cc", grid="small", epochs=40, random_state=0)
    plain.fit(X[:800], sets[:800])
    assert clf.score(X[800:], Y[800:]) > plain.score(X[800:], Y[800:]) + 0.05


def test_where_sets_are_not_random_the_best_of_each_approach_predict_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members may differ in their widths, and a folder knows which is which."""
    monkeypatch.setattr("ruleout.estimator.classifier.find_origin", lambda *_, **__: nothing())
    clf = ro.RuleOutClassifier(approach="auto", model="mlp", epochs=12, random_state=0)
    clf.fit(X[:150], neighbours(Y[:150]))
    members = clf.record_["members"]
    names = ["conformal-proden"] * 3 + ["crosel"] * 3
    assert sorted(one["approach"] for one in members) == names
    assert clf.criterion_.name == "calibrated"
    assert clf.configuration_ == members[0]
    clf.save(tmp_path / "model")
    again = ro.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(X[:50]), clf.predict_proba(X[:50]))


def test_auto_fits_twice_alike() -> None:
    fits = [
        ro.RuleOutClassifier(approach="auto", epochs=5, random_state=3).fit(X[:200], SETS[:200])
        for _ in range(2)
    ]
    assert np.array_equal(fits[0].predict_proba(X[:20]), fits[1].predict_proba(X[:20]))


def test_columns_of_other_sizes_are_brought_to_one_range() -> None:
    wide = X[:200] * np.geomspace(1e-3, 1e5, X.shape[1], dtype=np.float32)
    clf = ro.RuleOutClassifier(approach="auto", epochs=5, random_state=0).fit(wide, SETS[:200])
    assert clf.record_["scaled"] is True
    module: Any = clf.module_
    spread = module.spread.numpy()
    assert np.allclose(spread[spread != 1], np.ptp(wide, 0)[spread != 1])


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_members_predict_by_their_mean(model: str, tmp_path: Path) -> None:
    clf = ro.RuleOutClassifier(model=model, hidden=20 if model == "mlp" else None, members=3)
    clf.set_params(epochs=3, learning_rate=0.05, random_state=0, scale=True)
    clf.fit(X[:300], SETS[:300])
    inner: Any = clf.module_.module
    assert len(inner.members) == 3
    one = ro.RuleOutClassifier(**clf.get_params() | {"members": 1}).fit(X[:300], SETS[:300])
    scaled = [type(one.module_)(m, clf.module_.mean, clf.module_.spread) for m in inner.members]
    each = [np.asarray(_probabilities(module)) for module in scaled]
    assert np.allclose(each[0], one.predict_proba(X[300:320]), atol=1e-6)  # the first is as alone
    assert not np.allclose(each[0], each[1], atol=1e-3)
    assert np.allclose(clf.predict_proba(X[300:320]), np.mean(each, 0), atol=1e-6)
    clf.save(tmp_path / "model")
    assert np.array_equal(ro.load(tmp_path / "model").predict(X[:40]), clf.predict(X[:40]))


def _probabilities(module: Any) -> Any:
    from ruleout.training.grid_fit import predict

    return predict(deepcopy(module).double(), X[300:320].astype(np.float64)).softmax(-1)


def test_rows_that_trained_a_committee_are_known_again() -> None:
    clf = ro.RuleOutClassifier(members=2, epochs=2, random_state=0).fit(X[:60], SETS[:60])
    assert f"{clf.sum_rows(X[:60][::-1]):016x}" == clf.record_["rows"]
    assert f"{clf.sum_rows(X[60:120]):016x}" != clf.record_["rows"]


def line(seed: int, n: int = 100) -> tuple[Any, Any]:
    """Return rows of one feature and two classes, of which 93 % can be named rightly."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    return ((2 * y - 1) * 1.5 + random.normal(size=n)).astype(np.float32)[:, None], y


@pytest.mark.parametrize("epochs", [10, None])
def test_members_that_learned_nothing_do_not_predict(epochs: int | None) -> None:
    """Here weights that hardly move were the best by chance; other seeds begin elsewhere."""
    (x, y), (test, truth) = line(4), line(5, 2000)
    clf = ro.RuleOutClassifier(approach="auto", epochs=epochs, random_state=0)
    with pytest.warns(UserWarning, match="4 of 6 models learned next to nothing"):
        clf.fit(x, ro.LabelSets.from_single(1 - y, classes=2))
    assert clf.configuration_["learning_rate"] < 0.01
    assert np.mean(clf.predict(test) == truth) > 0.92
    assert len(clf.record_["members"]) == len(clf.module_.members) == 2  # type: ignore[arg-type]


def test_a_committee_with_members_left_out_is_saved(tmp_path: Path) -> None:
    x, y = line(4)
    clf = ro.RuleOutClassifier(approach="auto", random_state=0)
    with pytest.warns(UserWarning, match="left out"):
        clf.fit(x, ro.LabelSets.from_single(1 - y, classes=2))
    clf.save(tmp_path / "m")
    again = ro.load(tmp_path / "m").predict_proba(x)
    assert np.array_equal(again, clf.predict_proba(x))


def test_a_member_that_diverged_does_not_predict() -> None:
    """Some seeds begin with weights that are no numbers, but not the first."""

    def model(shape: Any, classes: int) -> torch.nn.Module:
        made = torch.nn.Linear(shape[0], classes)
        made.weight.data *= float("nan") if torch.rand(()) < 0.5 else 1
        return made

    told: Any = {"grid": {"learning_rate": [0.1, 0.01]}, "members": 6, "epochs": 20}
    clf = ro.RuleOutClassifier(model=model, random_state=0, **told)
    with pytest.warns(UserWarning, match="of 6 models learned next to nothing"):
        clf.fit(X[:200], SETS[:200])
    assert 1 < len(clf.record_["members"]) < 6
    assert np.isfinite(clf.predict_proba(X)).all()


@pytest.mark.parametrize("members", [0, -1, 1.5, True])
def test_members_are_counted(members: Any) -> None:
    with pytest.raises(InputError, match=r"members is .*; give a whole number of at least 1"):
        ro.RuleOutClassifier(members=members, epochs=1).fit(X[:20], SETS[:20])


def test_parts_go_on_with_one_model_only() -> None:
    for told in ({"approach": "auto"}, {"members": 2}):
        with pytest.raises(InputError, match="one model"):
            ro.RuleOutClassifier(**told).partial_fit(X[:20], SETS[:20])


def test_a_grid_can_choose_approaches_and_schedules() -> None:
    grid = {"approach": ["log", "cavl"], "learning_rate": 0.1, "schedule": [None, "one-cycle"]}
    clf = ro.RuleOutClassifier(grid=grid, epochs=20, random_state=0).fit(X[:300], SETS[:300])
    assert len(clf.search_["estimate"]) == 4
    assert clf.configuration_["approach"] == clf.record_["approach"]


def test_auto_has_no_grid_of_the_user() -> None:
    clf = ro.RuleOutClassifier(approach="auto", grid={"learning_rate": [0.1]})
    with pytest.raises(InputError, match="chooses its own settings; leave grid out"):
        clf.fit(X[:50], SETS[:50])
