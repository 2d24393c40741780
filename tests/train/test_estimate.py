"""What a run will take, against what runs took: torch's own count of operations, and real memory,
files and time.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from gptviz.data.batches import EVALUATION_TOKENS
from gptviz.machine.memory import free_bytes, in_bytes
from gptviz.model import Config, Transformer, build, preset
from gptviz.model.lora import AdaptedTransformer, every_matrix
from gptviz.train import estimate, optimisers
from gptviz.train.estimate import Speed, refusal
from gptviz.train.recipe import Recipe
from gptviz.train.trainer import Trainer
from tests.examples import quick
from tests.tiny import configs, some_ids, tiny

ROOT = Path(__file__).resolve().parents[2]
SPEED = Speed(flops=50e9, bytes=4e9, overhead=20e-6)


def counted_by_torch(config: Config, rows: int, tokens: int) -> int:
    """The operations of a real step over random tokens, as torch counts them."""
    model = build(config, seed=0).train()
    ids = some_ids(tokens, rows, config.vocab_size)
    with FlopCounterMode(display=False) as counter:
        logits = model(ids, ids if config.n_encoder_layer else None)
        logits.float().logsumexp(-1).sum().backward()
    return int(counter.get_total_flops())


@given(config=configs())
@settings(max_examples=15)
def test_the_operations_of_a_step_are_those_torch_counts(config: Config) -> None:
    assert estimate.step_work(config, 3, 7).flops == counted_by_torch(config, 3, 7)


LABELS: dict[str, Any] = {"mask": "full", "padding": 0, "n_label": 3}
SHAPES: list[dict[str, Any]] = [
    *({"n_layer": n_layer} for n_layer in (0, 1, 2, 5)),
    *(
        {**LABELS, "head": head, "n_layer": n_layer}
        for head in ("flatten", "mean", "sum")
        for n_layer in (1, 4)
    ),
    *(
        {"n_layer": decoder, "n_encoder_layer": encoder, "padding": 0}
        for decoder in (1, 4)
        for encoder in (1, 3)
    ),
    {"n_layer": 4, "positions": "relative"},
]
ROTARY: dict[str, Any] = {"n_head": 4, "d_model": 16, "positions": "rotary"}
FAMILIES: list[dict[str, Any]] = [
    ROTARY
    | {
        "n_kv_head": 2,
        "mlp": "gated",
        "norm": "rmsnorm",
        "activation": "silu",
        "qk_norm": "separate",
        "tied": True,
    },
    ROTARY | {"residual": "parallel", "rotary_fraction": 0.5, "qk_norm": "whole"},
    ROTARY | {"residual": "parallel-one-norm", "n_kv_head": 1, "attention_dropout": 0.1},
    ROTARY
    | {
        "residual": "double-norm",
        "window": 3,
        "window_pattern": "wwf",
        "window_rotary_base": 500.0,
        "n_layer": 5,
    },
    ROTARY
    | {
        "residual": "branch-norm",
        "score_cap": 5.0,
        "logit_cap": 9.0,
        "embed_scale": 4.0,
        "rotary_scaling": "llama3",
    },
    {"embed_norm": True, "positions": "alibi", "score_scale": 1.0, "norm_eps": 1e-3, "n_layer": 3},
]


@pytest.mark.parametrize(
    "changes", [*SHAPES, *FAMILIES], ids=lambda changes: " ".join(map(str, changes.values()))
)
def test_operations_are_counted_for_every_head_for_two_stacks_and_for_the_axes_of_families(
    changes: dict[str, Any],
) -> None:
    config = tiny(**changes)
    assert estimate.step_work(config, 3, 7).flops == counted_by_torch(config, 3, 7)


def test_a_classifier_that_flattens_has_a_product_per_token_and_one_per_label() -> None:
    assert (
        estimate.step_work(preset("classifier", vocab_size=500, n_label=2), 4, 20).flops
        == 6_528_000
    )


@pytest.mark.parametrize(
    "changes",
    [
        *SHAPES,
        {"n_head": 4, "d_model": 16, "n_kv_head": 2, "mlp": "gated"},
        {"residual": "parallel", "qk_norm": "whole"},
    ],
    ids=lambda changes: " ".join(map(str, changes.values())),
)
def test_muon_is_counted_for_the_matrices_that_it_takes(changes: dict[str, Any]) -> None:
    config = tiny(**changes)
    recipe = Recipe(steps=1, optimiser="muon")
    made = optimisers.optimisers(build(config), recipe)
    groups = [
        group for one in made if isinstance(one, optimisers.BlockMuon) for group in one.param_groups
    ]
    taken = [tuple(matrix.shape) for group in groups for matrix in group["params"]]
    assert sorted(optimisers.block_matrices(config, recipe)) == sorted(taken)


def adapted(config: Config, rank: int) -> Transformer:
    """A model with the recipe's adapter, or a whole one without a rank."""
    model = build(config, seed=0)
    return AdaptedTransformer(model, every_matrix(config, rank)) if rank else model


