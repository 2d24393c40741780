"""nanoGPT's `ckpt.pt` and minGPT's `model.pt`: GPT-2's names, with matrices as [out, in]. Neither
file can run code here.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from gptviz.machine.bounded import parse_json, read_regular
from gptviz.model import Config

from ..families import FAMILIES, Given, ImportRefusedError
from ..families.base import missing_tensor
from ..families.expressing import Expressed, NotExpressibleError, differences, fields_in_words
from ..given import WithoutEffect, without_place
from .characters import characters_near
from .folder import LONGEST_CONFIG
from .folder_tokens import FolderTokens
from .source import ModelSource, Opened, Outline, fit_tokenizer
from .tensors import load_pickle, reading, state_dict

SUFFIXES = (".pt", ".pth")
COMPILED = "_orig_mod."  # the prefix that torch.compile adds to names
# the family's files have them as [in, out]
TURNED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
MASKS = (".attn.bias", ".attn.masked_bias")
MOST_SETTINGS = 10_000
# The settings that GPT-2's own reader does not read.
WITHOUT_EFFECT: WithoutEffect = {"it is read apart": "model_type block_size bias dropout"}
EMBEDDING = "transformer.wte.weight"
POSITIONS = "transformer.wpe.weight"
UNEMBEDDING = "lm_head.weight"
FUSED = "transformer.h.0.attn.c_attn.weight"
# The numbers of heads of the models that minGPT knows by name (its model.py); its config.json may
# have only the name.
HEADS = {
    "openai-gpt": 12,
    "gpt2": 12,
    "gpt2-medium": 16,
    "gpt2-large": 20,
    "gpt2-xl": 25,
    "gopher-44m": 16,
}
HEADS |= {"gpt-mini": 6, "gpt-micro": 4, "gpt-nano": 3}


class _OfGPT2(ModelSource):
    """A `.pt` file with GPT-2's names."""

    title: ClassVar[str]  #: the usual name of such models
    #: whether the embedding is the unembedding too, unless the file has another one
    tied: ClassVar[bool]
    activation: ClassVar[str]  #: GPT-2's name of the activation in the MLP

    def files(self) -> list[Path]:
        return [self.path]

    @property
    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """The sizes, under nanoGPT's names."""

    @cached_property
    def _content(self) -> Any:
        return load_pickle(self.path)

    @cached_property
    def _tensors(self) -> dict[str, Tensor]:
        tensors = {
            name.removeprefix(COMPILED): value
            for name, value in state_dict(self.path, self._content).items()
        }
        return {name: value for name, value in tensors.items() if not name.endswith(MASKS)}

    @cached_property
    def _given_fields(self) -> Given:
        return _as_gpt2(
            self._settings,
            self.title,
            self.path.name,
            activation=self.activation,
            tied=self._is_tied,
        )

    @cached_property
    def _is_tied(self) -> bool:
        embedding, other = (self._tensors.get(name) for name in (EMBEDDING, UNEMBEDDING))
        return self.tied and (embedding is None or other is None or torch.equal(embedding, other))

    def outline(self) -> Outline:
        with self._given_fields.refusing():
            config = _config(
                self._given_fields,
                self._settings,
                biased="transformer.h.0.ln_1.bias" in self._tensors,
            )
        self._given_fields.refuse_unread(WITHOUT_EFFECT)
        return Outline(self.title, config)

    def describe_model(self) -> Opened:
        outline = self.outline()
        characters = characters_near(self.path)
        others = FolderTokens(self.path.parent)
        tokenizer, notes = fit_tokenizer(
            characters or others.tokenizer(), outline.config.vocab_size, others.file or "meta.pkl"
        )
        return Opened(outline.family, outline.config, tokenizer, notes)

    def parameters(self, config: Config) -> Iterator[tuple[str, Tensor]]:
        left = dict(self._tensors)
        if self._is_tied:
            left.pop(UNEMBEDDING, None)

        def take(name: str) -> Tensor:
            if name not in left:
                raise missing_tensor(self.path.name, name)
            return _transpose_tensor(name, left.pop(name))

        yield from FAMILIES["gpt2"].tensors(config, self._given_fields, take)
        if left:
            raise without_place(self.path.name, list(left), f"a {self.title} model")

    def origin(self, config: Config, parameter: str) -> str:
        return super().origin(config, FAMILIES["gpt2"].their_names(parameter)[0])


def _content_at(path: Path) -> Any:
    """The content of a file whose name is that of one that `torch.save` wrote; None for others."""
    if path.suffix in SUFFIXES and os.path.lexists(path):
        return load_pickle(path)
    return None


class NanoGPT(_OfGPT2):
    """A `.pt` file that nanoGPT's `train.py` wrote."""

    kind = "nanogpt"
    title = "nanoGPT"
    tied = True
    activation = "gelu"  # nanoGPT uses torch's GELU, which is exact

    @classmethod
    def recognises_path(cls, path: Path) -> bool:
        content = _content_at(path)
        if isinstance(content, dict):
            settings = content.get("model_args")
        else:
            settings = None
        # llama2.c keeps its settings, with Meta's names, there too
        return isinstance(settings, dict) and "dim" not in settings

    @property
    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = self._content["model_args"]
        return settings


