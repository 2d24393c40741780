"""The open lesson: it stays beside the pages, says where to look, asks questions, and leads from
step to step.

The address says which lesson and step are open, and which questions were answered, so that a reload
or a link keeps them. A step is opened by an ordinary link with the whole state of its page, so that
it always looks the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from gptviz.components.address_button import address_button
from gptviz.languages import translate, wanted
from gptviz.lessons import votes
from gptviz.lessons.answering import Answer, answer_to, fill_text
from gptviz.lessons.checking import with_model
from gptviz.lessons.expression import ExpressionError
from gptviz.lessons.lesson import Lesson, PageState, Question
from gptviz.lessons.library import Library, library
from gptviz.lessons.real_model import about_what_is_open, stands_in
from gptviz.lessons.start import LESSON
from gptviz.lessons.translation import LATE
from gptviz.runs import checkpoints
from gptviz.settings.address_values import one_of
from gptviz.streamlit_internals import browser, period
from gptviz.ui.menu import pages_here
from gptviz.ui.records.open_model import PAGE as OPEN_MODEL
from gptviz.ui.widgets import (
    addresses,
    capitalise_text,
    escape_markdown,
    in_quotes,
    press_button,
    say_answer,
)

from ..subject.models import ModelKey, language_model, model_key
from . import present
from .class_answers import (
    AskedGuess,
    draw_answers,
    draw_guesses,
    follow,
    guess_box,
    guess_in_class,
    guessable,
    is_in_class,
    is_shown,
    one_guess,
    say_counted,
    show_text,
    tally,
    teaches,
)
from .take_home import take_lesson_home

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel

# Keys of the address: the lesson, the number of the step (from 1), and the answered questions.
STEP = "lesson_step"
DONE = "lesson_done"
KEYS = (LESSON, STEP, DONE)
_DONE = re.compile(r"(\d{1,2})\.(\d{1,2})([rwh])")
# What became of a question, as the address says it: answered, or answered wrong once, so that its
# hint is shown.
RIGHT = "r"
WRONG = "w"
HINTED = "h"
MOST_ANSWERS = 200
# The key of the session's state with the answered questions of every lesson that was open, by its
# name.
_ANSWERED = "lessons answered"


@dataclass(frozen=True)
class OpenLesson:
    """A lesson at one of its steps."""

    lesson: Lesson  #: the lesson
    step: int  #: the number of the step, from 0
    #: for each question that the reader tried to answer, by step and number, what became of it:
    #: `RIGHT`, `WRONG` or `HINTED`
    done: Mapping[tuple[int, int], str]

    @property
    def state(self) -> dict[str, str]:
        """Its values in the address."""
        done = "-".join(
            f"{step + 1}.{number + 1}{became}"
            for (step, number), became in sorted(self.done.items())
        )
        return {LESSON: self.lesson.name, STEP: str(self.step + 1)} | ({DONE: done} if done else {})

    def at_step(self, step: int) -> OpenLesson:
        """The lesson at another step."""
        return OpenLesson(self.lesson, step, self.done)

    def with_answer(self, number: int, right: bool) -> OpenLesson:
        """The lesson after a question of this step was answered: a first wrong answer shows its
        hint, if it has one.
        """
        asked = self.lesson.steps[self.step].questions[number]
        is_first = (self.step, number) not in self.done
        if right:
            became = RIGHT
        elif asked.hint and is_first:
            became = HINTED
        else:
            became = WRONG
        return OpenLesson(self.lesson, self.step, {**self.done, (self.step, number): became})

    @property
    def n_right(self) -> int:
        """The number of questions that were answered right."""
        return list(self.done.values()).count(RIGHT)

    @property
    def answered_words(self) -> str:
        """How many of its questions are answered, in words."""
        n_asked = sum(len(step.questions) for step in self.lesson.steps)
        return f"{n_asked - len(self._open_questions)} of {n_asked} answered"

    @property
    def is_done(self) -> bool:
        """Whether it is at its end, and all its questions are answered."""
        return self.step + 1 == len(self.lesson.steps) and not self._open_questions

    @property
    def _open_questions(self) -> set[tuple[int, int]]:
        """The questions that are not answered yet, by step and number."""
        asked = {
            (step, number)
            for step, each in enumerate(self.lesson.steps)
            for number in range(len(each.questions))
        }
        return asked - {one for one, became in self.done.items() if became != HINTED}

    @property
    def address(self) -> str:
        """The address of the page of its step, relative to any page: the page opened last by the
        steps up to this one.
        """
        pages = [step.page for step in self.lesson.steps[: self.step + 1] if step.page is not None]
        if pages:
            page = with_model(pages[-1], self.lesson)
        else:
            page = PageState("home", {"model": self.lesson.model})
        return address_of(page.page, {**page.query, **self.state})


def address_of(page: str, query: Mapping[str, str] | None = None) -> str:
    """The address of a page with a query, relative to any page."""
    return addresses.link(f"./{'' if page == 'home' else page}", query or {})


def lessons() -> Library:
    """All lessons whose pages this visitor may open, in the reader's language, read again every few
    seconds: a teacher soon sees a change to a file.
    """
    known = _every_lesson()
    here = pages_here().keys()
    return replace(
        known,
        lessons={name: lesson for name, lesson in known.lessons.items() if lesson.pages <= here},
    )


def _every_lesson() -> Library:
    """All lessons in the reader's language, also those that lead to pages that are left out."""
    return _lessons(period(5), tuple(wanted()))


