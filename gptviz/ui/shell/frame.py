"""The frame every page stands in: menu, title, one sentence, and the bar that says which model reads which prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from gptviz.figures.theme import DARK, LIGHT, Theme
from gptviz.language_model import LanguageModel
from gptviz.model import devices
from gptviz.model.config import Kind
from gptviz.runs import checkpoints
from gptviz.text import Encoding
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.markdown import escaped

from . import kinds, prompts, scrubber
from .cache import ModelKey, language_model, model_key


@dataclass(frozen=True)
class Page:
    """A page of the app, as menu and Home show it.

    Attributes:
        kinds: the kinds of models it is about; it opens on the model that shows the first of them best.
    """

    path: str
    title: str
    icon: str
    sentence: str
    kinds: tuple[Kind, ...] = kinds.KINDS


PAGES = {
    page.path: page
    for page in (
        Page("app.py", "Home", ":material/home:", "A prompt becomes tokens; tokens become a guess at the next one."),
        Page(
            "pages/generate.py",
            "Generate",
            ":material/play_arrow:",
            "Watch text appear token by token, and steer it.",
            kinds=("decoder",),
        ),
        Page("pages/attention.py", "Attention", ":material/grid_on:", "What each head looks at, for every block and head."),
        Page(
            "pages/next_token.py",
            "Next token",
            ":material/bar_chart:",
            "How likely each next token is, and what sampling makes of it.",
            kinds=("decoder",),
        ),
        Page(
            "pages/classify.py",
            "Classify",
            ":material/label:",
            "A text, its label, and exactly what each word adds to the decision.",
            kinds=("classifier",),
        ),
        Page(
            "pages/translate.py",
            "Translate",
            ":material/translate:",
            "Which part of one text a model reads while it writes another.",
            kinds=("encoder-decoder",),
        ),
        Page("pages/positions.py", "Positions", ":material/straighten:", "How the model knows the order of its tokens."),
        Page("pages/embeddings.py", "Embeddings", ":material/scatter_plot:", "The map of all tokens, as the model knows them."),
        Page(
            "pages/gradients.py",
            "Gradients",
            ":material/trending_down:",
            "How much of the gradient reaches the first block, with and without residual connections.",
        ),
        Page("pages/train.py", "Train", ":material/model_training:", "Train a transformer, and watch it learn as it does."),
        Page("pages/runs.py", "Runs", ":material/stacked_line_chart:", "All models side by side, and how each of them learned."),
    )
}

DEFAULT_MODEL = kinds.BEST["decoder"]
DEFAULT_PROMPT = prompts.LINES
LONGEST_PROMPT = 100_000
_DEFAULT_SHOWN, _OPEN = "default prompt", "page open"


@dataclass(frozen=True)
class Subject:
    """What a page is about: which model reads which text.

    Attributes:
        key: the model, for cached functions.
        lm: the model; read-only, other sessions share it.
        prompt: the text the page is about: the prompt, or the default one where the prompt is empty.
        encoding: its tokens, and what the vocabulary lacks.
        seen: the ids the model reads, at most `context_length` of them, never empty: a decoder's last ones, a classifier's
            first; what the encoder of an encoder–decoder reads, its end mark among it.
        default: the prompt that the page opens on: an example of what the model was trained on, where that is no text to
            go on with.
    """

    key: ModelKey
    lm: LanguageModel
    prompt: str
    encoding: Encoding
    seen: tuple[int, ...]
    default: str = DEFAULT_PROMPT

    @property
    def kind(self) -> Kind:
        """What the model makes of a text: its next token, a label, or another text."""
        return self.lm.model.config.kind

    @property
    def on_task(self) -> bool:
        """Whether the model was trained on something else than text to go on with: such text then says little to it."""
        return self.default != DEFAULT_PROMPT

    @property
    def labels(self) -> tuple[str, ...]:
        """The visible forms of the tokens seen."""
        return tuple(self.lm.tokenizer.label(i) for i in self.seen)


def theme() -> Theme:
    """The theme the reader's browser shows."""
    return DARK if st.context.theme.type == "dark" else LIGHT


def page(path: str, title: str | Mapping[Kind, str], sentence: str | Mapping[Kind, str]) -> None:
    """Start a page: configuration, menu, the question it answers and one sentence on what is seen, which may depend on the
    kind of the model asked for."""
    st.set_page_config(page_title=f"{PAGES[path].title} · gptviz", page_icon="🔎", layout="wide")
    if st.session_state.get(_OPEN) != path:
        st.session_state[_OPEN] = path
        _arrive()
    state = shared_state()
    with st.sidebar:
        st.markdown("### gptviz")
        for entry in PAGES.values():
            st.page_link(entry.path, label=entry.title, icon=entry.icon, help=entry.sentence, query_params=state)
    kind = kinds.of(checkpoints.folders().get(state.get("model", DEFAULT_MODEL))) or "decoder"
    st.title(title if isinstance(title, str) else title[kind], anchor=False)
    st.caption(sentence if isinstance(sentence, str) else sentence[kind])


