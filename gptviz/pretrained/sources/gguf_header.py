"""The header of a GGUF file for a tokenizer of ours: the inverse of `gguf_tokenizer`, which checks
what is written here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from gptviz.text import BPETokenizer, CharTokenizer, Tokenizer
from gptviz.text.chat import ChatTemplate
from gptviz.text.tokenizers.bpe import by_id, byte_alphabet
from gptviz.text.tokenizers.byte_pairs import CUTS
from gptviz.text.tokenizers.padded import PaddedTokenizer
from gptviz.text.tokenizers.sentencepiece import SPACE, PieceKind

from ..families import ImportRefusedError
from ..families.expressing import NotExpressibleError
from .gguf_tokenizer import ENDS, NAMED, NO_MERGE, HeaderTokens

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
# The byte 255 in GPT-2's alphabet: no text in UTF-8 has it.
NEVER_IN_UTF8 = "ÿ"
# what llama.cpp takes for the token that ends a text of byte pairs, where a file names none
USUAL_END = 11
# What decides how a text becomes tokens.
_READS = ("normalizer", "pre_tokenizer")
_MODEL = ("vocab", "merges", "unk_token", "byte_fallback", "fuse_unk", "ignore_merges")


def header_of(
    tokenizer: Tokenizer, ends: Sequence[int] = (), chat: ChatTemplate | None = None
) -> dict[str, Any]:
    """The settings of a header that describe a tokenizer, of byte pairs or of characters of one
    byte, the tokens that end a text and how a chat is written. A NotExpressibleError if a GGUF file
    has no tokenizer that gives the same tokens.
    """
    if isinstance(tokenizer, PaddedTokenizer):
        inner = tokenizer.inner
    else:
        inner = tokenizer
    if isinstance(inner, CharTokenizer):
        header = _of_characters(inner)
    elif isinstance(inner, BPETokenizer):
        header = _of_pairs(inner)
    else:
        raise NotExpressibleError(
            f"a GGUF file has no tokenizer of this kind ({inner.kind}): only byte pairs and "
            "characters"
        )
    tokens = header["tokenizer.ggml.tokens"]
    kinds = header["tokenizer.ggml.token_type"]
    for unused in range(len(tokens), tokenizer.vocab_size):
        tokens.append(f"[PAD{unused}]")
        kinds.append(int(PieceKind.UNUSED))
    if "tokenizer.ggml.scores" in header:
        header["tokenizer.ggml.scores"] += [0.0] * (
            len(tokens) - len(header["tokenizer.ggml.scores"])
        )
    header |= dict(zip(ENDS, ends or end_in_place(header), strict=False))
    if chat is not None:
        named = {
            NAMED[name]: tokens.index(text)
            for name, text in chat.tokens.items()
            if name in NAMED and text in tokens
        }
        header = {"tokenizer.chat_template": chat.template, **named, **header}
    return header


def end_in_place(header: dict[str, Any]) -> tuple[int, ...]:
    """A token that no text has, for a model without one that ends a text: llama.cpp would take
    `USUAL_END` for it, and stop there. Empty if every token may be written.
    """
    kinds = header["tokenizer.ggml.token_type"]
    tokens = header["tokenizer.ggml.tokens"]
    if PieceKind.UNUSED in kinds:
        return (kinds.index(PieceKind.UNUSED),)
    by_bytes = header["tokenizer.ggml.model"] == "gpt2"
    if by_bytes and NEVER_IN_UTF8 in tokens:
        return (tokens.index(NEVER_IN_UTF8),)
    return ()


def _of_characters(tokenizer: CharTokenizer) -> dict[str, Any]:
    """Byte pairs that are never merged: each character is a byte."""
    if wide := [character for character in tokenizer.characters if not character.isascii()]:
        raise NotExpressibleError(
            f"its tokens are characters, and {wide[0]!r} has several bytes: llama.cpp would read "
            "it as several tokens"
        )
    letters = {byte: letter for letter, byte in byte_alphabet().items()}
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": [letters[ord(character)] for character in tokenizer.characters],
        "tokenizer.ggml.token_type": [int(PieceKind.NORMAL)] * len(tokenizer.characters),
        "tokenizer.ggml.merges": [NO_MERGE],
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_eos_token": False,
    }


def _of_pairs(tokenizer: BPETokenizer) -> dict[str, Any]:
    whole = json.loads(tokenizer.to_json())
    model = whole["model"]
    if model["type"] != "BPE":
        raise NotExpressibleError(
            f"a GGUF file has no tokenizer of this kind ({model['type']}): only byte pairs and "
            "characters"
        )
    vocabulary = {
        **model["vocab"],
        **{added["content"]: added["id"] for added in whole["added_tokens"]},
    }
    tokens = [
        f"[PAD{place}]" if token is None else token for place, token in enumerate(by_id(vocabulary))
    ]
    kinds = [int(PieceKind.NORMAL)] * len(tokens)
    for unused in tokenizer.unused_ids:
        kinds[unused] = int(PieceKind.UNUSED)
    for added in whole["added_tokens"]:
        kinds[added["id"]] = int(PieceKind.CONTROL if added["special"] else PieceKind.USER_DEFINED)
    pairs = [pair if isinstance(pair, list) else pair.split(" ") for pair in model["merges"]]
    first = tokenizer.before
    last = tokenizer.after
    if len(first) > 1 or len(last) > 1:
        raise NotExpressibleError(
            "its tokenizer puts several tokens before or after a text, and a GGUF file names one"
        )
    common = {
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        **{
            NAMED[name]: place[0]
            for name, place in (("bos_token", first), ("eos_token", last))
            if place
        },
        "tokenizer.ggml.add_bos_token": bool(first),
        "tokenizer.ggml.add_eos_token": bool(last),
    }
    by_bytes = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.merges": [" ".join(pair) for pair in pairs],
        **common,
    }
    tried = [by_bytes | {"tokenizer.ggml.pre": name} for name in CUTS]
    if model.get("unk_token") in vocabulary:
        tried += [
            _of_pieces(common, pairs, vocabulary[model["unk_token"]], space_before=space)
            for space in (True, False)
        ]
    for header in tried:
        if _reads_alike(header, whole):
            return header
    raise NotExpressibleError("a GGUF file has no tokenizer that cuts a text as this one does")


def _of_pieces(
    common: dict[str, Any], pairs: list[list[str]], unknown: int, *, space_before: bool
) -> dict[str, Any]:
    """The pieces of SentencePiece: the earlier a merge makes one, the higher is its score."""
    tokens = common["tokenizer.ggml.tokens"]
    kinds = list(common["tokenizer.ggml.token_type"])
    ranks = dict[str, int]()
    written = list(tokens)
    for rank, (left, right) in enumerate(pairs):
        ranks.setdefault(left + right, rank)
    for place, token in enumerate(tokens):
        if _BYTE.fullmatch(token):
            kinds[place] = int(PieceKind.BYTE)
        # llama.cpp looks for these in the text as it stands
        elif kinds[place] == PieceKind.USER_DEFINED:
            written[place] = token.replace(SPACE, " ")
    kinds[unknown] = int(PieceKind.UNKNOWN)
    return {
        "tokenizer.ggml.model": "llama",
        **common,
        "tokenizer.ggml.tokens": written,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": [-float(ranks.get(token, len(pairs))) for token in tokens],
        "tokenizer.ggml.unknown_token_id": unknown,
        "tokenizer.ggml.add_space_prefix": space_before,
    }


def _reads_alike(header: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Whether the tokenizer rebuilt from this header splits text like the original one, whose JSON
    is `whole`.
    """
    try:
        read = HeaderTokens(header.get).tokenizer()
    except (ImportRefusedError, ValueError):
        return False
    assert isinstance(read, BPETokenizer)
    fields = json.loads(read.to_json())
    return all(fields[part] == whole[part] for part in _READS) and all(
        (fields["model"].get(part) or None) == (whole["model"].get(part) or None) for part in _MODEL
    )
