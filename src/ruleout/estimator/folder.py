"""Models on disk: a folder of ``model.safetensors`` and ``card.json``, written whole, no pickle."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from sklearn.utils.validation import check_is_fitted
from torch import nn

from ruleout.estimator.cards import FORMAT, card_bytes, class_list, parse, settings
from ruleout.estimator.rebuilding import rebuild
from ruleout.estimator.tensors import weights_bytes
from ruleout.labels.atomic import atomic_folder
from ruleout.labels.errors import InputError

__all__ = ["CARD", "WEIGHTS", "check_place", "load", "save"]

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


def _refuse(file: Path, problem: str, remedy: str) -> NoReturn:
    raise InputError(problem, remedy, file=file)
