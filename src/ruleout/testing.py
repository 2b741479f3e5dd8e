"""Contract suites that ship: run them on your own losses and approaches, too."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from ruleout.labels import draw
from ruleout.losses import Loss, Seen, get
from ruleout.methods import Approach, approach

__all__ = ["APPROACH_CHECKS", "LOSS_CHECKS", "check_approach", "check_loss"]

CLOSE = 1e-10

Subject: TypeAlias = Loss | Approach


class Case(NamedTuple):
    """Logits and what was ruled out, with a few words to name the case by."""

    name: str
    logits: Tensor
    excluded: Tensor


def make(
    k: int,
    law: str | int = "released",
    *,
    rows: int = 7,
    lead: tuple[int, ...] = (),
    single: bool = False,
    seed: int = 0,
) -> Case:
    """Make a batch of random logits (float64) and sets; `single`: of one class."""
    random = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(*lead, rows, k, dtype=torch.float64, generator=random)
    y = torch.randint(k, (rows,), generator=random).numpy()
    sets = draw(y, k, 1 if single else law, seed)
    return Case(f"k={k}, sizes {law}", logits, torch.from_numpy(sets.excluded))


def cases(single: bool) -> Iterator[Case]:
    """Yield batches with mixed sizes, with every fixed size, and with classes absent."""
    for k in (2, 3, 5, 12):
        yield make(k, single=single)
        if not single:
            yield from (make(k, s) for s in range(1, k))
    wide = make(9, rows=2, single=single)  # two rows cannot rule out nine classes one by one
    yield Case("classes absent from the batch", wide.logits, wide.excluded)


def _expect(truth: bool, sentence: str) -> None:
    if not truth:
        raise AssertionError(sentence)


def _same(a: Tensor, b: Tensor, sentence: str, close: float = CLOSE) -> None:
    """Raise the sentence unless the two are equal up to rounding."""
    _expect(a.shape == b.shape, f"{sentence}: shapes {tuple(a.shape)} and {tuple(b.shape)}")
    scale = 1 + b.abs().max().item() if b.numel() else 1.0
    gap = (a - b).abs().max().item() if b.numel() else 0.0
    _expect(gap <= close * scale, f"{sentence}: they differ by {gap:.3g}")


def _gradient_of(value: Callable[[Tensor], Tensor], logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the value and the gradient of its sum."""
    at = logits.clone().requires_grad_()
    result = value(at)
    (slope,) = torch.autograd.grad(result.sum(), at)
    return result.detach(), slope


def _value(subject: Subject) -> Callable[..., Tensor]:
    return subject.batch_loss if isinstance(subject, Approach) else subject


def _single(subject: Subject) -> bool:
    """Whether rows must carry exactly one ruled-out class."""
    return isinstance(subject, Approach) and subject.form == "pairs-before"


def shape(subject: Subject) -> None:
    """One scalar per stacked model, of a loss one per example or class; dtype kept."""
    for lead in ((), (2,), (2, 3), (0,)) if isinstance(subject, Approach) else ((), (2, 3)):
        for dtype in (torch.float32, torch.float64):
            case = make(4, lead=lead, single=_single(subject))
            value = _value(subject)(case.logits.to(dtype), case.excluded)
            wanted = lead
            if isinstance(subject, Loss):
                wanted = (*lead, 7, 4) if subject.kind == "single" else (*lead, 7)
            _expect(tuple(value.shape) == wanted, f"expected {wanted}, got {tuple(value.shape)}")
            _expect(value.dtype == dtype, f"expected {dtype}, got {value.dtype}")


def stacked_equals_serial(subject: Subject) -> None:
    """A stack of models gives each model's own value and gradient, sets shared or not."""
    case, of = make(5, lead=(3, 2), single=_single(subject)), _value(subject)
    value, slope = _gradient_of(lambda f: of(f, case.excluded), case.logits)
    own = case.excluded.expand(3, 2, -1, -1)
    _same(of(case.logits, own), value, "sets repeated per model change the value")
    for place in product(range(3), range(2)):
        alone = _gradient_of(lambda f: of(f, case.excluded), case.logits[place])
        _same(value[place], alone[0], "stacked and serial values differ")
        _same(slope[place], alone[1], "stacked and serial gradients differ")


def gradient(subject: Subject) -> None:
    """The gradient is that of the value (finite differences along random directions)."""
    for case in cases(_single(subject)):
        at = case.logits.clone().requires_grad_()
        value = partial(_value(subject), excluded=case.excluded)
        good = torch.autograd.gradcheck(value, (at,), raise_exception=False, fast_mode=True)
        _expect(good, f"wrong gradient at {case.name}")


