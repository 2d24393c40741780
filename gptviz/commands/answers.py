"""The command `answers`: how one or two models complete sentences, beside what the data that they
were trained on say.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from gptviz.machine.errors import reason_of
from gptviz.settings.fields import described

from .common import UsageError, open_model
from .options import Precision, command
from .printing import CommandOutput, Table

if TYPE_CHECKING:
    from gptviz.data.trained_on import Share
    from gptviz.language_model import LanguageModel


NEIGHBOURS = 5
Word = Annotated[str, described("WORD")]


@command(142)
def answers(
    name: Annotated[str, described("A")],
    other: Annotated[str, described("B")] | None = None,
    /,
    *,
    precision: Precision = "stored",
    sentence: Sequence[str] = (),
    word: Sequence[Word] = (),
    nearest: Word | None = None,
    options: Namespace,
) -> CommandOutput:
    """How models complete sentences, beside the share in their data.

    Args:
        name: a model.
        other: another model.
        sentence: a sentence to complete; may be given several times. Default: those of the task
            that A has learned.
        word: a word to complete it with; may be given several times. Default: those of the task
            that A has learned.
        nearest: also the words that are nearest to this one by their embeddings.
    """
    names = [each for each in (name, other) if each]
    models = [open_model(options, each) for each in names]
    task = models[0].task
    known = ((), ()) if task is None else task.questions()
    sentences = list(sentence or known[0])
    words = list(word or known[1])
    if not sentences or not words:
        raise UsageError(
            f"{name} has learned no task with questions of its own: give --sentence and --word"
        )
    each_model = [_answers(lm, sentences, words, nearest) for lm in models]
    columns = [
        what if what == "to" else f"{each}{what}"
        for each in names
        for what in ("", ": its data", ": chance from", "to")
    ]
    rows = list[list[str]]()
    near = list[str]()
    for row in zip(*(content["answers"] for content in each_model), strict=True):
        shares = [answer[key] for answer in row for key in ("probability", "share", "low", "high")]
        cells = ["–" if share is None else f"{100 * share:.1f} %" for share in shares]
        rows.append([f"{row[0]['sentence']} … {row[0]['word']}", *cells])
    for content in each_model if nearest is not None else ():
        words_near = ", ".join(
            f"{token} {cosine:.2f}" for token, cosine in content["nearest"].items()
        )
        near.append(f"{content['model']}: nearest to {nearest} are {words_near}")
    return CommandOutput(each_model, [Table(rows, ["", *columns]), *near])


def _answers(
    lm: LanguageModel, sentences: list[str], words: list[str], nearest: str | None
) -> dict[str, Any]:
    likely = lm.answers(sentences, words).values.tolist()
    shares: Sequence[Sequence[Share | None]]
    try:
        shares = lm.shares_in_data(sentences, words)
    except (ValueError, OSError) as error:  # of a model from elsewhere nobody knows the data
        print(f"gptviz: {reason_of(error)}", file=sys.stderr)
        shares = [[None] * len(words) for _ in sentences]
    rows = []
    for sentence, probabilities, of_data in zip(sentences, likely, shares, strict=True):
        for word, probability, share in zip(words, probabilities, of_data, strict=True):
            low, high = (None, None) if share is None or not share.of else share.interval
            data = (
                {"share": None, "of": None}
                if share is None
                else {"share": share.value, "of": share.of}
            )
            rows.append(
                {"sentence": sentence, "word": word, "probability": probability}
                | data
                | {"low": low, "high": high}
            )
    content: dict[str, Any] = {"model": lm.name, "answers": rows}
    if nearest is not None:
        content["nearest"] = lm.nearest(nearest, NEIGHBOURS)
    return content
