"""The loop every PyTorch user would write: one model, one configuration, `torch.optim`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

import ruleout as ro
from ruleout.models import build

OPTIMIZERS: dict[str, Any] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "sgd-momentum": partial(torch.optim.SGD, momentum=0.9),
}


def plain_loop(
    x: Any,
    sets: ro.LabelSets,
    *,
    approach: str,
    model: str,
    configuration: dict[str, float],
    epochs: int,
    batch_size: int,
    optimizer: str = "adam",
    seed: int = 0,
    weight: Any = None,
    rates: Any = None,
    pace: Any = None,
    clip: float | None = None,
    drop_last: bool = False,
    dtype: torch.dtype = torch.float64,
    **model_options: Any,
) -> list[dict[str, Tensor]]:
    """Return the weights after every step."""
    options = {k: v for k, v in configuration.items() if k not in ("learning_rate", "weight_decay")}
    row, k = ro.approach(approach, **options), len(sets.classes)
    net = build(model, x.shape[1], k, seed=seed, **model_options).to(dtype)
    rate, decay = configuration["learning_rate"], configuration["weight_decay"]
    adam = OPTIMIZERS[optimizer](net.parameters(), lr=rate, weight_decay=decay)
    items: list[tuple[int, list[int]]] = []
    for i, excluded in enumerate(sets.excluded):
        classes = [int(c) for c in np.flatnonzero(excluded)]
        items += [(i, [c]) for c in classes] if row.form == "pairs-before" else [(i, classes)]
    rows_of, classes_of = sets.nonzero()
    each = np.ones(len(sets)) if weight is None else weight
    prior = np.bincount(classes_of, each[rows_of], k) / each[rows_of].sum()
    steps = []
    for epoch in range(1, epochs + 1):
        order = np.random.default_rng([seed, epoch]).permutation(len(items))
        starts = list(range(0, len(items), batch_size))
        starts = starts[:-1] if drop_last and len(items) % batch_size and starts[1:] else starts
        for step, start in enumerate(starts):
            batch = [items[j] for j in order[start : start + batch_size]]
            for group in adam.param_groups if pace is not None else ():
                done = epoch - 1 + step / len(starts)
                group["lr"] = rate * pace(done, done + 1 / len(starts))
            rows = [i for i, _ in batch]
            mask = torch.zeros(len(batch), k, dtype=dtype)
            for place, (_, classes) in enumerate(batch):
                mask[place, classes] = 1
            own = None if weight is None else torch.as_tensor(weight[rows], dtype=dtype)
            given = None if rates is None else torch.as_tensor(rates[rows], dtype=dtype)
            logits = net(torch.as_tensor(x[rows], dtype=dtype))
            adam.zero_grad()
            loss = row.batch_loss(logits, mask, prior=prior, weight=own, rate=given)
            loss.backward()  # type: ignore[no-untyped-call]
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
            adam.step()
            steps.append({n: p.detach().clone() for n, p in net.named_parameters()})
    return steps
