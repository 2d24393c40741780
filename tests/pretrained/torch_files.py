"""What `torch.save` writes: models of nanoGPT and minGPT, and what would run a command when it is
opened.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.pretrained.test_families import CONTEXT, VOCAB, theirs

GPT2 = {"n_embd": 24, "n_layer": 2, "n_head": 2, "n_positions": CONTEXT}


class Touch:
    """Makes a file when it is unpickled: an opened file that holds one has run code."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return os.system, (f"touch '{self.file}'",)


def turned(model: Any) -> dict[str, Tensor]:
    """The tensors of a GPT-2 of `transformers` as nanoGPT and minGPT keep them, whose matrices are
    a Linear's, not a Conv1D's.
    """
    matrices = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    return {
        name: tensor.T.contiguous() if name.endswith(matrices) else tensor.clone()
        for name, tensor in model.state_dict().items()
    }


def saved_by_nanogpt(folder: Path, *, bias: bool = True, stem: str = "_orig_mod.") -> Any:
    """A `ckpt.pt` as nanoGPT's train.py writes it, compiled unless told otherwise; the same model
    of `transformers`.
    """
    model = theirs("gpt2", GPT2 | {"activation_function": "gelu"})
    tensors = turned(model)
    if not bias:
        for name in [name for name in tensors if name.endswith(".bias")]:
            del tensors[name]
            model.state_dict()[name].zero_()
    sizes = {
        "n_layer": 2,
        "n_head": 2,
        "n_embd": 24,
        "block_size": CONTEXT,
        "bias": bias,
        "vocab_size": VOCAB,
        "dropout": 0.1,
    }
    best = torch.tensor(1.5)  # train.py keeps its best loss as a tensor beside the model
    about = {"iter_num": 7, "best_val_loss": best, "config": {"dataset": "shakespeare_char"}}
    named = {f"{stem}{name}": tensor for name, tensor in tensors.items()}
    torch.save({"model": named, "model_args": sizes, **about}, folder / "ckpt.pt")
    return model


def saved_by_mingpt(folder: Path, heads: int = 2) -> Any:
    """A `model.pt` as a project of minGPT writes it, and the same model of `transformers`."""
    model = theirs(
        "gpt2",
        GPT2 | {"n_head": heads, "tie_word_embeddings": False, "activation_function": "gelu_new"},
    )
    mask = torch.tril(torch.ones(CONTEXT, CONTEXT)).view(1, 1, CONTEXT, CONTEXT)
    torch.save(
        turned(model) | {f"transformer.h.{block}.attn.bias": mask for block in range(2)},
        folder / "model.pt",
    )
    return model
