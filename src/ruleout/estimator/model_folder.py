"""Models on disk: a folder of ``model.safetensors`` and ``card.json``, written whole, no pickle.

Where folds chose, ``folds.safetensors`` holds their models, by which `resolve` names fresh rows. A
folder may come from anybody: everything in it is checked before it is believed, and nothing in it
is executed. A model is also written as ONNX, for others to read.
"""

import json
import logging
import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from hashlib import sha256
from math import isfinite, prod
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import torch as safetensors
from torch import Tensor, nn

from ruleout.estimator.classifier import (
    Committee,
    Judged,
    RuleOutClassifier,
    Scaled,
    TrainingState,
)
from ruleout.labels.atomic import atomic_folder, atomic_write
from ruleout.labels.errors import InputError
from ruleout.methods import Approach, approach, approaches
from ruleout.models import MODELS, build
from ruleout.selection import Criterion

CARD, WEIGHTS, FOLDS = "card.json", "model.safetensors", "folds.safetensors"
FORMAT, SCHEMA = "ruleout model", 1

_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib")
_CARD_BYTES = 256 << 20  # a million class names take some
_HEADER_BYTES = 1 << 20
#: Hidden layers, models of folds and members that a card may ask for.
_WIDTHS, _MODELS, _MEMBERS = 1000, 20, 1000
_CLASS_KINDS = {"U": str, "O": str, "i": int, "u": int, "f": float, "b": bool}
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_DTYPE_NAMES = {kind: name for name, kind in _DTYPES.items()}

#: What a card must hold, by type.
_KEYS: dict[type | tuple[type, ...], str] = {
    dict: "config configuration history record reading weights",
    list: "classes shape",
    str: "class_kind",
    int: "features epochs seed calls",
    (dict, type(None)): "search search_history",
    (list, type(None)): "feature_names criterion",
    (str, type(None)): "own_model",
}


def save(clf: RuleOutClassifier, path: str | Path, reading: Mapping[str, Any]) -> None:
    """Write a fitted classifier; the folder takes its name when all of it is on disk."""
    target = check_place(path)
    content: dict[str, bytes] = {}
    for name, module in ((WEIGHTS, clf.module_), (FOLDS, clf._fold_models)):
        tensors = {name: one.cpu().contiguous() for name, one in module.state_dict().items()}
        content |= {name: safetensors.save(tensors)} if tensors else {}
    content[CARD] = _card_bytes(_card(clf, reading, content))
    with atomic_folder(target, _move) as part:
        for name, data in content.items():
            with atomic_write(part / name) as out:
                out.write(data)


def check_place(path: str | Path) -> Path:
    """Return the folder that `path` means; raise if a model cannot be written there."""
    target = Path(os.path.realpath(os.path.expanduser(path)))
    if not target.parent.is_dir():
        _refuse(target.parent, "the folder does not exist", "make it first")
    if not os.access(target.parent, os.W_OK):
        _refuse(target.parent, "nothing can be written there", "choose another folder")
    if not target.exists():
        return target
    if not target.is_dir():
        _refuse(target, "this is a file", "give the name of a folder")
    found = {one.name for one in target.iterdir()}
    if found:
        try:
            _parse(target / CARD)
        except (InputError, OSError):
            _refuse(target, "the folder holds something else", "choose another name")
    if more := found - {CARD, WEIGHTS, FOLDS}:
        problem = f"the model folder also holds {min(more)!r}, which would be lost"
        _refuse(target, problem, "move it, or choose another name")
    return target