@pytest.mark.parametrize(
    "changes", SHAPES, ids=lambda changes: " ".join(map(str, changes.values()))
)
def test_an_adapter_has_the_operations_that_torch_counts_in_a_real_step_of_it(
    changes: dict[str, Any],
) -> None:
    config = tiny(**changes)
    model = adapted(config, 2).train()
    ids = some_ids(7, 3, config.vocab_size)
    with FlopCounterMode(display=False) as counter:
        logits = model(ids, ids if config.n_encoder_layer else None)
        if config.n_layer:
            logits.float().logsumexp(-1).sum().backward()
    assert estimate.step_work(config, 3, 7, 2).flops == counter.get_total_flops()


def test_an_adapter_needs_no_gradients_of_the_weights_beside_it() -> None:
    config = Config(vocab_size=65, context_length=32, d_model=48, n_layer=4, n_head=4)
    rows = 2
    tokens = 32
    rank = 3
    d = config.d_model
    n = rows * tokens
    inside = [(d, 3 * d), (d, d), (d, 4 * d), (4 * d, d)]
    forward = sum(2 * n * (a * b + rank * (a + b)) for a, b in inside)
    # Of the matrices and of the unembedding only what they read has a gradient; what is read by the
    # first block has none.
    backward = sum(2 * n * (a * b + 2 * rank * (a + b)) for a, b in inside)
    attention = 2 * 2 * rows * tokens * tokens * d
    first = 2 * n * (d * 3 * d + rank * d)
    expected = 4 * (forward + backward + 3 * attention) - first + 2 * (2 * n * d * 65)
    assert estimate.step_work(config, rows, tokens, rank).flops == expected
    whole = estimate.step_work(config, rows, tokens).flops
    assert 0.6 < expected / whole < 0.8, "two thirds, and what the adapter adds"


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("name", ["adamw", "adam", "sgd", "muon"])
def test_an_optimiser_remembers_as_much_as_is_said_and_of_an_adapter_its_numbers_alone(
    name: str, rank: int
) -> None:
    # type: ignore[arg-type]
    config = tiny()
    recipe = Recipe(steps=1, batch_size=2, optimiser=name, lora_rank=rank)
    trainer = Trainer(adapted(config, rank), estimate._Noise(config), recipe)
    trainer.advance(0.01)
    held = sum(t.nbytes for t in optimisers.tensors(trainer.optimisers).values() if t.numel() > 1)
    assert estimate.estimate(config, recipe, SPEED).optimiser == held


def test_a_run_of_an_adapter_is_estimated_to_take_less_time_and_memory_than_one_of_all_weights() -> (
    None
):
    config = Config(vocab_size=2_000, context_length=64, d_model=256, n_layer=6, n_head=4)
    whole, small = (
        estimate.estimate(config, Recipe(steps=10, batch_size=8, lora_rank=rank), SPEED)
        for rank in (0, 4)
    )
    assert small.flops < 0.75 * whole.flops
    assert small.seconds_per_step < whole.seconds_per_step
    assert small.memory < whole.memory - 4 * whole.parameters, (
        "without the gradients and what the optimiser keeps"
    )
    assert small.optimiser == 4 * 2 * small.trained


def most_at_once(config: Config, recipe: Recipe) -> int:
    """The most bytes that a step has in memory beside weights and optimiser, as torch's profiler
    counts them.
    """
    trainer = Trainer(adapted(config, recipe.lora_rank), estimate._Noise(config), recipe)
    trainer.advance(1e-3)  # from now on there is what the optimiser remembers
    for optimiser in trainer.optimisers:
        optimiser.zero_grad()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        trainer.advance(1e-3)
    kineto = profiled.profiler
    changes = [
        event.nbytes() for event in kineto.kineto_results.events() if event.name() == "[memory]"
    ]
    return max(accumulate(changes))


