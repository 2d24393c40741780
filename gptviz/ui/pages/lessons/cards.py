"""The list of lessons, and how to write one."""

from __future__ import annotations

from html import escape

import streamlit as st

from gptviz.figures.kit.format import format_count
from gptviz.lessons.lesson import LEVELS, Lesson
from gptviz.lessons.library import PERIOD, own_folder
from gptviz.machine.hosting import hosting
from gptviz.runs import checkpoints
from gptviz.ui.menu import PAGES
from gptviz.ui.records.lessons import PAGE
from gptviz.ui.shell.around import lesson as shell
from gptviz.ui.shell.around import present
from gptviz.ui.shell.around.take_home import take_lesson_home
from gptviz.ui.widgets import escape_markdown
from gptviz.ui.widgets.details import folded_part

HOW = f"""A lesson is a Markdown file with the ending `.md`. It begins with its settings; every heading `##` begins a step. In a
step, a block `page` opens a page in a given state (`open` is the name in the page's address, and each other line is what the
address says), and a block `question` asks something: a `choice`, a `number`, a `token`, or a `state` that is chosen on the page:
`state: block, head` names what the click writes into the address, and the answer is then like "1.3".
With a `guess` a class guesses the token after its `prompt`; the answer is the text that went on, as in `answer: "'be'"`, of which
the first token is right.
A choice has its `options: [one, other]`; a number may be off by `within`.
A first wrong answer shows the `hint`, if there is one, and the reader may try once more; then the answer and the `reveal` are
shown.
Of the settings, `level` is one of {", ".join(LEVELS)}, or is left out.
The answer is an expression that the model computes, and so is every `{{{{ … }}}}` in the text. In an expression a text stands in
quotes: `answer: likeliest("When Mary")`. A `claim`, in a block of either kind, is an expression, or a list of them, that is true
if what your step says is true, such as `claim: probability("ROMEO:", "\\n") > 0.5`. Readers do not see it.
`python -m gptviz lessons check DIR` opens every page, computes every answer and every claim, and names the file, the line and
what to write instead where something does not work, or is not true."""
EXAMPLE = """---
title: A first lesson
about: How sure is the model after a name?
minutes: 5
level: first steps
based_on: [my own course]
model: shakespeare
---

## After a name

In a play a name stands on a line of its own.

```page
open: next_token
prompt: "ROMEO:"
look_at: The longest bar is the likeliest token.
claim: probability("ROMEO:", "\\n") > 0.5
```

```question
ask: How likely is a line break after “ROMEO:”, in percent?
kind: number
answer: 100 * probability("ROMEO:", "\\n")
within: 5
unit: "%"
hint: What can stand after a name and a colon?
reveal: "The runner-up is {{quoted(likeliest(\\"ROMEO:\\", 2)[1])}}."
```"""


def show() -> None:
    """All lessons in their order, and how to write one."""
    library = shell.lessons()
    models = checkpoints.folders()
    numbers = shell.numbers()
    # The lessons that fill a period at school, with the minutes of each.
    if library.path:
        ways = " · ".join(
            f"{_begin(numbers.get(lesson.name, 0), lesson)} ({lesson.minutes})"
            for lesson in library.path
        )
        total = sum(lesson.minutes for lesson in library.path)
        first = library.path[0]
        st.html(
            f'<p class="lesson-path"><b>Begin with lesson {numbers.get(first.name, 0)}, '
            f"{escape(first.title)}</b> For a period of {PERIOD} minutes: {ways}, in all "
            f"{total} minutes.</p>"
        )
    with st.container(horizontal=True, key="cards-lessons"):
        for lesson in library.lessons.values():
            begun = shell.begin_lesson(lesson)
            opens = lesson.steps[0].page
            with st.container(border=True, height="stretch", gap="xsmall"):
                with st.container(horizontal=True, gap="small", key=f"lesson-{lesson.name}"):
                    st.markdown(PAGES.get(opens.page if opens else "", PAGE).icon, width="content")
                    st.html(
                        f"{_begin(numbers.get(lesson.name, 0), lesson)}<p "
                        f'class="lesson-about">{escape(lesson.about)}</p>'
                    )
                if lesson.level:
                    level = f"{lesson.level.capitalize()}, "
                else:
                    level = ""
                steps = format_count(len(lesson.steps), "step")
                st.caption(
                    f"{level}{lesson.minutes} minutes, {steps}, with the model "
                    f"{escape_markdown(lesson.model)}."
                )
                if begun.done:
                    st.caption(f"**{begun.answered_words}**, {begun.n_right} of them right.")
                if lesson.model in models:
                    with st.container(horizontal=True):
                        take_lesson_home(lesson.name, key=f"take home {lesson.name}")
                        if hosting().lan and not hosting().read_only:
                            _teach(begun.address, lesson.name)
                else:
                    st.caption(
                        f"The model {escape_markdown(lesson.model)} is not on this machine: this "
                        "lesson "
                        "needs it."
                    )
    for why in library.faults.values():
        st.error(escape_markdown(why))
    if fold := folded_part("Write a lesson of your own", key="write a lesson"):
        fold.markdown(HOW)
        fold.code(EXAMPLE, language="markdown")
        fold.caption(f"Your lessons are read from the folder {escape_markdown(str(own_folder()))}.")


def _teach(address: str, name: str) -> None:
    """A button with the address of a lesson for the phones of a class, and the lesson in large
    type for who teaches.
    """
    with st.popover(
        "Teach",
        icon=":material/groups:",
        key=f"teach {name}",
        help="The address of this lesson for a class, as a QR code.",
    ):
        present.link_to(address)
        large = escape(f"{address}&{present.PRESENT}={present.LARGE}")
        st.html(
            f'<a class="lesson-begin" target="_self" href="{large}">Open it here, in large type</a>'
        )


def _begin(number: int, lesson: Lesson) -> str:
    """The link that begins a lesson, and a tick that the browser shows once it is done there."""
    tick = f'<span class="lesson-tick done-{lesson.name}" role="img" aria-label="done"> ✓</span>'
    address = escape(shell.begin_lesson(lesson).address)
    return (
        f'<a class="lesson-begin" target="_self" href="{address}">{number} '
        f"{escape(lesson.title)}</a>{tick}"
    )
