"""Heads: what a model makes of its residual stream."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from ..tap import Tap
from .part import Linear, ModelPart, Settings, SoftCap


class Head(ModelPart):
    """The reader of a model's residual stream, after the final norm where the config has one."""

    #: whether it gives logits [B, n_label] of the labels of a whole text; other heads give a vector
    #: for every position
    classifies: ClassVar[bool] = False
    #: whether a label's logit is a sum of what each token adds to it, tapped as `shares`, and a
    #: bias
    has_shares: ClassVar[bool] = False
    #: what a linear layer is multiplied with, where that is not every token: one vector of the
    #: "text", or "nothing" where its weights are used number by number
    layers_read: ClassVar[Mapping[str, Literal["tokens", "text", "nothing"]]] = MappingProxyType({})

    def __init__(self, settings: Settings, final_norm: nn.Module | None) -> None:
        super().__init__()
        self.final_norm = final_norm

    def forward(self, x: Tensor, padded: Tensor | None, at: slice, tap: Tap) -> Tensor:
        """x [B, T, d_model] → what the subclass makes of the positions `at`; `padded` [B, T] is
        true at padding.
        """
        raise NotImplementedError

    def apply_final_norm(self, x: Tensor, tap: Tap) -> Tensor:
        """The final norm of x [B, T, d_model], or x itself where the config has none."""
        if self.final_norm is None:
            return x
        return tap("final_norm", self.final_norm(x))


class EncoderHead(Head):
    """The stream itself: what an encoder hands to a decoder."""

    title = "Memory"
    equation = "memory = x"
    about = "Hands the stream to a decoder as it is."

    def forward(self, x: Tensor, padded: Tensor | None, at: slice, tap: Tap) -> Tensor:
        """[B, T, d_model] → [B, the positions `at`, d_model]."""
        return self.apply_final_norm(x[:, at], tap)


class Unembed(Head):
    """logits = W_U · norm(x) (+ b), with the final norm and the cap where the config has them."""

    title = "Unembed"
    equation = "logits = x · W_Uᵀ"
    about = (
        "Every token of the vocabulary gets a score to come next; the softmax of them is the guess."
    )

    def __init__(self, settings: Settings, final_norm: nn.Module | None) -> None:
        super().__init__(settings, final_norm)
        self.unembed = Linear(settings.d_model, settings.vocab_size, bias=settings.unembed_bias)
        if settings.logit_cap is None:
            self.cap = None
        else:
            self.cap = SoftCap(settings.logit_cap)

    def forward(self, x: Tensor, padded: Tensor | None, at: slice, tap: Tap) -> Tensor:
        """[B, T, d_model] → [B, the positions `at`, vocab_size]."""
        logits = self.unembed(self.apply_final_norm(x[:, at], tap))
        return tap("logits", logits if self.cap is None else self.cap(logits))


class Flatten(Head):
    """Each token becomes one number, and each label is a sum of these numbers with a weight for
    every place (Sinai 2022).

    So a token's share in a label's logit is exact: its number times the weight of its place.
    Padding has no share.
    """

    title = "Flatten"
    equation = "shares[t, label] = number[t] · W_label[label, t]"
    about = "Every token becomes one number, and a label weighs these numbers by their place."
    classifies = has_shares = True
    layers_read = MappingProxyType({"label": "nothing"})

    def __init__(self, settings: Settings, final_norm: nn.Module | None) -> None:
        super().__init__(settings, final_norm)
        self.token = Linear(settings.d_model, 1)
        self.label = Linear(settings.context_length, settings.n_label)

    def forward(self, x: Tensor, padded: Tensor | None, at: slice, tap: Tap) -> Tensor:
        """[B, T, d_model] → logits [B, n_label]; a label is of the whole text, whatever `at`."""
        numbers = self.token(self.apply_final_norm(x, tap)).squeeze(-1)  # [B, T]
        if padded is not None:
            numbers = numbers.masked_fill(padded, 0.0)
        weights = self.label.weight[:, : numbers.shape[1]]  # [n_label, T]
        shares = tap("shares", numbers[:, :, None] * weights.T)  # [B, T, n_label]
        return tap("logits", shares.sum(1) + self.label.bias)


