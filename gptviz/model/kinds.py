"""The kinds of models: what each makes of a text, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["decoder", "classifier", "encoder-decoder"]


@dataclass(frozen=True)
class ModelKind:
    """A kind of model."""

    name: Kind  #: as a config gives it
    with_article: str  #: its name in a sentence: "a decoder"
    does: str  #: what a model of this kind does, as the rest of a sentence that begins with "it"
    guesses: Literal["token", "label"] = "token"  #: what its logits are of
    #: whether what it writes goes on with what it reads; of a text longer than its context it reads
    #: the end, others the beginning
    continues: bool = False
    has_source: bool = False  #: whether it reads one text, the source, and writes another


MODEL_KINDS: dict[Kind, ModelKind] = {
    "decoder": ModelKind(
        "decoder", "a decoder", "goes on with a text, one token after another", continues=True
    ),
    "classifier": ModelKind(
        "classifier", "a classifier", "gives a whole text a label", guesses="label"
    ),
    "encoder-decoder": ModelKind(
        "encoder-decoder",
        "an encoder–decoder",
        "reads one text and writes another",
        has_source=True,
    ),
}


def kind_said(fields: Mapping[str, Any]) -> Kind:
    """The kind of a model by the fields of its config, which are not checked: it is that of
    `Config.kind`, without the parts.
    """
    if fields.get("n_label"):
        return "classifier"
    if fields.get("n_encoder_layer"):
        return "encoder-decoder"
    return "decoder"
