"""The names of version 1.0.0 go on working, with a warning that says the new one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch

import gptviz
from gptviz.language_model.old_names import METHODS, PARAMETERS, VALUES
from gptviz.text.datasets.prompt_pairs import PromptRow

# What `gptviz.LanguageModel` had in version 1.0.0: its methods with their parameters, and values.
OF_1_0_0 = {
    "answer": "text longest sampling",
    "attribute": "prompt token position against target neurons_of",
    "beams": "text width longest length_penalty",
    "check_circuit": "found text",
    "circuit": "prompt token position against share beyond_mean most",
    "classify": "text",
    "context_use": "prompt how",
    "corrupted": "ids seen",
    "costs": "batch context",
    "decoded": "text longest sampling",
    "device": "",
    "each_prompt": "rows how",
    "edited": "edits text",
    "encode": "text",
    "end_tokens": "",
    "example_pairs": "count part",
    "generate": "prompt max_new_tokens go_on slide sampling",
    "generation": "prompt sampling options",
    "heads": "prompt losses",
    "inputs": "prompt target",
    "labels": "",
    "lens": "prompt target top blocks_only",
    "neurons": "block text most",
    "original": "",
    "over_prompts": "rows how",
    "pair": "clean corrupted right wrong",
    "patch": "clean corrupted right wrong what exact",
    "probabilities": "texts",
    "readings": "text",
    "repeated_tokens": "",
    "repeats": "",
    "rows": "text most",
    "second_half": "repeated",
    "seen": "ids",
    "side": "prompt",
    "source": "text",
    "special_tokens": "",
    "stream": "prompt target",
    "task": "",
    "tensor": "encoding",
    "token": "text",
    "trace": "prompt names target edits",
}
# By old name, what calls it, and on which model that ships where it is not `sentences`.
TEXT = "After Lucy and Mark came to the shop, Mark bought a drink for"
ROWS = [PromptRow(TEXT, TEXT.replace("Lucy", "Paul"), "Lucy")]
CALLS: dict[str, Callable[..., Any]] = {
    "corrupted": lambda old, lm: old(tuple(lm.encode(TEXT).tolist())),
    "decoded": lambda old, lm: old("the third of march 1977"),
    "each_prompt": lambda old, lm: list(old(ROWS, "attribute")),
    "example_pairs": lambda old, lm: old(count=3),
    "neurons": lambda old, lm: old(0, text=TEXT).highest,
    "readings": lambda old, lm: old(TEXT),
    "repeated_tokens": lambda old, lm: old(),
    "second_half": lambda old, lm: old(torch.zeros(1, 12)),
    "tensor": lambda old, lm: old(lm.tokenizer.encode(TEXT)),
}
ANSWERS = ("decoded", "special_tokens")


@pytest.mark.parametrize("name", [*METHODS, *VALUES])
def test_an_old_name_gives_what_the_new_one_gives_and_names_it(name: str) -> None:
    lm = gptviz.load("seq2seq" if name in ANSWERS else "sentences")
    place = (METHODS | VALUES)[name]
    room, _, function = place.partition(".")
    new = getattr(import_module(f"gptviz.language_model.{room}"), function)
    with pytest.warns(DeprecationWarning, match=rf"lm\.{name} .*{place}\(lm") as warned:
        old = getattr(lm, name)
    assert [each.filename for each in warned] == [__file__]
    if name in METHODS:
        old = CALLS[name](old, lm)
        expected = CALLS[name](lambda *args, **named: new(lm, *args, **named), lm)
    else:
        expected = new(lm)
    # texts of tensors show their numbers, and all kinds of results are compared in one way
    assert repr(old) == repr(expected)


@pytest.mark.parametrize("name", PARAMETERS)
def test_an_old_parameter_is_the_new_one_and_names_it(name: str) -> None:
    lm = gptviz.load("sentences")
    ((old, new),) = PARAMETERS[name].items()
    value = lm.circuit(TEXT)
    expected = getattr(lm, name)(**{new: value})
    with pytest.warns(DeprecationWarning, match=f"{old}= .*{new}= of {name}"):
        assert getattr(lm, name)(**{old: value}) == expected


@pytest.mark.parametrize("name", OF_1_0_0)
def test_every_name_of_1_0_0_is_there_or_in_the_table(name: str) -> None:
    if name in METHODS or name in VALUES:
        return
    found = inspect.getattr_static(gptviz.LanguageModel, name)
    parameters = [] if isinstance(found, property) else inspect.signature(found).parameters
    renamed = PARAMETERS.get(name, {})
    before = OF_1_0_0[name].split()
    assert {renamed.get(each, each) for each in before} <= set(parameters)


def test_a_name_that_never_was_is_no_attribute() -> None:
    lm = gptviz.load("sentences")
    assert not hasattr(lm, "corupted")
    assert not set(METHODS) & set(dir(lm))


def test_at_most_85_names_are_public() -> None:
    assert sum(not name.startswith("_") for name in dir(gptviz.LanguageModel)) <= 85