class Mean(Head):
    """Each label is a linear function of the mean of the tokens: a token's share in its logit is
    exact here too.
    """

    title = "Mean"
    equation = "shares = x · W_labelᵀ / T"
    about = "A label is a linear function of the mean of all tokens' vectors."
    classifies = has_shares = True
    #: the number that the sum over this many tokens is divided by
    divisor: ClassVar[staticmethod[[Tensor], Tensor]] = staticmethod(lambda count: count)

    def __init__(self, settings: Settings, final_norm: nn.Module | None) -> None:
        super().__init__(settings, final_norm)
        self.label = Linear(settings.d_model, settings.n_label)

    def forward(self, x: Tensor, padded: Tensor | None, at: slice, tap: Tap) -> Tensor:
        """[B, T, d_model] → logits [B, n_label]; a label is of the whole text, whatever `at`."""
        x = self.apply_final_norm(x, tap)
        # [B, T, 1]
        if padded is None:
            real = torch.ones_like(x[:, :, :1])
        else:
            real = (~padded)[:, :, None].to(x.dtype)
        parts = self.label.multiply(x, self.label.weight, None) * real  # [B, T, n_label]
        # [B, T, n_label]
        shares = tap("shares", parts / self.divisor(real.sum(1, keepdim=True).clamp(min=1.0)))
        return tap("logits", shares.sum(1) + self.label.bias)


class ScaledSum(Mean):
    """As the mean, but divided by √T: a text with more tokens can have larger logits, and so be
    more certain.

    Counted words are weighed so too, where the vector of a text's counts is brought to length 1:
    that of T different words has the length √T.
    """

    title = "Scaled sum"
    equation = "shares = x · W_labelᵀ / √T"
    about = (
        "A label is a linear function of the sum of all tokens' vectors, divided by the root of "
        "their number."
    )
    divisor = staticmethod(torch.sqrt)


class First(Head):
    """Each label is a linear function of what a layer with a tanh makes of the first token (BERT,
    Devlin et al. 2018).

    The other tokens count only by what the first one has read of them, so no token has a share of
    its own in a logit.
    """

    title = "First token"
    equation = "pooled = tanh(W_pool · x[0] + b_pool)"
    about = (
        "A layer with a tanh reads the vector of the first token, and a label is a linear "
        "function of what it makes of it."
    )
    classifies = True
    layers_read = MappingProxyType({"pool": "text", "label": "text"})
    #: the curved function of the layer, of each number by itself
    curve: ClassVar[staticmethod[[Tensor], Tensor]] = staticmethod(torch.tanh)

    def __init__(self, settings: Settings, final_norm: nn.Module | None) -> None:
        super().__init__(settings, final_norm)
        self.pool = Linear(settings.d_model, settings.d_model)
        self.label = Linear(settings.d_model, settings.n_label)

    def forward(self, x: Tensor, padded: Tensor | None, at: slice, tap: Tap) -> Tensor:
        """[B, T, d_model] → logits [B, n_label]; a label is of the whole text, whatever `at`."""
        first = self.apply_final_norm(x, tap)[:, 0]
        pooled = tap("pooled", self.curve(self.pool(first)))  # [B, d_model]
        return tap("logits", self.label(pooled))


class FirstReLU(First):
    """As `First`, with ReLU for the tanh (DistilBERT, Sanh et al. 2019)."""

    title = "First token, ReLU"
    equation = "pooled = max(0, W_pool · x[0] + b_pool)"
    about = (
        "A layer with a ReLU reads the vector of the first token, and a label is a linear "
        "function of what it makes of it."
    )
    curve = staticmethod(torch.relu)


HEADS: dict[str, type[Head]] = {
    "unembed": Unembed,
    "flatten": Flatten,
    "mean": Mean,
    "sum": ScaledSum,
    "first": First,
    "first-relu": FirstReLU,
}