@st.cache_resource(max_entries=4, show_spinner=False)
def _lessons(this_period: int, languages: tuple[str, ...]) -> Library:
    known = library().in_language(languages)
    return replace(
        known, lessons={name: about_what_is_open(lesson) for name, lesson in known.lessons.items()}
    )


def numbers() -> dict[str, int]:
    """The number of each lesson, the same for all visitors, whatever they may open."""
    return {name: number for number, name in enumerate(_every_lesson().lessons, 1)}


def current_lesson() -> OpenLesson | None:
    """The lesson that the address names, else the one that was open on the page before, if any."""
    asked = {key: st.query_params.get(key, st.session_state.get(key, "")) for key in KEYS}
    lesson = lessons().lessons.get(asked[LESSON])
    if lesson is None:
        return None
    if re.fullmatch(r"[0-9]{1,3}", asked[STEP]):
        number = int(asked[STEP])
    else:
        number = 1
    answered = _DONE.findall(asked[DONE])[:MOST_ANSWERS]
    done = {(int(step) - 1, int(number) - 1): became for step, number, became in answered}
    return OpenLesson(lesson, min(max(number, 1), len(lesson.steps)) - 1, done)


def keep(open_lesson: OpenLesson | None) -> None:
    """Write into the address and the session which lesson is open; None if it was left."""
    state = {} if open_lesson is None else open_lesson.state
    if open_lesson is not None:
        st.session_state.setdefault(_ANSWERED, {})[open_lesson.lesson.name] = open_lesson.done
    for key in KEYS:
        if key in state:
            st.session_state[key] = state[key]
        else:
            st.session_state.pop(key, None)
        addresses.write(key, state.get(key))


def begin_lesson(lesson: Lesson) -> OpenLesson:
    """A lesson at its first step, with what was answered in this session."""
    return OpenLesson(lesson, 0, st.session_state.get(_ANSWERED, {}).get(lesson.name, {}))


def state() -> dict[str, str]:
    """The values of an open lesson in a link to another page."""
    return {key: st.session_state[key] for key in KEYS if key in st.session_state}


def is_asked() -> bool:
    """Whether the address names a lesson."""
    return LESSON in st.query_params


