"""What a class answers to a question: on its own screens, and on the screen of who teaches. A guess
of the next token is shown beside the probabilities of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt
import streamlit as st

from gptviz.figures.kit.format import format_count, percent
from gptviz.interp.reading.next_token import logits_after, probabilities
from gptviz.lessons import votes
from gptviz.lessons.guessing import LONGEST, GuessableTokens, GuessResult
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


def draw_bars(options: Sequence[str], ballot: votes.Ballot) -> None:
    """How many chose what, of `options` those too that nobody chose."""
    counts = dict.fromkeys(options, 0) | dict(ballot.counts)
    most = max(counts.values(), default=0)
    rows = "".join(
        f'<tr><th scope="row">{escape(answer)}</th>'
        f'<td><span style="width: {100 * count / max(1, most):.0f}%"></span></td>'
        f"<td>{count:,}</td></tr>"
        for answer, count in list(counts.items())[:MOST_SHOWN]
    )
    st.html(f'<table class="class-answers">{rows}</table>')


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


@st.cache_resource(max_entries=3, show_spinner=False)
def _guessable(name: str, written: int, _key: ModelKey) -> GuessableTokens:
    return GuessableTokens(language_model(_key).tokenizer)


def guessable(key: ModelKey) -> GuessableTokens:
    """The vocabulary of a model, the same at every step of its training."""
    return _guessable(key.name, key.tokenizer, key)


@st.cache_resource(max_entries=32, show_spinner=False)
def _guess_of_model(key: ModelKey, ids: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """The probability of every token after `ids`: [vocab_size]."""
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
        found = tokens.find(before, st.session_state[typed_key])
        if st.session_state[typed_key] and found:
            st.session_state[tapped_key] = found[0]
            choose(found[0])
        else:
            st.session_state[tapped_key] = None

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
    cut = "…" if len(before) > TEXT_SHOWN else ""
    st.code(f"{cut}{before[-TEXT_SHOWN:]}▁", language=None, wrap_lines=True)


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
    counts = {tokens.ids[name]: count for name, count in ballot.counts if name in tokens.ids}
    true = None if asked.true is None else tokens.ids.get(asked.true)
    result = GuessResult(counts, _guess_of_model(asked.key, asked.ids), true)
    _say_surprises(result, tokens.names, who)
    _bars_of_guesses(result, tokens.names, who)


def _say_surprises(result: GuessResult, names: Sequence[str], who: str) -> None:
    best = int(result.probabilities.argmax())
    whose = "The class" if who == "class" else capitalise_text(who)
    guesses = format_count(result.n_guesses, "guess", "guesses")
    if result.true is None or (surprises := result.surprises) is None:
        most = max(result.counts, key=result.share, default=None)
        favourite = "nobody guessed" if most is None else f"mostly {in_quotes(names[most])}"
        say_answer(
            f"{whose}, of {guesses}: {favourite}. The model's likeliest token: "
            f"{in_quotes(names[best])}, with {percent(float(result.probabilities[best]))}."
        )
        return
    true = result.true
    of_class, of_model = (f"{bits:.2f} bits" for bits in surprises)
    none = ""
    if not result.counts.get(true):
        of_class = "without a bound"
        none = " Of what nobody guessed the share is 0, and −log2 of 0 is infinite."
    say_answer(
        f"Next came {in_quotes(names[true])}. {whose} gave it {percent(result.share(true))} "
        f"({result.counts.get(true, 0)} of {guesses}), the model "
        f"{percent(float(result.probabilities[true]))}.",
        f"Surprise, −log2 of that: {who} {of_class}, model {of_model}.{none}",
    )


def _bars_of_guesses(result: GuessResult, names: Sequence[str], who: str) -> None:
    shares = {
        names[token]: (result.share(token), float(result.probabilities[token]))
        for token in result.tokens
    }
    right = None if result.true is None else names[result.true]
    if any(result.others):
        others = f"all {len(result.probabilities) - len(shares):,} others"
    else:
        others = ""
    longest = max(max(pair) for pair in (*shares.values(), result.others))
    rows = [(name, name == right, pair) for name, pair in shares.items()]
    if others:
        rows.append((others, False, result.others))

    def bar(of: str, share: float) -> str:
        width = 100 * share / max(longest, 1e-12)
        kind = "model" if of == "model" else "class"
        return (
            f'<div class="guess-of-{kind}"><span style="width: {width:.1f}%"></span>'
            f"<small>{of} {escape(percent(share))}</small></div>"
        )

    lines = "".join(
        f"<li><b>{escape(name)}{' ✓' if is_right else ''}</b>"
        f"{bar(who, of_class)}{bar('model', of_model)}</li>"
        for name, is_right, (of_class, of_model) in rows
    )
    st.html(f'<ul class="class-guesses">{lines}</ul>')
    ticked = "" if right is None else " ✓: what came next."
    st.caption(
        f"Both bars have one scale; the longest is {percent(longest)}. Full bar: {who}; striped "
        f"bar: model.{ticked}"
    )


def one_guess(name: str) -> votes.Ballot:
    """The guess of a single reader, as a class of one."""
    return votes.Ballot({0: name})
