"""What the answer log says of each item, and how far rows can be trusted: against plain loops."""

from __future__ import annotations

import math
from itertools import chain, combinations
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from web.logs import CLASSES, LOG, NAMES, log_of, row, simulated

from ruleout.labels.errors import InputError
from ruleout.web.answer_log import AnswerLog, How, Known
from ruleout.web.entities import LogRow
from ruleout.web.error_rates import FORMS, ErrorRates, error_rates, evidence, weights


def table(found: Known) -> dict[str, list[Any]]:
    return dict(zip(found.items, found.sets.to_lists(), strict=True))


# ------------------------------------------------------------------ label sets


def test_no_alone_is_the_papers_way() -> None:
    found = log_of(LOG, items=NAMES).known("no")
    assert table(found) == {"a": ["cat", "dog"], "c": ["cat", "fish"]}
    assert found.contradictions == ("e",)
    assert found.unlabelled == ("b", "d", "f")
    assert found.tests == ("g",)


def test_intersection_uses_every_answer() -> None:
    found = log_of(LOG, items=NAMES).known("intersection")
    assert table(found) == {
        "a": ["cat", "dog"],
        "b": ["bird", "fish"],
        "c": ["cat", "fish"],
        "d": ["cat", "dog", "fish"],
    }
    assert found.contradictions == ("e",)
    assert found.unlabelled == ("f",)


def test_unlabelled_items_get_empty_rows_when_asked() -> None:
    found = log_of(LOG, items=NAMES).known("no", unlabelled=True)
    assert table(found) == {"a": ["cat", "dog"], "b": [], "c": ["cat", "fish"], "d": [], "f": []}
    assert found.unlabelled == ("b", "d", "f")


def test_an_empty_log_leaves_everything_unlabelled() -> None:
    found = log_of([], items=NAMES).known()
    assert (len(found.sets), found.items, found.unlabelled) == (0, (), tuple(NAMES))


answers = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(["yes", "no", "which", "excluded", "skip"]),
        st.sets(st.integers(0, 3), min_size=1, max_size=3),
        st.booleans(),
        st.booleans(),
    ),
    max_size=30,
)


@given(answers, st.sampled_from(get_args(How)))
def test_every_item_is_in_exactly_one_list_and_rows_equal_a_plain_loop(
    said: list[tuple[str, Any, set[int], bool, bool]], how: How
) -> None:
    log = [
        row(item, kind, tuple(sorted(about)), counts=counts, gold=gold)
        for item, kind, about, counts, gold in said
    ]
    made = log_of(log, items=NAMES)
    found = made.known(how)
    lists = [found.items, found.contradictions, found.unlabelled, found.tests]
    assert sorted(chain(*lists)) == NAMES
    left = {name: set(range(4)) for name in NAMES}  # by all answers
    used = {name: set(range(4)) for name in NAMES}  # by those that make the sets
    for item, kind, about, counts, gold in said:
        if not counts or gold or kind == "skip":
            continue
        rest = about if kind == "yes" else {min(about)} if kind == "which" else None
        out = about if rest is None else set(range(4)) - rest
        left[item] -= out
        if how == "intersection" or rest is None:
            used[item] -= out
    wrong = tuple(name for name in NAMES if not left[name])
    assert found.contradictions == wrong
    assert tuple(one.item for one in made.contradictions()) == wrong
    assert made.candidates.tolist() == [len(left[name]) for name in NAMES]
    for name, names in table(found).items():
        assert names == [CLASSES[c] for c in range(4) if c not in used[name]]


def test_contradictions_are_the_same_whatever_the_sets_are_made_of() -> None:
    """Only "yes" and "which" contradict the "no" here, and the item is in no set."""
    rows = [
        row("a", "no", (0, 1)),
        row("a", "yes", (0, 1), "bob", round=1),
        row("b", "no", (2,)),
        row("b", "which", (2,), "bob", law="imported"),
        row("c", "no", (3,)),
    ]
    log = log_of(rows)
    for how in get_args(How):
        found = log.known(how)
        assert (found.items, found.contradictions) == (("c",), ("a", "b"))
    assert log.every_answer().items.tolist() == [2]
    one, other = log.contradictions()
    assert (one.item, [r.user_name for r in one.answers]) == ("a", ["ada", "bob"])
    assert (other.answers[1].kind, other.answers[1].which) == ("which", 2)
    assert log.contradictions(1) == (one,)


