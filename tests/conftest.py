"""Tiers: a missing facility skips a test with its reason; RULEOUT_STRICT=1 makes it a failure."""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import settings

COUNT = float(os.environ.get("RULEOUT_COUNT", "1"))  # scales the slow tier

settings.register_profile("ruleout", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ruleout")
torch.set_num_threads(2)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("cuda") and not torch.cuda.is_available():
        pytest.skip("no CUDA device")  # never strict: CI has no accelerator
