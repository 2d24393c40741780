"""How models learned: losses over the steps of training, and any other quantity of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MARGIN, axis, two_axes
from gptviz.figures.kit.format import power
from gptviz.figures.kit.theme import Theme, blend, plain_label, themed_figure
from gptviz.labelled_array import Float64Array

# Tol's "bright" set, made for colour-blind readers, in an order in which neighbours differ most.
# None of
# them is the colour of a role, since a run has no role. Strokes and markers distinguish the runs
# without colours.
COLOURS = ("#4477AA", "#EE6677", "#228833", "#AA3377", "#CCBB44", "#66CCEE")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down")
BUCKETS = 500
# What the two lines of a run are over.
LEARNED_FROM = "what it learns from"
HELD_OUT = "held-out data"

LEGEND = (
    "Strong line, with a marker for each evaluation: the loss on held-out data. Pale line: the "
    "loss of each training batch. "
    "Thin line: the mean of the pale line over the last twentieth of the steps."
)


@dataclass(frozen=True, eq=False)
class Curve:
    """The losses of one run, in nats per token."""

    name: str  #: what the run is called
    steps: Float64Array  #: [points], the steps of `training`, in rising order
    #: [points], the loss on the training batches; None if it was not recorded
    training: Float64Array | None
    validation_steps: Float64Array  #: [evaluations], the steps of `validation`, in rising order
    validation: Float64Array  #: [evaluations], the loss on held-out data
    floor: float | None = None  #: the lowest loss that any model can reach, where it is known
    #: ln V, the loss of guessing among V tokens (or labels) without any knowledge
    uniform: float | None = None
    #: [evaluations], how much of the held-out data each of `validation` was measured on; None if it
    #: was all of it
    shares: Float64Array | None = None
    #: what is measured instead of a loss, of the fit of a dictionary "share missed"; None: a loss
    quantity: str | None = None


@dataclass(frozen=True, eq=False)
class Accuracy:
    """How much of its predictions one run got right, as shares."""

    name: str  #: what the run is called
    what: str  #: what is right: tokens, texts, or whole answers
    steps: Float64Array  #: [evaluations], in rising order
    validation: Float64Array  #: [evaluations], on data held out
    training_steps: Float64Array  #: [points], the steps of `training`, in rising order
    #: [points], on data that the run is trained on, without dropout; empty if that was not measured
    training: Float64Array
    #: the number of steps that go once over all the data; None if the data have no end or their
    #: size is not known
    epoch: float | None = None


ACCURACY_LEGEND = (
    "Strong line: how much is right on held-out data. Dotted line: how much is right on training "
    "data, without dropout."
)


def losses(
    curves: Sequence[Curve],
    theme: Theme,
    *,
    log_steps: bool = False,
    log_loss: bool = False,
    height: int = 420,
    training: bool = True,
    until: float | None = None,
) -> go.Figure:
    """The losses of some runs over each other, with their floors and the loss of guessing as lines,
    and the losses of training batches if asked for; see `LEGEND`. With `until` the axis reaches
    from the start up to a step, so that nothing moves while a run grows.
    """
    figure = themed_figure(
        theme,
        height=height,
        margin=MARGIN,
        hovermode="closest",
        showlegend=True,
        # A zoom stays while a run grows, and goes where the axes become others.
        uirevision=f"{log_steps} {log_loss}",
        xaxis=scale("step", log_steps) | _reach(until, log_steps),
        yaxis=scale(
            next((curve.quantity for curve in curves if curve.quantity), "loss (nats per token)"),
            log_loss,
        ),
    )
    for index, curve in enumerate(curves):
        shade = colour(index, theme)
        name = curve.name
        if training and curve.training is not None:
            # beside other runs the thin line is known by its colour
            is_alone = len(curves) == 1
            named = is_alone or not len(curve.validation)
            _add_training(figure, curve, shade, index, log_steps, named=named)
            name = f"{name}, {HELD_OUT}" if is_alone else name
        _add_validation(figure, curve, name, shade, index, log_steps)
    for level in _levels(curves):
        _add_level(figure, level, theme, log_loss)
    return figure


def accuracies(
    runs: Sequence[Accuracy],
    theme: Theme,
    *,
    height: int = 200,
    log_steps: bool = False,
    until: float | None = None,
) -> go.Figure:
    """How much some runs got right on data held out and on data they are trained on, over each
    other; `until` as in `losses`.
    """
    epochs = {run.epoch for run in runs}
    epoch = epochs.pop() if len(epochs) == 1 else None
    if epoch:
        about = f"step (once over the data, an epoch, is {epoch:,.0f} steps)"
    else:
        about = "step"
    whats = {run.what for run in runs}
    figure = themed_figure(
        theme,
        height=height,
        margin=MARGIN,
        hovermode="closest",
        showlegend=len(runs) > 1,
        uirevision=f"{log_steps}",
        xaxis=scale("step", log_steps) | {"title": axis(about)["title"]} | _reach(until, log_steps),
        yaxis=scale(whats.pop() if len(whats) == 1 else "right", False)
        | {"range": [0, 1.02], "tickformat": ".0%"},
    )
    for index, run in enumerate(runs):
        look = {"color": colour(index, theme), "dash": DASHES[index % len(DASHES)], "width": 2.5}
        _add_shares(
            figure,
            run,
            "held-out data",
            run.steps,
            run.validation,
            look,
            name=run.name,
            log_steps=log_steps,
        )
        if len(run.training):
            dotted = look | {"dash": "dot", "width": 1.5}
            x = run.training_steps
            y = run.training
            _add_shares(
                figure, run, "data it is trained on", x, y, dotted, name=None, log_steps=log_steps
            )
    return figure


def _add_shares(
    figure: go.Figure,
    run: Accuracy,
    where: str,
    steps: Float64Array,
    shares: Float64Array,
    line: dict[str, Any],
    *,
    name: str | None,
    log_steps: bool,
) -> None:
    x, y = thinned(steps, shares, log_steps=log_steps)
    epoch = "" if run.epoch is None else "<br>epoch %{customdata:.3~g}"
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines" if len(x) > 1 else "markers",
        name=plain_label(name or run.name, 32),
        showlegend=name is not None,
        legendgroup=run.name,
        line=line,
        cliponaxis=False,
        customdata=None if run.epoch is None else x / run.epoch,
        hovertemplate=f"{plain_label(run.name)}, {where}<br>step %{{x:,}}{epoch}<br>{run.what} "
        f"<b>%{{y:.1%}}</b><extra></extra>",
    )


def values(
    name: str,
    unit: str,
    steps: npt.ArrayLike,
    values: npt.ArrayLike,
    theme: Theme,
    *,
    height: int = 200,
    log: bool = False,
    until: float | None = None,
) -> go.Figure:
    """One quantity of a run over its steps, in `unit` ("" if it has none); `until` as in
    `losses`.
    """
    x, y = thinned(steps, values)
    figure = two_axes(
        theme,
        scale("step", False) | _reach(until, False),
        scale(f"{name} ({unit})" if unit else name, log),
        height=height,
        uirevision=f"{name} {log}",
    )
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines" if len(x) > 1 else "markers",
        line={"color": theme.text, "width": 1.5},
        hovertemplate=f"step %{{x:,}}<br>{name} <b>%{{y:.3~g}}</b> {unit}<extra></extra>",
    )
    return figure


def thinned(
    steps: npt.ArrayLike, values: npt.ArrayLike, *, log_steps: bool = False
) -> tuple[Float64Array, Float64Array]:
    """About 1,000 of the points at most, with the first, the last and all that stand out. What is
    not a number is left out, and step 0, which a logarithmic axis does not have.

    The axis is cut into equal parts (equal on a logarithmic axis with `log_steps`), and each keeps
    its lowest and its highest point.
    """
    x = np.asarray(steps, float)
    y = np.asarray(values, float)
    sound = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not log_steps))
    x = x[sound]
    y = y[sound]
    if len(x) <= 2 * BUCKETS:
        return x, y
    places = np.log1p(x) if log_steps else x
    ends = np.searchsorted(places, np.linspace(places[0], places[-1], BUCKETS + 1)[1:-1])
    indices = {0, len(x) - 1}
    for start, part in zip([0, *ends], np.split(y, ends), strict=True):
        if len(part):
            indices |= {start + int(part.argmin()), start + int(part.argmax())}
    chosen = sorted(indices)
    return x[chosen], y[chosen]


def trailing_mean(steps: Float64Array, values: Float64Array) -> Float64Array:
    """At every step the mean over the last twentieth of the steps up to it. No later step changes
    it.
    """
    first = np.searchsorted(steps, 0.95 * steps, side="right").clip(max=np.arange(len(steps)))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray((sums[1:] - sums[first]) / (np.arange(1, len(values) + 1) - first))


def colour(index: int, theme: Theme) -> str:
    """The colour of the run with this index: one of `COLOURS`, moved towards the colour of text
    until it is clearly visible.
    """
    return blend(COLOURS[index % len(COLOURS)], theme.text, 0.7)


def perplexity_in_words(loss: float) -> str:
    """The perplexity, e to the loss, as text."""
    value = float(np.exp(min(loss, 700.0)))
    if value < 1_000:
        return f"{value:.3g}"
    if value < 1e9:
        return f"{value:,.0f}"
    return power(value)


def _add_training(
    figure: go.Figure, curve: Curve, shade: str, group: int, log_steps: bool, *, named: bool
) -> None:
    assert curve.training is not None
    sound = np.isfinite(curve.training) & np.isfinite(curve.steps)
    steps = curve.steps[sound]
    training = curve.training[sound]
    smooth = trailing_mean(steps, training)
    both = ((training, "training", 0.35), (smooth, "training, mean", 0.8))
    for numbers, what, opacity in both:
        x, y = thinned(steps, numbers, log_steps=log_steps)
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": shade, "width": 1},
            opacity=opacity,
            name=plain_label(f"{curve.name}, {LEARNED_FROM}", 48) if named else None,
            legendgroup=str(group),
            showlegend=named and numbers is smooth,
            **_hover(curve, what, y),
        )


def _add_validation(
    figure: go.Figure, curve: Curve, name: str, shade: str, group: int, log_steps: bool
) -> None:
    x, y = thinned(curve.validation_steps, curve.validation, log_steps=log_steps)
    # The markers of a long run would hide its line.
    every = max(1, len(x) // 25)
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines+markers",
        name=plain_label(name, 48),
        line={"color": shade, "width": 2.5, "dash": DASHES[group % len(DASHES)]},
        marker={
            "color": shade,
            "symbol": MARKERS[group % len(MARKERS)],
            "opacity": 1,
            "size": [8 if i % every == 0 or i == len(x) - 1 else 0 for i in range(len(x))],
        },
        cliponaxis=False,  # the marker at step 0
        legendgroup=str(group),
        **_hover(curve, "held-out data", y),
    )


def stroke(index: int, theme: Theme, most: int = 0) -> dict[str, Any]:
    """The line and the markers of the run or quantity with this index: it can be told from its
    neighbours without colours. With `most` there are no more markers: those that touch would hide
    which line is which.
    """
    shade = colour(index, theme)
    marker = {
        "color": shade,
        "symbol": MARKERS[index % len(MARKERS)],
        "size": 7,
        "maxdisplayed": most,
    }
    return {
        "line": {"color": shade, "width": 2.5, "dash": DASHES[index % len(DASHES)]},
        "marker": marker,
    }


def _hover(curve: Curve, what: str, values: Float64Array) -> dict[str, Any]:
    where = f"{plain_label(curve.name)}, {what}<br>step %{{x:,}}<br>"
    if curve.quantity is not None:
        return {"hovertemplate": f"{where}{curve.quantity} <b>%{{y:.2%}}</b><extra></extra>"}
    return {
        "customdata": [perplexity_in_words(value) for value in values.tolist()],
        "hovertemplate": (
            f"{where}loss <b>%{{y:.4f}}</b><br>perplexity %{{customdata}}<extra></extra>"
        ),
    }


@dataclass(frozen=True)
class _Level:
    """A horizontal line at a loss: the text on it, at which end and on which side of the line."""

    value: float
    text: str
    end: Literal["left", "right"]
    side: Literal["bottom", "top"] = "bottom"


def _levels(curves: Sequence[Curve]) -> list[_Level]:
    """The horizontal lines: one for all runs that share a value, with its text where a falling
    curve leaves room.
    """
    guesses = sorted(
        {round(curve.uniform, 6) for curve in curves if curve.uniform is not None}, reverse=True
    )
    levels = [
        # The text of the second is below its line: the sizes of two vocabularies may be close.
        _Level(
            value,
            f"blind guess: ln {np.exp(min(value, 40)):,.0f} = {value:.3f}",
            "right",
            "top" if rank else "bottom",
        )
        for rank, value in enumerate(guesses)
    ]
    floors: dict[float, list[str]] = {}
    for curve in curves:
        if curve.floor is not None:
            floors.setdefault(round(curve.floor, 6), []).append(curve.name)
    for value, names in floors.items():  # their texts are below them, where no curve comes
        whose = f" of {plain_label(names[0])}" if len(floors) > 1 else ""
        levels.append(
            _Level(value, f"floor{whose}: {value:.3f}, nothing can be lower", "left", "top")
        )
    return levels


def _add_level(figure: go.Figure, level: _Level, theme: Theme, log_loss: bool) -> None:
    if log_loss and level.value <= 0:
        return
    line = {"color": theme.text, "width": 1, "dash": "dot"}
    figure.add_shape(
        type="line", xref="paper", x0=0, x1=1, y0=level.value, y1=level.value, line=line
    )
    figure.add_annotation(
        text=level.text,
        xref="paper",
        x=float(level.end == "right"),
        # On a logarithmic axis plotly takes the logarithm here, and the value itself for the line.
        y=float(np.log10(level.value)) if log_loss else level.value,
        xanchor=level.end,
        yanchor=level.side,
        font={"size": 12},
    )


def scale(name: str, log: bool) -> dict[str, Any]:
    """The look of an axis called `name`; one called "step" counts the steps of training."""
    steps = name == "step"
    look = axis(name) | {"showgrid": True, "tickformat": "," if steps else ".3~g"}
    if not log:
        return look | ({"rangemode": "tozero"} if steps else {})
    # Steps go over several decades: 1, 2, 5, 10 … 1k; a loss mostly stays within one, where plotly
    # finds better places.
    look["type"] = "log"
    if steps:
        # there is no part of a step, however few of them are known yet
        return look | {"dtick": "D2", "tickformat": "~s", "minallowed": 0}
    return look | {"nticks": 8}


def _reach(until: float | None, log_steps: bool) -> dict[str, Any]:
    if until is None:
        return {}
    return {
        "range": [0.0, float(np.log10(max(until, 2)))]
        if log_steps
        else [-0.02 * until, 1.02 * until]
    }
