"""A list of prompts beside the one on screen: what patching, attribution or switching off says of
heads and MLPs over it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.figures.changing import over_prompts as figures
from gptviz.figures.kit.format import brief, format_count, format_signed, percent
from gptviz.interp.over_prompts import SAYS, AskedPrompt, How, Spread, measure_prompt
from gptviz.interp.units.unit import heads_and_mlps
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.language_model import changing
from gptviz.language_model.changing import example_pairs
from gptviz.machine.hosting import upload_limit
from gptviz.model.costs.effort import MUCH, effort
from gptviz.text.datasets.corpora import corpus_of
from gptviz.text.datasets.prompt_pairs import PromptRow, as_csv, prompt_rows
from gptviz.ui.shell.subject import ModelKey, Subject, ask, language_model, opening
from gptviz.ui.shell.subject.bar import longest_prompt
from gptviz.ui.shell.subject.unit_titles import titles_of
from gptviz.ui.widgets import (
    capitalise_text,
    controls,
    details,
    escape_markdown,
    jobs,
    show_figure,
    theme,
)
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.tables import show_table

LIST = "pairs"
UPLOADER = "list of prompts"
PART = "list of prompts part"
REFUSED = "list of prompts refused"
TITLE = "Over a list of prompts"
# How many pairs a task writes, and how many rows are read.
WRITTEN = 20
MOST_ROWS = 500
MOST_UPLOADED = 1  # MB
# Seconds that a page waits for what should take a moment.
LONGEST = 10.0
ABOUT = (
    "One prompt in each line: the prompt | a corrupted prompt with as many tokens | the right "
    "answer | the wrong one. The last "
    "ones may be left out: the likeliest tokens are then taken. Patching needs the corrupted "
    "prompt. Or CSV, whose first line "
    "names its columns: clean, corrupted, right, wrong."
)


def over_prompts(subject: Subject, how: How, here: AskedPrompt) -> None:
    """The folded list, which all pages with one have in common, and what `how` says of it beside
    the prompt on screen, `here`. A decoder has one; other models have none.
    """
    if not subject.kind.continues:
        return
    fold = details.folded_part(
        TITLE,
        icon=":material/list_alt:",
        key="list of prompts fold",
        is_needed=LIST in st.query_params,
    )
    if fold is None:
        return
    with fold:
        text = controls.text(
            "Prompts", key=LIST, help=ABOUT, longest=longest_prompt(), height=140, lasting=True
        )
        _sources(subject)
        if not text.strip():
            st.caption(
                "One prompt proves little. Here a whole list of them says what each head and each "
                "MLP does on average."
            )
            return
        try:
            rows = prompt_rows(text, "the list")
            if len(rows) > MOST_ROWS:
                raise ValueError(
                    f"the list has {len(rows):,} prompts; at most {MOST_ROWS} are read here: "
                    "shorten it"
                )
        except ValueError as error:
            st.error(f"{escape_markdown(str(error))}.")
            return
        if (measured_spread := _find_spread(subject, how, tuple(rows))) is not None:
            _show(subject, how, measured_spread, _measure_here(subject.key, how, here))
        with st.popover("Code", icon=":material/code:"):
            st.code(_code(subject, how, text), language="python")


def _sources(subject: Subject) -> None:
    """Ways to fill the list: a file, and pairs that the task of the model writes."""

    def upload() -> None:
        st.session_state.pop(REFUSED, None)
        if (file := st.session_state[UPLOADER]) is not None:
            try:
                text = corpus_of(file.getvalue(), Path(file.name).name[-80:]).text
                prompt_rows(text, Path(file.name).name[-80:])
                st.session_state[LIST] = text
            except ValueError as error:
                st.session_state[REFUSED] = (
                    f"The file was not taken: {escape_markdown(str(error))}."
                )

    def write() -> None:
        st.session_state[LIST] = as_csv(
            _written_rows(subject.key, st.session_state.get(PART) or "")
        )

    with st.container(horizontal=True, vertical_alignment="bottom"):
        if (task := subject.lm.task) is not None:
            if task.parts:
                st.selectbox(
                    "Task", task.parts, key=PART, width=160, help="Of which task the pairs are."
                )
            about = (
                f"Up to {WRITTEN} held-out prompts that the model gets right, each with one token "
                "changed so that it answers "
            )
            st.button(
                f"Write {WRITTEN} pairs",
                on_click=write,
                icon=":material/auto_fix_high:",
                help=f"{about}otherwise.",
            )
        if (most := upload_limit(MOST_UPLOADED)) is not None:
            st.file_uploader(
                "A CSV file",
                key=UPLOADER,
                on_change=upload,
                max_upload_size=most,
                label_visibility="collapsed",
            )
    if refused := st.session_state.get(REFUSED):
        st.error(refused)


@jobs.data("Writing pairs of prompts", max_entries=16)
def _written_rows(key: ModelKey, part: str) -> list[PromptRow]:
    return example_pairs(language_model(key), WRITTEN, part)


@jobs.data("Measuring the prompt on screen", max_entries=64)
def _measure_here(key: ModelKey, how: How, asked: AskedPrompt) -> dict[str, float]:
    try:
        return measure_prompt(language_model(key).model, asked, how)
    except ValueError:  # there is nothing to restore
        return {}


def _find_spread(subject: Subject, how: How, rows: tuple[PromptRow, ...]) -> Spread | None:
    """What is computed of the list; at once where that takes a moment, else with a button, a bar
    and a way to stop it.
    """
    title = format_count(len(rows), "prompt")
    asked = ask(subject.key, changing.over_prompts, title, rows=rows, how=how)
    lm = subject.lm
    if how != "attribute":
        passes = len(heads_and_mlps(lm.model.config))
    else:
        passes = 2
    tokens = sum(len(lm.tokenizer.encode(row.clean).ids) for row in rows)
    begins = effort(lm.model, tokens, passes) <= MUCH
    begun, show = asked.on_demand(begins=begins, waits=LONGEST)
    so_far = None if begun is None else begun.value
    show("Compute them", "Compute them again", "list")
    return so_far


def _show(subject: Subject, how: How, over_list: Spread, here: dict[str, float]) -> None:
    """The figure and the table."""
    title = titles_of(subject.key)
    units = {one.name: title(one) for one in heads_and_mlps(subject.lm.model.config)}
    titles = tuple(units[name] for name in over_list.units)
    on_screen: Float64Array = np.array([here.get(name, np.nan) for name in over_list.units])
    numbers = LabelledArray(
        over_list.labelled().values, (over_list.labelled().axes[0], Axis("unit", titles)), "value"
    )
    largest = int(np.nanargmax(np.abs(over_list.mean)))
    mean = over_list.mean[largest]
    deviation = over_list.deviation[largest]
    share = over_list.same_sign[largest]
    over = f"{capitalise_text(SAYS[how])}, over {format_count(len(over_list.values), 'prompt')}"
    around = "" if np.isnan(deviation) else f" ± {brief(deviation)}"
    best = f"{capitalise_text(escape_markdown(titles[largest]))} has the largest mean, {format_signed(mean)}{around}; "
    best += f"{percent(share)} of the prompts give it this sign"
    st.markdown(f"**{over}.** {best}.")
    show_figure(
        figures.over_prompts(numbers, on_screen, theme(), unit=SAYS[how]),
        key="over prompts",
        alt=f"{over}: {best}",
    )
    columns: dict[str, Any] = {
        "unit": over_list.units,
        "in words": titles,
        "prompt on screen": on_screen,
        "mean": over_list.mean,
    }
    columns |= {
        "standard deviation": over_list.deviation,
        "same sign": over_list.same_sign,
        "prompts": len(over_list.values),
    }
    frame = pd.DataFrame(columns).sort_values("mean", key=np.abs, ascending=False, kind="stable")
    show_table(frame, hide_index=True, height=pixels(240))
    details.csv_button(frame, "over_prompts", key="list csv")


def _code(subject: Subject, how: How, text: str) -> str:
    return f"""{opening(subject.lm, "from gptviz.text.datasets.prompt_pairs import prompt_rows")}
found = lm.over_prompts(prompt_rows({text!r}, "the list"), {how!r})
found.mean, found.deviation, found.same_sign  # [unit]; their names are found.units"""
