"""What a model's files say of tokens: the ids of `transformers` and `sentencepiece`, what is around
a text, chat templates.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as description

from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import source_at
from gptviz.pretrained.sources.folder_tokens import FolderTokens
from gptviz.pretrained.sources.gguf_tokenizer import HeaderTokens
from gptviz.text import BPETokenizer
from gptviz.text.tokenizers.sentencepiece import from_sentencepiece
from tests.pretrained.gguf_files import saved
from tests.pretrained.test_families import GROUPED, theirs
from tests.text.sentencepieces import GEMMA, LLAMA, trained

TEXTS = ["Hello, world!", "  two  spaces\n\nlines 123 日本 👍", "def f(x):\n\treturn 2"]
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]


def written(folder: Path, **files: Any) -> Path:
    """A folder with these files: bytes, text, or what becomes JSON."""
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        data = (
            content
            if isinstance(content, bytes)
            else (content if isinstance(content, str) else json.dumps(content)).encode()
        )
        path.write_bytes(data)
    return folder


# Folders


def learned(before: list[str], after: list[str]) -> str:
    """A tokenizer.json with four special tokens, of which these stand before and after a text."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import processors

    backend = Backend.from_str(
        BPETokenizer.learn("to be or not to be, that is the question", 300).to_json()
    )
    backend.add_special_tokens(SPECIAL)
    if before or after:
        named = [(text, backend.token_to_id(text)) for text in (*before, *after)]
        backend.post_processor = processors.TemplateProcessing(
            single=[*before, "$A", *after], special_tokens=named
        )
    return backend.to_str()


