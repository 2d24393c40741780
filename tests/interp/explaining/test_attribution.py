"""What parts add to a logit, against the model's own logits, closed forms on weights set by hand,
and another library.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz.interp.changing import edits
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.explaining.attribution import MLP, Attribution, PartValue, attribute
from gptviz.interp.reading.classification import classify
from gptviz.model import Config
from tests.examples import tried
from tests.hand_built import LOUD, Neuron, copy, hand_built, induction_circuit, nothing
from tests.pretrained.test_families import GPT2_SIZES, ours
from tests.pretrained.test_families import theirs as gpt2
from tests.tiny import configs, families, scrambled, some_ids, tiny

IDS = some_ids()[0].tolist()
SOURCE = [3, 1, 4, 1, 5]


@tried(
    15,
    60,
    st.one_of(families(), families(n_encoder_layer=1, mask="causal")),
    st.integers(0, 7),
    st.none() | st.just(7),
)
def test_the_parts_of_any_model_add_up_to_its_logit_at_any_position(
    config: Config, position: int, against: int | None
) -> None:
    model = scrambled(config)
    source = SOURCE if config.n_encoder_layer else None
    found = attribute(model, IDS, 3, position, against, source)
    with torch.no_grad():
        row = model(torch.tensor([IDS]), None if source is None else torch.tensor([source]))[
            0, position
        ].double()
    assert found.capped == pytest.approx(
        float(row[3] - (0 if against is None else row[against])), abs=1e-4
    )
    scale = max(abs(found.logit), *(abs(part.value) for part in found.parts))
    assert abs(sum(part.value for part in found.parts) - found.logit) < 1e-4 * scale
    assert found.adds_up
    if config.logit_cap is None:
        assert found.logit == found.capped
    elif against is None:
        assert config.logit_cap * np.tanh(found.logit / config.logit_cap) == pytest.approx(
            found.capped, abs=1e-4
        )
    for head, shares in found.sources.items():
        assert shares.sum() == pytest.approx(found.of(head), abs=1e-5 * scale)


@settings(max_examples=30)
@given(configs(residual="pre-norm", norm_bias=True, norm_gain=True, output_bias=True, n_layer=2))
def test_a_part_counted_twice_or_left_out_does_not_add_up(config: Config) -> None:
    found = attribute(scrambled(config), IDS, 3)
    scale = max(abs(found.logit), *(abs(part.value) for part in found.parts))
    for index, part in enumerate(found.parts):
        if abs(part.value) > 1e-3 * scale:
            assert not replace(found, parts=(*found.parts, part)).adds_up, part.name
            assert not replace(
                found, parts=(*found.parts[:index], *found.parts[index + 1 :])
            ).adds_up, part.name
    assert not replace(found, logit=float("nan")).adds_up


def test_unless_it_is_asked_for_another_the_token_is_the_likeliest_after_the_last_position() -> (
    None
):
    model = scrambled(tiny())
    found = attribute(model, IDS)
    named = attribute(model, IDS, 2, 4)
    with torch.no_grad():
        logits = model(torch.tensor([IDS]))[0]
    assert (found.position, found.token, found.against) == (7, int(logits[-1].argmax()), None)
    assert (named.position, named.token, named.logit) == (4, 2, pytest.approx(float(logits[4, 2])))


def test_each_block_adds_what_the_hidden_states_of_transformers_gpt2_say(tmp_path: Path) -> None:
    theirs = gpt2("gpt2", GPT2_SIZES)
    model = ours(theirs, tmp_path)
    ids = some_ids(16, batch=1, vocab=31)
    last = []
    theirs.transformer.ln_f.register_forward_pre_hook(lambda _part, read: last.append(read[0]))
    theirs.requires_grad_(False)
    given = theirs(ids, output_hidden_states=True)
    # before each block, and after the last
    stream = [state[0, 9].double() for state in (*given.hidden_states[:3], last[0])]
    norm = theirs.transformer.ln_f
    size = (stream[-1].var(correction=0) + norm.eps).sqrt()

    def logit(vector: torch.Tensor) -> float:
        """What a vector in the stream adds to the logit of token 5, by the norm's equation."""
        return float(
            ((vector - vector.mean()) / size * norm.weight).double()
            @ theirs.lm_head.weight[5].double()
        )

    found = attribute(model, ids[0].tolist(), 5, 9)
    by_block = [
        sum(part.value for part in found.parts if part.name.startswith(f"blocks.{block}."))
        for block in range(3)
    ]
    assert by_block == pytest.approx(
        [logit(stream[block + 1] - stream[block]) for block in range(3)], abs=1e-4
    )
    assert found.of("embed") + found.of("positions") == pytest.approx(logit(stream[0]), abs=1e-4)
    assert found.of("head.final_norm.bias") == pytest.approx(
        float(norm.bias @ theirs.lm_head.weight[5]), abs=1e-4
    )
    assert found.logit == pytest.approx(float(given.logits[0, 9, 5]), abs=1e-4)


