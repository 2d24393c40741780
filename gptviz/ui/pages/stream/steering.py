"""A direction between two lists of texts, and what the model says with it in its stream, here and
on every page.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from gptviz.figures.reading.lens import by_layer
from gptviz.interp.changing import directions
from gptviz.interp.changing.directions import Direction
from gptviz.interp.units.unit import Unit
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import fitted, steering
from gptviz.language_model.steering import Steered
from gptviz.machine.errors import reason_of
from gptviz.machine.lines import lines_of
from gptviz.runs import fitted as kept
from gptviz.settings.kinds import HowFound
from gptviz.ui.shell.subject import AskedAnalysis, Subject, ask, edits
from gptviz.ui.shell.subject.unit_titles import name_with
from gptviz.ui.views.files import download, read_in
from gptviz.ui.views.notes import show_notes
from gptviz.ui.widgets import (
    addresses,
    controls,
    escape_markdown,
    say_answer,
    show_figure,
    theme,
    visit,
)

# What is offered to models of texts whose task has no pairs of its own.
PHRASES = (
    *(
        "what is the matter with you",
        "come to the house with me",
        "this is the end of the day",
        "let us speak of it no more",
    ),
    *(
        "i have seen the king",
        "where is your brother now",
        "the sun is in the sky",
        "he was a good man",
    ),
    *(
        "they went to the sea",
        "give me your hand",
        "she will not come again",
        "we have no time for this",
    ),
)
NAMES = {"difference of means": "means", "first component": "component"}
ALL = "all"
LAST = "the last text"
PROMPT = "the prompt"
# The key of the address with the name of the direction that was read from a file.
FILE = "vector"
LONGEST_LIST = 20_000
HEIGHT = 340
Lists = tuple[tuple[str, ...], tuple[str, ...]]


def show(subject: Subject) -> tuple[LabelledArray | None, str | None]:
    """The controls, what the direction does, and how well it tells the texts apart. Return the
    numbers of the picture and the code; none after a message that there is no direction.
    """
    name, offered = _offered_lists(subject)
    with st.expander(
        "How the direction is found: texts, block and method", expanded=not offered[0]
    ):
        lists = _texts(offered)
        asked = _direction(subject, name, lists)
        own = _from_file(subject)
    if own is None and not all(lists):
        st.info(
            "Type texts into both lists, one in each line, which differ in what the direction "
            "should be about."
        )
        return None, None
    try:
        found = own or asked.value
        if not kept.is_kept(found.name):  # its file was removed since, or who found it only reads
            directions.keep(found)
        _in_place_of_earlier(subject, found)
        steered, broken = _steered(subject, found, lists[1])
        if own:
            said = ""
        else:
            said = _describe_turned(subject, found, lists, steered.value.strength)
    except (ValueError, OSError) as error:
        st.info(f"{escape_markdown(subject.key.name)}: {escape_markdown(reason_of(error))}.")
        return None, None
    add_name = name_with(subject.key)
    short = found.name.rpartition("-")[0] or found.name
    name = escape_markdown(add_name(f"direction.{found.name}", f"“{short}”"))
    say_answer(f"Direction {name}. {escape_markdown(steered.value.said)}{broken}{said}")
    _pictures(found, steered.value)
    hint = (
        "A GGUF control vector, as this page, llama.cpp and repeng read it. llama.cpp takes no "
        "vector after block 0: only this page adds that one too."
    )
    if any(found.vectors):
        download(
            "Download the direction",
            f"{found.name}.gguf",
            partial(subject.lm.write_direction, found.name),
            help=hint,
        )
    else:
        st.caption(
            "There is no file of a direction that acts only after block 0: llama.cpp takes none."
        )
    show_notes(subject, Unit("direction", called=found.name))
    if own:
        return steered.value.probability, steered.code("result.probability, result.texts")
    return steered.value.probability, asked.code(
        f"steered = {steered.call}", "steered.probability, steered.texts"
    )


def _offered_lists(subject: Subject) -> tuple[str, Lists]:
    """The name of a direction and the two lists that are offered for it; empty ones where the model
    cannot read them.
    """
    task = subject.lm.task
    name, *lists = (
        ("capitals", tuple(map(str.upper, PHRASES)), PHRASES) if task is None else task.opposites()
    )
    knows = not subject.lm.tokenizer.encode("\n".join((*lists[0], *lists[1]))).unknown
    if knows:
        return (name or "direction", (lists[0], lists[1]))
    return ("direction", ((), ()))


def _texts(offered: Lists) -> Lists:
    """The controls for the two lists. An empty field stands for the texts that are offered, in
    grey.
    """
    hint = (
        "Texts, one in each line. Their last tokens decide: between them the direction is found. "
        "Where both lists are equally "
        "long, the texts in the same line are a pair. A quarter of each list, at its end, is held "
        "out. Where the field is empty, "
        "the texts are those shown in grey."
    )
    found = []
    for column, side, example in zip(st.columns(2), ("toward", "away"), offered, strict=True):
        with column:
            label = "Lead toward" if side == "toward" else "Lead away from"
            shown = "\n".join(example)
            typed = controls.text(
                label, key=side, help=hint, longest=LONGEST_LIST, height=160, placeholder=shown
            )
            found.append(tuple(lines_of(typed or shown)))
    return found[0], found[1]


def _direction(subject: Subject, name: str, lists: Lists) -> AskedAnalysis[Direction]:
    """The controls for how the direction is found, and the direction, which is that of the model
    without edits.
    """
    count = subject.lm.model.config.n_layer
    with st.container(horizontal=True, vertical_alignment="bottom"):
        hint = "The block after which the direction is added, or all of them."
        blocks = [ALL, *map(str, range(count))]
        block = controls.select(
            "After block", blocks, key="block", default=str(count // 2), help=hint, follows=True
        )
        how = NAMES[controls.choose(HowFound, list(NAMES), key="how")]
        hint = (
            "What the direction is called in the list of edits. Another direction with this name "
            "takes the place of the first."
        )
        typed = controls.text("Name", key="direction", help=hint, longest=40, placeholder=name)
    at = None if block == ALL else int(block)
    settings = {
        "toward": lists[0],
        "away": lists[1],
        "block": at,
        "how": how,
        "name": typed or name,
    }
    return ask(subject.key.unedited, fitted.direction, "Finding the direction", **settings)


def _from_file(subject: Subject) -> Direction | None:
    """Where a file with a direction is dropped, and the direction, which is used in place of that
    of the texts.
    """

    def read_file(path: Path) -> None:
        addresses.write(FILE, subject.lm.read_direction(path).name)

    hint = (
        "A GGUF control vector of llama.cpp, repeng or this page: it is used in place of the "
        "texts, and kept in your folder."
    )
    read_in("Or a direction from a file", "gguf", read_file, key="file with a direction", help=hint)

    config = subject.lm.model.config
    found = controls.linked_choice(FILE, lambda name: directions.open_direction(name, config), None)
    if found is not None:
        st.button(
            "Back to the texts", icon=":material/undo:", on_click=addresses.write, args=(FILE, None)
        )
    return found


def _in_place_of_earlier(subject: Subject, found: Direction) -> None:
    """Let an edit that added an earlier direction of this name add this one. A link may ask for it
    before it was found here.
    """
    own = f"direction.{found.name}"
    for text in edits.asked_edits():
        unit, _, to = text.partition("=")
        if unit != own and unit.rpartition("-")[0] == own.rpartition("-")[0]:
            edits.take_away(text)
            edits.set_to(f"{own}={to}" if to else own)
            st.rerun()
        if unit == own and text not in subject.key.edits and not visit.remembered_value(text):
            visit.remember(text, True)
            st.rerun()


def on_every_page(found: Direction) -> float:
    """The controls for how a direction acts on every page: the strength, and whether it is taken
    out of the stream.
    """
    off = f"direction.{found.name}"
    hint = (
        "How often the spread of the texts along the direction is added to the stream, on every "
        "page: it is an edit, which links "
        "have too. At 0 nothing is added, and the view Steering shows what the largest strength up "
        "to 2 would do at which the text stays likely. "
        "Generate writes with it, without "
        "it and with it turned round, in branches beside each other."
    )
    strength = edits.number_slider(
        st, off, 0.0, "Strength on every page", -4.0, 4.0, step=0.5, help=hint
    )
    hint = (
        "Take all that lies along the direction out of the stream, on every page, or leave it "
        "there again."
    )
    if off in edits.asked_edits():
        label = "Bring the direction back"
    else:
        label = "Switch the direction off"
    st.button(label, key="switch the direction", on_click=edits.toggle, args=(off,), help=hint)
    return strength


def _steered(
    subject: Subject, found: Direction, away: tuple[str, ...]
) -> tuple[AskedAnalysis[Steered], str]:
    """The controls for the strength and for what is read, and what the model then says; and, where
    no strength is chosen, a sentence if its text is broken at any.
    """
    if away and subject.prompt == subject.default:
        default = LAST
    else:
        default = PROMPT
    with st.container(horizontal=True, vertical_alignment="bottom"):
        strength = on_every_page(found)
        hint = "What the model goes on with here: the prompt, or the last text of the second list."
        read = controls.select(
            "Goes on with", [LAST, PROMPT], key="read", default=default, help=hint, follows=True
        )
        hint = (
            "Whether attention looks, in the next token and at each step of the texts, where it "
            "looks without the direction."
        )
        frozen = controls.switch("Freeze attention", key="frozen", help=hint)
    prompt = away[-1] if away and read == LAST else subject.text
    settings: dict[str, Any] = {"prompt": prompt, "direction": found.name}
    key = subject.key.without_edit(f"direction.{found.name}")
    broken = ""
    if not strength:
        strength, less = ask(
            key, steering.likely_strength, "Looking for a strength", **settings
        ).value
        if less > steering.LESS_LIKELY:
            broken = " But then its text is broken: the model itself finds it unlikely."
    settings |= {"strength": strength, "frozen": frozen}
    return ask(key, steering.steer, "Steering", **settings), broken


def _describe_turned(subject: Subject, found: Direction, lists: Lists, strength: float) -> str:
    """How many held-out pairs of texts go on alike with the direction, in a sentence; empty where
    there are no such pairs.
    """
    if len(lists[0]) != len(lists[1]) or not steering.held_out_pairs(subject.lm, *lists):
        return ""
    settings = {"direction": found.name, "toward": lists[0], "away": lists[1], "strength": strength}
    turned, of = ask(
        subject.key.unedited, steering.count_turned, "Steering held-out texts", **settings
    ).value
    if of:
        return f" With it {turned:,} of {of:,} held-out texts go on as their partners do."
    return ""


def _pictures(found: Direction, steered: Steered) -> None:
    """The next token along the strength, three texts side by side, and how far the direction tells
    held-out texts apart.
    """
    strengths = [at.replace("-", "−") for at in steered.probability.axes[1].labels]
    show_figure(
        by_layer(steered.probability, strengths, theme(), height=HEIGHT),
        key="steered",
        alt="The probability of the likeliest next tokens from strength −4 to 4.",
    )
    st.caption(
        "The probability of the next token at each strength of the direction. At 0 the model is "
        "as it was, to the bit."
    )
    st.markdown("**What the model writes, always with the likeliest token**")
    for column, at, text in zip(
        st.columns(3), (-steered.strength, 0, steered.strength), steered.texts, strict=True
    ):
        with column:
            st.caption(f"Strength {at:g}".replace("-", "−"))
            st.text(text)
    if math.isnan(found.separated):
        st.caption(
            "No texts were held out: with four different texts in a list or more it is tested "
            "whether the direction tells them apart."
        )
        return
    st.markdown("**How well the direction tells apart texts that it was not found on**")
    show_figure(
        by_layer(found.labelled(), found.labelled().axes[1].labels, theme(), height=HEIGHT),
        key="separation",
        alt="The share of held-out texts on the right side of the middle, after each block.",
    )
