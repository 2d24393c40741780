"""Two views into the watched model as it learns: where one of its heads looks, and its map of
tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from gptviz.components import head_pattern
from gptviz.figures.kit import scatter
from gptviz.figures.kit.format import format_count, percent
from gptviz.interp.reading import embeddings
from gptviz.interp.reading.attention import one_head
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model.costs.effort import n_parameters
from gptviz.runs import checkpoints
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.shell.subject.bar import default_prompt, prompt_box, read_prompt
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.views.run_bar import repeat_body
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import controls, escape_markdown, show_figure, theme
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.headings import heading

from .watch import engine
from .watched import newest_weights, watched_run

EVERY = 2.0  # seconds
HEIGHT = 320
MOST_PLACED = 80  # tokens on a small map
# With more parameters than this, looking at the weights would take time from the training.
MOST_PARAMETERS = 20_000_000
_MAP = "map shown"


@dataclass(frozen=True)
class ChosenHead:
    """Which head is shown: its stack ("encoder" or "decoder"), its block, and its number in the
    block.
    """

    stack: str
    block: int
    head: int


def look_inside(name: str, device: str) -> None:
    """The pattern of a head and the map of tokens, with the controls `stack`, `block`, `head` and
    `prompt` below them.
    """
    try:
        config = checkpoints.read_config(checkpoints.find(name))
        card = checkpoints.read_card(checkpoints.find(name))
    except checkpoints.CheckpointError as error:
        st.text(str(error))
        return
    default = default_prompt(config.kind, card)
    view = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        block = number = 0
        stack = encoder_decoder.DECODER
        if config.n_encoder_layer:
            with st.container(width=pixels(180)):
                stack = encoder_decoder.stack_control()
        n_layer = encoder_decoder.n_blocks(config, stack)
        if n_layer:
            with st.container(width=pixels(150)):
                block = controls.whole_number(
                    "Block",
                    0,
                    n_layer - 1,
                    key="block",
                    default=0,
                    help="Blocks are numbered from 0, beginning at the input.",
                )
            with st.container(width=pixels(150)):
                hint = "The heads of a block read side by side."
                number = controls.whole_number(
                    "Head", 0, config.n_head - 1, key="head", default=0, help=hint
                )
        head = ChosenHead(stack, block, number)
        with st.container(width="stretch"):
            prompt = prompt_box(default)
    with view:
        _views(name, device, prompt, default, head)
    for note in watched_run(name).card.notes:
        st.warning(escape_markdown(note), icon=":material/help:")
    if why := engine(watched_run(name)):
        st.caption(why)


def _views(name: str, device: str, prompt: str, default: str, head: ChosenHead) -> None:
    """The pattern and the map of the newest weights, again and again while the run is active."""

    def body() -> bool:
        run = watched_run(name)
        try:
            key = newest_weights(name, device)
            model = language_model(key).model
        except (checkpoints.CheckpointError, MemoryError, RuntimeError) as error:
            st.text(str(error))
            return run.is_active
        step = key.step if key.step is not None else run.card.steps
        left, right = st.columns(2, gap="medium")
        if n_parameters(model) > MOST_PARAMETERS:
            left.caption(
                "This model is too large to be looked into while it trains; the other pages open "
                "it."
            )
            return run.is_active
        at = f" after {format_count(step, 'step')}" if step is not None else ""
        at += f", in {escape_markdown(name)}" if run.twin is not None else ""
        with left:
            if model.encoder is not None:
                of = f" of the {head.stack}"
            else:
                of = ""
            has_blocks = encoder_decoder.n_blocks(model.config, head.stack)
            if has_blocks:
                title = f"**What head {head.head} of block {head.block}{of} looks at**{at}"
            else:
                title = "**No attention**"
            st.markdown(title)
            _pattern(key, prompt, default, head)
        with right:
            st.markdown(f"**How it arranges the tokens**{at}")
            # Some tokens of the vocabulary, placed by PCA of the embedding.
            vocabulary = tokens(key)
            some = embeddings.sample(len(vocabulary.labels), MOST_PLACED, 0)
            points, explained = embeddings.pca(
                embeddings.vectors(language_model(key).model, "embedding"), 2
            )
            axes = (
                Axis("token", tuple(vocabulary.labels[i] for i in some)),
                Axis("component", ("1", "2")),
            )
            # `points` [token, 2], turned or mirrored to match the map shown before: PCA does not
            # say which way is up.
            before = st.session_state.get(_MAP)
            if before is not None and before[0] == key.name and before[1].shape == points.shape:
                points = embeddings.align_points(points, before[1])
            st.session_state[_MAP] = key.name, points
            array = LabelledArray(points[some], axes, "coordinate")
            figure = scatter.cloud(
                array, [vocabulary.kinds[i] for i in some], theme(), height=HEIGHT
            )
            figure.update_layout(showlegend=False)
            show_figure(
                figure, key="knows", alt=f"A map of {format_count(len(some), 'token')} by PCA."
            )
            st.caption(f"PCA of the embedding: {percent(sum(explained))} of the variance.")
        return run.is_active

    repeat_body(body, EVERY, watched_run(name).is_active)


def _pattern(key: ModelKey, prompt: str, default: str, head: ChosenHead) -> None:
    """How much each token of the prompt reads of each other one, as a heat map."""
    lm = language_model(key)
    config = lm.model.config
    n_layer = encoder_decoder.n_blocks(config, head.stack)
    if not n_layer:
        if lm.kind.continues:
            alone = ": it guesses the next token only from the last one"
        else:
            alone = ""
        st.caption(f"This model has no blocks and therefore no attention{alone}.")
        return
    read = attention.stack_read(read_prompt(key, lm, prompt, default), head.stack)
    # The model may have changed since the controls were drawn.
    block = min(head.block, n_layer - 1)
    number = min(head.head, config.n_head - 1)
    reading = attention.reading_of(key, read, block)
    pattern = one_head(
        reading.patterns, block - reading.first, number, [*map(lm.tokenizer.label, read.ids)]
    )
    about = (
        f"How each of {format_count(len(read.ids), 'token')} shares its attention among them, in "
        "block "
        f"{block}, head {number}"
    )
    lines = attention.code_of_head(lm, read, block, number)
    head_pattern.head_pattern(head_pattern.payload(pattern, heading(about), lines), key="looks")
