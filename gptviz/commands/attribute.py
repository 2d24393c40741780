"""The command `attribute`: what each part of a model adds to the logit of a token."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .common import Command, Parser, UsageError, add_model, add_pairs, answer, opened, over_prompts, print_json, warn_of_unknown

if TYPE_CHECKING:
    from gptviz.interp.explaining.attribution import Attribution
    from gptviz.language_model import LanguageModel


def _options(this: Parser) -> None:
    add_model(this, prompt="what the model reads; of an encoder–decoder the source", needs_prompt=False)
    add_pairs(this, "clean, right, wrong", "what each piece adds")
    this.add_argument("--token", metavar="TEXT", help="whose logit; of a classifier a label. Default: the likeliest")
    this.add_argument("--against", metavar="TEXT", help="another token: the parts then add up to the difference of both logits")
    this.add_argument(
        "--position", type=int, metavar="N", help="the token is guessed after this place, counted from 0; default: the last"
    )


def run(options: argparse.Namespace) -> None:
    """The command `attribute NAME --prompt TEXT [--token TEXT] [--against TEXT] [--position N] [--json]`, or `… --pairs FILE`."""
    lm = opened(options)
    if over_prompts(options, lm, "attribute"):
        return
    if options.position is not None and lm.model.config.kind == "classifier":
        raise UsageError(f"{options.name} is a classifier: a label is of the whole text, so leave --position out")
    warn_of_unknown(lm.tokenizer.encode(options.prompt))
    found = lm.attribute(options.prompt, options.token, options.position, options.against)
    if options.json:
        parts = [{"name": part.name, "value": part.value} for part in found.parts]
        token, against = (None if each is None else answer(lm, each) for each in (found.token, found.against))
        about = {"token": token, "against": against, "position": found.position}
        print_json(
            {"logit": found.logit, "sum": found.sum, "capped": found.capped, "error": found.error, **about, "parts": parts}
        )
        return
    _print(lm, found)


def _print(lm: LanguageModel, found: Attribution) -> None:
    """The parts, the largest first, and whether they add up."""
    of = lm.labels.__getitem__ if lm.model.config.kind == "classifier" else lm.tokenizer.label
    against = "" if found.against is None else f" minus that of {of(found.against)}"
    place = "" if found.position is None else f" after position {found.position}"
    print(f"the logit of {of(found.token)}{against}{place} is {found.logit:.4f}")
    if found.capped != found.logit:
        print(f"the model caps its logits: it answers with {found.capped:.4f}")
    for part in sorted(found.parts, key=lambda part: -abs(part.value)):
        print(f"{part.value:>+10.4f}  {part.name}")
    off = "" if found.adds_up else ": they do NOT add up"
    print(f"all parts together: {found.sum:.4f}, off by {found.error:.1g} of the largest{off}")


COMMAND = Command(
    "attribute", "What each head, MLP and bias adds to the logit of a token, or of a label.", run, _options, place=120
)
