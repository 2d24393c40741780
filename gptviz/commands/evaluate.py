"""The command `evaluate`: a loss on held-out data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from .common import UsageError, text_of, warn_of_unknown
from .dictionaries import quality_shown
from .options import File, Name, command
from .printing import CommandOutput

if TYPE_CHECKING:
    from gptviz.data.source import Source
    from gptviz.interp.changing.edit import Edit
    from gptviz.language_model import LanguageModel
    from gptviz.model import Transformer

# The most tokens, of the data that a model is evaluated on, that a mean is taken over.
MOST_REFERENCE = 8_192


@command(110)
def evaluate(
    lm: LanguageModel,
    corpus: File | None = None,
    split: Literal["validation", "all"] = "validation",
    without: Sequence[Name] = (),
    replace_by: Literal["zero", "mean"] = "zero",
    dictionary: Name | None = None,
) -> CommandOutput:
    """The loss of a model on held-out data.

    Args:
        corpus: a text file, or a corpus by name; for a classifier texts with labels, for an
            encoder–decoder pairs, as in train; default: what it was trained on.
        split: the held-out part of the data, or all of it.
        without: a piece of the model to switch off, such as blocks.1.attention.head.3,
            blocks.1.attention, blocks.1.mlp, blocks.1.mlp.neuron.17, embed or positions; may be
            given several times. Or another edit of it, such as blocks.1.attention.head.3=uniform,
            or of a LoRA adapter adapter=0.5.
        replace_by: what takes the place of what was switched off: zero, or its mean over the first
            8,192 tokens of what the model is evaluated on.
        dictionary: a dictionary of the model, by its name: the loss with what its features give
            back in the place of the stream, over the first 16,384 tokens held out, or over the last
            fifth of the corpus.
    """
    from gptviz.data.registry import source_from, source_of_path
    from gptviz.interp.changing.edits import edits
    from gptviz.train.evaluation import evaluate as result_of

    if dictionary is not None:
        return quality_shown(lm.dictionary_quality(dictionary, text_of(corpus)))

    # the data: those that are given, else the model's own
    own = lm.card.source
    everything = split == "all"
    if corpus is not None:  # split as the model's own data
        fraction = own.get("fraction") if own else None
        source = source_of_path(
            corpus, lm.model.config.kind, fraction if isinstance(fraction, float) else 0.9
        )
    elif own is not None:
        source = source_from(dict(own))
    else:
        raise UsageError(
            f"the card of {lm.name} does not say what it learned from: give a text with --corpus "
            "FILE"
        )

    # the model with its edits, and its loss
    try:
        made = edits(
            (text if "=" in text else f"{text}={replace_by}" for text in without),
            lm.model.config,
        )
        model = _edit_model(lm, made, source, everything=everything)
        data = source.evaluation(model, lm.tokenizer, everything=everything, labels=lm.labels)
    except ValueError as error:
        raise UsageError(f"{lm.name}: {error}") from None
    warn_of_unknown(lm.tokenizer.encode(data.sample))
    result = result_of(model, data.batches)
    if not result.loss < 700 and made:
        raise UsageError(
            f"{lm.name} has a loss of {result.loss:.4g} nats with these edits, which make its "
            "numbers overflow: choose smaller ones"
        )
    if not result.loss < 700:
        raise UsageError(
            f"{lm.name} has a loss of {result.loss:.4g} nats: these are not the weights of a "
            "trained model"
        )

    # as JSON, and in words
    perplexity = math.exp(result.loss)
    per_token = source.unit == "token"
    content: dict[str, Any] = {
        "loss": result.loss,
        "accuracy": result.accuracy,
        f"{source.unit}s": result.tokens,
    }
    content |= {share.name: share.value for share in data.shares}
    content |= {
        name: {share.name: share.value for share in group} for name, group in data.groups.items()
    }
    content |= {"perplexity": perplexity} if per_token else {}
    content |= {} if source.floor is None else {"floor": source.floor}
    content |= {"edits": [edit.text for edit in made]} if made else {}
    if source.floor is None:
        floor = ""
    else:
        floor = f" (no model gets below {source.floor:.4f})"
    said = f"loss {result.loss:.4f} nats per {source.unit}{floor}" + (
        f", perplexity {perplexity:.3f}" if per_token else ""
    )
    return CommandOutput(
        content,
        [
            *(f"{edit.title}." for edit in made),
            f"{said}, accuracy {result.accuracy:.2%}, over {result.tokens:,} {source.unit}s",
            *(
                f"{share.words} {share.value:.2%}"
                for share in (*data.shares, *chain.from_iterable(data.groups.values()))
            ),
        ],
    )


def _edit_model(
    lm: LanguageModel, edits: tuple[Edit, ...], source: Source, *, everything: bool
) -> Transformer:
    """The model with the edits. Means and patterns of another text are over the beginning of what
    it is evaluated on.
    """
    from gptviz.data.rows import first_batches
    from gptviz.interp.changing.edit import Inputs
    from gptviz.interp.changing.edits import edit_model

    reading = []
    if any(edit.needs_text for edit in edits):
        batches = source.evaluation(
            lm.model, lm.tokenizer, everything=everything, labels=lm.labels
        ).batches
        reading = [
            Inputs(*batch.to(lm.device).inputs) for batch in first_batches(batches, MOST_REFERENCE)
        ]
    return edit_model(lm.model, edits, reading)
