"""A language model, and what can be asked of it: each public function of the other files is a
method of `LanguageModel` too.
"""

from importlib import import_module
from pkgutil import iter_modules

from .core import LanguageModel, TextTrace
from .opening import load

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")

__all__ = ["LanguageModel", "TextTrace", "load"]
