"""The numbers that settings of a language model's methods may be."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from gptviz.settings.fields import check_number, real_number, whole_number

from .old_names import rename_parameters

# What takes as long as its number is large may be at most so much.
LONGEST = 1_000_000
MOST = 1_000_000_000
# The numbers that settings of these names may be, in whatever method; some methods take fewer.
RANGES = {
    **dict.fromkeys(("max_new_tokens", "written"), whole_number(0, LONGEST)),
    **dict.fromkeys(("steps", "size", "k", "width", "longest"), whole_number(1, LONGEST)),
    **dict.fromkeys(("most", "top", "count", "last"), whole_number(1, MOST)),
    **dict.fromkeys(("block", "position", "slide", "drafted"), whole_number()),
    "dimensions": whole_number(2, 3),
    "held_out": whole_number(0, MOST),
    "seed": whole_number(-(2**63), 2**63 - 1),
    "cost": real_number(0, LONGEST),
    "length_penalty": real_number(-50, 50),
}
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def check_numbers(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Make a function refuse numbers that a setting of this name cannot be, see `RANGES`, and take
    the old names of its parameters too.
    """
    parameters = inspect.signature(function).parameters
    optional = {name for name, one in parameters.items() if "None" in str(one.annotation)}

    @wraps(function)
    def check_call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        named = rename_parameters(function.__name__, kwargs)
        for name, value in (dict(zip(parameters, args, strict=False)) | named).items():
            if name in RANGES and not (value is None and name in optional):
                # numbers of numpy are numbers too
                check_number(RANGES[name], name, value.item() if hasattr(value, "item") else value)
        return function(*args, **named)

    return check_call
