"""The command line: the work of the app without a browser. `python -m gptviz` lists the commands."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import gptviz
from gptviz.location import APP

from . import terminal
from .fields import field_infos
from .train.recipe import Recipe

if TYPE_CHECKING:
    import torch

    from gptviz.language_model import LanguageModel
    from gptviz.text import Encoding, Tokenizer

    from .data.source import Source
    from .generate.sampling import Sampling
    from .runs.imports import Offer
    from .runs.names import Claim
    from .train.distributed import World


# The help names the command as the user called it.
PROGRAM = "gptviz" if Path(sys.argv[0]).stem == "gptviz" else "python -m gptviz"
MOST_BEAMS = 64  # every step of a beam search takes memory and time for each


class UsageError(Exception):
    """An error that the user can correct, shown in one line."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line.

    Attributes:
        more_help: the end of its help text; called only when the help is printed, since it may import torch.
    """

    more_help: Callable[[], str] | None = None

    def format_help(self) -> str:
        return super().format_help() + (self.more_help() if self.more_help else "")

    def error(self, message: str) -> Any:
        self.exit(2, f"gptviz: {_one_line(message)} (see {self.prog} --help)\n")


def _one_line(message: object) -> str:
    return terminal.escaped(" ".join(str(message).split()))


def parser() -> Parser:
    """The parser of the command line, with every command and option."""
    main = Parser(prog=PROGRAM, description="Open, train, watch and take apart a transformer.")
    main.add_argument("--version", action="version", version=f"gptviz {gptviz.__version__}")
    commands = main.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, run: Any, summary: str, *, as_json: bool = True, on_device: bool = True) -> Parser:
        added = commands.add_parser(name, help=summary, description=summary)
        added.set_defaults(run=run)
        if as_json:
            added.add_argument("--json", action="store_true", help="print JSON")
        if on_device:
            added.add_argument("--device", help="cpu, cuda or mps; default: the fastest there is")
        return added

    _add_app(command)
    command("models", models, "List the models that can be opened.", on_device=False)
    _add_describe(command)
    _add_import(command)
    _add_export(command)
    _add_train(command)
    _add_generate(command)
    _add_classify(command)
    _add_evaluate(command)
    return main


def _add_app(command: Callable[..., Parser]) -> None:
    this = command("app", app, "Open the app in a browser.", as_json=False, on_device=False)
    this.add_argument("options", nargs="*", metavar="OPTION", help="options of 'streamlit run', for example --server.port=8600")


def _add_describe(command: Callable[..., Parser]) -> None:
    this = command("describe", describe, "List the layers of a model and their parameters.", on_device=False)
    this.add_argument("name", nargs="?", metavar="NAME", help="a model, as listed by 'models'")
    this.add_argument("--preset", metavar="PRESET", help="an architecture instead of a model")


def _add_import(command: Callable[..., Parser]) -> None:
    this = command(
        "import",
        import_model,
        "Open a model that another program made, whose files stay where they are; or unpack a zip file with a model.",
        on_device=False,
    )
    this.add_argument(
        "source",
        metavar="SOURCE",
        help="a folder with config.json, weights and tokenizer, as model hubs have them; a .gguf file; nanoGPT's ckpt.pt; the "
        "name of a model on the hub; a zip file that 'export' wrote; or, with --map, a .pt or .safetensors file with the tensors "
        "of any GPT",
    )
    this.add_argument("--name", help="what to call the model; default: the name of the folder or file")
    this.add_argument(
        "--map",
        type=Path,
        metavar="FILE",
        help="a JSON file that says which tensor is which (see README.md); without it, a first draft of one is printed",
    )
    this.add_argument("--draft", type=Path, metavar="FILE", help="write that draft into a file instead")
    this.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="what the tensors do not tell, such as n_head=6; 'train --help' lists all fields",
    )


def _add_export(command: Callable[..., Parser]) -> None:
    this = command("export", export_model, "Write a model as one zip file, or as another program keeps models.", on_device=False)
    this.add_argument("name", metavar="NAME", help="a model, as listed by 'models'")
    this.add_argument(
        "--format",
        choices=["zip", "transformers", "nanogpt"],
        default="zip",
        help="zip: one file that 'import' opens; transformers: a folder as the Hugging Face hub has them; nanogpt: a folder with "
        "ckpt.pt and, for characters, meta.pkl; default: zip",
    )
    this.add_argument("--to", type=Path, metavar="PATH", help="the file or folder to make; default: here, by the model's name")
    this.add_argument("--without-snapshots", action="store_true", help="leave the snapshots of its training out of the zip file")


def _add_train(command: Callable[..., Parser]) -> None:
    this = command("train", train, "Train a model; Ctrl-C stops and keeps it.", as_json=False)
    this.add_argument("preset", nargs="?", metavar="PLAN", help="an experiment: an architecture, its data and its recipe")
    this.add_argument(
        "--corpus",
        metavar="PATH",
        help="a text file, tiny-shakespeare, python-reference, or a task by name; for a classifier a CSV file with the columns "
        "text and label, a folder with a file of lines for each label, or opinions; for an encoder–decoder a file with a source "
        "and its answer in each line, separated by a tab or a comma, or dates, numbers or mirror",
    )
    this.add_argument("--name", help="what to call the model; default: the plan's name, with a number where that is in use")
    this.add_argument("--replace", action="store_true", help="delete your own model of this name, or hide the shipped one")
    this.add_argument("--resume", metavar="NAME", help="resume a run that was stopped, paused or killed")
    this.add_argument("--from", dest="begin", metavar="NAME", help="begin with the weights and the tokenizer of this model")
    this.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="change the architecture, such as n_layer=2: see below"
    )
    this.more_help = _architecture_help
    this.add_argument(
        "--tokenizer", nargs="+", metavar="FILE", help="a tokenizer.json, or GPT-2's encoder.json and vocab.bpe, to use as it is"
    )
    this.add_argument("--store", choices=["float32", "float16"], default="float32", help="type of the stored weights")
    this.add_argument("--root", type=Path, help="where to make the model's folder; default: among your own models")
    _add_recipe(this.add_argument_group("recipe", "Unless you give them, the values of the plan."))


def _add_precision(this: Parser) -> None:
    this.add_argument(
        "--precision",
        choices=["stored", "float32", "bfloat16", "float16"],
        default="stored",
        help="what weights are multiplied in; default: what the model's file has, where this machine multiplies in it",
    )


def _add_generate(command: Callable[..., Parser]) -> None:
    this = command("generate", generate, "Continue a prompt; with an encoder–decoder, answer it.")
    this.add_argument("name", metavar="NAME")
    _add_precision(this)
    this.add_argument("--prompt", required=True, metavar="TEXT")
    this.add_argument("--max-new-tokens", type=int, default=200, metavar="N")
    this.add_argument("--go-on", action="store_true", help="write on where the model ends its text")
    this.add_argument("--greedy", action="store_true", help="always the likeliest token; the same as --temperature 0")
    this.add_argument(
        "--temperature",
        type=float,
        metavar="T",
        help=(
            "below 1 likely tokens become likelier, above 1 all become more alike; default 1, for an encoder–decoder 0 (always "
            "the likeliest token)"
        ),
    )
    this.add_argument("--top-k", type=int, metavar="K", help="draw from the K likeliest tokens")
    this.add_argument("--top-p", type=float, metavar="P", help="draw from the fewest tokens whose probabilities add up to P")
    this.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="decides the random numbers: the same seed writes the same text; default 0",
    )
    this.add_argument("--beams", type=int, metavar="N", help="an encoder–decoder's answers, found by a beam search of width N")


def _add_classify(command: Callable[..., Parser]) -> None:
    this = command("classify", classify, "Predict the label of a text.")
    this.add_argument("name", metavar="NAME")
    _add_precision(this)
    this.add_argument("--text", required=True, metavar="TEXT")


def _add_evaluate(command: Callable[..., Parser]) -> None:
    this = command("evaluate", evaluate, "The loss of a model on held-out data.")
    this.add_argument("name", metavar="NAME")
    _add_precision(this)
    this.add_argument(
        "--corpus",
        metavar="PATH",
        help="a text file, or a corpus by name; for a classifier texts with labels, for an encoder–decoder pairs, as in train; "
        "default: what it was trained on",
    )
    this.add_argument(
        "--split", choices=["validation", "all"], default="validation", help=("the held-out part of the data, or all of it")
    )


def _architecture_help() -> str:
    """Every field of the architecture that --set changes, with its choices."""
    from gptviz.model import Config

    lines = ["", "architecture, changed by --set:"]
    for name, info in field_infos(Config).items():
        lines += textwrap.wrap(f"{name}: {info.help}", 100, initial_indent="  ", subsequent_indent="      ")
        for choice in info.choices:
            what = info.about_choices[choice]
            line = f"{choice}: {what.about} {what.equation}".rstrip()
            lines += textwrap.wrap(line, 100, initial_indent="      - ", subsequent_indent="        ")
    return "\n".join([*lines, ""])


def _add_recipe(group: argparse._ArgumentGroup) -> None:
    """Add an option for every setting of a recipe."""
    for name, info in field_infos(Recipe).items():
        option = f"--{name.replace('_', '-')}"
        if info.kind == "choice":
            group.add_argument(option, choices=info.choices, help=info.help)
        else:
            is_whole = info.kind == "whole"
            group.add_argument(option, type=int if is_whole else float, metavar="N" if is_whole else "X", help=info.help)


def app(options: argparse.Namespace) -> None:
    """The command `app [OPTION …]`."""
    command = [sys.executable, "-m", "streamlit", "run", str(APP), *options.options]
    if sys.platform == "win32":  # where exec would give the terminal back before the app has ended
        sys.exit(subprocess.call(command))
    os.execv(sys.executable, command)  # the server replaces this process, so that a signal to the command reaches the server


def models(options: argparse.Namespace) -> None:
    """The command `models [--json]`."""
    from .runs import checkpoints

    hidden = checkpoints.hidden()
    rows = []
    for name, folder in checkpoints.folders().items():
        row = {"name": name, **_row(folder)} | ({"hides": str(hidden[name])} if name in hidden else {})
        rows.append(row)
    if options.json:
        _print_json(rows)
        return
    for row in rows:
        quality = f"   validation loss {_nats(row['validation_loss'])}" if "validation_loss" in row else ""
        family = f"   {row['family']}, licence {row.get('licence', 'not named')}" if "family" in row else ""
        about = row.get("error") or f"{row['parameters']:>12,} parameters{quality}{family}"
        notes = "   it diverged" * ("diverged" in row) + "   yours; it hides the one that came with gptviz" * ("hides" in row)
        print(f"{row['name']:<28} {about}{notes}")


def _row(folder: Path) -> dict[str, Any]:
    """What `models` says about the model in `folder`: its size and its result, or what is wrong with its files."""
    from gptviz.model import parameter_count

    from .runs import checkpoints
    from .runs.divergence import diverged

    try:
        card, config = checkpoints.read_card(folder), checkpoints.read_config(folder)
        checkpoints.check_weights(folder, config)
    except checkpoints.CheckpointError as error:
        return {"error": str(error)}
    known = {"preset": card.plan, "corpus": card.corpus, "validation_loss": card.validation_loss}
    known |= {"family": card.family, "imported_from": card.imported_from, "licence": card.licence}
    told = {key: value for key, value in known.items() if value is not None}
    problem = diverged(card, config)
    return {"parameters": parameter_count(config), **told} | ({"diverged": problem} if problem else {})


def _nats(loss: float) -> str:
    return f"{loss:.4f}" if loss < 1e6 else f"{loss:.4g}"  # a run that diverges may have a loss of forty digits


def _opened(options: argparse.Namespace) -> LanguageModel:
    """The model that the options name; where it hides a shipped one, that is said on stderr."""
    from .runs import checkpoints

    folder = checkpoints.find(options.name)  # a misspelt name is an error here, and not looked for on the hub
    if options.name in checkpoints.hidden():
        print(f"gptviz: {checkpoints.about_hiding(options.name, folder)}", file=sys.stderr)
    return gptviz.load(options.name, options.device, precision=options.precision)


def import_model(options: argparse.Namespace) -> None:
    """The command `import SOURCE [--name N] [--map FILE] [--draft FILE] [--set FIELD=VALUE …] [--json]`."""
    from .memory import size
    from .runs import checkpoints, imports

    def offered(offer: Offer) -> None:
        licence = f", licence {offer.licence}" if offer.licence else ""
        print(f"{offer.name}: {size(offer.missing)} are fetched from the hub{licence}; Ctrl-C stops", file=sys.stderr)

    said = imports.said_of(options.map, dict(map(_setting, options.set)))
    if options.draft:
        _write_draft(options, said)
        return
    told = [*(["--map", str(options.map)] if options.map else []), *(word for one in options.set for word in ("--set", one))]
    command = shlex.join(["gptviz", "import", options.source, *told])
    try:
        with imports.bar(options.source) as watch:
            made = imports.import_model(options.source, options.name, said=said, command=command, offered=offered, watch=watch)
    except checkpoints.CheckpointError as error:
        _print_tensors(options, said, str(error))
        raise
    except KeyboardInterrupt:
        print("gptviz: stopped; nothing was imported, and what has arrived is gone on with the next time", file=sys.stderr)
        raise
    if options.json:
        row = {"name": made.folder.name, "family": made.family, "parameters": made.parameters, "notes": list(made.notes)}
        compared = imports.examined(options.source, said) if options.map else None
        _print_json(row | ({} if compared is None else compared.as_json()))
        return
    where = f"stay at {options.source}" if checkpoints.is_reference(made.folder) else f"are in {made.folder}"
    print(f"{made.folder.name}: {made.family}, {made.parameters:,} parameters; its weights {where}")
    for note in made.notes:
        print(note)


def export_model(options: argparse.Namespace) -> None:
    """The command `export NAME [--format F] [--to PATH] [--json]`."""
    from .runs import checkpoints
    from .runs.exports import FORMATS

    folder = checkpoints.find(options.name)
    to = options.to or Path(f"{folder.name}.zip" if options.format == "zip" else f"{folder.name}-{options.format}")
    FORMATS[options.format].write(folder, to, snapshots=not options.without_snapshots)
    if options.json:
        _print_json({"name": options.name, "format": options.format, "path": str(to.absolute())})
        return
    print(f"{options.name} is in {to}")


def _write_draft(options: argparse.Namespace, said: dict[str, Any]) -> None:
    """Write the draft of a mapping into a file of its own."""
    from .runs import imports

    examined = imports.examined(options.source, said)
    if examined is None or examined.draft is None:
        raise UsageError("--draft is for a .pt or .safetensors file with the tensors of any GPT, without --map")
    try:
        with options.draft.open("x", encoding="utf-8") as file:
            file.write(examined.draft.text)
    except FileExistsError:
        raise UsageError(f"{options.draft} is there already: give the draft another name") from None
    for line in examined.draft.remarks():
        print(line)
    print(f"The draft is in {options.draft}: check it, then use it with --map {options.draft}")


def _print_tensors(options: argparse.Namespace, said: dict[str, Any], error: str) -> None:
    """Where a file of tensors could not be opened: what it holds and what does not match, or a draft of its mapping."""
    from .runs import checkpoints, imports

    with contextlib.suppress(checkpoints.CheckpointError):
        examined = imports.examined(options.source, said)
        if examined is None:
            return
        if options.json:
            _print_json({"error": error} | examined.as_json())
            return
        for line in examined.lines():
            print(line)


def describe(options: argparse.Namespace) -> None:
    """The command `describe NAME [--json]`, `describe --preset PRESET [--json]`."""
    from gptviz.model import describe, preset

    from .runs import checkpoints

    if (options.name is None) == (options.preset is None):
        raise UsageError("describe takes the name of a model or --preset PRESET, one of the two")
    config = preset(options.preset) if options.preset else checkpoints.read_config(checkpoints.find(options.name))
    layers = describe(config)
    total = sum(layer.parameters for layer in layers)
    if options.json:
        rows = [{"name": x.name, "kind": x.kind, "parameters": x.parameters, "shapes": x.shapes} for x in layers]
        _print_json({"parameters": total, "layers": rows})
        return
    width = max(len(layer.name) for layer in layers)
    for layer in layers:
        shapes = ", ".join(f"{name} {' × '.join(map(str, shape))}" for name, shape in layer.shapes.items())
        print(f"{layer.name:<{width}} {layer.kind:<16} {layer.parameters:>12,}   {shapes}")
    print(f"{'total':<{width + 17}} {total:>12,}")


def train(options: argparse.Namespace) -> None:
    """The command `train PLAN …`, `train --resume NAME`."""
    from .model.devices import device
    from .runs import checkpoints
    from .runs.experiments import PLANS
    from .runs.names import claimed
    from .train.distributed import joined, local_rank

    if (options.preset is None) == (options.resume is None):
        raise UsageError("train takes the name of a plan, or --resume NAME, one of the two")
    if options.resume and (given := _given(options)):
        raise UsageError(f"--resume continues a run with its own settings: leave {given} out, or begin another run")
    if options.preset and options.preset not in PLANS:
        raise UsageError(f"no plan named {options.preset!r}; there are {', '.join(PLANS)}")
    on = device(options.device, local_rank())
    with joined(on) as world, contextlib.ExitStack() as held:
        claim = None
        if options.resume:
            at_root = options.root is not None
            folder = checkpoints.destination(options.resume, options.root) if at_root else checkpoints.find(options.resume)
            checkpoints.read_config(folder)
        else:
            name = options.preset if options.name is None else options.name
            if world.is_main:
                # Held until training ends: no other process can replace the run between its preparation and its first step.
                or_next = options.name is None and not options.replace
                claim = held.enter_context(claimed(name, options.root, replace=options.replace, or_next=or_next))
                _prepare(options, claim, on, world)
                _explain_name(name, claim, options.root)
            name = world.broadcast_text(name if claim is None else claim.name, on)
            folder = checkpoints.destination(name, options.root)
        _watch(folder, on, world, claim)


def _given(options: argparse.Namespace) -> str | None:
    """The first option that describes a new run, None if there is none."""
    describing = ["name", "corpus", "begin", "set", "tokenizer", "replace", *(field.name for field in fields(Recipe))]
    given = (name for name in describing if getattr(options, name) not in (None, []) and getattr(options, name) is not False)
    name = next(given, None)
    return None if name is None else "--from" if name == "begin" else f"--{name.replace('_', '-')}"


def _explain_name(wanted: str, claim: Claim, root: Path | None) -> None:
    """Say how the run is called where that is not the name of its plan, and what it hides."""
    from .runs import checkpoints

    if claim.name != wanted:
        print(
            f"the run is called {claim.name}, since the name {wanted} is in use (--name gives another name, --replace replaces "
            "that model)"
        )
    elif root is None and claim.name in checkpoints.hidden():
        print(checkpoints.about_hiding(claim.name, claim.folder))


def _prepare(options: argparse.Namespace, claim: Claim, on: torch.device, world: World) -> None:
    """Write the run that the options describe."""
    from .data.registry import source_of_path
    from .runs.experiments import PLANS

    plan = PLANS[options.preset]
    given = {field.name: getattr(options, field.name) for field in fields(Recipe) if getattr(options, field.name) is not None}
    if "steps" in given or "minutes" in given:
        given = {"steps": None, "minutes": None} | given
    recipe = replace(plan.recipe, **given)
    world.shard(recipe.batch_size)
    tokenizer = _tokenizer(*options.tokenizer) if options.tokenizer else None
    plan.prepare(
        claim.name,
        source=None if options.corpus is None else source_of_path(options.corpus, plan.config.kind, plan.fraction),
        recipe=recipe,
        changes=dict(map(_setting, options.set)),
        tokenizer=tokenizer,
        begin=options.begin,
        about={"preset": options.preset, "command": shlex.join(["python", "-m", "gptviz", *options.arguments])},
        store=options.store,
        claim=claim,
        device=on,
    )


def _tokenizer(*files: str) -> Tokenizer:
    """The tokenizer in one file, or in GPT-2's two."""
    from gptviz.text import BPETokenizer

    if len(files) > 2:
        raise UsageError("--tokenizer takes a tokenizer.json, or GPT-2's encoder.json and vocab.bpe")
    try:
        return BPETokenizer.from_file(*files) if len(files) == 1 else BPETokenizer.from_gpt2(*files)
    except ValueError as error:
        raise UsageError(f"{' '.join(files)}: {error}") from None


