"""What strangers' files ask for is done in a process that is ended when it takes too long."""

from __future__ import annotations

import gc
import re

import pytest

from gptviz.text.confined import Confined, EndedError, first_fitting

FOREVER = {"patterns": ["(a|aa)+!"], "names": ["a" * 60]}
NAMES = [
    "model.layers.0.self_attn.q_proj",
    "model.layers.10.mlp.up_proj",
    "lm_head",
    "q_proj",
    "",
    "a\nq_proj",
]
PATTERNS = [
    "q_proj",
    "layers.0.*",
    r".*\.mlp\.(up|down)_proj",
    "proj",
    "model.layers.1[0-9].*",
    "^lm_head",
    "(?:q|k)_proj",
    "",
]


@pytest.mark.parametrize("start", range(len(PATTERNS)))
def test_the_first_pattern_that_fits_is_that_of_peft(start: int) -> None:
    patterns = PATTERNS[start:] + PATTERNS[:start]
    theirs = [
        next(
            (place for place, one in enumerate(patterns) if re.match(rf"(.*\.)?({one})$", name)),
            None,
        )
        for name in NAMES
    ]
    assert first_fitting(patterns, NAMES) == theirs


def test_a_pattern_that_takes_forever_is_ended_and_the_next_request_is_answered() -> None:
    process = Confined()
    with pytest.raises(EndedError, match="it takes longer"):
        process.ask("fit", seconds=0, **FOREVER)
    assert process.ask("fit", patterns=["b", "a+"], names=["aaa"]) == [1]
    with pytest.raises(ValueError, match="'\\(' is no regular expression"):
        process.ask("fit", patterns=["("], names=["a"])


def test_the_first_request_comes_again_after_the_process_was_ended() -> None:
    process = Confined(first={"work": "fit", "patterns": ["b"], "names": ["b"]})
    with pytest.raises(EndedError):
        process.ask("fit", seconds=0, **FOREVER)
    process.first_result = None
    process.ask("fit", patterns=[], names=[])
    assert process.first_result == [0]


def test_a_process_ends_with_its_object() -> None:
    process = Confined()
    process.ask("fit", patterns=[], names=[])
    begun = process._process
    assert begun is not None
    assert begun.poll() is None
    del process
    gc.collect()
    assert begun.poll() is not None
