"""“Guess it yourself” needs the keyboard alone: a character and Enter, again and again."""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

from playwright.sync_api import expect

from gptviz.text.datasets.unseen import passage
from tests.browser.machinery import Visit


def test_a_character_and_enter_are_a_guess_and_the_next_one_can_be_typed_at_once(standing: Visit) -> None:
    moves = "z" + passage(0)[1][:3]
    page = standing.go("next_token", guess="True")
    page.get_by_role("textbox", name="Your guess").focus()
    for move in moves:
        page.keyboard.type(move)
        page.keyboard.press("Enter")
        standing.drawn()
        expect(page.get_by_role("textbox", name="Your guess")).to_be_focused()
        expect(page.get_by_role("textbox", name="Your guess")).to_have_value("")
    assert parse_qs(urlparse(page.url).query)["guesses"] == [moves]
    expect(page.get_by_text("You needed one guess")).to_be_visible()
