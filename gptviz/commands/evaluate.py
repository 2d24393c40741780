"""The command `evaluate`: a loss on held-out data."""

from __future__ import annotations

import argparse
import math
from itertools import chain
from typing import TYPE_CHECKING

from .common import Command, UsageError, add_precision, opened, print_json, warn_of_unknown

if TYPE_CHECKING:
    from gptviz.data.source import Source
    from gptviz.language_model import LanguageModel


def add(command: Command) -> None:
    """Add the command and its options."""
    this = command("evaluate", run, "The loss of a model on held-out data.")
    this.add_argument("name", metavar="NAME")
    add_precision(this)
    this.add_argument(
        "--corpus",
        metavar="PATH",
        help="a text file, or a corpus by name; for a classifier texts with labels, for an encoder–decoder pairs, as in train; "
        "default: what it was trained on",
    )
    this.add_argument(
        "--split", choices=["validation", "all"], default="validation", help=("the held-out part of the data, or all of it")
    )


def run(options: argparse.Namespace) -> None:
    """The command `evaluate NAME [--corpus PATH] …`."""
    from gptviz.train.evaluation import evaluate

    lm = opened(options)
    source = _evaluated_source(options, lm)
    try:
        data = source.evaluation(lm.model, lm.tokenizer, everything=options.split == "all", labels=lm.labels)
    except ValueError as error:
        raise UsageError(f"{options.name}: {error}") from None
    warn_of_unknown(lm.tokenizer.encode(data.characters))
    result = evaluate(lm.model, data.batches)
    _check_trained(options.name, result.loss)
    perplexity = math.exp(result.loss)
    if options.json:
        row: dict[str, float | dict[str, float]] = {
            "loss": result.loss,
            "accuracy": result.accuracy,
            f"{source.unit}s": result.tokens,
        }
        row |= {share.name: share.value for share in data.shares}
        row |= {name: {share.name: share.value for share in group} for name, group in data.groups.items()}
        row |= {"perplexity": perplexity} if source.unit == "token" else {}
        row |= {} if source.floor is None else {"floor": source.floor}
        print_json(row)
        return
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


def _check_trained(name: str, loss: float) -> None:
    if not loss < 700:
        raise UsageError(f"{name} has a loss of {loss:.4g} nats: these are not the weights of a trained model")
