"""The training queue: each run, a model or the fit of a dictionary, is trained by a separate
process, one run at a time, in the order they were submitted. Two runs that are to be compared,
twins, are trained beside each other and count as one.

The queue is stored only in the folders of the runs: a run waits if its status is "waiting", and the
time its status was written gives its place. So every page and every browser sees the same queue,
also after the server is restarted. Processes go on without the server, and the next server counts
them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import RLock, Thread
from typing import Any, NamedTuple

from gptviz.machine.errors import reason_of
from gptviz.machine.files import home
from gptviz.machine.hosting import carry_rights, environment, hosting, variable
from gptviz.machine.lines import lines_of

from . import checkpoints
from .checkpoints import PLAN
from .fits import read_fit
from .run import read_run
from .status import (
    RunError,
    StopRequest,
    clear_stop_request,
    end_before_a_step,
    mark_waiting,
    read_status,
    request_stop,
    stop_request,
    write_status,
)

MOST_WAITING = 30
POLL = 0.5  # seconds
# The file for the stderr of a process. Because of the dot it does not count as a file of the model.
ERRORS = ".stderr"
PACKAGES = Path(__file__).resolve().parents[2]


class QueueFullError(RunError):
    """As many runs wait as are allowed."""


class RunKind(NamedTuple):
    """A kind of run."""

    read: Callable[[Path], object]  #: a RunError or CheckpointError if the run cannot go on
    command: str  #: the command whose option `--resume NAME` goes on with it


#: The kinds by the file that a folder of this kind has: a model, and the fit of a dictionary.
KINDS = {"config.json": RunKind(read_run, "train"), PLAN: RunKind(read_fit, "dictionary")}


class Queue:
    """The runs below `root` that train or wait. A process has one queue per folder: see
    `own_queue`.

    A thread starts the next run when there is room; it lives as long as a run waits or trains.

    Args:
        root: the folder that holds the runs' folders.
        training: the most runs that train at the same time.
        waiting: the most runs that may wait.
        twins: whether the twin of a run that trains begins at once, though there is no room for
            another run.
        launch: starts a process, with the arguments of `subprocess.Popen`; default: that class.
    """

    def __init__(
        self,
        root: Path,
        *,
        training: int = 1,
        waiting: int = MOST_WAITING,
        twins: bool = True,
        launch: Callable[..., subprocess.Popen[bytes]] | None = None,
    ) -> None:
        self.root = root
        self.most_training = training
        self.most_waiting = waiting
        self.twins_at_once = twins
        self._launch = subprocess.Popen if launch is None else launch
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stop_requests: dict[str, StopRequest] = {}
        self._devices: dict[str, str] = {}
        self._lock = RLock()
        self._thread: Thread | None = None
        self._last = 0
        self._closed = False
        self.wake()

    def submit(self, name: str, device: str | None = None) -> int:
        """Train the run called `name` on `device` (default: the fastest) as soon as there is room,
        and return its `place`.

        A run that already trains or waits keeps its place.

        Raises:
            QueueFullError: too many runs wait.
            RunError: the run cannot be trained; the message says why.
            CheckpointError: there is no run of that name, or the disk is full or not writable.
        """
        checkpoints.check_writable(f"{name[:80]} is not trained")
        if not self.most_training:
            raise RunError("this server trains no models")
        with self._lock:
            folder = self._folder(name)
            if (place := self.place(name)) is not None:
                return place
            # its last status is written, and the process is about to end
            if name in self._processes:
                with suppress(subprocess.TimeoutExpired):
                    self._processes[name].wait(10)
                self._update()
            _kind_of(folder).read(folder)
            if read_status(folder).state == "finished":
                raise RunError(f"{name} is finished: begin a new run, from its weights if you like")
            waiting = self.waiting_runs()
            if len(waiting) >= self.most_waiting:
                raise QueueFullError(
                    f"{len(waiting)} runs wait already, which is the most allowed: try again "
                    "later, or take one back"
                )
            if device is not None:
                self._devices[name] = device
            mark_waiting(folder)
            # The clock of a file system is coarse: two runs submitted at the same tick must keep
            # their order.
            self._last = max(time.time_ns(), self._last + 1)
            os.utime(folder / "status.json", ns=(self._last, self._last))
            self._update()
            self.wake()
            return self.place(name) or 0

    def pause(self, name: str) -> None:
        """Let the run save its state and end, to be resumed later; a run that waits leaves the
        queue, any other is a RunError.
        """
        self._end(name, "pause")

    def stop(self, name: str) -> None:
        """Let the run be evaluated, save its state and end; otherwise as `pause`."""
        self._end(name, "stop")

    def place(self, name: str) -> int | None:
        """0 for a run that trains, n for the n-th that waits, None for any other run."""
        with self._lock:
            if name in self.training():
                return 0
            waiting = self.waiting_runs()
            if name in waiting:
                return waiting.index(name) + 1
            return None

    def training(self) -> list[str]:
        """The runs that are being trained: by this queue, by the command line, or by the queue of
        an earlier server.
        """
        with self._lock:
            states = {folder.name: read_status(folder).state for folder in self._folders()}
            begun = [name for name in self._processes if states.get(name) == "waiting"]
            return [*begun, *(name for name, state in states.items() if state == "running")]

    def waiting_runs(self) -> list[str]:
        """The runs that wait, the next one first."""
        with self._lock:
            since = {}
            for folder in self._folders():
                if folder.name not in self._processes and read_status(folder).state == "waiting":
                    with suppress(OSError):
                        since[folder.name] = (folder / "status.json").stat().st_mtime_ns
            return sorted(since, key=lambda name: (since[name], name))

    def wake(self) -> None:
        """Start the thread that starts the next run, if it does not live and a run trains or
        waits.
        """
        with self._lock:
            if self._thread is None and (self._processes or self.waiting_runs()):
                # what waits was allowed when it was put into the queue, whoever looks at it now
                work = carry_rights(self._attend, reads_only=False)
                self._thread = Thread(target=work, name="training queue", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Start no more runs, and kill the processes that this queue started; their runs can be
        resumed.
        """
        with self._lock:
            self._closed = True
            thread = self._thread
            for process in self._processes.values():
                process.kill()
                process.wait()
            with suppress(OSError, checkpoints.CheckpointError):
                self._update()
        if thread is not None:
            thread.join()

    def _folders(self) -> list[Path]:
        with suppress(OSError):
            return [folder for folder in self.root.iterdir() if not folder.name.startswith(".")]
        return []

    def _folder(self, name: str) -> Path:
        folder = self.root / name
        if not checkpoints.NAME.fullmatch(name) or not any(
            (folder / file).is_file() for file in KINDS
        ):
            raise checkpoints.CheckpointError(
                f"there is no run named {name[:80]!r} among your own models"
            )
        return folder

    def _end(self, name: str, how: StopRequest) -> None:
        checkpoints.check_writable(f"{name[:80]} goes on as it is")
        with self._lock:
            folder = self._folder(name)
            place = self.place(name)
            if place is None:
                raise RunError(f"{name} is not being trained")
            if place > 0:
                end_before_a_step(folder)
                return
            if name in self._processes and read_status(folder).state == "waiting":
                # It still loads Python and torch: waiting would take too long, and nothing is lost.
                process = self._processes.pop(name)
                process.kill()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                end_before_a_step(folder)
                return
            request_stop(folder, how)
            if name in self._processes:
                self._stop_requests[name] = how

    def _attend(self) -> None:
        """Attend to the queue every `POLL` seconds, until nothing waits or trains or the queue is
        closed.
        """
        while True:
            # If a disk is full or a folder is gone, the other runs must still get their turn.
            with self._lock, suppress(OSError, checkpoints.CheckpointError):
                self._update()
                if self._closed or not (self._processes or self.waiting_runs()):
                    self._thread = None
                    return
            time.sleep(POLL)

    def _update(self) -> None:
        """Remove the processes that have ended, and start the next run."""
        for name, process in list(self._processes.items()):
            folder = self.root / name
            if process.poll() is None:
                # A process deletes stop requests from before it began, so the request is made
                # again.
                if (
                    name in self._stop_requests
                    and read_status(folder).state == "running"
                    and stop_request(folder) is None
                ):
                    request_stop(folder, self._stop_requests[name])
                continue
            try:
                self._say_how_it_ended(name, process.returncode)
            finally:
                # last, so that who sees it gone sees its state too
                del self._processes[name]
        if not self._closed:
            for name in self._next_runs():
                self._start(name)

    def _say_how_it_ended(self, name: str, code: int) -> None:
        """Write the state of a run whose process has ended without writing one itself."""
        folder = self.root / name
        self._stop_requests.pop(name, None)
        if not folder.exists():
            return
        clear_stop_request(folder)
        state = read_status(folder).state
        error = _last_error(folder, code)
        if state == "interrupted":
            why = f"{error}; it can be resumed from the last state saved"
            write_status(folder, "interrupted", why)
        elif state == "waiting":
            write_status(folder, "failed", f"it could not begin: {error}")

    def _next_runs(self) -> list[str]:
        """The runs that begin now: the first that waits, if there is room, and the twin of a run
        that trains.
        """
        training = self.training()
        waiting = self.waiting_runs()
        if self.twins_at_once:
            twins = [twin for name in training if (twin := self._twin(name)) is not None]
        else:
            twins = []
        if begin := [twin for twin in twins if twin in waiting]:
            return begin
        pairs = sum(twin in training for twin in twins) // 2
        return waiting[: max(len(self._processes), len(training)) - pairs < self.most_training]

    def _twin(self, name: str) -> str | None:
        """The run that is trained beside this one; None if there is none."""
        with suppress(OSError, checkpoints.CheckpointError):
            twin = checkpoints.read_card(self.root / name).twin
            if twin != name:
                return twin
            return None
        return None

    def _start(self, name: str) -> None:
        folder = self.root / name
        command = [sys.executable, "-m", "gptviz", _kind_of(folder).command, "--resume", name]
        if device := self._devices.pop(name, None):
            command += ["--device", device]
        path = os.pathsep.join(filter(None, [str(PACKAGES), os.environ.get("PYTHONPATH")]))
        # The process stays alive when the server that started it ends, also by Ctrl-C.
        detached: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            detached = {
                "creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS
            }
        own = {"PYTHONPATH": path, "GPTVIZ_HOME": str(self.root.parent)}
        try:
            with (folder / ERRORS).open("wb") as errors:
                nothing = subprocess.DEVNULL
                self._processes[name] = self._launch(
                    command,
                    env=environment() | own,
                    stdin=nothing,
                    stdout=nothing,
                    stderr=errors,
                    **detached,
                )
        except OSError as error:
            write_status(
                folder, "failed", f"no process could be started to train it ({reason_of(error)})"
            )


