"""Decoding: the answer of an encoder–decoder to a source, greedily, drawn, or by beam search with
every candidate recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gptviz.model import Transformer
from gptviz.settings.fields import check_number, whole_number

from .sampling import Sampling, choose_tokens


class Decoder:
    """Rows of outputs that grow side by side, each from the start token. The encoder runs once, in
    the constructor.

    The keys and values of the output stay in a cache; those of the source are computed once. A
    model that looks ahead (a full mask) cannot use a cache: it reads its whole output at every
    step.

    If the start token is the one that fills up short texts, as in Marian, it is never written: no
    output in training had it, and its row of the embedding is empty, so that its logit has no
    meaning.

    Args:
        source: [B, S] ids to read; B is `rows`, or 1 if all rows read the same source.
        start: the token that every output begins with.
        rows: how many outputs grow.
        never: other tokens that are never written, such as those that stand for nothing.

    Raises:
        ValueError: the model has no encoder, or the source is longer than its context.
    """

    def __init__(
        self, model: Transformer, source: Tensor, start: int, rows: int, never: Sequence[int] = ()
    ) -> None:
        self.model = model
        weight = model.embed.weight
        #: [B, S, d_model], the output of the encoder for the source
        self.memory = model.encode(source.to(weight.device))
        #: [rows, T], the outputs with their start tokens
        self.ids = torch.full((rows, 1), start, device=weight.device)
        causal = model.config.mask == "causal"
        self._cache = model.new_cache(rows) if causal else None
        self._never = [*never, *([start] if start == model.config.padding else [])]

    def logits(self) -> Tensor:
        """The logits of the next token of each row [rows, vocab_size]."""
        seen = 0 if self._cache is None else self._cache.length
        whole: Tensor = self.model(
            self.ids[:, seen:], memory=self.memory, cache=self._cache, logits_at=slice(-1, None)
        )
        logits = whole[:, -1]
        if self._never:
            logits[:, self._never] = -torch.inf
        return logits

    def grow(self, tokens: Tensor, rows: Tensor | None = None) -> None:
        """Append `tokens` [rows], one to each row; `rows` [rows] are the rows continued, by default
        each itself.
        """
        if rows is not None:
            self.ids = self.ids[rows]
            if self._cache is not None:
                self._cache.reorder(rows)
        self.ids = torch.cat((self.ids, tokens[:, None]), dim=1)


def decode_greedily(
    model: Transformer, source: Tensor, start: int, end: int, longest: int | None = None
) -> Tensor:
    """The greedy answers to `source` [B, S], the likeliest token each time: see `decode`."""
    return decode(model, source, start, end, None, longest)


@torch.inference_mode()
def decode(
    model: Transformer,
    source: Tensor,
    start: int,
    end: int,
    sampling: Sampling | None,
    longest: int | None = None,
    never: Sequence[int] = (),
) -> Tensor:
    """The answers to `source` [B, S], whose shorter rows are padded, token by token: ids [B, T].

    T is the length of the longest answer. A row that has ended is filled up with end tokens; a row
    without one was cut after `longest` tokens. `until_end` tells the two apart.

    Args:
        sampling: how tokens are drawn, as in `generation`; the start token counts as the one before
            the first. None takes the likeliest each time.
        longest: the most tokens of an answer, its end token included; by default, and at most, the
            context.
        never: as in `Decoder`.

    Raises:
        ValueError: `longest` or the source does not fit in the model's context, or it has no
            encoder; or there is nothing to draw from, since the logits are not numbers.
    """
    decoder = Decoder(model, source, start, len(source), never)
    ended = torch.zeros(len(source), dtype=torch.bool, device=decoder.ids.device)
    for _ in range(_longest_output(model, longest)):
        logits = decoder.logits()
        if sampling is None:
            drawn = logits.argmax(-1)
        else:
            drawn = choose_tokens(logits, sampling, decoder.ids.shape[1]).to(logits.device)
        # The rows that have ended get end tokens while the others go on.
        tokens = drawn.masked_fill(ended, end)
        decoder.grow(tokens)
        ended |= tokens == end
        if ended.all():
            break
    return decoder.ids[:, 1:]


def until_end(ids: Tensor, end: int) -> tuple[list[int], bool]:
    """The tokens of one answer [T] before its end token, and whether it has one; without one the
    answer was cut.
    """
    tokens = ids.tolist()
    if end in tokens:
        return (tokens[: tokens.index(end)], True)
    return (tokens, False)


@dataclass(frozen=True)
class BeamNode:
    """A candidate of a beam search: one token after those of its parent."""

    #: the index of the node before it, or None for the start token, the root of the tree
    parent: int | None
    token: int  #: its id
    log_probability: float  #: of this token after those before it, in nats; 0 for the root
    total: float  #: the sum of these log-probabilities from the root to here
    depth: int  #: how many tokens come before it, the root's included: 0 for the root
    kept: bool  #: whether it was among the best of its depth; the others were not continued
    finished: bool  #: whether it was kept and is an end token


@dataclass(frozen=True)
class Hypothesis:
    """An answer that a beam search found."""

    node: int  #: the index of its last node
    ids: tuple[int, ...]  #: its tokens, without start and end token
    total: float  #: its log-probability in nats, the end token's included
    #: total ÷ length^length_penalty, by which answers are compared; the length counts the end token
    score: float
    ended: bool  #: whether it ends; else it was cut at the greatest allowed length


@dataclass(frozen=True)
class Beams:
    """The course of a beam search, and its results."""

    nodes: tuple[BeamNode, ...]  #: the tree: the root first, every node after its parent
    #: the answers, the best first; those that were cut come after those that end
    finished: tuple[Hypothesis, ...]

    @property
    def best(self) -> Hypothesis:
        """The answer with the best score."""
        return self.finished[0]

    @property
    def outputs(self) -> list[tuple[int, ...]]:
        """The tokens up to each node, its own included and the start token left out."""
        ids: list[tuple[int, ...]] = []
        for node in self.nodes:
            ids.append(() if node.parent is None else (*ids[node.parent], node.token))
        return ids

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
    never: Sequence[int] = (),
) -> Beams:
    """The answers to `source` [S] that a beam of `width` finds, and the tree it went through.

    At each depth the `width` likeliest continuations of all answers in the beam are kept. An answer
    that ends leaves the beam, which is narrower by one from then on; the search is over when all
    have left. A width of 1 is greedy decoding; a width as large as the number of all possible
    answers finds the likeliest of all.

    Args:
        longest: the most tokens of an answer, its end token included; by default, and at most, the
            context.
        length_penalty: 0 compares the probabilities of whole answers, which favours short ones; 1
            compares the mean per token.
        never: as in `Decoder`.

    Raises:
        ValueError: a width below 1, a `longest` or a source that does not fit in the model's
            context, or no encoder.

    Source: Wu et al. 2016, arXiv:1609.08144, section 7, without its coverage penalty; the length
    penalty is the plain power.
    """
    check_number(whole_number(1), "the width of the beam", width)
    longest = _longest_output(model, longest)
    decoder = Decoder(model, source[None], start, width, never)
    nodes = [BeamNode(None, start, 0.0, 0.0, 0, kept=True, finished=False)]
    # indices of nodes
    beam = [0]
    done = list[int]()
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
        # The decoder always has `width` rows: rows that a narrower beam does not need repeat its
        # first one.
        continued = [nodes[index] for index in (beam + beam[:1] * width)[:width]]
        device = decoder.ids.device
        parents = torch.tensor(
            [rows[node.parent] for node in continued if node.parent is not None], device=device
        )
        decoder.grow(torch.tensor([node.token for node in continued], device=device), parents)
    answers = []
    for index in done + beam:
        last = nodes[index]
        ids = tuple(nodes[i].token for i in _path(nodes, index)[1:])
        score = last.total / last.depth**length_penalty
        answers.append(
            Hypothesis(index, ids[:-1] if last.finished else ids, last.total, score, last.finished)
        )
    return Beams(
        tuple(nodes), tuple(sorted(answers, key=lambda answer: (not answer.ended, -answer.score)))
    )


def _continued(
    nodes: list[BeamNode], beam: list[int], steps: Tensor, depth: int, n_kept: int, end: int
) -> list[BeamNode]:
    """The `n_kept` likeliest continuations of each node, by log-probabilities `steps` [beam,
    vocab_size]; the best of all are `kept`.
    """
    most = min(n_kept, steps.shape[1])
    values, tokens = (
        ranked[:, :most].tolist() for ranked in steps.sort(dim=-1, descending=True, stable=True)
    )
    continuations = [
        (index, token, value, nodes[index].total + value)
        for row, index in enumerate(beam)
        for token, value in zip(tokens[row], values[row], strict=True)
    ]
    best = set(sorted(range(len(continuations)), key=lambda i: -continuations[i][3])[:n_kept])
    return [
        BeamNode(
            index, token, value, total, depth, kept=i in best, finished=i in best and token == end
        )
        for i, (index, token, value, total) in enumerate(continuations)
    ]


def _path(nodes: Sequence[BeamNode], index: int) -> list[int]:
    """The indices from the root to a node."""
    path = [index]
    while (parent := nodes[path[-1]].parent) is not None:
        path.append(parent)
    return path[::-1]


def _longest_output(model: Transformer, longest: int | None) -> int:
    most = model.config.context_length
    if longest is None:
        return most
    if not 1 <= longest <= most:
        raise ValueError(
            f"an answer of {longest} tokens was allowed; the model writes from 1 to {most}"
        )
    return longest
