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
