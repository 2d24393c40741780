"""What waits to be sent to the browser: wherever a part of a page runs again, no element comes before its neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from gptviz.ui.shell import sent

PART = "a part that runs again"


@pytest.fixture(autouse=True)
def _whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForwardMsgQueue, "clear", sent._clear)
    sent.whole()


def message(path: list[int], text: str, part: str = "") -> ForwardMsg:
    made = ForwardMsg()
    if text == "known to the browser":
        made.ref_hash = text
    else:
        if text == "block":
            made.delta.add_block.vertical.border = False
        else:
            made.delta.new_element.text.body = text
        made.delta.fragment_id = part
    made.metadata.delta_path.extend(path)
    return made


def drawn_by_the_part(run: str) -> Iterator[ForwardMsg]:
    yield message([0, 1], "block", PART)
    for place in range(6):
        yield message([0, 1, place], "known to the browser" if place % 3 == 1 else run, PART)


def drawn_by_the_page() -> Iterator[ForwardMsg]:
    yield message([0, 0], "page")
    yield from drawn_by_the_part("page")
    yield message([0, 2], "page")


def on_screen(received: list[ForwardMsg]) -> dict[tuple[int, ...], str]:
    """What the browser shows in each place; it cannot put an element where one before it is missing."""
    shown: dict[tuple[int, ...], str] = {}
    children = Counter[tuple[int, ...]]()
    for one in received:
        *parent, place = one.metadata.delta_path
        assert place <= children[tuple(parent)], f"nothing is at {[*parent, place - 1]}"
        children[tuple(parent)] = max(children[tuple(parent)], place + 1)
        if one.delta.WhichOneof("type") == "add_block":
            children[*parent, place] = 0
        shown[*parent, place] = one.ref_hash or one.delta.new_element.text.body
    return shown


@pytest.mark.parametrize("interrupted", range(8))
@pytest.mark.parametrize("flushed", range(10))
def test_the_browser_shows_the_page_and_what_its_part_drew_last(flushed: int, interrupted: int) -> None:
    queue, received = ForwardMsgQueue(), list[ForwardMsg]()
    for number, one in enumerate(drawn_by_the_page()):
        if number == flushed:
            received += queue.flush()
        queue.enqueue(one)
    for run, stop in (("first", interrupted), ("second", 7)):
        queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=[PART])
        for one in list(drawn_by_the_part(run))[:stop]:
            queue.enqueue(one)
    received += queue.flush()
    shown = on_screen(received)
    assert (shown[0, 0], shown[0, 2]) == ("page", "page")
    assert [shown[0, 1, place] for place in range(6)] == ["second", "known to the browser", "second"] * 2


def test_a_new_run_of_the_whole_page_takes_out_what_the_one_before_drew() -> None:
    queue = ForwardMsgQueue()
    for one in drawn_by_the_page():
        queue.enqueue(one)
    queue.clear(retain_lifecycle_msgs=True)
    assert queue.is_empty()
