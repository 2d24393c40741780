"""The model that a page is about: what is said where it cannot be opened as asked."""

from __future__ import annotations

import shutil

import pytest

from gptviz.machine import memory
from gptviz.ui.shell.frame import DEFAULT_MODEL
from tests.app.opening import opened, says
from tests.examples import quick
from tests.tiny import TinyModel

pytestmark = pytest.mark.usefixtures("fresh_caches", "home")


def test_a_model_too_large_for_what_is_free_is_refused_on_the_page_which_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device="cpu": 20_000)
    at = opened("pages/generate.py", model="shakespeare")
    [error] = at.error
    said = error.value.replace("\\", "")
    assert "shakespeare is not opened: it needs about" in said
    assert "and 20 kB is free" in said
    assert "Choose another model above" in said
    monkeypatch.undo()
    assert not at.run().error


def test_the_precision_stands_in_the_address_and_in_links_and_the_page_says_what_is_in_memory() -> (
    None
):
    at = opened("pages/attention.py", model="shakespeare")
    assert at.selectbox(key="precision").value == "stored"
    assert "Its weights are in memory as float32." in [
        caption.value for caption in at.sidebar.caption
    ]
    at = opened("pages/attention.py", model="shakespeare", precision="bfloat16")
    assert "Its weights are in memory as bfloat16." in [
        caption.value for caption in at.sidebar.caption
    ]
    at.selectbox(key="precision").set_value("stored").run()
    assert "Its weights are in memory as float32." in [
        caption.value for caption in at.sidebar.caption
    ]


@pytest.mark.parametrize(
    "path", quick(["", "generate", "next_token", "positions", "embeddings"], "", "generate")
)
def test_every_page_shows_a_model_whose_weights_are_short(path: str) -> None:
    at = opened(f"pages/{path}.py" if path else "app.py", model="shakespeare", precision="float16")
    assert not at.error
    assert "Its weights are in memory as float16." in [
        caption.value for caption in at.sidebar.caption
    ]


def test_of_a_model_that_is_deleted_meanwhile_the_page_says_so_and_names_the_one_that_it_shows(
    tiny_model: TinyModel,
) -> None:
    folder = tiny_model("soon-gone")
    at = opened("pages/lens.py", model="soon-gone", prompt="the fox")
    shutil.rmtree(folder)
    at.text_area(key="prompt").set_value("the dog").run()
    box = at.selectbox(key="model")
    assert box.value == DEFAULT_MODEL
    # the browser is told, else it would go on to show the name that it has
    assert box.proto.set_value
    assert "There is no model “soon-gone” any more" in says(at)
