"""A dictionary of the stream after a block, a sparse autoencoder: few of its features are active at
a token, and their rows of the decoder, each as often as its feature is active, add up to nearly the
whole stream there.

The activations at a vector x of the stream are relu(W (x − c) + b). In a TopK dictionary only the k
largest of them count, in a JumpReLU dictionary only those above a threshold. The features give back
the sum of the decoder's rows times their activations, plus c.

The dictionary of an MLP, a transcoder, reads what the MLP reads, and its features give back what
the MLP gives (Dunefsky and others 2024). Its activations are relu(W x + b): c is only added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.model import Config
from gptviz.model.edited import Pass
from gptviz.runs import fitted

from ..changing.edit import ZERO, Acts, StreamEdit, Values, round_number
from ..held_out import support
from ..units.unit import Unit

# The tensors of numbers in the file of a dictionary; beside them "block", "k", the bytes of
# "model", "fitted_to" unless it was kept before that was counted, and of an MLP's "of_mlp".
TENSORS: Final = ("encoder", "encoder_bias", "decoder", "decoder_bias", "threshold")
_PREFIX: Final = "dictionary."
_OF_MLP: Final = "of_mlp"

# What the features give back: the stream after a block, or the output of the block's MLP.
Target = Literal["stream", "mlp"]


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The features of the stream after a block."""

    block: int  #: the number of the block
    encoder: Tensor  #: [feature, d_model], W
    encoder_bias: Tensor  #: [feature], b
    decoder: Tensor  #: [feature, d_model], what an activation of 1 adds to the stream
    decoder_bias: Tensor  #: [d_model], c
    threshold: Tensor  #: [feature], 0 for a feature whose activations all count
    k: int = 0  #: how many features count at a token; 0 for all
    #: the hash of the weights of the model that it was fitted to; empty if it is not known
    model: str = ""
    #: what edits call it: the name that it was given and a digest of its numbers, such as
    #: "mine-1f0c2a9b"; a dictionary that ships has the name of its model, such as
    #: "sentences-features"
    name: str = ""
    fitted_to: int = 0  #: the number of tokens that it was fitted to; 0 if nobody knows
    target: Target = field(default="stream", kw_only=True)  #: what it gives back

    @property
    def tap(self) -> str:
        """The name of the tap with what it reads."""
        return taps_of(self.block, self.target)[0]

    @property
    def target_tap(self) -> str:
        """The name of the tap with what it gives back: of a stream what it reads."""
        return taps_of(self.block, self.target)[1]

    @property
    def is_transcoder(self) -> bool:
        """Whether it gives back what an MLP gives."""
        return self.target == "mlp"

    @property
    def of(self) -> str:
        """What it gives back, in a sentence."""
        if self.is_transcoder:
            return f"the output of the MLP of block {self.block}"
        return f"the stream after block {self.block}"

    @property
    def kind(self) -> str:
        """Which activations count: "topk", "jumprelu", or "relu" for all of them."""
        if self.k:
            return "topk"
        if self.threshold.any():
            return "jumprelu"
        return "relu"

    @property
    def said(self) -> str:
        """What it is, in words."""
        active = {
            "topk": f"; at each token only the {self.k} largest are active (TopK)",
            "jumprelu": "; each is active above a threshold of its own (JumpReLU)",
            "relu": "; each is active where it is above 0 (ReLU)",
        }
        return f"{len(self.encoder):,} features of {self.of}{active[self.kind]}"

    @property
    def support(self) -> str:
        """To how many tokens it was fitted, in a sentence, which warns where they are few; empty if
        nobody knows. Each token has a value to give back for each number of the stream.
        """
        trained = (self.encoder, self.encoder_bias, self.decoder, self.decoder_bias)
        numbers = sum(each.numel() for each in trained)
        per_number = self.fitted_to * len(self.decoder_bias) / numbers
        if self.fitted_to:
            return support(self.fitted_to, per_number)
        return ""

    def encode(self, stream: Tensor) -> Tensor:
        """How active the features are [..., feature] in vectors that it reads [..., d_model]."""
        read = stream.to(self.encoder)
        if not self.is_transcoder:
            read = read - self.decoder_bias
        before = F.linear(read, self.encoder, self.encoder_bias)
        if self.k:
            largest = before.topk(self.k, -1)
            before = torch.zeros_like(before).scatter(-1, largest.indices, largest.values)
        return before.relu() * (before > self.threshold)

    @property
    def bias(self) -> Tensor:
        """How active each feature is where what is read is 0, before the ReLU [feature]."""
        if self.is_transcoder:
            return self.encoder_bias
        return self.encoder_bias - self.encoder @ self.decoder_bias

    def decode(self, active: Tensor) -> Tensor:
        """What the features give back of the stream [..., d_model], from their activations [...,
        feature].
        """
        return active @ self.decoder + self.decoder_bias

    def reconstruct(self, stream: Tensor) -> Tensor:
        """What the features give back of vectors of the stream [..., d_model], in the same type."""
        return self.decode(self.encode(stream)).to(stream)

    def to(self, device: torch.device) -> Dictionary:
        """The same dictionary on `device`."""
        return replace(self, **{name: getattr(self, name).to(device) for name in TENSORS})

    def with_feature(self, feature: int, activation: float = 0.0) -> FeatureEdit:
        """The edit that sets a feature to an activation; without one, it is switched off."""
        unit = Unit("dictionary", index=feature, called=self.name)
        return FeatureEdit(unit, round_number(activation) or ZERO, self)

    def edit(self, feature: int, activation: float = 0.0) -> str:
        """The text of this edit."""
        return self.with_feature(feature, activation).text

    def with_set(self, activations: Mapping[int, float]) -> Acts:
        """What an edit puts in the place of what it gives back where some features have these
        activations at every token: it changes by their rows of the decoder, each as often as its
        activation changes. What the dictionary misses stays.
        """
        some = list(activations)
        wanted = torch.tensor(list(activations.values()))

        def change(read: Tensor) -> Tensor:
            here = self.to(read.device)
            by = wanted.to(here.encoder) - here.encode(read)[..., some]
            return by @ here.decoder[some]

        return self.replace(lambda read, given: given + change(read).to(given))

    def replace(self, put: Callable[[Tensor, Tensor], Tensor]) -> Acts:
        """The taps and what takes the place of their values, where what it gives back becomes what
        `put` makes of what it reads and of what was there.
        """
        if not self.is_transcoder:
            yield self.tap, lambda stream, seen: put(stream, stream)
            return

        def note(read: Tensor, seen: Pass) -> Tensor:
            seen.kept[self.tap] = read
            return read

        yield self.tap, note
        yield self.target_tap, lambda given, seen: put(seen.kept[self.tap], given)

    def tensors(self) -> dict[str, Tensor]:
        """All that a file has of it."""
        counts = ("block", "k", "fitted_to")
        numbers = {name: torch.tensor(getattr(self, name)) for name in counts}
        if self.is_transcoder:
            numbers[_OF_MLP] = torch.tensor(1)
        model = torch.tensor(list(bytes.fromhex(self.model)), dtype=torch.uint8)
        return {name: getattr(self, name) for name in TENSORS} | numbers | {"model": model}


