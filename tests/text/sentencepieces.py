"""Small models of SentencePiece, trained on English and code, as the tests need them."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import sentencepiece

from gptviz.text import python_reference

# As Llama 2, Mistral and TinyLlama were trained, and as Gemma was.
LLAMA: dict[str, Any] = {
    "model_type": "bpe",
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
}
LLAMA |= {"split_digits": True, "allow_whitespace_only_pieces": True}
GEMMA: dict[str, Any] = LLAMA | {
    "add_dummy_prefix": False,
    "bos_piece": "<bos>",
    "eos_piece": "<eos>",
}
GEMMA |= {"user_defined_symbols": ["▁▁", "▁▁▁", "<start_of_turn>", "<end_of_turn>", "\n\n"]}


def trained(**settings: Any) -> bytes:
    """The content of a `tokenizer.model` with 600 pieces."""
    return _trained(
        tuple(
            (name, tuple(value) if isinstance(value, list) else value)
            for name, value in settings.items()
        )
    )


@cache
def _trained(settings: tuple[tuple[str, Any], ...]) -> bytes:
    out = io.BytesIO()
    chosen = {
        "vocab_size": 600,
        "byte_fallback": True,
        "character_coverage": 0.999,
        "minloglevel": 2,
    }
    chosen |= {name: list(value) if isinstance(value, tuple) else value for name, value in settings}
    lines = iter(python_reference().text[:100_000].splitlines())
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=lines, model_writer=out, **chosen)
    return out.getvalue()
