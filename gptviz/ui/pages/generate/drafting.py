"""Speculative decoding of the prompt on the page: who drafts, what became of every drafted token,
and what it saved.
"""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import streamlit as st
import torch

from gptviz.components.token_strip import Token, token_strip
from gptviz.figures.kit.format import percent
from gptviz.figures.kit.theme import KEY, OUTPUT, QUERY, STREAM, VALUE
from gptviz.generate.budget import affordable
from gptviz.generate.sampling import Sampling
from gptviz.generate.speculation import DRAFTED, MOST_DRAFTED, Drafted, Round, Speculated
from gptviz.language_model.writing import speculation, to_write
from gptviz.machine.files import kept_until_written
from gptviz.runs import checkpoints
from gptviz.ui.shell.subject import ModelKey, Subject, kinds, language_model, model_key
from gptviz.ui.widgets import controls, escape_markdown

from .writing import Writing

NONE = "None"
OWN = "the text’s own continuation"
TOKENS = 100  # that are written with a drafter, fewer of a large model
HEIGHT = 170  # pixels of the strip
# How the tokens of a round look: colour, and the line below.
ACCEPTED = "accepted"
REFUSED = "refused"
NOT_JUDGED = "not judged"
INSTEAD = "drawn instead"
ONE_MORE = "one more"
LOOKS = {
    ACCEPTED: (VALUE, "solid"),
    REFUSED: (OUTPUT, "dashed"),
    NOT_JUDGED: (STREAM, "dotted"),
    INSTEAD: (QUERY, "double"),
    ONE_MORE: (KEY, "double"),
}


def show(subject: Subject, writing: Writing) -> None:
    """The control for the drafter and, where one is chosen, its rounds; nothing for a model that
    looks ahead.
    """
    if subject.lm.model.config.mask != "causal":
        return
    left, right = st.columns(2, gap="medium")
    with left:
        chosen = controls.select(
            "Draft with",
            [NONE, OWN, *drafters(subject.key.name)],
            key="draft",
            help="Speculative decoding: a drafter proposes some tokens, and one pass of this model "
            "accepts or refuses them. "
            "The drafter is a model of the same vocabulary, or a copy of what followed the last "
            "tokens earlier in the text.",
        )
    if chosen == NONE:
        return
    with right:
        drafted = controls.whole_number(
            "Drafted tokens",
            1,
            MOST_DRAFTED,
            key="drafted",
            default=DRAFTED,
            help="How many tokens the drafter proposes at a time. With more of them a pass can "
            "give more tokens, but more are "
            "refused, or not judged at all.",
        )
    try:
        if chosen == OWN:
            drafter = None
        else:
            drafter = model_key(chosen, subject.key.device, precision=subject.key.precision)
        prompt = tuple(subject.encoding.ids)
        count = to_write(subject.lm, len(prompt), affordable(subject.lm.model, len(prompt), TOKENS))
        drafts = speculate_tokens(
            subject.key, prompt, drafter, writing.sampling, count, not writing.stops, drafted
        )
    except (checkpoints.CheckpointError, MemoryError, RuntimeError, ValueError) as error:
        why = escape_markdown(str(error)) or "There is not enough memory for the drafter"
        st.error(f"{why}. Choose another drafter.")
        return
    name = "prompt" if drafter is None else chosen
    st.markdown(
        f"From the prompt on: {escape_markdown(drafts.sentence(name, subject.key.title))}. Without "
        "a "
        "drafter it is 1 per pass."
    )
    _strip(subject, drafts)
    st.caption(
        "A number below a token begins a round, which is one pass of "
        f"{escape_markdown(subject.key.title)}. A drafted token is accepted "
        "if a random number u from 0 to 1 is below p ÷ q: its probability under this model, "
        "divided by that under the drafter. "
        "What is crossed out is not in the text. Point at a token for its numbers."
    )
    st.button(
        "Put it on the tree",
        icon=":material/account_tree:",
        on_click=writing.bring,
        args=(
            drafts.tokens,
            verdicts(subject, drafts, "its own text" if drafter is None else chosen),
        ),
        key="bring drafts",
        type="tertiary",
        help="The text that was written with the drafter becomes a branch of the tree, from the "
        "prompt on; of each of its tokens "
        "the card and the Numbers say whether it was drafted, with q, p and u, or which refused "
        "token it replaced.",
    )


