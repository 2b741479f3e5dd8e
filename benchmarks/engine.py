"""A stacked grid against the loops people write: ratios from one run.

    python benchmarks/engine.py                     # CPU
    python benchmarks/engine.py --device cuda       # also the times on a GPU
    python benchmarks/engine.py --growth            # how the time of an epoch grows
    python benchmarks/engine.py --precisions        # TF32 against float32 on Fashion-MNIST
    python benchmarks/engine.py --convolutions      # a ResNet on a GPU: images in a second
    python benchmarks/engine.py --bf16              # the same ResNet, bf16 against float32

"Per run" is the time in which one configuration is trained for one epoch.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from common import record
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import ruleout as ro
from ruleout.models import build
from ruleout.training import Watch, fit_grid, gpu_batch_norm, gpu_convolutions, stack

BATCH, K = 256, 10
CASES = {  # name: (rows, features, model, least ratio to the plain loop, to the DataLoader loop)
    "digits linear": (1797, 64, "linear", 10.0, 10.0),
    "60,000 × 784 linear": (60_000, 784, "linear", 5.0, 10.0),
    "digits MLP": (1797, 64, "mlp", 1.5, None),
    "60,000 × 784 MLP": (60_000, 784, "mlp", 1.0, None),
}


def data(n: int, d: int, trials: int = 1, k: int = K, law: Any = "released") -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    x = random.random((n, d), dtype=np.float32)
    y = random.integers(0, k, n)
    return x, [ro.draw(y, classes=k, law=law, seed=seed) for seed in range(trials)]


def log_loss(logits: Tensor, excluded: Tensor) -> Tensor:
    """LOG as a user would write it."""
    left = logits.log_softmax(-1).masked_fill(excluded, -torch.inf).logsumexp(-1)
    return ((K - 1) / excluded.sum(-1) * -left).mean()


def plain_epochs(x: Tensor, excluded: Tensor, model: str, device: str) -> Iterator[None]:
    """One model, one configuration: yields after every epoch."""
    net = build(model, x.shape[1], K, seed=0).to(device)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
    while True:
        order = torch.randperm(len(x), device=device)
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            step(net, adam, x[rows], excluded[rows])
        yield


def step(net: nn.Module, adam: torch.optim.Adam, x: Tensor, excluded: Tensor) -> None:
    loss = log_loss(net(x), excluded)
    adam.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    adam.step()


class Rows(Dataset[tuple[Tensor, Tensor]]):
    """Sample by sample, the way of the closest peer."""

    def __init__(self, x: Tensor, excluded: Tensor) -> None:
        self.x, self.excluded = x, excluded

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        return self.x[row], self.excluded[row]


def loader_epochs(x: Tensor, excluded: Tensor, model: str) -> Iterator[None]:
    net = build(model, x.shape[1], K, seed=0)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
    loader = DataLoader(Rows(x, excluded), BATCH, shuffle=True)
    while True:
        for rows, out in loader:
            step(net, adam, rows, out)
        yield


def timed(epochs: Iterator[None], seconds: float) -> float:
    """Return the best time of an epoch; the first one only warms up."""
    next(epochs)
    times: list[float] = []
    while sum(times) < seconds or len(times) < 2:
        start = time.perf_counter()
        next(epochs)
        times.append(time.perf_counter() - start)
    return min(times)


def stacked_epoch(x: Any, sets: Any, model: str, epochs: int, **options: Any) -> tuple[float, Any]:
    """Return the best time in which the whole 36-grid takes one epoch, and the fit."""
    moments = [time.perf_counter()]
    fit = fit_grid(
        x,
        sets,
        model=model,
        grid="paper",
        epochs=epochs,
        every=epochs,
        progress=lambda *_: moments.append(time.perf_counter()),
        **options,
    )
    ends = np.array(moments[1:]).reshape(-1, epochs)  # of each block, of each epoch
    return float(np.diff(ends, axis=1).min(1).sum()), fit


def matrix_rate() -> float:
    """Return the FLOP/s of matrix products in the shape of the MLP's first layer."""
    x, w = torch.rand(BATCH, 784), torch.rand(784, 500)
    best = np.inf
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(20):
            x @ w
        best = min(best, (time.perf_counter() - start) / 20)
    return 2 * BATCH * 784 * 500 / best