def finite(subject: Subject) -> None:
    """Value and gradient stay finite at logits of ±1e4."""
    names = ("logits of ±1e4", "one logit of 1e4", "one logit of -1e4")
    for case, dtype in product(cases(_single(subject)), (torch.float32, torch.float64)):
        one = torch.zeros_like(case.logits)
        one[..., 0] = 1e4
        of = partial(_value(subject), excluded=case.excluded)
        for name, logits in zip(names, (1e4 * case.logits.sign(), one, -one), strict=True):
            for what, part in zip(
                ("value", "gradient"), _gradient_of(of, logits.to(dtype)), strict=True
            ):
                where = f"{what} is not finite at {case.name}, {name}, {dtype}"
                _expect(bool(part.isfinite().all()), where)


def precision(subject: Subject) -> None:
    """Single precision agrees with double, and the logits matter."""
    steepest, power = 0.0, 1 if isinstance(subject, Approach) else 2  # a sum may be constant
    for case in cases(_single(subject)):
        value = partial(_value(subject), excluded=case.excluded)
        rough, exact = value(case.logits.float()).double(), value(case.logits)
        _same(rough, exact, f"float32 differs from float64 at {case.name}", 1e-4)
        _, slope = _gradient_of(lambda f, of=value: of(f) ** power, case.logits)  # type: ignore[misc]
        steepest = max(steepest, float(slope.abs().max()))
    _expect(steepest > 0, "the gradient is zero everywhere")


def class_order(subject: Subject) -> None:
    """Renaming the classes renames the entries and changes nothing else."""
    for k in (3, 5, 12):
        case = make(k, single=_single(subject))
        order = torch.randperm(k, generator=torch.Generator().manual_seed(k))
        given, turned = {}, {}
        if isinstance(subject, Approach):
            prior = (1 + torch.arange(k, dtype=torch.float64)).softmax(-1)
            given, turned = {"prior": prior}, {"prior": prior[order]}
        value = _value(subject)(case.logits, case.excluded, **given)
        found = _value(subject)(case.logits[:, order], case.excluded[:, order], **turned)
        if isinstance(subject, Loss) and subject.kind == "single":
            value = value[:, order]
        _same(found, value, "the order of the classes matters")


def rows_apart(loss: Loss) -> None:
    """A row's loss depends on that row alone."""
    case = make(5)
    whole = loss(case.logits, case.excluded)
    for i in range(len(whole)):
        alone = loss(case.logits[i : i + 1], case.excluded[i : i + 1])
        _same(alone[0], whole[i], "rows influence each other")


def one(loss: Loss) -> None:
    """A single-label loss gives the same for one class, whether by matrix or by short cut."""
    if loss.kind != "single":
        return
    for case in cases(single=True):
        mask = case.excluded.to(case.logits)
        picked = (loss.matrix(case.logits) * mask).sum(-1)
        _same(loss.per_example(case.logits, mask), picked, f"short cut differs at {case.name}")


def row_order(row: Approach) -> None:
    """Shuffling the batch changes nothing."""
    case = make(5, single=_single(row))
    back = row.batch_loss(case.logits.flip(0), case.excluded.flip(0))
    _same(back, row.batch_loss(case.logits, case.excluded), "the order of the rows matters")


def weights(row: Approach) -> None:
    """A weight of 2 is the row twice, a weight of 0 is no row."""
    case = make(4, single=_single(row))
    times = torch.tensor([1, 2, 0, 1, 3, 1, 1])
    repeated = row.batch_loss(
        case.logits.repeat_interleave(times, 0), case.excluded.repeat_interleave(times, 0)
    )
    weighted = row.batch_loss(case.logits, case.excluded, weight=times)
    _same(weighted, repeated, "integer weights differ from repeated rows")
    nothing = row.batch_loss(case.logits, case.excluded, weight=torch.zeros(7))
    _expect(bool(nothing.isfinite()), "a batch without weight is not finite")


def empty_rows(row: Approach) -> None:
    """A row that rules nothing out does not count."""
    case = make(4, single=_single(row))
    some = case.excluded.clone()
    some[2] = False
    keep = torch.tensor([0, 1, 3, 4, 5, 6])
    value, slope = _gradient_of(lambda f: row.batch_loss(f, some), case.logits)
    _same(value, row.batch_loss(case.logits[keep], some[keep]), "an empty row counts")
    _expect(bool((slope[2] == 0).all()), "an empty row has a gradient")


