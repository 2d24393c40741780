"""Runs small enough to be trained many times over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gptviz.data.batches import Windows
from gptviz.data.text import TaskSource, TextSource
from gptviz.model import Transformer, build
from gptviz.runs.run import RunSpec, prepare
from gptviz.runs.training import train
from gptviz.text import CharTokenizer, Corpus, task
from gptviz.train.recipe import Recipe
from gptviz.train.trainer import Trainer
from tests.tiny import CONTEXT, VOCAB, tiny

OPTIMISERS = ["adamw", "adam", "sgd", "muon"]
# Eleven tokens over and over: all but the first of a window can be known.
REPETITIVE = torch.arange(400) * 3 % VOCAB
TEXT = "the quick brown fox jumps over the lazy dog. " * 20


def recipe(**changes: Any) -> Recipe:
    """Thirty small steps of AdamW in float32."""
    settings = {
        "steps": 30,
        "batch_size": 4,
        "learning_rate": 1e-2,
        "precision": "float32",
        "compile": "no",
    }
    return Recipe(**settings | changes)


def fresh(**changes: Any) -> Transformer:
    """An untrained model of one block."""
    return build(tiny(**{"n_layer": 1} | changes), seed=0)


def data(training: Tensor = REPETITIVE, validation: Tensor = REPETITIVE[:50]) -> Windows:
    """What repeats, in windows."""
    return Windows(training, validation, CONTEXT)


def trainer(model: Transformer, **changes: Any) -> Trainer:
    """`model` about to learn what repeats."""
    return Trainer(model, data(), recipe(**changes))


def weights(model: Transformer) -> dict[str, Tensor]:
    """A copy of every weight."""
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether two tables hold the same tensors to the bit."""
    return one.keys() == other.keys() and all(
        torch.equal(value, other[name]) for name, value in one.items()
    )


def text_run(
    name: str = "run", *, text: str = TEXT, options: dict[str, Any] | None = None, **settings: Any
) -> Path:
    """A run on a text, written down; dropout makes every step depend on the random numbers drawn
    for it.
    """
    source = TextSource(Corpus("pangrams", text))
    tokenizer = CharTokenizer(text)
    config = tiny(vocab_size=tokenizer.vocab_size, n_layer=1, dropout=0.2)
    return _prepared(
        options or {},
        name=name,
        config=config,
        tokenizer=tokenizer,
        source=source,
        recipe=recipe(**settings),
    )


def task_run(name: str = "run", *, options: dict[str, Any] | None = None, **settings: Any) -> Path:
    """A run on a task, written down."""
    copying = task("copy", vocab=VOCAB, lag=3, length=CONTEXT + 1)
    source = TaskSource(copying)
    config = tiny(n_layer=1)
    return _prepared(
        options or {},
        name=name,
        config=config,
        tokenizer=copying.tokenizer,
        source=source,
        recipe=recipe(**settings),
    )


def until(folder: Path, step: int, what: Any = "pause") -> list[Any]:
    """Train the run until it has taken `step` steps; its events."""
    events: list[Any] = []
    events.extend(
        train(
            folder,
            stop_requested=lambda: (
                what if events and getattr(events[-1], "step", 0) >= step else None
            ),
        )
    )
    return events


def finish(folder: Path) -> Path:
    """Train the run to its end."""
    for _ in train(folder):
        pass
    return folder


def _prepared(options: dict[str, Any], **spec: Any) -> Path:
    """`options` are those of `prepare`, and the fields of a `RunSpec` that a run can do without."""
    optional = {
        name: options[name] for name in ("about", "initial", "base", "store") if name in options
    }
    return prepare(
        RunSpec(**spec, **optional),
        **{name: value for name, value in options.items() if name not in optional},
    )