def _arrive() -> None:
    """Open the model that the link to this page names, else the page's own default.

    Set by hand: on the way from page to page Streamlit drops what the last page's control was bound to from the query, though
    the link asks for it. The query that arrived has the last page's own part first, then the link's. And a control whose
    default differed from page to page would leave it out of the link.
    """
    context = get_script_run_ctx()
    asked = parse_qs(context.query_string if context else "").get("model", [default_model()])[-1]
    if asked in checkpoints.folders():
        st.session_state["model"] = asked
        if asked != DEFAULT_MODEL:
            st.query_params["model"] = asked


def shared_state() -> dict[str, str]:
    """What every page has in common, as a link carries it: model, step, prompt and device, where they are not the defaults."""
    prompt = st.session_state.get(_DEFAULT_SHOWN, DEFAULT_PROMPT)
    defaults = {"model": DEFAULT_MODEL, "step": scrubber.LAST, "prompt": prompt, "device": devices.devices()[0]}
    now = {key: st.session_state.get(key, st.query_params.get(key)) for key in defaults}
    state = {key: str(value) for key, value in now.items() if value is not None and value != defaults[key]}
    if "step" in state and not scrubber.kept(state.get("model", DEFAULT_MODEL), state["step"]):
        del state["step"]
    return state


def here() -> Page:
    """The page that is open."""
    return PAGES[st.session_state.get(_OPEN, "app.py")]


def default_model() -> str:
    """The model that the page open now shows unless asked otherwise."""
    return kinds.best(here().kinds[0])


def subject(*, needs_prompt: bool = True) -> Subject:
    """The bar: model, its step of training and prompt, the same on every page, all in the URL. Stops the page where there
    is nothing to show: no model, or one of a kind that the page is not about, with the way to the page that is."""
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
    if folder is not None and scrubber.steps(name):
        with right:
            middle, right = st.columns([7, 8], vertical_alignment="bottom")
        with middle:
            step = scrubber.scrubber(folder, card, notices)
    else:
        scrubber.without(notices)
    kind = kinds.of(folder)
    default = default_prompt(kind, card)
    with right:
        prompt = prompt_box(default)
    device = device_box()
    try:
        key = model_key(name, device, step)
        lm = language_model(key)
    except (checkpoints.CheckpointError, MemoryError, RuntimeError) as error:
        other = "another model" if step is None else "another step or model"
        st.error(f"{escaped(str(error))}. Choose {other} above." if str(error) else "There is not enough memory for this model.")
        st.stop()
    if lm.model.config.kind not in here().kinds:
        turn_away(name, lm.model.config.kind)
        st.stop()
    return read(key, lm, prompt, default, needs_prompt)


def _card(name: str) -> tuple[Path | None, dict[str, Any]]:
    """The folder of the model called `name` and its card; None and an empty one where they cannot be read."""
    try:
        folder = checkpoints.find(name)
        return folder, checkpoints.read_card(folder)
    except checkpoints.CheckpointError:
        return None, {}


def turn_away(name: str, kind: Kind) -> None:
    """Say that the page is not about models of this kind, as the model called `name` is, and lead to the page that is."""
    page, own = here(), PAGES.get(kinds.PAGE[kind])
    wanted = " or ".join(kinds.DOES[other] for other in page.kinds)
    st.info(
        f"{escaped(name)} is {kinds.A[kind]}: it {kinds.DOES[kind]}. This page is about a model that {wanted}.",
        icon=":material/info:",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        if own is not None:
            st.page_link(own.path, label=f"Open it on the page {own.title}", icon=own.icon, query_params=shared_state())
        instead = default_model()
        if kinds.of(checkpoints.folders().get(instead)) in page.kinds:
            controls.try_this(f"Stay here with {escaped(instead)}", "Another model, on this page.", model=instead)
        else:
            label, train = f"Train {kinds.A[page.kinds[0]]}", PAGES["pages/train.py"]
            query = {**shared_state(), "plan": kinds.BEST[page.kinds[0]]}
            st.page_link(train.path, label=label, icon=train.icon, query_params=query)


def default_prompt(kind: Kind | None, card: Mapping[str, Any]) -> str:
    """What the page shows before anybody types: an example of what a model was trained on, else the seed's lines."""
    source = card.get("source")
    return prompts.example(kind or "decoder", json.dumps(source if isinstance(source, dict) else {}))


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
            st.info(f"{_nothing(lm, prompt)}; until then the default prompt is shown.")
        prompt = default
        encoding = lm.tokenizer.encode(prompt)
    elif encoding.unknown and needs_prompt:
        st.warning(escaped(encoding.unknown_sentence()), icon=":material/help:")
    room = kinds.room(lm)
    if len(encoding.ids) > room and needs_prompt:
        which = "last" if lm.model.config.kind == "decoder" else "first"
        st.info(
            f"The prompt has {len(encoding.ids):,} tokens; this model sees {room} at a time: the {which} {room} are shown.",
            icon=":material/content_cut:",
        )
    return Subject(key, lm, prompt, encoding, tuple(kinds.seen(lm, encoding.ids)), default)


def _nothing(lm: LanguageModel, prompt: str) -> str:
    """Why there is no token in a prompt, and what to type."""
    if prompt.strip():
        return "The prompt has no word that this model reads. Type a word of two or more of the letters a to z above"
    return "The prompt is empty. Type at least one character above"
