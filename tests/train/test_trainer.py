"""Training: the loss falls, one seed is one run however it is interrupted, and nothing goes wrong
silently.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gptviz.data.batches import Batch, Generated, consecutive_windows
from gptviz.data.trained_on import draw_seed
from gptviz.generate.generation import Generation
from gptviz.model import Transformer
from gptviz.text import task
from gptviz.train import trainer as training
from gptviz.train.divergence import DivergedError
from gptviz.train.evaluation import evaluate
from gptviz.train.trainer import Evaluated, Event, Stepped, Trainer
from tests.small_runs import OPTIMISERS, REPETITIVE, data, fresh, recipe, same, trainer, weights
from tests.tiny import CONTEXT, VOCAB, scrambled, some_ids, tiny


def curve(events: list[Event]) -> list[tuple[str, int, float]]:
    return [(type(event).__name__, event.step, event.loss) for event in events]


def stepped(events: list[Event]) -> list[Stepped]:
    return [event for event in events if isinstance(event, Stepped)]


def evaluated(events: list[Event]) -> list[Evaluated]:
    return [event for event in events if isinstance(event, Evaluated)]


@pytest.mark.parametrize(
    ("optimiser", "rate"), [("adamw", 2e-2), ("adam", 2e-2), ("sgd", 0.5), ("muon", 2e-2)]
)
def test_what_repeats_is_learned_until_nearly_nothing_is_left_to_learn(
    optimiser: str, rate: float
) -> None:
    model = fresh()
    events = list(
        trainer(model, steps=150, learning_rate=rate, optimiser=optimiser, weight_decay=0.01)
    )
    assert stepped(events)[0].loss == pytest.approx(math.log(VOCAB), abs=0.1)
    assert stepped(events)[-1].loss < 0.05
    final = evaluate(model, consecutive_windows(REPETITIVE[:50], CONTEXT))
    assert final.loss < 0.05
    assert final.accuracy == 1.0


def test_a_task_is_learned_to_its_floor_and_not_below() -> None:
    # Of four symbols mirrored the first is given, and one of the three predictions is a guess.
    mirrored = task("reversal", vocab=11, length=4)
    model = fresh(d_model=24, n_head=3)
    events = list(
        Trainer(model, Generated(mirrored), recipe(steps=400, batch_size=32, learning_rate=2e-2))
    )
    final = evaluated(events)[-1].evaluation
    assert mirrored.floor - 0.03 < final.loss < mirrored.floor + 0.05
    chance, *known = final.by_place()[:3]
    assert chance < 0.3
    assert known == pytest.approx([1.0, 1.0], abs=0.02)


def test_every_step_is_told_with_its_rate_and_evaluations_come_first_and_evenly() -> None:
    model = fresh()
    of = recipe(steps=30, evaluations=10)
    events = list(Trainer(model, data(), of))
    steps = stepped(events)
    assert [event.step for event in steps] == list(range(1, 31))
    assert [event.progress for event in steps] == pytest.approx(
        [step / 30 for step in range(1, 31)]
    )
    assert [event.learning_rate for event in steps] == pytest.approx(
        [of.rate(step / 30) for step in range(30)]
    )
    assert all(
        event.gradient_norm > 0 and event.tokens_per_second > 0 and event.seconds_left >= 0
        for event in steps
    )
    assert steps[-1].seconds_left == 0
    assert [event.step for event in evaluated(events)] == list(range(0, 31, 3))
    assert isinstance(events[0], Evaluated)
    assert (
        evaluated(events)[0].loss
        == evaluate(fresh(), consecutive_windows(REPETITIVE[:50], CONTEXT)).loss
    )
    assert (
        evaluated(events)[-1].loss
        == evaluate(model, consecutive_windows(REPETITIVE[:50], CONTEXT)).loss
    )


@pytest.mark.parametrize("evaluations", [1, 7, 58, 100, 300])
def test_there_are_as_many_evaluations_as_asked_or_one_after_every_step(evaluations: int) -> None:
    events = evaluated(list(trainer(fresh(n_layer=0), steps=100, evaluations=evaluations)))
    assert [event.step for event in events] == sorted(
        {0, *(-(-100 * i // evaluations) for i in range(1, evaluations + 1))}
    )


def test_while_a_run_goes_on_a_row_is_evaluated_for_every_tenth_trained_on_and_all_at_its_end() -> (
    None
):
    held_out = torch.arange(40_001) * 3 % VOCAB

    def begun() -> Trainer:
        return Trainer(
            fresh(), data(validation=held_out), recipe(steps=12, batch_size=2_500, evaluations=2)
        )

    rows = len(held_out) // CONTEXT
    unbroken = evaluated(list(begun()))
    assert [(event.step, event.share) for event in unbroken if event.share == 1] == [(12, 1)]
    for event in unbroken[:-1]:
        assert 0 < event.rows <= 6 * 2_500 / 10
        assert event.rows == event.evaluation.tokens / CONTEXT == event.share * rows
    first = begun()
    second = begun()
    broken = []
    for event in first:
        broken.append(event)
        if event.step == 3:
            break
    second.restore(first.state())
    again = [(event.step, event.loss, event.rows) for event in evaluated([*broken, *second])]
    assert again == [(event.step, event.loss, event.rows) for event in unbroken]


def test_little_data_is_evaluated_whole_each_time() -> None:
    assert [event.share for event in evaluated(list(trainer(fresh(), steps=4, evaluations=4)))] == [
        1
    ] * 5


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_one_seed_is_one_run_and_another_seed_another(dropout: float) -> None:
    told = []
    for seed in (1, 1, 2):
        model = fresh(dropout=dropout)
        told.append((curve(list(trainer(model, steps=8, seed=seed))), weights(model)))
    assert told[0][0] == told[1][0]
    assert same(told[0][1], told[1][1])
    assert told[0][0] != told[2][0]


def test_dropout_and_batches_differ_from_step_to_step() -> None:
    drawn = {
        draw_seed(seed, step, what)
        for seed in range(10)
        for step in range(100)
        for what in ("batch", "dropout")
    }
    assert len(drawn) == 2_000
    assert all(0 <= seed < 2**63 for seed in drawn)
    masks: list[Tensor] = []
    model = fresh(dropout=0.5)
    next(
        module for module in model.modules() if isinstance(module, nn.Dropout)
    ).register_forward_hook(
        lambda _, inputs, output: masks.append(output == 0) if model.training else None
    )
    list(trainer(model, steps=3))
    assert len(masks) == 3
    assert not torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[1], masks[2])


def test_watching_does_not_change_the_run() -> None:
    curves = []
    for watched in (False, True):
        model = fresh(dropout=0.5)
        events = []
        for event in trainer(model, steps=10):
            if watched:
                model.eval()
                torch.manual_seed(99)
                list(islice(Generation(model, REPETITIVE[:1]), 3))
            events.append(event)
        curves.append(curve(events))
    assert curves[0] == curves[1]


def test_two_runs_taking_turns_in_one_process_are_as_one_after_the_other() -> None:
    settings = ({"seed": 3}, {"seed": 4, "optimiser": "muon"})
    alone = [curve(list(trainer(fresh(dropout=0.5), steps=10, **each))) for each in settings]
    turns = zip(*(trainer(fresh(dropout=0.5), steps=10, **each) for each in settings), strict=True)
    one, other = zip(*turns, strict=True)
    assert [curve(list(one)), curve(list(other))] == alone
    assert alone[0] != alone[1]


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("stop", [1, 6, 7])  # an evaluation is due after 6
def test_stopping_and_going_on_is_never_having_stopped_to_the_bit(
    optimiser: str, stop: int
) -> None:
    settings = {"steps": 12, "optimiser": optimiser, "evaluations": 4, "clip": 0.5}
    model = fresh(dropout=0.5)
    unbroken = list(trainer(model, **settings))
    begun = trainer(fresh(dropout=0.5), **settings)
    first = []
    for event in begun:
        first.append(event)
        if isinstance(event, Stepped) and event.step == stop:
            break
    state = {name: value.clone() for name, value in begun.state().items()}
    list(begun)  # whoever goes on by the old trainer does not change what was kept
    other = scrambled(tiny(n_layer=1, dropout=0.5), seed=9)
    resumed = trainer(other, **settings)
    resumed.restore(state)
    assert (resumed.step, resumed.seconds) == (stop, stepped(first)[-1].seconds)
    assert curve([*first, *resumed]) == curve(unbroken)
    assert same(weights(other), weights(model))


def test_a_trainer_iterated_again_goes_on_where_it_was() -> None:
    unbroken = curve(list(trainer(fresh(dropout=0.5), steps=9)))
    run = trainer(fresh(dropout=0.5), steps=9)
    assert curve([*islice(run, 7), *run]) == unbroken
    assert list(run) == []


def test_a_state_from_before_the_first_step_begins_anew() -> None:
    run = trainer(fresh(), steps=5)
    run.restore(trainer(fresh(), steps=5).state())
    assert curve(list(run)) == curve(list(trainer(fresh(), steps=5)))


HOSTILE = {
    "another model": lambda state: state | {"weights.embed.weight": torch.zeros(3, 3)},
    "no weights": lambda state: {
        name: value for name, value in state.items() if not name.startswith("weights.")
    },
    "no step": lambda state: {name: value for name, value in state.items() if name != "step"},
    "no seconds": lambda state: {name: value for name, value in state.items() if name != "seconds"},
    "a step that is no number": lambda state: state | {"step": torch.tensor(math.nan)},
    "a step before the first": lambda state: state | {"step": torch.tensor(-3)},
    "many steps": lambda state: state | {"step": torch.tensor([1, 2])},
    "complex seconds": lambda state: state | {"seconds": torch.tensor(1j)},
    "endless seconds": lambda state: state | {"seconds": torch.tensor(math.inf)},
    "another optimiser": lambda state: {
        name: value for name, value in state.items() if "exp_avg_sq" not in name
    },
    "misshapen memory": lambda state: {
        n: torch.zeros(2) if "exp_avg" in n else v for n, v in state.items()
    },
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_state_of_another_run_is_refused_and_changes_nothing(kind: str) -> None:
    run = trainer(fresh(), steps=5)
    list(islice(run, 3))
    state = HOSTILE[kind]({name: value.clone() for name, value in run.state().items()})
    model = scrambled(tiny(n_layer=1))
    before = weights(model)
    with pytest.raises(
        ValueError, match="the saved state|what the optimiser remembers is of another"
    ):
        trainer(model, steps=5).restore(state)
    assert same(weights(model), before)


def test_a_step_is_adamw_on_the_clipped_gradient_of_the_cross_entropy() -> None:
    of = recipe(steps=2, warmup=0.0, clip=0.05, weight_decay=0.3, batch_size=3)
    model = fresh()
    other = fresh()
    # One window alone fits this text, so the batch is known.
    first = next(
        event
        for event in Trainer(model, data(REPETITIVE[: CONTEXT + 1]), of)
        if isinstance(event, Stepped)
    )
    window = REPETITIVE[: CONTEXT + 1].expand(3, -1)
    logits = other(window[:, :-1])
    loss = -sum(
        F.log_softmax(logits[b, t], -1)[window[b, t + 1]] for b in range(3) for t in range(CONTEXT)
    ) / (3 * CONTEXT)
    loss.backward()
    assert first.loss == pytest.approx(loss.item(), rel=1e-5)
    norm = math.sqrt(
        sum(p.grad.square().sum().item() for p in other.parameters() if p.grad is not None)
    )
    assert first.gradient_norm == pytest.approx(norm, rel=1e-4)
    assert norm > of.clip
    for name, parameter in other.named_parameters():
        gradient = parameter.grad * of.clip / norm
        # Adam's first step: both moments, corrected for their start at zero, are the gradient and
        # its square.
        decay = 1 - of.learning_rate * (of.weight_decay if parameter.dim() > 1 else 0.0)
        expected = parameter * decay - of.learning_rate * gradient / (gradient.abs() + 1e-8)
        torch.testing.assert_close(model.get_parameter(name), expected, rtol=1e-3, atol=2e-5)


def test_the_loss_of_a_step_is_the_mean_over_what_counts_alone() -> None:
    adding = Generated(task("addition", digits=1))
    model = scrambled(tiny(vocab_size=12))
    run = Trainer(model, adding, recipe(batch_size=5))
    (inputs,), targets = adding.training(5, draw_seed(0, 0, "batch"))
    with torch.no_grad():
        chosen = model(inputs).log_softmax(-1)  # [5, T, vocab_size]
    counted = [
        (row, place)
        for row in range(5)
        for place in range(targets.shape[1])
        if targets[row, place] >= 0
    ]
    expected = -sum(chosen[row, place, targets[row, place]].item() for row, place in counted) / len(
        counted
    )
    assert len(counted) == 10 < targets.numel()
    loss, _, tokens = run.advance()
    assert (loss, tokens) == (pytest.approx(expected, rel=1e-5), 10)


def test_a_run_stopped_early_leaves_the_model_of_its_last_step_ready_to_use() -> None:
    model = fresh(dropout=0.5)
    kept = []
    for event in trainer(model, steps=1_000):
        kept.append(weights(model))
        if event.step == 5:
            break
    assert not model.training
    assert same(weights(model), kept[-1])
    assert not same(kept[-1], kept[-2])
    assert len(list(islice(Generation(model, REPETITIVE[:1]), 5))) == 5


def test_a_finished_run_leaves_the_model_in_evaluation_mode() -> None:
    model = fresh(dropout=0.5)
    list(trainer(model, steps=1))
    assert not any(module.training for module in model.modules())


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_an_absurd_rate_is_said_to_have_diverged_with_what_to_change(optimiser: str) -> None:
    model = fresh()
    with pytest.raises(
        DivergedError,
        match=r"no longer a number after \d+ steps. To change: lower the learning rate \(1e\+30\)",
    ):
        list(trainer(model, learning_rate=1e30, optimiser=optimiser))
    assert not model.training


def test_a_validation_loss_that_is_no_number_is_divergence_and_no_event() -> None:
    events = iter(trainer(fresh(), steps=2, evaluations=1, learning_rate=1e30))
    # The second step's own loss is still that of the weights before it.
    assert [type(next(events)) for _ in range(3)] == [Evaluated, Stepped, Stepped]
    with pytest.raises(DivergedError, match="after 2 steps"):
        next(events)


def test_weights_that_are_no_numbers_are_said_before_the_first_step() -> None:
    model = scrambled(tiny())
    model.embed.weight.data[0, 0] = math.nan
    with pytest.raises(DivergedError, match="after 0 steps"):
        list(trainer(model))


@pytest.mark.parametrize("factor", [math.inf, math.nan])
def test_a_gradient_that_is_no_number_never_reaches_the_weights(factor: float) -> None:
    model = fresh()
    run = trainer(model)
    list(islice(run, 4))
    before = weights(model)
    model.head.unembed.weight.register_hook(lambda gradient: gradient * factor)
    with pytest.raises(DivergedError, match="or its gradient is no longer a number after 3 steps"):
        list(run)
    assert same(weights(model), before)


class Slow(nn.Module):
    """A model that takes two seconds of a clock for each batch."""

    def __init__(self, model: Transformer, clock: list[float]) -> None:
        super().__init__()
        self.model = model
        self.clock = clock

    def forward(self, ids: Tensor) -> Any:
        self.clock[0] += 2.0
        return self.model(ids)


def test_a_run_of_minutes_ends_by_the_clock_and_waiting_readers_do_not_shorten_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr(training.time, "perf_counter", lambda: clock[0])
    of = recipe(steps=None, minutes=1.0, evaluations=4)
    model = fresh()
    events = []
    for event in Trainer(model, data(), of, forward=Slow(model, clock)):
        events.append(event)
        clock[0] += 100.0  # a reader that takes its time
    steps = stepped(events)
    assert len(steps) == 30
    assert [event.seconds for event in steps] == pytest.approx(
        [2.0 * step for step in range(1, 31)]
    )
    assert [event.seconds_left for event in steps] == pytest.approx(
        [60 - 2.0 * step for step in range(1, 31)]
    )
    assert [event.tokens_per_second for event in steps] == pytest.approx([4 * CONTEXT / 2.0] * 30)
    assert [event.step for event in evaluated(events)] == [0, 8, 15, 23, 30]
    assert [event.learning_rate for event in steps] == pytest.approx(
        [of.rate(step / 30) for step in range(30)]
    )


def test_times_are_told_as_well_after_going_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(training.time, "perf_counter", lambda: clock[0])
    models = [fresh(), fresh()]
    before, after = (
        Trainer(model, data(), recipe(steps=20), forward=Slow(model, clock)) for model in models
    )
    list(islice(before, 8))
    after.restore(before.state())
    steps = stepped(list(after))
    assert [event.tokens_per_second for event in steps] == pytest.approx(
        [4 * CONTEXT / 2.0] * len(steps)
    )
    assert [event.seconds for event in steps] == pytest.approx(
        [2.0 * event.step for event in steps]
    )
    assert [event.seconds_left for event in steps] == pytest.approx(
        [2.0 * (20 - event.step) for event in steps]
    )


def test_a_clock_too_coarse_to_move_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training.time, "perf_counter", lambda: 5.0)
    assert len(list(islice(trainer(fresh(), steps=None, minutes=1.0), 3))) == 3


def test_bfloat16_runs_in_the_products_and_leaves_weights_and_evaluation_in_float32() -> None:
    model = fresh()
    seen = []
    model.blocks[0].attention.qkv.register_forward_hook(
        lambda *arguments: seen.append(arguments[2].dtype)
    )
    list(
        Trainer(
            model, data(validation=REPETITIVE[:9]), recipe(steps=2, evaluations=1), bfloat16=True
        )
    )
    assert seen == [torch.float32, torch.bfloat16, torch.bfloat16, torch.float32]
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_a_model_that_looks_ahead_learns_to_copy_what_it_should_predict() -> None:
    # On noise nothing can be predicted: the seed's experiment with the mask off.
    noise = some_ids(600, batch=1)[0]
    losses = {}
    for mask in ("causal", "full"):
        model = fresh(mask=mask, d_model=24)
        list(
            Trainer(
                model, data(noise, noise[:50]), recipe(steps=150, learning_rate=2e-2, evaluations=1)
            )
        )
        losses[mask] = evaluate(
            model, consecutive_windows(some_ids(400, batch=1, seed=1)[0], CONTEXT)
        ).loss
    assert losses["causal"] > 2.3
    assert losses["full"] < 1.7


def test_a_batch_reaches_the_model_as_the_data_drew_it() -> None:
    drawn: list[Batch] = []

    class Watched:
        def training(self, size: int, seed: int) -> Batch:
            drawn.append(data().training(size, seed))
            return drawn[-1]

        def validation(self) -> Any:
            return data().validation()

        def trained_on(self) -> Any:
            return ()

    list(Trainer(fresh(), Watched(), recipe(steps=4, batch_size=6)))
    assert [len(batch.targets) for batch in drawn] == [6] * 4
    assert len({tuple(batch.targets.flatten().tolist()) for batch in drawn}) == 4
