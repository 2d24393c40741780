"""The languages in which a visitor reads: catalogues of gettext, in the folders of the languages.

A text is written in English where it is shown, and `translate` gives it in the language of who
reads
it; what a catalogue lacks stays English. The language is the first of those that are asked for (see
`follow`) that has a catalogue. Outside of a page it is that of `GPTVIZ_LANGUAGE`.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from gptviz.machine.hosting import hosting

FOLDER = Path(__file__).parent
DOMAIN = "gptviz"
ENGLISH = "en"
# Languages whose letters run from right to left.
RIGHT_TO_LEFT = ("ar", "fa", "he", "ur", "yi")
_NAME = re.compile(r"[a-zA-Z]{2,3}(?=[-_]|$)")


def languages() -> tuple[str, ...]:
    """The languages that gptviz itself has catalogues of."""
    return tuple(sorted(folder.name for folder in FOLDER.iterdir() if _catalogue(folder).is_file()))


def wanted() -> list[str]:
    """The languages that the reader asks for, as two or three letters, the first one first."""
    found = (_NAME.match(asked or "") for asked in _asked())
    return [name[0].lower() for name in found if name]


def language(known: Iterable[str] | None = None) -> str:
    """The language of the reader: the first that is asked for among the `known` ones, by default
    those of gptviz, or English.
    """
    there = {ENGLISH, *(languages() if known is None else known)}
    return next((name for name in wanted() if name in there), ENGLISH)


def translate(text: str, into: str | None = None) -> str:
    """A text of gptviz in the language of the reader, or in another one; English where its
    catalogue lacks it.
    """
    return _translations(into or language()).gettext(text) if text else text


def direction(name: str) -> str:
    """How a language is written: "ltr" or "rtl", as HTML says it."""
    return "rtl" if name in RIGHT_TO_LEFT else "ltr"


def follow(asked: Callable[[], list[str | None]]) -> None:
    """Say how a page knows which languages its visitor asks for, the first one first."""
    global _asked
    _asked = asked


def _asked() -> list[str | None]:
    return [hosting().language]


def _catalogue(folder: Path) -> Path:
    return folder / "LC_MESSAGES" / f"{DOMAIN}.mo"


@cache
def _translations(name: str) -> gettext.NullTranslations:
    return gettext.translation(DOMAIN, FOLDER, [name], fallback=True)
