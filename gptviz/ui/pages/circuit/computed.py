"""The computations of the page Circuit, done once for all sessions."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
import torch

from gptviz.interp.explaining.circuit import MOST_NODES, Circuit, circuit
from gptviz.interp.explaining.circuit_check import Checked
from gptviz.interp.explaining.circuit_check import check as check_of
from gptviz.interp.explaining.circuit_reads import means
from gptviz.ui.shell.subject import ModelKey, language_model


@dataclass(frozen=True)
class CircuitChoice:
    """The logit that is explained, and how much of it.

    Attributes:
        position: after which token the guess is made.
        token: whose logit.
        against: whose logit is subtracted; None for none.
        share: how much is to be traced back.
        beyond_mean: whether only that counts which parts add beyond their means over this text.
        boxes: the most boxes of the graph.
    """

    position: int
    token: int
    against: int | None
    share: float
    beyond_mean: bool = True
    boxes: int = MOST_NODES


@st.cache_resource(max_entries=24, show_spinner="Finding the circuit")
def found(key: ModelKey, ids: tuple[int, ...], chosen: CircuitChoice) -> Circuit:
    """The circuit of a guess after `ids`."""
    return find(key, ids, chosen)


def find(key: ModelKey, ids: tuple[int, ...], chosen: CircuitChoice) -> Circuit:
    lm = language_model(key)
    text = torch.tensor(ids, device=lm.device)
    about = chosen.position, chosen.token, chosen.against, chosen.share
    return circuit(lm.model, text, *about, usual="its mean" if chosen.beyond_mean else None, most=chosen.boxes)


@st.cache_resource(max_entries=24, show_spinner="Running the model without all other parts")
def checked(key: ModelKey, ids: tuple[int, ...], chosen: CircuitChoice, _circuit: Circuit) -> Checked:
    """The answer that is left with everything outside the circuit of `chosen` at its mean over `ids`."""
    lm = language_model(key)
    return check_of(_circuit, lm.model, means(lm.model, torch.tensor([ids], device=lm.device)))
