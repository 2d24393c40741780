"""The settings beside a tokenizer's vocabulary, as `transformers` reads them: its class, and the
tokens that are added to it.

Each token is a table as in the `added_tokens` of a `tokenizer.json`, without its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gptviz.text.tokenizers.byte_pairs import CUTS, GPT2, Cut

Token = dict[str, Any]


@dataclass(frozen=True)
class TokenizerClass:
    """A class of tokenizers of `transformers`."""

    #: its special tokens by their names, where the settings name no others
    special: Mapping[str, str] = field(default_factory=dict)
    #: how a text is cut before bytes are merged; None for a class that has no `vocab.json` and
    #: `merges.txt`
    cut: Cut | None = None
    #: the names of the two tokens that stand around every text; empty if the settings say which do
    around: tuple[str, ...] = ()


NAMES: Final = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)
_GPT2: Final = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")
_LLAMA: Final = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
_BERT: Final = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
_AROUND: Final = ("cls_token", "sep_token")
CLASSES: Final[dict[str, TokenizerClass]] = {
    **dict.fromkeys(("GPT2Tokenizer", "CodeGenTokenizer"), TokenizerClass(_GPT2, GPT2)),
    "GPTNeoXTokenizer": TokenizerClass(_GPT2 | {"pad_token": "<|padding|>"}, Cut(composed=True)),
    "Qwen2Tokenizer": TokenizerClass(
        dict.fromkeys(("eos_token", "unk_token", "pad_token"), "<|endoftext|>"), CUTS["qwen2"]
    ),
    **dict.fromkeys(
        ("RobertaTokenizer", "BartTokenizer"),
        TokenizerClass(
            _LLAMA
            | {
                "sep_token": "</s>",
                "cls_token": "<s>",
                "pad_token": "<pad>",
                "mask_token": "<mask>",
            },
            GPT2,
            _AROUND,
        ),
    ),
    "LlamaTokenizer": TokenizerClass(_LLAMA),
    "GemmaTokenizer": TokenizerClass(
        {
            "bos_token": "<bos>",
            "eos_token": "<eos>",
            "unk_token": "<unk>",
            "pad_token": "<pad>",
            "mask_token": "<mask>",
        }
    ),
    **dict.fromkeys(
        ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"),
        TokenizerClass(_BERT, around=_AROUND),
    ),
}
"""The classes that gptviz knows, by their names without "Fast"."""
# The classes that say nothing of how a text is read.
_ANY: Final = ("", "PreTrainedTokenizer", "TokenizersBackend", "PythonBackend")
_OF_MODELS: Final = {
    **dict.fromkeys(("gpt2", "gpt_neo", "gptj", "opt", "phi"), "GPT2Tokenizer"),
    **dict.fromkeys(("gpt_neox", "olmoe"), "GPTNeoXTokenizer"),
    **dict.fromkeys(("qwen2", "qwen3", "qwen2_moe", "qwen3_moe"), "Qwen2Tokenizer"),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text"), "GemmaTokenizer"),
    **dict.fromkeys(("bert", "distilbert"), "BertTokenizer"),
}
# Models whose published settings name a wrong class.
_MISNAMED: Final = ("qwen2",)


def class_name(settings: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The name of the class, without "Fast"; empty if neither tokenizer_config.json nor config.json
    lets it be known.
    """
    named = settings.get("tokenizer_class") or config.get("tokenizer_class")
    model = config.get("model_type")
    usual = _OF_MODELS.get(model, "") if isinstance(model, str) else ""
    name = named.removesuffix("Fast") if isinstance(named, str) else ""
    if name in _ANY or model in _MISNAMED:
        return usual
    return name


def special_tokens(settings: Mapping[str, Any], usual: Mapping[str, str]) -> dict[str, Token]:
    """The special tokens by their names, such as `bos_token`; the settings may also say that there
    is none of a name.
    """
    extra = settings.get("extra_special_tokens")
    named = {
        **dict.fromkeys(NAMES),
        **usual,
        **settings,
        **(extra if isinstance(extra, dict) else {}),
    }
    return {
        name: _token(token)
        for name, token in named.items()
        if name.endswith("_token") and isinstance(token, str | dict)
    }


def added_tokens(
    settings: Mapping[str, Any], named: Mapping[str, Token], ids: Mapping[str, Any]
) -> tuple[list[Token], list[Token]]:
    """The tokens of `added_tokens_decoder` in the settings of tokenizer_config.json, and those that
    a vocabulary gets only if it does not have them as added tokens: the special tokens by their
    names, and those of added_tokens.json, in whose `ids` only the order is of use: they go on
    behind the vocabulary.
    """
    lists = [settings.get(name) for name in ("extra_special_tokens", "additional_special_tokens")]
    special = [
        *named.values(),
        *(_token(one) for one in next((one for one in lists if one and isinstance(one, list)), [])),
    ]
    texts = {token["content"] for token in special}
    decoder = settings.get("added_tokens_decoder") or {}
    if not isinstance(decoder, dict) or not all(type(place) is int for place in ids.values()):
        raise ValueError("its added tokens are no table of tokens and ids")
    tokens = [_token(decoder[place], special=False) for place in sorted(decoder, key=int)]
    for token in tokens:
        token["special"] |= token["content"] in texts
    added = [_token(text, special=text in texts) for text in sorted(ids, key=ids.__getitem__)]
    return tokens, [*added, *special]


def _token(one: Any, *, special: bool = True) -> Token:
    """A token from its text, or from a table that describes it; a ValueError if it has no text."""
    said = one if isinstance(one, dict) else {"content": one}
    if not isinstance(said.get("content"), str) or not said["content"]:
        raise ValueError("one of its added tokens has no text")
    special = special or said.get("special") is True
    flags = {name: said.get(name) is True for name in ("single_word", "lstrip", "rstrip")}
    return {
        "content": said["content"],
        **flags,
        "normalized": said.get("normalized", not special) is True,
        "special": special,
    }
