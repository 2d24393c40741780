"""generation_config.json: the settings with which `generate()` of `transformers` writes the same
text as gptviz.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptviz.model import Config
from gptviz.text import Tokenizer
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer


def generation_config(
    config: Config, tokenizer: Tokenizer, ends: Sequence[int]
) -> dict[str, Any] | None:
    """The fields of generation_config.json, with the tokens that end a text; None for a model that
    writes no text.
    """
    if config.kind == "classifier":
        return None
    if config.kind == "decoder":
        if config.padding is not None:
            filler = config.padding
        elif ends:
            filler = ends[0]
        else:
            filler = None
        before = tokenizer.before[0] if tokenizer.before else None
        fields = {"bos_token_id": before, "eos_token_id": one_or_all(ends), "pad_token_id": filler}
        return fields | (
            {"suppress_tokens": [*tokenizer.unused_ids]} if tokenizer.unused_ids else {}
        )
    return _of_answers(config, tokenizer, ends)


def one_or_all(tokens: Sequence[int]) -> int | list[int] | None:
    """Tokens in the form of a config: a single one as a number, several as a list, none as None."""
    if tokens:
        return tokens[0] if len(tokens) == 1 else list(tokens)
    return None


def _of_answers(config: Config, tokenizer: Tokenizer, ends: Sequence[int]) -> dict[str, Any]:
    """The fields for a model that answers one text with another: see
    `gptviz.generate.decoding.Decoder`.
    """
    start = config.padding
    end = one_or_all(ends)
    never = list[int]()
    if isinstance(tokenizer, SpecialTokensTokenizer):
        start = tokenizer.start
        end = tokenizer.end
        never = [*tokenizer.unused_ids]
    fields: dict[str, Any] = {
        "decoder_start_token_id": start,
        "eos_token_id": end,
        "pad_token_id": config.padding,
        # An answer that reaches the last position is cut there, without an end token that the model
        # did not write.
        "forced_eos_token_id": None,
        "max_length": config.context_length + 1,  # it counts the start token
    }
    if start is not None and start == config.padding:
        never.append(start)
    if never:
        fields |= {"bad_words_ids": [[token] for token in never], "renormalize_logits": True}
    return fields
