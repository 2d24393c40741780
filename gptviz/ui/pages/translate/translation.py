"""The source and the output that the Translate page is about: the control `output`, and what the
model computed for it.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

import numpy as np
import streamlit as st

from gptviz.data.registry import source_from
from gptviz.data.seq2seq import PairSource, PairTaskSource
from gptviz.figures.kit.format import format_count, percent
from gptviz.generate.sampling import Sampling
from gptviz.interp.reading import cross_attention
from gptviz.interp.reading.cross_attention import Output
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer
from gptviz.ui.records.attention import PAGE as ATTENTION
from gptviz.ui.records.translate import BEAM_SEARCH, CROSS_ATTENTION, NEXT_TOKEN
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.views.encoder_decoder import DECODER, ENCODER, OutputText, longest_answer
from gptviz.ui.views.read import PromptRead
from gptviz.ui.widgets import Try, controls, escape_markdown, in_quotes, jobs
from gptviz.ui.widgets.sampling import sampling_controls

LONGEST_OUTPUT = 10_000  # characters
# This many sources are looked through; a word counts as known if it is in one of them.
LOOKED_THROUGH = 5_000
# Where fewer of the words held out are known (a text of random letters has a new word each time),
# nothing is said of words.
KNOWN_SHARE = 0.99
MOST_NAMED = 5
_WORD = re.compile(r"[^\W\d_]+")
# The entry in the card of a model that was trained on dates, and a date to try on it.
IN_WORDS = "july twenty-sixth, twelve ninety-five"


@dataclass(frozen=True)
class Translation:
    """A source and the output that the page is about."""

    subject: Subject  #: the model, and the source it reads
    decoded: tuple[int, ...]  #: the ids the decoder reads, the start token first
    #: the ids written, one after each of these; the last may be only the model's guess
    written: tuple[int, ...]
    ended: bool  #: whether the model's own answer ends; true where the output was typed
    typed: str  #: the output that was typed, empty for the model's own
    is_drawn: bool = False  #: whether the model's own answer was drawn

    @property
    def model_output(self) -> Output:
        """The logits and patterns that the model computed for it."""
        return output_of(self.subject.key, self.subject.seen, self.decoded)


def say_languages(subject: Subject) -> None:
    """From which language into which a translator of another program translates, where its files
    say so.
    """
    if (languages := subject.lm.card.languages) is not None:
        source, target = (in_quotes(one[:40]) for one in languages)
        st.caption(
            f"This model translates from {source} to {target}, as its files name the languages."
        )


def warn_of_unknown_words(subject: Subject) -> None:
    """Say which words of the source the model was never trained on: its answer then says nothing
    about them.
    """
    unknown = unknown_words(subject.prompt, known_words(json.dumps(subject.lm.card.source or {})))
    if not unknown:
        return
    named = ", ".join(in_quotes(word[:40]) for word in unknown[:MOST_NAMED])
    if len(unknown) > MOST_NAMED:
        more = f" and {len(unknown) - MOST_NAMED} more"
    else:
        more = ""
    is_single = len(unknown) == 1
    controls.notice_place().warning(
        f"{named}{more}: {'this word occurs' if is_single else 'these words occur'} in none of "
        f"{LOOKED_THROUGH:,} sources like "
        "those that the model was trained on. It cannot know what "
        f"{'it means' if is_single else 'they mean'}, and answers all "
        "the same: the output says nothing, however sure the model is.",
        icon=":material/help:",
    )


def unknown_words(text: str, known: frozenset[str]) -> list[str]:
    """The words of `text`, each once, that are not among those `known`; none if the model's words
    are not known.
    """
    return [word for word in dict.fromkeys(words(text)) if known and word not in known]


def words(text: str) -> list[str]:
    """Runs of letters, in small letters."""
    return _WORD.findall(text.lower())


def known_words(source: str) -> frozenset[str]:
    """The words in the sources that a model learned from, by the `source` on its card (JSON); empty
    if there are none.
    """
    try:
        return _known_words(source)
    except (ValueError, OSError):
        return frozenset()


# An error is not kept in the cache: the data may come later.
@st.cache_data(max_entries=8, show_spinner=False)
def _known_words(source: str) -> frozenset[str]:
    data = source_from(json.loads(source))
    if not isinstance(data, PairTaskSource | PairSource):
        return frozenset()
    trained, held_out = data.sources(LOOKED_THROUGH)
    known = frozenset(word for text in trained for word in words(text))
    others = [word for text in held_out for word in words(text)]
    if others and sum(word in known for word in others) >= KNOWN_SHARE * len(others):
        return known
    return frozenset()


def sampling_control() -> Sampling | None:
    """The control `drawn`. If it is on, the controls of the sampling; else None: the output takes
    the likeliest tokens.
    """
    hint = (
        "Off: the output takes the likeliest token each time. On: each token is drawn, as on the "
        "page Generate."
    )
    if not controls.switch("Draw the output", key="drawn", help=hint):
        return None
    return sampling_controls()


def output_control(subject: Subject, sampling: Sampling | None) -> Translation:
    """The control `output`: the model's own answer, drawn by `sampling` if given, unless another
    output is typed.
    """
    tokens = special_tokens_of(subject)
    own = answer_of(subject, sampling)
    typed = controls.text(
        "Output",
        key="output",
        longest=LONGEST_OUTPUT,
        label_visibility="collapsed",
        placeholder=f"Output: {tokens.decode(own.ids)[:80]} "
        f"({'drawn' if sampling else 'the model’s own'}; type another)",
        help=(
            "Leave this empty to see what the model writes: the likeliest token each time, unless "
            "the output is drawn. Type "
            "another output to see what the model would have written at each place of it."
        ),
    )
    encoding = tokens.encode_answer(typed[:LONGEST_OUTPUT])
    if not encoding.ids:
        return Translation(
            subject,
            (tokens.start, *own.written[:-1]),
            own.written,
            own.has_ended,
            "",
            sampling is not None,
        )
    if encoding.unknown:
        controls.notice_place().warning(
            f"Output: {escape_markdown(encoding.unknown_sentence())}", icon=":material/help:"
        )
    most = longest_answer(subject.lm.model.config) - 1  # the start token has a place too
    if len(encoding.ids) > most:
        controls.notice_place().info(
            f"The output has {format_count(len(encoding.ids), 'token')}: the first {most} are "
            "shown. "
            "After the start token no more "
            f"than {most} {limit(subject)}.",
            icon=":material/content_cut:",
        )
    forced = tuple(encoding.ids[:most])
    decoded = (tokens.start, *forced)
    guess = int(output_of(subject.key, subject.seen, decoded).logits[-1].argmax())
    return Translation(subject, decoded, (*forced, guess), True, typed)


def special_tokens_of(subject: Subject) -> SpecialTokensTokenizer:
    """The model's tokenizer; the page stops where that has no special tokens, or where the decoder
    has no blocks.
    """
    tokenizer = subject.lm.tokenizer
    if not subject.lm.model.config.n_layer:
        st.info(
            f"The decoder of {escape_markdown(subject.key.name)} has no blocks and therefore no "
            "cross-attention: it never reads its "
            "source."
        )
        st.stop()
    if not isinstance(tokenizer, SpecialTokensTokenizer):
        st.error(
            f"{escape_markdown(subject.key.name)} cannot write: its tokenizer is of the kind "
            f"{tokenizer.kind}, which has no "
            "start and end tokens. Choose a model above that was trained here on sources and "
            "answers."
        )
        st.stop()
    return tokenizer


def answer_of(subject: Subject, sampling: Sampling | None = None) -> OutputText:
    """The model's own answer: with the likeliest token each time, or drawn by `sampling`."""
    special_tokens_of(subject)  # the page stops where there is no answer
    own = encoder_decoder.answer(subject.key, subject.seen, sampling)
    assert own is not None
    return own


