"""The parts of a generation tree that no longer change, packed once.

Nodes and the attention of steps are put into parts, in the order in which they were made. A full
part is never packed again, and Streamlit sends it to a browser once. Only the rest is sent with
every message.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gptviz.components.kit import PayloadPart, pack
from gptviz.generate.tree import ROOT, Computed, Tree, TreeNode

from .look import Look

# The most bytes of attention that are sent unasked; the browser asks for the rest, one step at a
# time.
MOST_BYTES = 4 * 2**20
# The number of nodes, or of bytes of attention, that fill a part. Streamlit sends messages below 10
# KB again every time; with many parts, the list of those that the browser has, which is sent with
# every click, would be long.
PART_NODES = 128
PART_BYTES = 64 * 2**10
BY_HAND = "chosen by hand"


class ShownStep(NamedTuple):
    """The attention of the step after a node: `weights` [n_layer, n_head, keys], the first key at
    position `start`.
    """

    after: int
    start: int
    weights: npt.NDArray[np.float16]


class _Nodes(NamedTuple):
    nodes: list[TreeNode]
    part: PayloadPart


class _Attention(NamedTuple):
    after: frozenset[int]
    part: PayloadPart


class Finished:
    """The parts of one tree that are complete and packed."""

    def __init__(self) -> None:
        self._of: object = None
        self._forget(None)

    def _forget(self, of: object) -> None:
        self._of = of
        self._nodes: dict[int, _Nodes] = {}
        self._attention: list[_Attention] = []
        self._open: list[ShownStep] = []

    def nodes(self, tree: Tree, look: Look) -> tuple[list[PayloadPart], list[TreeNode]]:
        """The full parts with nodes, and the nodes that are in no full part."""
        self._check(tree)
        full: list[PayloadPart] = []
        _, following, _ = tree.state
        for number, some in groupby(tree.nodes.values(), lambda node: (node.id - 1) // PART_NODES):
            nodes = [node for node in some if node.id != ROOT]
            if (number + 1) * PART_NODES >= following:
                return full, nodes
            if not nodes:
                continue
            known = self._nodes.get(number)
            # a large tree drops its oldest nodes
            if known is None or len(known.nodes) != len(nodes):
                labels, columns = packed_choices(nodes, tree.n_candidates, look)
                self._nodes[number] = known = _Nodes(nodes, PayloadPart(pack(labels, **columns)))
            full.append(known.part)
        return full, []

    def attention(self, tree: Tree, asked: int | None) -> tuple[list[PayloadPart], list[ShownStep]]:
        """The full parts with the attention of steps, and the steps that are in none, as far as it
        is in memory and there is room; that after the node `asked` is sent in any case.
        """
        self._check(tree)
        wanted = _steps_with_attention(tree, asked)
        here = {step.after for step in self._open}.union(*(full.after for full in self._attention))
        for after, computed in reversed(wanted.items()):
            if after not in here:
                self._open.append(
                    ShownStep(after, computed.start, computed.attention.numpy().astype(np.float16))
                )
                if sum(step.weights.nbytes for step in self._open) >= PART_BYTES:
                    part = PayloadPart(pack({}, **packed_attention(self._open)))
                    self._attention.append(
                        _Attention(frozenset(step.after for step in self._open), part)
                    )
                    self._open = []
        for full in list(self._attention):
            if sum(len(one.part.data) for one in self._attention) <= MOST_BYTES:
                break
            if full.after.isdisjoint(wanted):
                self._attention.remove(full)
        return [full.part for full in self._attention], self._open

    def _check(self, tree: Tree) -> None:
        if self._of is not tree.nodes:  # a restored tree has other nodes with the same ids
            self._forget(tree.nodes)


def packed_choices(
    nodes: Sequence[TreeNode], most: int, look: Look
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Nodes, each with at most `most` of the candidates it was chosen from: their part of the
    header, and their numbers.
    """
    words = dict.fromkeys((BY_HAND, *(node.origin for node in nodes if node.origin)))
    how = {
        way: i
        for i, way in enumerate(
            (*words, *dict.fromkeys(node.drawn for node in nodes if node.drawn))
        )
    }
    used = {
        token
        for node in nodes
        for token in (node.token, *(candidate.token for candidate in node.candidates))
    }
    header = {
        "how": [way if isinstance(way, str) else look.described(way) for way in how],
        "draws": len(words),
        "labels": {token: look.label(token) for token in sorted(used)},
    }
    ids = np.full((len(nodes), most), -1, np.int32)  # −1 if a small vocabulary has no more
    probabilities = np.zeros((len(nodes), most, 2), np.float32)  # of the model and of the draw
    for row, node in enumerate(nodes):
        ids[row, : len(node.candidates)] = [candidate.token for candidate in node.candidates]
        probabilities[row, : len(node.candidates)] = [
            candidate[1:] for candidate in node.candidates
        ]
    return header, {
        "node": np.array([node.id for node in nodes], np.int32),
        "parent": np.array([node.parent for node in nodes], np.int32),
        "token": np.array([node.token for node in nodes], np.int32),
        "position": np.array([node.position for node in nodes], np.int32),
        "logprob": np.array([node.logprob for node in nodes], np.float64),
        "draw_logprob": np.array([node.draw_logprob for node in nodes], np.float64),
        "total": np.array([node.total for node in nodes], np.float64),
        "how": np.array([how[node.drawn or node.origin or BY_HAND] for node in nodes], np.int32),
        "candidates": ids,
        "candidate_p": probabilities,
    }


def packed_attention(steps: Sequence[ShownStep]) -> dict[str, npt.NDArray[Any]]:
    """The attention of some steps: `place` [step, (node, first key, keys, offset in the numbers)],
    and the numbers of all these steps one after the other, each [n_layer, n_head, keys].
    """
    ends = np.cumsum([0, *(step.weights.size for step in steps)])
    places = [
        (step.after, step.start, step.weights.shape[-1], int(end))
        for step, end in zip(steps, ends, strict=False)
    ]
    numbers = [step.weights.ravel() for step in steps]
    return {
        "place": np.array(places, np.int32).reshape(-1, 4),
        "attention": np.concatenate(numbers) if numbers else np.zeros(0, np.float16),
    }


def _steps_with_attention(tree: Tree, asked: int | None) -> dict[int, Computed]:
    """The steps with room for their attention, by the node they follow, the most interesting
    first.
    """
    wanted: dict[int, Computed] = {}
    size = 0
    path = [node.parent for node in reversed(tree.path()) if node.parent is not None]
    by_interest = [
        *([] if asked is None else [asked]),
        tree.current,
        *path,
        *sorted(tree.nodes, reverse=True),
    ]
    for at in dict.fromkeys(by_interest):
        computed = tree.cached_values(at)
        if computed is None or not computed.attention.numel():
            continue
        size += np.dtype(np.float16).itemsize * computed.attention.numel()
        if size > MOST_BYTES and at != asked:
            break
        wanted[at] = computed
    return wanted
