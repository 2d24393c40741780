"""The commands that show what changes in a model's guesses when parts of it are changed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from gptviz.machine.lines import lines_of
from gptviz.settings.kinds import HowFound

from .common import UsageError, nats, pick_values
from .options import File, Name, command
from .pairs import Pairs
from .printing import CommandOutput, Lines, Table

if TYPE_CHECKING:
    from gptviz.interp.changing.directions import Direction
    from gptviz.interp.changing.patching import Patched
    from gptviz.language_model import LanguageModel

MOST_PATCHES = 10  # that are listed


@command(45)
def quantise(
    lm: LanguageModel, prompt: str | None = None, as_: Name = "4bit.g32", matrix: Name | None = None
) -> CommandOutput:
    """Show what a model loses if its weights are kept in fewer bits.

    Args:
        prompt: a text for the loss, and for how far each guess moves; default: held-out data, if
            they are here.
        as_: how weights are kept: 8bit.row, 4bit.g32, … (8, 6, 5, 4, 3 or 2 bits, rounded to
            nearest, with a scale for each row or each group of 32, 64 or 128), or Q8_0, Q5_1, Q5_0,
            Q4_1, Q4_0 as in GGUF files.
        matrix: only one matrix, such as blocks.0.mlp.up.weight; default: all.
    """
    from gptviz.machine.memory import in_bytes

    fewer = lm.fewer_bits(as_, prompt, matrix=matrix)
    weight = fewer.weight
    moved = fewer.divergence
    lines: Lines = [
        f"{lm.name} with {', '.join(fewer.edits)} (simulated: computed with in float32)",
        f"its weights take {in_bytes(weight.kept)}, in float32 {in_bytes(weight.float32)}; "
        f"a quantised number {weight.bits:.3g} bits",
    ]
    if fewer.loss is not None:
        before, after = fewer.loss
        lines.append(f"loss over {fewer.text}: {nats(before)} → {nats(after)} nats")
    else:
        if prompt is None:
            why = "the held-out data are not here; give a text with --prompt"
        else:
            why = "one token"
        lines.append(f"no loss: {why}")
    if moved is not None:
        mean = moved.mean()
        last = moved[-1]
        lines.append(
            f"guesses move by {mean:.4g} nats on average (Kullback–Leibler divergence), the last "
            f"one by {last:.4g}"
        )
    rows = [
        (
            matrix.name,
            f"{matrix.relative:.4f}",
            f"{matrix.largest:.3g}",
            f"{matrix.farthest:.1f}",
            f"{matrix.outliers:.3%}",
            in_bytes(matrix.bytes or 0),
        )
        for matrix in fewer.matrices
    ]
    names = ("", "relative error", "largest error", "farthest / RMS", "beyond 6 RMS", "size")
    return CommandOutput(fewer, [*lines, "", Table(rows, names)])


@command(186)
def steer(
    lm: LanguageModel,
    prompt: str,
    toward: File | None = None,
    away: File | None = None,
    direction: File | None = None,
    layer: Name = "all",
    how: HowFound = "means",
    strength: float = 2.0,
    out: File | None = None,
) -> CommandOutput:
    """What a model says with a direction between two lists of texts in its stream.

    Args:
        prompt: what the model goes on with.
        toward: texts that the direction leads to, one in each line.
        away: texts that it leads away from; equally many are pairs.
        direction: instead of texts: a GGUF control vector, as llama.cpp and repeng have.
        layer: the block after which it is added; default: all.
        strength: how often the spread of the texts along it is added; 0 changes nothing.
        out: write the direction as a GGUF control vector; llama.cpp takes none after block 0.
    """
    way = _direction(lm, toward, away, direction, layer, how)
    steered = lm.steer(prompt, way.name, strength)
    written: Lines = []
    if out is not None:
        lm.write_direction(way.name, Path(out))
        if 0 in way.vectors:
            written = [
                f"{out} opens in llama.cpp, which takes no vector after block 0 and leaves that "
                "one out; gptviz reads it too."
            ]
    _, plain, text = steered.texts
    if math.isnan(way.separated):
        apart = ""
    else:
        apart = f"It tells {way.separated:.1%} of the held-out texts apart. "
    rows = [("without it", plain.strip()), (f"strength {strength:g}", text.strip())]
    lines: Lines = [
        Table(rows),
        steered.said,
        f"{apart}As an edit of all pages it is {way.edit(strength)}.",
        *written,
    ]
    return CommandOutput({"text": text, "plain": plain, "separation": way.separated}, lines)


def _direction(
    lm: LanguageModel,
    toward: str | None,
    away: str | None,
    direction: str | None,
    layer: str,
    how: HowFound,
) -> Direction:
    """The direction that the options of `steer` name. A UsageError if they name none, or two."""
    from gptviz.text import read_corpus

    if direction is not None and toward is None and away is None:
        return lm.read_direction(direction)
    if direction is not None or toward is None or away is None:
        raise UsageError(
            "give two lists of texts with --toward FILE and --away FILE, or a control vector with "
            "--direction FILE"
        )
    lists = [lines_of(read_corpus(path).text) for path in (toward, away)]
    if layer != "all" and not layer.isdecimal():
        raise UsageError(f"--layer is {layer}; it is all, or the number of a block, counted from 0")
    return lm.direction(
        *lists, block=None if layer == "all" else int(layer), how=how, name=Path(toward).stem
    )


@command(
    200,
    pairs=Pairs(
        "patch",
        "clean, corrupted, right, wrong",
        "which share of the answer each piece restores",
        ("prompt", "corrupted"),
    ),
)
def patch(
    lm: LanguageModel,
    prompt: str,
    corrupted: str,
    right: str | None = None,
    wrong: str | None = None,
    what: Name = "resid_pre",
    preview: bool = False,
) -> CommandOutput:
    """Put pieces of what a model computed for a clean prompt into its pass over a corrupted one:
    how much of the answer comes back?

    Args:
        prompt: the clean prompt.
        corrupted: the corrupted prompt, with as many tokens.
        right: the right answer; default: the likeliest after the clean prompt.
        wrong: the wrong answer; default: the likeliest after the corrupted prompt.
        what: what is put in, by block: resid_pre, resid_mid, resid_post, attention.out or mlp.out
            at each position; attention.z, attention.pattern, attention.q, attention.k or
            attention.v of each head; dictionary.NAME, each feature of a dictionary.
        preview: guess all patches from a few backward passes, and check that with some patches.
    """
    from gptviz.interp.changing import attribution_patching
    from gptviz.interp.changing.patched_features import patch_named
    from gptviz.language_model.core import answer_space_of

    pair = lm.pair(prompt, corrupted, right, wrong)
    patched = (
        attribution_patching.preview(lm.model, pair, [what])[what]
        if preview
        else patch_named(lm.model, pair, what)
    )
    ids = (pair.clean_source if patched.quantity.in_encoder else None) or pair.clean
    patched = patched.labelled([lm.tokenizer.label(i) for i in ids])
    answers = [answer_space_of(lm).text(each) for each in (pair.right, pair.wrong)]
    content = {"what": patched.quantity.name, "exact": not preview}
    content |= pick_values(patched, "correlation", "checked", "is_trusted") if preview else {}
    content |= {
        "right": answers[0],
        "wrong": answers[1],
        **pick_values(patched, "clean", "corrupted"),
    }
    content |= {"by": patched.places.name, "places": patched.places.labels}
    content |= {"restored": patched.shares, "answers": patched.answers}
    after = f"{patched.clean:.3f} after the clean prompt, {patched.corrupted:.3f} corrupted"
    return CommandOutput(
        content,
        [
            f"logit of {answers[0]!r} minus logit of {answers[1]!r}: {after}",
            *_strongest_patches(patched),
        ],
    )


def _strongest_patches(patched: Patched) -> Lines:
    """The patches that restore most, a line for each; none of a preview that is not to be
    trusted.
    """
    from gptviz.interp.changing.attribution_patching import TRUSTED, Preview

    if not patched.is_defined:
        return ["both prompts have the same answer, so there is nothing to restore"]
    lines: Lines = []
    if isinstance(patched, Preview):
        lines.append(f"preview: {patched.agreement}")
        if not patched.is_trusted:
            return [
                *lines,
                f"it is shown from a correlation of {TRUSTED} on: leave --preview out to compute "
                "every patch",
            ]
    shares = patched.shares.tolist()
    by = patched.places.name
    labels = patched.places.labels
    cells = sorted(
        (-share, block, place)
        for block, row in enumerate(shares)
        for place, share in enumerate(row)
    )
    where = [
        f"{place} {label}" if by == "position" else label for place, label in enumerate(labels)
    ]
    rows = [
        (f"{-share:8.1%}", f"block {patched.first + block}, {by} {where[place]}")
        for share, block, place in cells[:MOST_PATCHES]
    ]
    return [
        *lines,
        f"{patched.quantity.title}: the share of it that a patch restores, largest first",
        Table(rows),
    ]
