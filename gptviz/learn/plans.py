"""Plans: for each preset, how its text becomes tokens and how it is trained unless asked otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gptviz.model import PRESETS, Config, preset
from gptviz.text import BPETokenizer, CharTokenizer, Tokenizer

from .training import Recipe


@dataclass(frozen=True)
class Plan:
    """What training a preset takes beside its config."""

    recipe: Recipe
    learn_tokenizer: Callable[[str, int], Tokenizer]

    def prepare(self, name: str, text: str) -> tuple[Config, Tokenizer]:
        """A tokenizer learned on `text` and the config of preset `name` with as many tokens as it has."""
        tokenizer = self.learn_tokenizer(text, PRESETS[name].vocab_size)
        return preset(name, vocab_size=tokenizer.vocab_size), tokenizer


def _characters(text: str, vocab_size: int) -> Tokenizer:
    return CharTokenizer.from_text(text)


def _bpe(text: str, vocab_size: int) -> Tokenizer:
    return BPETokenizer.learn(text, vocab_size)


_SEED = Recipe(steps=10_000, batch_size=16, learning_rate=1e-3, weight_decay=0.01)

PLANS: dict[str, Plan] = {
    "shakespeare": Plan(Recipe(steps=7_000, batch_size=8, learning_rate=3e-3), _characters),
    "generator": Plan(replace(_SEED, batch_size=32, learning_rate=1e-2, weight_decay=0.0), _characters),
    "ladder": Plan(_SEED, _characters),
    "bigram": Plan(replace(_SEED, batch_size=32), _characters),
    "transformerslite-generator": Plan(replace(_SEED, batch_size=32, learning_rate=1e-2, weight_decay=0.0), _characters),
    "bpe": Plan(Recipe(steps=3_000, batch_size=16, learning_rate=1e-3), _bpe),
    "gpt2": Plan(Recipe(steps=100_000, batch_size=4, learning_rate=6e-4), _bpe),
}
