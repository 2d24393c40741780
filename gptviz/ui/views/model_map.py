"""The map of the model at the top of Home: its content for a model and a prompt, and the effect of
a click on it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st
import torch

from gptviz.components import model_map as view
from gptviz.components.kit import fingerprint, pack
from gptviz.components.token_strip import Token
from gptviz.interp.reading.anatomy import Anatomy, Box, BoxTensor, anatomy, values
from gptviz.interp.trace import Trace, run
from gptviz.interp.units.unit import Unit, unit
from gptviz.language_model import LanguageModel
from gptviz.model import Config, Transformer, Watch, read_in_passes
from gptviz.model.kinds import ModelKind
from gptviz.settings.address_values import declare_values
from gptviz.ui.page import Page
from gptviz.ui.records.attention import PAGE as ATTENTION
from gptviz.ui.records.classify import PAGE as CLASSIFY
from gptviz.ui.records.embeddings import PAGE as EMBEDDINGS
from gptviz.ui.records.next_token import PAGE as NEXT_TOKEN
from gptviz.ui.records.positions import PAGE as POSITIONS
from gptviz.ui.records.translate import PAGE as TRANSLATE
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, load_call, opening, reading
from gptviz.ui.views import append_token, edits, encoder_decoder
from gptviz.ui.views.guesses import added_by_parts
from gptviz.ui.views.read import PromptRead, read_by
from gptviz.ui.widgets import addresses, jobs

# Keys of the session's state: the map, the tensor looked at last, and whether its box was closed
# since.
KEY = "map"
_LOOK = "map look"
_SHUT = "map shut"
# The beginning of the path of a box in a block.
_SUBLAYER = re.compile(r"(encoder\.)?blocks\.[0-9]+\.(attention|cross_attention|mlp)(?=\.)")


@st.cache_resource(max_entries=32, show_spinner=False)
def anatomy_of(key: ModelKey, tokens: int, source: int) -> Anatomy:
    """The anatomy of a model that reads this many tokens. Read-only, other sessions share it."""
    return anatomy(language_model(key).model.config, tokens, max(1, source))


def page_of(box: Box) -> tuple[Page, dict[str, str]] | None:
    """The page that shows what a box computes, and the query of the link to it; None for a box
    without a page.
    """
    stack, place = (
        ("encoder", box.path.removeprefix("encoder."))
        if box.path.startswith("encoder.")
        else ("decoder", box.path)
    )
    if ".cross_attention." in place:
        return TRANSLATE, {"block": place.split(".")[1]}
    if box.part in ("positions", "turn", "distance"):
        return POSITIONS, {}
    if ".attention." in place:
        return ATTENTION, {"block": place.split(".")[1], "stack": stack}
    return {
        "ids": (NEXT_TOKEN, {}),
        "embed": (EMBEDDINGS, {}),
        "memory": (TRANSLATE, {}),
        "logits": (NEXT_TOKEN, {}),
        "shares": (CLASSIFY, {}),
        "number": (CLASSIFY, {}),
        "pooled": (CLASSIFY, {}),
    }.get(box.part)


def page_for(box: Box, kind: ModelKind) -> tuple[Page, dict[str, str]] | None:
    """The page that shows what a box computes, if that page is about models of this kind: see
    `page_of`.
    """
    destination = page_of(box)
    if destination is None:
        return None
    page, query = destination
    if page is NEXT_TOKEN:
        if kind.name in page.kinds:
            page = page
        else:
            page = frame.page_about(kind.name)
    if kind.name not in page.kinds:
        return None
    suitable = {name: value for name, value in query.items() if kind.has_source or name != "stack"}
    return page, suitable


def like_blocks(config: Config) -> dict[str, list[int]]:
    """For each stack and each of its blocks, the number of the first block that is the same except
    for the names of its tensors.

    The first block differs from the others in what it reads; blocks with a window differ from those
    without.
    """

    def first_like(block: int) -> int:
        return next(
            one
            for one in range(min(1, block), block + 1)
            if config.has_window(one) == config.has_window(block)
        )

    return {
        "encoder.": [min(1, block) for block in range(config.n_encoder_layer)],
        "": [first_like(block) for block in range(config.n_layer)],
    }


def _is_sent(path: str, blocks: Mapping[str, Sequence[int]]) -> bool:
    """Whether a box is sent to the browser. Of blocks that are the same only the first is sent:
    `blocks` is from `like_blocks`.
    """
    stack = "encoder." if path.startswith("encoder.") else ""
    place = path.removeprefix(stack)
    return not place.startswith("blocks.") or int(place.split(".")[1]) in blocks[stack]


@jobs.resource("Reading the prompt", max_entries=8)
def patterns(key: ModelKey, read: PromptRead) -> dict[str, npt.NDArray[np.uint8]]:
    """Thumbnails of the patterns of each kind of attention [block, head, query, key], for as many
    blocks and heads as fit.
    """
    lm = language_model(key)
    ids, source = read.tensors(lm.device)
    small: dict[str, dict[str, list[npt.NDArray[np.uint8]]]] = {
        "encoder": {},
        "decoder": {},
        "cross": {},
    }

    def see(name: str, value: torch.Tensor) -> None:
        if name.startswith("encoder."):
            kind = "encoder"
        elif ".cross_attention." in name:
            kind = "cross"
        else:
            kind = "decoder"
        heads = min(value.shape[1], view.MOST_HEADS)
        if name in small[kind] or len(small[kind]) < view.MOST_THUMBNAILS // heads:
            mask = whole = None
            if kind == "decoder":
                mask = _hidden_keys(lm.model, name, value)
                whole = (len(read.ids), len(read.ids))
            small[kind].setdefault(name, []).append(
                view.thumbnails(value[0, :heads].float().cpu().numpy(), mask, whole)
            )

    with torch.inference_mode():
        if lm.model.encoder is None:
            read_in_passes(lm.model, ids, Watch(["*.pattern"], see), view.pooling(len(read.ids)))
        else:
            lm.model(ids, source, tap=Watch(["*.pattern"], see), logits_at=slice(-1, None))
    return {
        kind: np.stack([np.concatenate(parts, axis=1) for parts in of.values()])
        for kind, of in small.items()
        if of
    }


def _hidden_keys(
    model: Transformer, name: str, pattern: torch.Tensor
) -> npt.NDArray[np.bool_] | None:
    """Where the mask of the block with this `pattern` [B, H, queries, keys] hides a key from a
    query [query, key]; None if it hides nothing. The queries are at the last positions of the keys.
    """
    *_, queries, keys = pattern.shape
    mask = model.masks[model.mask_of[int(name.split(".")[1])]]
    ids = torch.zeros(1, queries, dtype=torch.long)
    hidden = mask(ids, slice(keys - queries, keys), None)
    if hidden is None:
        return None
    return hidden.cpu().numpy()


def _tensor(
    key: ModelKey, read: PromptRead, prompt: str, box: Box, piece: BoxTensor, at: tuple[int, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A tensor of a box: its description for the browser, and its numbers."""
    lm = language_model(key)
    numbers = values(lm.model, _pass(lm, read, piece), piece).detach().float().cpu().numpy()
    part, whole = view.page(numbers, at)
    if whole:
        span = [(0, size) for size in piece.shape]
    else:
        span = [(first, first + view.PAGE) for first in at]
    header = {
        "box": box.path,
        "piece": box.pieces.index(piece),
        "at": at,
        "whole": whole,
        "labels": [
            _labels(lm, read, axis, *ends) for axis, ends in zip(piece.axes, span, strict=True)
        ],
        "code": view.code_of(
            piece, load_call(lm), lambda name: trace_code(key, read, prompt, name)
        ),
    }
    return header, {"tensor": part, "summary": view.summary(numbers)}


