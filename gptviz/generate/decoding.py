"""Decoding: the answer an encoder–decoder gives to a source, greedily or by beam search with every candidate kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gptviz.model import KVCache, Transformer


class Decoder:
    """Rows of outputs that grow side by side, each from the start mark. The encoder runs once, in the constructor.

    Keys and values of what was written stay in a cache, those of the source are computed once. A model that looks ahead
    (a full mask) has nothing to keep of its own tokens: it reads them all again.

    Args:
        source: [B, S] ids to read; of one row, whatever the number of `rows`.
        rows: how many outputs grow.

    Raises:
        ValueError: the model has no encoder, or the source is longer than its context.
    """

    def __init__(self, model: Transformer, source: Tensor, start: int, rows: int) -> None:
        self.model = model
        weight = model.embed.weight
        self.memory = model.encode(source.to(weight.device))
        self.ids = torch.full((rows, 1), start, device=weight.device)  # [rows, T]
        causal = model.config.mask == "causal"
        self._cache = KVCache(model.config, rows, weight.device, weight.dtype) if causal else None

    def logits(self) -> Tensor:
        """[rows, vocab_size]: of the next token of each row."""
        seen = 0 if self._cache is None else self._cache.length
        whole: Tensor = self.model(self.ids[:, seen:], memory=self.memory, cache=self._cache, logits_at=slice(-1, None))
        return whole[:, -1]

    def grow(self, tokens: Tensor, rows: Tensor | None = None) -> None:
        """Go on with `tokens`, one for each of `rows` [rows]: indices of the rows to go on from, by default all as they are."""
        if rows is not None:
            self.ids = self.ids[rows]
            if self._cache is not None:
                self._cache.reorder(rows)
        self.ids = torch.cat((self.ids, tokens[:, None]), dim=1)


@torch.inference_mode()
def decode_greedily(model: Transformer, source: Tensor, start: int, end: int, longest: int | None = None) -> Tensor:
    """The answers to `source` [B, S], its shorter rows padded: the likeliest token each time, [B, T] ids.

    T is the length of the longest answer. A row that has ended goes on with end marks; one that holds none was cut after
    `longest` tokens (by default, and at most, the context), which `until_end` tells apart.

    Raises:
        ValueError: `longest` or the source does not fit in the model's context, or it has no encoder.
    """
    decoder = Decoder(model, source, start, len(source))
    ended = torch.zeros(len(source), dtype=torch.bool, device=decoder.ids.device)
    for _ in range(_longest(model, longest)):
        # A row that has ended stays as it is: the other rows of the batch do not wait for it in vain.
        tokens = decoder.logits().argmax(-1).masked_fill(ended, end)
        decoder.grow(tokens)
        ended |= tokens == end
        if ended.all():
            break
    return decoder.ids[:, 1:]


def until_end(ids: Tensor, end: int) -> tuple[list[int], bool]:
    """The tokens of one answer [T] before its end mark, and whether there is one: without, the answer was cut."""
    tokens = ids.tolist()
    return (tokens[: tokens.index(end)], True) if end in tokens else (tokens, False)


@dataclass(frozen=True)
class BeamNode:
    """A candidate of a beam search: one token after those of its parent.

    Attributes:
        parent: the index of the node before it, None for the start mark, the root of the tree.
        token: its id.
        log_probability: of this token after those before it, in nats; 0 for the root.
        total: the sum of these from the root on.
        depth: how many tokens come before it, the root's included: 0 for the root.
        kept: whether it was among the best of its depth; the others were not gone on with.
        finished: whether it was kept and is an end mark.
    """

    parent: int | None
    token: int
    log_probability: float
    total: float
    depth: int
    kept: bool
    finished: bool


@dataclass(frozen=True)
class Hypothesis:
    """An answer that a beam search came to.

    Attributes:
        node: the index of its last node.
        ids: its tokens, without start and end mark.
        total: its log-probability in nats, the end mark's included.
        score: the total ÷ length^length_penalty, length counting the end mark: what answers are compared by.
        ended: whether it ends; else it was cut when it had become as long as was allowed.
    """

    node: int
    ids: tuple[int, ...]
    total: float
    score: float
    ended: bool


@dataclass(frozen=True)
class Beams:
    """A beam search.

    Attributes:
        nodes: the tree, every node after its parent, the root first.
        finished: the answers, best first; those that were cut come after those that end.
    """

    nodes: tuple[BeamNode, ...]
    finished: tuple[Hypothesis, ...]

    @property
    def best(self) -> Hypothesis:
        """The best answer."""
        return self.finished[0]

    def path(self, node: int) -> list[int]:
        """The indices of the nodes from the root to `node`."""
        return _path(self.nodes, node)


@torch.inference_mode()
def beam_search(
    model: Transformer,
    source: Tensor,
    start: int,
    end: int,
    width: int,
    longest: int | None = None,
    length_penalty: float = 0.0,
) -> Beams:
    """The answers to `source` [S] that a beam of `width` finds, and the tree it went through.

    At each depth the `width` likeliest continuations of all that is in the beam are kept. One that ends leaves the beam,
    which is narrower by one from there on; the search is over when all have left. A width of 1 is greedy decoding, and one
    as large as the number of all answers finds the likeliest of all.

    Args:
        longest: the most tokens of an answer, its end mark included; by default, and at most, the context.
        length_penalty: 0 compares the probabilities of whole answers, which favours short ones; 1 the mean per token.

    Raises:
        ValueError: a width below 1, a `longest` or a source that does not fit in the model's context, or no encoder.
    """
    if width < 1:
        raise ValueError(f"the width of the beam is {width}; it must be 1 or more")
    longest = _longest(model, longest)
    decoder = Decoder(model, source[None], start, width)
    nodes = [BeamNode(None, start, 0.0, 0.0, 0, kept=True, finished=False)]
    beam, done = [0], list[int]()  # indices of nodes
    for depth in range(1, longest + 1):
        steps = decoder.logits()[: len(beam)].cpu().double().log_softmax(-1)  # [beam, vocab_size]
        candidates = _continued(nodes, beam, steps, depth, width - len(done), end)
        rows = {index: row for row, index in enumerate(beam)}
        kept = [len(nodes) + i for i, node in enumerate(candidates) if node.kept]
        nodes += candidates
        done += [index for index in kept if nodes[index].finished]
        beam = sorted((i for i in kept if not nodes[i].finished), key=lambda i: -nodes[i].total)
        if not beam or depth == longest:
            break
        # The rows that the beam leaves free repeat its first.
        filled = [nodes[index] for index in (beam + beam[:1] * width)[:width]]
        on = decoder.ids.device
        parents = torch.tensor([rows[node.parent] for node in filled if node.parent is not None], device=on)
        decoder.grow(torch.tensor([node.token for node in filled], device=on), parents)
    found = [_hypothesis(nodes, index, length_penalty) for index in done + beam]
    return Beams(tuple(nodes), tuple(sorted(found, key=lambda one: (not one.ended, -one.score))))


def _continued(nodes: list[BeamNode], beam: list[int], steps: Tensor, depth: int, n_kept: int, end: int) -> list[BeamNode]:
    """The likeliest continuations of each node of the beam, as many as could be kept, the best of all marked so.

    `steps` [beam, vocab_size] are the log-probabilities of the next tokens.
    """
    most = min(n_kept, steps.shape[1])
    values, tokens = (each[:, :most].tolist() for each in steps.sort(dim=-1, descending=True, stable=True))
    found = [
        (index, token, value, nodes[index].total + value)
        for row, index in enumerate(beam)
        for token, value in zip(tokens[row], values[row], strict=True)
    ]
    best = set(sorted(range(len(found)), key=lambda i: -found[i][3])[:n_kept])
    return [
        BeamNode(index, token, value, total, depth, kept=i in best, finished=i in best and token == end)
        for i, (index, token, value, total) in enumerate(found)
    ]


def _hypothesis(nodes: list[BeamNode], index: int, length_penalty: float) -> Hypothesis:
    last = nodes[index]
    ids = tuple(nodes[i].token for i in _path(nodes, index)[1:])
    score = last.total / last.depth**length_penalty
    return Hypothesis(index, ids[:-1] if last.finished else ids, last.total, score, last.finished)


def _path(nodes: Sequence[BeamNode], index: int) -> list[int]:
    """The indices from the root to a node."""
    path = [index]
    while (parent := nodes[path[-1]].parent) is not None:
        path.append(parent)
    return path[::-1]


def _longest(model: Transformer, longest: int | None) -> int:
    most = model.config.context_length
    if longest is None:
        return most
    if not 1 <= longest <= most:
        raise ValueError(f"an answer of {longest} tokens was allowed; the model writes from 1 to {most}")
    return longest
