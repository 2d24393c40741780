"""The report of a training run as one page: its curves, its settings, its samples, and its card."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from gptviz.figures.kit.format import duration, percent
from gptviz.figures.kit.theme import LIGHT
from gptviz.figures.training import curves
from gptviz.model import Config
from gptviz.runs import checkpoints
from gptviz.runs.card import Card
from gptviz.runs.divergence import describe_divergence
from gptviz.runs.log import LogLine, curve_points, read_log
from gptviz.runs.status import read_status
from gptviz.settings.fields import field_infos
from gptviz.takehome.learning_curves import read_accuracy, read_curve
from gptviz.train.recipe import Recipe

from .page import (
    Code,
    ControlValue,
    Figure,
    Heading,
    MarkdownText,
    PageContent,
    PagePiece,
    PageTable,
    PieceGroup,
    PlainText,
)

MOST_SAMPLES = 24
# Other values that the log has for each step: field, heading, unit, and whether the axis is
# logarithmic.
OTHERS = (
    ("learning_rate", "Learning rate", "", False),
    ("gradient_norm", "Length of the gradient before clipping", "", True),
    ("tokens_per_second", "Speed", "tokens per second", False),
)


def report(name: str) -> PageContent:
    """The report of the run that made the model called `name`; a CheckpointError if the model, its
    card or config is missing.
    """
    folder = checkpoints.find(name)
    card = checkpoints.read_card(folder)
    config = checkpoints.read_config(folder)
    log = read_log(folder / "log.jsonl")
    pieces: tuple[PagePiece, ...] = (
        Heading(f"How {name} was trained", 1, plain=True),
        PieceGroup(
            tuple(ControlValue(label, value) for label, value in summary(folder, card)), "row"
        ),
        *(
            [PieceGroup((Heading("It diverged", 2), PlainText(problem)))]
            if (problem := describe_divergence(card, config))
            else []
        ),
        *_curves(folder, log, is_classifier=config.n_label is not None and config.n_label > 0),
        Heading("Settings", 2),
        PageTable(settings_table(Recipe, card.recipe or {})),
        PieceGroup(
            (PageTable(settings_table(Config, config.to_dict())),), "folded", "The architecture"
        ),
        *_samples(log),
        Heading("Card", 2),
        *(
            (MarkdownText("The command that trains it again:"), Code(card.command, "bash"))
            if card.command
            else ()
        ),
        PieceGroup(
            (Code(json.dumps(card.values, indent=1, ensure_ascii=False), "json"),),
            "folded",
            "The card, as it is kept",
        ),
    )
    return PageContent(
        "report", {"model": name}, pieces, f"The report of the run that made {name}."
    )


def summary(folder: Path, card: Card) -> Iterator[tuple[str, str]]:
    """The main numbers of a run, each with its label; those that are not known are left out."""
    yield "State", read_status(folder).state
    if data := card.task or card.corpus:
        yield "Data", data
    losses = read_curve(folder).validation
    if len(losses) and math.isfinite(losses[-1]):
        yield (
            "Last loss on held-out data",
            f"{losses[-1]:.4f} nats (perplexity {curves.perplexity_in_words(float(losses[-1]))})",
        )
    if card.floor is not None:
        yield "Lowest loss possible on this data", f"{card.floor:.4f} nats"
    if card.accuracy is not None:
        yield "Right on held-out data", percent(card.accuracy)
    for label, value in (("Steps", card.steps), ("Parameters", card.values.get("parameters"))):
        if isinstance(value, int):
            yield label, f"{value:,}"
    if card.seconds:
        yield "Time", duration(card.seconds)
    for label, key in (("Device", "device"), ("Date", "date"), ("gptviz", "gptviz")):
        if isinstance(value := card.values.get(key), str):
            yield label, value


def _curves(folder: Path, log: Sequence[LogLine], *, is_classifier: bool) -> Iterator[PagePiece]:
    curve = read_curve(folder)
    yield Heading("What it learned", 2)
    if not len(curve.validation) and curve.training is None:
        yield MarkdownText("Nothing is written down about its losses.")
        return
    figure = curves.losses([curve], LIGHT)
    if is_classifier:
        figure.update_yaxes(title_text="loss (nats per text)")
    yield _figure(figure, "The losses over the steps of training.")
    yield MarkdownText(curves.LEGEND, "caption")
    if (accuracy := read_accuracy(folder)) is not None:
        yield _figure(
            curves.accuracies([accuracy], LIGHT), f"{accuracy.what} over the steps of training."
        )
        yield MarkdownText(curves.ACCURACY_LEGEND, "caption")
    others = tuple(_other_pieces(log))
    if others:
        yield PieceGroup(others, "folded", "Learning rate, gradient and speed")


def _other_pieces(log: Sequence[LogLine]) -> Iterator[PagePiece]:
    for field, title, unit, is_log in OTHERS:
        if points := curve_points(log, "step", field):
            steps, values = zip(*points, strict=True)
            yield Heading(title, 3)
            yield _figure(
                curves.values(title, unit, steps, values, LIGHT, log=is_log),
                f"{title} over the steps of training.",
            )


def _figure(figure: go.Figure, alt: str) -> Figure:
    return Figure(figure.to_json(), alt)


def settings_table(of: type, values: Mapping[str, Any]) -> pd.DataFrame:
    """Every setting of a recipe or a config that `values` has, with its meaning."""
    known = [
        (info.label, values[name], info.help)
        for name, info in field_infos(of).items()
        if name in values
    ]
    rows = [(label, _in_words(value), about) for label, value, about in known]
    return (
        pd.DataFrame(rows, columns=["setting", "value", "what it does"])
        .set_index("setting")
        .rename_axis(index=None, columns="setting")
    )


def _in_words(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        if value:
            return "yes"
        return "no"
    if isinstance(value, float):
        return f"{value:,g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _samples(log: Sequence[LogLine]) -> Iterator[PagePiece]:
    written = [
        (line.step, line.text) for line in log if line.kind == "sample" and line.text is not None
    ]
    if not written:
        return
    yield Heading("What it wrote", 2)
    shown = pick_evenly(written, MOST_SAMPLES)
    if len(shown) == len(written):
        about = ""
    else:
        about = f" {len(shown)} of {len(written)} samples."
    yield MarkdownText(
        f"Samples that it wrote on the way, the first one before it had learned much.{about}",
        "caption",
    )
    for step, text in shown:
        yield Heading(f"After {step:,} {'step' if step == 1 else 'steps'}", 3, plain=True)
        yield Code(text, "")


def pick_evenly(entries: Sequence[tuple[int, str]], most: int) -> list[tuple[int, str]]:
    """At most `most` of the entries: the first, the last, and evenly spaced ones between them."""
    if len(entries) <= most:
        return list(entries)
    return [entries[round(i * (len(entries) - 1) / (most - 1))] for i in range(most)]
