"""The sampling ledger: what travels to the browser, and which clicks count. The browser's half is
tested in a browser.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptviz.components import sampling_ledger
from gptviz.components.kit import unpack
from gptviz.components.kit.command import ViewCommand
from gptviz.components.sampling_ledger import payload

LOGITS = np.array([1.5, -np.inf, 3.25], np.float32)


def made(logits: np.ndarray = LOGITS, labels: tuple[str, ...] = ("a", "␣", "c"), **given: object):  # type: ignore[no-untyped-def]
    return payload(
        logits,
        labels,
        **{"about": "a text", "title": "a title", "code": ("before ", " after")} | given,
    )  # type: ignore[arg-type]


def test_logits_and_random_numbers_travel_with_all_their_digits() -> None:
    logits = np.float32(20) * np.random.default_rng(0).standard_normal(500, np.float32)
    numbers = np.random.default_rng(1).random(100)
    header, arrays = unpack(made(logits, ("x",) * 500, numbers=numbers, true=7, takes=True).data)
    assert arrays["logits"].dtype == np.float32
    assert arrays["numbers"].dtype == np.float64
    np.testing.assert_array_equal(arrays["logits"], logits)
    np.testing.assert_array_equal(arrays["numbers"], numbers)
    assert (header["true"], header["takes"], header["code"]) == (7, True, ["before ", " after"])


def test_without_random_numbers_there_is_nothing_to_draw_with() -> None:
    assert set(unpack(made().data)[1]) == {"logits", "labels"}


def test_another_text_has_another_number_and_the_same_text_the_same() -> None:
    assert made().generation == made(command=ViewCommand({"seed": 1}, 5)).generation
    assert made().generation != made(about="another text").generation
    assert made().generation < 2**53, "a number the browser holds exactly"


def test_labels_that_do_not_fit_the_logits_are_refused() -> None:
    with pytest.raises(ValueError, match=r"2 labels for logits of the shape \(3,\)"):
        made(labels=("a", "b"))


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_logits_of_a_damaged_model_are_refused(broken: float) -> None:
    with pytest.raises(ValueError, match="not numbers"):
        made(np.array([1, broken, 3], np.float32))


def test_a_click_made_on_a_text_that_is_gone_takes_nothing() -> None:
    now = made()
    gone = made(about="the text before")
    took: list[int] = []
    for text in (gone, now):
        sampling_ledger._answer({"token": 2, "generation": text.generation}, now, took.append)
        assert took == ([2] if text is now else [])


def test_a_vocabulary_of_gpt2s_size_fits_in_a_message_and_travels_once() -> None:
    labels = tuple(f"␣word{i}" for i in range(50_257))
    first = made(np.zeros(50_257, np.float32), labels)
    assert len(first.data) < 2_000_000
    assert len(first.bare) < 4 * 50_257 + 1_000, "the logits alone"


def test_two_vocabularies_are_told_apart_and_one_is_itself() -> None:
    assert (
        made(labels=("a", "b", "c")).vocabulary
        == made(about="another text", labels=("a", "b", "c")).vocabulary
    )
    assert made(labels=("a", "b", "c")).vocabulary != made(labels=("a", "b", "d")).vocabulary
    header, arrays = unpack(made().bare)
    assert header["vocabulary"] == made().vocabulary
    assert set(arrays) == {"logits"}


def test_labels_go_along_once_for_each_vocabulary_and_again_where_a_view_lacks_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The trigger's function is called as Streamlit calls it; the real one is tested in a
    browser.
    """
    mounts: list[dict[str, Any]] = []
    monkeypatch.setattr(sampling_ledger, "_mount", lambda **given: mounts.append(given))
    monkeypatch.setattr(sampling_ledger.st, "session_state", {})
    first = made()
    second = made(about="another text")
    other = made(labels=("a", "b", "d"))
    for text in (first, first, second, first, other, second):
        sampling_ledger.sampling_ledger(text, key="ledger")
    sent = [first.data, first.data, second.bare, first.data, other.data, second.data]
    mounts[-1]["lost"](True)
    for text in (first, second, first):
        sampling_ledger.sampling_ledger(text, key="ledger")
    assert [mount["data"] for mount in mounts] == [*sent, first.data, second.bare, first.data]