def _setting(text: str) -> tuple[str, Any]:
    """`FIELD=VALUE`, the value a number, true, false or a word."""
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text} names no value; write --set FIELD=VALUE, as in --set n_layer=2")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _watch(folder: Path, device: torch.device, world: World, claim: Claim | None) -> None:
    """Train the run in `folder` and show a progress bar, losses and samples. Ctrl-C stops it after the step, twice at once."""
    from tqdm import tqdm

    from .runs import checkpoints, training
    from .runs.status import read_status
    from .train.engine import Engine
    from .train.trainer import Evaluated, Stepped

    def show(text: str) -> None:
        if world.is_main:
            tqdm.write(text, file=sys.stdout)
            sys.stdout.flush()  # so that a log file has it now; the bar is for terminals only

    interrupts: list[int] = []

    def interrupted(number: int, frame: object) -> None:
        interrupts.append(number)
        if len(interrupts) > 1:
            raise KeyboardInterrupt
        with contextlib.suppress(RuntimeError):  # the signal may come while another text is being printed
            show(
                "stopping after this step and saving the run (Ctrl-C again stops at once and loses what came after the last save)"
            )

    before = {number: signal.signal(number, interrupted) for number in (signal.SIGINT, signal.SIGTERM)}
    bar = tqdm(total=100.0, bar_format="{l_bar}{bar}| {postfix}", file=sys.stderr, disable=None if world.is_main else True)
    running = math.nan
    what = "text" if checkpoints.read_config(folder).kind == "classifier" else "token"
    try:
        events = training.train(
            folder, device=device, world=world, claim=claim, stop_requested=lambda: "stop" if interrupts else None
        )
        for event in events:
            if isinstance(event, Engine):
                show(f"{folder.name} on {device}: {event.why}")
            elif isinstance(event, Stepped):
                running = event.loss if math.isnan(running) else 0.98 * running + 0.02 * event.loss
                bar.n = round(100 * event.progress, 1)
                rate = f"{event.tokens_per_second:,.0f} tokens/s, {event.seconds_left:,.0f} s left"
                bar.set_postfix_str(f"step {event.step:,}, loss {running:.3f}, {rate}")
            elif isinstance(event, Evaluated):
                trained = "" if math.isnan(running) else f"training {_nats(running)}, "
                accuracy = f", accuracy {event.evaluation.accuracy:.1%}"
                show(f"step {event.step:,}: {trained}validation {_nats(event.loss)} nats/{what}{accuracy}")
            else:
                show("    " + event.text.strip().replace("\n", "\n    "))
    finally:
        bar.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    status = read_status(folder)
    if status.message:
        show(status.message)
    show(f"{status.state}: kept as {folder}")


