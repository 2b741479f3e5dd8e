"""Losses of whole sets, of ordinary labels, of one class ruled out.

Pure functions of any leading shape, entered into the registry by decoration.

- Of ordinary labels (kind ``base``): ``logits → [..., B, k]``, entry y is the loss if class y were
  the label. They enter the paper's tables through the unbiased estimator, Eq. 10.
- Of whole sets: ``(logits, excluded) → [..., B]``. `excluded` arrives as 0 and 1 in the dtype of
  the logits. Where a loss takes `rate`, ``[..., B]``, it is how likely a wrong class stays
  possible; None: as in a set drawn at random, 1 - s/(k-1).
- Of one ruled-out class (kind ``single``): ``logits → [..., B, k]``, entry c for "it is not c". A
  set is decomposed into its pairs (x, c); both decompositions take the mean over pairs.

Options may be tensors that broadcast against the logits, one value per stacked model.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import elu, hardtanh, logsigmoid, relu
from torch.utils.checkpoint import checkpoint
from torch.utils.weak import WeakIdKeyDictionary

from ruleout.labels.errors import brief
from ruleout.losses.log_space import (
    log_chance,
    log_chances,
    log_complement,
    log_odds,
    log_softmax,
    scale,
    sizes,
    softmax,
)
from ruleout.losses.loss_registry import register, unbiased

_ROOT = math.sqrt(2)
_base = partial(register, kind="base", family="bounded", paper="Feng et al. 2020, Section 4.3")


@_base("mae", bounds=lambda: (2.0, 1 / _ROOT))
def mae(logits: Tensor) -> Tensor:
    r"""Mean absolute error, :math:`2 - 2p_y`. Symmetric: the classes sum to :math:`2k-2`."""
    return 2 - 2 * softmax(logits)


@_base("mse", bounds=lambda: (2.0, 16 * _ROOT / 27))
def mse(logits: Tensor) -> Tensor:
    r"""Mean square error, :math:`1 - 2p_y + \sum_j p_j^2`."""
    p = softmax(logits)
    return 1 - 2 * p + (p * p).sum(-1, keepdim=True)


def _gce_bounds(q: float = 0.7) -> tuple[float, float]:
    if not 0 < q <= 1:
        raise ValueError(f"gce needs 0 < q <= 1, got q={q}")
    return 1 / q, _ROOT * (q / (1 + q)) ** q / (1 + q)


@_base("gce", paper="Zhang and Sabuncu 2018", bounds=_gce_bounds)
def gce(logits: Tensor, *, q: float | Tensor = 0.7) -> Tensor:
    r"""Generalised cross entropy, :math:`(1 - p_y^q)/q` with :math:`0 < q \le 1`."""
    return -torch.expm1(q * log_softmax(logits)) / q


def _phuber_bounds(tau: float = 10.0) -> tuple[float, float]:
    if not 0 < tau < math.inf:
        raise ValueError(f"phuber needs tau > 0, got tau={tau}")
    return math.log(tau) + 1, _ROOT * (1 - 1 / tau) if tau >= 2 else _ROOT * tau / 4


@_base("phuber", paper="Menon et al. 2020", label="PHuber-CE", bounds=_phuber_bounds)
def phuber(logits: Tensor, *, tau: float | Tensor = 10.0) -> Tensor:
    r"""Partially Huberised cross entropy: :math:`-\log p_y`, continued linearly below 1/τ.

    :math:`-\log p_y` if :math:`p_y \ge 1/\tau`, else :math:`-\tau p_y + \log\tau + 1`; with the
    exponential linear unit this is :math:`\log\tau - \mathrm{ELU}(\log p_y + \log\tau)`.
    """
    kink = tau.log() if isinstance(tau, Tensor) else math.log(tau)
    return kink - elu(log_softmax(logits) + kink)


@_base("cce", family="unbounded", bounds=lambda: (math.inf, _ROOT))
def cce(logits: Tensor) -> Tensor:
    r"""Categorical cross entropy, :math:`-\log p_y`; unbounded."""
    return -log_softmax(logits)


def zero_one(logits: Tensor) -> Tensor:
    """0-1 loss: 0 for the predicted class, 1 for the others. No gradient, so no approach.

    In the unbiased estimator it costs 0 if the prediction is a candidate and (k-1)/s if it was
    ruled out: an estimate of the error rate that needs no true label.

    >>> zero_one(torch.tensor([[0.1, 0.7, 0.2]]))
    tensor([[1., 0., 1.]])
    """
    return torch.ones_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 0.0)


_upper_bound = partial(register, family="upper-bound", paper="Feng et al. 2020, after Eq. 12")


@_upper_bound("log")
def log(logits: Tensor, excluded: Tensor, *, rate: Tensor | None = None) -> Tensor:
    r"""LOG, :math:`\frac{k-1}{s} (-\log z)`, z the probability left on the candidates.

    The weight is that of the authors' code; the text has twice as much (:func:`log_text`).
    """
    return scale(excluded, rate) * -logsigmoid(log_odds(logits, excluded))


@_upper_bound("exp")
def exp(logits: Tensor, excluded: Tensor, *, rate: Tensor | None = None) -> Tensor:
    r"""EXP, :math:`\frac{k-1}{s} \exp(-z)`; weight as in the authors' code."""
    return scale(excluded, rate) * (-log_odds(logits, excluded).sigmoid()).exp()