def inputs(row: Approach) -> None:
    """Masks of any dtype are accepted, nothing is changed, wrong shapes are refused."""
    case = make(4, single=_single(row))
    before, mask = case.logits.clone(), case.excluded.double()
    value = row.batch_loss(case.logits, mask)
    for other in (case.excluded, case.excluded.int(), case.excluded.numpy()):
        _same(row.batch_loss(case.logits, other), value, "the dtype of excluded matters")
    _expect(torch.equal(before, case.logits), "the logits were changed")
    _expect(torch.equal(mask, case.excluded.double()), "excluded was changed")
    _expect(torch.equal(row.batch_loss(case.logits, mask), value), "a second call differs")
    try:
        row.batch_loss(case.logits, case.excluded[:, :-1])
    except ValueError:
        return
    raise AssertionError("excluded of the wrong width was accepted")


def memory(row: Approach) -> None:
    """What is remembered stays finite, is each stacked model's own, and can be kept on disk."""
    if row.memory is None:
        return
    case = make(4, rows=12, lead=(3, 2))
    sets = torch.stack([case.excluded.roll(trial, 0) for trial in range(3)])
    for scale, dtype in product((0.1, 1e4), (torch.float32, torch.float64)):
        logits, mask = (scale * case.logits).to(dtype), sets.unsqueeze(1).to(dtype)
        together = _targets(row, logits, mask)
        _expect(bool(together.isfinite().all()), f"a target is not finite, logits of ±{scale:g}")
        for t, m in product(range(3), range(2)):
            alone = _targets(row, logits[t, m], mask[t, 0])
            _same(together[:, t, m], alone, "stacked and serial targets differ", 1e-5)


def _targets(row: Approach, logits: Tensor, mask: Tensor) -> Tensor:
    """Return the targets after 26 epochs in which a model grows surer, ``[26, ..., n, k]``."""
    assert row.memory is not None
    kept, found = dict[str, Tensor](), [row.source.start(mask).expand_as(logits)]
    for epoch in range(1, 27):
        found.append(row.source.revise(Seen(logits * epoch / 26, mask, found[-1], epoch, kept)))
    for name, one in kept.items():
        fits = one.dtype == logits.dtype and one.shape[:-2] == logits.shape[:-2]
        _expect(fits, f"kept[{name!r}] must be [..., n or 1, *], of the dtype of the logits")
    return torch.stack(found[1:])


LOSS_CHECKS: tuple[Callable[[Loss], None], ...] = (
    *(shape, rows_apart, class_order, stacked_equals_serial, finite, precision, gradient, one),
)

APPROACH_CHECKS: tuple[Callable[[Approach], None], ...] = (
    *(shape, stacked_equals_serial, gradient, finite, precision, class_order),
    *(row_order, weights, empty_rows, inputs, memory),
)


def _run(checks: Sequence[Callable[[Any], None]], subject: Subject, stopped: bool) -> None:
    """Run every check; whatever one raises becomes an AssertionError that names it."""
    for check in checks:
        if stopped and check is gradient:
            continue
        try:
            check(subject)
        except Exception as error:
            what = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            raise AssertionError(f"{subject.name}, {check.__name__}: {what}{error}") from None


def check_loss(loss: str | Loss, *, stopped_gradient: bool = False) -> None:
    """Raise AssertionError unless the loss keeps every contract.

    `stopped_gradient` is that of :func:`check_approach`.

    >>> check_loss("mae")
    """
    _run(LOSS_CHECKS, get(loss) if isinstance(loss, str) else loss, stopped_gradient)


def check_approach(
    row: str | Approach,
    reference: Callable[[list[Any], list[Any]], float] | None = None,
    *,
    stopped_gradient: bool = False,
) -> None:
    """Raise AssertionError unless the approach, given itself or by name, keeps every contract.

    `reference` is an independent way to compute ``batch_loss``, from nested lists of logits and
    bools. `stopped_gradient`: the approach stops a gradient on purpose (``detach``), so that its
    gradient is not that of its value, and the two are not compared.

    >>> check_approach("log")
    """
    row = approach(row)
    _run(APPROACH_CHECKS, row, stopped_gradient)
    if reference is None:
        return
    for case in cases(_single(row)):
        expected = case.logits.new_tensor(
            float(reference(case.logits.tolist(), case.excluded.tolist()))
        )
        found = row.batch_loss(case.logits, case.excluded)
        _same(found, expected, f"{row.name} differs from its reference at {case.name}")
