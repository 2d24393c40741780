"""Patching: which piece of a model's computation carries the answer from one prompt to another."""

from gptviz.ui.pages.patching import heatmaps, method
from gptviz.ui.pages.patching.prompts import prompts, with_room
from gptviz.ui.pages.patching.tries import to_try
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.PATCHING,
    "Which part carries the answer?",
    "Put a piece of what the model computed for one prompt into its pass over another: how much of the answer comes back?",
)
subject = with_room(subject_bar())
both = prompts(subject)
if both is not None:
    found = heatmaps.maps(subject, both)
    heatmaps.rows(subject, both, found)
    heatmaps.summary(found)

try_this(to_try(subject))

if both is not None:
    name = heatmaps.of_which(found)
    details(
        lambda: heatmaps.numbers(found, name),
        code=method.code(subject, both, name, exact=name in found.exact),
        how=method.HOW,
        limits=method.LIMITS,
        key="patching",
    )
next_step()
