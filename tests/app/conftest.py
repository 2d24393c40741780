"""Shared by the tests of pages: caches, models to open, and checks of every page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.testing.v1 import AppTest, local_script_runner
from streamlit.testing.v1.element_tree import ElementTree

from gptviz.interp.dictionaries import superposition
from gptviz.model import devices
from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints
from gptviz.text import BPETokenizer, CharTokenizer, WordTokenizer
from gptviz.text.tokenizers.byte_pairs import CUTS, byte_pairs
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer
from gptviz.train import estimate
from gptviz.ui.shell.frame import DEFAULT_PROMPT
from gptviz.ui.views import planned_run
from tests.drawn import looked_at
from tests.tiny import TinyModel, byte_letters, scrambled, tiny


# Caches are keyed by a model's name and by when its files were written: what one test filled is
# never the answer to another. They are cleared once a file, so that memory is bounded and a file's
# tests do not depend on another file's.
@pytest.fixture(autouse=True, scope="module")
def _caches_of_this_file() -> None:
    clear_caches()


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user without models of other programs, whom no page may ask the hub for
    one.
    """
    from huggingface_hub import constants

    for name in ("OLLAMA_MODELS", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return folder


SPEED = estimate.Speed(50e9, 4e9, 20e-6)


@pytest.fixture(autouse=True)
def _measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """How fast this machine is needs no measuring, and other tests have measured nothing."""
    monkeypatch.setattr(estimate, "measure", lambda device: SPEED)
    monkeypatch.setattr(planned_run, "_fastest", dict.fromkeys(devices.devices(), SPEED))


@pytest.fixture(autouse=True)
def _toys_learn_for_a_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(superposition, "STEPS", 300)
    monkeypatch.setattr(superposition, "OF_DICTIONARY", 200)


@pytest.fixture(autouse=True)
def _figures_are_looked_at() -> Iterator[None]:
    with looked_at():
        yield


@pytest.fixture(scope="session", autouse=True)
def _a_page_is_waited_for() -> Iterator[None]:
    """What runs a page sleeps until it has ended: it asked each millisecond, and counted all
    messages each time.
    """
    polled = local_script_runner.require_widgets_deltas

    def waited(runner: local_script_runner.LocalScriptRunner, timeout: float) -> None:
        runner._script_thread.join(timeout)
        polled(runner, timeout if runner.script_stopped() else 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_script_runner, "require_widgets_deltas", waited)
        yield


class OneByOne(Mapping[str, Any]):
    """The values of a session, each read when it is asked for."""

    whole = vars(SafeSessionState)["filtered_state"].fget

    def __init__(self, session: SafeSessionState) -> None:
        self.session = session

    def __getitem__(self, key: str) -> Any:
        return self.session[key]

    def __iter__(self) -> Iterator[str]:
        return iter(OneByOne.whole(self.session))

    def __len__(self) -> int:
        return len(OneByOne.whole(self.session))


@pytest.fixture(scope="session", autouse=True)
def _a_control_reads_its_own_value() -> Iterator[None]:
    """Streamlit reads the values of all controls for each control that it draws: a sixth of the
    time of the page Train.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SafeSessionState, "filtered_state", property(OneByOne))
        yield


@pytest.fixture(autouse=True)
def _a_page_that_fails_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """However a test opens a page, or presses what is on it: the page must not end in an
    exception.
    """
    run = ElementTree.run

    def checked(tree: ElementTree, *, timeout: float | None = None) -> AppTest:
        at = run(tree, timeout=timeout)
        assert not at.exception, at.exception
        return at

    monkeypatch.setattr(ElementTree, "run", checked)


def clear_caches() -> None:
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def tiny_saved(tiny_model: TinyModel) -> None:
    """There is a small decoder of characters, called tiny."""
    tiny_model()


@pytest.fixture
def fresh_caches() -> None:
    """For a test that counts or replaces what a cached function computes."""
    clear_caches()


@pytest.fixture(scope="session")
def _shakespeare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bundled = tmp_path_factory.mktemp("bundled")
    shutil.copytree(checkpoints.BUNDLED / "shakespeare", bundled / "shakespeare")
    return bundled


@pytest.fixture
def only_shakespeare(_shakespeare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the models that ship, `shakespeare` alone: a test about comparisons brings its own."""
    monkeypatch.setattr(checkpoints, "BUNDLED", _shakespeare)


def save_classifier(
    name: str = "judge", *, card: dict[str, Any] | None = None, seed: int = 0, **changes: Any
) -> Path:
    """Save a small untrained classifier of words; arguments are those of `tiny_model`."""
    tokenizer = WordTokenizer(
        ["the", "film", "was", "never", "dull", "good", "bad", "and", "funny"]
    )
    sizes = {
        "vocab_size": tokenizer.vocab_size,
        "padding": tokenizer.padding,
        "mask": "full",
        "head": "mean",
        "n_label": 2,
    }
    config = tiny(**sizes | {"final_norm": False} | changes)
    names = [f"label {i}" for i in range(config.n_label)]
    return checkpoints.save(
        name, scrambled(config, seed), tokenizer, {"labels": names} | (card or {}), replace=True
    )


@pytest.fixture
def tiny_classifier(home: Path) -> TinyModel:
    """`save_classifier` in this test's home."""
    return save_classifier


@pytest.fixture
def tiny_pair(home: Path) -> TinyModel:
    """Saves a small untrained encoder–decoder of letters in this test's home; arguments are those
    of `tiny_model`.
    """

    def make(
        name: str = "pair", *, card: dict[str, Any] | None = None, seed: int = 0, **changes: Any
    ) -> Path:
        tokenizer = SpecialTokensTokenizer(CharTokenizer("abcdefghijklmnopqrstuvwxyz 0123456789"))
        sizes = {
            "vocab_size": tokenizer.vocab_size,
            "padding": tokenizer.padding,
            "n_encoder_layer": 3,
            "context_length": 24,
        }
        return checkpoints.save(
            name, scrambled(tiny(**sizes | changes), seed), tokenizer, card or {}, replace=True
        )

    return make


@pytest.fixture
def chats(home: Path) -> Any:
    """Saves a model with the special tokens of turns and this chat template, called chats."""

    def make(template: str) -> None:
        plain = BPETokenizer.learn("How now, my love?", 256)
        tokens = [*byte_letters(plain), "<|im_start|>", "<|im_end|>"]
        tokenizer = byte_pairs(tokens, [], [256, 257], [], CUTS["gpt-2"])
        model = scrambled(tiny(vocab_size=tokenizer.vocab_size, context_length=64))
        card = {
            "chat": {"template": template, "tokens": {"bos_token": "<|im_start|>"}},
            "end_tokens": [257],
        }
        checkpoints.save("chats", model, tokenizer, card, replace=True)

    return make


# The models of `one_of_each`.
OF_KIND: dict[Kind, str] = {"decoder": "writer", "classifier": "judge", "encoder-decoder": "pair"}


@pytest.fixture(scope="session")
def _saved_of_each(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("one of each") / "checkpoints"


@pytest.fixture
def one_of_each(
    home: Path,
    tiny_model: TinyModel,
    tiny_classifier: TinyModel,
    tiny_pair: TinyModel,
    monkeypatch: pytest.MonkeyPatch,
    _saved_of_each: Path,
) -> None:
    """A model of each kind, and none that ships: copies of those that were made for the first test
    that asks for them.
    """
    if _saved_of_each.exists():
        shutil.copytree(_saved_of_each, home / "checkpoints")
    else:
        tiny_model("writer", text=DEFAULT_PROMPT, positions="learned")
        tiny_classifier()
        tiny_pair()
        shutil.copytree(home / "checkpoints", _saved_of_each)
    monkeypatch.setattr(checkpoints, "BUNDLED", home / "none")


def with_snapshots(folder: Path, steps: Sequence[int] = (0, 1, 16)) -> Path:
    """Snapshots beside the model in `folder`, each with weights of its own, the last like the
    model.
    """
    config = checkpoints.read_config(folder)
    for step in steps:
        seed = 0 if step == max(steps) else 100 + step
        checkpoints.write_weights(checkpoints.snapshot_path(folder, step), scrambled(config, seed))
    return folder
