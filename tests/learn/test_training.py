"""Training: the schedule is its formula, the loss falls, one seed is one run, and nothing stops it silently."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from gptviz.learn import training
from gptviz.learn.evaluation import evaluate
from gptviz.learn.generation import Generation
from gptviz.learn.plans import PLANS
from gptviz.learn.training import Diverged, Evaluated, Recipe, Stepped, batches, optimiser, train, use_bfloat16
from gptviz.model import PRESETS, Transformer, build
from tests.tiny import CONTEXT, VOCAB, scrambled, some_ids, tiny

# Eleven tokens over and over: all but the first of a window can be known.
REPETITIVE = torch.arange(400) * 3 % VOCAB


def recipe(**changes: Any) -> Recipe:
    return Recipe(**{"steps": 30, "batch_size": 4, "learning_rate": 1e-2, "precision": "float32"} | changes)


def fresh(**changes: Any) -> Transformer:
    return build(tiny(n_layer=1, **changes), seed=0)


@pytest.mark.parametrize(("warmup", "final_rate"), [(0.05, 0.1), (0.5, 0.0), (0.0, 1.0)])
def test_the_rate_rises_linearly_and_falls_along_a_cosine(warmup: float, final_rate: float) -> None:
    of = recipe(learning_rate=0.3, warmup=warmup, final_rate=final_rate)
    for hundredth in range(101):
        progress = hundredth / 100
        if progress < warmup:
            expected = 0.3 * progress / warmup
        else:
            falling = (progress - warmup) / (1 - warmup)
            expected = 0.3 * final_rate + 0.3 * (1 - final_rate) * math.cos(falling * math.pi / 2) ** 2
        assert of.rate(progress) == pytest.approx(expected, abs=1e-12)
    assert of.rate(warmup) == pytest.approx(0.3)
    assert of.rate(1) == pytest.approx(0.3 * final_rate)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"steps": None}, "steps or of minutes, and not both"),
        ({"minutes": 1.0}, "steps or of minutes, and not both"),
        ({"steps": None, "minutes": 0.0}, "minutes is 0"),
        ({"steps": None, "minutes": math.nan}, "minutes is nan"),
        ({"steps": None, "minutes": math.inf}, "minutes is inf"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"learning_rate": 0.0}, "learning_rate is 0"),
        ({"learning_rate": math.nan}, "learning_rate is nan"),
        ({"warmup": 1.0}, "warmup is 1.0"),
        ({"warmup": -0.1}, "warmup is -0.1"),
    ],
)
def test_an_impossible_setting_is_named_with_its_value(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        recipe(**changes)


def test_what_repeats_is_learned_until_nearly_nothing_is_left_to_learn() -> None:
    model = fresh()
    events = list(train(model, REPETITIVE, REPETITIVE[:100], recipe(steps=150, learning_rate=2e-2)))
    steps = [event for event in events if isinstance(event, Stepped)]
    assert steps[0].loss == pytest.approx(math.log(VOCAB), abs=0.1)
    assert steps[-1].loss < 0.02
    assert evaluate(model, REPETITIVE[:100])[0] < 0.02


def test_every_step_is_told_with_its_rate_and_every_tenth_of_the_run_is_evaluated() -> None:
    model, of = fresh(), recipe(steps=30, evaluations=10)
    events = list(train(model, REPETITIVE, REPETITIVE[:50], of))
    steps = [event for event in events if isinstance(event, Stepped)]
    assert [event.step for event in steps] == list(range(1, 31))
    assert [event.progress for event in steps] == pytest.approx([step / 30 for step in range(1, 31)])
    assert [event.learning_rate for event in steps] == pytest.approx([of.rate(step / 30) for step in range(30)])
    assert all(event.gradient_norm > 0 and event.tokens_per_second > 0 and event.seconds_left >= 0 for event in steps)
    assert steps[-1].seconds_left == 0
    evaluated = [event for event in events if isinstance(event, Evaluated)]
    assert [event.step for event in evaluated] == list(range(3, 31, 3))
    assert isinstance(events[-1], Evaluated)
    assert events[-1].loss == evaluate(model, REPETITIVE[:50])[0]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_one_seed_is_one_run_and_another_seed_another(dropout: float) -> None:
    runs = []
    for seed in (1, 1, 2):
        model = fresh(dropout=dropout)
        losses = [event.loss for event in train(model, REPETITIVE, REPETITIVE[:20], recipe(steps=8, seed=seed))]
        runs.append((losses, model.state_dict()))
    assert runs[0][0] == runs[1][0]
    assert all(torch.equal(value, runs[1][1][name]) for name, value in runs[0][1].items())
    assert runs[0][0] != runs[2][0]


def test_watching_does_not_change_the_run() -> None:
    final = []
    for watched in (False, True):
        model = fresh(dropout=0.5)
        for event in train(model, REPETITIVE, REPETITIVE[:20], recipe(steps=10)):
            if watched:
                model.eval()
                list(islice(Generation(model, REPETITIVE[:1]), 3))
            if isinstance(event, Evaluated):
                final.append(event.loss)
    assert len(final) == 20
    assert final[:10] == final[10:]


def test_a_step_is_adamw_on_the_clipped_gradient_of_the_cross_entropy() -> None:
    of = recipe(steps=2, warmup=0.0, clip=0.05, weight_decay=0.3, batch_size=3)
    model, other = fresh(), fresh()
    (first, *_) = train(model, REPETITIVE[: CONTEXT + 1], REPETITIVE[:20], of)
    # One window alone fits this text, so the batch is known.
    window = REPETITIVE[: CONTEXT + 1].expand(3, -1)
    logits = other(window[:, :-1])
    loss = -sum(F.log_softmax(logits[b, t], -1)[window[b, t + 1]] for b in range(3) for t in range(CONTEXT)) / (3 * CONTEXT)
    loss.backward()
    assert isinstance(first, Stepped)
    assert first.loss == pytest.approx(loss.item(), rel=1e-5)
    norm = math.sqrt(sum(p.grad.square().sum().item() for p in other.parameters() if p.grad is not None))
    assert first.gradient_norm == pytest.approx(norm, rel=1e-4)
    assert norm > of.clip
    model = fresh()
    running = train(model, REPETITIVE[: CONTEXT + 1], REPETITIVE[:20], of)
    next(running)
    for name, parameter in other.named_parameters():
        assert parameter.grad is not None
        gradient = parameter.grad * of.clip / norm
        # Adam's first step: both moments, corrected for their start at zero, are the gradient and its square.
        decay = 1 - of.learning_rate * (of.weight_decay if parameter.dim() > 1 else 0.0)
        expected = parameter * decay - of.learning_rate * gradient / (gradient.abs() + 1e-8)
        torch.testing.assert_close(model.get_parameter(name), expected, rtol=1e-3, atol=2e-5)


def test_matrices_decay_and_biases_and_gains_do_not() -> None:
    model = fresh(positions="relative", unembed_bias=True)
    groups = optimiser(model, recipe(weight_decay=0.2)).param_groups
    decay = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    assert len(decay) == len(list(model.parameters()))
    for name, parameter in model.named_parameters():
        is_matrix = name.endswith(("embed.weight", "qkv.weight", "output.weight", "up.weight", "down.weight", "table"))
        assert decay[id(parameter)] == (0.2 if is_matrix or name == "head.unembed.weight" else 0.0), name
    assert all(group["fused"] for group in groups)


def test_every_window_of_the_text_is_drawn_the_last_one_too_and_each_as_often() -> None:
    ids = torch.arange(30)
    drawn = torch.cat(list(islice(batches(ids, CONTEXT, 50, torch.Generator().manual_seed(0)), 44)))
    assert drawn.shape == (2_200, CONTEXT + 1)
    assert (drawn.diff() == 1).all()
    counts = drawn[:, 0].bincount()
    assert len(counts) == 30 - CONTEXT
    # 100 expected of each; five standard deviations.
    assert counts.min() > 50
    assert counts.max() < 150


@pytest.mark.parametrize("length", [0, 1, CONTEXT])
def test_a_text_no_longer_than_the_context_is_refused_with_both_numbers(length: int) -> None:
    model = fresh()
    with pytest.raises(ValueError, match=f"has {length} tokens to train on; a context of 8 needs at least 9"):
        next(train(model, REPETITIVE[:length], REPETITIVE, recipe()))
    assert not model.training
    assert isinstance(next(train(model, REPETITIVE[: CONTEXT + 1], REPETITIVE, recipe())), Stepped)


def test_a_text_too_short_to_validate_is_refused_before_training() -> None:
    with pytest.raises(ValueError, match="the text to validate has 1 tokens"):
        next(train(fresh(), REPETITIVE, REPETITIVE[:1], recipe()))


def test_a_run_stopped_early_leaves_the_model_of_its_last_step_ready_to_use() -> None:
    model = fresh(dropout=0.5)
    weights = []
    for event in train(model, REPETITIVE, REPETITIVE[:50], recipe(steps=1_000)):
        weights.append(model.embed.weight.detach().clone())
        if event.step == 5:
            break
    assert not model.training
    assert torch.equal(model.embed.weight, weights[-1])
    assert not torch.equal(weights[-1], weights[-2])
    assert len(list(islice(Generation(model, REPETITIVE[:1]), 5))) == 5


def test_a_finished_run_leaves_the_model_in_evaluation_mode() -> None:
    model = fresh(dropout=0.5)
    list(train(model, REPETITIVE, REPETITIVE[:50], recipe(steps=1)))
    assert not any(module.training for module in model.modules())


def test_an_absurd_rate_is_said_to_have_diverged_with_what_to_change() -> None:
    model = fresh()
    with pytest.raises(Diverged, match=r"no longer a number after \d+ steps: lower the learning rate \(1e\+30\)"):
        list(train(model, REPETITIVE, REPETITIVE[:50], recipe(learning_rate=1e30)))
    assert not model.training


def test_a_validation_loss_that_is_no_number_is_divergence_and_no_event() -> None:
    events = train(fresh(), REPETITIVE, REPETITIVE[:50], recipe(steps=2, evaluations=1, learning_rate=1e30))
    # The second step's own loss is still that of the weights before it.
    assert [type(next(events)) for _ in range(2)] == [Stepped, Stepped]
    with pytest.raises(Diverged, match="after 2 steps"):
        next(events)


def test_weights_that_are_no_numbers_are_said_at_the_first_step() -> None:
    model = scrambled(tiny())
    model.embed.weight.data[0, 0] = math.nan
    with pytest.raises(Diverged, match="after 0 steps"):
        list(train(model, REPETITIVE, REPETITIVE[:50], recipe()))


def test_a_gradient_that_is_no_number_never_reaches_the_weights() -> None:
    model = fresh()
    model.head.unembed.weight.register_hook(lambda gradient: gradient * math.inf)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(Diverged, match="or its gradient is no longer a number"):
        list(train(model, REPETITIVE, REPETITIVE[:50], recipe()))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_run_of_minutes_ends_by_the_clock_and_waiting_readers_do_not_shorten_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(training.time, "perf_counter", lambda: clock[0])
    of = recipe(steps=None, minutes=1.0, evaluations=4)
    steps, evaluations = [], []
    forward_model = fresh()

    def slow(ids: torch.Tensor) -> torch.Tensor:
        clock[0] += 2.0
        return forward_model(ids)

    for event in train(forward_model, REPETITIVE, REPETITIVE[:50], of, forward=slow):
        (steps if isinstance(event, Stepped) else evaluations).append(event)
        clock[0] += 100.0  # a reader that takes its time
    assert len(steps) == 30
    assert [event.seconds for event in steps] == pytest.approx([2.0 * step for step in range(1, 31)])
    assert [event.seconds_left for event in steps] == pytest.approx([60 - 2.0 * step for step in range(1, 31)])
    assert [event.tokens_per_second for event in steps] == pytest.approx([4 * CONTEXT / 2.0] * 30)
    assert [event.step for event in evaluations] == [8, 15, 23, 30]


def test_a_clock_too_coarse_to_move_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training.time, "perf_counter", lambda: 5.0)
    assert len(list(islice(train(fresh(), REPETITIVE, REPETITIVE[:50], recipe(steps=None, minutes=1.0)), 3))) == 3


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_bfloat16_is_taken_where_the_processor_has_it_or_where_asked(has_bfloat16: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": has_bfloat16})
    assert use_bfloat16("auto", cpu) is has_bfloat16
    assert use_bfloat16("bfloat16", cpu) is True
    assert use_bfloat16("float32", cpu) is False
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    assert use_bfloat16("auto", cpu) is False
    assert use_bfloat16("auto", torch.device("mps")) is False


def test_bfloat16_runs_in_the_products_and_leaves_weights_and_evaluation_in_float32() -> None:
    model = fresh()
    seen = []
    model.blocks[0].attention.qkv.register_forward_hook(lambda *arguments: seen.append(arguments[2].dtype))
    for _ in train(model, REPETITIVE, REPETITIVE[:9], recipe(steps=2, evaluations=1, precision="bfloat16")):
        pass
    assert seen == [torch.bfloat16, torch.bfloat16, torch.float32]
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_a_model_that_looks_ahead_learns_to_copy_what_it_should_predict() -> None:
    # On noise nothing can be predicted: the seed's experiment with the mask off.
    noise = some_ids(600, batch=1)[0]
    losses = {}
    for mask in ("causal", "full"):
        model = fresh(mask=mask, d_model=24)
        list(train(model, noise, noise[:50], recipe(steps=150, learning_rate=2e-2)))
        losses[mask] = evaluate(model, some_ids(400, batch=1, seed=1)[0])[0]
    assert losses["causal"] > 2.3
    assert losses["full"] < 1.7


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_has_a_plan_that_learns_its_tokens_from_the_text(name: str) -> None:
    text = "to be or not to be, that is the question:\n" * 30
    config, tokenizer = PLANS[name].prepare(name, text)
    assert tokenizer.decode(tokenizer.encode_ids(text)) == text
    assert config.vocab_size == tokenizer.vocab_size
    assert config.to_dict() | {"vocab_size": 0} == PRESETS[name].to_dict() | {"vocab_size": 0}
