"""“Guess it yourself” on the page Next token: Shannon's guessing game, of the reader beside models.

The address has all of a game: `text`, the number of its passage, and `guesses`, the characters
guessed one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.components.sampling_ledger import address, payload, sampling_ledger
from gptviz.components.token_strip import Token, token_strip
from gptviz.figures.kit.format import format_count, percent
from gptviz.interp.reading.guessing import Played, bits_of_guesses, guesses_of_chance, play
from gptviz.interp.reading.next_token import probabilities
from gptviz.model import RUNGS
from gptviz.runs import checkpoints
from gptviz.settings.address_values import Values, whole_number
from gptviz.text import make_visible
from gptviz.text.datasets.unseen import CHARACTERS, GUESSED, PASSAGES, passage
from gptviz.ui.shell import frame
from gptviz.ui.shell.close import PageResult
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, load_call, model_key
from gptviz.ui.widgets import addresses, controls, escape_markdown, jobs
from gptviz.ui.widgets.tables import show_table

# In the address: whether the reader plays, the number of the text, and the guesses.
PLAYS = "guess"
TEXT = "text"
GUESSES = "guesses"
# The models of the table, beside the one on screen.
PLAYERS = (*(f"ladder-{number}" for number in range(len(RUNGS))), "shakespeare")
VIEW = "Guess it yourself"
# Stands in the address for a token that was given up; the text has no such character.
GIVE_UP = "*"
CHANCE = len(CHARACTERS)
# Keys of the session's state: the field for a guess, and why the last guess does not count.
BOX = "guess box"
REFUSED = "guess refused"
LIKELY = 5


def switch() -> bool:
    """The control that starts the game."""
    return controls.switch(
        VIEW,
        key=PLAYS,
        help="You guess ten tokens of a text that the models have not seen, before you see what "
        "they say. Then you are compared.",
    )


def game(subject: Subject, reads: DeltaGenerator, plays: DeltaGenerator) -> PageResult:
    """The game as far as it has come, and at its end the comparison.

    Args:
        subject: the model on screen.
        reads: the container for the text.
        plays: the container for the field that the reader guesses in.
    """
    number = controls.linked_choice(
        TEXT, int, 0, values=whole_number(0, PASSAGES - 1), instead="text 0"
    )
    before, true = passage(number)
    values = Values("the guesses of a game", lambda moves: len(moves) <= CHANCE * GUESSED)
    moves = controls.linked_choice(
        GUESSES,
        lambda asked: asked if by_token(asked, true) else "",
        "",
        values=values,
        instead="a new game",
    )
    *over, now = by_token(moves, true)
    is_over = len(over) == GUESSED
    rival = _rival(subject, number)
    with reads:
        st.caption(
            f"Text {number} was written for this game: no model was trained on it. Type the "
            "character that "
            f"comes next; if it is wrong, guess again. After {GUESSED} tokens your guesses become "
            "bits per token, beside those "
            "of the models. The prompt plays no part here."
        )
        st.code(
            before + true[: len(over)] + ("" if is_over else "▁"), language=None, wrap_lines=True
        )
        if over:
            _strip(true, over, rival)
    with plays:
        if is_over:
            _end(subject, number)
        else:
            _guess_box(moves, now, len(over))
        if over:
            _say_last(true, over, rival)
    if is_over:
        _table(subject, number, over)
    if over and rival:
        _bars(*rival, number, before, true, len(over) - 1)
    return PageResult(None, code(rival[0], number) if rival else None, VIEW)


def by_token(moves: str, true: str) -> list[str]:
    """The guesses for each token of `true`, the last of them right or `GIVE_UP`; at the end those
    for the token to guess now.

    Raises:
        ValueError: these are not the guesses of a game about this text.
    """
    guesses = [""]
    for move in moves:
        if len(guesses) > len(true):
            raise ValueError("there are more guesses than the text has tokens")
        if move in guesses[-1] or move not in CHARACTERS + GIVE_UP:
            raise ValueError("a guess is there twice, or is no character of this text")
        guesses[-1] += move
        if move in (true[len(guesses) - 1], GIVE_UP):
            guesses.append("")
    return guesses


def _rival(subject: Subject, number: int) -> tuple[ModelKey, Played] | None:
    """The model on screen and its game; if it does not play, another one, if any, and a line that
    says why.
    """
    own = game_of(subject.key, number)
    if not isinstance(own, str):
        return subject.key, own
    try:
        other = model_key(PLAYERS[-1], subject.key.device)
        played = game_of(other, number)
    except checkpoints.CheckpointError as error:
        played = str(error)
    if not isinstance(played, str):
        instead = f"; {PLAYERS[-1]} plays in its place"
    else:
        instead = ""
    st.info(
        escape_markdown(f"{subject.key.title} does not play: {own}{instead}."),
        icon=":material/info:",
    )
    if isinstance(played, str):
        return None
    return (other, played)


@jobs.resource("The models guess", max_entries=64)
def game_of(key: ModelKey, number: int) -> Played | str:
    """The game of a model with the text of this number, or why it plays none, as the end of a
    sentence.

    Raises:
        checkpoints.CheckpointError: it cannot be opened.
    """
    lm = language_model(key)
    if lm.tokenizer.vocab_size == CHANCE:
        pieces = [lm.tokenizer.piece(i) for i in range(lm.tokenizer.vocab_size)]
    else:
        pieces = []
    if not lm.kind.continues or pieces != list(CHARACTERS):
        return (
            f"its tokens are not the {CHANCE} characters of this text, so its bits per token are "
            "about other tokens"
        )
    before, guessed = passage(number)
    played = play(lm.model, lm.tokenizer.encode(before + guessed).ids, len(before))
    overflow = "its weights or edits are so large that they overflow"
    if np.isfinite(played.logits).all():
        return played
    return overflow


def _strip(true: str, over: Sequence[str], rival: tuple[ModelKey, Played] | None) -> None:
    """The tokens guessed so far."""
    shares = None if rival is None else probabilities(rival[1].logits)  # [T, vocab_size]

    def chip(at: int) -> Token:
        note = f"you: {_guesses(guess_count(over[at]))}"
        mark = over[at] == true[at]
        if rival is None or shares is None:
            return Token(make_visible(true[at]), note=note, mark=mark)
        note += f"; {rival[0].title}: {_guesses(rival[1].guesses[at])}"
        likely = tuple(
            (make_visible(CHARACTERS[i]), float(shares[at, i]))
            for i in (-shares[at]).argsort(kind="stable")[:LIKELY]
        )
        return Token(
            make_visible(true[at]),
            float(shares[at, CHARACTERS.index(true[at])]),
            likely,
            note,
            mark,
        )

    token_strip(
        [chip(at) for at in range(len(over))],
        key="guessed strip",
        label="The tokens guessed so far",
        legend="underlined: your first guess was right"
        if rival is None
        else f"how likely {rival[0].title} found each; underlined: your first guess was right",
    )


def _guesses(count: float) -> str:
    if count == 1:
        return "one guess"
    return f"{count:g} guesses"


def guess_count(guesses: str) -> float:
    """How many guesses a token took; one that was given up counts as if the other characters were
    tried in a random order.
    """
    if guesses.endswith(GIVE_UP):
        return guesses_of_chance(CHANCE, len(guesses) - 1)
    return len(guesses)


def _end(subject: Subject, number: int) -> None:
    """What to do after a game."""

    def begin(text: int) -> None:
        addresses.write(TEXT, str(text))
        addresses.write(GUESSES, None)

    with st.container(horizontal=True, gap="small"):
        st.button(
            "Play another text",
            on_click=begin,
            args=((number + 1) % PASSAGES,),
            key="another text",
            type="primary",
        )
        st.button("The same text again", on_click=begin, args=(number,), key="same text")
    query = {key: value for key, value in frame.shared_state().items() if key in ("model", "step")}
    link = addresses.link(
        (st.context.url or "").partition("?")[0], query | {PLAYS: "True", TEXT: str(number)}
    )
    st.caption("For a class: this link opens the same ten tokens for everyone, from the beginning.")
    st.code(link, language=None, wrap_lines=True)


def _guess_box(moves: str, wrong: str, place: int) -> None:
    def take(move: str) -> None:
        if move in wrong:
            st.session_state[REFUSED] = (
                f"You have guessed {_quote_character(move)} for this token already."
            )
        elif move not in CHARACTERS:
            st.session_state[REFUSED] = (
                f"{_quote_character(move)} does not occur in this text: it does not count as a "
                "guess."
            )
        else:
            addresses.write(GUESSES, moves + move)

    def take_guess() -> None:
        move = st.session_state[BOX]
        st.session_state[BOX] = ""
        if move:
            take(move)

    st.text_input(
        "Your guess of the next token",
        key=BOX,
        max_chars=1,
        placeholder="one character, then Enter",
        autocomplete="off",
        on_change=take_guess,
        help="Every character is a token, a space and a line break too. A capital letter is "
        "another token than the small one: "
        "mind that the keyboard of a phone may begin with a capital.",
    )
    with st.container(horizontal=True, gap="small"):
        st.button("Space", on_click=take, args=(" ",), key="guess a space")
        st.button("Line break", on_click=take, args=("\n",), key="guess a line break")
        st.button(
            "Give up",
            on_click=addresses.write,
            args=(GUESSES, moves + GIVE_UP),
            key="give up",
            type="tertiary",
        )
    if wrong:
        tried = f" Wrong so far: {' '.join(map(_quote_character, wrong))}."
    else:
        tried = ""
    st.markdown(f"**Token {place + 1} of {GUESSED}.**{tried}")
    if refused := st.session_state.pop(REFUSED, None):
        st.warning(refused)


def _quote_character(character: str) -> str:
    return f"“{escape_markdown(make_visible(character))}”"


def _say_last(true: str, over: Sequence[str], rival: tuple[ModelKey, Played] | None) -> None:
    """What the last token was, and how many guesses both needed."""
    at = len(over) - 1
    gave_up = over[at].endswith(GIVE_UP)
    if gave_up:
        you = f"You gave up, which counts as {guess_count(over[at]):g} guesses"
    else:
        you = f"You needed {_guesses(len(over[at]))}"
    model = ""
    if rival is not None:
        key, its = rival
        model = (
            f"; {escape_markdown(key.title)} needed {_guesses(its.guesses[at])}, and gave it "
            f"{percent(2 ** -its.surprise[at])}"
        )
    st.info(f"It was {_quote_character(true[at])}. {you}{model}.")


def _table(subject: Subject, number: int, over: Sequence[str]) -> None:
    """The reader beside the models and chance, all by the same rule."""
    rows = {}
    left_out = []
    for name in dict.fromkeys((*PLAYERS, subject.key.name)):
        try:
            if name == subject.key.name:
                key = subject.key
            else:
                key = model_key(name, subject.key.device)
            played = game_of(key, number)
        except checkpoints.CheckpointError:
            played = "it is not on this machine"
        if isinstance(played, str):
            left_out.append(f"{name}: {played}.")
            continue
        if name == PLAYERS[0]:
            title = f"{key.title} (the bigram)"
        else:
            title = key.title
        rows[title] = (float(played.guesses.mean()), played.bits, float(played.surprise.mean()))
    mean = float(np.mean([guess_count(guesses) for guesses in over]))
    yours = bits_of_guesses(mean, CHANCE)
    chance = (
        guesses_of_chance(CHANCE),
        bits_of_guesses(guesses_of_chance(CHANCE), CHANCE),
        math.log2(CHANCE),
    )
    ranked = dict(sorted(rows.items(), key=lambda row: row[1][1]))
    better = sum(bits > yours for _, bits, _ in rows.values())
    models = format_count(len(rows), "model")
    if better:
        beside = f", fewer than {better} of {models}"
    elif rows:
        beside = f"; none of {models} needed more"
    else:
        beside = ""
    st.markdown(f"**You needed {mean:.3g} guesses per token: {yours:.2f} bits per token{beside}.**")
    table = {"You": (mean, yours, math.nan), **ranked, "pure chance": chance}
    by_guesses = "bits per token, by guesses"
    by_shares = "by probabilities"
    guesses = "guesses per token"
    show_table(
        pd.DataFrame(
            {
                by_guesses: [bits for _, bits, _ in table.values()],
                by_shares: [
                    "–" if math.isnan(share) else f"{share:.2f}" for *_, share in table.values()
                ],
                guesses: [f"{each:.2f}" for each, *_ in table.values()],
            },
            index=pd.Index(table, name="player"),
        ),
        column_config={
            by_guesses: st.column_config.ProgressColumn(
                format="%.2f", min_value=0, max_value=math.log2(CHANCE)
            )
        },
        height="content",
        alt="The bits per token of the reader, of each model and of pure chance",
    )
    st.caption(
        "A **bit** is the answer to one question with yes or no. Bits by guesses: how many bits "
        "per token it takes, at most, to "
        "say how many guesses were needed. 0: every first guess was right; "
        f"{math.log2(CHANCE):.2f}: all {CHANCE} characters in "
        "a random order. The models play the same game, the likeliest token first. Their bits by "
        "probabilities also count how "
        "sure they were: the mean of −log2 of the probability of the true token."
    )
    if left_out:
        st.caption(f"Not in the table: {escape_markdown(' '.join(left_out))}")


def _bars(key: ModelKey, its: Played, number: int, before: str, true: str, at: int) -> None:
    """The probabilities of the model for the token guessed last."""
    st.markdown(
        f"**Before {_quote_character(true[at])}, {escape_markdown(key.title)} gave each token this "
        "probability**"
    )
    data = payload(
        its.logits[at],
        [make_visible(one) for one in CHARACTERS],
        about=(key, number, at),
        title=f"{key.title}, token {at + 1} of text {number}",
        prompt=before + true[:at],
        code=(code(key, number), ""),
        true=CHARACTERS.index(true[at]),
        true_name="It was:",
    )
    addresses.takes_all(address(CHANCE, draws=False))
    sampling_ledger(data, key="guessed ledger")


def code(key: ModelKey, number: int) -> str:
    """The lines of Python that play the game."""
    return f"""import gptviz
from gptviz.interp.reading.guessing import play
from gptviz.interp.reading.next_token import probabilities
from gptviz.text.datasets.unseen import passage

lm = {load_call(language_model(key))}
before, guessed = passage({number})
game = play(lm.model, lm.encode(before + guessed).tolist(), len(before))
probabilities(game.logits)  # [T, vocab_size]
game.guesses, game.surprise  # [T], of each token
game.bits  # per token, by guesses"""
