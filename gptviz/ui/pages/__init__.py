"""The pages of the app: each folder has the record of one (`PAGE`) and what its script, `pages/NAME.py`, shows.

A folder's own file imports no code of the interface, so that every page can read the records of all pages at once. They are read
when they are asked for, not while this package is imported: the first visitors of a server import their pages at the same time,
and the one who imports this package would wait for a page that waits for this package.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from gptviz.ui.page import GROUP_NAMES, Group, Page

# The groups of the menu, and their pages in the order in which a newcomer reads them.
GROUPS: dict[Group, tuple[Page, ...]]
PAGES: dict[str, Page]


def _pages_of(group: Group, records: list[Page]) -> tuple[Page, ...]:
    return tuple(sorted((page for page in records if page.group == group), key=lambda page: page.place))


def __getattr__(name: str) -> Any:
    if name not in ("GROUPS", "PAGES"):
        raise AttributeError(f"module {__name__} has no attribute {name}")
    records: list[Page] = [import_module(f"{__name__}.{folder.name}").PAGE for folder in iter_modules(__path__)]
    groups = {group: _pages_of(group, records) for group in GROUP_NAMES}
    found = {"GROUPS": groups, "PAGES": {page.name: page for group in groups.values() for page in group}}
    globals().update(found)  # asked for once
    return found[name]
