"""LabelledArray: an array that knows what its axes mean. The border between tensors and pictures.

Everything a figure says about its numbers (axis names, tokens, unit) travels with them, and the
table behind the figure comes from the same object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """One axis: its name and a label for each index; labels need not differ from each other."""

    name: str
    labels: tuple[str, ...]


def number_axis(name: str, count: int, first: int = 0) -> Axis:
    """An axis whose labels are numbers, by default from 0."""
    return Axis(name, tuple(map(str, range(first, first + count))))


@dataclass(frozen=True)
class LabelledArray:
    """Values [len(axis) for each axis] with a unit; NaN marks a value that does not exist (a masked
    cell).

    Raises:
        ValueError: the axes do not fit the shape of the values.
    """

    values: npt.NDArray[np.generic]
    axes: tuple[Axis, ...]
    unit: str

    def __post_init__(self) -> None:
        expected = tuple(len(axis.labels) for axis in self.axes)
        if self.values.shape != expected:
            names = ", ".join(axis.name for axis in self.axes)
            raise ValueError(
                f"values of shape {self.values.shape} do not fit the axes ({names}) of lengths "
                f"{expected}"
            )

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values; NaN where a value does not exist."""
        axes = [{"name": axis.name, "labels": list(axis.labels)} for axis in self.axes]
        return {"unit": self.unit, "axes": axes, "values": self.values.tolist()}

    def records(self) -> dict[str, Sequence[object]]:
        """Columns of a table with one row per value: position and label on each axis, then the
        value.
        """
        indices = np.indices(self.values.shape).reshape(len(self.axes), -1)
        columns: dict[str, Sequence[object]] = {}
        for axis, index in zip(self.axes, indices, strict=True):
            columns[f"{axis.name} position"] = index.tolist()
            columns[axis.name] = [axis.labels[i] for i in index]
        columns[self.unit] = self.values.ravel().tolist()
        return columns


def as_json(value: Any) -> Any:
    """A value as JSON has it: an array as lists, a result or a named tuple by its fields; NaN
    stays.
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    return fields_as_json(value) if is_dataclass(value) else value


def fields_as_json(result: Any) -> dict[str, Any]:
    """All fields of a result, a dataclass, as JSON values; NaN where a value does not exist."""
    return {each.name: as_json(getattr(result, each.name)) for each in fields(result)}
