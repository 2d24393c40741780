"""Controls whose value is kept in the URL, so that a link reopens what is on screen. If a link asks
for an impossible value, a message names it. The pictures below a control say what it is set to
(`headings`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import streamlit as st

from gptviz.machine.errors import reason_of
from gptviz.settings.address_values import ANY, ON_OR_OFF, Values, no_value, one_of, real_number
from gptviz.settings.fields import info_of

from . import addresses, visit
from .headings import say_chosen
from .markdown import escape_markdown

T = TypeVar("T")

# Key of the session's state: the value in the address for each text of this page when it was shown
# last.
_SAID = "texts in the address"
# Key of the session's state: the default that each control which follows its default had when it
# was shown last.
_DEFAULTS = "defaults shown"
# Key of the session's state: the container for messages about links and texts; none for the place
# where a control is.
_NOTICES = "place of notices"


def notices_in(container: Any = None) -> None:
    """Let the messages of the controls that come now stand in `container`; without one, where each
    control is.
    """
    st.session_state[_NOTICES] = container


def notice_place() -> Any:
    """Where messages stand now."""
    return st.session_state.get(_NOTICES) or st


def _replace_impossible(key: str, possible: Callable[[Any], bool], default: Any) -> None:
    """Replace a remembered value that the control no longer offers (another model has fewer heads,
    say) by its default.

    It is written, not only dropped: the browser would keep its own value, and show it above what
    belongs to another one.
    """
    if key in st.session_state and not possible(st.session_state[key]):
        st.session_state[key] = default


def _follow(key: str, default: Any) -> None:
    """Let a control that shows its previous default show the new one."""
    shown = st.session_state.setdefault(_DEFAULTS, {})
    if key in st.session_state and key in shown and st.session_state[key] == shown[key]:
        st.session_state[key] = default
    shown[key] = default


def _warn(key: str, values: Values, instead: str) -> None:
    """Warn about a value in the link that is not possible, and note which values are.

    A value that was chosen here before, for a model that offered it, gives no warning.
    """
    addresses.accept_values(key, values)
    asked = st.query_params.get(key)
    if asked is not None and not values.has(asked) and key not in st.session_state:
        warn_of_link(
            f"{key} =", asked, f", which is not available here; showing {escape_markdown(instead)}"
        )


def warn_of_link(what: str, asked: str, why: str) -> None:
    """Warn that the link asks for `what` “`asked`”, and say why that is not shown, as Markdown."""
    notice_place().warning(
        f"The link asks for {what} “{escape_markdown(asked[:80])}”{why}.",
        icon=":material/link_off:",
    )


def linked_choice(
    key: str, parse: Callable[[str], T], default: T, *, values: Values = ANY, instead: str = ""
) -> T:
    """A choice that the address has as `key`, and that no control is bound to: it is made in a
    figure or a table, or by a control whose range depends on the text. The code that makes it
    writes it there with `addresses.write`.

    If a value was possible before on this page, for another model or text, one that is impossible
    now gives no warning.

    Args:
        parse: reads the value in the address. If it raises a ValueError, the message says why there
            is no such choice here.
        default: the choice if the address names none, or none that is possible.
        values: the values that the address may have.
        instead: what is shown instead of a value that is not possible, in words.
    """
    addresses.accept_values(key, values)
    asked = st.query_params.get(key)
    read_before = f"{key} was possible"
    if asked is None:
        return default
    why = ", which is not available here" + (
        f"; showing {escape_markdown(instead)}" if instead else ""
    )
    try:
        if values.has(asked):
            chosen = parse(asked)
            visit.remember(read_before, True)
            return chosen
    except ValueError as error:
        addresses.accept_values(key, no_value(str(error)))
        why = f": {escape_markdown(str(error))}"
    if not visit.remembered_value(read_before):
        warn_of_link(f"{key} =", asked, why)
    return default


def open_with(
    key: str, value: str | bool, among: Collection[str | bool], own: Collection[str]
) -> None:
    """Let a link that does not have the control `key`, but one of the controls `own`, set that
    control to the one of the values `among` that shows these: `value`.
    """
    asked = st.query_params
    if key not in asked and st.session_state.get(key) not in among and asked.keys() & set(own):
        st.session_state[key] = value


def select(
    label: str,
    options: Sequence[str],
    *,
    key: str,
    help: str,
    default: str | None = None,
    format_func: Callable[[str], str] = str,
    label_visibility: Literal["visible", "hidden", "collapsed"] = "visible",
    segmented: bool = False,
    disabled: bool = False,
    other: Callable[[str], bool] | None = None,
    follows: bool = False,
    gone: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """A control for one of `options`, kept in the URL as `key`; the option chosen.

    Args:
        other: for more options than can be listed: whether a typed text is one of them. There is no
            `format_func` then.
        segmented: whether all options are shown side by side.
        disabled: whether it only shows its value.
        follows: whether the control changes with its default, which depends on the model or the
            text, until another option is chosen. The address does not name a default: after a
            reload the new one would be shown.
        gone: for each option of an earlier version, the one that took its place: links to it open
            that one.
    """
    if (instead := gone.get(st.query_params.get(key, ""))) is not None:
        st.session_state[key] = instead
        addresses.write(key, instead)
    if default is not None and default in options:
        first = default
    else:
        first = options[0]
    labels = [format_func(option) for option in options]
    may_be = other or (lambda _: False)
    listed = one_of(labels)
    values = Values(
        listed.words, lambda asked: asked in labels or asked in gone or may_be(asked), labels
    )
    _warn(key, values, f"“{format_func(first)}”")
    if (
        other is not None
        and (typed := st.session_state.get(key, first)) not in options
        and not may_be(typed)
    ):
        notice_place().warning(
            f"{label}: there is no “{escape_markdown(str(typed)[:80])}”; showing "
            f"“{escape_markdown(first)}”."
        )
    _replace_impossible(key, lambda value: value in options or may_be(value), first)
    if follows:
        _follow(key, first)
    common: dict[str, Any] = {
        "key": key,
        "help": help,
        "bind": "query-params",
        "format_func": format_func,
        "label_visibility": label_visibility,
        "disabled": disabled,
    }
    chosen: Any
    if segmented:
        chosen = st.segmented_control(label, options, default=first, required=True, **common)
    else:
        common["accept_new_options"] = other is not None
        chosen = st.selectbox(label, options, index=list(options).index(first), **common)
        # a text that can be typed may also stand in the address
        if chosen not in options and not may_be(str(chosen)):
            chosen = first
    say_chosen(label, format_func(chosen))
    return str(chosen)


def choose(kind: Any, options: Sequence[str] = (), *, key: str) -> Any:
    """The control of a kind of setting that is one of some words (`gptviz.settings.kinds`), side by
    side; `options` are the words where a page has others for them.
    """
    info = info_of(kind)
    return select(info.label, options or info.choices, key=key, help=info.help, segmented=True)


def notch(
    label: str,
    options: Sequence[Any],
    *,
    key: str,
    help: str,
    default: Any,
    format_func: Callable[[Any], str] = str,
    label_visibility: Literal["visible", "hidden", "collapsed"] = "visible",
    follows: bool = False,
) -> Any:
    """One of `options` in their order on a slider, kept in the URL as `key`; `follows` as in
    `select`.

    Streamlit identifies this slider only by its key, not by its options. A slider made by st.slider
    counts as a new one when its ends change, and would then take the value in the URL instead of
    the value that a "Try this" has just set.
    """
    _warn(key, one_of(list(map(format_func, options))), format_func(default))
    _replace_impossible(key, lambda value: value in options, default)
    if follows:
        _follow(key, default)
    common: dict[str, Any] = {
        "key": key,
        "help": help or None,
        "bind": "query-params",
        "format_func": format_func,
    }
    chosen = st.select_slider(label, options, default, label_visibility=label_visibility, **common)
    say_chosen(label, format_func(chosen))
    return chosen


def whole_number(
    label: str, low: int, high: int, *, key: str, help: str, default: int, follows: bool = False
) -> int:
    """A whole number from `low` to `high`, at most some hundreds, kept in the URL as `key`; no
    control where there is nothing to choose. `follows` as in `select`.
    """
    if low == high:
        addresses.accept_values(key, one_of([str(low)]))
        return low
    first = min(max(default, low), high)
    return int(
        notch(label, range(low, high + 1), key=key, help=help, default=first, follows=follows)
    )


def decimal_number(
    label: str, low: float, high: float, *, key: str, help: str, default: float, step: float
) -> float:
    """A number from `low` to `high`, kept in the URL as `key`."""
    _warn(key, real_number(low, high), f"{default:g}")
    _replace_impossible(
        key, lambda value: isinstance(value, int | float) and low <= value <= high, default
    )
    chosen = st.slider(label, low, high, default, step, key=key, help=help, bind="query-params")
    say_chosen(label, f"{chosen:g}")
    return chosen


def switch(
    label: str,
    *,
    key: str,
    help: str,
    default: bool = False,
    on_change: Callable[[], None] | None = None,
) -> bool:
    """On or off, kept in the URL as `key`; `on_change` is called before the page runs again, and
    not for what a link says.
    """
    _warn(key, ON_OR_OFF, "on" if default else "off")
    chosen = st.toggle(label, default, key=key, help=help, bind="query-params", on_change=on_change)
    say_chosen(label, "on" if chosen else "off")
    return chosen


def text(
    label: str,
    default: str = "",
    *,
    key: str,
    help: str,
    longest: int,
    height: int | None = None,
    instead_of: Collection[str] = (),
    placeholder: str | None = None,
    label_visibility: Literal["visible", "hidden", "collapsed"] = "visible",
    lasting: bool = False,
) -> str:
    """A text, kept in the address as `key`: see `addresses`. The server writes the address, so that
    it is never too long.

    Args:
        longest: the most characters that can be typed.
        height: pixels, for more than one line.
        instead_of: texts that the default takes the place of.
        lasting: keep the text when the reader leaves the page and returns.
    """
    said = st.session_state.setdefault(_SAID, {})
    missing = ""
    linked = None
    addresses.accept_values(key, ANY)
    try:
        linked = addresses.get(key)
    except addresses.NotKeptError as error:
        missing = str(error)
    if key not in said or said[key] != st.query_params.get(key) or key not in st.session_state:
        # The page opens, or a link or a step back in the browser's history asks for another text.
        is_kept = lasting and key not in said and key in st.session_state
        if linked is not None:
            st.session_state[key] = linked
        elif not is_kept:
            st.session_state[key] = default
    if st.session_state[key] in instead_of:
        st.session_state[key] = default
    common: dict[str, Any] = {
        "key": key,
        "help": help,
        "max_chars": longest,
        "placeholder": placeholder,
        "label_visibility": label_visibility,
        "persist_state": "session" if lasting else "page",
    }
    typed = (
        st.text_input(label, **common)
        if height is None
        else st.text_area(label, height=height, **common)
    ) or ""
    if missing and typed == default:
        notice_place().warning(
            f"{escape_markdown(missing)}. The page uses its default text instead.",
            icon=":material/link_off:",
        )
    else:
        _keep(label, key, None if typed == default else typed)
    said[key] = st.query_params.get(key)
    if typed:
        say_chosen(label, f"“{typed}”")
    return typed


def _keep(label: str, key: str, typed: str | None) -> None:
    """Write a text into the address; a line on the page says so if that works only on this machine,
    or not at all.
    """
    try:
        addresses.put(key, typed)
    except OSError as error:
        notice_place().warning(
            f"{label}: this text is too long for the address, and it cannot be kept on this "
            f"machine ({escape_markdown(reason_of(error))}): a "
            "reload or a link opens the page without it.",
            icon=":material/link_off:",
        )
    else:
        if typed is not None and st.query_params.get(key) != typed:
            notice_place().caption(
                f"{label}: this text is too long for the address, which has a short key for it "
                "instead. Such a link works only "
                "on this machine."
            )


def forget_texts() -> None:
    """Take the texts of the page from its address, which another page of the session may have used
    before.
    """
    st.session_state.pop(_SAID, None)


def in_link(key: str) -> str | None:
    """The value of `key` in a link to another page, or None: the text on the page, else the value
    in the address.
    """
    if key not in st.session_state.get(_SAID, {}) or key not in st.session_state:
        return st.query_params.get(key)
    try:
        return addresses.value_of(st.session_state[key] or "")
    except OSError:  # the page says so, at the control of the text
        return None
