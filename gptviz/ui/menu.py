"""All pages, in the groups of the menu: each file of `gptviz/ui/records` has the record of one."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from gptviz.machine.hosting import hosting
from gptviz.ui import records
from gptviz.ui.page import GROUP_NAMES, Group, Page

_RECORDS: list[Page] = [
    import_module(f"{records.__name__}.{file.name}").PAGE for file in iter_modules(records.__path__)
]
_IN_ORDER = sorted(_RECORDS, key=lambda page: page.place)
# The groups of the menu, and their pages in the order in which a newcomer reads them.
GROUPS: dict[Group, tuple[Page, ...]] = {
    group: tuple(page for page in _IN_ORDER if page.group == group) for group in GROUP_NAMES
}
# The same in the order of the menu: what one does with models of one's own is in sight, however
# many pages take them apart.
IN_MENU: tuple[Group, ...] = ("From outside", "What it is made of", "Your models", "Take it apart")
PAGES = {page.name: page for group in GROUPS.values() for page in group}


def pages_here() -> dict[str, Page]:
    """The pages that the visitor whose page runs may open, by their names."""
    allowed = hosting().allowed_pages
    return {name: page for name, page in PAGES.items() if allowed is None or name in allowed}