def test_the_induction_head_of_a_circuit_adds_the_whole_logit_from_the_token_that_followed() -> (
    None
):
    found = attribute(induction_circuit(), [1, 2, 3, 4, 1])
    assert found.token == 2
    assert {part.name: part.value for part in found.parts if part.value} == {
        "blocks.1.attention.head.2": pytest.approx(LOUD)
    }
    assert found.sources["blocks.1.attention.head.2"] == pytest.approx([0, LOUD, 0, 0, 0])


def test_a_copy_head_adds_the_share_of_each_token_it_reads_and_a_neuron_adds_its_own() -> None:
    model = hand_built((copy(), copy(-1.0), nothing()), neurons=[[Neuron(reads=4, says=6)]])
    found = attribute(model, [6, 6, 9, 4], 6, against=9)
    grid = found.grid(model.config)
    assert grid.axes[1].labels == ("0", "1", "2", MLP)
    assert grid.values == pytest.approx(np.array([[LOUD / 4, -LOUD / 4, 0, LOUD]]))
    assert found.sources["blocks.0.attention.head.0"] == pytest.approx(
        [LOUD / 4, LOUD / 4, -LOUD / 4, 0]
    )
    assert found.logit == pytest.approx(LOUD)


@pytest.mark.parametrize("head", ["mean", "sum", "flatten"])
def test_a_labels_logit_is_the_sum_over_parts_where_the_head_is_linear(head: str) -> None:
    model = scrambled(tiny(head=head, n_label=3, mask="full", residual="post-norm"))
    logits = classify(model, torch.tensor(IDS[:6])).logits
    alone = attribute(model, IDS[:6], 1)
    both = attribute(model, IDS[:6], 1, against=2)
    assert alone.position is None
    assert alone.sum == pytest.approx(logits[1], abs=1e-4)
    assert both.sum == pytest.approx(logits[1] - logits[2], abs=1e-4)
    assert alone.adds_up
    assert both.adds_up
    assert attribute(model, IDS[:6]).token == int(logits.argmax())


def test_of_an_edited_model_what_is_off_adds_nothing_and_the_rest_adds_up() -> None:
    model = scrambled(tiny())
    parts = edits.edits(
        ["blocks.1.attention.head.2", "blocks.0.attention=mean", "blocks.1.mlp"], model.config
    )
    found = attribute(edits.edit_model(model, parts, [Inputs(some_ids())]), IDS, 3)
    assert found.adds_up
    assert found.of("blocks.1.attention.head.2") == 0
    assert found.of("blocks.1.mlp") == 0
    assert found.of("blocks.0.attention") != 0
    names = [part.name for part in found.parts]
    assert not any(name.startswith("blocks.0.attention.") for name in names)
    assert "blocks.1.mlp.down.bias" not in names
    grid = found.grid(model.config)
    assert grid.axes[1].labels == ("0", "1", "2", "all", MLP)
    assert np.isnan(grid.values).tolist() == [
        [True, True, True, False, False],
        [False, False, False, True, False],
    ]


def test_every_part_has_a_name_in_words() -> None:
    changes = {
        "residual": "double-norm",
        "norm_bias": True,
        "embed_norm": True,
        "positions": "learned",
        "unembed_bias": True,
    }
    config = tiny(n_encoder_layer=1, **changes)
    titles = {
        part.name: part.title for part in attribute(scrambled(config), IDS, source=SOURCE).parts
    }
    assert len(set(titles.values())) == len(titles)
    assert titles["blocks.1.cross_attention.head.2"] == "cross-attention head 2 of block 1"
    assert (
        titles["blocks.1.cross_residual.norm_after.bias"]
        == "bias of the norm of the cross-attention of block 1"
    )
    assert titles["blocks.0.mlp.down.bias"] == "bias of the MLP of block 0"
    assert titles["embed_norm.bias"] == "bias of the norm after the embedding"
    assert titles["head.unembed.bias"] == "bias of the unembedding"


def test_a_sublayer_that_was_replaced_as_a_whole_has_a_column_of_its_own_also_where_both_attentions_were() -> (
    None
):
    adds = {"attention": 1, "cross_attention": 2, "mlp": 3}
    parts = tuple(PartValue(f"blocks.0.{name}", name, value) for name, value in adds.items())
    grid = Attribution(0, 1, None, 6.0, 6.0, parts, {}, {}).grid(tiny(n_layer=1))
    assert grid.axes[1].labels == ("all", "cross all", "MLP")
    assert grid.values.tolist() == [[1, 2, 3]]
