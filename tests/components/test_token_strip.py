"""The token strip: what travels to the browser, and which clicks count. The browser's half is
tested in a browser.
"""

from __future__ import annotations

import json
import math
from typing import Any

from streamlit.testing.v1 import AppTest

from gptviz.components.kit import unpack
from gptviz.components.token_strip import Token, payload


def parsed(tokens: list[Token], **settings: Any) -> dict[str, Any]:
    header, arrays = unpack(payload(tokens, settings))
    return {"tokens": json.loads(arrays["tokens"].tobytes()), "settings": header}


def test_every_token_travels_whole() -> None:
    token = Token(
        "␣the", 0.25, (("␣the", 0.25), ("␣a", 0.125)), "a note", mark=True, kind="word", below="12"
    )
    assert parsed([token, Token("x", math.nan)], height=3) == {
        "tokens": [
            ["␣the", 0.25, [["␣the", 0.25], ["␣a", 0.125]], "a note", 1, 0, "word", "12"],
            ["x", None, [], "", 0, 0, "", ""],
        ],
        "settings": {"height": 3},
    }


def test_probabilities_keep_more_digits_than_are_shown() -> None:
    assert parsed([Token("x", 0.000123456)])["tokens"][0][1] == 0.0001235


def test_two_thousand_tokens_fit_in_a_small_message() -> None:
    tokens = [
        Token("e", 0.5, tuple(("a", 0.1) for _ in range(8)), "drawn with 12.3 % (temperature 0.8)")
        for _ in range(2000)
    ]
    assert len(payload(tokens, {})) < 500_000


def script() -> None:
    import streamlit as st

    from gptviz.components.token_strip import Token, token_strip

    token_strip(
        [Token(label, 0.5, (("x", 0.5),)) for label in st.session_state.get("labels", "ab")],
        key="strip",
        on_pick=lambda at: st.session_state.update(picked=at),
    )


def sent(at: AppTest) -> dict[str, Any]:
    return unpack(at.get("bidi_component")[0].proto.bytes)[0]


def test_a_text_that_goes_on_is_the_same_text_and_another_is_not() -> None:
    at = AppTest.from_function(script).run()
    assert not at.exception
    first = sent(at)["generation"]
    at.session_state["labels"] = "abc"
    assert sent(at.run())["generation"] == first
    at.session_state["labels"] = "ab"
    shorter = sent(at.run())["generation"]
    assert shorter != first, "a click on the chip that is gone must not count"
    at.session_state["labels"] = "axc"
    assert sent(at.run())["generation"] not in (first, shorter)


def test_the_browser_is_told_what_a_click_can_do() -> None:
    def silent() -> None:
        from gptviz.components.token_strip import Token, token_strip

        token_strip([Token("a")], key="strip", selected=0, height=90)

    told = sent(AppTest.from_function(silent).run())
    assert (told["picks"], told["selected"], told["height"]) == (False, 0, 90)
    told = sent(AppTest.from_function(script).run())
    assert (told["picks"], told["selected"]) == (True, None)


def test_two_strips_on_a_page_do_not_share_their_texts() -> None:
    def two() -> None:
        from gptviz.components.token_strip import Token, token_strip

        token_strip([Token("a")], key="one")
        token_strip([Token("b"), Token("c")], key="two")

    def generations(at: AppTest) -> list[int]:
        return [
            unpack(one.proto.bytes)[0]["generation"]
            for one in at.get("bidi_component")
            if one.proto.bytes
        ]

    at = AppTest.from_function(two).run()
    first = generations(at)
    assert len(first) == 2
    assert generations(at.run()) == first
