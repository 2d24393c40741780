"""Open a model: those of other programs on this machine, and those on the hub."""

import streamlit as st

from gptviz.ui.records.open_model import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.machine.hosting import hosting
from gptviz.pretrained.families import FAMILIES
from gptviz.runs import import_job
from gptviz.ui.pages.open_model import source
from gptviz.ui.pages.open_model.here import (
    free_memory,
    models_here,
    models_that_ship,
    note_the_end,
    on_this_machine,
    opened_before,
    progress,
    read_more,
    say_what_opens,
    summaries,
)
from gptviz.ui.shell.close import close
from gptviz.ui.views import real_model

if hosting().read_only:  # a reader who may type paths here learns which files there are
    st.info(
        "This server shows the models in its list, and opens no others: it is set to read-only."
    )
    opened_before()
    close(PAGE, view=None)
    st.stop()
active = import_job.goes_on()


@st.fragment(run_every=0.5 if active else None)
def going_on() -> None:
    """The import that goes on, looked at twice a second."""
    progress()
    if active and not import_job.goes_on():
        note_the_end()


say_what_opens()
given = source.field()
going_on()
if given:
    source.look_at(given)
opened_before()
real_model.offer()
models_that_ship()

st.header("On this machine", anchor=False)
st.caption(free_memory())
read, of = read_more(models_here())


@st.fragment(run_every=0.5 if active or read < of else None)
def show_models() -> None:
    """The models found; where their heads are not all read yet, some more at every look."""
    now, _ = read_more(models_here())
    if now < of:
        st.progress(now / of, f"Reading the heads of their files: {now} of {of}")
    on_this_machine()
    if read < of <= now:
        st.rerun()


show_models()
on_hub, as_zip = st.tabs(["From the hub", "From a zip file"], key="elsewhere")
with on_hub:
    source.search_the_hub()
with as_zip:
    source.zip_box()
known = summaries(models_here())
families = ", ".join(sorted({family.title for family in FAMILIES.values()}))
close(
    PAGE,
    source.tries(list(known.items())),
    code=source.CODE,
    more=f"The families that open here: {families}.",
)
