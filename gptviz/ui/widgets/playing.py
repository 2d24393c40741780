"""A control whose values stand in an order, played from one to the next: each is drawn before the
next is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import streamlit as st

from gptviz.machine.job import Job

T = TypeVar("T")
# Seconds between two values while it plays; longer if the page takes longer.
PACE = 0.15


@dataclass(frozen=True)
class Player:
    """What plays the control of a key."""

    name: str  #: tells the players of the app apart, in the session's state
    key: str  #: that of the control
    about: str  #: what its button does, in a sentence

    def _key(self, what: str) -> str:
        return f"{self.name} {what}"

    @property
    def is_playing(self) -> bool:
        """Whether it plays."""
        return bool(st.session_state.get(self._key("plays")))

    def stop(self) -> None:
        """Play no longer."""
        st.session_state[self._key("plays")] = False

    def wait_for(self, job: Job[Any]) -> None:
        """Show the next value only when `job` has ended: its result belongs to the value shown
        now.
        """
        st.session_state[self._key("waits for")] = job

    def button(self, options: Sequence[T], usual: T) -> None:
        """The button that plays or pauses; to be called before the control, which it sets.

        Args:
            options: the values of the control, in their order.
            usual: the one that the control has until another is chosen. Playing begins anew where
                the last one is shown.
        """
        if (wanted := st.session_state.pop(self._key("next"), None)) in options:
            st.session_state[self.key] = wanted

        def play() -> None:
            st.session_state[self._key("plays")] = True
            if st.session_state.get(self.key, usual) == options[-1]:
                st.session_state[self._key("next")] = options[0]

        # Two buttons with different keys: a click that arrives late must not do the opposite.
        if self.is_playing:
            st.button(
                "",
                icon=":material/pause:",
                key=self._key("pause"),
                on_click=self.stop,
                type="primary",
                help="Stop here.",
            )
        else:
            st.button(
                "",
                icon=":material/fast_forward:",
                key=self._key("play"),
                on_click=play,
                help=self.about,
            )

    def go_on(self, options: Sequence[T], chosen: T) -> None:
        """While it plays, an invisible fragment that asks for the next value at regular times, once
        this one is drawn.
        """
        if not self.is_playing:
            return
        ready = self._key("ready")
        upcoming = option_after(options, chosen)

        @st.fragment(run_every=PACE)
        def tick() -> None:
            awaited: Job[Any] | None = st.session_state.get(self._key("waits for"))
            if (
                not st.session_state[ready]
                or not self.is_playing
                or (awaited is not None and awaited.is_active)
            ):
                return
            st.session_state[self._key("waits for")] = None
            st.session_state[self._key("next")] = upcoming
            st.session_state[self._key("plays")] = upcoming is not None and upcoming != options[-1]
            st.rerun()

        st.session_state[ready] = False  # its first run, as part of the page, is no tick
        tick()
        st.session_state[ready] = True


def option_after(options: Sequence[T], chosen: T) -> T | None:
    """The option after the chosen one, None after the last."""
    at = options.index(chosen) + 1 if chosen in options else 0
    if at < len(options):
        return options[at]
    return None
