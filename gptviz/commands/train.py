"""The command `train`: a run, from its plan to its end."""

from __future__ import annotations

import argparse
import contextlib
import math
import shlex
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from gptviz.settings.fields import described, field_infos
from gptviz.settings.known_names import name_known
from gptviz.train.recipe import Recipe

from .common import Parser, UsageError, field_and_value, nats
from .interrupting import stop_on_interrupt
from .options import Name, command, taken_values

if TYPE_CHECKING:
    import torch

    from gptviz.data.source import Source
    from gptviz.runs.experiments import Plan
    from gptviz.runs.names import Claim
    from gptviz.text import Tokenizer
    from gptviz.train.distributed import World

Field = Annotated[str, described("FIELD=VALUE")]


def _more(this: Parser) -> None:
    about = "a tokenizer.json, or GPT-2's encoder.json and vocab.bpe, to use as it is"
    this.add_argument("--tokenizer", nargs="+", metavar="FILE", help=about)
    this.more_help = _fields_help
    _add_recipe(this.add_argument_group("recipe", "Unless you give them, the values of the plan."))


@command(70, _more, as_json=False)
def train(
    preset: Annotated[str, described("PLAN")] | None = None,
    /,
    *,
    corpus: Annotated[str, described("PATH")] | None = None,
    name: Name | None = None,
    replace: bool = False,
    resume: Name | None = None,
    from_: Name | None = None,
    set_: Sequence[Field] = (),
    task: Sequence[Field] = (),
    store: Literal["float32", "float16"] = "float32",
    root: Annotated[Path, described("ROOT")] | None = None,
    options: argparse.Namespace,
) -> None:
    """Train a model; Ctrl-C stops and keeps it.

    Args:
        preset: an experiment: an architecture, its data and its recipe.
        corpus: a text file, tiny-shakespeare, python-reference, or a task by name; for a classifier
            a CSV file with the columns text and label, a folder with a file of lines for each
            label, or opinions; for an encoder–decoder a file with a source and its answer in each
            line, separated by a tab or a comma, or dates, numbers or mirror.
        name: what to call the model; default: the plan's name, with a number where that is in use.
        replace: delete your own model of this name, or hide the shipped one.
        resume: resume a run that was stopped, paused or killed.
        from_: begin with the weights and the tokenizer of this model.
        set_: change the architecture, such as n_layer=2: see below.
        task: change a task that generates its data, such as nurse=10: see below.
        store: type of the stored weights.
        root: where to make the model's folder; default: among your own models.
    """
    from gptviz.model.devices import device
    from gptviz.runs import checkpoints
    from gptviz.runs.experiments import PLANS
    from gptviz.runs.names import claim_name
    from gptviz.train.distributed import join_processes, local_rank

    if (preset is None) == (resume is None):
        raise UsageError("train takes the name of a plan, or --resume NAME, one of the two")
    if resume and (given := _given_option(options)):
        raise UsageError(
            f"--resume continues a run with its own settings: leave {given} out, or begin another "
            "run"
        )
    if preset and preset not in PLANS:
        raise UsageError(f"no plan named {preset!r}{name_known(preset, PLANS)}")
    on = device(options.device, local_rank())
    with join_processes(on) as world, contextlib.ExitStack() as held:
        claim = None
        if resume:
            at_root = root is not None
            if at_root:
                folder = checkpoints.destination(resume, root)
            else:
                folder = checkpoints.find(resume)
            checkpoints.read_config(folder)
        else:
            called = str(preset) if name is None else name
            if world.is_main:
                # Held until training ends: no other process can replace the run between its
                # preparation and its first step.
                or_next = name is None and not replace
                try:
                    claim = held.enter_context(
                        claim_name(called, root, replace=replace, or_next=or_next)
                    )
                except checkpoints.NameInUseError as error:  # its last words are "or replace it"
                    raise UsageError(f"{error} (--replace)") from None
                _prepare(options, claim, on, world)
                _explain_name(called, claim, root)
            called = world.broadcast_text(called if claim is None else claim.name, on)
            folder = checkpoints.destination(called, root)
        _watch(folder, on, world, claim)


def _fields_help() -> str:
    """Every field of the architecture that --set changes, with its choices, and every field of a
    task that --task changes.
    """
    from gptviz.model import Config
    from gptviz.text import TASKS

    lines = ["", "architecture, changed by --set:"]
    for name, info in field_infos(Config).items():
        lines += textwrap.wrap(
            f"{name}: {info.help}", 100, initial_indent="  ", subsequent_indent="      "
        )
        for choice in info.choices:
            what = info.about_choices[choice]
            line = f"{choice}: {what.about} {what.equation}".rstrip()
            lines += textwrap.wrap(
                line, 100, initial_indent="      - ", subsequent_indent="        "
            )
    lines += ["", "tasks, changed by --task:"]
    for name, task in TASKS.items():
        for field, info in field_infos(task).items():
            lines += textwrap.wrap(
                f"{name}, {field}: {info.help}",
                100,
                initial_indent="  ",
                subsequent_indent="      ",
            )
    return "\n".join([*lines, ""])


def _add_recipe(group: argparse._ArgumentGroup) -> None:
    """Add an option for every setting of a recipe."""
    for name, info in field_infos(Recipe).items():
        option = f"--{name.replace('_', '-')}"
        group.add_argument(option, help=info.help, **taken_values(info))


