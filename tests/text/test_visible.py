"""How tokens are shown, named and classified."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.text import TOKEN_KINDS, character_name, kind_of_text, make_visible

any_character = st.characters(codec=None, exclude_categories=())


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (" ", "␣"),
        ("\n", "⏎"),
        ("\t", "⇥"),
        (" the", "␣the"),
        ("\r\n", "U+000D⏎"),
        ("\u200b", "U+200B"),
        ("\u00a0", "U+00A0"),
        ("\u200f", "U+200F"),
        ("\u0301", "U+0301"),
        ("e\u0301", "e\u0301"),
        ("e\n\u0301", "e⏎U+0301"),
        ("e\u200b\u0301", "eU+200BU+0301"),
        ("\u3164", "U+3164"),
        ("\ud800", "U+D800"),
        ("\U000e0001", "U+E0001"),
        ("␣", "U+2423"),
        ("שלום", "שלום"),
        ("👍", "👍"),
        ("", ""),
    ],
)
def test_what_cannot_be_seen_is_shown_by_a_symbol_or_its_code_point(text: str, form: str) -> None:
    assert make_visible(text) == form


@given(any_character, any_character)
def test_two_characters_never_look_the_same(one: str, other: str) -> None:
    assert (make_visible(one) == make_visible(other)) == (one == other)


@given(st.text(any_character))
def test_a_visible_form_has_no_white_space_and_nothing_unprintable(text: str) -> None:
    form = make_visible(text)
    assert not any(character.isspace() for character in form)
    assert form.isprintable()
    assert unicodedata.category((form or "x")[0])[0] != "M"


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("€", "U+20AC EURO SIGN"),
        ("\u200b", "U+200B ZERO WIDTH SPACE"),
        ("\x07", "U+0007"),
        ("\ud800", "U+D800"),
        ("🙂", "U+1F642 SLIGHTLY SMILING FACE"),
    ],
)
def test_a_character_is_named_as_unicode_names_it(character: str, name: str) -> None:
    assert character_name(character) == name


@given(any_character)
def test_a_name_leads_back_to_its_character(character: str) -> None:
    code, _, name = character_name(character).partition(" ")
    assert chr(int(code.removeprefix("U+"), 16)) == character
    assert not name or unicodedata.lookup(name) == character


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("vowel", ["a", "u", "é", " o", "æ", "e\u0301"]),
        ("consonant", ["b", "y", "ñ", "z", " s", "ß"]),
        ("capital", ["A", "Z", "É", " The", "ROMEO", "Я", "ǅ"]),
        ("word", ["the", " and", "ing", "éa", "日本", "शब्द"]),
        ("digit", ["3", " 2024", "٣", "½"]),
        ("punctuation", [".", "$", "&", " --", "+", "“", "'"]),
        ("space", [" ", "\n", "\t", "\n\n", "\u00a0"]),
        (
            "other",
            [
                "",
                "'s",
                "3rd",
                "🙂",
                "\ufffd",
                "<|endoftext|>",
                "я",
                "日",
                "\u200b",
                "\u0301",
                "\ud800",
                "ª",
            ],
        ),
    ],
)
def test_the_kind_of_a_token_is_what_a_reader_would_call_it(kind: str, texts: list[str]) -> None:
    assert {text: kind_of_text(text) for text in texts} == dict.fromkeys(texts, kind)


@given(st.text(any_character))
def test_every_text_has_one_of_the_kinds(text: str) -> None:
    assert kind_of_text(text) in TOKEN_KINDS
