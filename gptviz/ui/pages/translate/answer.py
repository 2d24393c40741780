"""What the Translate page computes, cached by model, source and output, and its controls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from gptviz.components.sampling_ledger import Payload, payload, sampling_ledger
from gptviz.components.token_strip import Token, token_strip
from gptviz.interp import cross_attention
from gptviz.interp.cross_attention import Output
from gptviz.interp.next_token import found
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer
from gptviz.ui.shell import pages, reading
from gptviz.ui.shell.models import ModelKey, language_model, load_call
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.views.encoder_decoder import DECODER, ENCODER, Answer, longest_answer
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.markdown import escaped

VIEWS = ("Cross-attention", "Next token", "Beam search")
LONGEST_OUTPUT = 10_000
# What a card says of a model that was trained on dates, and a date to try on it.
IN_WORDS = "july twenty-sixth, twelve ninety-five"

HOW_ATTENTION = r"""
$\text{pattern} = \text{softmax}\big(q\,k^\top / \sqrt{d_\text{head}}\big)$; each row sums to 1. In **cross-attention** the
queries come from the decoder, keys and values from the encoder's output, which is computed once per source. A row is called
by the token that is written there; its query comes from the token before it, the last that the decoder has read. The numbers
are what the taps `blocks.*.cross_attention.pattern`, `.q`, `.k` and `.v` saw in one forward pass (`read` in
`gptviz/interp/attention.py`; the equation in `gptviz/model/attention.py`). A mean is taken over the heads of a block. “Spread
over n tokens” is $e$ to the mean entropy of the rows. The two stacks read themselves too: see the Attention page."""
LIMITS_ATTENTION = """A line says where a head reads, not what it takes from there, nor whether that decides what is written.
A place of the encoder's output no longer holds its token alone, but what the encoder gathered there from the whole source. A
mean hides which head reads where: what one head reads alone and all others leave out is pale in it, and a pale spread in it
may be many sharp heads that read different places."""
HOW_NEXT = r"""
At each place the decoder gives every token a logit $z_i$; softmax makes it $p_i = e^{z_i} / \sum_j e^{z_j}$. All places are
computed in one forward pass from the output as it stands: the guess at a place depends on the source and on the tokens before it
alone, right or wrong (in training this is called *teacher forcing*). Entropy is $H = -\sum_i p_i \ln p_i$; perplexity is
$e^H$ (`gptviz.interp.cross_attention.read`, `gptviz.interp.next_token.predict`)."""
LIMITS_NEXT = """The model's own output takes the likeliest token at each place; the likeliest whole output may be another one
(see Beam search). A probability says what the model expects, not whether it is right."""


@dataclass(frozen=True)
class Shown:
    """A source and the output that the page is about.

    Attributes:
        subject: the model, and the source it reads.
        decoded: the ids the decoder reads, the start mark first.
        written: the ids written, one after each of these; the last may be only the model's guess.
        ended: whether the model's own answer ends; true where the output was typed.
        typed: the output that was typed, empty for the model's own.
    """

    subject: Subject
    decoded: tuple[int, ...]
    written: tuple[int, ...]
    ended: bool
    typed: str

    @property
    def computed(self) -> Output:
        """What the model computed for it."""
        return _output(self.subject.key, self.subject.seen, self.decoded)

    @property
    def cut(self) -> bool:
        """Whether source or output were longer than what is read of them."""
        config = self.subject.lm.model.config
        if self.typed:
            is_cut = len(self.subject.lm.tokenizer.encode(self.typed).ids) >= longest_answer(config)
        else:
            is_cut = Answer(self.written, self.ended).is_cut(config)
        return is_cut or len(self.subject.encoding.ids) >= config.context_length


# Two entries, as of `attention.view`: patterns may take hundreds of MB. Shared by all sessions: read-only.
@st.cache_resource(max_entries=2, show_spinner="Reading the source")
def _output(key: ModelKey, source: tuple[int, ...], decoded: tuple[int, ...]) -> Output:
    return cross_attention.read(language_model(key).model, source, decoded)


def _answer(subject: Subject) -> Answer:
    """The model's own answer."""
    found = tokenizer(subject)
    return encoder_decoder.answer(subject.key, subject.seen, found.start, found.end)


def limit(subject: Subject) -> str:
    """What sets the length of the longest answer, as the end of a sentence that counts its tokens."""
    config = subject.lm.model.config
    return (
        "are shown here" if longest_answer(config) < config.context_length else "this model’s table of positions has places for"
    )


