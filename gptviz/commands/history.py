"""The command `history`: a measure of a model at every snapshot of its training."""

from __future__ import annotations

import argparse

from .common import Parser, add_model, command, opened, picked, warn_of_unknown, with_bar
from .printing import Lines, Shown, Table


def _options(this: Parser) -> None:
    add_model(this)
    this.add_argument("--prompt", metavar="TEXT", help="what the model reads; without it heads read repeated random tokens")
    this.add_argument("--measure", default="loss", metavar="NAME", help="what is measured; list names all. Default: loss")
    about = "the token that is guessed after the prompt, or the label; default: the likeliest"
    this.add_argument("--token", metavar="TEXT", help=about)
    this.add_argument("--against", metavar="TEXT", help="another one, which it is compared with")


@command(145, _options)
def history(options: argparse.Namespace) -> Shown:
    """A measure of a model, such as its loss, at every snapshot of its training."""
    if options.measure == "list":
        return _measures()
    lm = opened(options)
    if options.prompt is not None:
        warn_of_unknown(lm.tokenizer.encode(options.prompt))
    with with_bar():
        found = lm.over_training(options.measure, options.prompt, options.token, options.against)
    series = [{"name": name, "values": found.values[:, i].tolist()} for i, name in enumerate(found.series)]
    content = {"measure": found.measure.name, "unit": found.measure.unit, "steps": list(found.steps), "series": series}
    cells = [[f"{step:,}", *(f"{value:.4g}" for value in row)] for step, row in zip(found.steps, found.values, strict=True)]
    lines: Lines = [f"{found.measure.title} ({found.measure.unit})", Table(cells, ["step", *found.series])]
    if (change := found.sharpest()) is not None:
        lines.append(f"Sharpest change: {found.series[change.series]} {change.words}.")
    return Shown(content, lines)


def _measures() -> Shown:
    from gptviz.interp.over_training.measures import MEASURES

    rows = [picked(one, "name", "unit", "needs") | {"of": list(one.kinds), "about": one.about} for one in MEASURES.values()]
    said = "{about} In: {unit}. Needs: {needs}. Of: {kinds}."
    lines = [(row["name"], said.format(kinds=", ".join(row["of"]), **row)) for row in rows]
    return Shown(rows, [Table(lines)])
