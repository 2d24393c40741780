"""Words of a few kinds, such as names and countries: with a word replaced by one of its kind, a
text still makes sense.
"""

import re
from itertools import zip_longest
from typing import Final

KINDS: Final = tuple(
    tuple(words.split())
    for words in (
        "Mary John Tom Ann Sue Paul Kate Mark Lucy Peter Emma David Alice James Sarah Michael",
        "France Germany Italy Spain Japan China India Russia Egypt Canada Mexico Brazil England "
        "Greece Poland Sweden",
        "Paris London Berlin Rome Madrid Tokyo Moscow Cairo Athens Vienna Boston Chicago",
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "January February April June July August September October November December",
        "red blue green white black yellow brown grey pink golden",
        "two three four five six seven eight nine ten",
        "1 2 3 4 5 6 7 8 9",
        "dog cat horse cow bird sheep pig mouse",
        "man woman boy girl king queen prince princess",
        "he she",
        "He She",
        "his her",
        "big small",
        "hot cold",
        "old young",
    )
)


def other_of_its_kind(text: str, word: str) -> str | None:
    """Another word of a text of the same kind as `word`, the one that stands last; None if there is
    none.
    """
    kind = next((words for words in KINDS if word in words), ())
    return next(
        (other for other in reversed(re.findall(r"\w+", text)) if other in kind and other != word),
        None,
    )


def with_another_word(text: str) -> list[str]:
    """The text with one word replaced by another of its kind, the last word first; empty if no word
    is of a known kind.

    A word is replaced by one that is not in the text yet, so that nobody meets himself; a word that
    stood there before, by another that did, too.
    """
    words = list(re.finditer(r"\w+", text))
    of_each: list[list[str]] = []
    for match in reversed(words):
        before = {word[0] for word in words if word.start() < match.start()}
        present = {word[0] for word in words}
        kind = next((kind for kind in KINDS if match[0] in kind), ())
        if match[0] in before:
            known = [word for word in kind if word in before and word != match[0]]
        else:
            known = []
        others = [*known, *(word for word in kind if word not in present)]
        of_each.append([f"{text[: match.start()]}{word}{text[match.end() :]}" for word in others])
    return [changed for row in zip_longest(*of_each) for changed in row if changed]