def generate(options: argparse.Namespace) -> None:
    """The command `generate NAME --prompt TEXT …`."""
    from .generate.generation import until_drawn, without_end
    from .generate.sampling import Sampling

    if options.max_new_tokens < 0:
        raise UsageError(f"--max-new-tokens is {options.max_new_tokens}; it must be 0 or more")
    if options.beams is not None and options.beams > MOST_BEAMS:
        raise UsageError(f"--beams is {options.beams:,}; it must be at most {MOST_BEAMS}")
    temperature = 0.0 if options.greedy else 1.0 if options.temperature is None else options.temperature
    sampling = Sampling(temperature=temperature, top_k=options.top_k, top_p=options.top_p, seed=options.seed)
    lm = _opened(options)
    if lm.model.config.kind == "classifier":
        raise UsageError(f"{options.name} is a classifier and writes no text: use classify {options.name} --text TEXT")
    encoding = lm.tokenizer.encode(options.prompt)
    _warn_of_unknown(encoding)
    if lm.model.config.kind == "encoder-decoder":
        is_asked = any(given is not None for given in (options.temperature, options.top_k, options.top_p))
        _answer(options, lm, sampling if is_asked and temperature else None)
        return
    if options.beams is not None:
        raise UsageError(f"{options.name} continues a text, which has no end: a beam search is for answers, so leave --beams out")
    grown = lm.generation(options.prompt, sampling)
    if not options.json:
        print(options.prompt, end="")
    streams = not options.json and lm.tokenizer.kind in ("characters", "symbols")
    tokens: list[int] = []
    begun = time.perf_counter()
    ends = frozenset() if options.go_on else lm.end_tokens
    for step in until_drawn(islice(grown, options.max_new_tokens), ends):
        tokens.append(int(step.tokens[0]))
        if streams and tokens[-1] not in ends:
            print(lm.tokenizer.piece(tokens[-1]), end="", flush=True)
    rate = len(tokens) / max(time.perf_counter() - begun, 1e-9)
    written, ended = without_end(tokens, ends)
    text = lm.tokenizer.continuation(written)
    if options.json:
        _print_json({"text": text, "tokens": written, "ended": ended, "tokens_per_second": round(rate, 1)})
    else:
        # Tokens of a byte-level vocabulary can end within a character, so their text is printed when it is complete.
        print("" if streams else text)
    if ended and not options.json:
        print(
            f"gptviz: the model ended its text with {lm.tokenizer.label(tokens[-1])}; with --go-on it writes on", file=sys.stderr
        )


