"""The vocabularies that ship, with any text as the prompt: ids that the model has, or a message of what it lacks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from gptviz.runs import checkpoints
from gptviz.text import Tokenizer
from tests.examples import tried

MODELS = ("shakespeare", "bpe", "classifier", "seq2seq", "reversal", "sentences")
# What a keyboard, a copy from elsewhere or an attack brings: any character, words of the models, and parts of special tokens.
PIECES = st.text(max_size=30) | st.sampled_from(
    ["ROMEO:", " the", "\r\n", "\x00", "\u202e", "👩‍🚀", "<|endoftext|>", "[CLS]", "\ud7ff", "１"]
)


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, Tokenizer]:
    return {name: checkpoints.load(checkpoints.BUNDLED / name).tokenizer for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
@tried(20, 250, pieces=st.lists(PIECES, max_size=8))
def test_any_text_has_ids_of_the_vocabulary_and_what_it_lacks_is_told(
    tokenizers: dict[str, Tokenizer], name: str, pieces: list[str]
) -> None:
    tokenizer, text = tokenizers[name], "".join(pieces)
    encoding = tokenizer.encode(text)
    assert all(0 <= one < tokenizer.vocab_size for one in encoding.ids)
    assert np.array_equal(tokenizer.encode_ids(text), encoding.ids)
    assert all(tokenizer.piece(one) is not None for one in encoding.ids)
    again = tokenizer.encode(tokenizer.decode(encoding.ids))
    if not encoding.unknown:
        assert not again.unknown
    else:
        assert "Not in the vocabulary" in encoding.unknown_sentence()
