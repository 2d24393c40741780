"""The subject of a page: the bar that chooses which model reads which prompt, and the prompt as the
model reads it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.figures.kit.format import duration, format_count
from gptviz.language_model import LanguageModel
from gptviz.lessons.real_model import opened_last
from gptviz.machine.hosting import hosting
from gptviz.model import devices
from gptviz.model.kinds import MODEL_KINDS, Kind, ModelKind
from gptviz.model.precision import PRECISIONS, STORED, describe_types
from gptviz.runs import checkpoints
from gptviz.runs.card import Card
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.widgets import controls, escape_markdown, tries
from gptviz.ui.widgets.headings import say_below_titles

from .. import frame
from ..frame import DEFAULT_MODEL, DEFAULT_PROMPT
from . import edits, hidden, kinds, long_prompts, prompts, reading, scrubber
from .chat_turn import chat_turn_button
from .model_list import model_groups, model_list, names_of, unfold_groups
from .models import ModelKey, Subject, language_model, model_key


def longest_prompt() -> int:
    """The most characters of a prompt that are read."""
    return hosting().longest_text


def subject_bar(*, needs_prompt: bool = True) -> Subject:
    """The bar with model, step of training and prompt: the same on every page, all in the URL.

    Messages of the page's controls stand below the bar. Stops the page if there is nothing to show:
    there is no model, or the page is not about models of its kind. In the second case links lead to
    the page for its kind, or to a model that fits.

    Args:
        needs_prompt: whether the page is about the prompt; else there are no notes on the parts
            that the model does not read.
    """
    groups = model_groups()
    if not groups:
        st.error(
            "There is no model to open. Train one: `python -m gptviz train generator --corpus "
            "FILE`."
        )
        st.stop()

    # where each part of the bar stands
    look: dict[str, Any] = {"horizontal": True, "vertical_alignment": "center", "gap": "small"}
    bar = st.container(key="one-line-subject", **look)
    about = st.container(key="about-the-model", **look)
    with about:
        tries.place_tries()
    notices = st.container()
    controls.notices_in(notices)

    # the model, and its step of training
    names = names_of(groups)
    if (before := st.session_state.get("model", names[0])) not in names:
        # Deleted, renamed or moved in another tab or program; the one that is shown instead is that
        # of the control above.
        notices.warning(
            f"There is no model “{escape_markdown(str(before))}” any more: the one named above is "
            "shown."
        )
    with bar:
        name = controls.select(
            "Model",
            unfold_groups(groups, before, st.query_params.get("model")),
            key="model",
            default=DEFAULT_MODEL,
            help="Your own models first, then those that came with gptviz. The list beside it has "
            "every model, and a line about it.",
        )
        folder, card = _card(name)
        model_list(groups, name, folder)
    hidden.say_what_hides([name])
    step = None
    if folder is not None and scrubber.steps(name):
        with about:
            step = scrubber.scrubber(folder, card, about)
    else:
        scrubber.without_snapshots()
    if folder is not None and checkpoints.is_adapter(folder):
        edits.strength_slider(bar)

    # the prompt, the device and the precision
    kind = MODEL_KINDS[kinds.kind_of(folder) or "decoder"]
    default = default_prompt(kind.name, card)
    with bar:
        prompt = prompt_box(default)
    if kind.continues and card.chat is not None:
        with about:
            chat_turn_button(card.chat, prompt)
    controls.notices_in()
    folded = settings_box()
    with folded:
        device = device_box()
        precision = precision_box()
    controls.notices_in(notices)

    # the model opened, with its edits
    try:
        key = model_key(name, device, step, precision)
        key = edits.edit_key(key, default, bar)
        lm = language_model(key)
    except (checkpoints.CheckpointError, MemoryError, RuntimeError) as error:
        if step is None:
            other = "another model"
        else:
            other = "another step or model"
        st.error(
            f"{escape_markdown(str(error))}. Choose {other} above."
            if str(error)
            else "There is not enough memory for this model."
        )
        st.stop()
    folded.caption(f"Its weights are in memory as {escape_markdown(describe_types(lm.model))}.")
    if lm.kind.name not in frame.current_page().kinds:
        explain_wrong_kind(name, lm.kind)
        st.stop()

    # what it reads, and the titles of what is printed
    subject = read_prompt(key, lm, prompt, default, needs_prompt=needs_prompt, is_main=True)
    if needs_prompt and subject.kind.continues:
        subject = _read_in_seconds(subject)
    if key.step is None:
        model = key.title
    else:
        model = f"{key.title}, step {key.step:,}"
    changed = [f"edits: {', '.join(key.edits)}"] if key.edits else []
    say_below_titles(
        model, subject.prompt if needs_prompt else "", [frame.current_page().title, *changed]
    )
    return subject


def _card(name: str) -> tuple[Path | None, Card]:
    """The folder of the model called `name` and its card; None and an empty card if they cannot be
    read.
    """
    try:
        folder = checkpoints.find(name)
        return folder, checkpoints.read_card(folder)
    except checkpoints.CheckpointError:
        return None, Card()


def explain_wrong_kind(name: str, kind: ModelKind) -> None:
    """Say that the page is not about models of this `kind`, that of the model called `name`. Links
    lead to the page about them, and to a model for this page.
    """
    page = frame.current_page()
    suitable_page = frame.page_about(kind.name)
    wanted = ", or that ".join(MODEL_KINDS[other].does for other in page.kinds)
    st.info(
        f"{escape_markdown(name)} is {kind.with_article}: it {kind.does}. This page is about a "
        "model that "
        f"{wanted}.",
        icon=":material/info:",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.link(suitable_page, f"Open it on the page {suitable_page.title}")
        instead = frame.default_model()
        if kinds.kind_of(checkpoints.folder_of(instead)) in page.kinds:
            st.button(
                f"Stay here with {escape_markdown(instead)}",
                on_click=open_model,
                args=(instead,),
                key="stay here",
            )
        else:
            query = {**frame.shared_state(), "plan": kinds.BEST[page.kinds[0]]}
            frame.link(TRAIN, f"Train {MODEL_KINDS[page.kinds[0]].with_article}", query=query)


def open_model(name: str) -> None:
    """Open a model; if it is the page's own, as if none had been chosen."""
    st.session_state["model"] = name
    st.session_state[frame.HAS_CHOSEN] = False


