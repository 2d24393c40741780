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


LISTS = {"symbols": "symbols", "words": "words", "cased words": "words", "characters": "characters"}
# Texts that are no tokenizer; and by the kind of tokenizer, lists that are none of its
# vocabularies.
REFUSED: list[tuple[str, str]] = [
    ("", "not readable JSON"),
    ("{'kind'", "not readable JSON"),
    ("[" * 100_000, "nested too deeply"),
    ("[1]", "must be a JSON object, not list"),
    ("null", "must be a JSON object, not NoneType"),
    ("{}", "neither a 'kind' nor the 'model'"),
    ('{"kind": "syllables"}', "'kind' is 'syllables'"),
    *((json.dumps({"kind": kind}), f"'{name}' must be a list") for kind, name in LISTS.items()),
    ('{"kind": {"characters": []}}', "which this version cannot open"),
    ('{"model": null}', "no 'model' object"),
    ('{"model": {}}', "cannot be opened"),
    ('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}', "`b` out of vocabulary"),
    ('{"model": {"type": "BPE", "vocab": {"a": 5000000000}, "merges": []}}', "cannot be opened"),
    (
        '{"model": {"type": "BPE", "vocab": {"a": 7, "b": 7}, "merges": []}}',
        "two of the tokens have the id 7",
    ),
    (
        '{"model": {"type": "BPE", "vocab": {"a": 4000000000}, "merges": []}}',
        "the id 4,000,000,000; ids run from 0 to 3,999,999",
    ),
    ('{"model": {"type": "BPE", "vocab": {}, "merges": []}}', "vocabulary is empty"),
    (
        '{"kind": "characters", "characters": ["a", "b"], "unknown": 3}',
        "'unknown' must be one character or null",
    ),
    ('{"kind": "characters", "characters": ["a", "b"], "unknown": ""}', "one character, not ''"),
    *(
        (json.dumps({"kind": kind, LISTS[kind]: content}), message)
        for kind, content, message in [
            *(
                (kind, no, f"'{name}' must be a list")
                for kind, name in LISTS.items()
                for no in (None, "abc", [1, 2], ["ab", None])
            ),
            *((kind, [], f"no {name}") for kind, name in LISTS.items()),
            *(
                (kind, ["ab", "cd", "ab"], "'ab' stands twice")
                for kind in ("symbols", "words", "cased words")
            ),
            ("symbols", [""], "without white space, not ''"),
            ("symbols", ["a", "b c"], "without white space, not 'b c'"),
            ("symbols", ["a\n"], "without white space"),
            ("symbols", ["\ud800"], "without white space"),
            (
                "symbols",
                list(map(str, range(65_537))),
                "65,537 symbols are too many: at most 65,536",
            ),
            *(("words", [word], f"not {word!r}") for word in ("", "a", "Ab", "ab cd", "don't")),
            ("words", ["\ud800"], "two or more of the letters"),
            ("cased words", ["a b"], "one word or one sign, not 'a b'"),
            *(("cased words", [word], "one word or one sign") for word in ("a.", "", "\ud800")),
            ("cased words", ["⟨end⟩"], "'⟨end⟩' stands twice"),
            ("characters", ["ab"], "one character, not 'ab'"),
            *(
                ("characters", letters, "sorted by code point")
                for letters in (["b", "a"], ["a", "a"])
            ),
        ]
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=lambda one: one[:40])
def test_what_is_no_tokenizer_is_refused_in_a_sentence(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        from_json(text)
    assert "\n" not in str(caught.value)


def test_a_panic_of_the_library_is_an_ordinary_error() -> None:
    fields = json.loads(BPETokenizer.learn("abc", 256).to_json())
    fields["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    with pytest.raises(ValueError, match="cannot be opened"):
        from_json(json.dumps(fields))


@given(
    st.dictionaries(
        st.sampled_from(["kind", "model", "characters", "symbols", "words", "unknown", "x"]),
        json_values,
        max_size=4,
    )
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
