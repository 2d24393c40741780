"""Parameter counts, against the numbers the seeds quote and against the tensors themselves."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from torch.overrides import TorchFunctionMode

from gptviz.model import (
    PRESETS,
    RUNGS,
    Config,
    build,
    change_config,
    describe,
    parameter_count,
    preset,
)
from tests.tiny import families, tiny


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("generator", 44_487),
        ("ladder", 309_185),
        ("transformerslite-generator", 29_953),
        ("gpt2", 124_439_808),
        ("classifier", 251_552),
        ("transformerslite-classifier", 57_282),
        # Tied embeddings, 6 blocks of one attention and 6 of two, with biases; the paper rounds its
        # total to 65 million.
        (
            "vaswani",
            37_000 * 512
            + 6 * (1_050_624 + 2_099_712 + 2_048)
            + 6 * (2 * 1_050_624 + 2_099_712 + 3_072),
        ),
        ("bigram", 65 * 64 + 64 * 65 + 65),
    ],
)
def test_a_preset_has_the_total_its_source_quotes(name: str, total: int) -> None:
    assert parameter_count(PRESETS[name]) == total


@pytest.mark.parametrize("name", ["llama-tiny", "neox-tiny"])
def test_families_are_compared_at_the_size_of_the_model_that_ships(name: str) -> None:
    assert parameter_count(PRESETS[name]) == pytest.approx(
        parameter_count(PRESETS["shakespeare"]), rel=0.02
    )


def test_each_rung_of_the_ladder_adds_the_parameters_of_its_part() -> None:
    # By hand, at vocabulary 65, context 32, width 64: an attention layer has Q, K and V without
    # bias and an output projection with one, the MLP is four times as wide and has biases, and a
    # block has two layer norms.
    bigram = 65 * 64 + 64 * 65 + 65
    positions = 32 * 64
    attention = 4 * 64 * 64 + 64
    mlp = 64 * 256 + 256 + 256 * 64 + 64
    norms = 2 * 2 * 64
    added = [bigram, positions, attention, 0, 0, 0, mlp, norms, 5 * (attention + mlp + norms)]
    assert len(RUNGS) == len(added) == 9
    for number, (sentence, rung) in enumerate(RUNGS.items()):
        assert PRESETS[f"ladder-{number}"] == rung, sentence
        assert parameter_count(rung) == sum(added[: number + 1]), sentence
    assert PRESETS["ladder-8"] == PRESETS["ladder"]
    assert sum(added) == 309_185


def test_a_rung_differs_from_the_one_before_by_what_its_name_says() -> None:
    says = [
        *(
            {"positions"},
            {"n_layer"},
            {"n_head", "d_head"},
            {"dropout"},
            {"residual"},
            {"d_mlp"},
            {"residual"},
            {"n_layer"},
        ),
    ]
    rungs = [config.to_dict() for config in RUNGS.values()]
    for below, above, differs in zip(rungs, rungs[1:], says, strict=False):
        assert {name for name in above if above[name] != below[name]} == differs
    assert len(says) == len(rungs) - 1
    assert [rung["residual"] for rung in rungs[4:]] == [
        "none",
        "plain",
        "plain",
        "post-norm",
        "post-norm",
    ]


def test_the_parts_of_the_generator_have_the_sizes_its_post_lists() -> None:
    layers = describe(PRESETS["generator"])

    def size(start: str) -> int:
        return sum(layer.parameters for layer in layers if layer.name.startswith(start))

    assert size("embed") == 2_272
    assert size("positions") == 2_048
    assert [size(f"blocks.{index}.") for index in range(3)] == [12_608] * 3
    assert size("blocks.0.attention.") == 4_128
    assert size("head") == 2_343


@settings(max_examples=60)
@given(families())
def test_described_counts_sum_to_the_numbers_in_the_model(config: Config) -> None:
    layers = describe(config)
    model = build(config)
    assert sum(layer.parameters for layer in layers) == sum(p.numel() for p in model.parameters())
    shapes = {
        f"{layer.name}.{key}": shape for layer in layers for key, shape in layer.shapes.items()
    }
    own = {name: dict(part.named_parameters(recurse=False)) for name, part in model.named_modules()}
    assert shapes == {
        f"{name}.{key}": tuple(p.shape) for name, some in own.items() for key, p in some.items()
    }


class FirstReads(TorchFunctionMode):
    """Notes the parameters that functions of torch are called with, in the order in which each is
    first read.
    """

    def __init__(self, parameters: dict[int, str]) -> None:
        super().__init__()
        self.parameters = parameters
        self.read = list[str]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        # of shapes and devices
        for one in [*args, *(kwargs or {}).values()] if name != "__get__" else []:
            found = self.parameters.get(id(one))
            if found is not None and found not in self.read:
                self.read.append(found)
        return func(*args, **(kwargs or {}))


@settings(max_examples=40)
@given(families(mlp="gated"))
@example(tiny(n_encoder_layer=2, qk_norm=True, residual="post-norm", positions="relative"))
@example(tiny(n_encoder_layer=1, qk_norm=True, tied=True))
@example(tiny(head="flatten", n_label=3, mask="full", residual="norm-only"))
def test_layers_are_described_in_the_order_in_which_a_forward_pass_reads_them(
    config: Config,
) -> None:
    model = build(config)
    parts = [
        (layer.name, dict(model.get_submodule(layer.name).named_parameters(recurse=False)))
        for layer in describe(config)
    ]
    layers = {id(parameter): name for name, own in reversed(parts) for parameter in own.values()}
    ids = torch.zeros(1, 3, dtype=torch.long)
    with FirstReads(layers) as reads, torch.no_grad():
        model(ids, ids if config.n_encoder_layer else None)
    assert reads.read == [name for name, _ in parts if name in reads.read]
    assert set(reads.read) == set(layers.values())


def test_a_tied_unembedding_is_listed_and_counted_once() -> None:
    tied = describe(tiny(tied=True))
    untied = describe(tiny(tied=False))
    assert [layer.name for layer in tied] == [layer.name for layer in untied]
    assert (tied[-1].kind, tied[-1].parameters, tied[-1].shapes) == (
        "Linear, tied",
        0,
        {"weight": (11, 12)},
    )
    assert untied[-1].parameters == 11 * 12


def test_describing_allocates_nothing() -> None:
    # 10¹³ numbers: no machine could hold them.
    config = Config(
        vocab_size=10_000_000,
        context_length=131_072,
        d_model=1_000_000,
        n_layer=0,
        positions="sinusoidal",
    )
    assert parameter_count(config) == 2 * 10**13 + 2 * 10**6


def test_a_preset_changed_in_width_gets_the_head_and_mlp_sizes_of_the_new_width() -> None:
    assert preset("generator", vocab_size=65).vocab_size == 65
    wider = preset("generator", d_model=64)
    assert (wider.d_head, wider.d_mlp) == (16, 256)
    assert preset("generator", n_head=8).d_head == 4
    assert preset("generator", d_model=64, d_mlp=10).d_mlp == 10
    with pytest.raises(ValueError, match="no preset named 'gpt3'; there are .*gpt2"):
        preset("gpt3")


def test_a_change_leaves_alone_what_it_does_not_name() -> None:
    config = tiny(d_head=5, d_mlp=7)
    assert change_config(config) == config
    deeper = change_config(config, n_layer=5)
    assert deeper.to_dict() == config.to_dict() | {"n_layer": 5}
    assert change_config(config, d_model=24, d_head=5, d_mlp=7).to_dict() == config.to_dict() | {
        "d_model": 24
    }
    assert change_config(tiny(d_mlp=0), d_model=24).d_mlp == 0
    assert (
        change_config(tiny(), n_head=2, d_model=24).to_dict()
        == tiny(n_head=2, d_model=24, d_head=12, d_mlp=96).to_dict()
    )
    with pytest.raises(
        ValueError, match="unknown config field 'layers'; there are vocab_size, .*dropout"
    ):
        change_config(config, layers=3)
    with pytest.raises(ValueError, match="d_model 12 does not divide into n_head 5 heads"):
        change_config(tiny(), n_head=5)
