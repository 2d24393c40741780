"""BERT and DistilBERT as classifiers of whole texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from gptviz.model import Config

from .base import Family, Given, ImportRefusedError, Match, linear, norm, same, stacked


class LabelsOfTexts(Family):
    """The common base of BERT and DistilBERT: an encoder whose head reads the first token, [CLS]."""

    architecture: ClassVar[str]  #: the name in `config.json` of those that classify whole texts
    stem: ClassVar[str]  #: the beginning of the names of the encoder's tensors
    parts: ClassVar[dict[str, str]]  #: the names of the parts of a block, by our names for them
    pool: ClassVar[str]  #: the name of the layer that reads the first token
    head: ClassVar[str]  #: our name of the head
    unused = ("position_ids",)

    def config(self, given: Given) -> Config:
        self.require_architecture(given, "gives a whole text a label")
        given.only("problem_type", "single_label_classification")
        given.only("is_decoder", False)
        given.only("add_cross_attention", False)
        given.only("position_embedding_type", "absolute")
        labels = self.labels(given)
        if len(labels) < 2:
            raise ImportRefusedError(
                "config.json: the model gives a number and no label; gptviz opens those with 2 labels or more"
            )
        return Config(
            **{"norm_eps": 1e-12} | self.read(given),
            residual="post-norm",
            embed_norm=True,
            final_norm=False,
            mask="full",
            head=self.head,
            n_label=len(labels),
            padding=given.ours("padding", "pad_token_id", 0, needed=False),
        )

    def fields(self, config: Config) -> dict[str, Any]:
        names = {str(label): f"LABEL_{label}" for label in range(config.n_label)}
        return self.written(config) | {
            "pad_token_id": config.padding,
            "id2label": names,
            "label2id": {name: int(label) for label, name in names.items()},
        }

    def labels(self, given: Given) -> tuple[str, ...]:
        """The names in `id2label`, in the order of their numbers; if there are none, `LABEL_0`, `LABEL_1`, ….

        Raises:
            ImportRefusedError: they are not numbered from 0 on.
        """
        names = given.optional("id2label")
        if names is None:
            return tuple(f"LABEL_{label}" for label in range(given.ours("n_label", "num_labels", 2)))
        numbers = [str(number) for number in range(len(names))] if isinstance(names, dict) else []
        if not isinstance(names, dict) or names.keys() != set(numbers):
            raise ImportRefusedError(f"config.json: id2label is {names!r:.80}; it must name the labels 0, 1, 2 and so on")
        return tuple(str(names[number]) for number in numbers)

    def matches(self, config: Config) -> Iterator[Match]:
        yield same("embed.weight", f"{self.stem}.embeddings.word_embeddings.weight")
        yield self.places(f"{self.stem}.embeddings.position_embeddings.weight")
        yield from norm("embed_norm", f"{self.stem}.embeddings.LayerNorm", bias=True)
        for index in range(config.n_layer):
            ours = f"blocks.{index}"
            theirs = {name: f"{self.stem}.{path.format(index)}" for name, path in self.parts.items()}
            yield from stacked(f"{ours}.attention.qkv", (theirs["q"], theirs["k"], theirs["v"]), config, bias=True)
            for part in ("attention.output", "mlp.up", "mlp.down"):
                yield from linear(f"{ours}.{part}", theirs[part], bias=True)
            for part in ("attention_residual.norm", "mlp_residual.norm"):
                yield from norm(f"{ours}.{part}", theirs[part], bias=True)
        yield from linear("head.pool", self.pool, bias=True)
        yield from linear("head.label", "classifier", bias=True)

    def places(self, table: str) -> Match:
        """The vectors that are added to tokens by their positions; their `table` holds all of these vectors, or a part."""
        return same("positions.table.weight", table)


class Bert(LabelsOfTexts):
    """BERT (Devlin et al. 2018). Of the vectors for its two segments only the first is used; it is added to our positions."""

    model_type, title, architecture = "bert", "BERT", "BertForSequenceClassification"
    stem, pool, head = "bert", "bert.pooler.dense", "first"
    parts: ClassVar = {
        **{one: f"encoder.layer.{{}}.attention.self.{name}" for one, name in (("q", "query"), ("k", "key"), ("v", "value"))},
        "attention.output": "encoder.layer.{}.attention.output.dense",
        "attention_residual.norm": "encoder.layer.{}.attention.output.LayerNorm",
        "mlp.up": "encoder.layer.{}.intermediate.dense",
        "mlp.down": "encoder.layer.{}.output.dense",
        "mlp_residual.norm": "encoder.layer.{}.output.LayerNorm",
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

    def places(self, table: str) -> Match:
        types = "bert.embeddings.token_type_embeddings.weight"
        return Match(
            "positions.table.weight",
            (table, types),
            lambda tensors: tensors[0] + tensors[1][0],
            lambda tensor: (tensor, torch.zeros(2, tensor.shape[1])),
        )


class DistilBert(LabelsOfTexts):
    """DistilBERT (Sanh et al. 2019)."""

    model_type, title, architecture = "distilbert", "DistilBERT", "DistilBertForSequenceClassification"
    stem, pool, head = "distilbert", "pre_classifier", "first-relu"
    parts: ClassVar = {
        **{one: f"transformer.layer.{{}}.attention.{one}_lin" for one in "qkv"},
        "attention.output": "transformer.layer.{}.attention.out_lin",
        "attention_residual.norm": "transformer.layer.{}.sa_layer_norm",
        "mlp.up": "transformer.layer.{}.ffn.lin1",
        "mlp.down": "transformer.layer.{}.ffn.lin2",
        "mlp_residual.norm": "transformer.layer.{}.output_layer_norm",
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
