"""What every test shares: a home of its own, no network, and a small model saved in it."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.tiny import TinyModel

# Before torch is imported: on tensors this small a second thread only waits.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Numbers of tests are those of PyTorch, whether `gptviz[fast]` is installed or not.
os.environ["GPTVIZ_FAST"] = "0"
# Nothing that reading the tests makes is garbage: to look for it took a third of that time, in each
# worker.
gc.disable()

# How long an example takes says how busy the machine is. The examples are the same in every run, so
# that a change is judged by what it changes; --hypothesis-profile=search tries others, and more of
# them.
_PATIENT: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
settings.register_profile("gptviz", derandomize=True, **_PATIENT)
settings.register_profile("search", max_examples=1000, print_blob=True, **_PATIENT)
settings.load_profile("gptviz")

# Workers take the files of tests in this order: the longest first, so that none of them is left
# with one in the end.
LONGEST = (
    "tests/browser/",
    "tests/takehome/",
    "tests/app/",
    "tests/test_cli",
    "tests/runs/",
    "tests/train/",
    "tests/test_",
)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Each worker reads the files of a folder from another one on, so that not all of them compile
    the same file at once.
    """
    report = yield
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    if isinstance(collector, pytest.Directory):
        first = (
            int(worker)
            * len(report.result)
            // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        )
        report.result = report.result[first:] + report.result[:first]
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the tests into the order of `LONGEST`, the same for all workers; those of a file stay
    together.
    """

    def place(item: pytest.Item) -> tuple[int, Path]:
        return next(
            (i for i, start in enumerate(LONGEST) if item.nodeid.startswith(start)), len(LONGEST)
        ), item.path

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """What exists before the first test never becomes garbage: to check it again took a twelfth of
    the time.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


@pytest.fixture(scope="session", autouse=True)
def _elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's own models and corpora, reaches another machine, or prints
    for a terminal.
    """
    connect = socket.socket.connect

    def loopback_only(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            raise OSError(f"a test tried to reach {address[0]}: tests run offline")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPTVIZ_HOME", str(tmp_path_factory.mktemp("home")))
        # workers have it, and would fold what is printed as a terminal folds it
        patch.delenv("COLUMNS", raising=False)
        patch.setattr(socket.socket, "connect", loopback_only)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_components_of_other_packages() -> Iterator[None]:
    """A page that is opened without a server does not look through every installed package for
    components.

    It did so each time, for a third of a second. The views of gptviz are registered by their own
    modules.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamlit.components.v2.manifest_scanner.scan_component_manifests", list)
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty `GPTVIZ_HOME` for this test alone; subprocesses inherit it."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("GPTVIZ_HOME", str(folder))
    return folder


@pytest.fixture
def no_bundled_models(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are the models of this test alone: none came with gptviz."""
    from gptviz.runs import checkpoints

    monkeypatch.setattr(checkpoints, "BUNDLED", tmp_path / "bundled")


@pytest.fixture
def tiny_model(home: Path) -> TinyModel:
    """Saves a small untrained character model in this test's home, and returns its folder.

    `tiny_model("name", text="its characters", seed=0, n_layer=1, …)`: further arguments are fields
    of `Config`. The weights are larger than a fresh model's, so that its predictions differ from
    each other.
    """
    from gptviz.runs import checkpoints
    from gptviz.text import CharTokenizer
    from tests.tiny import scrambled, tiny

    def make(
        name: str = "tiny",
        *,
        text: str = "the quick brown fox\njumps over the lazy dog.",
        seed: int = 0,
        card: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Path:
        tokenizer = CharTokenizer(text)
        model = scrambled(tiny(vocab_size=tokenizer.vocab_size, **changes), seed)
        return checkpoints.save(name, model, tokenizer, {} if card is None else card, replace=True)

    assert os.environ["GPTVIZ_HOME"] == str(home)
    return make
