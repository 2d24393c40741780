"""What the page Over training shows: a chart for each measure, what changed first, and the pages at the step on screen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from gptviz.figures.kit.format import counted
from gptviz.figures.training import over_training as figures
from gptviz.interp.over_training.history import History, in_order
from gptviz.interp.units.unit import unit
from gptviz.model import Config
from gptviz.ui.menu import PAGES
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import Subject, scrubber
from gptviz.ui.widgets import escaped, show_figure, theme

from . import beside
from .choices import Axes

STEP = "step"
# Pixels of a chart where there are one, two, three or more: in front of a class the first of three is seen without scrolling.
HEIGHTS = (420, 300, 208)


def title(history: History, series: int, config: Config) -> str:
    """A series in words: "head 2 of block 1"; a measure with a single one has its own name."""
    name = history.series[series]
    if len(history.series) == 1:
        return history.measure.title.lower()
    if history.measure.needs == "held-out texts":
        return f"position {name}"
    *whole, matrix = name.removesuffix(".weight").split(".")
    for given, words in (
        (name, ""),
        (".".join(whole), f"matrix {matrix} of the "),
        (name.removesuffix(".weight"), "matrix of the "),
    ):
        with suppress(ValueError):
            return words + unit(given, config).title
    return name


def short(name: str) -> str:
    """The name of a series above its panel: a head as block and number, "1.2", "e1.2" in an encoder, "c1.2" if it crosses."""
    if ".attention.head." in name:
        return name.replace(".attention.head.", ".").replace("encoder.blocks.", "e").removeprefix("blocks.")
    if ".cross_attention.head." in name:
        return name.replace(".cross_attention.head.", ".").replace("blocks.", "c")
    return name.removeprefix("blocks.").removesuffix(".weight")


def chart(subject: Subject, history: History, axes: Axes, height: int) -> None:
    """The chart of a measure, with a sentence on its sharpest change. A click on a point puts its step on screen."""
    measure, key = history.measure, f"over {history.measure.name}"

    def choose(step: Sequence[int]) -> None:
        st.session_state[STEP] = str(step[0])

    change = history.sharpest(log_steps=axes.log_steps)
    said = sharpest(subject, history, axes)
    marked = None if change is None else (change.series, change.row)
    look = figures.Look(axes.log_steps, axes.log_values, marked, subject.key.step)
    names = [title(history, series, subject.lm.model.config) for series in range(len(history.series))]
    is_apart = axes.apart and len(history.series) > 1
    if is_apart:
        drawn = figures.panels(history.labelled(), theme(), look, list(map(short, history.series)))
    else:
        drawn = figures.lines(history.labelled(), theme(), look, names, height=height)
    show_figure(
        drawn,
        key=key,
        choose=choose,
        alt=f"{measure.title} ({measure.unit}) at {counted(len(history.steps), 'snapshot')} of the training. {said}",
    )
    most, heads = figures.MOST_PANELS, is_apart and any(".head." in name for name in history.series)
    of_heads = " 0.1 is head 1 of block 0."
    if subject.kind == "encoder-decoder":
        of_heads = " 0.1 is head 1 of block 0, e0.1 that of the encoder, c0.1 that of cross-attention."
    cut = f" The first {most} of {len(history.series)} have a panel." if is_apart and len(history.series) > most else ""
    st.caption(f"**{measure.title}.** {escaped(measure.about)} {escaped(said)}{of_heads if heads else ''}{cut}")


def sharpest(subject: Subject, history: History, axes: Axes) -> str:
    """A sentence on the sharpest change of a measure."""
    change = history.sharpest(log_steps=axes.log_steps)
    if change is None:
        return "Nothing changes."
    name = title(history, change.series, subject.lm.model.config)
    return f"Sharpest change: {name} {change.words}."


def which_came_first(subject: Subject, histories: Sequence[History]) -> None:
    """The order in which the measures changed; nothing for less than two."""
    order = in_order(histories)
    if len(order) < 2:
        return
    lines = []
    for place, (history, half) in enumerate(order, 1):
        name = history.measure.title.split(",")[0]
        which = f" ({title(history, half.series, subject.lm.model.config)})" if len(history.series) > 1 else ""
        lines.append(f"{place}. {escaped(name + which)}: about step {half.step:,.0f}")
    st.markdown(
        "**Which came first?** Half of the change from the first snapshot to the last was reached by\n" + "\n".join(lines)
    )
    between = {half.steps for _, half in order}
    if len(between) == 1:
        first, last = between.pop()
        st.caption(
            f"All lie between the same two snapshots, {first:,} and {last:,}: the order is that of straight lines between them."
        )


def pages_at(subject: Subject, histories: Sequence[History]) -> None:
    """Links to the pages of the measures, at the step on screen."""
    step = subject.key.step
    if step is None:
        st.caption("Click a point of a chart to open its step: all pages then show the model as it was there.")
        return
    st.markdown(f"**At step {step:,}**, open")
    for page in dict.fromkeys(one.measure.page for one in histories if one.measure.page):
        frame.link(PAGES[page])
    st.caption("or any other page of the menu: all show the model as it was at this step.")


def without_snapshots(subject: Subject) -> None:
    """Used instead of all else for a model without snapshots: its losses beside those of its relatives, which its training wrote
    down, or that there is nothing; with a way to a model that has snapshots.
    """
    name = subject.key.name
    known = beside.show(name)
    rest = "but for these losses nothing" if known else "nothing"
    st.info(
        f"{escaped(name)} has no snapshots: {rest} is known of what it was like while it was trained. A model that is trained on "
        "the page Train keeps some.",
        icon=":material/info:",
    )
    if (instead := frame.default_model()) != name and scrubber.steps(instead):
        with st.container(horizontal=True):
            frame.link(frame.current_page(), f"Open {escaped(instead)}, which has some", query={"model": instead})
            frame.link(TRAIN)
