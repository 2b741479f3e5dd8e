"""Export to ONNX: the same probabilities in another runtime."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from estimator.small import NAMES, SETS, X, Y, classifier
from numpy.testing import assert_allclose
from torch import nn

pytest.importorskip("onnxscript")
onnx = pytest.importorskip("onnx")


def _run(file: Path, rows: Any) -> Any:
    from onnx.reference import ReferenceEvaluator

    (found,) = ReferenceEvaluator(str(file)).run(None, {"x": rows})
    return found


@pytest.mark.parametrize(
    "parameters",
    [{}, {"model": "mlp", "hidden": (8, 6)}, {"precision": "float64"}],
    ids=["linear", "mlp", "float64"],
)
def test_probabilities_are_the_same(parameters: dict[str, Any], tmp_path: Path) -> None:
    clf = classifier(**parameters).fit(X, SETS)
    clf.export(tmp_path / "model.onnx")
    for rows in (1, 2, 77):  # any number of rows
        found = _run(tmp_path / "model.onnx", X[:rows])
        assert found.dtype == np.float32
        assert_allclose(found, clf.predict_proba(X[:rows]), atol=1e-5)
    assert [one.name for one in tmp_path.iterdir()] == ["model.onnx"]


def test_onnxruntime_agrees(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    clf = classifier(model="mlp", hidden=(8,)).fit(X, SETS)
    clf.export(tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    for rows in (1, 300):
        found = session.run(["probabilities"], {"x": X[:rows]})[0]
        assert_allclose(found, clf.predict_proba(X[:rows]), atol=1e-5)


def small_net(shape: tuple[int, ...], classes: int) -> nn.Module:
    layers = [nn.Conv2d(shape[0], 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4, classes))


@pytest.mark.parametrize("model", [small_net, pytest.param("resnet32", marks=pytest.mark.slow)])
def test_images_keep_their_shape(tmp_path: Path, model: Any) -> None:
    images = np.random.default_rng(0).random((8, 3, 8, 8), np.float32)
    clf = classifier(model=model, epochs=1).fit(images, np.arange(8) % 2)
    clf.export(tmp_path / "model.onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    for rows in (1, 8):
        found = session.run(None, {"x": images[:rows]})[0]
        assert_allclose(found, clf.predict_proba(images[:rows]), atol=1e-5)


def test_class_names_are_in_the_metadata(tmp_path: Path) -> None:
    clf = classifier().fit(X, NAMES[Y])
    clf.export(tmp_path / "model.onnx")
    told = {one.key: one.value for one in onnx.load(tmp_path / "model.onnx").metadata_props}
    assert json.loads(told["classes"]) == sorted(NAMES)
    assert told["data"] == clf.record_["data"]


def test_what_to_install_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *given: Any, **named: Any) -> Any:
        if name.startswith("onnx"):
            raise ImportError(name)
        return real(name, *given, **named)

    clf = classifier().fit(X, SETS)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ValueError) as caught:
        clf.export(tmp_path / "model.onnx")
    assert str(caught.value) == ("export needs onnx and onnxscript; pip install 'ruleout[export]'")
    assert not list(tmp_path.iterdir())
