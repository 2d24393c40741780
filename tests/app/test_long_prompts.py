"""A prompt that takes long to read, or much memory: its end is read, that is said, and nothing of
it is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.machine import memory
from gptviz.model.costs.operations import flops
from gptviz.ui.shell.frame import WHOLE
from gptviz.ui.shell.subject import long_prompts
from tests.app.opening import opened, says
from tests.app.test_next_token_page import clicking
from tests.tiny import TinyModel

PROMPT = "to be or not to be that is the question " * 2  # 80 tokens
END = "here the model reads the last"


def links(at: AppTest) -> list[dict[str, list[str]]]:
    """What the links of the menu ask for."""
    return [parse_qs(link.proto.query_string) for link in at.sidebar.get("page_link")]


@pytest.fixture
def slow(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch, fresh_caches: None
) -> Iterator[None]:
    """A model that reads 20 tokens in what counts as some seconds."""
    tiny_model("mine", text=PROMPT, context_length=100)
    config = gptviz.load("mine").model.config
    monkeypatch.setattr(long_prompts, "FEWEST_TOKENS", 4)
    monkeypatch.setattr(long_prompts, "MOST_OPERATIONS", flops(config, 1, 20)[0])
    long_prompts.read_in_seconds.cache_clear()
    assert long_prompts.read_in_seconds(config) == 20
    yield
    long_prompts.read_in_seconds.cache_clear()


def test_of_a_prompt_that_takes_long_to_read_the_end_is_read_unless_all_of_it_is_asked_for(
    slow: None,
) -> None:
    at = opened("pages/next_token.py", model="mine", prompt=PROMPT[:20])
    assert END not in says(at)
    at = opened("pages/next_token.py", model="mine", prompt=PROMPT)
    assert "The prompt has 80 tokens" in says(at)
    assert f"{END} 20" in says(at)
    assert at.text_area(key="prompt").value == PROMPT
    assert at.slider[0].max == 19
    assert not any(WHOLE in link for link in links(at))
    at.toggle(key=WHOLE).set_value(True).run()
    assert all(link[WHOLE] == ["True"] for link in links(at))
    assert END not in says(at)
    assert at.slider[0].max == 79
    at = opened("pages/next_token.py", model="mine", prompt=PROMPT, **{WHOLE: "true"})
    assert END not in says(at)


def test_a_prompt_for_which_there_is_too_little_memory_is_refused_with_what_it_would_take(
    slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [100_000_000]
    monkeypatch.setattr(memory, "free_bytes", lambda *_: free[0])
    at = opened("pages/next_token.py", model="mine", prompt=PROMPT, **{WHOLE: "true"})
    assert (
        "To read all of them takes about 134 MB of memory, and 100 MB is free: here the model "
        "reads the last 20." in says(at)
    )
    free[0] = 200_000_000
    at.run()
    assert END not in says(at)
    free[0] = 100_000_000  # some of it is taken now by what was read
    at.run()
    assert END not in says(at)


def test_an_end_is_one_that_reads_as_the_last_tokens(tiny_model: TinyModel) -> None:
    tiny_model("mine", text=PROMPT, context_length=100)
    lm = gptviz.load("mine")
    ids = tuple(lm.tokenizer.encode(PROMPT).ids)
    for most in (1, 7, 79):
        found = long_prompts.end_of(lm, PROMPT, ids, most)
        assert found is not None
        assert (found[0], tuple(found[1].ids)) == (PROMPT[-most:], ids[-most:])
    assert long_prompts.end_of(lm, "another text", ids, 7) is None


@pytest.mark.parametrize(
    ("page", "held"),
    [
        ("circuit", "gptviz.ui.pages.circuit.graph"),
        ("patching", "gptviz.ui.pages.patching.prompts"),
    ],
)
def test_a_page_that_holds_much_of_every_token_reads_as_many_as_there_is_room_for(
    page: str, held: str, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch, fresh_caches: None
) -> None:
    tiny_model("mine", text=PROMPT, context_length=100)
    if page == "patching":
        monkeypatch.setattr(f"{held}.FEWEST_TOKENS", 16)
    monkeypatch.setattr(f"{held}.MOST_BYTES", 100_000)
    at = opened(f"pages/{page}.py", model="mine", prompt=PROMPT)
    assert END in says(at)
    assert "held in memory" in says(at) or "holds in memory" in says(at)
    assert at.text_area(key="prompt").value == PROMPT


def test_a_token_that_is_taken_after_the_end_that_is_read_leaves_the_beginning_in_the_prompt(
    slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = gptviz.load("mine").tokenizer.id_of("q")
    assert token is not None
    clicking(monkeypatch, token)
    at = opened("pages/next_token.py", model="mine", prompt=PROMPT)
    at.button(key="click").click().run()
    assert at.text_area(key="prompt").value == f"{PROMPT}q"