def _card(
    clf: RuleOutClassifier, reading: Mapping[str, Any], content: Mapping[str, bytes]
) -> dict[str, Any]:
    own, shape = clf.model, cast(tuple[int, ...], clf.module_.example_shape)
    names = getattr(clf, "feature_names_in_", None)
    told = clf.get_params(deep=False)
    told |= _named(clf.approach, clf.approach_options) if isinstance(clf.approach, Approach) else {}
    config = {name: _setting(name, one) for name, one in told.items()}
    sums = {n: {"bytes": len(w), "sha256": sha256(w).hexdigest()} for n, w in content.items()}
    return {
        "config": {name: _plain(one, f"parameter {name}") for name, one in config.items()},
        "own_model": None if isinstance(own, str) else getattr(own, "__qualname__", str(own)),
        "classes": _class_list(clf.classes_),
        "class_kind": clf.classes_.dtype.kind,
        "features": clf.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "shape": list(shape),
        "configuration": clf.configuration_,
        "epochs": clf.n_iter_,
        "seed": clf._state.seed,
        "calls": clf._state.calls,
        "criterion": list(clf.criterion_) if hasattr(clf, "criterion_") else None,
        "history": clf.history_,
        "search": getattr(clf, "search_", None),
        "search_history": getattr(clf, "search_history_", None),
        "record": clf.record_,
        "reading": dict(reading),
        "weights": sums[WEIGHTS],
        "folds": {"models": len(clf._fold_models), **sums.get(FOLDS, {})},
    }


def _named(own: Approach, options: Any) -> dict[str, Any]:
    """Return the name that an approach is registered under, else its own, and its options."""
    source = replace(own.source, options={})
    table = {name: approach(name) for name in approaches()}
    same = (name for name, row in table.items() if (row.form, row.source) == (own.form, source))
    name = next(same, None if own.name in table else own.name)  # None: the name means another
    try:
        every = _plain({**own.options, **(options or {})}, "the approach")
    except InputError:
        name, every = None, options
    return {"approach": name, "approach_options": every or None}


def _setting(name: str, value: Any) -> Any:
    """Return a parameter for the card, None for what no card can rebuild."""
    if name == "class_weight" and isinstance(value, Mapping):
        return list(map(list, value.items()))
    if name == "criterion" and isinstance(value, Criterion):
        return value.name
    if name == "device" and value is not None:
        return str(value)
    stays_out = (name == "model" and callable(value)) or isinstance(value, np.random.RandomState)
    return None if stays_out else value


def _plain(value: Any, what: str) -> Any:
    """Return a value in JSON's own types; numbers that JSON has not become text."""
    if isinstance(value, np.ndarray | np.generic | torch.Tensor):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _plain(one, what) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, what) for one in value]
    raise InputError(f"{what} holds a {type(value).__name__}", "JSON cannot; give plain values")


def _class_list(classes: NDArray[Any]) -> list[Any]:
    kind = _CLASS_KINDS.get(classes.dtype.kind)
    names: list[Any] = classes.tolist()
    if kind is None or not all(type(name) is kind for name in names):
        problem = f"the class names are of type {classes.dtype}"
        raise InputError(problem, "name classes by text or numbers")
    return names


def _card_bytes(card: Mapping[str, Any]) -> bytes:
    """Return a card as JSON, with a sum that tells when it was damaged."""
    whole = {"format": FORMAT, "schema": SCHEMA, **_plain(card, "the card")}
    lines = [
        f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in {**whole, "sha256": _sum(whole)}.items()
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode(errors="surrogatepass")


def _sum(card: Mapping[str, Any]) -> str:
    return sha256(json.dumps(card, sort_keys=True).encode()).hexdigest()


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


def export(clf: RuleOutClassifier, path: str | Path) -> None:
    """Write ONNX, whole or not at all: rows in, probabilities out, class names in the metadata."""
    try:
        import onnx  # noqa: F401  # only to see whether they are there
        import onnxscript  # noqa: F401
    except ImportError:
        say = "pip install 'ruleout[export]'"
        raise InputError("export needs onnx and onnxscript", say) from None
    shape: Any = clf.module_.example_shape
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)  # the exporter talks about its own parts
    try:
        with warnings.catch_warnings(action="ignore"):
            program = torch.onnx.export(
                nn.Sequential(deepcopy(clf.module_).float().cpu(), nn.Softmax(-1)).eval(),
                (torch.zeros(2, *shape),),
                dynamo=True,
                input_names=["x"],
                output_names=["probabilities"],
                dynamic_shapes=({0: torch.export.Dim("rows")},),
                verbose=False,
            )
    finally:
        log.setLevel(level)
    assert program is not None
    proto = program.model_proto
    names, record = json.dumps(_class_list(clf.classes_)), clf.record_
    facts = {"classes": names, "ruleout": record["versions"]["ruleout"], "data": record["data"]}
    for name, value in facts.items():
        proto.metadata_props.add(key=name, value=value)
    with atomic_write(path) as out:
        out.write(proto.SerializeToString())