def drafters(name: str) -> list[str]:
    """The decoders with the same vocabulary as the model called `name`, without it."""
    folders = checkpoints.folders()
    own = _vocabulary(folders[name]) if name in folders else None
    return [
        other
        for other in kinds.models_of("decoder")
        if other != name and _vocabulary(folders[other]) == own
    ]


@kept_until_written("tokenizer.json", most=1024)
def _vocabulary(folder: Path) -> str:
    """What tells the vocabulary of a model from others: a hash of its file without unused tokens,
    so that no model is opened.
    """
    try:
        content = (folder / "tokenizer.json").read_bytes()
    except OSError:
        return str(folder)
    padded = re.fullmatch(rb'\{"kind": "padded", "size": \d+, "inner": (.*)\}', content, re.DOTALL)
    return blake2b(padded[1] if padded else content).hexdigest()


@st.cache_resource(max_entries=16, show_spinner="Drafting")
def speculate_tokens(
    key: ModelKey,
    prompt: tuple[int, ...],
    drafter: ModelKey | None,
    sampling: Sampling,
    count: int,
    go_on: bool,
    drafted: int,
) -> Speculated:
    """`count` tokens after the prompt, `drafted` at a time by a model, or by the text itself if
    `drafter` is None.
    """
    lm = language_model(key)
    by: Any = "prompt" if drafter is None else language_model(drafter)
    grown = speculation(
        lm, torch.tensor(prompt, device=lm.device), by, sampling, drafted=drafted, go_on=go_on
    )
    return Speculated(tuple(grown.rounds(count)))


def outcome(one: Drafted) -> str:
    """What became of a drafted token, in a word."""
    if one.accepted is None:
        return NOT_JUDGED
    if one.accepted:
        return ACCEPTED
    return REFUSED


def describe_last(one: Round) -> str:
    """What the last token of a round is, in words."""
    if one.accepted == len(one.drafted):
        return ONE_MORE
    return INSTEAD


def note(one: Drafted) -> str:
    """What the card of a drafted token says."""
    q = f"q = {percent(one.q)}"
    if one.p is None or one.number is None:
        return f"drafted with {q}; not judged, since a token before it was refused"
    sign = "<" if one.accepted else "≥"
    return (
        f"{outcome(one)}: {q}, p = {percent(one.p)}, u = {one.number:.3f} {sign} p ÷ q = "
        f"{one.p / one.q:.3f}"
    )


def verdicts(subject: Subject, drafts: Speculated, drafter: str) -> list[str]:
    """What the tree says of each token of the text: how it was accepted, or which refused token it
    replaced.
    """
    said = []
    for each in drafts.rounds:
        said += [f"drafted by {drafter} and {note(one)}" for one in each.drafted if one.accepted]
        if each.token is None or each.probability is None:
            continue
        refused = [
            f" of “{subject.lm.tokenizer.label(one.token)}” ({note(one)})"
            for one in each.drafted
            if one.accepted is False
        ]
        said.append(f"{describe_last(each)}{''.join(refused)}, with {percent(each.probability)}")
    return said


def _strip(subject: Subject, drafts: Speculated) -> None:
    label = subject.lm.tokenizer.label
    chips = []
    for number, each in enumerate(drafts.rounds, 1):
        row = [
            Token(label(one.token), kind=outcome(one), note=note(one), faint=not one.accepted)
            for one in each.drafted
        ]
        if each.token is not None and each.probability is not None:
            how = f"{describe_last(each)}, with probability {percent(each.probability)}"
            row.append(Token(label(each.token), kind=describe_last(each), note=how))
        # A space below the others, so that all are on one line.
        chips += [
            replace(one, below="\u00a0" if index else f"{number}") for index, one in enumerate(row)
        ]
    token_strip(
        chips,
        key="drafts",
        label="The rounds: drafted tokens, accepted and refused",
        legend="",
        height=HEIGHT,
        spaced=subject.lm.tokenizer.is_spaced,
        kinds=LOOKS,
    )