def _answer(options: argparse.Namespace, lm: LanguageModel, sampling: Sampling | None) -> None:
    """The answer of an encoder–decoder, drawn or greedy, or those of a beam search with their probabilities."""
    if options.beams is not None and sampling is not None:
        raise UsageError("--beams searches for the likeliest answers: leave --temperature, --top-k and --top-p out")
    longest = min(options.max_new_tokens, lm.model.config.context_length)
    begun = time.perf_counter()
    if options.beams is None:
        tokens, ended = lm.decoded(options.prompt, longest, sampling)
        answer: dict[str, Any] = {"text": lm.tokenizer.decode(tokens), "tokens": tokens, "ended": ended}
        lines = [answer["text"]]
    else:
        beams = lm.beams(options.prompt, options.beams, longest).finished
        rows = [{"text": lm.tokenizer.decode(one.ids), "log_probability": one.total, "ended": one.ended} for one in beams]
        answer = rows[0] | {"tokens": list(beams[0].ids), "beams": rows}
        lines = [f"{math.exp(one.total):>7.2%}  {row['text']}" for one, row in zip(beams, rows, strict=True)]
    rate = len(answer["tokens"]) / max(time.perf_counter() - begun, 1e-9)
    if options.json:
        _print_json(answer | {"tokens_per_second": round(rate, 1)})
        return
    print("\n".join(lines))
    if not answer["ended"]:
        print(f"gptviz: the answer has no end: it was cut after {longest} tokens", file=sys.stderr)


