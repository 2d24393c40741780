"""Parameter counts, against the numbers the seeds quote and against the tensors themselves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from gptviz.model import PRESETS, Config, build, describe, parameter_count, preset
from tests.tiny import configs, tiny


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("generator", 44_487),
        ("ladder", 309_185),
        ("transformerslite-generator", 29_953),
        ("gpt2", 124_439_808),
        ("bigram", 65 * 64 + 64 * 65 + 65),
    ],
)
def test_a_preset_has_the_total_its_source_quotes(name: str, total: int) -> None:
    assert parameter_count(PRESETS[name]) == total


def test_the_parts_of_the_generator_have_the_sizes_its_post_lists() -> None:
    layers = describe(PRESETS["generator"])

    def size(start: str) -> int:
        return sum(layer.parameters for layer in layers if layer.name.startswith(start))

    assert size("embed") == 2_272
    assert size("positions") == 2_048
    assert [size(f"blocks.{index}.") for index in range(3)] == [12_608] * 3
    assert size("blocks.0.attention.") == 4_128
    assert size("head") == 2_343


@settings(max_examples=60, deadline=None, derandomize=True)
@given(configs())
def test_described_counts_sum_to_the_numbers_in_the_model(config: Config) -> None:
    layers = describe(config)
    model = build(config)
    assert sum(layer.parameters for layer in layers) == sum(p.numel() for p in model.parameters())
    shapes = {f"{layer.name}.{key}": shape for layer in layers for key, shape in layer.shapes.items()}
    assert shapes == {name: tuple(p.shape) for name, p in model.named_parameters(remove_duplicate=False)}


def test_a_tied_unembedding_is_listed_and_counted_once() -> None:
    tied, untied = describe(tiny(tied=True)), describe(tiny(tied=False))
    assert [layer.name for layer in tied] == [layer.name for layer in untied]
    assert (tied[-1].kind, tied[-1].parameters, tied[-1].shapes) == ("Linear, tied", 0, {"weight": (11, 12)})
    assert untied[-1].parameters == 11 * 12


def test_describing_allocates_nothing() -> None:
    # 10¹³ numbers: no machine could hold them.
    config = Config(vocab_size=10_000_000, context_length=131_072, d_model=1_000_000, n_layer=0, positions="sinusoidal")
    assert parameter_count(config) == 2 * 10**13 + 2 * 10**6


def test_a_preset_changed_in_width_gets_the_head_and_mlp_sizes_of_the_new_width() -> None:
    assert preset("generator", vocab_size=65).vocab_size == 65
    wider = preset("generator", d_model=64)
    assert (wider.d_head, wider.d_mlp) == (16, 256)
    assert preset("generator", n_head=8).d_head == 4
    assert preset("generator", d_model=64, d_mlp=10).d_mlp == 10
    with pytest.raises(ValueError, match="no preset named 'gpt3'; there are .*gpt2"):
        preset("gpt3")
