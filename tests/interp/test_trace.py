"""A trace holds what the pass computed, and an edit that hits nothing is an error."""

from __future__ import annotations

import pytest
import torch

from gptviz.interp.trace import run
from gptviz.model import Record
from tests.tiny import scrambled, some_ids, tiny


def test_a_trace_is_what_the_pass_computed() -> None:
    model = scrambled(tiny())
    record = Record()
    logits = model(some_ids(), tap=record)
    trace = run(model, some_ids())
    assert list(trace) == list(record.values)
    assert len(trace) == len(record.values)
    assert all(torch.equal(trace[name], value) for name, value in record.values.items())
    assert torch.equal(trace["logits"], logits)
    assert torch.equal(trace.ids, some_ids())


def test_only_what_is_asked_for_is_kept() -> None:
    assert list(run(scrambled(tiny()), some_ids(), ["blocks.1.*.out"])) == [
        "blocks.1.attention.out",
        "blocks.1.mlp.out",
    ]
    assert list(run(scrambled(tiny()), some_ids(), "logits", logits_at=slice(-1, None))) == [
        "logits"
    ]


def test_a_trace_says_what_it_holds() -> None:
    model = scrambled(tiny(n_encoder_layer=1))
    ids = some_ids(5)
    trace = run(model, ids, source=ids)
    shape = f"[2, 5, {model.config.vocab_size}]"
    first = next(iter(trace))
    assert (
        repr(trace)
        == f"<Trace of ids [2, 5], source [2, 5]: {len(trace)} tensors: {first} [2, 5, 12], "
        f"logits {shape}>"
    )
    assert repr(run(scrambled(tiny()), ids, "nothing")) == "<Trace of ids [2, 5]: 0 tensors>"


def test_what_was_not_recorded_is_named_with_what_was() -> None:
    trace = run(scrambled(tiny()), some_ids(), ["embed", "logits"])
    assert "blocks.9.mlp.out" not in trace
    with pytest.raises(
        KeyError, match="nothing was recorded as 'blocks.9.mlp.out'; there are embed, logits"
    ):
        trace["blocks.9.mlp.out"]


def test_an_edit_changes_what_comes_after_it_and_nothing_before() -> None:
    model = scrambled(tiny())
    plain = run(model, some_ids())
    edited = run(
        model,
        some_ids(),
        edits={"blocks.0.mlp.out": torch.zeros_like, "blocks.1.mlp.out": torch.zeros_like},
    )
    assert torch.equal(edited["blocks.0.resid_mid"], plain["blocks.0.resid_mid"])
    assert torch.equal(edited["blocks.0.resid_post"], plain["blocks.0.resid_mid"])
    assert torch.equal(edited["blocks.1.resid_post"], edited["blocks.1.resid_mid"])
    assert not torch.isclose(edited["logits"], plain["logits"]).all()
