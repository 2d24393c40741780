"""The list of prompts on Patching, Attribution and Switch off, without a browser."""

from __future__ import annotations

from threading import Event
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.interp.over_prompts import SAYS, AskedPrompt, How, measure_prompt
from gptviz.interp.units.unit import heads_and_mlps
from gptviz.language_model import changing
from gptviz.language_model.changing import example_pairs
from gptviz.machine import job
from gptviz.machine.job import Job
from gptviz.text.datasets.prompt_pairs import as_csv, prompt_rows
from gptviz.ui.shell.subject.asking import ask
from gptviz.ui.shell.subject.models import model_key
from gptviz.ui.views import over_prompts
from tests.app.opening import charts, opened, ran, says
from tests.tiny import TinyModel
from tests.waiting import PATIENCE, wait_until

PAGES: dict[str, How] = {
    "patching": "patch",
    "attribution": "attribute",
    "switch_off": "switch off",
}
TYPED = "a cab | a cad | a | b\nbad abe | bad cbe | d | c\nface | fade | f | g"
CLEAN = "bad abe"
OTHER = "bad cbe"


@pytest.fixture
def lm(tiny_model: TinyModel) -> gptviz.LanguageModel:
    return gptviz.load(tiny_model("mine", text="abcdefghij "))


def page(name: str, **query: str) -> AppTest:
    corrupted = {"corrupted": OTHER} if name == "patching" else {}
    return opened(f"pages/{name}.py", model="mine", prompt=CLEAN, **corrupted, **query)


def table(at: AppTest) -> dict[str, dict[str, Any]]:
    """The rows of the list's table, by unit."""
    (frame,) = (one.value for one in at.dataframe if "same sign" in one.value)
    rows: dict[str, dict[str, Any]] = frame.set_index("unit").to_dict("index")
    return rows


@pytest.mark.parametrize("name", PAGES)
def test_the_list_has_mean_and_spread_beside_the_prompt_on_screen(
    lm: gptviz.LanguageModel, name: str
) -> None:
    at = page(name, pairs=TYPED)
    assert not at.error
    found = lm.over_prompts(prompt_rows(TYPED, "list"), PAGES[name])
    rows = table(at)
    for i, unit in enumerate(found.units):
        shown = [
            rows[unit][column] for column in ("mean", "standard deviation", "same sign", "prompts")
        ]
        np.testing.assert_allclose(
            shown, [found.mean[i], found.deviation[i], found.same_sign[i], 3], rtol=1e-4, atol=1e-6
        )
    pair = lm.pair(CLEAN, OTHER)
    rival = (
        None
        if name == "switch off"
        else lm.pair(CLEAN, CLEAN).wrong
        if name == "attribution"
        else pair.wrong
    )
    here = measure_prompt(
        lm.model, AskedPrompt(pair.clean, pair.right, rival, pair.corrupted), PAGES[name]
    )
    np.testing.assert_allclose(
        [rows[unit]["prompt on screen"] for unit in found.units],
        list(here.values()),
        rtol=1e-3,
        atol=1e-5,
    )
    largest = max(found.units, key=lambda unit: abs(rows[unit]["mean"]))
    assert rows[largest]["in words"].lower() in says(at).lower()
    assert "over 3 prompts" in says(at)
    axes = [chart["layout"]["xaxis"].get("title", {}).get("text") for chart in charts(at)]
    assert axes.count(SAYS[PAGES[name]]) == 1


@pytest.mark.parametrize("name", PAGES)
def test_the_code_computes_it_and_without_a_list_there_is_none(
    lm: gptviz.LanguageModel, name: str
) -> None:
    (code,) = (one.value for one in page(name, pairs=TYPED).code if "over_prompts" in one.value)
    scope = ran(code)
    np.testing.assert_allclose(
        scope["found"].mean, lm.over_prompts(prompt_rows(TYPED, "list"), PAGES[name]).mean
    )
    assert not [one for one in page(name).code if "over_prompts" in one.value]


def test_bad_rows_are_named_with_their_line(lm: gptviz.LanguageModel) -> None:
    at = page("patching", pairs="a cab | a cad\n\na | ab")
    assert any(
        "the list, line 3: the clean prompt has 1 token and" in one.value.replace("\\", "")
        for one in at.error
    )
    assert any("5 columns" in one.value for one in page("attribution", pairs="a|b|c|d|e").error)


def begun(how: How) -> Job[Any]:
    """What a page computes of the list that is typed."""
    rows = tuple(prompt_rows(TYPED, "the list"))
    title = f"{len(rows)} prompts"
    asked = ask(model_key("mine", "cpu"), changing.over_prompts, title, rows=rows, how=how)
    work = job.find_job(asked)
    assert work is not None
    return work


def test_a_large_list_waits_for_a_click(
    lm: gptviz.LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(over_prompts, "MUCH", 0)
    at = page("attribution", pairs=TYPED)
    assert "over 3 prompts" not in says(at)
    at.button(key="compute list").click().run()
    work = begun("attribute")
    work.wait()
    assert "over 3 prompts" in says(at.run())
    assert len(table(at)) == len(heads_and_mlps(lm.model.config))


def test_a_list_that_is_stopped_keeps_the_prompts_that_are_ready(
    lm: gptviz.LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work = Event()
    go_on = Event()

    def slow(*asked: Any) -> dict[str, float]:
        if at_work.is_set():
            assert go_on.wait(PATIENCE)
        at_work.set()
        return measure_prompt(*asked)

    monkeypatch.setattr(over_prompts, "MUCH", 0)
    monkeypatch.setattr(changing, "measure_prompt", slow)
    page("attribution", pairs=TYPED).button(key="compute list").click().run()
    work = begun("attribute")
    wait_until(lambda: work.value)
    at = page("attribution", pairs=TYPED)
    at.button(key="stop list").click().run()
    go_on.set()
    work.wait()
    at = page("attribution", pairs=TYPED)
    assert "over 1 prompt." in says(at)
    assert at.button(key="compute list")


def test_a_task_writes_a_list_that_the_other_pages_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_prompts, "WRITTEN", 4)
    at = opened("pages/attribution.py", model="induction")
    (write,) = (
        button for button in at.button if button.label == f"Write {over_prompts.WRITTEN} pairs"
    )
    write.click().run()
    rows = example_pairs(gptviz.load("induction"), over_prompts.WRITTEN)
    assert at.text_area(key=over_prompts.LIST).value == as_csv(rows)
    assert f"over {len(rows)} prompts" in says(at)


def test_other_kinds_of_models_have_no_list() -> None:
    at = opened("pages/switch_off.py", model="classifier")
    assert over_prompts.TITLE not in [one.label for one in at.expander]


def test_a_file_that_is_no_list_is_refused_until_another_one_comes_and_the_list_stays(
    lm: gptviz.LanguageModel,
) -> None:
    at = page("patching", pairs=TYPED)
    at.file_uploader[0].upload("wrong.csv", b"a cab,a cad\nface,fade\n", "text/csv").run()
    (refused,) = at.error
    assert refused.value.startswith("The file was not taken: ")
    assert r"wrong\.csv" in refused.value
    assert at.text_area(key=over_prompts.LIST).value == TYPED
    assert at.run().error, "it stays in sight"
    at.file_uploader[0].upload("right.csv", b"clean,corrupted\nface,fade\n", "text/csv").run()
    assert not at.error
    assert {row["prompts"] for row in table(at).values()} == {1}
