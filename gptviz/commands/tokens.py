"""The command `tokens`: a text as tokens, the merges that made them, and what languages cost."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .common import Command, Parser, UsageError, add_model, opened, print_json, print_table, warn_of_unknown

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel
    from gptviz.text.tokenizers.pieces import Cost


def _options(this: Parser) -> None:
    add_model(this, prompt="the text that is cut into tokens", needs_prompt=False)
    this.add_argument("--merges", action="store_true", help="also the merges that made the tokens, in their order")
    this.add_argument(
        "--languages", action="store_true", help="what the same sentences cost in eight languages, numbers and code"
    )


def run(options: argparse.Namespace) -> None:
    """The command `tokens NAME --prompt TEXT [--merges] [--json]`, or `tokens NAME --languages [--json]`."""
    if (options.prompt is None) != options.languages:
        raise UsageError("tokens takes --prompt TEXT or --languages, one of the two")
    lm = opened(options)
    if options.languages:
        _languages(lm, as_json=options.json)
        return
    encoding = lm.tokenizer.encode(options.prompt)
    warn_of_unknown(encoding)
    found = lm.pieces(options.prompt)
    rows: list[dict[str, Any]] = [
        {"id": piece.id, "token": piece.label, "bytes": piece.data.hex(" "), "kind": piece.kind, "word": piece.word}
        for piece in found
    ]
    merges = _merges(lm, encoding.ids) if options.merges else None
    if options.json:
        print_json({"tokens": rows, "merges": merges} if options.merges else rows)
        return
    print_table(["token", "id", "bytes", "kind"], [[row["token"], str(row["id"]), row["bytes"], row["kind"]] for row in rows])
    if merges is not None:
        print()
        print_table(
            ["merge", "makes", "number in the list"],
            [[str(number), one["token"], f"{one['rank'] + 1:,}"] for number, one in enumerate(merges, 1)],
        )


def _merges(lm: LanguageModel, ids: list[int]) -> list[dict[str, Any]]:
    """The merges that made these tokens.

    Raises:
        UsageError: they are not made by merges.
    """
    merging = lm.tokenizer.merging(ids)
    if merging is None:
        raise UsageError(f"the tokens of {lm.name} are not all made by merges: leave --merges out")
    return [
        {"start": one.start, "middle": one.middle, "end": one.end, "rank": one.rank, "token": lm.tokenizer.label(one.id)}
        for one in merging.merges
    ]


def _languages(lm: LanguageModel, *, as_json: bool) -> None:
    from gptviz.text.datasets.languages import FIRST, examples
    from gptviz.text.tokenizers.pieces import cost

    found: dict[str, Cost] = {name: cost(lm.tokenizer, text) for name, text in examples().items()}
    rows = [
        {
            "text": name,
            "tokens": one.tokens,
            "tokens_per_word": one.tokens_per_word,
            "bytes_per_token": one.bytes_per_token,
            "not_in_the_vocabulary": one.lacking,
        }
        for name, one in found.items()
    ]
    if as_json:
        print_json(rows)
        return
    print_table(
        ["text", "tokens", f"{FIRST} = 1", "per word", "bytes per token", "not in the vocabulary"],
        [
            [
                name,
                str(one.tokens),
                f"{one.tokens / found[FIRST].tokens:.2f}" if found[FIRST].tokens else "",
                "" if one.tokens_per_word is None else f"{one.tokens_per_word:.2f}",
                f"{one.bytes_per_token:.2f}",
                str(one.lacking),
            ]
            for name, one in found.items()
        ],
    )


COMMAND = Command("tokens", "How a text is cut into tokens, and what languages cost.", run, _options, place=65)
