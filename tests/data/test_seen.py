"""Single rows of data and how often a run read them, against loops over all its batches."""

from __future__ import annotations

import pytest
import torch

from gptviz.data.batches import Generated, Windows
from gptviz.data.seen import data_rows, text_rows, times_read
from gptviz.data.trained_on import Trained
from gptviz.text import CharTokenizer, task

TEXT = (
    "A dog came. It saw\na cat! Then both ran away.\n\nWho was first? Nobody knows, and nobody "
    "asked them why.\n" * 3
)
TOKENIZER = CharTokenizer(TEXT)
IDS = torch.from_numpy(TOKENIZER.encode_ids(TEXT))
CONTEXT = 24


def test_the_rows_of_a_text_are_all_of_it_and_end_with_a_sentence_a_line_or_the_context() -> None:
    rows = text_rows(IDS, TOKENIZER, CONTEXT, 1_000)
    assert "".join(row.text for row, _ in rows) == TEXT[1:]
    assert all(
        row.text.rstrip()[-1] in ".!?" or row.text.endswith("\n") or len(row.text) == CONTEXT
        for row, _ in rows
    )
    assert " It saw\n" in [row.text for row, _ in rows]
    for row, span in rows:
        assert TOKENIZER.decode(row.ids).endswith(row.text)
        assert row.ids == tuple(IDS[max(0, span.stop - CONTEXT - 1) : span.stop].tolist())
        assert sum(row.counted) == len(row.text)
        assert len(row.counted) == len(row.ids) - 1 <= CONTEXT
        assert list(row.counted) == sorted(row.counted), "what is before the row does not count"


def test_few_rows_of_a_long_text_are_spread_over_it() -> None:
    spans = [span.start for _, span in text_rows(IDS, TOKENIZER, CONTEXT, 4)]
    assert len(spans) == 4
    assert spans[0] < len(IDS) / 4 < 3 * len(IDS) / 4 < spans[-1]


def test_tokens_were_read_as_often_as_a_loop_over_all_batches_says() -> None:
    data = Windows(IDS[:200], IDS[200:], CONTEXT)
    trained = Trained(data, 3, 7, 11)
    unique = torch.arange(200)  # the same places, with tokens that can be told apart
    wanted = [0] * 200
    for batch in Trained(Windows(unique, unique, CONTEXT), 3, 7, 11).batches():
        for place in batch.targets.flatten().tolist():
            wanted[place] += 1
    assert times_read(trained).tolist() == wanted
    rows = data_rows(trained, TOKENIZER, CONTEXT, 1_000)
    for row, (_, span) in zip(rows, text_rows(data.ids, TOKENIZER, CONTEXT, 1_000), strict=False):
        assert row.times == min(wanted[span])
        assert row.held_out is False
    assert {(row.held_out, row.times) for row in rows[-5:]} == {(True, 0)}
    assert {0} < {row.times for row in rows if not row.held_out}, (
        "few steps: some rows were read, others were not"
    )


@pytest.mark.parametrize("name", ["jobs", "modular", "sentences", "addition"])
def test_rows_of_a_task_were_read_as_often_as_they_came(name: str) -> None:
    some = task(name)
    trained = Trained(Generated(some), 16, 3, 25)
    rows = data_rows(trained, some.tokenizer, some.length - 1, 20)
    assert len({row.ids for row in rows}) == len(rows)
    drawn = [
        ids for seed in trained.seeds() for ids in Generated(some).examples(16, seed).ids.tolist()
    ]
    for row in rows:
        padded = [*row.ids, *[some.end] * (some.length - len(row.ids))]
        assert row.times == sum(ids == padded for ids in drawn)
        assert row.text == some.tokenizer.decode(row.ids)
    if name in ("modular", "addition"):
        assert all((row.times == 0) == row.held_out for row in rows)
        assert {sum(row.counted) for row in rows} == {1 if name == "modular" else 4}
    assert not [
        row
        for row in data_rows(
            Trained(Generated(some), 16, 3, 0), some.tokenizer, some.length - 1, 20
        )
        if row.times
    ]