def default_prompt(kind: Kind, card: Card) -> str:
    """The prompt before anything is typed: an example of the model's training data, else some lines
    of a play. For a decoder trained by other people, a sentence of whole words: most of them read
    parts of words, not characters.
    """
    if MODEL_KINDS[kind].continues and card.imported_from is not None:
        return prompts.SENTENCE
    return prompts.example(kind, json.dumps(card.source or {}))


def prompt_box(default: str) -> str:
    """The control for the prompt. Until one is typed, it follows the default prompt of the
    model.
    """
    last_default = st.session_state.get(frame.DEFAULT_SHOWN, DEFAULT_PROMPT)
    st.session_state[frame.DEFAULT_SHOWN] = default
    return controls.text(
        "Prompt",
        default,
        key="prompt",
        help="The text the model reads. Ctrl + Enter, or a click elsewhere, applies it. Shift + "
        "Enter is a new line.",
        longest=longest_prompt(),
        height=68,
        # A link may contain the default prompt of another model.
        instead_of=(last_default, DEFAULT_PROMPT),
    )


def settings_box() -> DeltaGenerator:
    """Where the settings of the machine stand, folded, in the side bar."""
    return st.sidebar.expander("Settings", icon=":material/tune:")


def device_box() -> str:
    """The control for the device."""
    names = devices.devices()
    return controls.select(
        "Device",
        names,
        key="device",
        default=names[0],
        help="Where the model is computed. Every model opens on every device.",
    )


def precision_box() -> str:
    """The control for the precision."""
    return controls.select(
        "Precision",
        PRECISIONS,
        key="precision",
        default=STORED,
        help=(
            "What weights are multiplied in. “stored” is what the model's file has, where "
            "this machine can multiply in it; "
            "weights of 4 to 8 bits (GGUF) stay so in memory and are multiplied in bfloat16, or "
            "in 8 bits with gptviz[fast]. "
            "bfloat16 and float16 take half the memory of float32, and round every product to "
            "about two and three digits. "
            "All else, such as patterns and probabilities, is computed in float32. Weights "
            "that a file has in bfloat16 or "
            "float16 stay so in memory; where they are multiplied in float32, as “stored” "
            "does with float16, a token takes "
            "a third to a half longer to write than with a file in float32."
        ),
    )


