"""All lessons in their order: a newcomer begins with the first."""

from gptviz.ui.records.lessons import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.lessons.show import show
from gptviz.ui.shell.around.next_step import next_step

show()
next_step()
