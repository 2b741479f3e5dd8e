"""CUDA sources of convolutions and batch norm, run on a CPU thread by thread, against float64."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from ruleout.training import gpu_batch_norm, gpu_convolutions
from ruleout.training.gpu_convolutions import Plan, Work, plan, plan_back

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(which("g++") is None, reason="needs g++"),
]
HERE, SOURCES = Path(__file__).parent, Path(gpu_convolutions.__file__).parent
CONVOLVE = """
static u16 *x, *slope, *out;
static float *weight, *parts, *sums;
int main(int, char** file) {
    x = read<u16>(file[1]);
#ifdef ALONG
    weight = read<float>(file[2]), out = new u16[NUMBERS];
    launch(BLOCKS, 1, THREADS, SHARED, [] { convolve(x, weight, out, COUNTED); });
    write(file[3], out, NUMBERS);
#else
    slope = read<u16>(file[2]), sums = new float[NUMBERS];
    parts = new float[(long)BLOCKS * NUMBERS];
    launch(BLOCKS, AREAS, THREADS, SHARED, [] { correlate(x, slope, parts, COUNTED, PART_OF); });
    launch((NUMBERS + 31) / 32, 1, 256, 0, [] { add_up(parts, sums, BLOCKS, NUMBERS); });
    write(file[3], sums, NUMBERS);
#endif
}
"""
ADD_UP = """
static uint4 *x, *slope;
static float *known, *running, parts[BLOCKS * 2 * CHANNELS], found[4 * CHANNELS + 1];
static u32 turn;
static long long counted = 6;
int main(int, char** file) {
    x = read<uint4>(file[1]), slope = read<uint4>(file[2]), known = read<float>(file[3]);
    memcpy(found + 2 * CHANNELS, running = read<float>(file[4]), 2 * CHANNELS * sizeof(float));
    launch(BLOCKS, 1, THREADS, 0, [] {
        float* mean = found + 2 * CHANNELS;
        add_up(x, slope, known, parts, &turn, found, mean, mean + CHANNELS, &counted, COUNTED);
    });
    require(!turn, "the turn is not over");
    found[4 * CHANNELS] = counted;
    write(file[5], found, 4 * CHANNELS + 1);
}
"""
WORKS = [
    Work(72, 8, 8, 16, 16, 3),  # nine parts of a gradient
    Work(9, 5, 7, 3, 16, 3),
    Work(3, 8, 8, 64, 64, 3),
    Work(9, 5, 7, 48, 12, 3),
    Work(9, 5, 7, 33, 48, 1),
    Work(9, 5, 7, 60, 30, 1),
    Work(11, 8, 8, 16, 32, 3, 2),
    Work(9, 4, 4, 32, 64, 3, 2),
    Work(5, 3, 5, 33, 48, 1, 2),
]


def bits(x: Tensor) -> bytes:
    """Return bf16 numbers with their channels last."""
    return x.detach().movedim(1, -1).contiguous().bfloat16().view(torch.int16).numpy().tobytes()


def run(folder: Path, source: str, main: str, values: dict[str, Any], *given: bytes) -> bytes:
    """Compile and run a program; what it reads and what it writes are files."""
    text = SOURCES.joinpath(source).read_text()
    if "// begin of instructions" in text:  # the CPU has others
        head, rest = text.split("// begin of instructions")
        text = head[: head.index("extern __shared__")] + rest.split("// end of instructions")[1]
    folder.joinpath("main.cpp").write_text('#include "cuda_on_cpu.h"\n' + text + main)
    flags = [f"-D{name}={value}" for name, value in values.items()]
    build = ["g++", "-std=c++20", "-O1", "-w", f"-I{HERE}", *flags, "main.cpp", "-o", "main"]
    subprocess.run(build, cwd=folder, check=True)
    names = [f"given-{place}" for place in range(len(given))]
    for name, data in zip(names, given, strict=True):
        folder.joinpath(name).write_bytes(data)
    subprocess.run(["./main", *names, "out"], cwd=folder, check=True, timeout=120)
    return folder.joinpath("out").read_bytes()


def convolved(folder: Path, how: Plan, count: int, pixels: int, *given: bytes) -> bytes:
    values: dict[str, Any] = dict(how.values)
    values |= {"BLOCKS": how.blocks[0], "AREAS": how.blocks[1], "SHARED": how.shared}
    values |= {"NUMBERS": count, "COUNTED": pixels, "PART_OF": how.part}
    return run(folder, "convolutions.cu", CONVOLVE, values, *given)


def images(data: bytes, shape: tuple[int, ...]) -> Tensor:
    n, channels, height, width = shape
    found = torch.from_numpy(np.frombuffer(data, np.int16).copy()).view(torch.bfloat16)
    return found.view(n, height, width, channels).movedim(-1, 1).double()


def off(found: Tensor, expected: Tensor) -> float:
    return float((found.double() - expected).norm() / expected.norm())


def alone(how: Plan) -> Plan:
    """Let one block do all: it takes tile after tile, and fetches the next one ahead."""
    return how._replace(blocks=(1, how.blocks[1], 1))


@pytest.mark.parametrize("many", [False, True], ids=["one-block", "many-blocks"])
@pytest.mark.parametrize("work", WORKS, ids=str)
def test_convolutions_and_their_gradients(work: Work, many: bool, tmp_path: Path) -> None:
    """Inputs are rounded to bf16 first, so that only what is added up can differ."""
    draw = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw).bfloat16().double()

    (height, width), stride = (work.height, work.width), work.stride
    x = random(work.images, work.channels, height * stride, width * stride)
    slope = random(work.images, work.made, height, width)
    weight = random(work.made, work.channels, work.size, work.size)
    read = (x.requires_grad_(), weight.requires_grad_())
    made = conv2d(*read, stride=stride, padding=work.size // 2)
    read_by, weighed = torch.autograd.grad(made, read, slope)

    kept = weight.detach().movedim(1, -1).float().numpy().tobytes()
    sides = {"height": height * stride, "width": width * stride}
    back = work._replace(**sides, channels=work.made, made=work.channels, turned=True)
    plans = [
        how(one) if many else alone(how(one._replace(images=10**6)))
        for how, one in ((plan, work), (plan, back), (plan_back, work))
    ]
    out = convolved(tmp_path, plans[0], slope.numel(), work.pixels, bits(x), kept)
    assert off(images(out, slope.shape), made.detach()) < 4e-3  # half of bf16's last bit
    along = convolved(tmp_path, plans[1], x.numel(), back.pixels, bits(slope), kept)
    assert off(images(along, x.shape), read_by) < 4e-3
    grad = convolved(tmp_path, plans[2], weight.numel(), work.pixels, bits(x), bits(slope))
    shape = (work.made, work.size, work.size, work.channels)
    found = torch.from_numpy(np.frombuffer(grad, np.float32).copy()).view(shape).movedim(-1, 1)
    assert off(found, weighed) < 1e-6


@pytest.mark.parametrize("blocks", [1, 5])
@pytest.mark.parametrize("channels", [3, 16, 24, 33, 64, 69, 128])
def test_batch_norm_there_and_back(channels: int, blocks: int, tmp_path: Path) -> None:
    draw = torch.Generator().manual_seed(channels)
    shape = (9, channels, 8, 11)
    x, slope = (torch.randn(shape, generator=draw).bfloat16().double() for _ in range(2))
    x = (x * 3 + 50).bfloat16().double()  # squares are much larger than variances
    before = torch.rand(2, channels, generator=draw)
    module = torch.nn.BatchNorm2d(channels, eps=1e-3, momentum=0.3).double()
    module.running_mean, module.running_var = before.double()
    out = module(x)
    wanted = torch.autograd.grad(out, [module.bias, module.weight], slope)
    scale = (x.var((0, 2, 3), correction=0) + 1e-3).rsqrt()
    known = torch.stack([x.mean((0, 2, 3)), scale]).float()

    def add_up(*given: bytes, **told: float) -> Tensor:
        values: dict[str, Any] = dict(gpu_batch_norm._values(channels, **told))
        assert int(values["THREADS"]) <= 288
        about = {"BLOCKS": blocks, "COUNTED": x.numel() // 8}
        found = run(tmp_path, "batch_norm.cu", ADD_UP, values | about, *given)
        return torch.from_numpy(np.frombuffer(found, np.float32).copy())

    running = before.numpy().tobytes()
    there = add_up(bits(x), b"", b"", running, MOMENTUM=0.3, EPSILON=1e-3)
    assert off(there[: 2 * channels], known.flatten().double()) < 1e-6
    moved = torch.cat([module.running_mean, module.running_var])
    assert off(there[2 * channels : -1], moved) < 1e-6
    assert there[-1] == 7
    back = add_up(bits(x), bits(slope), known.numpy().tobytes(), running, BACK=1)
    assert off(back[: 2 * channels], torch.cat(wanted)) < 1e-5
    assert torch.equal(back[2 * channels : -1], before.flatten())  # nothing runs on the way back
    assert back[-1] == 6
