"""Which earlier tokens each guess needs, and how many of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from gptviz.figures.explaining import context as figures
from gptviz.figures.kit.format import counted, percent
from gptviz.interp.explaining import context_use as interp
from gptviz.interp.explaining.context_use import ByWindow, ContextUse, How, LeftOut, most_data
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.model.costs.effort import MOST, effort
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, load_call
from gptviz.ui.views import held_out
from gptviz.ui.views.contrasts import known_prompt
from gptviz.ui.widgets import Try, controls, escaped, in_quotes, jobs, show_figure, theme

# Before the last token, which is not read: the model guesses it.
GUESS = "→ "
# Leaving out each token takes as many passes as there are tokens: only the end of a longer text is measured, at least
# `FEWEST_READ` tokens of it.
MOST_READ, FEWEST_READ = 160, 32
# For a suggestion, at most this many tokens are left out.
MOST_TRIED = 16


@dataclass(frozen=True)
class MeasuredText:
    """The text that is measured.

    Attributes:
        ids: the tokens of the prompt that are read, and last the model's likeliest guess at the next one.
        labels: their visible forms.
        kept: how many tokens at the beginning belong to every text of the model, such as `<s>`: they are never left out.
        left_off: how many tokens of the prompt are not measured.
    """

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    kept: int
    left_off: int


def text_of(subject: Subject) -> MeasuredText:
    """The end of the prompt, as much of it as can be measured in some seconds, and the model's guess at what follows."""
    tokenizer, seen = subject.lm.tokenizer, subject.seen
    kept = tokenizer.inside(seen).start
    most = kept + most_read(subject.key)
    read = seen if len(seen) <= most else (*seen[:kept], *seen[kept - most :])
    ids = with_guess(subject.key, read)
    labels = tuple(map(tokenizer.label, ids))
    return MeasuredText(ids, (*labels[:-1], f"{GUESS}{labels[-1]}"), kept, len(seen) - len(read))


@st.cache_data(max_entries=16, show_spinner=False)
def most_read(key: ModelKey) -> int:
    return int(np.clip((MOST / effort(language_model(key).model, 1)) ** 0.5, FEWEST_READ, MOST_READ))


