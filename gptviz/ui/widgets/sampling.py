"""The controls for sampling the next token, the same on every page and in every link."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.generate.sampling import Sampling

from . import controls

# The settings of a link or a "Try this" that leave the whole distribution as the model computed it.
PLAIN: dict[str, Any] = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
MOST_TOP_K = 100


def sampling_controls(temperature: float = 1.0, place: DeltaGenerator | None = None) -> Sampling:
    """Sliders side by side for temperature (with this default), top-k, top-p and the seed; that for
    the temperature in the container `place`, where one is given.
    """
    *own, second, third, last = st.columns(3 if place else 4, gap="medium")
    first = place or own[0]
    with first:
        chosen_temperature = controls.decimal_number(
            "Temperature",
            0.0,
            2.0,
            key="temperature",
            default=temperature,
            step=0.01,
            help=(
                "Below 1 the likely tokens become likelier; above 1 all probabilities become more "
                "alike; 0 always takes the "
                "likeliest token."
            ),
        )
    with second:
        top_k = controls.whole_number(
            "Top-k (0: off)",
            0,
            MOST_TOP_K,
            key="top_k",
            default=0,
            help="Draw from this many of the likeliest tokens only; 0 draws from all.",
        )
    with third:
        top_p = controls.decimal_number(
            "Top-p (1: off)",
            0.05,
            1.0,
            key="top_p",
            default=1.0,
            step=0.01,
            help=(
                "Draw only from the likeliest tokens: as few as it takes for their probabilities "
                "to reach this sum; 1 draws "
                "from all."
            ),
        )
    with last:
        hint = "Decides the random numbers: the same seed writes the same text."
        seed = controls.whole_number("Seed", 0, 99, key="seed", default=0, help=hint)
    return Sampling(
        temperature=chosen_temperature,
        top_k=top_k or None,
        top_p=None if top_p == 1 else top_p,
        seed=seed,
    )
