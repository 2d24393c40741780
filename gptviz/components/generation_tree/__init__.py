"""The generation tree: what a model wrote from one prompt, left to right, forking where another token was taken.

Hovering, replaying and choosing a head happen in the browser. Python is told when the reader goes to a token, takes another one,
or asks for attention that was not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from gptviz.address_values import Values, one_of
from gptviz.components.kit import event, pack, register
from gptviz.generate.tree import ROOT, Tree, TreeNode

_mount = register(Path(__file__).parent)
# The most bytes of attention that are sent to the browser; what is missing it asks for, one step at a time.
MOST_BYTES = 4 * 2**20
# Code that rebuilds more tokens than this would be too long to read: above it, the code rebuilds only the current branch.
MOST_IN_CODE = 5_000
BY_HAND = "chosen by hand"


@dataclass(frozen=True)
class Ghost:
    """A token that may come next.

    Attributes:
        token: its id.
        probability: what the model gives it.
        drawn_with: its probability after temperature, top-k and top-p.
        cut: what took it out of the draw, "" if nothing did.
    """

    token: int
    probability: float
    drawn_with: float
    cut: str


@dataclass(frozen=True)
class Look:
    """How a tree is shown.

    Attributes:
        number: of the tree, among those of a session: a click on another tree does not count.
        prompt: the visible forms of the prompt's last tokens.
        label: the visible form of a token.
        described: describes the settings of a draw in a few words.
        ghosts: what may come next.
        code: the lines of `gptviz` that make the tree.
        playing: whether the tree is growing by itself; its card then waits.
        full: whether no token may be added.
        spaced: whether every token is a word of its own, with a gap between them.
        status: a line beside the legend.
        heading: of a picture: `model`, `prompt` and `settings`, a list of phrases.
        address: what the address of the page is to say, by key; None takes a key out of it.
    """

    number: int
    prompt: Sequence[str]
    label: Callable[[int], str]
    described: Callable[[Any], str]
    ghosts: Sequence[Ghost] = ()
    code: str = ""
    playing: bool = False
    full: bool = False
    spaced: bool = False
    status: str = ""
    heading: Mapping[str, Any] = field(default_factory=dict)
    address: Mapping[str, str | None] = field(default_factory=dict)


def generation_tree(
    shown: bytes,
    *,
    key: str,
    on_go: Callable[[dict[str, Any]], None],
    on_take: Callable[[dict[str, Any]], None],
    on_attend: Callable[[dict[str, Any]], None],
    on_lost: Callable[[dict[str, Any]], None],
) -> None:
    """Show what `whole` or `grown` packed.

    Args:
        key: tells the trees of one page apart.
        on_go: a token was clicked; see `place`.
        on_take: a token was taken after another; see `taken`.
        on_attend: the browser asks for the attention of a step, which was not sent; see `place`.
        on_lost: the payload continues a tree that the browser does not have, for example because another page was open.
    """

    def hear(name: str, act: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        def heard() -> None:
            fields = event(st.session_state[key].get(name))
            if fields is not None:
                act(fields)

        return heard

    events = {"go": on_go, "take": on_take, "attend": on_attend, "lost": on_lost}
    _mount(key=key, data=shown, **{f"on_{name}_change": hear(name, act) for name, act in events.items()})


def address(n_layer: int, n_head: int) -> dict[str, Values]:
    """What the address may say of the view: whose attention is shown, as block.head."""
    return {"attended": one_of([f"{block}.{head}" for block in range(n_layer) for head in range(n_head)])}


def place(fields: dict[str, Any], tree: Tree, number: int) -> int | None:
    """The node that an event {"number": of the tree, "at": node} names; None if it is stale or not what this view sends."""
    at = fields.get("at")
    return at if fields.get("number") == number and type(at) is int and at in tree.nodes else None


def taken(fields: dict[str, Any], tree: Tree, number: int) -> tuple[int, int] | None:
    """The node and the token to come after it that an event {"number", "at": node, "token"} names; None as in `place`."""
    at, token = place(fields, tree, number), fields.get("token")
    size = tree.generation.model.config.vocab_size
    return (at, token) if at is not None and type(token) is int and 0 <= token < size else None


def whole(tree: Tree, look: Look, asked: int | None = None) -> bytes:
    """All of the tree: for each node what it was chosen from, and the attention of as many steps as there is room for.

    Args:
        tree: what was written.
        look: how it is shown.
        asked: the node at which a step begins whose attention is sent in any case. Steps of the current path come next.
    """
    nodes = [node for node in tree.nodes.values() if node.id != ROOT]
    words = dict.fromkeys((BY_HAND, *(node.origin for node in nodes if node.origin)))
    how = {way: i for i, way in enumerate((*words, *dict.fromkeys(node.drawn for node in nodes if node.drawn)))}
    tokens = (token for node in nodes for token in (node.token, *(candidate.token for candidate in node.candidates)))
    header = _header(tree, look, tokens) | {
        "how": [way if isinstance(way, str) else look.described(way) for way in how],
        "draws": len(words),
        "since": ROOT,
        "code": look.code,
    }
    if asked is not None and asked in tree.nodes:
        tree.after(asked)
    ids, probabilities = _candidates(nodes, tree.n_candidates)
    return pack(
        header,
        **_columns(nodes),
        how=np.array([how[node.drawn or node.origin or BY_HAND] for node in nodes], np.int32),
        candidates=ids,
        candidate_p=probabilities,
        **_ghosts(look.ghosts),
        **_attention(tree, asked),
    )


def grown(tree: Tree, look: Look, since: int) -> bytes:
    """Only the nodes after node `since`, without what they were chosen from: a small payload while the tree grows by itself."""
    nodes = [node for node in tree.nodes.values() if node.id > since]
    return pack(_header(tree, look, (node.token for node in nodes)) | {"since": since}, **_columns(nodes), **_ghosts(look.ghosts))


def code(call: str, prompt: str, tree: Tree) -> str:
    """The lines of Python that make the tree again; `call` opens the model."""
    branches = tree.branches()
    about = "The token ids of every branch; the current one comes last."
    if sum(map(len, branches)) > MOST_IN_CODE:
        branches, about = branches[-1:], "The token ids of the current branch."
    return (
        "import gptviz\n"
        "from gptviz.generate.tree import Tree\n\n"
        f"lm = {call}\n"
        f"tree = Tree(lm.generation({prompt!r}))\n"
        f"# {about}\n"
        f"for branch in {branches}:\n"
        "    tree.go(0)\n"
        "    for token in branch:\n"
        "        tree.take(token)\n\n"
        "for node in tree.path():\n"
        "    computed = tree.chosen_from(node.id)  # its logits [vocab_size] and attention [n_layer, n_head, keys]\n"
        "    print(node.position, node.token, lm.tokenizer.label(node.token), node.logprob, node.total)"
    )


def _header(tree: Tree, look: Look, tokens: Iterable[int]) -> dict[str, Any]:
    config = tree.generation.model.config
    used = {ghost.token for ghost in look.ghosts}.union(tokens)
    return {
        "number": look.number,
        "current": tree.current,
        "prompt": list(look.prompt),
        "prompt_length": len(tree.prompt),
        "labels": {token: look.label(token) for token in used},
        "heads": [config.n_layer, config.n_head],
        "cut": [ghost.cut for ghost in look.ghosts],
        "playing": look.playing,
        "full": look.full,
        "spaced": look.spaced,
        "status": look.status,
        "heading": dict(look.heading),
        "address": dict(look.address),
    }


def _columns(nodes: Sequence[TreeNode]) -> dict[str, npt.NDArray[Any]]:
    return {
        "node": np.array([node.id for node in nodes], np.int32),
        "parent": np.array([node.parent for node in nodes], np.int32),
        "token": np.array([node.token for node in nodes], np.int32),
        "position": np.array([node.position for node in nodes], np.int32),
        "logprob": np.array([node.logprob for node in nodes], np.float64),
        "draw_logprob": np.array([node.draw_logprob for node in nodes], np.float64),
        "total": np.array([node.total for node in nodes], np.float64),
    }


def _candidates(nodes: Sequence[TreeNode], most: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Ids [node, most], −1 where a small vocabulary has no more, and probabilities [node, most, (model, draw)]."""
    ids = np.full((len(nodes), most), -1, np.int32)
    probabilities = np.zeros((len(nodes), most, 2), np.float32)
    for row, node in enumerate(nodes):
        ids[row, : len(node.candidates)] = [candidate.token for candidate in node.candidates]
        probabilities[row, : len(node.candidates)] = [candidate[1:] for candidate in node.candidates]
    return ids, probabilities


