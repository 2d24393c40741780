"""The data of a language model: what it was trained on, what was held out, and what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from gptviz.data.batches import Batch, Generated
from gptviz.data.registry import source_from
from gptviz.data.rows import LONGEST_ROW, bound_rows, first_batches, held_out_rows, rows_of_text
from gptviz.data.seen import MOST_ROWS, Row, text_rows
from gptviz.data.seen import data_rows as rows_of_data
from gptviz.data.trained_on import Share, Trained, count_followers
from gptviz.generate.rows import write_rows
from gptviz.interp.changing.ablation import NOT_COUNTED, Rows
from gptviz.interp.changing.before_after import guess
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.reading.next_token import probability_of
from gptviz.interp.reading.row_losses import row_losses
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import Transformer
from gptviz.model.costs.effort import effort
from gptviz.settings.kinds import Count
from gptviz.text import CharTokenizer

from .core import LoadedModel, end_tokens, read_prompt, require
from .settings import check_settings

MOST_DRAWN = 10**8  # rows that a run was trained on are drawn again, if there are no more
# So many tokens a model writes itself where something is fitted to it, and nobody knows what it
# learned from.
WRITTEN_TOKENS = 8_192
_WRITTEN: WeakKeyDictionary[Transformer, list[Tensor]] = WeakKeyDictionary()


@check_settings
def rows(lm: LoadedModel, text: str | None = None, most: Count = 16_384) -> list[Tensor]:
    """Rows of token ids to read, of at most `most` tokens together: of `text`, or of the data that
    was held out of training.
    """
    if text is not None:
        return rows_of_text(text, lm.tokenizer, lm.model.config, most)
    if lm.card.source is None:
        raise ValueError(f"the card of {lm.name} does not say what it learned from: give a text")
    source = source_from(dict(lm.card.source))
    return held_out_rows(source, lm.model, lm.tokenizer, most, lm.labels)


def rows_to_fit(lm: LoadedModel, text: str | None, most: int) -> list[Tensor]:
    """The `rows` that something is fitted to, and tested on. Where no text is given, and the card
    does not say what the model learned from, it writes them itself.
    """
    if _reads_own(lm, text):
        return rows_written(lm, most)
    return rows(lm, text, most)


def _reads_own(lm: LoadedModel, text: str | None) -> bool:
    """Whether the rows that something is fitted to are those that the model writes itself."""
    return text is None and lm.card.source is None and lm.model.config.kind == "decoder"


def effort_of_rows(lm: LoadedModel, text: str | None, most: int) -> int:
    """About how many multiplications it takes to read the `rows_to_fit`, and before that to write
    them where that has to be done.
    """
    if _reads_own(lm, text):
        most = min(most, WRITTEN_TOKENS)
    # a token is at least one character
    read = effort(lm.model, most if text is None else min(most, len(text)))
    if _reads_own(lm, text) and lm.original.model not in _WRITTEN:
        return read + effort(lm.model, WRITTEN_TOKENS)
    return read


def rows_written(lm: LoadedModel, most: int) -> list[Tensor]:
    """Rows that a decoder without edits wrote itself, always the same, of at most `most` tokens
    together. Each begins with a token that begins or ends texts; without one, with any token.
    """
    lm = lm.original
    if lm.model not in _WRITTEN:
        length = min(lm.model.config.context_length, LONGEST_ROW)
        count = max(2, WRITTEN_TOKENS // length)
        # what the rows begin with
        never = set(lm.tokenizer.unused_ids)
        known = [token for token in range(lm.tokenizer.vocab_size) if token not in never]
        first = [*lm.tokenizer.before, *sorted(end_tokens(lm))][:1] or known
        draw = torch.Generator().manual_seed(0)
        starts = torch.tensor(first)[torch.randint(len(first), (count,), generator=draw)]
        written = write_rows(lm.model, starts, length, never=tuple(never))
        _WRITTEN[lm.model] = list(written.cpu())
    return bound_rows(_WRITTEN[lm.model], most)


@check_settings
def tested_rows(
    lm: LoadedModel, most: Count = 2_048, *, of: Literal["data", "tasks", "answers"] = "data"
) -> dict[str, list[Rows]]:
    """The first rows that were held out of training, about `most` tokens of them, with the tokens
    whose prediction counts in the loss: of a task only its answers. As "loss"; or by the "tasks"
    that the model's task mixes; or as "held out" beside "learned", the rows that it was trained on,
    if they are so few that they come again and again.
    """
    data = source_from(dict(lm.card.source or {})).data(lm.tokenizer, lm.model.config)
    if of == "data":
        parts: Mapping[str, Iterable[Batch]] = {"loss": data.validation()}
    elif of == "answers":
        parts = {"held out": data.validation(), "learned": data.trained_on()}
    else:
        if isinstance(data, Generated):
            parts = data.validation_by_part()
        else:
            parts = {}
    if not parts:
        raise ValueError(f"{lm.name} was not trained on a mixture of tasks")
    first = {
        name: [batch.to(lm.device) for batch in first_batches(each, most)]
        for name, each in parts.items()
    }
    return {
        name: [Rows(Inputs(*some.inputs), some.targets) for some in each]
        for name, each in first.items()
        if each
    }


@check_settings
def counted_rows(lm: LoadedModel, prompt: str | None = None, most: Count = 2_048) -> list[Rows]:
    """What a loss is over: `prompt`, with what the model has to predict in it, or the
    `tested_rows`.

    A classifier has to predict the label that it gives the prompt itself, an encoder–decoder its
    own answer: the loss then says how much of its own opinion is left. An edited model is asked for
    what it would say without its edits.
    """
    if prompt is None:
        return tested_rows(lm, most)["loss"]
    ids, source, following = read_prompt(lm.original, prompt)
    read = Inputs(ids[None], None if source is None else source[None])
    if lm.model.config.kind == "classifier":
        label = int(guess(lm.original.model, read).argmax())
        return [Rows(read, torch.tensor([label], device=lm.device))]
    targets = read.ids.roll(-1, dims=1)
    targets[:, -1] = NOT_COUNTED if following is None else following
    return [Rows(read, targets)]


@check_settings
def answers(lm: LoadedModel, sentences: Sequence[str], words: Sequence[str]) -> LabelledArray:
    """How likely each of `words` is to come next after each of the `sentences`, [sentence, word]. A
    word may have several tokens: then its probability is that of all of them. A ValueError if the
    vocabulary lacks a word or a part of a sentence, or reads them as other tokens when they stand
    together.
    """
    values = [
        [probability_of(lm.model, prompt, word) for word in some]
        for prompt, some in _asked_words(lm, sentences, words)
    ]
    return LabelledArray(
        np.array(values),
        (Axis("sentence", tuple(sentences)), Axis("word", tuple(words))),
        "probability",
    )


@check_settings
def shares_in_data(
    lm: LoadedModel, sentences: Sequence[str], words: Sequence[str]
) -> list[list[Share]]:
    """How often each of `words` came after each of the `sentences` in the data that this model was
    trained on: [sentence][word]. The rows of a task are drawn again as the run drew them, up to
    this step; a text is read as a whole.
    """
    asked = [
        (torch.tensor(prompt), list(map(torch.tensor, some)))
        for prompt, some in _asked_words(lm, sentences, words)
    ]
    return count_followers(
        trained_on(lm), [prompt for prompt, _ in asked], [some for _, some in asked]
    )


@check_settings
def data_rows(lm: LoadedModel, text: str | None = None, most: Count = MOST_ROWS) -> list[Row]:
    """Single rows, a sentence or a line each: of `text`, or of the data that this model was trained
    on and of those held out, at most `most` of each, with how often it had read each up to this
    step.
    """
    context = lm.model.config.context_length
    if text is None:
        return rows_of_data(trained_on(lm), lm.tokenizer, context, most)
    ids = lm.encode(text).cpu()
    if len(ids) < 2:
        raise ValueError("the text has one token: a loss needs at least 2")
    return [row for row, _ in text_rows(ids, lm.tokenizer, context, most)]


@check_settings
def losses_of_rows(lm: LoadedModel, rows: Sequence[Row]) -> LabelledArray:
    """The loss of each row [row] of `data_rows`, in nats per token; a ValueError if there is none,
    or one does not fit.
    """
    config = lm.model.config
    require(lm, "decoder", "only decoders read rows")
    if not rows:
        raise ValueError("there is no row to read")
    if (
        max(max(row.ids) for row in rows) >= config.vocab_size
        or max(len(row.ids) for row in rows) > config.context_length + 1
    ):
        raise ValueError(
            f"the rows are made of other tokens than those of {lm.name}, or are longer than its "
            "context"
        )
    losses = row_losses(lm.model, [(row.ids, row.counted) for row in rows])
    return LabelledArray(
        losses, (Axis("row", tuple(row.text for row in rows)),), "loss, nats per token"
    )


@check_settings
def trained_on(lm: LoadedModel) -> Trained:
    """What a decoder was trained on, up to its step: all its batches can be drawn again, if its
    card says from what and how.
    """
    require(lm, "decoder", "only the rows of decoders are drawn again")
    recipe = lm.card.recipe or {}
    steps = lm.card.steps if lm.step is None else lm.step
    size = recipe.get("batch_size")
    seed = recipe.get("seed")
    if (
        lm.card.source is None
        or steps is None
        or not isinstance(size, int)
        or not isinstance(seed, int)
        or size < 1
    ):
        raise ValueError(f"the card of {lm.name} does not say what it was trained on, and how")
    if size * max(steps, 1) > MOST_DRAWN:
        raise ValueError(
            f"{lm.name} was trained on {size * steps:,} rows: at most {MOST_DRAWN:,} are drawn "
            "again"
        )
    return Trained(
        source_from(dict(lm.card.source)).data(lm.tokenizer, lm.model.config), size, seed, steps
    )


def _asked_words(
    lm: LoadedModel, sentences: Sequence[str], words: Sequence[str]
) -> list[tuple[list[int], list[list[int]]]]:
    """The tokens of each sentence, as far as the model sees them, and those of each word after
    it.
    """
    if not sentences or not words:
        raise ValueError("give at least one sentence to complete, and one word to complete it with")
    require(lm, "decoder", "only decoders complete sentences")
    asked = []
    for sentence in sentences:
        prompt = list(lm.tokenizer.encode(sentence).ids)
        after = [_tokens_after(lm, sentence, prompt, word) for word in words]
        room = lm.model.config.context_length - max(map(len, after)) + 1
        asked.append((prompt[-max(room, 1) :], after))
    return asked


def _tokens_after(lm: LoadedModel, sentence: str, prompt: list[int], word: str) -> list[int]:
    """The tokens of a word after a sentence, whose own tokens are `prompt`."""
    is_joined = (
        lm.tokenizer.kind == CharTokenizer.kind or sentence[-1:].isspace() or not word[:1].isalnum()
    )
    read = lm.tokenizer.encode(f"{sentence}{'' if is_joined else ' '}{word}")
    if read.unknown:
        raise ValueError(
            f"{lm.name} cannot answer {sentence!r:.80} with {word!r:.40}: {read.unknown_sentence()}"
        )
    if (
        not prompt
        or not word.strip()
        or read.ids[: len(prompt)] != prompt
        or len(read.ids) == len(prompt)
    ):
        raise ValueError(
            f"{lm.name} reads {sentence!r:.80} with {word!r:.40} as other tokens than each by "
            "itself: end the sentence "
            "before a whole word"
        )
    return list(read.ids[len(prompt) :])
