"""The generation tree: the texts that a model wrote from one prompt, left to right, forking where
another token was chosen.

Hovering, replaying and choosing a head happen in the browser. Python is told when the reader goes
to a token, takes another one, or asks for attention that was not sent.

A step sends little: the finished part of the tree is sent in parts, each once (finished.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gptviz.components.kit import Packed, pack_in_parts, register
from gptviz.components.kit.events import read_event
from gptviz.generate.tree import Tree
from gptviz.settings.address_values import Values, declare_values, pairs

from .finished import Finished, packed_attention, packed_choices
from .look import Look

_mount = register(Path(__file__).parent)
# Code that rebuilds more tokens than this would be too long to read: above it, the code rebuilds
# only the current branch.
MOST_IN_CODE = 5_000


def generation_tree(
    shown: Packed,
    *,
    key: str,
    on_go: Callable[[object], None],
    on_take: Callable[[object], None],
    on_attend: Callable[[object], None],
) -> None:
    """Show the result of `pack_tree`. `on_go` is called when a token was clicked (see `place`),
    `on_take` when one was chosen to come after another (see `read_step`), and `on_attend` when the
    browser asks for the attention of a step that was not sent.
    """
    _mount(key=key, data=shown, go=on_go, take=on_take, attend=on_attend)


def address(n_layer: int, n_head: int) -> dict[str, Values]:
    """The values that the address may have for the view: the head whose attention is shown, as
    block.head.
    """
    return {"attended": pairs(n_layer, n_head, "a head as block.head", most=1)}


def place(value: object, tree: Tree, number: int) -> int | None:
    """The node that an event {"number": of the tree, "at": node} names; None if it is stale or not
    what this view sends.
    """
    fields = read_event(value, number=number, at=tree.nodes)
    if fields is None:
        return None
    return fields["at"]


def read_step(value: object, tree: Tree, number: int) -> tuple[int, int] | None:
    """The node and the token to come after it that an event {"number", "at": node, "token"} names;
    None as in `place`.
    """
    fields = read_event(
        value, number=number, at=tree.nodes, token=range(tree.generation.model.config.vocab_size)
    )
    if fields is None or fields["token"] in tree.generation.never:
        return None
    return (fields["at"], fields["token"])


def pack_tree(tree: Tree, look: Look, finished: Finished, asked: int | None = None) -> Packed:
    """All of the tree: for each node its candidates, and, unless the tree is growing by itself, the
    attention of as many steps as there is room for: in any case of that after the node `asked`,
    then of those of the current path. `finished` are the parts of this tree that were packed
    before.
    """
    if asked is not None and asked in tree.nodes:
        tree.compute_after(asked)
    parts, nodes = finished.nodes(tree, look)
    labels, columns = packed_choices(nodes, tree.n_candidates, look)
    config = tree.generation.model.config
    header: dict[str, Any] = {
        "number": look.number,
        "current": tree.current,
        "prompt": list(look.prompt),
        "prompt_length": len(tree.prompt),
        "heads": [config.n_layer, config.n_head],
        "declared": declare_values(address(config.n_layer, config.n_head), {}),
        "cut": [ghost.cut for ghost in look.ghosts],
        "playing": look.playing,
        "full": look.full,
        "spaced": look.spaced,
        "status": look.status,
        "heading": dict(look.heading),
        "address": dict(look.address),
    } | labels
    ghosts = [(ghost.probability, ghost.drawn_with) for ghost in look.ghosts]
    arrays = columns | {
        "ghost": np.array([ghost.token for ghost in look.ghosts], np.int32),
        "ghost_p": np.array(ghosts, np.float64).reshape(-1, 2),
    }
    header["labels"] |= {ghost.token: look.label(ghost.token) for ghost in look.ghosts}
    if not look.playing:
        more, steps = finished.attention(tree, asked)
        parts += more
        arrays |= packed_attention(steps)
        header["code"] = look.code
    return pack_in_parts(header, parts, **arrays)


def code(call: str, prompt: str, tree: Tree) -> str:
    """The lines of Python that make the tree again; `call` opens the model."""
    branches = tree.branches()
    about = "The token ids of every branch; the current one comes last."
    if sum(map(len, branches)) > MOST_IN_CODE:
        branches = branches[-1:]
        about = "The token ids of the current branch."
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
        "    computed = tree.chosen_from(node.id)  # its logits [vocab_size] and attention "
        "[n_layer, n_head, keys]\n"
        "    print(node.position, node.token, lm.tokenizer.label(node.token), node.logprob, "
        "node.total)"
    )