def test_a_truthful_team_never_rules_the_truth_out() -> None:
    truth = [n % 5 for n in range(200)]
    log = simulated(truth, ("ada", "bob"), 5)
    names = [f"item {n}" for n in range(200)]
    for how in get_args(How):
        found = log_of(log, 5, names).known(how)
        assert not found.contradictions
        y = [truth[names.index(item)] for item in found.items]
        assert not found.sets.excluded[np.arange(len(y)), y].any()


def test_a_log_of_other_classes_is_refused() -> None:
    for rows in ([row("a", "no", (4,))], [row("a", "which", (4,))]):
        with pytest.raises(InputError, match="about class 4, but there are 4 classes; use the"):
            log_of(rows).known()


# ------------------------------------------------------------------ every answer


def test_every_answer_is_what_the_unbiased_risk_takes() -> None:
    answers = log_of(LOG, items=NAMES).every_answer()
    assert [NAMES[item] for item in answers.items] == ["a", "b", "c", "d"]
    assert answers.yes.tolist() == [False, True, False, True]
    assert answers.asked.to_lists() == [["cat", "dog"]] * 2 + [["cat"], ["dog", "bird"]]
    items, sets, rates = answers.per_item()
    assert items.tolist() == [0, 1, 2, 3]
    assert sets.to_lists()[1] == ["bird", "fish"]
    assert rates == pytest.approx([4 / 12, 4 / 12, 6 / 12, 4 / 12])


def test_a_draw_answered_twice_enters_once_and_imports_never() -> None:
    log = [
        row("a", "no", (0,), "ada", round=0),
        row("a", "no", (0,), "bob", round=0),
        row("a", "no", (0,), "bob", round=1),  # the same set, drawn anew
        row("b", "no", (0,), law="imported"),
    ]
    answers = log_of(log, items=NAMES).every_answer()
    assert answers.items.tolist() == [0, 0]
    assert answers.per_item()[2] == pytest.approx([0.25])


def test_answers_are_in_the_order_of_items() -> None:
    log = [row("c", "no", (0,)), row("a", "yes", (1, 2), round=1), row("a", "no", (0,))]
    answers = log_of(log, items=NAMES).every_answer()
    assert answers.items.tolist() == [0, 0, 2]
    assert answers.yes.tolist() == [True, False, False]


def test_the_risk_of_an_exported_log_is_unbiased() -> None:
    """Over many draws the estimate of a fixed loss comes to the loss of the true classes."""
    n, k = 20_000, 4
    truth = np.arange(n) % k
    log = simulated(truth.tolist(), ("ada",), k, seed=9)
    answers = log_of(log).every_answer()
    items, sets, rates = answers.per_item()
    losses = np.array([0.1, 1.0, 2.0, 4.0])
    each = (losses * (1 - sets.excluded - rates[:, None]) / (1 - rates[:, None])).sum(1)
    error = each.std() / math.sqrt(len(items))
    assert abs(each.mean() - losses[truth].mean()) < 4 * error


# ------------------------------------------------------------------ weights


def gold_log(right: int, wrong: int, user: str = "ada", kind: str = "free") -> list[LogRow]:
    """Answers to gold questions about item ``t``, whose class is 0."""
    good: tuple[str, tuple[int, ...]]
    bad: tuple[str, tuple[int, ...]]
    if kind == "free":
        good, bad = ("excluded", (1,)), ("excluded", (0,))
    elif kind == "yes":
        good, bad = ("yes", (0, 1)), ("no", (0, 1))
    else:
        good, bad = ("no", (1, 2)), ("yes", (1, 2))
    said = [good] * right + [bad] * wrong
    return [row("t", kind, about, user, gold=True) for kind, about in said]


