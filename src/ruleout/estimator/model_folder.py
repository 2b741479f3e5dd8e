"""Models on disk: a folder of ``model.safetensors`` and ``card.json``, written whole, no pickle."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from math import isfinite, prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import torch as safetensors
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ruleout.estimator.classifier import Course, Judged, model_options
from ruleout.labels.atomic import atomic_folder
from ruleout.labels.errors import InputError
from ruleout.models import MODELS, build
from ruleout.selection import Criterion

CARD, WEIGHTS = "card.json", "model.safetensors"
_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib")


def save(clf: Any, path: str | Path, reading: Mapping[str, Any]) -> None:
    """Write a fitted classifier; the folder takes its name when all of it is on disk."""
    check_is_fitted(clf, "module_")
    target = check_place(path)
    weights = weights_bytes(clf.module_)
    content = {WEIGHTS: weights, CARD: card_bytes(_card(clf, reading, weights))}
    with atomic_folder(target, _move) as part:
        for name, data in content.items():
            _write(part / name, data)


def check_place(path: str | Path) -> Path:
    """Return the folder that `path` means; raise if a model cannot be written there."""
    target = Path(os.path.realpath(Path(path).expanduser()))
    if not target.parent.is_dir():
        raise InputError("the folder does not exist", "make it first", file=target.parent)
    if not target.exists():
        return target
    if not target.is_dir():
        raise InputError("this is a file", "give the name of a folder", file=target)
    found = {one.name for one in target.iterdir()}
    if found and (CARD not in found or not _ours(target / CARD)):
        raise InputError("the folder holds something else", "choose another name", file=target)
    if found - {CARD, WEIGHTS}:
        more = min(found - {CARD, WEIGHTS})
        raise InputError(
            f"the model folder also holds {more!r}, which would be lost",
            "move it, or choose another name",
            file=target,
        )
    return target


def _ours(file: Path) -> bool:
    try:
        return bool(parse(file)["format"] == FORMAT)
    except (InputError, OSError):
        return False


def _card(clf: Any, reading: Mapping[str, Any], weights: bytes) -> dict[str, Any]:
    own = clf.model
    names = getattr(clf, "feature_names_in_", None)
    return {
        "config": settings(clf.get_params(deep=False)),
        "own_model": None if isinstance(own, str) else getattr(own, "__qualname__", str(own)),
        "classes": class_list(clf.classes_),
        "class_kind": clf.classes_.dtype.kind,
        "features": clf.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "shape": list(clf.module_.example_shape),
        "configuration": clf.configuration_,
        "epochs": clf.n_iter_,
        "seed": clf._course.seed,
        "calls": clf._course.calls,
        "criterion": list(clf.criterion_) if hasattr(clf, "criterion_") else None,
        "history": clf.history_,
        "search": getattr(clf, "search_", None),
        "search_history": getattr(clf, "search_history_", None),
        "record": clf.record_,
        "reading": dict(reading),
        "weights": {"bytes": len(weights), "sha256": sha256(weights).hexdigest()},
    }


def _write(file: Path, data: bytes) -> None:
    with open(file, "xb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _move(part: Path, target: Path) -> None:
    """Give the new folder its name; the old one goes last, or comes back."""
    if not target.exists():
        part.rename(target)
        return
    old = target.parent / f"{part.name}-old"
    target.rename(old)
    try:
        part.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def load(
    path: str | Path, *, model: Callable[..., nn.Module] | None = None, device: Any = None
) -> Any:
    """Return the classifier that was saved in a folder.

    Nothing in the folder is executed: pickles are refused, and a model made by a function of the
    user's own is rebuilt by the function handed in.

    Parameters
    ----------
    path
        Of the folder.
    model
        The function ``(shape, classes) → nn.Module`` that made the model, if it was not named.
    device
        Where to predict; None: the CPU.

    Examples
    --------
    >>> import tempfile
    >>> from ruleout.estimator import RuleOutClassifier
    >>> clf = RuleOutClassifier(epochs=1, random_state=0).fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(Path(folder, "model"))
    ...     again = load(Path(folder, "model"))
    >>> bool((again.predict_proba([[0.5]]) == clf.predict_proba([[0.5]])).all())
    True
    """
    folder = Path(path).expanduser()
    _check_folder(folder)
    return rebuild(parse(folder / CARD), folder / CARD, folder / WEIGHTS, model, device)


def _check_folder(folder: Path) -> None:
    if not folder.exists():
        _refuse(folder, "there is no such folder", "give the folder that save made")
    if not folder.is_dir():
        if folder.suffix.lower() in _PICKLES:
            _refuse(folder, "pickles are refused, since they can run code", "save the model anew")
        _refuse(folder, "this is a file", "give the folder that save made")
    if (folder / CARD).is_file():
        return
    for one in sorted(folder.iterdir()):
        if one.suffix.lower() in _PICKLES:
            _refuse(one, "pickles are refused, since they can run code", "save the model anew")
    _refuse(folder, f"this is not a model folder: it has no {CARD}", "give the one that save made")


FORMAT, SCHEMA = "ruleout model", 1
_MOST = 256 << 20  # bytes of a card: a million class names take some
_CLASS_KINDS = {"U": str, "O": str, "i": int, "u": int, "f": float, "b": bool}

#: What a card must hold, and of which type.
_KEYS: dict[str, type | tuple[type, ...]] = {
    "config": dict,
    "own_model": (str, type(None)),
    "classes": list,
    "class_kind": str,
    "features": int,
    "feature_names": (list, type(None)),
    "shape": list,
    "configuration": dict,
    "epochs": int,
    "seed": int,
    "calls": int,
    "criterion": (list, type(None)),
    "history": dict,
    "search": (dict, type(None)),
    "search_history": (dict, type(None)),
    "record": dict,
    "reading": dict,
    "weights": dict,
}


def settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON holds them.

    A random state that is no number stays out, since the card has the seed; so does a model of the
    user's own, since no card can rebuild it.
    """
    found = {name: _setting(name, value) for name, value in parameters.items()}
    return {name: plain(value, f"parameter {name}") for name, value in found.items()}