def classify(options: argparse.Namespace) -> None:
    """The command `classify NAME --text TEXT [--json]`."""
    lm = _opened(options)
    if lm.model.config.kind != "classifier":
        raise UsageError(f"{options.name} is not a classifier: use generate {options.name} --prompt TEXT")
    encoding = lm.tokenizer.encode(options.text)
    _warn_of_unknown(encoding)
    if (read := lm.model.config.context_length) < len(encoding.ids):
        units = "words" if lm.tokenizer.kind == "words" else "tokens"
        print(f"gptviz: only the first {read} of {len(encoding.ids):,} {units} are read", file=sys.stderr)
    probabilities = lm.classify(options.text)
    if options.json:
        _print_json({"label": max(probabilities, key=probabilities.__getitem__), "probabilities": probabilities})
        return
    for name, probability in sorted(probabilities.items(), key=lambda item: -item[1]):
        print(f"{probability:>7.2%}  {name}")


def evaluate(options: argparse.Namespace) -> None:
    """The command `evaluate NAME [--corpus PATH] …`."""
    from .train.evaluation import evaluate

    lm = _opened(options)
    source = _evaluated_source(options, lm)
    try:
        data = source.evaluation(lm.model, lm.tokenizer, everything=options.split == "all", labels=lm.labels)
    except ValueError as error:
        raise UsageError(f"{options.name}: {error}") from None
    _warn_of_unknown(lm.tokenizer.encode(data.characters))
    result = evaluate(lm.model, data.batches)
    _check_trained(options.name, result.loss)
    perplexity = math.exp(result.loss)
    if options.json:
        row = {"loss": result.loss, "accuracy": result.accuracy, f"{source.unit}s": result.tokens}
        row |= {share.name: share.value for share in data.shares}
        row |= {"perplexity": perplexity} if source.unit == "token" else {}
        row |= {} if source.floor is None else {"floor": source.floor}
        _print_json(row)
        return
    floor = "" if source.floor is None else f" (no model gets below {source.floor:.4f})"
    per_token = f", perplexity {perplexity:.3f}" if source.unit == "token" else ""
    print(f"loss {result.loss:.4f} nats per {source.unit}{floor}{per_token}, ", end="")
    print(f"accuracy {result.accuracy:.2%}, over {result.tokens:,} {source.unit}s")
    for share in data.shares:
        print(f"{share.words} {share.value:.2%}")


