"""Mistakes of wording are found, and similar words are left alone; every page that a test opens is
checked.
"""

from __future__ import annotations

import pytest

from tests.app.wording import slips


@pytest.mark.parametrize(
    "said",
    [
        "after each of 1 layers.",
        "42% of the positions",
        "off by at most 4e-08 of what is summed",
        "the logit is -0.329",
        "the loss is nan",
        "a change of −0.00 nats",
        "framed: blocks.0.attention.head.7",
        "so that\n$$a = b,\n\\qquad c = d.$$\nThe picture shows",
    ],
)
def test_a_slip_is_found(said: str) -> None:
    assert len(slips(said)) == 1


@pytest.mark.parametrize(
    "said",
    [
        "each of 11 layers",
        "1 layer, 0.1 words",
        "42 % of the positions; “100%”",
        "`1e-05` and $x_{-0.5}$",
        "−0.329, 1977-03.5, 0–1.5",
        "a finance, information",
        "`blocks.0.attention.pattern`",
        "so that\n\n$$\na = b,\n\\qquad c = d.\n$$\n\nThe picture; $$e = f$$ stands alone",
    ],
)
def test_what_is_well_written_is_left_alone(said: str) -> None:
    assert not slips(said)
