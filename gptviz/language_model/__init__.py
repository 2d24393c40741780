"""A language model, and what can be asked of it: the functions of the other files are methods of
`LanguageModel`.
"""

from .core import TextTrace
from .language_model import LanguageModel, load

__all__ = ["LanguageModel", "TextTrace", "load"]
