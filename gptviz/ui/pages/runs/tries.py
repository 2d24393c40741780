"""The suggestions of the page Runs."""

from __future__ import annotations

from collections.abc import Mapping

from gptviz.runs.experiments import GROUPS
from gptviz.ui.views.entries import Entry
from gptviz.ui.widgets import Try

from .selection import names_in_link


def tries(entries: Mapping[str, Entry]) -> list[Try]:
    """Each comparison worth seeing of which two models are here."""
    offers = []
    for group in GROUPS:
        here = [name for name in group.plans if name in entries and entries[name].has_curve]
        if group.notice and len(here) > 1:
            offers.append(Try(group.title, group.notice, query={"chosen": names_in_link(here)}))
    return offers
