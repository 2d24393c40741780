"""The soak (`make soak`) goes on working: a short walk, and growing memory or an error of the
console is noticed.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.browser.soak import ACTIONS_A_SAMPLE, MOST_OF_SERVER, Walk, grew, soak

pytestmark = pytest.mark.browser


@pytest.mark.full
def test_a_short_walk_with_a_training_beside_it_finds_nothing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as own_thread:  # the browser of other tests has a loop in this one
        done = own_thread.submit(
            soak, tmp_path, lambda walk: walk.actions < 3 * ACTIONS_A_SAMPLE
        ).result()
    assert not done.wrong, "\n".join(done.wrong)
    assert done.actions == 3 * ACTIONS_A_SAMPLE
    assert min(done.server) > 50 * 2**20
    assert min(done.browser) > 2**20


def test_memory_that_grows_is_noticed_and_a_warm_up_or_a_peak_is_not() -> None:
    mib = 2.0**20
    flat = [100 * mib, 300 * mib, *[500 * mib] * 7]
    assert grew("it", flat, MOST_OF_SERVER) == ""
    assert grew("it", [*flat[:-1], 900 * mib], MOST_OF_SERVER) == ""
    growing = [100 * mib * (1 + number) for number in range(9)]
    assert "grew: 800 MiB after 500 MiB" in grew("it", growing, MOST_OF_SERVER)
    assert Walk(server=growing, browser=flat).verdict() == [
        grew("the server", growing, MOST_OF_SERVER)
    ]
