"""LoRA adapters of PEFT become adapters of ours, on a model that is here; a `CheckpointError` where
they cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from gptviz.model.lora import parameters
from gptviz.model.precision import STORED
from gptviz.pretrained import peft
from gptviz.pretrained.families import ImportRefusedError

from . import checkpoints, names
from .checkpoints import CheckpointError

NO_BASE = "is no LoRA adapter of PEFT, and only such an adapter has a base: leave --base out"


def reader(path: Path, base: str | None, **card: str) -> Callable[..., Path]:
    """Open the adapter in a folder of PEFT once to see that it is sound. Returns a function of the
    name, and of the folder `root` if that is not the user's own, which writes the checkpoint, with
    `card` on its card, and returns its folder. `base` is the model here that the adapter changes;
    None for the one that its files name.
    """
    try:
        read = peft.read_adapter(path)
        if base is not None:
            folder = checkpoints.find(base)
        else:
            folder = base_named(read.base)
        config = checkpoints.read_config(folder)
        about = checkpoints.read_card(folder)
        factors = peft.as_ours(read, config, about.family)
    except ImportRefusedError as error:
        raise CheckpointError(f"{path.name}: {error}") from None
    checkpoints.with_adapter(checkpoints.load(folder, precision=STORED).model, factors, path.name)
    kept = {
        key: value
        for key, value in about.values.items()
        if key in ("family", "chat", "end_tokens", "licence")
    }
    notes = [
        f"A LoRA adapter of PEFT, which changes {len(factors)} matrices of "
        f"{checkpoints.name_of(folder)}."
    ]
    return partial(
        checkpoints.save_opened,
        config=config,
        tokenizer=checkpoints.read_tokenizer(folder),
        card={**kept, "notes": notes, **card},
        weights={key: tensor.contiguous() for key, tensor in parameters(factors).items()},
        adapter=checkpoints.adapter_of(folder, {part: pair.rank for part, pair in factors.items()}),
    )


def base_named(named: str) -> Path:
    """The model here that the files of an adapter of PEFT name as their base: by where it came
    from, or by its own name.
    """
    if named:
        own = names.possible_name(named.replace("\\", "/").rstrip("/").rpartition("/")[2])
    else:
        own = ""
    for name, folder in checkpoints.folders().items():
        with suppress(CheckpointError):
            if not checkpoints.is_adapter(folder) and (
                checkpoints.imported_from(folder) == named or name in (named, own)
            ):
                return folder
    raise CheckpointError(
        f"the adapter changes the model {named[:80]!r}, and there is none of that name here: "
        "import that model first, or name "
        "another one on the command line, with --base NAME"
    )