def _kind_of(folder: Path) -> RunKind:
    """The kind of the run in `folder`; of one that is gone by now, a model."""
    known = (kind for file, kind in KINDS.items() if (folder / file).is_file())
    return next(known, KINDS["config.json"])


def _last_error(folder: Path, code: int) -> str:
    """The last line that the process wrote to stderr; without one, how the process ended."""
    with suppress(OSError), (folder / ERRORS).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4_096))
        lines = [line.strip() for line in lines_of(file.read().decode(errors="replace"))]
        if lines:
            return lines[-1].removeprefix("gptviz: ")[:400]
    if code < 0:
        with suppress(ValueError):
            return (
                f"its process was ended by {signal.Signals(-code).name} (by hand, or because "
                "memory ran out)"
            )
    return f"its process ended without a message (exit status {code})"


@lru_cache(maxsize=8)
def _queue_at(root: Path) -> Queue:
    allowed = hosting()
    # Who sets how many runs train at a time means all of them.
    return Queue(
        root,
        training=allowed.training,
        waiting=allowed.waiting,
        twins=variable("training") not in os.environ,
    )


def own_queue() -> Queue:
    """This process's queue in front of the user's own models."""
    return _queue_at(home() / "checkpoints")


def submit(name: str, device: str | None = None) -> int:
    """`Queue.submit` of the user's own queue."""
    return own_queue().submit(name, device)
