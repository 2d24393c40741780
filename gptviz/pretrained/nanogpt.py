"""nanoGPT's `ckpt.pt`, with the characters of its `meta.pkl`; neither file can run code here."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor

from gptviz.bounded import read_regular
from gptviz.model import Config
from gptviz.text import CharTokenizer, Tokenizer

from .families import FAMILIES, Given, ImportRefusedError
from .source import Opened, Source, fitted
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

    def opened(self) -> Opened:
        settings, tensors = self._content
        biased = "transformer.h.0.ln_1.bias" in tensors
        try:
            fields = FAMILIES["gpt2"].config(self._given).to_dict()
            bias = dict.fromkeys(("norm_bias", "qkv_bias", "output_bias", "mlp_bias"), biased)
            config = Config.from_dict(fields | bias | {"dropout": float(settings.get("dropout") or 0.0)})
        except ImportRefusedError:
            raise
        except (ValueError, TypeError) as error:
            raise ImportRefusedError(f"{self.path.name}: model_args: {error}") from None
        tokenizer, notes = fitted(characters_beside(self.path), config.vocab_size)
        return Opened("nanoGPT", config, tokenizer, notes)

    def parameters(self, config: Config) -> Iterator[tuple[str, Tensor]]:
        _, tensors = self._content

        def take(name: str) -> Tensor:
            if name not in tensors:
                raise ImportRefusedError(f"{self.path.name}: the tensor {name} is missing")
            found = tensors[name]
            # The family's files have these matrices as [in, out], nanoGPT's as [out, in].
            turned = name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))
            return found.T if turned else found

        ours = FAMILIES["gpt2"].tensors(config, self._given, lambda name: self._take_or_none(name, tensors, take))
        yield from ((name, tensor) for name, tensor in ours if tensor.numel())

    def _take_or_none(self, name: str, tensors: dict[str, Tensor], take: Any) -> Tensor:
        """The tensor; an empty one for a bias that a model without biases has not."""
        if name.endswith(".bias") and name not in tensors:
            return Tensor()
        found: Tensor = take(name)
        return found


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
