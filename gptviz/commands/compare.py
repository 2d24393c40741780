"""The command `compare`: two prompts, steps of training, models or sets of edits, and their
difference; or an adapter by strength.
"""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import gptviz
from gptviz.machine import terminal
from gptviz.settings.fields import described

from .common import UsageError, one_line, open_model, warn_of_unknown
from .options import Name, Precision, command
from .printing import CommandOutput, Lines, Table

if TYPE_CHECKING:
    from gptviz.interp.compare import Compared, Side
    from gptviz.language_model import LanguageModel

WITHOUT_PROMPT = ("weights", "strength")
What = Literal[
    "next_token",
    "attention",
    "embeddings",
    "lens",
    "attribution",
    "heads",
    "weights",
    "strength",
    "units",
]
Part = Annotated[str, described("PART")]
MOST_LINES = 12
HEADS = [f"{name:>10}" for name in ("A", "B", "B − A")]


@command(140)
def compare(
    name: Annotated[str, described("A")],
    other: Annotated[str, described("B")] | None = None,
    /,
    *,
    precision: Precision = "stored",
    prompt: str | None = None,
    b_prompt: str | None = None,
    step: int | None = None,
    b_step: int | None = None,
    without: Sequence[Part] = (),
    b_without: Sequence[Part] = (),
    what: What = "next_token",
    matrix: Name | None = None,
    block: int = 0,
    head: int | None = None,
    token: Annotated[str, described("TOKEN")] | None = None,
    score: Annotated[str, described("SCORE")] = "induction",
    layer: Name | None = None,
    options: Namespace,
) -> CommandOutput:
    """Compare two prompts, steps of training, models or sets of edits: B minus A.

    Args:
        name: a model.
        other: another model; default: the same one, for weights of an adapter its base.
        prompt: what both read; needed for all but weights and strength.
        b_prompt: what B reads instead.
        step: A after so many steps of training; default: as it was saved last.
        b_step: the same for B.
        without: what is switched off in A, as in blocks.1.attention.head.3; may be given several
            times.
        b_without: what is switched off in B, as in blocks.1.attention.head.3; may be given several
            times.
        what: what is compared; default: the next token. weights: by how much each matrix differs,
            and with --prompt how far that moves the guesses of the text; strength: the loss of a
            LoRA adapter, on its data and on its base's, from its base (0) to as trained (1) and
            beyond.
        matrix: for weights: the singular values of the difference of only this matrix, as in
            blocks.0.mlp.up.
        block: for attention and units: of which block.
        head: for attention: of which head; default: the mean of the block.
        token: for attribution: whose logit; default: the likeliest of A.
        layer: for units: whose, as in blocks.1.mlp (neurons), blocks.1.attention (heads) or
            dictionary.NAME (features); default: the MLP of the block.
        score: for heads: which of the scores that the command heads prints; default: induction.
    """
    if prompt is None and what not in WITHOUT_PROMPT:
        raise UsageError(f"{what} is compared over a text: give one, with --prompt TEXT")
    if what == "strength":
        return _along_strength(open_model(options))
    if what == "weights" and other is None and (base := open_model(options).base) is not None:
        other = base.name
    a = _side(options, name, step, without, prompt)
    of_b = other or name
    read_by_b = b_prompt or prompt
    b = _side(options, of_b, b_step, b_without, read_by_b)
    if what == "weights" and matrix is not None:
        from gptviz.interp.compare import singular_values

        values = singular_values(a, b, matrix).values.tolist()
        first = f"singular values of B − A, of {matrix}: the largest of {len(values):,}"
        content = {"matrix": matrix, "singular_values": values}
        return CommandOutput(
            content, [first, *(f"{value:>12.6f}" for value in values[:MOST_LINES])]
        )
    compared = _compare_sides(a, b, what, block, head, token, score, layer)
    if compared.difference is None:
        if not options.json:
            print(
                f"gptviz: {compared.why}: there is no difference; --json gives both sides",
                file=sys.stderr,
            )
        return CommandOutput(compared, [])
    if what == "weights":
        return _weights(a, b, compared)
    table = compared.difference.records()
    *names, unit = (name for name in table if not name.endswith(" position"))
    sides = (side.values.ravel().tolist() for side in (compared.a, compared.b))
    rows = [
        row
        for row in zip(*sides, *(table[name] for name in (unit, *names)), strict=True)
        if row[2] == row[2]
    ]
    rows.sort(key=lambda row: -abs(row[2]))
    cells = [
        (f"{a:>10.4f}", f"{b:>10.4f}", f"{more:>+10.4f}", *map(terminal.escape_text, labels))
        for a, b, more, *labels in rows[:MOST_LINES]
    ]
    lines: Lines = [
        _title("A", name, step, without, prompt),
        _title("B", of_b, b_step, b_without, read_by_b),
        f"{compared.a.unit}, where they differ most",
        Table([(*HEADS, *names), *cells]),
    ]
    return CommandOutput(compared, lines)


