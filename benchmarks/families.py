"""`python -m benchmarks.families [--steps N] [--seed N]`: three families of models with equally
many weights, trained alike.

`shakespeare`, `llama-tiny` and `neox-tiny` take their steps in turn within one process, on the same
batches of Tiny Shakespeare, by one recipe; so do the last two with what `shakespeare` has and they
lack: normalised queries and keys. At the end each is evaluated on everything held out. Of the time,
only the ratio is reported: the median step over that of the first one named. The last runs are in
families.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

# The models trained: the name of a plan, and the changes of its architecture.
RIVALS: dict[str, tuple[str, dict[str, object]]] = {
    "shakespeare": ("shakespeare", {}),
    "llama-tiny": ("llama-tiny", {}),
    "neox-tiny": ("neox-tiny", {}),
    "llama-tiny with normalised queries and keys": ("llama-tiny", {"qk_norm": "shared"}),
    "neox-tiny with normalised queries and keys": ("neox-tiny", {"qk_norm": "shared"}),
}


def main() -> None:
    """Train them and print the table as Markdown."""
    import torch

    from gptviz.data.registry import source_named
    from gptviz.model import build, change_config, parameter_count
    from gptviz.runs.experiments import PLANS
    from gptviz.train.trainer import Evaluated, Event, Stepped, Trainer

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="rows that contain one of these words")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    names = [
        name for name in RIVALS if not options.only or any(word in name for word in options.only)
    ]
    source = source_named("tiny-shakespeare")
    tokenizer = PLANS["shakespeare"].learn_tokenizer(source)
    bfloat16 = torch.cpu.get_capabilities().get("avx512_bf16", False)
    runs: dict[str, Iterator[Event]] = {}
    weights: dict[str, int] = {}
    for name in names:
        plan = PLANS[RIVALS[name][0]]
        changes = RIVALS[name][1]
        recipe = replace(
            plan.recipe, minutes=None, steps=options.steps, seed=options.seed, evaluations=3
        )
        config = change_config(plan.config, vocab_size=tokenizer.vocab_size, **changes)
        weights[name] = parameter_count(config)
        runs[name] = iter(
            Trainer(
                build(config, seed=options.seed),
                source.data(tokenizer, config),
                recipe,
                bfloat16=bfloat16,
            )
        )
    losses: dict[str, list[float]] = {name: [] for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    total = dict.fromkeys(names, 0.0)
    for events in zip(*runs.values(), strict=True):
        for name, event in zip(names, events, strict=True):
            if isinstance(event, Stepped):
                seconds[name].append(event.seconds - total[name])
                total[name] = event.seconds
            elif isinstance(event, Evaluated):
                losses[name].append(event.loss)
                print(f"{name} {event.step}: {event.loss:.4f}", flush=True)
    print(
        f"| {options.steps:,} steps, seed {options.seed} | weights | validation loss | time of a "
        f"step, against {names[0]} |"
    )
    print("|---|---|---|---|")
    for name in names:
        ratio = median(seconds[name]) / median(seconds[names[0]])
        print(f"| {name} | {weights[name]:,} | {losses[name][-1]:.4f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
