"""Jobs: runs trained by processes of their own, one at a time and in the order they came, however many ask.

The queue is what the folders of the runs say: a run waits whose status is "waiting", since its status was written. So it is
the same for every page and every browser, and a server that is started anew finds its place again: processes train on
without it, and count.
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
from typing import Any

from gptviz.files import home

from . import checkpoints
from .run import read_run
from .status import RunError, StopRequest, clear_stop_request, mark_waiting, read_status, request_stop, stop_request, write_status

MOST_TRAINING = 1
MOST_WAITING = 30
POLL = 0.5  # seconds
# What a process complains about. The dot keeps it from counting as a file of the model's.
COMPLAINTS = ".stderr"
PACKAGES = Path(__file__).resolve().parents[2]


class QueueFullError(RunError):
    """As many runs wait as may; the message says so."""


class Queue:
    """The runs below `root` that train or wait. One per process and folder: see `own_queue`.

    A thread starts the next run when there is room; it lives as long as a run waits or trains.

    Args:
        root: the folder that holds the runs' folders.
        training: the most runs that train at the same time.
        waiting: the most runs that may wait.
        launch: what starts a process, with the arguments of `subprocess.Popen`; default: that class.
    """

    def __init__(
        self,
        root: Path,
        *,
        training: int = MOST_TRAINING,
        waiting: int = MOST_WAITING,
        launch: Callable[..., subprocess.Popen[bytes]] | None = None,
    ) -> None:
        self.root, self.most_training, self.most_waiting = root, training, waiting
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
        """Train the run called `name` on `device` (default: the fastest) as soon as there is room; its `place`.

        A run that trains or waits already keeps its place.

        Raises:
            QueueFullError: too many wait.
            RunError: it cannot be trained on; the message says why.
            CheckpointError: there is no run of that name, or the disk takes no more.
        """
        with self._lock:
            folder = self._folder(name)
            if (place := self.place(name)) is not None:
                return place
            if name in self._processes:  # it has said its last word, and is about to end
                with suppress(subprocess.TimeoutExpired):
                    self._processes[name].wait(10)
                self._look_after()
            read_run(folder)
            if read_status(folder).state == "finished":
                raise RunError(f"{name} is finished: begin a new run, from its weights if you like")
            waiting = self.waiting()
            if len(waiting) >= self.most_waiting:
                raise QueueFullError(f"{len(waiting)} runs wait already, and no more may: try again later, or take one back")
            if device is not None:
                self._devices[name] = device
            mark_waiting(folder)
            # File systems tell time in ticks: two runs of one tick must not change places.
            self._last = max(time.time_ns(), self._last + 1)
            os.utime(folder / "status.json", ns=(self._last, self._last))
            self._look_after()
            self.wake()
            return self.place(name) or 0

    def pause(self, name: str) -> None:
        """Let the run keep its state and end, to go on later; one that waits is taken back.

        Raises:
            RunError: it neither trains nor waits.
        """
        self._end(name, "pause")

    def stop(self, name: str) -> None:
        """Let the run end for now, evaluated; one that waits is taken back.

        Raises:
            RunError: it neither trains nor waits.
        """
        self._end(name, "stop")

    def place(self, name: str) -> int | None:
        """0 for a run that trains, n for the n-th in line, None for any other."""
        with self._lock:
            if name in self.training():
                return 0
            waiting = self.waiting()
            return waiting.index(name) + 1 if name in waiting else None

    def training(self) -> list[str]:
        """The runs that are being trained, by whomever: this process's, the command line's, those of a server before."""
        with self._lock:
            states = {folder.name: read_status(folder).state for folder in self._folders()}
            begun = [name for name in self._processes if states.get(name) == "waiting"]
            return [*begun, *(name for name, state in states.items() if state == "running")]

    def waiting(self) -> list[str]:
        """The runs that wait, the next one first."""
        with self._lock:
            since = {}
            for folder in self._folders():
                if folder.name not in self._processes and read_status(folder).state == "waiting":
                    with suppress(OSError):
                        since[folder.name] = (folder / "status.json").stat().st_mtime_ns
            return sorted(since, key=lambda name: (since[name], name))

    def wake(self) -> None:
        """Attend to the queue from now on, if there is anything in it."""
        with self._lock:
            if self._thread is None and (self._processes or self.waiting()):
                self._thread = Thread(target=self._attend, name="training queue", daemon=True)
                self._thread.start()

    def processes(self) -> dict[str, int]:
        """The ids of the processes that this queue started and that have not ended, by the names of their runs."""
        with self._lock:
            return {name: process.pid for name, process in self._processes.items()}

    @property
    def is_attended(self) -> bool:
        """Whether the thread that starts the next run lives."""
        return self._thread is not None

    def close(self) -> None:
        """Start no run any more, and kill those in training that this queue started; each can be resumed from its last state."""
        with self._lock:
            self._closed, thread = True, self._thread
            for process in self._processes.values():
                process.kill()
                process.wait()
            with suppress(OSError, checkpoints.CheckpointError):
                self._look_after()
        if thread is not None:
            thread.join()

    def _folders(self) -> list[Path]:
        with suppress(OSError):
            return [folder for folder in self.root.iterdir() if not folder.name.startswith(".")]
        return []

    def _folder(self, name: str) -> Path:
        folder = self.root / name
        if not checkpoints.NAME.fullmatch(name) or not (folder / "config.json").is_file():
            raise checkpoints.CheckpointError(f"there is no run named {name[:80]!r} among your own models")
        return folder

    def _end(self, name: str, how: StopRequest) -> None:
        with self._lock:
            folder, place = self._folder(name), self.place(name)
            if place is None:
                raise RunError(f"{name} is not being trained")
            if place > 0:
                write_status(folder, "paused" if (folder / "state.safetensors").exists() else "ready")
                return
            request_stop(folder, how)
            if name in self._processes:
                self._stop_requests[name] = how

    def _attend(self) -> None:
        """Look after the queue again and again, until nothing waits or trains or the queue is closed."""
        while True:
            # A disk that is full or a folder that is gone is no reason to let the others wait for ever.
            with self._lock, suppress(OSError, checkpoints.CheckpointError):
                self._look_after()
                if self._closed or not (self._processes or self.waiting()):
                    self._thread = None
                    return
            time.sleep(POLL)

    def _look_after(self) -> None:
        """Take note of the processes that ended, and start the next."""
        for name, process in list(self._processes.items()):
            folder = self.root / name
            if process.poll() is None:
                # A process forgets what was asked of its run before it began.
                if name in self._stop_requests and read_status(folder).state == "running" and stop_request(folder) is None:
                    request_stop(folder, self._stop_requests[name])
                continue
            del self._processes[name]
            self._stop_requests.pop(name, None)
            if folder.exists():
                _after(folder, process.returncode)
        if not self._closed and len(self._processes) < self.most_training and len(self.training()) < self.most_training:
            for name in self.waiting()[:1]:
                self._start(name)

    def _start(self, name: str) -> None:
        folder = self.root / name
        command = [sys.executable, "-m", "gptviz", "train", "--resume", name]
        if device := self._devices.pop(name, None):
            command += ["--device", device]
        path = os.pathsep.join(filter(None, [str(PACKAGES), os.environ.get("PYTHONPATH")]))
        # Threads that spin while they wait take the core that the app or another run needs: with two cores shared, a step
        # took twenty times as long.
        environment = {"GOMP_SPINCOUNT": "10000", **os.environ, "PYTHONPATH": path, "GPTVIZ_HOME": str(self.root.parent)}
        try:
            with (folder / COMPLAINTS).open("wb") as complaints:
                self._processes[name] = self._launch(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=complaints,
                    **_apart(),
                )
        except OSError as error:
            write_status(folder, "failed", f"no process could be started to train it ({error})")


def _apart() -> dict[str, Any]:
    """What keeps a process alive when the server that started it ends, by Ctrl-C too."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS}
    return {"start_new_session": True}


