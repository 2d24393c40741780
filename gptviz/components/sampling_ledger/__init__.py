"""The sampling ledger: every stage from the model's logits to the token drawn, over the whole
vocabulary, in the browser.

The logits are sent once for each text, the names of all tokens once for each vocabulary. Sliders,
sorting, hovering and drawing happen in the browser; Python is told only which token was taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from gptviz.components.kit import pack, register
from gptviz.components.kit.command import NO_COMMAND, ViewCommand
from gptviz.components.kit.events import read_event
from gptviz.labelled_array import Float32Array, Float64Array
from gptviz.settings.address_values import (
    ON_OR_OFF,
    Values,
    declare_values,
    one_of,
    real_number,
    whole_number,
)

_mount = register(Path(__file__).parent)

# As in choices.js.
ORDERS = ("All, by probability", "All, by vocabulary")
SEEDS = 100


@dataclass(frozen=True)
class Payload:
    """The bytes that the browser gets."""

    data: bytes  #: all of it, with the labels of the vocabulary
    bare: bytes  #: the same without the labels, for a browser that has them
    vocabulary: str  #: identifies the labels of a vocabulary
    #: the number of the text that the logits follow: a click made on another text is refused
    generation: int
    vocab_size: int  #: how many tokens there are
    used: int  #: how many of them can be chosen, from the first on; the others stand for nothing


def payload(
    logits: Float32Array,
    labels: Sequence[str],
    *,
    about: object,
    title: str,
    code: tuple[str, str],
    numbers: Float64Array | None = None,
    true: int | None = None,
    true_name: str = "Really next:",
    takes: bool = False,
    note: str = "",
    prompt: str = "",
    used: int | None = None,
    command: ViewCommand = NO_COMMAND,
) -> Payload:
    """The payload of the view for one position of a text.

    Args:
        logits: [vocab_size], the model's output there.
        labels: the visible forms of all tokens.
        about: the model, ids and position that the logits follow from; two texts are the same if
            its `repr` is the same.
        title: a description, for pictures and for screen readers.
        code: the lines of gptviz that compute the same, before and after the `Sampling` chosen in
            the browser.
        numbers: [seeds], the random number of each seed at this position. None: the view draws no
            token.
        true: the token that really follows, if it is known; `true_name` is its label.
        takes: whether a token can be chosen to go on with.
        note: the text after the name of the token drawn.
        prompt: the text before the token in the visible forms of its tokens, for pictures.
        used: how many tokens can be drawn and chosen, from the first on; the others stand for
            nothing. By default, all.
        command: the choices (`temperature`, `top_k`, `top_p`, `seed`, `tokens`, `log`) that the
            view is asked to show.

    Raises:
        ValueError: there is not one label per logit, or the logits are not numbers, as in a damaged
            model.
    """
    if logits.shape != (len(labels),):
        raise ValueError(
            f"there are {len(labels)} labels for logits of the shape {logits.shape}: one label "
            "per token is needed"
        )
    if not np.isfinite(logits.max()):
        raise ValueError(
            "the model's logits are not numbers: its weights or edits are so large that they "
            "overflow"
        )
    generation = int.from_bytes(blake2b(repr(about).encode(), digest_size=6).digest(), "big")
    vocabulary, packed_labels = _pack_labels(tuple(labels))
    header: dict[str, Any] = {
        "vocabulary": vocabulary,
        "generation": generation,
        "title": title,
        "code": code,
        "true": true,
        "trueName": true_name,
        "takes": takes,
        "note": note,
        "prompt": prompt,
        "used": len(labels) if used is None else used,
        "declared": declare_values(address(len(labels), draws=numbers is not None), USUAL),
        "asked": dict(command.asked),
        "number": command.number,
    }
    arrays = {"logits": logits} | ({} if numbers is None else {"numbers": numbers})
    whole = pack(header, **arrays, labels=packed_labels)
    bare = pack(header, **arrays)
    return Payload(whole, bare, vocabulary, generation, len(labels), header["used"])


@lru_cache(maxsize=4)
def _pack_labels(labels: tuple[str, ...]) -> tuple[str, npt.NDArray[np.uint8]]:
    """A hash of the labels, and the labels as the bytes of a list in JSON."""
    text = json.dumps(labels).encode("ascii")
    return blake2b(text, digest_size=12).hexdigest(), np.frombuffer(text, np.uint8)


def sampling_ledger(
    shown: Payload, *, key: str, on_take: Callable[[int], None] | None = None
) -> None:
    """Show a payload; `on_take` is called with the id of a token that was chosen to go on with."""
    # Streamlit sends all of an element again when any of it has changed, so this session remembers
    # with which payload the labels were sent. A view that lacks them (the page was left in between,
    # or a message was never drawn) asks for them.
    with_labels = f"{key}: the payload that has the labels"
    events: dict[str, Any] = {"lost": lambda _: st.session_state.pop(with_labels, None)}
    if on_take is not None:
        events["take"] = lambda value: _answer(value, shown, on_take)
    this_one = (shown.vocabulary, hash(shown.bare))
    vocabulary, carrier = st.session_state.get(with_labels, ("", None))
    if vocabulary != shown.vocabulary:
        vocabulary, carrier = st.session_state[with_labels] = this_one
    _mount(key=key, data=shown.data if (vocabulary, carrier) == this_one else shown.bare, **events)


# What is chosen before anybody chooses: all of the vocabulary, and a draw that leaves its
# probabilities unchanged.
USUAL = {"temperature": 1, "top_k": 0, "top_p": 1, "seed": 0, "tokens": ORDERS[0], "log": False}


def address(vocab_size: int, *, draws: bool) -> dict[str, Values]:
    """The choices that the address may hold for the view; settings of the draw only if it `draws` a
    token.
    """
    shown = {"tokens": one_of(ORDERS), "log": ON_OR_OFF}
    if not draws:
        return shown
    of_the_draw = {
        "temperature": real_number(0, 2),
        "top_k": whole_number(0, max(vocab_size, 100)),
        "top_p": real_number(0.05, 1),
    }
    return {**of_the_draw, "seed": whole_number(0, SEEDS - 1), **shown}


def _answer(value: object, shown: Payload, act: Callable[[int], None]) -> None:
    if (token := read_choice(value, shown.generation, shown.used)) is not None:
        act(token)


def read_choice(value: object, generation: int, used: int) -> int | None:
    """The token in an event from the browser; None if it is stale or not what this view sends."""
    fields = read_event(value, generation=generation, token=range(used))
    if fields is None:
        return None
    return fields["token"]
