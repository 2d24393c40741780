"""The pictures of the page Context: how much of a text the model uses, and which tokens."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import streamlit as st

from gptviz.figures.explaining import context as figures
from gptviz.figures.kit.format import counted, percent
from gptviz.interp.explaining import context_use as interp
from gptviz.interp.explaining.context_use import ByWindow, ContextUse, How, LeftOut
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import held_out
from gptviz.ui.widgets import controls, escaped, in_quotes, show_figure, theme

from .computed import MeasuredText, loss_by_position, loss_by_window, losses_of, most_read, tokens_left_out, with_guess

# Before the last token, which is not read: the model guesses it.
GUESS = "→ "


def text_of(subject: Subject) -> MeasuredText:
    """The end of the prompt, as much of it as can be measured in some seconds, and the model's guess at what follows."""
    tokenizer, seen = subject.lm.tokenizer, subject.seen
    kept = tokenizer.inside(seen).start
    most = kept + most_read(subject.key)
    read = seen if len(seen) <= most else (*seen[:kept], *seen[kept - most :])
    ids = with_guess(subject.key, read)
    labels = tuple(map(tokenizer.label, ids))
    return MeasuredText(ids, (*labels[:-1], f"{GUESS}{labels[-1]}"), kept, len(seen) - len(read))


def how_control() -> How:
    """The control `how`: what leaving a token out means."""
    chosen = controls.select(
        "A token that is left out is",
        interp.HOWS,
        key="how",
        help="Replaced: it stays in its place, but its vector is the mean of all tokens’. Removed: the text closes up, and all "
        "tokens after it move by one place.",
        segmented=True,
    )
    return "removed" if chosen == "removed" else "replaced"


def measured(subject: Subject, text: MeasuredText, how: How) -> ContextUse | None:
    """All that the page shows, or None if there is too little text, or a damaged model."""
    key, ids, kept = subject.key, text.ids, text.kept
    if len(ids) - kept < 2:
        st.info("There is no token to leave out: write a longer prompt.")
        return None
    left_out = tokens_left_out(key, ids, how, range(kept, len(ids) - 1), kept)
    by_window = loss_by_window(key, ids, kept)
    whole = losses_of(key, ids)
    if not np.isfinite(whole[1:]).all():
        st.error(escaped(f"{key.name}: the probabilities of this model are not numbers. Choose another model or step above."))
        return None
    return ContextUse(ids, whole, by_window, left_out)


def which_tokens(subject: Subject, text: MeasuredText, left_out: LeftOut) -> None:
    """The map of what each token is worth, with a line on the token that matters most."""
    rise = left_out.labelled(text.labels)
    most = _most(text, left_out, "“{}”".format)
    show_figure(
        figures.left_out(rise, theme(), height=int(np.clip(16 * len(text.ids) + 90, 300, 620))),
        key="left out",
        alt=f"How much each of {counted(len(text.ids), 'guess', 'guesses')} loses without each token before it. {most}",
    )
    cut = f" Only the last {len(text.ids) - 1 - text.kept} tokens of the prompt are measured." if text.left_off else ""
    full = (
        " This model reads the whole text at once: at every position but the last it has already seen the token that it guesses."
        if subject.lm.model.config.mask == "full"
        else ""
    )
    st.caption(f"{_most(text, left_out)} After the arrow stands the model's own guess at the next token.{cut}{full}")


def _largest(left_out: LeftOut) -> tuple[int, int]:
    """The guess and the place left out with the largest rise."""
    rise = np.where(np.isfinite(left_out.rise), left_out.rise, -np.inf)
    guess, column = (int(at) for at in np.unravel_index(rise.argmax(), rise.shape))
    return guess, left_out.places[column]


def token_in_words(text: MeasuredText, place: int) -> str:
    return text.labels[place].removeprefix(GUESS if place == len(text.labels) - 1 else "")


def named(text: MeasuredText, place: int, quoted: Callable[[str], str] = in_quotes) -> str:
    return f"{quoted(token_in_words(text, place))} at position {place}"


def _most(text: MeasuredText, left_out: LeftOut, quoted: Callable[[str], str] = in_quotes) -> str:
    """A sentence on the cell with the largest rise; `quoted` names a token, as Markdown unless another way is given."""
    guess, place = _largest(left_out)
    rise = float(left_out.rise[guess, left_out.places.index(place)])
    if rise <= 0:
        return "No guess gets worse without one of the tokens before it."
    return (
        f"The largest loss: {named(text, guess, quoted)} is guessed {rise:.2f} nats worse without {named(text, place, quoted)}."
    )


def how_many(by_window: ByWindow) -> None:
    """The loss by how many tokens are read, with a line on how many are enough."""
    mean, windows = by_window.mean, by_window.windows
    enough = by_window.enough
    show_figure(
        figures.by_window(by_window.labelled(), theme(), height=300, enough=enough),
        key="by window",
        alt=f"The mean loss by how many tokens are read: {mean[0]:.2f} nats with 1, {mean[-1]:.2f} with {windows[-1]}.",
    )
    if mean[0] <= mean[-1]:
        said = "More than one token does not help in this text."
    elif enough == windows[-1]:
        said = f"Fewer than all {windows[-1]} serve clearly less well."
    else:
        said = f"The last {tokens_in_words(enough)} alone (dotted) serve nearly as well as all {windows[-1]}."
    st.caption(
        f"**How many tokens?** With the last token alone the mean loss is {mean[0]:.2f} nats, with all that stand before it "
        f"{mean[-1]:.2f}. {said}"
    )


def tokens_in_words(count: int) -> str:
    return "token" if count == 1 else f"{count} tokens"


def where(text: MeasuredText, loss: Float64Array) -> None:
    """The loss by position in the text."""
    half = (len(loss) + 1) // 2
    show_figure(
        figures.by_position(LabelledArray(loss, (Axis("token", text.labels),), "loss (nats)"), theme(), height=300),
        key="by position",
        alt=f"The loss of each of the {len(loss)} tokens of the text.",
    )
    said = ""
    if half > 1:
        early, late = float(np.mean(loss[1:half])), float(np.mean(loss[half:]))
        said = f"In the first half of the text the mean loss is {early:.2f} nats, in the second {late:.2f}. "
    likely = percent(math.exp(-loss[-1]))
    st.caption(f"**Where in the text?** {said}Its guess at the next token, {in_quotes(token_in_words(text, -1))}, has {likely}.")


def over_data(subject: Subject) -> None:
    """The mean loss by position over data held out of the model's training, where these are here."""
    found = loss_by_position(subject.key)
    if found is None:
        return
    loss, row = found.values, found.values[1:]
    early, late = float(row[: max(1, len(row) // 4)].mean()), float(row[-max(1, len(row) // 4) :].mean())
    show_figure(
        figures.over_data(found, theme(), height=260),
        key="over data",
        alt=f"The {found.unit} at each of {counted(len(loss), 'position')}: {early:.2f} in the first quarter, "
        f"{late:.2f} in the last.",
    )
    st.caption(
        f"**And over many texts?** The mean loss at each position, over {held_out.said(subject.key)}: {early:.2f} nats in the "
        f"first quarter of the positions, {late:.2f} in the last."
    )
