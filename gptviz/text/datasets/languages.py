"""The same few sentences in eight languages, then numbers and code, written for gptviz: what each
of them costs a tokenizer.
"""

from pathlib import Path
from typing import Final

FIRST: Final = "English"
"""The language that the others are compared with."""
TRANSLATED: Final = 8
"""How many of the examples say the same: the first ones."""


def examples() -> dict[str, str]:
    """The texts by what they are written in: first the languages, `FIRST` before the others, then
    numbers, then code.
    """
    content = Path(__file__).with_name("languages.txt").read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in content.removesuffix("\n").split("\n%\n"))
    return {name: text for name, _, text in parts}