def read_prompt(
    key: ModelKey,
    lm: LanguageModel,
    prompt: str,
    default: str,
    *,
    needs_prompt: bool = True,
    is_main: bool = False,
) -> Subject:
    """The prompt as the model reads it, with a line about each part that is not read as written;
    where the model `is_main`, the one that the page is about, one that reads all of it is offered.
    """
    if len(prompt) > (most := longest_prompt()):
        st.warning(f"The prompt has {len(prompt):,} characters; the first {most:,} are kept.")
        prompt = prompt[:most]
    encoding = reading.encode_text(
        lm, prompt, "until the prompt is changed, the default one is shown"
    )
    if encoding is None:
        prompt = default
        encoding = reading.encode_text(lm, default, "open another model above")
        if encoding is None:
            st.stop()
    elif len(encoding.ids) <= len(lm.tokenizer.before) + len(lm.tokenizer.after):
        if needs_prompt:
            st.info(f"{_why_no_tokens(lm, prompt)}; until then the default prompt is shown.")
        prompt = default
        encoding = lm.tokenizer.encode(prompt)
    elif encoding.unknown and needs_prompt:
        st.warning(escape_markdown(encoding.unknown_sentence()), icon=":material/help:")
        if is_main and lm.kind.continues:
            _offer_reader(prompt)
    capacity = reading.capacity(lm)
    if len(encoding.ids) > capacity and needs_prompt:
        which = "last" if lm.kind.continues else "first"
        st.info(
            f"The prompt has {format_count(len(encoding.ids), 'token')}; this model sees "
            f"{capacity} at "
            "a time: "
            f"it reads the {which} {capacity}.",
            icon=":material/content_cut:",
        )
    return Subject(key, lm, prompt, encoding, tuple(reading.tokens_read(lm, encoding.ids)), default)


def _offer_reader(prompt: str) -> None:
    """A button that opens a decoder which knows all of the prompt, if there is one: the real model
    that was opened last, else the one that reads letters.
    """
    for name in filter(None, (opened_last(), DEFAULT_MODEL)):
        if _knows_prompt(name, prompt):
            label = f"Read it with {escape_markdown(name)}, which knows all of it"
            st.button(
                label,
                on_click=open_model,
                args=(name,),
                icon=":material/swap_horiz:",
                key="open a reader",
            )
            return


@st.cache_data(max_entries=64, ttl=600, show_spinner=False)
def _knows_prompt(name: str, prompt: str) -> bool:
    """Whether the tokenizer of the model called `name` has a token for every part of the prompt."""
    try:
        return not checkpoints.read_tokenizer(checkpoints.find(name)).encode(prompt).unknown
    except (checkpoints.CheckpointError, ValueError):
        return False


def _read_in_seconds(subject: Subject) -> Subject:
    """The subject with as much of its prompt as is read in some seconds, or with all of it if the
    reader asks for that.
    """
    config = subject.lm.model.config
    count = len(subject.seen)
    most = long_prompts.read_in_seconds(config)
    if count <= most:
        return subject
    if why := long_prompts.too_little_memory(config, count, str(subject.lm.device)):
        return shorten_prompt(subject, most, why)
    needed = duration(long_prompts.seconds_to_read(config, count, str(subject.lm.device)))
    notice = st.container()
    hint = (
        f"One reading of them takes this model about {needed} on this machine. Some pages read a "
        "text several times."
    )
    if controls.switch(f"Read all {count:,} tokens", key=frame.WHOLE, help=hint):
        return subject
    with notice:
        return shorten_prompt(
            subject, most, f"To read all of them takes about {needed}, and longer on some pages"
        )


def shorten_prompt(subject: Subject, most: int, why: str) -> Subject:
    """The subject with only the last `most` tokens of its prompt, and a note with the reason;
    unchanged if it has no more.

    Args:
        subject: of a model that reads the end of a text.
        most: how many tokens are read at most.
        why: the reason, a sentence without its full stop.
    """
    count = len(subject.seen)
    if count <= most:
        return subject
    prompt, encoding = long_prompts.end_of(subject.lm, subject.prompt, subject.seen, most) or (
        subject.prompt,
        subject.encoding,
    )
    end = tuple(encoding.ids)[-most:]
    st.info(
        f"The prompt has {count:,} tokens. {why}: here the model reads the last {len(end):,}.",
        icon=":material/content_cut:",
    )
    left_off = subject.left_off + subject.prompt.removesuffix(prompt)
    return replace(subject, prompt=prompt, encoding=encoding, seen=end, left_off=left_off)


def _why_no_tokens(lm: LanguageModel, prompt: str) -> str:
    """Why there is no token in a prompt, and what to type."""
    if prompt.strip():
        return f"The prompt has {lm.tokenizer.without}. Type some text above"
    return "The prompt is empty. Type at least one character above"
