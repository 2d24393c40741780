"""Prompts that take a model long to read: the time, the part that is read in some seconds, and how
to cut their ends.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from time import perf_counter

import streamlit as st
import torch

from gptviz.language_model import LanguageModel
from gptviz.machine import memory
from gptviz.model import Config
from gptviz.model.costs.memory_needed import to_read
from gptviz.model.costs.operations import flops
from gptviz.streamlit_internals import period
from gptviz.text import Encoding

# A pass of more operations takes a usual processor more than about ten seconds, and a page may need
# several.
MOST_OPERATIONS = 10**12
FEWEST_TOKENS = 256
# The number of beginnings that are tried: a text that begins at another token may be read as other
# tokens.
BEGINNINGS = 32
# The key of the session's state: the configs and numbers of tokens for which there was memory.
ALLOWED = "long texts with room"
# The side of the matrices that are multiplied to see how fast a machine is.
SIDE = 768


@lru_cache(maxsize=64)
def read_in_seconds(config: Config) -> int:
    """The number of tokens that a model of `config` reads within `MOST_OPERATIONS`, at least
    `FEWEST_TOKENS`.
    """
    lengths = range(FEWEST_TOKENS + 1, config.context_length + 1)
    return FEWEST_TOKENS + bisect_left(
        lengths, True, key=lambda length: flops(config, 1, length)[0] > MOST_OPERATIONS
    )


def seconds_to_read(config: Config, tokens: int, device: str) -> float:
    """The approximate seconds that one pass over `tokens` tokens takes on a `device`, at least
    one.
    """
    return max(1.0, flops(config, 1, tokens)[0] / _operations_per_second(device, period(600)))


def too_little_memory(config: Config, tokens: int, device: str) -> str | None:
    """Why `tokens` tokens are not read on a `device`, a sentence without its full stop, or None if
    there is room for them.

    A text that was read once in a session is not refused later, when its cached results take some
    of the free memory.
    """
    allowed: set[tuple[Config, int]] = st.session_state.setdefault(ALLOWED, set())
    needs = to_read(config, tokens)
    free = memory.room(needs, device)
    if (config, tokens) in allowed or needs <= memory.MOST_OF_MEMORY * free:
        allowed.add((config, tokens))
        return None
    return (
        f"To read all of them takes about {memory.in_bytes(needs)} of memory, and "
        f"{memory.in_bytes(free)} is free"
    )


@st.cache_resource(max_entries=4, show_spinner=False)
def _operations_per_second(device: str, this_period: int) -> float:
    one = torch.ones(SIDE, SIDE, device=device)
    seconds = []
    for _ in range(4):
        begun = perf_counter()
        float((one @ one)[0, 0])
        seconds.append(perf_counter() - begun)
    return float(2 * SIDE**3 / min(seconds))


def end_of(
    lm: LanguageModel, prompt: str, seen: tuple[int, ...], most: int
) -> tuple[str, Encoding] | None:
    """An end of a prompt whose tokens are the last ones of the prompt, at most `most` including
    those that every text begins with, or None if there is no such end.

    Args:
        lm: a model that reads the end of a text.
        prompt: the text.
        seen: the tokens of the prompt, or the last ones of them.
        most: the largest number of tokens of the end.
    """
    before = len(lm.tokenizer.before)
    for first in range(len(seen) - most + before, len(seen) - most + before + BEGINNINGS):
        text = lm.tokenizer.decode(seen[first:])
        if text and text != prompt and prompt.endswith(text):
            encoding = lm.tokenizer.encode(text)
            if tuple(encoding.ids[before:]) == seen[first:]:
                return text, encoding
    return None
