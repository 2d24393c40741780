"""Words with their capitals and signs: ids against a dictionary, and texts that come back as they
were typed.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.text.tokenizers.cased_words import SPECIAL_TOKENS, CasedWordTokenizer, tokens_of

ENGLISH = tokens_of("Mary saw the old house ( ) [ ] “ ” , . : ; ! ? don’t well-known 3 keys")
TOKENIZER = CasedWordTokenizer(ENGLISH)
token = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6).filter(
    lambda text: tokens_of(text) == [text]
)
vocabulary = st.lists(
    token.filter(lambda text: text not in SPECIAL_TOKENS), min_size=1, max_size=8, unique=True
)


@pytest.mark.parametrize(
    "text",
    [
        "Mary saw the old house.",
        "Mary, the old [Mary] saw (the “old house”).",
        "the keys: Mary; 3 keys! don’t?",
        "well-known [“Mary” (“the”)]",
        "Mary ⟨end⟩ ⟨unknown⟩.",
        "",
    ],
)
def test_ordinary_english_comes_back_as_it_was_typed(text: str) -> None:
    encoding = TOKENIZER.encode(text)
    assert encoding.unknown == ()
    assert TOKENIZER.decode(encoding.ids) == text


def test_words_and_signs_are_tokens_with_the_ids_of_a_dictionary() -> None:
    assert tokens_of("Mary saw (the dog), don't-care…") == [
        "Mary",
        "saw",
        "(",
        "the",
        "dog",
        ")",
        ",",
        "don't-care",
        "…",
    ]
    encoding = TOKENIZER.encode("mary saw Mary (the dog)")
    ids = {word: i for i, word in enumerate(ENGLISH)} | {
        "mary": TOKENIZER.unknown,
        "dog": TOKENIZER.unknown,
    }
    assert encoding.ids == [ids[word] for word in ["mary", "saw", "Mary", "(", "the", "dog", ")"]]
    assert [(one.position, one.character) for one in encoding.unknown] == [(0, "mary"), (5, "dog")]
    assert encoding.unknown_sentence() == (
        "Not in the vocabulary: the text “mary”, the text “dog”; the model reads ⟨unknown⟩ instead."
    )
    assert TOKENIZER.encode_ids("mary saw Mary (the dog)").tolist() == encoding.ids


def test_quotation_marks_of_a_keyboard_open_and_close() -> None:
    assert (
        " ".join(tokens_of('"Mary" saw ("the" "old") house."'))
        == "“ Mary ” saw ( “ the ” “ old ” ) house . ”"
    )


@given(
    st.lists(st.sampled_from(range(TOKENIZER.vocab_size)), min_size=1),
    st.sampled_from(range(TOKENIZER.vocab_size)),
)
def test_a_sentence_goes_on_with_a_piece_or_with_a_continuation_as_with_its_token(
    ids: list[int], following: int
) -> None:
    text = TOKENIZER.decode(ids)
    assert TOKENIZER.encode(text + TOKENIZER.piece(following)).ids == [*ids, following]
    assert TOKENIZER.encode(text + TOKENIZER.continuation([following, *ids])).ids == [
        *ids,
        following,
        *ids,
    ]
    assert TOKENIZER.continuation([following]) == TOKENIZER.piece(following)
