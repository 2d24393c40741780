"""The page Size and cost as a reader meets it, without a browser."""

from __future__ import annotations

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from gptviz.interp.reading.costs import costs
from gptviz.machine.memory import in_bytes
from gptviz.model import parameter_count
from gptviz.runs import checkpoints
from gptviz.ui.records.costs import BITS, COUNTS
from gptviz.ui.records.train import PAGE as TRAIN
from tests.app.opening import chart, page_at, ran
from tests.drawn import numbers
from tests.tiny import TinyModel


@pytest.fixture(autouse=True)
def _small(tiny_model: TinyModel) -> None:
    tiny_model("small")


page = page_at("pages/costs.py", view=COUNTS)
without_view = page_at("pages/costs.py")


def metrics(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in reversed(at.metric)}


def test_the_numbers_of_the_page_are_those_of_the_batch_and_context_in_the_address() -> None:
    config = checkpoints.read_config(checkpoints.find("small"))
    at = page(model="small", batch="4", tokens="4", optimiser="sgd", **{"pass": "Reading"})
    assert not at.warning
    found = costs(config, 4, 4)
    shown = metrics(at)
    assert shown["Parameters"] == f"{parameter_count(config):,}"
    assert shown["Operations, reading"].replace(",", "") in (
        str(found.forward),
        f"{found.forward / 1e6:.3g} million",
    )
    assert shown["Memory to train"] == in_bytes(
        2 * found.gradients + found.optimiser["sgd"] + found.activations
    )
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
    assert (
        sum(numbers(trace["x"]).sum() for trace in bars)
        == names["tensors"].values.sum()
        == names["costs"].parameters
    )


@pytest.mark.parametrize("kind", ["classifier", "pair"])
def test_every_kind_of_model_is_counted(
    kind: str, tiny_classifier: TinyModel, tiny_pair: TinyModel
) -> None:
    (tiny_classifier if kind == "classifier" else tiny_pair)("other")
    at = page(model="other")
    assert ("Memory of keys and values" in metrics(at)) == (kind == "pair")


@pytest.mark.parametrize(
    ("asked", "view"),
    [({}, BITS), ({"batch": "4"}, COUNTS), ({"view": BITS, "batch": "4"}, BITS)],
)
def test_a_link_that_names_no_view_opens_the_one_whose_choices_it_names(
    asked: dict[str, str], view: str
) -> None:
    at = without_view(model="small", **asked)
    assert not [one for one in at.warning if "view" in one.value]
    assert at.segmented_control(key="view").value == view


@pytest.mark.parametrize(
    "asked", [{"view": "Training it here"}, {"plan_of": "This model", "plan_steps": "300"}]
)
def test_a_link_to_what_a_run_takes_leads_to_train(asked: dict[str, str]) -> None:
    at = without_view(model="small", **asked)
    assert not at.exception
    assert [title.value for title in at.title] == [TRAIN.question]
