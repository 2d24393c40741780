"""Where a model of the user's hides a shipped one, every list of models says so, and what to do
about it.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.runs import checkpoints, manage
from gptviz.ui.shell.subject.model_list import line_about
from tests.app.opening import button, opened, press
from tests.tiny import TinyModel

pytestmark = pytest.mark.usefixtures("only_shakespeare", "fresh_caches")
SAID = "shakespeare is a model of yours. It hides the one of the same name that came with gptviz"


@pytest.fixture
def own(tiny_model: TinyModel) -> Path:
    """A model of the user's that is called as the shipped one."""
    return tiny_model("shakespeare")


def said(at: AppTest) -> list[str]:
    return [info.value for info in at.info if SAID in info.value]


def links(at: AppTest) -> list[str]:
    return [
        link.proto.query_string
        for link in at.main.get("page_link")
        if link.proto.label == "Rename or delete it"
    ]


@pytest.mark.parametrize("path", ["app.py", "pages/attention.py", "pages/embeddings.py"])
def test_a_page_about_the_model_says_so_and_leads_to_where_it_can_be_renamed(
    own: Path, path: str
) -> None:
    at = opened(path, model="shakespeare")
    assert len(said(at)) == 1
    # A link that names no model is about this one.
    assert [parse_qs(query).get("model", ["shakespeare"]) for query in links(at)] == [
        ["shakespeare"]
    ]


def test_the_page_train_says_so_of_the_run_watched_and_of_the_one_to_begin_with(own: Path) -> None:
    assert len(said(opened("pages/train.py", run="shakespeare"))) == 1
    assert (
        len(
            said(
                opened("pages/train.py", run="shakespeare", begin="shakespeare", plan="shakespeare")
            )
        )
        == 2
    )


def test_the_page_runs_says_so_where_it_can_be_renamed_and_then_no_more(own: Path) -> None:
    at = opened("pages/runs.py", model="shakespeare")
    assert len(said(at)) == 1
    assert links(at) == []
    at.text_input(key="new name of shakespeare").set_value("mine").run()
    press(at, "Rename it")
    assert said(at) == []
    assert checkpoints.hidden_checkpoints() == {}


def test_the_list_of_models_says_so(own: Path) -> None:
    assert "hides the model of this name that came with gptviz" in line_about(own)
    assert "hides" not in line_about(manage.rename("shakespeare", "mine"))


@pytest.mark.parametrize("path", ["app.py", "pages/runs.py", "pages/train.py"])
def test_where_none_is_hidden_nothing_is_said(home: Path, tiny_model: TinyModel, path: str) -> None:
    tiny_model("mine")
    at = opened(path, model="mine")
    assert not any("hides" in info.value for info in at.info)


def test_the_default_name_of_a_run_and_a_typed_one_hide_no_model(home: Path) -> None:
    at = opened("pages/train.py", plan="shakespeare")
    assert at.text_input(key="save_as").placeholder == "shakespeare-2"
    at = opened("pages/train.py", plan="reversal")
    at.text_input(key="save_as").set_value("shakespeare").run()
    assert any(
        "there is a model named shakespeare already: choose another name"
        in error.value.replace("\\", "")
        for error in at.error
    )
    assert button(at, "Train").disabled


def test_the_library_says_so_and_a_folder_names_its_model_exactly(own: Path) -> None:
    with pytest.warns(
        UserWarning, match="shakespeare is a model of yours and hides the one of this name"
    ) as told:
        gptviz.load("shakespeare")
    assert told[0].filename == __file__
    assert str(own) in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gptviz.load(own)
        gptviz.load(manage.rename("shakespeare", "mine").name)
        gptviz.load("shakespeare")
