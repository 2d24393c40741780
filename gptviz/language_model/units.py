"""What single heads and neurons of a language model do."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from gptviz.interp.units.head_scores import repeated_tokens as draw_repeated_tokens
from gptviz.interp.units.head_scores import scored, scores_of_model, with_losses
from gptviz.interp.units.neurons import Activity, observe

from .core import LanguageModel, method


@method
def neurons(lm: LanguageModel, block: int, text: str | None = None, most: int = 16_384) -> Activity:
    """The activity of the neurons of a block's MLP over the rows of `text`, or of the data held out: see
    `gptviz.interp.units.neurons`.

    Raises:
        ValueError: as in `rows`; there are no neurons in this block; or the model is an encoder–decoder.
    """
    if lm.model.encoder is not None:
        raise ValueError(f"{lm.name} has two stacks: use gptviz.interp.units.neurons.observe on one of them")
    *_, seen = observe(lm.model, block, lm.rows(text, most))
    return seen.activity()


@method
def repeated_tokens(lm: LanguageModel) -> Tensor:
    """Random tokens of the vocabulary, each sequence of which is repeated once, as a text of this model: [sequences, tokens].

    Raises:
        ValueError: the context is too short, or the vocabulary too small.
    """
    tokenizer, special = lm.tokenizer, {lm.tokenizer.padding, lm.tokenizer.unknown_id, *lm.end_tokens}
    without = {token for token in special if token is not None}
    room = lm.model.config.context_length
    ids = draw_repeated_tokens(tokenizer.vocab_size, room, without=without, before=tokenizer.before, after=tokenizer.after)
    return ids.to(lm.device)


@method
def second_half(lm: LanguageModel, repeated: Tensor) -> int:
    """The position at which the second half of repeated tokens [sequences, tokens] begins."""
    before, after = len(lm.tokenizer.before), len(lm.tokenizer.after)
    return before + (repeated.shape[1] - before - after) // 2


@method
def heads(lm: LanguageModel, prompt: str | None = None, *, losses: bool = False) -> list[dict[str, Any]]:
    """The scores of every head, a row each: `gptviz.interp.units.head_scores.SCORES` defines them. None if one has no
    meaning.

    They are computed over the tokens of `prompt` that the model sees, at most 1,024 of them, or, without a prompt, over
    repeated random tokens. In a text in which no token comes back, the scores of repeats are over repeated random tokens.

    An encoder–decoder reads `prompt` as its source, and the decoder its own answer. With `losses`, there is also
    `delta_loss`: how much the loss rises without the head, which takes a pass for every head.

    Raises:
        ValueError: as in `trace`; an encoder–decoder was given no prompt; or `losses` of a classifier were asked for.
    """
    if prompt is None:
        if lm.model.encoder is not None:
            raise ValueError(f"{lm.name} reads a text and writes another: give a prompt for its heads to read")
        ids = repeated_tokens(lm)
        rows = scores_of_model(lm.model, ids)
        return with_losses(lm.model, rows, ids, counted_from=second_half(lm, ids)) if losses else rows
    ids, source = lm.inputs(prompt)
    read = scored(ids, lm.model.config)
    rows = scores_of_model(lm.model, read, source, lm.repeats)
    return with_losses(lm.model, rows, read, source) if losses else rows
