"""The tree of a text: its buttons, its picture, the clicks on it, and what it says."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from gptviz.components import generation_tree
from gptviz.components.generation_tree.finished import Finished
from gptviz.components.generation_tree.look import Ghost, Look
from gptviz.components.kit import Packed
from gptviz.figures.kit.format import format_count, percent
from gptviz.generate.repetition import loop_at_end
from gptviz.generate.sampling import Sampling
from gptviz.interp.reading.next_token import predict
from gptviz.language_model.core import end_tokens
from gptviz.language_model.writing import sequence_length
from gptviz.ui.shell.subject import Subject, load_call, scrubber
from gptviz.ui.widgets import Try, addresses, controls, escape_markdown, in_quotes, say_answer
from gptviz.ui.widgets.sampling import PLAIN

from .link import address, open_linked
from .writing import (
    ALTERNATIVES,
    MOST_NODES,
    MOST_TOKENS,
    Writing,
    begin,
    begin_again,
    begin_short,
    bring,
    fork,
    topic,
    written_with,
)

# Tokens a second of a playing text, and the seconds between two ticks.
SPEEDS = {"Slow": 2.5, "Medium": 20.0, "Fast": 400.0}
TICK = 0.1
# Of the tokens that end a text, how many the help of a control names.
MOST_ENDS_NAMED = 4
# The key of the session's state that asks for the text to be written once more, with the settings
# chosen.
# So many tokens of what was written are quoted in the sentence above it.
MOST_QUOTED = 16
WRITE_AGAIN = "write again"


class Picture:
    """The tree of a text as the browser's view takes it."""

    def __init__(self, writing: Writing) -> None:
        self.writing = writing
        self._ghosts: tuple[object, tuple[Ghost, ...]] = None, ()
        self._packed: tuple[object, Packed | None] = None, None
        self._finished = Finished()

    def pack_picture(self) -> Packed:
        """The same bytes as long as nothing changes."""
        writing = self.writing
        with writing.lock:
            state = (
                *writing.state,
                writing.playing,
                writing.is_full,
                writing.attention_of,
                writing.linked,
            )
            before, packed = self._packed
            if packed is None or before != state:
                packed = generation_tree.pack_tree(
                    writing.tree, self._look(), self._finished, writing.attention_of
                )
                self._packed = state, packed
            return packed

    def ghosts(self) -> tuple[Ghost, ...]:
        """The likeliest next tokens, under the present settings."""
        writing = self.writing
        with writing.lock:
            state = (writing.tree.current, writing.sampling)
            if self._ghosts[0] != state:
                never = writing.lm.tokenizer.unused_ids  # at the end of the vocabulary
                prediction = predict(writing.logits(), writing.sampling, never)
                before = prediction.before[: len(prediction.before) - len(never)]
                few = min(ALTERNATIVES, len(before))
                top = sorted(
                    np.argpartition(-before, few - 1)[:few].tolist(), key=lambda i: (-before[i], i)
                )
                ghosts = (
                    Ghost(i, float(before[i]), float(prediction.after[i]), str(prediction.cut[i]))
                    for i in top
                )
                self._ghosts = state, tuple(ghosts)
            return self._ghosts[1]

    def _look(self) -> Look:
        writing = self.writing
        return Look(
            writing.number,
            writing.labels,
            writing.lm.tokenizer.label,
            sampling_in_words,
            self.ghosts(),
            code="" if writing.playing else code(writing),
            playing=writing.playing,
            full=writing.is_full,
            spaced=writing.has_spaces,
            status=status(writing),
            heading=heading(writing),
            address=address(writing),
        )


def stops_at_end(subject: Subject) -> bool:
    """The control for whether the text stops at the end of the model's text, or of a sequence of
    its task, if there is one.
    """
    ends = end_tokens(subject.lm)
    whole = sequence_length(subject.lm)
    if not ends and whole is None:
        return True
    labels = " or ".join(
        subject.lm.tokenizer.label(token) for token in sorted(ends)[:MOST_ENDS_NAMED]
    )
    if ends:
        where = f"This model ends its text with {escape_markdown(labels)}"
    else:
        where = f"The sequences of its task have {whole} tokens"
    return controls.switch(
        "Stop at the end",
        key="stop",
        default=True,
        help=f"{where}. Off: a playing text goes on after that.",
    )


