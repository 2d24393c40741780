"""`python -m benchmarks.training [--threads N] [--sizes i ii iii] [--float32]`: what a training
step makes of the processor.

The limit of a processor is the rate of one large product in bfloat16, or in float32, measured in
the same run. The operations of a step are those that have to be: six for each weight and token, and
the products of attention. Its share of the limit is told as a whole, and of its products alone,
which no change to the rest can exceed. Steps take turns, the fastest of each counts; results:
benchmarks/training.md.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.nanogpt import SIZES, Size, ours
from gptviz.data.batches import Windows
from gptviz.machine.memory import keep_memory
from gptviz.train.engine import Engine
from gptviz.train.trainer import Trainer

LARGE = 2_048
TURNS = 6
STEPS = 5
PROFILED = 5
PRODUCTS = {"aten::mm", "aten::bmm", "aten::addmm"}


def operations(size: Size, trainer: Trainer) -> int:
    """The floating point operations of a step: forwards, and twice as many backwards."""
    weights = (
        sum(p.numel() for p in trainer.model.parameters() if p.dim() == 2)
        - size.context * size.d_model
    )  # tables of positions
    # q · k and pattern · v, all pairs of tokens
    attention = 2 * size.n_layer * size.d_model * size.context
    return 6 * size.batch * size.context * (weights + attention)


def seconds_of_product(a: torch.Tensor, b: torch.Tensor) -> float:
    """How long one product takes."""
    begun = time.perf_counter()
    a @ b
    return time.perf_counter() - begun


def seconds_of_step(trainer: Trainer) -> float:
    """How long the fastest of some steps takes."""
    times = []
    for _ in range(STEPS):
        begun = time.perf_counter()
        trainer.advance(1e-3)
        times.append(time.perf_counter() - begun)
    return min(times)


def seconds_of_products(trainer: Trainer) -> float:
    """How long the products of a step take."""
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range(PROFILED):
            trainer.advance(1e-3)
    return (
        sum(e.self_cpu_time_total for e in profiled.key_averages() if e.key in PRODUCTS)
        / PROFILED
        / 1e6
    )


def main() -> None:
    """Print the share of each size, as it is and compiled."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    options.add_argument(
        "--float32", action="store_true", help="as on a processor that has no bfloat16"
    )
    chosen = options.parse_args()
    torch.set_num_threads(chosen.threads)
    keep_memory()
    large = [
        torch.randn(LARGE, LARGE, dtype=torch.float32 if chosen.float32 else torch.bfloat16)
        for _ in range(2)
    ]
    for name in chosen.sizes:
        size = SIZES[name]
        ids = torch.randint(0, 65, (1_100_000,), generator=torch.Generator().manual_seed(0))
        data = Windows(ids[:1_000_000], ids[1_000_000:], size.context)
        trainers = {
            label: ours(size, data, Engine(not chosen.float32, label == "compiled"))
            for label in ("eager", "compiled")
        }
        for trainer in trainers.values():
            seconds_of_step(trainer)
        steps: dict[str, list[float]] = {label: [] for label in trainers}
        limit: list[float] = []
        for _ in range(TURNS):
            limit += [seconds_of_product(*large) for _ in range(STEPS)]
            for label, trainer in trainers.items():
                steps[label].append(seconds_of_step(trainer))
        rate = 2 * LARGE**3 / min(limit)
        print(
            f"size {name}: {size}; the limit is {rate / 1e9:,.0f} thousand million operations a "
            "second"
        )
        for label, trainer in trainers.items():
            least = min(steps[label])
            products = seconds_of_products(trainer)
            ideal = operations(size, trainer) / rate
            print(
                f"  {label:<10} {least * 1e3:8.1f} ms a step, {ideal / least:.0%} of the limit; "
                f"its products alone {products * 1e3:.1f} ms, {ideal / products:.0%}"
            )


if __name__ == "__main__":
    main()
