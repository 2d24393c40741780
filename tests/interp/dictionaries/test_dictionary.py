"""Dictionaries and their features as units: against loops over features, and a dictionary that
changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gptviz.interp.changing.edits import edit_model, edits, fitting
from gptviz.interp.dictionaries import dictionary as module
from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.interp.explaining.attribution import attribute
from gptviz.interp.trace import run
from gptviz.model import KVCache
from tests.interp.changing.test_directions import planted
from tests.tiny import scrambled, some_ids, tiny

NAME = "mine-00000001"
TAP = "blocks.1.resid_post"


pytestmark = pytest.mark.usefixtures("home")


def random(
    block: int = 1, size: int = 30, name: str = NAME, seed: int = 0, **changes: object
) -> Dictionary:
    """A random dictionary for the stream of the tiny model."""
    draw = torch.Generator().manual_seed(seed)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw)

    none = torch.zeros(size)
    parts = (numbers(size, 12), numbers(size), numbers(size, 12), numbers(12), none)
    return replace(Dictionary(block, *parts, model="ab" * 32, name=name), **changes)


def unchanged(block: int = 1) -> Dictionary:
    """A dictionary whose features are the numbers of the stream themselves, those above 0 and those
    below.
    """
    rows = torch.cat([torch.eye(12), -torch.eye(12)])
    return Dictionary(block, rows, torch.zeros(24), rows, torch.zeros(12), torch.zeros(24))


def activations(of: Dictionary, x: Tensor) -> list[float]:
    """The activations at one vector, by a loop over the features."""
    before = [
        float((x - of.decoder_bias) @ row + bias)
        for row, bias in zip(of.encoder, of.encoder_bias, strict=True)
    ]
    least = sorted(before)[-of.k] if of.k else -torch.inf
    limits = of.threshold.tolist()
    return [
        one if one >= least and one > 0 and one > limit else 0.0
        for one, limit in zip(before, limits, strict=True)
    ]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [({}, "relu"), ({"k": 4}, "topk"), ({"threshold": torch.linspace(0, 3, 30)}, "jumprelu")],
)
def test_activations_and_what_they_give_back_are_those_of_a_loop(
    changes: dict[str, object], kind: str
) -> None:
    one = random(**changes)
    x = torch.randn(3, 5, 12, generator=torch.Generator().manual_seed(1))
    assert one.kind == kind
    active = one.encode(x)
    for place in [(0, 0), (1, 4), (2, 2)]:
        expected = activations(one, x[place])
        torch.testing.assert_close(active[place], torch.tensor(expected))
        back = (
            sum(value * row for value, row in zip(expected, one.decoder, strict=True))
            + one.decoder_bias
        )
        torch.testing.assert_close(one.reconstruct(x)[place], back)


def test_of_a_topk_dictionary_exactly_k_features_are_active_where_enough_are_above_0() -> None:
    one = random(k=5, encoder_bias=torch.full((30,), 50.0))
    x = torch.randn(200, 12, generator=torch.Generator().manual_seed(1))
    assert ((one.encode(x) > 0).sum(-1) == 5).all()
    assert ((replace(one, encoder_bias=torch.full((30,), -50.0)).encode(x) > 0).sum(-1) < 5).all()


def test_a_feature_that_is_set_changes_the_stream_by_its_row_alone_and_what_is_missed_stays() -> (
    None
):
    model = scrambled(tiny())
    one = random(k=6)
    ids = some_ids()
    module.keep(one)
    plain = run(model, ids)
    texts = [one.edit(3, 2.5), one.edit(7), one.edit(11, -1)]
    assert texts == [f"dictionary.{NAME}.feature.{end}" for end in ("3=2.5", "7", "11=-1")]
    found = run(edit_model(model, edits(texts, model.config)), ids)
    expected = plain[TAP].clone()
    for row in range(2):
        for place in range(8):
            was = activations(one, plain[TAP][row, place])
            for feature, wanted in ((3, 2.5), (7, 0), (11, -1)):
                expected[row, place] += (wanted - was[feature]) * one.decoder[feature]
    torch.testing.assert_close(found[TAP], expected)
    assert torch.equal(found["blocks.1.resid_pre"], plain["blocks.1.resid_pre"])


def test_a_feature_that_is_set_to_what_it_is_changes_nothing() -> None:
    model = scrambled(tiny())
    one = random(k=6)
    ids = some_ids(batch=1)
    module.keep(one)
    plain = run(model, ids)
    off = torch.nonzero((one.encode(plain[TAP]) == 0).all((0, 1)))[0, 0]  # active at no token
    assert torch.equal(
        run(edit_model(model, edits([one.edit(int(off))], model.config)), ids)["logits"],
        plain["logits"],
    )
    value = one.encode(plain[TAP])[0, -1]
    feature = int(value.argmax())
    same = run(
        edit_model(
            model,
            edits(
                [f"dictionary.{NAME}.feature.{feature}={float(value[feature]):.6g}"], model.config
            ),
        ),
        ids,
    )
    torch.testing.assert_close(same["logits"][0, -1], plain["logits"][0, -1], atol=1e-4, rtol=0)


def test_two_dictionaries_of_one_stream_act_one_after_the_other_and_the_sum_of_directions_after_them() -> (
    None
):
    model = scrambled(tiny())
    ids = some_ids()
    first = random(name="a-00000001")
    second = random(name="b-00000001", seed=1)
    for each in (first, second):
        module.keep(each)
    along = [planted(name=f"{name}-00000001", seed=seed) for seed, name in enumerate("ab")]
    texts = [
        "direction.a-00000001=1",
        second.edit(0, 1),
        first.edit(2, 1),
        second.edit(1, 1),
        "direction.b-00000001=-2",
    ]
    found = run(edit_model(model, edits(texts, model.config)), ids)[TAP]
    x = run(model, ids)[TAP]
    for each, features in ((second, [0, 1]), (first, [2])):
        x = x + (1 - each.encode(x)[..., features]) @ each.decoder[features]
    torch.testing.assert_close(found, x + along[0] - 2 * along[1])


@pytest.mark.parametrize("residual", ["pre-norm", "post-norm", "parallel"])
def test_texts_that_are_written_step_by_step_are_edited_too(residual: str) -> None:
    model = scrambled(tiny(residual=residual))
    ids = some_ids(batch=1)
    planted(block=0, name="b-00000001")
    module.keep(random(block=0, k=4))
    for text in ("direction.b-00000001=2", "swap.embed.3.7=1", f"dictionary.{NAME}.feature.3=2"):
        with_it = edit_model(model, edits([text], model.config))
        with torch.inference_mode():
            whole = with_it(ids)
            cache = KVCache(model.config)
            steps = [with_it(ids[:, place : place + 1], cache=cache) for place in range(8)]
        torch.testing.assert_close(torch.cat(steps, 1), whole)


def test_a_feature_that_is_not_here_or_of_another_model_is_refused() -> None:
    model = scrambled(tiny())
    module.keep(random(block=2))
    module.keep(random(name="small-00000001", size=3))
    found = fitting(
        [f"dictionary.{name}.feature.3" for name in (NAME, "gone-00000000", "small-00000001")]
        + ["blocks.0.mlp"],
        model,
    )
    assert [one.text for one in found.edits] == ["blocks.0.mlp"]
    for why, said in zip(
        ("of another model", "no dictionary gone-00000000", "from 0 to 2"),
        found.rejected,
        strict=True,
    ):
        assert why in said
    with pytest.raises(ValueError, match="not all finite"):
        module.keep(random(decoder_bias=torch.full((12,), torch.nan)))


def test_a_dictionary_that_is_kept_is_found_again_to_the_bit() -> None:
    one = random(k=6, fitted_to=40)
    module.keep(one)
    again = module.find_dictionary(NAME)
    assert again is not None
    assert (again.block, again.k, again.model, again.name) == (1, 6, "ab" * 32, NAME)
    assert (again.fitted_to, again.support) == (40, one.support)
    assert all(torch.equal(getattr(again, name), getattr(one, name)) for name in module.TENSORS)
    assert NAME in module.names()
    assert module.find_dictionary("gone-00000000") is None


def test_a_dictionary_says_how_many_tokens_it_was_fitted_to_for_each_of_its_numbers() -> None:
    # 30 features: a row of 12 numbers and a bias for what is read, a row of 12 for what is given
    # back, and 12 numbers that all share
    assert 30 * (12 + 1 + 12) + 12 == 762
    few, enough = (random(fitted_to=tokens).support for tokens in (127, 635))
    assert few.startswith("It was fitted to 127 tokens, 2 for each fitted number: below 10, ")
    assert enough == "It was fitted to 635 tokens, 10 for each fitted number."
    assert random().support == ""


def test_a_logit_is_still_the_sum_of_its_parts() -> None:
    model = scrambled(tiny())
    ids = some_ids(batch=1)[0].tolist()
    module.keep(random())
    found = attribute(
        edit_model(model, edits([f"dictionary.{NAME}.feature.3=2"], model.config)), ids
    )
    assert found.adds_up
    assert "what edits add after block 1" in [part.title for part in found.parts]
