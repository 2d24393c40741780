"""The sizes that a tokenizer from elsewhere may have, and what it may do in this process.

The library of tokenizers holds a vocabulary in trees as deep as a token is long, does each step of
a stage with the whole text, and cannot be stopped. Sizes that no tokenizer in use comes near to are
refused. What can take any time, but need not, is done by a process of its own
(`reading_outside.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from gptviz.machine.bounded import TooMuchError

from .growth import growth, steps_of
from .quick_patterns import is_quick

LONGEST_TOKEN: Final = 1_000  # characters; the longest of those in use have about 500
# of all tokens of Unigram, 700 bytes for each at most; the largest in use have 2 million
MOST_CHARACTERS: Final = 2_500_000
MOST_ADDED: Final = 1_000_000  # characters of all added tokens
MOST_PARTS: Final = 1_000  # of a stage; those in use have at most about 100
LONGEST_TEXTS: Final = 3_000  # characters of all texts in a stage
# Steps of a stage, times the characters that one of the text can become; a few steps count as
# `FEWEST_STEPS`.
MOST_WORK = 300
FEWEST_STEPS = 6
# characters of a word that WordPiece reads; its time grows with the square of it. In use: 100
LONGEST_WORD: Final = 200
BEFORE_TOKENS: Final = ("normalizer", "pre_tokenizer")


def check_sizes(fields: Mapping[str, Any]) -> None:
    """Refuse, with a TooMuchError, a tokenizer with a stage, a token or a vocabulary that is too
    large, or with a pattern in its decoder that may not be quick. The parsed content of a
    `tokenizer.json` may be of any form.
    """
    for stage in (*BEFORE_TOKENS, "post_processor", "decoder"):
        parts = list(_parts(fields.get(stage), MOST_PARTS))
        if len(parts) > MOST_PARTS:
            raise TooMuchError(f"its {stage} has more than {MOST_PARTS:,} parts")
        if (length := sum(len(part) for part in parts if isinstance(part, str))) > LONGEST_TEXTS:
            raise TooMuchError(
                f"the texts in its {stage} have {length:,} characters, and {LONGEST_TEXTS:,} are "
                "the most"
            )
    if (pattern := _slow_pattern(fields.get("decoder"))) is not None:
        raise TooMuchError(f"its decoder has the pattern {pattern!r:.80}, which can take any time")
    model = fields.get("model")
    added = fields.get("added_tokens")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    # A vocabulary of Unigram is a list of pieces, each with its score.
    if isinstance(vocabulary, list):
        check_tokens(
            [piece[0] if isinstance(piece, list) and piece else piece for piece in vocabulary],
            MOST_CHARACTERS,
        )
    check_tokens(vocabulary if isinstance(vocabulary, dict) else [])
    if isinstance(added, list):
        contents = [token.get("content") for token in added if isinstance(token, dict)]
    else:
        contents = []
    check_tokens(contents, MOST_ADDED)


def check_tokens(tokens: Collection[Any], most: int | None = None) -> None:
    """Refuse tokens that are too long, or have more than `most` characters together, with a
    TooMuchError.
    """
    lengths = [len(token) for token in tokens if isinstance(token, str)]
    if (longest := max(lengths, default=0)) > LONGEST_TOKEN:
        raise TooMuchError(
            f"one of its tokens has {longest:,} characters, and {LONGEST_TOKEN:,} are the most"
        )
    if most is not None and (total := sum(lengths)) > most:
        raise TooMuchError(
            f"its tokens have {total:,} characters together, and {most:,} are the most"
        )


def slow_pattern(fields: Mapping[str, Any]) -> str | None:
    """What in these fields has a regular expression that may not be quick, in words; None if
    nothing has.
    """
    for stage in BEFORE_TOKENS:
        if (pattern := _slow_pattern(fields.get(stage))) is not None:
            return f"the pattern {pattern!r:.80} in its {stage}"
    return None


def slow_work(fields: Mapping[str, Any]) -> str | None:
    """What else in these fields, in the library's own form, can take long with some texts, in
    words; None if nothing does.
    """
    for stage in BEFORE_TOKENS:
        steps = list(steps_of(fields[stage]))
        if max(len(steps), FEWEST_STEPS) * growth(steps) > MOST_WORK:
            return f"the {len(steps):,} steps of its {stage}"
    longest = fields["model"].get("max_input_chars_per_word", 0)
    if longest > LONGEST_WORD:
        return f"max_input_chars_per_word, which is {longest:,}"
    return None


def _slow_pattern(stage: Any) -> str | None:
    patterns = (part.get("Regex") for part in _parts(stage, MOST_PARTS) if isinstance(part, dict))
    return next(
        (pattern for pattern in patterns if isinstance(pattern, str) and not is_quick(pattern)),
        None,
    )


def _parts(value: Any, most: int) -> Iterator[Any]:
    """All values within a value, itself too, without the map of characters of SentencePiece; a few
    more than `most` of them.
    """
    left = [value]
    count = 0
    while left and count <= most:
        part = left.pop()
        yield part
        count += 1
        if isinstance(part, dict):
            left += [inner for name, inner in part.items() if name != "precompiled_charsmap"]
        elif isinstance(part, list):
            left += part
