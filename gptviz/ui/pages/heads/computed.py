"""What the Heads page computes, once for all sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import streamlit as st
import torch

from gptviz.interp import attention as patterns
from gptviz.interp.ablation import loss, loss_with_each
from gptviz.interp.cross_attention import SOURCE, WRITES
from gptviz.interp.edits import UnitEdit
from gptviz.interp.head_scores import (
    LOSS_TOKENS,
    SCORES,
    HeadScores,
    Numbers,
    head_scores,
    losses_without,
    scored,
    scores_over_texts,
)
from gptviz.interp.head_weights import Reads, by_chance, composition, copying
from gptviz.interp.units import Unit
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import Transformer
from gptviz.ui.shell.models import ModelKey, language_model
from gptviz.ui.views import attention, encoder_decoder, held_out
from gptviz.ui.widgets import stoppable, work

from .choices import Setting

# So many tokens of a long text are on the picture of a head's pattern.
MOST_SHOWN = 128
# Kinds of heads; a head is said to be of a kind from this share on.
KINDS = ("induction", "previous_token", "first_token", "duplicate_token")
CLEARLY = 0.3
# Up to so many multiplications, about a second, the loss without each head is computed without being asked for.
AT_ONCE = 1e10


def stack_of(key: ModelKey, stack: str) -> Transformer:
    """The transformer whose blocks the heads of the `stack` are in."""
    return encoder_decoder.stack_of(language_model(key).model, stack)


class Text(NamedTuple):
    """The tokens that heads read.

    Attributes:
        rows: the texts, each [T].
        source: what an encoder reads beside them, [1, S]; None where there is none.
    """

    rows: tuple[torch.Tensor, ...]
    source: torch.Tensor | None = None

    @property
    def ids(self) -> torch.Tensor:
        """All texts as one tensor [texts, T], where they are equally long."""
        return torch.stack(self.rows)


def text(setting: Setting) -> Text:
    """What the heads read."""
    lm = language_model(setting.key)
    if setting.held_out:
        return Text(held_out.texts(setting.key))
    if setting.read is None:
        return Text(tuple(lm.repeated_tokens()))
    ids = scored(torch.tensor(setting.read.ids, device=lm.device), lm.model.config)
    source = setting.read.source
    return Text((ids,), None if source is None else torch.tensor([source], device=lm.device))


@stoppable.data("Scoring the heads", max_entries=32)
def scores(setting: Setting) -> HeadScores:
    """The scores of all heads of the stack."""
    lm, read = language_model(setting.key), text(setting)
    repeats = None
    if (setting.held_out or setting.read is not None) and lm.model.encoder is None:
        try:
            repeats = lm.repeated_tokens()
        except ValueError:  # without room for repeats, those scores have no meaning
            repeats = None
    stack = stack_of(setting.key, setting.stack)
    if setting.held_out:
        found = scores_over_texts(stack, read.rows, repeats)
    else:
        found = head_scores(stack, read.ids, read.source, crosses=setting.stack == attention.CROSS, repeats=repeats)
    copies = setting.stack == encoder_decoder.DECODER and lm.model.config.kind != "classifier"
    return found.including(copying=_copying(setting.key)) if copies else found


@st.cache_data(max_entries=32, show_spinner=False)
def _copying(key: ModelKey) -> Numbers:
    return copying(language_model(key).model)


def losses(setting: Setting) -> Callable[[], None] | None:
    """Begins, or finds, the computation of the loss without each head. Where it takes a moment it is done at once; else somebody
    has to ask for it. Gives what shows how far it is; None where there is no such loss.
    """
    lm = language_model(setting.key)
    read = text(setting)
    if lm.model.config.kind == "classifier" or max(map(len, read.rows)) < 2:
        return None
    heads = [setting.unit(block, head) for block, head in np.ndindex(setting.shape)]

    def compute(job: work.Work) -> None:
        found: dict[Unit, float] = {}
        for done, (one, change) in enumerate(_rises(setting, heads), 1):
            found[one] = change
            job.report(done, len(heads), one.title)
        job.results["all"] = found

    def begin() -> None:
        work.begin(key, title, compute)

    key, title = ("head losses", setting), f"The loss without each of {len(heads):,} heads"
    found = work.found(key)
    size = sum(parameter.numel() for parameter in lm.model.parameters())
    tokens = sum(map(len, read.rows))
    if found is None and size * (tokens if setting.held_out else min(tokens, LOSS_TOKENS)) * len(heads) <= AT_ONCE:
        found = work.begin(key, title, compute)
        found.join()
    stage = None if found is None else found.stage

    def show() -> None:
        if found is None or found.state in ("stopped", "failed"):
            st.button(
                "Compute the loss without each head",
                icon=":material/calculate:",
                key="compute head losses",
                on_click=begin,
                help=f"{len(heads):,} forward passes; they go on while you look at other pages.",
            )
        if found is not None:
            work.follow(found, "head losses", stage)

    return show


def _rises(setting: Setting, heads: Sequence[Unit]) -> Iterator[tuple[Unit, float]]:
    """For each head how much the loss rises without it; over data held out, the loss of what counts there."""
    lm = language_model(setting.key)
    if setting.held_out:
        rows = held_out.tested(setting.key)
        usual = loss(lm.model, rows)
        yield from (
            (one.unit, value - usual) for one, value in loss_with_each(lm.model, rows, [UnitEdit(head) for head in heads])
        )
        return
    read = text(setting)
    ids, source = read.ids, read.source
    decoded = ids
    if lm.model.encoder is not None and setting.stack == encoder_decoder.ENCODER:
        decoded, source = torch.tensor([encoder_decoder.decoder_ids(setting.key, tuple(ids[0].tolist()))]), ids
    first = lm.second_half(ids) if setting.read is None else 1
    yield from losses_without(lm.model, decoded, heads, source, counted_from=first)


def with_losses(setting: Setting, found: HeadScores) -> HeadScores:
    """The scores with the loss without each head, where that is known."""
    ready = work.found(("head losses", setting))
    if ready is None or "all" not in ready.results:
        return found
    changes = [ready.results["all"][setting.unit(block, head)] for block, head in np.ndindex(setting.shape)]
    return found.including(delta_loss=np.array(changes).reshape(setting.shape))


def known(found: HeadScores) -> tuple[str, ...]:
    """The scores that some head has."""
    return tuple(name for name in SCORES if not np.isnan(found.values[name]).all())


def first_score(setting: Setting, found: HeadScores) -> str:
    """The score that the page opens on: over data held out the loss without a head, where that is known; else induction, where
    there is a head of that kind, or the kind that some head is most of.
    """
    if setting.held_out and "delta_loss" in known(found):
        return "delta_loss"
    shares = {name: float(np.nanmax(found.values[name])) for name in KINDS if name in known(found)}
    if shares.get("induction", 0.0) >= CLEARLY or not shares:
        return next(name for name in ("induction", *known(found)) if name in known(found))
    return max(shares, key=shares.__getitem__)


def ranked(found: HeadScores, name: str) -> list[tuple[int, int]]:
    """Block and head of all heads, the highest score first; those without one last."""
    values = np.nan_to_num(found.values[name], nan=-np.inf)
    order = np.argsort(-values, axis=None, kind="stable")
    return [(int(block), int(head)) for block, head in zip(*np.unravel_index(order, values.shape), strict=True)]


@st.cache_data(max_entries=32, show_spinner=False)
def pattern(setting: Setting, block: int, head: int) -> LabelledArray:
    """The pattern of one head over the first text that it reads, or over the last tokens of that."""
    lm, read = language_model(setting.key), text(setting)
    ids, source = read.rows[0].tolist(), None if read.source is None else read.source[0].tolist()
    part: patterns.Part = "cross_attention" if setting.stack == attention.CROSS else "attention"
    values = patterns.pattern(stack_of(setting.key, setting.stack), ids, block, head, source, part)
    label, written = lm.tokenizer.label, setting.read.written if setting.read is not None else ()
    queries = [label(i) for i in written or ids][-MOST_SHOWN:]
    keys = [label(i) for i in (source if part == "cross_attention" else ids) or ()][-MOST_SHOWN:]
    names = (WRITES, SOURCE) if part == "cross_attention" else (patterns.QUERY, patterns.KEY)
    axes = Axis(names[0], tuple(queries)), Axis(names[1], tuple(keys))
    return LabelledArray(values[-MOST_SHOWN:, -MOST_SHOWN:], axes, patterns.UNIT)


@st.cache_data(max_entries=16, show_spinner="Multiplying the weights of the heads")
def composed(key: ModelKey, stack: str, reads: Reads) -> LabelledArray:
    """See `gptviz.interp.head_weights.composition`."""
    return composition(stack_of(key, stack), reads)


def chance(key: ModelKey, stack: str) -> float:
    """What a composition is by chance."""
    return by_chance(stack_of(key, stack))
