"""The words of the field: found in a sentence, and explained beside it."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.ui.widgets.words import MEANINGS, words_in


@pytest.mark.parametrize("word", MEANINGS)
def test_each_word_is_found_in_a_sentence_but_not_in_a_text_that_is_quoted(word: str) -> None:
    assert words_in(f"Here stands {word}, and later {word.upper()}.") == [word]
    assert words_in(f"Here stands “{word}”.") == []


def test_longer_words_are_not_read_as_two_and_plurals_are_found() -> None:
    assert words_in("A tokenless text") == []
    assert words_in("Blocks add to the residual stream of tokens") == [
        "block",
        "residual stream",
        "token",
    ]


def test_the_words_of_an_answer_are_explained_beside_it() -> None:
    def script() -> None:
        from gptviz.ui.widgets import say_answer

        say_answer("Head 2 reads “loss”.", help="First.")
        say_answer("Nothing else.")

    explained, plain = AppTest.from_function(script).run().markdown
    assert explained.proto.help == f"First.\n\n**head**: {MEANINGS['head']}"
    assert not plain.proto.help
