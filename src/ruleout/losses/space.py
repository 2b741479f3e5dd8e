"""The few pieces of log-space arithmetic that the losses are made of.

`excluded` is 0 or 1 in the dtype of the logits, so that masks multiply instead of branching.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

__all__ = ["log_complement", "log_odds", "sizes"]


def sizes(excluded: Tensor) -> Tensor:
    """Count the classes ruled out, ``[..., B]``; a row that rules nothing out counts as 1."""
    return excluded.sum(-1).clamp(min=1)


def log_odds(logits: Tensor, excluded: Tensor) -> Tensor:
    r"""Return :math:`\log z - \log(1-z)`, z the probability left on the candidates.

    Both log-sum-exps share one exponential, each class shifted by the maximum of its own side:
    exact and finite when either side holds next to nothing.
    """
    low = torch.finfo(logits.dtype).min / 4
    fixed = logits.detach()
    top_in = (fixed + low * excluded).amax(-1, keepdim=True)
    top_out = (fixed + low * (1 - excluded)).amax(-1, keepdim=True)
    mass = (logits - torch.lerp(top_in, top_out, excluded)).exp()
    mass_in = (mass * (1 - excluded)).sum(-1)
    mass_out = (mass * excluded).sum(-1)
    tiny = torch.finfo(logits.dtype).tiny  # reached only by rows that rule out nothing or all
    odds = mass_in.clamp(min=tiny).log() - mass_out.clamp(min=tiny).log()
    return (top_in - top_out).squeeze(-1) + odds


def log_complement(logits: Tensor) -> Tensor:
    r"""Return :math:`\log(1-p_c)` for every class c, ``[..., B, k]``.

    Only the largest probability can be close to 1; for it the others are summed instead.
    """
    p = logits.softmax(-1)
    top = torch.zeros_like(p).scatter_(-1, logits.detach().argmax(-1, keepdim=True), 1.0)
    return torch.log1p(-p * (1 - top)) + top * logsigmoid(log_odds(logits, top)).unsqueeze(-1)
