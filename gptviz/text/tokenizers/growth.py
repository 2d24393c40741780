"""The growth of a text in a tokenizer from elsewhere: how many characters one can become at most.

A `tokenizer.json` may replace texts by longer ones in any number of steps: "a" by ten of them,
twelve times, makes 10¹² of one. The library works on it until the memory of the process is full,
and cannot be stopped. So the growth is bounded by the rules, before any text is read. The bound is
never too low; for rules that replace a fixed text it is mostly exact.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from math import prod
from typing import Any, Final

from gptviz.machine.bounded import TooMuchError

from .quick_patterns import is_quick

# Unicode's own forms make at most 18 characters of one; a longest replacement of SentencePiece has
# 30
MOST_GROWTH: Final = 256
_OTHER: Final = ""  # stands for all characters that no rule names
_STAGES: Final = ("normalizer", "pre_tokenizer", "decoder", "model")
_PUT_IN: Final = ("prepend", "continuing_subword_prefix", "end_of_word_suffix", "prefix", "suffix")
_FORMS: Final = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "BertNormalizer")
_LONGEST_FORM: Final = 18  # characters: U+FDFA in NFKD


def check_growth(fields: Mapping[str, Any]) -> None:
    """Refuse a tokenizer that can make a text so long that it fills the memory, by the content of
    its `tokenizer.json`, in which the vocabulary may be missing. A TooMuchError if one character
    can become more than `MOST_GROWTH` in one of its stages, with what is put beside it.
    """
    for stage in _STAGES:
        steps = [*steps_of(fields.get(stage))]
        bound = growth(steps) * (
            1 + sum(len(step.get(name) or "") for step in steps for name in _PUT_IN)
        )
        if bound > MOST_GROWTH:
            raise TooMuchError(
                f"the {stage} of this tokenizer can make {bound:,.0f} characters of one, which "
                "can fill the memory; "
                f"at most {MOST_GROWTH} are accepted"
            )


def growth(steps: Iterable[Mapping[str, Any]]) -> float:
    """The characters that these steps make of one character, at most; what is put at the end of a
    text counts as one more.

    Unicode's forms and small letters count from their second time on: the first may make 18
    characters of one, and a later one finds nothing left to do, unless something else was replaced
    between them. They may turn any character into any other one, so what stands before and after
    them is counted by itself.
    """
    factor = 1.0
    formed = False
    for kind, some in groupby(filter(_kind, steps), _kind):
        if kind == "replaces":
            factor *= _growth_of_replacing([*some])
            continue
        if kind == "forms":
            factor *= _LONGEST_FORM if formed else 1
            formed = True
        for step in some:
            if step["type"] == "ByteLevel":
                factor *= 4  # a character has up to 4 bytes, and each becomes a character
            elif step["type"] == "BertNormalizer":
                factor *= 3  # a Chinese character gets a space on both sides, every time
            elif step["type"] == "Precompiled":
                factor *= _longest_replacement(step["precompiled_charsmap"])
    return factor


def _kind(step: Mapping[str, Any]) -> str:
    """What a step does to the length of a text: empty for nothing that is counted."""
    if step["type"] in ("Replace", *_FORMS):
        if step["type"] == "Replace":
            return "replaces"
        return "forms"
    if step["type"] in ("ByteLevel", "Precompiled"):
        return "maps"
    return ""


def _growth_of_replacing(steps: Sequence[Mapping[str, Any]]) -> float:
    """The characters that steps which replace make of one character, one step after the other."""
    named = {*"".join(_text(step) for step in steps), _OTHER}
    became: dict[str, Mapping[str, float]] = {character: {character: 1.0} for character in named}
    for step in steps:
        images = {character: _image(step, character) for character in named}
        became = {
            character: _compose_counts(counts, images) for character, counts in became.items()
        }
    lengths = [
        (len(str(step["content"])), bool(_text(step)) or _finds_something(step)) for step in steps
    ]
    one_by_one = prod(
        max(1, length) if at_least_one else 1 + length for length, at_least_one in lengths
    )
    return min(one_by_one, max(sum(counts.values()) for counts in became.values()))


def steps_of(part: Any) -> Iterator[dict[str, Any]]:
    """The steps of a stage, in order, those of a `Sequence` one by one."""
    if not part:
        return
    inner = [
        value for value in part.values() if isinstance(value, list) and part["type"] == "Sequence"
    ]
    if not inner:
        # Two decoders write a space for a text of their own, which may be empty: then one more for
        # every character.
        spaces = part.get(
            {"BPEDecoder": "suffix", "CTC": "word_delimiter_token"}.get(part["type"], "")
        )
        yield (
            part
            if spaces is None
            else {"type": "Replace", "pattern": {"String": spaces}, "content": " "}
        )
    for inner_step in inner:
        for step in inner_step:
            yield from steps_of(step)


def _text(step: Mapping[str, Any]) -> str:
    """The fixed text that a step replaces; empty if it replaces none, or what a regular expression
    finds.
    """
    if step["type"] == "Replace":
        return str(step["pattern"].get("String", ""))
    return ""


def _image(step: Mapping[str, Any], character: str) -> Counter[str]:
    """The characters that one character becomes in a step that replaces, at most.

    What a fixed text becomes is counted for its first character, since only that decides how many
    such texts there can be. A regular expression may find nothing between any two characters, and
    puts its content there.
    """
    itself = Counter([character])
    content = Counter(str(step["content"]))
    if text := _text(step):
        if character == text[0]:
            return itself | content
        return itself
    if _finds_something(step):
        return itself | content
    return itself + content


def _finds_something(step: Mapping[str, Any]) -> bool:
    """Whether the regular expression of a step is known to find at least a character wherever it
    fits.
    """
    return _finds_match(str(step["pattern"].get("Regex", "")))


@lru_cache(maxsize=256)
def _finds_match(pattern: str) -> bool:
    from tokenizers import Regex, normalizers

    return is_quick(pattern) and not normalizers.Replace(Regex(pattern), "found").normalize_str("")


def _compose_counts(
    counts: Mapping[str, float], images: Mapping[str, Counter[str]]
) -> dict[str, float]:
    """The characters that all of `counts` become."""
    total: dict[str, float] = defaultdict(float)
    for character, count in counts.items():
        for image, times in images.get(character, images[_OTHER]).items():
            total[image] += count * times
    return total


def _longest_replacement(charsmap: str | None) -> int:
    """The characters of the longest replacement in the map of a SentencePiece model, at least 1.

    It has the size of a trie in 4 bytes, the trie, and the replacements, each with a zero byte at
    its end.
    """
    try:
        data = base64.b64decode(charsmap or "", validate=True)
    except (binascii.Error, ValueError):
        return 1
    replacements = data[4 + int.from_bytes(data[:4], "little") :].split(b"\0")
    return max(1, *(len(replacement.decode("utf-8", "replace")) for replacement in replacements))
