"""The command line: what it prints, and that whatever is wrong is one line and exit status 2."""

from __future__ import annotations

import argparse
import functools
import io
import json
import math
import os
import random
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal

import pytest
import torch

import gptviz
from gptviz.__main__ import main
from gptviz.__main__ import run as run_command
from gptviz.commands import options as command_options
from gptviz.commands.common import Parser
from gptviz.commands.printing import CommandOutput, print_json
from gptviz.data.batches import consecutive_windows
from gptviz.language_model.core import decode_answer, special_tokenizer
from gptviz.model.precision import PRECISIONS
from gptviz.runs import checkpoints
from gptviz.runs import training as training_of_runs
from gptviz.runs.experiments import PLANS
from gptviz.runs.status import read_status
from gptviz.text import BPETokenizer, read_corpus
from gptviz.train.evaluation import Evaluation, evaluate
from gptviz.train.recipe import Recipe
from gptviz.train.trainer import Trainer
from tests.command_line import Capture, answered, error, output
from tests.examples import quick
from tests.processes import running
from tests.systems import named_pipe, odd_name
from tests.tiny import CONTEXT, TinyModel
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[1]


pytestmark = pytest.mark.usefixtures("no_bundled_models")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Two thousand characters."""
    words = random.Random(0).choices(
        ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog"], k=500
    )
    file = tmp_path / "corpus.txt"
    file.write_text(" ".join(words)[:2000], encoding="utf-8")
    return file


def run(*arguments: str | Path, **options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gptviz", *map(str, arguments)]
    return subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, **options},
        timeout=PATIENCE,
    )


def test_no_command_prints_the_help_and_is_no_error(capsys: Capture) -> None:
    out = output(capsys)
    for command in ("models", "describe", "train", "generate", "evaluate"):
        assert command in out


def test_the_options_of_a_command_are_the_parameters_of_its_function() -> None:
    @command_options.command(1)
    def look(
        lm: gptviz.LanguageModel,
        prompt: str,
        at: int | None = None,
        how: Literal["far", "near"] = "far",
        as_: command_options.Name = "table",
        is_deep: bool = False,
        part: Sequence[command_options.Name] = (),
    ) -> CommandOutput:
        """Look at something, and
        say it.

        Args:
            at: a place, up to
                100 %.
            how: how far.
            as_: what it is shown as.
            is_deep: whether to look below.
            part: one of its parts.
        """
        return CommandOutput(None, [])

    assert (look.name, look.summary) == ("look", "Look at something, and say it.")
    this = Parser(prog="look")
    look.add_options(this)
    usual = {
        "prompt": "x",
        "at": None,
        "how": "far",
        "as_": "table",
        "is_deep": False,
        "part": [],
    }
    given = {
        "prompt": "y",
        "at": 3,
        "how": "near",
        "as_": "list",
        "is_deep": True,
        "part": ["a", "b"],
    }
    every = "M --prompt y --at 3 --how near --as list --is-deep --part a --part b"
    for words, values in (("M --prompt x", usual), (every, given)):
        assert vars(this.parse_args(words.split())) == {
            "name": "M",
            "precision": "stored",
            **values,
        }
    said = " ".join(this.format_help().split())
    options = (
        "--prompt TEXT what the model reads",
        "--at N a place, up to 100 %",
        "--as NAME what it is shown as; default: table",
    )
    assert all(option in said for option in options)
    for wrong in ("M", "M --prompt x --how wide", "M --prompt x --at a"):
        with pytest.raises(SystemExit):
            this.parse_args(wrong.split())


def test_positional_parameters_of_a_command_are_its_arguments() -> None:
    seen: list[object] = []

    @command_options.command(1)
    def put(what: str, where: str | None = None, /, *, options: argparse.Namespace) -> None:
        """Put something somewhere."""
        seen.append((what, where, options.json))

    this = Parser(prog="put")
    put.add_options(this)
    for words in ("a", "a b"):
        put.run(this.parse_args(words.split(), argparse.Namespace(json=True)))
    assert seen == [("a", None, True), ("a", "b", True)]
    with pytest.raises(SystemExit):
        this.parse_args([])


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_are_no_errors(option: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main([option])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert (
        out.startswith("usage: python -m gptviz")
        if option == "--help"
        else out == f"gptviz {gptviz.__version__}\n"
    )


def test_models_are_listed_the_broken_ones_with_what_is_wrong(
    capsys: Capture, tiny_model: TinyModel
) -> None:
    assert output(capsys, "models") == ""
    assert answered(capsys, "models") == []
    tiny_model(
        "good", card={"preset": "ladder", "corpus": "c.txt", "validation_loss": 1.51234, "steps": 3}
    )
    tiny_model("odd", card={"validation_loss": float("nan"), "preset": 3})
    (tiny_model("bad") / "config.json").write_text("{")
    (tiny_model("cut") / "model.safetensors").write_bytes(b"")
    bad, cut, good, odd = answered(capsys, "models")
    assert good == {
        "name": "good",
        "parameters": 3_184,
        "preset": "ladder",
        "corpus": "c.txt",
        "validation_loss": 1.51234,
    }
    assert odd == {"name": "odd", "parameters": 3_184}
    assert set(bad) == {"name", "error"}
    assert "bad/config.json cannot be read" in bad["error"]
    assert "cut/model.safetensors is damaged or cut short" in cut["error"]
    lines = output(capsys, "models").splitlines()
    assert [line.split()[0] for line in lines] == ["bad", "cut", "good", "odd"]
    assert "3,184 parameters   validation 1.5123 nats/token" in lines[2]


def test_models_has_a_line_for_each_whatever_its_name_and_files_are(
    capsys: Capture, tiny_model: TinyModel
) -> None:
    folder = tiny_model("good").parent
    tiny_model("pipe")
    (folder / "pipe" / "card.json").unlink()
    named_pipe(folder / "pipe" / "card.json")
    tiny_model("x").rename(odd_name(folder, b"caf\xe9"))
    tiny_model("x").rename(folder / "two\nlines")
    lines = output(capsys, "models").splitlines()
    assert [line.split()[0] for line in lines] == [r"caf\xe9", "good", "pipe", r"two\nlines"]
    assert "rename the folder" in lines[0]
    assert "pipe/card.json cannot be read (it is a pipe" in lines[2]
    assert [set(row) for row in answered(capsys, "models")] == 2 * [
        {"name", "error"},
        {"name", "parameters"},
    ]


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [FakeTerminal, io.StringIO])
def test_a_terminal_is_never_given_what_it_would_obey_and_a_file_gets_the_text_exactly(
    stream: type[io.StringIO], tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model("hostile", text="\u202e\x1b\u2066")
    written = stream()
    monkeypatch.setattr(sys, "stdout", written)
    monkeypatch.setattr(
        sys,
        "argv",
        [
            "gptviz",
            "generate",
            "hostile",
            "--prompt",
            "\x1b",
            "--max-new-tokens",
            "9",
            "--device",
            "cpu",
        ],
    )
    with pytest.raises(SystemExit) as ended:
        run_command()
    assert ended.value.code == 0
    text = "\x1b" + gptviz.load("hostile", "cpu").generate("\x1b", max_new_tokens=9) + "\n"
    expected = (
        text
        if stream is io.StringIO
        else text.encode("ascii", "backslashreplace").decode().replace("\x1b", "\\x1b")
    )
    assert written.getvalue() == expected


def test_an_error_never_gives_a_terminal_what_it_would_obey(capsys: Capture) -> None:
    assert r"no model named" in error(capsys, "describe", "\u202e\x1b[2J")
    assert "\x1b" not in error(capsys, "evaluate", "x", "--corpus", "\x1b[2J")


def test_json_has_null_where_a_number_is_none_that_json_has(capsys: Capture) -> None:
    print_json({"a": [1.5, math.nan, {"b": (math.inf, "NaN")}]})
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        "a": [1.5, None, {"b": [None, "NaN"]}]
    }


@pytest.mark.parametrize("name", ["generator", "gpt2"])
def test_describe_lists_layers_whose_counts_sum_to_the_total(name: str, capsys: Capture) -> None:
    described = answered(capsys, "describe", "--preset", name)
    assert set(described) == {"parameters", "layers"}
    assert described["parameters"] == {"generator": 44_487, "gpt2": 124_439_808}[name]
    assert sum(layer["parameters"] for layer in described["layers"]) == described["parameters"]
    assert all(
        set(layer) == {"name", "kind", "parameters", "shapes"} for layer in described["layers"]
    )
    lines = output(capsys, "describe", "--preset", name).splitlines()
    assert len(lines) == len(described["layers"]) + 1
    assert re.fullmatch(rf"total +{described['parameters']:,}", lines[-1])


def test_describe_takes_a_model_by_name(capsys: Capture, tiny_model: TinyModel) -> None:
    tiny_model("mine", tied=True)
    described = answered(capsys, "describe", "mine")
    assert described["layers"][0] == {
        "name": "embed",
        "kind": "Embedding",
        "parameters": 29 * 12,
        "shapes": {"weight": [29, 12]},
    }
    assert described["layers"][-1]["kind"] == "Linear, tied"


def test_generate_prints_the_prompt_and_what_follows_or_json(
    capsys: Capture, tiny_model: TinyModel
) -> None:
    folder = tiny_model("mine")
    arguments = ("generate", "mine", "--prompt", "the fox", "--max-new-tokens", "40", "--seed", "3")
    told = answered(capsys, *arguments)
    assert set(told) == {"text", "tokens", "ended", "tokens_per_second"}
    lm = gptviz.load(folder)
    assert told["text"] == lm.generate("the fox", 40, seed=3)
    assert told["tokens"] == lm.tokenizer.encode(told["text"]).ids
    assert told["tokens_per_second"] > 0
    assert output(capsys, *arguments) == f"the fox{told['text']}\n"
    assert output(capsys, *arguments[:-1], "4") != f"the fox{told['text']}\n"
    assert (
        output(capsys, "generate", "mine", "--prompt", "the fox", "--max-new-tokens", "0")
        == "the fox\n"
    )


def test_a_precision_is_one_that_there_is_and_changes_what_is_computed(
    capsys: Capture, tiny_model: TinyModel
) -> None:
    tiny_model()
    for precision in PRECISIONS:
        arguments = [
            "generate",
            "tiny",
            "--prompt",
            "the quick",
            "--max-new-tokens",
            "3",
            "--precision",
            precision,
            "--greedy",
        ]
        assert output(capsys, *arguments).startswith("the quick")
    exact, rounded = (gptviz.load("tiny", precision=one) for one in ("float32", "bfloat16"))
    assert not torch.equal(exact.trace("the quick")["logits"], rounded.trace("the quick")["logits"])
    with pytest.raises(
        ValueError, match="no precision 'int4'; there is stored, float32, bfloat16, float16"
    ):
        gptviz.load("tiny", precision="int4")


def test_generate_stops_where_the_model_ends_its_text_and_says_so(
    capsys: Capture, tiny_model: TinyModel
) -> None:
    whole = gptviz.load(tiny_model()).generate("the fox", 30, seed=3)
    end = gptviz.load("tiny").tokenizer.id_of(whole[9])
    tiny_model("ends", card={"end_tokens": [end]})
    arguments = ("generate", "ends", "--prompt", "the fox", "--max-new-tokens", "30", "--seed", "3")
    cut = whole[: whole.index(whole[9])]
    told = answered(capsys, *arguments)
    assert (told["text"], told["ended"], len(told["tokens"])) == (cut, True, len(cut))
    assert main([*arguments]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"the fox{cut}\n"
    assert re.search(r"the model ended its text with .*; with --go-on it writes on", printed.err)
    told = answered(capsys, *arguments, "--go-on")
    assert (told["text"], told["ended"]) == (whole, False)


def test_generate_stops_where_a_sequence_of_the_task_ends_and_says_so(
    capsys: Capture, tiny_model: TinyModel
) -> None:
    tiny_model(
        "adds",
        text="0123456789+=",
        card={"source": {"task": "addition", "settings": {"digits": 3}}},
    )
    arguments = ("generate", "adds", "--prompt", "123+456=", "--greedy")
    assert main([*arguments]) == 0
    printed = capsys.readouterr()
    assert len(printed.out) == len("123+456=9750\n")
    assert "a sequence of its task ends here; with --go-on it writes on" in printed.err
    for most, ended in ((4, True), (3, False), (200, True)):
        told = answered(capsys, *arguments, "--max-new-tokens", str(most))
        assert (len(told["text"]), told["ended"]) == (min(most, 4), ended)
    assert len(answered(capsys, *arguments, "--go-on")["text"]) == 200


def test_greedy_is_temperature_zero_and_settings_reach_the_draw(
    capsys: Capture, tiny_model: TinyModel
) -> None:
    lm = gptviz.load(tiny_model("mine"))

    def text(*options: str) -> str:
        return answered(capsys, "generate", "mine", "--prompt", "a", *options)["text"]

    greedy = text("--greedy")
    assert (
        greedy
        == text("--temperature", "0")
        == text("--greedy", "--seed", "9")
        == text("--top-k", "1")
    )
    assert greedy == lm.generate("a", temperature=0)
    drawn = text("--temperature", "1.5", "--top-k", "7", "--top-p", "0.8", "--seed", "5")
    assert drawn == lm.generate("a", temperature=1.5, top_k=7, top_p=0.8, seed=5)


def test_what_the_vocabulary_lacks_is_said_and_the_model_goes_on(
    capsys: Capture, tiny_model: TinyModel
) -> None:
    tiny_model("mine")
    assert main(["generate", "mine", "--prompt", "a€b", "--max-new-tokens", "3", "--json"]) == 0
    printed = capsys.readouterr()
    assert "EURO SIGN" in printed.err
    assert len(json.loads(printed.out)["tokens"]) == 3


def test_evaluate_tells_the_loss_on_the_last_tenth_or_on_all(
    capsys: Capture, tiny_model: TinyModel, corpus: Path
) -> None:
    lm = gptviz.load(tiny_model("mine"))
    text = read_corpus(corpus).text
    told = {}
    for split, part in (("validation", text[1800:]), ("all", text)):
        told = answered(capsys, "evaluate", "mine", "--corpus", corpus, "--split", split)
        found = evaluate(
            lm.model, consecutive_windows(torch.from_numpy(lm.tokenizer.encode_ids(part)), CONTEXT)
        )
        expected = {
            "loss": found.loss,
            "perplexity": math.exp(found.loss),
            "accuracy": found.accuracy,
            "tokens": len(part) - 1,
        }
        assert told == expected
    assert f"loss {told['loss']:.4f} nats per token, perp" in output(
        capsys, "evaluate", "mine", "--corpus", corpus, "--split", "all"
    )
    odd = corpus.with_name("odd.txt")
    odd.write_text(text + "€€", encoding="utf-8")
    assert main(["evaluate", "mine", "--corpus", str(odd)]) == 0
    assert re.fullmatch(
        r"gptviz: Not in the vocabulary: € \(U\+20AC EURO SIGN\); .* instead\.\n",
        capsys.readouterr().err,
    )
    default = answered(capsys, "evaluate", "mine", "--corpus", corpus)
    assert default["tokens"] == 199


def test_evaluate_without_a_piece_of_the_model_is_that_of_the_edited_model(
    capsys: Capture, tiny_model: TinyModel, corpus: Path
) -> None:
    lm = gptviz.load(tiny_model("mine"))
    text = read_corpus(corpus).text[1800:]
    batches = list(consecutive_windows(torch.from_numpy(lm.tokenizer.encode_ids(text)), CONTEXT))
    command = ("evaluate", "mine", "--corpus", corpus)
    units = ["blocks.0.mlp.neuron.7", "blocks.1.attention.head.2", "blocks.1.mlp"]
    asked = [each for unit in units for each in ("--without", unit)]
    told = answered(capsys, *command, *asked)
    assert told["edits"] == units
    assert told["loss"] == pytest.approx(evaluate(lm.edited(*units).model, batches).loss)
    assert told["loss"] != pytest.approx(evaluate(lm.model, batches).loss)
    mean = [*asked, "--replace-by", "mean"]
    told = answered(capsys, *command, *mean)
    assert told["edits"] == [f"{unit}=mean" for unit in units]
    # The rows are consecutive windows: all but the last token of the text are in the mean.
    assert told["loss"] == pytest.approx(
        evaluate(lm.edited(*told["edits"], text=text[:-1]).model, batches).loss
    )
    plain = output(capsys, *command, *mean)
    assert "MLP of block 1 is replaced by its mean over the reference text.\n" in plain
    assert f"loss {told['loss']:.4f} nats" in plain
    told = answered(capsys, *command, "--without", "blocks.0.attention.head.1=uniform")
    assert told["loss"] == pytest.approx(
        evaluate(lm.edited("blocks.0.attention.head.1=uniform").model, batches).loss
    )


QUICK = (
    "--batch-size",
    "4",
    "--evaluations",
    "2",
    "--precision",
    "float32",
    "--compile",
    "no",
    "--snapshots",
    "1",
)
SMALL = ("--set", "d_model=12", "--set", "n_head=3", "--set", "n_layer=1")
TASK = ("train", "reversal", *QUICK, *SMALL)


def test_train_keeps_a_model_that_opens_with_a_card_that_says_how_it_was_made(
    capsys: Capture, corpus: Path, home: Path
) -> None:
    arguments = [
        "train",
        "bigram",
        "--corpus",
        str(corpus),
        "--steps",
        "40",
        "--name",
        "rung",
        "--store",
        "float16",
    ]
    out = output(capsys, *arguments, *QUICK, "--learning-rate", "0.02")
    assert out.startswith("rung on cpu: ")
    told = re.findall(
        r"^step ([\d,]+): (?:training [\d.]+, )?validation [\d.]+ nats/token, accuracy [\d.]+%$",
        out,
        re.M,
    )
    assert told == ["0", "20", "40"]
    assert out.endswith(f"finished: kept as {home / 'checkpoints/rung'}\n")
    lm = gptviz.load("rung")
    assert lm.card.plan == "bigram"
    assert lm.card.command == shlex.join(
        ["python", "-m", "gptviz", *arguments, *QUICK, "--learning-rate", "0.02"]
    )
    assert lm.card.corpus == "corpus.txt"
    assert lm.card.corpus_sha256 == read_corpus(corpus).sha256
    assert Recipe.from_dict(lm.card.recipe).learning_rate == 0.02
    assert lm.card.steps == 40
    assert [entry.step for entry in lm.card.losses] == [0, 20, 40]
    validation = [entry.validation for entry in lm.card.losses]
    assert validation[-1] < validation[0] - 0.2
    assert lm.card.validation_loss == validation[-1]
    told = answered(capsys, "evaluate", "rung", "--corpus", corpus)
    assert told["loss"] == pytest.approx(validation[-1], abs=2e-3)  # stored in float16
    corpus.unlink()
    assert answered(capsys, "evaluate", "rung") == told


def test_a_model_of_a_task_is_evaluated_without_a_text(capsys: Capture) -> None:
    output(capsys, *TASK, "--steps", "3")
    told = answered(capsys, "evaluate", "reversal")
    card = gptviz.load("reversal").card
    assert set(told) == {"loss", "perplexity", "accuracy", "floor", "tokens"}
    assert told["floor"] == math.log(100) * 7 / 15
    assert (told["loss"], told["accuracy"]) == (card.validation_loss, card.accuracy)
    assert told["tokens"] == 2_000 * 15
    plain = output(capsys, "evaluate", "reversal")
    assert plain.startswith(
        f"loss {told['loss']:.4f} nats per token (no model gets below 2.1491), perplexity "
    )


def test_a_text_that_is_gone_is_said_with_what_to_do(
    capsys: Capture, corpus: Path, home: Path
) -> None:
    output(capsys, "train", "bigram", *QUICK, "--corpus", corpus, "--steps", "2")
    for file in (home / "corpora").iterdir():
        file.unlink()
    said = error(capsys, "evaluate", "bigram", "--json")
    assert "the text “corpus.txt” is not here any more" in said
    assert "give it as a file" in said


def test_every_setting_of_a_recipe_is_an_option_that_reaches_the_run(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Recipe(minutes=5.0)
    monkeypatch.setitem(PLANS, "copy", replace(PLANS["copy"], recipe=plan))
    asked = Recipe(
        steps=2, batch_size=3, optimiser="muon", learning_rate=0.5, schedule="linear", warmup=0.25, final_rate=0.75,
        weight_decay=0.2, label_smoothing=0.1, expert_balance=0.1, beta1=0.7, beta2=0.8, clip=0.0, precision="bfloat16",
        compile="no", evaluations=1, snapshots=0, seed=5, keep_weights=0.5,
    )  # fmt: skip
    options: list[str] = []
    for field in fields(Recipe):
        value = getattr(asked, field.name)
        # a rank needs a model to begin with: see test_adapters.py
        if field.name not in ("minutes", "lora_rank"):
            options += [f"--{field.name.replace('_', '-')}", str(value)]
            assert value != getattr(plan, field.name), field.name
    output(
        capsys,
        "train",
        "copy",
        *options,
        *SMALL,
        "--set",
        "dropout=0.5",
        "--set",
        "positions=rotary",
    )
    lm = gptviz.load("copy")
    assert Recipe.from_dict(lm.card.recipe) == asked
    config = lm.model.config
    assert (config.d_model, config.n_head, config.n_layer, config.dropout, config.positions) == (
        12,
        3,
        1,
        0.5,
        "rotary",
    )
    assert config.d_mlp == 48
    output(capsys, "train", "copy", "--minutes", "1e-9", "--name", "timed", *QUICK, *SMALL)
    recipe = Recipe.from_dict(gptviz.load("timed").card.recipe)
    assert (recipe.steps, recipe.minutes) == (None, 1e-9)


@pytest.fixture
def shipped(tiny_model: TinyModel) -> Path:
    """A model that ships, called `reversal` as the experiment is."""
    checkpoints.BUNDLED.mkdir()
    return tiny_model("reversal").rename(checkpoints.BUNDLED / "reversal")


def test_without_a_name_a_run_gets_a_free_one_and_says_so(capsys: Capture, shipped: Path) -> None:
    before = {file.name: file.read_bytes() for file in shipped.iterdir()}
    for expected in ("reversal-2", "reversal-3"):
        out = output(capsys, *TASK, "--steps", "1")
        assert out.startswith(
            f"the run is called {expected}, since the name reversal is in use (--name gives "
            "another name"
        )
        assert gptviz.load(expected).card.steps == 1
    assert checkpoints.find("reversal") == shipped
    assert {file.name: file.read_bytes() for file in shipped.iterdir()} == before


def test_the_name_of_a_shipped_model_is_refused_unless_it_is_to_be_hidden_which_every_command_then_says(
    capsys: Capture, shipped: Path
) -> None:
    assert "there is a model named reversal already (it came with gptviz" in error(
        capsys, *TASK, "--steps", "1", "--name", "reversal"
    )
    assert "reversal is a model of yours and hides the one of this name" in output(
        capsys, *TASK, "--steps", "1", "--replace"
    )
    (row,) = answered(capsys, "models")
    assert row["hides"] == str(shipped)
    assert (
        output(capsys, "models").rstrip().endswith("yours; it hides the one that came with gptviz")
    )
    assert main(["evaluate", "reversal", "--json"]) == 0
    said = capsys.readouterr().err
    assert said.startswith(
        "gptviz: reversal is a model of yours and hides the one of this name that came with gptviz"
    )
    assert str(checkpoints.find("reversal")) in said


def test_a_run_that_diverges_is_said_to_have_and_listed_so(capsys: Capture, corpus: Path) -> None:
    arguments = (
        "train",
        "bigram",
        *QUICK,
        "--corpus",
        corpus,
        "--steps",
        "30",
        "--learning-rate",
        "10",
    )
    out = output(capsys, *arguments).splitlines()
    assert out[-2].startswith("it diverged: after 30 steps its loss is ")
    assert "To change: lower the learning rate (10)" in out[-2]
    assert out[-1].startswith("finished: kept as")
    (row,) = answered(capsys, "models")
    assert row["diverged"] == out[-2]
    assert output(capsys, "models").rstrip().endswith("it diverged")


def test_a_run_begins_from_another_model_with_its_weights_and_tokens(
    capsys: Capture, corpus: Path
) -> None:
    text = ("--corpus", corpus, *QUICK)
    output(capsys, "train", "bigram", *text, "--steps", "2", "--name", "first")
    output(capsys, "train", "bigram", *text, "--steps", "1", "--name", "second", "--from", "first")
    first = gptviz.load("first")
    second = gptviz.load("second", step=0)
    assert torch.equal(first.model.embed.weight, second.model.embed.weight)
    assert first.tokenizer.to_json() == second.tokenizer.to_json()
    assert "change neither" in error(
        capsys, "train", "bigram", *text, "--from", "first", "--set", "n_layer=3", "--name", "x"
    )
    assert "no model named 'nobody'" in error(
        capsys, "train", "bigram", *text, "--from", "nobody", "--name", "x"
    )


def test_a_tokenizer_given_is_used_as_it_is(capsys: Capture, corpus: Path, tmp_path: Path) -> None:
    learned = BPETokenizer.learn(read_corpus(corpus).text, 270)
    file = tmp_path / "tokenizer.json"
    file.write_text(learned.to_json())
    output(
        capsys, "train", "bigram", "--corpus", corpus, *QUICK, "--steps", "1", "--tokenizer", file
    )
    lm = gptviz.load("bigram")
    assert lm.model.config.vocab_size == 270
    assert lm.tokenizer.encode("quick brown").ids == learned.encode("quick brown").ids


def test_a_run_is_resumed_by_name_and_takes_no_other_options(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    output(capsys, *TASK, "--steps", "9", "--name", "unbroken")
    taken = count(1)
    with monkeypatch.context() as patch:
        patch.setattr(
            "gptviz.runs.training.stop_request",
            lambda folder: "pause" if next(taken) == 4 else None,
        )
        assert (
            output(capsys, *TASK, "--steps", "9", "--name", "broken")
            .splitlines()[-1]
            .startswith("paused: kept as")
        )
    assert "leave --steps out" in error(capsys, "train", "--resume", "broken", "--steps", "12")
    assert "leave --seed out" in error(capsys, "train", "--resume", "broken", "--seed", "0")
    assert "leave --from out" in error(capsys, "train", "--resume", "broken", "--from", "unbroken")
    assert (
        output(capsys, "train", "--resume", "broken")
        .splitlines()[-1]
        .startswith("finished: kept as")
    )
    unbroken = gptviz.load("unbroken")
    broken = gptviz.load("broken")
    for name, value in unbroken.model.named_parameters():
        assert torch.equal(broken.model.get_parameter(name), value), name
    assert "broken is finished: begin a new run with its weights instead" in error(
        capsys, "train", "--resume", "broken"
    )


def test_a_run_kept_elsewhere_is_resumed_there(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("gptviz.runs.training.stop_request", lambda folder: "stop")
        output(capsys, *TASK, "--steps", "3", "--root", tmp_path / "there")
    assert "no model named 'reversal'" in error(capsys, "train", "--resume", "reversal")
    output(capsys, "train", "--resume", "reversal", "--root", tmp_path / "there")
    assert gptviz.load(tmp_path / "there/reversal").card.steps == 3
    assert "the model other" in error(
        capsys, "train", "--resume", "other", "--root", tmp_path / "there"
    )


# Unusual texts that a model can learn from.
CORPORA = {
    "one character, repeated": b"a" * 3_000,
    "5,000 distinct characters": "".join(map(chr, range(0x4E00, 0x4E00 + 5_000))).encode() * 2,
    "a byte order mark and Windows line ends": b"\xef\xbb\xbf" + b"to be\r\nor not\r\n" * 50,
    "20 MB": b"to be or not to be, that is the question\n" * 500_000,
}


@pytest.mark.parametrize("kind", quick(CORPORA, *list(CORPORA)[:3]))
def test_an_unusual_corpus_trains(
    kind: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "corpus.txt"
    file.write_bytes(CORPORA[kind])
    monkeypatch.setattr("gptviz.train.trainer.evaluate", few(evaluate))
    output(
        capsys, "train", "bigram", "--corpus", file, "--steps", "2", *QUICK, "--set", "d_model=4"
    )
    lm = gptviz.load("bigram")
    assert lm.model.config.vocab_size == lm.tokenizer.vocab_size
    assert math.isfinite(lm.card.validation_loss)
    text = read_corpus(file).text
    assert lm.tokenizer.decode(lm.tokenizer.encode_ids(text[:6_000])) == text[:6_000]


def few(whole: Callable[..., Evaluation]) -> Callable[..., Evaluation]:
    """Evaluates on the first batches alone: it is not the time that evaluating 2 MB takes which is
    tested.
    """
    return lambda model, batches: whole(model, islice(batches, 3))


def damaged(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:500])


def huge_weights(folder: Path) -> None:
    lm = gptviz.load(folder)
    for parameter in lm.model.parameters():
        parameter.data.fill_(3e38)
    checkpoints.save("mine", lm.model, lm.tokenizer, {}, replace=True)


TRAIN = ("train", "bigram", "--corpus", "CORPUS")
GENERATE = ("generate", "mine", "--prompt", "a")
EVALUATE = ("evaluate", "mine", "--corpus")
# What only the command line says. What models, texts, tokenizers, plans and runs refuse is tested
# where they are.
ERRORS: list[tuple[tuple[str, ...], str]] = [
    (("fly",), "invalid choice: 'fly'"),
    (("models", "--fast"), "unrecognized arguments: --fast"),
    (("models", "a\nb"), "unrecognized arguments: a b"),
    (("describe",), "takes the name of a model or --preset"),
    (("describe", "mine", "--preset", "gpt2"), "takes the name of a model or --preset"),
    (("generate", "mine"), "required: --prompt"),
    ((*GENERATE, "--temperature", "hot"), "invalid float value: 'hot'"),
    ((*GENERATE, "--max-new-tokens", "-1"), "--max-new-tokens is -1"),
    ((*EVALUATE, "FOLDER"), "is a folder"),
    ((*EVALUATE, "CORPUS", "--split", "half"), "invalid choice: 'half'"),
    (
        (*EVALUATE, "CORPUS", "--without", "blocks.9.mlp"),
        "mine: blocks.9.mlp: there is no block 9; blocks are",
    ),
    (
        ("evaluate", "mine"),
        "the card of mine does not say what it learned from: give a text with --corpus FILE",
    ),
    (("train",), "takes the name of a plan, or --resume NAME, one of the two"),
    (
        ("train", "bigram", "--resume", "mine"),
        "takes the name of a plan, or --resume NAME, one of the two",
    ),
    (("train", "gpt5"), "no plan named 'gpt5'; there are .*" + ".*".join(PLANS)),
    (("train", "--resume", "nobody"), "no model named 'nobody'; there are mine"),
    (("train", "--resume", "mine"), "mine does not say how it was trained"),
    ((*TRAIN, "--steps", "many"), "invalid int value: 'many'"),
    ((*TRAIN, "--optimiser", "lion"), "invalid choice: 'lion'"),
    (
        (*TRAIN, "--name", "mine"),
        "there is a model named mine already: choose another name, or replace it .--replace",
    ),
    ((*TRAIN, "--device", "abacus"), "no device 'abacus' on this machine; it has .*cpu"),
    ((*TRAIN, "--set", "n_layer"), "--set n_layer names no value; write --set FIELD=VALUE"),
    ((*TRAIN, "--set", "n_layer=two"), "n_layer is 'two'"),
    ((*TRAIN, "--set", "n_layer=" + "[" * 100_000), r"n_layer is '\[+"),
    ((*TRAIN, "--set", "vocab_size=500"), "vocab_size is 500; the tokenizer has"),
    ((*TRAIN, "--tokenizer", "missing.json"), "missing.json"),
    ((*TRAIN, "--steps", "2", "--root", "CORPUS"), "cannot write the model bigram below"),
]


@pytest.mark.parametrize(
    ("arguments", "said"),
    ERRORS,
    ids=lambda value: " ".join(value)[:50] if isinstance(value, tuple) else "",
)
def test_whatever_is_wrong_is_one_line_and_exit_status_two(
    arguments: tuple[str, ...],
    said: str,
    capsys: Capture,
    tiny_model: TinyModel,
    corpus: Path,
    tmp_path: Path,
) -> None:
    tiny_model("mine")
    files = {"CORPUS": corpus, "FOLDER": tmp_path}
    assert re.search(
        said, error(capsys, *(files.get(argument, argument) for argument in arguments))
    )


@pytest.mark.parametrize(
    ("arrange", "said"),
    [
        (damaged, "mine/model.safetensors is damaged"),
        (huge_weights, "not numbers|not the weights of a trained model"),
    ],
)
@pytest.mark.parametrize("command", ["generate", "evaluate"])
def test_a_model_that_cannot_work_is_one_line_too(
    command: str,
    arrange: Callable[[Path], None],
    said: str,
    capsys: Capture,
    tiny_model: TinyModel,
    corpus: Path,
) -> None:
    arrange(tiny_model("mine"))
    options = ("--prompt", "a", "--json") if command == "generate" else ("--corpus", corpus)
    assert re.search(said, error(capsys, command, "mine", *options))


def test_a_reader_that_stops_reading_is_no_error_of_the_command(
    monkeypatch: pytest.MonkeyPatch, tiny_model: TinyModel
) -> None:
    tiny_model("mine")

    def closed(*_: object) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(sys.stdout, "write", closed)
    with pytest.raises(BrokenPipeError):
        main(["generate", "mine", "--prompt", "a"])


def test_as_a_program_it_ends_with_status_two_and_one_line_and_no_traceback(
    tiny_model: TinyModel,
) -> None:
    tiny_model("mine")
    ended = run("generate", "mine", "--prompt", "€" * 3, "--top-k", "0", PYTHONIOENCODING="ascii")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "gptviz: top_k is 0; it must be a whole number, 1 or more\n"


@pytest.mark.full
def test_a_closed_pipe_ends_the_program_quietly(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="é日\n ")
    line = (
        f"{sys.executable} -m gptviz generate mine --prompt é --max-new-tokens 3000 | head -c 5; "
        f"echo ${{PIPESTATUS[0]}}"
    )
    piped = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, timeout=PATIENCE)
    assert piped.stderr == b""
    assert piped.stdout.endswith(b"0\n")


def test_json_is_ascii_wherever_it_goes(capsys: Capture, tiny_model: TinyModel) -> None:
    tiny_model("mine", text="é日\n ")
    printed = output(
        capsys, "generate", "mine", "--prompt", "é", "--max-new-tokens", "30", "--json"
    )
    assert printed.isascii()
    text = json.loads(printed)["text"]
    assert set(text) <= set("é日\n ")
    assert not text.isascii()


def training(*arguments: str | Path) -> AbstractContextManager[subprocess.Popen[str]]:
    """A training in a process of its own, which can be interrupted."""
    if sys.platform == "win32":
        pytest.skip("Windows interrupts all programs of a terminal together")
    # A shell's background job ignores the signal, and so would what it starts.
    unignore = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    return running(["-m", "gptviz", *map(str, arguments)], preexec_fn=unignore)


def read_until(process: subprocess.Popen[str], start: str) -> list[str]:
    """The lines that the process prints, up to one that begins with `start`."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(start):
            return lines
    raise AssertionError("".join([*lines, process.communicate()[1]]))


