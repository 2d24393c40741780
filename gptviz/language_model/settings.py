"""The settings of a language model's methods are what their types say."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from gptviz.settings.fields import check_value, parameter_infos

from .old_names import rename_parameters

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def check_settings(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Make a function refuse numbers and words that a setting of their type cannot be, and take the
    old names of its parameters too.
    """
    names = inspect.signature(function).parameters

    @wraps(function)
    def check_call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        named = rename_parameters(function.__name__, kwargs)
        infos = parameter_infos(function)
        for name, value in (dict(zip(names, args, strict=False)) | named).items():
            if name in infos:
                check_value(infos[name], name, value)
        return function(*args, **named)

    return check_call
