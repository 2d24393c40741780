"""What a class answers to a question: on its own screens, and on the screen of who teaches. A guess
of the next token is shown beside the probabilities of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt
import streamlit as st

from gptviz.figures.kit.format import format_count, percent
from gptviz.lessons import votes
from gptviz.lessons.guessing import LONGEST, GuessableTokens, GuessResult, surprise
from gptviz.machine.hosting import hosting
from gptviz.streamlit_internals import browser
from gptviz.ui.widgets import capitalise_text, escape_markdown, in_quotes, say_answer

from ..subject.models import ModelKey, language_model

# What counts where a class answers a question.
RULE = "Each browser has one voice: its last answer before the result is shown."
MOST_SHOWN = 8
# Seconds between two looks at what others did.
LOOK = 3.0
# The most characters of a text that a class goes on with.
TEXT_SHOWN = 1_000


def is_in_class() -> bool:
    """Whether the visitor is one of a class, whose answers are counted."""
    allowed = hosting()
    return allowed.lan and allowed.read_only


def teaches() -> bool:
    """Whether the visitor sits at the server of a class."""
    allowed = hosting()
    return allowed.lan and not allowed.read_only


@st.fragment(run_every=LOOK)
def tally(question: votes.Question, draw: Callable[[votes.Ballot], None]) -> None:
    """For who teaches: how many of the class have answered and, once that is shown, what `draw`
    shows of the answers.
    """
    ballot = votes.ballot(question)
    total = f"In all {len(ballot.answers):,}."
    if not ballot.is_shown:
        st.caption(f"**Answers of the class**, without names. {total} {RULE} Yours is not counted.")
        label = "Show the result"
        act = votes.show
    else:
        st.caption(f"**Answers of the class**: {total}")
        draw(ballot)
        label = "Ask again"
        act = votes.ask_again
    st.button(
        label,
        key=f"result {question.where} {question.number}",
        on_click=act,
        args=(question,),
        help="To ask again forgets the answers.",
    )
    if ballot.is_full:
        st.warning(f"{capitalise_text(votes.FULL)}.")


def draw_answers(options: Sequence[str], ballot: votes.Ballot) -> None:
    """How many chose what, of `options` those too that nobody chose."""
    counts = dict.fromkeys(options, 0) | dict(ballot.counts)
    shown = list(counts.items())[:MOST_SHOWN]
    _draw_bars({answer: {"class": (count, f"{count:,}")} for answer, count in shown})


def _draw_bars(rows: Mapping[str, Mapping[str, tuple[float, str]]]) -> None:
    """For each name one bar or two, of the "class" and of the "model": each has a length, all on
    one scale, and words.
    """
    longest = max((length for bars in rows.values() for length, _ in bars.values()), default=0)
    lines = []
    for name, bars in rows.items():
        drawn = "".join(
            f'<div class="bar-of-{of}"><span style="width: {100 * length / (longest or 1):.1f}%">'
            f"</span><small>{escape(words)}</small></div>"
            for of, (length, words) in bars.items()
        )
        lines.append(f"<li><b>{escape(name)}</b>{drawn}</li>")
    st.html(f'<ul class="class-answers">{"".join(lines)}</ul>')


def say_counted() -> None:
    """To one of a class: what is kept of an answer."""
    kept = ""
    if hosting().pseudonyms and (name := votes.pseudonym(browser())):
        kept = (
            f" In the list of who teaches, your answers stand together under the name **{name}**, "
            "drawn at random; nobody is told whose it is."
        )
    st.caption(f"The answers of the class are counted, without names. {RULE}{kept}")


@dataclass(frozen=True)
class AskedGuess:
    """The question which token comes next."""

    question: votes.Question  #: as it is counted
    key: ModelKey  #: the model that guesses too
    before: str  #: the text so far
    ids: tuple[int, ...]  #: what the model reads of it
    true: str | None  #: the name of the token that came next; None if that is not known


# Kept for all sessions: the names of a large vocabulary take a moment to make.
@st.cache_resource(max_entries=4, show_spinner=False)
def guessable(key: ModelKey) -> GuessableTokens:
    """The vocabulary of a model."""
    return GuessableTokens(language_model(key).tokenizer)


@st.cache_resource(max_entries=32, show_spinner=False)
def _guess_of_model(key: ModelKey, ids: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """The probability of every token after `ids`: [vocab_size]."""
    # takes long to import, and is needed only once a class has guessed
    from gptviz.interp.reading.next_token import logits_after, probabilities

    return probabilities(logits_after(language_model(key).model, ids, slice(-1, None))[0])


def guess_box(
    tokens: GuessableTokens, before: str, choose: Callable[[str], None], name: str
) -> None:
    """The text so far, a field that searches the vocabulary, and the tokens found; `choose` is
    called with what is typed, as the first token of it, or with the token that is tapped.
    """
    typed_key = f"typed {name}"
    tapped_key = f"tapped {name}"

    def take_typed() -> None:
        found = tokens.find(before, typed) if (typed := st.session_state[typed_key]) else []
        st.session_state[tapped_key] = next(iter(found), None)
        take_tapped()

    def take_tapped() -> None:
        if (tapped := st.session_state[tapped_key]) is not None:
            choose(tapped)

    with st.container(key=f"guess-box {name}", gap="small"):
        show_text(before)
        typed = st.text_input(
            "What comes next?",
            key=typed_key,
            max_chars=LONGEST,
            on_change=take_typed,
            help="Type a word or its beginning, and press Enter. Of a word that is several tokens "
            "the first one counts. ␣ stands for a space, ⏎ for a line break.",
        )
        if found := tokens.find(before, typed or ""):
            st.pills(
                "Tokens of the model",
                found,
                key=tapped_key,
                on_change=take_tapped,
                format_func=escape_markdown,
            )
        elif typed:
            st.caption("No token of the model begins like this: try another.")


def show_text(before: str) -> None:
    """The end of a text, and a mark where it goes on."""
    st.code(f"{before[-TEXT_SHOWN:]}▁", language=None, wrap_lines=True)


def guess_in_class(asked: AskedGuess) -> votes.Ballot:
    """To one of a class: the field for a guess, until the result is shown, and then the result. A
    guess is counted at once. Returns the answers so far.
    """
    question = asked.question
    ballot = votes.ballot(question)
    own = browser()
    name = f"{question.where} {question.number} {hash(question.words)}"
    refused_key = f"not counted {name}"

    def choose(token: str) -> None:
        st.session_state[refused_key] = votes.count(question, own, token)

    if ballot.is_shown:
        show_text(asked.before)
        draw_guesses(asked, "class", ballot)
    else:
        if (counted := ballot.answer_of(own)) is not None:
            st.success(
                f"Your guess: {in_quotes(counted)}. You can change it until the result is shown."
            )
        elif st.session_state.get(f"tapped {name}") is not None:
            # the question is asked again: what is chosen here was forgotten
            st.session_state[f"tapped {name}"] = None
            st.session_state[f"typed {name}"] = ""
        guess_box(guessable(asked.key), asked.before, choose, name)
    if not_counted := st.session_state.pop(refused_key, ""):
        st.info(f"{capitalise_text(not_counted)}.")
    say_counted()
    return ballot


@st.fragment(run_every=LOOK)
def follow(seen: object, now: Callable[[], object]) -> None:
    """Run the page again once what it has `seen` is another one `now`."""
    if now() != seen:
        st.rerun()


def is_shown(question: votes.Question) -> bool:
    """Whether the result of a question is shown."""
    return votes.ballot(question).is_shown


def draw_guesses(asked: AskedGuess, who: str, ballot: votes.Ballot) -> None:
    """The guesses of a class, or of one reader, beside the probabilities of the model, on one
    scale, and how surprising the right token is to both.
    """
    tokens = guessable(asked.key)
    counts = {tokens.ids[name]: count for name, count in ballot.counts}
    true = tokens.ids.get(asked.true or "")
    result = GuessResult(counts, _guess_of_model(asked.key, asked.ids), true)
    _say_surprises(result, tokens.names, who)

    # a line for each token, and one for all that are not shown
    lines = {
        f"{tokens.names[token]}{' ✓' if token == true else ''}": result.shares(token)
        for token in result.tokens
    }
    if n_others := len(result.probabilities) - len(lines):
        lines[f"all {n_others:,} others"] = result.others
    _draw_bars(
        {
            name: {
                of: (share, f"{said} {percent(share)}")
                for of, said, share in zip(("class", "model"), (who, "model"), shares, strict=True)
            }
            for name, shares in lines.items()
        }
    )
    st.caption(f"All bars have one scale. Full: {who}; striped: model. ✓: what came next.")


def _say_surprises(result: GuessResult, names: Sequence[str], who: str) -> None:
    """How likely the right token was to the class and to the model, and how surprising."""
    guesses = format_count(result.n_guesses, "guess", "guesses")
    if result.true is None:
        best = int(result.probabilities.argmax())
        say_answer(
            f"The model's likeliest token is {in_quotes(names[best])}, with "
            f"{percent(result.shares(best)[1])}.",
            f"{capitalise_text(who)}: {guesses}. What comes in truth is not known here.",
        )
        return
    of_class, of_model = result.shares(result.true)
    if of_class:
        own = f"{surprise(of_class):.2f} bits"
    else:
        own = "without a bound (nobody guessed it, and −log2 of 0 is infinite)"
    say_answer(
        f"Next came {in_quotes(names[result.true])}: {who} {percent(of_class)} "
        f"({result.counts.get(result.true, 0)} of {guesses}), model {percent(of_model)}.",
        f"Surprise, −log2 of that: {who} {own}, model {surprise(of_model):.2f} bits.",
    )


def one_guess(name: str) -> votes.Ballot:
    """The guess of a single reader, as a class of one."""
    return votes.Ballot({0: name})
