"""The choices made on a page stand in the pictures of its figures."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.app.opening import headings


def script() -> None:
    """A page with a control of each kind."""
    from gptviz.figures.kit.theme import LIGHT, themed_figure
    from gptviz.ui.widgets import controls, picking
    from gptviz.ui.widgets.figure import show_figure
    from gptviz.ui.widgets.headings import say_below_titles

    say_below_titles()
    controls.select("Model", ["mine"], key="model", help="…")
    say_below_titles("mine, step 7", "a prompt", ["A page", "edits: blocks.0.mlp"])
    controls.select("Colour", ["a", "b"], key="colour", help="…", format_func=str.upper)
    controls.select("View", ["one", "two"], key="view", help="…", segmented=True)
    controls.whole_number("Block", 0, 3, key="block", help="…", default=1)
    controls.decimal_number("Share", 0.0, 1.0, key="share", help="…", default=0.25, step=0.05)
    controls.switch("Log", key="log", help="…")
    controls.text("Other prompt", "two\nlines", key="other", help="…", longest=300)
    picking.pick("Head", [(0, 1)], (0, 1), print, key="head", help="…")
    show_figure(themed_figure(LIGHT, height=100), key="first", alt="What is seen.")
    controls.switch("Later", key="later", help="…")
    show_figure(themed_figure(LIGHT, height=100), key="second", alt="And then.")


def test_a_picture_says_what_the_controls_above_it_are_set_to() -> None:
    at = AppTest.from_function(script)
    at.query_params["colour"] = "B"
    at.query_params["block"] = "2"
    first, second = headings(at.run())
    expected = [
        "A page",
        "edits: blocks.0.mlp",
        "Colour: B",
        "View: one",
        "Block: 2",
        "Share: 0.25",
        "Log: off",
    ]
    expected += ["Other prompt: “two lines”", "Head: (0, 1)"]
    assert first == {
        "title": "What is seen.",
        "model": "mine, step 7",
        "prompt": "a prompt",
        "settings": expected,
    }
    assert second["settings"] == [*expected, "Later: off"]
    at.toggle(key="log").set_value(True).run()
    assert headings(at)[0]["settings"] == [*expected[:6], "Log: on", *expected[7:]]


def test_a_long_text_is_cut() -> None:
    at = AppTest.from_function(script)
    at.run().text_input(key="other").set_value("x" * 250).run()
    (said,) = (one for one in headings(at)[0]["settings"] if "Other" in one)
    assert 150 < len(said) < 200
    assert said.endswith("…")
