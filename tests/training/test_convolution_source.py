"""The CUDA source of convolutions, run on the CPU thread by thread, against torch in float64."""

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

from ruleout.training import gpu_convolutions
from ruleout.training.gpu_convolutions import Plan, Work, plan, plan_back

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(which("g++") is None, reason="needs g++"),
]
HERE, SOURCE = Path(__file__).parent, Path(gpu_convolutions.__file__).with_name("convolutions.cu")
MAIN = """
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


def run(folder: Path, how: Plan, count: int, pixels: int, *given: bytes) -> bytes:
    text = SOURCE.read_text()
    head, rest = text.split("// begin of instructions")
    rest = rest.split("// end of instructions")[1]
    declared = head.index("extern __shared__")
    program = '#include "cuda_on_cpu.h"\n' + head[:declared] + rest + MAIN
    folder.joinpath("main.cpp").write_text(program)
    values: dict[str, Any] = dict(how.values)
    values |= {"BLOCKS": how.blocks[0], "AREAS": how.blocks[1], "SHARED": how.shared}
    values |= {"NUMBERS": count, "COUNTED": pixels, "PART_OF": how.part}
    flags = [f"-D{name}={value}" for name, value in values.items()]
    build = ["g++", "-std=c++20", "-O1", "-w", f"-I{HERE}", *flags, "main.cpp", "-o", "main"]
    subprocess.run(build, cwd=folder, check=True)
    for name, data in zip(("x", "with"), given, strict=True):
        folder.joinpath(name).write_bytes(data)
    subprocess.run(["./main", "x", "with", "out"], cwd=folder, check=True, timeout=120)
    return folder.joinpath("out").read_bytes()


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
    out = run(tmp_path, plans[0], slope.numel(), work.pixels, bits(x), kept)
    assert off(images(out, slope.shape), made.detach()) < 4e-3  # half of bf16's last bit
    along = run(tmp_path, plans[1], x.numel(), back.pixels, bits(slope), kept)
    assert off(images(along, x.shape), read_by) < 4e-3
    grad = run(tmp_path, plans[2], weight.numel(), work.pixels, bits(x), bits(slope))
    shape = (work.made, work.size, work.size, work.channels)
    found = torch.from_numpy(np.frombuffer(grad, np.float32).copy()).view(shape).movedim(-1, 1)
    assert off(found, weighed) < 1e-6
