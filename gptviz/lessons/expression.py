"""Expressions: the small language in which a lesson asks a model for a number, a token or a list.

An expression looks like Python: calls of known functions, numbers, texts, lists, arithmetic and comparisons, as in
`100 * probability("ROMEO:", " ")`. It is read with Python's parser but never run by Python, so that a lesson from a stranger can
only call these functions.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from gptviz.machine.bounded import SURROGATE
from gptviz.settings.known_names import instead

LONGEST = 1_000  # characters
DEEPEST = 60  # parts within parts
_LARGEST = 1e15
_ARITHMETIC: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class ExpressionError(ValueError):
    """An expression that cannot be read or computed; the message quotes the part at fault."""


def parsed(text: str) -> ast.expr:
    """The tree of an expression.

    Raises:
        ExpressionError: it is too long or too deep, or no expression.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"an expression has {len(text):,} characters, and {LONGEST:,} are the most")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{text.strip()!r:.80} is no expression: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"{text.strip()!r:.80} is no expression") from None
    level, depth = [tree], 0
    while level:
        level, depth = [part for node in level for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)], depth + 1
    if depth > DEEPEST:
        raise ExpressionError(f"{text.strip()!r:.80} has parts within parts, {depth:,} deep, and {DEEPEST} are the most")
    return tree


def computed(text: str, functions: Mapping[str, Callable[..., Any]]) -> Any:
    """The value of an expression: a number, a text, true or false, or a list of them.

    Args:
        functions: those that it may call, by name. Their arguments are texts, numbers, booleans and lists.

    Raises:
        ExpressionError: it cannot be read, calls something else, a function refuses its arguments, or the result has a number
            that is not finite or half of a character.
    """
    value = _value(parsed(text), functions)
    values = [value]
    while values:
        match values.pop():
            case list() as inner:
                values += inner
            case str() as words if SURROGATE.search(words):
                raise ExpressionError(f"{text.strip()!r:.80} holds a lone surrogate, which is half of a character and no text")
            case float() as number if not math.isfinite(number):
                raise ExpressionError(f"{text.strip()!r:.80} is {number}, which is no finite number")
    return value


def compared(text: str, functions: Mapping[str, Callable[..., Any]]) -> list[Any]:
    """The values that an expression compares, from left to right; an expression that is no comparison has none.

    Raises:
        ExpressionError: as in `computed`.
    """
    tree = parsed(text)
    sides = [tree.left, *tree.comparators] if isinstance(tree, ast.Compare) else []
    return [_value(side, functions) for side in sides]


def _value(node: ast.expr, functions: Mapping[str, Callable[..., Any]]) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return node.value
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_value(element, functions) for element in elements]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand, functions)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, functions)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _arithmetic(op, _number(left, functions), _number(right, functions))
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
            values = [_value(one, functions) for one in (left, *others)]
            return all(_compared(op, *pair) for op, pair in zip(ops, pairwise(values), strict=True))
        case ast.IfExp(test=test, body=body, orelse=otherwise):
            return _value(body if _value(test, functions) else otherwise, functions)
        case ast.Subscript(value=of, slice=ast.expr() as at):
            return _entry(_value(of, functions), _value(at, functions))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords):
            return _called(name, arguments, keywords, functions)
        case ast.Name(id=name):
            raise ExpressionError(f"{name!r:.40} has no value: a text must stand in quotes, and a function has its brackets")
    raise ExpressionError(
        f"{_source(node)!r:.80} is not possible in an expression, which has functions, texts, numbers and lists"
    )


def _source(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except (ValueError, RecursionError):
        return type(node).__name__


def _number(node: ast.expr, functions: Mapping[str, Callable[..., Any]]) -> float:
    value = _value(node, functions)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExpressionError(f"{_source(node)!r:.80} is no number")
    return value


def _arithmetic(op: ast.operator, left: float, right: float) -> float:
    try:
        result: float = _ARITHMETIC[type(op)](left, right)
    except (ZeroDivisionError, OverflowError) as error:
        raise ExpressionError(f"{left:g} and {right:g}: {error}") from None
    if isinstance(result, int) and abs(result) > _LARGEST:
        raise ExpressionError("a number is too large")
    return result


def _compared(op: ast.cmpop, left: Any, right: Any) -> bool:
    try:
        return bool(_COMPARISONS[type(op)](left, right))
    except TypeError:
        raise ExpressionError(f"{left!r:.40} and {right!r:.40} cannot be compared") from None


def _entry(of: Any, at: Any) -> Any:
    if not isinstance(of, list | str) or not isinstance(at, int) or not -len(of) <= at < len(of):
        raise ExpressionError(f"there is no entry {at!r:.40} in {of!r:.40}")
    return of[at]


def _called(
    name: str, arguments: list[ast.expr], keywords: list[ast.keyword], functions: Mapping[str, Callable[..., Any]]
) -> Any:
    if name not in functions:
        raise ExpressionError(f"there is no function {name!r:.40}{instead(name, sorted(functions))}")
    given = [_value(argument, functions) for argument in arguments]
    named = {}
    for keyword in keywords:
        if keyword.arg is None:
            raise ExpressionError(f"{name}: ** is not possible in an expression")
        named[keyword.arg] = _value(keyword.value, functions)
    try:
        result = functions[name](*given, **named)
    except ExpressionError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError, OSError) as error:
        raise ExpressionError(f"{name}: {error}") from None
    if isinstance(result, float) and not math.isfinite(result):
        raise ExpressionError(f"{name} gives {result}, which is no finite number")
    return result
