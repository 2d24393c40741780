"""Expressions: the small language in which a lesson asks a model for a number, a token or a list.

An expression looks like Python: calls of known functions, numbers, texts, lists, arithmetic and
comparisons, as in `100 * probability("ROMEO:", " ")`. It is evaluated by `simpleeval` and never run
by Python, so that a lesson from a stranger can only call these functions.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from simpleeval import FunctionNotDefined, InvalidExpression, NameNotDefined, SimpleEval

from gptviz.machine.bounded import SURROGATE
from gptviz.machine.errors import reason_of
from gptviz.settings.known_names import name_known

LONGEST = 1_000  # characters
DEEPEST = 60  # parts within parts
_LARGEST = 1e15
_PARTS = (
    ast.Name,
    ast.Constant,
    ast.UnaryOp,
    ast.BinOp,
    ast.Compare,
    ast.IfExp,
    ast.Subscript,
    ast.Call,
    ast.keyword,
)


class ExpressionError(ValueError):
    """An expression that cannot be read or computed; the message quotes the part at fault."""


def _of_numbers(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The same operator, only for numbers: a text that is multiplied could fill the memory."""

    def compute_number(*numbers: Any) -> Any:
        if any(
            isinstance(number, bool) or not isinstance(number, int | float) for number in numbers
        ):
            raise ExpressionError(
                f"{' and '.join(map(repr, numbers))!s:.80}: only numbers are added, multiplied "
                "and so on"
            )
        result = compute(*numbers)
        if isinstance(result, int) and abs(result) > _LARGEST:
            raise ExpressionError("a number is too large")
        return result

    return compute_number


_ARITHMETIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
}
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    **{sign: _of_numbers(compute) for sign, compute in _ARITHMETIC.items()},
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Not: operator.not_,
}


class _Evaluator(SimpleEval):  # type: ignore[misc]
    """Evaluates the few parts that an expression may have."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(_OPERATORS, dict(functions), {})
        parts = {part: self.nodes[part] for part in _PARTS}  # type: ignore[has-type]
        self.nodes = parts | dict.fromkeys(
            (ast.List, ast.Tuple), lambda node: [self._eval(element) for element in node.elts]
        )


def parse_expression(text: str) -> ast.expr:
    """The tree of an expression. An ExpressionError if it is too long or too deep, or no
    expression.
    """
    if len(text) > LONGEST:
        raise ExpressionError(
            f"an expression has {len(text):,} characters, and {LONGEST:,} are the most"
        )
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{text.strip()!r:.80} is no expression: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"{text.strip()!r:.80} is no expression") from None
    level = [tree]
    depth = 0
    while level:
        level = [
            part
            for node in level
            for part in ast.iter_child_nodes(node)
            if isinstance(part, ast.expr)
        ]
        depth += 1
    if depth > DEEPEST:
        raise ExpressionError(
            f"{text.strip()!r:.80} has parts within parts, {depth:,} deep, and {DEEPEST} are the "
            "most"
        )
    return tree


def compute_expression(text: str, functions: Mapping[str, Callable[..., Any]]) -> Any:
    """The value of an expression: a number, a text, true or false, or a list of them; `functions`
    are those that it may call, by name.

    Raises:
        ExpressionError: it cannot be read, calls something else, a function refuses its arguments,
            or the result has a number that is not finite or half of a character.
    """
    value = _value(parse_expression(text), functions)
    values = [value]
    while values:
        match values.pop():
            case list() as inner:
                values += inner
            case str() as words if SURROGATE.search(words):
                raise ExpressionError(
                    f"{text.strip()!r:.80} holds a lone surrogate, which is half of a character "
                    "and no text"
                )
            case float() as number if not math.isfinite(number):
                raise ExpressionError(
                    f"{text.strip()!r:.80} is {number}, which is no finite number"
                )
    return value


def compared_values(text: str, functions: Mapping[str, Callable[..., Any]]) -> list[Any]:
    """The values that an expression compares, from left to right, if it compares any; an
    ExpressionError as in `compute_expression`.
    """
    tree = parse_expression(text)
    if isinstance(tree, ast.Compare):
        sides = [tree.left, *tree.comparators]
    else:
        sides = []
    return [_value(side, functions) for side in sides]


def _value(tree: ast.expr, functions: Mapping[str, Callable[..., Any]]) -> Any:
    try:
        return _Evaluator(functions).eval("", previously_parsed=tree)
    except ExpressionError:
        raise
    except FunctionNotDefined as error:
        name = str(error.func_name)
        raise ExpressionError(
            f"there is no function {name!r:.40}{name_known(name, sorted(functions))}"
        ) from None
    except NameNotDefined as error:
        needs = "a text must stand in quotes, and a function has its brackets"
        raise ExpressionError(f"{str(error.name)!r:.40} has no value: {needs}") from None
    except InvalidExpression:
        has = "which has functions, texts, numbers and lists"
        raise ExpressionError(
            f"{ast.unparse(tree)!r:.80} is not possible in an expression, {has}"
        ) from None
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RuntimeError,
        OSError,
    ) as error:
        raise ExpressionError(f"{ast.unparse(tree)!s:.80}: {reason_of(error)}") from None
