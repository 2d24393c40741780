"""The family of `transformers` that computes the same as a model of ours, and its tensors, made of
our weights.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gptviz.model import Config
from gptviz.model.builder import parameter_shapes
from gptviz.model.parts.norms import NORMS
from gptviz.model.parts.positions import turned_pairs

from ..given import ImportRefusedError
from .base import Family, eps_of
from .registry import FAMILIES

# Tensors that a family may have although our model lacks them: a bias of 0 and a gain of 1 change
# nothing.
MAY_BE_NEUTRAL = ("norm_gain", "norm_bias", "qkv_bias", "output_bias", "mlp_bias", "unembed_bias")
MOST_NAMED = 4
ONLY_IN_TRAINING = ("dropout", "attention_dropout", "token_dropout")


class NotExpressibleError(ValueError):
    """A model that another format cannot hold; the message names the fields of the config that the
    format lacks.
    """


@dataclass(frozen=True)
class Expressed:
    """A model of ours in the form of a family."""

    family: Family  #: the family
    fields: Mapping[str, Any]  #: its `config.json`
    #: our config of this `config.json`; it may have biases and gains that our model lacks
    config: Config

    def tensors(self, weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """Their tensors, by name, made of our `weights`."""
        return self.family.stored_tensors(self.split_experts(weights))

    def split_experts(self, weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """The same, with the matrices of every expert by themselves."""
        shapes = parameter_shapes(self.config)
        kind = weights["embed.weight"].dtype
        for match in self.family.matches(self.config):
            ours = weights.get(match.ours)
            if ours is None:
                if match.ours.endswith(".weight"):
                    neutral = torch.ones
                else:
                    neutral = torch.zeros
                ours = neutral(shapes[match.ours], dtype=kind)
            yield from zip(match.theirs, match.to_theirs(ours), strict=True)


def express_model(
    config: Config, first: str | None = None, among: Collection[str] = tuple(FAMILIES)
) -> Expressed:
    """A model with this config in the form of a family that computes exactly the same, of those
    `among` the keys of `FAMILIES`; if several do, of the one with the title `first`. A
    NotExpressibleError if there is none; the message names what the nearest one lacks.
    """
    nearest: tuple[tuple[bool, int], list[str], str] | None = None
    for family in sorted(
        (FAMILIES[name] for name in among), key=lambda family: family.title != first
    ):
        fields = family.fields(config)
        try:
            candidate = Expressed(family, fields, family.our_config(family.given_fields(fields)))
        except ImportRefusedError:  # no possible model
            continue
        lacks = differences(config, candidate.config)
        if not lacks:
            return candidate
        # A model with another kind of output is never near, even if few fields differ.
        distance = candidate.config.kind != config.kind, len(lacks)
        if nearest is None or distance < nearest[0]:
            nearest = distance, lacks, family.title
    _, lacks, title = nearest or ((True, 1), ["head"], "none")
    differs = fields_in_words(config, lacks)
    if len(among) == len(FAMILIES):
        where = "transformers"
    else:
        where = "this format"
    raise NotExpressibleError(
        f"no family of {where} is built like this: the nearest is {title}, which differs in "
        f"{differs}"
    )


def fields_in_words(config: Config, names: list[str]) -> str:
    """These fields of our config with their values, in words; only the first ones if they are
    many.
    """
    words = [f"{name} (here {_word(getattr(config, name))})" for name in names[:MOST_NAMED]]
    return ", ".join(words) + (
        f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    )


def _word(value: object) -> str:
    """A value as the command line takes it."""
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value).strip('"')


def differences(ours: Config, theirs: Config) -> list[str]:
    """The fields that matter and that differ between our config and theirs; no other program has
    blocks without an MLP.
    """
    mine = _effective_fields(ours)
    other = _effective_fields(theirs)
    lacks = list[str]()
    for name, (a, b) in {name: (value, other[name]) for name, value in mine.items()}.items():
        if isinstance(a, float) and isinstance(b, float | int):
            is_equal = math.isclose(a, b, rel_tol=1e-9)
        else:
            is_equal = a == b
        if not is_equal and not (name in MAY_BE_NEUTRAL and a is False and b is True):
            lacks.append(name)
    if "positions" in lacks:  # then the rotary settings do not matter
        lacks = [name for name in lacks if not name.startswith("rotary_")]
    if ours.mlp_size or "d_mlp" in lacks:
        return lacks
    return [*lacks, "d_mlp"]


def _effective_fields(config: Config) -> dict[str, Any]:
    """The fields of a config with all defaults filled in, without those that change nothing in
    it.
    """
    fields = {
        name: value for name, value in config.to_dict().items() if name not in ONLY_IN_TRAINING
    }
    fields |= {
        "n_kv_head": config.key_heads,
        "score_scale": config.scale,
        "norm_eps": eps_of(config),
    }
    fields["norm_bias"] = config.norm_bias and config.norm_gain and NORMS[config.norm].may_have_bias
    if config.mlp == "experts":
        fields["mlp_bias"] = False
    else:
        fields |= dict.fromkeys(("n_expert", "n_active", "expert_norm", "d_shared"))
    is_rotary = config.positions == "rotary"
    slowed = config.rotary_scaling != "none"
    fields |= {
        "rotary_base": config.rotary_base if is_rotary else None,
        "rotary_fraction": turned_pairs(config) if is_rotary else None,
        "rotary_scaling": config.rotary_scaling if is_rotary else None,
        "rotary_factor": config.rotary_factor if is_rotary and slowed else None,
        "rotary_context": config.rotary_context
        if is_rotary and config.rotary_scaling == "llama3"
        else None,
    }
    near = config.window_rotary_base if is_rotary else None
    if near == config.rotary_base and not slowed:
        near = None
    kinds = "".join("w" if config.has_window(block) else "f" for block in range(config.n_layer))
    hides = config.window is not None and config.window < config.context_length
    if "w" not in kinds or not (hides or near):
        near = None
        kinds = ""
        hides = False
    return fields | {
        "window": config.window if hides else None,
        "window_pattern": kinds,
        "window_rotary_base": near,
    }
