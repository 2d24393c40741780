"""Head scores: numbers that say what a head does, from its patterns over a text or over repeated
random tokens.

Every score is a mean over all queries but the first, which has no token before it. Blocks are
looked at one after the other while the model runs: only the scores are kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import progress
from gptviz.model import Config, Transformer, Watch
from gptviz.model.kinds import MODEL_KINDS

from ..changing.ablation import NOT_COUNTED, Rows, loss, loss_with_each
from ..changing.edit import Inputs
from ..changing.edits import edit_unit
from ..reading.attention import AttentionPart
from .head_weights import copying
from .unit import Unit

# The heads of an encoder, of a decoder, or of the cross-attention between the two. Other models
# have only the second.
Stack = Literal["encoder", "decoder", "cross"]
# Repeated random tokens: how many different ones there are before the same come again, and in how
# many sequences.
MOST_REPEATED = 25
N_SEQUENCES = 8
# The most tokens of a text that are scored: every score is a mean over many queries already.
MOST_TOKENS = 1024


# How a sentence ends about a share of attention.
OF_ATTENTION = "{share} of its attention goes there, on average"
# A head is said to be of a kind if it gives this share of its attention, or more, to what heads of
# that kind read.
CLEARLY = 0.3


@dataclass(frozen=True)
class Score:
    """The definition of a score."""

    title: str  #: its name in tables and forms
    about: str  #: its definition, in a sentence
    does: str  #: what a head with a high value does, in words
    how_much: str = OF_ATTENTION  #: how much it does so, with its `value` or `share`
    low: float | None = 0.0  #: the smallest value it can have, or None if there is none
    high: float | None = 1.0  #: the largest value it can have, or None if there is none
    repeats: bool = False  #: whether it is only about tokens that stood earlier in the text
    #: whether a head with `CLEARLY` or more is said to be of this kind, and one with less not
    is_kind: bool = True


SCORES: dict[str, Score] = {
    "previous_token": Score(
        "Previous token",
        "The share of a query's attention on the token just before it.",
        "reads the token just before",
    ),
    "induction": Score(
        "Induction",
        "The share on tokens that followed earlier copies of the query's token, over the queries "
        "whose token stood earlier: in "
        "“A B … A”, the share of the second A on B.",
        "finds where the same token stood before, and reads what came next",
        repeats=True,
    ),
    "duplicate_token": Score(
        "Duplicate token",
        "The share on earlier copies of the query's token, over the queries whose token stood "
        "earlier: in “A B … A”, the share "
        "of the second A on the first.",
        "reads earlier copies of the token",
        repeats=True,
    ),
    "first_token": Score(
        "First token",
        "The share on the first token of the text. Many heads rest there when they find nothing "
        "to read: a sink.",
        "rests on the first token",
    ),
    "self": Score(
        "Self",
        "The share on the query's own token.",
        "reads the token that it stands at",
    ),
    "entropy": Score(
        "Entropy",
        "How evenly a query shares its attention: the entropy of its row, divided by the largest "
        "possible one, the logarithm of "
        "the number of tokens that the query may read. 0 is only one token, 1 is all tokens alike.",
        "spreads its attention most evenly",
        "{value:.2f}, where 1 is all tokens alike and 0 one token",
        is_kind=False,
    ),
    "distance": Score(
        "Distance",
        "How many tokens away the query reads on average, each distance weighed by its share.",
        "reads furthest away",
        "{value:.1f} tokens, on average",
        is_kind=False,
        high=None,
    ),
    "copying": Score(
        "Copying",
        "Whether the head makes the tokens that it reads likelier (1) or less likely (−1): the "
        "sum of the eigenvalues of what it "
        "does to logits, divided by the sum of their sizes. Only from the weights.",
        "makes the tokens that it reads likelier",
        "{value:.2f}, where 1 is likelier and −1 less likely",
        low=-1.0,
    ),
    "delta_loss": Score(
        "Loss without it",
        "How much the loss rises, in nats per token, if what the head adds is replaced by zero; "
        "below 0, the model does better "
        "without it. Over repeated random tokens only the second half counts, since nothing tells "
        "what comes in the first. It "
        "takes a pass through the model for every head.",
        "is needed most",
        "without it the loss rises by {value:.3g} nats per token",
        is_kind=False,
        low=None,
        high=None,
    ),
}
# About this many cells of patterns are computed with at a time.
AT_ONCE = 2**23
# The number of tokens over which the loss without each head is taken: of several texts the first
# ones.
LOSS_TOKENS = 512


@dataclass(frozen=True)
class HeadScores:
    """The scores of all heads of a stack; NaN where a score has no meaning."""

    values: Mapping[str, Float64Array]  #: for each score of `SCORES`, [block, head]
    #: the scores that were computed over repeated random tokens
    on_random: frozenset[str] = frozenset()
    n_tokens: int = 0  #: how many tokens the heads read, of all texts together
    part: AttentionPart = "attention"  #: which attention of the model the heads are of
    in_encoder: bool = False  #: whether they belong to the encoder of an encoder–decoder

    def with_scores(self, **values: Float64Array) -> HeadScores:
        """With scores [block, head] that do not come from patterns: `copying` (see `head_weights`),
        `delta_loss`.
        """
        return replace(self, values={**self.values, **values})

    def with_losses(self, rises: Iterable[tuple[Unit, float]]) -> HeadScores:
        """With `delta_loss`, which `losses_without` gives of all `heads`."""
        return self.with_scores(
            delta_loss=np.array([rise for _, rise in rises]).reshape(self.shape)
        )

    @property
    def heads(self) -> list[Unit]:
        """All heads, block by block."""
        return [self.unit(*at) for at in np.ndindex(self.shape)]

    @property
    def known_scores(self) -> tuple[str, ...]:
        """The scores that some head has."""
        return tuple(name for name in SCORES if not np.isnan(self.values[name]).all())

    @property
    def shape(self) -> tuple[int, int]:
        """How many blocks there are, and heads in each."""
        block, head = next(iter(self.values.values())).shape
        return block, head

    def unit(self, block: int, head: int) -> Unit:
        """One of the heads."""
        return Unit(self.part, block, head, self.in_encoder)

    def answer(self, name: str) -> tuple[str, str]:
        """What the head with the highest score called `name` does, in a sentence, and how much it
        does so.
        """
        values = self.values[name]
        block, head = np.unravel_index(int(np.nanargmax(values)), values.shape)
        highest = float(values[block, head])
        if name == "delta_loss" and highest <= 0:
            return f"The loss is no higher without any of the {values.size} heads.", ""
        title = self.unit(int(block), int(head)).title
        title = f"{title[0].upper()}{title[1:]}"
        score = SCORES[name]
        how_much = score.how_much.format(value=highest, share=f"{100 * highest:.1f} %")
        if score.is_kind and highest < CLEARLY:
            return f"No head clearly {score.does}.", f"{title} comes nearest: {how_much}."
        if not score.is_kind:
            return f"{title} {score.does}: {how_much}.", ""
        others = int((values >= CLEARLY).sum()) - 1
        too = ""
        if others:
            does = "does" if others == 1 else "do"
            too = f" {others} of the other {values.size - 1} heads {does} so too."
        return f"{title} {score.does}.", f"{how_much}.{too}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per head: its `name`, `block` and `head`, and its scores by name, None for a score
        without meaning.
        """
        values = np.stack(list(self.values.values()), -1)
        known = values.astype(object)  # [block, head, score]
        known[np.isnan(values)] = None
        return [
            {"name": self.unit(*at).name, "block": at[0], "head": at[1]}
            | dict(zip(self.values, known[at], strict=True))
            for at in np.ndindex(self.shape)
        ]

    def labelled(self) -> LabelledArray:
        """All scores as one array [block, head, score]."""
        stacked = np.stack(list(self.values.values()), axis=-1)
        block, head = (
            Axis(name, tuple(map(str, range(n))))
            for name, n in zip(("block", "head"), stacked.shape, strict=False)
        )
        return LabelledArray(stacked, (block, head, Axis("score", tuple(self.values))), "value")


