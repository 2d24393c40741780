"""The edits of an address: on every page, in every link, and in a chip that takes them away."""

from __future__ import annotations

from urllib.parse import parse_qs

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from tests.app.opening import page_at, payload, says

HEAD = "blocks.1.attention.head.2"
MEAN = "blocks.0.mlp=mean"
MISSING = "blocks.9.mlp"
TEXT = "the quick brown fox jumps over the lazy dog"


pytestmark = pytest.mark.usefixtures("tiny_saved")
page = page_at("pages/next_token.py", model="tiny", prompt="the fox")


def links(at: AppTest) -> list[dict[str, list[str]]]:
    """What the links of the menu ask for."""
    return [parse_qs(link.proto.query_string) for link in at.sidebar.get("page_link")]


def test_a_page_and_its_links_show_the_edited_model_and_taking_the_edits_away_gives_the_model_back() -> (
    None
):
    plain = page()
    at = page(edits=f"{HEAD},{MEAN}", edit_text=TEXT)
    before = payload(plain, "ledger")[1]["logits"]
    assert all(
        (link["edits"], link["edit_text"]) == ([f"{HEAD},{MEAN}"], [TEXT]) for link in links(at)
    )
    assert links(plain)
    assert not any("edits" in link for link in links(plain))
    header, arrays = payload(at, "ledger")
    code = f"gptviz.load('tiny').edited({MEAN!r}, {HEAD!r}, text={TEXT!r})"
    assert code in str(header)
    logits = gptviz.load("tiny").edited(HEAD, MEAN, text=TEXT).trace("the fox")["logits"][0, -1]
    np.testing.assert_allclose(arrays["logits"], logits, atol=1e-5)
    assert "tiny, 2 edits" in str(header)
    assert "Head 2 of block 1 is switched off" in says(at)
    at.button(key=f"take away {MEAN}").click().run()
    assert at.query_params["edits"] == HEAD
    alone = gptviz.load("tiny").edited(HEAD).trace("the fox")["logits"][0, -1]
    np.testing.assert_allclose(payload(at, "ledger")[1]["logits"], alone, atol=1e-5)
    at.button(key="take all edits away").click().run()
    assert "edits" not in at.query_params
    assert np.array_equal(payload(at, "ledger")[1]["logits"], before)


def test_an_edit_of_what_a_model_lacks_is_named_and_left_out_but_stays_in_the_address() -> None:
    at = page(edits=f"{MISSING},{HEAD},**bold**")
    assert "2 edits are left out, and tiny is shown without" in says(at)
    assert "there is no block 9" in says(at)
    assert not any("**bold**" in one.value for one in [*at.markdown, *at.warning])
    assert np.array_equal(
        payload(at, "ledger")[1]["logits"], payload(page(edits=HEAD), "ledger")[1]["logits"]
    )
    assert at.query_params["edits"].startswith(MISSING)


def test_an_edit_takes_the_place_of_another_one_of_the_same_unit() -> None:
    def script() -> None:
        import streamlit as st

        from gptviz.ui.shell.subject import edits

        for act, text in st.session_state.get("acts", []):
            getattr(edits, act)(text)
        st.session_state["asked"] = edits.asked_edits()

    at = AppTest.from_function(script)
    at.query_params["edits"] = f"{HEAD}, {MEAN},{HEAD}"
    at.session_state["acts"] = []
    assert at.run().session_state["asked"] == (HEAD, MEAN)
    at.session_state["acts"] = [
        ("set_to", "blocks.0.mlp.neuron.3=2"),
        ("set_to", f"{HEAD}=uniform"),
    ]
    assert at.run().session_state["asked"] == (MEAN, "blocks.0.mlp.neuron.3=2", f"{HEAD}=uniform")
    at.session_state["acts"] = [
        ("toggle", "blocks.0.mlp"),
        ("toggle", f"{HEAD}=uniform"),
        ("toggle", "embed"),
    ]
    assert at.run().session_state["asked"] == ("blocks.0.mlp.neuron.3=2", "blocks.0.mlp", "embed")
    at.session_state["acts"] = []
    assert at.run().query_params["edits"] == "blocks.0.mlp.neuron.3=2,blocks.0.mlp,embed"


def test_a_mean_without_a_typed_text_is_over_the_example_of_the_model() -> None:
    at = page(edits=MEAN)
    text = at.text_area(key="edit_text")
    assert text.value == ""
    example = text.placeholder
    wanted = gptviz.load("tiny").edited(MEAN, text=example).trace("the fox")["logits"][0, -1]
    np.testing.assert_allclose(payload(at, "ledger")[1]["logits"], wanted, atol=1e-5)
    text.set_value(TEXT).run()
    assert at.query_params["edit_text"] == TEXT
    typed = gptviz.load("tiny").edited(MEAN, text=TEXT).trace("the fox")["logits"][0, -1]
    np.testing.assert_allclose(payload(at, "ledger")[1]["logits"], typed, atol=1e-5)
