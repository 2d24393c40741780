"""Imports that go on while the page that began them is closed or reloaded: one at a time, in a
thread of the server.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

from gptviz.machine.job import Job
from gptviz.pretrained.places import hub

from .checkpoints import CheckpointError, check_writable
from .imports import Imported, import_model
from .revisions import import_revisions


class ImportJob(Job[Imported]):
    """An import that has begun. If it is stopped, files that have arrived from the hub stay for the
    next import of the model.
    """

    def __init__(
        self,
        given: str,
        suggested: str | None = None,
        additions: Mapping[str, Any] | None = None,
        revisions: Sequence[str] = (),
    ) -> None:
        self.given = given  #: the model, as `import_model` takes it
        self.revisions = tuple(revisions)  #: those of it that become its snapshots, if any do
        # a path by its end
        title = suggested or (given if hub.is_name(given) else Path(given).name)
        if additions:
            command = None
        else:
            command = f"gptviz import {shlex.quote(given)}"
        if self.revisions:
            ends = f" --revisions {shlex.quote(','.join(revisions))}"
            compute = partial(
                import_revisions,
                given,
                self.revisions,
                suggested=suggested,
                command=f"{command}{ends}",
            )
        else:
            compute = partial(
                import_model, given, additions=additions, suggested=suggested, command=command
            )
        super().__init__(title, compute)


_lock = RLock()
_current: ImportJob | None = None


def begin(
    given: str,
    suggested: str | None = None,
    additions: Mapping[str, Any] | None = None,
    revisions: Sequence[str] = (),
) -> ImportJob:
    """Begin to import a model, with these arguments of `import_model`, or its `revisions` as
    snapshots of one model; refused while another import goes on.
    """
    global _current
    check_writable(f"{given[:80]} is not opened")
    with _lock:
        if _current is not None and _current.is_active:
            raise CheckpointError(
                f"{_current.title} is being opened: wait until it is there, or stop it first"
            )
        _current = ImportJob(given, suggested, additions, revisions)
        return _current


def current_import() -> ImportJob | None:
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
