"""What the Context page computes, cached by model and text, and its words."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from gptviz.figures import context as figures
from gptviz.figures.format import counted, percent
from gptviz.interp import context_use as interp
from gptviz.interp.context_use import ByWindow, ContextUse, How, LeftOut
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.language_model import LanguageModel
from gptviz.text.datasets.base import Contrast
from gptviz.ui.shell.models import ModelKey, language_model, load_call
from gptviz.ui.shell.subject import Subject
from gptviz.ui.shell.theme import theme
from gptviz.ui.views.contrasts import known_contrasts
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.figure import show_figure
from gptviz.ui.widgets.markdown import escaped, in_quotes
from gptviz.ui.widgets.tries import Try

# Of a longer text the end is measured: leaving out each token takes as many passes as there are tokens. So many multiplications
# are done at most, some seconds of work, and at least so many tokens are measured.
MOST_READ, FEWEST_READ, MOST_WORK = 160, 32, 4e11
# So many tokens of held-out data are read at most, less of large models.
MOST_DATA = 8_192
PLACES_AT_ONCE = 16
# A progress bar is shown for what takes longer than this.
SECONDS_WITHOUT_BAR = 0.5
GUESS = "guess"

HOW = r"""
The loss of a token is $-\ln p$, $p$ being the probability that the model gave it. In the map, it is measured once for the text as
it is and once for the text without one of its tokens; the cell is the difference. Two things can be meant by *without*:

- **replaced**: the embedding of the token becomes the mean of all embeddings of the vocabulary, which speaks for no token in
  particular. The token keeps its place, and so do all others.
- **removed**: the text is read without the token, and all that follow it move one place towards the beginning. To a model that
  counts places this changes more than the token.

For the loss by tokens read, each of up to 32 tokens, evenly spread over the text, is guessed from the last 1, 2, 4, … tokens
before it alone, as if the text began there; a token that the model puts before every text stays. The dotted line is the smallest
number from which on the mean loss stays within 5 % of what the whole text gains over a single token.

The loss over many texts is the mean, at each position, over rows of data that were held out of the model's training, of up to
8,192 tokens together, where these data are on this machine (`by_position`).

The last row is the model's own guess at what comes next: it is guessed, and not read. Computed by `left_out`, `by_window` and
`losses` in `gptviz/interp/context_use.py`.
"""
LIMITS = """Two tokens that say the same are worth little each, since the other one is still there. A text without one of its
tokens may be a text that the model has never met the like of, and it may be surprised by that rather than by what is missing.
All numbers are of this one text."""


@dataclass(frozen=True)
class Text:
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


def text_of(subject: Subject) -> Text:
    """The end of the prompt, as much of it as can be measured in some seconds, and the model's guess at what follows."""
    tokenizer, seen = subject.lm.tokenizer, subject.seen
    kept = len(tokenizer.before) if seen[: len(tokenizer.before)] == tuple(tokenizer.before) else 0
    most = kept + _most_read(subject.key)
    read = seen if len(seen) <= most else (*seen[:kept], *seen[kept - most :])
    ids = _with_guess(subject.key, read)
    labels = tuple(map(tokenizer.label, ids))
    return Text(ids, (*labels[:-1], f"{labels[-1]} ({GUESS})"), kept, len(seen) - len(read))


@st.cache_data(max_entries=16, show_spinner=False)
def _most_read(key: ModelKey) -> int:
    weights = sum(parameter.numel() for parameter in language_model(key).model.parameters())
    return int(np.clip((MOST_WORK / (2 * weights)) ** 0.5, FEWEST_READ, MOST_READ))


