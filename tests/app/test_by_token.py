"""The search by token on Heads and Neurons, without a browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import gptviz
from gptviz.interp.units.by_token import WritesFor, heads_for, neurons_for
from gptviz.ui.views.by_token import NONE
from tests.app.opening import opened, says
from tests.tiny import TinyModel


@pytest.mark.parametrize(("page", "search"), [("heads", heads_for), ("neurons", neurons_for)])
def test_a_token_leads_to_what_writes_for_it(
    tiny_model: TinyModel, page: str, search: Callable[..., list[WritesFor]]
) -> None:
    lm = gptviz.load(tiny_model("mine", text="abcdefghij "))
    at = opened(f"pages/{page}.py", model="mine", prompt="bad abe", writes="d")
    found = search(lm.model, lm.token("d"))
    links = [
        link.proto for link in at.main.get("page_link") if "writes=d" in link.proto.query_string
    ]
    assert len(links) == len(found) > 1
    for link, one in zip(links, found, strict=True):
        assert link.label.lower().startswith(f"{one.unit.title}: ".lower())
        assert f"unit={one.unit.name}" in link.query_string
        assert "the logit of “d” by" in link.help
    best = found[0].unit
    at = opened(
        f"pages/{page}.py", model="mine", prompt="bad abe", unit=best.name, block=str(best.block)
    )
    assert at.selectbox(key="writes").value == NONE
    assert best.title in says(at).lower()


def test_models_that_guess_no_tokens_have_no_search() -> None:
    at = opened("pages/heads.py", model="classifier")
    assert not [box for box in at.selectbox if box.key == "writes"]
