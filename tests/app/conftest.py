"""What every test of a page shares: caches that no other test has filled."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import streamlit as st

from gptviz.learn import checkpoints


@pytest.fixture(autouse=True)
def _fresh_caches() -> None:
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(scope="session")
def _shakespeare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bundled = tmp_path_factory.mktemp("bundled")
    shutil.copytree(checkpoints.BUNDLED / "shakespeare", bundled / "shakespeare")
    return bundled


@pytest.fixture
def only_shakespeare(_shakespeare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the models that ship, `shakespeare` alone: a test about comparisons brings its own."""
    monkeypatch.setattr(checkpoints, "BUNDLED", _shakespeare)
