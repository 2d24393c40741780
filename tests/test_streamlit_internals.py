"""Streamlit still does all that gptviz uses beyond its documented interface. Each failure names
what would break in gptviz.
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import streamlit as st
from hypothesis import given
from hypothesis import strategies as st_
from streamlit import config
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.caching import cache_utils
from streamlit.runtime.context import StreamlitHeaders
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.testing.v1 import AppTest
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME

from gptviz import streamlit_internals
from gptviz.streamlit_internals import SEEN_IN, SELECTORS, Element, page_and_query, session
from tests.test_architecture import FILES, ROOT
from tests.waiting import PATIENCE


def changed(lost: str) -> str:
    """The message of a failure: what breaks in gptviz."""
    return f"Streamlit {st.__version__} is not as {SEEN_IN} was: {lost}"


def test_the_version_that_is_required_is_the_one_in_which_all_of_this_was_seen() -> None:
    required = re.search(r"^streamlit==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert required[1] == SEEN_IN, (
        "run this file, tests/browser/test_streamlit_page.py and test_history.py; then change "
        "SEEN_IN"
    )


def test_no_other_module_imports_the_inside_of_streamlit() -> None:
    documented = {"import streamlit as st", "from streamlit.delta_generator import DeltaGenerator"}
    door = ROOT / "gptviz/streamlit_internals.py"
    code = "\n".join(file.read_text() for file in FILES if file != door)
    lines = set(re.findall(r"^\s*((?:import|from) streamlit\b.*)$", code, re.MULTILINE))
    assert lines == documented


def test_the_list_has_all_that_style_sheets_and_scripts_look_for_on_streamlits_page() -> None:
    files = [file for kind in ("py", "css", "js") for file in (ROOT / "gptviz").rglob(f"*.{kind}")]
    code = "\n".join(file.read_text() for file in files if file.name != "streamlit_internals.py")
    test_ids = {
        f"[data-testid{how}={name}]"
        for how, name in re.findall(r"\[data-testid(\^?)=\"?([\w-]+)", code)
    }
    classes = set(re.findall(r"\.st[A-Z]\w+", code))
    others = {
        f"[{name}]"
        for name in re.findall(r"data-(?:rac|selected|collapsed|tag|test-connection-state)\b", code)
    }
    script_state = {"[data-test-script-state]"} if "dataset.testScriptState" in code else set()
    assert test_ids | classes | others | script_state == SELECTORS.keys()


def test_a_thread_without_a_page_has_no_session_and_no_address() -> None:
    assert (session(), page_and_query()) == (None, ("", ""))


def page() -> None:
    import streamlit as st

    from gptviz.streamlit_internals import page_and_query, session

    st.json({"session": session(), "page": page_and_query()[0], "query": page_and_query()[1]})


def test_the_run_of_a_page_has_a_session_the_page_and_its_query() -> None:
    at = AppTest.from_function(page, default_timeout=PATIENCE)
    at.query_params["letter"] = "b"
    said = eval(at.run().json[0].value)
    assert said["session"], changed(
        "all visitors of a server compute on all cores, and wait for each other"
    )
    assert said["page"], changed("“Share” gives the address of another page")
    assert said["query"] == "letter=b", changed("“Share” and the models that links name get lost")


def test_a_step_in_the_browsers_history_is_told_to_the_page() -> None:
    names = {one.name for one in dataclasses.fields(script_run_context.ScriptRunContext)}
    assert "is_history_navigation" in names, changed(
        "Back and Forward show the model and the prompt of the page left"
    )


def page_that_was_led_to(reads_again: bool) -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    from gptviz.streamlit_internals import read_controls_from_address

    with get_script_run_ctx().session_state.query_params() as arrived:
        # so does Streamlit with what a control of the page left was bound to
        arrived.set_initial_query_params("")
    if reads_again:
        read_controls_from_address()
    st.text(st.selectbox("Letter", ["a", "b"], key="letter", bind="query-params"))


@pytest.mark.parametrize(("reads_again", "letter"), [(False, "a"), (True, "b")])
def test_controls_read_the_address_again(reads_again: bool, letter: str) -> None:
    at = AppTest.from_function(page_that_was_led_to, default_timeout=PATIENCE, args=(reads_again,))
    at.query_params["letter"] = "b"
    assert at.run().text[0].value == letter, changed(
        "Back and Forward show controls at their defaults, not as the address says"
    )


def test_what_is_shown_outside_the_cache_is_not_part_of_what_is_cached() -> None:
    inside = []
    within = []
    after = []

    @st.cache_data(max_entries=1)
    def computed() -> int:
        inside.append(script_run_context.in_cached_function.get())
        with streamlit_internals.outside_cache():
            within.append(script_run_context.in_cached_function.get())
        after.append(script_run_context.in_cached_function.get())
        return 1

    assert computed() == 1
    lost = changed(
        "the bar of a long computation is shown again whenever its cached value is used, and its "
        "Stop is an error"
    )
    assert (inside, within, after) == ([True], [False], [True]), lost


def page_of_elements() -> None:
    import pandas as pd
    import plotly.graph_objects as go
    import streamlit as st

    from gptviz.components.page_helpers import page_address

    st.header("A heading")
    st.markdown("A *text*")
    st.caption("A caption")
    st.warning("A warning")
    st.text("A plain text")
    st.code("1 + 1", "python")
    st.plotly_chart(go.Figure(), alt="An empty figure")
    page_address("letter=b", key="a view", on_tell=print)
    st.dataframe(pd.DataFrame({"number": [1, 2]}))
    st.image("data:image/png;base64,", caption="A picture")
    st.page_link("https://example.org", label="A link")
    st.selectbox("A choice", ["a", "b"])
    with st.expander("What is folded"):
        st.text("inside")
    with st.popover("More"):
        st.text("inside")
    with st.container(horizontal=True, key="named"):
        st.text("inside")


def within(element: Element) -> Iterator[Element]:
    """An element, and all that is in it."""
    yield element
    for one in element.inside or []:
        yield from within(one)


def test_a_page_that_ran_without_a_server_names_its_elements() -> None:
    at = AppTest.from_function(page_of_elements, default_timeout=PATIENCE).run()
    assert not at.exception
    elements = Element(at.main).inside or []
    view = elements.pop(7)
    shown = {element.kind: element for element in elements}
    lost = changed(
        "exported pages, `gptviz.show`, “Take home” and the check of lessons lose elements: see "
        "`takehome/page.py`"
    )
    kinds = [
        "Heading",
        "Markdown",
        "Alert",
        "Text",
        "Code",
        "PlotlyChart",
        "Dataframe",
        "ImageList",
        "PageLink",
    ]
    assert list(shown) == [*kinds, "Selectbox", "expander", "popover", "flex_container"], lost
    says = {kind: element.message for kind, element in shown.items()}
    assert (says["Heading"].body, says["Heading"].tag) == ("A heading", "h2"), lost
    assert (says["Markdown"].body, says["Markdown"].element_type) == (
        "A caption",
        says["Markdown"].Type.CAPTION,
    ), lost
    assert (says["Alert"].body, says["Alert"].format) == ("A warning", 2), lost
    assert (says["Text"].body, says["Code"].code_text, says["Code"].language) == (
        "A plain text",
        "1 + 1",
        "python",
    ), lost
    assert (says["PlotlyChart"].alt, says["PlotlyChart"].spec[:1]) == ("An empty figure", "{"), lost
    views = [one.message for one in within(view) if one.kind == "BidiComponent"]
    assert any(
        re.fullmatch(r"gptviz_page_helpers_[0-9a-f]{8}", one.component_name) and one.bytes
        for one in views
    ), lost
    assert shown["Dataframe"].value.equals(pd.DataFrame({"number": [1, 2]})), lost
    assert [(image.url[:5], image.caption) for image in says["ImageList"].imgs] == [
        ("data:", "A picture")
    ], lost
    assert says["PageLink"].label == "A link", lost
    assert (says["Selectbox"].label, shown["Selectbox"].value) == ("A choice", "a"), lost
    assert says["expander"].label == "What is folded", lost
    row = says["flex_container"]
    assert row.flex_container.direction == row.flex_container.Direction.HORIZONTAL, lost
    assert row.id.endswith("-named"), lost
    assert [
        [one.message.body for one in shown[kind].inside or []] for kind in ("expander", "popover")
    ] == [["inside"]] * 2, lost


def test_streamlit_knows_every_option_that_the_app_sets() -> None:
    groups = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())
    names = {
        f"{group}.{name}"
        for group, options in groups.items()
        for name in options
        if not isinstance(options[name], dict)
    }
    lost = (
        "a page with parts that run by the clock loses its connection "
        "(global.maxCachedMessageAge), or looks different"
    )
    assert names <= config.get_config_options().keys(), changed(lost)
    assert streamlit_internals._WIDGETS in names


def test_the_logger_that_warns_of_a_page_without_a_server_has_the_name_by_which_it_is_turned_off() -> (
    None
):
    lost = changed(
        "the commands export and lessons check print a warning for every control of a page"
    )
    assert script_run_context._LOGGER.name == streamlit_internals._WARNS, lost


PART = "a part that runs again"


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForwardMsgQueue, "clear", streamlit_internals._clear)
    streamlit_internals.send_everything()


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
    """The element in each place of the browser, which cannot place one where the one before is
    missing.
    """
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
def test_the_browser_shows_the_page_and_what_its_part_drew_last(
    flushed: int, interrupted: int, everything: None
) -> None:
    shown = on_screen(sent(flushed, interrupted))
    lost = changed(
        "where a part of a page runs again, an error can take the place of the page: see "
        "`send_everything`"
    )
    assert (shown[0, 0], shown[0, 2]) == ("page", "page"), lost
    assert [shown[0, 1, place] for place in range(6)] == [
        "second",
        "known to the browser",
        "second",
    ] * 2, lost


def sent(flushed: int, interrupted: int) -> list[ForwardMsg]:
    """All that is sent of a page whose part runs again twice.

    Args:
        flushed: how many messages of the page have been sent before that.
        interrupted: after how many messages the first of the two runs is ended by the second.
    """
    queue = ForwardMsgQueue()
    received = list[ForwardMsg]()
    for number, one in enumerate(drawn_by_the_page()):
        if number == flushed:
            received += queue.flush()
        queue.enqueue(one)
    for run, stop in (("first", interrupted), ("second", 7)):
        queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=[PART])
        for one in list(drawn_by_the_part(run))[:stop]:
            queue.enqueue(one)
    return received + queue.flush()


def test_streamlit_alone_still_loses_what_it_should_send(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once this fails, `send_everything` can go. Pages that other tests of this process opened have
    called it.
    """
    monkeypatch.setattr(ForwardMsgQueue, "clear", streamlit_internals._clear)
    with pytest.raises(AssertionError, match="nothing is at"):
        on_screen(sent(5, 4))


