"""The few pieces of log-space arithmetic that the losses are made of.

`excluded` is 0 or 1 in the dtype of the logits, so that masks multiply instead of branching. The
two functions at the heart, :func:`log_odds` and :func:`log_complement`, have their gradients
written out and reuse their buffers: LOG then took about two thirds of the time that autograd's own
needed (4096 × 100, two cores). Higher derivatives, `torch.func.grad` and `torch.vmap` work as for
any other function; forward mode (`torch.func.jvp`, `torch.func.hessian`) does not.
"""

import inspect
from typing import Any

import torch
from torch import Tensor

_FEW = 32  # classes up to which plain operations are faster than torch's own softmax


def sizes(excluded: Tensor) -> Tensor:
    """Count the classes ruled out, ``[..., B]``; a row that rules nothing out counts as 1."""
    return excluded.sum(-1).clamp(min=1)


def scale(excluded: Tensor, rate: Tensor | None = None) -> Tensor:
    r"""Return :math:`1/(1-q)`, q being how likely a wrong class stays possible, ``[..., B]``.

    In a set of s classes that were ruled out at random :math:`q = 1 - s/(k-1)`, so this is
    :math:`(k-1)/s`. What answers leave possible has a rate of its own.
    """
    return (excluded.shape[-1] - 1) / sizes(excluded) if rate is None else 1 / (1 - rate)


def log_odds(logits: Tensor, excluded: Tensor) -> Tensor:
    r"""Return :math:`\log z - \log(1-z)`, z the probability left on the candidates, ``[..., B]``.

    Both log-sum-exps share one exponential, each class shifted by the maximum of its own side:
    exact and finite when either side holds next to nothing.
    """
    odds: Tensor = _LogOdds.apply(*align(logits, excluded))[0]  # type: ignore[no-untyped-call]
    return odds


def align(logits: Tensor, excluded: Tensor) -> tuple[Tensor, Tensor]:
    """Give `logits` the shape both have together; `excluded`, often shared, only its dimensions."""
    same = zip(reversed(logits.shape), reversed(excluded.shape), strict=False)
    if logits.ndim == excluded.ndim and all(b in (a, 1) for a, b in same):
        return logits, excluded  # nothing to do, in a fiftieth of the time of what follows
    shape = torch.broadcast_shapes(logits.shape, excluded.shape)  # type: ignore[no-untyped-call]
    return logits.expand(shape), excluded[(None,) * (len(shape) - excluded.ndim)]


def log_complement(logits: Tensor) -> Tensor:
    r"""Return :math:`\log(1-p_c)` for every class c, ``[..., B, k]``.

    Only the largest probability can be close to 1, so its rivals are summed relative to the second
    largest logit, with the largest kept apart.
    """
    logs: Tensor = _LogComplement.apply(logits)[0]  # type: ignore[no-untyped-call]
    return logs


def log_softmax(logits: Tensor) -> Tensor:
    """Return the log of the probabilities.

    With few classes torch's own kernel works on rows too short for it: on ``[40, 256, 10]`` these
    operations took a fifth of its time.
    """
    if logits.shape[-1] > _FEW:
        return logits.log_softmax(-1)
    below = logits - logits.detach().amax(-1, keepdim=True)
    return below - below.exp().sum(-1, keepdim=True).log()


def softmax(logits: Tensor) -> Tensor:
    """Return the probabilities."""
    if logits.shape[-1] > _FEW:
        return logits.softmax(-1)
    mass = (logits - logits.detach().amax(-1, keepdim=True)).exp()
    return mass / mass.sum(-1, keepdim=True)


def _low(logits: Tensor) -> float:
    """Far below any logit, and finite when added to one."""
    return torch.finfo(logits.dtype).min / 4


