"""Runs: a model in training is a checkpoint that is updated in its folder, so that every page can
open it meanwhile.

In addition to the files of a checkpoint a run has

log.jsonl           one line per step (in a long run not for every step), evaluation and sample: see
`log` state.safetensors   all that the next step depends on; deleted when the run is finished
status.json         the state of the run: see `status`
stop_request        "pause" or "stop", while somebody asks for it

Every file is replaced as a whole: after a crash or on a full disk the last good one is still there.
`training` trains a run.
"""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from gptviz.data.source import Source
from gptviz.machine import memory
from gptviz.machine.errors import reason_of
from gptviz.model import Config, Transformer, build
from gptviz.model.lora import AdaptedTransformer, every_matrix
from gptviz.text import Tokenizer
from gptviz.train import estimate
from gptviz.train.engine import Engine
from gptviz.train.recipe import Recipe

from . import checkpoints
from .card import Card
from .checkpoints import CheckpointError
from .names import Claim, claim_name
from .status import RunError, write_status

STORES = {"float32": torch.float32, "float16": torch.float16}


@dataclass(frozen=True)
class Run:
    """A run as it is stored in its folder."""

    folder: Path  #: its folder
    recipe: Recipe  #: how it is trained
    source: dict[str, Any]  #: the data it learns from, for `source_from`
    card: Card  #: the card of the model
    dtype: torch.dtype  #: the type its weights are stored in
    #: the precision and whether the model is compiled; None until that is chosen
    engine: Engine | None = None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """The ingredients of a new run."""

    name: str  #: the name of the run and of its folder
    config: Config  #: the architecture
    tokenizer: Tokenizer  #: text to tokens; its vocabulary is as large as the config's
    source: Source  #: the data that the run learns from
    recipe: Recipe  #: how it is trained
    #: more keys of the card, such as "preset" and "command"
    about: dict[str, Any] = field(default_factory=dict)
    #: the model whose weights it begins with; None: fresh weights, drawn with the recipe's seed
    initial: Transformer | None = None
    #: the folder of that model, which a run that trains a LoRA adapter names
    base: Path | None = None
    store: Literal["float32", "float16"] = "float32"  #: the type its weights are stored in


def prepare(
    spec: RunSpec,
    *,
    root: Path | None = None,
    replace: bool = False,
    claim: Claim | None = None,
    device: torch.device | str = "cpu",
) -> Path:
    """Write a run that has not begun, and return its folder; `training.train` trains it.

    Args:
        root: the folder that takes the run's folder; default: the user's own models.
        replace: whether a model that already has the name is replaced, or hidden if it is a shipped
            one.
        claim: the claim on the name, if the caller holds it already; `root` and `replace` are then
            those of the claim.
        device: the device that will train it.

    Raises:
        CheckpointError: the name is not possible or in use, or the disk is full or not writable.
        RunError: another process has claimed the name, the tokenizer does not fit the model, or
            there is too little memory.
        ValueError: the data does not suit the model.
    """
    with nullcontext(claim) if claim else claim_name(spec.name, root, replace=replace) as mine:
        config = spec.config
        tokenizer = spec.tokenizer
        source = spec.source
        recipe = spec.recipe
        if config.vocab_size != tokenizer.vocab_size:
            raise RunError(
                f"vocab_size is {config.vocab_size:,}; the tokenizer has {tokenizer.vocab_size:,} "
                "tokens: leave it out"
            )
        adapter = adapter_for(recipe, config, spec.base)
        source.data(tokenizer, config)
        needed = estimate.estimate(
            config, recipe, estimate.UNMEASURED, tokens=source.tokens(config)
        )
        if problem := estimate.refusal(needed, memory.room(needed.memory, device)):
            raise RunError(problem)
        try:
            source.keep()
        except OSError as error:
            raise CheckpointError(
                f"cannot keep a copy of the text to train on ({reason_of(error)}): make room on "
                "the disk"
            ) from None
        if spec.initial is None:
            model = build(config, seed=recipe.seed)
        else:
            model = spec.initial
        if adapter is not None:
            model = AdaptedTransformer(model, adapter.ranks, recipe.seed)
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
        # The claim on the name has already checked whether a model may be replaced.
        checkpoints.save(
            mine.folder.name,
            model,
            tokenizer,
            card,
            adapter=adapter,
            root=mine.folder.parent,
            replace=True,
        )
        write_status(mine.folder, "ready")
        return mine.folder


def adapter_for(recipe: Recipe, config: Config, base: Path | None) -> checkpoints.Adapter | None:
    """The adapter that a run of this architecture trains, or None if it trains all weights; a
    RunError if it has no matrix, or no `base`, the folder of the model that the run begins with,
    that an adapter could change.
    """
    if not (rank := recipe.lora_rank):
        return None
    if base is None:
        raise RunError(
            "a LoRA adapter changes the weights of a model: choose one to begin with (--from "
            "NAME), or LoRA rank 0"
        )
    if not (ranks := every_matrix(config, rank)):
        raise RunError(
            "this model has no blocks, and so no matrix that a LoRA adapter could change: begin "
            "with another one"
        )
    return checkpoints.adapter_of(base, ranks)


def read_run(folder: Path) -> Run:
    """The run in `folder`; a RunError if nothing says how it was trained, a CheckpointError if the
    checkpoint cannot be read.
    """
    card = checkpoints.read_card(folder)
    values = card.values
    try:
        if (store := values.get("store", "float32")) not in STORES:
            raise ValueError(
                f"its weights are stored as {store!r:.80}, not as {' or '.join(STORES)}"
            )
        if values.get("engine"):
            engine = Engine.from_dict(values["engine"])
        else:
            engine = None
        return Run(
            folder,
            Recipe.from_dict(values["recipe"]),
            dict(values["source"]),
            card,
            STORES[store],
            engine,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{folder.name} does not say how it was trained ({error}): its training cannot go on"
        ) from None


def free_disk(folder: Path) -> int:
    """The free bytes of the disk that holds `folder`, which need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