def _pass(lm: LanguageModel, read: PromptRead, piece: BoxTensor) -> Trace:
    """A trace with the value of `piece`; an empty one for weights and fixed numbers, which need no
    forward pass.
    """
    ids, source = read.tensors(lm.device)
    if piece.kind != "activation":
        return Trace(ids, {}, source)
    # Values inside blocks need logits of one position only: all logits of a large vocabulary may be
    # as large as the model.
    at = slice(-1, None) if "blocks." in piece.name else slice(None)
    return run(lm.model, ids, [piece.name], source=source, logits_at=at)


def _labels(
    lm: LanguageModel, read: PromptRead, axis: str, first: int, last: int
) -> list[str] | None:
    """The names of the indices of an axis, or None if they are plain numbers."""
    if axis == "vocabulary":
        return [lm.tokenizer.label(i) for i in range(first, min(last, lm.tokenizer.vocab_size))]
    if axis == "label":
        return list(lm.labels[first:last])
    if "source token" in axis:
        return [lm.tokenizer.label(i) for i in (read.source or ())[first:last]]
    if "token" in axis:
        return [lm.tokenizer.label(i) for i in read.ids[first:last]]
    return None


def trace_code(key: ModelKey, read: PromptRead, prompt: str, name: str) -> str:
    """The lines that compute, as `trace`, the pass over the `prompt` whose value `name` the map
    shows.
    """
    lm = language_model(key)
    own = encoder_decoder.answer(key, read.source) if read.source else None
    is_whole = (
        own is not None
        and not own.is_cut(lm.model.config)
        and len(lm.tokenizer.encode(prompt).ids) <= reading.capacity(lm)
    )
    if not read.source or is_whole:
        return f"{opening(lm)}\ntrace = lm.trace({prompt!r}, [{name!r}])"
    return f"""{opening(lm, "import torch", "from gptviz.interp.trace import run")}
# The ids of the output from the start token on, and of the source, each as far as it is read.
ids, source = torch.tensor([{list(read.ids)}]), torch.tensor([{list(read.source)}])
trace = run(lm.model, ids, [{name!r}], source=source)"""


