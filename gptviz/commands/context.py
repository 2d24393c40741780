"""The command `context`: how many earlier tokens a model uses, and which of them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .common import Command, Parser, UsageError, add_model, opened, print_json, print_table, token_text, warn_of_unknown

if TYPE_CHECKING:
    from gptviz.interp.explaining.context_use import ContextUse
    from gptviz.language_model import LanguageModel


def _options(this: Parser) -> None:
    add_model(this, prompt="what the model reads")
    this.add_argument(
        "--how",
        choices=["replaced", "removed"],
        default="replaced",
        help="what is done with a token that is left out: its embedding is replaced by the mean of all, or the text closes up",
    )


def run(options: argparse.Namespace) -> None:
    """The command `context NAME --prompt TEXT [--how removed] [--json]`."""
    lm = opened(options)
    warn_of_unknown(lm.tokenizer.encode(options.prompt))
    try:
        found = lm.context_use(options.prompt, options.how)
    except ValueError as error:
        raise UsageError(f"{options.name}: {error}") from None
    if options.json:
        print_json(
            {
                "tokens": [token_text(lm, i) for i in found.ids],
                "loss": found.loss.tolist(),
                "windows": list(found.by_window.windows),
                "loss_by_window": found.by_window.mean.tolist(),
                "left_out": list(found.left_out.places),
                "rise": found.left_out.rise.tolist(),
            }
        )
        return
    _print(lm, found)


def _print(lm: LanguageModel, found: ContextUse) -> None:
    """The loss by window, and what each token is worth to the guess after the prompt."""
    windows = zip(found.by_window.windows, found.by_window.mean, strict=True)
    print_table(("tokens read", "mean loss (nats)"), [(str(window), f"{mean:.3f}") for window, mean in windows])
    guess = lm.tokenizer.label(found.ids[-1])
    print(f"the guess at the next token is {guess}, with a loss of {found.loss[-1]:.3f} nats; without a token it rises by")
    rises, label = zip(found.left_out.places, found.left_out.rise[-1], strict=True), lm.tokenizer.label
    print_table(
        ("position", "token", "rise (nats)"), [(str(place), label(found.ids[place]), f"{rise:+.3f}") for place, rise in rises]
    )


COMMAND = Command(
    "context", "How many earlier tokens a model uses to guess the next, and which of them.", run, _options, place=150
)
