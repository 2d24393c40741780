"""Regular expressions that find all their matches in a text in a time that grows as the text does,
whatever the text is.

The library of tokenizers tries one alternative after the other, and takes steps back where one
fails. An alternative is quick if nothing can fail after a part of any length: then it costs as much
as it finds. The few others that tokenizers in use have are listed: what they read in vain, the
alternative that stands after them finds.
"""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 2_000  # characters: each alternative is tried at each character of a text
# One character of a text, or one of a class.
_ONE = r"(?>\[\^?(?:\\.|&(?!&)|[^\[\]\\&])+\]|\\[pP]\{\^?\w+\}|\\[sSdDwWrnt]|\\[^\w\s]|[^\\\[\](){}.*+?|^$]|\.)"
_TIMES = r"(?>[?*+]|\{\d{1,2}(?:,\d{0,2})?\})\+?"
_QUICK = rf"(?=[^|])(?:{_ONE}\?\+?)?(?:{_ONE})*?(?:{_ONE}{_TIMES})?(?:{_ONE}[?*]\+?)?"

_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_BEFORE = r"[^\r\n\p{L}\p{N}]?"
_LARGE = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_SMALL = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = rf"{_BEFORE}{_LARGE}*{_SMALL}+{{0}}|{_BEFORE}{_LARGE}+{_SMALL}*{{0}}"
_LISTED = (
    _SHORT,
    r"'(?i:[sdmt]|ll|ve|re)",
    r"\s+(?!\S)",
    *(
        rf"\s*[{line}]{times}|\s+(?!\S)"
        for line in (r"\r\n", r"\r\n/", "\r\n")
        for times in ("", "+")
    ),
    *(_CASED.replace("{0}", ending) for ending in ("", f"{_SHORT}?")),
    r" ?[^(\s|[.,!?…。，、।۔،])]+",  # BLOOM
    r"\A | \z",  # ours, for SentencePiece
)
_ANY = rf"(?:{'|'.join(map(re.escape, _LISTED))}|{_QUICK})(?=\||\Z)"
_PATTERN = re.compile(rf"{_ANY}(?:\|{_ANY})*+")


def is_quick(pattern: str) -> bool:
    """Whether this regular expression is known to be quick; many others are too."""
    return len(pattern) <= _LONGEST and _PATTERN.fullmatch(pattern) is not None
