"""gptviz: open, train, watch and take apart a transformer.

>>> import gptviz
>>> lm = gptviz.load("shakespeare")
>>> print(lm.generate("ROMEO:", temperature=0.8, seed=1))
>>> lm.trace("ROMEO:")["blocks.2.attention.pattern"]  # [1, head, query, key]
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._version import __version__
    from .language_model import LanguageModel, load
    from .takehome.show import show

# Before torch is imported: its threads wait for each other by spinning, which takes the cores from
# other computations. With a training in the background, all that pages compute took up to twenty
# times as long; threads that do not spin at all make the steps of a small training take three times
# as long.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def _names() -> Any:
    # Imported when a name is asked for: the first visitors of a server import modules of this
    # package at the same time, and the one who imports the package itself would wait for a module
    # that waits for this package.
    from .machine.lazily import lazily

    return lazily(__name__)


def __getattr__(name: str) -> Any:
    get, _, every = _names()
    if name == "__all__":
        return every
    return get(name)


def __dir__() -> list[str]:
    return _names()[1]()
