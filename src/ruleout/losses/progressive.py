r"""Losses that remember: a target for every row that moves from all candidates towards one.

After each epoch the target is revised from the logits that the row had when it was visited
(:class:`~ruleout.losses.loss_registry.Seen`). All are functions ``(logits, excluded, target) →
[..., B]``, most of them :math:`-\sum_j t_j \log p_j`; without a target they take the first one.
p is the softmax of the logits f, and z what it leaves to the candidates. Epochs count from 1.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ruleout.losses.functions import as_transition, graded_likelihood, log
from ruleout.losses.log_space import NEVER, log_chances, log_softmax, log_sums, softmax
from ruleout.losses.loss_registry import Memory, Seen, register

_SELECT, _PURIFY, _WINDOW, _CLEAN = 10, 20, 5, 10  # epochs, as released


def among(logits: Tensor, classes: Tensor) -> Tensor:
    """Return the probabilities of some classes (1 in `classes`) as if there were no others."""
    lowest = torch.finfo(logits.dtype).min
    return logits.masked_fill(classes == 0, lowest).softmax(-1) * classes


def evenly(excluded: Tensor) -> Tensor:
    r"""Return the first target, all candidates alike: :math:`1 / (k - s)`, 0 for what is out."""
    left = 1 - excluded
    return left / left.sum(-1, keepdim=True).clamp(min=1)


def _targeted(logits: Tensor, excluded: Tensor, target: Tensor | None) -> Tensor:
    known = evenly(excluded) if target is None else target
    return -(known * log_softmax(logits)).sum(-1)


def progress(seen: Seen) -> Tensor:
    r"""Return the probabilities of the candidates, which sum to 1: :math:`p_j / z`."""
    return among(seen.logits, 1 - seen.excluded)


def share_out(seen: Seen, *, balance: float | Tensor = 0.5) -> Tensor:
    r"""Progress towards classes that got less than their share, over all rows.

    .. math:: t_j \propto p_j \Big(\frac{r_j}{m_j}\Big)^{\text{balance}} \quad (j \notin \bar Y),

    m being the mean of :math:`p_j / z` over the rows, and r that of the first target, 1/(k-s) for
    each candidate: what a class gets if the classes of a set are equally frequent among its rows,
    as those of a picture's caption are. Where frequent classes take the rows of rare ones, epoch by
    epoch, this holds them back. Less than one row counts as one.
    """
    fewest = 1 / seen.logits.shape[-2]
    both = (evenly(seen.excluded), progress(seen))
    even, now = (one.mean(-2, keepdim=True).clamp(min=fewest) for one in both)
    return among(seen.logits + balance * (even / now).log(), 1 - seen.excluded)


def activate(seen: Seen) -> Tensor:
    r"""Return 1 for the candidate of largest :math:`|f_j - 1| f_j`; equal ones share it.

    What was ruled out never wins; in the authors' code it does where all candidates are below 0.
    """
    value = (seen.logits - 1).abs() * seen.logits
    value = value.masked_fill(seen.excluded > 0, -torch.inf)
    best = (value == value.amax(-1, keepdim=True)).to(value)
    return best / best.sum(-1, keepdim=True)


def leverage(seen: Seen) -> Tensor:
    r"""Return what sums to 1 on either side: :math:`p_j/z`, ruled out :math:`p_j/(1-z)`."""
    return progress(seen) + among(seen.logits, seen.excluded)


def purify(
    seen: Seen, *, theta: float | Tensor = 0.001, increase: float | Tensor = 0.001
) -> Tensor:
    r"""Progress among the candidates left; every fifth epoch from 21 on some of them leave.

    Those leave for which :math:`m_j < \theta \max_i m_i`, m being the mean of the last five epochs,
    which is also the next target of those left. Where fewer than one entry of 10,000 changed,
    `theta` grows by the share `increase`, up to 0.4. As in its authors' code, what left never
    returns; in that of Fuchs and Kalinke all candidates take part again in the epochs between.
    """
    kept, (n, k) = seen.kept, seen.logits.shape[-2:]
    if not kept:
        kept["left"] = (1 - seen.excluded).expand_as(seen.logits).clone()
        kept["sum"] = torch.zeros_like(seen.logits)
        kept["theta"] = torch.zeros_like(seen.logits[..., :1, :1]) + theta
    both = kept["left"] * (1 - seen.excluded)  # which may be cleaned by another, down to nothing
    both = torch.where(both.sum(-1, keepdim=True) > 0, both, kept["left"])
    now, place = among(seen.logits, both), seen.epoch - 1
    kept["sum"] += now
    if place % _WINDOW:
        return now
    mean, kept["sum"] = kept["sum"], torch.zeros_like(now)
    if place < _PURIFY:
        return now
    stay = (mean >= kept["theta"] * mean.amax(-1, keepdim=True)).to(now) * kept["left"]
    few = (stay != kept["left"]).sum((-2, -1), keepdim=True) < 0.0001 * n * k
    grown = torch.where(few & (kept["theta"] < 0.4), kept["theta"] * (1 + increase), kept["theta"])
    kept["left"], kept["theta"] = stay, grown
    return mean * stay / (mean * stay).sum(-1, keepdim=True).clamp(min=torch.finfo(now.dtype).tiny)


def select(
    seen: Seen, *, threshold: float | Tensor = 0.9, strength: float | Tensor = 2.0
) -> Tensor:
    r"""Trust confident rows: CroSel's selection, of one model by itself.

    From epoch 10 on a row is selected if its prediction y is a candidate, was the same in the last
    three epochs, and their mean probability is above `threshold`. With r the share of such rows,

    .. math:: t_j = \frac{1(\text{selected}, j = y)}{r} + \text{strength}\, (1 - r)\, p_j
       \quad (j \notin \bar Y),

    without the first part up to :math:`r = 0.05`. The paper has two networks that select for each
    other, and CC until then, here :func:`progress`; its authors' code makes :math:`p_j` sum to 1
    over the candidates, that of Fuchs and Kalinke does not, nor is it done here.
    """
    now, kept = softmax(seen.logits), seen.kept
    last, before = kept.get("last", now), kept.get("before", now)
    kept["before"], kept["last"] = last, now
    if seen.epoch < _SELECT:
        return progress(seen)
    mean, top = (now + last + before) / 3, now.argmax(-1, keepdim=True)
    same = (top == last.argmax(-1, keepdim=True)) & (top == before.argmax(-1, keepdim=True))
    hard = torch.zeros_like(now).scatter_(-1, top, 1.0)
    sure = (mean.amax(-1, keepdim=True) > threshold) & same
    chosen = hard * sure * (1 - seen.excluded)
    share = chosen.sum((-2, -1), keepdim=True) / now.shape[-2]
    chosen = torch.where(share > 0.05, chosen / share.clamp(min=0.05), 0)
    return chosen + strength * (1 - share) * now * (1 - seen.excluded)


def conformal_candidates(seen: Seen, alpha: float | Tensor = 0.05) -> Tensor:
    r"""Return 1 for the candidates that conformal prediction does not reject.

    Rows with one candidate calibrate, or, where these are fewer than a fifth of all or than 100, so
    many random ones: their scores are :math:`a_i = 1 - \max_{j \notin \bar Y_i} p_{ij}`. In epoch e
    class j of a row has the p-value

    .. math:: \frac{1 + \#\{i : a_i \ge 1 - p_j (1 - \epsilon)\}}{1 + \#\{i\}},
       \quad \epsilon = 0.5^{e - 10},

    and stays if it is above `alpha` plus the mean probability of what was ruled out; a row keeps
    all candidates if none would stay. All rows train, their logits are those of the last visit,
    and that mean is over all rows; the authors hold calibrating rows out where there are 1,000 for
    each class, score them before the epoch, without dropout, and take the mean of a batch.
    """
    p, left = softmax(seen.logits), (1 - seen.excluded).expand_as(seen.logits)
    n = p.shape[-2]
    count = min(n, max(100, n // 5))
    single = left.sum(-1) == 1
    drawn = torch.zeros(n, dtype=torch.bool)
    drawn[torch.randperm(n, generator=torch.Generator().manual_seed(0))[:count]] = True
    enough = single.sum(-1, keepdim=True) >= count
    rows = torch.where(enough, single, drawn.to(p.device))
    score = (1 - (p * left).amax(-1)).masked_fill(~rows, -1).sort(-1).values  # no score is below 0
    own = 1 - p * (1 - 0.5 ** (seen.epoch - _CLEAN))
    at_least = n - torch.searchsorted(score, own.flatten(-2)).view_as(own)
    beta = (p * seen.excluded).sum(-1).mean(-1)[..., None, None]
    chance = (at_least + 1) / (rows.sum(-1)[..., None, None] + 1)
    stay = left * (chance > alpha + beta)
    return torch.where(stay.sum(-1, keepdim=True) > 0, stay, left)


def _cleaned(revise: Callable[[Seen], Tensor]) -> Callable[..., Tensor]:
    """Return what revises targets with the candidates that conformal prediction leaves."""

    def clean(seen: Seen, *, alpha: float | Tensor = 0.05) -> Tensor:
        if seen.epoch <= _CLEAN:
            return revise(seen)
        return revise(seen._replace(excluded=1 - conformal_candidates(seen, alpha)))

    return clean


def _costs(excluded: Tensor, *, transition: Any = None) -> Tensor:
    """Return what sets cost, of random ones but for what all classes share."""
    if transition is None:
        return -NEVER * excluded
    return -log_chances(excluded, as_transition(transition, excluded))


def learn_transition(seen: Seen, *, transition: Any = None, wait: int | Tensor = 1) -> Tensor:
    r"""Return :math:`-\log P(\bar Y \mid y, s)` under a matrix Q that is learnt, epoch by epoch.

    From epoch `wait` on Q is brought to what is likely now, :math:`p_y P(\bar Y \mid y)` (a step of
    EM, to whose counts of a class what Q said before adds one row). It begins even off the
    diagonal, or as `transition`; what is 0 stays 0. The authors follow the gradient of Q's
    logarithms instead.
    """
    kept, k = seen.kept, seen.logits.shape[-1]
    if not kept:
        first = as_transition(transition, seen.logits)
        kept["transition"] = first.flatten().expand(*seen.logits.shape[:-2], 1, k * k).clone()
    q = kept["transition"].reshape(*seen.logits.shape[:-2], k, k)
    likely = (seen.logits - seen.target).softmax(-1)
    says = (seen.excluded.sum(-1, keepdim=True) > 0).to(likely)
    now = torch.as_tensor(wait, device=q.device) <= seen.epoch
    q = torch.where(now, _scaled(q, likely * says, seen.excluded), q)
    kept["transition"] = q.flatten(-2).unsqueeze(-2)
    return -log_chances(seen.excluded, q)


def _scaled(q: Tensor, likely: Tensor, excluded: Tensor) -> Tensor:
    """Bring how often Q expects classes to be ruled out nearer to how often they likely were.

    How often is expected is the slope of the logarithm of what all sets of a size sum up to; one
    class at a time, counts themselves come out.
    """
    out = likely.mT @ excluded
    with torch.enable_grad():
        slope = q.detach().double().log().clamp(min=NEVER).requires_grad_()
        own = torch.nn.functional.one_hot(excluded.sum(-1).long(), q.shape[-1] + 1).to(likely)
        rows = (likely.mT @ own).double()  # [..., y, s]
        total = (rows * log_sums(slope).mT).sum()
        (expected,) = torch.autograd.grad(total, slope)
    found = q * (out + _ROWS * q) / (expected.to(q) + _ROWS * q).clamp(min=1e-30)
    return found / found.sum(-1, keepdim=True)


_ROWS = 1.0  # which tell as much about a row of Q as was known before


_progressive = partial(register, family="progressive")


@register(
    "cpe-t", family="noise-aware", paper="Lin and Lin 2023", label="CPE-T",
    memory=Memory(_costs, learn_transition),
)  # fmt: skip
def cpe_t(
    logits: Tensor, excluded: Tensor, *, transition: Any = None, target: Tensor | None = None
) -> Tensor:
    r"""CPE-T, :math:`-\log \sum_y p_y P(\bar Y \mid y, s)` with a matrix Q that is learnt as well.

    :func:`learn_transition` says how; its arguments are options. Q is good where the model that
    takes sets as random is mostly right; :func:`ruleout.find_origin` needs less.
    """
    known = _costs(excluded, transition=transition) if target is None else target
    return graded_likelihood(logits, known)


@_progressive("proden", paper="Lv et al. 2020", label="PRODEN", memory=Memory(evenly, progress))
def proden(logits: Tensor, excluded: Tensor, *, target: Tensor | None = None) -> Tensor:
    r"""PRODEN, :math:`-\sum_j t_j \log p_j`, with :math:`t_j = p_j / z` of the epoch before."""
    return _targeted(logits, excluded, target)


@_progressive(
    "balanced-proden", paper="Lv et al. 2020, with shares as in Wang et al. 2022",
    label="PRODEN, balanced", memory=Memory(evenly, share_out),
)  # fmt: skip
def balanced_proden(logits: Tensor, excluded: Tensor, *, target: Tensor | None = None) -> Tensor:
    r"""PRODEN, :math:`-\sum_j t_j \log p_j`, :math:`t_j \propto p_j \sqrt{r_j / m_j}` an epoch ago.

    m is the share of all rows that class j has, r what their sets give it (:func:`share_out`, which
    has the option `balance`; 0 is PRODEN). Wang et al. 2022 (SoLar) bring targets to shares that
    they estimate from predictions, by optimal transport.
    """
    return _targeted(logits, excluded, target)


@_progressive("rc", paper="Feng et al. 2020b", memory=Memory(evenly, progress, after=True))
def rc(logits: Tensor, excluded: Tensor, *, target: Tensor | None = None) -> Tensor:
    r"""RC, :math:`-\sum_j t_j \log p_j`: as PRODEN, p being looked at after the step.

    So each step makes a second forward pass, with batch norm and dropout as in the step, like the
    authors' code.
    """
    return _targeted(logits, excluded, target)


@_progressive("cavl", paper="Zhang et al. 2022", memory=Memory(evenly, activate))
def cavl(logits: Tensor, excluded: Tensor, *, target: Tensor | None = None) -> Tensor:
    r"""CAVL, :math:`-\log p_t`, t the candidate of largest :math:`|f_j - 1| f_j` an epoch ago.

    f is looked at before the step; the authors' code makes a second pass after it.
    """
    return _targeted(logits, excluded, target)


@_progressive("pop", paper="Xu et al. 2023", memory=Memory(evenly, purify))
def pop(logits: Tensor, excluded: Tensor, *, target: Tensor | None = None) -> Tensor:
    r"""POP, :math:`-\sum_j t_j \log p_j`: as PRODEN, unlikely candidates leave for good.

    Which ones, :func:`purify` says; its arguments are options.
    """
    return _targeted(logits, excluded, target)


@_progressive("crosel", paper="Tian et al. 2024", label="CroSel", memory=Memory(evenly, select))
def crosel(logits: Tensor, excluded: Tensor, *, target: Tensor | None = None) -> Tensor:
    r"""CroSel's selection, :math:`-\sum_j t_j \log p_j`: rows it is sure of learn one class.

    Which ones, :func:`select` says; its arguments are options.
    """
    return _targeted(logits, excluded, target)


@_progressive(
    "lws", paper="Wen et al. 2021",
    memory=Memory(lambda excluded: torch.full_like(excluded, 1 / excluded.shape[-1]), leverage),
)  # fmt: skip
def lws(
    logits: Tensor,
    excluded: Tensor,
    *,
    target: Tensor | None = None,
    beta: float | Tensor = 1.0,
) -> Tensor:
    r"""LWS, :math:`\sum_{j \notin \bar Y} t_j \sigma(-f_j) + \beta \sum_{\bar Y} t_j \sigma(f_j)`.

    t are the probabilities of an epoch ago, which sum to 1 on either side (:func:`leverage`). They
    are looked at before the step; the authors' last code makes a second pass after it.
    """
    known: Tensor | float = 1 / logits.shape[-1] if target is None else target
    side = (1 - excluded) * (-logits).sigmoid() + beta * excluded * logits.sigmoid()
    return (known * side).sum(-1)


def shares(excluded: Tensor) -> Tensor:
    r"""Return how frequent classes are, ``[..., 1, k]``, drawn towards equal shares.

    By what n rows rule out :math:`\hat\pi_c` is the mean of :math:`v_{ic} = 1 - \frac{k-1}{s_i} 1(c
    \in \bar Y_i)`, without bias; of what it is off equal shares as much is believed as lies beyond
    its variance (James and Stein 1961).
    """
    k, s = excluded.shape[-1], excluded.sum(-1, keepdim=True)
    told = (s > 0).to(excluded)
    value, n = 1 - (k - 1) / s.clamp(min=1) * excluded, told.sum(-2, keepdim=True).clamp(min=1)
    mean = (told * value).sum(-2, keepdim=True) / n
    noise = (told * (value - mean).square()).sum((-2, -1), keepdim=True) / n.square()
    off = mean - 1 / k
    believed = 1 - noise / off.square().sum(-1, keepdim=True).clamp(min=1e-9)
    found = (1 / k + believed.clamp(min=0) * off).clamp(min=0.1 / k)
    return found / found.sum(-1, keepdim=True)


def self_teach(seen: Seen, *, strength: float | Tensor = 0.1) -> Tensor:
    r"""Teach rows that rule nothing out what the model says of them, sharpened.

    From epoch 10 on their target is :math:`t_j \propto (\bar p_j \pi_j / \bar p_{\cdot j})^2`:
    :math:`\bar p` is a moving mean over epochs, :math:`\bar p_{\cdot j}` its mean over those rows.
    So classes are as frequent there as sets say, :math:`\pi` (:func:`shares`), and none takes all.
    Together they count `strength` times as much as the rows that rule something out.
    """
    now, kept = softmax(seen.logits), seen.kept
    kept["mean"] = 0.7 * kept["mean"] + 0.3 * now if kept else now.clone()
    k, s = now.shape[-1], seen.excluded.sum(-1, keepdim=True)
    told = (s > 0).to(now)
    silent = 1 - told
    if seen.epoch < _SELECT:
        return torch.zeros_like(now)
    count = silent.sum(-2, keepdim=True).clamp(min=1)
    often = (silent * kept["mean"]).sum(-2, keepdim=True) / count
    sharp = (kept["mean"] * shares(seen.excluded) / often.clamp(min=1e-6)).square()
    sharp = sharp / sharp.sum(-1, keepdim=True).clamp(min=torch.finfo(now.dtype).tiny)
    weighs = (told * (k - 1) / s.clamp(min=1)).sum(-2, keepdim=True)
    return silent * sharp * (strength * weighs / count)


@_progressive(
    "log-unlabelled", paper="Feng et al. 2020, with the targets of Berthelot et al. 2020",
    label="LOG, unlabelled rows",
    memory=Memory(torch.zeros_like, self_teach, unlabelled=True),
)  # fmt: skip
def log_unlabelled(logits: Tensor, excluded: Tensor, *, target: Tensor | None = None) -> Tensor:
    r"""LOG, and :math:`-\sum_j t_j \log p_j` for rows that rule nothing out.

    Which targets, :func:`self_teach` says; its argument is an option. At 0, and where every row
    rules something out, it is LOG.
    """
    told = excluded.sum(-1) > 0
    found = torch.where(told, log(logits, excluded), 0)
    return found if target is None else found + _targeted(logits, excluded, target)


def _conformal(name: str, label: str, revise: Callable[[Seen], Tensor]) -> Callable[..., Any]:
    paper, memory = "Fuchs and Kalinke 2025", Memory(evenly, _cleaned(revise))
    return _progressive(
        f"conformal-{name}", paper=paper, label=f"{label}, conformal", memory=memory
    )


@_conformal("crosel", "CroSel", select)
@_conformal("pop", "POP", purify)
@_conformal("proden", "PRODEN", progress)
def conformal(logits: Tensor, excluded: Tensor, *, target: Tensor | None = None) -> Tensor:
    r""":math:`-\sum_j t_j \log p_j` among candidates that conformal prediction leaves.

    From epoch 11 on they are :func:`~ruleout.losses.conformal_candidates`, found anew each time;
    those that :func:`purify` took away do not return. With CroSel's selection the authors clean
    later, with both networks, and make p sum to 1.
    """
    return _targeted(logits, excluded, target)
