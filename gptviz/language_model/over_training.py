"""Measures of a language model at every snapshot of its training."""

from __future__ import annotations

from gptviz.interp.changing.corrupting import likeliest_answers
from gptviz.interp.changing.edit import ZERO, Edit
from gptviz.interp.changing.edits import edit
from gptviz.interp.changing.patching import PromptPair
from gptviz.interp.explaining import context_use as use
from gptviz.interp.over_training.history import History
from gptviz.interp.over_training.measures import (
    Measure,
    MeasureInput,
    MeasureQuestion,
    measure_named,
)
from gptviz.interp.units.head_scores import scored_tokens
from gptviz.machine import progress
from gptviz.runs import checkpoints

from . import data, units
from .core import LoadedModel, find_tokens, token_of_vocabulary
from .opening import open_parts
from .reading import clock_of
from .settings import check_settings

MOST_ANSWERED = 10_000  # tokens of rows whose right answers are counted


@check_settings
def over_training(
    lm: LoadedModel,
    measure: str,
    prompt: str | None = None,
    token: str | int | None = None,
    against: str | int | None = None,
    unit: str = "",
) -> History:
    """A measure at every snapshot of this model, with its edits: see `gptviz.interp.over_training`.

    Args:
        measure: its name, such as "loss" or "heads.induction": see
            `gptviz.interp.over_training.measures.MEASURES`.
        prompt: what the model reads, for measures of what it makes of a text; heads read repeated
            random tokens without one. For an encoder–decoder its source: the decoder reads the
            answer of this model, the same at every snapshot.
        unit: the name of what is switched off, for the measure "loss.without": a head, an MLP, a
            neuron, a feature of a dictionary or another unit, as in an edit.
    """
    return History.from_values(
        *_follow_measure(lm, measure, MeasureQuestion(prompt or "", token, against, unit))
    )


def _follow_measure(
    lm: LoadedModel, name: str, question: MeasureQuestion
) -> tuple[Measure, dict[int, dict[str, float]]]:
    chosen = measure_named(name, lm.model.config.kind)
    steps = tuple(checkpoints.snapshots(checkpoints.find(lm.name)))
    if not steps:
        raise ValueError(
            f"{lm.name} has no snapshots of its training: train one that keeps some, with "
            "--snapshots"
        )
    reads = measure_input(lm, chosen, question)

    def values(step: int) -> tuple[int, dict[str, float]]:
        snapshot = type(lm)(*open_parts(lm.name, str(lm.device), step, lm.precision)).edited(
            *lm.edits, text=lm.edit_text
        )
        return step, chosen.compute(snapshot.model, reads)

    return chosen, dict(progress.report_each(map(values, steps), len(steps), "snapshot"))


def edit_of_unit(lm: LoadedModel, name: str) -> Edit:
    """The edit that switches off the unit of this name; a ValueError if the model has none, or
    cannot have that edit.
    """
    if not name:
        raise ValueError("name what is switched off, such as blocks.1.mlp")
    made = edit(name, lm.model.config)
    if made.to != ZERO:
        raise ValueError(f"{name}: the unit is switched off; give its name alone, without the =")
    made.require_fit(lm.model)
    return made


@check_settings
def measure_input(lm: LoadedModel, measure: Measure, question: MeasureQuestion) -> MeasureInput:
    """What a measure reads at every snapshot of this model."""
    needs = measure.needs
    config = lm.model.config
    measure_named(measure.name, config.kind)
    if (
        not config.n_layer
        and needs in ("texts for heads", "held-out data")
        and measure.name != "loss"
    ):
        raise ValueError(f"{lm.name} has no blocks: it has no heads and no MLPs to measure")
    if needs == "weights":
        return MeasureInput()
    if needs == "vowels":
        kinds = [lm.tokenizer.kind_of(token) for token in range(config.vocab_size)]
        tokens = {
            kind: [token for token, own in enumerate(kinds) if own == kind]
            for kind in ("vowel", "consonant")
        }
        if len(tokens["vowel"]) < 2 or not tokens["consonant"]:
            raise ValueError(f"the tokens of {lm.name} are no single letters: it has no vowels")
        return MeasureInput(kinds=tokens)
    if needs == "held-out data":
        return MeasureInput(rows=data.tested_rows(lm))
    if needs == "a unit":
        return MeasureInput(edit=edit_of_unit(lm, question.unit), rows=data.tested_rows(lm))
    if needs == "tasks":
        return MeasureInput(rows=data.tested_rows(lm, of="tasks"))
    if config.kind == "decoder" and needs in ("answers", "a clock") and lm.task is None:
        raise ValueError(f"{lm.name} has learned no task with known answers")
    if needs == "answers":
        return MeasureInput(rows=data.tested_rows(lm, MOST_ANSWERED, of="answers"))
    if needs == "a clock":
        return MeasureInput(clock=clock_of(lm))
    if needs == "held-out texts":
        return MeasureInput(
            held_out=[
                row.tolist() for row in data.rows(lm, most=use.most_data(lm.model)) if len(row) > 1
            ]
        )
    crosses = config.kind == "encoder-decoder"
    if needs == "texts for heads" and not question.prompt and not crosses:
        repeats = units.repeated_tokens(lm)
        return MeasureInput(
            texts=repeats, repeats=repeats, counted_from=units.second_half(lm, repeats)
        )
    if needs == "two tokens":
        if question.token is None or question.against is None:
            raise ValueError(
                f"the measure {measure.name} compares two tokens: name both, as token and as "
                "against"
            )
        return MeasureInput(
            token=token_of_vocabulary(lm, question.token),
            against=token_of_vocabulary(lm, question.against),
        )
    if not question.prompt:
        raise ValueError(f"the measure {measure.name} needs a prompt")
    ids, source = lm.inputs(question.prompt)
    read = None if source is None else tuple(source.tolist())
    if needs == "texts for heads":
        return MeasureInput(
            source=read,
            texts=scored_tokens(ids, config),
            repeats=None if crosses else units.repeats_of(lm),
        )
    if needs == "a token" and crosses:
        ids = ids[:1]  # the start token: what is guessed is the first token of the answer
    whole = tuple(ids.tolist())
    token, against = find_tokens(lm, question.token, question.against)
    if needs == "a token" and token is None:
        token = likeliest_answers(lm.model, PromptPair(whole, whole, 0, 0, read, read))[0]
    if token is not None and token == against:
        raise ValueError("token and against are the same: there is nothing to compare")
    return MeasureInput(whole, read, token or 0, against)
