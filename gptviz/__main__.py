"""The command line: the work of the app without a browser. `python -m gptviz` lists the commands."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shlex
import sys
import time
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gptviz

if TYPE_CHECKING:
    from gptviz.learn.training import Recipe
    from gptviz.text import Corpus, Encoding


class UsageError(Exception):
    """Something the user can mend; shown in one line."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> Any:
        self.exit(2, f"gptviz: {_one_line(message)} (see {self.prog} --help)\n")


def _one_line(message: object) -> str:
    return " ".join(str(message).split())


def parser() -> Parser:
    """Every command and option."""
    main = Parser(prog="python -m gptviz", description="Open, train, watch and take apart a transformer.")
    main.add_argument("--version", action="version", version=f"gptviz {gptviz.__version__}")
    commands = main.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, run: Any, summary: str, *, as_json: bool = True, on_device: bool = True) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary, description=summary)
        added.set_defaults(run=run)
        if as_json:
            added.add_argument("--json", action="store_true", help="print JSON")
        if on_device:
            added.add_argument("--device", help="cpu, cuda or mps; default: the fastest there is")
        return added

    command("models", models, "List the models that can be opened.", on_device=False)

    this = command("describe", describe, "List the layers of a model and their parameters.", on_device=False)
    this.add_argument("name", nargs="?", metavar="NAME", help="a model, as listed by 'models'")
    this.add_argument("--preset", metavar="PRESET", help="an architecture instead of a model")

    this = command("train", train, "Train a model on a text; Ctrl-C stops and keeps it.", as_json=False)
    this.add_argument("preset", metavar="PRESET", help="the architecture and its recipe")
    this.add_argument("--corpus", required=True, metavar="FILE", help="a text file, or tiny-shakespeare or python-reference")
    this.add_argument("--name", help="what to call the model; default: the preset's name")
    length = this.add_mutually_exclusive_group()
    length.add_argument("--steps", type=int, metavar="N", help="stop after N steps")
    length.add_argument("--minutes", type=float, metavar="M", help="stop after M minutes")
    this.add_argument("--seed", type=int, default=0, metavar="S", help="fixes weights, batches and dropout; default 0")
    this.add_argument("--batch-size", type=int, metavar="B", help="windows per step")
    this.add_argument("--learning-rate", type=float, metavar="R", help="the highest of the schedule")
    this.add_argument("--precision", choices=["auto", "bfloat16", "float32"], help="of the matrix products")
    this.add_argument("--compile", action="store_true", help="compile the model first (needs a C++ compiler)")
    this.add_argument("--store", choices=["float32", "float16"], default="float32", help="type of the stored weights")
    this.add_argument("--root", type=Path, help="the folder that takes the model's folder; default: your own models")

    this = command("generate", generate, "Continue a prompt.")
    this.add_argument("name", metavar="NAME")
    this.add_argument("--prompt", required=True, metavar="TEXT")
    this.add_argument("--max-new-tokens", type=int, default=200, metavar="N")
    this.add_argument("--greedy", action="store_true", help="always the likeliest token; the same as --temperature 0")
    this.add_argument("--temperature", type=float, default=1.0, metavar="T", help="below 1 bolder, above 1 wilder")
    this.add_argument("--top-k", type=int, metavar="K", help="draw from the K likeliest tokens")
    this.add_argument("--top-p", type=float, metavar="P", help="draw from the fewest tokens that reach probability P")
    this.add_argument("--seed", type=int, default=0, metavar="S", help="one seed, one text; default 0")

    this = command("evaluate", evaluate, "The loss of a model on a text.")
    this.add_argument("name", metavar="NAME")
    this.add_argument("--corpus", required=True, metavar="FILE", help="a text file, or tiny-shakespeare or python-reference")
    this.add_argument("--split", choices=["validation", "all"], default="validation", help="the last tenth, or all of it")
    return main


def models(options: argparse.Namespace) -> None:
    """`models [--json]`"""
    from gptviz.learn import checkpoints
    from gptviz.model import parameter_count

    rows = []
    for name, folder in checkpoints.folders().items():
        try:
            card = checkpoints.read_card(folder)
            row = {"name": name, "parameters": parameter_count(checkpoints.read_config(folder)), **_result(card)}
        except checkpoints.CheckpointError as error:
            row = {"name": name, "error": str(error)}
        rows.append(row)
    if options.json:
        _print_json(rows)
        return
    for row in rows:
        loss = row.get("validation_loss")
        quality = f"   validation loss {loss:.4f}" if isinstance(loss, int | float) else ""
        about = row.get("error") or f"{row['parameters']:>12,} parameters{quality}"
        print(f"{row['name']:<28} {about}")


def _result(card: dict[str, Any]) -> dict[str, Any]:
    return {key: card[key] for key in ("preset", "corpus", "validation_loss") if key in card}