def panel() -> bool:
    """Show the lesson that is open; whether there is one."""
    asked = st.query_params.get(LESSON)
    open_lesson = current_lesson()
    addresses.accept_values(LESSON, one_of(lessons().lessons))
    if open_lesson is None:
        if asked is not None:
            if asked in _every_lesson().lessons:
                why = " here: it leads to pages that this server leaves out"
            else:
                why = ""
            st.warning(
                f"There is no lesson “{escape_markdown(asked[:60])}”{why}.",
                icon=":material/link_off:",
            )
        keep(None)
        return False
    keep(open_lesson)
    step = open_lesson.lesson.steps[open_lesson.step]
    # Folded, it is one line: on a phone it then leaves the screen to the page (see
    # `kit/lesson.css`).
    title = f"**{_number(open_lesson.lesson)}{escape_markdown(open_lesson.lesson.title)}**"
    with st.expander(title, expanded=True, key="lesson", type="compact"), st.container(gap="small"):
        where = st.empty()  # says how many questions are answered, which a click below may change
        if open_lesson.lesson.any_decoder:
            # Of a lesson about any decoder, on a machine with none: which model it goes on with,
            # and the way to open another one.
            there = address_of(OPEN_MODEL.name, open_lesson.state)
            st.html(
                '<p class="lesson-offer"><a target="_self" '
                f'href="{escape(there + _presented_values())}">{escape(OPEN_MODEL.title)} '
                f"first</a>. {escape(stands_in(open_lesson.lesson))}</p>"
            )
        if says_late := late(open_lesson.lesson):
            st.caption(says_late)
        st.markdown(f"### {escape_markdown(step.title)}")
        about = _key(open_lesson.lesson)
        if not (present.is_view_only() and step.questions):
            _text(step.text, about)
        # It names controls, which are not there; and who guesses on a phone needs the room.
        guesses = is_in_class() and any(asked.kind == "guess" for asked in step.questions)
        if step.page is not None and step.page.look_at and not (present.is_view_only() or guesses):
            st.info(escape_markdown(step.page.look_at), icon=":material/visibility:")
        for number, question in enumerate(step.questions):
            with st.container(border=True, gap="small", key=f"question-{number}"):
                open_lesson = _ask(open_lesson, number, question, about)
        n_step = len(open_lesson.lesson.steps)
        if open_lesson.step + 1 == n_step and open_lesson.lesson.based_on:
            st.caption(
                "This lesson is based on "
                f"{escape_markdown('; '.join(open_lesson.lesson.based_on))}."
            )
        if open_lesson.step + 1 == n_step:
            _say_end(open_lesson)
        where.progress(
            (open_lesson.step + 1) / n_step,
            f"Step {open_lesson.step + 1} of {n_step} · {open_lesson.answered_words}",
        )
        _ways(open_lesson)
    return True


def late(lesson: Lesson) -> str:
    """That a translation lags behind its lesson, in its language; empty where it does not."""
    if not lesson.missing:
        return ""
    return translate(LATE, lesson.language)


def _say_end(open_lesson: OpenLesson) -> None:
    """How many questions were answered right, and what the lesson was about."""
    n_asked = sum(len(step.questions) for step in open_lesson.lesson.steps)
    if n_asked:
        right = f"{open_lesson.n_right} of {n_asked} answered right. "
    else:
        right = ""
    say_answer(f"{right}{escape_markdown(open_lesson.lesson.about)}")


def step_on_screen() -> str | None:
    """The name of the open step, None without a lesson."""
    open_lesson = current_lesson()
    if open_lesson is None:
        return None
    return f"{open_lesson.lesson.name}.{open_lesson.step}"


def done_on_screen() -> str:
    """The name of the open lesson if it is done, else an empty text."""
    open_lesson = current_lesson()
    if open_lesson is not None and open_lesson.is_done:
        return open_lesson.lesson.name
    return ""


def _number(lesson: Lesson) -> str:
    """The number of a lesson in the list, before its title."""
    number = numbers().get(lesson.name)
    return "" if number is None else f"{number} "


def link_first() -> None:
    """A link to the first lesson, for newcomers; it can be left at any time."""
    every = list(lessons().lessons.values())
    if every and current_lesson() is None:
        begin = OpenLesson(every[0], 0, {}).address
        st.html(
            '<p class="lesson-first"><b>Start here</b> <a class="lesson-begin" target="_self" '
            f'href="{escape(begin)}">'
            f"Lesson 1: {escape(every[0].title)}</a> A short text beside the pages. You can leave "
            "it at any time.</p>"
        )


def _key(lesson: Lesson) -> ModelKey:
    """The model that a lesson is about; if no model has its name, each value of the lesson says
    so.
    """
    try:
        return model_key(lesson.model, "cpu")
    except checkpoints.CheckpointError:
        return ModelKey(lesson.model, "cpu", written=0)


def _functions(model: str) -> dict[str, Callable[..., Any]]:
    # takes a moment to import: only a page with a lesson waits for it
    from gptviz.lessons.quantities import Quantities

    def open_model(name: str, step: int | None) -> LanguageModel:
        return language_model(model_key(name, "cpu", step))

    return Quantities(open_model, model).functions


