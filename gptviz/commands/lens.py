"""The command `lens`: what a model would guess after each of its layers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .common import (
    Command,
    Parser,
    UsageError,
    add_model,
    opened,
    print_folded,
    print_json,
    token_text,
    warn_of_unknown,
    with_bar,
)

if TYPE_CHECKING:
    from gptviz.interp.reading.lens import Lens
    from gptviz.language_model import LanguageModel


def _options(this: Parser) -> None:
    add_model(this, prompt="what the model reads; of an encoder–decoder the source")
    this.add_argument("--top", type=int, default=5, metavar="K", help="how many of the likeliest tokens; default 5")
    about = "after each block alone, and not within it: quicker with a large model"
    this.add_argument("--blocks-only", action="store_true", help=about)
    about = "what the head reads: the stream as it is, or brought to the last layer by a lens that is fitted once and kept"
    this.add_argument("--kind", choices=["logit", "jacobian", "tuned"], default="logit", help=f"{about}; default logit")
    this.add_argument("--fit-to", metavar="PATH", help="a text file to fit it to; default: the data held out of training")


def run(options: argparse.Namespace) -> None:
    """The command `lens NAME --prompt TEXT [--top K] [--blocks-only] [--kind KIND] [--fit-to PATH] [--json]`."""
    from gptviz.text import read_corpus

    if options.top < 1:
        raise UsageError(f"--top is {options.top}; it must be 1 or more")
    lm = opened(options)
    if lm.model.config.kind == "classifier":
        raise UsageError(f"{options.name} is a classifier and guesses no token: use classify {options.name} --text TEXT")
    warn_of_unknown(lm.tokenizer.encode(options.prompt))
    text = None if options.fit_to is None else read_corpus(options.fit_to).text
    with with_bar():
        seen = lm.lens(options.prompt, top=options.top, blocks_only=options.blocks_only, kind=options.kind, fitted_to=text)
    if options.json:
        print_json(_content(lm, seen))
        return
    _print(lm, seen)


def _content(lm: LanguageModel, seen: Lens) -> dict[str, Any]:
    def cell(layer: int, place: int) -> list[dict[str, Any]]:
        likely = zip(seen.top[layer, place].tolist(), seen.probability[layer, place].tolist(), strict=True)
        return [{"token": token_text(lm, token), "probability": probability} for token, probability in likely]

    tokens = [token_text(lm, i) for i in seen.ids]
    top = [[cell(layer, place) for place in range(len(tokens))] for layer in range(len(seen.layers))]
    names = [layer.name for layer in seen.layers]
    return {"tokens": tokens, "layers": names, "top": top, "final_error": seen.final_error}


def _print(lm: LanguageModel, seen: Lens) -> None:
    """The guesses after the last token, a line for each layer."""
    widest = max(len(layer.name) for layer in seen.layers)
    print("after the last token:")
    for layer, tokens, probabilities in zip(seen.layers, seen.top[:, -1], seen.probability[:, -1], strict=True):
        likely = "  ".join(f"{lm.tokenizer.label(int(i))} {p:.1%}" for i, p in zip(tokens, probabilities, strict=True))
        print_folded(f"{layer.name:<{widest}}  {likely}", indent=widest + 2)
    print(f"the last row differs from the model's own logits by at most {seen.final_error:.2g}")


COMMAND = Command(
    "lens", "What a model would guess after each layer: its head applied to the stream there.", run, _options, place=180
)