def test_error_rates_by_hand() -> None:
    log = [*gold_log(8, 2, "ada"), *gold_log(10, 0, "bob"), *gold_log(3, 1, "ada", "yes")]
    found = error_rates(log_of([*log, row("a", "no", (1,), "cy")], gold={"t": 0}), assumed=0.1)
    team = 3 / 22
    assert found.team == pytest.approx([2 / 6, 0.1, team])
    ada = [(1 + 2 * 2 / 6) / 6, 0.1, (2 + 2 * team) / 12]
    bob, cy = [2 / 6, 0.1, (0 + 2 * team) / 12], [2 / 6, 0.1, team]
    assert found.own.tolist() == [pytest.approx(one) for one in (ada, bob, cy)]
    assert found.measured.tolist() == [[True, False, True], [False, False, True], [False] * 3]


TRUST = [0.2, 0.1, 0.3]  # errors of the forms: yes, no, free


def rates(log: AnswerLog, own: dict[tuple[str, str], float] | None = None) -> ErrorRates:
    """Make error rates: those of TRUST, but for what is somebody's own."""
    known = dict(zip(FORMS, TRUST, strict=True))
    each = [[(own or {}).get((user, form), known[form]) for form in FORMS] for user in log.users]
    return ErrorRates(np.array(TRUST), np.array(each), np.ones((len(log.users), 3), np.bool_))


def weigh(rows: list[LogRow], how: How) -> list[float]:
    log = log_of(rows)
    found = log.known(how)
    return list(weights(log, found.sets, found.items, rates(log)))


def test_one_free_answer_weighs_what_its_annotator_is_right() -> None:
    log = [row("a", "excluded", (0, 1)), row("b", "which", (2,)), row("c", "excluded", (3,))]
    assert weigh(log, "intersection") == pytest.approx([0.7, 0.7, 0.7])


def test_proposals_weigh_by_bayes_rule_by_hand() -> None:
    # "no" to two of four: right 0.9 where it is outside, said in error 0.2 where it is inside
    assert weigh([row("a", "no", (0, 1))], "no") == pytest.approx([0.9 / 1.1])
    # "yes" to one of four: said 0.8 for that class, in error 0.1 for each of three
    assert weigh([row("a", "yes", (0,))], "intersection") == pytest.approx([0.8 / 1.1])


def test_agreement_raises_a_weight_and_dissent_lowers_it() -> None:
    one = row("a", "no", (0, 1), "ada")
    alone = weigh([one], "no")
    agreed = weigh([one, row("a", "no", (0, 1), "bob")], "no")
    opposed = weigh([one, row("a", "yes", (0, 1, 2), "bob")], "no")
    assert opposed < alone < agreed
    assert agreed == pytest.approx([0.81 / 0.85])
    assert opposed == pytest.approx([(0.72 + 0.09) / (0.72 + 0.09 + 2 * 0.16)])


def test_the_yes_before_which_is_not_heard_twice() -> None:
    log = [row("a", "yes", (0, 1)), row("a", "which", (0,))]
    assert weigh(log, "intersection") == pytest.approx([0.7])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["yes", "no", "excluded", "which"]),
            st.sets(st.integers(0, 3), min_size=1, max_size=3),
            st.sampled_from(["ada", "bob"]),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_weights_equal_a_plain_loop_over_classes(said: list[tuple[Any, set[int], str]]) -> None:
    own: dict[Any, float] = {("ada", "yes"): 0.01, ("bob", "no"): 0.4, ("bob", "free"): 0.05}
    rows = [
        row("a", kind, tuple(sorted(about)), user, round=turn)
        for turn, (kind, about, user) in enumerate(said)
    ]
    log = log_of(rows)
    trust, found = rates(log, own), log.known("no")
    if not found.items:
        return
    chances = []
    for y in range(4):
        chance = 1.0
        for kind, about, user in said:
            if kind in ("yes", "no"):
                form: Any = "yes" if y in about else "no"
                error = own.get((user, form), TRUST[FORMS.index(form)])
                chance *= 1 - error if kind == form else error
            else:
                out = about if kind == "excluded" else set(range(4)) - {min(about)}
                error, s = own.get((user, "free"), TRUST[2]), len(out)
                chance *= error / math.comb(3, s - 1) if y in out else (1 - error) / math.comb(3, s)
        chances.append(chance)
    left = [c for c in range(4) if CLASSES[c] not in found.sets.to_lists()[0]]
    wanted = sum(chances[c] for c in left) / sum(chances)
    assert weights(log, found.sets, found.items, trust) == pytest.approx([wanted])


