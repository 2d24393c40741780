"""The choices of the page Over training: the measures, what they read, and how their charts are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gptviz.interp.over_training.measures import MEASURES, Measure, Question
from gptviz.model.kinds import Kind
from gptviz.model.parts.heads import HEADS
from gptviz.settings.address_values import Values
from gptviz.settings.known_names import instead
from gptviz.text.datasets.tasks import Modular
from gptviz.ui.records.over_training import APART, RELATIVES, TOGETHER
from gptviz.ui.shell.subject import Subject, scrubber
from gptviz.ui.views import held_out
from gptviz.ui.views.contrasts import known_contrasts
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import addresses, controls
from gptviz.ui.widgets.headings import say_chosen

from .beside import relatives
from .computed import likeliest

KEY = "measures"
USUAL: dict[Kind, tuple[str, ...]] = {
    "decoder": ("loss", "heads.previous_token", "heads.induction"),
    "classifier": ("loss", "accuracy", "heads.entropy"),
    "encoder-decoder": ("loss", "accuracy", "heads.entropy"),
}
MOST_CHOSEN = 8
RANDOM, PROMPT = "Repeated random tokens", "The prompt"
FIRST, NEXT, ALONE = "the likeliest", "the next likeliest", "none"
_BY_NAME = "measures chosen"


@dataclass(frozen=True)
class Axes:
    """How the charts are drawn.

    Attributes:
        apart: whether every series has a panel of its own.
        log_steps: whether the axis of steps is logarithmic.
        log_values: whether the axis of values is.
    """

    apart: bool
    log_steps: bool
    log_values: bool


def possible(subject: Subject) -> tuple[str, ...]:
    """The measures that this model has."""
    config, task, kinds = subject.lm.model.config, subject.lm.task, tokens(subject.key).kinds
    adds_up = config.kind != "classifier" or HEADS[config.head].has_shares
    has = {
        "weights": True,
        "a prompt": True,
        "a token": True,
        "two tokens": True,
        "texts for heads": config.n_layer > 0,
        "held-out data": (here := held_out.is_here(subject.key)),
        "held-out texts": here,
        "vowels": kinds.count("vowel") > 1 and "consonant" in kinds,
        "tasks": task is not None and bool(task.parts),
        "answers": task is not None or (config.kind != "decoder" and here),
        "a clock": isinstance(task, Modular),
    }
    without = {"switched_off": not config.n_layer, "attribution": not adds_up}
    offered = (one for one in MEASURES.values() if has[one.needs] and config.kind in one.kinds)
    return tuple(one.name for one in offered if not without.get(one.name))


def measures(subject: Subject) -> list[Measure]:
    """The control for the measures: their names are in the address, with commas between."""
    offered = possible(subject)

    def named(text: str) -> list[str]:
        names = list(dict.fromkeys(text.split(",")))
        if unknown := [name for name in names if name not in offered]:
            raise ValueError(f"this model has no measure {unknown[0]!r:.60}{instead(unknown[0], offered)}")
        if len(names) > MOST_CHOSEN:
            raise ValueError(f"it names {len(names)} measures, and at most {MOST_CHOSEN} are shown")
        return names

    usual = [name for name in USUAL[subject.kind] if name in offered] or list(offered[:1])
    words = Values(f"at most {MOST_CHOSEN} names of measures with commas between")
    st.session_state[_BY_NAME] = controls.linked(KEY, named, usual, values=words, instead="the usual measures")

    def take() -> None:
        chosen = st.session_state[_BY_NAME]
        addresses.write(KEY, ",".join(chosen) if chosen and chosen != usual else None)

    told = {name: MEASURES[name].of(subject.kind) for name in offered}
    chosen: list[str] = st.multiselect(
        "Measures",
        offered,
        key=_BY_NAME,
        on_change=take,
        max_selections=MOST_CHOSEN,
        select_all=False,
        format_func=lambda name: told[name].title,
        help="What is followed through the training: one chart for each. Type a part of a name and press Enter.",
    )
    say_chosen("Measures", ", ".join(told[name].title for name in chosen))
    return [told[name] for name in chosen]


def say_missing(subject: Subject) -> None:
    """A line where the data that losses are measured on are not here."""
    if not held_out.is_here(subject.key):
        st.caption("The data that this model learned from are not on this machine: its losses are not among the measures.")


def questions(subject: Subject, chosen: Sequence[Measure]) -> dict[str, Question]:
    """What each measure is asked, by its name; with the controls `over`, `logit_of` and `minus` where a measure depends on them:
    what heads read, and which tokens count.
    """
    needs = {one.needs for one in chosen}
    heads_read = subject.prompt
    if "texts for heads" in needs and subject.lm.repeats is not None and subject.kind != "encoder-decoder":
        about = "Random tokens that are repeated once, as on the page Heads, or the prompt above."
        over = controls.select("Heads read", [RANDOM, PROMPT], key="over", help=about, segmented=True)
        heads_read = subject.prompt if over == PROMPT else ""
    token, against = _guessed(subject) if needs & {"a token", "two tokens"} else (None, None)
    two = _two_tokens(subject) if subject.kind == "classifier" and "two tokens" in needs else (token, against)
    by_need = {
        "texts for heads": Question(heads_read),
        "a prompt": Question(subject.prompt),
        "a token": Question(subject.prompt, token, against),
        "two tokens": Question("", *two),
    }
    return {one.name: by_need.get(one.needs, Question()) for one in chosen}


def _guessed(subject: Subject) -> tuple[int, int | None]:
    """The controls `logit_of` and `minus`: the token that is guessed after the prompt, or the label that it is given, and the one
    that it is compared with.
    """
    is_label = subject.kind == "classifier"
    names = subject.lm.labels if is_label else tokens(subject.key).names
    best = likeliest(scrubber.as_saved_last(subject.key), subject.seen)
    listed = [names[i] for i in best]
    known = next((one for one in known_contrasts(subject.lm) if one.clean == subject.prompt), None)
    what, where = ("label", "for the prompt") if is_label else ("token", "after the prompt")
    if subject.kind == "encoder-decoder":
        where = "as the first of the answer"
    other = None if is_label else names.__contains__
    about = f"The {what} that is guessed {where}: the likeliest for the model as it was saved last, or another one."
    of = controls.select(what.capitalize(), (FIRST, *listed), key="logit_of", help=about, other=other)
    about = f"The {what} that it is compared with: the wrong answer where the prompt has a known one, else the next likeliest."
    less = controls.select("Compared with", (NEXT, ALONE, *listed), key="minus", help=about, other=other)
    token = best[0] if of == FIRST else names.index(of)
    if less == NEXT:
        wrong = None if known is None else subject.lm.token(known.wrong)
        following = next((i for i in best if i != token), None)
        return token, wrong if wrong is not None and wrong != token else following
    return token, None if less == ALONE else names.index(less)


def _two_tokens(subject: Subject) -> tuple[int, int]:
    """The controls `one` and `another`, for a classifier, which guesses no tokens: at first two tokens of the prompt."""
    names = tokens(subject.key).names
    listed = list(dict.fromkeys(names[i] for i in (*subject.seen, *range(min(2, len(names))))))
    about = "A token whose embedding is compared; any one can be typed."
    one = controls.select("Embedding of", listed, key="one", help=about, other=names.__contains__)
    another = controls.select("and of", listed, key="another", help=about, default=listed[1], other=names.__contains__)
    return names.index(one), names.index(another)


def shown(name: str) -> str:
    """The control `show`: all series of a measure in one chart, a panel for each, or the losses of the model called `name` beside
    those of its relatives, if it has any.
    """
    about = "All series of a measure in one chart, or a small panel for each."
    options = [TOGETHER, APART]
    if relatives(name):
        options.append(RELATIVES)
        about += " Beside relatives: its loss while it was trained, beside those of models that differ from it in one thing."
    return controls.select("Show", options, key="show", help=about, segmented=True)


def logarithmic() -> tuple[bool, bool]:
    """The controls `log_steps` and `log_values`: which axes are logarithmic."""
    about = "Each doubling of the steps takes the same room; step 0 has none."
    log_steps = controls.switch("Log steps", key="log_steps", help=about, default=True)
    about = "Each doubling of a value takes the same room; what is not above 0 has none."
    return log_steps, controls.switch("Log values", key="log_values", help=about)
