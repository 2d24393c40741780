"""What each setting of a recipe or an architecture does, in a sentence: the helps of the form and of the Runs page."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args, get_type_hints

from gptviz.fields import FieldInfo, field_infos
from gptviz.model import Config
from gptviz.train.recipe import HELP, Recipe

HELPS = {name: info.help for name, info in field_infos(Config).items()} | HELP | {"data": "What it learned from."}

_LABELS = {
    "minutes": "Minutes instead",
    "beta1": "Beta 1",
    "beta2": "Beta 2",
    "clip": "Clip gradients at",
    "snapshots": "Snapshots per doubling",
}


def _info(name: str, kind: Any) -> FieldInfo:
    words = tuple(part for part in get_args(kind) if isinstance(part, str))
    is_whole = kind is int or int in get_args(kind)
    label = _LABELS.get(name, name.replace("_", " ").capitalize())
    return FieldInfo(name, label, HELP[name], "choice" if words else "whole" if is_whole else "number", choices=words)


RECIPE_FIELDS = {field.name: _info(field.name, get_type_hints(Recipe)[field.name]) for field in fields(Recipe)}