def tokenizer(subject: Subject) -> SpecialTokensTokenizer:
    """The model's tokenizer; the page stops where it has no marks, or the decoder nothing to look into the source with."""
    found = subject.lm.tokenizer
    if not subject.lm.model.config.n_layer:
        st.info(f"The decoder of {escaped(subject.key.name)} has no blocks, hence no cross-attention: it never reads its source.")
        st.stop()
    if not isinstance(found, SpecialTokensTokenizer):
        st.error(
            f"{escaped(subject.key.name)} cannot write: its tokenizer is of the kind {found.kind}, which has no marks for start "
            "and end. Choose a model above that was trained here on sources and answers."
        )
        st.stop()
    return found


def shown(subject: Subject, notices: Any) -> Shown:
    """The control `output`: the model's own answer unless another output is typed, with a line on what is not as written.

    `notices` takes the lines.
    """
    marked, own = tokenizer(subject), _answer(subject)
    answer = own.ids
    asked = st.text_input(
        "Output",
        key="output",
        bind="query-params",
        max_chars=LONGEST_OUTPUT,
        label_visibility="collapsed",
        placeholder=f"Output: {marked.decode(answer)[:80]} (the model’s own; type another)",
        help="Empty: what the model writes, the likeliest token each time. Type another output to see what the model would have "
        "written at each place of it.",
    )
    encoding = marked.encode((asked or "")[:LONGEST_OUTPUT])
    if not encoding.ids:
        written = (*answer, marked.end) if own.ended else answer
        return Shown(subject, (marked.start, *written[:-1]), written, own.ended, "")
    if encoding.unknown:
        notices.warning(f"Output: {escaped(encoding.unknown_sentence())}", icon=":material/help:")
    most = longest_answer(subject.lm.model.config) - 1  # the start mark has a place too
    if len(encoding.ids) > most:
        notices.info(
            f"The output has {len(encoding.ids):,} tokens: the first {most} are shown. After the start mark no more than {most} "
            f"{limit(subject)}.",
            icon=":material/content_cut:",
        )
    forced = tuple(encoding.ids[:most])
    decoded = (marked.start, *forced)
    guess = int(_output(subject.key, subject.seen, decoded).logits[-1].argmax())
    return Shown(subject, decoded, (*forced, guess), True, asked or "")


def explorer(shown: Shown) -> None:
    """What the output reads in the source: the mean of the last block's heads first, where the way through it shows best."""
    config = shown.subject.lm.model.config
    read = attention.Read(attention.CROSS, shown.decoded, shown.subject.seen, shown.written)
    start = {"block": config.n_layer - 1, "head": 0, "heads": "mean" if config.n_head > 1 else "one"}
    attention.explore(shown.subject, read, attention.code_of_two(shown.subject, read), start)


def lead_on() -> None:
    """The way to the self-attention of the two stacks."""
    for stack, label in (
        (ENCODER, "What the source reads in itself"),
        (DECODER, "What the output reads in itself"),
    ):
        pages.link(pages.ATTENTION, label, query={**pages.shared_state(), "stack": stack})


def remark(shown: Shown) -> None:
    """Below the views, which it must not move: where the output comes from and whether it ends."""
    if shown.typed:
        own = tokenizer(shown.subject).decode(_answer(shown.subject).ids)
        st.caption(
            f"This output was typed, up to the last token, which is the model’s guess. By itself it writes “"
            f"{escaped(own)}”: empty the field above to see that."
        )
    if not shown.ended:
        st.info(
            f"The output does not end by itself: it was stopped after {len(shown.written)} tokens, as many as "
            f"{limit(shown.subject)}.",
            icon=":material/content_cut:",
        )


def position(shown: Shown, notices: Any) -> int:
    """The control `position`: at which token of the output."""
    return controls.whole(
        "Output position",
        0,
        len(shown.written) - 1,
        key="position",
        default=0,
        help="Which token of the output it is about, counted from 0. Or click one below.",
        notices=notices,
    )


def go_to(place: int) -> None:
    """Set the control `position`."""
    st.session_state["position"] = place


def strip(shown: Shown, position: int) -> None:
    """The output as chips, tinted by how likely the model found each; a click sets `position`."""
    label = shown.subject.lm.tokenizer.label
    logits = shown.computed.logits
    # The first of the ids has nothing before it; the last row, which nothing follows, is not looked at.
    seen = found(np.concatenate((logits, logits[-1:])), (shown.decoded[0], *shown.written))
    chips = []
    for place, token in enumerate(shown.written, 1):
        likely = [(label(int(i)), float(p)) for i, p in zip(seen.likely[place], seen.likely_probability[place], strict=True)]
        differs = int(seen.likely[place][0]) != token
        note = f"written after {label(shown.decoded[place - 1])}"
        chips.append(Token(label(token), float(seen.probability[place]), tuple(likely), note, mark=differs))
    token_strip(
        chips,
        key="output strip",
        selected=position,
        on_pick=go_to,
        label="The tokens of the output; choose one to see the guess made there",
        legend="how likely the model found each token" + ("; underlined: another is likelier" if shown.typed else ""),
        spaced=reading.is_spaced(shown.subject.lm),
    )


