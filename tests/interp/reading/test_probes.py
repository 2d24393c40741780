"""Linear probes: against directions that are planted, labels that are known, and chance."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gptviz.interp.reading import probes as module
from gptviz.interp.reading.layers import layers
from gptviz.interp.reading.probes import Probed, probe, text_labels
from tests.tiny import scrambled, some_ids, tiny


def rows_of(count: int = 60) -> list[torch.Tensor]:
    return list(some_ids(8, batch=count, vocab=11))


def test_the_token_itself_is_read_from_the_embedding_as_are_random_labels_of_tokens() -> None:
    model = scrambled(tiny(positions="none"))
    rows = rows_of()
    found = probe(
        model, rows, [["even" if token % 2 else "odd" for token in row.tolist()] for row in rows]
    )
    assert found.accuracy[0] == 1
    assert found.appears == found.layers[0] == layers(model.config)[0]
    assert set(found.classes) == {"even", "odd"}
    # a plane through 12 numbers tells any two groups of 11 tokens apart
    assert found.control[0] == 1


def test_what_is_not_in_the_stream_is_found_nowhere() -> None:
    model = scrambled(tiny())
    rows = rows_of(200)
    coin = np.random.default_rng(1).integers(2, size=(200, 8)).astype(str).tolist()
    found = probe(model, rows, coin)
    assert found.appears is None
    assert "cannot be read" in found.said
    assert (abs(found.accuracy - 0.5) < 4 * (0.25 / 400) ** 0.5).all()


def probed(accuracy: np.ndarray, chosen_by: np.ndarray) -> Probed:
    return Probed(
        "Case",
        layers(tiny()),
        ("a", "b"),
        accuracy,
        np.full(5, 0.5),
        0.5,
        np.zeros((5, 1)),
        chosen_by,
        fitted_to=300,
        tested_on=100,
        d_model=12,
    )


def test_copies_of_a_text_test_nothing() -> None:
    """Two texts thirty times: a probe knows both by heart. Equal beginnings count once."""
    model, (one, other) = scrambled(tiny()), rows_of(2)
    ends = [[*[None] * 7, label] for label in ("a", "b") * 30]
    with pytest.raises(ValueError, match="20 different tokens"):
        probe(model, [one, other] * 30, ends)
    rows = rows_of(40)
    coin = np.random.default_rng(1).integers(2, size=(40, 8)).astype(str).tolist()
    once = probe(model, rows, coin)
    twice = probe(model, rows * 2, coin * 2)
    np.testing.assert_array_equal(once.accuracy, twice.accuracy)
    np.testing.assert_array_equal(once.control, twice.control)


def test_no_beginning_is_fitted_to_and_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(60)
    for row in rows[30:]:
        row[:5] = rows[0][:5]
    labels = [["even" if token % 2 else "odd" for token in row.tolist()] for row in rows]
    seen = list[tuple[set[bytes], set[bytes]]]()
    original = module._are_right

    def watched(vectors, truth, fitted_to, held_out):
        seen.append(tuple({vectors[i].tobytes() for i in some} for some in (fitted_to, held_out)))
        return original(vectors, truth, fitted_to, held_out)

    monkeypatch.setattr(module, "_are_right", watched)
    probe(scrambled(tiny()), rows, labels)
    # from the second layer on two vectors are equal where their beginnings are
    assert all(not fitted_to & held_out for fitted_to, held_out in seen[3:])


def test_the_control_task_has_one_random_label_for_each_kind_of_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = rows_of(60)
    labels = [["even" if token % 2 else "odd" for token in row.tolist()] for row in rows]
    asked = list[np.ndarray]()
    original = module._are_right

    def watched(vectors, truth, fitted_to, held_out):
        asked.append(truth)
        return original(vectors, truth, fitted_to, held_out)

    monkeypatch.setattr(module, "_are_right", watched)
    probe(scrambled(tiny()), rows, labels)
    truth, random = asked[:2]
    kinds = dict[int, set[int]]()
    flat = [token for row in rows for token in row.tolist()]
    # here every beginning but those of first tokens is new
    assert len(random) > 0.9 * len(flat) - 60
    assert not np.array_equal(truth, random)
    places = [
        row[place]
        for index, row in enumerate(rows)
        for place in range(8)
        if not any(torch.equal(row[: place + 1], other[: place + 1]) for other in rows[:index])
    ]
    for token, label in zip(places, random, strict=True):
        kinds.setdefault(int(token), set()).add(int(label))
    assert all(len(some) == 1 for some in kinds.values())
    assert len({label for some in kinds.values() for label in some}) == 2


def test_accuracies_by_place_make_up_the_accuracy_and_tokens_without_a_label_do_not_count() -> None:
    model = scrambled(tiny())
    rows = rows_of()
    labels: list[list[str | None]] = [
        [str(token) if place in (4, 7) else None for place, token in enumerate(row.tolist())]
        for row in rows
    ]
    found = probe(model, rows, labels)
    np.testing.assert_allclose(found.by_place[:, [4, 7]].mean(1), found.accuracy)
    assert np.isnan(np.delete(found.by_place, [4, 7], 1)).all()
    assert found.places().axes[0].labels == ("place 4", "place 7")
    assert found.labelled().values.shape == (3, 5)


def test_a_label_appears_where_it_is_first_read_nearly_as_well_as_anywhere() -> None:
    every = layers(tiny())
    values = np.array([0.5, 0.6, 0.98, 1.0, 0.8])
    found = probed(values, chosen_by=values - 0.5)
    assert found.appears == every[2]
    assert f"“Case” can be read after {every[2].title}: the probe is right at 98.0 %" in found.said


def test_the_layer_is_not_chosen_by_the_accuracy_that_is_shown() -> None:
    """The best of many layers on the tokens of the test would be the luckiest one."""
    every = layers(tiny())
    lucky = np.array([0.5, 0.5, 0.9, 0.7, 0.7])
    found = probed(lucky, chosen_by=np.array([0, 0, 0.01, 0.2, 0.19]))
    assert found.appears == every[3]
    assert probed(lucky, chosen_by=np.full(5, 0.04)).appears is None
    assert probed(lucky, chosen_by=np.array([0.2, 0, 0, 0, 0])).appears is None


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