# Shared by all sessions. A payload is at most some megabytes: a tensor that travels whole.
def block_for_guess(key: ModelKey, read: PromptRead) -> int | None:
    """The block that adds most to the guess at the next token; None where that is not known."""
    if read.source is not None:
        return None
    added: dict[int, float] = {}
    for name, value in added_by_parts(key, read.ids).items():
        if name.startswith("blocks."):
            block = int(name.split(".")[1])
            added[block] = added.get(block, 0.0) + value
    return max(added, key=added.__getitem__, default=None)


@st.cache_resource(max_entries=12, show_spinner=False)
def payload(
    key: ModelKey,
    read: PromptRead,
    prompt: str,
    tokens: tuple[Token, ...],
    guesses: tuple[Token, ...],
    takes: bool,
    size: str,
    look: view.TensorPage | None,
) -> bytes:
    """The payload for the browser."""
    lm = language_model(key)
    config = lm.model.config
    blocks = like_blocks(config)
    whole = anatomy_of(key, len(read.ids), len(read.source or ()))
    label = lm.tokenizer.label
    own = _label_probabilities(tokens)
    header: dict[str, Any] = {
        "text": fingerprint(key, read, prompt),
        "model": key.title,
        "step": key.step,
        "kind": config.kind,
        "sizes": [config.n_encoder_layer, config.n_layer],
        "d_head": config.head_size,
        "context": config.context_length,
        "mask": config.mask,
        "windows": [
            config.window if config.has_window(block) else None for block in range(config.n_layer)
        ],
        "like": blocks,
        "size": size,
        "boxes": [asdict(box) for box in whole.boxes if _is_sent(box.path, blocks)],
        "arrows": [
            [arrow.start, arrow.end]
            for arrow in whole.arrows
            if _is_sent(arrow.start, blocks) and _is_sent(arrow.end, blocks)
        ],
        "counts": _counts(whole),
        # In an encoder–decoder the prompt is the source; the decoder reads its own answer.
        "tokens": [[label(i), None] for i in read.ids] if read.source else own,
        "source": own if read.source else [],
        "guesses": _label_probabilities(guesses),
        "takes": takes,
        "spaced": lm.tokenizer.is_spaced,
        "page": view.PAGE,
        "code": view.code_of_map(
            load_call(lm), whole, len(read.ids), max(1, len(read.source or ()))
        ),
        "declared": declare_values(
            view.address(whole), view.default_boxes(whole, block_for_guess(key, read))
        ),
        "opened": None if look is None else [look.box, look.piece, look.at],
        "tensor": None,
    }
    arrays: dict[str, Any] = dict(patterns(key, read))
    if look is not None and (opened := view.fit(look, whole)) is not None:
        header["tensor"], numbers = _tensor(key, read, prompt, *opened)
        arrays |= numbers
    return pack(header, **arrays)