class MinGPT(_OfGPT2):
    """The `model.pt` of a minGPT project: only tensors, whose shapes give all sizes except the
    number of heads.
    """

    kind = "mingpt"
    title = "minGPT"
    tied = False
    takes = ("set",)
    activation = "gelu_new"

    @classmethod
    def recognises_path(cls, path: Path) -> bool:
        content = _content_at(path)
        if not isinstance(content, dict) or not all(
            isinstance(value, Tensor) for value in content.values()
        ):
            return False
        fused = content.get(FUSED)
        masks = [name for name in content if str(name).endswith(MASKS)]
        is_turned = fused is not None and fused.ndim == 2 and fused.shape[0] == 3 * fused.shape[1]
        return is_turned and bool(masks) and {EMBEDDING, POSITIONS, UNEMBEDDING} <= content.keys()

    @property
    def _settings(self) -> dict[str, Any]:
        embedding = self._tensors[EMBEDDING]
        positions = self._tensors[POSITIONS]
        if embedding.ndim != 2 or positions.ndim != 2:
            raise ImportRefusedError(
                f"{self.path.name}: the embedding or the positions are no table"
            )
        blocks = {name.split(".")[2] for name in self._tensors if name.startswith("transformer.h.")}
        return {
            "vocab_size": embedding.shape[0],
            "block_size": positions.shape[0],
            "n_embd": embedding.shape[1],
            "n_layer": len(blocks),
            "n_head": self._heads(embedding.shape[1]),
        }

    def _heads(self, width: int) -> int:
        """The number of heads of a block: from the additions, or from the config.json next to the
        file.
        """
        fields = self.additions.get("set", {})
        if isinstance(fields, dict) and (unknown := sorted(fields.keys() - {"n_head"})):
            raise ImportRefusedError(
                f"{self.path.name} tells {unknown[0]} itself: of such a file --set takes only "
                "n_head"
            )
        heads = fields.get("n_head") if isinstance(fields, dict) else None
        if heads is None:
            heads = self._heads_beside()
        if (
            isinstance(heads, int)
            and not isinstance(heads, bool)
            and heads > 0
            and width % heads == 0
        ):
            return heads
        if heads is not None:
            raise ImportRefusedError(
                f"{self.path.name}: its width {width:,} does not divide into {heads!r:.40} heads"
            )
        raise ImportRefusedError(
            f"{self.path.name} does not tell how many heads a block has: put the config.json that "
            "minGPT wrote "
            "beside it, or import it on the command line with --set n_head=…"
        )

    def _heads_beside(self) -> Any:
        file = self.path.parent / "config.json"
        if not os.path.lexists(file):
            return None
        with reading(file):
            fields = parse_json(read_regular(file, LONGEST_CONFIG), MOST_SETTINGS)
        model = fields.get("model") if isinstance(fields, dict) else None
        if not isinstance(model, dict):
            return None
        name = model.get("model_type")
        return model.get("n_head") or (HEADS.get(name) if isinstance(name, str) else None)


def _as_gpt2(
    settings: Mapping[str, Any], title: str, file: str, *, activation: str, tied: bool
) -> Given:
    """The `config.json` of GPT-2 that corresponds to nanoGPT's `model_args`."""
    names = {"n_positions": "block_size"} | {
        name: name for name in ("vocab_size", "n_embd", "n_layer", "n_head")
    }
    fields = {"model_type": "gpt2", "activation_function": activation, "tie_word_embeddings": tied}
    fields |= {name: settings.get(theirs) for name, theirs in names.items()}
    return Given({**settings, **fields}, f"{title} model", file)


def _config(given: Given, settings: Mapping[str, Any], *, biased: bool) -> Config:
    """Our config of nanoGPT's `model_args`; with biases, all its parts have them."""
    bias: dict[str, Any] = dict.fromkeys(
        ("norm_bias", "qkv_bias", "output_bias", "mlp_bias"), biased
    )
    with given.refusing():
        return replace(
            FAMILIES["gpt2"].config(given), dropout=settings.get("dropout") or 0.0, **bias
        )


def _transpose_tensor(name: str, tensor: Tensor) -> Tensor:
    """The tensor as in GPT-2's files, which have these matrices as [in, out], nanoGPT's as [out,
    in].
    """
    if name.endswith(TURNED) and tensor.ndim == 2:
        return tensor.T
    return tensor


def as_nanogpt(config: Config) -> Expressed:
    """A model with this config in nanoGPT's form, with its `model_args`; a NotExpressibleError
    names the fields that it lacks.
    """
    settings = {
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "n_embd": config.d_model,
        "block_size": config.context_length,
        "bias": config.norm_bias or config.qkv_bias or config.output_bias or config.mlp_bias,
        "vocab_size": config.vocab_size,
        "dropout": config.dropout,
    }
    try:
        given = _as_gpt2(
            settings, NanoGPT.title, "", activation=NanoGPT.activation, tied=NanoGPT.tied
        )
        theirs = _config(given, settings, biased=settings["bias"] is True)
    except ValueError as error:
        raise NotExpressibleError(f"nanoGPT has no such model: {error}") from None
    if lacks := differences(config, theirs):
        raise NotExpressibleError(f"nanoGPT differs in {fields_in_words(config, lacks)}")
    return Expressed(FAMILIES["gpt2"], settings, theirs)


def checkpoint(
    model: Expressed, weights: Mapping[str, Tensor], about: Mapping[str, Any]
) -> dict[str, Any]:
    """The parts of nanoGPT's `ckpt.pt` that its `sample.py` reads; `about` is the rest, as
    `train.py` writes it.
    """
    tensors = {
        name: _transpose_tensor(name, tensor).contiguous()
        for name, tensor in model.tensors(weights)
    }
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"]
    return {"model": tensors, "model_args": dict(model.fields), **about}
