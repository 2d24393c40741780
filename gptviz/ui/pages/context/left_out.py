"""Which earlier tokens each guess needs, and how many of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import streamlit as st

from gptviz.figures.explaining import context as figures
from gptviz.figures.kit.format import format_count, percent
from gptviz.interp.explaining.context_use import (
    ByWindow,
    ContextUse,
    LeftOut,
    by_position,
    most_data,
)
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.language_model import reading
from gptviz.model.costs.effort import MOST, effort
from gptviz.settings.kinds import HowLeftOut
from gptviz.ui.shell.subject import AskedAnalysis, ModelKey, Subject, ask, language_model
from gptviz.ui.views import held_out
from gptviz.ui.views.contrasts import known_prompt
from gptviz.ui.widgets import (
    Try,
    controls,
    escape_markdown,
    in_quotes,
    name_place,
    show_figure,
    theme,
)

# Before the last token, which is not read: the model guesses it.
GUESS = "→ "
# Leaving out each token takes as many passes as there are tokens: only the end of a longer text is
# measured, at least `FEWEST_READ` tokens of it.
MOST_READ = 160
FEWEST_READ = 32


def ask_use(subject: Subject) -> AskedAnalysis[ContextUse] | None:
    """How the model uses the end of the prompt, as much as can be measured in some seconds. The
    control `how` says what leaving a token out means. None where there is too little text.
    """
    how = controls.choose(HowLeftOut, key="how")
    length = len(subject.seen) - subject.lm.tokenizer.text_slice(subject.seen).start
    if not length:
        st.info("There is no token to leave out: write a longer prompt.")
        return None
    most = int(np.clip((MOST / effort(subject.lm.model, 1)) ** 0.5, FEWEST_READ, MOST_READ))
    last = most if length > most else None
    return ask(
        subject, reading.context_use, "Reading the text without each token", how=how, last=last
    )


def is_finite(subject: Subject, use: ContextUse) -> bool:
    """Whether the model's probabilities are numbers; a message where they are not."""
    if np.isfinite(use.loss[1:]).all():
        return True
    name = escape_markdown(subject.key.name)
    st.error(
        f"{name}: the probabilities of this model are not numbers. Choose another model or step "
        "above."
    )
    return False


def labels_of(subject: Subject, use: ContextUse) -> tuple[str, ...]:
    """The visible forms of the tokens; an arrow stands before the last one, which the model
    guesses.
    """
    labels = tuple(map(subject.lm.tokenizer.label, use.ids))
    return (*labels[:-1], f"{GUESS}{labels[-1]}")


def which_tokens(subject: Subject, use: ContextUse, labels: tuple[str, ...]) -> None:
    """The map of what each token is worth to each guess, with a line on the one that matters
    most.
    """
    show_figure(
        figures.left_out(
            use.left_out.labelled(labels),
            theme(),
            height=int(np.clip(16 * len(use.ids) + 90, 300, 480)),
        ),
        key="left out",
        alt=f"How much each of {format_count(len(use.ids), 'guess', 'guesses')} loses without each "
        "token before it. "
        f"{_largest_rise(use.left_out, labels, '“{}”'.format)}",
    )
    tokens = len(use.left_out.places)
    if len(use.ids) <= len(subject.seen):
        cut = f" Only the last {tokens} tokens of the prompt are measured."
    else:
        cut = ""
    if subject.lm.model.config.mask == "full":
        full = (
            " This model reads the whole text at once: at every position but the last it has "
            "already seen the token that it guesses."
        )
    else:
        full = ""
    st.caption(
        f"**Which tokens?** {_largest_rise(use.left_out, labels)} After the arrow stands the model's own guess at the next token."
        f"{cut}{full}"
    )


def _largest_rise(
    left_out: LeftOut, labels: tuple[str, ...], quoted: Callable[[str], str] = in_quotes
) -> str:
    """A sentence on the cell with the largest rise; `quoted` names a token, as Markdown unless
    another way is given.
    """
    finite = np.where(np.isfinite(left_out.rise), left_out.rise, -np.inf)
    guess, column = (int(at) for at in np.unravel_index(finite.argmax(), finite.shape))
    place = left_out.places[column]
    rise = float(left_out.rise[guess, column])
    if rise <= 0:
        return "No guess gets worse without one of the tokens before it."
    guessed, without = (
        f"{quoted(labels[at].removeprefix(GUESS))} at position {at}" for at in (guess, place)
    )
    return (
        f"The largest rise of loss: {guessed} is guessed {rise:.2f} nats worse without {without}."
    )


def answer(use: ContextUse, labels: tuple[str, ...], guess: str) -> tuple[str, str]:
    """What the model makes of its guess with fewer tokens, and the token without which the guess
    loses most; then the same on average over all guesses.
    """
    by_window = use.by_window
    windows = by_window.windows
    enough = by_window.enough_for_last
    word = in_quotes(guess)
    at = windows.index(enough)
    few, whole = (percent(by_window.probability[i]) for i in (max(at - 1, 0), -1))
    if len(windows) == 1:
        return f"There is only one token to read: {word} gets {whole}.", ""
    if at == 0:
        said = f"For the guess {word} the last token alone is enough: {few} instead of {whole}."
        return said, by_window.sentence
    said = (
        f"With only the last {windows[at - 1]} of its {windows[-1]} tokens it guesses {word} with "
        f"{few} instead of {whole}"
    )
    rise = use.left_out.rise[-1]
    if np.nanmax(rise, initial=0.0) > 0:
        place = use.left_out.places[int(np.nanargmax(rise))]
        said += f"; the token that it needs most is {name_place(labels, place)}"
    return f"{said}.", by_window.sentence


