"""Models whose weights are set by hand, so that it is known what each head does.

The stream of such a model has rooms of its own for what its parts write: the token that stands at a
position, the place of the position, the token before it (written by a previous-token head), and the
token that the model says (read by the unembedding). In each room a value is one-hot. There are no
norms, biases or MLPs unless asked for, so that every output has a closed form. Scores are so far
apart that a softmax is exactly one-hot in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gptviz.interp.trace import run
from gptviz.model import Config, Transformer, build

VOCAB = 10
CONTEXT = 24
# The score of a key that a head looks for; all others have at most half of it. e^-200 is 0 in
# float32.
SHARP = 400.0
# The logit of a token that is said by one head with its whole attention.
LOUD = 10.0

TOKEN = slice(0, VOCAB)
PLACE = slice(TOKEN.stop, TOKEN.stop + CONTEXT)
BEFORE = slice(PLACE.stop, PLACE.stop + VOCAB)
SAID = slice(BEFORE.stop, BEFORE.stop + VOCAB)
D_MODEL = SAID.stop
D_HEAD = VOCAB + CONTEXT
# Two halves of a head's numbers: one for tokens, one for places.
H_TOKEN = slice(0, VOCAB)
H_PLACE = slice(VOCAB, D_HEAD)


@dataclass(frozen=True)
class Head:
    """The four matrices of a head, each [d_model, d_head]: query = x W_Q, and so on; it writes z
    W_Oᵀ.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor


@dataclass(frozen=True)
class Neuron:
    """A neuron that is 1 where the token `reads` stands, else 0, and adds LOUD to the logit of the
    token `says`.
    """

    reads: int
    says: int


def _matrix(*entries: tuple[slice, slice, Tensor | float]) -> Tensor:
    """A matrix [d_model, d_head] of zeros with these blocks; a number stands for that many times
    the identity.
    """
    matrix = torch.zeros(D_MODEL, D_HEAD)
    for rows, columns, block in entries:
        square = torch.eye(rows.stop - rows.start) * block if isinstance(block, float) else block
        matrix[rows, columns] = square
    return matrix


def _head(query: Tensor, key: Tensor, *, writes: slice, sign: float = 1.0) -> Head:
    """A head that copies the tokens it reads into the room `writes`."""
    return Head(query, key, _matrix((TOKEN, H_TOKEN, 1.0)), _matrix((writes, H_TOKEN, sign)))


def nothing() -> Head:
    """Attends evenly to all tokens it may read, and writes nothing."""
    return Head(*(torch.zeros(D_MODEL, D_HEAD) for _ in range(4)))


def previous_token(writes: slice = BEFORE) -> Head:
    """Attends to the token just before (the first token to itself)."""
    # the place p asks for the place p - 1
    back = torch.diag(torch.full((CONTEXT - 1,), SHARP), diagonal=-1)
    return _head(_matrix((PLACE, H_PLACE, back)), _matrix((PLACE, H_PLACE, 1.0)), writes=writes)


def lagged(places: int) -> Head:
    """Says the token so many places before its own; where there is none, evenly those that it may
    read.
    """
    back = torch.diag(torch.full((CONTEXT - places,), SHARP), diagonal=-places)
    return _head(_matrix((PLACE, H_PLACE, back)), _matrix((PLACE, H_PLACE, 1.0)), writes=SAID)


def first_token() -> Head:
    """Attends to the first token of the text, and writes nothing there: a sink."""
    ask = torch.zeros(CONTEXT, CONTEXT)
    ask[:, 0] = SHARP
    zero = torch.zeros(D_MODEL, D_HEAD)
    return Head(_matrix((PLACE, H_PLACE, ask)), _matrix((PLACE, H_PLACE, 1.0)), zero, zero)


def itself() -> Head:
    """Attends to its own position, and writes nothing."""
    zero = torch.zeros(D_MODEL, D_HEAD)
    return Head(_matrix((PLACE, H_PLACE, SHARP)), _matrix((PLACE, H_PLACE, 1.0)), zero, zero)


def duplicate_token() -> Head:
    """Attends evenly to the earlier positions that hold the same token; where there is none, to its
    own position.
    """
    # its own position loses half of the score
    query = _matrix((TOKEN, H_TOKEN, SHARP), (PLACE, H_PLACE, -SHARP / 2))
    return _head(query, _matrix((TOKEN, H_TOKEN, 1.0), (PLACE, H_PLACE, 1.0)), writes=BEFORE)


