"""How much a test tries: a few examples in `make test`, many in `make test-all`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings


def tried(
    few: int, many: int, *strategies: Any, **by_name: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A property test that runs twice: with `few` examples, and marked `full` with `many`.

    Takes the place of hypothesis' `given`, whose `settings` have one number for both; `strategies`
    are those of `given`.
    """
    numbers = {"few": few, "many": many}

    def decorate(body: Callable[..., None]) -> Callable[..., None]:
        tests = {
            name: settings(max_examples=number)(given(*strategies, **by_name)(body))
            for name, number in numbers.items()
        }

        @pytest.mark.parametrize("examples", ["few", pytest.param("many", marks=pytest.mark.full)])
        @functools.wraps(body)
        def test(examples: str, **fixtures: Any) -> None:
            tests[examples](**fixtures)

        signature = inspect.signature(tests["few"])  # what hypothesis leaves to pytest's fixtures
        asked = inspect.Parameter("examples", inspect.Parameter.KEYWORD_ONLY)
        test.__signature__ = signature.replace(parameters=[*signature.parameters.values(), asked])  # type: ignore[attr-defined]
        return test

    return decorate


def quick(of: Iterable[str], *chosen: str) -> list[Any]:
    """Parameters of a test that `make test` runs with the chosen ones alone and `make test-all`
    with all `of` them.
    """
    return [one if one in chosen else pytest.param(one, marks=pytest.mark.full) for one in of]
