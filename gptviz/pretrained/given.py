"""What a file from elsewhere says, and the one rule for all formats: what is in a file is read, or
is known to change nothing, or is refused by its name.

`Given` notes which settings are read; `refuse_unread` then refuses all others, except those that a
table of the format lists, each beside the reason why it changes nothing. Of tensors the reader of a
format takes those that it knows, and `without_place` refuses what is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from torch import Tensor

from gptviz.model.config import describe_field
from gptviz.model.precision import are_finite
from gptviz.settings.fields import FieldInfo, is_within, limits

# The name of a field of our config in a message.
_NAME = re.compile(r"^[a-z]\w*|[a-z]+_\w+")
# The settings of a file that change nothing: by the reason, their names with * for any letters,
# with spaces between them.
WithoutEffect = Mapping[str, str]


class ImportRefusedError(ValueError):
    """A model, or something for one, that cannot be opened; the message names the file or field,
    and what can be done, if anything.
    """


class Given:
    """The settings of a file, or of a table in it. An impossible value is refused with an
    `ImportRefusedError` that names it.
    """

    def __init__(
        self,
        fields: Mapping[str, Any],
        kind: str,
        file: str = "config.json",
        names: dict[str, str] | None = None,
    ) -> None:
        self.fields = fields  #: by name
        self.kind = kind  #: what the file has, for messages, such as "Llama model"
        self.file = file  #: the name of the file, and of the table
        #: by the names of fields of our config, those that they were read from
        self.names = {} if names is None else names
        self.read: set[str] = set()  #: the names of the fields that something was read from

    def _read_field(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return self.fields.get(name, default)

    def refusal(self, name: str, words: str) -> ImportRefusedError:
        """The error about a field; `words` say what is wrong with its value."""
        value = " ".join(repr(self.fields.get(name)).split())
        return ImportRefusedError(f"{self.file}: {name} is {value:.80}; {words}")

    def refuse_unread(self, *tables: WithoutEffect) -> None:
        """Refuse a field that nothing has read, unless one of the `tables` says why it changes
        nothing. A field that is null, false or empty says that something is not there.
        """
        known = [name for table in tables for names in table.values() for name in names.split()]
        for name in sorted(self.fields.keys() - self.read, key=str):
            value = self.fields[name]
            is_empty = not isinstance(value, int | float | Tensor) and not value
            if value is None or value is False or is_empty:
                continue
            if not any(fnmatchcase(str(name), one) for one in known):
                raise self.refusal(
                    name,
                    f"gptviz does not know this field of {self.kind}s, and it may change what is "
                    "computed. If you know that it does not, take it out of the file",
                )

    def change_fields(self, missing: Mapping[str, Any] | None = None, **changes: Any) -> Given:
        """The same with these values for fields that are `missing`, and with these `changes`."""
        changed = self._same_kind({**(missing or {}), **self.fields, **changes}, self.file)
        changed.read = self.read
        return changed

    def _same_kind(self, fields: Mapping[str, Any], file: str) -> Given:
        return Given(fields, self.kind, file, self.names)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn every error about these fields into an `ImportRefusedError` that has their own
        names.
        """
        try:
            yield
        except ImportRefusedError:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            words = _NAME.sub(lambda name: self.names.get(name[0], name[0]), str(error))
            raise ImportRefusedError(f"{self.file}: {words}") from None

    def table(self, name: str) -> dict[str, Any]:
        """The table called `name`, without the fields that are null; empty if there is none."""
        value = self._read_field(name)
        if value is not None and not isinstance(value, dict):
            raise self.refusal(name, "it must be a table of fields")
        return {key: inner for key, inner in (value or {}).items() if inner is not None}

    def inner_table(self, name: str, fields: Mapping[str, Any] | None = None) -> Given:
        """The fields of the table called `name`, or these `fields` of it."""
        return self._same_kind(
            self.table(name) if fields is None else fields, f"{self.file}: {name}"
        )

    def our_number(self, ours: str, name: str, default: Any = None, *, needed: bool = True) -> Any:
        """The number called `name`, which a field of our config may have; where it is not `needed`,
        it may be None.
        """
        self.names[ours] = name
        value = self._read_field(name, default)
        if value is None and not needed:
            return None
        return self._check_bounds(describe_field(ours), name, value)

    def number(self, name: str, default: float, low: float | None = None) -> float:
        """The number called `name`, at least `low`, of which our config has none."""
        return float(
            self._check_bounds(
                FieldInfo(name, "", "", "number", low=low), name, self._read_field(name, default)
            )
        )

    def whole_number(
        self, name: str, default: int | None, low: int = 0, high: int | None = None
    ) -> int:
        """The same of whole numbers, at most `high`."""
        info = FieldInfo(name, "", "", "whole", low=low, high=high)
        return int(self._check_bounds(info, name, self._read_field(name, default)))

    def _check_bounds(self, info: FieldInfo, name: str, value: Any) -> Any:
        if not is_within(info, value):
            raise self.refusal(name, f"a {self.kind} needs {limits(info)}")
        return value

    def switch(self, name: str, default: bool) -> bool:
        """The field `name` as true or false."""
        value = self._read_field(name, default)
        if not isinstance(value, bool):
            raise self.refusal(name, "it must be true or false")
        return value

    def optional(self, name: str) -> Any:
        """The field `name`, or None if it is missing."""
        return self._read_field(name)

    def allow_only(self, name: str, *allowed: Any) -> None:
        """Refuse a field that has another value than those that gptviz has parts for. A missing
        field is allowed.
        """
        value = self._read_field(name)
        if value is not None and value not in allowed:
            raise self.refusal(
                name,
                f"of {self.kind}s gptviz opens those with "
                f"{' or '.join(repr(value) for value in allowed)}",
            )


def without_place(files: str, tensors: Sequence[str], model: str) -> ImportRefusedError:
    """The error about tensors in these files that a `model` does not have."""
    if len(tensors) == 1:
        number = "1 tensor has"
    else:
        number = f"{len(tensors):,} tensors have"
    return ImportRefusedError(
        f"{files}: {number} no place in {model}, such as {min(tensors)!r:.80}; without them it "
        "would compute something else: see "
        "whether the config says what it is"
    )


def require_real(where: str, tensor: Tensor) -> None:
    """Refuse a tensor whose numbers are complex or not finite; `where` names the file and the
    tensor.
    """
    if tensor.is_complex():
        raise ImportRefusedError(f"{where} holds complex numbers, and gptviz reads only real ones")
    if not are_finite(tensor):
        raise ImportRefusedError(f"{where} holds values that are not numbers: download it again")


def real_numbers(where: str, tensor: Tensor) -> Tensor:
    """The numbers of a tensor in float32; refused as by `require_real`."""
    numbers = tensor if tensor.is_complex() else tensor.float()
    require_real(where, numbers)
    return numbers
