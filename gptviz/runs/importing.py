"""Imports that go on while the page that began them is closed or reloaded: one at a time, in a thread of the server."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Any, Literal

from gptviz.pretrained.places import hub

from .checkpoints import CheckpointError, check_writable
from .imports import Imported, import_model

State = Literal["beginning", "fetching", "opening", "done", "failed", "stopped"]


class _StoppedError(Exception):
    """Somebody asked the import to stop."""


class Import:
    """An import that has begun; it ends by itself or by `stop`, and other threads may look at it at any time.

    Attributes:
        given: what is imported, as `import_model` takes it.
        suggested: what to call the model; None for its name there.
        said: what its files do not tell.
        state: how far it is.
        arrived: the bytes that are here of those fetched from the hub.
        size: all of those bytes.
        read: how many tensors are read and compared with the config.
        of: how many there are.
        problem: why it failed.
        made: the model, once it is done.
    """

    def __init__(self, given: str, suggested: str | None = None, said: Mapping[str, Any] | None = None) -> None:
        self.given, self.suggested, self.said = given, suggested, said
        self.state: State = "beginning"
        self.arrived, self.size = 0, 0
        self.read, self.of = 0, 0
        self.problem = ""
        self.made: Imported | None = None
        self._stop = Event()
        self._thread = Thread(target=self._run, name=f"import of {given}", daemon=True)
        self._thread.start()

    @property
    def title(self) -> str:
        """What it is called while it goes on: a path by its end."""
        return self.suggested or (self.given if hub.is_name(self.given) else Path(self.given).name)

    @property
    def is_active(self) -> bool:
        """Whether it goes on."""
        return self.state in ("beginning", "fetching", "opening")

    @property
    def is_stopping(self) -> bool:
        """Whether somebody has asked it to stop, and it has not done so yet."""
        return self.is_active and self._stop.is_set()

    def stop(self) -> None:
        """Ask it to stop. What has arrived from the hub is kept, and the next import of the same model goes on with it."""
        self._stop.set()

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join()

    def _watch(self, arrived: int, size: int) -> None:
        if self._stop.is_set():
            raise _StoppedError
        self.arrived, self.size, self.state = arrived, size, "fetching"

    def _reading(self, read: int, of: int) -> None:
        if self._stop.is_set():
            raise _StoppedError
        self.read, self.of, self.state = read, of, "opening"

    def _run(self) -> None:
        try:
            command = f"gptviz import {shlex.quote(self.given)}"
            self.made = import_model(
                self.given,
                said=self.said,
                suggested=self.suggested,
                command=None if self.said else command,
                watch=self._watch,
                reading=self._reading,
            )
            self.state = "done"
        except _StoppedError:
            self.state = "stopped"
        except (ValueError, OSError, RuntimeError, MemoryError) as error:
            self.problem = str(error) or "There is not enough memory for this model."
            self.state = "failed"
        except BaseException:
            self.problem, self.state = (
                "it ended by an error of gptviz itself: see what the server wrote to its terminal",
                "failed",
            )
            raise


_lock = RLock()
_current: Import | None = None


def begin(given: str, suggested: str | None = None, said: Mapping[str, Any] | None = None) -> Import:
    """Begin to import a model, with these arguments of `import_model`.

    Raises:
        CheckpointError: another import goes on, or this server is read-only.
    """
    global _current
    check_writable(f"{given[:80]} is not opened")
    with _lock:
        if _current is not None and _current.is_active:
            raise CheckpointError(f"{_current.title} is being opened: wait until it is there, or stop it first")
        _current = Import(given, suggested, said)
        return _current


def current() -> Import | None:
    """The import that was begun last; None before the first, and once it was dismissed."""
    return _current


def goes_on() -> bool:
    """Whether an import goes on."""
    return _current is not None and _current.is_active


def dismiss() -> None:
    """Forget the import that was begun last, if it has ended."""
    global _current
    with _lock:
        if _current is not None and not _current.is_active:
            _current = None
