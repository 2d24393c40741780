"""BERT and DistilBERT as classifiers of whole texts."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from gptviz.model import Config

from ..given import Given, ImportRefusedError
from .base import Family, Match


class LabelsOfTexts(Family):
    """The common base of BERT and DistilBERT: an encoder whose head reads the first token,
    [CLS].
    """

    architecture: ClassVar[str]  #: the name in `config.json` of those that classify whole texts
    head: ClassVar[str]  #: our name of the head
    unused = ("position_ids",)

    def config(self, given: Given) -> Config:
        self.require_architecture(given, "gives a whole text a label")
        given.allow_only("problem_type", "single_label_classification")
        given.allow_only("is_decoder", False)
        given.allow_only("add_cross_attention", False)
        given.allow_only("position_embedding_type", "absolute")
        labels = self.labels(given)
        if len(labels) < 2:
            raise ImportRefusedError(
                "config.json: the model gives a number and no label; gptviz opens those with 2 "
                "labels or more"
            )
        return Config(
            **{"norm_eps": 1e-12} | self.read_config(given),
            residual="post-norm",
            embed_norm=True,
            final_norm=False,
            mask="full",
            head=self.head,
            n_label=len(labels),
            padding=given.our_number("padding", "pad_token_id", 0, needed=False),
        )

    def fields(self, config: Config) -> dict[str, Any]:
        names = {str(label): f"LABEL_{label}" for label in range(config.n_label)}
        return self.write_config(config) | {
            "pad_token_id": config.padding,
            "id2label": names,
            "label2id": {name: int(label) for label, name in names.items()},
        }

    def labels(self, given: Given) -> tuple[str, ...]:
        """The names in `id2label`, in the order of their numbers; if there are none, `LABEL_0`,
        `LABEL_1`, ….
        """
        names = given.optional("id2label")
        if names is None:
            return tuple(
                f"LABEL_{label}" for label in range(given.our_number("n_label", "num_labels", 2))
            )
        if isinstance(names, dict):
            numbers = [str(number) for number in range(len(names))]
        else:
            numbers = []
        if not isinstance(names, dict) or names.keys() != set(numbers):
            raise ImportRefusedError(
                f"config.json: id2label is {names!r:.80}; it must name the labels 0, 1, 2 and so on"
            )
        return tuple(str(names[number]) for number in numbers)


class Bert(LabelsOfTexts):
    """BERT (Devlin et al. 2018). Of the vectors for its two segments only the first is used; it is
    added to our positions.
    """

    model_type = "bert"
    title = "BERT"
    architecture = "BertForSequenceClassification"
    head = "first"
    layers = "bert.encoder.layer"
    parts: ClassVar = {
        "embed": "bert.embeddings.word_embeddings",
        "positions.table": "bert.embeddings.position_embeddings",
        "embed_norm": "bert.embeddings.LayerNorm",
        "attention.qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
        "attention.output": "attention.output.dense",
        "attention_residual.norm": "attention.output.LayerNorm",
        "mlp.up": "intermediate.dense",
        "mlp.down": "output.dense",
        "mlp_residual.norm": "output.LayerNorm",
        "head.pool": "bert.pooler.dense",
        "head.label": "classifier",
    }
    table: ClassVar = {
        "vocab_size": ("vocab_size", 30_522),
        "context_length": ("max_position_embeddings", 512),
        "d_model": ("hidden_size", 768),
        "n_layer": ("num_hidden_layers", 12),
        "n_head": ("num_attention_heads", 12),
        "d_mlp": ("intermediate_size", 3_072),
        "activation": ("hidden_act", "gelu"),
        "norm_eps": ("layer_norm_eps", 1e-12),
    }

    def match(self, config: Config, ours: str, theirs: tuple[str, ...]) -> Match:
        if ours != "positions.table.weight":
            return super().match(config, ours, theirs)
        return Match(
            ours,
            (*theirs, "bert.embeddings.token_type_embeddings.weight"),
            lambda tensors: tensors[0] + tensors[1][0],
            lambda tensor: (tensor, torch.zeros(2, tensor.shape[1])),
        )


class DistilBert(LabelsOfTexts):
    """DistilBERT (Sanh et al. 2019)."""

    model_type = "distilbert"
    title = "DistilBERT"
    architecture = "DistilBertForSequenceClassification"
    head = "first-relu"
    layers = "distilbert.transformer.layer"
    parts: ClassVar = {
        "embed": "distilbert.embeddings.word_embeddings",
        "positions.table": "distilbert.embeddings.position_embeddings",
        "embed_norm": "distilbert.embeddings.LayerNorm",
        "attention.qkv": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        "attention.output": "attention.out_lin",
        "attention_residual.norm": "sa_layer_norm",
        "mlp.up": "ffn.lin1",
        "mlp.down": "ffn.lin2",
        "mlp_residual.norm": "output_layer_norm",
        "head.pool": "pre_classifier",
        "head.label": "classifier",
    }
    table: ClassVar = {
        "vocab_size": ("vocab_size", 30_522),
        "context_length": ("max_position_embeddings", 512),
        "d_model": ("dim", 768),
        "n_layer": ("n_layers", 6),
        "n_head": ("n_heads", 12),
        "d_mlp": ("hidden_dim", 3_072),
        "activation": ("activation", "gelu"),
    }
