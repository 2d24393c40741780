"""The tokens that settings add to a vocabulary, and what its class says: the ids of `transformers`,
for every kind of file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.sources.folder_tokens import FolderTokens
from gptviz.pretrained.sources.source import fit_tokenizer
from gptviz.text import BPETokenizer
from tests.pretrained.test_tokens import written
from tests.text.sentencepieces import GEMMA, LLAMA, trained

TEXTS = [
    "to be, or not to be",
    " It's 12345 o'clock\n\n  be  é é ",
    "",
    "<|im_start|>user\nto be<|im_end|>",
    "be<sep> to[PAD]be</s>not<|endoftext|> [E1]Grafts <s> be",
]
CHAT = ["<|im_end|>", "<|im_start|>"]
ADDED = {
    "lstrip": False,
    "rstrip": False,
    "single_word": False,
    "normalized": False,
    "special": True,
}


def decoder(first: int, *tokens: str, **flags: bool) -> dict[str, Any]:
    return {
        str(first + place): {"content": token, **ADDED, **flags}
        for place, token in enumerate(tokens)
    }


def merged(before: list[str], after: list[str]) -> tuple[dict[str, int], str]:
    """vocab.json and merges.txt of a vocabulary with these tokens before and after those that are
    learned.
    """
    model = json.loads(
        BPETokenizer.learn(
            "to be or not to be, that is the question. It's 12345 o'clock", 290
        ).to_json()
    )["model"]
    tokens = [*before, *sorted(model["vocab"], key=model["vocab"].__getitem__), *after]
    return {token: place for place, token in enumerate(tokens)}, "\n".join(
        ["#version: 0.2", *map(" ".join, model["merges"]), ""]
    )


def is_read_as_in_transformers(folder: Path) -> None:
    from transformers import AutoTokenizer

    judge = AutoTokenizer.from_pretrained(folder)
    mine = FolderTokens(folder).tokenizer()
    assert mine is not None
    for text in TEXTS:
        assert mine.encode(text).ids == judge(text).input_ids, text
        assert mine.encode_ids(text).tolist() == judge(text).input_ids, text


OPT = ["<s>", "<pad>", "</s>", "<unk>"]
OF_OPT = {
    "bos_token": "</s>",
    "eos_token": "</s>",
    "unk_token": "</s>",
    "pad_token": "<pad>",
    "add_bos_token": True,
}


@pytest.mark.parametrize(
    ("model", "tokens", "settings", "more"),
    [
        ("gpt2", ([], ["<|endoftext|>"]), None, {}),
        ("gpt2", ([], []), None, {}),  # the class adds its own tokens
        ("gpt2", ([], ["<|endoftext|>"]), {"add_prefix_space": True, "add_bos_token": True}, {}),
        (
            "gpt2",
            ([], ["<|endoftext|>"]),
            {"tokenizer_class": "GPT2Tokenizer"},
            {
                "added_tokens__json": {"<sep>": 292, "[PAD]": 291},
                "special_tokens_map__json": {"pad_token": "[PAD]"},
            },
        ),
        ("opt", (OPT, []), {"tokenizer_class": "GPT2Tokenizer", **OF_OPT}, {}),
        ("opt", (OPT, []), None, {"special_tokens_map__json": OF_OPT}),
        (
            "phi",
            ([], ["<|endoftext|>"]),
            {"tokenizer_class": "CodeGenTokenizer"},
            {"added_tokens__json": {" " * 4: 291}},
        ),
        ("gpt_neox", ([], ["<|endoftext|>"]), {"tokenizer_class": "GPTNeoXTokenizerFast"}, {}),
        (
            "qwen2",
            ([], []),
            {
                "tokenizer_class": "Qwen2Tokenizer",
                "added_tokens_decoder": decoder(290, "<|endoftext|>", *CHAT),
                "bos_token": None,
            },
            {},
        ),
        (
            "qwen3",
            ([], []),
            {"additional_special_tokens": CHAT, "eos_token": "<|im_end|>", "unk_token": None},
            {},
        ),
        ("qwen2", ([], []), {"tokenizer_class": "GPT2Tokenizer"}, {}),  # which is known to be wrong
        ("roberta", (OPT, ["<mask>"]), {"tokenizer_class": "RobertaTokenizer"}, {}),
    ],
)
def test_a_vocabulary_with_merges(
    model: str,
    tokens: tuple[list[str], list[str]],
    settings: dict[str, Any] | None,
    more: dict[str, Any],
    tmp_path: Path,
) -> None:
    vocabulary, merges = merged(*tokens)
    written(
        tmp_path,
        vocab__json=vocabulary,
        merges__txt=merges,
        config__json={"model_type": model},
        **more,
    )
    if settings is not None:
        written(tmp_path, tokenizer_config__json=settings)
    is_read_as_in_transformers(tmp_path)


@pytest.mark.parametrize("legacy", [None, False, True])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"add_prefix_space": False},
        {"add_bos_token": True, "add_eos_token": True, "eos_token": "</s>"},
    ],
)
def test_pieces_of_a_llama(legacy: bool | None, more: dict[str, Any], tmp_path: Path) -> None:
    settings = {
        "tokenizer_class": "LlamaTokenizer",
        "bos_token": "<s>",
        "eos_token": "<|im_end|>",
        "unk_token": "<unk>",
        **more,
    }
    written(
        tmp_path,
        tokenizer__model=trained(**LLAMA),
        added_tokens__json={token: 600 + place for place, token in enumerate(CHAT)},
        tokenizer_config__json=settings | ({} if legacy is None else {"legacy": legacy}),
        config__json={"model_type": "llama"},
    )
    is_read_as_in_transformers(tmp_path)
    found = FolderTokens(tmp_path)
    assert found.end_tokens(None, found.tokenizer()) == (2 if more.get("eos_token") else 600,)


def test_pieces_of_a_gemma(tmp_path: Path) -> None:
    settings = {
        "tokenizer_class": "GemmaTokenizer",
        "add_bos_token": True,
        "added_tokens_decoder": decoder(600, *CHAT),
    }
    written(
        tmp_path,
        tokenizer__model=trained(**GEMMA),
        tokenizer_config__json=settings | {"pad_token": None, "mask_token": None},
        config__json={"model_type": "gemma2"},
    )
    is_read_as_in_transformers(tmp_path)


@pytest.mark.parametrize(
    "files",
    [
        {
            "tokenizer_config__json": {
                "added_tokens_decoder": decoder(300, *CHAT),
                "eos_token": "<|im_end|>",
            }
        },
        {
            "tokenizer_config__json": {
                "added_tokens_decoder": decoder(
                    300, "<sep>", lstrip=True, special=False, normalized=True
                )
            }
        },
        {
            "added_tokens__json": {"<|im_end|>": 301, "<sep>": 300},
            "special_tokens_map__json": {"sep_token": "<sep>"},
        },
        {
            "special_tokens_map__json": {
                "pad_token": {"content": "[PAD]", "lstrip": True},
                "additional_special_tokens": CHAT,
            }
        },
        {
            "tokenizer_config__json": {
                "extra_special_tokens": {"turn_token": "<|im_end|>"},
                "image_token": "<sep>",
            }
        },
    ],
)
def test_a_whole_file_with_tokens_beside_it(files: dict[str, Any], tmp_path: Path) -> None:
    files = {"tokenizer_config__json": {}, **files}
    files["tokenizer_config__json"] |= {"tokenizer_class": "PreTrainedTokenizerFast"}
    content = BPETokenizer.learn("to be or not to be, that is the question, user", 300).to_json()
    written(tmp_path, tokenizer__json=content, config__json={"model_type": "llama"}, **files)
    is_read_as_in_transformers(tmp_path)


WORDS = [
    *"abcdefghijklmnopqrstuvwxyz",
    *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"),
    "be",
    "to",
    "not",
    ",",
]


@pytest.mark.parametrize(
    ("special", "files"),
    [
        (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], {}),
        (
            ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
            {
                "added_tokens__json": {"grafts": 61, "[E1]": 62},
                "special_tokens_map__json": {"additional_special_tokens": ["[E1]"]},
            },
        ),
        (
            ["<pad>", "<unk>", "<s>", "</s>", "<mask>"],
            {
                "special_tokens_map__json": dict(
                    zip(
                        ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"),
                        ("<pad>", "<unk>", "<s>", "</s>", "<mask>"),
                        strict=True,
                    )
                )
            },
        ),
    ],
)
def test_a_vocabulary_of_words(special: list[str], files: dict[str, Any], tmp_path: Path) -> None:
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    words = "\n".join([*special, *WORDS]) + "\n"
    written(
        tmp_path,
        vocab__txt=words,
        tokenizer_config__json=settings,
        config__json={"model_type": "bert"},
        **files,
    )
    is_read_as_in_transformers(tmp_path)


def test_a_class_that_cuts_in_its_own_way_is_refused_by_its_name(tmp_path: Path) -> None:
    vocabulary, merges = merged([], [])
    written(
        tmp_path,
        vocab__json=vocabulary,
        merges__txt=merges,
        tokenizer_config__json={"tokenizer_class": "CLIPTokenizer"},
    )
    with pytest.raises(ImportRefusedError, match="the class is 'CLIPTokenizer'; .*GPT2Tokenizer"):
        FolderTokens(tmp_path).tokenizer()


def test_an_added_token_that_the_model_has_no_row_for_is_read_as_text() -> None:
    plain = BPETokenizer.learn("to be or not to be", 260)
    added = plain.with_tokens([{"content": "[PAD]", **ADDED}])
    assert added.encode("[PAD]").ids == [260]
    found, notes = fit_tokenizer(added, 260)
    assert found.encode("[PAD]").ids == plain.encode("[PAD]").ids
    assert "[PAD]" in notes[0]
    with pytest.raises(
        ImportRefusedError, match="the tokenizer has 261 tokens, the model 259 rows"
    ):
        fit_tokenizer(added, 259)
    with pytest.raises(
        ImportRefusedError, match="the tokenizer has 261 tokens, the model 260 rows"
    ):
        fit_tokenizer(added.with_frame([260]), 260)  # it stands before every text


@pytest.mark.parametrize(
    "settings",
    [
        {"added_tokens_decoder": [1]},
        {"added_tokens_decoder": {"a": {"content": "x"}}},
        {"added_tokens_decoder": {"300": {"special": True}}},
        {"eos_token": {"lstrip": True}},
        {"additional_special_tokens": [[]]},
    ],
)
def test_damaged_settings_are_named(settings: dict[str, Any], tmp_path: Path) -> None:
    content = BPETokenizer.learn("to be or not to be", 260).to_json()
    written(tmp_path, tokenizer__json=content, tokenizer_config__json=settings)
    with pytest.raises(ImportRefusedError, match=r"tokenizer_config\.json is damaged"):
        FolderTokens(tmp_path).tokenizer()


def with_hole(ids: dict[str, int], at: int) -> dict[str, int]:
    """The ids with none at this place: those from there on are one larger."""
    return {token: place + (place >= at) for token, place in ids.items()}


def is_unused(tokenizer: Any, places: list[int]) -> None:
    """Ids that no token has stand for no text, are never written, and are shown as what they are."""
    assert [*tokenizer.unused_ids] == places
    for place in places:
        assert tokenizer.label(place) == tokenizer.labels()[place] == f"⟨unused {place}⟩"
        assert tokenizer.piece(place) == tokenizer.decode([place]) == ""
        assert tokenizer.is_special(place)
    assert tokenizer.id_of("") is None


@pytest.mark.parametrize("at", [3, 289, 290])
def test_ids_that_no_token_has_are_unused(at: int, tmp_path: Path) -> None:
    vocabulary, merges = merged([], ["<|endoftext|>"])
    assert max(vocabulary.values()) == 290
    ids = with_hole(vocabulary, at)
    settings = {"tokenizer_class": "GPT2Tokenizer"}
    written(tmp_path, vocab__json=ids, merges__txt=merges, tokenizer_config__json=settings)
    is_read_as_in_transformers(tmp_path)
    read = FolderTokens(tmp_path).tokenizer()
    is_unused(read, [at])
    # and so where one file says it
    assert isinstance(read, BPETokenizer)
    whole = tmp_path / "whole"
    whole.mkdir()
    written(whole, tokenizer__json=read.to_json(), tokenizer_config__json=settings)
    is_read_as_in_transformers(whole)
    is_unused(FolderTokens(whole).tokenizer(), [at])


def test_of_a_token_that_stands_twice_the_last_counts(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    twice = [*words[:7], words[-1], *words[7:]]
    written(
        tmp_path,
        vocab__txt="\n".join(twice) + "\n",
        tokenizer_config__json={"tokenizer_class": "BertTokenizer", "do_lower_case": True},
        config__json={"model_type": "bert"},
    )
    is_read_as_in_transformers(tmp_path)
    is_unused(FolderTokens(tmp_path).tokenizer(), [7])
    # a table of JSON with a name twice
    vocabulary, merges = merged([], ["<|endoftext|>"])
    text = json.dumps(vocabulary)
    last = max(vocabulary.values())
    again = tmp_path / "again"
    again.mkdir()
    written(
        again,
        vocab__json=f'{text[:-1]}, "e": {last + 1}}}',
        merges__txt=merges,
        tokenizer_config__json={"tokenizer_class": "GPT2Tokenizer"},
    )
    is_read_as_in_transformers(again)
    is_unused(FolderTokens(again).tokenizer(), [vocabulary["e"]])


def test_a_piece_of_a_unigram_that_stands_twice_has_its_last_id(tmp_path: Path) -> None:
    pieces = [["<unk>", 0.0], ["a", -1.0], ["b", -1.5], ["a", -2.0], ["ab", -9.0]]
    model = {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": False}
    read = BPETokenizer.from_json(json.dumps({"version": "1.0", "model": model}))
    from tokenizers import Tokenizer as Backend

    judge = Backend.from_str(json.dumps({"version": "1.0", "model": model}))
    assert read.encode("aba").ids == judge.encode("aba").ids
    assert [read.piece(place) for place in range(5)] == ["<unk>", "a", "b", "a", "ab"]
    assert (read.id_of("a"), [*read.unused_ids]) == (3, [])