@_upper_bound("log-text", label="LOG (text)")
def log_text(logits: Tensor, excluded: Tensor, *, rate: Tensor | None = None) -> Tensor:
    r"""LOG as printed, :math:`\frac{2(k-1)}{s} (-\log z)`."""
    return 2 * log(logits, excluded, rate=rate)


@_upper_bound("exp-text", label="EXP (text)")
def exp_text(logits: Tensor, excluded: Tensor, *, rate: Tensor | None = None) -> Tensor:
    r"""EXP as printed, :math:`\frac{2(k-1)}{s} \exp(-z)`."""
    return 2 * exp(logits, excluded, rate=rate)


@register("clpl", family="partial-label", paper="Cour et al. 2011")
def clpl(
    logits: Tensor, excluded: Tensor, *, psi: Literal["squared-hinge", "logistic"] = "squared-hinge"
) -> Tensor:
    r"""Convex partial-label loss, :math:`\Psi(\bar f) + \sum_{y \in \bar Y} \Psi(-f_y)`.

    :math:`\bar f` is the mean logit of the candidates. :math:`\Psi(u) = \max(0, 1-u)^2`, or
    :math:`\log(1 + e^{-u})` for ``psi="logistic"``. Convex in the logits: for linear models.
    """
    if psi not in ("squared-hinge", "logistic"):
        raise ValueError(f"clpl knows psi='squared-hinge' and psi='logistic', not {psi!r}")
    left = 1 - excluded
    mean = (logits * left).sum(-1) / left.sum(-1).clamp(min=1)
    return _psi(mean, psi) + (_psi(-logits, psi) * excluded).sum(-1)


def _psi(margin: Tensor, psi: str) -> Tensor:
    return relu(1 - margin).square() if psi == "squared-hinge" else -logsigmoid(margin)


def graded_likelihood(logits: Tensor, costs: Tensor) -> Tensor:
    r"""Return :math:`-\log \sum_y p_y e^{-c_y}`, `costs` being ``[..., B, k]`` like the logits."""
    least = costs.amin(-1, keepdim=True)  # a row that no class explains would teach roundings
    return logits.logsumexp(-1) - (logits - (costs - least)).logsumexp(-1) + least.squeeze(-1)


@register(
    "likelihood", family="noise-aware", paper="the data model of Feng et al. 2020, with mistakes",
    label="Likelihood", graded=graded_likelihood,
)  # fmt: skip
def likelihood(
    logits: Tensor, excluded: Tensor, *, error: float | Tensor = 0.0, rate: Tensor | None = None
) -> Tensor:
    r"""Likelihood of what was said, :math:`-\log \sum_y p_y P(\bar Y \mid y)`, up to a constant.

    A share `error` of the sets holds the true class by mistake, else all sets of a size are equally
    likely: :math:`-\log(z + g (1-z))` with :math:`g = \frac{e (k-s)}{(1-e) s}`. At
    :math:`e = 0` it is LOG with the weight 1.
    """
    del rate  # all classes that answers leave possible explain them alike
    k, s = excluded.shape[-1], sizes(excluded)
    odds = log_odds(logits, excluded)
    wrong = error.squeeze(-1) if isinstance(error, Tensor) else error  # of stacked models [C, 1, 1]
    gap = (wrong * (k - s) / ((1 - wrong) * s)).log()
    return -torch.logaddexp(logsigmoid(odds), logsigmoid(-odds) + gap)


