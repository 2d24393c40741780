"""What is drawn reaches the browser whole, also where a part of a page runs again before all of it is sent.

Streamlit then takes what that part drew before out of the messages that wait to be sent, to send less. But it leaves those
that stand for a large message which the browser has, and what was sent a moment ago is sent. The browser meets an element whose
neighbours never came, and shows an error in place of the page. So nothing is taken out: the browser gets what it would have got,
had it been sent in time.
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
