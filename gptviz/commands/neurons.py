"""The command `neurons`: what makes the neurons of a model active, and what they speak for."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .common import Command, Parser, UsageError, add_model, opened, print_json, print_table, token_text

if TYPE_CHECKING:
    from torch import Tensor

    from gptviz.interp.units.neurons import Activity
    from gptviz.language_model import LanguageModel

# The neurons listed, and the tokens that a neuron promotes and suppresses.
LISTED, TOKENS = 20, 10
# The tokens of a context before and after the one at which the neuron is active.
BEFORE, BEHIND = 20, 5


def _options(this: Parser) -> None:
    add_model(this)
    this.add_argument("--block", type=int, metavar="N", help="the block, counted from 0; default: the one in the middle")
    this.add_argument("--neuron", type=int, metavar="N", help="the neuron to look at, counted from 0; default: all are ranked")
    this.add_argument("--corpus", metavar="PATH", help="a text file to read; default: the data held out of training")
    this.add_argument("--tokens", type=int, default=16_384, metavar="N", help="how many tokens are read at most; default: 16384")
    this.add_argument(
        "--by", choices=["largest", "active", "effect"], default="largest", help="what neurons are ranked by; default: largest"
    )


def run(options: argparse.Namespace) -> None:
    """The command `neurons NAME [--block N] [--neuron N] [--corpus PATH] …`."""
    from gptviz.text import read_corpus

    lm = opened(options)
    config = lm.model.config
    if config.kind == "encoder-decoder":
        raise UsageError(f"{options.name} has two stacks: the command neurons is for models of one")
    if options.tokens < 1:
        raise UsageError(f"--tokens is {options.tokens}; it must be 1 or more")
    block = config.n_layer // 2 if options.block is None else options.block
    if not 0 <= block < config.n_layer or not config.mlp_size:
        raise UsageError(
            f"{options.name} has no neurons in block {block}: it has {config.n_layer} blocks of {config.mlp_size} neurons"
        )
    if options.neuron is not None and not 0 <= options.neuron < config.mlp_size:
        raise UsageError(f"there is no neuron {options.neuron}: neurons are counted from 0 to {config.mlp_size - 1}")
    rows = lm.rows(None if options.corpus is None else read_corpus(options.corpus).text, options.tokens)
    seen = _observed(lm, block, rows)
    if options.neuron is None:
        _print_ranking(seen, options.by, as_json=options.json)
    else:
        _print_one(lm, seen, rows, options.neuron, as_json=options.json)


def _observed(lm: LanguageModel, block: int, rows: list[Tensor]) -> Activity:
    from gptviz.interp.units.neurons import observe

    *_, seen = observe(lm.model, block, rows)
    return seen.activity()


def _print_ranking(seen: Activity, by: str, *, as_json: bool) -> None:
    order = seen.ranked(by)
    numbers = {name: getattr(seen, name).tolist() for name in ("largest", "smallest", "active", "effect")}
    if as_json:
        print_json([{"block": seen.block, "neuron": n} | {name: of[n] for name, of in numbers.items()} for n in order])
        return
    title = f"block {seen.block}, over {seen.n_tokens:,} tokens"
    print_table([title, *numbers], [[f"neuron {n}", *(f"{of[n]:.4g}" for of in numbers.values())] for n in order[:LISTED]])


def _print_one(lm: LanguageModel, seen: Activity, rows: list[Tensor], neuron: int, *, as_json: bool) -> None:
    from gptviz.interp.units.neurons import promoted

    contexts = [
        {"activation": float(value), "before": before, "token": token, "behind": behind}
        for value, (before, token, behind) in zip(seen.highest[:, neuron], _texts(lm, rows, seen.places(neuron)), strict=False)
    ]
    speaks: dict[str, list[dict[str, Any]]] = {}
    if lm.model.config.kind == "decoder":
        values = promoted(lm.model, seen.block, neuron)
        order = values.argsort().tolist()
        # A small vocabulary may have fewer tokens that are raised, or lowered.
        for name, sign, ids in (("promoted", 1, order[::-1]), ("suppressed", -1, order)):
            speaks[name] = [{"token": token_text(lm, i), "value": float(values[i])} for i in ids[:TOKENS] if sign * values[i] > 0]
    about: dict[str, float] = {"block": seen.block, "neuron": neuron, "tokens": seen.n_tokens}
    about |= {name: float(getattr(seen, name)[neuron]) for name in ("largest", "smallest", "active", "effect")}
    if as_json:
        print_json(about | {"contexts": contexts} | speaks)
        return
    print(f"neuron {neuron} of block {seen.block}, over {seen.n_tokens:,} tokens")
    print(f"activation from {about['smallest']:.4g} to {about['largest']:.4g}, above 0 at {about['active']:.1%} of the tokens")
    print(f"it adds a vector of the mean length {about['effect']:.4g} to the residual stream")
    print("its highest activations: the text before, the token in [ ], and the text after it")
    for one in contexts:
        print(f"{one['activation']:>9.4g}  {one['before']!r} [{one['token']!r}] {one['behind']!r}")
    for name, tokens in speaks.items():
        print(f"{name}, by what is added to their logits, but for one common factor:", end=" ")
        print(", ".join(f"{one['token']!r} {one['value']:+.3g}" for one in tokens) or "none")


def _texts(lm: LanguageModel, rows: list[Tensor], places: list[tuple[int, int]]) -> list[tuple[str, str, str]]:
    """For each place the text before its token, the token, and the text behind it."""
    found = []
    for row, at in places:
        ids = rows[row].tolist()
        pieces = ids[max(0, at - BEFORE) : at], ids[at : at + 1], ids[at + 1 : at + 1 + BEHIND]
        before, token, behind = ("".join(map(lm.tokenizer.piece, piece)) for piece in pieces)
        found.append((before, token, behind))
    return found


COMMAND = Command(
    "neurons",
    "Rank the neurons of a block, or look at one: where it is active, and what it promotes.",
    run,
    _options,
    place=170,
)
