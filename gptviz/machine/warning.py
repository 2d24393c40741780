"""Warnings that name the line of who called the package."""

from __future__ import annotations

import sys
import warnings
from types import FrameType


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of this package that led here, however many of its functions stand
    between.
    """
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "gptviz":
        level += 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)