def test_ctrl_c_stops_a_training_after_the_step_and_keeps_it_evaluated(corpus: Path) -> None:
    # A million steps, evaluated every hundred: it never ends by itself, however late the signal
    # arrives.
    endless = (
        "train",
        "bigram",
        "--corpus",
        corpus,
        "--steps",
        "1000000",
        *QUICK,
        "--evaluations",
        "10000",
    )
    with training(*endless) as process:
        read_until(process, "step 100:")
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, ""), rest
    assert "stopping after this step" in rest
    assert rest.splitlines()[-1].startswith("stopped: kept as")
    lm = gptviz.load("bigram")
    assert 100 <= lm.card.steps < 1_000_000
    assert lm.card.losses[-1].step == lm.card.steps
    held_out = torch.from_numpy(lm.tokenizer.encode_ids(read_corpus(corpus).split()[1]))
    assert lm.card.validation_loss == evaluate(lm.model, consecutive_windows(held_out, 8)).loss


@pytest.mark.parametrize("columns", [50, 80, 100, 1_000])
def test_a_table_keeps_all_its_numbers_in_a_narrow_terminal(
    columns: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tiny_model: TinyModel
) -> None:
    tiny_model("mine")
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = answered(capsys, "heads", "mine")
    printed = output(capsys, "heads", "mine")
    assert max(map(len, printed.splitlines())) <= columns
    read: dict[str, dict[str, str]] = {}
    for part in printed.rstrip().split("\n\n"):
        names, *lines = part.splitlines()
        for line in lines:
            name, *values = line.split()
            read.setdefault(name, {}).update(zip(names.split(), values, strict=True))
    scores = [
        name
        for name in rows[0]
        if name not in ("name", "block", "head") and rows[0][name] is not None
    ]
    assert read == {row["name"]: {name: f"{row[name]:.3f}" for name in scores} for row in rows}
    assert (len(printed.split("\n\n")) == 1) == (columns == 1_000)


