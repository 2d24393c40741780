"""The command `quantise`: what a model loses if its weights are kept in fewer bits."""

from __future__ import annotations

import argparse

from .common import Command, Parser, add_model, nats, opened, print_folded, print_json, print_table, warn_of_unknown


def _options(this: Parser) -> None:
    add_model(
        this,
        "a text for the loss, and for how far each guess moves; default: held-out data, if they are here",
        needs_prompt=False,
    )
    this.add_argument(
        "--as",
        dest="kind",
        default="4bit.g32",
        metavar="KIND",
        help="how weights are kept: 8bit.row, 4bit.g32, … (8, 6, 5, 4, 3 or 2 bits, rounded to nearest, with a scale for each "
        "row or each group of 32, 64 or 128), or Q8_0, Q5_1, Q5_0, Q4_1, Q4_0 as in GGUF files; default: 4bit.g32",
    )
    this.add_argument("--matrix", metavar="NAME", help="one matrix alone, such as blocks.0.mlp.up.weight; default: all")


def run(options: argparse.Namespace) -> None:
    """The command `quantise NAME [--as KIND] [--matrix NAME] [--prompt TEXT] [--json]`."""
    from gptviz.machine.memory import in_bytes

    lm = opened(options)
    if options.prompt is not None:
        warn_of_unknown(lm.tokenizer.encode(options.prompt))
    found = lm.fewer_bits(options.kind, options.prompt, matrix=options.matrix)
    if options.json:
        print_json(found.to_dict())
        return
    weight = found.weight
    print_folded(f"{lm.name} with {', '.join(found.edits)} (simulated: computed with in float32)")
    sizes = f"{in_bytes(weight.kept)}, in float32 {in_bytes(weight.float32)}"
    print_folded(f"its weights take {sizes}; a quantised number {weight.bits:.3g} bits")
    if found.loss is not None:
        before, after = found.loss
        print(f"loss over {found.text}: {nats(before)} → {nats(after)} nats")
    else:
        print(
            "no loss: the held-out data are not here; give a text with --prompt"
            if options.prompt is None
            else "no loss: one token"
        )
    if found.divergence is not None:
        last, mean = found.divergence[-1], found.divergence.mean()
        print_folded(f"guesses move by {mean:.4g} nats on average (Kullback–Leibler divergence), the last one by {last:.4g}")
    print()
    rows = [
        [
            one.name,
            f"{one.relative:.4f}",
            f"{one.largest:.3g}",
            f"{one.farthest:.1f}",
            f"{one.outliers:.3%}",
            in_bytes(one.bytes or 0),
        ]
        for one in found.matrices
    ]
    print_table(["", "relative error", "largest error", "farthest / RMS", "beyond 6 RMS", "size"], rows)


COMMAND = Command("quantise", "Show what a model loses if its weights are kept in fewer bits.", run, _options, place=45)