def current_writing(subject: Subject, sampling: Sampling, stops: bool = True) -> Writing:
    """The session's text; a new one where the model, the step or the prompt changed; in a new
    session, what the link asks for.
    """
    writing: Writing | None = st.session_state.get("writing")
    if writing is not None and writing.about == topic(subject):
        writing.sampling = sampling
        writing.stops = stops
        if writing.cut_short and not scrubber.PLAYER.is_playing:
            writing.cut_short = False
            begin(writing)
    else:
        fresh = Writing(subject, sampling)
        fresh.stops = stops
        writing = _replace_writing(writing, fresh)
        st.session_state["writing"] = writing
        st.session_state["picture"] = Picture(writing)
    if st.session_state.pop(WRITE_AGAIN, False):
        begin_again(writing)
    return writing


def _replace_writing(before: Writing | None, writing: Writing) -> Writing:
    """The new text `writing` in place of the one `before`."""
    if before is not None:
        _explain(before, writing)
    elif open_linked(writing):
        return writing
    if scrubber.PLAYER.is_playing:
        begin_short(writing)
        return writing
    begin(writing)
    if before is not None and _differ_by_edits(before, writing) and not before.is_untouched:
        bring(writing, before)
    return writing


def _explain(before: Writing, writing: Writing) -> None:
    """Say why another text is shown, where it is not another step of the same model and prompt."""
    (old, old_prompt), (new, prompt) = before.about, writing.about
    if _differ_by_edits(before, writing):
        if before.is_untouched:
            beside = ""
        else:
            beside = (
                f" The text from before stands beside it, as a branch {written_with(before.edits)}."
            )
        st.toast(
            f"The edits of the model have changed: it writes from the prompt again.{beside}",
            icon=":material/edit:",
        )
    elif (old.name, old_prompt) != (new.name, prompt):
        st.toast(
            "The model or the prompt has changed: a new text begins.", icon=":material/restart_alt:"
        )


def _differ_by_edits(before: Writing, writing: Writing) -> bool:
    """Whether two texts go on from the same prompt, by the same model with other edits."""
    (old, old_prompt), (new, prompt) = before.about, writing.about
    return (old.unedited, old_prompt) == (new.unedited, prompt)