def ledger(shown: Shown, position: int) -> None:
    """What the model says may stand at `position`, over the whole vocabulary. Nothing is drawn: an answer takes the likeliest."""
    written = shown.written[position]
    sampling_ledger(_payload(shown.subject.key, shown.subject.seen, shown.decoded, written, position), key="ledger")


@st.cache_resource(max_entries=8, show_spinner=False)
def _payload(key: ModelKey, source: tuple[int, ...], decoded: tuple[int, ...], written: int, position: int) -> Payload:
    lm = language_model(key)
    labels = lm.tokenizer.labels()
    return payload(
        _output(key, source, decoded).logits[position],
        labels,
        about=(key, source, decoded, position),
        title=f"{key.name}, the token at position {position} of the output, after {labels[decoded[position]]}",
        code=(code_of_guess(key, source, decoded, position), ""),
        true=written,
        true_name="Written here:",
    )


def to_try(shown: Shown) -> list[tuple[str, str, dict[str, Any]]]:
    """Title, what to notice, and the state of each "Try this"."""
    hidden = cross_attention.hidden(shown.computed.cross, None)
    b, h = hidden.sharpest
    tries: list[tuple[str, str, dict[str, Any]]] = [
        (
            "The sharpest head",
            f"Block {b}, head {h} spreads its look least, over {hidden.sharpest_spread:.1f} source tokens. Walk down "
            "the output: which part of the source does it follow?",
            {"view": VIEWS[0], "output": "", **attention.ask(heads="one", block=b, head=h)},
        ),
        (
            "Every head",
            "Each head of the last block has a colour of its own: do they share the work, or all read the same?",
            {"view": VIEWS[0], **attention.ask(heads="all", block=shown.subject.lm.model.config.n_layer - 1)},
        ),
    ]
    if (wrong := _one_wrong(shown)) is not None:
        output, place = wrong
        about = "The output with one token that the model would not have written: how sure was it there, and how does it go on?"
        tries.append(("One wrong token", about, {"view": VIEWS[1], "output": output, "position": place}))
    source = shown.subject.lm.card.get("source")
    if isinstance(source, dict) and source.get("pair_task") == "dates":
        about = "Now the year stands in words and last, yet is written first: it begins at the far end, and reads 12 in twelve."
        state = {"prompt": IN_WORDS, "output": "", "view": VIEWS[0], **attention.ask(query=0)}
        tries.append(("In words", about, state))
    about = "Five outputs side by side. Below the line: what was cut and never came back. The thick path won."
    return [*tries, ("A wide beam", about, {"view": VIEWS[2], "width": 5, "output": ""})]


def _one_wrong(shown: Shown) -> tuple[str, int] | None:
    """The model's own answer with its middle token replaced by the second likeliest there, and that place; None where no text
    stands for that."""
    subject = shown.subject
    marked, answer = tokenizer(subject), _answer(subject).ids
    most = longest_answer(subject.lm.model.config)
    if not answer:
        return None
    place = len(answer) // 2
    logits = _output(subject.key, subject.seen, (marked.start, *answer)[:most]).logits[place]
    likely = [
        int(i) for i in np.argsort(-logits, kind="stable") if i not in (answer[place], marked.start, marked.end, marked.padding)
    ]
    if not likely:
        return None
    text = marked.decode([*answer[:place], likely[0], *answer[place + 1 :]][: most - 1])
    return (text, place) if len(marked.encode(text).ids) > place else None


def code_of_guess(key: ModelKey, source: tuple[int, ...], decoded: tuple[int, ...], position: int) -> str:
    """The lines of Python that compute what the model says may stand at `position`."""
    return f"""import gptviz
from gptviz.interp.cross_attention import read
from gptviz.interp.next_token import predict
from gptviz.generate.sampling import Sampling

lm = {load_call(language_model(key))}
# The ids of the source, and of the output from the start mark on.
output = read(lm.model, {source}, {decoded})
prediction = predict(output.logits[{position}], Sampling())
prediction.before  # [vocab_size]"""
