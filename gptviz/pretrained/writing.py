"""Writing a model of ours in the format of another program: a folder of `transformers`, or
nanoGPT's two files.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from gptviz.model import Config
from gptviz.model.kinds import Kind
from gptviz.text import CharTokenizer, Tokenizer
from gptviz.text.chat import ChatTemplate
from gptviz.text.tokenizers.exported import tokenizers_json
from gptviz.text.tokenizers.marian import MarianTokenizer
from gptviz.text.tokenizers.padded import PaddedTokenizer

from .families.expressing import express_model
from .generation_config import generation_config, one_or_all
from .sources import nanogpt
from .sources.folder_tokens import LANGUAGES

# The names of special pieces in the settings of Marian's tokenizer.
MARIANS_NAMES = {"unknown": "unk", "end": "eos", "padding": "pad"}
TASKS: dict[Kind, str] = {
    "decoder": "CausalLM",
    "encoder-decoder": "Seq2SeqLM",
    "classifier": "SequenceClassification",
}


@dataclass(frozen=True)
class Written:
    """A model to be written."""

    name: str  #: its name
    config: Config  #: our config of it
    tokenizer: Tokenizer  #: its tokenizer
    #: its parameters by our names, in the types in which they are to be written
    weights: Mapping[str, Tensor]
    family: str | None  #: the family it was imported as, by its title; None for others
    card: str  #: a description of it, in Markdown
    licence: str | None = None  #: its licence, if it is known
    chat: ChatTemplate | None = None  #: how a chat is written for it, if that is known
    ends: tuple[int, ...] = ()  #: the tokens that end a text
    #: how many tokens each sequence of its task has; None without a task, or with an end token
    whole: int | None = None
    labels: tuple[str, ...] = ()  #: the names of the labels that a classifier tells apart
    notes: tuple[str, ...] = ()  #: other facts that a reader should know, in sentences
    #: the languages that a translator reads and writes, if they are known
    languages: tuple[str, str] | None = None


def write_transformers(model: Written, folder: Path) -> None:
    """Write a model into an empty folder, for `transformers`; a NotExpressibleError if it has no
    such family, or an OSError.
    """
    written = express_model(model.config, model.family)
    tensors = {name: tensor.contiguous() for name, tensor in written.tensors(model.weights)}
    is_bfloat = model.weights["embed.weight"].dtype is torch.bfloat16
    fields = {
        "model_type": written.family.model_type,
        "architectures": [written.family.architecture],
        # A family's usual ids for begin, end and padding are other tokens here.
        **dict.fromkeys(("bos_token_id", "pad_token_id")),
        "eos_token_id": one_or_all(model.ends),
        **written.fields,
        **(
            {"id2label": {str(place): name for place, name in enumerate(model.labels)}}
            if model.labels
            else {}
        ),
        **(
            {"label2id": {name: place for place, name in enumerate(model.labels)}}
            if model.labels
            else {}
        ),
        # Weights may be stored in float16, but the model computes in float32.
        "torch_dtype": "bfloat16" if is_bfloat else "float32",
    }
    generated = generation_config(model.config, model.tokenizer, model.ends)
    if generated is not None:  # both files have the same values
        fields |= {name: generated[name] for name in fields.keys() & generated.keys()}
        _write_json(folder / "generation_config.json", generated)
    _write_json(folder / "config.json", fields)
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    has_tokenizer = _write_tokenizer(model, folder)
    (folder / "README.md").write_text(_readme(model, has_tokenizer=has_tokenizer), encoding="utf-8")


def write_nanogpt(model: Written, folder: Path) -> None:
    """Write a model into an empty folder, for nanoGPT's `sample.py`: ckpt.pt, and meta.pkl for
    characters. A NotExpressibleError if nanoGPT has no such model; an OSError if the disk is full
    or not writable.
    """
    written = nanogpt.as_nanogpt(model.config)
    about = {"iter_num": 0, "best_val_loss": None, "config": {"dataset": model.name}}
    torch.save(nanogpt.checkpoint(written, model.weights, about), folder / "ckpt.pt")
    if isinstance(model.tokenizer, CharTokenizer):
        characters = list(model.tokenizer.characters)
        places = {character: place for place, character in enumerate(characters)}
        meta = {"vocab_size": len(characters), "itos": dict(enumerate(characters)), "stoi": places}
        (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _write_tokenizer(model: Written, folder: Path) -> bool:
    """Write the files of the tokenizer; false if `transformers` has none that gives the same
    ids.
    """
    if isinstance(model.tokenizer, PaddedTokenizer):
        tokenizer = model.tokenizer.inner
    else:
        tokenizer = model.tokenizer
    if isinstance(tokenizer, MarianTokenizer):
        for name, content in tokenizer.files().items():
            (folder / name).write_bytes(content)
        special = {
            f"{MARIANS_NAMES[use]}_token": piece
            for use, piece in tokenizer.special_pieces().items()
        }
        settings = {
            "tokenizer_class": "MarianTokenizer",
            **special,
            "model_max_length": model.config.context_length,
        }
        _write_json(
            folder / "tokenizer_config.json",
            settings | dict(zip(LANGUAGES, model.languages or (), strict=False)),
        )
        return True
    whole = tokenizers_json(tokenizer)
    if whole is None:
        return False
    (folder / "tokenizer.json").write_text(whole, encoding="utf-8")
    padding = model.config.padding
    settings = {  # what the tokenizer's own file lacks
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": model.config.context_length,
        "model_input_names": ["input_ids", "attention_mask"],
        **(
            {}
            if padding is None or not model.tokenizer.piece(padding)
            else {"pad_token": model.tokenizer.piece(padding)}
        ),
        **({"chat_template": model.chat.template, **model.chat.tokens} if model.chat else {}),
    }
    _write_json(folder / "tokenizer_config.json", settings)
    return True


def _readme(model: Written, *, has_tokenizer: bool) -> str:
    """A model card; the hub reads the part between the lines of dashes."""
    head = ["---", "library_name: transformers", "tags: [gptviz]"]
    if model.licence:
        head.insert(1, f"license: {json.dumps(model.licence)}")
    task = TASKS[model.config.kind]
    use = [
        "```python",
        f"from transformers import AutoModelFor{task}, AutoTokenizer",
        "",
        f'model = AutoModelFor{task}.from_pretrained(".")  # this folder',
        *(['tokenizer = AutoTokenizer.from_pretrained(".")'] if has_tokenizer else []),
        "```",
    ]
    if model.config.kind == "encoder-decoder":
        use.append(
            "\n`model.generate` then writes what gptviz writes: the likeliest token each time, "
            "until the end. With `num_beams=4, "
            "length_penalty=0.0` it compares answers as gptviz does; it may keep more of them, "
            "and find a better one."
        )
    if isinstance(model.tokenizer, MarianTokenizer):
        use.append(
            "\nWhere `sacremoses` is installed, its tokenizer changes some punctuation first; "
            "gptviz does not."
        )
    if not has_tokenizer:
        use.append(
            "\nIts tokenizer is of a kind that `transformers` does not have: give it the numbers "
            "of tokens."
        )
    return "\n".join(
        [
            *head,
            "---",
            "",
            f"# {model.name}",
            "",
            " ".join([model.card, *model.notes]),
            "",
            *use,
            "",
        ]
    )
