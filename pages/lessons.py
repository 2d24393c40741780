"""All lessons in their order: a newcomer begins with the first."""

from gptviz.ui.records.lessons import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.lessons.cards import show
from gptviz.ui.shell.close import close

show()
close(PAGE, view=None)