def test_a_new_run_of_the_whole_page_takes_out_what_the_one_before_drew(everything: None) -> None:
    queue = ForwardMsgQueue()
    for one in drawn_by_the_page():
        queue.enqueue(one)
    queue.clear(retain_lifecycle_msgs=True)
    assert queue.is_empty(), changed(
        "what the page drew before a click is sent again: see `send_everything`"
    )


def test_streamlit_alone_still_raises_where_a_value_ends_between_two_looks_at_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once this fails, `period` can go, and `ttl` may stand in its place."""
    clock = count()
    monkeypatch.setattr(cache_utils, "TTLCACHE_TIMER", lambda: next(clock))
    kept = st.cache_resource(ttl=4)(lambda: 1)
    with pytest.raises(KeyError):
        [kept() for _ in range(8)]


def test_no_value_ends_by_a_time_of_streamlits_own() -> None:
    """It would now and then end a page with a KeyError: see `period`."""
    assert not [
        file for file in FILES if re.search(r"@st\.cache_resource\([^)]*\bttl\b", file.read_text())
    ]


def test_what_is_done_beside_a_starting_server_finds_the_server(tmp_path: Path) -> None:
    """If it does not: the first page waits for torch, which could have been imported before anybody
    came.
    """
    script = tmp_path / "app.py"
    script.write_text("")
    code = (
        "import os, socket, sys\n"
        "from streamlit import runtime\n"
        "from gptviz.streamlit_internals import serve\n"
        "with socket.socket() as probe:\n"
        "    probe.bind(('127.0.0.1', 0))\n"
        "    port = probe.getsockname()[1]\n"
        f"sys.argv = ['streamlit', 'run', {str(script)!r}, '--server.headless=true', "
        f"f'--server.port={{port}}']\n"
        "serve(lambda: os._exit(7 if runtime.exists() else 1))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == 7, ended.stderr


OWN_NAMES = ("localhost", "LocalHost", "localhost.", "127.0.0.1", "[::1]")
OTHER_NAMES = (
    *("10.0.0.7", "gptviz.school.example", "localhost.school.example", "127.0.0.1.nip.io", ""),
    *("localhost@school.example", "localhost:80@school.example", "localhost,school.example"),
    *("0.0.0.0", "[::]", "[fe80::1]", "[::ffff:10.0.0.7]", "mylocalhost", "localhost:port"),
)
FORWARDED = (
    *("X-Forwarded-For", "x-forwarded-for", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded"),
    *("X-Forwarded", "X-Real-IP", "Via", "CF-Connecting-IP", "True-Client-IP", "X-Client-IP"),
    *("Client-IP", "X-Cluster-Client-IP", "X-Original-Forwarded-For", "X-Original-Host"),
    *("X-Envoy-External-Address", "Fastly-Client-IP"),
)
# What browsers send of their own accord.
USUAL = (
    *(("User-Agent", "Mozilla/5.0"), ("Accept-Language", "de"), ("Cookie", "a=b")),
    *(("Sec-Fetch-Site", "same-origin"), ("Sec-WebSocket-Key", "x"), ("Connection", "Upgrade")),
    *(("Sec-WebSocket-Protocol", "streamlit, x"), ("Cache-Control", "no-cache"), ("DNT", "1")),
)
PORTS = st_.sampled_from(["", ":80", ":8501", ":65535"])


@pytest.fixture
def is_guest(monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Whether a request with these headers, from another address than this machine's if it is
    given, counts as that of a guest.
    """

    def asked(headers: Iterable[tuple[str, str]], address: str | None = None) -> bool:
        visitor = SimpleNamespace(headers=StreamlitHeaders(headers), ip_address=address)
        monkeypatch.setattr(streamlit_internals, "context", visitor)
        monkeypatch.setattr(streamlit_internals, "runtime", SimpleNamespace(exists=lambda: True))
        return streamlit_internals.is_guest()

    return asked