@register("cc", family="partial-label", paper="Feng et al. 2020b")
def cc(logits: Tensor, excluded: Tensor) -> Tensor:
    r"""CC, :math:`-\log z`: LOG without its weight.

    Also :func:`likelihood` without mistakes.
    """
    return -logsigmoid(log_odds(logits, excluded))


def answered(matrix: Tensor, excluded: Any, rate: Any) -> Tensor:
    r"""Unbiased risk from every answer, "yes" as well as "no".

    .. math:: \sum_y \ell_y \frac{1(y \in Z) - q}{1 - q}

    Z is what the answers about an example leave possible; a wrong class lies in it with
    probability q, the true one always. With S uniform of its size, the mean is the loss of the
    true label. Shapes are as in :func:`unbiased`: `excluded` is 1 for the classes outside Z, from
    :meth:`ruleout.Answers.per_item`, and `rate` is q, for several answers the product of theirs.
    """
    return unbiased(matrix, excluded, rate)


_single = partial(register, kind="single", family="decomposed", paper="Ishida et al. 2017")
Binary = Literal["sigmoid", "ramp"]

_COMPARISONS = 1 << 23  # of PC, made at a time; a GPU takes 8 times as many


@_single("free", paper="Ishida et al. 2019")
def free(logits: Tensor) -> Tensor:
    r"""FREE for one example (Eq. 3), :math:`\sum_y \ell_y - (k-1)\ell_c` with cross entropy."""
    loss = cce(logits)
    return loss.sum(-1, keepdim=True) - (logits.shape[-1] - 1) * loss


def _binary(margin: Tensor, binary: Binary) -> Tensor:
    """Binary loss with l(u) + l(-u) = 1: sigmoid 1/(1+e^u), or ramp ½ max(0, min(2, 1-u))."""
    if binary not in ("sigmoid", "ramp"):
        raise ValueError(f"the binary loss is 'sigmoid' or 'ramp', not {binary!r}")
    return (-margin).sigmoid() if binary == "sigmoid" else (1 + hardtanh(-margin)) / 2


def _pairwise(logits: Tensor, ruled_out: Tensor, binary: Binary) -> Tensor:
    """Compare all classes with the ruled-out one, ``[..., 1]``; scale and constant as released."""
    k = logits.shape[-1]
    return (k - 1) * _binary(logits - ruled_out, binary).sum(-1) - k * (k - 1) / 2 + (k - 1)


def _pc_one(logits: Tensor, excluded: Tensor, *, binary: Binary = "sigmoid") -> Tensor:
    """PC of rows that rule out exactly one class: k comparisons instead of k²."""
    return _pairwise(logits, (logits * excluded).sum(-1, keepdim=True), binary)


@_single("pc", one=_pc_one)
def pc(logits: Tensor, *, binary: Binary = "sigmoid") -> Tensor:
    r"""Pairwise comparison, :math:`(k-1)\sum_j \ell(f_j - f_c) - \frac{k(k-1)}{2} + (k-1)`.

    j runs over all classes, c included, as in the authors' code. All c take k² comparisons per
    example; past some millions they are made in parts, so that memory stays small.
    """
    return _class_by_class(partial(_pairwise, binary=binary), logits, logits.unsqueeze(-1))


