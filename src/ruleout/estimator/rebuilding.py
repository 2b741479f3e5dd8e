"""From a card and weights to a fitted classifier, with a check at every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import nn

from ruleout.estimator.cards import classes_of
from ruleout.estimator.fitting import Course
from ruleout.estimator.outcome import Judged
from ruleout.estimator.settings import model_options
from ruleout.estimator.tensors import read_weights
from ruleout.labels.errors import InputError
from ruleout.models import MODELS, build

__all__ = ["rebuild"]

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