def _ghosts(ghosts: Sequence[Ghost]) -> dict[str, npt.NDArray[Any]]:
    return {
        "ghost": np.array([ghost.token for ghost in ghosts], np.int32),
        "ghost_p": np.array([(ghost.probability, ghost.drawn_with) for ghost in ghosts], np.float64).reshape(-1, 2),
    }


def _attention(tree: Tree, asked: int | None) -> dict[str, npt.NDArray[Any]]:
    """What is attended to after a node: `place` [step, (node, first key, keys, where in the numbers)], and the numbers of all
    these steps one after the other, each [n_layer, n_head, keys].
    """
    places, numbers, size = [], [], 0
    for at in dict.fromkeys(_by_interest(tree, asked)):
        computed = tree.kept(at)
        if computed is None or not computed.attention.numel():
            continue
        if 2 * (size + computed.attention.numel()) > MOST_BYTES and at != asked:
            break
        places.append((at, computed.start, computed.attention.shape[-1], size))
        numbers.append(computed.attention.numpy().astype(np.float16).ravel())
        size += computed.attention.numel()
    return {
        "place": np.array(places, np.int32).reshape(-1, 4),
        "attention": np.concatenate(numbers) if numbers else np.zeros(0, np.float16),
    }


def _by_interest(tree: Tree, asked: int | None) -> Iterator[int]:
    if asked is not None:
        yield asked
    yield tree.current
    for node in reversed(tree.path()):
        if node.parent is not None:
            yield node.parent
    yield from sorted(tree.nodes, reverse=True)
