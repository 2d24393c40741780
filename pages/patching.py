"""Patching: which piece of a model's computation carries the answer from one prompt to another."""

from gptviz.ui.records.patching import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

import streamlit as st

from gptviz.interp.over_prompts import Asked
from gptviz.ui.pages.patching import show, words
from gptviz.ui.pages.patching.prompts import prompts, strips, with_room
from gptviz.ui.pages.patching.tries import tries
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views.over_prompts import over_prompts
from gptviz.ui.widgets import try_this
from gptviz.ui.widgets.details import details

subject = with_room(subject_bar())
both = prompts(subject)
if both is not None:
    picture = st.container()
    strips(subject, both)
    found = show.maps(subject, both)
    with picture:
        show.where(subject, both, found)
    show.which_head(subject, both, found)
    show.summary(found)
    over_prompts(subject, "patch", Asked(both.pair.clean, both.pair.right, both.pair.wrong, both.pair.corrupted))

try_this(tries(subject))

if both is not None:
    name = show.of_which(found)
    details(
        None if name is None else lambda: show.numbers(found.best(name)),
        code=None if name is None else words.code(subject, both, name, exact=name in found.exact),
        how=words.HOW,
        limits=words.LIMITS,
        key="patching",
    )
next_step()