def _label_probabilities(tokens: tuple[Token, ...]) -> list[list[str | float | None]]:
    """Labels with their probabilities; None for a probability that is missing or not a number,
    since weights may be damaged.
    """
    return [
        [
            token.label,
            None
            if token.probability is None or not math.isfinite(token.probability)
            else token.probability,
        ]
        for token in tokens
    ]


def _counts(whole: Anatomy) -> dict[str, int]:
    """The number of parameters of a block, by its path without its index: the blocks of a stack are
    alike.
    """
    counts: dict[str, int] = {}
    for box in whole.boxes:
        if box.path.removeprefix("encoder.").startswith("blocks.0."):
            stack = box.path.partition("blocks.")[0]
            counts[stack] = counts.get(stack, 0) + box.parameters
    return counts


def show(
    subject: Subject,
    tokens: tuple[Token, ...],
    guesses: tuple[Token, ...],
    guess_ids: tuple[int, ...],
    size: str,
) -> None:
    """The map of the model, with its `size` in words, the `tokens` of the prompt and the `guesses`;
    those with ids can be appended to the prompt.
    """
    read = read_by(subject)
    text = fingerprint(subject.key, read, subject.prompt)
    whole = anatomy_of(subject.key, len(read.ids), len(read.source or ()))

    def take(value: object) -> None:
        index = view.read_guess(value, text, len(guess_ids))
        if index is not None:
            append_token.append_token(subject, subject.encoding.ids, guess_ids[index])

    def look(value: object) -> None:
        if (wanted := view.looked(value)) is not None:
            st.session_state[_LOOK], st.session_state[_SHUT] = wanted, False

    def shut(_: object) -> None:
        st.session_state[_SHUT] = True

    looked_at: view.TensorPage | None = st.session_state.get(_LOOK)
    packed = payload(
        subject.key, read, subject.prompt, tokens, guesses, bool(guess_ids), size, looked_at
    )
    addresses.takes_all(view.address(whole))
    view.model_map(packed, key=KEY, on_take=take, on_look=look, on_shut=shut)
    append_token.explain_refusal()
    opened = None if st.session_state.get(_SHUT) else looked_at
    if opened is not None and (unit := unit_of(whole, opened)) is not None:
        edits.switch(subject.key, unit, key="switch what is open")
    # A link from the open box to the page that shows it.
    box = None if opened is None else whole.box(opened.box)
    destination = None if box is None else page_for(box, subject.kind)
    if opened is None or box is None or destination is None:
        return
    page, query = destination
    where = f", block {query['block']}" if "block" in query else ""
    if (
        "block" in query
        and (head := _head(view.fit(opened, whole), subject.lm.model.config)) is not None
    ):
        query = {**query, "head": str(head)}
        where += f", head {head}"
    label = f"{box.name}{where}: see it on the page {page.title}"
    frame.link(page, label, query={**frame.shared_state(), **query})


def unit_of(whole: Anatomy, looked_at: view.TensorPage) -> Unit | None:
    """The unit of the model that an open box belongs to, which can be switched off, if there is
    one.

    If the numbers shown are those of a head, it is this head, or the first of those that share the
    key head.
    """
    box = whole.box(looked_at.box)
    sublayer = _SUBLAYER.match(looked_at.box)
    if box is None:
        return None
    if box.part in ("embed", "positions", "turn", "distance"):
        return Unit(
            "embed" if box.part == "embed" else "positions",
            in_encoder=box.path.startswith("encoder."),
        )
    if sublayer is None:
        return None
    head = _head(view.fit(looked_at, whole), whole.config)
    return unit(sublayer[0] if head is None else f"{sublayer[0]}.head.{head}", whole.config)


def _head(fitting: tuple[Box, BoxTensor, tuple[int, ...]] | None, config: Config) -> int | None:
    """The head whose numbers are open; of a key head that several heads share, the first of them.
    None if they are of no head.
    """
    if fitting is None or (axis := next(iter(fitting[1].axes), "")) not in ("head", "key head"):
        return None
    return fitting[2][0] * (1 if axis == "head" else config.n_head // config.key_heads)
