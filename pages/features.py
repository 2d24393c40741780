"""Which patterns does the model notice? The features that a dictionary finds in it, and a toy that
keeps five in two dimensions.
"""

import streamlit as st

from gptviz.ui.records.features import PAGE
from gptviz.ui.shell import frame
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.features import features, superposition
from gptviz.ui.records.features import SUPERPOSITION, VIEWS
from gptviz.ui.records.next_token import PAGE as NEXT_TOKEN
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import controls

subject = subject_bar()
row = st.container(horizontal=True, vertical_alignment="bottom")
with row:
    hint = (
        "The features of this model; or why features share dimensions, in a toy model that is "
        "trained here."
    )
    view = controls.select("View", VIEWS, key="view", help=hint, segmented=True)
if view == SUPERPOSITION:
    close(PAGE, superposition.tries(), *superposition.show())
    st.stop()
if not subject.lm.model.config.n_layer:
    st.info("This model has no blocks, and so no stream that features could be read from.")
    frame.link(NEXT_TOKEN)
    close(PAGE, view=None)
    st.stop()
offers, shown = features.show(subject, row)
close(PAGE, offers, *shown)
