"""A visitor of the app without a browser: a websocket that says what a browser says, and reads what
a browser reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

# Of which field of a widget's state a change is a press, which happens once and is then forgotten.
PRESSED = "trigger_value"


@dataclass(frozen=True)
class _Widget:
    """A widget on the page, and the part of the page that runs by itself when it changes; "" is the
    whole page.
    """

    proto: Any
    fragment: str


@dataclass
class Visitor:
    """One browser session: what it has on screen, and what it has set.

    Attributes:
        url: of the server, http://host:port.
        errors: the errors that the page has shown so far.
        received: bytes that came, so far.
    """

    url: str
    errors: list[str] = field(default_factory=list)
    received: int = 0
    _socket: ClientConnection | None = None
    _page: str = ""
    _query: str = ""
    _widgets: dict[str, _Widget] = field(default_factory=dict)
    _states: dict[str, WidgetState] = field(default_factory=dict)
    _kept: dict[str, ForwardMsg] = field(default_factory=dict)

    async def open(self, page: str, **query: str) -> None:
        """Open a page by its address, as a link of a lesson does: in a new session. Returns once
        the page stands.
        """
        await self.leave()
        address = self.url.replace("http", "ws", 1) + "/_stcore/stream"
        self._socket = await connect(
            address,
            subprotocols=[Subprotocol("streamlit")],
            max_size=None,
            open_timeout=None,
            ping_interval=None,
        )
        self._page = page
        self._query = urlencode(query)
        self._widgets = {}
        self._states = {}
        self._kept = {}
        await self._ask()

    async def leave(self) -> None:
        """Close the page, if one is open."""
        if self._socket is not None:
            await self._socket.close()
            self._socket = None

    async def press(self, key: str) -> None:
        """Press the button with this key."""
        await self._change(key, trigger_value=True)

    async def move(self, key: str, value: float) -> None:
        """Move a slider."""
        await self._change(key, double_array_value=[value])

    async def type(self, key: str, text: str) -> None:
        """Type another text into a field."""
        await self._change(key, string_value=text)

    async def _change(self, key: str, **value: Any) -> None:
        widget = self._find(key)
        if widget is None:
            raise LookupError(f"the page {self._page} has no widget {key!r}")
        state = WidgetState(id=widget.proto.id)
        for name, content in value.items():
            if name == "double_array_value":
                state.double_array_value.data.extend(content)
            else:
                setattr(state, name, content)
        if PRESSED not in value:
            self._states[state.id] = state
        await self._ask(state, widget.fragment)

    def _find(self, key: str) -> _Widget | None:
        return next((one for name, one in self._widgets.items() if name.endswith(f"-{key}")), None)

    async def _ask(self, changed: WidgetState | None = None, fragment: str = "") -> None:
        """Ask for a run of the page, or of a part of it, and read what comes until it has ended."""
        assert self._socket is not None
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string = self._query
        asked.page_name = self._page
        asked.fragment_id = fragment
        asked.cached_message_hashes.extend(self._kept)
        states = self._states if changed is None else {**self._states, changed.id: changed}
        asked.widget_states.widgets.extend(states.values())
        await self._socket.send(message.SerializeToString())
        await self._read()

    async def _read(self) -> None:
        assert self._socket is not None
        begun = False
        seen: dict[str, _Widget] = {}
        while True:
            content = await self._socket.recv(decode=False)
            self.received += len(content)
            message = ForwardMsg.FromString(content)
            if message.WhichOneof("type") == "ref_hash":  # what came before, and was kept
                kept = ForwardMsg()
                kept.CopyFrom(self._kept[message.ref_hash])
                kept.metadata.CopyFrom(message.metadata)
                message = kept
            elif message.metadata.cacheable:
                self._kept[message.hash] = message
            match message.WhichOneof("type"):
                case "new_session":
                    begun = True
                    seen = {}
                case "delta":
                    self._note(message, seen)
                case "page_info_changed":
                    self._query = message.page_info_changed.query_string
                case "session_event" if (
                    message.session_event.WhichOneof("type") == "script_compilation_exception"
                ):
                    self.errors.append(
                        f"{self._page}: "
                        f"{message.session_event.script_compilation_exception.message}"
                    )
                    return
                case "script_finished" if (
                    begun and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
                ):
                    whole = message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
                    self._widgets = seen if whole else self._widgets | seen
                    return

    def _note(self, message: ForwardMsg, seen: dict[str, _Widget]) -> None:
        """Remember a widget that came, or what went wrong."""
        kind = (
            message.delta.new_element.WhichOneof("type")
            if message.delta.WhichOneof("type") == "new_element"
            else None
        )
        if kind is None:
            return
        proto = getattr(message.delta.new_element, kind)
        if kind == "exception":
            self.errors.append(f"{self._page}: {proto.type}: {proto.message}")
        if getattr(proto, "id", ""):
            seen[proto.id] = _Widget(proto, message.delta.fragment_id)
