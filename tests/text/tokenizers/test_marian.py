"""Marian's tokens: the ids and texts of `transformers`' tokenizer, and nothing lost on the way to a
checkpoint and back.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.sources.folder_tokens import FolderTokens
from gptviz.text import from_json
from gptviz.text.tokenizers.marian import MarianTokenizer
from tests.text import marian_vocabulary

TEXTS = [
    "the small frog sleeps.",
    "a  bird,\tand x ",
    "",
    "Frosch schläft 😀",
    ">>deu<< the bird",
    ">>xxx<< the bird",
]


@pytest.fixture
def tokenizer(tmp_path: Path) -> MarianTokenizer:
    marian_vocabulary.write(tmp_path)
    found = FolderTokens(tmp_path).tokenizer()
    assert isinstance(found, MarianTokenizer)
    return found


def test_sources_and_answers_have_the_ids_of_transformers(
    tokenizer: MarianTokenizer, tmp_path: Path
) -> None:
    theirs = pytest.importorskip("transformers").MarianTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        assert tokenizer.source_ids(text) == theirs(text)["input_ids"]
        assert tokenizer.target_ids(text)[1:] == theirs(text_target=text)["input_ids"]
        assert tokenizer.encode_ids(text).tolist() == tokenizer.encode(text).ids
    assert tokenizer.start == tokenizer.padding == theirs.pad_token_id


def test_ids_become_the_texts_of_transformers(tokenizer: MarianTokenizer, tmp_path: Path) -> None:
    theirs = pytest.importorskip("transformers").MarianTokenizer.from_pretrained(tmp_path)
    for text in marian_vocabulary.GERMAN[:4]:
        ids = tokenizer.target_ids(text)
        assert tokenizer.decode(ids) == text == theirs.decode(ids, skip_special_tokens=True)


def test_a_piece_without_an_id_is_said_and_read_as_unknown(tokenizer: MarianTokenizer) -> None:
    found = tokenizer.encode("the frog 😀")
    assert found.ids[found.unknown[-1].position] == tokenizer.unknown_id
    assert "😀" in found.unknown_sentence()
    assert "the model reads <unk> instead" in found.unknown_sentence()


def test_a_lone_surrogate_is_said_to_be_left_out(tokenizer: MarianTokenizer) -> None:
    found = tokenizer.encode("the \ud800 frog")
    assert found.ids == tokenizer.encode("the frog").ids
    left_out = [(one.character, one.instead) for one in found.unknown if not one.instead]
    assert left_out == [("\ud800", "")]


def test_tokens_are_shown_as_the_text_they_stand_for(tokenizer: MarianTokenizer) -> None:
    for place, piece in enumerate(tokenizer.pieces[1:-1], start=1):
        assert tokenizer.piece(place) == piece.replace("▁", " ")
        assert tokenizer.id_of(tokenizer.piece(place)) == place
    assert [tokenizer.label(place) for place in (tokenizer.end, tokenizer.start)] == [
        "⟨end⟩",
        "⟨start⟩",
    ]
    assert tokenizer.id_of("</s>") is None


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"source": "AAAA"}, "source.spm is no vocabulary of SentencePiece"),
        ({"target": "?"}, "'source' and 'target' must be vocabularies in base64"),
        (
            {"pieces": ["</s>", "<unk>", "<pad>", "<pad>"]},
            "two of the vocabulary's pieces are the same",
        ),
        ({"pieces": ["</s>", "<unk>"]}, "lacks the piece '<pad>'"),
        ({"pieces": 3}, "'pieces' must be a list of texts"),
    ],
)
def test_a_damaged_tokenizer_is_named(
    tokenizer: MarianTokenizer, changes: dict[str, object], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        from_json(json.dumps(json.loads(tokenizer.to_json()) | changes))


@pytest.mark.parametrize(
    "content", ["[]", '{"</s>": 0, "<unk>": 2, "<pad>": 1000000}', '{"</s>": "0"}', "{"]
)
def test_a_table_of_ids_with_holes_is_refused(
    content: str, tokenizer: MarianTokenizer, tmp_path: Path
) -> None:
    (tmp_path / "vocab.json").write_text(content)
    with pytest.raises(ImportRefusedError, match=r"vocab\.json is damaged"):
        FolderTokens(tmp_path).tokenizer()


def test_unused_tokens_follow_the_pieces_and_stand_for_nothing(tokenizer: MarianTokenizer) -> None:
    n = tokenizer.vocab_size
    wide = tokenizer.filled_up(n + 3)
    assert (wide.vocab_size, len(wide.labels()), wide.label(n + 1)) == (
        n + 3,
        n + 3,
        f"⟨unused {n + 1}⟩",
    )
    assert (wide.start, wide.end, wide.source_ids("the frog")) == (
        tokenizer.start,
        tokenizer.end,
        tokenizer.source_ids("the frog"),
    )
    ids = tokenizer.encode("the frog").ids
    assert wide.decode([n, *ids, n + 2]) == tokenizer.decode(ids)
    again = from_json(wide.to_json())
    assert (again.to_json(), again.vocab_size) == (wide.to_json(), n + 3)
    with pytest.raises(ValueError, match="unused tokens"):
        tokenizer.filled_up(n - 1)
