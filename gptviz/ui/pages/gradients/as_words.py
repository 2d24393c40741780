"""What a step writes into the MLP of a block, read as words: a part of the view One step."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from gptviz.figures.kit.format import format_signed, join_words, percent
from gptviz.figures.kit.labelled import picture
from gptviz.interp.explaining.backward_lens import BackwardLens, blocks_with_mlp, largest
from gptviz.interp.units.unit import Unit
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
    st.markdown("**What the step writes into an MLP, in words**")
    mlps = [Unit("mlp", block).name for block in blocks]
    chosen = controls.select(
        "MLP",
        mlps,
        key="words_of",
        default=mlps[-1],
        follows=True,
        help="The step changes all weights; what it writes into this MLP is read through the "
        "unembedding.",
    )
    asked: AskedAnalysis[BackwardLens] = ask(
        subject,
        explaining.backward_lens,
        "Reading the step as words",
        block=mlps.index(chosen),
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
        "What the step adds for each word (rows) at each token that is read (columns), in logits "
        "but for the size of the norm: blue more, orange less. The table has the words themselves: "
        "how likely the token that follows is, what the loss asks this MLP to write, and what it "
        "writes before the step and after it."
    )
    show_table(_table(subject, step), hide_index=True)
    return asked


def _sentence(subject: Subject, step: BackwardLens) -> str:
    """What the step writes at the last token that is read, as Markdown."""
    label = subject.lm.tokenizer.label
    answer = step.ids[-1]
    change = step.change[-1]
    # the two words that it adds most for, and the one that follows in the text
    most = dict.fromkeys([*(token for token, _ in largest(change, 2)), answer])
    added = [f"{in_quotes(label(token))} ({format_signed(float(change[token]))})" for token in most]
    ((least, taken),) = largest(-change, 1)
    return (
        f"At {in_quotes(label(step.ids[-2]))} the step adds most for {join_words(added)} to what "
        f"the MLP of block {step.block} writes, and takes most from {in_quotes(label(least))} "
        f"({format_signed(-taken)}); with this alone {in_quotes(label(answer))} goes from "
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
            "Probability of next": [
                f"{percent(before)} → {percent(after)}" for before, after in chances
            ],
            "Asked for": words(step.asked),
            "Written before": words(step.written_before),
            "Written after": words(step.written_after),
            "Added": words(step.change),
            "Taken away": words(-step.change),
        }
    )
