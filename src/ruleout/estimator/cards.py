"""`card.json`: everything about a saved model that is not its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from ruleout.labels.errors import InputError
from ruleout.selection import Criterion

__all__ = ["FORMAT", "SCHEMA", "card_bytes", "class_list", "classes_of", "parse", "settings"]

FORMAT, SCHEMA = "ruleout model", 1
_MOST = 256 << 20  # bytes of a card: a million class names take some
_KINDS = {"U": str, "O": str, "i": int, "u": int, "f": float, "b": bool}

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
    kind = _KINDS.get(classes.dtype.kind)
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


def _refuse(file: Path, problem: str, remedy: str) -> NoReturn:
    raise InputError(problem, remedy, file=file)


def classes_of(card: Mapping[str, Any], file: Path) -> NDArray[Any]:
    """Return the class names of a card as they were trained on."""
    names, letter = card["classes"], card["class_kind"]
    kind = _KINDS.get(letter)
    good = kind is not None and len(names) > 1 and all(type(name) is kind for name in names)
    if not good or len(set(names)) < len(names):
        _refuse(file, "the card holds a wrong 'classes'", "save the model again")
    return np.array(names, object if letter == "O" else None)
