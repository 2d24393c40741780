"""Open a model: those of other programs on this machine, and those on the hub."""

import streamlit as st

from gptviz.ui.records.open_model import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.machine.hosting import hosting
from gptviz.runs import import_job
from gptviz.ui.pages.open_model.here import free_memory, models_here, on_this_machine, read_more, summaries
from gptviz.ui.pages.open_model.opened_before import opened_before
from gptviz.ui.pages.open_model.progress import note_the_end, progress
from gptviz.ui.pages.open_model.source import field, look_at, search_the_hub
from gptviz.ui.pages.open_model.tries import tries
from gptviz.ui.pages.open_model.upload import zip_box
from gptviz.ui.pages.open_model.words import CODE, HOW, LIMITS, READ_ONLY
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.widgets import try_this
from gptviz.ui.widgets.details import details

if hosting().read_only:  # a reader who may type paths here learns which files there are
    st.info(READ_ONLY)
    opened_before()
    next_step()
    st.stop()
active = import_job.goes_on()


@st.fragment(run_every=0.5 if active else None)
def going_on() -> None:
    """The import that goes on, looked at twice a second."""
    progress()
    if active and not import_job.goes_on():
        note_the_end()


given = field()
going_on()
if given:
    look_at(given)

st.header("On this machine", anchor=False)
st.caption(free_memory())
read, of = read_more(models_here())


@st.fragment(run_every=0.5 if active or read < of else None)
def here() -> None:
    """The models found; where their heads are not all read yet, some more at every look."""
    now, _ = read_more(models_here())
    if now < of:
        st.progress(now / of, f"Reading the heads of their files: {now} of {of}")
    on_this_machine()
    if read < of <= now:
        st.rerun()


here()
opened_before()
on_hub, as_zip = st.tabs(["From the hub", "From a zip file"], key="elsewhere")
with on_hub:
    search_the_hub()
with as_zip:
    zip_box()
known = summaries(models_here())
try_this(tries(list(known.items())))
details(code=CODE, how=HOW, limits=LIMITS, key="open a model")
next_step()