def _setting(name: str, value: Any) -> Any:
    if name == "class_weight" and isinstance(value, Mapping):
        return list(map(list, value.items()))
    if name == "criterion" and isinstance(value, Criterion):
        return value.name
    if name == "device" and value is not None:
        return str(value)
    stays_out = (name == "model" and callable(value)) or isinstance(value, np.random.RandomState)
    return None if stays_out else value


def plain(value: Any, what: str) -> Any:
    """Return a value in JSON's own types; numbers that JSON has not become text."""
    if isinstance(value, np.ndarray | np.generic | torch.Tensor):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: plain(one, what) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, what) for one in value]
    raise InputError(f"{what} holds a {type(value).__name__}", "JSON cannot; give plain values")


def class_list(classes: NDArray[Any]) -> list[Any]:
    """Return class names for a card."""
    kind = _CLASS_KINDS.get(classes.dtype.kind)
    names: list[Any] = classes.tolist()
    if kind is None or not all(type(name) is kind for name in names):
        raise InputError(
            f"the class names are of type {classes.dtype}", "name classes by text or numbers"
        )
    return names


def card_bytes(card: Mapping[str, Any]) -> bytes:
    """Return a card as JSON, with a sum that tells when it was damaged."""
    whole = {"format": FORMAT, "schema": SCHEMA, **plain(card, "the card")}
    lines = [
        f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in {**whole, "sha256": _sum(whole)}.items()
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode(errors="surrogatepass")


def _sum(card: Mapping[str, Any]) -> str:
    return sha256(json.dumps(card, sort_keys=True).encode()).hexdigest()


def parse(file: Path) -> dict[str, Any]:
    """Read a card and check that it is whole, of a schema we know, and complete."""
    if file.stat().st_size > _MOST:
        _refuse(file, f"the card is larger than {_MOST >> 20} MiB", "save the model again")
    try:
        card = json.loads(file.read_bytes(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        _refuse(file, "the card is not valid JSON", "copy the folder again")
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        _refuse(file, "this is not the card of a ruleout model", "give a folder made by save")
    schema = card.get("schema")
    if type(schema) is not int or schema < 1:
        _refuse(file, "the card has no schema number", "save the model again")
    if schema > SCHEMA:
        _refuse(file, f"this was saved by a newer ruleout (schema {schema})", "update ruleout")
    for name, kind in _KEYS.items():
        if name not in card:
            _refuse(file, f"the card lacks {name!r}", "save the model again")
        value = card[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            _refuse(file, f"the card holds a wrong {name!r}", "save the model again")
    if card.pop("sha256", None) != _sum(card):
        _refuse(file, "the card was changed after it was saved", "copy the folder again")
    return card


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def classes_of(card: Mapping[str, Any], file: Path) -> NDArray[Any]:
    """Return the class names of a card as they were trained on."""
    names, letter = card["classes"], card["class_kind"]
    kind = _CLASS_KINDS.get(letter)
    good = kind is not None and len(names) > 1 and all(type(name) is kind for name in names)
    if not good or len(set(names)) < len(names):
        _refuse(file, "the card holds a wrong 'classes'", "save the model again")
    return np.array(names, object if letter == "O" else None)


_HEADER = 1 << 20  # bytes that a header may take
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NAMES = {kind: name for name, kind in _DTYPES.items()}


class Entry(NamedTuple):
    """What a header says about one tensor."""

    kind: str
    shape: tuple[int, ...]
    begin: int
    end: int


def weights_bytes(module: nn.Module) -> bytes:
    """Return all weights and buffers of a module as a safetensors file."""
    return safetensors.save(
        {name: value.cpu().contiguous() for name, value in module.state_dict().items()}
    )


def read_weights(
    file: Path, like: nn.Module, *, floats: torch.dtype, size: int, digest: str
) -> dict[str, Tensor]:
    """Read the weights of a module.

    Parameters
    ----------
    file
        A safetensors file.
    like
        The module they are for; it may lie on the meta device, without memory.
    floats
        The dtype of its weights.
    size, digest
        Bytes and sha256 that the file must have.
    """
    if not file.is_file():
        _refuse(file, "the weights are missing", "copy the whole folder")
    found = file.stat().st_size
    if found != size:
        _refuse(file, f"the file has {found:,} bytes instead of {size:,}", "copy it again")
    with file.open("rb") as stream:
        entries = _header(file, stream, size)
        _compare(file, entries, like, floats)
        stream.seek(0)
        content = stream.read(size)
    if sha256(content).hexdigest() != digest:
        _refuse(file, "the content is not what card.json describes", "copy the whole folder again")
    weights = safetensors.load(content)
    if not all(bool(torch.isfinite(value).all()) for value in weights.values()):
        _refuse(file, "a weight is not a finite number", "train the model again")
    return weights


def _refuse(file: Path, problem: str, remedy: str) -> NoReturn:
    raise InputError(problem, remedy, file=file)


def _header(file: Path, stream: BinaryIO, size: int) -> dict[str, Entry]:
    """Return what the header says, once it is shown to describe the file to the last byte."""
    start = int.from_bytes(stream.read(8), "little")
    if size < 8 or start > _HEADER or start > size - 8:
        _lies(file, f"it claims {start:,} bytes for itself")
    try:
        told = json.loads(stream.read(start))
        entries = {name: _entry(one) for name, one in told.items() if name != "__metadata__"}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        _lies(file, "it is not a table of tensors")
    place = 0
    for name, one in sorted(entries.items(), key=lambda item: item[1][2:]):
        if one.kind not in _DTYPES:
            _lies(file, f"tensor {name[:60]!r} is of an unknown kind")
        wide = prod(one.shape) * _DTYPES[one.kind].itemsize
        if one.begin != place or one.end - one.begin != wide or min(one.shape, default=0) < 0:
            _lies(file, f"tensor {name[:60]!r} does not lie where it should")
        place = one.end
    if place != size - 8 - start:
        _lies(file, "its tensors do not fill the file")
    return entries


def _entry(told: Any) -> Entry:
    shape, (begin, end) = tuple(told["shape"]), told["data_offsets"]
    if not all(type(number) is int for number in (*shape, begin, end)):
        raise TypeError
    return Entry(str(told["dtype"]), shape, begin, end)


def _lies(file: Path, problem: str) -> NoReturn:
    _refuse(file, f"the header of the weights is wrong: {problem}", "copy the whole folder again")


def _compare(file: Path, entries: dict[str, Entry], like: nn.Module, floats: torch.dtype) -> None:
    """Raise unless the file holds exactly the tensors of the module."""
    wanted = like.state_dict()
    for name, value in wanted.items():
        kind = _NAMES.get(floats if value.is_floating_point() else value.dtype)
        found = entries.get(name)
        if found is None or found.shape != tuple(value.shape) or found.kind != kind:
            told = "nothing" if found is None else f"{found.kind} {list(found.shape)}"
            _refuse(
                file,
                f"the model needs {kind} {list(value.shape)} as {name!r}, and the file has {told}",
                "card.json and the weights belong to different models",
            )
    for name in entries:
        if name not in wanted:
            _refuse(
                file,
                f"the file holds {name[:60]!r}, which the model does not have",
                "card.json and the weights belong to different models",
            )


_WIDTHS = 1000  # hidden layers that a card may ask for


def rebuild(
    card: Mapping[str, Any],
    file: Path,
    weights: Path,
    model: Callable[..., nn.Module] | None,
    device: Any,
) -> Any:
    """Return the classifier that a card describes."""
    clf = _classifier(card, file, model, device)
    clf.classes_ = classes_of(card, file)
    shape = _shape(card, file)
    module = _module(clf, shape, file)
    told = card["weights"]
    if type(told.get("bytes")) is not int or not isinstance(told.get("sha256"), str):
        _wrong(file, "weights")
    floats = torch.float64 if clf.precision == "float64" else torch.float32
    found = read_weights(weights, module, floats=floats, size=told["bytes"], digest=told["sha256"])
    module.load_state_dict(found, assign=True)
    module.example_shape = shape  # type: ignore[assignment]  # modules take any attribute
    clf.module_ = module.eval()
    _attributes(clf, card, file)
    return clf


def _classifier(card: Mapping[str, Any], file: Path, model: Any, device: Any) -> Any:
    from ruleout.estimator.classifier import RuleOutClassifier

    config, own = dict(card["config"]), card["own_model"]
    if set(config) != set(RuleOutClassifier().get_params(deep=False)):
        _wrong(file, "config")
    if own is None and not isinstance(config["model"], str):
        _wrong(file, "config")
    if own is not None and model is None:
        raise InputError(
            f"the model was made by a function of your own ({own[:60]}), which no card can rebuild",
            "hand it in: load(path, model=...)",
            file=file,
        )
    if own is None and model is not None:
        raise InputError(
            f"the card names the model {config['model']!r}", "leave out model=...", file=file
        )
    try:
        if isinstance(config["class_weight"], list):
            config["class_weight"] = {name: float(value) for name, value in config["class_weight"]}
    except (TypeError, ValueError):
        _wrong(file, "config")
    for name in ("hidden", "shape"):
        if isinstance(config[name], list):
            config[name] = tuple(config[name])
    config |= {"device": device, "model": config["model"] if own is None else model}
    return RuleOutClassifier(**config)


def _shape(card: Mapping[str, Any], file: Path) -> tuple[int, ...]:
    shape = tuple(card["shape"])
    good = 0 < len(shape) < 9 and all(type(side) is int and side > 0 for side in shape)
    if not good or prod(shape) != card["features"]:
        _wrong(file, "shape")
    return shape


def _module(clf: Any, shape: tuple[int, ...], file: Path) -> nn.Module:
    """Build the module: one of ours without memory, so that a lie about its size costs nothing."""
    k = len(clf.classes_)
    if not isinstance(clf.model, str):
        return build(clf.model, shape, k, seed=0, **model_options(clf))
    try:
        options = model_options(clf)
        if clf.model not in MODELS or len(options.get("hidden", ())) > _WIDTHS:
            raise ValueError
        with torch.device("meta"):
            return build(clf.model, shape, k, seed=0, **options)
    except (ValueError, TypeError, RuntimeError, OverflowError, MemoryError):
        raise InputError(
            "the settings in the card make no model", "save the model again", file=file
        ) from None


def _attributes(clf: Any, card: Mapping[str, Any], file: Path) -> None:
    clf.n_features_in_ = card["features"]
    names = card["feature_names"]
    if names is not None:
        if len(names) != card["features"] or not all(isinstance(name, str) for name in names):
            _wrong(file, "feature_names")
        clf.feature_names_in_ = np.array(names, object)
    clf.configuration_, clf.n_iter_ = card["configuration"], card["epochs"]
    clf.record_, clf.reading_ = card["record"], card["reading"]
    clf.history_ = _table(card["history"], file, "history")
    for name in ("search", "search_history"):
        if card[name] is not None:
            setattr(clf, f"{name}_", _table(card[name], file, name))
    if card["criterion"] is not None:
        clf.criterion_ = _judged(card["criterion"], file)
    if card["seed"] < 0 or card["calls"] < 0:
        _wrong(file, "seed")
    clf._course = Course(card["seed"], card["calls"], clf.optimizer, None)


def _table(columns: Mapping[str, Any], file: Path, name: str) -> dict[str, Any]:
    """Return columns as arrays; of numbers, NaN and infinity stand in a card as text."""
    found = {}
    for key, column in columns.items():
        try:
            found[key] = np.array([_number(one) for one in column])
        except (TypeError, ValueError):
            _wrong(file, name)
    return found


def _judged(told: list[Any], file: Path) -> Judged:
    try:
        name, estimate, error = told
        return Judged(str(name), float(estimate), float(error))
    except (TypeError, ValueError):
        _wrong(file, "criterion")


def _number(value: Any) -> Any:
    return float(value) if value in ("nan", "inf", "-inf") else value


def _wrong(file: Path, name: str) -> NoReturn:
    raise InputError(f"the card holds a wrong {name!r}", "save the model again", file=file)