@pytest.mark.parametrize(
    ("config", "recipe"),
    [
        (
            Config(vocab_size=2_000, context_length=32, d_model=16, n_layer=0),
            Recipe(steps=2, batch_size=8),
        ),
        (
            Config(vocab_size=65, context_length=32, d_model=32, n_layer=3, n_head=4),
            Recipe(steps=2, batch_size=4),
        ),
        (
            Config(
                vocab_size=65,
                context_length=32,
                d_model=32,
                n_layer=2,
                n_head=4,
                positions="relative",
                dropout=0.1,
            ),
            Recipe(steps=2, batch_size=4, optimiser="sgd"),
        ),
        (
            preset("llama-tiny", context_length=64, d_model=96, n_layer=4),
            Recipe(steps=2, batch_size=4),
        ),
        (
            preset("neox-tiny", context_length=64, d_model=96, n_layer=4),
            Recipe(steps=2, batch_size=4),
        ),
        (
            preset(
                "llama-tiny",
                context_length=64,
                n_layer=4,
                window=16,
                window_pattern="wf",
                score_cap=20.0,
            ),
            Recipe(steps=2, batch_size=4),
        ),
        (
            Config(vocab_size=65, context_length=64, d_model=64, n_layer=3, n_head=4),
            Recipe(steps=2, batch_size=4, lora_rank=4),
        ),
    ],
    ids=["logits", "blocks", "relative", "llama", "neox", "windows and a cap", "adapter"],
)
def test_a_step_has_as_much_in_memory_at_once_as_is_said(config: Config, recipe: Recipe) -> None:
    estimated = estimate.estimate(config, recipe, SPEED)
    real = most_at_once(config, recipe)
    assert 0.9 < estimated.activations / real < 1.5
    assert estimated.logits < estimated.activations
    assert (
        estimated.memory
        > estimated.weights + estimated.optimiser + estimated.activations + estimate.PROCESS / 2
    )