def _class_by_class(compare: Callable[..., Tensor], logits: Tensor, own: Tensor) -> Tensor:
    """Return ``compare(logits[..., 1, k], own[..., k, *])``, ``[..., k]``, in parts if it is large.

    `own` has a row for each class. Parts are made once more for the gradient.
    """
    limit = _COMPARISONS * (1 if logits.device.type == "cpu" else 8)
    block = max(1, limit // max(logits.numel(), 1))
    if block >= logits.shape[-1]:
        return compare(logits.unsqueeze(-2), own)
    once_more = partial(checkpoint, compare, use_reentrant=False, preserve_rng_state=False)
    parts = own.split(block, -2)  # type: ignore[no-untyped-call]
    return torch.cat([once_more(logits.unsqueeze(-2), part) for part in parts], -1)


@_single("pc-ramp", label="PC (ramp)", one=partial(_pc_one, binary="ramp"))
def pc_ramp(logits: Tensor) -> Tensor:
    """Pairwise comparison with the ramp loss."""
    return pc(logits, binary="ramp")


@_single("ova")
def ova(logits: Tensor, *, binary: Binary = "sigmoid") -> Tensor:
    r"""One versus all, :math:`\frac{1}{k-1}\sum_{y \ne c} \ell(f_y) + \ell(-f_c)`, as printed.

    :math:`k-1` times its mean, less :math:`k-2`, is the ordinary one-versus-all risk.
    """
    yes, no = _binary(logits, binary), _binary(-logits, binary)
    return (yes.sum(-1, keepdim=True) - yes) / (logits.shape[-1] - 1) + no


@_single("ova-ramp", label="OVA (ramp)")
def ova_ramp(logits: Tensor) -> Tensor:
    """One versus all with the ramp loss."""
    return ova(logits, binary="ramp")


_surrogate = partial(register, kind="single", family="surrogate")


@_surrogate("scl-nl", paper="Chou et al. 2020", label="SCL-NL")
def scl_nl(logits: Tensor) -> Tensor:
    r"""SCL-NL, :math:`-\log(1 - p_c)`: Forward, wrong classes being alike, without its constant."""
    return -log_complement(logits)


@_surrogate("scl-exp", paper="Chou et al. 2020", label="SCL-EXP")
def scl_exp(logits: Tensor) -> Tensor:
    r"""SCL-EXP, :math:`\exp(p_c)`."""
    return softmax(logits).exp()


@_surrogate("l-uw", paper="Gao and Zhang 2021", label="L-UW")
def l_uw(logits: Tensor) -> Tensor:
    r"""L-UW, :math:`-\log q_c` with q the softmax of :math:`1 - p`."""
    return -log_softmax(-softmax(logits))


@_surrogate("l-w", paper="Gao and Zhang 2021", label="L-W")
def l_w(logits: Tensor) -> Tensor:
    r"""L-W, :math:`-(1 + \frac{1 - p_c}{k - 1}) \log q_c` with q the softmax of :math:`1 - p`."""
    p = softmax(logits)
    return -(1 + (1 - p) / (logits.shape[-1] - 1)) * log_softmax(-p)


@_surrogate("op", paper="Liu et al. 2023", label="OP")
def op(logits: Tensor) -> Tensor:
    r"""OP, :math:`-\log r_c` with r the softmax of :math:`-f`: it keeps the order of classes."""
    return -log_softmax(-logits)


@_surrogate("op-w", paper="Liu et al. 2023", label="OP-W")
def op_w(logits: Tensor) -> Tensor:
    r"""OP-W, :math:`-(p_c w_c + 10^{-6}) \log r_c` with w the softmax of :math:`1/r`.

    r is that of :func:`op`; :math:`1/r` is cut at :math:`10^{18}`, about where the release cuts it.
    There :math:`-\log r_c`, too, ends at 41.4 and teaches nothing beyond; here it goes on.
    """
    loss = op(logits)
    weight = loss.clamp(max=_FAR).exp().softmax(-1)
    return (softmax(logits) * weight + 1e-6) * loss


_FAR = math.log(1e18)  # beyond which 1/r grows no more


def _forward_one(logits: Tensor, excluded: Tensor, *, transition: Any = None) -> Tensor:
    """Forward of rows that rule out exactly one class, one number instead of k."""
    if transition is None:
        return math.log(logits.shape[-1] - 1) - logsigmoid(log_odds(logits, excluded))
    chance = log_chance(as_transition(transition, logits)).mT[excluded.argmax(-1)]
    return graded_likelihood(logits, -chance)


@_single("forward", paper="Yu et al. 2018", label="Forward", one=_forward_one)
def forward(logits: Tensor, *, transition: Any = None) -> Tensor:
    r"""Forward correction, :math:`-\log (p^\top Q)_c`.

    ``transition`` is Q, ``[k, k]``: row y holds how likely each class is ruled out when y is true.
    By default every wrong class is equally likely. The product with a given Q that is 0 on its
    diagonal alone is an ordinary matrix product: on a GPU it follows torch's TF32 setting. With
    further zeros it takes k² terms per example.
    """
    k = logits.shape[-1]
    if transition is None:
        return math.log(k - 1) - log_complement(logits)
    q = as_transition(transition, logits)
    mixed = _log_mixed if once(q, _positive) else _log_mixed_class_by_class
    return logits.logsumexp(-1, keepdim=True) - mixed(logits, q)


@register("cpe-f", family="noise-aware", paper="Lin and Lin 2023", label="CPE-F")
def cpe_f(logits: Tensor, excluded: Tensor, *, transition: Any = None) -> Tensor:
    r"""CPE-F, :math:`-\log \sum_y p_y P(\bar Y \mid y, s)`: Forward for sets of any size.

    Of all sets of a size one has a chance in proportion to :math:`\prod_{c \in \bar Y} Q_{yc}`, as
    in :class:`ruleout.labels.Transition`; for one class it is :func:`forward`. Without a matrix it
    is CC and a constant. The authors name the class whose row of Q is nearest to
    :math:`p^\top Q`, see :func:`nearest_row`; here it is the largest p.
    """
    return graded_likelihood(logits, -log_chances(excluded, as_transition(transition, logits)))


@_surrogate("cpe-i", paper="Lin and Lin 2023", label="CPE-I")
def cpe_i(logits: Tensor) -> Tensor:
    r"""CPE-I, :math:`-\log r_c` with r, the softmax of :math:`-f`, what is likely ruled out.

    The class whose row of an even Q is nearest to r is that of the smallest r, so of the largest f:
    then it is :func:`op`. With another Q, :func:`nearest_row` names it.
    """
    return -log_softmax(-logits)


def nearest_row(ruled_out: Tensor, transition: Any) -> Tensor:
    r"""Return the class whose row of Q is nearest to what is likely ruled out, ``[...]``.

    `ruled_out` ``[..., k]`` are probabilities: of CPE-I the softmax of :math:`-f`, of CPE-F
    :math:`p^\top Q`. Distances are sums of absolute differences, as in the authors' code.

    >>> nearest_row(torch.tensor([0.1, 0.8, 0.1]), [[0, 0.9, 0.1], [0.5, 0, 0.5], [0.9, 0.1, 0]])
    tensor(0)
    """
    q = as_transition(transition, ruled_out)
    return (ruled_out.unsqueeze(-2) - q).abs().sum(-1).argmin(-1)


def _log_mixed(logits: Tensor, q: Tensor) -> Tensor:
    """Return the log of exp(logits) @ q, the largest logit kept apart from the others.

    Where q is 0 off its diagonal, a class far below the second could be all that is left.
    """
    limits = torch.finfo(logits.dtype)
    with torch.no_grad():
        top = logits.argmax(-1, keepdim=True)
        second = logits.scatter(-1, top, limits.min).amax(-1, keepdim=True)
    best = logits.gather(-1, top)
    rivals = (logits.scatter(-1, top, second) - second).exp().scatter(-1, top, 0.0)
    others = second + (rivals @ q).clamp(min=limits.tiny).log()
    return torch.logaddexp(best + log_chance(q)[top.squeeze(-1)], others)


def _log_mixed_class_by_class(logits: Tensor, q: Tensor) -> Tensor:
    """Return the log of exp(logits) @ q, whatever q holds."""
    chance = log_chance(q).mT
    most = chance.amax(-1, keepdim=True)  # a class that is never ruled out would teach roundings
    mixed = _class_by_class(lambda f, own: (f + own).logsumexp(-1), logits, chance - most)
    return mixed + most.squeeze(-1)


def _positive(q: Tensor) -> bool:
    """Return whether q is above 0 off its diagonal."""
    return bool(((q > 0) | torch.eye(len(q), dtype=torch.bool, device=q.device)).all())


def as_transition(transition: Any, logits: Tensor) -> Tensor:
    """Return Q like the logits, checked where no GPU stalls; None: all wrong classes alike."""
    k = logits.shape[-1]
    if transition is None:
        return (1 - torch.eye(k, dtype=logits.dtype, device=logits.device)) / (k - 1)
    try:
        q = torch.as_tensor(transition).to(logits)
    except (TypeError, ValueError, RuntimeError) as error:
        say = f"give {k} × {k} probabilities"
        raise ValueError(f"the transition matrix is {brief(transition)}; {say}") from error
    if q.shape != (k, k):
        raise ValueError(f"the transition matrix is {tuple(q.shape)}, but there are {k} classes")
    if q.device.type == "cpu" and not ((q >= 0).all() and ((q.sum(-1) - 1).abs() <= 1e-4).all()):
        raise ValueError("each row of the transition matrix must hold probabilities that sum to 1")
    return q


Made = TypeVar("Made")
_MADE: Any = WeakIdKeyDictionary()  # tensor → its version, what was made of it


def once(q: Tensor, make: Callable[[Tensor], Made]) -> Made:
    """Return ``make(q)``, made once for a tensor that stays: a CUDA graph could not make it."""
    if q.requires_grad:
        return make(q)
    version, made = _MADE.get(q, (None, {}))
    if version != q._version:
        made = {}
        _MADE[q] = q._version, made
    if make not in made:
        made[make] = make(q)
    found: Made = made[make]
    return found
