"""The frame every page stands in: menu, title, one sentence, and the bar that says which model reads which prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from gptviz.figures.theme import DARK, LIGHT, Theme
from gptviz.language_model import LanguageModel
from gptviz.learn import checkpoints, devices
from gptviz.learn.sources import TaskSource, source_from
from gptviz.text import Encoding

from . import controls, snapshots
from .cache import ModelKey, language_model, model_key


@dataclass(frozen=True)
class Page:
    """A page of the app, as menu and Home show it."""

    path: str
    title: str
    icon: str
    sentence: str


PAGES = {
    page.path: page
    for page in (
        Page("app.py", "Home", ":material/home:", "A prompt becomes tokens; tokens become a guess at the next one."),
        Page("pages/generate.py", "Generate", ":material/play_arrow:", "Watch text appear token by token, and steer it."),
        Page("pages/attention.py", "Attention", ":material/grid_on:", "What each head looks at, for every block and head."),
        Page(
            "pages/next_token.py",
            "Next token",
            ":material/bar_chart:",
            "How likely each next token is, and what sampling makes of it.",
        ),
        Page("pages/positions.py", "Positions", ":material/straighten:", "How the model knows the order of its tokens."),
        Page("pages/embeddings.py", "Embeddings", ":material/scatter_plot:", "The map of all tokens, as the model knows them."),
        Page("pages/train.py", "Train", ":material/model_training:", "Train a transformer, and watch it learn as it does."),
        Page("pages/runs.py", "Runs", ":material/stacked_line_chart:", "All models side by side, and how each of them learned."),
    )
}

DEFAULT_MODEL = "shakespeare"
# The prompt of the seed's pictures (Sinai 2024): Lysander and Hermia, A Midsummer Night's Dream, act 1, scene 1.
DEFAULT_PROMPT = "LYSANDER.\nHow now, my love? Why is your cheek so pale?\nHow chanc"
LONGEST_PROMPT = 100_000
_DEFAULT_SHOWN = "default prompt"


@dataclass(frozen=True)
class Subject:
    """What a page is about: which model reads which text.

    Attributes:
        key: the model, for cached functions.
        lm: the model; read-only, other sessions share it.
        prompt: the text the page is about: the prompt, or the default one where the prompt is empty.
        encoding: its tokens, and what the vocabulary lacks.
        seen: the part of its ids the model sees, at most `context_length` of them, never empty.
        default: the prompt that the page opens on: an example of the task, for a model trained on one.
    """

    key: ModelKey
    lm: LanguageModel
    prompt: str
    encoding: Encoding
    seen: tuple[int, ...]
    default: str = DEFAULT_PROMPT

    @property
    def on_task(self) -> bool:
        """Whether the model was trained on a task, so that ordinary text says little to it."""
        return self.default != DEFAULT_PROMPT

    @property
    def labels(self) -> tuple[str, ...]:
        """The visible forms of the tokens seen."""
        return tuple(self.lm.tokenizer.label(i) for i in self.seen)


def theme() -> Theme:
    """The theme the reader's browser shows."""
    return DARK if st.context.theme.type == "dark" else LIGHT


def page(path: str, title: str, sentence: str) -> None:
    """Start a page: configuration, menu, the question it answers and one sentence on what is seen."""
    st.set_page_config(page_title=f"{PAGES[path].title} · gptviz", page_icon="🔎", layout="wide")
    state = shared_state()
    with st.sidebar:
        st.markdown("### gptviz")
        for entry in PAGES.values():
            st.page_link(entry.path, label=entry.title, icon=entry.icon, help=entry.sentence, query_params=state)
    st.title(title, anchor=False)
    st.caption(sentence)


def shared_state() -> dict[str, str]:
    """What every page has in common, as a link carries it: model, step, prompt and device, where they are not the defaults."""
    prompt = st.session_state.get(_DEFAULT_SHOWN, DEFAULT_PROMPT)
    defaults = {"model": DEFAULT_MODEL, "step": snapshots.LAST, "prompt": prompt, "device": devices.devices()[0]}
    now = {key: st.session_state.get(key, st.query_params.get(key)) for key in defaults}
    state = {key: str(value) for key, value in now.items() if value is not None and value != defaults[key]}
    if "step" in state and not snapshots.kept(state.get("model", DEFAULT_MODEL), state["step"]):
        del state["step"]
    return state


