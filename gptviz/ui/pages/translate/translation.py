"""The source and the output that the Translate page is about: the control `output`, and what the model computed for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import streamlit as st

from gptviz.figures.kit.format import counted, percent
from gptviz.generate.sampling import Sampling
from gptviz.interp.reading import cross_attention
from gptviz.interp.reading.cross_attention import Output
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.views import encoder_decoder
from gptviz.ui.views.encoder_decoder import OutputText, longest_answer
from gptviz.ui.widgets import controls, escaped, jobs
from gptviz.ui.widgets.sampling import sampling_controls

LONGEST_OUTPUT = 10_000  # characters


@dataclass(frozen=True)
class Translation:
    """A source and the output that the page is about.

    Attributes:
        subject: the model, and the source it reads.
        decoded: the ids the decoder reads, the start token first.
        written: the ids written, one after each of these; the last may be only the model's guess.
        ended: whether the model's own answer ends; true where the output was typed.
        typed: the output that was typed, empty for the model's own.
        is_drawn: whether the model's own answer was drawn.
    """

    subject: Subject
    decoded: tuple[int, ...]
    written: tuple[int, ...]
    ended: bool
    typed: str
    is_drawn: bool = False

    @property
    def computed(self) -> Output:
        """The logits and patterns that the model computed for it."""
        return output_of(self.subject.key, self.subject.seen, self.decoded)


# Two entries, as of `attention.view`: patterns may take hundreds of MB. Shared by all sessions: read-only.
@jobs.resource("Reading the source", max_entries=2)
def output_of(key: ModelKey, source: tuple[int, ...], decoded: tuple[int, ...]) -> Output:
    """The logits and patterns for a `source` and the ids that the decoder reads."""
    return cross_attention.read(language_model(key).model, source, decoded)


def answer_of(subject: Subject, sampling: Sampling | None = None) -> OutputText:
    """The model's own answer: with the likeliest token each time, or drawn by `sampling`."""
    special_tokens_of(subject)  # the page stops where there is no answer
    own = encoder_decoder.answer(subject.key, subject.seen, sampling)
    assert own is not None
    return own


def sampling_control() -> Sampling | None:
    """The control `drawn` and, if it is on, those of the sampling. Returns None if the output takes the likeliest tokens."""
    about = "Off: the output takes the likeliest token each time. On: each token is drawn, as on the page Generate."
    if not controls.switch("Draw the output", key="drawn", help=about):
        return None
    return sampling_controls()


def special_tokens_of(subject: Subject) -> SpecialTokensTokenizer:
    """The model's tokenizer; the page stops where that has no special tokens, or where the decoder has no blocks."""
    tokenizer = subject.lm.tokenizer
    if not subject.lm.model.config.n_layer:
        st.info(
            f"The decoder of {escaped(subject.key.name)} has no blocks and therefore no cross-attention: it never reads its "
            "source."
        )
        st.stop()
    if not isinstance(tokenizer, SpecialTokensTokenizer):
        st.error(
            f"{escaped(subject.key.name)} cannot write: its tokenizer is of the kind {tokenizer.kind}, which has no "
            "start and end tokens. Choose a model above that was trained here on sources and answers."
        )
        st.stop()
    return tokenizer


def limit(subject: Subject) -> str:
    """The reason for the length of the longest answer, as the end of a sentence that counts its tokens."""
    config = subject.lm.model.config
    return (
        "are shown here" if longest_answer(config) < config.context_length else "this model’s table of positions has places for"
    )


def output_control(subject: Subject, sampling: Sampling | None) -> Translation:
    """The control `output`: the model's own answer, drawn by `sampling` if given, unless another output is typed."""
    tokens, own = special_tokens_of(subject), answer_of(subject, sampling)
    typed = controls.text(
        "Output",
        key="output",
        longest=LONGEST_OUTPUT,
        label_visibility="collapsed",
        placeholder=f"Output: {tokens.decode(own.ids)[:80]} ({'drawn' if sampling else 'the model’s own'}; type another)",
        help=(
            "Leave this empty to see what the model writes: the likeliest token each time, unless the output is drawn. Type "
            "another output to see what the model would have written at each place of it."
        ),
    )
    encoding = tokens.encode_answer(typed[:LONGEST_OUTPUT])
    if not encoding.ids:
        return Translation(subject, (tokens.start, *own.written[:-1]), own.written, own.ended, "", sampling is not None)
    if encoding.unknown:
        controls.notices().warning(f"Output: {escaped(encoding.unknown_sentence())}", icon=":material/help:")
    most = longest_answer(subject.lm.model.config) - 1  # the start token has a place too
    if len(encoding.ids) > most:
        controls.notices().info(
            f"The output has {counted(len(encoding.ids), 'token')}: the first {most} are shown. After the start token no more "
            f"than {most} {limit(subject)}.",
            icon=":material/content_cut:",
        )
    forced = tuple(encoding.ids[:most])
    decoded = (tokens.start, *forced)
    guess = int(output_of(subject.key, subject.seen, decoded).logits[-1].argmax())
    return Translation(subject, decoded, (*forced, guess), True, typed)


def remark(translation: Translation) -> None:
    """Notes below the views: how likely the output is, where it comes from, and whether it ends."""
    sure = cross_attention.certainty(translation.computed.logits, translation.written)
    label = translation.subject.lm.tokenizer.label(translation.written[sure.place])
    st.caption(
        f"The model gives the whole output a probability of {percent(math.exp(sure.total))}; the token that it finds least "
        f"likely is “{escaped(label)}” at position {sure.place}: {percent(sure.probability)}."
    )
    if translation.typed:
        own = special_tokens_of(translation.subject).decode(answer_of(translation.subject).ids)
        st.caption(
            f"This output was typed, up to the last token, which is the model’s guess. By itself the model writes “"
            f"{escaped(own)}”: empty the field above to see that."
        )
    if not translation.ended:
        st.info(
            f"The output does not end by itself: it was stopped after {counted(len(translation.written), 'token')}, as many as "
            f"{limit(translation.subject)}.",
            icon=":material/content_cut:",
        )
