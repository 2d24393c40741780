"""The stream as a sum: what readers of a model read, and what each writer adds, against the model
itself and loops.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from gptviz.interp.explaining.decomposition import HEAD, Stream
from gptviz.model import Config, Transformer
from gptviz.model.parts.norms import NORMS, Norm
from gptviz.model.parts.residuals import RESIDUALS
from tests.tiny import families, scrambled, some_ids, tiny

SOURCE = [3, 1, 4, 1, 5]


def stream_of(model: Transformer, rows: list[int] | None = None) -> Stream:
    """Of some ids, and of a source where the model reads one."""
    return Stream(
        model, some_ids()[0].tolist(), rows, SOURCE if model.encoder is not None else None
    )


def really_read(model: Transformer) -> dict[str, Tensor]:
    """What each sublayer and each norm of a decoder reads in a pass of the model, [T, d_model], and
    the head behind its norm.
    """
    seen: dict[str, Tensor] = {}

    def note(name: str) -> Any:
        return lambda _part, read, _out: seen.__setitem__(name, read[0][0].double())

    hooks = [
        part.register_forward_hook(note(name))
        for name, part in model.named_modules()
        if name != "" and "encoder" not in name
    ]
    source = torch.tensor([SOURCE]) if model.encoder is not None else None
    with torch.no_grad():
        model(some_ids()[:1], source)
    for hook in hooks:
        hook.remove()
    return seen | {HEAD: seen["head.unembed"]}


def directions(model: Transformer, *before: int) -> Tensor:
    """Random ones, [..., T, d_model]."""
    shape = (*before, some_ids().shape[1], model.config.d_model)
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@settings(max_examples=60)
@given(families() | families(n_encoder_layer=1, mask="causal"))
def test_what_every_reader_of_any_model_reads_is_the_sum_of_what_was_written(
    config: Config,
) -> None:
    model = scrambled(config)
    stream = stream_of(model)
    read = really_read(model)
    asked = directions(model)
    crosses = 1 if model.encoder is not None else 0
    assert len(stream.inputs) == 1 + config.n_layer * (1 + crosses + (1 if config.mlp_size else 0))
    for reader in stream.inputs:
        added = torch.stack(
            list(stream.added_by_parts(stream.pull(reader, asked)).values())
        )  # [parts, T]
        expected = (asked * read[reader]).sum(-1)
        scale = torch.maximum(added.abs().amax(0), expected.abs())
        assert ((added.sum(0) - expected).abs() < 1e-4 * scale + 1e-7).all(), reader


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("residual", RESIDUALS)
def test_a_heads_part_is_what_a_loop_carries_through_the_norms_behind_it(
    residual: str, norm: str
) -> None:
    """The loop knows which norms of each kind of residual stand behind what a head wrote."""
    model = scrambled(tiny(residual=residual, norm=norm, d_head=6, n_kv_head=1))
    read = really_read(model)
    asked = directions(model)
    stream = stream_of(model)
    added = stream.added_by_parts(stream.pull(HEAD, asked))
    sublayers = [
        f"blocks.{block}.{part}_residual" for block in range(2) for part in ("attention", "mlp")
    ]
    before_adding = {"branch-norm": "norm", "double-norm": "norm_after"}.get(residual)

    def through(name: str, vector: Tensor) -> Tensor:
        """A vector [T, d_model] through the norm `name`, with the standard deviation of what that
        really read.
        """
        part = model.get_submodule(name)
        whole = read[name]
        if norm == "layernorm":
            vector = vector - vector.mean(-1, keepdim=True)
            size = ((whole - whole.mean(-1, keepdim=True)) ** 2).mean(-1, keepdim=True)
        else:
            size = (whole**2).mean(-1, keepdim=True)
        return vector / (size + part.eps).sqrt() * part.weight.detach().double()

    for block in range(2):
        output = model.blocks[block].attention.output.weight.detach().double()
        for head in range(3):
            own = slice(6 * head, 6 * head + 6)
            vector = torch.stack(
                [
                    output[:, own] @ z.double()
                    for z in stream.values[f"blocks.{block}.attention.z"][:, head]
                ]
            )
            place = sublayers.index(f"blocks.{block}.attention_residual")
            if before_adding:
                vector = through(f"{sublayers[place]}.{before_adding}", vector)
            if residual == "post-norm":
                for later in sublayers[place:]:
                    vector = through(f"{later}.norm", vector)
            # an MLP takes the place of all that was there before
            if residual in ("none", "norm-only"):
                vector = torch.zeros_like(vector)
            expected = (asked * through("head.final_norm", vector)).sum(-1)
            torch.testing.assert_close(
                added[f"blocks.{block}.attention.head.{head}"], expected, atol=1e-5, rtol=1e-5
            )


def test_parts_have_the_names_of_units_and_of_the_parameters_of_their_biases() -> None:
    stream = stream_of(
        scrambled(
            tiny(
                n_layer=1,
                residual="post-norm",
                positions="learned",
                embed_norm=True,
                norm_bias=True,
            )
        )
    )
    added = stream.added_by_parts(stream.pull(HEAD, directions(stream.model)))
    assert list(added) == [
        *("embed", "positions", "embed_norm.bias"),
        *(f"blocks.0.attention.head.{head}" for head in range(3)),
        *("blocks.0.attention.output.bias", "blocks.0.attention_residual.norm.bias"),
        *(
            "blocks.0.mlp",
            "blocks.0.mlp.down.bias",
            "blocks.0.mlp_residual.norm.bias",
            "head.final_norm.bias",
        ),
    ]
    for name in added:
        if name.endswith("bias"):
            assert stream.model.get_parameter(name) is not None


def test_a_head_is_split_by_the_tokens_it_reads_as_a_loop_does() -> None:
    model = scrambled(tiny(n_head=4, n_kv_head=2, d_head=5, n_encoder_layer=1))
    stream = stream_of(model)
    asked = directions(model)
    pulled = stream.pull(HEAD, asked)
    added = stream.added_by_parts(pulled)
    for layer in ("blocks.1.attention", "blocks.0.cross_attention"):
        shares = stream.sources(layer, pulled)  # [T, head, keys]
        output = stream.part(layer).output.weight.detach().double()
        for row, head in ((0, 1), (5, 2), (7, 3)):
            for key in range(shares.shape[-1]):
                value = (
                    stream.values[f"{layer}.v"][key, head // 2].double()
                    * stream.values[f"{layer}.pattern"][row, head, key]
                )
                expected = pulled[layer][row] @ output[:, 5 * head : 5 * head + 5] @ value
                torch.testing.assert_close(shares[row, head, key], expected, atol=1e-6, rtol=1e-6)
            torch.testing.assert_close(
                shares[row, head].sum(), added[f"{layer}.head.{head}"][row], atol=1e-5, rtol=1e-5
            )
    assert shares.shape[-1] == len(SOURCE)


@pytest.mark.parametrize("mlp", ["plain", "gated"])
def test_an_mlp_is_the_sum_of_its_neurons(mlp: str) -> None:
    stream = stream_of(scrambled(tiny(mlp=mlp)))
    pulled = stream.pull(HEAD, directions(stream.model))
    neurons = stream.neurons("blocks.0.mlp", pulled)  # [T, d_mlp]
    assert neurons.shape == (8, 20)
    torch.testing.assert_close(
        neurons.sum(-1), stream.added_by_parts(pulled)["blocks.0.mlp"], atol=1e-5, rtol=1e-5
    )


def test_some_positions_and_many_directions_give_the_same_as_all_and_one_by_one() -> None:
    model = scrambled(tiny(residual="post-norm"))
    asked = directions(model, 3)
    stream = stream_of(model)
    some = stream_of(model, [2, 5])
    together = stream.added_by_parts(stream.pull("blocks.1.mlp", asked))
    for index, each in enumerate(asked):
        alone, of_some = (
            one.added_by_parts(one.pull("blocks.1.mlp", d))
            for one, d in ((stream, each), (some, each[[2, 5]]))
        )
        for name, values in alone.items():
            torch.testing.assert_close(together[name][index], values)
            torch.testing.assert_close(of_some[name], values[[2, 5]], atol=1e-6, rtol=1e-6)


def test_what_the_head_reads_and_the_logits_are_the_models_own() -> None:
    for changes in (
        {},
        {"final_norm": False},
        {"n_layer": 0, "final_norm": False, "positions": "learned", "embed_scale": 2.0},
    ):
        model = scrambled(tiny(**changes))
        stream = stream_of(model, [4])
        torch.testing.assert_close(stream.final.double(), really_read(model)[HEAD][4])
        with torch.no_grad():
            torch.testing.assert_close(stream.logits, model(some_ids()[:1])[0, 4])


@settings(max_examples=20)
@given(families())
def test_a_frozen_norm_is_the_norm_where_it_was_frozen_and_linear_everywhere(
    config: Config,
) -> None:
    for norm in (part for part in scrambled(config).modules() if type(part) in NORMS.values()):
        assert isinstance(norm, Norm)
        at, a, b = torch.randn(
            3, 4, norm.shape[0], dtype=torch.float64, generator=torch.Generator().manual_seed(0)
        )
        gain = 1.0 if norm.weight is None else norm.weight.detach().double()
        bias = 0.0 if norm.bias is None else norm.bias.detach().double()
        torch.testing.assert_close(norm.norm_with_scale(at, at) * gain + bias, norm.double()(at))
        torch.testing.assert_close(
            norm.norm_with_scale(2 * a - b, at),
            2 * norm.norm_with_scale(a, at) - norm.norm_with_scale(b, at),
        )
