"""Patching: which piece of a model's computation carries the answer from one prompt to another."""

from gptviz.ui.records.patching import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

import streamlit as st

from gptviz.interp.over_prompts import AskedPrompt
from gptviz.ui.pages.patching import maps
from gptviz.ui.pages.patching.prompts import prompts, strips, with_room
from gptviz.ui.shell.close import NOTHING, close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views.over_prompts import over_prompts
from gptviz.ui.widgets import try_this

subject = with_room(subject_bar())
both = prompts(subject)
if both is not None:
    strips(subject, both)
    picture = st.container()
    heatmaps = maps.maps(subject, both)
    with picture:
        maps.maps_by_position(subject, both, heatmaps)
    maps.which_head(subject, both, heatmaps)
    maps.summary(heatmaps)
    of_features = maps.which_feature(subject, both)
    over_prompts(
        subject,
        "patch",
        AskedPrompt(both.pair.clean, both.pair.right, both.pair.wrong, both.pair.corrupted),
    )

try_this(maps.tries(subject))
if both is None:
    close(PAGE, None, *NOTHING)
else:
    close(PAGE, None, *maps.numbers_and_code(subject, both, heatmaps, of_features))
