"""The edits of the model on screen: kept in the address, so that every page and link has them, and
shown as a chip in the bar.

See `gptviz/interp/changing/edits.py` for edits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from gptviz.figures.kit.format import format_count
from gptviz.settings.address_values import no_value
from gptviz.ui.widgets import addresses, controls, escape_markdown

from .models import ModelKey, language_model

if TYPE_CHECKING:
    from gptviz.interp.changing.edits import Fitting

# The keys of the address: the edits, separated by commas, and the reference text of those that need
# one.
EDITS = "edits"
TEXT = "edit_text"
LONGEST_TEXT = 20_000
# The unit of the edit that is the strength of a LoRA adapter, and the strength without an edit.
ADAPTER = "adapter"
TUNED = 1.0


def asked_edits() -> tuple[str, ...]:
    """The edits that the address asks for, as texts. The model on screen may lack the units that
    they name.
    """
    try:
        listed = addresses.get(EDITS) or ""
    except addresses.NotKeptError:
        return ()
    return tuple(dict.fromkeys(text.strip() for text in listed.split(",") if text.strip()))


def put(texts: Iterable[str]) -> None:
    """Let the address ask for these edits and no others."""
    addresses.put(EDITS, ",".join(dict.fromkeys(texts)) or None)


def set_to(text: str) -> None:
    """Add the edit `text`; it replaces another edit of the same unit."""
    put((*_of_others(text), text))


def toggle(text: str) -> None:
    """Add the edit `text`, replacing another edit of the same unit; remove it if it is there
    already.
    """
    put(_of_others(text) if text in asked_edits() else (*_of_others(text), text))


def _of_others(text: str) -> list[str]:
    unit = text.partition("=")[0]
    return [other for other in asked_edits() if other.partition("=")[0] != unit]


def take_away(text: str) -> None:
    """Remove one edit."""
    put(other for other in asked_edits() if other != text)


def reference_text(default: str) -> str:
    """The reference text of edits: that of the address, else the `default`."""
    try:
        return addresses.get(TEXT) or default
    except addresses.NotKeptError:
        return default


def edit_key(key: ModelKey, default: str, bar: Any) -> ModelKey:
    """The model of `key` with the edits of the address, as far as it has the units that they name;
    a message names the others.

    Args:
        default: the reference text unless another one is typed.
        bar: the container for the chip, which is there as soon as there is an edit.
    """
    texts = asked_edits()
    if not texts:
        return key
    from gptviz.interp.changing.edits import fitting

    lm = language_model(key)
    fitted = fitting(texts, lm.model)
    if fitted.rejected:
        addresses.accept_values(EDITS, no_value("; ".join(fitted.rejected)))
    warn_of_refused(key.name, fitted)
    with bar:
        typed = _chip(key, texts, fitted, lambda token: f"“{lm.tokenizer.label(token)}”", default)
    return with_edits(key, fitted, typed or default)


def with_edits(key: ModelKey, fitted: Fitting, text: str) -> ModelKey:
    """The model of `key` with the edits that fit it; without them, and with a message, if they
    cannot be made.

    Args:
        text: the reference text of those that need one.
    """
    if not fitted.edits:
        return key
    needs_text = any(one.needs_text for one in fitted.edits)
    wanted = replace(
        key, edits=tuple(one.text for one in fitted.edits), edit_text=text if needs_text else None
    )
    try:
        language_model(wanted)
    except ValueError as error:
        controls.notice_place().warning(
            f"The edits are left out: {escape_markdown(str(error))}.", icon=":material/edit_off:"
        )
        return key
    return wanted


def strength_slider(bar: Any) -> None:
    """The slider of the strength of a LoRA adapter.

    Args:
        bar: the container for it.
    """
    about = (
        "How much of the adapter is added to the weights of its base, on all pages. 0 is the "
        "base, 1 is as trained, and 2 "
    )
    look = {
        "format": "strength %.2f",
        "label_visibility": "collapsed",
        "width": 160,
        "help": f"{about}goes twice as far.",
    }
    number_slider(bar, ADAPTER, TUNED, "Strength of the adapter", 0.0, 2.0, step=0.05, **look)


def number_slider(
    bar: Any, unit: str, usual: float, label: str, low: float, high: float, **look: Any
) -> float:
    """A slider in `bar`, from `low` to `high` or as far as the address goes: the number that a
    unit, given by its name, is edited to on all pages, and `usual` without an edit. `look` are
    other arguments of `st.slider`.
    """
    at = strength_of(asked_edits(), unit, usual)
    key = f"strength of the {unit}"
    st.session_state[key] = at
    bar.slider(
        label,
        min(low, at),
        max(high, at),
        key=key,
        on_change=_set_number,
        args=(key, unit, usual),
        **look,
    )
    return at


def _set_number(key: str, unit: str, usual: float) -> None:
    at = st.session_state[key]
    put(_of_others(unit)) if at == usual else set_to(f"{unit}={at:g}")


def at_strength(key: ModelKey, strength: float) -> ModelKey:
    """The adapter of `key`, which has no edits, with this strength."""
    return replace(key, edits=(f"{ADAPTER}={strength:g}",))


def strength_of(texts: Iterable[str], unit: str = ADAPTER, usual: float = TUNED) -> float:
    """The number that the edits `texts` ask for a unit, an adapter unless given; `usual` if they
    ask for none that can be.
    """
    from gptviz.interp.changing.edit import strength

    asked_for = next((text for text in texts if text.partition("=")[0] == unit), None)
    if asked_for is None or (at := strength(asked_for)) is None:
        return usual
    return at


def text_box(default: str) -> str:
    """The control for the reference text, one per page. Returns the typed text, empty for the
    `default`.
    """
    return controls.text(
        "Reference text",
        key=TEXT,
        help="What means and patterns of edits are taken from. A long text is read in pieces; a "
        "pattern is that over the first "
        "piece. Where the field is empty, the text is the model's example, shown in grey.",
        longest=LONGEST_TEXT,
        height=100,
        placeholder=default,
        lasting=True,
    )


def warn_of_refused(name: str, fitted: Fitting) -> None:
    """Name the edits that do not apply to the model called `name`, and why."""
    if fitted.rejected:
        shown = fitted.rejected[:5]
        more = len(fitted.rejected) - 5
        lines = "".join(f"\n- {escape_markdown(line)}" for line in shown) + (
            f"\n- and {more:,} more" if more > 0 else ""
        )
        if len(fitted.rejected) == 1:
            these = "This edit is"
        else:
            these = f"{format_count(len(fitted.rejected), 'edit').capitalize()} are"
        controls.notice_place().warning(
            f"{these} left out, and {escape_markdown(name)} is shown without:{lines}",
            icon=":material/edit_off:",
        )


def _chip(
    key: ModelKey,
    texts: Sequence[str],
    fitted: Fitting,
    name: Callable[[int], str],
    default: str,
) -> str:
    """The chip that shows the number of edits and opens a list of them, and the button that removes
    them all.

    Returns the reference text that was typed; empty if none was.
    """
    from .unit_titles import name_with

    typed = ""
    if len(fitted.edits) < len(texts):
        of = f"{len(fitted.edits)} of "
    else:
        of = ""
    some = of + format_count(len(texts), "edit")
    with st.container(
        horizontal=True, gap="xsmall", vertical_alignment="center", key="edits-of-the-model"
    ):
        with st.popover(
            some,
            icon=":material/edit:",
            help="What is switched off or replaced in the model on every page.",
        ):
            st.markdown("**Edits of this model**")
            st.caption(
                "All pages show the model with them. The model itself is not touched: without the "
                "edits it is as it was."
            )
            add_name = name_with(key)
            applied = {
                one.text: add_name(one.unit.name, one.title_with(name)) for one in fitted.edits
            }
            for text in [*applied, *(text for text in texts if text not in applied)]:
                with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
                    st.button(
                        "Take away",
                        icon=":material/close:",
                        type="tertiary",
                        key=f"take away {text}",
                        on_click=take_away,
                        args=(text,),
                        help=f"Take `{text}` away."
                        if text in applied
                        else "Take it out of the address.",
                    )
                    st.markdown(
                        escape_markdown(applied.get(text, f"{text} does not apply to this model"))
                    )
            if any(one.needs_text for one in fitted.edits):
                typed = text_box(default)
        st.button(
            "Take all away",
            icon=":material/undo:",
            type="tertiary",
            key="take all edits away",
            on_click=put,
            args=((),),
            help="The model is then as it was, to the bit.",
        )
    return typed
