"""Opening a language model by its name or its path."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from gptviz.model.devices import device as choose_device
from gptviz.model.lora import MergedTransformer
from gptviz.model.precision import STORED
from gptviz.model.precision import check as check_precision
from gptviz.runs import checkpoints, imports

from .core import LanguageModel, as_property


def load(
    name: str | Path, device: str | None = None, step: int | None = None, precision: str = STORED
) -> LanguageModel:
    """Open a model on `device` (default: the fastest).

    A name is that of a checkpoint; else that of a model on the Hugging Face hub, such as "gpt2",
    which is imported once: from the cache of `huggingface_hub`, or fetched with a bar that shows
    how far it is. A `Path` leads to a checkpoint, or to a model of another program (a folder with
    config.json and weights, a .gguf file, nanoGPT's ckpt.pt), which is opened where it is.

    With `step`, the snapshot after that many steps of training. There is a warning if `name` is a
    model of the user's that hides one which came with gptviz.

    `precision` is what weights are multiplied in: "float32", "bfloat16" or "float16"; "stored" is
    what the file has where this machine multiplies in it, else float32. In memory a weight has as
    many bytes as in its file, or fewer if these are enough. See `gptviz.model.precision`.

    Raises:
        CheckpointError: there is no such checkpoint or snapshot, or it cannot be opened; the
            message says why and what to do.
        TypeError: `name` is neither a text nor a `Path`.
        ValueError: there is no such device or precision.
    """
    if not isinstance(name, str | Path):
        raise TypeError(
            f'{name!r:.80} names no model: give a name such as "shakespeare", or a pathlib.Path'
        )
    on = choose_device(device)
    check_precision(precision)
    if isinstance(name, Path):
        folder = name.absolute()
        if not os.path.lexists(folder):
            raise checkpoints.CheckpointError(f"there is no file and no folder at {name}")
        if step is None and (opened := imports.in_place(folder, on, precision)) is not None:
            return LanguageModel(
                opened.name, opened.model, opened.tokenizer, opened.card, precision=precision
            )
    else:
        folder = folder_called(name)
        if name in checkpoints.hidden():
            warnings.warn(checkpoints.about_hiding(name, folder), stacklevel=2)
    opened = checkpoints.load(folder, on, step, precision)
    return LanguageModel(opened.name, opened.model, opened.tokenizer, opened.card, step, precision)


def folder_called(name: str) -> Path:
    """The checkpoint of this name, else that of the hub, imported if it was not before; a
    CheckpointError if neither exists.
    """
    try:
        return checkpoints.find(name)
    except checkpoints.CheckpointError as error:
        missing = error
    if not imports.could_be_on_hub(name):
        path = (
            f". A file or folder is opened with load(pathlib.Path({name!r:.80}))"
            if set(name) & set("/\\")
            else ""
        )
        raise checkpoints.CheckpointError(f"{missing}{path}")
    try:
        return imports.of_hub(name)
    except checkpoints.CheckpointError as error:
        raise checkpoints.CheckpointError(
            f"{missing}. It was looked for on the Hugging Face hub too: {error}"
        ) from None


@as_property
def base(lm: LanguageModel) -> LanguageModel | None:
    """The model whose weights this LoRA adapter changes, or None if it is no adapter."""
    if not isinstance(lm.original.model, MergedTransformer):
        return None
    folder = checkpoints.base_of(folder_called(lm.name))
    card = checkpoints.read_card(folder)
    return LanguageModel(
        checkpoints.name_of(folder), lm.original.model.base, lm.tokenizer, card, None, lm.precision
    )
