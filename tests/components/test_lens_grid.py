"""The grid of the logit lens: what travels to the browser, and which clicks and links count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gptviz.components.kit import unpack
from gptviz.components.kit.command import ViewCommand
from gptviz.components.lens_grid import LensCell, payload, read_address
from gptviz.interp.reading.lens import Lens, lens
from tests.tiny import VOCAB, scrambled, some_ids, tiny


def seen_of(following: int | None = None) -> Lens:
    return lens(scrambled(tiny()), some_ids(6, batch=1)[0].tolist(), following=following, last=4)


def label(token: int) -> str:
    return f"t{token}"


USUAL = {"of": "text", "model": "a model", "vocab_size": VOCAB, "code": "seen = …"}


def test_every_cell_travels_with_its_tokens_and_numbers() -> None:
    seen = seen_of()
    header, arrays = unpack(payload(seen, label, **USUAL))
    names = np.array(header["names"], dtype=object)[arrays["top"]]
    assert names.tolist() == [
        [[label(i) for i in cell] for cell in row] for row in seen.top.tolist()
    ]
    np.testing.assert_array_equal(arrays["probability"], seen.probability)
    np.testing.assert_array_equal(arrays["entropy"], seen.entropy)
    np.testing.assert_array_equal(arrays["rank"], seen.rank)
    np.testing.assert_array_equal(arrays["really"], seen.true_probability)
    np.testing.assert_array_equal(arrays["final"], seen.final_probability)
    assert header["first"] == 2
    assert header["tokens"] == [label(i) for i in seen.ids]
    assert header["true"] == [*(label(i) for i in seen.ids[1:]), None]
    assert (header["asked"], header["number"]) == (None, 0)
    assert unpack(payload(seen_of(3), label, **USUAL))[0]["true"][-1] == label(3)


def test_a_command_travels_with_the_text() -> None:
    header, _ = unpack(
        payload(seen_of(), label, command=ViewCommand({"colour": "rank"}, 9), **USUAL)
    )
    assert (header["asked"], header["number"]) == ({"colour": "rank"}, 9)


def test_numbers_that_are_none_are_refused() -> None:
    seen = seen_of()
    with pytest.raises(ValueError, match="logits are not numbers"):
        payload(replace(seen, probability=np.full_like(seen.probability, np.nan)), label, **USUAL)


def test_sixty_one_layers_of_256_tokens_are_a_small_message() -> None:
    seen = seen_of()
    large = {
        name: np.resize(getattr(seen, name), (61, 256, *getattr(seen, name).shape[2:]))
        for name in (
            "top",
            "probability",
            "entropy",
            "rank",
            "true_probability",
            "final_probability",
        )
    }
    assert len(payload(replace(seen, **large), label, **USUAL)) < 1_500_000


@pytest.mark.parametrize(
    ("layer", "position", "expected"),
    [
        ("embed", "2", LensCell(0, 0)),
        ("blocks.0.mlp", "5", LensCell(1, 3)),
        ("blocks.0.mlp", "1", None),
        ("blocks.0.mlp", "6", None),
        ("mlp", "2", None),
        (None, "2", None),
        ("embed", None, None),
    ],
)
def test_a_link_opens_a_cell_if_it_is_there(
    layer: str | None, position: str | None, expected: LensCell | None
) -> None:
    assert read_address(layer, position, ["embed", "blocks.0.mlp"], range(2, 6)) == expected
