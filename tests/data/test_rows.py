"""Rows of held-out data: each ends where its text ends."""

from __future__ import annotations

from dataclasses import replace

from gptviz.data.rows import held_out_rows
from gptviz.data.text import TaskSource
from gptviz.model import preset
from gptviz.text import task
from tests.tiny import scrambled


def test_a_row_of_a_task_whose_sequences_are_filled_up_stops_at_its_end() -> None:
    source = TaskSource(task("sentences"))
    config = replace(preset("sentences"), n_layer=0)
    rows = held_out_rows(source, scrambled(config), source.task.tokenizer, 2_000)
    texts = [source.task.tokenizer.decode(row) for row in rows]
    assert len(rows) > 50
    assert all(text.endswith(". ⟨end⟩") or "⟨end⟩" not in text for text in texts)
    assert max(map(len, rows)) > min(map(len, rows[:-1])) + 5, "no row is filled up"