@pytest.mark.parametrize(
    ("before", "after"), [([], []), (["<s>"], []), (["<s>"], ["</s>"]), ([], ["</s>"])]
)
def test_the_tokens_around_a_text_are_those_of_transformers(
    before: list[str], after: list[str], tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    written(
        tmp_path,
        tokenizer__json=learned(before, after),
        tokenizer_config__json={"tokenizer_class": "PreTrainedTokenizerFast"},
    )
    judge = AutoTokenizer.from_pretrained(tmp_path)
    mine = FolderTokens(tmp_path).tokenizer()
    for text in [*TEXTS, "", "<|im_start|>user\nto be<|im_end|>"]:
        wanted = judge(text).input_ids
        assert mine.encode(text).ids == wanted
        assert mine.encode_ids(text).tolist() == wanted
    chat = "<s><|im_start|>user\nto be"
    # as of a chat template, not twice
    assert mine.encode(chat).ids[: len(before) + 1].count(mine.id_of("<s>")) == 1


@pytest.mark.parametrize(
    ("settings", "kind", "name"),
    [(LLAMA, "llama", "LlamaTokenizer"), (GEMMA, "gemma3_text", "GemmaTokenizer")],
)
def test_the_ids_are_those_of_the_class_that_the_settings_name(
    settings: dict[str, Any], kind: str, name: str, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    content = from_sentencepiece(trained(**settings), start=True).to_json()
    named = {
        "bos_token": settings.get("bos_piece", "<s>"),
        "eos_token": settings.get("eos_piece", "</s>"),
    }
    fields = {"tokenizer_class": name, "add_bos_token": True, **named}
    written(
        tmp_path,
        tokenizer__json=content,
        tokenizer_config__json=fields,
        config__json={"model_type": kind},
    )
    judge = AutoTokenizer.from_pretrained(tmp_path)
    mine = FolderTokens(tmp_path).tokenizer()
    assert type(judge).__name__ == name
    assert mine is not None
    # A space at the beginning is lost in their class for Llama, and kept by SentencePiece, by the
    # file and here.
    for text in (text for text in TEXTS if settings is GEMMA or not text.startswith(" ")):
        assert mine.encode(text).ids == judge(text).input_ids, text


@pytest.mark.parametrize("model", ["bert", "roberta"])
def test_the_tokens_around_a_text_of_an_encoder_are_known(model: str, tmp_path: Path) -> None:
    from tokenizers import Tokenizer as Backend
    from tokenizers import processors

    backend = Backend.from_str(learned([], []))
    start = ("<s>", backend.token_to_id("<s>"))
    end = ("</s>", backend.token_to_id("</s>"))
    kinds = {
        "bert": processors.BertProcessing(end, start),
        "roberta": processors.RobertaProcessing(end, start),
    }
    backend.post_processor = kinds[model]
    assert BPETokenizer(backend).encode("to be").ids == backend.encode("to be").ids


@pytest.mark.parametrize("starts", [True, False, None])
def test_a_folder_with_tokenizer_model_alone_has_the_ids_of_sentencepiece(
    starts: bool | None, tmp_path: Path
) -> None:
    content = trained(**LLAMA)
    settings = {"bos_token": "<s>", "eos_token": {"content": "</s>"}} | (
        {} if starts is None else {"add_bos_token": starts}
    )
    written(tmp_path, tokenizer__model=content, tokenizer_config__json=settings)
    tokens = FolderTokens(tmp_path)
    judge = sentencepiece.SentencePieceProcessor(model_proto=content)
    mine = tokens.tokenizer()
    assert [mine.encode(text).ids for text in TEXTS] == [
        [1] * bool(starts) + judge.encode(text) for text in TEXTS
    ]
    assert tokens.end_tokens(None, mine) == (2,)


def test_whether_a_start_token_stands_before_a_text_of_sentencepiece_is_as_in_transformers(
    tmp_path: Path,
) -> None:
    from transformers import AutoTokenizer

    for starts in (True, False):
        settings = {"bos_token": "<bos>", "eos_token": "<eos>", "add_bos_token": starts}
        written(
            tmp_path,
            tokenizer__model=trained(**GEMMA),
            tokenizer_config__json=settings,
            config__json={"model_type": "gemma"},
        )
        judge = AutoTokenizer.from_pretrained(tmp_path)
        mine = FolderTokens(tmp_path).tokenizer()
        assert mine is not None
        for text in TEXTS:
            assert mine.encode(text).ids == judge(text).input_ids, text


def test_the_ends_of_a_text_are_those_of_generation_config_and_of_the_tokenizer(
    tmp_path: Path,
) -> None:
    written(
        tmp_path,
        tokenizer__json=learned([], []),
        tokenizer_config__json={"eos_token": "<|im_end|>"},
    )
    tokens = FolderTokens(tmp_path)
    mine = tokens.tokenizer()
    end = mine.id_of("</s>")
    turn = mine.id_of("<|im_end|>")
    assert tokens.end_tokens(end, mine) == (end, turn)
    assert tokens.end_tokens([end, turn, 10**9, True, "x"], mine) == (end, turn)
    written(tmp_path, generation_config__json={"eos_token_id": [turn]})
    assert tokens.end_tokens(end, mine) == (turn,)


def test_a_chat_template_is_found_in_each_of_its_places(tmp_path: Path) -> None:
    assert FolderTokens(tmp_path).chat() is None
    several = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]
    for settings, wanted in (
        ({"chat_template": "one"}, "one"),
        ({"chat_template": several}, "plain"),
        ({"chat_template": 7}, None),
    ):
        written(tmp_path, tokenizer_config__json=settings | {"bos_token": "<s>"})
        chat = FolderTokens(tmp_path).chat()
        assert (chat and chat.template) == wanted
    written(
        tmp_path,
        chat_template__jinja="in a file",
        tokenizer_config__json={"bos_token": {"content": "<s>"}, "pad_token": None},
    )
    chat = FolderTokens(tmp_path).chat()
    assert (chat.template, dict(chat.tokens)) == ("in a file", {"bos_token": "<s>"})


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"tokenizer__model": b"\xff" * 50},
            r"tokenizer\.model is damaged or cut short .*no model of SentencePiece",
        ),
        ({"tokenizer_config__json": "[1]"}, r"tokenizer_config\.json is damaged"),
        ({"tokenizer_config__json": "{"}, r"tokenizer_config\.json is damaged"),
        ({"chat_template__jinja": b"\xff"}, r"chat_template\.jinja is damaged"),
        (
            {"chat_template__jinja": "x" * 1_000_001},
            r"chat_template\.jinja is damaged .*1,000,001 characters",
        ),
    ],
)
def test_a_damaged_file_is_named(files: dict[str, Any], words: str, tmp_path: Path) -> None:
    written(tmp_path, **files)
    tokens = FolderTokens(tmp_path)
    with pytest.raises(ImportRefusedError, match=words) as refused:
        (tokens.tokenizer(), tokens.chat(), tokens.end_tokens(None, None))
    assert "\n" not in str(refused.value)


# GGUF


def header_of(content: bytes, **more: Any) -> dict[str, Any]:
    """The settings that llama.cpp's converter makes of a tokenizer.model."""
    model: Any = description.ModelProto.FromString(content)  # type: ignore[attr-defined]
    user_defined = model.pieces[0].Type.USER_DEFINED
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [
            piece.piece.replace("▁", " ") if piece.type == user_defined else piece.piece
            for piece in model.pieces
        ],
        "tokenizer.ggml.scores": [piece.score for piece in model.pieces],
        "tokenizer.ggml.token_type": [int(piece.type) for piece in model.pieces],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        **{f"tokenizer.{name.replace('__', '.')}": value for name, value in more.items()},
    }