def taps_of(block: int, target: Target) -> tuple[str, str]:
    """The names of the taps with what a dictionary reads, and with what it gives back."""
    if target == "mlp":
        return f"blocks.{block}.mlp.read", f"blocks.{block}.mlp.out"
    return (f"blocks.{block}.resid_post",) * 2


def keep(dictionary: Dictionary) -> None:
    """Keep a dictionary, so that its features are units; a ValueError if numbers are not finite, an
    OSError if that fails.
    """
    if not all(getattr(dictionary, name).isfinite().all() for name in TENSORS):
        raise ValueError(
            "the numbers of this dictionary are not all finite: fit it again, to other text or "
            "with fewer features"
        )
    fitted.keep(_PREFIX + dictionary.name, dictionary.tensors())


def find_dictionary(name: str) -> Dictionary | None:
    """The dictionary that is kept under this name, or ships with it; or None."""
    tensors = fitted.kept_tensors(_PREFIX + name) or fitted.shipped_tensors(name)
    fitted_to = int(tensors.pop("fitted_to", 0))
    target: Target = "mlp" if tensors.pop(_OF_MLP, None) is not None else "stream"
    if tensors.keys() != {*TENSORS, "block", "k", "model"}:
        return None
    numbers = {key: tensors[key].float() for key in TENSORS}
    model = bytes(tensors["model"].tolist()).hex()
    block, k = (int(tensors[key]) for key in ("block", "k"))
    return Dictionary(
        block, **numbers, k=k, model=model, name=name, fitted_to=fitted_to, target=target
    )


def names() -> list[str]:
    """The names of all dictionaries: first those that ship, then those that are kept."""
    return [
        *fitted.shipped_names(),
        *(name.removeprefix(_PREFIX) for name in fitted.names(_PREFIX)),
    ]


def fits_config(dictionary: Dictionary, config: Config) -> bool:
    """Whether a model of this config has what a dictionary reads."""
    has_block = dictionary.block < config.n_layer
    has_target = config.mlp_size > 0 or not dictionary.is_transcoder
    return has_block and has_target and dictionary.encoder.shape[1] == config.d_model


def dictionary_for(named: str | Dictionary, config: Config) -> Dictionary:
    """The dictionary of this name, or one that is open, for a model of this config. A ValueError if
    it is not kept here, or does not fit the model.
    """
    dictionary = find_dictionary(named) if isinstance(named, str) else named
    if dictionary is None:
        raise ValueError(
            f"there is no dictionary {named} on this machine: fit it, or read its files, with "
            "gptviz dictionary"
        )
    if not fits_config(dictionary, config):
        raise ValueError(
            f"the dictionary {dictionary.name} is that of another model: it gives back "
            f"{dictionary.of}, from vectors of {dictionary.encoder.shape[1]:,} numbers"
        )
    return dictionary


class FeatureEdit(StreamEdit):
    """A feature that is set to an activation: `dictionary.mine-1f0c2a9b.feature.17=4`."""

    set_to = " is set to {:.6g}"

    @classmethod
    def act(cls, edits: Sequence[Self], values: Values) -> Acts:
        """As `Edit.act`: the features of one dictionary act together."""
        of_each: dict[str, list[Self]] = {}
        for one in edits:
            of_each.setdefault(one.unit.called, []).append(one)
        for name, together in of_each.items():
            dictionary = dictionary_for(together[0].opened or name, values.model.config)
            activations = {one.unit.index or 0: one.number for one in together}
            last = max(activations)
            if last >= len(dictionary.encoder):
                raise ValueError(
                    f"the dictionary {name} has no feature {last}; features are counted from 0 to "
                    f"{len(dictionary.encoder) - 1}"
                )
            yield from dictionary.with_set(activations)
