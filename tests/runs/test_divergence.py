"""A run that ends worse than a blind guess is said to have diverged, and no other is."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from gptviz.runs import checkpoints
from gptviz.runs.card import LossEntry
from gptviz.runs.divergence import describe_divergence, divergence_of
from gptviz.runs.log import read_log
from gptviz.runs.run import read_run
from gptviz.runs.status import read_status
from gptviz.train.divergence import has_diverged
from tests.small_runs import finish, recipe, text_run
from tests.tiny import VOCAB, tiny

GUESS = math.log(VOCAB)
pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize(
    ("before", "training", "validation", "expected"),
    [
        (GUESS, 119_295.0, 119_295.0, True),
        (GUESS, 1.2 * GUESS, 1.2 * GUESS, True),
        (None, 1.2 * GUESS, 1.2 * GUESS, True),
        (GUESS, None, 1.2 * GUESS, True),
        (GUESS, math.inf, math.nan, True),
        (GUESS, GUESS, GUESS, False),  # it has learned nothing, and unlearned nothing
        (GUESS, 1.05 * GUESS, 1.05 * GUESS, False),  # the first steps of many a run
        (GUESS, 0.01, 3 * GUESS, False),  # it knows its training data by heart
        # it leapt and came back; the mean of the last steps remembers
        (GUESS, 1e6, 0.5 * GUESS, False),
        (40.0, 20.0, 20.0, False),  # it began far off, and came nearer
        (0.001, 0.01, 0.01, False),  # it began with what it can do already
    ],
)
def test_a_run_has_diverged_where_it_is_worse_than_a_guess_and_than_its_beginning(
    before: float | None, training: float | None, validation: float, expected: bool
) -> None:
    assert has_diverged(before, training, validation, GUESS) is expected


def finished(**settings: object) -> Path:
    return finish(text_run(steps=30, evaluations=3, snapshots=0, **settings))


def test_a_run_whose_loss_leaps_says_so_in_card_status_and_log_with_what_to_change() -> None:
    folder = finished(learning_rate=30.0, warmup=0.0, clip=0.0)
    card = checkpoints.read_card(folder)
    status = read_status(folder)
    assert status.state == "finished"
    assert card.validation_loss is not None
    (loss,) = re.findall(r"^it diverged: after 30 steps its loss is ([\d,.]+) nats", card.diverged)
    assert float(loss.replace(",", "")) == pytest.approx(card.validation_loss, rel=1e-3)
    assert (
        f"A blind guess has {math.log(checkpoints.read_config(folder).vocab_size):.3f}"
        in card.diverged
    )
    change = (
        "lower the learning rate (30), begin with a warm-up (there was none), or clip gradients "
        "(they were not clipped)"
    )
    assert card.diverged.endswith(f". To change: {change}")
    assert status.message == card.diverged
    assert [line.text for line in read_log(folder / "log.jsonl") if line.kind == "diverged"] == [
        card.diverged
    ]


def test_a_sound_run_says_nothing_of_it() -> None:
    folder = finished()
    assert "diverged" not in checkpoints.read_card(folder).values
    assert read_status(folder).message == ""
    assert {line.kind for line in read_log(folder / "log.jsonl")} == {
        "step",
        "evaluation",
        "sample",
    }


def test_a_card_of_an_older_version_is_judged_by_its_losses() -> None:
    folder = finished(learning_rate=30.0)
    content = json.loads((folder / "card.json").read_text())
    said = content.pop("diverged")
    (folder / "card.json").write_text(json.dumps(content))
    assert (
        describe_divergence(checkpoints.read_card(folder), checkpoints.read_config(folder)) == said
    )


def test_a_run_that_recovers_is_no_longer_said_to_have_diverged() -> None:
    leap = LossEntry(step=10, validation=50.0, training=50.0)
    good = LossEntry(step=20, validation=1.0, training=30.0)
    assert divergence_of([leap], tiny(), recipe()) is not None
    assert divergence_of([leap, good], tiny(), recipe()) is None
    assert divergence_of([], tiny(), recipe()) is None
    # nothing was trained yet
    assert divergence_of([LossEntry(step=0, validation=50.0)], tiny(), recipe()) is None


def test_no_model_that_ships_has_diverged() -> None:
    for folder in checkpoints.folders().values():
        assert (
            describe_divergence(checkpoints.read_card(folder), checkpoints.read_config(folder))
            is None
        ), folder.name
        assert read_run(folder).card.losses
