"""What the reader calls a unit and wrote about it, and where both are written."""

from __future__ import annotations

from functools import partial

import streamlit as st

from gptviz.interp.units.unit import Unit
from gptviz.machine.errors import reason_of
from gptviz.machine.hosting import hosting
from gptviz.runs import checkpoints
from gptviz.runs.notes import (
    LONGEST_NAME,
    LONGEST_NOTE,
    Note,
    NotesError,
    read_notes,
    write_note,
)
from gptviz.settings.address_values import ANY
from gptviz.streamlit_internals import READ_AS_A_WHOLE
from gptviz.ui.shell.subject import ModelKey, Subject
from gptviz.ui.shell.subject.unit_titles import (
    CALLED,
    forget_linked_name,
    linked_name,
    title_of,
    value_of,
)
from gptviz.ui.widgets import addresses, escape_markdown, visit

# What is remembered of the page: why a note could not be kept.
_FAILED = "why a note was not kept"


def show_notes(subject: Subject, unit: Unit) -> None:
    """The reader's note on a unit of the model on screen, and, folded, where it and a name of the
    reader's own are written. The address then has the name, so that a link has it too.
    """
    key = subject.key
    addresses.accept_values(CALLED, ANY)
    try:
        kept = read_notes(checkpoints.find(key.name)).get(unit.name, Note())
    except (NotesError, checkpoints.CheckpointError) as error:
        st.warning(f"Your names and notes are not shown: {escape_markdown(str(error))}.")
        return
    linked = linked_name(key, unit.name)
    name = kept.name or linked
    addresses.write(CALLED, value_of(key, unit.name, name) if name else None)
    title = escape_markdown(title_of(key, unit))
    if kept.note:
        st.markdown(f"**Your note on {title}**")
        st.text(kept.note)
    if not hosting().read_only and READ_AS_A_WHOLE not in st.session_state:
        _form(key, unit, Note(name, kept.note), is_linked=not kept.name and bool(linked))


def _form(key: ModelKey, unit: Unit, shown: Note, *, is_linked: bool) -> None:
    """The fields for a name and a note, and the button that keeps them."""
    title = escape_markdown(unit.title)
    name_key = f"name of {key.name} {unit.name}"
    note_key = f"note on {key.name} {unit.name}"
    with (
        st.expander(f"Your own name and note for {title}", icon=":material/edit_note:"),
        st.form(f"notes on {unit.part}", border=False),
    ):
        if is_linked:
            st.caption(f"The link calls it “{escape_markdown(shown.name)}”; it is not kept yet.")
        st.text_input(
            "Your name for it",
            shown.name,
            key=name_key,
            max_chars=LONGEST_NAME,
            help="All pages show it beside what the unit is, and so do links and files of this "
            "page. Empty: no name.",
        )
        st.text_area(
            "Your note",
            shown.note,
            key=note_key,
            max_chars=LONGEST_NOTE,
            help="What you found out about it. It stands here, and in a file of this page.",
        )
        st.form_submit_button(
            "Keep name and note",
            on_click=partial(_keep, key, unit, name_key, note_key),
            key="keep the note",
        )
        st.caption("It is kept on this machine only.")
        if failed := visit.remembered_value(_FAILED):
            st.error(escape_markdown(failed))


def _keep(key: ModelKey, unit: Unit, name_key: str, note_key: str) -> None:
    """Keep what was typed; where that fails, the form says why."""
    typed = {"name": st.session_state[name_key], "note": st.session_state[note_key]}
    try:
        write_note(checkpoints.find(key.name), unit.name, **typed)
    except (ValueError, OSError) as error:
        visit.remember(_FAILED, f"It is not kept: {reason_of(error)}.")
        return
    visit.remember(_FAILED, None)
    if not typed["name"].strip():
        forget_linked_name(key, unit.name)
