"""`from_json`: what is opened, and what is refused in a sentence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.text import BPETokenizer, CharTokenizer, from_json

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not readable JSON"),
        ("{'kind'", "not readable JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[1]", "must be a JSON object, not list"),
        ("null", "must be a JSON object, not NoneType"),
        ("{}", "neither a 'kind' nor the 'model'"),
        ('{"kind": "syllables"}', "'kind' is 'syllables'"),
        ('{"kind": "words"}', "'words' must be a list"),
        ('{"kind": {"characters": []}}', "which this version cannot open"),
        ('{"model": null}', "no 'model' object"),
        ('{"model": {}}', "cannot be opened"),
        ('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}', "`b` out of vocabulary"),
        ('{"model": {"type": "BPE", "vocab": {"a": 5000000000}, "merges": []}}', "cannot be opened"),
        ('{"model": {"type": "BPE", "vocab": {"a": 7, "b": 7}, "merges": []}}', "must run from 0 to 1"),
        ('{"model": {"type": "BPE", "vocab": {"a": 4000000000}, "merges": []}}', "must run from 0 to 0"),
        ('{"model": {"type": "BPE", "vocab": {}, "merges": []}}', "vocabulary is empty"),
    ],
)
def test_what_is_no_tokenizer_is_refused_in_a_sentence(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        from_json(text)
    assert "\n" not in str(caught.value)


# By the kind of tokenizer, lists that are none of its vocabularies.
LISTS: list[tuple[str, object, str]] = [
    ("symbols", None, "'symbols' must be a list"),
    ("symbols", "abc", "'symbols' must be a list"),
    ("symbols", [1, 2], "'symbols' must be a list"),
    ("symbols", ["a", None], "'symbols' must be a list"),
    ("symbols", [], "no symbols"),
    ("symbols", [""], "without white space, not ''"),
    ("symbols", ["a", "b c"], "without white space, not 'b c'"),
    ("symbols", ["a\n"], "without white space"),
    ("symbols", ["\ud800"], "without white space"),
    ("symbols", ["a", "b", "a"], "'a' stands twice"),
    ("symbols", list(map(str, range(65_537))), "65,537 symbols are too many: at most 65,536"),
    ("words", None, "'words' must be a list"),
    ("words", "abc", "'words' must be a list"),
    ("words", [1, 2], "'words' must be a list"),
    ("words", ["ab", None], "'words' must be a list"),
    ("words", [], "no words"),
    ("words", [""], "not ''"),
    ("words", ["a"], "not 'a'"),
    ("words", ["Ab"], "not 'Ab'"),
    ("words", ["ab cd"], "not 'ab cd'"),
    ("words", ["don't"], 'not "don\'t"'),
    ("words", ["\ud800"], "two or more of the letters"),
    ("words", ["ab", "cd", "ab"], "'ab' stands twice"),
    ("cased words", None, "'words' must be a list"),
    ("cased words", [1], "'words' must be a list"),
    ("cased words", [], "no words"),
    ("cased words", ["a b"], "one word or one sign, not 'a b'"),
    ("cased words", ["a."], "one word or one sign"),
    ("cased words", [""], "one word or one sign"),
    ("cased words", ["\ud800"], "one word or one sign"),
    ("cased words", ["a", "b", "a"], "'a' stands twice"),
    ("cased words", ["⟨end⟩"], "'⟨end⟩' stands twice"),
]


@pytest.mark.parametrize(("kind", "content", "message"), LISTS)
def test_a_list_that_is_no_vocabulary_is_refused(kind: str, content: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(json.dumps({"kind": kind, kind.split()[-1]: content}))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "'characters' must be a list"),
        ({"characters": "abc"}, "'characters' must be a list"),
        ({"characters": [1, 2]}, "'characters' must be a list"),
        ({"characters": []}, "no characters"),
        ({"characters": ["ab"]}, "one character, not 'ab'"),
        ({"characters": ["b", "a"]}, "sorted by code point"),
        ({"characters": ["a", "a"]}, "sorted by code point"),
        ({"characters": ["a", "b"], "unknown": 3}, "'unknown' must be one character or null"),
        ({"characters": ["a", "b"], "unknown": ""}, "one character, not ''"),
    ],
)
def test_characters_that_no_tokenizer_wrote_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(json.dumps({"kind": "characters", **fields}))


def test_a_panic_of_the_library_is_an_ordinary_error() -> None:
    fields = json.loads(BPETokenizer.learn("abc", 256).to_json())
    fields["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    with pytest.raises(ValueError, match="cannot be opened"):
        from_json(json.dumps(fields))


@given(
    st.dictionaries(st.sampled_from(["kind", "model", "characters", "symbols", "words", "unknown", "x"]), json_values, max_size=4)
)
def test_strange_json_is_refused_or_gives_a_working_tokenizer(fields: dict[str, object]) -> None:
    try:
        tokenizer = from_json(json.dumps(fields))
    except ValueError as error:
        assert str(error)
    else:
        assert tokenizer.encode("abc").ids == tokenizer.encode_ids("abc").tolist()


def test_a_valid_character_tokenizer_with_one_wrong_field_is_never_opened() -> None:
    good = json.loads(CharTokenizer("abc").to_json())
    assert from_json(json.dumps(good)).vocab_size == 3
    for key in ("kind", "characters"):
        wrong: object
        for wrong in (None, 0, 1.5, True, "x", {}, [[]], [None], ["c", "b"]):
            with pytest.raises(ValueError, match="."):
                from_json(json.dumps({**good, key: wrong}))