def _evaluated_source(options: argparse.Namespace, lm: LanguageModel) -> Source:
    """The data that --corpus names, split as the model's own; without --corpus, the model's own."""
    from .data.registry import source_from, source_of_path

    on_card = lm.card.source
    if options.corpus is None:
        if on_card is None:
            raise UsageError(f"the card of {options.name} does not say what it learned from: give a text with --corpus FILE")
        return source_from(dict(on_card))
    fraction = on_card.get("fraction") if on_card else None
    return source_of_path(options.corpus, lm.model.config.kind, fraction if isinstance(fraction, float) else 0.9)


def _check_trained(name: str, loss: float) -> None:
    if not loss < 700:
        raise UsageError(f"{name} has a loss of {loss:.4g} nats: these are not the weights of a trained model")


def _warn_of_unknown(encoding: Encoding) -> None:
    if encoding.unknown:
        print(f"gptviz: {encoding.unknown_sentence()}", file=sys.stderr)


def _print_json(content: Any) -> None:
    print(json.dumps(_finite(content), allow_nan=False))


def _finite(content: Any) -> Any:
    """The same with null for every number that JSON has no word for: NaN and the infinities."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status: 0, or 2 for an error, which is one line on stderr."""
    this = parser()
    arguments = sys.argv[1:] if arguments is None else arguments
    options, unknown = this.parse_known_args(arguments, argparse.Namespace(arguments=arguments))
    if unknown and getattr(options, "run", None) is app:
        options.options += unknown
    elif unknown:
        this.error(f"unrecognized arguments: {' '.join(unknown)}")
    if not hasattr(options, "run"):
        this.print_help()
        return 0
    try:
        with warnings.catch_warnings():
            # The commands themselves say which characters a vocabulary lacks, and which model hides another.
            warnings.filterwarnings("ignore", "Not in the vocabulary")
            warnings.filterwarnings("ignore", ".* hides the one of this name")
            options.run(options)
    except BrokenPipeError:
        raise
    except (UsageError, ValueError, OSError, RuntimeError, MemoryError) as error:
        print(f"gptviz: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def run() -> None:
    """The command `gptviz`: `main` with the arguments of this process, which ends with its exit status."""
    # Characters that the terminal's encoding lacks are escaped. A closed pipe ends the command without an error.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if sys.stdout.isatty():  # a file or another program gets exactly what the model wrote
        sys.stdout = cast(TextIO, terminal.Terminal(sys.stdout))
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)


if __name__ == "__main__":
    run()