@st.cache_data(max_entries=32, show_spinner=False)
def with_guess(key: ModelKey, ids: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(interp.with_guess(language_model(key).model, ids))


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


@jobs.data("Reading the text without each token", max_entries=48)
def tokens_left_out(key: ModelKey, ids: tuple[int, ...], how: How, places: Sequence[int], kept: int) -> LeftOut:
    """See `gptviz.interp.explaining.context_use.left_out`."""
    return interp.left_out(language_model(key).model, ids, how, places, kept=kept)


@jobs.data("Reading the last tokens alone", max_entries=16)
def loss_by_window(key: ModelKey, ids: tuple[int, ...], kept: int) -> ByWindow:
    """See `gptviz.interp.explaining.context_use.by_window`."""
    return interp.by_window(language_model(key).model, ids, kept=kept)


@st.cache_data(max_entries=16, show_spinner=False)
def losses_of(key: ModelKey, ids: tuple[int, ...]) -> Float64Array:
    return interp.losses(language_model(key).model, ids)


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


def _most(text: MeasuredText, left_out: LeftOut, quoted: Callable[[str], str] = in_quotes) -> str:
    """A sentence on the cell with the largest rise; `quoted` names a token, as Markdown unless another way is given."""
    finite = np.where(np.isfinite(left_out.rise), left_out.rise, -np.inf)
    guess, column = (int(at) for at in np.unravel_index(finite.argmax(), finite.shape))
    place = left_out.places[column]
    rise = float(left_out.rise[guess, column])
    if rise <= 0:
        return "No guess gets worse without one of the tokens before it."
    return (
        f"The largest loss: {named(text, guess, quoted)} is guessed {rise:.2f} nats worse without {named(text, place, quoted)}."
    )


def named(text: MeasuredText, place: int, quoted: Callable[[str], str] = in_quotes) -> str:
    return f"{quoted(token_in_words(text, place))} at position {place}"


def token_in_words(text: MeasuredText, place: int) -> str:
    return text.labels[place].removeprefix(GUESS if place == len(text.labels) - 1 else "")


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


# A model whose data are not on this machine has none; a damaged one has losses that are no numbers.
@st.cache_data(max_entries=16, show_spinner="Reading held-out data")
def loss_by_position(key: ModelKey) -> LabelledArray | None:
    lm = language_model(key)
    try:
        rows = [row.tolist() for row in lm.rows(most=interp.most_data(lm.model)) if len(row) > 1]
    except (ValueError, OSError, KeyError, TypeError):
        return None
    found = interp.by_position(lm.model, rows) if rows else None
    return found if found is not None and np.isfinite(found.values[1:]).all() else None


def tries(subject: Subject, text: MeasuredText, how: How) -> list[Try]:
    """The suggestions for this model and text; every sentence is measured on this model."""
    offers = [*known_prompt(subject), _other_way(subject, text, how)]
    if (repeated := _repeated(subject)) is not None:
        offers.append(repeated)
    return offers


def _other_way(subject: Subject, text: MeasuredText, how: How) -> Try:
    """The same text with tokens left out in the other way, and how much more or less the guesses lose on average."""
    other: How = "removed" if how == "replaced" else "replaced"
    places = range(text.kept, len(text.ids) - 1)[-MOST_TRIED:]
    now, then = (
        float(np.nanmean(np.abs(tokens_left_out(subject.key, text.ids, way, places, text.kept).rise)))
        if len(text.ids) > 2
        else 0.0
        for way in (how, other)
    )
    notice = (
        f"If a token is {other}, guesses after the last {tokens_in_words(len(places))} change by {then:.2f} nats on average; if "
        f"it is {how}, by {now:.2f}. Removing a token also moves all that follow."
    )
    return Try("Leave out in the other way", notice, {"how": other})


def _repeated(subject: Subject) -> Try | None:
    """The prompt twice, where it fits: whether the model uses the first time to guess the second."""
    text = subject.prompt.strip()
    gap = " " if subject.lm.tokenizer.is_spaced else "\n"
    twice = f"{text}{gap}{text}"
    ids = tuple(subject.lm.tokenizer.encode(twice).ids)
    config, length = subject.lm.model.config, len(subject.encoding.ids)
    if subject.encoding.unknown or not length >= 4 or len(ids) > min(config.context_length, most_read(subject.key)):
        return None
    loss = losses_of(subject.key, ids)
    first, second = float(np.mean(loss[1:length])), float(np.mean(loss[-length + 1 :]))
    notice = f"The first time the mean loss of this text is {first:.2f} nats, the second time {second:.2f}: " + (
        "it reads again what it has read." if second < 0.8 * first else "that it was there before hardly helps this model."
    )
    return Try("The same text twice", notice, {"prompt": twice})


def code(subject: Subject, text: MeasuredText, how: How) -> str:
    """The lines of `gptviz` that compute what the page shows."""
    kept = f", kept={text.kept}" if text.kept else ""
    read = f"lm.seen(lm.encode({subject.prompt!r})).tolist()" if not text.left_off else f"{list(text.ids[:-1])}"
    over_data = ""
    if loss_by_position(subject.key) is not None:
        over_data = (
            f"\n\nrows = [row.tolist() for row in lm.rows(most={most_data(subject.lm.model)}) if len(row) > 1]\n"
            "by_position(lm.model, rows).values  # [position]"
        )
    return f"""import gptviz
from gptviz.interp.explaining.context_use import by_position, by_window, left_out, losses, with_guess

lm = {load_call(subject.lm)}
ids = with_guess(lm.model, {read})
left_out(lm.model, ids, {how!r}{kept}).rise  # [token guessed, token left out]
by_window(lm.model, ids{kept}).mean  # [tokens read]
losses(lm.model, ids)  # [token]{over_data}"""
