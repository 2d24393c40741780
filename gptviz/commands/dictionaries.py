"""The commands of dictionaries: fit one to a model, and show which of its features are active in a
prompt.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .common import UsageError, nats, text_of
from .interrupting import stop_on_interrupt
from .options import File, Name, command
from .printing import CommandOutput, Table

if TYPE_CHECKING:
    from gptviz.interp.dictionaries.dictionary import Dictionary
    from gptviz.interp.dictionaries.quality import Quality
    from gptviz.language_model import LanguageModel
    from gptviz.language_model.core import LoadedModel
    from gptviz.language_model.fits import Kept
    from gptviz.runs.status import Status

MOST_FEATURES = 6  # that are listed of a token


@command(187)
def dictionary(
    lm: LanguageModel | None = None,
    block: int | None = None,
    size: int | None = None,
    kind: Literal["topk", "relu"] = "topk",
    k: int = 16,
    cost: float = 0.4,
    steps: int = 2_000,
    seed: int = 0,
    target: Literal["stream", "mlp"] = "stream",
    corpus: File | None = None,
    called: Name | None = None,
    resume: Name | None = None,
    read: File | None = None,
    out: File | None = None,
    *,
    options: argparse.Namespace,
) -> CommandOutput:
    """Fit a dictionary of sparse features to the stream of a model after a block, or to the output
    of the block's MLP, and keep it; Ctrl-C stops the fit and keeps what it has.

    Args:
        block: the number of the block, counted from 0.
        size: how many features it has; default: four times as many as the stream has numbers.
        kind: with topk the most active features count at each token; with relu all that are active,
            and their sum has a cost.
        k: with topk, how many features count at a token.
        cost: with relu, what the sum of all activations costs beside the error.
        steps: how many steps it is fitted for.
        seed: decides where the features begin.
        target: what its features give back: the stream after the block, or with mlp what the
            block's MLP gives, from what it reads (a transcoder, which Circuit draws).
        corpus: a text file that it is fitted to, without its last fifth; default: the data that the
            model was trained on.
        called: its name; default: after its block.
        resume: go on with a fit that was stopped, paused or killed; it has its own model and
            settings.
        read: instead of fitting one, a folder that SAELens wrote.
        out: write it too: to a file of this name that ends with .safetensors, in float16; else to a
            folder, as SAELens does.
    """
    from gptviz.language_model import fits
    from gptviz.runs.fits import find

    given = [each is not None for each in (block, read, resume)]
    if sum(given) != 1 or (lm is None) != (resume is not None):
        raise UsageError(
            "give a model and the block whose stream a dictionary is fitted to with --block N, or "
            "a folder with --read FOLDER; or go on with a fit by --resume NAME alone"
        )
    if read is not None and lm is not None:
        fresh = lm.read_dictionary(read, called)
        return _described(lm, fresh, lm.dictionary_quality(fresh.name, text_of(corpus)), out)
    if lm is not None and block is not None:
        lm = lm.original
        folder = fits.prepare_fit(
            lm,
            block,
            size,
            kind,
            k=k,
            cost=cost,
            steps=steps,
            seed=seed,
            text=text_of(corpus),
            name=called,
            target=target,
        )
        opened: LoadedModel = lm
    else:
        folder = find(str(resume))
        opened = fits.model_of(folder, options.device)
    kept, status = _watch(folder, opened)
    about = {"run": folder.name, "state": status.state}
    if kept is None:
        return CommandOutput(about, [f"{folder.name}: {status.state} before its first step"])
    shown = _described(opened, kept.dictionary, kept.quality, out)
    ended = f"{status.state}: the fit is kept as {folder}"
    return CommandOutput(shown.content | about, [*shown.lines, ended])


def _watch(folder: Path, lm: LoadedModel) -> tuple[Kept | None, Status]:
    """Fit the dictionary in `folder`; what is kept at the end, and how it ended. A bar says how far
    it is.
    """
    from gptviz.language_model import fits
    from gptviz.machine import progress
    from gptviz.machine.memory import keep_memory
    from gptviz.runs.status import read_status

    def show(text: str) -> None:
        if sys.stderr.isatty():
            print(f"gptviz: {text}", file=sys.stderr, flush=True)

    keep_memory()
    show(fits.said_before(folder, lm))
    kept = None
    with stop_on_interrupt(f"dictionary --resume {folder.name}", show) as stop_requested:
        for event in fits.run_fit(folder, lm, stop_requested=stop_requested):
            if isinstance(event, fits.Kept):
                kept = event
            else:
                progress.report(event.step, fits.read_fit(folder).steps, "step", doing=event.words)
    return kept, read_status(folder)


def _described(
    lm: LoadedModel, fresh: Dictionary, quality: Quality, out: str | None
) -> CommandOutput:
    """What a dictionary is and how good it is. It is written to `out`, if that is given."""
    from gptviz.language_model.dictionaries import write_dictionary

    if out is not None:
        write_dictionary(lm, fresh.name, out)
    shown = quality_shown(quality)
    lines = [
        f"{fresh.name}: {fresh.said}",
        *shown.lines,
        *([fresh.support] if fresh.support else []),
        f"As an edit of all pages a feature is {fresh.edit(0, 4)}.",
    ]
    return CommandOutput({"name": fresh.name} | shown.content, lines)


@command(189)
def dictionaries(lm: LanguageModel, corpus: File | None = None) -> CommandOutput:
    """The dictionaries of a model side by side: how large, how sparse and how good they are.

    Args:
        corpus: a text file whose last fifth they are measured over; default: the data held out of
            training.
    """
    content: list[dict[str, Any]] = []
    for name, quality in lm.compare_dictionaries(text_of(corpus)).items():
        one = lm.dictionary(name)
        sizes: dict[str, Any] = {"name": name, "target": one.target, "block": one.block}
        sizes |= {"features": len(one.encoder)}
        content.append(sizes | asdict(quality) | {"recovered": quality.recovered})
    rows = [
        (
            each["name"],
            each["of"] if each["target"] == "mlp" else f"the stream after block {each['block']}",
            f"{each['features']:,}",
            f"{each['l0']:.1f}",
            f"{each['explained']:.1%}",
            f"{each['dead']:.1%}",
            nats(each["loss_with"]),
        )
        for each in content
    ]
    heads = ("dictionary", "of", "features", "active", "explained", "dead", "loss (nats)")
    return CommandOutput(content, [Table(rows, heads) if rows else f"{lm.name} has no dictionary."])


def quality_shown(quality: Quality) -> CommandOutput:
    """How good a dictionary is."""
    losses = quality.labelled()
    rows = [
        (name, nats(float(loss)))
        for name, loss in zip(losses.axes[0].labels, losses.values, strict=True)
    ]
    said = (
        f"{quality.explained:.1%} of the variance of {quality.of} by {quality.l0:.1f} active "
        "features at a token; "
        f"{quality.dead:.1%} of the features are dead; {quality.recovered:.2%} of the loss is "
        "recovered"
    )
    return CommandOutput(
        asdict(quality) | {"recovered": quality.recovered},
        [said, Table(rows, ("in its place", "loss (nats)"))],
    )


@command(188)
def features(lm: LanguageModel, prompt: str, dictionary: Name | None = None) -> CommandOutput:
    """Which features of a dictionary are active at each token of a prompt.

    Args:
        dictionary: its name; default: the first that was fitted to the model.
    """
    table = lm.features(prompt, dictionary)
    tokens, numbers = (axis.labels for axis in table.axes)
    active = [
        [(number, float(value)) for number, value in zip(numbers, row, strict=True) if value > 0]
        for row in table.values
    ]
    content = [
        {"token": token, "feature": int(number), "value": value}
        for token, some in zip(tokens, active, strict=True)
        for number, value in some
    ]
    rows = []
    for token, some in zip(tokens, active, strict=True):
        most = sorted(some, key=lambda feature: -feature[1])[:MOST_FEATURES]
        rows.append(
            (token, str(len(some)), ", ".join(f"{number} ({value:.2f})" for number, value in most))
        )
    return CommandOutput(content, [Table(rows, ("token", "active", "the most active features"))])
