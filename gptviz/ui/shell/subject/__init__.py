"""The subject of a page: which model, at which step of training, with which edits, reads which
prompt.
"""

from typing import TYPE_CHECKING

from gptviz.machine.lazily import lazily

if TYPE_CHECKING:
    from .asking import AskedAnalysis, ask
    from .models import ModelKey, Subject, language_model, load_call, model_key, opening

__getattr__, __dir__, __all__ = lazily(__name__)
