"""How a piece of text is shown, named and classified, so that a reader can tell any two characters
apart.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

TOKEN_KINDS: Final = (
    "vowel",
    "consonant",
    "capital",
    "word",
    "digit",
    "punctuation",
    "space",
    "other",
)
"""The answers of `kind_of_text`, in the order of a legend."""

_SYMBOLS: Final = {" ": "␣", "\n": "⏎", "\t": "⇥"}
_COMBINING: Final = ("Mn", "Mc", "Me")
_PUNCTUATION: Final = ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk")
# Letters and symbols by category, yet drawn as nothing: the Hangul fillers and the blank Braille
# pattern.
_BLANK: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_VOWELS: Final = frozenset("aeiouæœøı")


def code_point(character: str) -> str:
    """The code point of one character as Unicode writes it: `U+200B`."""
    return f"U+{ord(character):04X}"


def character_name(character: str) -> str:
    """Code point and Unicode name, `U+20AC EURO SIGN`; only the code point where Unicode gives no
    name.
    """
    return f"{code_point(character)} {unicodedata.name(character, '')}".rstrip()


def make_visible(text: str) -> str:
    """The visible form of a token's text: space `␣`, newline `⏎`, tab `⇥`; invisible characters as
    their code points.

    These are shown as code points: controls, format characters, other spaces, unassigned and
    private characters, lone surrogates, a combining mark without a character before it, and the
    characters `␣`, `⏎`, `⇥` themselves, which would otherwise be taken for a space, a newline and a
    tab. A combining mark after a visible character stays on it.
    """
    if text.isascii() and text.isprintable():
        return text.replace(" ", "␣")
    forms: list[str] = []
    has_base = False
    for character in text:
        if character in _SYMBOLS:
            forms.append(_SYMBOLS[character])
            has_base = False
        elif not character.isprintable() or character in _BLANK or character in _SYMBOLS.values():
            forms.append(code_point(character))
            has_base = False
        elif unicodedata.category(character) in _COMBINING and not has_base:
            forms.append(code_point(character))
        else:
            forms.append(character)
            has_base = True
    return "".join(forms)


def kind_of_text(text: str) -> str:
    """The kind of token that a text is, one of `TOKEN_KINDS`; white space around it is ignored
    unless there is nothing else.

    - `space`: white space only
    - `capital`: letters only, the first of them a capital, of any script (`A`, ` The`, `ROMEO`,
      `Я`)
    - `vowel`, `consonant`: a single small Latin letter, accents ignored; y is a consonant, as in
      the alphabet's count
    - `word`: several letters, the first of them not a capital (`the`, `ing`, `日本`)
    - `digit`: digits and other numerals only
    - `punctuation`: punctuation, currency and mathematical signs only
    - `other`: mixtures (`'s`, `3rd`), single letters without case or of other scripts, emoji,
      partial bytes
    """
    if text.isspace():
        return "space"
    core = text.strip()
    categories = [unicodedata.category(character) for character in core]
    if core and all(category in _PUNCTUATION for category in categories):
        return "punctuation"
    if core.isnumeric():
        return "digit"
    if (
        not core
        or categories[0][0] != "L"
        or not all(category[0] in "LM" for category in categories)
    ):
        return "other"
    if categories[0] in ("Lu", "Lt"):
        return "capital"
    # Canonical decomposition separates the accent (é is e and an acute), so that an accented letter
    # counts as its base.
    letters = [
        letter
        for letter in unicodedata.normalize("NFD", core)
        if unicodedata.category(letter)[0] == "L"
    ]
    if len(letters) > 1:
        return "word"
    if letters[0] in _VOWELS:
        return "vowel"
    if unicodedata.name(letters[0], "").startswith("LATIN SMALL LETTER"):
        return "consonant"
    return "other"


def unique_names(labels: Sequence[str]) -> tuple[str, ...]:
    """A name for each token: its label, with its number where others have the same label."""
    times = Counter(labels)
    return tuple(
        label if times[label] == 1 else f"{label} (token {i})" for i, label in enumerate(labels)
    )
