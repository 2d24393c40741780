"""`python -m benchmarks.families [--steps N] [--seed N]`: three families of models with equally many weights, trained alike.

`shakespeare`, `llama-tiny` and `neox-tiny` take their steps in turn within one process, on the same batches of Tiny Shakespeare,
by one recipe. At the end each is evaluated on everything held out. Of the time, only the ratio is reported: the others' median
step over that of `shakespeare`. The last run is in families.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

NAMES = ("shakespeare", "llama-tiny", "neox-tiny")


def main() -> None:
    """Train the three and print the table as Markdown."""
    import torch

    from gptviz.data.registry import source_named
    from gptviz.model import build, changed, parameter_count
    from gptviz.runs.experiments import PLANS
    from gptviz.train.trainer import Evaluated, Event, Stepped, Trainer

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    source = source_named("tiny-shakespeare")
    tokenizer = PLANS[NAMES[0]].learn_tokenizer(source)
    bfloat16 = torch.cpu.get_capabilities().get("avx512_bf16", False)
    runs: dict[str, Iterator[Event]] = {}
    for name in NAMES:
        recipe = replace(PLANS[name].recipe, minutes=None, steps=options.steps, seed=options.seed, evaluations=3)
        config = changed(PLANS[name].config, vocab_size=tokenizer.vocab_size)
        data = source.data(tokenizer, config)
        runs[name] = iter(Trainer(build(config, seed=options.seed), data, recipe, bfloat16=bfloat16))
    losses: dict[str, list[float]] = {name: [] for name in NAMES}
    seconds: dict[str, list[float]] = {name: [] for name in NAMES}
    total = dict.fromkeys(NAMES, 0.0)
    for events in zip(*runs.values(), strict=True):
        for name, event in zip(NAMES, events, strict=True):
            if isinstance(event, Stepped):
                seconds[name].append(event.seconds - total[name])
                total[name] = event.seconds
            elif isinstance(event, Evaluated):
                losses[name].append(event.loss)
                print(name, event.step, f"{event.loss:.4f}", flush=True)
    print(f"| {options.steps:,} steps, seed {options.seed} | weights | validation loss | seconds per step, against shakespeare |")
    print("|---|---|---|---|")
    for name in NAMES:
        ratio = median(seconds[name]) / median(seconds[NAMES[0]])
        print(f"| {name} | {parameter_count(PLANS[name].config):,} | {losses[name][-1]:.4f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
