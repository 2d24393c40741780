"""What a step writes into the MLP of a block, read as words: a part of the view One step."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from gptviz.figures.kit.format import format_signed, percent
from gptviz.figures.kit.labelled import picture
from gptviz.interp.explaining.backward_lens import BackwardLens, blocks_with_mlp, largest
from gptviz.labelled_array import Float64Array
from gptviz.language_model import explaining
from gptviz.ui.shell.subject import AskedAnalysis, Subject, ask
from gptviz.ui.widgets import controls, in_quotes, say_answer, show_figure, theme
from gptviz.ui.widgets.tables import show_table

WORDS = 3  # of each reading
ROWS = 12  # words of the picture


def show(subject: Subject, last: int) -> AskedAnalysis[BackwardLens] | None:
    """What the step writes, or None where the blocks have no MLP; at most the `last` guesses are
    learned from.
    """
    blocks = blocks_with_mlp(subject.lm.model)
    if not blocks:
        return None
    st.markdown("##### What the step writes into an MLP, in words")
    block = controls.whole_number(
        "MLP of block",
        blocks[0],
        blocks[-1],
        key="words_of",
        default=blocks[-1],
        help="The step changes all weights; what it writes into this MLP is read through the "
        "unembedding.",
    )
    asked: AskedAnalysis[BackwardLens] = ask(
        subject,
        explaining.backward_lens,
        "Reading the step as words",
        block=block,
        last=last,
    )
    step = asked.value
    label = subject.lm.tokenizer.label
    said = _sentence(subject, step)
    say_answer(said)
    changed = step.changed_words(label, ROWS)
    show_figure(
        picture(changed, theme(), height=26 * len(changed.axes[0].labels) + 110),
        key="written by the step",
        alt=f"What the step adds to what this MLP writes, by word and by token read. {said}",
    )
    st.caption(
        "What the step adds for each word (rows) at each token that is read (columns): blue more, "
        "orange less. The table has the words themselves: what the loss asks this MLP to write, "
        "what it writes before the step and after it, and how likely the token that follows is."
    )
    show_table(_table(subject, step), hide_index=True)
    return asked


def _sentence(subject: Subject, step: BackwardLens) -> str:
    """What the step writes after the last token that is read, as Markdown."""
    label = subject.lm.tokenizer.label
    answer = step.ids[-1]
    ((most, added),) = largest(step.change[-1], 1)
    ((loved, _),) = largest(step.written_before[-1], 1)
    of = [f"{in_quotes(label(most))} ({format_signed(added)})"]
    # beside it the token that follows, and the word that the MLP spoke for
    of += [
        f"{in_quotes(label(token))} ({format_signed(float(step.change[-1, token]))})"
        for token in dict.fromkeys((answer, loved))
        if token != most
    ]
    others = f", {' and '.join(of[1:])} beside it" if of[1:] else ""
    return (
        f"At {in_quotes(label(step.ids[-2]))} the step lets the MLP of block {step.block} write "
        f"more of {of[0]}{others}; with this alone {in_quotes(label(answer))} goes from "
        f"{percent(step.probability_before[-1])} to {percent(step.probability_after[-1])}."
    )


def _table(subject: Subject, step: BackwardLens) -> pd.DataFrame:
    """A row for each token that is read."""
    label = subject.lm.tokenizer.label

    def words(readings: Float64Array) -> list[str]:
        return [
            ", ".join(f"{label(token)} {format_signed(value)}" for token, value in top)
            for top in (largest(reading, WORDS) for reading in readings)
        ]

    chances = zip(step.probability_before, step.probability_after, strict=True)
    return pd.DataFrame(
        {
            "Token read": [label(token) for token in step.ids[:-1]],
            "Next": [label(token) for token in step.ids[1:]],
            "Asked for": words(step.asked),
            "Written before": words(step.written_before),
            "Written after": words(step.written_after),
            "Added": words(step.change),
            "Taken away": words(-step.change),
            "Probability of next": [
                f"{percent(before)} → {percent(after)}" for before, after in chances
            ],
        }
    )
