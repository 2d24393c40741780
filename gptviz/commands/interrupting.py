"""A run of the command line: Ctrl-C stops it after the step and keeps it, twice ends it at once."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gptviz.machine.hosting import hosting

from .common import INTERRUPTED

if TYPE_CHECKING:
    from gptviz.runs.status import StopRequest


@contextlib.contextmanager
def stop_on_interrupt(
    resumed_by: str, show: Callable[[str], None]
) -> Iterator[Callable[[], StopRequest | None]]:
    """Gives what a run asks after every step: whether it is to stop, since Ctrl-C was pressed, or
    since the minutes are over that a server allows.

    Args:
        resumed_by: the command that goes on with the run.
        show: prints a line.
    """
    interrupts: list[int] = []

    def stop_run(number: int, frame: object) -> None:
        interrupts.append(number)
        # an error raised while another one is handled would be printed with all that led to it
        if len(interrupts) > 2:
            os._exit(INTERRUPTED)
        if len(interrupts) > 1:
            raise KeyboardInterrupt
        # the signal may come while another text is being printed
        with contextlib.suppress(RuntimeError):
            show(
                "stopping after this step and saving the run (Ctrl-C again stops at once and "
                "loses what came after the last save)"
            )

    minutes = hosting().minutes
    end = math.inf if minutes is None else time.monotonic() + 60 * minutes

    def stop_requested() -> StopRequest | None:
        if interrupts or time.monotonic() > end:
            return "stop"
        return None

    before = {number: signal.signal(number, stop_run) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop_requested
    except KeyboardInterrupt:
        show(f"stopped at once: {resumed_by} goes on from what was saved last")
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
