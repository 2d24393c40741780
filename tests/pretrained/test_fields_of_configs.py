"""A field of a config.json with another value: what a model then computes is what `transformers`
computes, or the field is refused.

Each family is given the fields of all others too: what `transformers` reads in one of them, it may
leave unread in another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gptviz.model import Config
from gptviz.pretrained.families import FAMILIES, ImportRefusedError
from gptviz.pretrained.opening import source_at, with_weights
from gptviz.pretrained.sources.folder import outline_of
from tests.examples import quick
from tests.pretrained.test_families import MODELS, judge, read, theirs

# What fields of the name have in place of null, and those that older files had outside of tables.
MORE = {
    "attn_logit_softcapping": 0.5,
    "final_logit_softcapping": 0.5,
    "partial_rotary_factor": 0.5,
    "rotary_pct": 0.5,
    "rope_theta": 100.0,
    "rope_scaling": {"rope_type": "linear", "factor": 4.0},
    "sliding_window": 3,
    "use_sliding_window": True,
    "clip_qkv": 0.1,
    "head_dim": 4,
    "query_pre_attn_scalar": 3,
    "pruned_heads": {"0": [1]},
    "layer_types": ["full_attention"] * 3,
}
# What is read here is padded in one way. And where a file has two matrices though its config says that
# there is one, both are read (see test_sources.py), but not by `load_state_dict`.
NOT_CHANGED = ("model_type", "vocab_size", "architectures", "pad_token_id", "tie_word_embeddings")
# Fields that change tensors as they are read, and so are not in our config.
FOLDED = ("residual_multiplier", "logits_scaling")
IN_TABLES = {
    "partial_rotary_factor": 0.37,
    "rope_theta": 100.0,
    "attention_factor": 0.37,
    "truncate": True,
}
SCALED = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0}


@cache
def sound(kind: str) -> tuple[Any, dict[str, Any]]:
    """A model of `transformers`, and its config."""
    model = theirs(kind, MODELS[kind][0])
    return model, json.loads(model.config.to_json_string(use_diff=False))


def other(value: Any) -> list[Any]:
    """Values that a field may have in place of this one."""
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1, max(1, value // 2)]
        case float():
            return [0.37 + value / 2]
        case str():
            return ["relu", "other"]
        case None:
            return [2, 0.37, True]
    return []


def changed(kind: str) -> Iterator[dict[str, Any]]:
    """Configs that differ from that of the model in a field."""
    fields = sound(kind)[1]
    every = {name: one for each in FAMILIES for name, one in sound(each)[1].items()} | MORE
    for name, value in ({**every, **fields} | MORE).items():
        # of another family, or of an older version, the value itself is another one
        for one in [*other(value), *([value] if name not in fields or name in MORE else [])]:
            if name not in NOT_CHANGED:
                yield fields | {name: one}
    tables = fields.get("rope_parameters") or {}
    for place, table in {"": tables, **tables}.items():
        for one in other_tables(table) if isinstance(table, dict) else ():
            yield fields | {"rope_parameters": tables | {place: one} if place else one}


def other_tables(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Tables of rotary positions that differ from this one in a field, scaled or not."""
    for name in table:
        yield {key: value for key, value in table.items() if key != name}
    for name, value in IN_TABLES.items():
        yield table | {name: value}
        yield table | SCALED | {name: value}


def computed_by_theirs(kind: str, fields: dict[str, Any]) -> Tensor | None:
    """The logits of the weights of `sound` with this config; None where they do not fit, or
    `transformers` fails.
    """
    model = sound(kind)[0]
    try:
        config = type(model.config).from_dict(json.loads(json.dumps(fields)))
        config._attn_implementation = "eager"
        again = judge(kind).from_config(config).eval()
        found = again.load_state_dict(model.state_dict(), strict=False)
        if found.missing_keys or found.unexpected_keys:
            return None
        with torch.inference_mode():
            logits: Tensor = again(**read(kind)[1]).logits
    except Exception:  # whatever a config makes it raise
        return None
    return logits


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", quick(FAMILIES, "llama", "gemma3_text"))
def test_a_field_changes_what_is_computed_as_in_transformers_or_is_refused(
    kind: str, tmp_path: Path
) -> None:
    model, usual = sound(kind)
    model.save_pretrained(tmp_path)
    computed: dict[tuple[Config, str], Tensor | None] = {}
    compared = 0
    wrong = []
    for fields in changed(kind):
        name = next((each for each in fields if fields[each] != usual.get(each)), None)
        if name is None:
            continue
        try:
            config = outline_of(fields).config
        except ImportRefusedError:
            continue
        (tmp_path / "config.json").write_text(json.dumps(fields))
        key = config, str([fields.get(one) for one in FOLDED])
        if key not in computed:
            try:
                source = source_at(tmp_path)
                mine = with_weights(source, source.describe_model().config)
                with torch.inference_mode():
                    computed[key] = mine(*read(kind)[0])
            except ValueError:  # its tensors do not fit, or its context is too short
                computed[key] = None
        ours = computed[key]
        judged = None if ours is None else computed_by_theirs(kind, fields)
        if ours is None or judged is None:
            continue
        compared += 1
        if ours.shape != judged.shape or not torch.allclose(ours, judged, atol=2e-4, rtol=2e-4):
            wrong.append((name, fields[name]))
    assert compared > 10
    assert not wrong
