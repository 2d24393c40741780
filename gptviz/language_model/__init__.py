"""A language model, and what can be asked of it: each public function of the other files is a method of `LanguageModel` too."""

from . import (  # noqa: F401
    changing,
    data,
    dictionaries,
    explaining,
    fitted,
    over_training,
    reading,
    scanning,
    steering,
    units,
    writing,
)
from .core import LanguageModel, TextTrace
from .opening import load

__all__ = ["LanguageModel", "TextTrace", "load"]
