"""What a long computation says of how far it is: to who listens in its own thread, and from 0 to
the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread

import numpy as np
import pytest
import torch

from gptviz.interp import compare
from gptviz.interp.changing.ablation import Rows, loss_with_each
from gptviz.interp.changing.edit import MEAN, Edit, Inputs
from gptviz.interp.changing.edits import edit_unit
from gptviz.interp.changing.patching import PromptPair, patch
from gptviz.interp.explaining.attribution import attribute
from gptviz.interp.explaining.circuit import circuit
from gptviz.interp.explaining.context_use import by_window, left_out
from gptviz.interp.reading import next_token
from gptviz.interp.reading.attention import read_attention
from gptviz.interp.reading.lens import lens
from gptviz.interp.reading.stream import stream
from gptviz.interp.units.activity import observe
from gptviz.interp.units.head_scores import losses_without
from gptviz.interp.units.head_weights import composition
from gptviz.interp.units.neurons import observable_neurons
from gptviz.interp.units.unit import heads_and_mlps
from gptviz.machine import progress
from gptviz.machine.progress import Progress
from gptviz.model import Transformer, read_in_passes
from tests.tiny import VOCAB, scrambled, tiny

IDS = (1, 4, 2, 4, 3, 1)


class _EnoughError(Exception):
    """What a listener raises that wants no more."""


def _enough(now: Progress) -> None:
    if now.share > 0.5:
        raise _EnoughError


def heard(compute: Callable[[], object]) -> list[Progress]:
    said: list[Progress] = []
    with progress.listen_to(said.append):
        compute()
    return said


def test_a_pass_says_after_every_block_how_far_it_is() -> None:
    model = scrambled(tiny(n_layer=3))
    said = heard(lambda: model(torch.tensor([IDS])))
    assert [(now.share, now.words) for now in said] == [
        (pytest.approx(n / 3), f"block {n} of 3") for n in (1, 2, 3)
    ]


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


def _pair() -> PromptPair:
    return PromptPair(IDS, (2, *IDS[1:]), 3, 4)


def _at_means(model: Transformer) -> Iterator[tuple[Edit, float]]:
    edits = [edit_unit(unit, MEAN) for unit in heads_and_mlps(model.config)]
    ids = torch.tensor([IDS])
    return loss_with_each(model, [Rows(Inputs(ids), ids)], edits, [Inputs(ids), Inputs(ids)])


LONG: dict[str, Callable[[Transformer], object]] = {
    "the guesses": lambda model: next_token.guesses(model, IDS),
    "the lens": lambda model: lens(model, IDS),
    "the stream": lambda model: stream(model, IDS),
    "an attribution": lambda model: attribute(model, IDS),
    "two lenses": lambda model: compare.logit_lens(*_sides(model)),
    "two attributions": lambda model: compare.attribution(*_sides(model), "4"),
    "tokens left out": lambda model: left_out(model, IDS),
    "the last tokens alone": lambda model: by_window(model, IDS),
    "patches": lambda model: patch(model, _pair()),
    "a circuit": lambda model: circuit(model, torch.tensor(IDS), 5),
    "the loss without each head": lambda model: dict(
        losses_without(model, torch.tensor([IDS]), heads_and_mlps(model.config))
    ),
    "the loss with each head at its mean": lambda model: dict(_at_means(model)),
    "neurons": lambda model: list(
        observe(observable_neurons(model, 1), [torch.tensor(IDS)] * 3 + [torch.tensor(IDS[:4])])
    ),
    "composition": lambda model: composition(model, "key"),
    "several passes": lambda model: read_in_passes(model, torch.tensor([IDS])),
}


@pytest.mark.parametrize("what", LONG)
def test_the_share_never_falls_and_ends_with_the_whole(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # two tokens a pass
    monkeypatch.setattr("gptviz.model.long_texts.MOST_SCORES", 2 * 3 * len(IDS))
    shares = [now.share for now in heard(lambda: LONG[what](scrambled(tiny(n_layer=4))))]
    assert len(shares) >= 4
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] == pytest.approx(1)


@pytest.mark.parametrize("what", LONG)
def test_a_listener_ends_any_of_them(what: str) -> None:
    with pytest.raises(_EnoughError), progress.listen_to(_enough):
        LONG[what](scrambled(tiny(n_layer=4)))


def test_the_steps_of_a_whole_are_told_instead_of_those_of_its_parts() -> None:
    def compute() -> None:
        for index, name in enumerate(("one", "other")):
            with progress.part(10 * index, 20, 10, doing=name):
                progress.report(1, 4, "block")

    assert [(now.share, now.words) for now in heard(compute)] == [
        (0.0, "0 of 20 (one)"),
        (0.125, "2 of 20 (one)"),
        (0.5, "10 of 20 (one)"),
        (0.5, "10 of 20 (other)"),
        (0.625, "12 of 20 (other)"),
        (1.0, "20 of 20 (other)"),
    ]
    assert progress.Progress().words == "beginning"
    assert progress.Progress(doing="getting the text").words == "beginning (getting the text)"


@pytest.mark.parametrize("of", [0, 2, 3, 5])
def test_each_step_of_an_iterator_is_told_and_whoever_takes_them_is_not_heard(of: int) -> None:
    taken: list[int] = []

    def steps() -> Iterator[int]:
        for number in range(3):
            progress.report(1, 2, "half")
            yield number

    def compute() -> None:
        for number in progress.report_each(steps(), of, "step"):
            taken.append(number)
            progress.report(1, 1, "taken")

    said = [now.words for now in heard(compute)]
    assert taken == list(range(3))[:of]
    assert [words for words in said if not words.startswith("step")] == ["taken 1 of 1"] * len(
        taken
    )
    assert [words for words in said if words.startswith("step")][: 2 * len(taken)] == [
        f"step {done:,} of {of}" for number in taken for done in (number, number + 1)
    ]


def test_a_listener_ends_a_pass_between_two_blocks_and_the_next_pass_is_whole() -> None:
    model = scrambled(tiny(n_layer=3))
    before = read_attention(model, IDS)

    with pytest.raises(_EnoughError), progress.listen_to(_enough):
        read_attention(model, IDS)
    for one, other in zip(
        before.patterns.blocks, read_attention(model, IDS).patterns.blocks, strict=True
    ):
        np.testing.assert_array_equal(one, other)
