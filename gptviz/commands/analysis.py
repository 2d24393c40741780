"""Commands of analyses: a function of a language model is a command, its parameters are the
options, its docstring the help.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from .common import (
    Command,
    Parser,
    add_model,
    first_paragraph,
    open_model,
    warn_of_unknown,
    with_bar,
)
from .pairs import Pairs
from .printing import CommandOutput

# What stands in the help for the value of an option, by its type; and texts of a kind of their own.
STANDS_FOR = {int: "N", float: "X", str: "TEXT"}
File = Annotated[str, "FILE"]
Name = Annotated[str, "NAME"]
# What the options say that several commands have, each of them unless its own docstring says it
# otherwise.
SHARED = {
    "prompt": "what the model reads",
    "position": "the token is guessed after this place, counted from 0; default: the last",
    "corpus": "a text file to read; default: the data held out of training",
}
PROMPTS = ("prompt", "corrupted")  # a warning says what the vocabulary lacks of them


def analysis(
    place: int, pairs: Pairs | None = None
) -> Callable[[Callable[..., CommandOutput]], Command]:
    """Make a function a command: it is called with the model, and with the value of each option.

    A parameter is an option: one without a default has to be given, a `bool` is off unless it is
    given, a `Literal` has choices, a list may be given several times. `_` at the end of its name is
    left out. The first paragraph of the docstring says what the command does, `Args` what an option
    does unless `SHARED` says it.

    Args:
        place: of the command in the help.
        pairs: what the command says of a list of prompts, where it can read one instead of the
            options that have to be given.
    """

    def command(function: Callable[..., CommandOutput]) -> Command:
        told = parameter_help(function)
        # not imported yet
        hints = get_type_hints(function, localns={"LanguageModel": Any}, include_extras=True)
        parameters = list(inspect.signature(function).parameters.values())[1:]

        def add_options(this: Parser) -> None:
            add_model(this)
            for parameter in parameters:
                about = (SHARED | told)[parameter.name]
                is_needed = parameter.default is parameter.empty and pairs is None
                _add_option(this, parameter, hints[parameter.name], about, is_needed=is_needed)
            if pairs is not None:
                pairs.add_option(this)

        def run(options: argparse.Namespace) -> CommandOutput:
            lm = open_model(options)
            if pairs is not None and (shown := pairs.show_answers(options, lm)) is not None:
                return shown
            given = {parameter.name: getattr(options, parameter.name) for parameter in parameters}
            with with_bar():
                shown = function(lm, **given)
            for text in (given[name] for name in PROMPTS if given.get(name) is not None):
                warn_of_unknown(lm.tokenizer.encode(text))
            return shown

        return Command(function.__name__, first_paragraph(function), run, add_options, place=place)

    return command


def parameter_help(function: Callable[..., Any]) -> dict[str, str]:
    """What the `Args` of a docstring say of each parameter, without the full stop at the end."""
    arguments = (inspect.getdoc(function) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    told = re.findall(r"^    (\w+): (.+(?:\n {5,}.+)*)", arguments, re.MULTILINE)
    return {name: " ".join(about.split()).rstrip(".") for name, about in told}


def _add_option(
    this: Parser, parameter: inspect.Parameter, hint: Any, about: str, *, is_needed: bool
) -> None:
    """Add the option of a parameter, whose type is `hint`."""
    kind = get_args(hint)[0] if NoneType in get_args(hint) else hint
    default = parameter.default
    what: dict[str, Any] = {}
    if get_origin(kind) is list:
        kind = get_args(kind)[0]
        what = {"action": "append"}
    if kind is bool:
        what = {"action": "store_true"}
    elif get_origin(kind) is Literal:
        what = {"choices": get_args(kind)}
    elif get_origin(kind) is Annotated:
        what |= {"type": kind.__origin__, "metavar": kind.__metadata__[0]}
    else:
        what |= {"type": kind, "metavar": STANDS_FOR[kind]}
    # it may be 0
    if default is not None and default is not False and default is not parameter.empty:
        what["default"] = default
        about += "" if "default:" in about else f"; default: {default}"
    if is_needed:
        what["required"] = True
    option = f"--{parameter.name.rstrip('_').replace('_', '-')}"
    this.add_argument(option, dest=parameter.name, help=about.replace("%", "%%"), **what)