def describe(options: argparse.Namespace) -> None:
    """`describe NAME [--json]`, `describe --preset PRESET [--json]`"""
    from gptviz.learn import checkpoints
    from gptviz.model import describe, preset

    if (options.name is None) == (options.preset is None):
        raise UsageError("describe takes the name of a model or --preset PRESET, one of the two")
    config = preset(options.preset) if options.preset else checkpoints.read_config(checkpoints.find(options.name))
    layers = describe(config)
    total = sum(layer.parameters for layer in layers)
    if options.json:
        rows = [{"name": x.name, "kind": x.kind, "parameters": x.parameters, "shapes": x.shapes} for x in layers]
        _print_json({"parameters": total, "layers": rows})
        return
    for layer in layers:
        shapes = ", ".join(f"{name} {' × '.join(map(str, shape))}" for name, shape in layer.shapes.items())
        print(f"{layer.name:<32} {layer.kind:<16} {layer.parameters:>12,}   {shapes}")
    print(f"{'total':<49} {total:>12,}")


def train(options: argparse.Namespace) -> None:
    """`train PRESET --corpus FILE …`"""
    from gptviz.learn import checkpoints
    from gptviz.learn.plans import PLANS

    if options.preset not in PLANS:
        raise UsageError(f"no preset named {options.preset!r}; there are {', '.join(PLANS)}")
    name = options.name or options.preset
    checkpoints.destination(name, options.root)
    plan = PLANS[options.preset]
    given = {
        "batch_size": options.batch_size,
        "learning_rate": options.learning_rate,
        "precision": options.precision,
        "seed": options.seed,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    if options.steps is not None or options.minutes is not None:
        changes |= {"steps": options.steps, "minutes": options.minutes}
    from dataclasses import replace

    recipe = replace(plan.recipe, **changes)
    _Training(options, name, recipe).run()


class _Training:
    """One run of `train`: a bar, losses and samples as it goes, the model kept at every evaluation and at the end."""

    def __init__(self, options: argparse.Namespace, name: str, recipe: Recipe) -> None:
        import torch

        from gptviz.learn.devices import device
        from gptviz.learn.plans import PLANS
        from gptviz.model import build

        self.options, self.name, self.recipe = options, name, recipe
        self.device = device(options.device)
        self.corpus = _corpus(options.corpus)
        training, validation = self.corpus.split()
        config, self.tokenizer = PLANS[options.preset].prepare(options.preset, self.corpus.text)
        self.training, self.validation = (torch.from_numpy(self.tokenizer.encode_ids(text)) for text in (training, validation))
        if len(self.validation) < 2 or len(self.training) <= config.context_length:
            raise UsageError(
                f"{self.corpus.name} has {len(self.training):,} tokens to train on and {len(self.validation):,} to validate; "
                f"{options.preset} with its context of {config.context_length} needs more than {config.context_length} and 2"
            )
        self.model = build(config, seed=recipe.seed, device=self.device)
        self.step, self.seconds = 0, 0.0
        self.losses: list[dict[str, float]] = []

    def run(self) -> None:
        import torch
        from tqdm import tqdm

        from gptviz.learn.training import Stepped, train
        from gptviz.model import parameter_count

        def say(text: str) -> None:
            tqdm.write(text, file=sys.stdout)
            sys.stdout.flush()  # so that a log file shows it now; the bar is for terminals alone

        forward = torch.compile(self.model) if self.options.compile else self.model
        parameters = parameter_count(self.model.config)
        say(f"{self.options.preset}: {parameters:,} parameters on {self.device}, {len(self.training):,} tokens")
        bar = tqdm(total=100.0, bar_format="{l_bar}{bar}| {postfix}", file=sys.stderr, disable=None)
        running = math.nan
        try:
            for event in train(self.model, self.training, self.validation, self.recipe, forward=forward):
                if isinstance(event, Stepped):
                    self.step, self.seconds = event.step, event.seconds
                    running = event.loss if math.isnan(running) else 0.98 * running + 0.02 * event.loss
                    bar.n = round(100 * event.progress, 1)
                    rate = f"{event.tokens_per_second:,.0f} tokens/s, {event.seconds_left:,.0f} s left"
                    bar.set_postfix_str(f"step {event.step:,}, loss {running:.3f}, {rate}")
                else:
                    self.note(event.loss, training=running)
                    losses = f"training {running:.4f}, validation {event.loss:.4f} nats/token"
                    say(f"step {event.step:,}: {losses}")
                    say(self.sample())
                    self.save()
        except KeyboardInterrupt:
            if self.step == 0:
                raise
            bar.close()
            with contextlib.suppress(KeyboardInterrupt):
                self.finish_early()
        finally:
            bar.close()
        say(f"kept as {self.save()}")

    def finish_early(self) -> None:
        from gptviz.learn.evaluation import evaluate

        print(f"stopped at step {self.step:,}; computing its validation loss (Ctrl-C again: keep it without)", flush=True)
        self.note(evaluate(self.model, self.validation)[0])

    def note(self, validation: float, **others: float) -> None:
        """Put a validation loss, and what was measured with it, on the card."""
        self.losses.append({"step": self.step, "seconds": round(self.seconds, 1), **others, "validation": validation})

    def sample(self) -> str:
        """The hundred tokens the model now writes after the first one of the validation text."""
        from gptviz.learn.generation import Generation

        self.model.eval()
        grown = Generation(self.model, self.validation[:1])
        text = self.tokenizer.decode([int(step.tokens[0]) for step in islice(grown, 100)])
        return "    " + text.strip().replace("\n", "\n    ")

    def save(self) -> Path:
        """Keep the model as it is now."""
        import torch

        from gptviz.learn import checkpoints

        command = shlex.join(["python", "-m", "gptviz", *sys.argv[1:]])
        card = {
            "preset": self.options.preset,
            "corpus": self.corpus.name,
            "corpus_sha256": self.corpus.sha256,
            "split": "first 90 % of the characters to train, the rest to validate",
            "command": command,
            "steps": self.step,
            "seconds": round(self.seconds, 1),
            "threads": torch.get_num_threads(),
            "device": str(self.device),
            "validation_loss": self.losses[-1]["validation"] if self.losses else None,
            "losses": self.losses,
            "date": datetime.now(UTC).date().isoformat(),
            "gptviz": gptviz.__version__,
            "torch": torch.__version__,
        }
        dtype = getattr(torch, self.options.store)
        return checkpoints.save(self.name, self.model, self.tokenizer, card, root=self.options.root, dtype=dtype)


def generate(options: argparse.Namespace) -> None:
    """`generate NAME --prompt TEXT …`"""
    from gptviz.learn.sampling import Sampling

    if options.max_new_tokens < 0:
        raise UsageError(f"--max-new-tokens is {options.max_new_tokens}; it must be 0 or more")
    temperature = 0.0 if options.greedy else options.temperature
    sampling = Sampling(temperature=temperature, top_k=options.top_k, top_p=options.top_p, seed=options.seed)
    lm = gptviz.load(options.name, options.device)
    encoding = lm.tokenizer.encode(options.prompt)
    _warn_of_unknown(encoding)
    grown = lm.generation(options.prompt, sampling)
    if not options.json:
        print(options.prompt, end="")
    tokens: list[int] = []
    begun = time.perf_counter()
    for step in islice(grown, options.max_new_tokens):
        tokens.append(int(step.tokens[0]))
        if not options.json and lm.tokenizer.kind == "characters":
            print(lm.tokenizer.decode(tokens[-1:]), end="", flush=True)
    rate = len(tokens) / max(time.perf_counter() - begun, 1e-9)
    text = lm.tokenizer.decode(tokens)
    if options.json:
        _print_json({"text": text, "tokens": tokens, "tokens_per_second": round(rate, 1)})
    else:
        # Pieces of a byte-level vocabulary can end within a character: such a text is printed once it is whole.
        print("" if lm.tokenizer.kind == "characters" else text)


def evaluate(options: argparse.Namespace) -> None:
    """`evaluate NAME --corpus FILE …`"""
    import torch

    from gptviz.learn.evaluation import evaluate

    lm = gptviz.load(options.name, options.device)
    corpus = _corpus(options.corpus)
    text = corpus.split()[1] if options.split == "validation" else corpus.text
    _warn_of_unknown(lm.tokenizer.encode("".join(sorted(set(text)))))
    ids = lm.tokenizer.encode_ids(text)
    loss, count = evaluate(lm.model, torch.from_numpy(ids))
    if not loss < 700:
        raise UsageError(f"{options.name} has a loss of {loss:.4g} nats per token: its weights are no trained model's")
    if options.json:
        _print_json({"loss": loss, "perplexity": math.exp(loss), "tokens": count})
    else:
        print(f"loss {loss:.4f} nats per token, perplexity {math.exp(loss):.3f}, over {count:,} tokens")


def _corpus(name: str) -> Corpus:
    from gptviz.text import corpora, read_corpus

    offers = {offer.name: offer for offer in corpora()}
    return offers[name].open() if name in offers and not Path(name).exists() else read_corpus(name)


def _warn_of_unknown(encoding: Encoding) -> None:
    if encoding.unknown:
        print(f"gptviz: {encoding.unknown_sentence()}", file=sys.stderr)


def _print_json(content: Any) -> None:
    print(json.dumps(content))


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status: 0, or 2 for an error, which is one line on stderr."""
    this = parser()
    options = this.parse_args(arguments)
    if not hasattr(options, "run"):
        this.print_help()
        return 0
    try:
        options.run(options)
    except BrokenPipeError:
        raise
    except (UsageError, ValueError, OSError, RuntimeError) as error:
        print(f"gptviz: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    # Text beyond the terminal's encoding is escaped, not fatal; a reader that stops reading ends the command quietly.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)
