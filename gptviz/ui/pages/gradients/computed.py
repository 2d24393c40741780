"""The computations of the page Gradients, done once for all sessions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch

from gptviz.interp.reading import gradients
from gptviz.labelled_array import LabelledArray
from gptviz.model import Config
from gptviz.text import CharTokenizer
from gptviz.ui.shell.subject import prompts
from gptviz.ui.widgets import jobs

TEXT = prompts.LINES_WITHOUT_CHOICE
HEADS = 4


@dataclass(frozen=True)
class Setup:
    """The properties that all models share: blocks, width of the stream, and how their matrices are drawn (see `fresh`)."""

    depth: int = 12
    std: float = gradients.INITIAL_STD
    width: int = 64
    activation: str = "relu"
    shrink: bool = True
    seed: int = 0


# What the page opens on.
DEFAULTS: dict[str, Any] = asdict(Setup())


@jobs.data("Building the models", max_entries=64)
def table(chosen: Setup) -> LabelledArray:
    """See `gptviz.interp.reading.gradients.compare`."""
    tokenizer = CharTokenizer(TEXT)
    ids = torch.tensor([tokenizer.encode(TEXT).ids])
    config = Config(
        vocab_size=tokenizer.vocab_size,
        context_length=ids.shape[1],
        d_model=chosen.width,
        n_layer=chosen.depth,
        n_head=HEADS,
        activation=chosen.activation,
    )
    return gradients.compare(config, ids[:, :-1], ids[:, 1:], seed=chosen.seed, std=chosen.std, shrink=chosen.shrink)