def _along_strength(lm: LanguageModel) -> CommandOutput:
    """The losses of an adapter along its strength."""
    with warnings.catch_warnings(record=True) as missing:
        warnings.simplefilter("always")
        losses_by_text = lm.along_strength()
    for warning in missing:
        print(f"gptviz: {one_line(str(warning.message))}", file=sys.stderr)
    texts, strengths = (axis.labels for axis in losses_by_text.axes)
    losses = losses_by_text.values.tolist()
    content = {
        "unit": losses_by_text.unit,
        "strength": list(map(float, strengths)),
        "loss": dict(zip(texts, losses, strict=True)),
    }
    by_strength = zip(strengths, zip(*losses, strict=True), strict=True)
    rows = [(strength, *(f"{loss:.4f}" for loss in row)) for strength, row in by_strength]
    first = f"loss in {losses_by_text.unit}; strength 0 is the base, 1 is as trained"
    return CommandOutput(content, [first, Table([("strength", *texts), *rows])])


def _weights(a: Side, b: Side, compared: Compared) -> CommandOutput:
    """How far each matrix of B is from that of A, and with a text how far its guesses move."""
    from gptviz.interp import compare

    shares = compare.relative(compared)
    moved = compare.moved_guesses(a, b)
    columns = (compared.a.values, compared.b.values, compared.difference.values, shares.values)  # type: ignore[union-attr]
    numbers = zip(*(column.ravel().tolist() for column in columns), strict=True)
    blocks, matrices = (axis.labels for axis in shares.axes)
    names = [
        f"{matrix} of block {block}" if block.isdigit() else matrix
        for block in blocks
        for matrix in matrices
    ]
    rows = [
        (*each, name) for name, each in zip(names, numbers, strict=True) if each[-1] == each[-1]
    ]
    same = sum(share == 0 for *_, share, _ in rows)
    rows.sort(key=lambda row: -row[3])
    cells = [
        (*(f"{norm:>10.4f}" for norm in norms), f"{share:>10.4%}", name)
        for *norms, share, name in rows[:MOST_LINES]
    ]
    lines: Lines = [
        f"norms of the weights, where they differ most; {same} of {len(rows)} matrices are the "
        "same to the bit",
        Table([(*HEADS, f"{'of A':>10}", "matrix"), *cells]),
    ]
    if moved is not None:
        most = int(moved.values.argmax())
        lines.append(
            f"a guess of the text moves by {moved.values.mean():.4f} nats on average, most after "
            f"{terminal.escape_text(moved.axes[0].labels[most])} ({moved.values[most]:.4f}): the "
            "divergence of B from A"
        )
    return CommandOutput(
        compared.to_dict() | {"share": shares.values, "divergence": moved and moved.values}, lines
    )


def _title(
    side: str, name: str, step: int | None, without: Sequence[str], prompt: str | None
) -> str:
    """The line about a side: its model, and its prompt."""
    trained = "" if step is None else f" after {step:,} steps"
    edits = f" without {', '.join(without)}" if without else ""
    return f"{side}: {name}{trained}{edits}" + ("" if prompt is None else f", reading {prompt!r}")


def _side(
    options: Namespace, name: str, step: int | None, without: Sequence[str], prompt: str | None
) -> Side:
    from gptviz.interp import compare

    lm = open_model(options, name)
    if step is not None:
        lm = gptviz.load(name, options.device, step, options.precision)
    if prompt is None:
        return compare.Side(lm.edited(*without).model, (), tuple(lm.tokenizer.labels()), name)
    warn_of_unknown(lm.tokenizer.encode(prompt))
    return lm.edited(*without).side(prompt)


def _compare_sides(
    a: Side,
    b: Side,
    what: What,
    block: int,
    head: int | None,
    token: str | None,
    score: str,
    layer: str | None,
) -> Compared:
    from gptviz.interp import compare

    match what:
        case "attention":
            return compare.attention(a, b, block, head)
        case "embeddings":
            return compare.embeddings(a, b).points
        case "lens":
            return compare.logit_lens(a, b)
        case "attribution":
            shares = compare.next_token(a, a).a.values
            return compare.attribution(a, b, token or a.vocabulary[int(shares.argmax())])
        case "heads":
            return compare.head_scores(a, b, score)
        case "units":
            return compare.units(a, b, layer or f"blocks.{block}.mlp")
        case "weights":
            return compare.weights(a, b)
    return compare.next_token(a, b)