def subject(*, needs_prompt: bool = True) -> Subject:
    """The bar: model, its step of training and prompt, the same on every page, all in the URL. Stops the page where there
    is nothing to show."""
    names = list(checkpoints.folders())
    if not names:
        st.error("There is no model to open. Train one: `python -m gptviz train generator --corpus FILE`.")
        st.stop()
    notices = st.container()
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    with left:
        name = controls.select(
            "Model",
            names,
            key="model",
            default=DEFAULT_MODEL,
            help="Every model in checkpoints/ and in your own folder of models.",
            notices=notices,
        )
    folder, card = _card(name)
    step = None
    if snapshots.steps(name):
        with right:
            middle, right = st.columns([7, 8], vertical_alignment="bottom")
        with middle:
            step = snapshots.scrubber(folder, card, notices)
    else:
        snapshots.without(notices)
    default = default_prompt(card)
    with right:
        prompt = prompt_box(default)
    device = device_box()
    try:
        key = model_key(name, device, step)
        lm = language_model(key)
    except (checkpoints.CheckpointError, MemoryError, RuntimeError) as error:
        other = "another model" if step is None else "another step or model"
        st.error(f"{error}. Choose {other} above." if str(error) else "There is not enough memory for this model.")
        st.stop()
    return read(key, lm, prompt, default, needs_prompt)


def _card(name: str) -> tuple[Path, dict[str, Any]]:
    """The folder of the model called `name` and its card, empty where it cannot be read."""
    try:
        folder = checkpoints.find(name)
        return folder, checkpoints.read_card(folder)
    except checkpoints.CheckpointError:
        return Path(), {}


def default_prompt(card: Mapping[str, Any]) -> str:
    """What the page shows before anybody types: an example of the task a model was trained on, else the seed's lines."""
    source = card.get("source")
    return _example(json.dumps(source)) if "task" in card and isinstance(source, dict) else DEFAULT_PROMPT


@st.cache_data(max_entries=32, show_spinner=False)
def _example(source: str) -> str:
    try:
        found = source_from(json.loads(source))
    except (ValueError, OSError):
        return DEFAULT_PROMPT
    return found.task.example_prompt() if isinstance(found, TaskSource) else DEFAULT_PROMPT


def prompt_box(default: str) -> str:
    """The control for the prompt. The default one follows the model: nobody typed it."""
    shown = st.session_state.get(_DEFAULT_SHOWN, DEFAULT_PROMPT)
    if st.session_state.get("prompt", default) != default and st.session_state["prompt"] in (shown, DEFAULT_PROMPT):
        st.session_state["prompt"] = default
    st.session_state[_DEFAULT_SHOWN] = default
    prompt = st.text_area(
        "Prompt",
        default,
        key="prompt",
        bind="query-params",
        height=68,
        max_chars=LONGEST_PROMPT,
        help="The text the model reads. Ctrl + Enter, or a click elsewhere, applies it. Shift + Enter is a new line.",
    )
    if prompt == DEFAULT_PROMPT != default:  # a link wrote it out
        st.rerun()
    return prompt or ""


def device_box() -> str:
    """The control for the device, in the side bar."""
    with st.sidebar:
        found = devices.devices()
        return controls.select(
            "Device",
            found,
            key="device",
            default=found[0],
            help="Where the model is computed. Every model opens on every device.",
        )


def read(key: ModelKey, lm: LanguageModel, prompt: str, default: str, needs_prompt: bool) -> Subject:
    """The prompt as the model reads it, with a line on everything it does not read as written."""
    if len(prompt) > LONGEST_PROMPT:
        st.warning(f"The prompt has {len(prompt):,} characters; the first {LONGEST_PROMPT:,} are kept.")
        prompt = prompt[:LONGEST_PROMPT]
    encoding = lm.tokenizer.encode(prompt)
    if not encoding.ids:
        if needs_prompt:
            st.info("The prompt is empty. Type at least one character above; until then the default prompt is shown.")
        prompt = default
        encoding = lm.tokenizer.encode(prompt)
    elif encoding.unknown and needs_prompt:
        st.warning(encoding.unknown_sentence(), icon=":material/help:")
    context = lm.model.config.context_length
    if len(encoding.ids) > context and needs_prompt:
        st.info(
            f"The prompt has {len(encoding.ids):,} tokens; this model sees {context} at a time: the last {context} are shown.",
            icon=":material/content_cut:",
        )
    return Subject(key, lm, prompt, encoding, tuple(encoding.ids[-context:]), default)
