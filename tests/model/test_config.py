"""A config no model can have is refused with the field and its value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st

from gptviz.model import Config
from tests.examples import tried
from tests.tiny import families, tiny


@tried(40, 300, families())
def test_a_config_survives_json(config: Config) -> None:
    assert Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"vocab_size": 0}, "vocab_size is 0"),
        ({"vocab_size": 10**12}, "vocab_size is 1000000000000; .* to 10,000,000"),
        ({"d_model": True}, "d_model is True"),
        ({"d_model": "12"}, "d_model is '12'"),
        ({"d_model": 12.0}, "d_model is 12.0"),
        ({"d_model": -6}, "d_model is -6"),
        ({"n_layer": -1}, "n_layer is -1"),
        ({"n_layer": None}, "n_layer is None"),
        ({"n_layer": 10**6}, "n_layer is 1000000"),
        ({"context_length": 10**6}, "context_length is 1000000"),
        ({"n_head": 0}, "n_head is 0"),
        ({"n_head": 5}, "d_model 12 does not divide into n_head 5"),
        ({"d_mlp": -1}, "d_mlp is -1"),
        (
            {"residual": "prenorm"},
            "residual is 'prenorm'; it must be one of pre-norm, post-norm, parallel, "
            "parallel-one-norm, ",
        ),
        ({"positions": ["rotary"]}, r"positions is \['rotary'\]"),
        ({"mask": None}, "mask is None"),
        ({"tied": 1}, "tied is 1; it must be true or false"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"dropout": float("nan")}, "dropout is nan"),
        ({"dropout": "0"}, "dropout is '0'"),
        ({"attention_dropout": 1.0}, "attention_dropout is 1.0"),
        ({"token_dropout": 1.0}, "token_dropout is 1.0"),
        ({"token_dropout": 0.3}, "token_dropout is 0.3: it is only for models that learn labels"),
        ({"ordered": True}, "ordered is about labels"),
        ({"positions": "rotary", "d_head": 3}, "d_head 3 must be even"),
        ({"positions": "sinusoidal", "d_model": 15}, "d_model 15 must be even"),
        ({"n_kv_head": 2}, "n_kv_head is 2; it must divide n_head 3"),
        ({"n_kv_head": 6}, "n_kv_head is 6; it must divide n_head 3"),
        ({"window": 4, "mask": "full"}, "window is 4; it needs a causal mask"),
        ({"window": 4, "window_pattern": "x"}, "window_pattern is 'x'; it must be letters w"),
        ({"window": 4, "window_pattern": ""}, "window_pattern is ''; it must be letters w"),
        ({"padding": 11}, "padding is 11"),
        ({"padding": True}, "padding is True"),
        ({"padding": -1}, "padding is -1"),
        ({"n_label": 2}, "labels need the head"),
        ({"head": "mean"}, "n_label is 0"),
        ({"head": "flatten", "n_label": 1}, "n_label is 1"),
        ({"head": "mean", "n_label": 2, "tied": True}, "unset tied"),
        ({"head": "mean", "n_label": 2, "n_encoder_layer": 1}, "one stack"),
        ({"head": "max", "n_label": 2}, "must be one of unembed, flatten, mean, sum"),
        ({"n_encoder_layer": -1}, "n_encoder_layer is -1"),
        ({"n_encoder_layer": 1, "residual": "parallel"}, "cross-attention"),
        ({"n_encoder_layer": 1, "qk_norm": "whole"}, "cross-attention"),
        (
            {"mlp": "experts", "n_expert": 2, "n_active": 3},
            "n_active is 3; a router of n_expert 2 experts",
        ),
        (
            {"mlp": "experts", "n_expert": 1_024, "n_layer": 200},
            "n_expert is 1024 in 200 blocks; the most .* 16,384",
        ),
    ],
)
def test_an_impossible_field_is_named_with_its_value(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named) as raised:
        tiny(**changes)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ([1], "a table of fields, not list"),
        (None, "a table of fields, not NoneType"),
        ({}, "lacks vocab_size, context_length, d_model, n_layer"),
        ({"vocab_size": 1, "n_haed": 2}, "unknown config field 'n_haed': did you mean 'n_head'"),
    ],
)
def test_what_is_no_config_is_said(values: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Config.from_dict(values)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@tried(
    100, 1_000, st.dictionaries(st.sampled_from(sorted(tiny().to_dict())), json_values, max_size=6)
)
def test_any_json_is_a_config_or_a_short_value_error(changes: dict[str, Any]) -> None:
    try:
        Config.from_dict(tiny().to_dict() | changes)
    except ValueError as error:
        assert len(str(error)) < 300