def test_lines_of_a_narrow_terminal_go_on_below(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    whole = output(capsys, "describe", "--preset", "gpt2")
    monkeypatch.setenv("COLUMNS", "80")
    narrow = output(capsys, "describe", "--preset", "gpt2")
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, whole.splitlines()))
    assert narrow.split() == whole.split()


AT_ONCE = "stopped at once: train --resume {} goes on from what was saved last\n"


def test_a_second_ctrl_c_ends_at_once_and_the_run_goes_on_from_what_was_saved(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []

    def interrupted_twice(self: Trainer, rate: float = 0.0) -> tuple[float, float, int]:
        signal.raise_signal(signal.SIGINT)
        said.append(capsys.readouterr().out)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the step is not ended")

    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "advance", interrupted_twice)
        assert main([*TASK, "--steps", "3"]) == 130
    assert "stopping after this step" in said[0]
    assert capsys.readouterr() == (AT_ONCE.format("reversal"), "")
    assert signal.getsignal(signal.SIGINT) is before
    folder = checkpoints.find("reversal")
    assert read_status(folder).state == "interrupted"
    assert checkpoints.load(folder).card.steps == 0
    assert (
        output(capsys, "train", "--resume", "reversal")
        .splitlines()[-1]
        .startswith("finished: kept as")
    )


