"""How good a dictionary is: how much of the stream, or of an MLP's output, its features give back,
and what a model loses that goes on with that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine import progress
from gptviz.model import Transformer
from gptviz.model.edited import EditedTransformer

from ..changing.ablation import Rows, loss
from .dictionary import Dictionary
from .fitting import read_and_given

# What takes the place of the stream, or of an MLP's output, beside what the features give back.
AS_IT_IS = "as it is"
WITH = "the dictionary"
ZERO = "zero"
MEAN = "the mean"
RANDOM = "a random dictionary"


@dataclass(frozen=True)
class Quality:
    """How good a dictionary is, over texts that it was not fitted to; losses are in nats over all
    predictions that count.
    """

    explained: float  #: the share of the variance of what they are to give back that features do
    l0: float  #: how many features are active at a token, on average
    dead: float  #: the share of the features that are active at no token
    loss: float  #: of the model as it is
    loss_with: float  #: with what the features give back in its place
    loss_zero: float  #: with 0 in its place
    loss_mean: float  #: with its mean over the texts in its place
    loss_random: float  #: with what a random dictionary of as many features gives back
    of: str = field(default="the stream", kw_only=True)  #: what has its place taken

    @property
    def recovered(self) -> float:
        """The share of the loss by zero that the dictionary saves: 1 if it costs nothing. NaN if
        zero costs nothing.
        """
        lost = self.loss_zero - self.loss
        if lost:
            return (self.loss_zero - self.loss_with) / lost
        return float("nan")

    def labelled(self) -> LabelledArray:
        """The losses [stream], by what is in the place of the stream."""
        values = (self.loss, self.loss_with, self.loss_random, self.loss_mean, self.loss_zero)
        axis = Axis(f"in the place of {self.of}", (AS_IT_IS, WITH, RANDOM, MEAN, ZERO))
        return LabelledArray(np.array(values), (axis,), "loss, nats")


@torch.inference_mode()
def measure_quality(model: Transformer, dictionary: Dictionary, rows: Sequence[Rows]) -> Quality:
    """How good a dictionary of this model is over `rows`. A ValueError as in `read_and_given`."""
    with progress.part(0, 6, doing="reading the text"):
        read, given = (
            each.to(dictionary.encoder)
            for each in read_and_given(model, dictionary.block, dictionary.target, rows)
        )
    mean = given.mean(0)
    active = dictionary.encode(read)
    missed = (given - dictionary.decode(active)).square().sum() / (given - mean).square().sum()
    is_active = active > 0
    random = random_like(dictionary, mean, round(float(is_active.sum(-1).float().mean())))
    # from what the dictionary reads, and what it is to give back
    puts: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        AS_IT_IS: lambda read, given: given,
        WITH: lambda read, given: dictionary.reconstruct(read).to(given),
        ZERO: lambda read, given: torch.zeros_like(given),
        MEAN: lambda read, given: mean.to(given).expand_as(given),
        RANDOM: lambda read, given: random.reconstruct(read).to(given),
    }
    losses = []
    for before, (name, put) in enumerate(puts.items()):
        with progress.part(1 + before, 1 + len(puts), doing=f"the loss with {name}"):
            edited = EditedTransformer(model, dict(dictionary.replace(put)), {})
            losses.append(loss(edited, rows))
    shares = (
        1 - float(missed),
        float(is_active.sum(-1).double().mean()),
        float((~is_active.any(0)).double().mean()),
    )
    of = dictionary.of if dictionary.is_transcoder else "the stream"
    return Quality(*shares, *losses, of=of)


def random_like(dictionary: Dictionary, mean: Tensor, active: int, seed: int = 0) -> Dictionary:
    """A dictionary of as many features with random rows, of which `active` count at a token: it
    shows what directions of the stream are worth that nobody looked for. The encoder has the rows
    of the decoder, and both leave out the `mean` of the stream.
    """
    draw = torch.Generator().manual_seed(seed)
    rows = F.normalize(torch.randn(dictionary.encoder.shape, generator=draw), dim=-1).to(
        dictionary.encoder
    )
    none = torch.zeros_like(dictionary.threshold)
    return replace(
        dictionary,
        encoder=rows,
        encoder_bias=none,
        decoder=rows,
        decoder_bias=mean,
        threshold=none,
        k=max(active, 1),
        name="",
    )
