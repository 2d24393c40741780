"""The text of the session on the page: its buttons, and its tree."""

from __future__ import annotations

import math

import streamlit as st

from gptviz.components import generation_tree
from gptviz.figures.kit.format import percent
from gptviz.generate.repetition import loop_at_end
from gptviz.generate.sampling import Sampling
from gptviz.ui.shell.subject import Subject, scrubber
from gptviz.ui.widgets import addresses, controls, escaped, in_quotes

from . import beginning, clicks, link
from .picture import Picture
from .shelf import shelf
from .tries import WRITE_AGAIN
from .writing import MOST_NODES, MOST_TOKENS, Topic, Writing, topic, written_with

# Tokens a second of a playing text, and the seconds between two ticks.
SPEEDS = {"Slow": 2.5, "Medium": 20.0, "Fast": 400.0}
TICK = 0.1
# Of the tokens that end a text, how many the help of a control names.
MOST_ENDS_NAMED = 4
# The key of the session's state with the keys of the trees that the session worked on.
_KEYS = "keys of trees"


def stops_at_end(subject: Subject) -> bool:
    """The control for whether the text stops where the model ends it, or where a sequence of its task does, for models that have
    such an end.
    """
    ends, whole = subject.lm.end_tokens, subject.lm.sequence_length
    if not ends and whole is None:
        return True
    labels = " or ".join(subject.lm.tokenizer.label(token) for token in sorted(ends)[:MOST_ENDS_NAMED])
    where = f"This model ends its text with {escaped(labels)}" if ends else f"The sequences of its task have {whole} tokens"
    return controls.switch(
        "Stop at the end",
        key="stop",
        default=True,
        help=f"{where}. Off: a playing text goes on after that.",
    )


def current_writing(subject: Subject, sampling: Sampling, stops: bool = True) -> Writing:
    """The session's text. Where the model, the step or the prompt changed, the text that the session had for them before, if it
    worked on it, or a new one; in a new session, what the link asks for.
    """
    writing: Writing | None = st.session_state.get("writing")
    if writing is not None and writing.about == topic(subject):
        writing.sampling, writing.stops = sampling, stops
        if writing.cut_short and not scrubber.PLAYER.is_playing:
            writing.cut_short = False
            beginning.begin(writing)
    else:
        fresh = Writing(subject, sampling)
        fresh.stops = stops
        writing = _another(writing, fresh)
        st.session_state["writing"] = writing
        st.session_state["picture"] = Picture(writing)
    if st.session_state.pop(WRITE_AGAIN, False):
        beginning.begin_again(writing)
    return writing


def _another(before: Writing | None, writing: Writing) -> Writing:
    """The new text `writing`, with what it opens on, in place of the one `before`."""
    keys: dict[Topic, str] = st.session_state.setdefault(_KEYS, {})
    if before is None:
        is_back = link.open_linked(writing)
    else:
        shelf().keep(before)
        if not before.is_untouched:
            keys[before.about] = before.key
        kept = shelf().find(keys.get(writing.about, ""), writing.about)
        is_back = kept is not None
        if kept is not None:
            writing.tree.restore(kept)
        _explain(before, writing, is_back)
    if is_back:
        return writing
    if scrubber.PLAYER.is_playing:
        beginning.begin_short(writing)
    else:
        beginning.begin(writing)
        if before is not None and _differ_by_edits(before, writing) and not before.is_untouched:
            beginning.bring(writing, before)
    return writing


def _differ_by_edits(before: Writing, writing: Writing) -> bool:
    """Whether two texts go on from the same prompt, by the same model with other edits."""
    (old, old_prompt), (new, prompt) = before.about, writing.about
    return (old.unedited, old_prompt) == (new.unedited, prompt)


