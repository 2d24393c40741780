"""Two tokens that change places in the stream after the layer of the open cell: an edit, which
every page shows.
"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from gptviz.components.lens_grid import LensCell
from gptviz.figures.kit.format import percent
from gptviz.interp.changing.swaps import SwapEdit
from gptviz.interp.reading.fitted_lens import FittedLens
from gptviz.interp.reading.lens import Lens
from gptviz.ui.shell.subject import AskedAnalysis, Subject, edits
from gptviz.ui.views.by_token import NONE
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import in_quotes

_PICKED = "swap with"


def present(subject: Subject, layer: str) -> SwapEdit | None:
    """The edit of the model that swaps two tokens after this layer; None if there is none."""
    made = (one for one in subject.lm.changes if isinstance(one, SwapEdit))
    return next((one for one in made if one.swap.layer.name == layer), None)


def choose(subject: Subject, lens: Lens, cell: LensCell, own: FittedLens | None) -> None:
    """The control for the token that the likeliest of the cell is swapped with; once it is, that
    for how far.

    Args:
        own: the fitted lens whose directions the tokens have; None for the logit lens.
    """
    layer = lens.layers[cell.layer].name
    if not subject.lm.model.config.n_layer:
        return
    if (made := present(subject, layer)) is not None:
        hint = (
            "At 0 the swap is taken away, at 0.5 both tokens are alike, at 1 they have changed "
            "places. It acts on every page."
        )
        edits.number_slider(
            st, made.unit.name, 0.0, "Strength of the swap", 0.0, 1.0, step=0.25, help=hint
        )
        return
    first = int(lens.top[cell.layer, cell.index, 0])
    names = tokens(subject.key).names
    likely = [*lens.top[cell.layer, cell.index].tolist(), *lens.top[::-1, cell.index, 0].tolist()]

    def swap() -> None:
        if (picked := st.session_state[_PICKED]) in names and names.index(picked) != first:
            edits.set_to(
                subject.lm.swap(layer, first, names.index(picked), lens=own.name if own else "")
            )
        st.session_state[_PICKED] = NONE

    hint = (
        "As much of the stream after this layer as lies along the one token then lies along the "
        "other, at all positions: an "
        "edit, on every page. Any other token can be typed."
    )
    options = (NONE, *(names[token] for token in dict.fromkeys(likely) if token != first))
    label = f"Swap {in_quotes(subject.lm.tokenizer.label(first))} with…"
    st.selectbox(
        label, options, key=_PICKED, on_change=swap, help=hint, accept_new_options=True, width=240
    )


def say(subject: Subject, asked: AskedAnalysis[Lens], lens: Lens, cell: LensCell) -> None:
    """What the swap after this layer makes of the final guess at this position, in a sentence."""
    if (made := present(subject, lens.layers[cell.layer].name)) is None:
        return
    label = subject.lm.tokenizer.label
    others = tuple(text for text in subject.key.edits if text != made.text)
    without = replace(asked, key=replace(subject.key, edits=others)).value
    then, now = (
        f"{in_quotes(label(int(each.top[-1, cell.index, 0])))} "
        f"({percent(float(each.probability[-1, cell.index, 0]))})"
        for each in (without, lens)
    )
    stays = without.top[-1, cell.index, 0] == lens.top[-1, cell.index, 0]
    what = made.title_with(lambda token: in_quotes(label(token)))
    before = "" if then == now else f"; without it, it is {then}"
    if stays:
        change = f"stays {now}{before}"
    else:
        change = f"is {now}, in place of {then}"
    st.markdown(f"**{what}. The final guess at position {lens.positions[cell.index]} {change}.**")
