"""The command `compare`: two prompts, steps of training, models or sets of edits, and the difference; and an adapter along its
strength.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import TYPE_CHECKING

import gptviz
from gptviz.machine import terminal

from .common import Command, Parser, UsageError, add_precision, one_line, opened, print_json, warn_of_unknown

if TYPE_CHECKING:
    from gptviz.interp.compare import Compared, Side

WITHOUT_PROMPT = ("weights", "strength")
WHATS = ("next_token", "attention", "embeddings", "lens", "attribution", "heads", *WITHOUT_PROMPT)
MOST_LINES = 12


def _options(this: Parser) -> None:
    this.add_argument("name", metavar="A", help="a model")
    this.add_argument(
        "other", metavar="B", nargs="?", help="another model; default: the same one, for weights of an adapter its base"
    )
    add_precision(this)
    this.add_argument("--prompt", metavar="TEXT", help="what both read; needed for all but weights and strength")
    this.add_argument("--b-prompt", metavar="TEXT", help="what B reads instead")
    this.add_argument("--step", type=int, metavar="N", help="A after so many steps of training; default: as it was saved last")
    this.add_argument("--b-step", type=int, metavar="N", help="the same for B")
    for side in ("", "b-"):
        this.add_argument(
            f"--{side}without",
            action="append",
            default=[],
            metavar="PART",
            help=f"what is switched off in {'B' if side else 'A'}, as in blocks.1.attention.head.3; may be given several times",
        )
    about = "what is compared; default: the next token. weights: by how much each matrix differs, and with --prompt how far that "
    about += "moves the guesses of the text; strength: the loss of a LoRA adapter, on its data and on its base's, from its base "
    about += "(0) to as trained (1) and beyond"
    this.add_argument("--what", choices=WHATS, default="next_token", help=about)
    about = "for weights: the singular values of the difference of this matrix alone, as in blocks.0.mlp.up"
    this.add_argument("--matrix", metavar="NAME", help=about)
    this.add_argument("--block", type=int, default=0, metavar="N", help="for attention: of which block")
    this.add_argument("--head", type=int, metavar="N", help="for attention: of which head; default: the mean of the block")
    this.add_argument("--token", metavar="TOKEN", help="for attribution: whose logit; default: the likeliest of A")
    about = "for heads: which of the scores that the command heads prints; default: induction"
    this.add_argument("--score", default="induction", metavar="SCORE", help=about)


def run(options: argparse.Namespace) -> None:
    """The command `compare A [B] --prompt TEXT [--b-prompt TEXT] [--step N] [--b-step N] [--what WHAT] [--json]`."""
    if options.prompt is None and options.what not in WITHOUT_PROMPT:
        raise UsageError(f"{options.what} is compared over a text: give one, with --prompt TEXT")
    if options.what == "strength":
        _along_strength(options)
        return
    if options.what == "weights" and options.other is None and (base := opened(options).base) is not None:
        options.other = base.name
    a = _side(options, options.name, options.step, options.without, options.prompt)
    name, prompt = options.other or options.name, options.b_prompt or options.prompt
    b = _side(options, name, options.b_step, options.b_without, prompt)
    if options.what == "weights" and options.matrix is not None:
        _singular_values(a, b, options)
        return
    found = _compared(a, b, options)
    if options.what == "weights" and found.difference is not None:
        _weights(a, b, found, options)
        return
    if options.json:
        print_json(found.to_dict())
        return
    if found.difference is None:
        print(f"gptviz: {found.why}: there is no difference; --json gives both sides", file=sys.stderr)
        return
    table = found.difference.records()
    names = [name for name in table if not name.endswith(" position")]
    *labels, values = (table[name] for name in names)
    pairs = zip(found.a.values.ravel().tolist(), found.b.values.ravel().tolist(), strict=True)
    rows = [(*cell, *pair, value) for *cell, value, pair in zip(*labels, values, pairs, strict=True) if value == value]
    print(_title("A", options.name, options.step, options.without, options.prompt))
    print(_title("B", name, options.b_step, options.b_without, prompt))
    print(f"{found.a.unit}, where they differ most")
    widths = [max(len(heading), *(len(row[i]) for row in rows)) if rows else 0 for i, heading in enumerate(names[:-1])]
    print(f"{'A':>10} {'B':>10} {'B − A':>10}  {_cells(names[:-1], widths)}")
    for *cell, before, after, difference in sorted(rows, key=lambda row: -abs(row[-1]))[:MOST_LINES]:
        print(f"{before:>10.4f} {after:>10.4f} {difference:>+10.4f}  {terminal.printable(_cells(cell, widths))}")


def _cells(cells: list[str], widths: list[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _along_strength(options: argparse.Namespace) -> None:
    """Print the losses of an adapter along its strength."""
    lm = opened(options)
    with warnings.catch_warnings(record=True) as missing:
        warnings.simplefilter("always")
        found = lm.along_strength()
    for one in missing:
        print(f"gptviz: {one_line(str(one.message))}", file=sys.stderr)
    texts, strengths = (axis.labels for axis in found.axes)
    if options.json:
        print_json(
            {
                "unit": found.unit,
                "strength": list(map(float, strengths)),
                "loss": dict(zip(texts, found.values.tolist(), strict=True)),
            }
        )
        return
    print(f"loss in {found.unit}; strength 0 is the base, 1 is as trained")
    print("  ".join(["strength", *texts]))
    for strength, *losses in zip(strengths, *found.values.tolist(), strict=True):
        cells = (f"{loss:<{len(text)}.4f}" for loss, text in zip(losses, texts, strict=True))
        print("  ".join([f"{strength:<8}", *cells]).rstrip())


def _weights(a: Side, b: Side, found: Compared, options: argparse.Namespace) -> None:
    """Print how far each matrix of B is from that of A, and with a text how far its guesses move."""
    from gptviz.interp import compare

    shares, moved = compare.relative(found), compare.moved_guesses(a, b)
    if options.json:
        nats = None if moved is None else moved.values.tolist()
        print_json(found.to_dict() | {"share": shares.values.tolist(), "divergence": nats})
        return
    columns = (found.a.values, found.b.values, found.difference.values, shares.values)  # type: ignore[union-attr]
    numbers = zip(*(one.ravel().tolist() for one in columns), strict=True)
    blocks, matrices = (axis.labels for axis in shares.axes)
    names = [f"{matrix} of block {block}" if block.isdigit() else matrix for block in blocks for matrix in matrices]
    rows = [(name, each) for name, each in zip(names, numbers, strict=True) if each[-1] == each[-1]]
    same = sum(share == 0 for _, (*_, share) in rows)
    print(f"norms of the weights, where they differ most; {same} of {len(rows)} matrices are the same to the bit")
    print(f"{'A':>10} {'B':>10} {'B − A':>10} {'of A':>10}  matrix")
    for name, (*norms, share) in sorted(rows, key=lambda row: -row[1][-1])[:MOST_LINES]:
        print(" ".join(f"{norm:>10.4f}" for norm in norms), f"{share:>10.4%}  {name}")
    if moved is not None:
        most = int(moved.values.argmax())
        print(
            f"a guess of the text moves by {moved.values.mean():.4f} nats on average, most after "
            f"{terminal.printable(moved.axes[0].labels[most])} ({moved.values[most]:.4f}): the divergence of B from A"
        )


def _singular_values(a: Side, b: Side, options: argparse.Namespace) -> None:
    """Print the singular values of the difference of one matrix, the largest first."""
    from gptviz.interp import compare

    values = compare.singular_values(a, b, options.matrix).values.tolist()
    if options.json:
        print_json({"matrix": options.matrix, "singular_values": values})
        return
    print(f"singular values of B − A, of {options.matrix}: the largest of {len(values):,}")
    for value in values[:MOST_LINES]:
        print(f"{value:>12.6f}")


def _title(side: str, name: str, step: int | None, without: list[str], prompt: str | None) -> str:
    """The line about a side: its model, and its prompt."""
    trained = "" if step is None else f" after {step:,} steps"
    edits = f" without {', '.join(without)}" if without else ""
    return f"{side}: {name}{trained}{edits}" + ("" if prompt is None else f", reading {prompt!r}")


def _side(options: argparse.Namespace, name: str, step: int | None, without: list[str], prompt: str | None) -> Side:
    from gptviz.interp import compare

    lm = opened(argparse.Namespace(**vars(options) | {"name": name}))
    if step is not None:
        lm = gptviz.load(name, options.device, step, options.precision)
    if prompt is None:
        return compare.Side(lm.edited(*without).model, (), tuple(lm.tokenizer.labels()), name)
    warn_of_unknown(lm.tokenizer.encode(prompt))
    return lm.edited(*without).side(prompt)


def _compared(a: Side, b: Side, options: argparse.Namespace) -> Compared:
    from gptviz.interp import compare

    match options.what:
        case "attention":
            return compare.attention(a, b, options.block, options.head)
        case "embeddings":
            return compare.embeddings(a, b).points
        case "lens":
            return compare.logit_lens(a, b)
        case "attribution":
            shares = compare.next_token(a, a).a.values
            return compare.attribution(a, b, options.token or a.vocabulary[int(shares.argmax())])
        case "heads":
            return compare.head_scores(a, b, options.score)
        case "weights":
            return compare.weights(a, b)
    return compare.next_token(a, b)


COMMAND = Command(
    "compare", "Compare two prompts, steps of training, models or sets of edits: B minus A.", run, _options, place=140
)