@st.cache_data(max_entries=32, show_spinner=False)
def _with_guess(key: ModelKey, ids: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(interp.with_guess(language_model(key).model, ids))


def how_control(notices: Any) -> How:
    """The control `how`: what leaving a token out means."""
    chosen = controls.select(
        "A token that is left out is",
        interp.HOWS,
        key="how",
        help="Replaced: it stays in its place, but its vector is the mean of all tokens’. Removed: the text closes up, and all "
        "tokens after it move by one place.",
        segmented=True,
        notices=notices,
    )
    return "removed" if chosen == "removed" else "replaced"


def measured(subject: Subject, text: Text, how: How) -> ContextUse | None:
    """All that the page shows, below a progress bar where it takes long; None where there is too little text, or a damaged model.

    It stops when the user does something else on the page; what is ready stays cached.
    """
    key, ids, kept = subject.key, text.ids, text.kept
    if len(ids) - kept < 2:
        st.info("There is no token to leave out: write a longer prompt.")
        return None
    bar, begun = st.empty(), time.monotonic()
    places, windows = range(kept, len(ids) - 1), interp.windows_for(len(ids) - kept)
    parts = [tuple(places[start : start + PLACES_AT_ONCE]) for start in range(0, len(places), PLACES_AT_ONCE)]
    rises: list[interp.Numbers] = []

    def tell(doing: str) -> None:
        if time.monotonic() - begun > SECONDS_WITHOUT_BAR:
            bar.progress(len(rises) / (len(parts) + 1), doing)

    for part in parts:
        tell(f"Reading the text without each token: {part[0] - kept} of {len(places)}")
        rises.append(_rise(key, ids, how, part, kept))
    tell("Reading the last tokens alone")
    by_window = _by_window(key, ids, windows, kept)
    bar.empty()
    whole = _losses(key, ids)
    if not np.isfinite(whole[1:]).all():
        st.error(escaped(f"{key.name}: the probabilities of this model are not numbers. Choose another model or step above."))
        return None
    return ContextUse(ids, whole, by_window, LeftOut(tuple(places), np.concatenate(rises, axis=1)))


@st.cache_data(max_entries=256, show_spinner=False)
def _rise(key: ModelKey, ids: tuple[int, ...], how: How, places: tuple[int, ...], kept: int) -> interp.Numbers:
    return interp.left_out(language_model(key).model, ids, how, places, kept=kept).rise


# All windows at once: in a causal model one reading serves all windows that begin at one place.
@st.cache_data(max_entries=16, show_spinner=False)
def _by_window(key: ModelKey, ids: tuple[int, ...], windows: tuple[int, ...], kept: int) -> ByWindow:
    return interp.by_window(language_model(key).model, ids, windows, kept=kept)


@st.cache_data(max_entries=16, show_spinner=False)
def _losses(key: ModelKey, ids: tuple[int, ...]) -> interp.Numbers:
    return interp.losses(language_model(key).model, ids)


def which_tokens(subject: Subject, text: Text, left_out: LeftOut) -> None:
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
    st.caption(f"{_most(text, left_out)}{cut}{full}")


def _largest(left_out: LeftOut) -> tuple[int, int]:
    """The guess and the place left out with the largest rise."""
    rise = np.where(np.isfinite(left_out.rise), left_out.rise, -np.inf)
    guess, column = (int(at) for at in np.unravel_index(rise.argmax(), rise.shape))
    return guess, left_out.places[column]


def _token(text: Text, place: int) -> str:
    return text.labels[place].removesuffix(f" ({GUESS})")


def _named(text: Text, place: int, quoted: Callable[[str], str] = in_quotes) -> str:
    return f"{quoted(_token(text, place))} at position {place}"


def _most(text: Text, left_out: LeftOut, quoted: Callable[[str], str] = in_quotes) -> str:
    """A sentence on the cell with the largest rise; `quoted` names a token, as Markdown unless another way is given."""
    guess, place = _largest(left_out)
    rise = float(left_out.rise[guess, left_out.places.index(place)])
    if rise <= 0:
        return "No guess gets worse without one of the tokens before it."
    return (
        f"The largest loss: {_named(text, guess, quoted)} is guessed {rise:.2f} nats worse without {_named(text, place, quoted)}."
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
        said = f"The last {_tokens(enough)} alone (dotted) serve nearly as well as all {windows[-1]}."
    st.caption(
        f"**How many tokens?** With the last token alone the mean loss is {mean[0]:.2f} nats, with all that stand before it "
        f"{mean[-1]:.2f}. {said}"
    )


def _tokens(count: int) -> str:
    return "token" if count == 1 else f"{count} tokens"


def where(subject: Subject, text: Text, loss: interp.Numbers) -> None:
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
    likely = percent(float(np.exp(-loss[-1])))
    st.caption(f"**Where in the text?** {said}Its guess at the next token, {in_quotes(_token(text, -1))}, has {likely}.")


def over_data(subject: Subject) -> None:
    """The mean loss by position over data held out of the model's training, where these are here."""
    found = _by_position(subject.key)
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
        f"**And over many texts?** The mean loss at each position, over data that the model was not trained on: {early:.2f} nats "
        f"in the first quarter of the positions, {late:.2f} in the last."
    )


# A model whose data are not on this machine has none; a damaged one has losses that are no numbers.
@st.cache_data(max_entries=16, show_spinner="Reading held-out data")
def _by_position(key: ModelKey) -> LabelledArray | None:
    lm = language_model(key)
    try:
        rows = [row.tolist() for row in lm.rows(most=_most_data(lm)) if len(row) > 1]
    except (ValueError, OSError, KeyError, TypeError):
        return None
    found = interp.by_position(lm.model, rows) if rows else None
    return found if found is not None and np.isfinite(found.values[1:]).all() else None


def _most_data(lm: LanguageModel) -> int:
    weights = sum(parameter.numel() for parameter in lm.model.parameters())
    return int(min(MOST_DATA, MOST_WORK / 10 / (2 * weights)))


def to_try(subject: Subject, text: Text, how: How, found: ContextUse) -> list[Try]:
    """What to try with this model and text; what is said is measured on this model."""
    if known := known_contrasts(subject.lm):
        return [_contrast(subject, contrast) for contrast in known]
    offers = [_other_way(subject, text, how)]
    if (repeated := _repeated(subject)) is not None:
        offers.append(repeated)
    return offers


def _contrast(subject: Subject, contrast: Contrast) -> Try:
    """For a model of sentences: what its guess after the prompt of one task loses without the word that decides."""
    lm = subject.lm
    ids = _with_guess(subject.key, tuple(lm.tokenizer.encode(contrast.clean).ids))
    labels = tuple(map(lm.tokenizer.label, ids))
    other = tuple(map(lm.tokenizer.label, lm.tokenizer.encode(contrast.corrupted).ids))
    decide = [place for place, label in enumerate(other) if labels[place] == contrast.right or labels[place] != label]
    rise = _rise(subject.key, ids, "replaced", tuple(decide), 0)[-1]
    place, lost = decide[int(rise.argmax())], float(rise.max())
    before = float(_losses(subject.key, ids)[-1])
    notice = (
        f"After this sentence the model's guess is {in_quotes(labels[-1])}, with {percent(float(np.exp(-before)))}. Without "
        f"{_named(Text(ids, labels, 0, 0), place)} its probability is {percent(float(np.exp(-before - lost)))}: look along the "
        "last row."
    )
    return Try(contrast.part.capitalize(), notice, {"prompt": contrast.clean, "how": "replaced"})


def _other_way(subject: Subject, text: Text, how: How) -> Try:
    """The same text with tokens left out in the other way, and how much more or less the guesses lose on average."""
    other: How = "removed" if how == "replaced" else "replaced"
    places = tuple(range(text.kept, len(text.ids) - 1))[-PLACES_AT_ONCE:]
    now, then = (
        float(np.nanmean(np.abs(_rise(subject.key, text.ids, way, places, text.kept)))) if len(text.ids) > 2 else 0.0
        for way in (how, other)
    )
    notice = (
        f"If a token is {other}, guesses after the last {_tokens(len(places))} change by {then:.2f} nats on average; if it is "
        f"{how}, by {now:.2f}. Removing a token also moves all that follow."
    )
    return Try("Leave out in the other way", notice, {"how": other})


def _repeated(subject: Subject) -> Try | None:
    """The prompt twice, where it fits: whether the model uses the first time to guess the second."""
    text = subject.prompt.strip()
    gap = " " if subject.lm.tokenizer.is_spaced else "\n"
    twice = f"{text}{gap}{text}"
    ids = tuple(subject.lm.tokenizer.encode(twice).ids)
    config, length = subject.lm.model.config, len(subject.encoding.ids)
    if subject.encoding.unknown or not length >= 4 or len(ids) > min(config.context_length, _most_read(subject.key)):
        return None
    loss = _losses(subject.key, ids)
    first, second = float(np.mean(loss[1:length])), float(np.mean(loss[-length + 1 :]))
    notice = f"The first time the mean loss of this text is {first:.2f} nats, the second time {second:.2f}: " + (
        "it reads again what it has read." if second < 0.8 * first else "that it was there before hardly helps this model."
    )
    return Try("The same text twice", notice, {"prompt": twice})


def code(subject: Subject, text: Text, how: How) -> str:
    """The lines of `gptviz` that compute what the page shows."""
    kept = f", kept={text.kept}" if text.kept else ""
    read = f"lm.seen(lm.encode({subject.prompt!r})).tolist()" if not text.left_off else f"{list(text.ids[:-1])}"
    over_data = ""
    if _by_position(subject.key) is not None:
        over_data = (
            f"\n\nrows = [row.tolist() for row in lm.rows(most={_most_data(subject.lm)}) if len(row) > 1]\n"
            "by_position(lm.model, rows).values  # [position]"
        )
    return f"""import gptviz
from gptviz.interp.context_use import by_position, by_window, left_out, losses, with_guess

lm = {load_call(subject.lm)}
ids = with_guess(lm.model, {read})
left_out(lm.model, ids, {how!r}{kept}).rise  # [token guessed, token left out]
by_window(lm.model, ids{kept}).mean  # [tokens read]
losses(lm.model, ids)  # [token]{over_data}"""
