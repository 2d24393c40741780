"""What a long computation says of how far it is: to who listens in its own thread, and from 0 to the whole."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import numpy as np
import pytest
import torch

from gptviz import progress
from gptviz.interp import compare, next_token
from gptviz.interp.attention import read
from gptviz.interp.attribution import attribute
from gptviz.interp.lens import lens
from gptviz.interp.stream import stream
from gptviz.model import Transformer, read_in_passes
from tests.tiny import VOCAB, scrambled, tiny

IDS = (1, 4, 2, 4, 3, 1)


class _EnoughError(Exception):
    """What a listener raises that wants no more."""


def heard(compute: Callable[[], object]) -> list[tuple[float, str]]:
    said: list[tuple[float, str]] = []
    with progress.listening(lambda share, doing: said.append((share, doing))):
        compute()
    return said


def test_a_pass_says_after_every_block_how_far_it_is() -> None:
    model = scrambled(tiny(n_layer=3))
    said = heard(lambda: model(torch.tensor([IDS])))
    assert said == [(pytest.approx(done / 3), f"block {done} of 3") for done in (1, 2, 3)]


def test_nobody_hears_another_thread_nor_what_comes_later() -> None:
    model = scrambled(tiny())
    elsewhere = Thread(target=lambda: model(torch.tensor([IDS])))

    def compute() -> None:
        elsewhere.start()
        elsewhere.join()

    assert heard(compute) == []
    assert not progress.is_heard()
    with progress.part(0, 2):
        progress.report(1, 2, "step")


def _sides(model: Transformer) -> tuple[compare.Side, compare.Side]:
    vocabulary = tuple(map(str, range(VOCAB)))
    return compare.Side(model, IDS, vocabulary), compare.Side(model, IDS[::-1], vocabulary)


LONG: dict[str, Callable[[Transformer], object]] = {
    "the guesses": lambda model: next_token.places(model, IDS),
    "the lens": lambda model: lens(model, IDS),
    "the stream": lambda model: stream(model, IDS),
    "an attribution": lambda model: attribute(model, IDS),
    "two lenses": lambda model: compare.logit_lens(*_sides(model)),
    "two attributions": lambda model: compare.attribution(*_sides(model), "4"),
    "several passes": lambda model: read_in_passes(model, torch.tensor([IDS])),
}


@pytest.mark.parametrize("what", LONG)
def test_the_share_never_falls_and_ends_with_the_whole(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gptviz.model.long_texts.MOST_SCORES", 2 * 3 * len(IDS))  # two tokens a pass
    shares = [share for share, _ in heard(lambda: LONG[what](scrambled(tiny(n_layer=4))))]
    assert len(shares) >= 4
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] == pytest.approx(1)


def test_a_listener_ends_a_pass_between_two_blocks_and_the_next_pass_is_whole() -> None:
    model = scrambled(tiny(n_layer=3))
    before = read(model, IDS)

    def listener(share: float, _doing: str) -> None:
        if share > 0.5:
            raise _EnoughError

    with pytest.raises(_EnoughError), progress.listening(listener):
        read(model, IDS)
    for one, other in zip(before.patterns.blocks, read(model, IDS).patterns.blocks, strict=True):
        np.testing.assert_array_equal(one, other)
