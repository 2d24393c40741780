"""The command `evaluate`: a loss on held-out data."""

from __future__ import annotations

import argparse
import math
from itertools import chain
from typing import TYPE_CHECKING

from .common import Command, Parser, UsageError, add_model, opened, print_json, warn_of_unknown

if TYPE_CHECKING:
    from gptviz.data.source import Source
    from gptviz.interp.changing.edits import UnitEdit
    from gptviz.language_model import LanguageModel
    from gptviz.model import Transformer

# The most tokens, of the data that a model is evaluated on, that a mean is taken over.
MOST_REFERENCE = 8_192


def _options(this: Parser) -> None:
    add_model(this)
    this.add_argument(
        "--corpus",
        metavar="PATH",
        help="a text file, or a corpus by name; for a classifier texts with labels, for an encoder–decoder pairs, as in train; "
        "default: what it was trained on",
    )
    this.add_argument(
        "--split", choices=["validation", "all"], default="validation", help="the held-out part of the data, or all of it"
    )
    this.add_argument(
        "--without",
        metavar="UNIT",
        action="append",
        default=[],
        help="a piece of the model to switch off, such as blocks.1.attention.head.3, blocks.1.attention, blocks.1.mlp, "
        "blocks.1.mlp.neuron.17, embed or positions; may be given several times. Or another edit of it, such as "
        "blocks.1.attention.head.3=uniform, or of a LoRA adapter adapter=0.5",
    )
    this.add_argument(
        "--replace-by",
        choices=["zero", "mean"],
        default="zero",
        help="what takes the place of what was switched off: zero, or its mean over the first 8,192 tokens of what the model is "
        "evaluated on",
    )


def run(options: argparse.Namespace) -> None:
    """The command `evaluate NAME [--corpus PATH] …`."""
    from gptviz.train.evaluation import evaluate

    lm = opened(options)
    source = _evaluated_source(options, lm)
    everything = options.split == "all"
    try:
        edits = _edits(options, lm)
        model = _edited(lm, edits, source, everything=everything)
        data = source.evaluation(model, lm.tokenizer, everything=everything, labels=lm.labels)
    except ValueError as error:
        raise UsageError(f"{options.name}: {error}") from None
    warn_of_unknown(lm.tokenizer.encode(data.characters))
    result = evaluate(model, data.batches)
    _check_trained(options.name, result.loss)
    perplexity = math.exp(result.loss)
    if options.json:
        row: dict[str, float | dict[str, float] | list[str]] = {
            "loss": result.loss,
            "accuracy": result.accuracy,
            f"{source.unit}s": result.tokens,
        }
        row |= {share.name: share.value for share in data.shares}
        row |= {name: {share.name: share.value for share in group} for name, group in data.groups.items()}
        row |= {"perplexity": perplexity} if source.unit == "token" else {}
        row |= {} if source.floor is None else {"floor": source.floor}
        row |= {"edits": [one.text for one in edits]} if edits else {}
        print_json(row)
        return
    for one in edits:
        print(f"{one.title}.")
    floor = "" if source.floor is None else f" (no model gets below {source.floor:.4f})"
    per_token = f", perplexity {perplexity:.3f}" if source.unit == "token" else ""
    print(f"loss {result.loss:.4f} nats per {source.unit}{floor}{per_token}, ", end="")
    print(f"accuracy {result.accuracy:.2%}, over {result.tokens:,} {source.unit}s")
    for share in (*data.shares, *chain.from_iterable(data.groups.values())):
        print(f"{share.words} {share.value:.2%}")


def _evaluated_source(options: argparse.Namespace, lm: LanguageModel) -> Source:
    """The data that --corpus names, split as the model's own; without --corpus, the model's own."""
    from gptviz.data.registry import source_from, source_of_path

    on_card = lm.card.source
    if options.corpus is None:
        if on_card is None:
            raise UsageError(f"the card of {options.name} does not say what it learned from: give a text with --corpus FILE")
        return source_from(dict(on_card))
    fraction = on_card.get("fraction") if on_card else None
    return source_of_path(options.corpus, lm.model.config.kind, fraction if isinstance(fraction, float) else 0.9)


def _edits(options: argparse.Namespace, lm: LanguageModel) -> tuple[UnitEdit, ...]:
    """The edits that --without and --replace-by name.

    Raises:
        ValueError: the model has no such piece, or it cannot be replaced so.
    """
    from gptviz.interp.changing.edits import edits

    texts = (text if "=" in text else f"{text}={options.replace_by}" for text in options.without)
    return edits(texts, lm.model.config)


def _edited(lm: LanguageModel, edits: tuple[UnitEdit, ...], source: Source, *, everything: bool) -> Transformer:
    """The model with the edits. Means are over the beginning of what it is evaluated on, and so are patterns of another text.

    Raises:
        ValueError: as in `Source.evaluation`.
    """
    from gptviz.data.rows import first_batches
    from gptviz.interp.changing.edits import Inputs, edited

    reading = []
    if any(one.needs_text for one in edits):
        batches = source.evaluation(lm.model, lm.tokenizer, everything=everything, labels=lm.labels).batches
        reading = [Inputs(*batch.to(lm.device).inputs) for batch in first_batches(batches, MOST_REFERENCE)]
    return edited(lm.model, edits, reading)


def _check_trained(name: str, loss: float) -> None:
    if not loss < 700:
        raise UsageError(f"{name} has a loss of {loss:.4g} nats: these are not the weights of a trained model")


COMMAND = Command("evaluate", "The loss of a model on held-out data.", run, _options, place=110)
