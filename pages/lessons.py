"""All lessons in their order: a newcomer begins with the first."""

from gptviz.ui.pages import lessons
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page

open_page(
    pages.LESSONS,
    "Where do I begin?",
    "Each lesson takes some minutes, asks before it shows, and opens the live pages beside its text.",
)
lessons.show()
next_step()
