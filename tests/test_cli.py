"""The command line: what it prints, and that whatever is wrong is one line and exit status 2."""

from __future__ import annotations

import functools
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import gptviz
from gptviz.__main__ import main
from gptviz.learn import checkpoints
from gptviz.learn.evaluation import evaluate
from gptviz.model import PRESETS
from gptviz.text import read_corpus
from tests.tiny import TinyModel

ROOT = Path(__file__).resolve().parents[1]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _no_bundled_models(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "BUNDLED", tmp_path / "bundled")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Two thousand characters."""
    words = random.Random(0).choices(["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog"], k=500)
    file = tmp_path / "corpus.txt"
    file.write_text(" ".join(words)[:2000], encoding="utf-8")
    return file


def output(capture: Capture, *arguments: str | Path) -> str:
    """What a command that succeeds prints, with nothing on stderr."""
    assert main([str(argument) for argument in arguments]) == 0
    printed = capture.readouterr()
    assert printed.err == ""
    return printed.out


def error(capture: Capture, *arguments: str | Path) -> str:
    """The one line a command that fails prints on stderr."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as ended:
        status = ended.code
    err = capture.readouterr().err
    assert status == 2
    assert re.fullmatch(r"gptviz: [^\n]+\n", err), err
    return err


def run(*arguments: str | Path, **options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gptviz", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **options}, timeout=120)


def test_no_command_prints_the_help_and_is_no_error(capsys: Capture) -> None:
    out = output(capsys)
    for command in ("models", "describe", "train", "generate", "evaluate"):
        assert command in out


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_are_no_errors(option: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main([option])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: python -m gptviz") if option == "--help" else out == f"gptviz {gptviz.__version__}\n"


def test_models_are_listed_the_broken_ones_with_what_is_wrong(capsys: Capture, tiny_model: TinyModel) -> None:
    assert output(capsys, "models") == ""
    assert json.loads(output(capsys, "models", "--json")) == []
    tiny_model("good", card={"preset": "ladder", "corpus": "c.txt", "validation_loss": 1.51234, "steps": 3})
    tiny_model("odd", card={"validation_loss": "n/a"})
    (tiny_model("bad") / "config.json").write_text("{")
    good, odd, bad = (json.loads(output(capsys, "models", "--json"))[index] for index in (1, 2, 0))
    assert good == {"name": "good", "parameters": 3_184, "preset": "ladder", "corpus": "c.txt", "validation_loss": 1.51234}
    assert odd == {"name": "odd", "parameters": 3_184, "validation_loss": "n/a"}
    assert set(bad) == {"name", "error"}
    assert "bad/config.json cannot be read" in bad["error"]
    lines = output(capsys, "models").splitlines()
    assert [line.split()[0] for line in lines] == ["bad", "good", "odd"]
    assert "3,184 parameters   validation loss 1.5123" in lines[1]


@pytest.mark.parametrize("name", ["generator", "gpt2"])
def test_describe_lists_layers_whose_counts_sum_to_the_total(name: str, capsys: Capture) -> None:
    described = json.loads(output(capsys, "describe", "--preset", name, "--json"))
    assert set(described) == {"parameters", "layers"}
    assert described["parameters"] == {"generator": 44_487, "gpt2": 124_439_808}[name]
    assert sum(layer["parameters"] for layer in described["layers"]) == described["parameters"]
    assert all(set(layer) == {"name", "kind", "parameters", "shapes"} for layer in described["layers"])
    lines = output(capsys, "describe", "--preset", name).splitlines()
    assert len(lines) == len(described["layers"]) + 1
    assert re.fullmatch(rf"total +{described['parameters']:,}", lines[-1])


def test_describe_takes_a_model_by_name(capsys: Capture, tiny_model: TinyModel) -> None:
    tiny_model("mine", tied=True)
    described = json.loads(output(capsys, "describe", "mine", "--json"))
    assert described["layers"][0] == {
        "name": "embed",
        "kind": "Embedding",
        "parameters": 29 * 12,
        "shapes": {"weight": [29, 12]},
    }
    assert described["layers"][-1]["kind"] == "Linear, tied"


def test_generate_prints_the_prompt_and_what_follows_or_json(capsys: Capture, tiny_model: TinyModel) -> None:
    folder = tiny_model("mine")
    arguments = ("generate", "mine", "--prompt", "the fox", "--max-new-tokens", "40", "--seed", "3")
    told = json.loads(output(capsys, *arguments, "--json"))
    assert set(told) == {"text", "tokens", "tokens_per_second"}
    lm = gptviz.load(folder)
    assert told["text"] == lm.generate("the fox", 40, seed=3)
    assert told["tokens"] == lm.tokenizer.encode(told["text"]).ids
    assert told["tokens_per_second"] > 0
    assert output(capsys, *arguments) == f"the fox{told['text']}\n"
    assert output(capsys, *arguments[:-1], "4") != f"the fox{told['text']}\n"
    assert output(capsys, "generate", "mine", "--prompt", "the fox", "--max-new-tokens", "0") == "the fox\n"


def test_greedy_is_temperature_zero_and_settings_reach_the_draw(capsys: Capture, tiny_model: TinyModel) -> None:
    lm = gptviz.load(tiny_model("mine"))

    def text(*options: str) -> str:
        return json.loads(output(capsys, "generate", "mine", "--prompt", "a", "--json", *options))["text"]

    greedy = text("--greedy")
    assert greedy == text("--temperature", "0") == text("--greedy", "--seed", "9") == text("--top-k", "1")
    assert greedy == lm.generate("a", temperature=0)
    drawn = text("--temperature", "1.5", "--top-k", "7", "--top-p", "0.8", "--seed", "5")
    assert drawn == lm.generate("a", temperature=1.5, top_k=7, top_p=0.8, seed=5)


def test_what_the_vocabulary_lacks_is_said_and_the_model_goes_on(capsys: Capture, tiny_model: TinyModel) -> None:
    tiny_model("mine")
    assert main(["generate", "mine", "--prompt", "a€b", "--max-new-tokens", "3", "--json"]) == 0
    printed = capsys.readouterr()
    assert "EURO SIGN" in printed.err
    assert len(json.loads(printed.out)["tokens"]) == 3


def test_evaluate_tells_the_loss_on_the_last_tenth_or_on_all(capsys: Capture, tiny_model: TinyModel, corpus: Path) -> None:
    lm = gptviz.load(tiny_model("mine"))
    text = read_corpus(corpus).text
    told = {}
    for split, part in (("validation", text[1800:]), ("all", text)):
        told = json.loads(output(capsys, "evaluate", "mine", "--corpus", corpus, "--split", split, "--json"))
        assert set(told) == {"loss", "perplexity", "tokens"}
        loss, count = evaluate(lm.model, torch.from_numpy(lm.tokenizer.encode_ids(part)))
        assert (told["loss"], told["tokens"]) == (loss, count)
        assert told["perplexity"] == pytest.approx(math.exp(loss))
    assert f"loss {told['loss']:.4f} nats per token" in output(capsys, "evaluate", "mine", "--corpus", corpus, "--split", "all")
    odd = corpus.with_name("odd.txt")
    odd.write_text(text + "€€", encoding="utf-8")
    assert main(["evaluate", "mine", "--corpus", str(odd)]) == 0
    assert re.fullmatch(r"gptviz: Not in the vocabulary: € \(U\+20AC EURO SIGN\); .* instead\.\n", capsys.readouterr().err)
    default = json.loads(output(capsys, "evaluate", "mine", "--corpus", corpus, "--json"))
    assert default["tokens"] == 199


def test_train_keeps_a_model_that_opens_with_a_card_that_says_how_it_was_made(capsys: Capture, corpus: Path, home: Path) -> None:
    arguments = ["train", "bigram", "--corpus", str(corpus), "--steps", "40", "--name", "rung", "--store", "float16"]
    out = output(capsys, *arguments, "--batch-size", "8", "--learning-rate", "0.02", "--precision", "float32")
    assert out.startswith("bigram: ")
    assert len(re.findall(r"^step [\d,]+: training [\d.]+, validation [\d.]+ nats/token$", out, re.M)) == 10
    assert out.endswith(f"kept as {home / 'checkpoints/rung'}\n")
    lm = gptviz.load("rung")
    assert lm.card["preset"] == "bigram"
    assert lm.card["corpus"] == "corpus.txt"
    assert lm.card["corpus_sha256"] == read_corpus(corpus).sha256
    assert lm.card["steps"] == 40
    assert [entry["step"] for entry in lm.card["losses"]] == list(range(4, 41, 4))
    validation = [entry["validation"] for entry in lm.card["losses"]]
    assert validation[-1] < validation[0] - 0.2
    assert lm.card["validation_loss"] == validation[-1]
    told = json.loads(output(capsys, "evaluate", "rung", "--corpus", corpus, "--json"))
    assert told["loss"] == pytest.approx(validation[-1], abs=2e-3)  # stored in float16


def test_one_seed_is_one_training_and_the_root_and_preset_are_where_it_is_kept(
    capsys: Capture, corpus: Path, tmp_path: Path
) -> None:
    for root, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        output(capsys, "train", "bigram", "--corpus", corpus, "--steps", "3", "--seed", seed, "--root", tmp_path / root)
    a, b, c = (gptviz.load(tmp_path / root / "bigram").model.embed.weight for root in "abc")
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def no_arrangement(folder: Path) -> None:
    return


def damaged(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:500])


def huge_weights(folder: Path) -> None:
    lm = gptviz.load(folder)
    for parameter in lm.model.parameters():
        parameter.data.fill_(3e38)
    checkpoints.save("mine", lm.model, lm.tokenizer, {})


TRAIN = ("train", "bigram", "--corpus", "CORPUS")
GENERATE = ("generate", "mine", "--prompt", "a")
EVALUATE = ("evaluate", "mine", "--corpus")
ERRORS: list[tuple[tuple[str, ...], str]] = [
    (("fly",), "invalid choice: 'fly'"),
    (("models", "--fast"), "unrecognized arguments: --fast"),
    (("models", "a\nb"), "unrecognized arguments: a b"),
    (("describe",), "takes the name of a model or --preset"),
    (("describe", "mine", "--preset", "gpt2"), "takes the name of a model or --preset"),
    (("describe", "nobody"), "no model named 'nobody'; there are mine"),
    (("describe", "--preset", "gpt5"), "no preset named 'gpt5'; there are .*gpt2"),
    (("generate", "mine"), "required: --prompt"),
    (("generate", "../mine", "--prompt", "a"), r"no model named '\.\./mine'"),
    (("generate", "x" * 5_000, "--prompt", "a"), "no model named 'x{80}'"),
    (("generate", "mine", "--prompt", ""), "prompt is empty"),
    ((*GENERATE, "--temperature", "-1"), r"temperature is -1\.0"),
    ((*GENERATE, "--temperature", "nan"), "temperature is nan"),
    ((*GENERATE, "--temperature", "hot"), "invalid float value: 'hot'"),
    ((*GENERATE, "--top-k", "0"), "top-k is 0"),
    ((*GENERATE, "--top-p", "2"), r"top-p is 2\.0"),
    ((*GENERATE, "--max-new-tokens", "-1"), "--max-new-tokens is -1"),
    ((*GENERATE, "--device", "abacus"), "no device 'abacus' on this machine; it has .*cpu"),
    ((*EVALUATE, "missing.txt"), "missing.txt does not exist"),
    ((*EVALUATE, "FOLDER"), "is a folder"),
    ((*EVALUATE, "BINARY"), "is not UTF-8"),
    ((*EVALUATE, "EMPTY"), "is empty"),
    ((*EVALUATE, "SHORT"), "at least 2 tokens, the text has 1"),
    ((*EVALUATE, "CORPUS", "--split", "half"), "invalid choice: 'half'"),
    (("train", "bigram"), "required: --corpus"),
    (("train", "gpt5", "--corpus", "CORPUS"), "no preset named 'gpt5'"),
    (("train", "bigram", "--corpus", "missing.txt"), "missing.txt does not exist"),
    (("train", "bigram", "--corpus", "SHORT"), "has 9 tokens to train on and 1 to validate"),
    ((*TRAIN, "--steps", "0"), "steps is 0"),
    ((*TRAIN, "--steps", "5", "--minutes", "1"), "--minutes: not allowed with argument --steps"),
    ((*TRAIN, "--minutes", "nan"), "minutes is nan"),
    ((*TRAIN, "--batch-size", "0"), "batch_size is 0"),
    ((*TRAIN, "--learning-rate", "-1"), r"learning_rate is -1\.0"),
    ((*TRAIN, "--name", "../x"), r"'\.\./x' cannot name a model"),
    ((*TRAIN, "--name", "precious", "--root", "FOLDER"), "precious holds something other than a model"),
    ((*TRAIN, "--device", "abacus"), "no device 'abacus'"),
    ((*TRAIN, "--steps", "20", "--learning-rate", "1e35"), "no longer a number after .* lower the learning rate"),
    ((*TRAIN, "--steps", "2", "--root", "CORPUS"), "cannot write the model bigram below"),
]


@pytest.mark.parametrize(
    ("arguments", "said"), ERRORS, ids=lambda value: " ".join(value)[:50] if isinstance(value, tuple) else ""
)
def test_whatever_is_wrong_is_one_line_and_exit_status_two(
    arguments: tuple[str, ...], said: str, capsys: Capture, tiny_model: TinyModel, corpus: Path, tmp_path: Path
) -> None:
    tiny_model("mine")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/work.txt").touch()
    files = {"CORPUS": corpus, "FOLDER": tmp_path}
    for name, content in (("BINARY", b"\x89PNG\r\n\x1a\n\0\xff"), ("EMPTY", b""), ("SHORT", b"abcdefghij")):
        files[name] = tmp_path / name.lower()
        files[name].write_bytes(content)
    assert re.search(said, error(capsys, *(files.get(argument, argument) for argument in arguments)))


def test_a_name_that_cannot_be_kept_is_refused_before_any_training(capsys: Capture, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/work.txt").touch()
    for name in ("../x", "precious"):
        arguments = ["train", "bigram", "--corpus", str(corpus), "--steps", "1", "--name", name, "--root", str(tmp_path)]
        assert main(arguments) == 2
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arrange", "said"), [(damaged, "mine/model.safetensors is damaged"), (huge_weights, "not numbers|no trained model's")]
)
@pytest.mark.parametrize("command", ["generate", "evaluate"])
def test_a_model_that_cannot_work_is_one_line_too(
    command: str, arrange: Callable[[Path], None], said: str, capsys: Capture, tiny_model: TinyModel, corpus: Path
) -> None:
    arrange(tiny_model("mine"))
    options = ("--prompt", "a", "--json") if command == "generate" else ("--corpus", corpus)
    assert re.search(said, error(capsys, command, "mine", *options))


def test_a_reader_that_stops_reading_is_no_error_of_the_command(monkeypatch: pytest.MonkeyPatch, tiny_model: TinyModel) -> None:
    tiny_model("mine")

    def closed(*_: object) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(sys.stdout, "write", closed)
    with pytest.raises(BrokenPipeError):
        main(["generate", "mine", "--prompt", "a"])


def test_as_a_program_it_ends_with_status_two_and_one_line_and_no_traceback(tiny_model: TinyModel) -> None:
    tiny_model("mine")
    ended = run("generate", "mine", "--prompt", "€" * 3, "--top-k", "0", PYTHONIOENCODING="ascii")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "gptviz: top-k is 0; it must keep at least 1 token\n"


def test_a_closed_pipe_ends_the_program_quietly_and_json_is_ascii_wherever_it_goes(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="é日\n ")
    line = f"{sys.executable} -m gptviz generate mine --prompt é --max-new-tokens 3000 | head -c 5; echo ${{PIPESTATUS[0]}}"
    piped = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, timeout=120)
    assert piped.stderr == b""
    assert piped.stdout.endswith(b"0\n")
    told = run("generate", "mine", "--prompt", "é", "--max-new-tokens", "30", "--json", PYTHONIOENCODING="ascii")
    assert set(json.loads(told.stdout)["text"]) <= set("é日\n ")


