"""What strangers' files ask for and nothing in this process could end: it is done in one with
little memory and little time.

A chat template is a program; a regular expression can take any time, and holds Python's lock
meanwhile. Both run in a process of their own (`confined_process.py`), which is ended when it takes
too long, and whose answer is data and nothing else.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from threading import Lock, Timer
from typing import Any

MOST_SECONDS = 3.0  # of processor time, for a request
# By the clock of the machine, which may be busy with other work; it matters where a system cannot
# limit processor time.
LONGEST_WAIT = 60.0
MOST_MEMORY = 2**29  # bytes


class EndedError(ValueError):
    """A process was ended, since it took too much time or memory; the message says which of
    them.
    """


class Confined:
    """A process for requests, one at a time, that may take `memory` bytes: it begins with the
    first, and ends with this object. The request `first` comes before all others, again after the
    process was ended, and has the `first_result`.
    """

    def __init__(self, memory: int = MOST_MEMORY, first: dict[str, Any] | None = None) -> None:
        self.first_result: Any = None
        self._memory = memory
        self._first = first
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, work: str, seconds: float | None = None, **request: Any) -> Any:
        """The result of a function of `confined_process.py`.

        Args:
            work: its name there.
            seconds: of processor time that it may take; `MOST_SECONDS` unless given.
            request: its arguments.

        Raises:
            EndedError: it took longer, or too much memory.
            ValueError: it refuses the arguments.
            OSError: the system cannot start a process.
        """
        with self._lock:
            if self._process is None:
                self._process = self._begin_process()
                if self._first is not None:
                    self.first_result = self._answer({"seconds": 2 * MOST_SECONDS, **self._first})
            return self._answer(
                {"work": work, "seconds": MOST_SECONDS if seconds is None else seconds, **request}
            )

    def _begin_process(self) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-I",
            str(Path(__file__).with_name("confined_process.py")),
            str(self._memory),
        ]
        alone = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
        pipe = subprocess.PIPE
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, env=alone)
        self._end = weakref.finalize(self, _end, process)
        return process

    def _answer(self, request: dict[str, Any]) -> Any:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        timer = Timer(LONGEST_WAIT, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:  # it ended before it had read the request
            line = b""
        finally:
            in_time = timer.is_alive()
            timer.cancel()
        answer = json.loads(line) if line.endswith(b"\n") else {}
        if "result" in answer:
            return answer["result"]
        if "error" in answer:
            raise ValueError(answer["error"])
        self._end()
        self._process = None
        is_late = not in_time or process.returncode == -getattr(signal, "SIGXCPU", 0)
        if is_late:
            took = f"it takes longer than {request['seconds']:.0f} seconds"
        else:
            took = "it takes too much memory"
        raise EndedError(answer.get("stopped", took))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def first_fitting(patterns: Sequence[str], names: Sequence[str]) -> list[int | None]:
    """For each name, the place of the first of these regular expressions that fits the name, or its
    end after a dot. A ValueError if one of them is no regular expression, or they take too long; an
    OSError if the system cannot start a process.
    """
    places: list[int | None] = (
        Confined().ask("fit", patterns=list(patterns), names=list(names))
        if patterns
        else [None] * len(names)
    )
    return places