class _AnyLead(torch.autograd.Function):
    """A function of any leading shape: under vmap the new dimension simply leads."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)  # those of the other outputs would be zeros
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs, *output[1:])

    @staticmethod
    def _front(
        info: Any, in_dims: tuple[int | None, ...], inputs: tuple[Tensor, ...]
    ) -> list[Tensor]:
        return [
            x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
            for x, dim in zip(inputs, in_dims, strict=True)
        ]


class _LogOdds(_AnyLead):
    @staticmethod
    def forward(logits: Tensor, excluded: Tensor) -> tuple[Tensor, ...]:
        low, tiny = _low(logits), torch.finfo(logits.dtype).tiny
        left = 1 - excluded
        mass = torch.add(logits, excluded, alpha=low)
        top_in = mass.amax(-1, keepdim=True)
        top_out = torch.add(logits, left, alpha=low, out=mass).amax(-1, keepdim=True)
        torch.mul(top_in, left, out=mass).addcmul_(top_out, excluded)
        torch.sub(logits, mass, out=mass).exp_()
        # The least value is reached only by rows that rule out nothing, or everything.
        part = torch.mul(mass, left, out=left if left.shape == mass.shape else None)
        inside = part.sum(-1, keepdim=True).clamp_(min=tiny)
        outside = torch.mul(mass, excluded, out=part).sum(-1, keepdim=True).clamp_(min=tiny)
        odds = inside.log() - outside.log() + (top_in - top_out)
        return odds.squeeze(-1), mass, inside, outside

    @staticmethod
    def backward(ctx: Any, slope: Tensor | None, *_: None) -> tuple[Tensor | None, None]:
        if slope is None:
            return None, None
        logits, excluded, mass, inside, outside = ctx.saved_tensors
        slope = slope.unsqueeze(-1)
        if torch.is_grad_enabled():  # a second derivative is wanted: the same, differentiable
            low = _low(logits)
            candidates = torch.add(logits, excluded, alpha=low).softmax(-1)
            return slope * (
                candidates - torch.add(logits, 1 - excluded, alpha=low).softmax(-1)
            ), None
        within = slope / inside
        return torch.addcmul(within, slope / outside + within, excluded, value=-1).mul_(mass), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Tensor) -> Any:
        return _LogOdds.apply(*_AnyLead._front(info, in_dims, inputs)), (0, 0, 0, 0)  # type: ignore[no-untyped-call]


class _LogComplement(_AnyLead):
    @staticmethod
    def forward(logits: Tensor) -> tuple[Tensor, ...]:
        first, top = logits.max(-1, keepdim=True)
        mass = logits.scatter(-1, top, torch.finfo(logits.dtype).min)
        second = mass.amax(-1, keepdim=True)
        mass.scatter_(-1, top, second).sub_(second).exp_().scatter_(-1, top, 0.0)
        total = mass.sum(-1, keepdim=True)
        gap = second - first
        ratio = gap.exp()
        logs = (total - mass).mul_(ratio).log1p_().scatter_(-1, top, total.log() + gap)
        return logs.sub_((ratio * total).log1p_()), mass, top, ratio, total

    @staticmethod
    def backward(ctx: Any, slope: Tensor | None, *_: None) -> Tensor | None:
        if slope is None:
            return None
        saved: tuple[Tensor, ...] = ctx.saved_tensors
        logits, mass, top, ratio, total = saved
        # d log(1-p_c) / d f_j is p_j / (1-p_c) - p_j for j ≠ c, else -p_j; the largest c apart.
        best, all_slopes = slope.gather(-1, top), slope.sum(-1, keepdim=True)
        if torch.is_grad_enabled():  # a second derivative is wanted: the same, differentiable
            p, rivals = logits.softmax(-1), logits.scatter(-1, top, _low(logits)).softmax(-1)
            weight = (slope * (-log_complement(logits)).exp()).scatter(-1, top, 0.0)
            return p * (weight.sum(-1, keepdim=True) - all_slopes - weight) + best * rivals
        norm = 1 + ratio * total
        weight = slope / (total - mass).mul_(ratio).add_(1)
        weight.mul_(norm).scatter_(-1, top, 0.0)
        whole = weight.sum(-1, keepdim=True) - all_slopes
        weight.neg_().add_(whole).mul_(ratio / norm).add_(best / total).mul_(mass)
        return weight.scatter_(-1, top, whole / norm)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Tensor) -> Any:
        return _LogComplement.apply(*_AnyLead._front(info, in_dims, inputs)), (0, 0, 0, 0, 0)  # type: ignore[no-untyped-call]


for _function in (_LogOdds, _LogComplement):  # `apply` reads it every time: 40 µs to work it out
    vars(_function.forward)["__signature__"] = inspect.signature(_function.forward)


NEVER = -1e8  # the logarithm of what cannot be


def log_chance(transition: Tensor) -> Tensor:
    """Return the logarithms of probabilities, :data:`NEVER` of 0."""
    chance = transition.clamp(min=torch.finfo(transition.dtype).tiny).log()
    return chance.masked_fill(transition <= 0, NEVER)


def log_chances(excluded: Tensor, transition: Tensor) -> Tensor:
    r"""Return :math:`\log P(\bar Y \mid y, s)` for every y, ``[..., B, k]``; 0 where s = 0.

    Of all sets of a size, a set has a chance in proportion to :math:`\prod_{c \in \bar Y} Q_{yc}`.
    `transition` is Q, ``[..., k, k]``. What cannot be is :data:`NEVER`, so that all stays finite.
    """
    chance = log_chance(transition)
    own = torch.nn.functional.one_hot(excluded.sum(-1).long(), excluded.shape[-1] + 1).to(excluded)
    never = (excluded @ (transition <= 0).to(excluded).mT) > 0
    found = (excluded @ chance.mT - own @ log_sums(chance)).clamp(NEVER, 0)
    return found.masked_fill(never, NEVER)


def log_sums(chance: Tensor) -> Tensor:
    """Return the logarithms of sums over all sets of a size of their products: ``[..., k + 1, k]``.

    `chance` are the logarithms of the factors, ``[..., k, k]``, a row for each true class.
    """
    k = chance.shape[-1]
    never = torch.full_like(chance, NEVER * k)
    some = torch.cat([torch.zeros_like(chance[..., :1, :]), never], -2)
    for c in range(k):
        more = some[..., :-1, :] + chance[..., c].unsqueeze(-2)
        some = torch.cat([some[..., :1, :], torch.logaddexp(some[..., 1:, :], more)], -2)
    return some
