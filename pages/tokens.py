"""Tokens: what a text becomes before a model reads it, what languages cost, and how the pieces are
learned.
"""

from gptviz.ui.records.tokens import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.tokens.compare import compare
from gptviz.ui.pages.tokens.cut import show_tokens, tries
from gptviz.ui.pages.tokens.learn import learn
from gptviz.ui.records.tokens import COMPARE, CUT, VIEWS
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import controls

subject = subject_bar()
hint = (
    "One text and its tokens, two tokenizers beside each other, or the merges of a text as they "
    "are learned."
)
view = controls.select(
    "View", VIEWS, key="view", help=hint, segmented=True, label_visibility="collapsed"
)
shown = {CUT: show_tokens, COMPARE: compare}.get(view, learn)(subject)

close(PAGE, tries(subject), *shown)
