"""The circuit over features: the choice, what a feature speaks for, and what is said of the graph
beside that of whole parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from gptviz.figures.kit.format import format_count, percent
from gptviz.interp.explaining.circuit import MOST_NODES, Circuit
from gptviz.interp.units.unit import Unit
from gptviz.language_model import explaining, units
from gptviz.ui.menu import PAGES
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import Subject, ask
from gptviz.ui.shell.subject.unit_titles import names_of, titles_of
from gptviz.ui.widgets import controls, escape_markdown

PARTS = "parts"
FEATURES = "features"
NODES = {PARTS: "parts", FEATURES: "features"}
# The tokens that a feature is said to speak for.
SPEAKS = 2


def choose_nodes(subject: Subject) -> str:
    """The control: whether MLPs are whole boxes, or the features of their transcoders. Without a
    transcoder there is no choice.
    """
    if not explaining.transcoders(subject.lm):
        return PARTS
    return controls.select(
        "Boxes of MLPs",
        list(NODES),
        key="nodes",
        help="Parts: a box for each MLP. Features: a box for each feature of the MLP’s transcoder, "
        "and one for what the transcoder misses, the error.",
        format_func=NODES.__getitem__,
        segmented=True,
        label_visibility="collapsed",
    )


def speaks_for(subject: Subject, unit: Unit) -> list[str]:
    """The tokens that a feature raises most; none of another unit."""
    if unit.part != "dictionary":
        return []
    asked = ask(subject.key, units.promoted, "Reading the weights", name=unit.name, most=SPEAKS)
    return list(asked.value.axes[0].labels[:SPEAKS])


def titles(subject: Subject, data: Circuit) -> dict[Unit, tuple[str, str]]:
    """For each feature and error of a graph, and each unit that the reader has named, what its box
    says and its title, as texts; a box without words of its own says what it is.
    """
    named: dict[Unit, tuple[str, str]] = {}
    own_name = names_of(subject.key)
    title = titles_of(subject.key)
    for unit in {node.unit for node in data.nodes if node.unit is not None}:
        if unit.part == "missed":
            named[unit] = ("error", unit.title)
        elif spoken := speaks_for(subject, unit):
            words = " ".join(f"“{token}”" for token in spoken)
            box = f"{unit.index}: {own_name(unit.name) or spoken[0]}"
            named[unit] = (box, f"{title(unit)}, which speaks for {words}")
        elif own := own_name(unit.name):
            what = "MLP" if unit.index is None else f"{unit.kind} {unit.index}"
            named[unit] = (f"{what}: {own}", title(unit))
    return named


def say_beside_parts(
    subject: Subject, settings: Mapping[str, Any], data: Circuit, *, is_large: bool
) -> None:
    """Of a graph over features, which was asked for with `settings`: what ends in the error; and
    where it is quick, beside a graph of whole parts with as many lines, whether its share is twice
    that of it, and why not.
    """
    if not data.transcoders:
        return
    said = f"{percent(data.missed)} of it ends in what the transcoders miss, the boxes “error”. "
    if is_large:
        st.caption(said)
        return
    lines = len(data.edges)
    asked = {**settings, "nodes": PARTS, "most": MOST_NODES, "lines": lines}
    parts = ask(subject, explaining.circuit, "Finding the circuit", **asked).value
    other = (
        f"{format_count(len(parts.edges), 'line')} between whole parts trace {percent(parts.share)}"
    )
    if data.share >= 2 * parts.share:
        said += f"That is at least twice as much as with parts: {other}."
    else:
        of_features = sum(
            any(end.unit is not None and end.unit.part == "dictionary" for end in ends)
            for ends in ((edge.source, edge.target) for edge in data.edges)
        )
        said += (
            f"For comparison: {other}. A box for a whole MLP gathers all of its features in one "
            f"line, and heads stay as they are; here {format_count(of_features, 'line')} of "
            f"{lines} belong to features, each of which carries a part of what that one line does. "
            "Features show what an MLP says, at the price of more lines."
        )
    st.caption(said)


def show_links(subject: Subject, unit: Unit) -> None:
    """What a feature speaks for, and the way to its page; nothing of other units."""
    if spoken := speaks_for(subject, unit):
        words = " and ".join(f"“{escape_markdown(token)}”" for token in spoken)
        st.markdown(f"It speaks for {words}.")
        query = frame.shared_state() | {"dictionary": unit.called, "unit": unit.name}
        frame.link(PAGES["features"], "This feature", query=query)
