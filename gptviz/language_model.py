"""A language model: a trained transformer with its tokenizer, from text to text, and to every tensor between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gptviz.interp.trace import Trace, run
from gptviz.learn import checkpoints
from gptviz.learn.devices import device as choose_device
from gptviz.learn.generation import Generation, window_start
from gptviz.learn.sampling import Sampling
from gptviz.model import Transformer
from gptviz.text import Encoding, Tokenizer


class LanguageModel:
    """What `gptviz.load` returns.

    Attributes:
        name: the checkpoint's name.
        model: the transformer, in evaluation mode.
        tokenizer: text to ids and back.
        card: how it was made.
        step: the step of training whose snapshot this is, None for the model as it was saved last.
    """

    def __init__(
        self, name: str, model: Transformer, tokenizer: Tokenizer, card: Mapping[str, Any], step: int | None = None
    ) -> None:
        self.name, self.model, self.tokenizer, self.card, self.step = name, model, tokenizer, card, step

    @property
    def device(self) -> torch.device:
        """Where the weights live."""
        return self.model.embed.weight.device

    def encode(self, text: str) -> Tensor:
        """The token ids [T] of `text`.

        Raises:
            ValueError: the text is empty.
        """
        return self.tensor(self.tokenizer.encode(text))

    def tensor(self, encoding: Encoding) -> Tensor:
        """The ids [T] of an encoding, on the model's device.

        Raises:
            ValueError: there are none.
        """
        if not encoding.ids:
            raise ValueError("the prompt is empty: type at least one character for the model to go on from")
        return torch.tensor(encoding.ids, device=self.device)

    def seen(self, ids: Tensor) -> Tensor:
        """The last `context_length` of `ids` [T]: what the model sees of a longer text."""
        return ids[window_start(len(ids), self.model.config.context_length) :]

    def generation(self, prompt: str, sampling: Sampling | None = None, **options: Any) -> Generation:
        """The prompt as a `Generation`, to be stepped, undone and steered; `options` are that class's."""
        return Generation(self.model, self.encode(prompt), sampling, **options)

    def generate(self, prompt: str, max_new_tokens: int = 200, **sampling: Any) -> str:
        """The text that follows `prompt`, without the prompt; `sampling` are the fields of `Sampling`."""
        grown = self.generation(prompt, Sampling(**sampling))
        return self.tokenizer.decode([int(step.tokens[0]) for step in islice(grown, max_new_tokens)])

    def trace(
        self,
        prompt: str,
        names: Iterable[str] = ("*",),
        *,
        edits: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
    ) -> Trace:
        """What the model computes over the last `context_length` tokens of `prompt`, by tap name.

        For example `trace("O Romeo")["blocks.2.attention.pattern"]` [1, head, query, key]. `names` (shell patterns)
        choose what to keep, `edits` replace values on the way: see `gptviz.interp.trace.run`.
        """
        return run(self.model, self.seen(self.encode(prompt))[None], names, edits=edits)


def load(name: str | Path, device: str | None = None, step: int | None = None) -> LanguageModel:
    """Open the checkpoint called `name`, or the one in the folder given as a `Path`, on `device` (default: the fastest).

    With `step`, as it was after so many steps of its training: one of the snapshots kept then.

    Raises:
        CheckpointError: no such checkpoint or snapshot, or one that cannot be opened; the message says why and what to do.
        ValueError: no such device.
    """
    folder = name.absolute() if isinstance(name, Path) else checkpoints.find(name)
    opened = checkpoints.load(folder, choose_device(device), step)
    return LanguageModel(opened.name, opened.model, opened.tokenizer, opened.card, step)
