"""nanoGPT's `ckpt.pt`, with the characters of its `meta.pkl`; neither file can run code here."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor

from gptviz.bounded import read_regular
from gptviz.model import Config
from gptviz.text import CharTokenizer, Tokenizer

from .families import FAMILIES, Given, ImportRefusedError
from .families.expressing import Expressed, NotExpressibleError, differences
from .source import Opened, Outline, Source, fitted
from .tensors import load_pickle, reading, state_dict

LONGEST_META = 4 * 2**20  # bytes
COMPILED = "_orig_mod."  # what torch.compile puts before the names


class NanoGPT(Source):
    """A `.pt` file that nanoGPT's `train.py` wrote."""

    kind = "nanogpt"

    @classmethod
    def fits(cls, path: Path) -> bool:
        return path.suffix in (".pt", ".pth") and os.path.lexists(path)

    def files(self) -> list[Path]:
        return [self.path]

    @cached_property
    def _content(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        content = load_pickle(self.path)
        settings = content.get("model_args") if isinstance(content, dict) else None
        if not isinstance(settings, dict):
            raise ImportRefusedError(f"{self.path.name} has no model_args: gptviz opens what nanoGPT's train.py saves")
        tensors = {name.removeprefix(COMPILED): value for name, value in state_dict(content).items()}
        return settings, tensors

    @cached_property
    def _given(self) -> Given:
        settings, _ = self._content
        return _as_gpt2(settings)

    def outline(self) -> Outline:
        settings, tensors = self._content
        biased = "transformer.h.0.ln_1.bias" in tensors
        try:
            config = _config(settings, biased=biased)
        except ImportRefusedError:
            raise
        except (ValueError, TypeError) as error:
            raise ImportRefusedError(f"{self.path.name}: model_args: {error}") from None
        return Outline("nanoGPT", config)

    def opened(self) -> Opened:
        outline = self.outline()
        tokenizer, notes = fitted(characters_beside(self.path), outline.config.vocab_size)
        return Opened(outline.family, outline.config, tokenizer, notes)

    def parameters(self, config: Config) -> Iterator[tuple[str, Tensor]]:
        _, tensors = self._content

        def take(name: str) -> Tensor:
            if name not in tensors:
                raise ImportRefusedError(f"{self.path.name}: the tensor {name} is missing")
            found = tensors[name]
            return _turned(name, found)

        ours = FAMILIES["gpt2"].tensors(config, self._given, lambda name: self._take_or_none(name, tensors, take))
        yield from ((name, tensor) for name, tensor in ours if tensor.numel())

    def _take_or_none(self, name: str, tensors: dict[str, Tensor], take: Any) -> Tensor:
        """The tensor; an empty one for a bias that a model without biases has not."""
        if name.endswith(".bias") and name not in tensors:
            return Tensor()
        found: Tensor = take(name)
        return found


def _as_gpt2(settings: Mapping[str, Any]) -> Given:
    """The `config.json` of GPT-2 that means the same as nanoGPT's `model_args`."""
    fields = {
        "model_type": "gpt2",
        "vocab_size": settings.get("vocab_size"),
        "n_positions": settings.get("block_size"),
        "n_embd": settings.get("n_embd"),
        "n_layer": settings.get("n_layer"),
        "n_head": settings.get("n_head"),
        "activation_function": "gelu",  # nanoGPT uses torch's own, which is exact
    }
    return Given(fields, "nanoGPT")


def _config(settings: Mapping[str, Any], *, biased: bool) -> Config:
    """Our config of nanoGPT's `model_args`; with biases, all its parts have them."""
    fields = FAMILIES["gpt2"].config(_as_gpt2(settings)).to_dict()
    bias = dict.fromkeys(("norm_bias", "qkv_bias", "output_bias", "mlp_bias"), biased)
    return Config.from_dict(fields | bias | {"dropout": float(settings.get("dropout") or 0.0)})


def _turned(name: str, tensor: Tensor) -> Tensor:
    """GPT-2's files have these matrices as [in, out], nanoGPT's as [out, in]."""
    return tensor.T if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")) else tensor


def as_nanogpt(config: Config) -> Expressed:
    """A model with this config as one of nanoGPT's, with its `model_args`.

    Raises:
        NotExpressibleError: nanoGPT has no such model; the message names the fields of the config that it lacks.
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
        theirs = _config(settings, biased=settings["bias"] is True)
    except ValueError as error:
        raise NotExpressibleError(f"nanoGPT has no such model: {error}") from None
    if lacks := differences(config, theirs):
        values = ", ".join(f"{name} = {getattr(config, name)}" for name in lacks)
        raise NotExpressibleError(f"nanoGPT has no {values}")
    return Expressed(FAMILIES["gpt2"], settings, theirs)


def checkpoint(model: Expressed, weights: Mapping[str, Tensor], about: Mapping[str, Any]) -> dict[str, Any]:
    """What nanoGPT's `sample.py` reads of its `ckpt.pt`; `about` is what else there is to say, as `train.py` says it."""
    tensors = {name: _turned(name, tensor).contiguous() for name, tensor in model.tensors(weights)}
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"]
    return {"model": tensors, "model_args": dict(model.fields), **about}


def characters_beside(path: Path) -> Tokenizer | None:
    """The tokenizer of characters that `meta.pkl` beside the file lists, None where there is no such file.

    Raises:
        ImportRefusedError: the file holds anything but texts, numbers and tables of them.
    """
    file = path.parent / "meta.pkl"
    if not os.path.lexists(file):
        return None
    with reading(file):
        meta = _Plain(BytesIO(read_regular(file, LONGEST_META))).load()
    table = meta.get("itos") if isinstance(meta, dict) else None
    if (
        not isinstance(table, dict)
        or set(table) != set(range(len(table)))
        or not all(isinstance(one, str) for one in table.values())
    ):
        raise ImportRefusedError(f"{file.name} has no table itos from numbers to characters")
    characters = [table[place] for place in range(len(table))]
    with reading(file):
        tokenizer = CharTokenizer(characters)
    if list(tokenizer.characters) != characters:  # its ids would mean other characters
        raise ImportRefusedError(f"{file.name}: the characters of itos are not in their usual order, or one stands twice")
    return tokenizer


class _Plain(pickle.Unpickler):
    """Reads texts, numbers, lists and tables; whatever would call something is refused."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"{module}.{name}")
