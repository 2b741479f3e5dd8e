# ruff: noqa: E501  # the sentences stand as users read them
"""Model folders that lie: each gives one sentence, and none gives a wrong model."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from estimator.small import SETS, X, classifier
from numpy.testing import assert_array_equal
from tiers import COUNT

from ruleout.estimator import load
from ruleout.labels.errors import InputError


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model"
    classifier(model="mlp", hidden=(3,), grid={"learning_rate": [0.1, 0.01]}).fit(X, SETS).save(
        path
    )
    return path


@pytest.fixture
def model(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


# ---------------------------------------------------------------------- tools of a liar


def _card(path: Path, change: Callable[[dict[str, Any]], object], *, seal: bool = True) -> None:
    """Change a card, and give it the sum of a card that was never changed."""
    card = json.loads((path / "card.json").read_text())
    change(card)
    if seal:
        card.pop("sha256", None)
        card["sha256"] = sha256(json.dumps(card, sort_keys=True).encode()).hexdigest()
    (path / "card.json").write_text(json.dumps(card))


def _weights(path: Path, data: bytes) -> None:
    """Change the weights, and let the card say that they belong there."""
    (path / "model.safetensors").write_bytes(data)
    told = {"bytes": len(data), "sha256": sha256(data).hexdigest()}
    _card(path, lambda card: card.update(weights=told))


def _header(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = (path / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    _weights(path, struct.pack("<Q", len(text)) + text + data[8 + size :])


def _set(**values: Any) -> Callable[[Path], None]:
    return lambda path: _card(path, lambda card: card.update(values))


def _config(**values: Any) -> Callable[[Path], None]:
    return lambda path: _card(path, lambda card: card["config"].update(values))


def _reading(**values: Any) -> Callable[[Path], None]:
    return lambda path: _card(path, lambda card: card.update(reading=values))


def _tensor(**values: Any) -> Callable[[Path], None]:
    return lambda path: _header(path, lambda header: header["0.bias"].update(values))


def _finite(path: Path) -> None:
    data = bytearray((path / "model.safetensors").read_bytes())
    data[-4:] = struct.pack("<f", float("nan"))
    _weights(path, bytes(data))


def _only(name: str, content: bytes) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        shutil.rmtree(path)
        path.mkdir()
        (path / name).write_bytes(content)

    return change


def _nothing(path: Path) -> None:
    for one in path.iterdir():
        one.unlink()


def _fifo(path: Path) -> None:
    (path / "model.safetensors").unlink()
    os.mkfifo(path / "model.safetensors")


CARD, WEIGHTS = "{path}/card.json: ", "{path}/model.safetensors: "
WRONG = CARD + "the card holds a wrong {name!r}; save the model again"
LIES = WEIGHTS + "the header of the weights is wrong: "
AGAIN = "; copy the whole folder again"
NEEDS = "the model needs F32 [3] as '0.bias', and the file has "
OTHERS = "; card.json and the weights belong to different models"

TABLE: list[tuple[str, Callable[[Path], object], str]] = [
    ("missing", shutil.rmtree, "{path}: there is no such folder; give the folder that save made"),
    (
        "empty",
        _nothing,
        "{path}: this is not a model folder: it has no card.json; give the one that save made",
    ),
    (
        "a pickle inside",
        _only("pytorch_model.bin", pickle.dumps(1)),
        "{path}/pytorch_model.bin: pickles are refused, since they can run code; save the model anew",
    ),
    (
        "no weights",
        lambda path: (path / "model.safetensors").unlink(),
        WEIGHTS + "the weights are missing; copy the whole folder",
    ),
    ("weights that never end", _fifo, WEIGHTS + "the weights are missing; copy the whole folder"),
    # ---------------------------------------------------------------- the card
    (
        "no JSON",
        lambda path: (path / "card.json").write_text("{"),
        CARD + "the card is not valid JSON; copy the folder again",
    ),
    (
        "no UTF-8",
        lambda path: (path / "card.json").write_bytes(b'{"a": "\xff"}'),
        CARD + "the card is not valid JSON; copy the folder again",
    ),
    (
        "deep JSON",
        lambda path: (path / "card.json").write_text("[" * 100_000),
        CARD + "the card is not valid JSON; copy the folder again",
    ),
    (
        "NaN",
        lambda path: (path / "card.json").write_text('{"a": NaN}'),
        CARD + "the card is not valid JSON; copy the folder again",
    ),
    (
        "a list",
        lambda path: (path / "card.json").write_text("[]"),
        CARD + "this is not the card of a ruleout model; give a folder made by save",
    ),
    (
        "a foreign card",
        lambda path: (path / "card.json").write_text('{"format": "other"}'),
        CARD + "this is not the card of a ruleout model; give a folder made by save",
    ),
    (
        "newer",
        _set(schema=2),
        CARD + "this was saved by a newer ruleout (schema 2); update ruleout",
    ),
    ("no schema", _set(schema="1"), CARD + "the card has no schema number; save the model again"),
    (
        "changed",
        lambda path: _card(path, lambda card: card.update(epochs=99), seal=False),
        CARD + "the card was changed after it was saved; copy the folder again",
    ),
    (
        "a key less",
        lambda path: _card(path, lambda card: card.pop("classes")),
        CARD + "the card lacks 'classes'; save the model again",
    ),
    ("a wrong type", _set(epochs="5"), WRONG.replace("{name!r}", "'epochs'")),
    ("true is no number", _set(features=True), WRONG.replace("{name!r}", "'features'")),
    (
        "a setting less",
        lambda path: _card(path, lambda card: card["config"].pop("hidden")),
        WRONG.replace("{name!r}", "'config'"),
    ),
    ("a setting more", _config(run="rm -rf"), WRONG.replace("{name!r}", "'config'")),
    ("a model that is no name", _config(model=["mlp"]), WRONG.replace("{name!r}", "'config'")),
    ("weights of classes", _config(class_weight=[1, 2]), WRONG.replace("{name!r}", "'config'")),
    (
        "an unknown model",
        _config(model="os.system"),
        CARD + "the settings in the card make no model; save the model again",
    ),
    (
        "hidden text",
        _config(hidden="a"),
        CARD + "the settings in the card make no model; save the model again",
    ),
    (
        "a million layers",
        _config(hidden=[1] * 1_000_000),
        CARD + "the settings in the card make no model; save the model again",
    ),
    (
        "layers beyond numbers",
        _config(hidden=[10**15, 10**15]),
        CARD + "the settings in the card make no model; save the model again",
    ),
    (
        "other layers",
        _config(hidden=[10**9]),
        WEIGHTS
        + "the model needs F32 [1000000000, 64] as '0.weight', and the file has F32 [3, 64]"
        + OTHERS,
    ),
    ("classes twice", _set(classes=[1] * 10), WRONG.replace("{name!r}", "'classes'")),
    ("classes of two kinds", _set(classes=[1, "a"]), WRONG.replace("{name!r}", "'classes'")),
    (
        "fewer classes",
        _set(classes=[1, 2]),
        WEIGHTS + "the model needs F32 [2, 3] as '2.weight', and the file has F32 [10, 3]" + OTHERS,
    ),
    ("shape", _set(shape=[63]), WRONG.replace("{name!r}", "'shape'")),
    ("negative shape", _set(shape=[-64], features=-64), WRONG.replace("{name!r}", "'shape'")),
    (
        "more features",
        _set(shape=[65], features=65),
        WEIGHTS
        + "the model needs F32 [3, 65] as '0.weight', and the file has F32 [3, 64]"
        + OTHERS,
    ),
    ("feature names", _set(feature_names=["a"]), WRONG.replace("{name!r}", "'feature_names'")),
    ("seed", _set(seed=-1), WRONG.replace("{name!r}", "'seed'")),
    ("epochs", _set(epochs=10**30), WRONG.replace("{name!r}", "'epochs'")),
    ("history", _set(history={"loss": 3}), WRONG.replace("{name!r}", "'history'")),
    ("half a history", _set(history={"loss": [3]}), WRONG.replace("{name!r}", "'history'")),
    ("no data", _set(record={"model": "mlp"}), WRONG.replace("{name!r}", "'record'")),
    ("no columns", _reading(kind="columns", features=3), WRONG.replace("{name!r}", "'reading'")),
    ("numbers", _reading(kind="columns", features=[3]), WRONG.replace("{name!r}", "'reading'")),
    ("no shape", _reading(kind="images"), WRONG.replace("{name!r}", "'reading'")),
    ("flat images", _reading(kind="images", shape=[64]), WRONG.replace("{name!r}", "'reading'")),
    ("vast", _reading(kind="images", shape=[1, 8, 10**9]), WRONG.replace("{name!r}", "'reading'")),
    ("criterion", _set(criterion=["accuracy"]), WRONG.replace("{name!r}", "'criterion'")),
    ("no size", _set(weights={}), WRONG.replace("{name!r}", "'weights'")),
    ("no size of folds", _set(folds={"models": 5}), WRONG.replace("{name!r}", "'folds'")),
    ("folds", _set(folds=None), WRONG.replace("{name!r}", "'folds'")),
    ("half a model", _set(folds={"models": 2.0}), WRONG.replace("{name!r}", "'folds'")),
    ("fewer than none", _set(folds={"models": -1}), WRONG.replace("{name!r}", "'folds'")),
    ("so many models", _set(folds={"models": 10**9}), WRONG.replace("{name!r}", "'folds'")),
    # ---------------------------------------------------------------- the weights
    (
        "truncated",
        lambda path: os.truncate(path / "model.safetensors", 500),
        WEIGHTS + "the file has 500 bytes instead of 1,204; copy it again",
    ),
    (
        "other content",
        lambda path: (path / "model.safetensors").write_bytes(
            (path / "model.safetensors").read_bytes()[:-1] + b"\1"
        ),
        WEIGHTS + "the content is not what card.json describes" + AGAIN,
    ),
    (
        "no models of folds",
        lambda path: (path / "folds.safetensors").unlink(),
        "{path}/folds.safetensors: the weights are missing; copy the whole folder",
    ),
    (
        "one more model",
        lambda path: _card(path, lambda card: card["folds"].update(models=6)),
        "{path}/folds.safetensors: the model needs F32 [3, 64] as '5.0.weight', and the file has nothing"
        + OTHERS,
    ),
    (
        "no weights at all",
        lambda path: _weights(path, b""),
        LIES + "it claims 0 bytes for itself" + AGAIN,
    ),
    (
        "a huge header",
        lambda path: _weights(path, struct.pack("<Q", 2**62) + b"{}"),
        LIES + "it claims 4,611,686,018,427,387,904 bytes for itself" + AGAIN,
    ),
    (
        "a long header",
        lambda path: _weights(path, struct.pack("<Q", 2**21) + b" " * 2**21),
        LIES + "it claims 2,097,152 bytes for itself" + AGAIN,
    ),
    (
        "a header of noise",
        lambda path: _weights(path, struct.pack("<Q", 4) + b"\xff\xff\xff\xff"),
        LIES + "it is not a table of tensors" + AGAIN,
    ),
    (
        "a header that is a list",
        lambda path: _weights(path, struct.pack("<Q", 2) + b"[]"),
        LIES + "it is not a table of tensors" + AGAIN,
    ),
    (
        "a deep header",
        lambda path: _weights(path, struct.pack("<Q", 100_000) + b"[" * 100_000),
        LIES + "it is not a table of tensors" + AGAIN,
    ),
    (
        "no tensors",
        lambda path: _weights(path, struct.pack("<Q", 2) + b"{}"),
        WEIGHTS + "the model needs F32 [3, 64] as '0.weight', and the file has nothing" + OTHERS,
    ),
    (
        "an unknown dtype",
        _tensor(dtype="F8"),
        LIES + "tensor '0.bias' is of an unknown kind" + AGAIN,
    ),
    ("a wrong dtype", _tensor(dtype="I32"), WEIGHTS + NEEDS + "I32 [3]" + OTHERS),
    ("a wrong shape", _tensor(shape=[3, 1]), WEIGHTS + NEEDS + "F32 [3, 1]" + OTHERS),
    (
        "a shape too large",
        _tensor(shape=[2**62]),
        LIES + "tensor '0.bias' does not lie where it should" + AGAIN,
    ),
    (
        "a negative shape",
        _tensor(shape=[-1, -3]),
        LIES + "tensor '0.bias' does not lie where it should" + AGAIN,
    ),
    ("a shape of text", _tensor(shape=["3"]), LIES + "it is not a table of tensors" + AGAIN),
    (
        "offsets beyond",
        _tensor(data_offsets=[0, 2**62]),
        LIES + "tensor '0.bias' does not lie where it should" + AGAIN,
    ),
    (
        "offsets reversed",
        _tensor(data_offsets=[12, 0]),
        LIES + "tensor '0.bias' does not lie where it should" + AGAIN,
    ),
    (
        "a tensor more",
        lambda path: _header(
            path,
            lambda header: header.update(
                extra={"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
            ),
        ),
        WEIGHTS + "the file holds 'extra', which the model does not have" + OTHERS,
    ),
    (
        "bytes at the end",
        lambda path: _weights(path, (path / "model.safetensors").read_bytes() + b"\0"),
        LIES + "its tensors do not fill the file" + AGAIN,
    ),
    ("NaN", _finite, WEIGHTS + "a weight is not a finite number; train the model again"),
]


@pytest.mark.parametrize(
    ("change", "sentence"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_a_folder_that_lies(change: Callable[[Path], object], sentence: str, model: Path) -> None:
    change(model)
    with pytest.raises(InputError) as caught:
        load(model)
    assert str(caught.value) == sentence.format(path=model)


def test_overlapping_tensors(model: Path) -> None:
    def overlap(header: dict[str, Any]) -> None:
        header["2.bias"]["data_offsets"] = [0, 40]

    _header(model, overlap)
    with pytest.raises(InputError, match="does not lie where it should"):
        load(model)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".pkl", ".bin", ".joblib"])
def test_a_pickle_is_never_opened(suffix: str, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "exploded"),)

    file = tmp_path / f"model{suffix}"
    file.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InputError) as caught:
        load(file)
    assert str(caught.value) == (
        f"{file}: pickles are refused, since they can run code; save the model anew"
    )
    assert not (tmp_path / "exploded").exists()


def test_any_other_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_text("")
    with pytest.raises(InputError, match="this is a file; give the folder that save made"):
        load(tmp_path / "a.onnx")


@pytest.mark.parametrize("name", ["card.json", "model.safetensors", "folds.safetensors"])
def test_a_changed_byte_is_noticed_or_harmless(name: str, saved: Path, model: Path) -> None:
    """200 random changes of one byte each: a sentence, or the very same model."""
    right = load(saved)
    wanted, names = right.predict_proba(X), right.classes_
    random = np.random.default_rng(0)
    content = (saved / name).read_bytes()
    noticed = 0
    for _ in range(int(200 * COUNT)):
        data = bytearray(content)
        data[random.integers(len(data))] ^= int(random.integers(1, 256))
        (model / name).write_bytes(data)
        try:
            found = load(model)
        except InputError:
            noticed += 1
            continue
        assert_array_equal(found.predict_proba(X), wanted)
        assert_array_equal(found.classes_, names)
        assert found.get_params() == right.get_params()
    assert noticed > 0.9 * int(200 * COUNT)


@pytest.mark.parametrize("name", ["card.json", "model.safetensors", "folds.safetensors"])
def test_a_file_cut_short_is_noticed(name: str, saved: Path, model: Path) -> None:
    content = (saved / name).read_bytes()
    for length in range(0, len(content) - 2, max(1, len(content) // 100)):
        (model / name).write_bytes(content[:length])
        with pytest.raises(InputError):
            load(model)


def test_lies_about_size_take_no_memory(model: Path) -> None:
    import resource

    _card(model, lambda card: card["config"].update(hidden=[10**6, 10**6]))  # 4 TB of weights
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="belong to different models"):
        load(model)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB
