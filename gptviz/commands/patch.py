"""The command `patch`: which parts of a model's computation bring the answer back for a corrupted prompt."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .common import Command, Parser, add_model, add_pairs, answer, opened, over_prompts, print_json, warn_of_unknown

if TYPE_CHECKING:
    from gptviz.interp.changing.patching import Patched, PromptPair
    from gptviz.language_model import LanguageModel

MOST_LINES = 10


def _options(this: Parser) -> None:
    add_model(this, prompt="the clean prompt", needs_prompt=False)
    add_pairs(this, "clean, corrupted, right, wrong", "which share of the answer each piece restores")
    this.add_argument("--corrupted", metavar="TEXT", help="the corrupted prompt, with as many tokens")
    this.add_argument("--right", metavar="TOKEN", help="the right answer; default: the likeliest after the clean prompt")
    this.add_argument("--wrong", metavar="TOKEN", help="the wrong answer; default: the likeliest after the corrupted prompt")
    this.add_argument(
        "--what",
        default="resid_pre",
        metavar="PIECES",
        help="what is put in, by block: resid_pre (default), resid_mid, resid_post, attention.out or mlp.out at each position; "
        "attention.z, attention.pattern, attention.q, attention.k or attention.v of each head",
    )
    this.add_argument(
        "--preview",
        action="store_true",
        help="guess all patches from a few backward passes, and check that with some patches",
    )


def run(options: argparse.Namespace) -> None:
    """The command `patch NAME --prompt TEXT --corrupted TEXT [--right TOKEN] [--wrong TOKEN] [--what PIECES] [--preview]`, or
    `patch NAME --pairs FILE`.
    """
    from gptviz.interp.changing import attribution_patching, patching

    lm = opened(options)
    if over_prompts(options, lm, "patch", instead_of=("prompt", "corrupted")):
        return
    for text in (options.prompt, options.corrupted):
        warn_of_unknown(lm.tokenizer.encode(text))
    pair = lm.pair(options.prompt, options.corrupted, options.right, options.wrong)
    found: Patched
    if options.preview:
        found = attribution_patching.preview(lm.model, pair, [options.what])[options.what]
    else:
        found = patching.patch(lm.model, pair, options.what)
    found = found.labelled(
        [lm.tokenizer.label(i) for i in (pair.clean_source if found.quantity.in_encoder else None) or pair.clean]
    )
    if options.json:
        print_json(_content(lm, pair, found))
    else:
        _print(lm, pair, found)


def _content(lm: LanguageModel, pair: PromptPair, found: Patched) -> dict[str, Any]:
    from gptviz.interp.changing.attribution_patching import Preview

    checks = ("correlation", "checked", "is_trusted") if isinstance(found, Preview) else ()
    return {
        "what": found.quantity.name,
        "exact": not checks,
        **{name: getattr(found, name) for name in checks},
        "right": answer(lm, pair.right),
        "wrong": answer(lm, pair.wrong),
        "clean": found.clean,
        "corrupted": found.corrupted,
        "by": found.places.name,
        "places": list(found.places.labels),
        "restored": found.restored.values.tolist(),
        "answers": found.answers.tolist(),
    }


def _print(lm: LanguageModel, pair: PromptPair, found: Patched) -> None:
    """The patches that restore most, a line for each; none of a preview that is not to be trusted."""
    from gptviz.interp.changing.attribution_patching import TRUSTED, Preview

    right, wrong = (repr(answer(lm, each)) for each in (pair.right, pair.wrong))
    print(f"logit of {right} minus logit of {wrong}: {found.clean:.3f} after the clean prompt, {found.corrupted:.3f} corrupted")
    if not found.is_defined:
        print("both prompts have the same answer, so there is nothing to restore")
        return
    if isinstance(found, Preview):
        print(f"preview: {found.agreement}")
        if not found.is_trusted:
            print(f"it is shown from a correlation of {TRUSTED} on: leave --preview out to compute every patch")
            return
    shares, labels = found.restored.values.tolist(), found.places.labels
    cells = sorted(
        ((share, block, place) for block, row in enumerate(shares) for place, share in enumerate(row)), key=_largest_first
    )
    print(f"{found.quantity.title}: the share of it that a patch restores, largest first")
    for share, block, place in cells[:MOST_LINES]:
        where = f"{place} {labels[place]}" if found.places.name == "position" else labels[place]
        print(f"{share:8.1%}  block {block}, {found.places.name} {where}")


def _largest_first(cell: tuple[float, int, int]) -> tuple[float, int, int]:
    return -cell[0], cell[1], cell[2]


COMMAND = Command(
    "patch",
    "Put pieces of what a model computed for a clean prompt into its pass over a corrupted one: how much of the answer comes "
    "back?",
    run,
    _options,
    place=200,
)