def repeated_tokens(
    vocab_size: int,
    room: int,
    *,
    without: Collection[int] = (),
    before: Sequence[int] = (),
    after: Sequence[int] = (),
    seed: int = 0,
) -> Tensor:
    """Random tokens that are repeated once: [N_SEQUENCES, tokens], at most `room` tokens; the
    tokens of a half all differ.

    What random tokens are followed by cannot be learned from any text: only the first half tells
    what comes in the second.

    Args:
        vocab_size: the number of tokens of the model.
        room: how many tokens the model reads.
        without: tokens that are not drawn, such as those that mark the end of a text.
        before: tokens that stand before every text of this model.
        after: those that stand after it.
        seed: decides which tokens are drawn.

    Raises:
        ValueError: there is no room for a token and its copy, or there are fewer than two tokens to
            draw from.
    """
    ordinary = torch.tensor(
        [token for token in range(vocab_size) if token not in {*without, *before, *after}]
    )
    length = min(MOST_REPEATED, len(ordinary), (room - len(before) - len(after)) // 2)
    if length < 2:
        raise ValueError(
            f"random tokens cannot be repeated: the model reads {room} tokens and knows "
            f"{len(ordinary)} ordinary ones"
        )
    generator = torch.Generator().manual_seed(seed)
    halves = [
        ordinary[torch.randperm(len(ordinary), generator=generator)[:length]].repeat(2)
        for _ in range(N_SEQUENCES)
    ]
    ends = torch.tensor(before, dtype=torch.long), torch.tensor(after, dtype=torch.long)
    return torch.stack([torch.cat((ends[0], half, ends[1])) for half in halves])


def scored_tokens(ids: Tensor, config: Config) -> Tensor:
    """The tokens of a text [T] that are scored: the last `MOST_TOKENS`, or the first where a model
    reads from the beginning.
    """
    if MODEL_KINDS[config.kind].continues:
        return ids[-MOST_TOKENS:]
    return ids[:MOST_TOKENS]


@torch.inference_mode()
def head_scores(
    model: Transformer,
    ids: Tensor,
    source: Tensor | None = None,
    *,
    crosses: bool = False,
    repeats: Tensor | None = None,
) -> HeadScores:
    """The scores of every head of a stack over the texts `ids`, except for those that come from
    weights.

    Args:
        model: the stack; for an encoder, `model.encoder`.
        ids: [B, T], the tokens that it reads, without padding.
        source: [B, S], the tokens that an encoder reads with them.
        crosses: whether the heads of cross-attention are scored. A source has no previous token and
            no copies: only the shares on its first token, and the entropy, have a meaning.
        repeats: [B, T], repeated tokens over which the scores of repeats are computed where no
            token of `ids` comes back.

    Raises:
        ValueError: the model has no blocks, or there are more ids than its context holds.
    """
    if not model.config.n_layer:
        raise ValueError("this model has no blocks and therefore no attention")
    by_score = _score_heads(model, ids, source, crosses=crosses)
    missing = {
        name for name, values in by_score.items() if SCORES[name].repeats and np.isnan(values).all()
    }
    scores = HeadScores(
        by_score, n_tokens=ids.numel(), part="cross_attention" if crosses else "attention"
    )
    if crosses or repeats is None or not missing:
        return scores
    again = _score_heads(model, repeats, source, crosses=False)
    return replace(
        scores.with_scores(**{name: again[name] for name in missing}), on_random=frozenset(missing)
    )


@torch.inference_mode()
def scores_over_texts(
    model: Transformer, texts: Sequence[Tensor], repeats: Tensor | None = None
) -> HeadScores:
    """The scores of every head of a stack over texts [T] of any lengths without padding, but for
    the scores that come from weights: the mean over the queries of all texts. `repeats` are as in
    `head_scores`. A ValueError as in `head_scores`, or if there is no text.
    """
    if not texts:
        raise ValueError("there is no text to read")
    by_length: dict[int, list[Tensor]] = {}
    for text in texts:
        by_length.setdefault(len(text), []).append(text)
    groups = [torch.stack(each) for each in by_length.values()]  # [texts, T]
    groups_scores = []
    for before, ids in enumerate(groups):
        with progress.part(before, len(groups)):
            groups_scores.append((head_scores(model, ids).values, _queries(model, ids)))
    values: dict[str, Float64Array] = {}
    for name in SCORES:
        each = [(scores[name], count[name]) for scores, count in groups_scores]
        total = sum(np.where(count > 0, score, 0.0) * count for score, count in each)
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN where nothing counts
            values[name] = np.asarray(total / sum(count for _, count in each), np.float64)
    missing = {
        name for name, mean in values.items() if SCORES[name].repeats and np.isnan(mean).all()
    }
    again = {} if repeats is None or not missing else head_scores(model, repeats).values
    values |= {name: again[name] for name in missing if again}
    return HeadScores(values, frozenset(missing if again else ()), sum(map(len, texts)))


def _queries(model: Transformer, ids: Tensor) -> dict[str, Float64Array]:
    """How many queries of the texts [B, T] have a say in each score of the heads of a block,
    [block, 1].
    """
    texts = [EarlierTokens(one) for one in ids.cpu()]
    blocks = model.config.n_layer
    chooses = [
        int((visible[1:] > 1).sum()) for visible in _visible_counts(model, ids, None, crosses=False)
    ]
    each = dict.fromkeys(SCORES, [len(ids) * (ids.shape[1] - 1)] * blocks) | {
        "induction": [sum(int(text.followers.any(-1).sum()) for text in texts)] * blocks,
        "duplicate_token": [sum(int(one.copies.any(-1).sum()) for one in texts)] * blocks,
        "entropy": [len(ids) * count for count in chooses],
    }
    return {name: np.array(counts, np.float64)[:, None] for name, counts in each.items()}


def _score_heads(
    model: Transformer, ids: Tensor, source: Tensor | None, *, crosses: bool
) -> dict[str, Float64Array]:
    by_block: dict[str, list[Tensor]] = {name: [] for name in SCORES}
    if crosses:
        weighed = None
    else:
        weighed = _Weighed([EarlierTokens(text) for text in ids.cpu()])
    visible = iter(_visible_counts(model, ids, source, crosses=crosses))

    def see(_name: str, value: Tensor) -> None:
        of_block = next(visible)
        patterns = value.float().cpu()
        # Only so many heads at a time that the arrays computed from their patterns stay small.
        some = patterns.split(max(1, AT_ONCE // patterns[:, 0].numel()), dim=1)
        each = [_of_block(heads, weighed, of_block) for heads in some]
        nothing = torch.full((patterns.shape[1],), math.nan)
        for name, blocks in by_block.items():
            blocks.append(torch.cat([of[name] for of in each]) if name in each[0] else nothing)

    part = "cross_attention" if crosses else "attention"
    model(ids, source, tap=Watch([f"blocks.*.{part}.pattern"], see), logits_at=slice(-1, None))
    return {name: torch.stack(blocks).double().numpy() for name, blocks in by_block.items()}


def _visible_counts(
    model: Transformer, ids: Tensor, source: Tensor | None, *, crosses: bool
) -> list[Tensor]:
    """For each block, how many keys each query may read [T]."""
    length = ids.shape[1]
    if crosses:
        assert source is not None
        return [torch.full((length,), source.shape[1])] * model.config.n_layer
    counts = []
    for mask in model.masks:
        hidden = mask(ids[:1], slice(0, length), None)
        counts.append(
            torch.full((length,), length) if hidden is None else (~hidden).sum(-1).flatten().cpu()
        )
    return [counts[index] for index in model.mask_of]


class EarlierTokens:
    """Which keys each query of a text finds again, each [query, key]."""

    def __init__(self, ids: Tensor) -> None:
        places = torch.arange(len(ids))
        self.copies = (ids[:, None] == ids).tril(-1)  #: true at earlier copies of the query's token
        self.followers = followers(ids)  #: true just behind them, the query itself left out
        self.distance = (places[:, None] - places).abs().float()  #: how many tokens apart they are


def followers(ids: Tensor) -> Tensor:
    """For each query the keys [query, key] that stand just behind an earlier copy of its token,
    itself left out.
    """
    same = torch.zeros(len(ids), len(ids), dtype=torch.bool)
    same[:, 1:] = ids[:, None] == ids[:-1]  # the token before the key is the query's
    return same.tril(-1)


def previous_token(pattern: Tensor) -> Tensor:
    """The share of each query but the first on the token just before it: [..., T, T] → [..., T −
    1].
    """
    return pattern.diagonal(-1, -2, -1)


def first_token(pattern: Tensor) -> Tensor:
    """The share of each query but the first on the first token: [..., T, keys] → [..., T − 1]."""
    return pattern[..., 1:, 0]


def own_token(pattern: Tensor) -> Tensor:
    """The share of each query but the first on its own token: [..., T, T] → [..., T − 1]."""
    return pattern.diagonal(0, -2, -1)[..., 1:]


class _Weighed:
    """The scores that are weighed sums over all cells of a pattern: one product gives them for all
    heads of a block.
    """

    names = ("induction", "duplicate_token", "distance")

    def __init__(self, texts: Sequence[EarlierTokens]) -> None:
        followed, copied = (
            torch.stack(keys)
            for keys in zip(*((text.followers, text.copies) for text in texts), strict=True)
        )
        far = torch.stack([text.distance for text in texts])
        far[:, 0] = 0
        # A score in which no query has a say is 0 / 0: NaN.
        counts = [keys.any(-1).sum() for keys in (followed, copied)] + [
            torch.tensor(len(texts) * (far.shape[1] - 1))
        ]
        each = [
            keys.float() / count
            for keys, count in zip((followed, copied, far), counts, strict=True)
        ]
        #: [B, T · T, score]; the sum over the cells of all texts is the score
        self.weights = torch.stack(each, -1).flatten(1, 2)


def _of_block(patterns: Tensor, weighed: _Weighed | None, visible: Tensor) -> dict[str, Tensor]:
    """The scores [H] of the heads of a block from their patterns [B, H, T, keys]; NaN where no
    query has a say in one.
    """
    chooses = visible > 1
    chooses[0] = False
    # of each query in the mean entropy
    share = torch.where(chooses, 1 / (visible.log() * chooses.sum() * len(patterns)), 0.0)
    entropies = torch.special.entr(patterns).sum(-1)  # [B, H, T]
    scores = {"first_token": first_token(patterns).mean((0, 2))}
    scores["entropy"] = (
        (entropies @ share).sum(0)
        if chooses.any()
        else torch.full_like(scores["first_token"], math.nan)
    )
    if weighed is None:
        return scores
    scores |= {
        "previous_token": previous_token(patterns).mean((0, 2)),
        "self": own_token(patterns).mean((0, 2)),
    }
    sums = (patterns.flatten(2) @ weighed.weights).sum(0)  # [H, score]
    return scores | dict(zip(weighed.names, sums.T, strict=True))


def losses_without(
    model: Transformer,
    ids: Tensor,
    heads: Sequence[Unit],
    source: Tensor | None = None,
    *,
    counted_from: int = 1,
) -> Iterator[tuple[Unit, float]]:
    """For each of `heads`, of any stack, how much the loss of a model that guesses tokens rises, in
    nats per token, if what the head adds is replaced by zero. The loss is over the first of the
    texts `ids` [B, T], of `LOSS_TOKENS` tokens together, from the position `counted_from` on;
    `source` [B, S] is what an encoder reads. A ValueError if there is no token to guess.
    """
    if model.config.kind == "classifier":
        raise ValueError(
            "this model gives a whole text a label: without the right label it has no loss"
        )
    some = ids[: max(1, LOSS_TOKENS // ids.shape[1])]
    targets = torch.full_like(some, NOT_COUNTED)
    targets[:, counted_from - 1 : -1] = some[:, counted_from:]
    if not (targets != NOT_COUNTED).any():
        raise ValueError("a loss needs at least 2 tokens")
    texts = [Rows(Inputs(some, None if source is None else source[: len(some)]), targets)]
    yield from rises_without(model, texts, heads)


def rises_without(
    model: Transformer, texts: Sequence[Rows], heads: Sequence[Unit]
) -> Iterator[tuple[Unit, float]]:
    """As `losses_without`, over `texts` with what is to be guessed in them."""
    with progress.part(0, 1 + len(heads)):
        usual = loss(model, texts)
    for edit, without in loss_with_each(model, texts, [edit_unit(head) for head in heads]):
        yield edit.unit, without - usual


def stacks_of(model: Transformer) -> tuple[Stack, ...]:
    """The stacks of a model that have heads."""
    if model.encoder is None:
        return ("decoder",)
    return get_args(Stack)


def scores_of_stack(
    model: Transformer,
    stack: Stack,
    texts: Tensor,
    source: Tensor | None = None,
    repeats: Tensor | None = None,
    *,
    counted_from: int | None = None,
) -> HeadScores:
    """The scores of every head of one stack of a whole model that reads `texts` [B, T] and a source
    [B, S]: those of `head_scores`, and those that come from weights. With `counted_from` there is
    `delta_loss` too, as in `losses_without`.
    """
    if stack == "encoder" and model.encoder is not None and source is not None:
        scores = replace(head_scores(model.encoder, source), in_encoder=True)
    else:
        scores = head_scores(model, texts, source, crosses=stack == "cross", repeats=repeats)
    if stack == "decoder" and model.config.kind != "classifier":
        scores = scores.with_scores(copying=copying(model))
    if counted_from is None:
        return scores
    return scores.with_losses(
        losses_without(model, texts, scores.heads, source, counted_from=counted_from)
    )
