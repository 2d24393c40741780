"""The command `steer`: what a model says with a direction between two lists of texts added to its stream."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from .common import (
    Command,
    Parser,
    UsageError,
    add_model,
    opened,
    print_folded,
    print_json,
    print_table,
    warn_of_unknown,
    with_bar,
)


def _options(this: Parser) -> None:
    add_model(this, prompt="what the model goes on with")
    this.add_argument("--toward", metavar="FILE", help="texts that the direction leads to, one in each line")
    this.add_argument("--away", metavar="FILE", help="texts that it leads away from; equally many are pairs")
    this.add_argument("--direction", metavar="FILE", help="instead of texts: a GGUF control vector, as llama.cpp and repeng have")
    this.add_argument("--layer", default="all", metavar="N", help="the block after which it is added; default: all blocks")
    about = "the difference of the means, or the first principal component; default means"
    this.add_argument("--how", choices=["means", "component"], default="means", help=about)
    about = "how often the spread of the texts along it is added; default 2, 0 changes nothing"
    this.add_argument("--strength", type=float, default=2.0, metavar="S", help=about)
    this.add_argument("--out", type=Path, metavar="FILE", help="write the direction as a GGUF control vector")


def run(options: argparse.Namespace) -> None:
    """The command `steer NAME --toward FILE --away FILE [--layer N] [--strength S] --prompt TEXT [--out FILE] [--json]`."""
    lm = opened(options)
    warn_of_unknown(lm.tokenizer.encode(options.prompt))
    with with_bar():
        found = _direction(options, lm)
        steered = lm.steer(options.prompt, found.name, options.strength)
    if options.out is not None:
        lm.write_direction(found.name, options.out)
    _, plain, text = steered.texts
    if options.json:
        print_json({"text": text, "plain": plain, "separation": found.separated})
        return
    print_table(["what it writes", "text"], [["without it", plain.strip()], [f"strength {options.strength:g}", text.strip()]])
    print_folded(steered.said)
    apart = "" if math.isnan(found.separated) else f"It tells {found.separated:.1%} of the held-out texts apart. "
    print_folded(f"{apart}As an edit of all pages it is {found.edit(options.strength)}.")


def _direction(options: argparse.Namespace, lm: Any) -> Any:
    """The direction that the options name.

    Raises:
        UsageError: they name none, or two.
    """
    from gptviz.text import read_corpus

    texts = options.toward, options.away
    if (None in texts) == (options.direction is None) or (options.direction is not None and any(texts)):
        raise UsageError("give two lists of texts with --toward FILE and --away FILE, or a control vector with --direction FILE")
    if options.direction is not None:
        return lm.read_direction(options.direction)
    lists = [[line for line in read_corpus(path).text.splitlines() if line.strip()] for path in texts]
    if options.layer != "all" and not options.layer.isdecimal():
        raise UsageError(f"--layer is {options.layer}; it is all, or the number of a block, counted from 0")
    block = None if options.layer == "all" else int(options.layer)
    return lm.direction(*lists, block=block, how=options.how, name=Path(options.toward).stem)


COMMAND = Command(
    "steer", "What a model says with a direction between two lists of texts in its stream.", run, _options, place=186
)
