"""Commands: a function is a command, its parameters are the options, its docstring is the help."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from gptviz.settings.fields import FieldInfo, described, info_of

from .common import (
    Command,
    Parser,
    first_paragraph,
    open_model,
    warn_of_unknown,
    with_bar,
)
from .pairs import Pairs
from .printing import CommandOutput

# What reads the value of an option, and stands for it in the help, by its kind.
READ: dict[str, tuple[Callable[[str], Any], str]] = {
    "whole": (int, "N"),
    "number": (float, "X"),
    "text": (str, "TEXT"),
    "other": (Path, "FILE"),
}
File = Annotated[str, described("FILE")]
Name = Annotated[str, described("NAME")]
Precision = Literal["stored", "float32", "bfloat16", "float16"]
# What the options say that several commands have, each of them unless its own docstring says it
# otherwise.
SHARED = {
    "prompt": "what the model reads",
    "position": "the token is guessed after this place, counted from 0; default: the last",
    "name": "a model, as listed by 'models'",
    "preset": "an architecture instead of a model",
    "precision": "what weights are multiplied in; default: what the model's file has, where this "
    "machine multiplies in it",
    "corpus": "a text file to read; default: the data held out of training",
}
PROMPTS = ("prompt", "corrupted")  # a warning says what the vocabulary lacks of them
# Parameters that are no options: the model that is named, and all that was given.
MODEL = "lm"
ALL_GIVEN = "options"
# What every command with a model has.
PRECISION = Parameter("precision", Parameter.KEYWORD_ONLY, default="stored")


def command(
    place: int,
    add_more: Callable[[Parser], None] = lambda _: None,
    *,
    pairs: Pairs | None = None,
    **settings: bool,
) -> Callable[[Callable[..., CommandOutput | None]], Command]:
    """Make a function a command of its name: it is called with the value of each option.

    A parameter is an option: one without a default has to be given, a `bool` is off unless it is
    given, a `Literal` has choices, a `Sequence` may be given several times. One that is only
    positional is an argument without a name, or, if it is a `Sequence`, any number of them. `_` at
    the end of its name is left out. The first paragraph of the docstring says what the command
    does, `Args` what an option does unless `SHARED` says it. The parameter `lm` is a model, which
    the argument NAME names, and which may be left out if it has a default; `options` is all that
    was given.

    Args:
        place: of the command in the help.
        add_more: adds options that are none of its parameters; they are in `options`.
        pairs: what the command says of a list of prompts, where it can read one instead of the
            options that have to be given.
        settings: further fields of `Command`.
    """

    def make(function: Callable[..., CommandOutput | None]) -> Command:
        told = SHARED | parameter_help(function)
        # not imported yet
        hints = get_type_hints(function, localns={"LanguageModel": Any}, include_extras=True)
        every = inspect.signature(function).parameters
        parameters = [each for name, each in every.items() if name not in (MODEL, ALL_GIVEN)]

        def add_options(this: Parser) -> None:
            if MODEL in every:
                is_needed = every[MODEL].default is Parameter.empty
                this.add_argument("name", metavar="NAME", nargs=None if is_needed else "?")
                _add_option(this, PRECISION, Precision, SHARED["precision"], is_needed=False)
            for each in parameters:
                is_needed = each.default is each.empty and pairs is None
                _add_option(
                    this, each, hints[each.name], told.get(each.name, ""), is_needed=is_needed
                )
            if pairs is not None:
                pairs.add_option(this)
            add_more(this)

        def run(options: argparse.Namespace) -> CommandOutput | None:
            given = {each.name: getattr(options, each.name) for each in parameters}
            if ALL_GIVEN in every:
                given[ALL_GIVEN] = options
            if MODEL not in every:
                return _call(function, given)
            if options.name is None:
                return _call(function, given)
            lm = open_model(options)
            if pairs is not None and (shown := pairs.show_answers(options, lm)) is not None:
                return shown
            with with_bar():
                output = _call(function, {MODEL: lm, **given})
            for text in (given[name] for name in PROMPTS if given.get(name) is not None):
                warn_of_unknown(lm.tokenizer.encode(text))
            return output

        name = function.__name__.rstrip("_")
        return Command(name, first_paragraph(function), run, add_options, place=place, **settings)

    return make


def _call(
    function: Callable[..., CommandOutput | None], given: dict[str, Any]
) -> CommandOutput | None:
    bound = inspect.signature(function).bind_partial()
    bound.arguments |= given
    return function(*bound.args, **bound.kwargs)


def parameter_help(function: Callable[..., Any]) -> dict[str, str]:
    """What the `Args` of a docstring say of each parameter, without the full stop at the end."""
    arguments = (inspect.getdoc(function) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    told = re.findall(r"^    (\w+): (.+(?:\n {5,}.+)*)", arguments, re.MULTILINE)
    return {name: " ".join(about.split()).rstrip(".") for name, about in told}


def _add_option(
    this: Parser, parameter: Parameter, hint: Any, about: str, *, is_needed: bool
) -> None:
    """Add the option of a parameter, whose type is `hint`."""
    default = parameter.default
    what: dict[str, Any] = {}
    is_list = get_origin(hint) is Sequence
    is_positional = parameter.kind is Parameter.POSITIONAL_ONLY
    if is_list:
        (hint,) = get_args(hint)
        what = {"default": []} | ({} if is_positional else {"action": "append"})
    info = info_of(hint)
    about = about or info.help.rstrip(".")
    # it may be 0
    if not any(default is each for each in (None, False, (), Parameter.empty)):
        what["default"] = default
        if about and "default" not in about:
            about += f"; default: {default}"
    what |= {"help": about.replace("%", "%%"), **taken_values(info, info.label)}
    if is_positional:
        nargs = None
        if default is not Parameter.empty:
            nargs = "*" if is_list else "?"
        this.add_argument(parameter.name, nargs=nargs, **what)
        return
    if is_needed:
        what["required"] = True
    option = f"--{parameter.name.rstrip('_').replace('_', '-')}"
    this.add_argument(option, dest=parameter.name, **what)


def taken_values(info: FieldInfo, stands_for: str = "") -> dict[str, Any]:
    """The values that an option of a setting takes, as `add_argument` has them; `stands_for` stands
    for the value in the help, unless it is one of some words.
    """
    if info.kind == "switch":
        return {"action": "store_true"}
    if info.kind == "choice":
        return {"choices": info.choices}
    read, usual = READ[info.kind]
    return {"type": read, "metavar": stands_for or usual}
