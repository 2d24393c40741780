"""The view of one position of the output: the probabilities of all tokens there."""

from __future__ import annotations

import numpy as np
import streamlit as st

from gptviz.components.sampling_ledger import Payload, address, payload, sampling_ledger
from gptviz.components.token_strip import Token, token_strip
from gptviz.interp.reading import next_token
from gptviz.ui.shell.subject import ModelKey, language_model, load_call
from gptviz.ui.widgets import addresses, controls

from .translation import Translation, output_of


def position_control(translation: Translation) -> int:
    """The control `position`: at which token of the output."""
    return controls.whole_number(
        "Output position",
        0,
        len(translation.written) - 1,
        key="position",
        default=0,
        help="Which token of the output it is about, counted from 0. Or click one below.",
    )


def go_to(place: int) -> None:
    """Set the control `position`."""
    st.session_state["position"] = place


def show_strip(translation: Translation, position: int) -> None:
    """The output as chips, tinted by how likely the model found each; a click sets `position`."""
    label = translation.subject.lm.tokenizer.label
    logits = translation.model_output.logits
    # The first of the ids has nothing before it; the last row, which nothing follows, is not looked
    # at.
    likely = next_token.token_probabilities(
        np.concatenate((logits, logits[-1:])), (translation.decoded[0], *translation.written)
    )
    chips = []
    for place, token in enumerate(translation.written, 1):
        guesses = zip(likely.likely[place], likely.likely_probability[place], strict=True)
        differs = int(likely.likely[place][0]) != token
        note = f"written after {label(translation.decoded[place - 1])}"
        chips.append(
            Token(
                label(token),
                float(likely.probability[place]),
                tuple((label(int(i)), float(p)) for i, p in guesses),
                note,
                mark=differs,
            )
        )
    token_strip(
        chips,
        key="output strip",
        selected=position,
        on_pick=go_to,
        label="The tokens of the output; choose one to see the guess made there",
        legend="how likely the model found each token"
        + (
            "; underlined: another is likelier" if translation.typed or translation.is_drawn else ""
        ),
        spaced=translation.subject.lm.tokenizer.is_spaced,
    )


def show_ledger(translation: Translation, position: int) -> None:
    """The probabilities of the whole vocabulary at `position`. Nothing is drawn here."""
    written = translation.written[position]
    shown = _payload(
        translation.subject.key, translation.subject.seen, translation.decoded, written, position
    )
    addresses.takes_all(address(shown.vocab_size, draws=False))
    sampling_ledger(shown, key="ledger")


@st.cache_resource(max_entries=8, show_spinner=False)
def _payload(
    key: ModelKey, source: tuple[int, ...], decoded: tuple[int, ...], written: int, position: int
) -> Payload:
    lm = language_model(key)
    labels = lm.tokenizer.labels()
    return payload(
        output_of(key, source, decoded).logits[position],
        labels,
        about=(key, source, decoded, position),
        title=f"{key.title}, the token at position {position} of the output, after "
        f"{labels[decoded[position]]}",
        code=(code(key, source, decoded, position), ""),
        true=written,
        true_name="Written here:",
    )


def code(key: ModelKey, source: tuple[int, ...], decoded: tuple[int, ...], position: int) -> str:
    """The lines of Python that compute the probabilities at `position`."""
    return f"""import gptviz
from gptviz.interp.reading.cross_attention import read_translation
from gptviz.interp.reading.next_token import predict
from gptviz.generate.sampling import Sampling

lm = {load_call(language_model(key))}
# The ids of the source, and of the output from the start token on.
output = read_translation(lm.model, {source}, {decoded})
prediction = predict(output.logits[{position}], Sampling())
prediction.before  # [vocab_size]"""
