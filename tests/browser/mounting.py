"""A view made by hand on a page of its own: no server and no Streamlit, only the payload and what
is drawn from it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page

from gptviz.components import kit
from gptviz.components.kit.modules import join_modules
from tests.browser.machinery import PATIENCE, ROOT, record_troubles

# A page of this host is served by the test itself. Like the app's, it may use the clipboard and
# change its address.
HOST = "localhost"
ADDRESS = f"http://{HOST}/view"
THEME = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
MOUNT = """async ({ script, style }) => {
    const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const module = await import(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })));
    window.sent = [];
    const place = () => {
        const host = document.createElement('div');
        document.body.append(host);
        const parentElement = host.attachShadow({ mode: 'open' });
        const look = Object.assign(document.createElement('style'), { textContent: style });
        parentElement.append(look, Object.assign(document.createElement('div'), { className: 'root' }));
        return parentElement;
    };
    let parentElement = place(), leave = null;
    window.show = (payload) => {
        leave = module.default({
            name: 'view', key: 'view', data: bytes(payload), parentElement,
            setTriggerValue: (name, value) => window.sent.push(['trigger', name, value]),
            setStateValue: (name, value) => window.sent.push(['state', name, value]),
        });
    };
    window.keep = async (script, parts) => {
        const keeper = await import(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })));
        for (const part of parts) keeper.default({ data: bytes(part), parentElement: document.createElement('div') });
    };
    window.replace = () => {
        leave?.();
        parentElement.host.remove();
        parentElement = place();
    };
}"""


class Message(NamedTuple):
    """What a view sent to the server.

    Attributes:
        way: "trigger" or "state": whether it was sent with `setTriggerValue` or with
            `setStateValue`.
        name: which trigger or state.
        value: what it carried; JSON is read.
    """

    way: str
    name: str
    value: Any


@dataclass
class Mounted:
    """A view on a page of its own. `page.locator` finds what is in it as it does in the app.

    Attributes:
        troubles: errors of scripts, and requests to other hosts. The fixture fails the test on any.
        body: what the page is loaded with.
    """

    page: Page
    troubles: list[str] = field(default_factory=list)
    body: str = ""

    def show(self, payload: bytes) -> None:
        """Give the view another payload, as a run of the script does."""
        self.page.evaluate("(payload) => window.show(payload)", encoded(payload))

    def keep(self, parts: Iterable[kit.PayloadPart]) -> None:
        """Give the page parts of payloads, as a run of the script does."""
        script = join_modules(kit.FOLDER / "part.js")
        self.page.evaluate(
            "([script, parts]) => window.keep(script, parts)",
            [script, [encoded(part.element_bytes) for part in parts]],
        )

    def replace(self) -> None:
        """Take the view away and make room for a new one, which the next `show` puts there (as
        Streamlit sometimes does).
        """
        self.page.evaluate("() => window.replace()")

    @property
    def sent(self) -> list[Message]:
        """What the view has sent to the server so far."""
        messages = [Message(*message) for message in self.page.evaluate("() => window.sent")]
        return [message._replace(value=_read(message.value)) for message in messages]


def encoded(data: bytes) -> str:
    """Bytes as the page takes them."""
    return base64.b64encode(data).decode()


def _read(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def variables(*, dark: bool) -> dict[str, str]:
    """The variables of the theme that Streamlit gives to a view, so far as the views use them."""
    colours = THEME["dark" if dark else "light"]
    return {
        "--st-background-color": colours["backgroundColor"],
        "--st-secondary-background-color": colours["secondaryBackgroundColor"],
        "--st-text-color": colours["textColor"],
        "--st-link-color": colours["linkColor"],
        "--st-border-color": colours["borderColor"],
        "--st-primary-color": colours["primaryColor"],
        "--st-base-radius": "0.35rem",
        "--st-font": '"Source Sans",sans-serif',
        "--st-code-font": '"Source Code Pro",monospace',
    }


def opened(browser: Browser) -> Mounted:
    """A page for a view."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(1_000 * PATIENCE)
    mounted = Mounted(page)
    record_troubles(page, HOST, mounted.troubles)
    context.route(
        f"{ADDRESS}**", lambda route: route.fulfill(body=mounted.body, content_type="text/html")
    )
    return mounted


def mount(
    browser: Browser,
    view: str,
    payload: bytes,
    *,
    dark: bool = False,
    width: int = 1280,
    height: int = 720,
    script: str | None = None,
    style: str | None = None,
    on: Mounted | None = None,
    **query: object,
) -> Mounted:
    """A page on which the view in the folder of this name shows `payload`; `query` is in its
    address.

    Args:
        view: the name of a folder of `gptviz.components`.
        payload: the bytes that the view's Python packs.
        dark: the colour scheme, and with it the theme.
        width: pixels, as `height`.
        script: in place of the view's own, as `style`: those of another version.
        on: a page that showed another view before, by default a new one.
    """
    mounted = on or opened(browser)
    page = mounted.page
    if page.viewport_size != {"width": width, "height": height}:
        page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(
        color_scheme="dark" if dark else "light",
        forced_colors="none",
        reduced_motion="no-preference",
    )
    page.mouse.move(-10, -10)
    theme = " ".join(f"{name}: {value};" for name, value in variables(dark=dark).items())
    mounted.body = (
        "<!doctype html><meta charset=utf-8><meta name=viewport "
        "content='width=device-width'><title>A view</title>"
        f"<link rel=icon href=data:,>"
        f"<style>{kit.page_style()}</style><style>:root {{ {theme} }} body {{ margin: 0; font: "
        "16px var(--st-font); "
        "color: var(--st-text-color); background: var(--st-background-color); "
        f"}}</style><body></body>"
    )
    page.goto(f"{ADDRESS}?{urlencode(query)}" if query else ADDRESS)
    mounted.troubles.clear()  # those of what was there before
    folder = kit.FOLDER.parent / view
    page.evaluate(
        MOUNT, {"script": script or kit.script(folder), "style": style or kit.style(folder)}
    )
    mounted.show(payload)
    return mounted


@contextlib.contextmanager
def mounting(browser: Browser, idle: list[Mounted]) -> Iterator[Callable[..., Mounted]]:
    """`mount` in `browser`; whatever went wrong fails the test.

    A page is taken from those that are `idle`, and is idle again in the end: to open one takes
    longer than to mount a view. One that is mounted `alone` is of this test only.
    """
    with contextlib.ExitStack() as stack:
        shown: list[Mounted] = []

        def show(view: str, payload: bytes, *, alone: bool = False, **look: Any) -> Mounted:
            one = mount(
                browser, view, payload, on=idle.pop() if idle and not alone else None, **look
            )
            stack.callback(*((one.page.context.close,) if alone else (idle.append, one)))
            shown.append(one)
            return one

        yield show
    wrong = [trouble for one in shown for trouble in one.troubles]
    assert not wrong, "\n".join(wrong)