def copy(sign: float = 1.0) -> Head:
    """Attends evenly to all tokens up to its own, and says them; with `sign` -1 it speaks against
    them.
    """
    zero = torch.zeros(D_MODEL, D_HEAD)
    return _head(zero, zero, writes=SAID, sign=sign)


def induction() -> Head:
    """Attends to the tokens before which the query's token stood, as a previous-token head has
    written, and says them.

    Where the query's token has not stood earlier it attends evenly to all but the first token. The
    first token has no token before it: a previous-token head has written the token itself there, so
    its score is lowered.
    """
    ask = torch.zeros(CONTEXT, CONTEXT)
    lowered = torch.zeros(CONTEXT, CONTEXT)
    ask[:, 0], lowered[0, 0] = SHARP, -2.0
    return _head(
        _matrix((TOKEN, H_TOKEN, SHARP), (PLACE, H_PLACE, ask)),
        _matrix((BEFORE, H_TOKEN, 1.0), (PLACE, H_PLACE, lowered)),
        writes=SAID,
    )


@torch.no_grad()
def hand_built(*blocks: Sequence[Head], neurons: Sequence[Sequence[Neuron]] = ()) -> Transformer:
    """A decoder of these blocks of heads, in evaluation mode; all blocks have equally many heads.

    Args:
        blocks: for each block its heads.
        neurons: for each block its neurons, equally many; none means no MLP.
    """
    config = Config(
        vocab_size=VOCAB, context_length=CONTEXT, d_model=D_MODEL, n_layer=len(blocks), n_head=len(blocks[0]), d_head=D_HEAD,
        d_mlp=len(neurons[0]) if neurons else 0, activation="relu", residual="plain", final_norm=False, positions="learned",
        qkv_bias=False, output_bias=False, mlp_bias=False, score_scale=1.0,
    )  # fmt: skip
    model = build(config, seed=0)
    for parameter in model.parameters():
        parameter.zero_()
    model.embed.weight[:, TOKEN] = torch.eye(VOCAB)
    model.positions.get_parameter("table.weight")[:, PLACE] = torch.eye(CONTEXT)
    model.head.get_parameter("unembed.weight")[:, SAID] = LOUD * torch.eye(VOCAB)
    for block, heads in zip(model.blocks, blocks, strict=True):
        stacked = [
            matrix.T
            for name in ("query", "key", "value")
            for matrix in (getattr(head, name) for head in heads)
        ]
        block.get_parameter("attention.qkv.weight").copy_(torch.cat(stacked))
        block.get_parameter("attention.output.weight").copy_(
            torch.cat([head.output for head in heads], dim=1)
        )
    for block, row in zip(model.blocks, neurons, strict=False):
        for number, neuron in enumerate(row):
            block.get_parameter("mlp.up.weight")[number, TOKEN.start + neuron.reads] = 1.0
            block.get_parameter("mlp.down.weight")[SAID.start + neuron.says, number] = 1.0
    return model.eval()


def induction_circuit() -> Transformer:
    """Two blocks of three heads: head 1 of block 0 attends to the token before, head 2 of block 1
    is an induction head that reads what it wrote, and the others write nothing. It goes on with A B
    … A as with B.
    """
    return hand_built((nothing(), previous_token(), nothing()), (nothing(), nothing(), induction()))


@torch.inference_mode()
def steered(
    model: Transformer, ids: Tensor, block: int, neuron: int, value: float | None
) -> Tensor:
    """The logits after the last token of `ids` [T] (of a classifier, of the labels) if a neuron has
    this value at every token.

    Args:
        model: a decoder or a classifier.
        ids: the tokens that it reads.
        block: the number of the block.
        neuron: its number in the block.
        value: what the neuron is set to; None leaves it as it is.
    """

    def put(neurons: Tensor) -> Tensor:
        neurons[..., neuron] = torch.tensor(value)
        return neurons

    edits = None if value is None else {f"blocks.{block}.mlp.neurons": put}
    logits = run(model, ids[None], ["logits"], edits=edits, logits_at=slice(-1, None))["logits"]
    return logits.flatten(0, -2)[-1].float().cpu()
