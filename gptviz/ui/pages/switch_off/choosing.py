"""Edits from a list: any piece of the model, and all that can become of it."""

from __future__ import annotations

import streamlit as st

from gptviz.interp.changing.edits import becomes, edit
from gptviz.interp.units.unit import Unit, heads_and_mlps
from gptviz.model import Config
from gptviz.model.parts.positions import POSITIONS
from gptviz.ui.shell.subject import edits
from gptviz.ui.widgets import escaped
from gptviz.ui.widgets.details import folded

NUMBER = "a number"
WORDS = {
    "zero": "zero",
    "mean": "its mean over the reference text",
    "uniform": "a uniform pattern",
    "previous": "a pattern on the previous token",
    "from": "its pattern over the reference text",
    "shuffled": "another order",
    NUMBER: "a number",
}


def units(config: Config) -> list[Unit]:
    """Every piece that is offered: embedding and positions, and in each block the attentions, their heads and the MLP."""
    offered: list[Unit] = [Unit("embed")]
    if POSITIONS[config.positions].acts_on != "nothing":
        offered.append(Unit("positions"))
        if config.n_encoder_layer:
            offered.append(Unit("positions", in_encoder=True))
    for one in heads_and_mlps(config):
        whole = Unit(one.part, one.block, in_encoder=one.in_encoder)
        if whole not in offered[-1 - config.n_head :]:
            offered.append(whole)
        if one != whole:
            offered.append(one)
    return offered


def form(config: Config) -> None:
    """The list: a piece of the model, what becomes of it, and a button that adds the edit."""
    offered = units(config)
    title = "More edits: patterns, positions, neurons, from a list"
    if (fold := folded(title, icon=":material/list:", key="more edits")) is None:
        return
    with fold:
        part, number = st.columns([3, 1], vertical_alignment="bottom")
        with part:
            unit = st.selectbox(
                "Piece of the model",
                offered,
                format_func=lambda one: f"{one.title} · {one.name}",
                key="edit unit",
                help="A head, a whole attention or MLP, the token embedding or the positions. Type to search.",
            )
        if unit.part == "mlp":
            with number:
                neuron = _one_of("neuron", config.mlp_size)
            if neuron is not None:
                unit = Unit("mlp", unit.block, neuron, unit.in_encoder)
            elif config.experts:
                with number:
                    expert = _one_of("expert", config.experts)
                if expert is not None:
                    unit = Unit("expert", unit.block, expert, unit.in_encoder)
        to = _becomes(unit)
        text = unit.name if to == "zero" else f"{unit.name}={to}"
        st.button(
            "Add this edit",
            icon=":material/add:",
            key="add edit",
            on_click=edits.set_to,
            args=(text,),
            help="On every page; an edit of the same piece is replaced.",
        )
        st.caption(f"{escaped(edit(text, config).title)}. Its name in links and on the command line: `{text}`")


def _one_of(what: str, count: int) -> int | None:
    """The control for one of the neurons or experts of an MLP, or None for the whole MLP."""
    about = f"One {what} of this MLP; empty for the whole MLP."
    chosen = st.number_input(what.capitalize(), 0, count - 1, None, key=f"edit {what}", placeholder="all", help=about)
    return None if chosen is None else int(chosen)


def _becomes(unit: Unit) -> str:
    """The value that replaces the unit, as it stands after the = of an edit."""
    what, value = st.columns([3, 1], vertical_alignment="bottom")
    with what:
        to = st.selectbox(
            "Becomes",
            [*becomes(unit), *([NUMBER] if unit.is_neuron else [])],
            format_func=WORDS.__getitem__,
            key="edit becomes",
            help="What takes its place. Means and patterns of another text are taken from the reference text, which is set in "
            "the list of edits beside the model.",
        )
    if to != NUMBER:
        return to
    with value:
        return f"{st.number_input('Value', value=1.0, key='edit value', help='What the neuron is set to at every place.'):.6g}"
