"""Runs: a model in training is a checkpoint that is updated in its folder, so that every page can open it meanwhile.

Beside the files of a checkpoint a run has

log.jsonl           one line per step (of a long run not for every step), evaluation and sample: see `log`
state.safetensors   all that the next step depends on; deleted when the run is finished
status.json         the state of the run: see `status`
stop_request        "pause" or "stop", while somebody asks for it

Every file is replaced as a whole: after a crash or on a full disk the last good one is still there. `training` trains a run.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from gptviz.data.source import Source
from gptviz.files import home
from gptviz.model import Config, Transformer, build
from gptviz.text import Tokenizer
from gptviz.train import estimate
from gptviz.train.engine import Engine
from gptviz.train.recipe import Recipe

from . import checkpoints
from .card import Card
from .checkpoints import CheckpointError
from .status import RunError, read_status, write_status

STORES = {"float32": torch.float32, "float16": torch.float16}


@dataclass(frozen=True)
class Run:
    """A run as it is stored in its folder.

    Attributes:
        folder: its folder.
        recipe: how it is trained.
        source: what it learns from, for `source_from`.
        card: the card of the model.
        dtype: the type its weights are stored in.
        engine: the precision and whether the model is compiled; None until that is chosen.
    """

    folder: Path
    recipe: Recipe
    source: dict[str, Any]
    card: Card
    dtype: torch.dtype
    engine: Engine | None = None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """What a new run is made from.

    Attributes:
        name: the name of the run and of its folder.
        config: the architecture.
        tokenizer: text to tokens; its vocabulary is as large as the config's.
        source: what the run learns from.
        recipe: how it is trained.
        about: more keys of the card, such as "preset" and "command".
        initial: the model whose weights it begins with; None: fresh weights, drawn with the recipe's seed.
        store: the type its weights are stored in.
    """

    name: str
    config: Config
    tokenizer: Tokenizer
    source: Source
    recipe: Recipe
    about: dict[str, Any] = field(default_factory=dict)
    initial: Transformer | None = None
    store: Literal["float32", "float16"] = "float32"


def prepare(spec: RunSpec, *, root: Path | None = None, replace: bool = False, device: torch.device | str = "cpu") -> Path:
    """Write a run that has not begun, and return its folder; `training.train` trains it.

    Args:
        spec: what the run is made from.
        root: the folder that takes the run's folder; default: the user's own models.
        replace: whether a model that already has the name is deleted.
        device: the device that will train it.

    Raises:
        CheckpointError: the name is not possible, or the disk is full or not writable.
        RunError: the name is taken, the tokenizer does not fit the model, or there is too little memory.
        ValueError: the data does not suit the model.
    """
    _check_name_is_free(spec.name, root, replace)
    config, tokenizer, source, recipe = spec.config, spec.tokenizer, spec.source, spec.recipe
    if config.vocab_size != tokenizer.vocab_size:
        raise RunError(f"vocab_size is {config.vocab_size:,}; the tokenizer has {tokenizer.vocab_size:,} tokens: leave it out")
    source.data(tokenizer, config)
    needed = estimate.estimate(config, recipe, estimate.UNMEASURED, tokens=source.tokens(config))
    if problem := estimate.refusal(needed, estimate.available(device)):
        raise RunError(problem)
    try:
        source.keep()
    except OSError as error:
        raise CheckpointError(f"cannot keep a copy of the text to train on ({error}): make room on the disk") from None
    model = build(config, seed=recipe.seed) if spec.initial is None else spec.initial
    card = {
        **spec.about,
        **source.origin(),
        "recipe": recipe.to_dict(),
        "source": source.to_dict(),
        "store": spec.store,
        "engine": None,
        "steps": 0,
        "seconds": 0.0,
        "validation_loss": None,
        "losses": [],
    }
    folder = checkpoints.save(spec.name, model, tokenizer, card, root=root)
    write_status(folder, "ready")
    return folder


def _check_name_is_free(name: str, root: Path | None, replace: bool) -> None:
    target = checkpoints.destination(name, root)
    if target.exists() and not replace:
        raise RunError(f"there is a model named {name} already: choose another name, delete that model first, or replace it")
    if target.exists() and read_status(target).state == "running":
        raise RunError(f"the model {name} is being trained: stop that run first, or choose another name")


def read_run(folder: Path) -> Run:
    """The run in `folder`.

    Raises:
        RunError: the checkpoint does not say how it was trained.
        CheckpointError: the checkpoint cannot be read.
    """
    card = checkpoints.read_card(folder)
    values = card.values
    try:
        if (store := values.get("store", "float32")) not in STORES:
            raise ValueError(f"its weights are stored as {store!r:.80}, not as {' or '.join(STORES)}")
        engine = Engine.from_dict(values["engine"]) if values.get("engine") else None
        return Run(folder, Recipe.from_dict(values["recipe"]), dict(values["source"]), card, STORES[store], engine)
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{folder.name} does not say how it was trained ({error}): it cannot be trained on") from None


def free_name(name: str) -> str:
    """`name`, or if a model of the user's has that name, the first of `name-2`, `name-3`, … that is free."""
    taken = {folder.name for folder in (home() / "checkpoints").glob("*")}
    if name not in taken:
        return name
    return next(f"{name[:56]}-{n}" for n in range(2, len(taken) + 3) if f"{name[:56]}-{n}" not in taken)


def free_disk(folder: Path) -> int:
    """The free bytes of the disk that holds `folder`, which need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