def real_memory(config: Config, recipe: Recipe) -> dict[str, int]:
    """Bytes that a fresh process has at most after building a model, and after steps with it."""
    script = f"""
import json, pathlib, resource, sys
from gptviz.train.estimate import _Noise
from gptviz.train.recipe import Recipe
from gptviz.train.trainer import Trainer
from gptviz.model import Config, build
def most():
    # On Linux getrusage counts what the parent had when it forked, too.
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return 1024 * int(status.read_text().split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
small = Config(vocab_size=9, context_length=8, d_model=8, n_layer=1)
Trainer(build(small), _Noise(small), Recipe(steps=1, batch_size=1)).advance()  # whatever torch loads on its first step
before = most()
config = Config.from_dict({config.to_dict()!r})
trainer = Trainer(build(config, seed=0), _Noise(config), Recipe.from_dict({recipe.to_dict()!r}))
for _ in range(2):
    trainer.advance(1e-3)
print(json.dumps({{"before": before, "step": most() - before}}))
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def test_a_classifier_gives_a_text_one_logit_for_each_label() -> None:
    sizes = {"vocab_size": 7_000, "mask": "full", "head": "mean", "n_label": 3}
    estimated = estimate.estimate(tiny(**sizes), Recipe(steps=2, batch_size=4), SPEED)
    assert estimated.logits == 4 * 4 * 3  # bytes, texts, labels


# The bytes of one step are compared with torch's own count above, for more models: one size shows
# that a process takes as much.
SIZES = {
    "long-context": (preset("shakespeare"), 16),
    "large-batch": (preset("ladder"), 256),
    "large-vocabulary": (preset("bpe"), 8),
    "logits": (Config(vocab_size=20_000, context_length=64, d_model=64, n_layer=0), 32),
    "relative": (
        Config(
            vocab_size=65,
            context_length=128,
            d_model=128,
            n_layer=3,
            n_head=4,
            positions="relative",
            dropout=0.1,
        ),
        16,
    ),
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the most a process had")
@pytest.mark.parametrize("size", quick(SIZES, "logits"))
def test_the_memory_of_a_step_is_within_a_factor_of_two_of_what_a_real_one_takes(size: str) -> None:
    config, batch = SIZES[size]
    recipe = Recipe(steps=2, batch_size=batch)
    estimated = estimate.estimate(config, recipe, SPEED)
    real = real_memory(config, recipe)
    step = estimated.weights + estimated.optimiser + estimated.activations
    assert real["step"] > 30e6, "too little to measure"
    assert 0.6 < step / real["step"] < 1.7
    assert estimated.logits < estimated.activations
    if torch.version.cuda is None:  # else torch alone takes twice as much
        assert real["before"] / 2 < estimate.PROCESS < real["before"] * 2
    assert estimated.memory >= estimate.PROCESS + step


def test_a_deeper_model_is_estimated_as_if_every_block_were_followed() -> None:
    shallow = tiny(n_layer=2)
    for layers in (3, 5):
        config = tiny(n_layer=layers)
        forward, step = (
            estimate._follow_pass(config, 2, 8, 0, backward) for backward in (False, True)
        )
        assert estimate.step_work(config, 2, 8, backward=False).bytes == forward.bytes
        assert estimate.step_work(config, 2, 8).operations == step.operations
        assert estimate.step_work(config, 2, 8).peak == pytest.approx(step.peak, rel=0.05)
        assert step.bytes > estimate._follow_pass(shallow, 2, 8, 0, True).bytes


def test_nothing_is_allocated_for_a_model_that_would_not_fit_anywhere() -> None:
    huge = Config(
        vocab_size=1_000_000, context_length=8_192, d_model=16_384, n_layer=200, n_head=64
    )
    estimated = estimate.estimate(huge, Recipe(steps=10, batch_size=512), SPEED)
    assert estimated.parameters > 600e9
    assert estimated.memory > 10e12
    assert refusal(estimated, free_bytes()) is not None


@pytest.mark.parametrize("snapshots", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("steps", [1, 2, 7, 100, 1_000])
def test_as_many_snapshots_are_counted_as_a_run_keeps(snapshots: int, steps: int) -> None:
    recipe = Recipe(steps=steps, snapshots=snapshots)
    one_by_one = {step for step in range(steps + 1) if recipe.saves_snapshot(step)} | (
        {steps} if snapshots else set()
    )
    assert estimate.snapshot_count(recipe, steps) == len(one_by_one)


@given(prices=st.tuples(*[st.floats(0.2, 5)] * 3), waits=st.lists(st.floats(1, 100), max_size=5))
@settings(max_examples=30)
def test_the_speeds_of_a_machine_are_found_from_its_fastest_steps_however_long_the_others_wait(
    prices: tuple[float, float, float], waits: list[float]
) -> None:
    true = Speed(flops=50e9 * prices[0], bytes=4e9 * prices[1], overhead=20e-6 * prices[2])

    def times(
        config: Config, recipe: Recipe, device: torch.device, bfloat16: bool
    ) -> npt.NDArray[np.float64]:
        alone = true.seconds(estimate.step_work(config, recipe.batch_size, config.context_length))
        return alone * np.array([*waits, 1.0]) / (2 if bfloat16 else 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimate, "_step_times", times)
        patch.setattr(estimate, "may_bfloat16", lambda device: True)
        found = estimate.measure()
    work = estimate.step_work(preset("ladder", n_layer=3), 16, 32)
    assert found.seconds(work) == pytest.approx(true.seconds(work), rel=0.25)
    assert found.slowdown == pytest.approx(np.mean([*waits, 1.0]))
    for precision, faster in (("float32", 1), ("auto", 2), ("bfloat16", 2)):
        assert found.seconds_of_step(work, Recipe(steps=1, precision=precision)) == pytest.approx(
            found.seconds(work) / faster
        )


def test_a_later_measurement_of_a_busier_machine_makes_it_no_slower_and_says_how_busy_it_is() -> (
    None
):
    quiet = Speed(2e9, 3e9, 1e-6)
    busy = replace(Speed(1e9, 4e9, 2e-6), slowdown=30.0)
    assert quiet.or_faster(busy) == Speed(2e9, 4e9, 1e-6, slowdown=30.0)


def test_evaluations_take_a_bounded_share_of_the_time_however_much_is_held_out() -> None:
    recipe = Recipe(steps=3_000, batch_size=16, evaluations=10)
    config = preset("ladder")
    tokens = 32
    alone = estimate.estimate(config, recipe, SPEED, tokens=tokens).seconds
    held_out = 50_000_000
    last = SPEED.seconds(estimate.evaluation_work(config, tokens)) * held_out / EVALUATION_TOKENS
    estimated = estimate.estimate(config, recipe, SPEED, tokens=tokens, held_out=held_out).seconds
    assert 0 < estimated - last - alone <= 0.1 * alone


def test_the_probes_give_this_machine_a_speed() -> None:
    speed = estimate.measure()
    assert all(0 < value < math.inf for value in (speed.flops, speed.bytes, speed.overhead))


def test_a_run_given_in_minutes_takes_them() -> None:
    estimated = estimate.estimate(tiny(), Recipe(minutes=2), SPEED)
    assert estimated.seconds == pytest.approx(120)
    longer = estimate.estimate(tiny(), Recipe(minutes=2, evaluations=10), SPEED, held_out=100_000)
    assert longer.seconds > estimated.seconds


def test_a_run_that_does_not_fit_is_refused_with_what_it_needs_and_what_is_free() -> None:
    estimated = estimate.estimate(preset("gpt2"), Recipe(steps=10, batch_size=64), SPEED)
    message = refusal(estimated, 8 * 10**9)
    assert message is not None
    assert in_bytes(estimated.memory) in message
    assert "8 GB is free" in message
    assert "smaller batch" in message
    assert refusal(estimated, 10**15) is None


def test_free_memory_is_less_than_what_the_machine_has() -> None:
    free = free_bytes()
    assert 0 < free < psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_500, "1.5 kB"),
        (2.5e6, "2.5 MB"),
        (1.234e9, "1.23 GB"),
        (5e15, "5,000 TB"),
    ],
)
def test_bytes_are_told_as_a_person_says_them(count: float, words: str) -> None:
    assert in_bytes(count) == words
