"""Texts in the address: whatever is typed, a reload and a link bring it back, and the address stays
short.
"""

from __future__ import annotations

import os
import re
import string
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, quote_plus, unquote, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from gptviz.ui.pages.runs import curves
from gptviz.ui.widgets import addresses
from tests.app.opening import opened
from tests.tiny import TinyModel

pytestmark = pytest.mark.usefixtures("home")
# What the server takes for the first line of a request and all headers together; a browser's
# headers take about 1 KiB.
SERVER_TAKES = 16 * 1024
PAGE = "pages/embeddings.py"  # which has the prompt, and no picture of it that takes time
LONG = {
    "letters": "To be, or not to be? " * 3_500,
    "cyrillic": "Быть или не быть " * 500,
    "han": "生存還是毀滅，這是一個值得考慮的問題。" * 300,
    "white space": " \n\t" * 3_000,
    "faces": "🙂🤔" * 600,
}


def prompt(at: AppTest) -> str:
    return str(at.text_area(key="prompt").value)


def reloaded(at: AppTest) -> AppTest:
    """The page for somebody who opens the same address again."""
    return opened(
        PAGE,
        **{
            key: value if isinstance(value, str) else value[-1]
            for key, value in at.query_params.items()
        },
    )


@given(
    st.text(max_size=200)
    | st.from_regex(r"kept-[0-9a-f]{32}", fullmatch=True)
    | st.text(min_size=1).map(lambda text: text * 2_000)
)
def test_what_an_address_says_for_a_text_is_short_and_stands_for_that_text(text: str) -> None:
    value = addresses.value_of(text)
    assert len(quote_plus(value)) <= addresses.LONGEST
    assert addresses.text_of(value) == text


@given(st.text(st.sampled_from(f"ab {string.punctuation}")) | st.text())
def test_a_chat_loses_nothing_of_a_link(text: str) -> None:
    asked = {"model": "bpe", "prompt": text}
    (written,) = re.findall(
        r"http[^\s<>\"'()|\\]+", f"Look at {addresses.link('http://class.example/lens', asked)} now"
    )
    # as the strictest of chats do
    taken = re.split(r"[-._~!*]{2}", written)[0].rstrip(string.punctuation)
    assert dict(parse_qsl(urlsplit(taken).query, keep_blank_values=True)) == asked


def test_an_older_link_gives_its_text_in_full() -> None:
    for text in ("ROMEO:", "", "kept", "kept-abc", "a\nb"):
        assert addresses.text_of(text) == text


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_long_prompt_is_there_after_a_reload_and_the_address_is_one_the_server_takes(
    text: str,
) -> None:
    at = opened(PAGE)
    at.text_area(key="prompt").set_value(text).run()
    assert len(urlencode(at.query_params, doseq=True)) < SERVER_TAKES / 2
    assert any("works only on this machine" in caption.value for caption in at.caption)
    assert prompt(reloaded(at)) == text


def test_a_short_prompt_stands_in_the_address_as_it_is_and_the_default_does_not() -> None:
    at = opened(PAGE)
    default = prompt(at)
    assert "prompt" not in at.query_params
    at.text_area(key="prompt").set_value("ROMEO & Juliet:\n").run()
    assert at.query_params["prompt"] == "ROMEO & Juliet:\n"
    assert prompt(reloaded(at)) == "ROMEO & Juliet:\n"
    at.text_area(key="prompt").set_value("").run()
    assert at.query_params["prompt"] == ""
    at.text_area(key="prompt").set_value(default).run()
    assert "prompt" not in at.query_params


def test_the_links_to_other_pages_carry_a_long_prompt() -> None:
    at = opened(PAGE)
    at.text_area(key="prompt").set_value(LONG["cyrillic"]).run()
    menu = {
        link.proto.label: parse_qs(link.proto.query_string) for link in at.sidebar.get("page_link")
    }
    (value,) = menu["Positions"]["prompt"]
    assert prompt(opened("pages/positions.py", prompt=value)) == LONG["cyrillic"]


