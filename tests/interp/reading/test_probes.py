"""Linear probes: against directions that are planted, labels that are known, and chance."""

from __future__ import annotations

import numpy as np
import torch

from gptviz.interp.reading.layers import layers
from gptviz.interp.reading.probes import Probed, probe, text_labels
from tests.tiny import scrambled, some_ids, tiny


def rows_of(count: int = 60) -> list[torch.Tensor]:
    return list(some_ids(8, batch=count, vocab=11))


def test_the_token_itself_is_read_from_the_embedding_and_shuffled_labels_stay_at_chance() -> None:
    model, rows = scrambled(tiny(positions="none")), rows_of()
    found = probe(
        model, rows, [["even" if token % 2 else "odd" for token in row.tolist()] for row in rows]
    )
    assert found.accuracy[0] == 1
    assert found.appears == found.layers[0] == layers(model.config)[0]
    assert set(found.classes) == {"even", "odd"}
    deviation = (found.commonest * (1 - found.commonest) / 120) ** 0.5  # of the share of 120 tokens
    assert (found.control < found.commonest + 4 * deviation).all()


def test_what_is_not_in_the_stream_is_found_nowhere() -> None:
    model, rows = scrambled(tiny()), rows_of(200)
    coin = np.random.default_rng(1).integers(2, size=(200, 8)).astype(str).tolist()
    found = probe(model, rows, coin)
    assert found.appears is None
    assert "cannot be read" in found.said
    assert (abs(found.accuracy - 0.5) < 4 * (0.25 / 400) ** 0.5).all()


def test_accuracies_by_place_make_up_the_accuracy_and_tokens_without_a_label_do_not_count() -> None:
    model, rows = scrambled(tiny()), rows_of()
    labels: list[list[str | None]] = [
        [str(token) if place in (2, 5) else None for place, token in enumerate(row.tolist())]
        for row in rows
    ]
    found = probe(model, rows, labels)
    np.testing.assert_allclose(found.by_place[:, [2, 5]].mean(1), found.accuracy)
    assert np.isnan(np.delete(found.by_place, [2, 5], 1)).all()
    assert found.places().axes[0].labels == ("place 2", "place 5")
    assert found.labelled().values.shape == (3, 5)


def test_a_label_appears_where_it_is_first_read_nearly_as_well_as_anywhere() -> None:
    every = layers(tiny())
    values = np.array([0.5, 0.6, 0.98, 1.0, 0.8])
    found = Probed(every, ("a", "b"), values, np.full(5, 0.5), 0.5, np.zeros((5, 1)))
    assert found.appears == every[2]
    assert f"there after {every[2].title}" in found.said


def test_the_labels_of_a_text_are_those_that_one_sees() -> None:
    text = "Hey, YOU  two-by"
    assert text_labels(text, "case")[:8] == [
        "upper",
        "lower",
        "lower",
        None,
        None,
        "upper",
        "upper",
        "upper",
    ]
    assert text_labels(text, "word") == [
        *"012",
        None,
        None,
        *"012",
        None,
        None,
        *"012",
        None,
        *"01",
    ]
    assert text_labels("abcdefgh", "word") == [*"01234", "5 or more", "5 or more", "5 or more"]
    assert text_labels(["When", " Mary", "'s", " ha", "t"], "word") == ["0", "0", None, "0", "1"]
    assert text_labels(text, "before-2") == [None, None, *text[:-2]]
    assert text_labels("a", "before-4") == [None]
    quoted = text_labels('a"bc"d “e” f', "quotes")
    assert [label and label[0] for label in quoted] == [
        *"o",
        None,
        *"ii",
        None,
        *"oo",
        None,
        "i",
        None,
        *"oo",
    ]