def test_ctrl_c_stops_a_training_and_keeps_the_model(corpus: Path) -> None:
    command = [sys.executable, "-m", "gptviz", "train", "bigram", "--corpus", str(corpus), "--steps", "5000"]
    # A shell's background job ignores the signal, and so would what it starts.
    unignore = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    training = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=unignore)
    assert training.stdout is not None
    lines = []
    for line in training.stdout:
        lines.append(line)
        if line.startswith("step "):
            training.send_signal(signal.SIGINT)
            break
    rest, errors = training.communicate(timeout=120)
    assert (training.returncode, errors) == (0, ""), "".join([*lines, rest, errors])
    stopped = re.search(r"stopped at step ([\d,]+)", rest)
    assert stopped is not None
    steps = int(stopped[1].replace(",", ""))
    assert 500 <= steps < 5000
    lm = gptviz.load("bigram")
    assert lm.card["steps"] == steps
    assert lm.card["losses"][-1]["step"] == steps
    text = read_corpus(corpus).split()[1]
    assert lm.card["validation_loss"] == pytest.approx(evaluate(lm.model, torch.from_numpy(lm.tokenizer.encode_ids(text)))[0])


def test_ctrl_c_before_the_first_step_replaces_no_model(
    tiny_model: TinyModel, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_model("bigram")
    before = (folder / "model.safetensors").read_bytes()

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gptviz.learn.training.train", interrupted)
    assert main(["train", "bigram", "--corpus", str(corpus), "--steps", "5"]) == 130
    assert (folder / "model.safetensors").read_bytes() == before


def test_a_second_ctrl_c_skips_the_last_loss_and_still_keeps_the_model(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from gptviz.learn import evaluation, training

    def stopping_early(*arguments: object, **options: object) -> object:
        for event in original(*arguments, **options):
            yield event
            if event.step == 3:
                raise KeyboardInterrupt

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    original = training.train
    monkeypatch.setattr(training, "train", stopping_early)
    monkeypatch.setattr(evaluation, "evaluate", interrupted)
    output(capsys, "train", "bigram", "--corpus", corpus, "--steps", "100")
    card = gptviz.load("bigram").card
    assert (card["steps"], card["validation_loss"]) == (3, None)


def test_the_presets_that_can_be_trained_are_those_that_can_be_described(capsys: Capture) -> None:
    said = error(capsys, "train", "nothing", "--corpus", "x")
    assert all(name in said for name in PRESETS)