def _after(folder: Path, code: int) -> None:
    """Say what became of a run whose process has ended, where the process could not say it itself."""
    clear_stop_request(folder)
    status = read_status(folder)
    if status.state == "interrupted":
        write_status(folder, "interrupted", f"{_last_words(folder, code)}; it can be resumed from the last state saved")
    elif status.state == "waiting":
        write_status(folder, "failed", f"it could not begin: {_last_words(folder, code)}")


def _last_words(folder: Path, code: int) -> str:
    """The last line a process complained with, or how it ended."""
    with suppress(OSError), (folder / COMPLAINTS).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4_096))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        if lines:
            return lines[-1].removeprefix("gptviz: ")[:400]
    if code < 0:
        with suppress(ValueError):
            return f"its process was ended by {signal.Signals(-code).name} (by hand, or because memory ran out)"
    return f"its process ended without a word (exit status {code})"


@lru_cache(maxsize=8)
def _queue_at(root: Path) -> Queue:
    return Queue(root)


def own_queue() -> Queue:
    """This process's queue in front of the user's own models."""
    return _queue_at(home() / "checkpoints")


def submit(name: str, device: str | None = None) -> int:
    """`Queue.submit` of the user's own queue."""
    return own_queue().submit(name, device)


def pause(name: str) -> None:
    """`Queue.pause` of the user's own queue."""
    own_queue().pause(name)


def stop(name: str) -> None:
    """`Queue.stop` of the user's own queue."""
    own_queue().stop(name)


def place(name: str) -> int | None:
    """`Queue.place` of the user's own queue."""
    return own_queue().place(name)
