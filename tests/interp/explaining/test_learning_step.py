"""One step of learning: its slopes against finite differences and `backward`, its step against the
trainer's own.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import gptviz
from gptviz.data.batches import Batch
from gptviz.interp.changing.edits import edit_model, edits
from gptviz.interp.explaining.learning_step import POINTS, LearningStep, learning_step, parts_of
from gptviz.model import Config, Transformer
from gptviz.model.lora import AdaptedTransformer, MergedTransformer, every_matrix
from gptviz.runs import checkpoints
from gptviz.train.recipe import Recipe
from gptviz.train.trainer import Trainer
from tests.examples import quick, tried
from tests.tiny import TinyModel, configs, scrambled, some_ids, tiny

DECODERS = [
    path.name
    for path in sorted(checkpoints.BUNDLED.iterdir())
    if checkpoints.read_config(path).kind == "decoder"
]
IDS = some_ids(9, 1)[0].tolist()


class OneText:
    """Data of one text, which every batch is."""

    def __init__(self, ids: list[int]) -> None:
        text = torch.tensor([ids])
        self.batch = Batch((text[:, :-1],), text[:, 1:])

    def training(self, size: int, seed: int) -> Batch:
        """The text."""
        return self.batch

    def validation(self) -> list[Batch]:
        """The text."""
        return [self.batch]

    trained_on = validation


def loss(model: Transformer, ids: list[int]) -> Tensor:
    """The mean loss of the guesses."""
    text = torch.tensor([ids])
    return F.cross_entropy(model(text[:, :-1])[0], text[0, 1:])


@tried(8, 80, config=configs())
def test_the_slope_is_that_of_finite_differences_and_the_mean_of_all_pulls(config: Config) -> None:
    model = scrambled(config)
    exact = copy.deepcopy(model).double()
    for part, shape in list(parts_of(model).items())[:: max(1, len(parts_of(model)) // 3)]:
        found = learning_step(model, IDS, part)
        at = found.at
        h = 1e-5
        assert len(at) == len(shape)
        weight = exact.get_parameter(part)
        with torch.no_grad():
            own = weight[at].item()
            weight[at] = own + h
            above = loss(exact, IDS).item()
            weight[at] = own - h
            below = loss(exact, IDS).item()
            weight[at] = own
        assert found.slope == pytest.approx((above - below) / (2 * h), abs=1e-6)
        assert found.pulls.mean() == pytest.approx(found.slope, abs=1e-12)
        assert found.curve[POINTS // 2] == pytest.approx(found.loss, abs=1e-12)


def test_it_is_backward_at_the_logits_at_every_block_and_at_every_weight() -> None:
    model = scrambled(tiny()).double()
    text = torch.tensor([IDS])
    streams: list[Tensor] = []

    def keep(module: nn.Module, given: Any, x: Any) -> None:
        x.retain_grad()
        streams.append(x)

    hooks = [block.register_forward_hook(keep) for block in model.blocks]
    logits = model(text[:, :-1])
    for hook in hooks:
        hook.remove()
    logits.retain_grad()
    F.cross_entropy(logits[0], text[0, 1:]).backward()
    for part, parameter in model.named_parameters():
        found = learning_step(model, IDS, part)
        assert parameter.grad is not None
        assert found.slope == pytest.approx(parameter.grad[found.at].item(), abs=1e-7)
        assert abs(found.slope) == pytest.approx(parameter.grad.abs().max().item(), abs=1e-7)
    assert logits.grad is not None
    np.testing.assert_allclose(found.error / len(found.losses), logits.grad[0].numpy(), atol=1e-7)
    lengths = [stream.grad[0].norm(dim=-1).numpy() for stream in streams if stream.grad is not None]
    np.testing.assert_allclose(found.reaching[1:], lengths, atol=1e-6)


@pytest.mark.parametrize("optimiser", ["adamw", "adam", "sgd", "muon"])
@pytest.mark.parametrize(
    "changes", [{}, {"residual": "post-norm", "positions": "rotary", "d_head": 4, "tied": True}]
)
def test_the_loss_after_is_that_of_the_trainers_own_step_to_the_last_bit(
    optimiser: Any, changes: dict[str, Any]
) -> None:
    model = scrambled(tiny(**changes))
    recipe = Recipe(steps=2, optimiser=optimiser, precision="float32")
    part = "blocks.1.attention.qkv.weight"
    found = learning_step(model, IDS, part, (3, 2), recipe)
    before = copy.deepcopy(model.state_dict())
    trainer = Trainer(model, OneText(IDS), recipe)
    first, norm, _ = trainer.advance(recipe.learning_rate)
    assert (found.loss_before, found.norm) == (first, norm)
    assert found.before == before[part][3, 2].item()
    assert found.after == model.get_parameter(part)[3, 2].item()
    assert found.loss_after == trainer.advance(recipe.learning_rate)[0]


@pytest.mark.parametrize("name", quick(DECODERS, "ladder-0", "induction", "jobs-10"))
def test_every_shipped_decoder_has_one(name: str) -> None:
    lm = gptviz.load(name)
    prompt = "7 3 1 4" if lm.tokenizer.kind == "symbols" else "the nurse said he"
    found: LearningStep = lm.learning_step(prompt, next(iter(parts_of(lm.model))))
    assert found.loss == pytest.approx(found.loss_before, abs=1e-4)
    assert found.pulls.mean() == pytest.approx(found.slope, rel=1e-9)
    assert np.isfinite([*found.curve, found.loss_after]).all()


def test_the_model_stays_as_it_is_and_what_cannot_be_is_named() -> None:
    model = scrambled(tiny(dropout=0.5))
    before = copy.deepcopy(model.state_dict())
    learning_step(model, IDS, "embed.weight")
    assert not model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    for ids, part, at, said in (
        (IDS[:1], "embed.weight", None, "at least two tokens"),
        (IDS, "embed.bias", None, "no weights called 'embed.bias'; it has embed.weight"),
        (IDS, "embed.weight", (0,), r"no weight at \(0,\); its shape is \(11, 12\)"),
        (IDS, "embed.weight", (0, 12), "no weight at"),
    ):
        with pytest.raises(ValueError, match=said):
            learning_step(model, ids, part, at)


@pytest.mark.parametrize("strength", [1.0, 0.5, 0.0])
def test_of_an_adapter_only_the_adapter_takes_the_step_that_its_training_would_take(
    strength: float,
) -> None:
    base = scrambled(tiny())
    adapter = AdaptedTransformer(base, every_matrix(base.config, 2), seed=1)
    with torch.no_grad():
        for parameter in adapter.parameters():
            parameter.normal_(0, 0.3, generator=torch.Generator().manual_seed(1))
    merged = MergedTransformer(base, adapter.adapter, strength)
    shapes = {name: tuple(parameter.shape) for name, parameter in adapter.named_parameters()}
    assert parts_of(merged) == shapes
    with pytest.raises(ValueError, match=r"no weights called 'embed.weight'; it has blocks"):
        learning_step(merged, IDS, "embed.weight")
    with torch.no_grad():  # the strength is a part of B
        for name, parameter in adapter.named_parameters():
            parameter *= strength if name.endswith("lora_b") else 1
    part = "blocks.1.mlp.down.lora_b"
    found = learning_step(merged, IDS, part)
    recipe = Recipe(steps=2, precision="float32")
    before = adapter.get_parameter(part)[found.at].item()
    trainer = Trainer(adapter, OneText(IDS), recipe)
    first, norm, _ = trainer.advance(recipe.learning_rate)
    assert (found.loss, found.loss_before, found.norm) == pytest.approx((first, first, norm), 1e-5)
    assert found.before == before
    assert found.after == pytest.approx(adapter.get_parameter(part)[found.at].item(), 1e-5)
    assert found.loss_after == pytest.approx(trainer.advance(recipe.learning_rate)[0], 1e-5)


def test_edits_of_an_adapter_act_in_its_step_too() -> None:
    base = scrambled(tiny())
    adapter = AdaptedTransformer(base, every_matrix(base.config, 2)).adapter
    merged = MergedTransformer(base, adapter)
    without = edit_model(merged, edits(["blocks.1.mlp", "weights=8bit.g32"], base.config))
    found = learning_step(without, IDS, "blocks.0.mlp.down.lora_b")
    assert found.loss == pytest.approx(loss(without, IDS).item(), 1e-5)
    assert learning_step(without, IDS, "blocks.1.mlp.down.lora_b").slope == 0


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_weights_in_fewer_bytes_take_the_step_of_the_same_numbers_in_float32(
    precision: str, tiny_model: TinyModel
) -> None:
    folder = tiny_model()
    lm = gptviz.load(folder, precision=precision)
    whole = scrambled(lm.model.config)
    whole.load_state_dict({name: value.float() for name, value in lm.model.state_dict().items()})
    for part in parts_of(whole):
        one = learning_step(lm.model, IDS, part)
        other = learning_step(whole, IDS, part)
        assert (one.slope, one.after) == pytest.approx((other.slope, other.after), 1e-6)
