"""The command `history`: a measure of a model at every snapshot of its training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .common import pick_values
from .options import Name, command
from .printing import CommandOutput, Lines, Table

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel


@command(145)
def history(
    lm: LanguageModel,
    prompt: str | None = None,
    measure: Name = "loss",
    token: str | None = None,
    against: str | None = None,
    unit: str = "",
) -> CommandOutput:
    """A measure of a model, such as its loss, at every snapshot of its training.

    Args:
        prompt: what the model reads; without it heads read repeated random tokens.
        measure: what is measured; list names all.
        token: the token that is guessed after the prompt, or the label; default: the likeliest.
        against: another one, which it is compared with.
        unit: for loss.without, what is switched off, as in blocks.1.mlp or
            dictionary.NAME.feature.17.
    """
    if measure == "list":
        return _measures()
    values = lm.over_training(measure, prompt, token, against, unit)
    series = [
        {"name": name, "values": column}
        for name, column in zip(values.series, values.values.T, strict=True)
    ]
    content = {
        "measure": values.measure.name,
        "unit": values.measure.unit,
        "steps": values.steps,
        "series": series,
    }
    cells = [
        [f"{step:,}", *(f"{value:.4g}" for value in row)]
        for step, row in zip(values.steps, values.values, strict=True)
    ]
    lines: Lines = [
        f"{values.measure.title} ({values.measure.unit})",
        Table(cells, ["step", *values.series]),
    ]
    if (change := values.sharpest()) is not None:
        lines.append(f"Sharpest change: {values.series[change.series]} {change.words}.")
    return CommandOutput(content, lines)


def _measures() -> CommandOutput:
    from gptviz.interp.over_training.measures import MEASURES

    rows = [
        pick_values(measure, "name", "unit", "needs")
        | {"of": list(measure.kinds), "about": measure.about}
        for measure in MEASURES.values()
    ]
    said = "{about} In: {unit}. Needs: {needs}. Of: {kinds}."
    return CommandOutput(
        rows,
        [Table([(row["name"], said.format(kinds=", ".join(row["of"]), **row)) for row in rows])],
    )
