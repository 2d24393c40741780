"""The command `history`: a measure of a model at every snapshot of its training."""

from __future__ import annotations

import argparse

from .common import Command, Parser, add_model, opened, print_folded, print_json, print_table, warn_of_unknown, with_bar


def _options(this: Parser) -> None:
    add_model(this, prompt="what the model reads; without it heads read repeated random tokens", needs_prompt=False)
    this.add_argument("--measure", default="loss", metavar="NAME", help="what is measured; list names all. Default: loss")
    this.add_argument(
        "--token", metavar="TEXT", help="the token that is guessed after the prompt, or the label; default: the likeliest"
    )
    this.add_argument("--against", metavar="TEXT", help="another one, which it is compared with")


def run(options: argparse.Namespace) -> None:
    """The command `history NAME [--measure NAME] [--prompt TEXT] [--token TEXT] [--against TEXT] [--json]`."""
    from gptviz.interp.over_training.measures import MEASURES

    if options.measure == "list":
        rows = [
            {"name": one.name, "unit": one.unit, "needs": one.needs, "of": list(one.kinds), "about": one.about}
            for one in MEASURES.values()
        ]
        if options.json:
            print_json(rows)
        for row in [] if options.json else rows:
            print_folded(
                f"{row['name']:<22} {row['about']} In: {row['unit']}. Needs: {row['needs']}. Of: {', '.join(row['of'])}.", 23
            )
        return
    lm = opened(options)
    if options.prompt is not None:
        warn_of_unknown(lm.tokenizer.encode(options.prompt))
    with with_bar():
        found = lm.over_training(options.measure, options.prompt, options.token, options.against)
    if options.json:
        series = [{"name": name, "values": found.values[:, i].tolist()} for i, name in enumerate(found.series)]
        print_json({"measure": found.measure.name, "unit": found.measure.unit, "steps": list(found.steps), "series": series})
        return
    print_folded(f"{found.measure.title} ({found.measure.unit})")
    cells = [[f"{step:,}", *(f"{value:.4g}" for value in row)] for step, row in zip(found.steps, found.values, strict=True)]
    print_table(["step", *found.series], cells)
    if (change := found.sharpest()) is not None:
        print_folded(f"Sharpest change: {found.series[change.series]} {change.words}.")


COMMAND = Command(
    "history", "A measure of a model, such as its loss, at every snapshot of its training.", run, _options, place=145
)