def transport(writing: Writing) -> str:
    """The buttons that play, step and undo; the speed chosen."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _play_button(writing)
        st.button(
            "Step",
            icon=":material/skip_next:",
            on_click=writing.step_by_hand,
            key="one token",
            disabled=writing.is_full,
            help="Draw one token.",
            shortcut="Space",
        )
        st.button(
            "Undo",
            icon=":material/undo:",
            on_click=writing.undo,
            key="undo",
            disabled=not writing.length,
            help="One token back. What was written stays as a branch; a step draws the same token "
            "again.",
        )
        st.button(
            "Restart",
            icon=":material/restart_alt:",
            on_click=writing.restart,
            key="restart",
            disabled=not writing.length,
            help="Back to the prompt. What was written stays as a branch.",
        )
        return controls.select(
            "Speed",
            list(SPEEDS),
            key="speed",
            default="Medium",
            segmented=True,
            label_visibility="collapsed",
            help="How fast the text grows while it plays: 2.5 or 20 tokens a second, or as fast as "
            "the model can.",
        )


def _play_button(writing: Writing) -> None:
    # Two buttons with different keys: a click that arrives late must not do the opposite.
    if writing.playing:
        st.button(
            "Pause",
            icon=":material/pause:",
            on_click=writing.pause,
            key="pause",
            type="primary",
            help="Stop here.",
        )
        return
    st.button(
        "Play",
        icon=":material/play_arrow:",
        on_click=writing.play,
        key="play",
        type="primary",
        disabled=writing.is_full,
        help="Let the text grow by itself.",
    )


def show(writing: Writing, speed: str) -> None:
    """The tree; while the text plays, in a fragment that runs at regular times."""
    timed = writing.playing
    picture: Picture = st.session_state["picture"]
    config = writing.lm.model.config
    addresses.takes_all(generation_tree.address(config.n_layer, config.n_head))

    def body() -> None:
        if timed and writing.playing:
            writing.tick(SPEEDS["Fast" if writing.ahead else speed])
        if writing.playing != timed:
            st.rerun()
        say_answer(*answer(writing))
        generation_tree.generation_tree(
            picture.pack_picture(),
            key="tree",
            on_go=lambda event: _rerun_if(go_clicked(writing, event)),
            on_take=lambda event: _rerun_if(take_clicked(writing, event)),
            on_attend=lambda event: _rerun_if(attend_clicked(writing, event)),
        )

    st.fragment(body, run_every=TICK if timed else None)()


def _rerun_if(changed: bool) -> None:
    """Run the whole page where the text `changed`, since the buttons next to the tree depend on it
    too.
    """
    if changed:
        st.rerun()


def go_clicked(writing: Writing, event: object) -> bool:
    """Go to the token that was clicked, and return whether there is such a token."""
    return _at_click(writing, event, writing.go)


def _at_click(writing: Writing, event: object, act: Callable[[int], None]) -> bool:
    with writing.lock:
        if (node := generation_tree.place(event, writing.tree, writing.number)) is None:
            return False
        act(node)
        return True


def take_clicked(writing: Writing, event: object) -> bool:
    """Go on with another token, as `generation_tree.read_step` reads it, and return whether there
    is such a token.
    """
    with writing.lock:
        if (chosen := generation_tree.read_step(event, writing.tree, writing.number)) is None:
            return False
        writing.take(chosen[1], chosen[0])
        return True


def attend_clicked(writing: Writing, event: object) -> bool:
    """Show the attention of the step that was clicked, and return whether there is such a step."""
    return _at_click(writing, event, writing.attend)


def first_words(prompt: str, text: str) -> str:
    """How `text` begins, on one line, with the beginning of the word that the prompt breaks off
    in.
    """
    if text[:1].isalpha() and (broken := re.search(r"[^\W\d_]+$", prompt)):
        text = broken[0] + text
    return " ".join(text.split())


def answer(writing: Writing) -> tuple[str, str]:
    """How the text goes on; then how long it is, how often the likeliest token was drawn, and the
    least likely one: two texts, as Markdown.
    """
    path = writing.written_nodes
    if not path:
        return "Nothing is written yet: Play lets the model write, Step draws one token.", ""
    # between tokens that are whole words there is a space
    before = "" if writing.has_spaces else writing.prompt
    begins = first_words(before, writing.lm.tokenizer.continuation(writing.ids[:MOST_QUOTED]))
    written = f"It writes: {in_quotes(f'{begins} …' if len(path) > MOST_QUOTED else begins)}"
    tokens = format_count(len(path), "token")
    likeliest = sum(node.token == node.candidates[0].token for node in path if node.candidates)
    if likeliest == len(path):
        return written, f"The text goes on for {tokens}, always with the likeliest one."
    least = min(path, key=lambda node: node.logprob)
    place = least.position + 1 - len(writing.tree.prompt)
    counted = (
        f"The text goes on for {tokens}; the likeliest one was taken "
        f"{format_count(likeliest, 'time')}. "
        f"The least likely is {in_quotes(writing.lm.tokenizer.label(least.token))}, token "
        f"{place:,}, with {percent(math.exp(least.logprob))}: click it, and see what else could "
        "have come."
    )
    return written, counted


def explain_tree(writing: Writing) -> None:
    """Lines on what is not seen at a glance: repetition, the limits of the text and of its tree,
    and how people write what a task writes otherwise.
    """
    if not writing.playing and (loop := loop_at_end(writing.ids)) is not None:
        same = "token" if loop.length == 1 else f"{loop.length:,} tokens"
        st.caption(f"From token {loop.start + 1:,} on, the text repeats the same {same}.")
    if writing.is_at_end and not writing.playing:
        task = writing.lm.task
        if writing.ends_with_end_token:
            why = (
                "The model ended its text here, with "
                f"{escape_markdown(writing.lm.tokenizer.label(writing.ids[-1]))}"
            )
        else:
            why = (
                f"The sequences of its task have {sequence_length(writing.lm)} tokens: this one is "
                "complete"
            )
        if task:
            plainly = task.as_people_write(writing.document.strip())
        else:
            plainly = ""
        st.caption(
            f"{why}. Step and Play go on all the same."
            + (f" As people write it: {escape_markdown(plainly)}." if plainly else "")
        )
    if writing.is_full:
        st.info(
            f"The text has {MOST_TOKENS:,} tokens, the most this page keeps. Undo, restart or "
            "download it."
        )
    if writing.tree.dropped:
        st.caption(
            f"The tree keeps {MOST_NODES:,} tokens: {writing.tree.dropped:,} tokens at the ends "
            "of its oldest branches were "
            "removed."
        )


def tries(writing: Writing) -> list[Try]:
    """The suggestions for this text."""
    offers = []
    if writing.length:  # a branch takes nothing away: there is nothing to take back
        notice = (
            "Takes another token at a place where the model gave it nearly as high a probability, "
            "then goes on with the same "
            "random numbers. How soon do the two texts differ? Compare their log-probabilities "
            "per token, and click the pale "
            "branch to go over to it."
        )
        offers.append(Try("A fork", notice, act=lambda: fork(writing)))
    offers += [
        _write_again(
            writing,
            "Always the likeliest",
            "At temperature 0 nothing is drawn: the likeliest token is taken each time. Does the "
            "text begin to repeat itself? "
            "If it does, a line below the tree says so.",
            temperature=0.0,
        ),
        _write_again(
            writing,
            "Too hot",
            "At temperature 2 the probabilities are more alike, so that unlikely tokens (pale) "
            "are drawn more often. Compare the "
            "log-probability per token below the two branches.",
            temperature=2.0,
        ),
        _write_again(
            writing,
            "Only the two likeliest",
            "With top-k 2 a token is drawn from the two likeliest only: in the list of what may "
            "come next all others are struck "
            "out.",
            top_k=2,
        ),
    ]
    return offers


def _write_again(writing: Writing, title: str, notice: str, **settings: Any) -> Try:
    """The text once more from the prompt, with other settings. What was written stays as a branch;
    the way back leads to it.
    """

    def write_again() -> Callable[[], None]:
        before = writing.tree.current
        st.session_state[WRITE_AGAIN] = True
        return lambda: writing.go(before) if before in writing.tree.nodes else None

    return Try(title, notice, PLAIN | settings, act=write_again)


def memory(writing: Writing) -> str:
    """The memory of the cache of keys and values at the present length of the text, counted in its
    tensors, as Markdown.
    """
    with writing.lock:
        writing.logits()
        cache = writing.tree.generation.cache
        config = writing.lm.model.config
        if cache is None:
            return (
                "**Memory of keys and values.** Nothing is kept: this model looks ahead, so every "
                "new token changes the keys of "
                "all tokens before it, and each step computes the whole text."
            )
        if not (by_block := cache.bytes_by_block):
            return "**Memory of keys and values.** Nothing is kept: this model has no attention."
        heads = format_count(
            config.key_heads, "head" if config.key_heads == config.n_head else "key head"
        )
        blocks = format_count(config.n_layer, "block")
        held = format_count(cache.length, "token")
        each = cache.layers[0].keys.element_size()
    return f"""**Memory of keys and values.** Within the context, a step computes only the new token, because the keys and values
