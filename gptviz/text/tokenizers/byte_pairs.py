"""Byte-level byte-pair encodings from a list of tokens and of merges, and the ways to cut a text
before merging.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gptviz.machine.bounded import TooMuchError

from .bounds import MOST_ADDED, check_tokens
from .bpe import BPETokenizer, as_value_error
from .quick_patterns import is_quick


@dataclass(frozen=True)
class Cut:
    """How a text is cut into the parts that merges stay within."""

    pattern: str | None = None  #: a regular expression of the parts; None for GPT-2's
    single_digits: bool = False  #: whether each digit is first made a separate part
    #: whether a letter and its accent are first made one character (Unicode's form NFC)
    composed: bool = False
    #: whether a part that is a token as a whole is read as it, even if the merges say otherwise
    whole_tokens: bool = False
    #: whether the token for the beginning stands before a text unless the file says otherwise
    start: bool = False
    #: whether a text that does not begin with a space gets one before it
    space_before: bool = False


_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT2: Final = Cut()
CUTS: Final[dict[str, Cut]] = {
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "olmo", "jais"), GPT2),
    **dict.fromkeys(
        ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"),
        Cut(single_digits=True),
    ),
    **dict.fromkeys(
        ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
        Cut(_LLAMA3, whole_tokens=True, start=True),
    ),
    **dict.fromkeys(("dbrx", "smaug-bpe"), Cut(_LLAMA3)),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen"), Cut(_QWEN2, composed=True)),
    "tekken": Cut(_TEKKEN, whole_tokens=True, start=True),
}
"""How texts are cut, by the name that llama.cpp gives it (`src/llama-vocab.cpp`)."""


def byte_pairs(
    tokens: Sequence[str | None],
    merges: Sequence[str],
    special: Sequence[int],
    whole: Sequence[int],
    cut: Cut,
) -> BPETokenizer:
    """A byte-level byte-pair encoding; a ValueError says what is wrong if it cannot be opened.

    Args:
        tokens: in the order of their ids, written in GPT-2's alphabet of bytes; None for an id that
            no token has.
        merges: each is two tokens with a space between them; the best comes first.
        special: the ids of the tokens that are no text, such as `<|im_start|>`.
        whole: the ids of other tokens that are found in a text before it is cut.
        cut: how a text is cut.
    """
    from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
    from tokenizers import Tokenizer as Backend

    check_tokens([*filter(None, tokens)])
    check_tokens([tokens[place] for place in (*special, *whole)], MOST_ADDED)
    if cut.pattern is not None and not is_quick(cut.pattern):
        raise TooMuchError(
            f"the pattern that cuts a text, {cut.pattern!r:.80}, is none of those that are known "
            "to be quick"
        )
    vocabulary = {token: place for place, token in enumerate(tokens) if token is not None}
    if len(vocabulary) + tokens.count(None) != len(tokens):
        raise ValueError("two tokens of the vocabulary are the same text")
    pairs: list[Any] = [tuple(merge.split(" ")) for merge in merges]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("a merge is not made of two tokens")
    with as_value_error("this vocabulary cannot be opened"):
        backend = Backend(
            models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=cut.whole_tokens)
        )
        if cut.composed:
            backend.normalizer = normalizers.NFC()
        steps: list[Any] = (
            [pre_tokenizers.Digits(individual_digits=True)] if cut.single_digits else []
        )
        steps += (
            []
            if cut.pattern is None
            else [pre_tokenizers.Split(Regex(cut.pattern), behavior="isolated")]
        )
        steps.append(
            pre_tokenizers.ByteLevel(
                add_prefix_space=cut.space_before, use_regex=cut.pattern is None
            )
        )
        if len(steps) == 1:
            backend.pre_tokenizer = steps[0]
        else:
            backend.pre_tokenizer = pre_tokenizers.Sequence(steps)
        backend.decoder = decoders.ByteLevel()
        backend.add_special_tokens(
            [AddedToken(tokens[place], normalized=False, special=True) for place in special]
        )
        backend.add_tokens(
            [AddedToken(tokens[place], normalized=False, special=False) for place in whole]
        )
    return BPETokenizer(backend)
