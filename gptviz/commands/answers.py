"""The command `answers`: how one or two models complete sentences, beside what the data that they were trained on say."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from .common import Parser, UsageError, add_precision, command, opened
from .printing import Shown, Table

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel


NEIGHBOURS = 5


def _options(this: Parser) -> None:
    this.add_argument("name", metavar="A", help="a model")
    this.add_argument("other", metavar="B", nargs="?", help="another model")
    add_precision(this)
    about = "a sentence to complete; may be given several times. Default: those of the task that A has learned"
    this.add_argument("--sentence", action="append", default=[], metavar="TEXT", help=about)
    about = "a word to complete it with; may be given several times. Default: those of the task that A has learned"
    this.add_argument("--word", action="append", default=[], metavar="WORD", help=about)
    this.add_argument("--nearest", metavar="WORD", help="also the words that are nearest to this one by their embeddings")


@command(142, _options)
def answers(options: argparse.Namespace) -> Shown:
    """How models complete sentences, beside the share in their data."""
    names = [options.name, *([options.other] if options.other else [])]
    models = [opened(options, name) for name in names]
    task = models[0].task
    known = ((), ()) if task is None else task.questions()
    sentences, words = list(options.sentence or known[0]), list(options.word or known[1])
    if not sentences or not words:
        raise UsageError(f"{options.name} has learned no task with questions of its own: give --sentence and --word")
    found = [_answers(lm, sentences, words, options.nearest) for lm in models]
    columns = [what if what == "to" else f"{name}{what}" for name in names for what in ("", ": its data", ": chance from", "to")]
    rows = []
    for row in zip(*(one["answers"] for one in found), strict=True):
        cells = [_cell(one[key]) for one in row for key in ("probability", "share", "low", "high")]
        rows.append([f"{row[0]['sentence']} … {row[0]['word']}", *cells])
    near = [
        f"{one['model']}: nearest to {options.nearest} are "
        + ", ".join(f"{token} {cosine:.2f}" for token, cosine in one["nearest"].items())
        for one in found
        if "nearest" in one
    ]
    return Shown(found, [Table(rows, ["", *columns]), *near])


def _cell(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _answers(lm: LanguageModel, sentences: list[str], words: list[str], nearest: str | None) -> dict[str, Any]:
    likely = lm.answers(sentences, words).values.tolist()
    try:
        shares = lm.shares_in_data(sentences, words)
    except (ValueError, OSError) as error:  # of a model from elsewhere nobody knows the data
        print(f"gptviz: {error}", file=sys.stderr)
        shares = [[None] * len(words) for _ in sentences]
    rows = []
    for i, sentence in enumerate(sentences):
        for j, word in enumerate(words):
            share = shares[i][j]
            low, high = (None, None) if share is None or not share.of else share.interval
            data = {"share": None, "of": None} if share is None else {"share": share.value, "of": share.of}
            row = {"sentence": sentence, "word": word, "probability": likely[i][j]}
            rows.append(row | data | {"low": low, "high": high})
    found: dict[str, Any] = {"model": lm.name, "answers": rows}
    if nearest is not None:
        found["nearest"] = lm.nearest(nearest, NEIGHBOURS)
    return found
