"""The command `notes`: what the reader calls the units of a model, and wrote about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptviz.machine.lines import lines_of

from .common import UsageError
from .options import Name, command
from .printing import CommandOutput, Lines

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel


@command(186)
def notes(
    lm: LanguageModel, unit: Name | None = None, call: str | None = None, note: str | None = None
) -> CommandOutput:
    """Your own names and notes on heads, MLPs, neurons, features and directions of a model, kept on
    this machine and shown on all pages: list them, or write one.

    Args:
        unit: only this one, as in blocks.1.attention.head.3; default: all that have a name or a
            note.
        call: with --unit, the name that you give it, of at most 60 characters; '' takes it away.
        note: with --unit, what you write about it, at most 4,000 characters; '' takes it away.
    """
    from gptviz.interp.units.unit import unit as unit_named

    writes = call is not None or note is not None
    if unit is None and writes:
        raise UsageError("say what it is for, as in --unit blocks.1.attention.head.3")
    shown = lm.notes()
    if unit is not None:
        of = unit_named(unit, lm.model.config).name
        if writes:
            shown[of] = lm.write_note(of, name=call, note=note)
        shown = {name: one for name, one in shown.items() if name == of}
    content = []
    lines: Lines = []
    for name, one in shown.items():
        title = unit_named(name, lm.model.config).title
        content.append({"unit": name, "title": title, "name": one.name, "note": one.note})
        lines.append(f"{title} ({name}): {one.name or 'no name'}")
        lines += [f"    {line}" for line in lines_of(one.note)]
    return CommandOutput(content, lines or [f"{lm.name} has no names and notes of yours here."])
