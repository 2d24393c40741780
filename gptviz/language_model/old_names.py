"""The names of version 1.0.0 that have others now. They go on working, with a DeprecationWarning
that says the new one.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from gptviz.machine.warning import warn_caller

# Methods that are functions of a room of `gptviz.language_model` now, and take the model first.
METHODS = {
    "corrupted": "changing.corrupted",
    "decoded": "core.decode_answer",
    "each_prompt": "changing.each_prompt",
    "example_pairs": "changing.example_pairs",
    "neurons": "units.neurons",
    "readings": "core.read_reference",
    "repeated_tokens": "units.repeated_tokens",
    "second_half": "units.second_half",
    "tensor": "core.ids_of",
}
# The same for values that were read without a call.
VALUES = {
    "end_tokens": "core.end_tokens",
    "repeats": "units.repeats_of",
    "special_tokens": "core.special_tokenizer",
}
# By method, its parameters that have other names now.
PARAMETERS = {"check_circuit": {"found": "circuit"}}


def find_old(lm: object, name: str) -> Any:
    """What an old name of a language model stands for.

    Raises:
        AttributeError: it is none.
    """
    place = METHODS.get(name) or VALUES.get(name)
    if place is None:
        raise AttributeError(
            f"{type(lm).__name__!r} object has no attribute {name!r}", name=name, obj=lm
        )
    warn_old(f"lm.{name}", f"gptviz.language_model.{place}(lm)")
    room, _, function = place.partition(".")
    bound = partial(getattr(import_module(f"{__package__}.{room}"), function), lm)
    return bound() if name in VALUES else bound


def rename_parameters(function: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a function, by name, with the new names of its parameters."""
    renamed = PARAMETERS.get(function, {})
    for name in arguments.keys() & renamed:
        warn_old(f"{name}=", f"{renamed[name]}= of {function}")
    return {renamed.get(name, name): value for name, value in arguments.items()}


def warn_old(old: str, new: str) -> None:
    """Warn the caller of the package of an old name."""
    warn_caller(f"{old} is a name of gptviz 1.0.0; it is {new} now", DeprecationWarning)
