"""The plain twin of a model: a file of Python that needs nothing else, and computes, writes and
learns what the model does.
"""

from __future__ import annotations

import json
import random
import re
import runpy
import subprocess
import sys
import zipfile
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from io import BytesIO, StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from tokenizers.pre_tokenizers import ByteLevel
from torch.nn import functional as F

import gptviz
from gptviz.interp.reading.anatomy import anatomy
from gptviz.language_model.writing import sequence_length
from gptviz.model import Config, Transformer, parameter_count
from gptviz.runs import checkpoints
from gptviz.runs.exports import FORMATS
from gptviz.text import CharTokenizer, SymbolTokenizer
from gptviz.twin import writing
from gptviz.ui.shell.around import take_home
from tests.command_line import Capture, answered, error, printed
from tests.examples import quick, tried
from tests.tiny import TinyModel, configs, families, scrambled, some_ids, tiny

ROOT = Path(gptviz.__file__).resolve().parents[1]
DECODERS = [
    path.name
    for path in sorted(checkpoints.BUNDLED.iterdir())
    if checkpoints.read_config(path).kind == "decoder"
]
PROMPTS = {
    "characters": "1+2=Romeo",
    "bpe": "O Romeo! What's 1234 “naïve” ²\n\n  it?",
    "symbols": "3 7 12",
    "cased words": '(Mary saw "John".) The nurse said',
}
# What a twin computes for a prompt: its tokens, the logits after each of them, and the greedy text.
COMPUTED = """
import json, runpy, sys
path, prompt, count = sys.argv[1:]
twin = runpy.run_path(path)
ids = twin["encode"](prompt)
print(json.dumps([ids, twin["forward"](ids), twin["write"](prompt, int(count))]))
"""