# Cached, since every click on a page runs the lesson again too. A value may be about another model
# than that of the key, and that model may be trained again: it is computed again after some
# minutes.
@st.cache_data(max_entries=1_000, ttl=600, show_spinner="Asking the model")
def _fill_text(text: str, about: ModelKey) -> str:
    """See `gptviz.lessons.answering.fill_text`."""
    return fill_text(text, _functions(about.name))


@st.cache_data(max_entries=1_000, ttl=600, show_spinner="Asking the model")
def _answer(question: Question, about: ModelKey) -> Answer:
    """See `gptviz.lessons.answering.answer_to`."""
    return answer_to(question, _functions(about.name))


def _text(text: str, about: ModelKey) -> None:
    if not text:
        return
    try:
        st.markdown(_fill_text(text, about))
    except (ExpressionError, ValueError) as error:
        st.error(f"A number in this text cannot be computed: {escape_markdown(str(error))}")


def _ask(open_lesson: OpenLesson, number: int, question: Question, about: ModelKey) -> OpenLesson:
    """A question, a control for the reader's answer and, after that, a hint or the right answer.
    Returns the lesson as it then is.
    """
    key = f"{open_lesson.lesson.name} {open_lesson.step} {number}"
    asked = votes.Question(
        open_lesson.lesson.name, f"{open_lesson.step + 1}.{number + 1}", question.ask
    )
    not_counted = ""
    _text(question.ask, about)
    if question.kind == "guess" and (is_in_class() or teaches()):
        return _guess_with_class(open_lesson, number, asked, about)
    given: str | float | None
    if question.kind == "state":
        given, is_checked = _chosen_state(
            question, key, open_lesson.lesson.steps[open_lesson.step].page
        )
    else:
        given = _given_answer(question, key, about)
        is_checked = press_button("Check", key=f"check {key}")
    if is_checked:
        try:
            answer = _answer(question, about)
        except (ExpressionError, ValueError) as error:
            st.error(f"The answer cannot be computed: {escape_markdown(str(error))}")
            return open_lesson
        if given is None:
            st.caption(
                "Choose it on the page first."
                if question.kind == "state"
                else "Give an answer first: a guess is fine."
            )
            return open_lesson
        if is_in_class():
            said = f"{given:g}" if isinstance(given, float) else given
            not_counted = votes.count(asked, browser(), said)
        open_lesson = open_lesson.with_answer(number, answer.is_right(given))
        keep(open_lesson)
    became = open_lesson.done.get((open_lesson.step, number))
    if became is not None:
        _reveal(question, became, about)
        if question.kind == "guess" and became != HINTED and isinstance(given, str):
            draw_guesses(_asked_guess(question, about, asked), "you", one_guess(given))
    if not_counted:
        st.info(f"{capitalise_text(not_counted)}.")
    elif is_in_class():
        say_counted()
    elif teaches():
        tally(asked, partial(draw_answers, question.options))
    return open_lesson


def _asked_guess(question: Question, about: ModelKey, asked: votes.Question) -> AskedGuess:
    """A question of the kind "guess" as a class is asked it; an ExpressionError if its answer
    cannot be computed.
    """
    lm = language_model(about)
    ids = lm.seen(lm.encode(question.prompt)).tolist()
    return AskedGuess(
        asked, about, question.prompt, tuple(ids), str(_answer(question, about).value)
    )


def _guess_with_class(
    open_lesson: OpenLesson, number: int, asked: votes.Question, about: ModelKey
) -> OpenLesson:
    """A guess that a class makes together: who teaches sees how many have guessed, and shows all
    the result. Returns the lesson as it then is.
    """
    question = open_lesson.lesson.steps[open_lesson.step].questions[number]
    try:
        guess = _asked_guess(question, about, asked)
    except (ExpressionError, ValueError) as error:
        st.error(f"The answer cannot be computed: {escape_markdown(str(error))}")
        return open_lesson
    if teaches():

        def draw(ballot: votes.Ballot) -> None:
            draw_guesses(guess, "class", ballot)
            _text(question.reveal, about)

        show_text(guess.before)
        tally(asked, draw)
        return open_lesson
    ballot = guess_in_class(guess)
    own = ballot.answer_of(browser())
    if ballot.is_shown and own is not None:
        if (open_lesson.step, number) not in open_lesson.done:
            open_lesson = open_lesson.with_answer(number, own == guess.true)
            keep(open_lesson)
        _text(question.reveal, about)
    follow(ballot.is_shown, partial(is_shown, asked))
    return open_lesson


