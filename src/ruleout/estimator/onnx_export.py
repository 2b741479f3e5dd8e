"""Export to ONNX: rows in, probabilities out, class names in the metadata."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ruleout.estimator.model_folder import class_list
from ruleout.labels.atomic import atomic_write
from ruleout.labels.errors import InputError


class _Probabilities(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.module(x)
        return logits.softmax(-1)


def export(
    module: nn.Module, classes: NDArray[Any], record: Mapping[str, Any], path: str | Path
) -> None:
    """Write a trained module as ONNX, whole or not at all."""
    try:
        import onnx  # noqa: F401  # only to see whether they are there
        import onnxscript  # noqa: F401
    except ImportError:
        raise InputError(
            "export needs onnx and onnxscript", "pip install 'ruleout[export]'"
        ) from None
    shape: Any = module.example_shape
    with _quiet():
        program = torch.onnx.export(
            _Probabilities(deepcopy(module).float().cpu()).eval(),
            (torch.zeros(2, *shape),),
            dynamo=True,
            input_names=["x"],
            output_names=["probabilities"],
            dynamic_shapes={"x": {0: torch.export.Dim("rows")}},
            verbose=False,
        )
    assert program is not None
    proto = program.model_proto
    facts = {
        "classes": json.dumps(class_list(classes)),
        "ruleout": record["versions"]["ruleout"],
        "data": record["data"],
    }
    for name, value in facts.items():
        proto.metadata_props.add(key=name, value=value)
    with atomic_write(Path(path).expanduser()) as out:
        out.write(proto.SerializeToString())


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch's exporter from talking about its own parts."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
