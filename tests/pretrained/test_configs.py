"""Configs with any value in any field: each is opened, or refused in a line that names the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gptviz.model import parameter_count
from gptviz.pretrained.families import FAMILIES, ImportRefusedError
from gptviz.pretrained.sources.folder import describe_config, outline_of
from gptviz.pretrained.sources.gguf import GGUF
from tests.pretrained.test_families import CONTEXT, MODELS, NEAR, theirs

MISSING = object()
VALUES = [
    MISSING,
    None,
    0,
    -1,
    1,
    0.5,
    1e308,
    float("nan"),
    "x",
    True,
    [],
    {},
    ["x"],
    10**20,
    10**400,
]
# Fields that configs had before version 5, and that some families read besides their own.
OLDER = {
    "rope_theta": 1e4,
    "rope_scaling": {"type": "linear", "factor": 2.0},
    "partial_rotary_factor": 0.5,
    "rotary_pct": 0.5,
    "head_dim": 8,
    "num_key_value_heads": 2,
    "num_labels": 3,
    "attention_layers": ["global", "local", "global", "local"],
}


def changed(fields: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """The name of a field, its new value, and the fields with it: of tables the inner fields too,
    of lists the first entry.
    """
    for name, whole in fields.items():
        for value in VALUES:
            yield name, value, with_value(fields, name, value)
            if isinstance(whole, dict):
                yield from (
                    (f"{name}.{key}", value, {**fields, name: with_value(whole, key, value)})
                    for key in whole
                )
            elif isinstance(whole, list) and whole:
                yield (
                    f"{name}[0]",
                    value,
                    {**fields, name: [None if value is MISSING else value, *whole[1:]]},
                )


def with_value(fields: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    return {key: one for key, one in fields.items() if key != name} | (
        {} if value is MISSING else {name: value}
    )


def refusal(fields: dict[str, Any]) -> str | None:
    """Why a config is refused, None if it is opened."""
    try:
        family, given = describe_config(fields)
        parameter_count(outline_of(fields).config)
        family.labels(given)
    except ImportRefusedError as error:
        return str(error)
    return None


def known(fields: dict[str, Any]) -> dict[str, Any]:
    """The config without the fields that this family refuses: nothing reads them, or half of its
    heads is an odd number.
    """
    while (words := refusal(fields)) is not None:
        turn = ["partial_rotary_factor"] if "rotary positions turn" in words else []
        gone = [name for name in (*turn, *re.findall(r"\w+", words)) if name in fields]
        assert gone, words
        fields = {name: value for name, value in fields.items() if name != gone[0]}
    return fields


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_config_with_any_value_in_a_field_is_opened_or_refused_in_a_line(kind: str) -> None:
    now = json.loads(theirs(kind, MODELS[kind][-1]).config.to_json_string(use_diff=False))
    assert refusal(now) is None
    # Other fields of Marian must equal that of its padding.
    own = {theirs for theirs, _ in FAMILIES[kind].table.values()} - {"pad_token_id"}
    older = known(OLDER | {name: value for name, value in now.items() if name != "rope_parameters"})
    for sound in (now, older):
        for name, value, fields in changed(sound):
            words = refusal(fields)
            if words is not None:
                assert words.startswith("config.json: "), words
                assert "\n" not in words
                assert len(words) < 400
                # another field may not go with these
                if name in own and value not in (MISSING, 0, 1):
                    assert name in words, (name, value, words)


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        (
            "llama",
            {"num_attention_heads": 0},
            "num_attention_heads is 0; a Llama model needs a whole number from 1 to 10,000",
        ),
        ("mixtral", {"num_attention_heads": 0}, "num_attention_heads is 0"),
        ("gptj", {"n_embd": 2, "n_head": 3}, "n_embd 2 does not divide into n_head 3"),
        (
            "llama",
            {"num_key_value_heads": 3},
            "num_key_value_heads is 3; it must divide num_attention_heads",
        ),
        ("gemma2", {"query_pre_attn_scalar": 0}, "query_pre_attn_scalar is 0"),
        ("granitemoe", {"logits_scaling": 0}, "logits_scaling is 0"),
        (
            "gemma3_text",
            {"sliding_window_pattern": 0, "layer_types": None},
            "sliding_window_pattern is 0",
        ),
        ("llama", {"rope_parameters": {"rope_type": "linear"}}, "factor is None"),
        (
            "gemma3_text",
            {"rope_parameters": {"rope_theta": 1e6}},
            "rope_parameters has no table sliding_attention",
        ),
        ("llama", {"rope_parameters": [1]}, r"rope_parameters is \[1\]; it must be a table"),
        (
            "gpt_neo",
            {"attention_layers": None, "attention_types": [[["local"], 10**12]]},
            "attention_types is",
        ),
        (
            "qwen2",
            NEAR | {"use_sliding_window": True, "layer_types": ["sliding_attention"] * 10**6},
            "a list of at most 256",
        ),
    ],
)
def test_a_number_that_no_model_can_have_is_named_with_its_field(
    kind: str, fields: dict[str, Any], words: str
) -> None:
    sound = {"model_type": kind, "vocab_size": 31, **MODELS[kind][0]}
    with pytest.raises(ImportRefusedError, match=words):
        outline_of(sound | fields)


def test_scaling_of_llama_3_without_the_first_context_takes_that_of_the_model_as_transformers_does() -> (
    None
):
    case = next(
        case
        for case in MODELS["llama"]
        if case.get("rope_parameters", {}).get("rope_type") == "llama3"
    )
    rotary = {
        name: value
        for name, value in case["rope_parameters"].items()
        if name != "original_max_position_embeddings"
    }
    model = theirs("llama", case | {"rope_parameters": rotary})
    judge = model.config.rope_parameters["original_max_position_embeddings"]
    fields = {"model_type": "llama", "vocab_size": 31, **case, "rope_parameters": rotary}
    assert outline_of(fields).config.rotary_context == judge == CONTEXT


@pytest.mark.parametrize("kind", ["llama", "mixtral", "gemma3_text", "gpt2", "granitemoe"])
def test_a_header_of_gguf_with_any_value_is_opened_or_refused_in_a_line(
    kind: str, tmp_path: Path
) -> None:
    gguf_files = pytest.importorskip("tests.pretrained.gguf_files")
    path = tmp_path / "model.gguf"
    gguf_files.saved(theirs(kind, MODELS[kind][0]), path)
    source = GGUF(path)
    sound = {
        name: source._setting(name)
        for name in source._reader.fields
        if not name.startswith("GGUF.")
    }
    family = sound["general.architecture"]
    endings = (
        "rope.scaling.type",
        "rope.scaling.factor",
        "rope.freq_base",
        "rope.dimension_count",
        "attention.scale",
    )
    more = [
        *(f"{family}.{ending}" for ending in endings),
        *(f"tokenizer.{name}" for name in ("ggml.pre", "ggml.merges")),
    ]
    for name in (*sound, *more, "tokenizer.chat_template"):
        for value in (*VALUES[1:-2], 1e-308, [1], 2**63, "(a+)+b"):
            changed = GGUF(path)
            changed.__dict__["_setting"] = {**sound, name: value}.get
            try:
                changed.describe_model()
            except ImportRefusedError as error:
                assert str(error).startswith("model.gguf: "), error
                assert "\n" not in str(error)