def test_weights_are_calibrated_for_a_simulated_team() -> None:
    """Among rows of weight about w, about w of them hold the true class."""
    truth = np.random.default_rng(1).integers(0, 6, 4000).tolist()
    log = simulated(truth, ("ada", "bob"), 6, errors=0.2, seed=2)
    log += [
        row("t", one.kind, one.proposed, one.user_name, gold=True, item_name=f"t{one.item_name}")
        for one in simulated(truth[:1000], ("ada", "bob"), 6, errors=0.2, seed=3)
    ]
    gold = {f"titem {n}": y for n, y in enumerate(truth[:1000])}
    made = log_of(log, 6, gold=gold)
    found = made.known("intersection")
    w = weights(made, found.sets, found.items, error_rates(made))
    y = [truth[int(item.split()[1])] for item in found.items]
    right = ~found.sets.excluded[np.arange(len(y)), y]
    for part in np.array_split(np.argsort(w), 5):
        error = math.sqrt(0.25 / len(part))
        assert abs(right[part].mean() - w[part].mean()) < 4 * error


def test_an_assumed_rate_is_a_share() -> None:
    with pytest.raises(InputError, match="the assumed error rate is 0; give one between 0 and 1"):
        error_rates(log_of([]), assumed=0)


@pytest.mark.parametrize("kinds", [("yes", "no"), ("no",)])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_credit_of_answers_to_draws_is_one_where_right_and_zero_where_wrong(
    size: int, kinds: Any
) -> None:
    """Over every set of a size and every answer, as likely as the error rates make them."""
    draws = list(combinations(range(4), size))
    said = [(f"{at} {kind}", kind, one) for at, one in enumerate(draws) for kind in kinds]
    log = log_of([row(name, kind, one) for name, kind, one in said])
    found = evidence(log, np.arange(len(log.items)), *kinds, rates=rates(log)).credit
    place = {name: at for at, name in enumerate(log.items)}
    for y in range(4):
        right = {kind: 1 - TRUST[FORMS.index(kind)] for kind in ("yes", "no")}
        for c in range(4):
            mean = square = total = 0.0
            for name, kind, one in said:
                truly = "yes" if y in one else "no"
                chance = (right[truly] if kind == truly else 1 - right[truly]) / len(draws)
                value = found.value[place[name], c]
                mean, square = mean + chance * value, square + chance * value**2
                total += chance  # less than 1 where "yes" is not heard
            assert mean / total == pytest.approx(float(c == y), abs=1e-12)
            spread = found.right if c == y else found.wrong
            assert spread[0, c] == pytest.approx(square / total - (mean / total) ** 2)


def test_what_was_not_drawn_tells_nothing_of_predictions_but_of_the_class() -> None:
    """A "which" after its "yes", an import, and a draw that another has answered."""
    log = log_of(
        [
            *(row("a", "yes", (0, 1)), row("a", "which", (1,), proposed=(0, 1))),
            *(row("b", "no", (0,)), row("b", "no", (0,), "bob")),
            row("c", "no", (0,), law="imported"),
        ]
    )
    found = evidence(log, np.arange(3), rates=rates(log))
    one = log_of([row("a", "yes", (0, 1)), row("b", "no", (0,))])
    once = evidence(one, np.arange(2), rates=rates(one))
    for own, other in zip(found.credit, once.credit, strict=True):
        np.testing.assert_allclose(own[:2], other)
    assert not found.credit.weight[2].any()
    assert (np.exp(found.likelihood[:, 0]) < 0.5).all()


def test_a_decision_is_beyond_doubt() -> None:
    log = log_of([row("a", "no", (0,)), row("b", "no", (0,))])
    found = evidence(log.changed(decided=np.array([2, -1])), np.arange(2), rates=rates(log))
    assert found.likelihood[0].tolist() == [-np.inf, -np.inf, 0, -np.inf]
    assert found.credit.value[0].tolist() == [0, 0, 1, 0]
    assert found.sets.to_lists()[0] == ["cat", "dog", "fish"]