def how_many(by_window: ByWindow, guess: str) -> None:
    """How many tokens are enough, and the loss by how many are read."""
    mean = by_window.mean
    windows = by_window.windows
    enough = by_window.enough_for_last
    told = [windows[max(windows.index(enough) - 1, 0)], windows[-1]]
    show_figure(
        figures.by_window(
            by_window.labelled(f"the guess “{guess}”"),
            theme(),
            height=330,
            enough=enough,
            told=told,
        ),
        key="by window",
        alt=f"The loss by how many tokens are read. The guess “{guess}” gets "
        f"{percent(by_window.probability[0])} with 1 token, {percent(by_window.probability[-1])} "
        f"with {windows[-1]}; the mean loss is {mean[0]:.2f} and {mean[-1]:.2f} nats.",
    )
    st.caption(
        "**How many tokens?** A nat is the unit of surprise, the loss: 0 is a sure guess. The "
        f"dotted line stands where the guess “{escape_markdown(guess)}” has what it needs. Reading "
        f"only the last token the mean loss is {mean[0]:.2f} nats, reading all of them "
        f"{mean[-1]:.2f}. Fewer tokens are read as if the text began with them."
    )


def show_losses(labels: tuple[str, ...], loss: Float64Array) -> None:
    """The loss by position in the text."""
    half = (len(loss) + 1) // 2
    show_figure(
        figures.by_position(
            LabelledArray(loss, (Axis("token", labels),), "loss (nats)"), theme(), height=300
        ),
        key="by position",
        alt=f"The loss of each of the {len(loss)} tokens of the text.",
    )
    said = ""
    if half > 1:
        early = float(np.mean(loss[1:half]))
        late = float(np.mean(loss[half:]))
        said = (
            f"In the first half of the text the mean loss is {early:.2f} nats, in the second "
            f"{late:.2f}. "
        )
    guess = in_quotes(labels[-1].removeprefix(GUESS))
    likely = percent(math.exp(-loss[-1]))
    st.caption(f"**Where in the text?** {said}Its guess at the next token, {guess}, has {likely}.")


def over_data(subject: Subject) -> None:
    """The mean loss by position over data held out of the model's training, where these are
    here.
    """
    by_place = loss_by_position(subject.key)
    if by_place is None:
        return
    loss = by_place.values
    row = by_place.values[1:]
    early = float(row[: max(1, len(row) // 4)].mean())
    late = float(row[-max(1, len(row) // 4) :].mean())
    show_figure(
        figures.over_data(by_place, theme(), height=260),
        key="over data",
        alt=f"The {by_place.unit} at each of {format_count(len(loss), 'position')}: {early:.2f} in the "
        "first quarter, "
        f"{late:.2f} in the last.",
    )
    st.caption(
        "**And over many texts?** The mean loss at each position, over "
        f"{held_out.describe_texts(subject.key)}: {early:.2f} nats in the "
        f"first quarter of the positions, {late:.2f} in the last."
    )


# A model whose data are not on this machine has none; a damaged one has losses that are no numbers.
@st.cache_data(max_entries=16, show_spinner="Reading held-out data")
def loss_by_position(key: ModelKey) -> LabelledArray | None:
    lm = language_model(key)
    try:
        rows = [row.tolist() for row in lm.rows(most=most_data(lm.model)) if len(row) > 1]
    except (ValueError, OSError, KeyError, TypeError):
        return None
    by_place = by_position(lm.model, rows) if rows else None
    if by_place is not None and np.isfinite(by_place.values[1:]).all():
        return by_place
    return None


def tries(subject: Subject, how: str) -> list[Try]:
    """The suggestions for this model and text."""
    other = "removed" if how == "replaced" else "replaced"
    notice = (
        f"Each token is {other} instead of {how}. Removing a token also moves all that follow: "
        "which guesses mind that?"
    )
    offers = [*known_prompt(subject), Try("Leave out in the other way", notice, {"how": other})]
    # The prompt twice, where it fits: whether the model uses the first time to guess the second.
    most = (subject.lm.model.config.context_length - 1) // 2
    if not subject.encoding.unknown and 4 <= len(subject.encoding.ids) <= most:
        text = subject.prompt.strip()
        twice = f"{text}{' ' if subject.lm.tokenizer.is_spaced else chr(10)}{text}"
        notice = (
            "Does the model read again what it has read? Then the loss of the second time lies "
            "far below that of the first."
        )
        offers.append(Try("The same text twice", notice, {"prompt": twice}))
    return offers


def code(subject: Subject, asked: AskedAnalysis[ContextUse]) -> str:
    """The lines of `gptviz` that compute what the page shows."""
    lines = ["result.by_window.mean  # [tokens read]", "result.loss  # [token]"]
    if loss_by_position(subject.key) is not None:
        lines += [
            "",
            "from gptviz.interp.explaining.context_use import by_position",
            "",
            f"rows = [row.tolist() for row in lm.rows(most={most_data(subject.lm.model)}) if "
            "len(row) > 1]",
            "over_data = by_position(lm.model, rows)  # [position]",
            "",
        ]
    return asked.code(
        *lines, "result.left_out.labelled([lm.tokenizer.label(i) for i in result.ids])"
    )
