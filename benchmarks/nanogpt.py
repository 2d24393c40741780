"""`python -m benchmarks.nanogpt PATH`: training beside nanoGPT, of which PATH is a checkout (no
part of this project).

1. Tokens per second of the same model on the same batches: nanoGPT's own model in float32 with
AdamW as its recipe has it,
   against this trainer in the precision this processor is fastest in, eager and compiled;
   interleaved, medians.
2. The loss after equal steps, over some seeds: faster must not mean worse.
3. Time to a validation loss of 1.88 (what its README reports for a CPU): its recipe against this
project's.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import torch
from torch import nn

from gptviz.data.batches import Windows, consecutive_windows
from gptviz.model import Config, build, preset
from gptviz.text import CharTokenizer, tiny_shakespeare
from gptviz.train.engine import Engine, choose_engine
from gptviz.train.evaluation import evaluate
from gptviz.train.recipe import Recipe
from gptviz.train.trainer import Evaluated, Trainer


@dataclass(frozen=True)
class Size:
    """A model and its batch."""

    n_layer: int
    n_head: int
    d_model: int
    context: int
    batch: int


SIZES = {
    "i": Size(4, 4, 128, 64, 12),
    "ii": Size(6, 6, 192, 128, 32),
    "iii": Size(6, 6, 384, 256, 16),
}
TARGET = 1.88
RECIPE = Recipe(steps=2_000, batch_size=12, learning_rate=1e-3, beta2=0.99, snapshots=0)


def corpus() -> tuple[torch.Tensor, torch.Tensor]:
    """Tiny Shakespeare as characters, nine tenths and one."""
    text = tiny_shakespeare()
    tokenizer = CharTokenizer(text.text)
    training, validation = (torch.from_numpy(tokenizer.encode_ids(part)) for part in text.split())
    return training, validation


class Theirs:
    """nanoGPT's model and optimiser settings, stepped on batches of ours."""

    def __init__(self, module: Any, size: Size, data: Windows, seed: int = 0) -> None:
        torch.manual_seed(seed)
        sizes = {
            "n_layer": size.n_layer,
            "n_head": size.n_head,
            "n_embd": size.d_model,
            "block_size": size.context,
        }
        self.model = module.GPT(module.GPTConfig(vocab_size=65, dropout=0.0, bias=False, **sizes))
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1
        )
        self.data = data
        self.size = size
        self.step = 0
        self.seed = seed

    def advance(self, rate: float = 1e-3) -> float:
        """One step; the batch's loss."""
        batch = self.data.training(self.size.batch, self.seed * 1_000_003 + self.step)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        _, loss = self.model(batch.inputs[0], batch.targets.contiguous())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.step += 1
        value: float = loss.item()
        return value

    @torch.inference_mode()
    def validation(self) -> float:
        """The loss over the whole validation text, in windows as ours."""
        self.model.eval()
        total = 0.0
        count = 0
        for batch in consecutive_windows(self.data.held_out, self.size.context):
            _, loss = self.model(batch.inputs[0], batch.targets.contiguous())
            total = total + loss.item() * batch.targets.numel()
            count = count + batch.targets.numel()
        self.model.train()
        return total / count


def same_model(size: Size, seed: int = 0) -> Any:
    """This project's model of nanoGPT's architecture: LayerNorm without bias, GELU, learned
    positions, tied.
    """
    plain: dict[str, Any] = {
        "norm_bias": False,
        "qkv_bias": False,
        "output_bias": False,
        "mlp_bias": False,
        "tied": True,
    }
    sizes: dict[str, Any] = {
        "n_layer": size.n_layer,
        "n_head": size.n_head,
        "d_model": size.d_model,
        "context_length": size.context,
    }
    return build(Config(vocab_size=65, activation="gelu", **sizes, **plain), seed=seed)


def ours(size: Size, data: Windows, engine: Engine, seed: int = 0) -> Trainer:
    """This project's trainer on that model."""
    model = same_model(size, seed)
    recipe = Recipe(steps=10**6, batch_size=size.batch, learning_rate=1e-3, seed=seed, snapshots=0)
    return Trainer(model, data, recipe, forward=engine.forward(model), bfloat16=engine.bfloat16)


def tokens_per_second(advance: Callable[[], object], size: Size, seconds: float = 4.0) -> float:
    """The rate over some seconds of steps."""
    advance()
    times = list[float]()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begun = time.perf_counter()
        advance()
        times.append(time.perf_counter() - begun)
    return size.batch * size.context / median(times)


