"""The subject of a page: which model, at which step of training, with which edits, reads which prompt."""

from .models import ModelKey, Subject, language_model, load_call, model_key

__all__ = ["ModelKey", "Subject", "language_model", "load_call", "model_key"]
