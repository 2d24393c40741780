"""Tokens: what a text becomes before a model reads it, what languages cost, and how the pieces are learned."""

from gptviz.ui.records.tokens import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.tokens import show
from gptviz.ui.pages.tokens.tries import tries
from gptviz.ui.pages.tokens.words import HOW, LIMITS
from gptviz.ui.records.tokens import COMPARE, CUT, VIEWS
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import controls, try_this
from gptviz.ui.widgets.details import details

subject = subject_bar()
about = "One text and its tokens, two tokenizers beside each other, or the merges of a text as they are learned."
view = controls.select("View", VIEWS, key="view", help=about, segmented=True, label_visibility="collapsed")
shown = (show.cut if view == CUT else show.compare if view == COMPARE else show.learn)(subject)
try_this(tries(subject))
if shown is not None:
    numbers, code = shown
    details(lambda: numbers, code=code, how=HOW, limits=LIMITS, key="tokens")
next_step()