@pytest.mark.parametrize("where", ["evaluate", "_write_weights", "state"])
def test_a_second_ctrl_c_while_the_run_is_saved_leaves_a_model_that_loads(
    where: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner: Any = training_of_runs._Recorder if where == "_write_weights" else Trainer
    whole = getattr(owner, where)

    def interrupted(self: Any, *given: Any, **named: Any) -> Any:
        if asked:
            signal.raise_signal(signal.SIGINT)
        return whole(self, *given, **named)

    asked: list[int] = []
    step = Trainer.advance

    def stop(self: Trainer, *given: Any) -> tuple[float, float, int]:
        if not asked:
            asked.append(1)
            signal.raise_signal(signal.SIGINT)
        return step(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "advance", stop)
        patch.setattr(owner, where, interrupted)
        assert main([*TASK, "--steps", "3"]) == 130
    said = capsys.readouterr()
    assert said.out.endswith(AT_ONCE.format("reversal"))
    assert said.err == ""
    checkpoints.load(checkpoints.find("reversal"))
    assert (
        output(capsys, "train", "--resume", "reversal")
        .splitlines()[-1]
        .startswith("finished: kept as")
    )


LABEL = (
    "train",
    "classifier",
    *QUICK,
    "--weight-decay",
    "0.1",
    "--set",
    "d_model=12",
    "--set",
    "n_head=3",
)


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """A hundred texts with two labels, as a table: the last word decides."""
    file = tmp_path / "reviews.csv"
    rows = [
        f'"the film, number {word}, was {word} {kind}","{kind}"'
        for word in "abcdefghijklmnopqrstuvwxy"
        for kind in ("good", "bad")
    ]
    file.write_text("text,label\n" + "\n".join(rows * 2) + "\n", encoding="utf-8")
    return file


def test_a_classifier_is_trained_on_a_table_and_says_beside_it_what_counting_words_comes_to(
    capsys: Capture, reviews: Path
) -> None:
    out = output(capsys, *LABEL, "--corpus", reviews, "--steps", "120", "--learning-rate", "0.01")
    assert re.findall(
        r"^step (\d+): (?:training [\d.]+, )?validation [\d.]+ nats/text, accuracy", out, re.M
    ) == [
        "0",
        "60",
        "120",
    ]
    assert re.search(r"^    bad \d+% \(bad\): the film, number \w, was \w bad$", out, re.M)
    lm = gptviz.load("classifier")
    assert lm.card.labels == lm.labels == ("bad", "good")
    assert (lm.card.accuracy, lm.card.baseline_accuracy) == (1.0, 1.0)
    told = answered(capsys, "evaluate", "classifier", "--corpus", reviews)
    assert told == {
        "loss": pytest.approx(lm.card.validation_loss, rel=1e-5),
        "accuracy": 1.0,
        "texts": 12,  # every text stands twice in the table, both times on one side
        "baseline_accuracy": 1.0,
    }
    whole = answered(capsys, "evaluate", "classifier", "--corpus", reviews, "--split", "all")
    assert set(whole) == {"loss", "accuracy", "texts"}
    assert whole["texts"] == 100
    reviews.unlink()
    assert answered(capsys, "evaluate", "classifier") == told
    plain = output(capsys, "evaluate", "classifier")
    assert plain.startswith(
        f"loss {told['loss']:.4f} nats per text, accuracy 100.00%, over 12 texts\nwords counted "
        "and weighed"
    )


def test_classify_prints_the_labels_the_likeliest_first(capsys: Capture, reviews: Path) -> None:
    output(capsys, *LABEL, "--corpus", reviews, "--steps", "120", "--learning-rate", "0.01")
    lm = gptviz.load("classifier")
    found = lm.classify("the film was good")
    assert output(capsys, "classify", "classifier", "--text", "the film was good").splitlines() == [
        f"{found['good']:>7.2%}  good",
        f"{found['bad']:>7.2%}  bad",
    ]
    assert main(["classify", "classifier", "--text", "Film-noir " + "was good " * 5_000]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "gptviz: Not in the vocabulary: the text “noir”; the model reads ⟨unknown⟩ instead.",
        "gptviz: only the first 50 of 10,002 words are read",
    ]
    assert main(["classify", "classifier", "--text", "nothing known here"]) == 0
    assert "⟨unknown⟩" in capsys.readouterr().err


def test_what_a_classifier_cannot_do_is_said_with_what_can(
    capsys: Capture, reviews: Path, tiny_model: TinyModel
) -> None:
    tiny_model("mine")
    output(capsys, *LABEL, "--corpus", reviews, "--steps", "1")
    writes = error(capsys, "generate", "classifier", "--prompt", "a film")
    assert "is a classifier and writes no text: use classify classifier --text TEXT" in writes
    assert "is not a classifier: use generate mine --prompt TEXT" in error(
        capsys, "classify", "mine", "--text", "a"
    )
    assert "reversal has no labels: give a CSV file" in error(
        capsys, "evaluate", "classifier", "--corpus", "reversal"
    )
    said = error(capsys, "evaluate", "mine", "--corpus", "opinions")
    assert "mine: the model is not a classifier: give a text instead of opinions" in said


ANSWER = (
    "train",
    "seq2seq",
    *QUICK,
    "--set",
    "d_model=12",
    "--set",
    "n_head=3",
    "--set",
    "n_layer=1",
)


@pytest.fixture
def mirrored(tmp_path: Path) -> Path:
    """Two hundred texts of three letters and the same backwards, a pair a line."""
    texts = [one + two + three for one in "abcdef" for two in "abcdef" for three in "abcdef"][:200]
    file = tmp_path / "mirrored.tsv"
    file.write_text("".join(f"{text}\t{text[::-1]}\n" for text in texts), encoding="utf-8")
    return file


def test_an_encoder_decoder_is_trained_on_two_columns_and_tells_how_often_it_is_right(
    capsys: Capture, mirrored: Path
) -> None:
    out = output(capsys, *ANSWER, "--corpus", mirrored, "--steps", "4")
    assert re.search(
        r"^step 4: training [\d.]+, validation [\d.]+ nats/token, accuracy [\d.]+%\n    [a-f]{3} "
        r"→ ",
        out,
        re.M,
    )
    lm = gptviz.load("seq2seq")
    assert lm.card.corpus == "mirrored.tsv"
    told = answered(capsys, "evaluate", "seq2seq")
    assert set(told) == {"loss", "perplexity", "accuracy", "exact_match", "tokens"}
    assert told["loss"] == pytest.approx(lm.card.validation_loss, rel=1e-5)
    assert (told["exact_match"], told["tokens"]) == (lm.card.to_json()["exact_match"], 20 * 4)
    whole = answered(capsys, "evaluate", "seq2seq", "--corpus", mirrored, "--split", "all")
    assert whole["tokens"] == 200 * 4
    mirrored.with_name("odd.csv").write_text("abc,€ba\nabd,dba\n", encoding="utf-8")
    assert main(["evaluate", "seq2seq", "--corpus", str(mirrored.with_name("odd.csv"))]) == 0
    assert re.fullmatch(
        r"gptviz: Not in the vocabulary: € \(U\+20AC EURO SIGN\); .* instead\.\n",
        capsys.readouterr().err,
    )
    mirrored.unlink()
    assert answered(capsys, "evaluate", "seq2seq") == told
    plain = output(capsys, "evaluate", "seq2seq").splitlines()
    assert plain[0].startswith(f"loss {told['loss']:.4f} nats per token, perplexity ")
    assert plain[1:] == [f"exact match {told['exact_match']:.2%}"]


@pytest.mark.parametrize("name", quick(["dates", "numbers", "mirror"], "mirror"))
def test_pairs_that_are_generated_are_trained_on_by_name(
    name: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gptviz.data.seq2seq.MOST_ANSWERED", 50)
    output(capsys, *ANSWER, "--corpus", name, "--steps", "1", "--evaluations", "1")
    told = answered(capsys, "evaluate", "seq2seq")
    assert set(told) == {"loss", "perplexity", "accuracy", "exact_match", "floor", "tokens"}
    card = gptviz.load("seq2seq").card
    assert (card.task, card.floor, told["floor"]) == (name, 0.0, 0.0)
    assert (told["loss"], told["exact_match"]) == (
        pytest.approx(card.validation_loss),
        card.to_json()["exact_match"],
    )


def test_generate_answers_greedily_or_by_beams(capsys: Capture, mirrored: Path) -> None:
    output(capsys, *ANSWER, "--corpus", mirrored, "--steps", "30", "--learning-rate", "0.01")
    lm = gptviz.load("seq2seq")
    asked = ("generate", "seq2seq", "--prompt", "abc", "--max-new-tokens", "6")
    tokens, ended = decode_answer(lm, "abc", 6)
    assert ended
    assert (
        output(capsys, *asked) == output(capsys, *asked, "--greedy") == f"{lm.answer('abc', 6)}\n"
    )
    read = answered(capsys, "lens", "seq2seq", "--prompt", "abc")["tokens"]
    assert read[0] == "⟨start⟩"  # as pages call it
    assert "".join(read[1:]) in lm.answer("abc")
    told = answered(capsys, *asked)
    assert told.pop("tokens_per_second") > 0
    assert told == {"text": lm.tokenizer.decode(tokens), "tokens": tokens, "ended": True}
    found = lm.beams("abc", 3, 6).finished
    told = answered(capsys, *asked, "--beams", "3")
    assert [beam["text"] for beam in told["beams"]] == [
        lm.tokenizer.decode(one.ids) for one in found
    ]
    assert [beam["log_probability"] for beam in told["beams"]] == [one.total for one in found]
    assert told["text"] == told["beams"][0]["text"]
    assert output(capsys, *asked, "--beams", "3").splitlines() == [
        f"{math.exp(one.total):>7.2%}  {lm.tokenizer.decode(one.ids)}" for one in found
    ]


def test_an_answer_that_never_ends_is_cut_and_said_to_be(capsys: Capture, mirrored: Path) -> None:
    output(capsys, *ANSWER, "--corpus", mirrored, "--steps", "1", "--set", "unembed_bias=true")
    lm = gptviz.load("seq2seq")
    with torch.no_grad():
        lm.model.head.unembed.bias[
            special_tokenizer(lm).padding :
        ] = -1e4  # no mark is ever written
    checkpoints.save("seq2seq", lm.model, lm.tokenizer, lm.card.to_json(), replace=True)
    for longest, options in ((7, ()), (7, ("--beams", "2")), (64, ())):
        assert (
            main(
                [
                    "generate",
                    "seq2seq",
                    "--prompt",
                    "abc",
                    "--max-new-tokens",
                    str(longest),
                    *options,
                ]
            )
            == 0
        )
        printed = capsys.readouterr()
        assert len(printed.out.splitlines()[0].split()[-1]) == longest
        assert printed.err == f"gptviz: the answer has no end: it was cut after {longest} tokens\n"
    told = answered(capsys, "generate", "seq2seq", "--prompt", "abc")
    assert (len(told["tokens"]), told["ended"]) == (64, False)


def test_an_answer_is_drawn_where_a_setting_asks_for_it_and_else_the_likeliest(
    capsys: Capture, mirrored: Path
) -> None:
    output(capsys, *ANSWER, "--corpus", mirrored, "--steps", "1")
    lm = gptviz.load("seq2seq")

    def told(*more: str) -> str:
        return str(
            answered(
                capsys, "generate", "seq2seq", "--prompt", "abc", "--max-new-tokens", "9", *more
            )["text"]
        )

    assert told() == lm.answer("abc", 9) == told("--greedy", "--top-k", "2")
    drawn = told("--temperature", "1.5", "--top-k", "6", "--seed", "3")
    assert (
        drawn
        == lm.answer("abc", 9, temperature=1.5, top_k=6, seed=3)
        == lm.generate("abc", 9, temperature=1.5, top_k=6, seed=3)
    )
    assert len({lm.answer("abc", 9, seed=seed) for seed in range(5)}) > 1


def test_what_an_encoder_decoder_cannot_do_is_said_with_what_can(
    capsys: Capture, mirrored: Path, tiny_model: TinyModel
) -> None:
    tiny_model("mine")
    output(capsys, *ANSWER, "--corpus", mirrored, "--steps", "1")
    ask = ("generate", "seq2seq", "--prompt")
    assert "searches for the likeliest answers" in error(
        capsys, *ask, "a", "--temperature", "2", "--beams", "2"
    )
    assert "--beams is 1,000,000; it must be at most 64" in error(
        capsys, *ask, "a", "--beams", "1000000"
    )
    assert (
        len(output(capsys, *ask, "a", "--beams", "64", "--max-new-tokens", "2").splitlines()) == 64
    )
    assert "leave --beams out" in error(capsys, "generate", "mine", "--prompt", "a", "--beams", "2")
    assert "is not a classifier: use generate" in error(
        capsys, "classify", "seq2seq", "--text", "a"
    )
    assert main([*ask, "ab€", "--max-new-tokens", "2", "--json"]) == 0
    assert "EURO SIGN" in capsys.readouterr().err
    mirrored.write_text("".join(f"{'a' * n}\tb\n" for n in (2, 3, 64)))
    said = error(capsys, "evaluate", "seq2seq", "--corpus", mirrored, "--split", "all")
    assert (
        "seq2seq: the longest text of mirrored.tsv has 65 tokens with its end; the model reads at "
        "most 64:" in said
    )
    assert "context_length" not in said


def test_steering_says_the_text_with_the_direction_beside_the_plain_one(
    capsys: Capture, tiny_model: TinyModel, tmp_path: Path
) -> None:
    tiny_model("mine", text="abcdefg ")
    lists = {
        "bed": ["a bed", "bed", "a fed bed"],
        "cab": ["a cab", "cab", "a bad cab", "a fed cab"],
    }
    for name, texts in lists.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(texts))
    prompt = "steer", "mine", "--prompt", "a cab"
    asked = *prompt, "--toward", tmp_path / "bed.txt", "--away", tmp_path / "cab.txt"
    lm = gptviz.load("mine")
    known = lm.direction(lists["bed"], lists["cab"], block=0, name="bed")
    plain = lm.generate("a cab", 40, temperature=0)
    for strength in (0, 40):
        found = answered(capsys, *asked, "--layer", "0", "--strength", str(strength))
        text = lm.edited(known.edit(strength)).generate("a cab", 40, temperature=0)
        assert found == {"text": text, "plain": plain, "separation": known.separated}
    assert found["text"] != found["plain"]
    said = output(capsys, *asked, "--layer", "all", "--out", tmp_path / "bed.gguf")
    assert "direction.bed-" in said
    assert answered(capsys, *prompt, "--direction", tmp_path / "bed.gguf")["separation"] is None
    assert "give two lists of texts" in error(capsys, *prompt, "--toward", tmp_path / "bed.txt")
    assert "block is 7; it must be" in error(capsys, *asked, "--layer", "7")
    assert "it is all, or the number of a block" in error(capsys, *asked, "--layer", "first")
    assert "bed.txt is no GGUF file" in error(capsys, *prompt, "--direction", tmp_path / "bed.txt")


@pytest.mark.parametrize("option", ["--out", "--to"])
def test_a_model_is_written_where_it_is_asked_for(
    option: str, tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    tiny_model("mine")
    for form in ("zip", "python"):
        to = tmp_path / form
        said = answered(capsys, "export", "mine", "--format", form, option, to)
        assert (said["path"], to.exists()) == (str(to), True)
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    told = capsys.readouterr().out
    assert "--out" in told
    assert "--to" not in told


def test_a_name_of_thousands_of_letters_is_cut_in_a_message(capsys: Capture) -> None:
    for typed in (["models", "--" + "x" * 5_000], ["lens", "x" * 5_000, "--prompt", "a"]):
        try:
            assert main(typed) == 2
        except SystemExit as ended:
            assert ended.code == 2
        assert len(capsys.readouterr().err) < 2_000