def _explain(before: Writing, writing: Writing, is_back: bool) -> None:
    """Say why another text is shown, where it is not another step of the same model and prompt."""
    (old, old_prompt), (new, prompt) = before.about, writing.about
    if is_back:
        st.toast("Here is the text again that you worked on before.", icon=":material/undo:")
    elif _differ_by_edits(before, writing):
        beside = (
            "" if before.is_untouched else f" The text from before stands beside it, as a branch {written_with(before.edits)}."
        )
        st.toast(f"The edits of the model have changed: it writes from the prompt again.{beside}", icon=":material/edit:")
    elif (old.name, old_prompt) != (new.name, prompt):
        kept = "" if before.is_untouched else " Your text is kept: you find it again when you go back to its model and prompt."
        st.toast(f"The model or the prompt has changed: a new text begins.{kept}", icon=":material/restart_alt:")


def transport(writing: Writing) -> str:
    """The buttons that play, step and undo; the speed chosen."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _play_button(writing)
        st.button(
            "Step",
            icon=":material/skip_next:",
            on_click=writing.step_by_hand,
            key="one token",
            disabled=writing.full,
            help="Draw one token.",
            shortcut="Space",
        )
        st.button(
            "Undo",
            icon=":material/undo:",
            on_click=writing.undo,
            key="undo",
            disabled=not writing.length,
            help="One token back. What was written stays as a branch; a step draws the same token again.",
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
            help="How fast the text grows while it plays: 2.5 or 20 tokens a second, or as fast as the model can.",
        )


def _play_button(writing: Writing) -> None:
    # Two buttons with different keys: a click that arrives late must not do the opposite.
    if writing.playing:
        st.button("Pause", icon=":material/pause:", on_click=writing.pause, key="pause", type="primary", help="Stop here.")
        return
    st.button(
        "Play",
        icon=":material/play_arrow:",
        on_click=writing.play,
        key="play",
        type="primary",
        disabled=writing.full,
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
        generation_tree.generation_tree(
            picture.packed(),
            key="tree",
            on_go=lambda event: _rerun_if(clicks.go(writing, event)),
            on_take=lambda event: _rerun_if(clicks.take(writing, event)),
            on_attend=lambda event: _rerun_if(clicks.attend(writing, event)),
        )
        shelf().keep(writing)

    st.fragment(body, run_every=TICK if timed else None)()


def _rerun_if(changed: bool) -> None:
    """Run the whole page where the text `changed`, since the buttons next to the tree depend on it too."""
    if changed:
        st.rerun()


def explain_tree(writing: Writing) -> None:
    """Say what is not seen of the text at a glance: how often the likeliest token was drawn, that it repeats itself, that it, or
    its tree, is at its limit, and how people write what a task writes otherwise.
    """
    path = writing.tree.path()
    if not writing.playing and len(path) > 1:
        likeliest = sum(node.token == node.candidates[0].token for node in path if node.candidates)
        least = min(path, key=lambda node: node.logprob)
        place = least.position + 1 - len(writing.tree.prompt)
        st.caption(
            f"Each of its {len(path):,} tokens is the likeliest one at its place."
            if likeliest == len(path)
            else f"Of its {len(path):,} tokens {likeliest:,} are the likeliest one at their place. The least likely is "
            f"{in_quotes(writing.lm.tokenizer.label(least.token))}, token {place:,}, with {percent(math.exp(least.logprob))}: "
            "click it, and see what else could have come."
        )
    if not writing.playing and (loop := loop_at_end(writing.ids)) is not None:
        same = "token" if loop.length == 1 else f"{loop.length:,} tokens"
        st.caption(f"From token {loop.start + 1:,} on, the text repeats the same {same}.")
    if writing.is_at_end and not writing.playing:
        task = writing.lm.task
        if writing.ends_with_end_token:
            why = f"The model ended its text here, with {escaped(writing.lm.tokenizer.label(writing.ids[-1]))}"
        else:
            why = f"The sequences of its task have {writing.lm.sequence_length} tokens: this one is complete"
        plainly = task.as_people_write(writing.document.strip()) if task else ""
        st.caption(f"{why}. Step and Play go on all the same." + (f" As people write it: {escaped(plainly)}." if plainly else ""))
    if writing.full:
        st.info(f"The text has {MOST_TOKENS:,} tokens, the most this page keeps. Undo, restart or download it.")
    if writing.tree.dropped:
        st.caption(
            f"The tree keeps {MOST_NODES:,} tokens: {writing.tree.dropped:,} tokens at the ends of its oldest branches were "
            "removed."
        )