def throughput(
    module: Any, training: torch.Tensor, validation: torch.Tensor, rounds: int = 5
) -> None:
    """Part 1."""
    print(
        "\nTraining throughput, the same model on the same batches (nanoGPT: float32, eager, its "
        "own AdamW)"
    )
    for name, size in SIZES.items():
        data = Windows(training, validation, size.context)
        recipe = Recipe(steps=10**6, batch_size=size.batch, compile="no", snapshots=0)
        chosen = choose_engine(same_model(size), data, recipe)
        theirs = Theirs(module, size, data)
        runs: dict[str, Callable[[], object]] = {"nanoGPT": lambda theirs=theirs: theirs.advance()}  # type: ignore[misc]
        for label, engine in (("eager", chosen), ("compiled", Engine(chosen.bfloat16, True))):
            trainer = ours(size, data, engine)
            runs[f"gptviz, {label}"] = lambda trainer=trainer: trainer.advance(1e-3)  # type: ignore[misc]
        rates: dict[str, list[float]] = {label: [] for label in runs}
        for _ in range(rounds):
            for label, advance in runs.items():
                rates[label].append(tokens_per_second(advance, size))
        print(f"size {name}: {size} ({chosen.why})")
        for label, found in rates.items():
            ratio = median(found) / median(rates["nanoGPT"])
            print(f"  {label:<18} {median(found):>10,.0f} tokens/s   {ratio:5.2f} ×")


def equal_steps(
    module: Any, training: torch.Tensor, validation: torch.Tensor, steps: int = 300, seeds: int = 3
) -> None:
    """Part 2."""
    size = SIZES["i"]
    data = Windows(training, validation, size.context)
    print(f"\nValidation loss after {steps} equal steps, {seeds} seeds")
    engine = choose_engine(
        same_model(size),
        data,
        Recipe(steps=steps, batch_size=size.batch, compile="no", snapshots=0),
    )
    found: dict[str, list[float]] = {"nanoGPT": [], "gptviz": []}
    for seed in range(seeds):
        theirs = Theirs(module, size, data, seed)
        trainer = ours(size, data, engine, seed)
        for _ in range(steps):
            theirs.advance()
            trainer.advance(1e-3)
        found["nanoGPT"].append(theirs.validation())
        found["gptviz"].append(evaluate(trainer.model, data.validation()).loss)
    for label, losses in found.items():
        print(f"  {label:<18} {mean(losses):.4f} ± {stdev(losses):.4f}")


def time_to_target(module: Any, training: torch.Tensor, validation: torch.Tensor) -> None:
    """Part 3: the clock stops while the validation loss is computed."""
    print(f"\nSeconds of training until the validation loss is {TARGET}")
    size = SIZES["i"]
    data = Windows(training, validation, size.context)
    theirs = Theirs(module, size, data)
    needed = {"nanoGPT": _their_time(theirs)}
    config = preset(
        "shakespeare", n_layer=4, n_head=4, d_model=128, context_length=size.context, dropout=0.0
    )
    recipe = Recipe(steps=400, batch_size=size.batch, optimiser="muon", learning_rate=5e-3, final_rate=0.0, schedule="linear",
                    evaluations=40, compile="no", snapshots=0)  # fmt: skip
    model = build(config, seed=0)
    engine = choose_engine(model, data, recipe)
    needed["gptviz"] = _our_time(Trainer(model, data, recipe, bfloat16=engine.bfloat16))
    for label, seconds in needed.items():
        print(f"  {label:<18} {seconds:8.1f} s   {seconds / needed['nanoGPT']:5.2f} of nanoGPT's")


def _their_time(theirs: Theirs) -> float:
    seconds = 0.0
    for step in range(RECIPE.steps or 0):
        begun = time.perf_counter()
        # Its recipe: 100 steps of warm-up, a cosine to a tenth.
        fallen = max(step - 100, 0) / 1_900
        theirs.advance(
            1e-3 * (step + 1) / 101
            if step < 100
            else 1e-4 + 9e-4 * (1 + math.cos(math.pi * fallen)) / 2
        )
        seconds += time.perf_counter() - begun
        if (step + 1) % 50 == 0 and theirs.validation() <= TARGET:
            return seconds
    print(f"  nanoGPT's recipe ended at {theirs.validation():.4f}; its whole time counts")
    return seconds


def _our_time(trainer: Trainer) -> float:
    events: Iterator[Any] = iter(trainer)
    for event in events:
        if isinstance(event, Evaluated) and event.loss <= TARGET:
            return event.seconds
    return math.inf


def main(path: str) -> None:
    """Run the three parts."""
    spec = importlib.util.spec_from_file_location("nanogpt_model", Path(path) / "model.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"no model.py in {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["nanogpt_model"] = module
    spec.loader.exec_module(module)
    training, validation = corpus()
    throughput(module, training, validation)
    equal_steps(module, training, validation)
    time_to_target(module, training, validation)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m benchmarks.nanogpt PATH_OF_A_NANOGPT_CHECKOUT")
    main(sys.argv[1])
