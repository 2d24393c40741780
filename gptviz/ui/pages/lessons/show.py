"""The list of lessons: what there is to see in each, how long it takes, and the link that opens it."""

from __future__ import annotations

from html import escape

import streamlit as st

from gptviz.figures.kit.format import counted
from gptviz.lessons.lesson import Lesson
from gptviz.lessons.library import own_folder
from gptviz.runs import checkpoints
from gptviz.ui.shell.around import lesson as shell
from gptviz.ui.shell.around.take_home import take_lesson_home
from gptviz.ui.widgets import escaped
from gptviz.ui.widgets.details import folded

from .words import EXAMPLE, HOW


def show() -> None:
    """All lessons in their order, and how to write one."""
    found = shell.lessons()
    models = checkpoints.folders()
    with st.container(horizontal=True, key="cards-lessons"):
        for number, one in enumerate(found.lessons.values(), 1):
            with st.container(border=True, height="stretch", gap="xsmall"):
                _card(number, one, has_model=one.model in models)
    for why in found.faults.values():
        st.error(escaped(why))
    if fold := folded("Write a lesson of your own", key="write a lesson"):
        fold.markdown(HOW)
        fold.code(EXAMPLE, language="markdown")
        fold.caption(f"Your lessons are read from the folder {escaped(str(own_folder()))}.")


def _card(number: int, one: Lesson, *, has_model: bool) -> None:
    begun = shell.begun(one)
    st.html(
        f'<a class="lesson-begin" target="_self" href="{escape(begun.address)}">{number} {escape(one.title)}</a>'
        f'<p class="lesson-about">{escape(one.about)}</p>'
    )
    st.caption(f"{one.minutes} minutes, {counted(len(one.steps), 'step')}, with the model {escaped(one.model)}.")
    if begun.done:
        st.caption(f"**{begun.answered_words}**, {begun.n_right} of them right.")
    if one.based_on:
        st.caption(f"Based on {escaped('; '.join(one.based_on))}.")
    if not has_model:
        st.caption(f"The model {escaped(one.model)} is not on this machine: this lesson needs it.")
        return
    take_lesson_home(one.name, key=f"take home {one.name}")
