"""The merges shown for a text are those of its tokenizer: checked against the tokens themselves,
and a loop.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers

from gptviz.machine import progress
from gptviz.machine.job import StoppedError
from gptviz.machine.progress import Progress
from gptviz.text import BPETokenizer, CharTokenizer, python_reference
from gptviz.text.tokenizers.learning import BYTES, Learned, learn_merges
from gptviz.text.tokenizers.padded import PaddedTokenizer
from gptviz.text.tokenizers.sentencepiece import from_sentencepiece
from tests.examples import tried
from tests.text.sentencepieces import LLAMA, trained

any_text = st.text(
    st.sampled_from(" \nthe anding,.'1é日👍") | st.characters(codec="utf-8"), max_size=60
)


@cache
def of_reference() -> Learned:
    return learn_merges(python_reference().text[:60_000], 400)


@tried(30, 500, any_text)
def test_the_merges_of_any_text_lead_to_its_tokens(text: str) -> None:
    tokenizer = of_reference().tokenizer
    ids = tokenizer.encode(text).ids
    merging = tokenizer.merging(ids)
    assert merging is not None
    assert merging.after(len(merging.merges)) == tuple(ids)
    assert b"".join(map(tokenizer.bytes_of, merging.symbols)) == text.encode()
    assert len(merging.symbols) - len(merging.merges) == len(ids)


def test_the_merges_of_a_word_are_those_of_a_loop_in_its_order(
    gpt2_files: tuple[Path, Path],
) -> None:
    gpt2 = BPETokenizer.from_gpt2(*gpt2_files)
    ranks = {
        tuple(pair): rank for rank, pair in enumerate(json.loads(gpt2.to_json())["model"]["merges"])
    }
    for word in (" unicorn", "antidisestablishmentarianism", "aaaaaaa", "naïve"):
        ids = gpt2.encode(word).ids
        merging = gpt2.merging(ids)
        assert merging is not None
        symbols = gpt2.written_tokens(merging.symbols)
        expected = []
        while pairs := [
            (ranks[pair], at) for at, pair in enumerate(pairwise(symbols)) if pair in ranks
        ]:
            rank, at = min(pairs)
            symbols[at : at + 2] = ["".join(symbols[at : at + 2])]
            expected.append((rank, symbols[at]))
        assert [(one.rank, *gpt2.written_tokens([one.id])) for one in merging.merges] == expected


def test_sentencepiece_merges_characters_and_leaves_lone_bytes_alone() -> None:
    tokenizer = from_sentencepiece(trained(**LLAMA))
    ids = tokenizer.encode("the naïve 👍 of it").ids
    merging = tokenizer.merging(ids)
    assert merging is not None
    assert merging.merges
    assert merging.after(len(merging.merges)) == tuple(ids)


def test_unigram_takes_the_cut_whose_scores_have_the_largest_sum() -> None:
    tokenizer = from_sentencepiece(trained(model_type="unigram"))
    assert tokenizer.way == "likeliest pieces"
    scores = tokenizer.scores()

    def best(text: str) -> float:
        ends = [end for end in range(1, len(text) + 1) if text[:end] in scores]
        return max(
            (scores[text[:end]] + best(text[end:]) for end in ends),
            default=0.0 if not text else float("-inf"),
        )

    for word in ("statement", "returned", "of"):
        ids = [i for i in tokenizer.encode(word).ids if not tokenizer.is_special(i)]
        assert tokenizer.merging(ids) is None
        assert sum(scores[text] for text in tokenizer.written_tokens(ids)) == pytest.approx(
            best(f"▁{word}")
        )


def test_a_word_that_no_merges_lead_to_has_none() -> None:
    backend = Backend(models.BPE(vocab={"a": 0, "b": 1, "ab": 2}, merges=[], ignore_merges=True))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = BPETokenizer(backend)
    assert tokenizer.encode("ab").ids == [2]
    assert tokenizer.merging([2]) is None
    assert CharTokenizer("abc").merging([0]) is None


def test_unused_tokens_change_no_merges() -> None:
    inner = of_reference().tokenizer
    ids = inner.encode(" the end").ids
    assert PaddedTokenizer(inner, 1_000).merging(ids) == inner.merging(ids)
    assert PaddedTokenizer(inner, 1_000).merging([999]) is None


def test_after_any_number_of_merges_the_text_has_the_tokens_that_are_counted() -> None:
    text = python_reference().text[:60_000]
    found = of_reference()
    assert len(found.merges) == 400
    for count in (0, 1, 7, 100, 400):
        assert len(found.tokenizer_after(count).encode_ids(text)) == found.tokens[count]
    assert found.bytes == len(text.encode())


def test_a_merge_joins_the_pair_that_is_most_frequent_then() -> None:
    found = of_reference()
    letters = [found.tokenizer.label(i) for i in range(BYTES + len(found.merges))]
    for count in (0, 3, 50, 399):
        left, right, times = found.pairs(count, 1)[0]
        assert left + right == letters[BYTES + count]
        assert found.times[count] <= times


@tried(20, 200, any_text, st.integers(0, 400))
def test_after_any_number_of_merges_tokens_keep_their_ids_and_give_the_text_back(
    text: str, count: int
) -> None:
    found = of_reference()
    few = found.tokenizer_after(count)
    ids = few.encode(text).ids
    assert few.decode(ids) == text
    assert few.written_tokens(ids) == found.tokenizer.written_tokens(ids)
    assert found.tokenizer_after(400).encode(text).ids == found.tokenizer.encode(text).ids


def test_a_text_without_pairs_has_no_merges() -> None:
    found = learn_merges("a", 10)
    assert (found.merges, found.tokens.tolist(), found.pairs(0)) == ([], [1], [])
    with pytest.raises(ValueError, match="empty"):
        learn_merges("", 10)


def test_learning_says_how_much_of_the_text_was_read() -> None:
    text = python_reference().text
    while len(text) < 1_000_000:
        text += text
    seen: list[Progress] = []
    with progress.listen_to(seen.append):
        found = learn_merges(text, 10)
    shares = [one.share for one in seen]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert len({share for share in shares if 0.02 < share < 0.98}) > 20
    assert {one.of for one in seen} == {len(text)}
    assert found.bytes == len(text.encode()), "all of it"


# while the trainer reads, and while words are counted
@pytest.mark.parametrize("after", [0.05, 0.7])
def test_learning_can_be_stopped_while_the_text_is_read(after: float) -> None:
    def stop(now: Progress) -> None:
        if now.share > after:
            raise StoppedError

    with pytest.raises(StoppedError), progress.listen_to(stop):
        learn_merges("the king and the unicorn. " * 100_000, 10)


def test_a_megabyte_gives_the_merges_of_the_library_when_it_reads_the_text_as_one() -> None:
    text = (python_reference().text * 10)[:1_000_000]
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(
        [text],
        trainers.BpeTrainer(vocab_size=1_256, initial_alphabet=alphabet, show_progress=False),
    )
    merges = json.loads(backend.to_str())["model"]["merges"]
    assert len(merges) == 1_000
    assert learn_merges(text, 1_000).merges == [tuple(one) for one in merges]