def limit(subject: Subject) -> str:
    """The reason for the length of the longest answer, as the end of a sentence that counts its
    tokens.
    """
    config = subject.lm.model.config
    if longest_answer(config) < config.context_length:
        return "are shown here"
    return "this model’s table of positions has places for"


# Two entries, as of `attention.view`: patterns may take hundreds of MB. Shared by all sessions:
# read-only.
@jobs.resource("Reading the source", max_entries=2)
def output_of(key: ModelKey, source: tuple[int, ...], decoded: tuple[int, ...]) -> Output:
    """The logits and patterns for a `source` and the ids that the decoder reads."""
    return cross_attention.read_translation(language_model(key).model, source, decoded)


def sentence(translation: Translation) -> str:
    """What is answered, and what the model reads where most of its attention goes to one token."""
    subject = translation.subject
    if translation.typed:
        answer = f"The typed output is {in_quotes(translation.typed)}."
    elif text := special_tokens_of(subject).decode(answer_of(subject).ids):
        answer = f"It answers {in_quotes(text)}."
    else:
        answer = "It answers nothing: its output ends at once."
    label = subject.lm.tokenizer.label
    mean = np.asarray(translation.model_output.cross.blocks[-1], float).mean(0)  # [output, source]
    place, read = np.unravel_index(int(mean.argmax()), mean.shape)
    written = in_quotes(label(translation.written[place]))
    return (
        f"{answer} Before it writes {written} at position {place} it reads "
        f"{in_quotes(label(subject.seen[read]))} most: {percent(float(mean[place, read]))} of its "
        "last block’s attention."
    )


