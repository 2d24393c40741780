"""The token strip in a browser, on a page of its own: chips, their card, the keyboard, clicks, and
text that goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from gptviz.components.token_strip import Token, payload
from gptviz.ui.views.text_position import HEIGHT
from tests.browser.machinery import box_of
from tests.browser.mounting import Message, Mounted

pytestmark = pytest.mark.browser

Mount = Callable[..., Mounted]
TEXT = [
    Token("To"),
    *(
        Token(label, 0.25, (("x", 0.5), (label, 0.25)), "a note")
        for label in ["␣", "be", ",", "⏎", "or", "␣", "not"]
    ),
]


def packed(tokens: Sequence[Token], **changes: Any) -> bytes:
    usual = {
        "generation": 1,
        "colour": "#CC3311",
        "selected": None,
        "picks": True,
        "label": "Tokens",
    }
    return payload(
        tokens,
        usual | {"legend": "probability", "height": None, "spaced": False, "kinds": {}} | changes,
    )


def labels(page: Page) -> list[str]:
    return page.locator(".strip .chip").all_inner_texts()


def test_chips_stand_in_words_and_say_what_they_are(mounted: Mount) -> None:
    page = mounted("token_strip", packed(TEXT)).page
    assert [word.strip("\n") for word in page.locator(".word").all_text_contents()] == [
        "To␣",
        "be,⏎",
        "or␣",
        "not",
    ]
    assert page.get_by_role("button", name="newline, 25.0 %, a note").count() == 1
    assert page.get_by_role("group", name="Tokens").count() == 1


def test_two_lines_of_a_prompt_fit_into_the_frame_that_pages_give_them(mounted: Mount) -> None:
    for spaced in (False, True):
        page = mounted(
            "token_strip",
            packed([Token("to"), Token("␣"), Token("be")], height=HEIGHT, spaced=spaced),
        ).page
        page.locator(".word").first.evaluate("(word) => word.after(document.createElement('br'))")
        words = page.locator(".word").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect().top)"
        )
        assert len(set(words)) == 2
        assert page.locator(".strip").evaluate("(one) => one.scrollHeight - one.clientHeight") == 0


def test_a_card_opens_for_the_pointer_and_the_keyboard_and_closes_again(mounted: Mount) -> None:
    page = mounted("token_strip", packed(TEXT)).page
    card = page.locator(".card")
    page.locator(".chip").nth(2).hover()
    expect(card).to_be_visible()
    assert card.locator(".head").inner_text().split() == ["be", "25.0", "%"]
    assert card.locator(".candidate.taken .name").inner_text() == "be"
    chip = box_of(page.locator(".chip").nth(2))
    box = box_of(card)
    assert box["y"] == pytest.approx(chip["y"] + chip["height"], abs=1), (
        "the pointer reaches it without a gap"
    )
    page.mouse.move(900, 600)
    expect(card).to_be_hidden()
    page.locator(".chip").first.focus()
    expect(card).to_be_hidden()  # of the prompt there is nothing to say
    page.keyboard.press("ArrowRight")
    expect(card).to_be_visible()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()


def test_the_keyboard_walks_and_the_tab_key_stops_once(mounted: Mount) -> None:
    page = mounted("token_strip", packed(TEXT)).page
    focused = "document.querySelector('body > div').shadowRoot.activeElement?.dataset.index"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "0"
    for key, at in (("ArrowRight", "1"), ("End", "7"), ("ArrowLeft", "6"), ("ArrowUp", "1")):
        page.keyboard.press(key)
        assert page.evaluate(focused) == at, key
    page.keyboard.press("Tab")
    assert page.evaluate(focused) is None


def test_a_click_sends_the_chip_and_the_text_it_was_made_on(mounted: Mount) -> None:
    strip = mounted("token_strip", packed(TEXT, generation=7, selected=3))
    assert strip.page.locator(".chip[aria-pressed=true]").get_attribute("data-index") == "3"
    strip.page.locator(".chip").nth(2).click()
    strip.page.keyboard.press("Enter")
    assert strip.sent == [Message("trigger", "pick", {"at": 2, "generation": 7})] * 2
    strip.show(packed(TEXT, picks=False))
    strip.page.locator(".chip").nth(2).click()
    assert len(strip.sent) == 2


def test_chips_that_stay_are_left_alone_and_the_strip_opens_at_its_beginning_and_follows_its_end(
    mounted: Mount,
) -> None:
    long = [Token(f"{i}␣", 0.5) for i in range(400)]
    strip = mounted("token_strip", packed(long, height=90))
    page = strip.page
    page.evaluate(
        "root = document.querySelector('body > div').shadowRoot; root.querySelector('.chip').same "
        "= true"
    )
    assert page.evaluate("root.querySelector('.strip').scrollTop") == 0
    strip.show(packed([Token("another"), *long], height=90))
    assert page.evaluate("root.querySelector('.strip').scrollTop") == 0, (
        "another text is not one that goes on"
    )
    strip.show(packed(long, height=90))
    page.evaluate("root.querySelector('.chip').same = true")
    strip.show(packed([*long, Token("end")], height=90))
    assert len(labels(page)) == 401
    assert page.evaluate("root.querySelector('.chip').same")
    end = (
        "(() => { const s = root.querySelector('.strip'); return s.scrollHeight - s.scrollTop - "
        "s.clientHeight; })()"
    )
    assert page.evaluate(end) < 2
    strip.show(packed([*long[:3], Token("other")], height=90))
    assert labels(page) == ["0␣", "1␣", "2␣", "other"]
    assert page.evaluate("root.querySelector('.chip').same")


def test_the_focus_stays_near_where_it_was_when_its_chip_goes(mounted: Mount) -> None:
    strip = mounted("token_strip", packed(TEXT))
    strip.page.locator(".chip").nth(6).focus()
    strip.show(packed(TEXT[:3]))
    assert (
        strip.page.evaluate(
            "document.querySelector('body > div').shadowRoot.activeElement.dataset.index"
        )
        == "2"
    )
