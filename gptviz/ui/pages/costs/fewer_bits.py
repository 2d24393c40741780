"""The view "With fewer bits" of the page Size and cost: what the model loses if its weights are
kept in fewer bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.figures.changing.fewer_bits import matrix_errors, memory_bars
from gptviz.figures.kit.format import brief, format_count, percent
from gptviz.interp.changing import fewer_bits as computed
from gptviz.interp.changing.edits import edits, fitting
from gptviz.interp.changing.fewer_bits import MatrixError
from gptviz.interp.changing.weight_edits import WEIGHTS, quantisers
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine.memory import in_bytes
from gptviz.model import Config, Transformer, parameter_count, precision
from gptviz.model.quantising import BITS, GGUF_KINDS, GROUPS, matrix_names
from gptviz.ui.records.compare import PAGE as COMPARE
from gptviz.ui.records.costs import BITS as VIEW
from gptviz.ui.shell import frame
from gptviz.ui.shell.close import NOTHING, PageResult
from gptviz.ui.shell.subject import (
    ModelKey,
    Subject,
    language_model,
    load_call,
    long_prompts,
    opening,
)
from gptviz.ui.shell.subject import edits as on_screen
from gptviz.ui.shell.subject.bar import shorten_prompt
from gptviz.ui.views import before_after, loss_texts
from gptviz.ui.widgets import controls, escape_markdown, jobs, say_answer, show_figure, theme
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.tables import show_table

from .counts import metrics

WHOLE = "whole"
ALL = "all"
ROW = "row"
KINDS = {
    WHOLE: "as it is",
    **{str(bits): f"{bits} bits" for bits in BITS},
    **dict(zip(GGUF_KINDS, GGUF_KINDS, strict=True)),
}
SCALES = {ROW: "each row", **{f"g{group}": f"{group} neighbours" for group in GROUPS}}
USUAL = "4"
USUAL_SCALE = "g32"
# A model with more parameters is quantised when the reader asks for it.
MOST_AT_ONCE = 20_000_000
# How many matrices the table lists.
LISTED = 12
_FORMATS = {
    "error, %": "%.2f",
    "largest error": "%.3g",
    "farthest / RMS": "%.1f",
    "outliers, %": "%.3f",
    "bytes": "localized",
}


def show(subject: Subject) -> PageResult:
    """The view: its controls, what the model loses, and the way to the other pages."""
    config = subject.lm.model.config
    text = _setting(config, subject.key)
    if text is None:
        model = subject.lm.model
        whole = 4 * parameter_count(config)
        now = precision.bytes_in_memory(model)
        say_answer(
            f"This model takes {in_bytes(now)} of memory; with 32 bits for each number it would "
            f"take {in_bytes(whole)}.",
            f"Its weights are {escape_markdown(precision.describe_types(model))}. Choose a number "
            "of bits to see what fewer would change.",
        )
        _memory_shown({"32 bits for each number": whole, "as it is here": now})
        return NOTHING
    if subject.kind.continues:
        subject = shorten_prompt(
            subject, long_prompts.read_in_seconds(config), "It is read twice here"
        )
    others = [one.text for one in subject.lm.changes if not one.is_of_weights]
    reference = on_screen.reference_text(subject.default)
    before = on_screen.with_edits(
        subject.key.unedited, fitting(others, subject.lm.original.model), reference
    )
    shown = on_screen.with_edits(
        subject.key.unedited, fitting([text, *others], subject.lm.original.model), reference
    )
    if not any(one.is_of_weights for one in language_model(shown).changes):
        return NOTHING
    return _show_losses(replace(subject, key=before, lm=language_model(before)), shown, text)


def _setting(config: Config, key: ModelKey) -> str | None:
    """The controls, which begin with the edit that the model has. Returns the edit chosen, or None
    for the whole model.
    """
    kind = USUAL if parameter_count(config) <= MOST_AT_ONCE else WHOLE
    scale = USUAL_SCALE
    matrix = ALL
    if of_weights := [one for one in edits(key.edits, config) if one.is_of_weights]:
        bits, _, own_scale = str(of_weights[0].to).partition("bit.")
        kind = bits
        scale = own_scale or scale
        matrix = of_weights[0].unit.called or ALL
    first, second, third = st.columns([3, 3, 4], gap="medium", vertical_alignment="bottom")
    with first:
        kind = controls.select(
            "Bits of a number",
            list(KINDS),
            key="bits",
            default=kind,
            follows=True,
            format_func=lambda name: KINDS[name],
            help="Rounds the weights to this many bits, or as a GGUF format does. The model then "
            "computes with the rounded "
            "numbers; nothing becomes faster here.",
        )
    with second:
        scale = controls.select(
            "A scale for",
            list(SCALES),
            key="scale",
            default=scale,
            follows=True,
            format_func=lambda name: SCALES[name],
            disabled=not kind.isdecimal(),
            help="The largest of these numbers decides how far apart the others may lie. Kinds of "
            "GGUF have a scale for 32 "
            "neighbours of a row.",
        )
    with third:
        matrix = controls.select(
            "Matrices",
            [ALL, *matrix_names(config)],
            key="matrix",
            default=matrix,
            follows=True,
            format_func=lambda name: "all of them" if name == ALL else name,
            help="All matrices, or only one: the others then stay whole.",
        )
    if kind == WHOLE:
        return None
    return f"{WEIGHTS if matrix == ALL else matrix}={f'{kind}bit.{scale}' if kind.isdecimal() else kind}"


def _show_losses(subject: Subject, shown: ModelKey, text: str) -> PageResult:
    """What the model of `shown` loses against that of `subject`, whose weights are as they are."""
    before = subject.key
    config = subject.lm.model.config
    errors = _errors(before, shown)
    squares = [error.rows * error.width * error.spread**2 for error in errors]
    wrong = sum(
        error.relative**2 * square for error, square in zip(errors, squares, strict=True) if square
    )
    if sum(squares):
        together = float((wrong / sum(squares)) ** 0.5)
    else:
        together = 0.0
    size = computed.weight(config, quantisers(language_model(shown).changes, config))
    cells = [
        (
            "Bits with scales",
            f"{size.bits:.3g}",
            "Of a number of these matrices, with its share of their scales.",
        ),
        ("Their error", percent(together), "‖Ŵ − W‖ / ‖W‖ of all these matrices together."),
    ]
    if subject.kind.continues:
        moved = _divergences(before, shown, subject.seen)
        help_text = (
            "Kullback–Leibler divergence from the whole model's guess, mean over the last "
            f"{len(moved):,} tokens of the prompt."
        )
        cells.append(("Guesses move by", f"{brief(float(moved.mean()))} nats", help_text))
    guess = before_after.ask_guess_move(subject, shown, before)
    how = describe_setting(text)
    say_answer(
        f"With 32 bits for each number this model takes {in_bytes(size.float32)}, with {how} "
        f"{in_bytes(size.kept)}.",
        f"Then {guess.sentence}.",
    )
    left, right = st.columns([6, 5], gap="medium")
    with left:
        _memory_shown({"32 bits for each number": size.float32, how: size.kept})
        metrics(cells)
    with right:
        guess.show()
    left, right = st.columns([6, 5], gap="medium")
    with left:
        _errors_shown(errors)
    with right:
        over = loss_texts.choose(subject)
        before_after.losses(subject, shown, over, before)
    before_after.texts(subject, shown, before)
    _link_pages(subject, shown, text)
    table = computed.by_block(errors)
    return PageResult(None if table is None else lambda: table, _code(subject, shown, text), VIEW)


@jobs.data("Comparing the weights", max_entries=32)
def _errors(before: ModelKey, shown: ModelKey) -> list[MatrixError]:
    whole = language_model(before).model
    twin = language_model(shown)
    return computed.errors(whole, twin.model, quantisers(twin.changes, whole.config))


@jobs.data("Reading the prompt", max_entries=32)
def _divergences(before: ModelKey, shown: ModelKey, ids: tuple[int, ...]) -> Float64Array:
    return computed.divergences(language_model(before).model, language_model(shown).model, ids)


def describe_setting(text: str) -> str:
    """How an edit of weights keeps their numbers, for use in a sentence: "4 bits for each number"
    or "Q4_K numbers", and in which matrix if it is one alone.
    """
    matrix, _, to = text.partition("=")
    bits, of_bits, _ = to.partition("bit.")
    if of_bits:
        numbers = f"{format_count(int(bits), 'bit')} for each number"
    else:
        numbers = f"{to} numbers"
    return numbers if matrix == WEIGHTS else f"{numbers} of {escape_markdown(matrix)}"


def _memory_shown(sizes: Mapping[str, int]) -> None:
    """What the weights take, in bytes, by how they are kept, as bars."""
    table = LabelledArray(
        np.array(list(sizes.values())), (Axis("kept as", tuple(sizes)),), unit="bytes"
    )
    written = [in_bytes(size) for size in sizes.values()]
    said = ", ".join(f"{size} with {how}" for how, size in zip(sizes, written, strict=True))
    show_figure(
        memory_bars(table, written, theme()),
        key="memory with fewer bits",
        alt=f"Memory of the weights: {said}.",
    )


def _errors_shown(errors: list[MatrixError]) -> None:
    """The errors by block and matrix, and the matrices that lose most."""
    ordered = computed.most_first(errors)
    most = ordered[0]
    outliers = "none" if most.outliers == 0 else percent(most.outliers)
    said = (
        f"Of the matrices {escape_markdown(most.name)} loses most: its error is "
        f"{percent(most.relative)}."
    )
    if (table := computed.by_block(errors)) is not None and len(errors) > 1:
        show_figure(
            matrix_errors(table, theme()),
            key="matrix errors",
            alt=f"The error of each matrix of each block. {said}",
        )
    st.caption(
        f"{said} Its number farthest from 0 is {most.farthest:.3g} times its root mean square, and "
        f"{outliers} of its numbers are "
        f"outliers (beyond {computed.OUTLIER:.0f} times)."
    )
    rows = {
        "matrix": [error.name for error in ordered],
        "error, %": [100 * error.relative for error in ordered],
        "outliers, %": [100 * error.outliers for error in ordered],
        "farthest / RMS": [error.farthest for error in ordered],
        "largest error": [error.largest for error in ordered],
        "bytes": [error.bytes for error in ordered],
    }
    digits = {name: st.column_config.NumberColumn(format=form) for name, form in _FORMATS.items()}
    show_table(
        pd.DataFrame(rows).head(LISTED),
        hide_index=True,
        height=pixels(212),
        column_config=digits,
        alt=f"The {min(LISTED, len(errors))} matrices that lose most, with their outliers",
    )


def _link_pages(subject: Subject, shown: ModelKey, text: str) -> None:
    """The ways to see this model on other pages."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if text in on_screen.asked_edits():
            st.button(
                "Show the whole model again",
                icon=":material/undo:",
                key="take the bits away",
                on_click=on_screen.take_away,
                args=(text,),
                help=f"Take the edit `{text}` away, on every page.",
            )
        else:
            st.button(
                "Show it so on every page",
                icon=":material/edit:",
                key="keep the bits",
                on_click=_replace_edit,
                args=(text, subject.lm.original.model),
                help=f"The edit `{text}`: it stands in the address, and every page shows the model "
                "with these weights.",
            )
        if subject.kind.continues:
            query = frame.shared_state() | {
                on_screen.EDITS: ",".join(subject.key.edits),
                "b_edits": ",".join(shown.edits),
            }
            frame.link(
                COMPARE,
                "Compare it with the whole model",
                query={key: value for key, value in query.items() if value},
            )


def _replace_edit(text: str, model: Transformer) -> None:
    """Let the address ask for this edit of weights and for no other one."""
    others = [
        one.text for one in fitting(on_screen.asked_edits(), model).edits if not one.is_of_weights
    ]
    on_screen.put([text, *others])


def _code(subject: Subject, shown: ModelKey, text: str) -> str:
    lm = language_model(subject.key)
    if not lm.edits:
        opened = f"{load_call(lm)}.edited({text!r})"
    else:
        opened = load_call(language_model(shown))
    moved = f"\nmoved = divergences(lm.model, twin.model, {list(subject.seen)})  # [token], nats"
    return f"""{opening(lm, "from gptviz.interp.changing.fewer_bits import by_block, divergences, errors")}
twin = {opened}
found = errors(lm.model, twin.model)
table = by_block(found)  # [block, matrix]{moved if subject.kind.continues else ""}"""
