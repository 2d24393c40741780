"""What Home computes: the guess at the next token, and a small picture of every other page from this model and prompt."""

from __future__ import annotations
