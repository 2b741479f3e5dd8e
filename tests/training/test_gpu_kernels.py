"""The kernels for a GPU, of perceptrons and of convolutions, against plain float64."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

import ruleout as ro
from ruleout.models import build
from ruleout.training import fit_grid
from ruleout.training.device import Numbers, matmul
from ruleout.training.nets import Dense, build_net
from ruleout.training.optimizers import OPTIMIZERS, Optimizer, Product, Rates

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
TRIALS, MODELS = 2, 3
ERROR = {True: 2e-3, False: 2e-6}  # of TF32 and of float32, relative to the norm
ROUGH = {"tf32": 3e-2, "float32": 1e-3}  # of losses: Adam makes much of small differences


def off(found: Tensor, expected: Tensor) -> float:
    return float((found.detach().double() - expected).norm() / expected.norm())


class Case(NamedTuple):
    """What a step gives to the update."""

    slope: Tensor  # [T, C · h, B]
    x: Tensor  # [T, B, d]
    tensors: list[Tensor]  # weights and moments, [T, C, h, d]
    by: Rates


def case(hidden: int, width: int, batch: int) -> Case:
    random = torch.Generator("cuda").manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, device="cuda")

    shape = (TRIALS, MODELS, hidden, width)
    tensors = [draw(*shape), draw(*shape), draw(*shape).square()]
    table = draw(TRIALS, MODELS + 1).abs() * 1e-2  # as a stack lays them: ε is the last column
    shrink = 1 - draw(MODELS).abs() * 1e-2
    by = Rates(table[:, :-1], table[:, -1:], draw(MODELS).abs(), shrink)
    slope = draw(TRIALS, MODELS * hidden, batch)
    return Case(slope, draw(TRIALS, batch, width), tensors, by)


def moved(name: str, given: Case, grad: Tensor | Product, tensors: list[Tensor]) -> list[Tensor]:
    weights, *moments = [tensor.clone() for tensor in tensors]
    rates = Rates(*(rate.to(weights.dtype) for rate in given.by))
    if weights.dtype is torch.float32:
        rates = given.by
    optimizer = Optimizer(name, [])
    optimizer.moments = [moments[: OPTIMIZERS[name].moments]]
    optimizer.move(0, weights, (slice(0, TRIALS), slice(0, MODELS)), grad, rates)
    return [weights, *optimizer.moments[0]]


def plain(name: str, given: Case) -> list[Tensor]:
    wide = [tensor.double().cpu() for tensor in given.tensors]
    grad = torch.bmm(given.slope.double(), given.x.double()).cpu().view_as(wide[0])
    here = given._replace(by=Rates(*(rate.cpu() for rate in given.by)))
    return [tensor.cuda() for tensor in moved(name, here, grad, wide)]


@pytest.mark.parametrize("tf32", [True, False])
@pytest.mark.parametrize("name", list(OPTIMIZERS))
@pytest.mark.parametrize(
    "sizes", [(500, 800, 256), (500, 792, 96), (7, 8, 4), (65, 168, 300), (64, 160, 31)]
)
def test_a_product_moves_weights_as_its_value_does(
    sizes: tuple[int, int, int], name: str, tf32: bool
) -> None:
    given = case(*sizes)
    if tf32:  # as the kernel before it leaves them
        rounded = (given.slope.view(torch.int32) + 0x1000) & ~0x1FFF
        given = given._replace(slope=rounded.view(torch.float32))
    with matmul(tf32):
        found = moved(name, given, Product(given.slope, given.x), given.tensors)
    for one, expected in zip(found, plain(name, given), strict=True):
        assert off(one, expected) < ERROR[tf32]


@pytest.mark.parametrize("tf32", [True, False])
def test_a_model_that_diverged_leaves_its_neighbours_alone(tf32: bool) -> None:
    given = case(70, 40, 64)
    broken = given.slope.clone()
    broken.view(TRIALS, MODELS, 70, 64)[0, 1] = torch.nan
    with matmul(tf32):
        whole = moved("adam", given, Product(given.slope, given.x), given.tensors)
        part = moved("adam", given, Product(broken, given.x), given.tensors)
    for a, b in zip(whole, part, strict=True):
        assert b[0, 1].isnan().all()
        b[0, 1] = a[0, 1]
        assert torch.equal(a, b)


@pytest.mark.parametrize("tf32", [True, False])
@pytest.mark.parametrize("sizes", [(500, 256, 10), (500, 96, 10), (33, 17, 2), (64, 300, 16)])
def test_up_and_down_are_the_layers(sizes: tuple[int, int, int], tf32: bool) -> None:
    from ruleout.training.gpu_kernels import down, up

    hidden, batch, k = sizes
    torch.manual_seed(0)
    x = torch.randn(TRIALS, MODELS, hidden, batch, device="cuda")
    weight = torch.randn(TRIALS, MODELS, k, hidden, device="cuda")
    bias, slope = (torch.randn(TRIALS, MODELS, k, n, device="cuda") for n in (1, batch))
    wide, relu = weight.double(), x.double().relu()
    with matmul(tf32):
        assert off(up(x, weight, bias), wide @ relu + bias) < ERROR[tf32]
        read = x.clone()
        grads = down(read, weight, slope)
    assert off(read, (wide.transpose(2, 3) @ slope.double()) * (x > 0)) < ERROR[tf32]
    assert off(grads[0], slope.double() @ relu.transpose(2, 3)) < ERROR[tf32]
    assert off(grads[1], slope.double().sum(-1, keepdim=True)) < ERROR[False]


def test_nan_stays_in_its_model_on_the_way_up_and_down() -> None:
    from ruleout.training.gpu_kernels import down, up

    torch.manual_seed(0)
    x = torch.randn(1, 2, 40, 32, device="cuda")
    x[0, 0, 3] = torch.nan
    weight, slope = torch.randn(1, 2, 5, 40, device="cuda"), torch.randn(1, 2, 5, 32, device="cuda")
    logits = up(x, weight, torch.zeros(1, 2, 5, 1, device="cuda"))
    assert logits[0, 0].isnan().all()
    assert logits[0, 1].isfinite().all()
    (grad, _) = down(x, weight, slope)
    assert grad[0, 0, :, 3].isnan().all()
    assert grad[0, 1].isfinite().all()
    assert x[0, 1].isfinite().all()


@pytest.mark.parametrize(
    ("model", "classes", "dtype", "compute", "fused"),
    [
        ("mlp", 10, torch.float32, torch.float32, True),
        ("mlp", 17, torch.float32, torch.float32, False),
        ("mlp", 10, torch.float64, torch.float64, False),
        ("mlp", 10, torch.float32, torch.bfloat16, False),
        ("linear", 10, torch.float32, torch.float32, False),
    ],
)
def test_kernels_serve_what_they_can(
    model: str, classes: int, dtype: torch.dtype, compute: torch.dtype, fused: bool
) -> None:
    module = build(model, 6, classes, seed=0)
    net = build_net([module], 2, 8, Numbers(torch.device("cuda"), dtype, compute))
    assert isinstance(net, Dense)
    assert (type(net) is not Dense) == fused


@pytest.mark.parametrize("precision", ["float32", "tf32"])
@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_perceptrons_learn_the_same_on_a_gpu(optimizer: str, precision: str) -> None:
    x, y = ro.datasets.load("digits").train
    sets = ro.draw(y, classes=10, seed=0)
    given: dict[str, Any] = {"model": "mlp", "epochs": 3, "optimizer": optimizer}
    given["grid"] = {"learning_rate": [1e-2, 1e-3], "weight_decay": [0.0, 1e-3]}
    cpu = fit_grid(x, [sets, sets], precision="float64", **given)
    gpu = fit_grid(x, [sets, sets], precision=precision, device="cuda", **given)
    assert np.allclose(cpu.history["loss"], gpu.history["loss"], rtol=ROUGH[precision])


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(("channels", "made"), [(3, 16), (16, 16), (48, 12), (33, 48), (64, 64)])
@pytest.mark.parametrize(
    ("images", "sides", "stride"),
    [(37, (8, 8), 1), (37, (5, 7), 1), (300, (32, 32), 1), (37, (8, 8), 2), (300, (6, 10), 2)],
)
def test_convolutions_of_few_channels(
    channels: int, made: int, size: int, images: int, sides: tuple[int, int], stride: int
) -> None:
    """Inputs are rounded to bf16 first, so that only what is added up can differ."""
    from ruleout.training.gpu_convolutions import Convolution, serve

    random, device = torch.Generator("cuda").manual_seed(0), torch.device("cuda")

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, device="cuda").bfloat16().float()

    how: dict[str, Any] = {"stride": stride, "padding": size // 2, "device": "cuda"}
    module = torch.nn.Conv2d(channels, made, size, **how)
    exact = torch.nn.Conv2d(channels, made, size, **how).double()
    module.weight.data = draw(made, channels, size, size)
    exact.load_state_dict(module.state_dict())
    serve(module, device)
    assert type(module) is Convolution
    x = draw(images, channels, *sides)
    slope = draw(images, made, *(side // stride for side in sides))
    mine, theirs = (x.to(t).requires_grad_() for t in (torch.bfloat16, torch.float64))
    out, expected = module(mine), exact(theirs)
    assert out.dtype is torch.bfloat16
    assert off(out, expected.detach()) < 4e-3  # half of the last bit of bf16
    found = torch.autograd.grad(out, [mine, *module.parameters()], slope.bfloat16())
    wanted = torch.autograd.grad(expected, [theirs, *exact.parameters()], slope.double())
    assert found[1].dtype is torch.float32
    for one, other, most in zip(found, wanted, (4e-3, 1e-5, 4e-3), strict=True):
        assert off(one, other) < most


def test_other_convolutions_stay_with_torch() -> None:
    from ruleout.training.gpu_convolutions import serve

    kinds: list[dict[str, Any]] = [
        {"kernel_size": 5, "padding": 2}, {"kernel_size": 3}, {"kernel_size": 3, "stride": 2},
        {"kernel_size": 3, "padding": 1, "stride": 3},
        {"kernel_size": 3, "padding": 1, "groups": 2}, {"kernel_size": 3, "padding": 1, "out": 65},
        {"kernel_size": 3, "padding": 1, "padding_mode": "reflect"},
        {"kernel_size": 3, "padding": 2, "dilation": 2}, {"kernel_size": (3, 1), "padding": (1, 0)},
    ]  # fmt: skip
    for kind in kinds:
        module = torch.nn.Conv2d(4, kind.pop("out", 4), **kind)
        serve(module, torch.device("cuda"))
        assert type(module) is torch.nn.Conv2d


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own, as it compiles
@pytest.mark.parametrize("channels", [16, 24, 33, 69])
def test_batch_norm_of_a_compiled_module(channels: int) -> None:
    """Inputs are rounded to bf16 first, so that only what is added up can differ."""
    from ruleout.training.gpu_batch_norm import BatchNorm, serve

    module = torch.nn.BatchNorm2d(channels).cuda()
    torch.nn.init.uniform_(module.weight, 0.5, 2.0)
    torch.nn.init.normal_(module.bias)
    exact = torch.nn.BatchNorm2d(channels).cuda().double()
    exact.load_state_dict(module.state_dict())
    serve(module, torch.device("cuda"))
    assert type(module) is BatchNorm
    x, slope = (torch.randn(37, channels, 8, 12, device="cuda").bfloat16() for _ in range(2))
    x += torch.arange(channels, device="cuda")[:, None, None]
    mine, theirs = (
        one.to(memory_format=torch.channels_last).requires_grad_() for one in (x, x.double())
    )
    out, expected = torch.compile(module, dynamic=False)(mine), exact(theirs)
    assert out.dtype is torch.bfloat16
    assert off(out, expected.detach()) < 4e-3
    found = torch.autograd.grad(out, [mine, *module.parameters()], slope)
    wanted = torch.autograd.grad(expected, [theirs, *exact.parameters()], slope.double())
    for one, other, most in zip(found, wanted, (4e-3, 1e-4, 1e-5), strict=True):
        assert off(one, other) < most
    for one, other in zip(module.buffers(), exact.buffers(), strict=True):
        assert off(one.double(), other.double()) < 1e-5