@pytest.mark.parametrize("settings", [LLAMA, GEMMA], ids=["llama", "gemma"])
def test_a_header_of_sentencepiece_has_its_ids(settings: dict[str, Any]) -> None:
    content = trained(**settings)
    judge = sentencepiece.SentencePieceProcessor(model_proto=content)
    header = header_of(content, ggml__add_space_prefix=settings is LLAMA)
    mine = HeaderTokens(header.get).tokenizer()
    for text in TEXTS:
        assert mine.encode(text).ids == [1, *judge.encode(text)], text
    start = "<s>" if settings is LLAMA else "<bos>"
    assert mine.label(mine.encode("a").ids[0]) == start


@pytest.mark.parametrize(
    ("start", "end", "wanted"),
    [(None, None, (1, 0)), (False, None, (0, 0)), (True, True, (1, 1)), (False, True, (0, 1))],
)
def test_the_tokens_around_a_text_are_those_of_the_header(
    start: Any, end: Any, wanted: tuple[int, int]
) -> None:
    header = header_of(trained(**LLAMA), ggml__add_bos_token=start, ggml__add_eos_token=end)
    mine = HeaderTokens(header.get).tokenizer()
    assert (mine.before, mine.after) == ((1,) * wanted[0], (2,) * wanted[1])


def byte_level(pre: str | None, **more: Any) -> dict[str, Any]:
    model = json.loads(BPETokenizer.learn("to be or not to be 12345 12345", 262).to_json())["model"]
    tokens = [*sorted(model["vocab"], key=model["vocab"].__getitem__), "<|im_start|>", "<think>"]
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": [" ".join(merge) for merge in model["merges"]],
        "tokenizer.ggml.token_type": [1] * (len(tokens) - 2) + [3, 4],
        "tokenizer.ggml.bos_token_id": len(tokens) - 2,
        "tokenizer.ggml.pre": pre,
        **{f"tokenizer.{name.replace('__', '.')}": value for name, value in more.items()},
    }


def test_special_tokens_of_a_header_are_single_ids_shown_by_their_names() -> None:
    mine = HeaderTokens(byte_level("smollm").get).tokenizer()
    ids = mine.encode("<|im_start|>to<think>").ids
    assert [mine.label(one) for one in (ids[0], ids[-1])] == ["<|im_start|>", "<think>"]
    assert mine.decode(ids) == "<|im_start|>to<think>"


def test_the_start_token_of_llama_3_stands_before_a_text_unless_the_header_says_otherwise() -> None:
    for pre, says, wanted in (
        ("llama-bpe", None, 1),
        ("llama-bpe", False, 0),
        ("smollm", None, 0),
        ("smollm", True, 1),
    ):
        mine = HeaderTokens(byte_level(pre, ggml__add_bos_token=says).get).tokenizer()
        assert len(mine.before) == wanted


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (byte_level("gemma4"), "as 'gemma4' says .* gptviz knows gpt-2"),
        (byte_level("default"), "as 'default' says"),
        (byte_level(None), r"tokenizer\.ggml\.pre is missing"),
        ({"tokenizer.ggml.model": "gemma4"}, "of kind 'gemma4'"),
        ({"tokenizer.ggml.model": "t5"}, "of kind 't5'"),
        ({"tokenizer.ggml.model": "llama"}, "0 pieces"),
        ({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2"}, "vocabulary is empty"),
        (
            {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": [1, 2]},
            r"tokenizer\.ggml\.tokens is not a list",
        ),
    ],
)
def test_a_tokenizer_of_another_kind_is_refused_by_its_name(
    header: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        HeaderTokens(header.get).tokenizer()
    assert "\n" not in str(refused.value)


def test_an_old_file_of_gpt_2_is_cut_as_gpt_2_cuts() -> None:
    header = byte_level(None) | {"general.architecture": "gpt2"}
    assert HeaderTokens(header.get).tokenizer() is not None


def test_a_file_opens_with_its_tokenizer_chat_template_and_ends(tmp_path: Path) -> None:
    content = trained(**LLAMA)
    more = {"chat_template": "{{ bos_token }}{{ messages[0].content }}", "ggml.eot_token_id": 5}
    settings = header_of(content) | {f"tokenizer.{name}": value for name, value in more.items()}
    saved(theirs("llama", GROUPED | {"vocab_size": 610}), tmp_path / "a.gguf", settings=settings)
    opened = source_at(tmp_path / "a.gguf").describe_model()
    judge = sentencepiece.SentencePieceProcessor(model_proto=content)
    assert opened.tokenizer.vocab_size == 610  # with ten rows that no token has
    assert [opened.tokenizer.encode(text).ids for text in TEXTS] == [
        [1, *judge.encode(text)] for text in TEXTS
    ]
    assert opened.ends == (2, 5)
    assert opened.chat.tokens == {"bos_token": "<s>", "eos_token": "</s>"}
    assert opened.chat.turn("Hi") == "<s>Hi"
