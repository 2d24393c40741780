"""The command `stream`: how long the vectors of a text are after each layer, how they turn, and what each sublayer writes."""

from __future__ import annotations

import argparse
from statistics import median
from typing import TYPE_CHECKING

from .common import Command, Parser, UsageError, add_model, opened, print_json, print_table, warn_of_unknown

if TYPE_CHECKING:
    from gptviz.interp.reading.stream import StreamSummary


def _options(this: Parser) -> None:
    add_model(this, prompt="what the model reads; of an encoder–decoder the source")
    about = "of the token at this position alone; default: the median, and of cosines the mean, over all positions"
    this.add_argument("--position", type=int, metavar="N", help=about)


def run(options: argparse.Namespace) -> None:
    """The command `stream NAME --prompt TEXT [--position N] [--json]`."""
    lm = opened(options)
    if lm.model.config.kind == "classifier":
        raise UsageError(f"{options.name} is a classifier: its stream is not read here; use classify {options.name} --text TEXT")
    warn_of_unknown(lm.tokenizer.encode(options.prompt))
    seen = lm.stream(options.prompt)
    index = options.position
    if index is not None and not 0 <= index < len(seen.positions):
        raise UsageError(f"--position is {index}; the text has the positions 0 to {len(seen.positions) - 1}")
    pieces = [lm.tokenizer.piece(token) for token in seen.ids]
    if options.json:
        _print_json(seen, pieces, index)
    else:
        _print(seen, pieces, index)


def _print_json(seen: StreamSummary, tokens: list[str], index: int | None) -> None:
    from gptviz.interp.reading.stream import cosines, lengths, shares

    size, along = shares(seen, tokens).values.tolist()
    print_json(
        {
            "tokens": tokens,
            "layers": [layer.name for layer in seen.layers],
            "length": lengths(seen, tokens).values.tolist(),
            "cosine": cosines(seen, index).values.tolist(),
            "sublayers": list(seen.writers),
            "size": size,
            "along": along,
        }
    )


def _print(seen: StreamSummary, tokens: list[str], index: int | None) -> None:
    """A line for each layer, and one for each sublayer."""
    from gptviz.interp.reading.stream import cosines, lengths, shares

    def middle(row: list[float]) -> float:
        return median(row) if index is None else row[index]

    cosine = cosines(seen, index).values.tolist()
    turned = ["", *(f"{row[place]:.3f}" for place, row in enumerate(cosine[1:]))]
    sizes = [f"{middle(row):.4g}" for row in lengths(seen, tokens).values.tolist()]
    names = [layer.name for layer in seen.layers]
    print_table(("after", "length", "cosine with the layer before"), list(zip(names, sizes, turned, strict=True)))
    if seen.writers:
        rows = zip(seen.writers, *shares(seen, tokens).values.tolist(), strict=True)
        print()
        print_table(
            ("sublayer", "writes", "along the stream (both as shares of its length)"),
            [(name, f"{middle(size):.3f}", f"{middle(along):+.3f}") for name, size, along in rows],
        )


COMMAND = Command(
    "stream",
    "The residual stream by layer: lengths, directions, and what each sublayer writes into it.",
    run,
    _options,
    place=210,
)
