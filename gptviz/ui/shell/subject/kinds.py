"""The models of each kind, and the best example of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gptviz.machine.files import kept_until_written
from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints

if TYPE_CHECKING:
    from gptviz.model import Config

# The shipped model that is the best example of a kind. The experiment that trains such a model has
# the same name.
BEST: dict[Kind, str] = {
    "decoder": "shakespeare",
    "classifier": "classifier",
    "encoder-decoder": "seq2seq",
}


def kind_of(folder: Path | None) -> Kind | None:
    """The kind of the model in `folder`, if one can be read there."""
    config = config_of(folder)
    if config is None:
        return None
    return config.kind


def kind_said(folder: Path | None) -> Kind | None:
    """The same without a look at whether the model can be opened, for which torch is imported."""
    if folder is None:
        return None
    try:
        return _read_kind(folder)
    except checkpoints.CheckpointError:
        return None


def config_of(folder: Path | None) -> Config | None:
    """The configuration of the model in `folder`, if one can be read there."""
    if folder is None:
        return None
    try:
        return read_config(folder)
    except checkpoints.CheckpointError:
        return None


read_config = kept_until_written("config.json", most=1024)(checkpoints.read_config)
_read_kind = kept_until_written("config.json", most=1024)(checkpoints.read_kind)


def models_of(kind: Kind) -> list[str]:
    """The names of all models of this kind, the user's own first."""
    return [name for name, folder in checkpoints.folders().items() if kind_of(folder) == kind]


def best_model(kind: Kind) -> str:
    """The best example of this kind: the model that ships, else any of this kind; if there is none,
    the decoder that ships.
    """
    if kind_said(checkpoints.folder_of(BEST[kind])) == kind:
        return BEST[kind]
    return next(iter(models_of(kind)), BEST["decoder"])
