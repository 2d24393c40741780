"""A dictionary of a layer: which one is fitted, how far that is, and how good it has become."""

from __future__ import annotations

from typing import Any

import streamlit as st

from gptviz.ui.shell.subject import ModelKey, kinds
from gptviz.ui.shell.subject.models import model_key
from gptviz.ui.views import held_out
from gptviz.ui.views.fits import fit_button, show_fits
from gptviz.ui.widgets import controls

SIZES = ("128", "256", "512", "1024", "2048")
ACTIVE = ("4", "8", "16", "32", "64")
TARGETS = {"stream": "stream", "MLP": "mlp"}
STEPS = ("500", "2000", "8000")


def fitted_here(device: str) -> None:
    """The switch that shows the controls, with what they fit below it."""
    hint = (
        "Fit sparse features to the stream after a block of a model. Each of them can then be "
        "looked at, and switched off."
    )
    if not controls.switch("A dictionary of a layer", key="dictionary", help=hint):
        return
    key, settings = _choose_dictionary(device)
    fit_button(key, **settings)
    show_fits(key.name)


def _choose_dictionary(device: str) -> tuple[ModelKey, dict[str, Any]]:
    """The controls: of which model, after which block, of how many features, and for how many
    steps. Returns the model and the settings of the fit.
    """
    names = kinds.models_of("decoder")
    of, after, given, large, sparse, long = st.columns(6, vertical_alignment="bottom")
    with of:
        hint = "The model whose stream is read."
        name = controls.select("Of the model", names, key="of", help=hint, default=names[0])
    key = model_key(name, device)
    config = kinds.read_config(kinds.checkpoints.find(name))
    with after:
        hint = "The stream after this block, counted from 0."
        block = controls.whole_number(
            "After block",
            0,
            max(config.n_layer - 1, 0),
            key="after",
            help=hint,
            default=config.n_layer // 2,
        )
    with given:
        hint = (
            "What its features give back: the stream after the block, or what the block’s MLP "
            "gives "
            "(a transcoder, which Circuit can draw)."
        )
        target = controls.select("Of what", list(TARGETS), key="target", help=hint)
    with large:
        size = controls.select(
            "Features", SIZES, key="features", help="How many features there are.", default="256"
        )
    with sparse:
        k = controls.select(
            "Active", ACTIVE, key="active", help="How many of them count at a token.", default="8"
        )
    with long:
        steps = controls.select(
            "Steps", STEPS, key="fit", help="How many steps it is fitted for.", default="2000"
        )
    text = held_out.text_to_fit(key)
    settings: dict[str, Any] = {
        "block": block,
        "size": int(size),
        "k": int(k),
        "steps": int(steps),
        "text": text,
    }
    if config.mlp_size:
        settings |= {"target": TARGETS[target]}
    return key, settings
