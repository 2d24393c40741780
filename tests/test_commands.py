"""The commands of analyses: `--json` has what the library gives, and the printed text says its main
numbers.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import gptviz
from gptviz.interp.changing.attribution_patching import Preview
from gptviz.interp.over_prompts import How
from gptviz.interp.over_training.measures import MEASURES
from gptviz.interp.reading import stream
from gptviz.interp.reading.experts import load, tokens_of_expert
from gptviz.interp.units.unit import unit
from gptviz.language_model import LanguageModel
from gptviz.machine.memory import in_bytes
from gptviz.runs import checkpoints
from gptviz.text import BPETokenizer
from gptviz.text.datasets.languages import examples
from gptviz.text.datasets.prompt_pairs import PromptRow, as_csv
from tests.command_line import Capture, answered, error, output
from tests.tiny import TinyModel, scrambled, tiny

WORDS = "a cab a bed a bag " * 8
UP = "blocks.1.mlp.up.weight"


class Asked(NamedTuple):
    """A command as it is typed, what --json then has, and a pattern of what it prints without."""

    typed: str
    gives: Callable[[LanguageModel], dict[str, Any]]
    prints: str = ""


@pytest.fixture(autouse=True)
def _models(
    no_bundled_models: None, tiny_model: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decoder with snapshots called mine, one of experts, one that caps its logits, a classifier,
    one with BPE, and a text.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")
    Path("words.txt").write_text(WORDS)
    folder = tiny_model("mine", text="abcdefg ")
    for step in (0, 4):
        checkpoints.write_weights(
            checkpoints.snapshot_path(folder, step), gptviz.load("mine").model
        )
    torch.save(
        {"J": {0: torch.eye(12) / 2}, "n_prompts": 1, "source_layers": [0], "d_model": 12}, "own.pt"
    )
    tiny_model("mixed", text="abcdefg ", mlp="experts", n_expert=4, n_active=2)
    tiny_model("capped", text="abcdefg ", logit_cap=5.0)
    tiny_model("judge", head="mean", n_label=2, mask="full", card={"labels": ["bad", "good"]})
    learned = BPETokenizer.learn("the return of the king, the return of the queen", 270)
    checkpoints.save("bpe", scrambled(tiny(vocab_size=learned.vocab_size)), learned, {})


def of_context(lm: LanguageModel) -> dict[str, Any]:
    used = lm.context_use("a cab", "removed")
    windows = {"windows": [1, 2, 3, 4, 5], "loss_by_window": used.by_window.mean}
    return {"loss": used.loss, "left_out": [0, 1, 2, 3, 4], "rise": used.left_out.rise, **windows}


def of_lens(lm: LanguageModel, **how: Any) -> dict[str, Any]:
    seen = lm.lens("a cab", **how)
    cells = [[[lm.tokenizer.piece(i) for i in cell] for cell in row] for row in seen.top.tolist()]
    top = [
        [
            [{"token": token, "probability": p} for token, p in zip(*cell, strict=True)]
            for cell in zip(*row, strict=True)
        ]
        for row in zip(cells, seen.probability.tolist(), strict=True)
    ]
    return {"tokens": list("a cab"), "layers": [layer.name for layer in seen.layers], "top": top}


def of_stream(lm: LanguageModel, position: int | None = None) -> dict[str, Any]:
    seen = lm.stream("a cab")
    tokens = list("a cab")
    size, along = stream.shares(seen, tokens).values
    named = {"tokens": tokens, "layers": ["embed", *seen.writers], "sublayers": list(seen.writers)}
    lengths = stream.lengths(seen, tokens).values
    cosines = stream.cosines(seen, position).values
    return {**named, "length": lengths, "cosine": cosines, "size": size, "along": along}


def of_attribution(lm: LanguageModel) -> dict[str, Any]:
    found = lm.attribute("a cab", "g", 2)
    capped = lm.model(lm.encode("a cab")[None])[0, 2, lm.tokenizer.id_of("g")].item()
    parts = [{"name": part.name, "value": part.value} for part in found.parts]
    assert found.sum == pytest.approx(sum(part.value for part in found.parts), abs=1e-4)
    return {
        "parts": parts,
        "sum": found.logit,
        "capped": capped,
        "token": "g",
        "against": None,
        "position": 2,
    }


def of_circuit(lm: LanguageModel) -> dict[str, Any]:
    found = lm.circuit("a cab", "g", 2, share=0.6)
    edges = [
        (edge.source.name, edge.target.name, edge.kind, edge.value, edge.share)
        for edge in found.edges
    ]
    kept = lm.check_circuit(found)
    return {
        "edges": [
            dict(zip(("from", "to", "kind", "value", "share"), edge, strict=True)) for edge in edges
        ],
        "logit": lm.model(lm.encode("a cab")[None])[0, 2, lm.tokenizer.id_of("g")].item(),
        "check": {
            name: getattr(kept, name) for name in ("whole", "kept", "without", "probability")
        },
        "kept": kept.share,
        "random": vars(kept.random),
    }


def of_gradient(lm: LanguageModel) -> dict[str, Any]:
    found = lm.backward_lens("a cab", 0)
    label = lm.tokenizer.piece

    def words(values: Any) -> list[list[dict[str, Any]]]:
        return [
            [{"token": label(i), "value": row[i]} for i in np.argsort(-row, kind="stable")[:2]]
            for row in values
        ]

    rows = {
        "token": list("a ca"),
        "next": list(" cab"),
        "probability_before": found.probability_before,
        "probability_after": found.probability_after,
        "asked": words(found.asked),
        "written_before": words(found.written_before),
        "written_after": words(found.written_after),
        "added": words(found.change),
        "taken": words(-found.change),
    }
    tokens = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    return {"block": 0, "tokens": tokens}


def of_patches(
    lm: LanguageModel, what: str = "attention.z", *, exact: bool = True
) -> dict[str, Any]:
    found = lm.patch("a cab", "a cad", "a", "b", what, exact=exact)
    by = (
        {"by": "head", "places": ["0", "1", "2"]}
        if exact
        else {"by": "position", "places": list("a␣cab")}
    )
    checks = (
        {"checked": found.checked, "is_trusted": found.is_trusted}
        if isinstance(found, Preview)
        else {}
    )
    computed = {"restored": found.restored.values, "answers": found.answers}
    return {"what": what, "exact": exact, "right": "a", "wrong": "b", **computed, **by, **checks}


def of_probe(lm: LanguageModel) -> dict[str, Any]:
    found = lm.probe("word", WORDS)
    return {
        "layer": [layer.name for layer in found.layers],
        "accuracy": found.accuracy,
        "control": found.control,
    }


def of_experts(lm: LanguageModel, block: int) -> dict[str, Any]:
    weights = lm.experts("a cab")
    most = [
        [one._asdict() for one in tokens_of_expert(weights, block, expert)[:8]]
        for expert in range(4)
    ]
    return {
        "block": 4 * [block],
        "expert": [0, 1, 2, 3],
        "load": load(weights).values[block],
        "tokens": most,
    }


def of_bits(lm: LanguageModel, kind: str = "4bit.g32", **asked: str) -> dict[str, Any]:
    return dict(json.loads(json.dumps(lm.fewer_bits(kind, **asked).to_dict())))


def of_history(lm: LanguageModel) -> dict[str, Any]:
    found = lm.over_training("heads.previous_token")
    assert found.series[-1] == "blocks.1.attention.head.2"
    return {
        "steps": [0, 4],
        "series": [
            {"name": name, "values": found.values[:, i].tolist()}
            for i, name in enumerate(found.series)
        ],
    }


def of_tokens(lm: LanguageModel) -> dict[str, Any]:
    pieces = lm.pieces("the unicorn")
    assert b"".join(piece.data for piece in pieces) == b"the unicorn"
    named = {name: [getattr(piece, name) for piece in pieces] for name in ("id", "kind", "word")}
    return named | {"bytes": [piece.data.hex(" ") for piece in pieces]}


ATTRIBUTE = "attribute capped --prompt 'a cab' --token g --position 2"
CIRCUIT = "circuit mine --prompt 'a cab' --token g --position 2 --share 0.6"
PATCH = "patch mine --prompt 'a cab' --corrupted"
ANSWERS = "--right a --wrong b"
PROBE = "probe mine --label word --corpus words.txt"
ASKED = [
    Asked(
        "context mine --prompt 'a cab' --how removed",
        of_context,
        "the guess at the next token is .* nats; without a token",
    ),
    Asked("lens mine --prompt 'a cab'", of_lens, r"blocks\.1\.mlp +(\S+ [\d.]+% *){5}\n"),
    Asked(
        "lens mine --prompt 'a cab' --top 2 --blocks-only",
        lambda lm: of_lens(lm, top=2, blocks_only=True),
    ),
    Asked(
        "lens mine --prompt 'a cab' --kind tuned --fit-to words.txt",
        lambda lm: of_lens(lm, kind="tuned", fitted_to=WORDS),
    ),
    Asked(
        "lens mine --prompt 'a cab' --kind jacobian --fit-to words.txt --out lens.pt",
        lambda lm: of_lens(lm, kind="jacobian", fitted_to=WORDS),
    ),
    Asked(
        "lens mine --prompt 'a cab' --kind jacobian --lens own.pt",
        lambda lm: of_lens(lm, kept=lm.read_lens("own.pt")),
    ),
    Asked(PROBE, of_probe, "control task"),
    Asked("stream mine --prompt 'a cab'", of_stream),
    Asked("stream mine --prompt 'a cab' --position 2", lambda lm: of_stream(lm, 2)),
    Asked(
        ATTRIBUTE,
        of_attribution,
        "the logit of g after position 2 is .*caps its logits.*parts together: [^:]*largest$",
    ),
    Asked(
        f"{ATTRIBUTE} --against b",
        lambda lm: {"against": "b"},
        "the logit of g minus that of b after position 2 is ",
    ),
    Asked(
        "attribute judge --prompt fox --token good",
        lambda lm: {"token": "good", "position": None},
        "the logit of good is ",
    ),
    Asked(CIRCUIT, of_circuit, "is left"),
    Asked(
        f"{CIRCUIT} --against b --reference 'a bag'",
        lambda lm: {"against": "b", "position": 2},
        "of g minus that of b",
    ),
    Asked(
        "gradient mine --prompt 'a cab' --block 0 --top 2",
        of_gradient,
        "writes into the MLP of block 0, in words",
    ),
    Asked(f"{PATCH} 'a cad' {ANSWERS} --what attention.z", of_patches),
    Asked(
        f"{PATCH} 'a cad' {ANSWERS}",
        lambda lm: {"exact": True},
        "^logit of 'a' minus logit of 'b': .*position 4 b$",
    ),
    Asked(
        f"{PATCH} 'a cad' {ANSWERS} --preview",
        lambda lm: of_patches(lm, "resid_pre", exact=False),
        "preview: ",
    ),
    Asked(f"{PATCH} 'a cab'", lambda lm: {"restored": [[None] * 5] * 2}, "the same answer"),
    Asked(
        "experts mixed --prompt 'a cab' --block 1",
        lambda lm: of_experts(lm, 1),
        r"passes 2 of 4 experts: 50\.0%",
    ),
    Asked(
        "quantise mine --as 3bit.row --prompt 'a cab'",
        lambda lm: of_bits(lm, "3bit.row", prompt="a cab"),
        "simulated",
    ),
    Asked(
        f"quantise mine --matrix {UP}",
        lambda lm: of_bits(lm, matrix=UP),
        "give a text with --prompt",
    ),
    Asked("history mine --measure heads.previous_token", of_history),
    Asked("tokens bpe --prompt 'the unicorn'", of_tokens, "part of a word"),
    Asked(
        "tokens bpe --languages",
        lambda lm: {"tokens": [len(lm.tokenizer.encode(text).ids) for text in examples().values()]},
        "Japanese",
    ),
]


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.typed)
def test_a_command_gives_what_the_library_gives_and_prints_it(
    asked: Asked, capsys: Capture
) -> None:
    words = shlex.split(asked.typed)
    found = answered(capsys, *words)
    expected = asked.gives(gptviz.load(words[1]))
    columns = (
        {name: [row[name] for row in found] for name in found[0]}
        if isinstance(found, list)
        else found
    )
    for name, value in expected.items():
        if isinstance(value, np.ndarray | torch.Tensor):
            np.testing.assert_allclose(
                np.array(columns[name], float),
                np.asarray(value),
                rtol=1e-5,
                atol=1e-6,
                err_msg=name,
            )
        else:
            assert columns[name] == (
                pytest.approx(value, abs=1e-5) if isinstance(value, float) else value
            ), name
    printed = output(capsys, *words)
    assert re.search(asked.prints, printed, re.DOTALL | re.MULTILINE), printed


REFUSED = {
    "lens mine --prompt a --top 0": "top is 0; it must be a whole number from 1",
    "lens mine --prompt a --lens own.pt": "give --kind jacobian",
    "lens mine --prompt a --out own.pt": "give --kind jacobian",
    "lens judge --prompt fox": "use classify judge --text TEXT",
    f"{PROBE} --layer blocks.9": "no layer blocks.9",
    "stream mine --prompt 'a cab' --position 5": "--position is 5; it must be a whole number from 0 to 4",
    "stream judge --prompt fox": "classify judge --text",
    f"{ATTRIBUTE[:-1]}5": "must be from 0 to 4",
    "attribute judge --prompt fox --position 1": "leave --position out",
    "attribute judge --prompt fox --token maybe": "'maybe' is no label of judge; its labels are "
    "bad, good",
    "circuit judge --prompt fox": "judge is a classifier",
    "experts mixed --prompt 'a cab' --block 9": "--block is 9; it must be a whole number from 0 to "
    "1",
    "experts mine --prompt 'a cab'": "has no experts",
    "quantise mine --as q4": "there is 8bit.row",
    "quantise mine --matrix blocks.7.mlp.up.weight": "no matrix of this model; there are "
    "embed.weight",
    "quantise mine --prompt ''": "the prompt is empty",
    "quantise judge --prompt fox": "leave the prompt out",
    "history mine --measure weights.nrom": "did you mean 'weights.norm'?",
    "tokens bpe": "--prompt TEXT or --languages",
    "tokens mine --prompt 'a cab' --merges": "leave --merges out",
}


@pytest.mark.parametrize("typed", REFUSED)
def test_what_a_command_cannot_take_is_said_in_one_line(typed: str, capsys: Capture) -> None:
    assert REFUSED[typed] in error(capsys, *shlex.split(typed))


def test_the_tables_have_the_numbers_of_the_library(capsys: Capture) -> None:
    lm = gptviz.load("mine")
    last = gptviz.load("mixed").experts("a cab")
    bits = lm.fewer_bits("3bit.row", "a cab").to_dict()
    printed = output(capsys, "quantise", "mine", "--as", "3bit.row", "--prompt", "a cab")
    assert f"{bits['loss']['before']:.4f} → {bits['loss']['after']:.4f} nats" in printed
    assert in_bytes(bits["bytes"]["kept"]) in printed
    rows = [line.split()[0] for line in printed.split("\n\n", 1)[1].splitlines()[1:]]
    assert rows == [one["name"] for one in bits["matrices"]]
    row = (
        output(capsys, "experts", "mixed", "--prompt", "a cab", "--block", "1")
        .splitlines()[-1]
        .split()
    )
    assert row[:2] == ["blocks.1.mlp.expert.3", f"{load(last).values[1, 3]:.1%}"]
    printed = output(
        capsys, "history", "mine", "--measure", "probability", "--prompt", "a cab", "--token", "b"
    )
    assert printed.splitlines()[-1].split() == [
        "4",
        f"{lm.over_training('probability', 'a cab', 'b').values[-1, 0]:.4g}",
    ]
    assert [
        line.split()[0]
        for line in output(capsys, "history", "mine", "--measure", "list").splitlines()
    ] == list(MEASURES)


def test_the_merges_end_in_the_tokens_of_the_text(capsys: Capture) -> None:
    found = answered(capsys, "tokens", "bpe", "--prompt", "the unicorn", "--merges")
    assert found["merges"][-1]["token"] in [one["token"] for one in found["tokens"]]


def test_of_one_layer_the_probe_gives_its_row_and_of_all_it_says_where_the_label_is_read(
    capsys: Capture,
) -> None:
    every, one = (
        answered(capsys, *shlex.split(PROBE), *layer) for layer in ((), ("--layer", "blocks.0.mlp"))
    )
    assert one == [row for row in every if row["layer"] == "blocks.0.mlp"]
    assert gptviz.load("mine").probe("word", WORDS).said in " ".join(
        output(capsys, *shlex.split(PROBE)).split()
    )


def test_the_stream_prints_the_numbers_of_a_position(capsys: Capture) -> None:
    asked = ("stream", "mine", "--prompt", "a cab", "--position", "2")
    found = answered(capsys, *asked)
    printed = output(capsys, *asked).splitlines()
    last = [
        list(map(float, line.split()[1:])) for line in printed if line.startswith("blocks.1.mlp")
    ]
    assert last[0] == pytest.approx(
        [found["length"][-1][2], found["cosine"][-2][-1]], rel=1e-3, abs=6e-4
    )
    assert last[1] == pytest.approx([found["size"][-1][2], found["along"][-1][2]], abs=6e-4)


def test_a_preview_that_is_not_to_be_trusted_is_not_printed(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Preview, "is_trusted", False)
    printed = output(capsys, *shlex.split(f"{PATCH} 'a cad' {ANSWERS} --preview")).splitlines()
    assert printed[2:] == [
        "it is shown from a correlation of 0.8 on: leave --preview out to compute every patch"
    ]


@pytest.mark.parametrize(
    ("command", "how", "prompt"),
    [
        ("patch", "patch", ("--prompt", "a cab", "--corrupted", "a cad")),
        ("attribute", "attribute", ("--prompt", "a cab")),
        ("heads", "switch off", ("--prompt", "a cab")),
    ],
)
def test_a_list_of_prompts_is_that_of_the_library(
    capsys: Capture, tmp_path: Path, command: str, how: How, prompt: tuple[str, ...]
) -> None:
    rows = [
        PromptRow("a cab", "a cad", "a", "b"),
        PromptRow("bad abe", "bad cbe", "d", "c"),
        PromptRow("fa", "fb", "c", "d"),
    ]
    file = tmp_path / "pairs.csv"
    file.write_text(as_csv(rows), encoding="utf-8")
    expected = gptviz.load("mine").over_prompts(rows, how)
    found = answered(capsys, command, "mine", "--pairs", str(file))
    assert (found["how"], found["prompts"]) == (how, 3)
    assert list(found["mean"]) == list(expected.units)
    for column, values in (
        ("mean", expected.mean),
        ("standard deviation", expected.deviation),
        ("same sign", expected.same_sign),
    ):
        assert list(found[column].values()) == pytest.approx(values.tolist())
    lines = output(capsys, command, "mine", "--pairs", str(file)).splitlines()
    largest = unit(
        expected.units[int(np.abs(expected.mean).argmax())], gptviz.load("mine").model.config
    )
    assert lines[0].endswith("over 3 prompts, the largest mean first")
    assert lines[2].startswith(largest.title)
    assert len(lines) == 2 + len(expected.units)
    file = tmp_path / "pairs.txt"
    file.write_text("a cab | a cad\na | ab" if how == "patch" else "a cab\na€", encoding="utf-8")
    assert f"{file}, line 2: " in error(capsys, command, "mine", "--pairs", str(file))
    assert "leave --prompt out" in error(capsys, command, "mine", "--pairs", str(file), *prompt)
    if command != "heads":
        assert "or a list of prompts with --pairs FILE" in error(capsys, command, "mine")