of the tokens already read are kept (the KV cache). The cache now holds {held}:

2 (a key and a value) · {blocks} · {heads} · {config.head_size} numbers a head · {held} ·
{each} bytes a number = **{sum(by_block):,} bytes**, of which {by_block[0]:,} in each block.

It has room for {config.context_length:,} tokens, the context."""


def code(writing: Writing) -> str:
    """The lines of Python that make the same tree."""
    return generation_tree.code(load_call(writing.lm), writing.prompt, writing.tree)


def heading(writing: Writing) -> dict[str, object]:
    """The heading of a picture of the tree: the model, the prompt, and how the branch on screen was
    chosen.
    """
    step = "" if writing.lm.step is None else f", step {writing.lm.step:,}"
    drawn = dict.fromkeys(node.drawn for node in writing.written_nodes if node.drawn is not None)
    by_hand = sum(node.drawn is None and not node.origin for node in writing.written_nodes)
    settings = [
        f"drawn with {sampling_in_words(sampling)}, seed {sampling.seed}" for sampling in drawn
    ]
    settings += [f"{format_count(by_hand, 'token')} chosen by hand"] if by_hand else []
    settings += dict.fromkeys(node.origin for node in writing.written_nodes if node.origin)
    if writing.edits:
        edits = f", {format_count(len(writing.edits), 'edit')}"
    else:
        edits = ""
    return {"model": writing.lm.name + step + edits, "prompt": writing.prompt, "settings": settings}


def sampling_in_words(sampling: Sampling) -> str:
    """The settings in a few words."""
    parts = [
        "the likeliest" if sampling.temperature == 0 else f"temperature {sampling.temperature:g}"
    ]
    parts += [f"top-k {sampling.top_k}"] if sampling.top_k else []
    parts += [f"top-p {sampling.top_p:g}"] if sampling.top_p else []
    return ", ".join(parts)


def status(writing: Writing) -> str:
    """How long the text is, how fast the model computes it, and what is never drawn."""
    rate = writing.speedometer.tokens_per_second
    unused = len(writing.lm.tokenizer.unused_ids)
    said = [format_count(writing.length, "token")]
    said += [f"computed at {rate:,.0f} a second"] if rate else []
    said += (
        [f"{format_count(unused, 'unused token')} of the vocabulary never drawn"] if unused else []
    )
    return ", ".join(said)
