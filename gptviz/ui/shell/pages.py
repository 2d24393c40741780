"""The pages of the app: the list of them, how a page starts, and how a link leads from one to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from gptviz.address_values import ANY
from gptviz.components import kit
from gptviz.components.history_steps import history_steps
from gptviz.components.popover_keys import popover_keys
from gptviz.memory import give_back
from gptviz.model import Config, devices
from gptviz.model.kinds import MODEL_KINDS, Kind
from gptviz.model.precision import STORED
from gptviz.runs import checkpoints
from gptviz.ui.widgets import addresses, buttons, controls, tries, visit
from gptviz.ui.widgets.headings import say_below_titles

from . import edits, glossary, kinds, lesson, present, prompts, scrubber, sent, server_log, tour
from .share import share


@dataclass(frozen=True)
class Page:
    """A page of the app, as the menu and Home show it.

    Attributes:
        path: its script, as Streamlit names it.
        sentence: what it shows.
        step: why to read it after the pages before it, as the last line of the page before says.
        kinds: the kinds of models it is about; it opens on the model that shows the first of them best.
        has_what_it_shows: whether a model with this configuration has the parts that the page is about.
    """

    path: str
    title: str
    icon: str
    sentence: str
    step: str = ""
    kinds: tuple[Kind, ...] = tuple(MODEL_KINDS)
    has_what_it_shows: Callable[[Config], bool] = lambda _: True


def _has_blocks(config: Config) -> bool:
    return config.n_layer > 0


def _has_neurons(config: Config) -> bool:
    return config.n_layer > 0 and config.mlp_size > 0


HOME = Page("app.py", "Home", ":material/home:", "A prompt becomes tokens; tokens become a guess at the next one.")
GENERATE = Page(
    "pages/generate.py",
    "Generate",
    ":material/play_arrow:",
    "Watch text appear token by token, and steer it.",
    step="A text is many such guesses, one after the other: watch it grow, and take another turn.",
    kinds=("decoder",),
)
ATTENTION = Page(
    "pages/attention.py",
    "Attention",
    ":material/grid_on:",
    "What each head looks at, for every block and head.",
    step="In attention the tokens read each other: see which token reads which, head by head.",
    has_what_it_shows=_has_blocks,
)
LESSONS = Page(
    "pages/lessons.py",
    "Lessons",
    ":material/school:",
    "From “what is a token” to “which head moved the name”, step by step beside the live pages.",
    step="A short lesson leads through all of this, step by step.",
)
NEXT_TOKEN = Page(
    "pages/next_token.py",
    "Next token",
    ":material/bar_chart:",
    "How likely each next token is, and how sampling changes that.",
    step="The guess is a draw: see how likely every token is, and what temperature does to the draw.",
    kinds=("decoder",),
)
CLASSIFY = Page(
    "pages/classify.py",
    "Classify",
    ":material/label:",
    "A text, its label, and what each word does for the decision.",
    step="The model gives a whole text a label: see which words decide.",
    kinds=("classifier",),
)
TRANSLATE = Page(
    "pages/translate.py",
    "Translate",
    ":material/translate:",
    "Which part of one text a model reads while it writes another.",
    step="The answer is written token by token: see which part of the source each of them reads.",
    kinds=("encoder-decoder",),
)
POSITIONS = Page(
    "pages/positions.py",
    "Positions",
    ":material/straighten:",
    "How the model knows the order of its tokens.",
    step="An embedding does not say where its token stands: see how the model knows the order.",
)
EMBEDDINGS = Page(
    "pages/embeddings.py",
    "Embeddings",
    ":material/scatter_plot:",
    "The map of all tokens, as the model knows them.",
    step="Inside the model a token first becomes a vector: see which tokens lie close together.",
)
GRADIENTS = Page(
    "pages/gradients.py",
    "Gradients",
    ":material/trending_down:",
    "How much of the gradient reaches the first block, with and without residual connections.",
    step="A model is a stack of many blocks: see why it can be trained at all.",
)
LENS = Page(
    "pages/lens.py",
    "Logit lens",
    ":material/layers:",
    "What the model would guess if it stopped after any of its layers.",
    step="A guess is not made at once: see it come about, layer by layer.",
    kinds=("decoder", "encoder-decoder"),
)
ATTRIBUTION = Page(
    "pages/attribution.py",
    "Attribution",
    ":material/account_tree:",
    "What every head, MLP and bias adds to the score of a token.",
    step="Every part writes into the stream that the guess is read from: see which of them speak for it.",
)
PATCHING = Page(
    "pages/patching.py",
    "Patching",
    ":material/healing:",
    "Which piece of the model's computation carries an answer from one prompt to another.",
    step="Two prompts have two answers: find the piece of the computation that makes the difference.",
    kinds=("decoder",),
    has_what_it_shows=_has_blocks,
)
SWITCH_OFF = Page(
    "pages/switch_off.py",
    "Switch off",
    ":material/power_settings_new:",
    "The model without a head, an MLP, a neuron or its positions.",
    step="Which parts does a guess need? Switch some off, and see what changes.",
    has_what_it_shows=_has_blocks,
)
CONTEXT = Page(
    "pages/context.py",
    "Context",
    ":material/width_wide:",
    "How many earlier tokens the model uses, and which of them each guess needs.",
    step="A guess comes from what was read before: see how much of it the model uses.",
    kinds=("decoder",),
)
COMPARE = Page(
    "pages/compare.py",
    "Compare",
    ":material/compare_arrows:",
    "Two prompts, steps of training, models or sets of edits side by side, and the difference.",
    step="A picture says more beside another one: compare two prompts, steps, models or edits, and see what is different.",
    kinds=("decoder",),
)
COSTS = Page(
    "pages/costs.py",
    "Size and cost",
    ":material/calculate:",
    "What the model takes: parameters, operations, memory and time, as formulas.",
    step="What does all this take? Count parameters, operations and memory, and what training it here would cost.",
)
HEADS = Page(
    "pages/heads.py",
    "Heads",
    ":material/manage_search:",
    "What each head does: every head scored, and which heads read each other.",
    step="A model has many heads: find those that do what heads are known to do.",
    has_what_it_shows=_has_blocks,
)
STREAM = Page(
    "pages/stream.py",
    "Residual stream",
    ":material/waves:",
    "What each part writes into a token's vector, and where the vectors of a text lie.",
    step="Every part writes into one vector per token: see how much each writes, and how the vectors turn.",
    kinds=("decoder", "encoder-decoder"),
    has_what_it_shows=_has_blocks,
)
NEURONS = Page(
    "pages/neurons.py",
    "Neurons",
    ":material/blur_on:",
    "What makes each neuron active, what it speaks for, and what changes if it is set by hand.",
    step="Between its heads a block has an MLP: see what its neurons are for, and set one by hand.",
    kinds=("decoder", "classifier"),
    has_what_it_shows=_has_neurons,
)
CIRCUIT = Page(
    "pages/circuit.py",
    "Circuit",
    ":material/account_tree:",
    "The parts that one guess owes most to, as a graph from its tokens to the logit.",
    step="Parts work together: see which of them make one guess, and what each reads of the others.",
    kinds=("decoder",),
)
OPEN_MODEL = Page(
    "pages/open_model.py",
    "Open a model",
    ":material/folder_open:",
    "Open a model of another program: from this machine, or from the Hugging Face hub.",
    step="All this works for models that others trained, too: open one of them.",
)
TRAIN = Page(
    "pages/train.py",
    "Train",
    ":material/model_training:",
    "Train a transformer, and watch it learn as it does.",
    step="None of this was built in, all of it was learned: train a small model, and watch.",
)
RUNS = Page(
    "pages/runs.py",
    "Runs",
    ":material/stacked_line_chart:",
    "All models side by side, and how each of them learned.",
    step="Now compare models: see what each part is worth.",
)

# The groups of the menu, and their pages in the order in which a newcomer reads them.
GROUPS: dict[str, tuple[Page, ...]] = {
    "From outside": (HOME, LESSONS, NEXT_TOKEN, GENERATE, CLASSIFY, TRANSLATE),
    "What it is made of": (EMBEDDINGS, POSITIONS, ATTENTION, GRADIENTS),
    "Take it apart": (LENS, ATTRIBUTION, STREAM, HEADS, NEURONS, SWITCH_OFF, PATCHING, CIRCUIT, CONTEXT, COMPARE, COSTS),
    "Your models": (OPEN_MODEL, TRAIN, RUNS),
}
PAGES = {page.path: page for group in GROUPS.values() for page in group}

DEFAULT_MODEL = kinds.BEST["decoder"]
DEFAULT_PROMPT = prompts.LINES
# Keys of the session's state: the default prompt of the model shown last, and the page that is open.
DEFAULT_SHOWN, OPEN_PAGE = "default prompt", "page open"
# In the address: whether all of a long prompt is read.
WHOLE = "whole"
# What the address of any page may say, also of one that does not show it: links carry it from page to page.
SHARED = ("model", "step", "prompt", "device", "precision", WHOLE, edits.EDITS, edits.TEXT, *lesson.KEYS, present.PRESENT)


def page_about(kind: Kind) -> Page:
    """The page that shows what a model of this kind does: the first that is about this kind alone."""
    return next(page for page in PAGES.values() if page.kinds == (kind,))


def current_page() -> Page:
    """The page that is open."""
    return PAGES[st.session_state.get(OPEN_PAGE, HOME.path)]


def default_model() -> str:
    """The model that the open page shows unless another one is asked for."""
    return kinds.best_model(current_page().kinds[0])


def open_page(page: Page, title: str | Mapping[Kind, str], sentence: str | Mapping[Kind, str]) -> None:
    """Start a page: configuration, menu, the question it answers and one sentence on what it shows. Both may depend on the kind
    of the model asked for.
    """
    server_log.protect()
    sent.whole()
    give_back()  # what the page before needed
    _follow_history()
    st.set_page_config(page_title=f"{page.title} · gptviz", page_icon="🔎", layout="wide", initial_sidebar_state=_sidebar())
    if st.session_state.get(OPEN_PAGE) != page.path:
        st.session_state[OPEN_PAGE] = page.path
        tries.forget()
        controls.forget_texts()
        buttons.forget_pressed()
        visit.forget()
        _open_linked_model()
    addresses.forget_taken()
    addresses.takes_all(dict.fromkeys(SHARED, ANY))
    say_below_titles()  # until the page has a subject
    is_presenting = present.is_presenting()
    st.html(f"<style>{kit.page_style(lesson=lesson.opened() is not None, presenting=is_presenting)}</style>")
    present.listen()
    state = shared_state()
    with st.sidebar:
        st.markdown("## gptviz")
        with st.expander("All pages") if lesson.panel() or is_presenting else st.container():
            _menu()
        with st.container(gap=None):  # nothing of them is seen
            history_steps(key="history steps")
            popover_keys(key="popover keys")
            lesson.bring_into_sight()
    kind = kinds.kind_of(checkpoints.folders().get(state.get("model", DEFAULT_MODEL))) or "decoder"
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.title(title if isinstance(title, str) else title[kind], anchor=False, width="content")
        with st.container(horizontal=True, width="content", gap="xsmall"):
            tour.tour_button(page.path)
            glossary.words_button(page.path)
            share("home" if page == HOME else Path(page.path).stem)
    st.caption(sentence if isinstance(sentence, str) else sentence[kind])


def _follow_history() -> None:
    """Where the visitor went back or forward in the browser's history, show what the address says, and nothing of the page left.

    On the way from page to page Streamlit drops from the query what a control of the page left was bound to, and a control of
    the same key would show its default. That is right for a link, which gets those values too; here they are the page's own.
    """
    context = get_script_run_ctx()
    if context is None or not context.is_history_navigation:
        return
    for key in SHARED:
        st.session_state.pop(key, None)
    with context.session_state.query_params() as arrived:
        arrived.set_initial_query_params(context.query_string)
    asked = parse_qs(context.query_string, keep_blank_values=True)
    # How the page is embedded in another one is Streamlit's own.
    dropped = {key: asked[key] for key in asked if key not in st.query_params and not key.lower().startswith("embed")}
    if dropped:
        st.query_params.update(dropped)


def _sidebar() -> Literal["auto", "expanded", "collapsed"]:
    """How the side bar begins: open where it has a lesson, on a phone too; else closed in front of a class."""
    if lesson.is_asked():
        return "expanded"
    return "collapsed" if present.is_presenting() else "auto"


def _menu() -> None:
    """The links to all pages."""
    state = shared_state()
    for group, entries in GROUPS.items():
        with st.container(gap="xxsmall"):
            st.caption(f"**{group}**")
            for entry in entries:
                link(entry, description=entry.sentence, query=state)


def _open_linked_model() -> None:
    """Open the model that the link to this page names, else the page's own default.

    This is set by hand: on the way from page to page Streamlit drops from the query what a control of the last page was bound
    to, though the link asks for it. The query that arrived has the last page's own part first, then the link's. A control
    whose default differed from page to page would leave the model out of the link.
    """
    context = get_script_run_ctx()
    asked = parse_qs(context.query_string if context else "").get("model", [default_model()])[-1]
    if asked in checkpoints.folders():
        st.session_state["model"] = asked
        if asked != DEFAULT_MODEL:
            st.query_params["model"] = asked


def shared_state() -> dict[str, str]:
    """What all pages share, as a link carries it: model, step, prompt and whether all of it is read, device, precision and edits,
    where they are not the defaults, and the lesson that is open.
    """
    prompt = st.session_state.get(DEFAULT_SHOWN, DEFAULT_PROMPT)
    defaults = {"model": DEFAULT_MODEL, "step": scrubber.LAST, "prompt": prompt, "device": devices.devices()[0]}
    defaults |= {"precision": STORED, WHOLE: "False"}
    now = {key: st.session_state.get(key, st.query_params.get(key)) for key in defaults} | {"prompt": controls.in_link("prompt")}
    now |= {edits.EDITS: st.query_params.get(edits.EDITS), edits.TEXT: controls.in_link(edits.TEXT)}
    state = {key: str(value) for key, value in now.items() if value is not None and value != defaults.get(key, "")}
    if "step" in state and not scrubber.has_step(state.get("model", DEFAULT_MODEL), state["step"]):
        del state["step"]
    return state | lesson.state() | present.state()


def link(page: Page, label: str | None = None, *, description: str | None = None, query: Mapping[str, str] | None = None) -> None:
    """A link to `page`.

    Args:
        label: the page's title unless given.
        description: a sentence shown when the pointer rests on the link.
        query: what the link asks for; the shared state unless given.
    """
    state = dict(shared_state() if query is None else query)
    st.page_link(page.path, label=label or page.title, icon=page.icon, help=description, query_params=state)
