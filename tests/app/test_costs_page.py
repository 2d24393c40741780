"""The page Size and cost as a reader meets it, without a browser."""

from __future__ import annotations

from threading import Event

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from gptviz.interp.reading.costs import costs
from gptviz.machine.memory import in_bytes
from gptviz.model import parameter_count
from gptviz.runs import checkpoints
from gptviz.train import estimate
from gptviz.ui.pages.costs import planner
from gptviz.ui.records.costs import BITS, COUNTS, PLAN
from gptviz.ui.views import planned_run
from tests.app.conftest import SPEED
from tests.app.opening import chart, page_at, ran
from tests.drawn import numbers
from tests.tiny import CONTEXT, TinyModel, tiny
from tests.waiting import PATIENCE


@pytest.fixture(autouse=True)
def _small(tiny_model: TinyModel) -> None:
    tiny_model("small")


page = page_at("pages/costs.py")


def metrics(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in reversed(at.metric)}


def test_the_numbers_of_the_page_are_those_of_the_batch_and_context_in_the_address() -> None:
    config = checkpoints.read_config(checkpoints.find("small"))
    at = page(model="small", batch="4", tokens="4", optimiser="sgd", **{"pass": "Reading"})
    assert not at.warning
    found = costs(config, 4, 4)
    shown = metrics(at)
    assert shown["Parameters"] == f"{parameter_count(config):,}"
    assert shown["Operations, reading"].replace(",", "") in (str(found.forward), f"{found.forward / 1e6:.3g} million")
    assert shown["Memory to train"] == in_bytes(2 * found.gradients + found.optimiser["sgd"] + found.activations)
    assert shown["Memory of keys and values"] == in_bytes(found.cache or 0)
    areas = [numbers(trace["y"]) for trace in chart(at, "operations")["data"]]
    lengths = numbers(chart(at, "operations")["data"][0]["x"]).tolist()
    assert sum(area[lengths.index(4)] for area in areas) == found.forward


def test_the_code_gives_the_numbers_of_the_figures() -> None:
    at = page(model="small", batch="2")
    (code,) = [one.value for one in at.code if "operations_over" in one.value]
    names = ran(code)
    for key, table in (("operations", names["operations"]), ("memory", names["memory"])):
        for trace, row in zip(chart(at, key)["data"], table.values, strict=True):
            np.testing.assert_array_equal(numbers(trace["y"]), row)
    bars = chart(at, "parameters")["data"]
    assert sum(numbers(trace["x"]).sum() for trace in bars) == names["tensors"].values.sum() == names["costs"].parameters


def test_what_is_planned_is_what_the_estimate_says_and_real_steps_are_taken_on_demand() -> None:
    at = page(model="small", view=PLAN, plan_of="Another size", plan_width="32", plan_heads="2", plan_steps="100", batch="2")
    said = metrics(at)
    own = checkpoints.read_config(checkpoints.find("small"))
    planned = tiny(vocab_size=own.vocab_size, d_model=32, n_head=2, d_mlp=None, context_length=CONTEXT)
    assert [one.value for one in at.metric if one.label == "Parameters"][-1] == f"{parameter_count(planned):,}"
    expected = estimate.estimate(planned, estimate.Recipe(steps=100, batch_size=2), SPEED)
    assert said["Disk"] == in_bytes(expected.disk)
    assert not any("Measured" in text.value for text in at.markdown)
    at.button(key="time steps").click().run()
    (measured,) = [text.value for text in at.markdown if "Measured" in text.value]
    assert f"predicted: {expected.seconds_per_step * 1e3:.3g} ms" in measured


def test_the_plan_stands_while_the_speed_of_this_machine_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = Event()

    def measure(device: str) -> estimate.Speed:
        assert may_end.wait(PATIENCE)
        return SPEED

    monkeypatch.setattr(planned_run, "_fastest", {})
    monkeypatch.setattr(planned_run, "MEASURED_FOR", 10**6)  # another key than that of other tests, and one that stays
    monkeypatch.setattr(estimate, "measure", measure)
    at = page(model="small", view=PLAN)
    assert not at.exception
    assert "Disk" not in metrics(at)
    may_end.set()
    planned_run.measuring("cpu").result()
    assert metrics(at.run())["Disk"]


@pytest.mark.parametrize(
    ("predicted", "measured", "words"), [(2.04, 2, "within 5 % of it"), (3, 1.5, "2 times too long"), (1, 4, "4 times too short")]
)
def test_how_far_a_prediction_is_from_what_was_measured_is_said(predicted: float, measured: float, words: str) -> None:
    assert planner._apart(predicted, measured) == words


def test_sizes_that_do_not_go_together_are_named_and_the_page_stays() -> None:
    at = page(model="small", view=PLAN, plan_of="Another size", plan_width="32", plan_heads="12")
    assert any("d_model 32" in (said := warning.value.replace("\\", "")) and "n_head 12" in said for warning in at.warning)
    assert at.select_slider(key="plan_heads").value == 12


@pytest.mark.parametrize("kind", ["classifier", "pair"])
def test_every_kind_of_model_is_counted(kind: str, tiny_classifier: TinyModel, tiny_pair: TinyModel) -> None:
    (tiny_classifier if kind == "classifier" else tiny_pair)("other")
    at = page(model="other")
    assert ("Memory of keys and values" in metrics(at)) == (kind == "pair")
    at = page(model="other", view=PLAN)
    at.button(key="time steps").click().run()
    assert any("Measured" in text.value for text in at.markdown)


@pytest.mark.parametrize(
    ("asked", "view"),
    [({}, COUNTS), ({"plan_steps": "300"}, PLAN), ({"bits": "3 bits"}, BITS), ({"view": COUNTS, "bits": "3 bits"}, COUNTS)],
)
def test_a_link_that_names_no_view_opens_the_one_whose_choices_it_names(asked: dict[str, str], view: str) -> None:
    at = page(model="small", **asked)
    assert not at.warning
    assert at.segmented_control(key="view").value == view
    assert at.query_params.get("view", COUNTS) in (view, [view])
