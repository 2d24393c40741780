"""The command `circuit`: the graph of the parts that contribute most to a guess."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .common import Command, Parser, UsageError, add_model, opened, print_json, warn_of_unknown

if TYPE_CHECKING:
    from gptviz.interp.explaining.circuit import Circuit, Node
    from gptviz.interp.explaining.circuit_check import Checked
    from gptviz.language_model import LanguageModel


def _options(this: Parser) -> None:
    add_model(this, prompt="what the model reads")
    this.add_argument("--token", metavar="TEXT", help="whose logit; default: the likeliest")
    this.add_argument("--against", metavar="TEXT", help="another token, whose logit is subtracted")
    this.add_argument(
        "--position", type=int, metavar="N", help="the token is guessed after this place, counted from 0; default: the last"
    )
    this.add_argument(
        "--share",
        type=float,
        default=0.8,
        metavar="S",
        help="how much of the logit is traced back to tokens within the graph, above 0, at most 1; default 0.8",
    )
    this.add_argument("--reference", metavar="TEXT", help="the text that means are taken over for the check; default: the prompt")


def run(options: argparse.Namespace) -> None:
    """The command `circuit NAME --prompt TEXT [--token TEXT] [--share S] … [--json]`."""
    lm = opened(options)
    if (kind := lm.model.config.kind) != "decoder":
        raise UsageError(f"a circuit is that of a decoder's guess, and {options.name} is a {kind}")
    warn_of_unknown(lm.tokenizer.encode(options.prompt))
    found = lm.circuit(options.prompt, options.token, options.position, options.against, options.share)
    checked = lm.check_circuit(found, options.reference)
    if options.json:
        print_json(_content(lm, found, checked))
    else:
        _print(lm, found, checked)


def _content(lm: LanguageModel, found: Circuit, checked: Checked) -> dict[str, Any]:
    piece = lm.tokenizer.piece

    def node(one: Node) -> dict[str, Any]:
        name = "logit" if one.unit is None else one.unit.name
        return {"name": name, "position": one.position, "token": piece(found.ids[one.position])}

    nodes = [node(one) | {"value": found.given[one], "weight": found.weights[one]} for one in found.nodes]
    edges = [
        {"from": edge.source.name, "to": edge.target.name, "kind": edge.kind, "value": edge.value, "share": edge.share}
        for edge in found.edges
    ]
    against = None if found.against is None else piece(found.against)
    kept = {"whole": checked.whole, "kept": checked.kept, "without": checked.without, "probability": checked.probability}
    about = {
        "token": piece(found.token),
        "against": against,
        "position": found.position,
        "logit": found.total,
        "rest": found.rest,
    }
    return {**about, "share": found.share, "reached": found.reached, "nodes": nodes, "edges": edges, "check": kept}


def _print(lm: LanguageModel, found: Circuit, checked: Checked) -> None:
    label = lm.tokenizer.label
    against = "" if found.against is None else f" minus that of {label(found.against)}"
    print(f"the logit of {label(found.token)}{against} after position {found.position} is {found.total:.4f}")
    print("what each part (name@position) adds to what a later one reads, beyond its mean over this text:")
    for edge in found.edges:
        print(f"{edge.value:>+10.4f}  {edge.kind:<5}  {edge.source.name} → {edge.target.name}")
    limit = "" if found.reached else ": a larger share needs a graph too large to read"
    print(f"{found.rest:>+10.4f}  biases, and the means of all parts over this text")
    print(f"{len(found.nodes)} nodes, {len(found.edges)} edges, which trace {found.share:.1%} back to tokens{limit}")
    print(
        f"with everything outside at its mean {checked.kept:.4f} of {checked.whole:.4f} is left; with all parts at their means "
        f"{checked.without:.4f}"
    )


COMMAND = Command(
    "circuit",
    "The parts that a guess owes most to, as a graph, and what is left without all others.",
    run,
    _options,
    place=130,
)