def show_attention(translation: Translation) -> None:
    """The attention of the output to the source, first as the mean of the last block's heads, which
    shows its path best.
    """
    config = translation.subject.lm.model.config
    read = PromptRead(
        translation.decoded, translation.subject.seen, translation.written, attention.CROSS
    )
    start = {
        "block": config.n_layer - 1,
        "head": 0,
        "heads": "mean" if config.n_head > 1 else "one",
    }
    attention.explore(
        translation.subject, read, attention.code_of_two(translation.subject, read), start
    )


def remark(translation: Translation) -> None:
    """Notes below the views: how likely the output is, where it comes from, and whether it ends."""
    sure = cross_attention.certainty(translation.model_output.logits, translation.written)
    label = translation.subject.lm.tokenizer.label(translation.written[sure.place])
    st.caption(
        f"The model gives the whole output a probability of {percent(math.exp(sure.total))}; the "
        "token that it finds least "
        f"likely is {in_quotes(label)} at position {sure.place}: {percent(sure.probability)}."
    )
    if translation.typed:
        own = special_tokens_of(translation.subject).decode(answer_of(translation.subject).ids)
        st.caption(
            "This output was typed, up to the last token, which is the model’s guess. By itself "
            "the model writes “"
            f"{escape_markdown(own)}”: empty the field above to see that."
        )
    if not translation.ended:
        st.info(
            "The output does not end by itself: it was stopped after "
            f"{format_count(len(translation.written), 'token')}, as many as "
            f"{limit(translation.subject)}.",
            icon=":material/content_cut:",
        )


def tries(translation: Translation) -> list[Try]:
    """The suggestions for this source and this output."""
    hidden = cross_attention.hidden_by_mean(translation.model_output.cross, None)
    b, h = hidden.sharpest
    offers: list[Try] = [
        Try(
            "The sharpest head",
            f"Block {b}, head {h} spreads its attention least, over {hidden.sharpest_spread:.1f} "
            "source tokens. Go through the "
            "output token by token: which part of the source does the head follow?",
            {
                "view": CROSS_ATTENTION,
                "output": "",
                **attention.explorer_state(heads="one", block=b, head=h),
            },
        ),
    ]
    if (wrong := _one_wrong(translation)) is not None:
        output, place = wrong
        about = (
            "The output with one token that the model would not have written: how sure was it "
            "there, and how does it go on?"
        )
        offers.append(
            Try("One wrong token", about, {"view": NEXT_TOKEN, "output": output, "position": place})
        )
    about = (
        "Five outputs are followed side by side. What is below the line was cut and never came "
        "back. The thick path is the best "
        "output."
    )
    return [*offers, Try("A wide beam", about, {"view": BEAM_SEARCH, "width": 5, "output": ""})]


def _one_wrong(translation: Translation) -> tuple[str, int] | None:
    """The model's answer with the second likeliest token in its middle, and that place; None if no
    text reads so.
    """
    subject = translation.subject
    tokens = special_tokens_of(subject)
    answer = answer_of(subject).ids
    most = longest_answer(subject.lm.model.config)
    if not answer:
        return None
    place = len(answer) // 2
    logits = output_of(subject.key, subject.seen, (tokens.start, *answer)[:most]).logits[place]
    likely = [
        int(i)
        for i in np.argsort(-logits, kind="stable")
        if i not in (answer[place], tokens.start, tokens.end, tokens.padding)
    ]
    if not likely:
        return None
    text = tokens.decode([*answer[:place], likely[0], *answer[place + 1 :]][: most - 1])
    if len(tokens.encode_answer(text).ids) > place:
        return (text, place)
    return None


def links() -> None:
    """Links to the self-attention of the two stacks."""
    for stack, label in (
        (ENCODER, "What the source reads in itself"),
        (DECODER, "What the output reads in itself"),
    ):
        frame.link(ATTENTION, label, query={**frame.shared_state(), "stack": stack})