def _given_option(options: argparse.Namespace) -> str | None:
    """The first option that describes a new run, None if there is none."""
    describing = [
        "name",
        "corpus",
        "task",
        "from_",
        "set_",
        "tokenizer",
        "replace",
        *(field.name for field in fields(Recipe)),
    ]
    given = (
        name
        for name in describing
        if getattr(options, name) not in (None, []) and getattr(options, name) is not False
    )
    name = next(given, None)
    return name and f"--{name.rstrip('_').replace('_', '-')}"


def _explain_name(wanted: str, claim: Claim, root: Path | None) -> None:
    """Say how the run is called where that is not the name of its plan, and what it hides."""
    from gptviz.runs import checkpoints

    if claim.name != wanted:
        print(
            f"the run is called {claim.name}, since the name {wanted} is in use (--name gives "
            "another name, --replace replaces "
            "that model)"
        )
    elif root is None and claim.name in checkpoints.hidden_checkpoints():
        print(checkpoints.about_hiding(claim.name, claim.folder))


def _prepare(options: argparse.Namespace, claim: Claim, on: torch.device, world: World) -> None:
    """Write the run that the options describe."""
    from gptviz.runs.experiments import PLANS

    plan = PLANS[options.preset]
    given = {
        field.name: getattr(options, field.name)
        for field in fields(Recipe)
        if getattr(options, field.name) is not None
    }
    if "steps" in given or "minutes" in given:
        given = {"steps": None, "minutes": None} | given
    recipe = replace(plan.recipe, **given)
    world.shard(recipe.batch_size)
    if options.tokenizer:
        tokenizer = _tokenizer(*options.tokenizer)
    else:
        tokenizer = None
    plan.prepare(
        claim.name,
        source=_source(options, plan),
        recipe=recipe,
        changes=dict(map(field_and_value, options.set_)),
        tokenizer=tokenizer,
        begin=options.from_,
        about={
            "preset": options.preset,
            "command": shlex.join(["python", "-m", "gptviz", *options.arguments]),
        },
        store=options.store,
        claim=claim,
        device=on,
    )


def _source(options: argparse.Namespace, plan: Plan) -> Source | None:
    """The data that --corpus names, or else those of the plan, with what --task sets in them; None
    where neither is given.
    """
    from gptviz.data.registry import source_of_path
    from gptviz.data.text import TaskSource
    from gptviz.text import task

    if options.corpus is None:
        source = None
    else:
        source = source_of_path(options.corpus, plan.config.kind, plan.fraction)
    if not options.task:
        return source
    base = plan.source() if source is None else source
    if not isinstance(base, TaskSource):
        raise UsageError(
            f"--task sets what a task generates, and {base.title} is none: leave it out"
        )
    fields = dict(field_and_value(text, "--task", "nurse=10") for text in options.task)
    return TaskSource(task(base.task.name, **base.task.settings() | fields))


def _tokenizer(*files: str) -> Tokenizer:
    """The tokenizer in one file, or in GPT-2's two."""
    from gptviz.text import BPETokenizer

    if len(files) > 2:
        raise UsageError(
            "--tokenizer takes a tokenizer.json, or GPT-2's encoder.json and vocab.bpe"
        )
    try:
        if len(files) == 1:
            return BPETokenizer.from_file(*files)
        return BPETokenizer.from_gpt2(*files)
    except ValueError as error:
        raise UsageError(f"{' '.join(files)}: {error}") from None


def _watch(folder: Path, device: torch.device, world: World, claim: Claim | None) -> None:
    """Train the run in `folder` and show a progress bar, losses and samples."""
    from tqdm import tqdm

    from gptviz.machine.memory import keep_memory
    from gptviz.runs import checkpoints, training
    from gptviz.runs.status import read_status
    from gptviz.train.engine import Engine
    from gptviz.train.trainer import Evaluated, Stepped

    def show(text: str) -> None:
        if world.is_main:
            tqdm.write(text, file=sys.stdout)
            sys.stdout.flush()  # so that a log file has it now; the bar is for terminals only

    keep_memory()
    # the training, with a line for each thing that happens
    bar = tqdm(
        total=100.0,
        bar_format="{l_bar}{bar}| {postfix}",
        file=sys.stderr,
        disable=None if world.is_main else True,
    )
    running = math.nan
    if checkpoints.read_config(folder).kind == "classifier":
        what = "text"
    else:
        what = "token"
    goes_on = f"train --resume {folder.name}"
    with contextlib.closing(bar), stop_on_interrupt(goes_on, show) as stop_requested:
        for event in training.train(
            folder, device=device, world=world, claim=claim, stop_requested=stop_requested
        ):
            if isinstance(event, Engine):
                show(f"{folder.name} on {device}: {event.why}")
                for note in checkpoints.read_card(folder).notes:
                    show(note)
            elif isinstance(event, Stepped):
                if math.isnan(running):
                    running = event.loss
                else:
                    running = 0.98 * running + 0.02 * event.loss
                bar.n = round(100 * event.progress, 1)
                rate = f"{event.tokens_per_second:,.0f} tokens/s, {event.seconds_left:,.0f} s left"
                bar.set_postfix_str(f"step {event.step:,}, loss {running:.3f}, {rate}")
            elif isinstance(event, Evaluated):
                if math.isnan(running):
                    trained = ""
                else:
                    trained = f"training {nats(running)}, "
                accuracy = f", accuracy {event.evaluation.accuracy:.1%}"
                show(
                    f"step {event.step:,}: {trained}validation {nats(event.loss)} "
                    f"nats/{what}{accuracy}"
                )
            else:
                show("    " + event.text.strip().replace("\n", "\n    "))

    # how it ended
    status = read_status(folder)
    if status.message:
        show(status.message)
    show(f"{status.state}: kept as {folder}")
