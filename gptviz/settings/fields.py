"""The settings of a dataclass, and those of a function, describe themselves: the label of each, its
effect and its values.

A field is declared with `setting(default, label, help, …)`; forms, the command line and tables read
it with `field_info`. A parameter is described by its type, such as those of `kinds`, and read with
`parameter_infos`. Nothing heavy is imported here, so that the command line can print its help at
once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    Protocol,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

Kind = Literal["switch", "whole", "number", "choice", "text", "other"]


class Described(Protocol):
    """A choice that describes itself, as every class of a part of a model does."""

    @property
    def title(self) -> str: ...
    @property
    def equation(self) -> str: ...
    @property
    def about(self) -> str: ...


@dataclass(frozen=True)
class FieldInfo:
    """The description of one field."""

    name: str
    label: str  #: its name in a form
    help: str  #: its effect, in a sentence that a newcomer understands
    #: the kind of its value: true or false, a whole number, any number, one of some words, other
    #: text, or something else
    kind: Kind
    optional: bool = False  #: whether None is a value too
    low: float | None = None  #: the least value, or None if there is no limit
    high: float | None = None  #: the largest value, or None if there is no limit
    low_excluded: bool = False  #: whether values must stay above `low`
    high_excluded: bool = False  #: whether values must stay below `high`
    choices: tuple[str, ...] = ()  #: the words it may be; empty for numbers and for true or false
    #: by word, the description of a choice, if it has one
    about_choices: Mapping[str, Described] = field(default_factory=dict, hash=False)
    group: str = ""  #: the heading under which a form has it, or empty
    #: the field that decides whether this one has an effect, and the values of that field with
    #: which it has; no values mean any value but None
    needs: tuple[str, tuple[object, ...]] | None = None

    def has_effect(self, values: Mapping[str, Any]) -> bool:
        """Whether this field changes anything if the fields have these `values`."""
        if self.needs is None or self.needs[0] not in values:
            return True
        value = values[self.needs[0]]
        wanted = self.needs[1]
        if wanted:
            return value in wanted
        return value is not None

    @property
    def full_help(self) -> str:
        """The help, then a line of Markdown for each choice that has a description."""
        lines = [
            f"- **{name}**: {choice.about}" + (f" `{choice.equation}`" if choice.equation else "")
            for name, choice in self.about_choices.items()
        ]
        return "\n".join([self.help, *([""] if lines else []), *lines])


def field_metadata(
    label: str,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: Mapping[str, Described] | None = None,
    group: str = "",
    needs: tuple[str, tuple[object, ...]] | None = None,
) -> dict[str, Any]:
    """The metadata of a field: its description (see `FieldInfo`).

    Args:
        above: instead of `low`, the value that it must stay above.
        below: instead of `high`, the value that it must stay below.
        choices: a table whose keys are the words that the field may be; it may grow later. A field
            whose type is a `Literal` needs none.
    """
    lowest = {"low": low if above is None else above, "low_excluded": above is not None}
    highest = {"high": high if below is None else below, "high_excluded": below is not None}
    description = {
        "label": label,
        "help": help,
        **lowest,
        **highest,
        "group": group,
        "needs": needs,
    }
    return {"description": description, "choices": choices}


def setting(default: object, label: str, help: str, **limits: Any) -> Any:
    """A field of a dataclass with its default and its description (see `field_metadata`)."""
    return field(default=default, metadata=field_metadata(label, help, **limits))


@cache
def _declared_fields(settings: Any) -> dict[str, tuple[FieldInfo, Mapping[str, Described] | None]]:
    """Of every field of a dataclass, by name: its description as it was declared, and its table of
    choices, which may grow.
    """
    hints = get_type_hints(settings, include_extras=True)
    declared = {}
    for setting in fields(settings):
        table = setting.metadata.get("choices")
        info = info_of(hints[setting.name], setting.name)
        kind: Kind = info.kind if table is None else "choice"
        declared[setting.name] = (
            replace(info, kind=kind, **setting.metadata.get("description", {})),
            table,
        )
    return declared


def _alternatives(hint: Any) -> list[Any]:
    """The types, or the words, of a type."""
    if get_origin(hint) is Annotated:
        return _alternatives(hint.__origin__)
    if get_origin(hint) in (Union, UnionType):
        return [each for part in get_args(hint) for each in _alternatives(part)]
    return [*get_args(hint)] if get_origin(hint) is Literal else [hint]


def info_of(hint: Any, name: str = "") -> FieldInfo:
    """The description of a setting of a type; if that is `Annotated` with a description, or may be,
    with its label, help and limits.
    """
    alternatives = _alternatives(hint)
    optional = NoneType in alternatives
    values = [each for each in alternatives if each is not NoneType]
    kinds: dict[Any, Kind] = {bool: "switch", str: "text", int: "whole", float: "number"}
    words = tuple(each for each in values if isinstance(each, str))
    kind = kinds.get(values[0], "other") if len(values) == 1 else "other"
    described = [
        each
        for part in (hint, *get_args(hint))
        for each in getattr(part, "__metadata__", ())
        if isinstance(each, FieldInfo)
    ]
    return replace(
        described[0] if described else FieldInfo("", "", "", "other"),
        name=name,
        kind="choice" if words and len(words) == len(values) else kind,
        optional=optional,
        choices=words,
    )


@cache
def parameter_infos(function: Callable[..., Any]) -> dict[str, FieldInfo]:
    """The descriptions of the parameters of a function that have a type, by name and in order."""
    hints = get_type_hints(function, include_extras=True)
    return {name: info_of(hint, name) for name, hint in hints.items() if name != "return"}


def described(label: str, help: str = "") -> FieldInfo:
    """The description of a setting whose values its type says: for `Annotated`. Of an option that
    has no choices, the label stands for its value in the help.
    """
    return FieldInfo("", label, help, "other")


def field_info(settings: type, name: str) -> FieldInfo:
    """The description of the field `name` of a dataclass, with the choices that there are now; a
    ValueError without the field.
    """
    declared = _declared_fields(settings)
    if name not in declared:
        raise ValueError(
            f"{settings.__name__} has no field {name!r:.80}; it has {', '.join(declared)}"
        )
    info, table = declared[name]
    if table is None:
        return info
    return replace(info, choices=tuple(table), about_choices=dict(table))


def field_infos(settings: type) -> dict[str, FieldInfo]:
    """`field_info` of every field of a dataclass, by name and in order."""
    return {name: field_info(settings, name) for name in _declared_fields(settings)}


def check_choices(settings: Any) -> None:
    """Refuse a dataclass with a field that is none of its choices, or no truth value; the message
    names field, value, choices.
    """
    for name, (info, table) in _declared_fields(cast(Any, type(settings))).items():
        value = getattr(settings, name)
        choices = info.choices if table is None else tuple(table)
        if info.kind == "switch" and not isinstance(value, bool):
            raise ValueError(f"{name} is {value!r:.80}; it must be true or false")
        if info.kind == "choice":
            _check_choice(name, value, choices)


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r:.80}; it must be one of {', '.join(choices)}")


def check_value(info: FieldInfo, name: str, value: Any) -> None:
    """Refuse a value that is no text, no word or no number that a setting may be; the ValueError
    calls it `name`.
    """
    if value is None and info.optional:
        return
    if info.kind == "text" and not isinstance(value, str):
        raise ValueError(f"{name} is {value!r:.80}; it must be a text")
    if info.kind == "choice":
        _check_choice(name, value, info.choices)
    elif info.kind in ("whole", "number"):
        # numbers of numpy are numbers too
        check_number(info, name, value.item() if hasattr(value, "item") else value)


def check_numbers(settings: object) -> None:
    """Refuse a dataclass with a number that is none or beyond its limits; the ValueError names
    field, value and limits.
    """
    for name, (info, _) in _declared_fields(cast(Any, type(settings))).items():
        if info.kind in ("whole", "number"):
            check_value(info, name, getattr(settings, name))


def check_number(info: FieldInfo, name: str, value: object) -> None:
    """Refuse a value that is no number, or beyond its limits; the ValueError calls it `name`."""
    if not is_within(info, value):
        raise ValueError(f"{name} is {value!r:.80}; it must be {limits(info)}")


def whole_number(low: int | None = None, high: int | None = None) -> FieldInfo:
    """Whole numbers from `low` to `high`."""
    return FieldInfo("", "", "", "whole", low=low, high=high)


def real_number(low: float | None = None, high: float | None = None) -> FieldInfo:
    """Numbers from `low` to `high`."""
    return FieldInfo("", "", "", "number", low=low, high=high)


def is_within(info: FieldInfo, value: object) -> bool:
    """Whether a value is a number that this field may have."""
    if isinstance(value, bool) or not isinstance(
        value, int if info.kind == "whole" else int | float
    ):
        return False
    # Compared with the largest number instead of asking whether it is finite: a whole number may be
    # too large for a float.
    if not -sys.float_info.max <= value <= sys.float_info.max:
        return False
    too_low = info.low is not None and (
        value <= info.low if info.low_excluded else value < info.low
    )
    too_high = info.high is not None and (
        value >= info.high if info.high_excluded else value > info.high
    )
    return not too_low and not too_high


def limits(info: FieldInfo) -> str:
    """The values that are allowed, in words."""
    what = "a whole number" if info.kind == "whole" else "a number"
    if info.low is None:
        return what
    if info.high is None:
        if info.low_excluded:
            return f"{what}, more than {info.low:g}"
        return f"{what}, {info.low:g} or more"
    first = "above" if info.low_excluded else "from"
    last = "up to, not including," if info.high_excluded else "to"
    return f"{what} {first} {info.low:,} {last} {info.high:,}"