def from_browser(host: str, origin: str | None = None) -> list[tuple[str, str]]:
    """The headers that a browser sends which opened `host`; a forwarder may give another one."""
    return [("Host", host), ("Origin", f"http://{host if origin is None else origin}"), *USUAL]


@given(st_.sampled_from(OWN_NAMES), PORTS, PORTS)
def test_who_sits_at_the_server_and_opens_its_own_address_is_no_guest(
    is_guest: Callable[..., bool], name: str, port: str, other: str
) -> None:
    assert not is_guest(from_browser(name + port))
    assert not is_guest(from_browser("localhost" + port, name + other))


@given(st_.sampled_from(OWN_NAMES), st_.sampled_from(OTHER_NAMES), PORTS)
def test_whoever_asks_for_another_address_is_a_guest(
    is_guest: Callable[..., bool], own: str, other: str, port: str
) -> None:
    assert is_guest(from_browser(other + port))
    assert is_guest(from_browser(own + port, other + port)), "nginx puts its own name into Host"
    assert is_guest(from_browser(other + port, own + port))


@given(st_.sampled_from(FORWARDED), st_.sampled_from(["127.0.0.1", "localhost", "", "10.0.0.7"]))
def test_whoever_comes_through_a_forwarder_is_a_guest_whatever_it_says(
    is_guest: Callable[..., bool], name: str, value: str
) -> None:
    assert is_guest([*from_browser("localhost:8501"), (name, value)])