def cpu(seconds: float) -> list[dict[str, Any]]:
    found = []
    for name, (n, d, model, wanted, loader_wanted) in CASES.items():
        x, sets = data(n, d)
        excluded = torch.from_numpy(sets[0].excluded)
        rows = torch.from_numpy(x)
        plain, stacked, loader = [], [], []
        for _ in range(2):  # in turns: the machine is noisy
            plain.append(timed(plain_epochs(rows, excluded, model, "cpu"), seconds))
            epochs = 12 if n < 10_000 else 3 if model == "linear" else 2
            took, fit = stacked_epoch(x, sets, model, epochs)
            stacked.append(took / 36)
            if loader_wanted is not None:
                loader.append(timed(loader_epochs(rows, excluded, model), seconds))
        row = {
            "case": name,
            "stacked ms": round(1e3 * min(stacked), 3),
            "plain ms": round(1e3 * min(plain), 3),
            "plain / stacked": round(min(plain) / min(stacked), 2),
            "at least": wanted,
            "loader / stacked": round(min(loader) / min(stacked), 1) if loader else None,
            "loader / plain": round(min(loader) / min(plain), 2) if loader else None,
            "stack": fit.record["stack"],
        }
        if name == "60,000 × 784 MLP":
            steps = -(-n // BATCH)
            flops = steps * BATCH * (4 * d * 500 + 6 * 500 * K)
            rate = matrix_rate()
            row["GFLOP/s"] = round(flops / min(stacked) / 1e9, 1)
            row["matrix products GFLOP/s"] = round(rate / 1e9, 1)
            row["share of the matrix rate"] = round(flops / min(stacked) / rate, 3)
        print(row, flush=True)
        found.append(row)
    return found


def cuda(epochs: int, plain_epochs_timed: int) -> list[dict[str, Any]]:
    """Return the times of 180 models (36 configurations × 5 trials) on a GPU."""
    x, sets = data(60_000, 784, trials=5)
    rows, excluded = torch.from_numpy(x).cuda(), torch.from_numpy(sets[0].excluded).cuda()
    found = []
    for model, precision in (("linear", "tf32"), ("mlp", "tf32"), ("mlp", "float32")):
        options: dict[str, Any] = {
            "device": "cuda",
            "precision": precision,
            "model": model,
            "grid": "paper",
        }
        start = time.perf_counter()
        fit_grid(x, sets, epochs=25, every=25, moments=False, **options)  # compiles
        first = time.perf_counter() - start
        torch.cuda.synchronize()
        start = time.perf_counter()
        fit = fit_grid(x, sets, epochs=epochs, every=epochs, moments=False, **options)
        took = time.perf_counter() - start
        plain = plain_epochs(rows, excluded, model, "cuda")
        next(plain)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(plain_epochs_timed):
            next(plain)
        torch.cuda.synchronize()
        one = (time.perf_counter() - start) / plain_epochs_timed * epochs
        steps = epochs * -(-60_000 // BATCH)
        weights = 180 * fit.record["parameters"]
        flops = (
            steps * 180 * BATCH * (4 * 784 * 500 + 6 * 500 * K if model == "mlp" else 4 * 784 * K)
        )
        peak = {"tf32": 494e12, "float32": 67e12}[precision]
        row = {
            "models": f"180 {model}",
            "precision": precision,
            "epochs": epochs,
            "seconds": round(took, 2),
            "first 25 epochs, compiling": round(first, 2),
            "update floor s (28 bytes, 4.8 TB/s)": round(28 * weights * steps / 4.8e12, 2),
            "arithmetic floor s": round(flops / peak, 2),
            "one plain eager run s": round(one, 1),
            "180 plain / stacked": round(180 * one / took),
            "stack": fit.record["stack"],
        }
        print(row, flush=True)
        found.append(row)
    return found


def precisions(epochs: int) -> list[dict[str, Any]]:
    """Return the test accuracy on Fashion-MNIST for float32, TF32 and bf16, five trials each."""
    found = []
    fashion = ro.datasets.load("fashion-mnist")
    assert fashion.x_test is not None
    sets = [ro.draw(fashion.y_train, classes=10, law="released", seed=t) for t in range(5)]
    watch = {"test": Watch(fashion.y_test, x=fashion.x_test)}
    grid = {"learning_rate": [1e-4, 1e-3], "weight_decay": [1e-5]}
    for model in ("linear", "mlp"):
        for precision in ("float32", "tf32", "bf16"):
            fit = fit_grid(
                fashion.x_train,
                sets,
                model=model,
                grid=grid,
                epochs=epochs,
                every=epochs,
                tail=10,
                device="cuda",
                precision=precision,
                watch=watch,
                moments=False,
            )
            scores = 100 * fit.history["test/accuracy"][..., -10:].mean(-1)
            for place, one in enumerate(fit.configurations):
                row = {
                    "model": model,
                    "learning rate": one["learning_rate"],
                    "precision": precision,
                    "mean": round(float(scores[:, place].mean()), 3),
                    "std": round(float(scores[:, place].std(ddof=1)), 3),
                    "trials": np.round(scores[:, place], 2).tolist(),
                }
                print(row, flush=True)
                found.append(row)
    return found


def growth() -> list[dict[str, Any]]:
    """Return the time of an epoch against n, d, k, the size of the grid and s."""

    def one(
        n: int = 8192, d: int = 128, k: int = 10, grid: int = 8, s: int = 3, approach: str = "log"
    ) -> float:
        x, sets = data(n, d, k=k, law=s)
        rates = {"learning_rate": np.geomspace(1e-5, 1e-2, grid).tolist()}
        moments: list[float] = []
        tell: Callable[..., None] = lambda *_: moments.append(time.perf_counter())  # noqa: E731
        fit_grid(
            x, sets, approach=approach, grid=rates, epochs=5, every=5, stack=grid, progress=tell
        )
        return float(np.min(np.diff(moments)))

    sweeps: dict[str, tuple[str, list[int]]] = {
        "n": ("log", [2048, 4096, 8192, 16384, 32768, 65536]),
        "d": ("log", [64, 128, 256, 512, 1024, 2048]),
        "k": ("log", [5, 10, 20, 50, 100, 200]),
        "grid": ("log", [1, 2, 4, 8, 16, 36]),
        "s": ("log", [1, 2, 3, 5, 7, 9]),
        "s (before shuffle)": ("nn-before", [1, 2, 3, 5, 7, 9]),
    }
    found = []
    for name, (approach, values) in sweeps.items():
        for value in values:
            best = min(one(**{name.split()[0]: value}, approach=approach) for _ in range(2))
            found.append({"against": name, "value": value, "ms": round(1e3 * best, 3)})
            print(found[-1], flush=True)
    return found


IMAGE = (3, 32, 32)
_RUNS = [  # models trained side by side, precision, compiled, by kernels of our own
    (1, "float32", False, False), (1, "tf32", False, False), (1, "bf16", False, False),
    (1, "bf16", False, True), (1, "bf16", True, True), (8, "bf16", False, False),
    (8, "bf16", False, True), (8, "bf16", True, True), (8, "bf16", True, False),
]  # fmt: skip


def eager_images(x: Tensor, excluded: Tensor, model: str, bf16: bool) -> Iterator[None]:
    """The loop that most people write; with `bf16` also autocast and channels last."""
    net = build(model, IMAGE, K, seed=0).cuda()
    if bf16:
        net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        x = x.contiguous(memory_format=torch.channels_last)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
    while True:
        order = torch.randperm(len(x), device=x.device)
        for rows in torch.split(order, BATCH):
            with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
                logits = net(x[rows])
            loss = log_loss(logits.float(), excluded[rows])
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        torch.cuda.synchronize()
        yield


def convolutions(model: str, n: int = 50 * BATCH, epochs: int = 4) -> list[dict[str, Any]]:
    """Return images in a second, summed over the models that train side by side."""
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (n, *IMAGE)).astype(np.float32) / np.float32(255)
    sets = ro.draw(random.integers(0, K, n), classes=K, seed=0)
    given, excluded = torch.from_numpy(x).cuda(), torch.from_numpy(sets.excluded).cuda()
    eager = {
        bf16: round(n / timed(eager_images(given, excluded, model, bf16), 1.0))
        for bf16 in (False, True)
    }
    found: list[dict[str, Any]] = []
    kernels: list[Any] = [gpu_convolutions, gpu_batch_norm]
    serve = [one.serve for one in kernels]
    for models, precision, compiled, own in _RUNS:
        for module, ours in zip(kernels, serve, strict=True):
            module.serve = ours if own else lambda *_: None
        stack._LONGER["cuda"] = stack._LONG = 0 if compiled else 1 << 60
        moments = [time.perf_counter()]

        def tell(*_: int, moments: list[float] = moments) -> None:
            torch.cuda.synchronize()
            moments.append(time.perf_counter())

        fit = fit_grid(
            x, sets, model=model, grid={"learning_rate": list(np.geomspace(1e-4, 1e-2, models))},
            epochs=epochs, every=epochs, device="cuda", precision=precision, progress=tell,
        )  # fmt: skip
        rate = n * models / float(np.diff(moments)[1:].min())
        found.append(
            {
                "models": models,
                "precision": precision,
                "compiled": compiled,
                "own kernels": own,
                "images/s": round(rate),
                "eager float32 images/s": eager[False],
                "eager bf16 images/s": eager[True],
                "ratio to eager": round(rate / max(eager.values()), 2),
                "first epoch s": round(moments[1] - moments[0], 2),
                "stack": fit.record["stack"],
            }
        )
        print(found[-1], flush=True)
    return found


def cifar(file: str) -> tuple[Any, Any, Any, Any]:
    """Return images and classes to train on and to test on; `file` is a part as NPZ of bytes."""
    if not file:
        held = ro.datasets.load("cifar10")
        assert held.test is not None
        (x, y), (xt, yt) = held.train, held.test
        return x[:10_000], y[:10_000], xt, yt
    with np.load(file) as part:
        mean, std = np.array([0.4914, 0.4822, 0.4465]), np.array([0.247, 0.243, 0.261])
        table = ((np.arange(256) / 255 - mean[:, None]) / std[:, None]).astype(np.float32)
        channel = np.arange(3)[:, None, None]
        x, xt = (table[channel, part[name]] for name in ("x", "x_test"))
        return x, part["y"], xt, part["y_test"]


def bf16(file: str, epochs: int, trials: int = 8) -> list[dict[str, Any]]:
    """Return the accuracies of a ResNet after the same trials in float32 and in bf16."""
    x, y, xt, yt = cifar(file)
    sets = [ro.draw(y, classes=K, law="released", seed=seed) for seed in range(trials)]
    stack._LONGER["cuda"] = 1 << 60
    right, took = {}, {}
    for precision in ("float32", "bf16"):
        fit = fit_grid(
            x, sets, model="resnet32", shape=IMAGE, epochs=epochs, every=epochs, device="cuda",
            precision=precision, watch={"test": Watch(yt, x=xt)},
        )  # fmt: skip
        right[precision] = 100 * fit.history["test/accuracy"][:, 0, -1]
        took[precision] = fit.record["seconds"]
        print(precision, right[precision].round(2), took[precision], flush=True)
    gap = right["bf16"] - right["float32"]
    return [
        {
            "rows": len(y),
            "test rows": len(yt),
            "epochs": epochs,
            "trials": trials,
            **{f"{name} accuracy": round(float(value.mean()), 2) for name, value in right.items()},
            **{f"{name} s": round(value, 1) for name, value in took.items()},
            "bf16 - float32": round(float(gap.mean()), 2),
            "standard error": round(float(gap.std(ddof=1) / np.sqrt(trials)), 2),
        }
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--precisions", action="store_true")
    parser.add_argument("--convolutions", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--cifar", default="", help="a part of CIFAR-10 as NPZ")
    parser.add_argument("--seconds", type=float, default=2.0, help="per loop")
    parser.add_argument("--epochs", type=int, default=250, help="on a GPU")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    if given.convolutions:
        name, rows = "engine-convolutions", convolutions("resnet32")
    elif given.bf16:
        name, rows = "engine-bf16", bf16(given.cifar, given.epochs)
    elif given.precisions:
        name, rows = "engine-precisions", precisions(given.epochs)
    elif given.growth:
        name, rows = "engine-growth", growth()
    elif given.device == "cuda":
        name, rows = "engine-cuda", cuda(given.epochs, 2)
    else:
        torch.set_num_threads(2)
        name, rows = "engine", cpu(given.seconds)
    if given.record:
        record(name, f"python benchmarks/engine.py {' '.join(sys.argv[1:])}", {"rows": rows})


if __name__ == "__main__":
    main()
