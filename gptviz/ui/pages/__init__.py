"""The pages of the app: each folder has the record of one (`PAGE`) and what its script, `pages/NAME.py`, shows.

A folder's own file imports no code of the interface, so that every page can read the records of all pages at once.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from gptviz.ui.page import GROUP_NAMES, Group, Page


def _pages_of(group: Group) -> tuple[Page, ...]:
    return tuple(sorted((page for page in _records if page.group == group), key=lambda page: page.place))


_records: list[Page] = [import_module(f"{__name__}.{folder.name}").PAGE for folder in iter_modules(__path__)]
# The groups of the menu, and their pages in the order in which a newcomer reads them.
GROUPS: dict[Group, tuple[Page, ...]] = {group: _pages_of(group) for group in GROUP_NAMES}
PAGES: dict[str, Page] = {page.name: page for group in GROUPS.values() for page in group}