def test_whoever_comes_from_another_machine_is_a_guest(is_guest: Callable[..., bool]) -> None:
    assert is_guest(from_browser("localhost:8501"), "10.0.0.7")


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_who_does_not_say_once_what_was_asked_for_is_a_guest(
    is_guest: Callable[..., bool], name: str
) -> None:
    headers = from_browser("localhost:8501")
    assert is_guest([each for each in headers if each[0] != name])
    assert is_guest([*headers, *(each for each in headers if each[0] == name)])
    assert is_guest([(each, "null" if each == name else value) for each, value in headers])


def test_a_thread_of_a_server_that_runs_no_page_works_for_a_guest_and_no_other_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not streamlit_internals.is_guest()
    monkeypatch.setattr(streamlit_internals, "runtime", SimpleNamespace(exists=lambda: True))
    assert streamlit_internals.is_guest()


def test_a_browser_is_known_by_its_cookie_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = b"0123456789abcdef", b"fedcba9876543210"
    seen = []
    for number in (numbers[0], numbers[0], numbers[1]):
        cookie = {XSRF_COOKIE_NAME: generate_xsrf_token_string(number)}
        monkeypatch.setattr(streamlit_internals, "context", SimpleNamespace(cookies=cookie))
        seen.append(streamlit_internals.browser())
    assert seen[0] == seen[1] != seen[2], changed(
        "a browser of a class has several voices, or none"
    )
    for cookies in ({}, {XSRF_COOKIE_NAME: "made up"}, {XSRF_COOKIE_NAME: "2|x|y|z"}):
        monkeypatch.setattr(streamlit_internals, "context", SimpleNamespace(cookies=cookies))
        assert streamlit_internals.browser() is None
