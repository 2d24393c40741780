"""Edits as objects: each is read again from its text, and a model edited by it is the one edited by
its text, to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

import gptviz
from gptviz.interp.changing import directions
from gptviz.interp.changing.directions import Direction
from gptviz.interp.changing.edit import Edit, Inputs
from gptviz.interp.changing.edits import KINDS, edit, edit_model, edit_unit, edits, kind_of_edit
from gptviz.interp.changing.swaps import swap
from gptviz.interp.dictionaries import dictionary
from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.interp.units.unit import Unit, heads_and_mlps
from gptviz.model.quantising import matrix_names
from tests.examples import tried
from tests.tiny import scrambled, some_ids, tiny

pytestmark = pytest.mark.usefixtures("home")

CONFIG = tiny(n_encoder_layer=2, n_layer=2, padding=0)
DECODER = tiny(n_layer=2)
DIRECTION = Direction("planted-00000001", {1: torch.arange(12.0)}, np.full(2, np.nan))
RANDOM = torch.Generator().manual_seed(1)
FEATURES = Dictionary(
    block=1,
    encoder=torch.randn(30, 12, generator=RANDOM),
    encoder_bias=torch.zeros(30),
    decoder=torch.randn(30, 12, generator=RANDOM),
    decoder_bias=torch.randn(12, generator=RANDOM),
    threshold=torch.zeros(30),
    name="mine-00000001",
)
WHOLE = [
    *(Unit(part, block) for part in ("attention", "cross_attention", "mlp") for block in (0, 1)),
    *(Unit("mlp", 1, neuron, stack) for neuron in (0, 17) for stack in (False, True)),
    *(Unit(part, in_encoder=stack) for part in ("embed", "positions") for stack in (False, True)),
    Unit("direction", called="planted-00000001"),
    Unit("dictionary", None, 17, called="mine-00000001"),
]
NUMBERS = st.floats(-1e5, 1e5).map(lambda number: float(f"{number:.6g}"))


@st.composite
def made(draw: Any) -> Edit:
    """An edit of any kind that is made of a unit, whatever it becomes."""
    unit = draw(st.sampled_from([*heads_and_mlps(CONFIG), *WHOLE]))
    kind = kind_of_edit(unit)
    words = st.sampled_from(sorted(kind.becomes))
    return edit_unit(unit, draw(words | NUMBERS if kind.set_to else words))


OTHERS = (
    st.builds("adapter={:g}".format, st.floats(-10, 10))
    | st.builds("swap.blocks.1.mlp.{}.7={:g}".format, st.integers(0, 6), st.floats(-10, 10))
    | st.builds(
        "{}={}".format,
        st.sampled_from(["weights", *matrix_names(CONFIG)]),
        st.sampled_from(["Q4_0", "4bit.g32", "8bit.row"]),
    )
).map(lambda text: edit(text, DECODER if text.startswith("swap") else CONFIG))


@tried(100, 2_000, made() | OTHERS)
def test_every_edit_is_read_again_from_its_text(one: Edit) -> None:
    config = DECODER if one.unit.part == "swap" else CONFIG
    assert edit(one.text, config) == one
    assert type(edit(one.text, config)) is type(one)
    assert edits([one], config) == edits([one.text], config) == (one,)
    assert one.title
    assert "{" not in one.title


def test_there_is_one_class_for_each_kind_and_each_is_a_kind_of_some_unit() -> None:
    units = [*heads_and_mlps(CONFIG), *WHOLE, Unit("expert", 0, 1), Unit("swap", called="x")]
    units += [Unit("weights"), Unit("adapter")]
    assert {kind_of_edit(unit) for unit in units} == set(KINDS.values())


@pytest.mark.parametrize(
    "one",
    [
        DIRECTION * 2,
        DIRECTION * -0.5,
        FEATURES.with_feature(3, 2.5),
        FEATURES.with_feature(13),
        swap("blocks.1.mlp.3.7", DECODER) * 0.5,
        edit("blocks.0.attention.head.1=uniform", DECODER),
        edit("blocks.1.mlp=mean", DECODER),
        edit("weights=4bit.row", DECODER),
    ],
    ids=str,
)
def test_a_model_edited_by_an_object_and_by_its_text_are_equal_to_the_bit(one: Edit) -> None:
    model = scrambled(DECODER)
    ids = some_ids()
    reference = [Inputs(some_ids(seed=5))]
    by_object = edit_model(model, edits([one], DECODER), reference)(ids)
    directions.keep(DIRECTION)
    dictionary.keep(FEATURES)
    assert torch.equal(by_object, edit_model(model, edits([one.text], DECODER), reference)(ids))
    assert not torch.equal(by_object, model(ids))


def test_what_is_open_is_used_without_a_file_and_stays_open_beside_later_edits() -> None:
    lm = gptviz.load("sentences")
    size = lm.model.config.d_model
    found = Direction("open-00000001", {1: torch.arange(float(size))}, np.zeros(2))
    with pytest.raises(ValueError, match="there is no direction open-00000001 on this machine"):
        lm.edited((found * 2).text)
    twin = lm.edited(found * 2).edited("blocks.0.mlp")
    assert twin.edits == ("direction.open-00000001=2", "blocks.0.mlp")
    assert lm.steer("a cab", found, 2.0, max_new_tokens=1).strength == 2


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (edit_unit(Unit("attention", 0, 99)), "there is no head 99"),
        (DIRECTION * 1e9, "a number from -100,000 to 100,000"),
        (Direction("far-00000001", {7: torch.ones(12)}, np.zeros(8)) * 2, "that of another model"),
        (FEATURES.with_feature(30), "has no feature 30"),
    ],
    ids=str,
)
def test_an_object_that_does_not_fit_the_model_is_refused_as_its_text_is(
    one: Edit, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        edit_model(scrambled(DECODER), edits([one], DECODER))
