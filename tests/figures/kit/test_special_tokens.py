"""Start and end tokens on a figure: short, and explained in its legend."""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.kit import axes, heat
from gptviz.figures.kit.theme import LIGHT
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.text import CharTokenizer
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer

TOKENIZER = SpecialTokensTokenizer(CharTokenizer("abc"))
START, END = (TOKENIZER.label(i) for i in (TOKENIZER.start, TOKENIZER.end))


def square(labels: tuple[str, ...]) -> LabelledArray:
    values = np.full((len(labels), len(labels)), 1 / len(labels), np.float32)
    return LabelledArray(values, (Axis("query", labels), Axis("key", labels)), "share")


@pytest.mark.parametrize("n_letters", [3, 38])
def test_a_mark_takes_no_token_its_label_and_the_pointer_names_it_in_full(n_letters: int) -> None:
    labels = (START, *("abc" * n_letters)[:n_letters], END)
    figure = heat.attention_pattern(square(labels), LIGHT, title="")
    shown = [text.replace("<br>", "").strip("\u2068\u2069\u00a0") for text in figure.layout.xaxis.ticktext]
    assert shown == ["⟨", *labels[1:-1], "⟩"]
    assert START in figure.data[0].x[0]
    assert END in figure.data[0].x[-1]
    without = heat.attention_pattern(square(("a", *labels[1:-1], "c")), LIGHT, title="")
    assert figure.layout.margin == without.layout.margin


def test_beside_long_tokens_a_mark_is_short_too() -> None:
    figure = heat.attention_pattern(square(("seven", "12", END)), LIGHT, title="")
    assert [name.split()[1].strip("\u2068\u2069") for name in figure.data[0].x] == ["seven", "12", "⟩"]


@pytest.mark.parametrize(
    ("labels", "meaning"),
    [
        ("abc", ""),
        (("a", END), "⟩ is the end"),
        ((START, "a"), "⟨ is the start"),
        ((END, START), "⟨ is the start, ⟩ is the end"),
    ],
)
def test_only_the_marks_there_are_explained(labels: tuple[str, ...], meaning: str) -> None:
    assert axes.legend(labels) == meaning
