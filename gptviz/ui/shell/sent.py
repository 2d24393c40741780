"""What is drawn reaches the browser whole, even where a part of a page runs again before everything is sent.

In that case Streamlit removes what the part drew before from the messages that wait to be sent. But it does not remove the short
messages that stand for a large one which the browser already has, and it cannot remove what was sent a moment ago. So the browser
could get an element without those before it, and then shows an error in place of the page. Here nothing is removed: the browser
gets what it would have got if it had been sent in time.
"""

from __future__ import annotations

from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

_clear = ForwardMsgQueue.clear


def whole() -> None:
    """From now on, let a part of a page that runs again take nothing out of what waits to be sent."""
    ForwardMsgQueue.clear = _clear_for_pages  # type: ignore[method-assign]


def _clear_for_pages(
    self: ForwardMsgQueue, retain_lifecycle_msgs: bool = False, fragment_ids_this_run: list[str] | None = None
) -> None:
    if fragment_ids_this_run is None:
        _clear(self, retain_lifecycle_msgs)
    else:
        self._delta_index_map = {}  # what is drawn from now on comes after all that waits, and in the place of none of it
