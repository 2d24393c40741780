"""Everything that was generated from one prompt, as a tree: undoing is a step up, another token is
another branch.

Returning to a branch gives the same ids and the same bits of every logit: values that were dropped
from memory are computed again, by the same passes (see `Generation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import NamedTuple

import torch
from torch import Tensor

from gptviz.machine.byte_cache import byte_cache
from gptviz.model import Tap
from gptviz.settings.fields import check_number, whole_number

from .generation import Generation, Held
from .sampling import Sampling, choose_tokens, ledger

ROOT = 0
NODE_BYTES = 1_500  # about the memory of a node

# How a token was chosen: drawn with these settings, or taken by hand if it is a token's id.
Choice = Sampling | int


class Candidate(NamedTuple):
    """A token that might have been chosen."""

    token: int  #: its id
    probability: float  #: its probability according to the model
    drawn_with: float  #: its probability after temperature, top-k and top-p; 0 if these exclude it


@dataclass(frozen=True)
class TreeNode:
    """A generated token; the root stands for the prompt, and for its last token."""

    id: int  #: larger than that of every older node; never used again
    parent: int | None  #: the id of the node before it; None for the root
    position: int  #: how many tokens came before it
    token: int  #: its id in the vocabulary
    #: the settings it was drawn with, or None if it was chosen by hand, or brought from another
    #: text
    drawn: Sampling | None = None
    logprob: float = 0.0  #: ln of its probability under the model, in nats
    #: ln of its probability after temperature, top-k and top-p, in nats; −inf if these exclude it
    draw_logprob: float = 0.0
    total: float = 0.0  #: the sum of `logprob` from the prompt to here
    #: the likeliest tokens at its position that may be drawn, the likeliest first
    candidates: tuple[Candidate, ...] = ()
    origin: str = ""  #: a description of the other text that the token was brought from; else empty
    #: by token, the ids of the nodes after it
    children: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Computed:
    """The values that the model computed at the end of a path, on the CPU."""

    logits: Tensor  #: [vocab_size], of the next token
    #: [n_layer, n_head, keys], the attention of the last token of the path: the last rows of the
    #: patterns
    attention: Tensor
    start: int  #: the position of the first key; the tokens before it have left the window

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return self.logits.nbytes + self.attention.nbytes


@dataclass(frozen=True)
class AtHand:
    """The values that the model computed for a tree, so that a copy of the tree need not compute
    them again.
    """

    computed: Mapping[int, Computed]  #: by node
    held: Held  #: the state of the tree's generation
    at: int  #: the node whose path the generation holds


@dataclass(frozen=True)
class Snapshot:
    """A tree as it was at one time."""

    nodes: tuple[TreeNode, ...]  #: the root first, every node after its parent
    current: int  #: the id of the node that the next step would go on from
    dropped: int  #: as in `Tree`
    #: the values that the model computed for it; None in a snapshot that is to be small
    at_hand: AtHand | None = None

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        size = NODE_BYTES * len(self.nodes)
        if self.at_hand is not None:
            size += self.at_hand.held.bytes + sum(
                computed.bytes for computed in self.at_hand.computed.values()
            )
        return size


class Attended(Tap):
    """Collects the attention of the last token of a pass: one tensor [n_head, keys] per block.

    It passes itself to every part of the model, so that names have no path: this is cheap enough to
    be always on.
    """

    only_patterns = True

    def __init__(self) -> None:
        self.rows: list[Tensor] = []

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if name == "pattern":
            # of an earlier part of the text in the same block
            if self.rows and self.rows[-1].shape[-1] < value.shape[-1]:
                self.rows.pop()
            # a view would keep the whole pattern in memory
            self.rows.append(value[0, :, -1].clone())
        return value

    def needs_whole(self, name: str) -> bool:
        return False  # the last token is in the last part


class Tree:
    """A `Generation` that keeps every branch.

    Its next step goes on from the node `current`. The model's values are cached for the nodes that
    were used last, up to `most_bytes`, and computed again for others. There are at most
    `most_nodes` nodes: the oldest leaves, except the current node, are dropped first.

    Args:
        generation: with nothing generated yet; from now on it belongs to the tree, which also taps
            it.
        most_nodes: the most generated tokens in the tree.
        most_bytes: the most memory that logits and attention may take, in bytes.
        n_candidates: how many of the likeliest tokens each node has.

    Raises:
        ValueError: the generation has tokens after the prompt.
    """

    def __init__(
        self,
        generation: Generation,
        *,
        most_nodes: int = 4_000,
        most_bytes: int = 32 * 2**20,
        n_candidates: int = 8,
    ) -> None:
        length = generation.ids.shape[1]
        if length != generation.prompt_length:
            raise ValueError("the generation has already drawn tokens: a tree begins at the prompt")
        self.generation = generation
        self.n_candidates = n_candidates
        self.most_nodes = most_nodes
        self.prompt = generation.ids[0].tolist()
        self.nodes = {ROOT: TreeNode(ROOT, None, length - 1, self.prompt[-1])}  #: by id
        self.current = ROOT  #: the id of the node that the next step goes on from
        self.dropped = 0  #: how many nodes were dropped because there were too many
        self._leaves: set[int] = set()
        self._next = ROOT + 1
        self._at = ROOT  # the node whose path the generation holds
        self._computed = byte_cache(lambda computed: computed.bytes, most_bytes)
        self._attended = Attended()
        generation.tap = self._attended

    @property
    def state(self) -> tuple[int, int, int]:
        """A short summary: it is equal at two times if, and only if, the tree is equal."""
        return self.current, self._next, self.dropped

    def path(self, node: int | None = None) -> list[TreeNode]:
        """The nodes from the first token after the prompt to `node` (default: the current one)."""
        at = self.nodes[self.current if node is None else node]
        path = []
        while at.parent is not None:
            path.append(at)
            at = self.nodes[at.parent]
        return path[::-1]

    def ids(self, node: int | None = None) -> list[int]:
        """The prompt's token ids and those of the path to `node` (default: the current one)."""
        return self.prompt + [after.token for after in self.path(node)]

    def branches(self) -> list[list[int]]:
        """The token ids after the prompt of every branch, the current path last: taken in this
        order they make this tree.
        """
        ends = [leaf for leaf in sorted(self._leaves) if leaf != self.current]
        return [[node.token for node in self.path(end)] for end in [*ends, self.current]]

    def go(self, node: int) -> TreeNode:
        """Make `node` the current one; a KeyError if there is none with this id, or it was
        dropped.
        """
        self.current = self.nodes[node].id
        return self.nodes[node]

    def go_back(self, steps: int = 1) -> TreeNode:
        """Go `steps` tokens back, at most to the prompt; the branch stays in the tree."""
        for _ in range(steps):
            parent = self.nodes[self.current].parent
            if parent is None:
                break
            self.current = parent
        return self.nodes[self.current]

    def step(self, sampling: Sampling | None = None) -> TreeNode:
        """Draw a token, by default with `generation.sampling`, and go to its node; one that is
        already in the tree is used.
        """
        sampling = sampling or self.generation.sampling
        here = self.nodes[self.current]
        # The same settings draw the same token again: nothing has to be computed.
        drawn_before = (
            self.nodes[child]
            for child in here.children.values()
            if self.nodes[child].drawn == sampling
        )
        if (known := next(drawn_before, None)) is not None:
            return self.go(known.id)
        token = choose_tokens(
            self.compute_after().logits[None], sampling, here.position + 1, self.generation.never
        )
        return self._grow(int(token), sampling)

    def take(self, token: int) -> TreeNode:
        """Go to the node of `token`, chosen by hand, new or not; a ValueError if there is none, or
        it stands for nothing.
        """
        size = self.generation.model.config.vocab_size
        check_number(whole_number(0, size - 1), "the token", token)
        if token in self.generation.never:
            raise ValueError(f"the token {token} is unused: it stands for no text")
        return self._grow(token, None)

    def bring(self, tokens: Iterable[int], origin: str | Iterable[str]) -> None:
        """Add the `tokens` of another text as a branch from the prompt; the current node stays.

        Tokens that are here already stay as they are. `origin` describes the text, or where each
        token comes from. A ValueError if the vocabulary has no such token.
        """
        here = self.current
        self.current = ROOT
        for token, origin_of_token in zip(
            tokens, repeat(origin) if isinstance(origin, str) else origin, strict=False
        ):
            self._grow(token, None, origin_of_token)
        if here in self.nodes:
            self.current = here

    def follow(self, choice: Choice) -> TreeNode:
        """Go on from the current node with a token that was chosen before: draw it, or `take`
        it.
        """
        if isinstance(choice, int):
            return self.take(choice)
        return self.step(choice)

    def has_token(self, choice: Choice) -> bool:
        """Whether the tree has the token that `follow` would go to, so that nothing is computed."""
        children = self.nodes[self.current].children
        if isinstance(choice, int):
            return choice in children
        return any(self.nodes[child].drawn == choice for child in children.values())

    @contextmanager
    def write_aside(self) -> Iterator[None]:
        """Write another branch, then return to the current node without computing its path
        again.
        """
        self.compute_after()
        if self._at != self.current:
            self._bring_generation_to(self.current)
        here = self.current
        held = self.generation.current_state()
        try:
            yield
        finally:
            self.current = self._at = here
            self.generation.hold(held)

    def snapshot(self, *, at_hand: bool = False) -> Snapshot:
        """The tree as it is now; with the values that the model computed if they are to be
        `at_hand`.
        """
        if at_hand:
            values = AtHand(dict(self._computed), self.generation.current_state(), self._at)
        else:
            values = None
        return Snapshot(tuple(self.nodes.values()), self.current, self.dropped, values)

    def restore(self, snapshot: Snapshot) -> None:
        """Become the tree of a snapshot; a ValueError if the prompt is another. Values not at hand
        are computed when needed.
        """
        root = snapshot.nodes[0]
        if (root.position, root.token) != (self.nodes[ROOT].position, self.nodes[ROOT].token):
            raise ValueError("the snapshot is of a tree with another prompt")
        self.nodes = {node.id: replace(node, children={}) for node in snapshot.nodes}
        for node in snapshot.nodes:
            if node.parent is not None:
                self.nodes[node.parent].children[node.token] = node.id
        self.current = snapshot.current
        self.dropped = snapshot.dropped
        self._next = max(self.nodes) + 1
        self._leaves = {node.id for node in self.nodes.values() if not node.children} - {ROOT}
        self.generation.undo(self.generation.ids.shape[1])
        self._at = ROOT
        self._computed.clear()
        if (at_hand := snapshot.at_hand) is not None:
            self.generation.hold(at_hand.held)
            self._at = at_hand.at
            self._computed.update(at_hand.computed)

    def compute_after(self, node: int | None = None) -> Computed:
        """The values that the model computes at the end of the path to `node` (default: the current
        one).
        """
        at = self.current if node is None else node
        if (computed := self._computed.get(at)) is not None:
            return computed
        self._bring_generation_to(at)
        self._attended.rows.clear()
        logits = self.generation.logits[0].cpu()
        config = self.generation.model.config
        start = self.generation.window.start
        if config.n_layer:
            attention = torch.stack(self._attended.rows).cpu()
        else:
            attention = torch.zeros(0, config.n_head, 0)
        self._attended.rows.clear()
        computed = Computed(logits, attention, start)
        self._computed[at] = computed
        return computed

    def cached_values(self, node: int) -> Computed | None:
        """The result of `compute_after` if it is still in memory, else None. Nothing is
        computed.
        """
        return self._computed.get(node)

    def chosen_from(self, node: int) -> Computed:
        """The values that the model computed in the step that made `node`; a ValueError for the
        root, which was not chosen.
        """
        parent = self.nodes[node].parent
        if parent is None:
            raise ValueError("the root is the prompt: it was not chosen from anything")
        return self.compute_after(parent)

    def _grow(self, token: int, drawn: Sampling | None, origin: str = "") -> TreeNode:
        here = self.nodes[self.current]
        if token not in here.children:
            never = self.generation.never
            stages = ledger(self.compute_after().logits, drawn or self.generation.sampling, never)
            logprob = float(stages.logits.log_softmax(-1)[token])
            possible = stages.before.index_fill(
                0, torch.tensor(list(never), dtype=torch.long), -1.0
            )
            # of equally likely tokens the first in the vocabulary comes first
            likeliest = possible.argsort(descending=True, stable=True)[
                : min(self.n_candidates, len(possible) - len(never))
            ].tolist()
            before = stages.before
            after = stages.after
            candidates = tuple(Candidate(i, float(before[i]), float(after[i])) for i in likeliest)
            chosen = token, drawn, logprob, float(after[token].log()), here.total + logprob
            node = TreeNode(self._next, here.id, here.position + 1, *chosen, candidates, origin)
            self._next += 1
            self.nodes[node.id] = node
            here.children[token] = node.id
            self._leaves.discard(here.id)
            self._leaves.add(node.id)
        self.current = here.children[token]
        while len(self.nodes) - 1 > self.most_nodes:
            oldest = min((leaf for leaf in self._leaves if leaf != self.current), default=None)
            if oldest is None:
                break
            self._drop(self.nodes[oldest])
        return self.nodes[self.current]

    def _drop(self, leaf: TreeNode) -> None:
        assert leaf.parent is not None
        parent = self.nodes[leaf.parent]
        if self._at == leaf.id:
            self.generation.undo()
            self._at = parent.id
        self._computed.pop(leaf.id, None)
        self._leaves.discard(leaf.id)
        del parent.children[leaf.token], self.nodes[leaf.id]
        if not parent.children and parent.id != ROOT:
            self._leaves.add(parent.id)
        self.dropped += 1

    def _bring_generation_to(self, node: int) -> None:
        """Put the path to `node` into the generation; the beginning that both paths share is not
        computed again.
        """
        left = self.nodes[self._at]
        right = self.nodes[node]
        tokens = []
        while left.id != right.id:
            if left.position > right.position:
                left = self._parent(left)
            else:
                tokens.append(right.token)
                right = self._parent(right)
        self.generation.replace(left.position + 1, torch.tensor([tokens[::-1]], dtype=torch.long))
        self._at = node

    def _parent(self, node: TreeNode) -> TreeNode:
        assert node.parent is not None
        return self.nodes[node.parent]
