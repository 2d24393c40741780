"""How the sentences of a page are written: what no page may say, whatever model it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamlit.testing.v1 import AppTest

from gptviz.components.kit import unpack

# Each with what is wrong about it. Sentences only: code, equations and texts of a model are no
# sentences of the page.
SLIPS = {
    r"(?<![\d.,·−-])\b1 "
    r"(blocks|layers|heads|tokens|positions|parts|columns|boxes|lines|edges|words|steps|texts|models)\b": "one",
    r"(?<![\w%])\d[\d.,]*%(?!\w)": "a space stands before %, as `format.percent` writes it",
    r"\d(\.\d+)?e[-+]\d\d": "a size is written as by `format.power`",
    r"(?<![\w.)\]-])-\d+\.\d": "a number below 0 has a minus, not a hyphen",
    r"\b(nan|inf)\b": "no number",
    r"−0\.0+(?![\d.])": "nothing has no sign",
    r"[a-z] or that that |\bthe the\b|\bof of\b|\ba an\b": "a word too many",
    r"blocks\.\d+\.(attention|mlp)": "a part of a model has its name in words",
}
IS_NO_SENTENCE = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$|[“„][^”]*”|https?://\S+", re.DOTALL
)
# A formula of several lines stands between two lines that have nothing but $$; else all the rest of
# the text is taken for it.
BROKEN_FORMULA = re.compile(r"^\$\$[^$\n]+\n|\n[^$\n]+\$\$$", re.MULTILINE)


def sentences(at: AppTest) -> Iterator[str]:
    """All that the page says by itself: Markdown, captions, messages, and what its figures are
    called.
    """
    for one in [*at.markdown, *at.caption, *at.info, *at.warning, *at.error]:
        yield str(one.value)
    for view in at.get("bidi_component"):
        if view.proto.bytes and "figure_tools" in view.proto.component_name:
            yield str(unpack(view.proto.bytes)[0]["heading"]["title"])


def slips(said: str) -> list[str]:
    """The mistakes in a text of the page."""
    plain = IS_NO_SENTENCE.sub(" ", said)
    found = [
        f"{match.group()!r} ({why}) in: {said[:400]}"
        for slip, why in SLIPS.items()
        if (match := re.search(slip, plain))
    ]
    return found + (
        [f"a formula that is not closed in: {said[:400]}"] if BROKEN_FORMULA.search(said) else []
    )


def check_wording(at: AppTest, *quoted: str) -> None:
    """Nothing on the page is written as no page may write it; it may quote the words of its
    visitor.
    """
    words = "|".join(re.escape(word) for word in quoted if word.strip())
    theirs = re.compile(rf"(?<!\w)({words})(?!\w)" if words else r"(?!)")
    found = [slip for said in sentences(at) for slip in slips(theirs.sub("…", said))]
    assert not found, "\n".join(found)
