"""An edit is what it says: held to weights that were changed in a copy, and to loops over queries
and keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, cast

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

from gptviz.interp.changing import edits as unit_edits
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.changing.edits import MOST_EDITS, edit, edits, fitting
from gptviz.interp.changing.unit_edits import PATTERNS, SHUFFLE_SEED
from gptviz.interp.trace import run
from gptviz.interp.units.unit import heads_and_mlps, unit
from gptviz.model import Config, Record, Transformer, Watch
from gptviz.model.lora import Factors, MergedTransformer, matrices
from gptviz.model.parts.attention import AttentionBase
from gptviz.model.parts.experts import MixtureOfExperts
from gptviz.model.parts.mlps import MLP
from gptviz.model.parts.positions import POSITIONS
from tests.examples import tried
from tests.tiny import configs, families, scrambled, some_ids, tiny

KINDS: dict[str, dict[str, Any]] = {
    "decoder": {},
    "classifier": {"head": "mean", "n_label": 3, "mask": "full", "padding": 0},
    "encoder-decoder": {"n_encoder_layer": 2, "n_layer": 2, "padding": 0},
}


def edited(model: Transformer, *texts: str, reference: Sequence[Inputs] = ()) -> Transformer:
    return unit_edits.edit_model(model, edits(texts, model.config), reference)


def source_of(model: Transformer, seed: int = 3) -> Tensor | None:
    return some_ids(5, seed=seed).clamp(min=1) if model.config.n_encoder_layer else None


def logits(model: Transformer, ids: Tensor) -> Tensor:
    with torch.no_grad():
        return cast(Tensor, model(ids, source_of(model)))


@torch.no_grad()
def with_zeros(model: Transformer, name: str) -> Transformer:
    """A copy of `model` with weights at zero, so that the unit called `name` has nothing to say."""
    part = unit(name, model.config)
    copied = deepcopy(model)
    layer = copied.get_submodule(part.layer)
    if isinstance(layer, AttentionBase):
        size = model.config.head_size
        at = (
            slice(None) if part.index is None else slice(part.index * size, (part.index + 1) * size)
        )
        layer.output.weight[:, at] = 0
        bias = layer.output.bias
    else:
        downs = (
            [expert.down for expert in layer.every_expert]
            if isinstance(layer, MixtureOfExperts)
            else [cast(MLP, layer).down]
        )
        columns = [column for down in downs for column in down.weight.T]
        for column in columns if part.index is None else [columns[part.index]]:
            column.zero_()
        bias = downs[0].bias
    if part.index is None and bias is not None:
        bias.zero_()
    return copied


@tried(15, 60, families() | configs(n_encoder_layer=1), st.integers(0, 10_000))
def test_a_unit_that_is_switched_off_is_one_whose_output_weights_are_zero(
    config: Config, seed: int
) -> None:
    model = scrambled(config)
    ids = some_ids()
    units = [one.name for one in heads_and_mlps(config)] + [
        one.layer for one in heads_and_mlps(config) if one.is_head
    ]
    units += [f"{one.name}.neuron.7" for one in heads_and_mlps(config) if one.part == "mlp"]
    if not units:
        return
    name = units[seed % len(units)]
    torch.testing.assert_close(
        logits(edited(model, name), ids), logits(with_zeros(model, name), ids), atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_itself_stays_as_it_is_to_the_bit(kind: str) -> None:
    model = scrambled(tiny(**KINDS[kind]))
    ids = some_ids().clamp(min=1)
    weights = deepcopy(model.state_dict())
    before = logits(model, ids)
    changed = edited(model, "blocks.0.attention.head.1", "blocks.1.mlp", "positions", "embed")
    assert not torch.allclose(logits(changed, ids), before)
    assert torch.equal(logits(model, ids), before)
    assert all(torch.equal(weights[name], now) for name, now in model.state_dict().items())
    assert unit_edits.edit_model(model, ()) is model
    owned = {id(parameter) for parameter in model.parameters()}
    assert all(id(p) in owned for name, p in changed.named_parameters() if "positions" not in name)


def test_several_edits_act_together_and_a_tap_sees_what_they_left() -> None:
    model = scrambled(tiny())
    ids = some_ids()
    names = ["blocks.0.attention.head.0", "blocks.0.attention.head.2", "blocks.1.mlp.neuron.3=4.5"]
    by_hand = run(
        model,
        ids,
        edits={
            "blocks.0.attention.z": lambda z: z * torch.tensor([0.0, 1.0, 0.0])[:, None, None],
            "blocks.1.mlp.neurons": lambda n: n.index_fill(-1, torch.tensor([3]), 4.5),
        },
    )
    trace = run(edited(model, *names), ids)
    assert list(trace) == list(by_hand)
    assert all(torch.equal(trace[name], by_hand[name]) for name in trace)
    # An edit of one call acts on what the edits of the model left.
    doubled = run(edited(model, *names), ids, edits={"blocks.1.mlp.neurons": lambda n: 2 * n})
    assert (doubled["blocks.1.mlp.neurons"][..., 3] == 9).all()


def rows_of(
    to: str, pattern: Tensor, hidden: Callable[[int, int, int], bool], reference: Tensor
) -> Tensor:
    """The pattern [B, H, query, key] that an edit should leave of every head, cell by cell."""
    result = pattern.clone()
    for b, h, q in torch.cartesian_prod(*map(torch.arange, pattern.shape[:3])).tolist():
        may = [key for key in range(pattern.shape[3]) if not hidden(b, q, key)]
        if to == "uniform":
            weights = {key: 1 / len(may) for key in may}
        elif to == "previous":
            weights = {max(q - 1, 0): 1.0} if max(q - 1, 0) in may else {}
        else:
            held = reference[h, q, : pattern.shape[3]].tolist() if q < reference.shape[1] else []
            weights = {key: weight for key, weight in enumerate(held) if key in may}
            total = sum(weights.values())
            weights = {key: weight / total for key, weight in weights.items()} if total else {}
        if weights:
            result[b, h, q] = torch.tensor(
                [weights.get(key, 0.0) for key in range(pattern.shape[3])]
            )
    return result


@pytest.mark.parametrize("to", PATTERNS)
@pytest.mark.parametrize("window", [None, 1, 3])
@pytest.mark.parametrize("length", [3, 6, 8], ids=lambda length: f"reference of {length}")
def test_a_replaced_pattern_is_that_of_a_loop(to: str, window: int | None, length: int) -> None:
    model = scrambled(tiny(window=window))
    ids = some_ids(6)
    reading = Inputs(some_ids(length, 1, seed=5))
    before = run(model, ids)["blocks.1.attention.pattern"]
    stored = run(model, reading.ids)["blocks.1.attention.pattern"][0]
    wanted = rows_of(
        to, before, lambda _, q, key: key > q or (window is not None and q - key >= window), stored
    )
    whole = run(edited(model, f"blocks.1.attention={to}", reference=[reading]), ids)[
        "blocks.1.attention.pattern"
    ]
    torch.testing.assert_close(whole, wanted)
    one = run(edited(model, f"blocks.1.attention.head.2={to}", reference=[reading]), ids)[
        "blocks.1.attention.pattern"
    ]
    torch.testing.assert_close(one[:, 2], wanted[:, 2])
    assert torch.equal(one[:, :2], before[:, :2])


@pytest.mark.parametrize("to", PATTERNS)
@pytest.mark.parametrize("window", [None, 3])
def test_the_pattern_of_a_long_text_is_replaced_in_parts(
    to: str, window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scrambled(tiny(context_length=20, window=window))
    ids = some_ids(20, 1)
    changed = edited(
        model, f"blocks.0.attention.head.1={to}", reference=[Inputs(some_ids(12, 1, seed=5))]
    )
    with torch.no_grad():
        expected = changed(ids)
        cache = changed.new_cache(1)
        sizes = list[int]()
        monkeypatch.setattr("gptviz.model.parts.attention.MOST_SCORES", 200)
        watch = Watch(
            ["blocks.*.pattern"],
            lambda _name, pattern: sizes.append(pattern.numel()),
            in_parts=True,
        )
        torch.testing.assert_close(changed(ids, tap=watch), expected)
        begun = changed(ids[:, :7], cache=cache)
        torch.testing.assert_close(
            torch.cat((begun, changed(ids[:, 7:], cache=cache)), 1), expected, atol=1e-5, rtol=1e-5
        )
    assert max(sizes) <= 200


@pytest.mark.parametrize("to", PATTERNS)
@pytest.mark.parametrize("length", [3, 8], ids=lambda length: f"reference of {length}")
def test_padding_and_a_memory_are_hidden_from_a_replaced_pattern_too(to: str, length: int) -> None:
    model = scrambled(tiny(**KINDS["encoder-decoder"]))
    ids = some_ids(6).clamp(min=1)
    source = some_ids(5).clamp(min=1)
    source[1, 3:] = 0
    reading = Inputs(
        some_ids(length, 1, seed=5).clamp(min=1), some_ids(length, 1, seed=6).clamp(min=1)
    )
    plain = run(model, ids, source=source)
    stored = run(model, reading.ids, source=reading.source)

    def hidden(b: int, _: int, key: int) -> bool:
        return bool(source[b, key] == 0)

    for layer in ("encoder.blocks.1.attention", "blocks.1.cross_attention"):
        if to == "previous" and "cross" in layer:
            continue
        name = f"{layer}.pattern"
        changed = run(edited(model, f"{layer}={to}", reference=[reading]), ids, source=source)[name]
        torch.testing.assert_close(changed, rows_of(to, plain[name], hidden, stored[name][0]))


@pytest.mark.parametrize(
    ("name", "tap"),
    [
        ("attention.head.1", "attention.z"),
        ("attention", "attention.out"),
        ("mlp", "mlp.out"),
        ("mlp.neuron.4", "mlp.neurons"),
    ],
)
def test_a_mean_is_that_over_all_tokens_of_the_reference_text(name: str, tap: str) -> None:
    model = scrambled(tiny())
    ids = some_ids(6)
    pieces = [Inputs(some_ids(8, 1, seed=8)), Inputs(some_ids(3, 1, seed=9))]
    trace = run(edited(model, f"blocks.0.{name}=mean", reference=pieces), ids)[f"blocks.0.{tap}"]
    before = run(model, ids)[f"blocks.0.{tap}"]
    values = [run(model, piece.ids)[f"blocks.0.{tap}"][0] for piece in pieces]
    tokens = [
        token for value in values for token in (value[1] if name.endswith("head.1") else value)
    ]
    mean = sum(tokens) / 11
    wanted = before.clone()
    for b in range(2):
        for t in range(6):
            if name.endswith("head.1"):
                wanted[b, 1, t] = mean
            elif name.endswith("neuron.4"):
                wanted[b, t, 4] = mean[4]
            else:
                wanted[b, t] = mean
    torch.testing.assert_close(trace, wanted)


def test_padding_counts_in_no_mean() -> None:
    model = scrambled(tiny(**KINDS["encoder-decoder"]))
    ids = some_ids(6, 2).clamp(min=1)
    source = some_ids(5, 2).clamp(min=1)
    ids[0, 4:], source[1, 3:], ids[:, 0] = 0, 0, 0  # each row begins with the token that also pads
    names = ["blocks.0.mlp=mean", "encoder.blocks.0.attention.head.1=mean"]
    changed = run(edited(model, *names, reference=[Inputs(ids, source)]), ids, source=source)
    before = run(model, ids, source=source)
    out = before["blocks.0.mlp.out"]
    z = before["encoder.blocks.0.attention.z"]
    torch.testing.assert_close(
        changed["encoder.blocks.0.attention.z"][0, 1, 0], torch.cat((z[0, 1], z[1, 1, :3])).mean(0)
    )
    alone = run(edited(model, names[0], reference=[Inputs(ids, source)]), ids, source=source)[
        "blocks.0.mlp.out"
    ]
    torch.testing.assert_close(alone[0, 0], torch.cat((out[0, :4], out[1])).mean(0))


@pytest.mark.parametrize("to", ["zero", "shuffled"])
@pytest.mark.parametrize("kind", sorted(POSITIONS.keys() - {"none"}))
def test_positions_are_gone_or_in_another_order(kind: str, to: str) -> None:
    model = scrambled(tiny(positions=kind, mask="full"))
    changed = edited(model, f"positions={to}")
    ids = some_ids()
    swapped = ids[:, [1, 0, *range(2, 8)]]
    moved, stayed = (logits(changed, each)[:, 2:] for each in (swapped, ids))
    assert torch.allclose(moved, stayed, atol=1e-5) == (to == "zero")
    assert not torch.allclose(logits(model, swapped)[:, 2:], logits(model, ids)[:, 2:], atol=1e-5)
    if to == "shuffled":
        # Under a full mask the tokens in the order of their places give what they gave, token by
        # token.
        order = torch.randperm(8, generator=torch.Generator().manual_seed(SHUFFLE_SEED))
        in_place = torch.empty_like(ids)
        in_place[:, order] = ids
        torch.testing.assert_close(
            logits(changed, ids), logits(model, in_place)[:, order], atol=1e-4, rtol=1e-4
        )


EVERY = [
    *(
        "blocks.0.attention.head.1",
        "blocks.1.attention.head.0=uniform",
        "blocks.1.attention.head.1=previous",
    ),
    *(
        "blocks.1.attention.head.2=from",
        "blocks.0.mlp=mean",
        "blocks.1.mlp.neuron.17=4.2",
        "positions=shuffled",
    ),
]


@pytest.mark.parametrize("positions", sorted(POSITIONS.keys() - {"none"}))
@pytest.mark.parametrize("window", [None, 3])
def test_a_cache_gives_the_logits_of_a_whole_pass(positions: str, window: int | None) -> None:
    model = scrambled(tiny(positions=positions, n_kv_head=1, mlp="gated", window=window))
    changed = edited(model, *EVERY, reference=[Inputs(some_ids(4, 1, seed=7))])
    ids = some_ids()
    cache = changed.new_cache(len(ids))
    with torch.no_grad():
        whole = changed(ids)
        parts = [
            changed(ids[:, at], cache=cache)
            for at in (slice(0, 3), slice(3, 4), slice(4, 5), slice(5, 8))
        ]
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(whole, logits(model, ids))


def test_an_encoder_is_edited_once_wherever_it_runs() -> None:
    model = scrambled(tiny(**KINDS["encoder-decoder"]))
    ids = some_ids(6).clamp(min=1)
    source = some_ids(5).clamp(min=1)
    pieces = [Inputs(some_ids(4, 1), some_ids(4, 1).clamp(min=1))]
    names = [
        "encoder.blocks.0.attention.head.1=from",
        "encoder.blocks.1.mlp",
        "encoder.positions=shuffled",
    ]
    changed = edited(model, *names, "blocks.0.cross_attention.head.2", reference=pieces)
    record = Record(["encoder.*", "memory"])
    with torch.no_grad():
        memory = changed.encode(source, record)
        alone = changed.encoder(source)
        given_memory = changed(ids, memory=memory)
        given_source = changed(ids, source)
    assert [name for name in record.values if name.endswith("mlp.out")] == [
        "encoder.blocks.0.mlp.out",
        "encoder.blocks.1.mlp.out",
    ]
    assert not record.values["encoder.blocks.1.mlp.out"].any()
    assert torch.equal(memory.states, alone)
    assert torch.equal(given_memory, given_source)
    assert not torch.allclose(given_source, model(ids, source))


CONFIG = tiny(n_layer=2)
DIRECTION = "direction.planted-00000001"
FEATURE = "dictionary.mine-00000001.feature.17"
# Texts of edits, how they are written in an address, and what they are called.
TEXTS = [
    (
        "blocks.1.attention.head.2=zero",
        "blocks.1.attention.head.2",
        "Head 2 of block 1 is switched off (zero)",
    ),
    (
        " blocks.1.mlp=mean",
        "blocks.1.mlp=mean",
        "MLP of block 1 is replaced by its mean over the reference text",
    ),
    (
        "blocks.0.mlp.neuron.17=4.20",
        "blocks.0.mlp.neuron.17=4.2",
        "Neuron 17 of block 0 is set to 4.2",
    ),
    (
        "blocks.0.mlp.neuron.17=-1e3",
        "blocks.0.mlp.neuron.17=-1000",
        "Neuron 17 of block 0 is set to -1000",
    ),
    ("positions=shuffled", "positions=shuffled", "Positions"),
    (DIRECTION, DIRECTION, "Direction planted-00000001 is taken out of the stream"),
    (
        f"{DIRECTION}=-1.5",
        f"{DIRECTION}=-1.5",
        "Direction planted-00000001 is added to the stream, -1.5 times its spread",
    ),
    (
        "swap.blocks.1.mlp.7.3",
        "swap.blocks.1.mlp.3.7=1",
        "Tokens 3 and 7 change places in the stream after the MLP of block 1",
    ),
    (
        "swap.embed.3.7=0.5",
        "swap.embed.3.7=0.5",
        "Tokens 3 and 7 change places in the stream after the embedding, 0.5 of",
    ),
    (FEATURE, FEATURE, "Feature 17 of mine-00000001 is switched off (zero)"),
    (f"{FEATURE}=-1.5", f"{FEATURE}=-1.5", "Feature 17 of mine-00000001 is set to -1.5"),
]


@pytest.mark.parametrize(("text", "canonical", "title"), TEXTS)
def test_an_edit_says_what_it_does_and_its_text_is_read_back(
    text: str, canonical: str, title: str
) -> None:
    one = edit(text, CONFIG)
    assert one.text == canonical
    assert one.title.startswith(title)
    assert edit(one.text, CONFIG) == one


def test_the_tokens_of_a_swap_are_called_as_they_are_said_to_be() -> None:
    assert (
        edit("swap.embed.3.7", CONFIG)
        .title_with("<{}>".format)
        .startswith("Tokens <3> and <7> change places in the stream")
    )


REFUSED: list[tuple[list[str], dict[str, Any], str]] = [
    (["blocks.1.attention.head.7"], {}, "there is no head 7; heads are counted from 0 to 2"),
    (["blocks.1.mlp=uniform"], {}, "MLP of block 1 cannot become 'uniform', but zero, mean$"),
    (
        ["blocks.1.mlp.neuron.3=nan"],
        {},
        "cannot become 'nan', but zero, mean or a number from -100,000 to 100,000",
    ),
    (
        ["blocks.1.attention.head.1=4"],
        {},
        "cannot become '4', but zero, mean, uniform, previous, from",
    ),
    (["positions=mean"], {}, "cannot become 'mean', but zero, shuffled"),
    (
        ["blocks.0.mlp", "blocks.0.mlp=mean"],
        {},
        "blocks.0.mlp is edited twice: blocks.0.mlp and blocks.0.mlp=mean",
    ),
    (["a head"], {}, "'a head' names no part of a model"),
    *(
        ([f"{one}=mean"], {}, "cannot become 'mean', but zero or a number")
        for one in (DIRECTION, FEATURE)
    ),
    *(
        ([text], {}, "names no part")
        for text in (
            "direction.../secret",
            "dictionary.../secret.feature.1",
            "dictionary.mine",
            "dictionary.mine.neuron.1",
        )
    ),
    (["swap.blocks.1.mlp.3"], {}, "name a layer and two tokens by their ids"),
    (["swap.blocks.2.mlp.3.7"], {}, "no layer blocks.2.mlp; they go from embed to blocks.1.mlp"),
    (["swap.blocks.1.mlp.3.3"], {}, "two different tokens"),
    (["swap.blocks.1.mlp.3.11"], {}, "from 0 to 10"),
    (["swap.blocks.1.mlp.3.7=far"], {}, "the strength of a swap is a number from -10 to 10"),
    (["swap.embed.3.7"], {"n_layer": 0}, "models that have blocks"),
    (["swap.embed.3.7"], {"mask": "full", "head": "mean", "n_label": 3}, "guess tokens"),
    *(([f"adapter={to}"], {}, "a number from -10 to 10") for to in ("nan", "11", "mean", "1e99")),
]


@pytest.mark.parametrize(("texts", "changes", "message"), REFUSED)
def test_what_is_not_possible_is_refused_in_one_line(
    texts: list[str], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        edits(texts, tiny(**changes))
    assert "\n" not in str(refused.value)


def test_of_another_models_edits_those_that_fit_are_kept_and_the_others_named() -> None:
    found = fitting(
        [
            "blocks.5.mlp",
            "blocks.1.mlp",
            "blocks.1.mlp=mean",
            "nonsense",
            "blocks.0.attention.head.0",
        ],
        scrambled(CONFIG),
    )
    assert [one.text for one in found.edits] == ["blocks.0.attention.head.0", "blocks.1.mlp"]
    assert [line.split(":")[0] for line in found.rejected[:2]] == [
        "blocks.5.mlp",
        "'blocks.1.mlp=mean'",
    ]
    assert found.rejected[2].startswith("'nonsense' names no part of a model")
    assert len(found.rejected) == 3


def test_edits_beyond_the_most_that_an_address_may_have_are_named_too():
    texts = [f"blocks.0.mlp.neuron.{neuron}=1" for neuron in range(1_000)]
    found = fitting(texts, scrambled(tiny(d_mlp=1_000)))
    assert [one.text for one in found.edits] == texts[:MOST_EDITS]
    assert [line.split("'")[1] for line in found.rejected] == texts[MOST_EDITS:]


NUMBERS = st.integers(0, 12).map(str) | st.sampled_from(
    ["-1", "9" * 400, "nan", "1e999", "0x1", "١", "²", ""]
)
PLACES = (
    "blocks.{}.attention.head.{}",
    "blocks.{}.attention",
    "blocks.{}.mlp.neuron.{}",
    "encoder.blocks.{}.mlp",
    "embed",
    "positions",
)
EDITS = st.builds(
    lambda place, one, other, to: place.format(one, other) + to,
    st.sampled_from(PLACES),
    NUMBERS,
    NUMBERS,
    st.just("")
    | st.builds(
        "={}".format,
        NUMBERS | st.sampled_from(["zero", "mean", "uniform", "previous", "from", "shuffled"]),
    ),
)


@pytest.fixture(scope="module")
def reader() -> Transformer:
    """A model that edits are read for, which changes nothing of it."""
    return scrambled(CONFIG)


@tried(100, 2_500, texts=st.lists(EDITS | st.text(max_size=40), max_size=12))
def test_any_texts_are_edits_that_can_be_written_and_read_again_or_are_refused_in_a_line_each(
    reader: Transformer, texts: list[str]
):
    found = fitting(texts, reader)
    assert edits([one.text for one in found.edits], CONFIG) == found.edits
    assert all("\n" not in line and len(line) < 400 for line in found.rejected)
    assert len({one.unit for one in found.edits}) == len(found.edits)
    assert len(texts) >= len(found.edits) + len(found.rejected)  # what is written twice counts once
    for text in texts:
        read_alone = fitting([text], reader)
        assert len(read_alone.edits) + len(read_alone.rejected) == 1


def merged(config: Config = CONFIG) -> MergedTransformer:
    """A model with an adapter whose factors are random."""
    generator = torch.Generator().manual_seed(3)
    adapter = {
        name: Factors(
            torch.randn(2, reads, generator=generator) / 3,
            torch.randn(out, 2, generator=generator) / 3,
        )
        for name, (out, reads) in matrices(config).items()
    }
    return MergedTransformer(scrambled(config), adapter)


def test_the_strength_of_an_adapter_is_an_edit_that_comes_before_all_others() -> None:
    model = merged()
    ids = some_ids()
    head = "blocks.0.attention.head.0=mean"
    inputs = [Inputs(some_ids(seed=4))]
    for text, strength in (
        ("adapter", 0.0),
        ("adapter=0.5", 0.5),
        ("adapter=-1", -1.0),
        ("adapter=zero", 0.0),
    ):
        every = edits([head, text], CONFIG)
        assert every[0].to == strength
        found = unit_edits.edit_model(model, every, inputs)
        expected = unit_edits.edit_model(
            model.with_strength(strength), edits([head], CONFIG), inputs
        )
        assert torch.equal(found(ids), expected(ids))
        (alone,) = unit_edits.edited_by_each(model, every[:1])
        assert torch.equal(alone[1](ids), model.with_strength(strength)(ids))
        assert edit(every[0].text, CONFIG) == every[0]
    assert torch.equal(
        unit_edits.edit_model(model, edits(["adapter=0"], CONFIG))(ids), model.base(ids)
    )
    assert (
        edits(["adapter=0.5"], CONFIG)[0].title
        == "LoRA adapter acts with strength 0.5: 0 is its base, 1 is as trained"
    )


def test_a_model_without_an_adapter_has_no_strength() -> None:
    with pytest.raises(ValueError, match="this model is no LoRA adapter"):
        edited(scrambled(CONFIG), "adapter=0.5")
    found = fitting(["adapter=0.5", "blocks.1.mlp"], scrambled(CONFIG))
    assert [one.text for one in found.edits] == ["blocks.1.mlp"]
    assert found.rejected == (
        "adapter: this model is no LoRA adapter, so there is no strength to change",
    )
    assert [one.text for one in fitting(["adapter=0.5"], merged()).edits] == ["adapter=0.5"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_itself_as_the_reference_changes_nothing_but_a_mean(kind: str) -> None:
    model = scrambled(tiny(**KINDS[kind]))
    ids = some_ids(6, 1).clamp(min=1)
    reading = Inputs(ids, None if (source := source_of(model)) is None else source[:1])
    names = [f"{one.layer}=from" for one in heads_and_mlps(model.config) if one.is_head]
    trace = run(
        edited(model, *dict.fromkeys(names), reference=[reading]), ids, source=reading.source
    )
    assert torch.equal(trace["logits"], run(model, ids, source=reading.source)["logits"])
