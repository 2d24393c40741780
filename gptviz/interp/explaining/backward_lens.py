"""The backward lens: what one step of training on a text writes into the MLP of a block, read as
words.

The matrix that an MLP writes with gets the gradient Σ_t δ_t h_tᵀ, a sum over the tokens that are
read: h_t is what its neurons computed at token t, δ_t the derivative of the loss by what the MLP
wrote there. A step goes against the gradient, so it adds a multiple of −δ_t to what is written
wherever the neurons are active as they were at t. Both are vectors of the stream, and the
unembedding reads each as words: what the text asks for, and what the MLP writes before the step and
after it.

The text is the same before and after, and so is all that the MLP reads: of all weights only its own
are taken from the step. The step itself is that of `learning_step`: the first one of a training on
only this text.

Source: Katz et al. 2024, "Backward Lens: Projecting Language Model Gradients into the Vocabulary
Space", which reads the δ_t; what the MLP writes before and after is ours.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.model import Record, Transformer
from gptviz.model.parts.heads import Unembed
from gptviz.train.recipe import Recipe

from ..trace import one_row
from .learning_step import copy_for_training, refuse_no_text, take_step
from .through_norms import norms_of, written_through

# But for the size of norms: see `BackwardLens`.
UNIT = "logit"


@dataclass(frozen=True, eq=False)
class BackwardLens:
    """What a step writes into an MLP. Vectors are read by `promoted_tokens` of `units.neurons`:
    norms count by what is linear in them, so the numbers of a reading lack a factor, and their mean
    over the vocabulary is 0.
    """

    ids: tuple[int, ...]  #: the text's tokens; T of them are read, all but the last
    block: int  #: whose MLP it is
    #: [T, vocab_size], what the loss of the text asks the MLP to write at each token that is read:
    #: −δ_t, which lowers it most
    asked: Float64Array
    written_before: Float64Array  #: [T, vocab_size], what it writes before the step
    written_after: Float64Array  #: [T, vocab_size], what it writes after it
    #: [T], the probability of the token that follows in the text, before the step
    probability_before: Float64Array
    #: [T], the same after the step of this MLP alone
    probability_after: Float64Array

    @property
    def change(self) -> Float64Array:
        """What the step adds to what the MLP writes: [T, vocab_size]."""
        return self.written_after - self.written_before

    def changed_words(self, label: Callable[[int], str], top: int = 12) -> LabelledArray:
        """The change of the `top` words that it is largest for, of any token that is read: [word,
        token read]. `label` names a token.
        """
        chosen = (-abs(self.change).max(0)).argsort(kind="stable")[:top].tolist()
        words = Axis("word", tuple(map(label, chosen)))
        read = Axis("token read", tuple(map(label, self.ids[:-1])))
        return LabelledArray(self.change.T[chosen], (words, read), UNIT)


def largest(reading: Float64Array, most: int) -> list[tuple[int, float]]:
    """The `most` tokens with the largest values of a reading [vocab_size], with these values."""
    return [
        (token, float(reading[token]))
        for token in (-reading).argsort(kind="stable")[:most].tolist()
    ]


def blocks_with_mlp(model: Transformer) -> range:
    """The blocks whose MLP a step writes into."""
    return range(model.config.n_layer if model.config.mlp_size else 0)


def backward_lens(
    model: Transformer, ids: Sequence[int], block: int | None = None, recipe: Recipe | None = None
) -> BackwardLens:
    """What the first step of training on only this text writes into the MLP of a block. The model
    does not change.

    Args:
        ids: the tokens of the text, at least two; all but the last must fit in the context.
        block: counted from 0; the last one unless given.
        recipe: as of `learning_step`.

    Raises:
        ValueError: the model is no decoder, too large, or has no such MLP; or the text is too
            short.
    """
    refuse_no_text(model, ids)
    blocks = blocks_with_mlp(model)
    if not blocks:
        raise ValueError("the blocks of this model have no MLP: a step writes into none")
    block = blocks[-1] if block is None else block
    if block not in blocks:
        raise ValueError(
            f"there is no block {block!r:.40}; blocks are counted from 0 to {blocks[-1]}"
        )
    text, _ = one_row(model, ids)
    name = f"blocks.{block}.mlp.out"
    exact = copy_for_training(model).double().requires_grad_(True)
    losses, written = _losses(exact, text, name)
    (asked,) = torch.autograd.grad(losses.mean(), written)
    # The same model, but for this MLP after the step of all weights.
    after = copy.deepcopy(exact)
    trained = take_step(model, text, recipe or Recipe(steps=1)).model
    after.blocks[block].mlp = trained.blocks[block].mlp.double()
    losses_after, written_after = _losses(after, text, name)

    def as_words(vectors: Tensor) -> Float64Array:
        return _as_words(exact, block, vectors[0].detach())

    return BackwardLens(
        ids=tuple(ids),
        block=block,
        asked=as_words(-asked),
        written_before=as_words(written),
        written_after=as_words(written_after),
        probability_before=(-losses.detach()).exp().cpu().numpy(),
        probability_after=(-losses_after.detach()).exp().cpu().numpy(),
    )


def _losses(model: Transformer, text: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """The loss of each guess of a text [1, T + 1], and what was recorded as `name`: [T] and
    [1, T, d_model].
    """
    record = Record([name])
    logits = model(text[:, :-1], tap=record)[0]  # [T, vocab_size]
    return F.cross_entropy(logits, text[0, 1:], reduction="none"), record.values[name]


@torch.no_grad()
def _as_words(model: Transformer, block: int, vectors: Tensor) -> Float64Array:
    """Vectors [T, d_model] that the MLP of a block writes, as the unembedding reads them: [T,
    vocab_size].
    """
    assert isinstance(model.head, Unembed)
    residual: nn.Module = model.blocks[block].get_submodule("mlp_residual")
    into_stream = written_through(norms_of(residual)[1], vectors.T)  # [d_model, T]
    read = written_through(model.head.final_norm, into_stream)  # type: ignore[arg-type]
    logits = read.T @ model.head.unembed.weight.T  # [T, vocab_size]
    return (logits - logits.mean(-1, keepdim=True)).cpu().numpy()