def load(
    path: str | Path, *, model: Callable[..., nn.Module] | None = None, device: Any = None
) -> RuleOutClassifier:
    """Return the classifier that was saved in a folder.

    Nothing in the folder is executed: pickles are refused, and a model made by a function of the
    user's own is rebuilt by the function handed in.

    Parameters
    ----------
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
    folder = Path(os.path.expanduser(path))
    _check_folder(folder)
    file = folder / CARD
    card = _parse(file)
    clf = _classifier(card, file, model, device)
    shape = tuple(card["shape"])
    if len(shape) not in range(1, 9) or not _is_shape(shape, card["features"]):
        _wrong(file, "shape")
    module = _untrained(clf, shape, card["configuration"], file)
    folds = card.get("folds", {"models": 0})  # which older ones lack
    count = folds.get("models") if isinstance(folds, dict) else None
    members = card["record"].get("members", [])
    if type(count) is not int or count not in range(_MODELS):
        _wrong(file, "folds")
    good = isinstance(members, list) and all(isinstance(one, dict) for one in members)
    good = good and "model" in card["record"] and isinstance(card["record"].get("data"), str)
    if not good or len(members) > _MEMBERS:
        _wrong(file, "record")
    single = module
    if members:
        module = Committee(_untrained(clf, shape, one, file) for one in members)
    if card["record"].get("scaled") is True:
        empty = [torch.empty(prod(shape), device="meta") for _ in range(2)]
        single, module = Scaled(single, *empty), Scaled(module, *empty)
    for one in (single, module):
        one.example_shape = shape  # type: ignore[assignment]  # modules take any attribute
    clf._fold_models = nn.ModuleList(deepcopy(single) for _ in range(count)).eval()
    floats = torch.float64 if clf.precision == "float64" else torch.float32
    for name, one, told in ((WEIGHTS, module, "weights"), (FOLDS, clf._fold_models, "folds")):
        if one.state_dict():
            one.load_state_dict(_read_weights(folder / name, one, floats, card[told]), assign=True)
    clf.module_ = module.eval()
    _attributes(clf, card, file)
    return clf


def _is_shape(shape: Sequence[Any], features: int) -> bool:
    good = all(type(side) is int and side > 0 for side in shape)
    return good and prod(shape) == features


def _refuse(file: Path, problem: str, remedy: str) -> NoReturn:
    raise InputError(problem, remedy, file=file)


def _wrong(file: Path, name: str) -> NoReturn:
    _refuse(file, f"the card holds a wrong {name!r}", "save the model again")


def _check_folder(folder: Path) -> None:
    if not folder.exists():
        _refuse(folder, "there is no such folder", "give the folder that save made")
    inside = sorted(folder.iterdir()) if folder.is_dir() else [folder]
    if folder / CARD in inside and (folder / CARD).is_file():
        return
    for one in inside:
        if one.suffix.lower() in _PICKLES:
            _refuse(one, "pickles are refused, since they can run code", "save the model anew")
    if not folder.is_dir():
        _refuse(folder, "this is a file", "give the folder that save made")
    _refuse(folder, f"this is not a model folder: it has no {CARD}", "give the one that save made")


def _parse(file: Path) -> dict[str, Any]:
    """Read a card and check that it is whole, of a schema we know, and complete."""
    if file.stat().st_size > _CARD_BYTES:
        _refuse(file, f"the card is larger than {_CARD_BYTES >> 20} MiB", "save the model again")
    try:
        card = json.loads(file.read_bytes(), parse_constant=int)  # raises for NaN and Infinity
    except (ValueError, RecursionError):
        _refuse(file, "the card is not valid JSON", "copy the folder again")
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        _refuse(file, "this is not the card of a ruleout model", "give a folder made by save")
    schema = card.get("schema")
    if type(schema) is not int or schema < 1:
        _refuse(file, "the card has no schema number", "save the model again")
    if schema > SCHEMA:
        _refuse(file, f"this was saved by a newer ruleout (schema {schema})", "update ruleout")
    for kind, names in _KEYS.items():
        for name in names.split():
            if name not in card:
                _refuse(file, f"the card lacks {name!r}", "save the model again")
            if not isinstance(card[name], kind) or isinstance(card[name], bool):
                _wrong(file, name)
    if card.pop("sha256", None) != _sum(card):
        _refuse(file, "the card was changed after it was saved", "copy the folder again")
    return card


def _classifier(card: Mapping[str, Any], file: Path, model: Any, device: Any) -> RuleOutClassifier:
    older = {"scale": False, "members": None}  # what some cards lack
    config, own = older | card["config"], card["own_model"]
    if set(config) != set(RuleOutClassifier().get_params(deep=False)):
        _wrong(file, "config")
    if own is None and not isinstance(config["model"], str):
        _wrong(file, "config")
    if own is not None and model is None:
        problem = f"the model was made by a function of your own ({own[:60]}), which no card can "
        _refuse(file, problem + "rebuild", "hand it in: load(path, model=...)")
    if own is None and model is not None:
        _refuse(file, f"the card names the model {config['model']!r}", "leave out model=...")
    try:
        if isinstance(config["class_weight"], list):
            config["class_weight"] = {name: float(value) for name, value in config["class_weight"]}
    except (TypeError, ValueError):
        _wrong(file, "config")
    for name in ("hidden", "shape"):
        if isinstance(config[name], list):
            config[name] = tuple(config[name])
    config |= {"device": device, "model": config["model"] if own is None else model}
    clf = RuleOutClassifier(**config)
    names, letter = card["classes"], card["class_kind"]
    kind = _CLASS_KINDS.get(letter)
    good = kind is not None and len(names) > 1 and all(type(name) is kind for name in names)
    if not good or len(set(names)) < len(names):
        _wrong(file, "classes")
    clf.classes_ = np.array(names, object if letter == "O" else None)
    return clf


def _untrained(
    clf: RuleOutClassifier, shape: tuple[int, ...], chosen: Mapping[str, Any], file: Path
) -> nn.Module:
    """Build the module: one of ours without memory, so that a lie about its size costs nothing."""
    k = len(clf.classes_)
    if not isinstance(clf.model, str):
        return build(clf.model, shape, k, seed=0, **clf._model_options(chosen))
    try:
        options = clf._model_options(chosen)
        if clf.model not in MODELS or np.size(options.get("hidden", ())) > _WIDTHS:
            raise ValueError
        with torch.device("meta"):
            return build(clf.model, shape, k, seed=0, **options)
    except (ValueError, TypeError, RuntimeError, OverflowError, MemoryError):
        _refuse(file, "the settings in the card make no model", "save the model again")


def _attributes(clf: RuleOutClassifier, card: Mapping[str, Any], file: Path) -> None:
    clf.n_features_in_ = card["features"]
    names = card["feature_names"]
    if names is not None:
        if len(names) != card["features"] or not all(isinstance(name, str) for name in names):
            _wrong(file, "feature_names")
        clf.feature_names_in_ = np.array(names, object)
    clf.configuration_, clf.n_iter_ = card["configuration"], card["epochs"]
    clf.record_, clf.reading_ = card["record"], card["reading"]
    read = clf.reading_.get("features", []), clf.reading_.get("shape", [])
    good = all(isinstance(one, list) for one in read) and all(isinstance(n, str) for n in read[0])
    if clf.reading_.get("kind") == "images":  # channels, height, width
        good = good and len(read[1]) == 3 and _is_shape(read[1], card["features"])
    if not good:
        _wrong(file, "reading")
    clf.history_ = _table(card["history"], file, "history")
    if not {"epoch", "loss"} <= set(clf.history_):
        _wrong(file, "history")
    for name in ("search", "search_history"):
        if card[name] is not None:
            setattr(clf, f"{name}_", _table(card[name], file, name))
    if card["criterion"] is not None:
        try:
            name, *numbers = card["criterion"]
            told: Any = [None if one is None else float(one) for one in numbers]
            clf.criterion_ = Judged(str(name), *told)
        except (TypeError, ValueError):
            _wrong(file, "criterion")
    for name in ("seed", "calls", "epochs"):
        if not 0 <= card[name] < 2**63:
            _wrong(file, name)
    clf._state = TrainingState(card["seed"], card["calls"], clf.optimizer, None)


def _table(columns: Mapping[str, Any], file: Path, name: str) -> dict[str, Any]:
    """Return columns as arrays; NaN and infinity are text in a card."""
    text = ("nan", "inf", "-inf")
    try:
        return {
            key: np.array([float(one) if one in text else one for one in column])
            for key, column in columns.items()
        }
    except (TypeError, ValueError):
        _wrong(file, name)


def _read_weights(
    file: Path, like: nn.Module, floats: torch.dtype, told: Mapping[str, Any]
) -> dict[str, Tensor]:
    """Read weights, once the file has the card's bytes and exactly the module's tensors."""
    if type(told.get("bytes")) is not int or not isinstance(told.get("sha256"), str):
        _wrong(file.with_name(CARD), "weights" if file.name == WEIGHTS else "folds")
    if not file.is_file():
        _refuse(file, "the weights are missing", "copy the whole folder")
    found, size = file.stat().st_size, told["bytes"]
    if found != size:
        _refuse(file, f"the file has {found:,} bytes instead of {size:,}", "copy it again")
    with file.open("rb") as stream:
        entries = _header(file, stream, size)
        _compare(file, entries, like, floats)
        stream.seek(0)
        content = stream.read(size)
    if sha256(content).hexdigest() != told["sha256"]:
        _refuse(file, "the content is not what card.json describes", "copy the whole folder again")
    weights: dict[str, Tensor] = safetensors.load(content)
    if not all(bool(torch.isfinite(value).all()) for value in weights.values()):
        _refuse(file, "a weight is not a finite number", "train the model again")
    return weights


def _header(file: Path, stream: BinaryIO, size: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return kind and shape of every tensor, once they are shown to fill the file."""

    def lies(problem: str) -> NoReturn:
        say = f"the header of the weights is wrong: {problem}"
        _refuse(file, say, "copy the whole folder again")

    start = int.from_bytes(stream.read(8), "little")
    if size < 8 or start > _HEADER_BYTES or start > size - 8:
        lies(f"it claims {start:,} bytes for itself")
    try:
        told = json.loads(stream.read(start))
        told.pop("__metadata__", None)
        entries = []
        for name, one in told.items():
            shape, (begin, end) = tuple(one["shape"]), one["data_offsets"]
            if not all(type(number) is int for number in (*shape, begin, end)):
                raise TypeError
            entries.append((begin, end, name, str(one["dtype"]), shape))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        lies("it is not a table of tensors")
    place = 0
    for begin, end, name, kind, shape in sorted(entries):
        if kind not in _DTYPES:
            lies(f"tensor {name[:60]!r} is of an unknown kind")
        wide = prod(shape) * _DTYPES[kind].itemsize
        if begin != place or end - begin != wide or min(shape, default=0) < 0:
            lies(f"tensor {name[:60]!r} does not lie where it should")
        place = end
    if place != size - 8 - start:
        lies("its tensors do not fill the file")
    return {name: (kind, shape) for _, _, name, kind, shape in entries}


def _compare(file: Path, entries: Mapping[str, Any], like: nn.Module, floats: torch.dtype) -> None:
    wanted, remedy = like.state_dict(), "card.json and the weights belong to different models"
    for name, value in wanted.items():
        kind = _DTYPE_NAMES.get(floats if value.is_floating_point() else value.dtype)
        found = entries.get(name)
        if found != (kind, tuple(value.shape)):
            told = "nothing" if found is None else f"{found[0]} {list(found[1])}"
            needs = f"the model needs {kind} {list(value.shape)} as {name!r}"
            _refuse(file, f"{needs}, and the file has {told}", remedy)
    for name in entries:
        if name not in wanted:
            _refuse(file, f"the file holds {name[:60]!r}, which the model does not have", remedy)