def alone(*arguments: object, folder: Path) -> str:
    """What Python prints that finds no module but its own, in an empty folder and an empty
    environment.
    """
    (folder / "empty").mkdir(exist_ok=True)
    command = [sys.executable, "-I", *map(str, arguments)]
    ended = subprocess.run(
        command, cwd=folder / "empty", env={}, capture_output=True, text=True, encoding="utf-8"
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def twin_of(
    model: Transformer, folder: Path, stops: writing.Stops = writing.NEVER
) -> dict[str, Any]:
    """The names that the twin of a model defines; its tokens are numbers."""
    tokenizer = SymbolTokenizer.numbers(model.config.vocab_size)
    writing.write("twin", model.config, tokenizer, dict(model.named_parameters()), stops, folder)
    return runpy.run_path(str(folder / "twin.py"))


def greedy(capsys: Capture, name: str, prompt: str, count: int) -> str:
    """The text that `gptviz generate` writes with the likeliest tokens."""
    options = ("--prompt", prompt, "--greedy", "--max-new-tokens", str(count))
    return printed(capsys, "generate", name, *options)[0].removesuffix("\n")


@pytest.mark.parametrize(
    "name", quick(DECODERS, "ladder-0", "sentences", "induction", "finetune-lora")
)
def test_alone_it_reads_computes_and_writes_what_the_model_does(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    FORMATS["python"].write(checkpoints.find(name), tmp_path / "made")
    lm = gptviz.load(name)
    fits = lm.model.config.context_length >= 8
    prompt = (
        PROMPTS[lm.tokenizer.kind]
        if fits
        else {"symbols": "3 7", "cased words": "the nurse said"}[lm.tokenizer.kind]
    )
    ids = lm.tokenizer.encode(prompt).ids
    count = 40  # past the end of a task
    given = (tmp_path / "made" / f"{name}.py", prompt, count)
    tokens, logits, text = json.loads(alone("-c", COMPUTED, *given, folder=tmp_path))
    assert tokens == ids
    with torch.inference_mode():
        torch.testing.assert_close(
            torch.tensor(logits), lm.model(torch.tensor([ids]))[0], rtol=0, atol=1e-4
        )
    assert text == greedy(capsys, name, prompt, count)
    options = ("--tokens", count, "--temperature", 0)
    assert alone(given[0], prompt, *options, folder=tmp_path) == text + "\n"


# One of each tokenizer, some with an end token, some with a task whose sequences are equally long.
@pytest.mark.parametrize(
    "name", quick(DECODERS, "ladder-0", "bpe", "addition", "induction", "modular", "jobs-10")
)
def test_a_strange_prompt_is_written_on_as_by_the_command(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    FORMATS["python"].write(checkpoints.find(name), tmp_path / "made")
    file = tmp_path / "made" / f"{name}.py"
    twin = runpy.run_path(str(file))
    lm = gptviz.load(name)
    size = parameter_count(lm.model.config)
    context = lm.model.config.context_length
    long = " ".join(lm.tokenizer.labels()[3:5]) * context
    for prompt in ("“你” é\u0085🙂 \x1d3", "  3 ", "\ufeff(3+4", '"Mary', long):
        if min(len(lm.tokenizer.encode(prompt).ids), context) * size > 60_000_000:
            continue  # it takes minutes in plain Python
        assert twin["write"](prompt, 3) == greedy(capsys, name, prompt, 3), prompt
    for empty in ("", " \n", "\u0085"):
        if not lm.tokenizer.encode(empty).ids:
            assert "the prompt is empty" in error(capsys, "generate", name, "--prompt", empty)
            with pytest.raises(
                ValueError, match="^the prompt is empty: type at least one character to go on from$"
            ):
                twin["write"](empty, 3)


def test_its_output_may_lack_characters_and_its_refusals_are_sentences(tmp_path: Path) -> None:
    FORMATS["python"].write(checkpoints.find("ladder-0"), tmp_path / "made")

    def ended(*arguments: str) -> tuple[int, str, str]:
        command = [sys.executable, tmp_path / "made" / "ladder-0.py", *arguments, "--tokens", "0"]
        environment = {"PYTHONIOENCODING": "cp1252"}
        done = subprocess.run(command, env=environment, capture_output=True, encoding="cp1252")
        return done.returncode, done.stdout, done.stderr

    assert ended("“The” 你") == (0, "“The” \\u4f60\n", "")
    status, _, said = ended("")
    assert status == 2
    assert said.endswith("error: the prompt is empty: type at least one character to go on from\n")
    (tmp_path / "short.txt").write_text("a", encoding="utf-8")
    for file in ("short.txt", "missing.txt"):
        status, _, said = ended("a", "--train", str(tmp_path / file))
        assert status == 2
        assert "Traceback" not in said


@pytest.mark.parametrize("name", DECODERS)
def test_it_is_short_and_clean_and_imports_nothing_that_python_does_not_bring(
    name: str, tmp_path: Path
) -> None:
    config = checkpoints.read_config(checkpoints.find(name))
    card = checkpoints.read_card(checkpoints.find(name))
    stops = writing.Stops(card.end_tokens, sequence_length(gptviz.load(name)))
    source = writing.source(name, config, checkpoints.read_tokenizer(checkpoints.find(name)), stops)
    check_form(source, tmp_path)
    learns = parameter_count(config) <= 10_000
    assert ("def backward" in source) == learns
    lines = source.splitlines()
    assert sum(bool(line.strip()) or not learns for line in lines) <= 250


@pytest.mark.parametrize("name", ["bpe", "sentences", "shakespeare"])
def test_one_that_learns_is_short_too_with_any_tokenizer(name: str, tmp_path: Path) -> None:
    tokenizer = checkpoints.read_tokenizer(checkpoints.find(name))
    parts = {
        "norm": "rmsnorm",
        "mlp": "gated",
        "activation": "silu",
        "positions": "rotary",
        "d_head": 4,
        "qk_norm": "separate",
    }
    stops = writing.Stops((1,))
    source = writing.source("twin", tiny(n_kv_head=1, **parts), tokenizer, stops)
    check_form(source, tmp_path)
    assert "def backward" in source
    assert sum(bool(line.strip()) for line in source.splitlines()) <= 250


def check_form(source: str, folder: Path) -> None:
    """Whether ruff has nothing to say about it, with the rules of this project, and all its imports
    are of the library.
    """
    (folder / "twin.py").write_text(source, encoding="utf-8")
    for check in (["check"], ["format", "--check"]):
        command = [
            sys.executable,
            "-m",
            "ruff",
            *check,
            "--config",
            str(ROOT / "pyproject.toml"),
            str(folder / "twin.py"),
        ]
        ended = subprocess.run(command, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout
    modules = set(re.findall(r"^(?:import|from) (\w+)", source, re.MULTILINE))
    assert modules <= sys.stdlib_module_names


def test_it_has_only_the_parts_of_its_model() -> None:
    tokenizer = CharTokenizer("abc")

    def source(**changes: Any) -> str:
        return writing.source("twin", tiny(vocab_size=3, **changes), tokenizer)

    bare = source(positions="none", residual="plain", final_norm=False, d_mlp=0)
    for part in (
        "position",
        "turned",
        "norm",
        "mlp",
        "activation",
        "SLOPES",
        "KEY_HEADS",
        "ENDS",
        "erf",
    ):
        assert part not in bare
    assert "def turned" in source(positions="rotary", d_head=4)
    assert "SLOPES" in source(positions="alibi")
    assert "kept" not in source(mask="full")
    assert "attention" not in source(n_layer=0)


@pytest.mark.parametrize(
    "changes",
    [{}, {"residual": "post-norm", "final_norm": False}, {"positions": "none", "d_mlp": 0}],
)
def test_its_parts_stand_in_the_order_of_the_model_map(changes: dict[str, Any]) -> None:
    config = tiny(**changes)
    source = writing.source("twin", config, CharTokenizer("abc"))
    parts = {
        "ids": "Tokens",
        "embed": "Embed",
        "positions": "Positions",
        "out": "Attention",
        "mlp": "MLP",
        "logits": "Unembed",
    }
    names = [
        box.path.removeprefix("blocks.0.attention.").removeprefix("blocks.0.").partition(".")[0]
        for box in anatomy(config, 3).boxes
    ]
    drawn = [parts[name] for name in dict.fromkeys(names) if name in parts]
    found = re.findall(rf'"""({"|".join(parts.values())})\b', source)
    assert found == drawn
    assert len(found) >= 4


@tried(25, 300, config=st.one_of(configs(), families()), usual=st.booleans())
def test_any_model_is_computed_to_the_last_digits_or_refused_by_the_name_of_a_part(
    config: Config, usual: bool
) -> None:
    if usual:
        config = replace(config, **{name: getattr(tiny(), name) for name in writing.USUAL})
    try:
        writing.check(config, SymbolTokenizer.numbers(config.vocab_size))
    except ValueError as refused:
        assert re.search("no part for “.+”: ", str(refused))
        return
    model = scrambled(config)
    ids = some_ids(batch=1)
    with TemporaryDirectory() as folder, torch.inference_mode():
        twin = twin_of(model, Path(folder))
        check_form((Path(folder) / "twin.py").read_text(encoding="utf-8"), Path(folder))
        # Python computes in float64: beside it, float32 may be far off in a model without norms.
        logits = torch.tensor(twin["forward"](ids[0].tolist()), dtype=torch.float64)
        torch.testing.assert_close(logits, model.double()(ids)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"activation": "gelu", "qk_norm": "shared"},
        {"activation": "gelu-tanh", "positions": "sinusoidal", "residual": "post-norm"},
        {
            "activation": "silu",
            "mlp": "gated",
            "norm": "rmsnorm",
            "positions": "rotary",
            "n_kv_head": 1,
            "tied": True,
        },
        {
            "activation": "relu2",
            "positions": "alibi",
            "residual": "double-norm",
            "qk_norm": "separate",
        },
        {"activation": "relu", "mask": "full", "unembed_bias": True, "tied": True},
        {"n_layer": 0, "unembed_bias": True},
    ],
)
def test_a_small_model_learns_as_it_does_in_torch(changes: dict[str, Any], tmp_path: Path) -> None:
    model = scrambled(tiny(**changes)).double()
    twin = twin_of(model, tmp_path)
    ids = some_ids(model.config.context_length + 1, 1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0025, betas=(0.9, 0.99))
    losses = []
    for _ in range(3):
        loss = F.cross_entropy(model(ids[:, :-1])[0], ids[0, 1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(f"step {len(losses) + 1}: loss {loss.item():.4f}")
    said = StringIO()
    with redirect_stdout(said):
        twin["train"](" ".join(map(str, ids[0].tolist())), 3)
    assert said.getvalue().splitlines() == losses
    for name, parameter in model.named_parameters():
        expected = parameter.detach().double()
        torch.testing.assert_close(
            torch.tensor(twin["WEIGHTS"][name], dtype=torch.float64), expected, rtol=0, atol=1e-6
        )


def test_its_slopes_are_those_of_backward(tmp_path: Path) -> None:
    model = scrambled(tiny(positions="rotary", d_head=4)).double()
    twin = twin_of(model, tmp_path)
    ids = some_ids(batch=1)
    weights = twin["replace_weights"](twin["Number"])
    twin["backward"](twin["loss_of"](ids[0].tolist()))
    F.cross_entropy(model(ids[:, :-1])[0], ids[0, 1:]).backward()
    slopes = torch.cat(
        [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    )
    torch.testing.assert_close(
        torch.tensor([weight.slope for weight in weights], dtype=torch.float64),
        slopes,
        rtol=1e-6,
        atol=1e-8,
    )


def test_it_draws_as_often_as_the_probabilities_say(tmp_path: Path) -> None:
    twin = twin_of(scrambled(tiny()), tmp_path)
    logits = [0.0, 2.0, 1.0, -1.0]
    number = 4_000
    random.seed(0)

    def shares(*settings: float) -> list[float]:
        drawn = [twin["choose"](logits, *settings) for _ in range(number)]
        return [drawn.count(token) / number for token in range(4)]

    for temperature, top_k, top_p, kept in (
        (1.0, 0, 1.0, 4),
        (0.5, 0, 1.0, 4),
        (1.0, 2, 1.0, 2),
        (1.0, 0, 0.7, 2),
        (1.0, 0, 0.1, 1),
    ):
        scaled = torch.tensor(logits) / temperature
        expected = (
            scaled.masked_fill(scaled < scaled.sort().values[-kept], float("-inf"))
            .softmax(-1)
            .tolist()
        )
        assert shares(temperature, top_k, top_p) == pytest.approx(expected, abs=0.04)
    assert shares(0, 0, 1.0) == [0, 1, 0, 0]


def test_past_the_context_it_reads_the_last_tokens_and_it_stops_where_the_model_ends(
    tmp_path: Path,
) -> None:
    model = scrambled(tiny())
    ids = some_ids(5, 1)[0].tolist()
    for _ in range(12):
        with torch.inference_mode():
            ids.append(
                int(model(torch.tensor([ids[-model.config.context_length :]]))[0, -1].argmax())
            )
    prompt = " ".join(map(str, ids[:5]))
    assert twin_of(model, tmp_path)["write"](prompt, 12).split() == [str(token) for token in ids]
    end = ids[9]
    ended = twin_of(model, tmp_path, writing.Stops((end,)))["write"](prompt, 12).split()
    assert ended == [str(token) for token in ids[: ids.index(end, 5)]]
    for whole in (3, 5, 9, 40):
        ended = twin_of(model, tmp_path, writing.Stops((), whole))["write"](prompt, 12).split()
        assert ended == [str(token) for token in ids[: max(whole, 5)]]


@tried(
    50,
    1_000,
    text=st.text(
        # A character that Python's Unicode lacks may be a letter for another program.
        st.characters(exclude_categories=["Cn"]) | st.sampled_from(" \n\x1c\ud800'st20"),
        max_size=40,
    ),
)
def test_byte_pairs_are_read_as_the_tokenizer_reads_them(text: str) -> None:
    tokenizer = checkpoints.read_tokenizer(checkpoints.find("bpe"))
    twin = byte_pairs()
    ids = twin["encode"](text)
    assert ids == tokenizer.encode(text).ids
    assert twin["decode"](ids) == tokenizer.decode(ids)
    text = tokenizer.decode(ids)  # without surrogates
    cut = ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    assert twin["words"](text) == [text[first:last] for _, (first, last) in cut]


@cache
def byte_pairs() -> dict[str, Any]:
    """The names that the twin of `bpe` defines, without its weights."""
    folder = checkpoints.find("bpe")
    with TemporaryDirectory() as made:
        config = checkpoints.read_config(folder)
        tokenizer = checkpoints.read_tokenizer(folder)
        writing.write("bpe", config, tokenizer, {}, writing.NEVER, Path(made))
        return runpy.run_path(f"{made}/bpe.py")


def test_a_part_that_is_not_there_is_named_and_nothing_is_written(
    tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    for changes, part in (
        ({"positions": "relative"}, "“Positions”: relative"),
        ({"mlp": "experts", "n_expert": 2}, "“Kind of MLP”: experts"),
        ({"window": 3}, "“Window (tokens)”: 3"),
    ):
        tiny_model("mine", **changes)
        assert part in error(
            capsys, "export", "mine", "--format", "python", "--out", tmp_path / "made"
        )
    assert "only a decoder" in error(
        capsys, "export", "classifier", "--format", "python", "--out", tmp_path / "made"
    )
    with pytest.raises(ValueError, match="parameters are too many"):
        writing.check(tiny(d_model=1_200), SymbolTokenizer.numbers(11))
    assert not (tmp_path / "made").exists()


def test_the_page_hands_over_what_the_command_writes(
    tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    tiny_model("mine")
    made = Path(
        answered(capsys, "export", "mine", "--format", "python", "--out", tmp_path / "made")["path"]
    )
    with zipfile.ZipFile(BytesIO(take_home.written_model("mine"))) as archive:
        for name in ("mine.py", "mine.json"):
            assert archive.read(f"mine/{name}") == (made / name).read_bytes()
    with pytest.raises(RuntimeError, match="nobody"):
        take_home.written_model("nobody")
