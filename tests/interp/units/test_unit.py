"""Units: every name leads to its unit and back, and what a model lacks is refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given

from gptviz.interp.units.unit import Unit, heads_and_mlps, unit
from gptviz.model import build
from gptviz.model.tap import Record
from tests.tiny import configs, some_ids, tiny

TWO_STACKS = tiny(n_encoder_layer=1, n_layer=2)


@given(configs())
def test_every_unit_is_found_by_its_name(config):
    for one in heads_and_mlps(config):
        assert unit(one.name, config) == one


@pytest.mark.parametrize("config", [tiny(), tiny(d_mlp=0), TWO_STACKS])
def test_units_come_in_the_order_in_which_the_model_computes_them(config):
    record = Record(["*.z", "*.neurons"])
    source = some_ids() if config.n_encoder_layer else None
    build(config).eval()(some_ids(), source, tap=record)
    layers = [name.rpartition(".")[0] for name in record.values]
    assert list(dict.fromkeys(one.layer for one in heads_and_mlps(config))) == layers
    n_heads = sum(one.is_head for one in heads_and_mlps(config))
    assert n_heads == sum(
        values.shape[1] for name, values in record.values.items() if name.endswith(".z")
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("blocks.1.attention.head.2", Unit("attention", 1, 2)),
        ("blocks.0.attention", Unit("attention", 0)),
        ("blocks.0.mlp.neuron.19", Unit("mlp", 0, 19)),
        ("encoder.blocks.0.mlp", Unit("mlp", 0, None, True)),
        ("blocks.1.cross_attention.head.0", Unit("cross_attention", 1, 0)),
        ("embed", Unit("embed")),
        ("positions", Unit("positions")),
    ],
)
def test_a_name_is_read(name, expected):
    assert unit(name, TWO_STACKS) == expected
    assert expected.name == name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("blocks.2.mlp", "blocks are counted from 0 to 1"),
        ("blocks.0.attention.head.3", "heads are counted from 0 to 2"),
        ("blocks.0.mlp.neuron.20", "neurons are counted from 0 to 19"),
        ("encoder.blocks.0.mlp", "no encoder"),
        ("blocks.0.cross_attention", "no cross-attention"),
        ("blocks.0.attention.head.-1", "names no part"),
        ("blocks.٠.mlp", "names no part"),
        ("", "names no part"),
        ("h" * 1000, "names no part"),
    ],
)
def test_what_a_model_lacks_is_refused_by_name(name, said):
    with pytest.raises(ValueError, match=said) as refused:
        unit(name, tiny())
    assert len(str(refused.value)) < 300


def test_titles_say_which_stack_a_unit_is_of():
    titles = {one.title for one in heads_and_mlps(TWO_STACKS)}
    assert len(titles) == len(heads_and_mlps(TWO_STACKS))
    assert {
        "head 2 of block 1",
        "cross-attention head 0 of block 0",
        "MLP of block 0 of the encoder",
    } <= titles
