"""Rows of tokens to read with a model: those of a text, or of the data that was held out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from gptviz.machine.lines import lines_of
from gptviz.model import Config, Transformer
from gptviz.text import Tokenizer

from .batches import Batch
from .source import Source

LONGEST_ROW = 256  # tokens, however long the context is


def first_batches(batches: Iterable[Batch], most: int) -> Iterator[Batch]:
    """The first rows of the `batches`, about `most` tokens together, and one row at least."""
    for batch in batches:
        some = batch.rows(slice(0, max(most // batch.inputs[0].shape[1], 1)))
        yield some
        most -= some.inputs[0].numel()
        if most <= 0:
            return


def rows_of_text(text: str, tokenizer: Tokenizer, config: Config, most: int) -> list[Tensor]:
    """The rows [T] of a text, at most `most` tokens together: for a decoder consecutive pieces of
    the text; for a classifier, whose texts are short, the beginning of each line. A ValueError if
    the text has no token that the model reads.
    """
    longest = min(config.context_length, LONGEST_ROW)
    if config.kind == "classifier":
        around = len(tokenizer.before) + len(tokenizer.after)
        lines = (tokenizer.encode(line).ids for line in lines_of(text))
        rows = [tokenizer.beginning(ids, longest) for ids in lines if len(ids) > around]
    else:
        ids = tokenizer.encode(text).ids[:most]
        rows = [ids[start : start + longest] for start in range(0, len(ids), longest)]
    if not rows:
        raise ValueError(f"the text has {tokenizer.without}")
    return bound_rows((torch.tensor(row) for row in rows), most)


def held_out_rows(
    source: Source, model: Transformer, tokenizer: Tokenizer, most: int, labels: Sequence[str] = ()
) -> list[Tensor]:
    """The rows [T] that are held out, at most `most` tokens together, without padding and up to
    their end.
    """
    longest = min(model.config.context_length, LONGEST_ROW)
    padding = model.config.padding

    def every_row() -> Iterable[Tensor]:
        for batch in source.evaluation(model, tokenizer, labels=labels).batches:
            for row in batch.inputs[0]:
                full = row if padding is None else row[row != padding]
                if source.end is not None:
                    full = full[(full == source.end).cumsum(0) - (full == source.end).int() == 0]
                yield from (
                    full.split(longest) if model.config.kind == "decoder" else (full[:longest],)
                )

    return bound_rows(every_row(), most)


def bound_rows(rows: Iterable[Tensor], most: int) -> list[Tensor]:
    """The first of the `rows`, at most `most` tokens together; the last of them is cut if it is too
    long.
    """
    first: list[Tensor] = []
    left = most
    for row in rows:
        if left <= 0:
            break
        if len(row):
            first.append(row[:left])
        left -= len(row)
    return first
