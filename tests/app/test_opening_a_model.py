"""The model that a page is about: what is said where it cannot be opened as asked."""

from __future__ import annotations

import pytest

from gptviz import memory
from tests.app.opening import opened

pytestmark = pytest.mark.usefixtures("fresh_caches", "home")


def test_a_model_too_large_for_what_is_free_is_refused_on_the_page_which_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda device="cpu": 20_000)
    at = opened("pages/generate.py", model="shakespeare")
    [error] = at.error
    said = error.value.replace("\\", "")
    assert "shakespeare is not opened: it needs about" in said
    assert "and 20 kB is free" in said
    assert "Choose another model above" in said
    monkeypatch.undo()
    assert not at.run().error