def _given_answer(question: Question, key: str, about: ModelKey) -> str | float | None:
    """The reader's answer so far, if any."""
    if question.kind == "guess":
        chosen = f"answer {key}"
        guess_box(
            guessable(about),
            question.prompt,
            partial(st.session_state.__setitem__, chosen),
            key,
        )
        given: str | None = st.session_state.get(chosen)
        if given is not None:
            st.caption(f"Your guess: {in_quotes(given)}")
        return given
    if question.kind == "choice":
        return st.radio(
            "Your answer",
            question.options,
            index=None,
            format_func=question.label,
            key=f"answer {key}",
            label_visibility="collapsed",
        )
    if question.kind == "number":
        label = f"Your answer{f' ({question.unit})' if question.unit else ''}"
        return st.number_input(
            label, value=None, format="%g", key=f"answer {key}", placeholder="a number"
        )
    typed = st.text_input(
        "Your answer",
        key=f"answer {key}",
        max_chars=100,
        help="␣ stands for a space, ⏎ for a line break.",
    )
    return typed.replace("␣", " ").replace("⏎", "\n") or None


def _chosen_state(question: Question, key: str, page: PageState | None) -> tuple[str | None, bool]:
    """The state that the reader chose, or None if it is still the one that the step opened; and
    whether to check it now.
    """
    told = told_key(key)
    st.caption("Choose it on the page, then check.")
    address_button(
        "Check",
        question.state,
        key=f"check {key}",
        on_press=partial(st.session_state.__setitem__, told),
    )
    said: dict[str, str] | None = st.session_state.pop(told, None)
    if said is None:
        return None, False
    given = question.answer_in(said)
    return None if page is not None and given == question.answer_in(page.query) else given, True


def told_key(question: str) -> str:
    """The key of the session's state with the address as it was when a question was checked."""
    return f"told {question}"


def _reveal(question: Question, became: str, about: ModelKey) -> None:
    """The hint after a first wrong answer, else the right answer and what there is to say about
    it.
    """
    try:
        if became == HINTED:
            st.warning(
                f"Not yet. {_fill_text(question.hint, about)} Try once more.",
                icon=":material/lightbulb:",
            )
            return
        answer = _answer(question, about)
        more = _fill_text(question.reveal, about) if question.reveal else ""
    except (ExpressionError, ValueError) as error:
        st.error(f"The answer cannot be computed: {escape_markdown(str(error))}")
        return
    right = became == RIGHT
    said = f"{'That is right' if right else 'Not quite'}: it is {escape_markdown(answer.in_words)}."
    (st.success if right else st.warning)(
        f"{said} {more}", icon=":material/check:" if right else ":material/close:"
    )


def _ways(open_lesson: OpenLesson) -> None:
    """The links to the step before and after, back to the page of this step, and out of the
    lesson.
    """
    ways = []
    if open_lesson.step > 0:
        ways.append(("Back", open_lesson.at_step(open_lesson.step - 1).address, "prev"))
    ways.append(("This step's page", open_lesson.address, "self"))
    every = list(lessons().lessons.values())
    if open_lesson.lesson in every:
        after = every[every.index(open_lesson.lesson) + 1 :]
    else:
        after = []
    if open_lesson.step + 1 < len(open_lesson.lesson.steps):
        ways.append(("Next", open_lesson.at_step(open_lesson.step + 1).address, "next"))
    else:
        ways.append(("All lessons", address_of("lessons"), "up"))
        if after:
            ways.append((f"Next lesson: {after[0].title}", begin_lesson(after[0]).address, "next"))
    links = "".join(
        f'<a class="way" rel="{rel}" target="_self" '
        f'href="{escape(address + _presented_values())}">{escape(label)}</a>'
        for label, address, rel in ways
    )
    st.html(f'<nav class="lesson-ways" aria-label="Steps of the lesson">{links}</nav>')
    with st.container(horizontal=True):
        st.button(
            "Leave the lesson",
            key="leave lesson",
            type="tertiary",
            icon=":material/close:",
            on_click=keep,
            args=(None,),
        )
        take_lesson_home(open_lesson.lesson.name, key="take lesson home")


def _presented_values() -> str:
    """The values that the link to a step adds in front of a class."""
    return "".join(f"&{key}={value}" for key, value in present.state().items())