def test_a_link_names_as_many_models_as_an_address_holds_the_first_of_them() -> None:
    for names in (["語" * 60 + str(i) for i in range(500)], [f"a{i}" for i in range(3)], []):
        value = curves.names_in_link(names)
        assert len(quote_plus(value)) < SERVER_TAKES / 4
        there = [unquote(name) for name in value.split(",")]
        assert there == (names[: len(there)] or [curves.NONE])
        assert len(names) > 3 or len(there) >= len(names)


def test_an_address_that_changes_by_itself_changes_the_prompt() -> None:
    at = opened(PAGE, model="shakespeare", prompt="one")
    at.text_area(key="prompt").set_value("two").run()
    at.query_params["prompt"] = "one"  # a step back in the browser's history
    assert prompt(at.run()) == "one"
    del at.query_params["prompt"]
    assert prompt(at.run()) == prompt(opened(PAGE, model="shakespeare"))


def test_a_link_to_a_text_of_another_machine_says_so_and_keeps_its_key() -> None:
    key = "kept-" + "0" * 32
    at = opened(PAGE, model="shakespeare", prompt=key)
    for _ in range(2):
        assert [alert.value for alert in at.warning if "this machine does not have" in alert.value]
        assert prompt(at) == prompt(opened(PAGE, model="shakespeare"))
        assert at.query_params["prompt"] == key
        at.run()
    at.text_area(key="prompt").set_value("ROMEO").run()
    assert not at.warning
    assert at.query_params["prompt"] == "ROMEO"


def test_where_a_long_text_cannot_be_kept_the_page_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path / "file"))
    at = opened(PAGE, prompt="ROMEO")
    at.text_area(key="prompt").set_value(LONG["letters"]).run()
    assert any("cannot be kept on this machine" in alert.value for alert in at.warning)
    assert "prompt" not in at.query_params
    assert prompt(at) == LONG["letters"]


def test_a_long_output_is_there_after_a_reload(tiny_pair: TinyModel) -> None:
    tiny_pair("pair", context_length=4_100)
    text = "один два " * 300
    at = opened("pages/translate.py", model="pair", prompt="one")
    at.text_input(key="output").set_value(text).run()
    assert len(urlencode(at.query_params, doseq=True)) < SERVER_TAKES / 2
    assert opened("pages/translate.py", **at.query_params).text_input(key="output").value == text


def test_the_texts_kept_are_those_used_last(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "MOST_TEXTS", 3)
    texts = [f"{i} " * addresses.LONGEST for i in range(5)]
    values = []
    for age, text in enumerate(texts[:3]):
        values.append(addresses.value_of(text))
        os.utime(home / "texts" / f"{values[-1]}.txt", (age, age))
    assert addresses.text_of(values[0]) == texts[0]  # which makes it the one used last
    values += map(addresses.value_of, texts[3:])
    assert len(list((home / "texts").iterdir())) == 3
    for value, text in zip(values, texts, strict=True):
        if text in (texts[1], texts[2]):
            with pytest.raises(addresses.NotKeptError, match=value[:13]):
                addresses.text_of(value)
        else:
            assert addresses.text_of(value) == text


def test_the_texts_kept_have_a_bound_in_bytes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "MOST_BYTES", 50_000)
    for i in range(10):
        addresses.value_of(f"{i:>5}" * 4_000)
        assert sum(file.stat().st_size for file in (home / "texts").iterdir()) <= 50_000
    with pytest.raises(OSError, match="at most"):
        addresses.value_of("a" * (addresses.LONGEST_KEPT + 1))


def test_a_damaged_file_is_never_taken_for_the_text(home: Path) -> None:
    text = "a" * 2 * addresses.LONGEST
    value = addresses.value_of(text)
    (home / "texts" / f"{value}.txt").write_text("something else")
    with pytest.raises(addresses.NotKeptError):
        addresses.text_of(value)
    assert addresses.value_of(text) == value
    assert addresses.text_of(value) == text
