"""Anybody's GPT by a mapping: what it computes is what it computed there, and what does not match
is said, tensor by tensor.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn

import gptviz
from gptviz.__main__ import main
from gptviz.model import Config, Transformer, preset
from gptviz.model.builder import parameter_shapes
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import reference, source_at, source_from_reference, with_weights
from gptviz.pretrained.sources.drafting import draft_mapping
from gptviz.pretrained.sources.mapped import Mapped
from gptviz.pretrained.sources.mapping import (
    MatchRow,
    additions_of,
    complaint,
    mapping_of,
    match_rows,
)
from tests.command_line import Capture, answered, error
from tests.pretrained.test_families import CONTEXT, GROUPED, MODELS, VOCAB, same_logits, theirs
from tests.pretrained.torch_files import Touch, saved_by_mingpt
from tests.tiny import families, scrambled, some_ids

WIDTH = 12
HEADS = 3
BLOCKS = 2


class Head(nn.Module):
    """A head of a GPT as a course writes it, with weights of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.key, self.query, self.value = (
            nn.Linear(WIDTH, WIDTH // HEADS, bias=False) for _ in range(3)
        )
        self.register_buffer("tril", torch.tril(torch.ones(CONTEXT, CONTEXT)))

    def forward(self, x: Tensor) -> Tensor:
        q = self.query(x)
        k = self.key(x)
        v = self.value(x)
        rows = []
        for t in range(x.shape[1]):  # query by query
            scores = torch.stack(
                [(q[:, t] * k[:, s]).sum(-1) / math.sqrt(k.shape[-1]) for s in range(t + 1)], -1
            )
            pattern = scores.softmax(-1)
            rows.append(sum(pattern[:, s, None] * v[:, s] for s in range(t + 1)))
        return torch.stack(rows, 1)


class CourseBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head() for _ in range(HEADS))
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.net = nn.Sequential(nn.Linear(WIDTH, 20), nn.GELU(), nn.Linear(20, WIDTH))
        self.ln1 = nn.LayerNorm(WIDTH)
        self.ln2 = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.proj(torch.cat([head(self.ln1(x)) for head in self.heads], -1))
        return x + self.net(self.ln2(x))


class CourseGPT(nn.Module):
    """A GPT as a course writes it: a module for each head, and names of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.token_embedding_table = nn.Embedding(VOCAB, WIDTH)
        self.position_embedding_table = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[CourseBlock() for _ in range(BLOCKS)])
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCAB)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token_embedding_table(ids) + self.position_embedding_table(
            torch.arange(ids.shape[1])
        )
        return self.lm_head(self.ln_f(self.blocks(x)))


@pytest.fixture(scope="module")
def course() -> CourseGPT:
    model = CourseGPT()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.4, generator=torch.Generator().manual_seed(parameter.numel()))
    return model.eval()


def mapped(path: Path, mapping: dict[str, Any]) -> Transformer:
    source = source_at(path, {"mapping": mapping})
    return with_weights(source, source.describe_model().config).eval()


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_the_gpt_of_a_course_opens_with_the_mapping_that_is_drafted_for_it(
    course: CourseGPT, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"model{suffix}"
    torch.save(course.state_dict(), path) if suffix == ".pt" else save_file(
        dict(course.state_dict()), path
    )
    source = source_at(path)
    assert isinstance(source, Mapped)
    draft = source.draft()
    assert draft.unknown_fields == []
    assert draft.config["n_head"] == HEADS
    same_logits(mapped(path, draft.as_json()), course)


def test_neighbours_that_turn_together_are_put_as_ours_turn(tmp_path: Path) -> None:
    # it turns i and i + half; the file below has the rows as Meta's Llama has them
    model = theirs("llama", GROUPED)
    short = {
        "self_attn.": "attention.w",
        "_proj": "",
        "mlp.": "feed_forward.",
        "gate": "w1",
        "down": "w2",
        "up": "w3",
    }
    tensors = {}
    for name, tensor in model.state_dict().items():
        if re.search("[qk]_proj", name):
            heads = tensor.shape[0] // 8
            tensor = tensor.unflatten(0, (heads, 2, 4)).transpose(1, 2).flatten(0, 2)
        for one, other in short.items():
            name = name.replace(one, other)
        tensors[name.removeprefix("model.")] = tensor.contiguous()
    save_file(tensors, tmp_path / "model.safetensors")
    draft = source_at(tmp_path / "model.safetensors", {"set": {"n_head": 4}}).draft()  # type: ignore[attr-defined]
    mapping = draft.as_json() | {"rotary_pairs": "neighbours"}
    mapping["config"] |= {
        "n_kv_head": 2,
        "d_head": 8,
        "context_length": CONTEXT,
        "norm_eps": model.config.rms_norm_eps,
    }
    same_logits(mapped(tmp_path / "model.safetensors", mapping), model)


@pytest.mark.parametrize(
    "kind",
    ["gpt2", "gpt_neo", "gpt_neox", "llama", "qwen3", "phi", "gptj", "olmo2", "bloom", "mistral"],
)
def test_a_draft_finds_a_place_for_every_tensor_of_the_families(kind: str) -> None:
    model = theirs(kind, MODELS[kind][0])
    tensors = model.state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    draft = draft_mapping(
        shapes, lambda one, other: tensors[one].data_ptr() == tensors[other].data_ptr()
    )
    config = model.config
    keys = getattr(config, "num_key_value_heads", None)
    size = getattr(config, "head_dim", None)
    told = {
        "n_head": config.num_attention_heads,
        "context_length": CONTEXT,
        "n_kv_head": keys,
        "d_head": size,
    }
    mapping = draft.as_json()
    mapping["config"] |= {name: told[name] for name in draft.unknown_fields}
    assert complaint(match_rows(mapping_of(mapping), shapes)) is None


@pytest.mark.parametrize("name", ["generator", "shakespeare", "llama-tiny", "neox-tiny", "bpe"])
def test_a_draft_knows_our_own_names(name: str) -> None:
    shapes = parameter_shapes(preset(name))
    mapping = draft_mapping(shapes).as_json()
    mapping["config"] |= {
        field: getattr(preset(name), field)
        for field, value in mapping["config"].items()
        if value is None
    }
    assert complaint(match_rows(mapping_of(mapping), shapes)) is None


def test_a_draft_knows_names_with_underscores_and_shifts_and_says_which_tensors_have_no_line() -> (
    None
):
    square = (WIDTH, WIDTH)
    row = (WIDTH,)
    norm = ("scale", "shift")
    block = {
        "att.mask": (CONTEXT, CONTEXT),
        **{f"att.W_{kind}.weight": square for kind in ("query", "key", "value")},
        **{f"norm{number}.{part}": row for number in (1, 2) for part in norm},
    }
    block |= {
        "att.out_proj.weight": square,
        "att.out_proj.bias": row,
        "ff.layers.0.bias": (20,),
        "ff.layers.2.bias": row,
    }
    block |= {"ff.layers.0.weight": (20, WIDTH), "ff.layers.2.weight": (WIDTH, 20)}
    outside = {
        "tok_emb.weight": (VOCAB, WIDTH),
        "pos_emb.weight": (CONTEXT, WIDTH),
        "out_head.weight": (VOCAB, WIDTH),
    }
    outside |= {f"final_norm.{part}": row for part in norm}
    shapes = outside | {
        f"trf_blocks.{i}.{name}": shape for i in range(BLOCKS) for name, shape in block.items()
    }
    draft = draft_mapping(shapes)
    mapping = draft.as_json()
    mapping["config"] |= {"n_head": HEADS}
    assert complaint(match_rows(mapping_of(mapping), shapes)) is None
    assert mapping["tensors"]["blocks.{}.attention.qkv.weight"] == {
        "stack": [f"trf_blocks.{{}}.att.W_{kind}.weight" for kind in ("query", "key", "value")]
    }
    assert not draft.left
    odd = draft_mapping(shapes | {f"trf_blocks.{i}.extra.weight": (3,) for i in range(BLOCKS)})
    assert "These tensors have no line: trf_blocks.{}.extra.weight." in odd.remarks()


@given(
    config=families(n_encoder_layer=0, head="unembed", n_label=0),
    turned=st.booleans(),
    halved=st.booleans(),
)
@settings(max_examples=25)
def test_every_operation_undoes_what_was_done_to_the_tensors(
    config: Config, turned: bool, halved: bool
) -> None:
    # else rows of a head are put as our rotary positions turn them
    assume(config.rotary_fraction == 1)
    model = scrambled(config)
    stored: dict[str, Tensor] = {}
    recipes: dict[str, Any] = {}
    for name, tensor in model.named_parameters():
        tensor = tensor.detach()
        recipe: dict[str, Any] = {"from": f"x.{name}"}
        if "norm" in name and name.endswith("weight"):
            tensor = tensor - 1
            recipe = recipe | {"plus_one": True}
        if name.endswith("qkv.weight") and config.key_heads == config.n_head:
            rows = tensor.unflatten(0, (3, config.n_head, -1)).transpose(0, 1).flatten(0, 2)
            tensor = rows
            recipe = recipe | {"by_head": True}
        if halved and tensor.ndim == 2 and tensor.shape[0] % 2 == 0 and "by_head" not in recipe:
            first, second = tensor.chunk(2)
            stored |= {f"x.{name}.0": first.contiguous(), f"x.{name}.1": second.contiguous()}
            recipes[name] = {"stack": [f"x.{name}.0", f"x.{name}.1"]}
            continue
        if turned and tensor.ndim == 2:
            tensor = tensor.T
            recipe = recipe | {"transpose": True}
        stored[f"x.{name}"] = tensor.contiguous()
        recipes[name] = recipe
    mapping = mapping_of({"config": config.to_dict(), "tensors": recipes})
    assert (
        complaint(
            match_rows(mapping, {name: tuple(tensor.shape) for name, tensor in stored.items()})
        )
        is None
    )
    for name in parameter_shapes(config):
        torch.testing.assert_close(
            mapping.make_parameter(name, stored.__getitem__), dict(model.named_parameters())[name]
        )


def test_a_part_of_a_tensor_is_taken_and_an_axis_of_length_one_is_no_axis() -> None:
    fused = torch.arange(24.0).view(1, 6, 4)
    config = {
        "vocab_size": 2,
        "context_length": 3,
        "d_model": 4,
        "n_layer": 0,
        "n_head": 1,
        "final_norm": False,
        "tied": True,
    }
    recipes = {
        "embed.weight": {"from": "a", "split": [1, 3]},
        "positions.table.weight": {"from": "a", "split": [0, 2]},
    }
    mapping = mapping_of({"config": config, "tensors": recipes})
    assert torch.equal(mapping.make_parameter("embed.weight", lambda name: fused), fused[0, 2:4])
    assert torch.equal(
        mapping.make_parameter("positions.table.weight", lambda name: fused), fused[0, :3]
    )


def course_mapping(course: CourseGPT) -> tuple[dict[str, Any], dict[str, tuple[int, ...]]]:
    shapes = {name: tuple(tensor.shape) for name, tensor in course.state_dict().items()}
    return draft_mapping(shapes).as_json(), shapes


def test_what_is_missing_of_the_wrong_shape_left_over_or_not_in_the_model_is_said_tensor_by_tensor(
    course: CourseGPT,
) -> None:
    mapping, shapes = course_mapping(course)
    assert {row.state for row in match_rows(mapping_of(mapping), shapes)} == {"matched"}
    counts = {row.ours: row.count for row in match_rows(mapping_of(mapping), shapes)}
    assert counts["blocks.{}.attention.qkv.weight"] == BLOCKS
    assert sum(counts.values()) == len(parameter_shapes(mapping_of(mapping).config))
    del shapes["blocks.1.proj.bias"]
    shapes |= {"blocks.0.net.0.weight": (WIDTH, 20), "extra": (3,)}
    mapping["tensors"]["blocks.{}.attention.sink"] = "blocks.{}.sink"
    del mapping["tensors"]["head.final_norm.bias"]
    rows = match_rows(mapping_of(mapping), shapes)
    wrong = {(row.state, row.ours, row.count): row for row in rows if row.state != "matched"}
    up = wrong["wrong shape", "blocks.{}.mlp.up.weight", 1]
    assert (up.found, up.expected) == ((WIDTH, 20), (20, WIDTH))
    assert wrong["missing", "blocks.{}.attention.output.bias", 1].theirs == ("blocks.{}.proj.bias",)
    assert wrong["missing", "head.final_norm.bias", 1].theirs == ()
    assert ("not in the model", "blocks.{}.attention.sink", 1) in wrong
    left = {row.theirs[0] for row in rows if row.state == "left over"}
    assert left == {"extra", "ln_f.bias"}
    assert "1 wrong shape" in str(complaint(rows))


BAD: list[tuple[Any, str]] = [
    ([], "must be a table with"),
    ({"config": {}, "tensors": []}, "must be a table with"),
    ({"more": 1}, "the mapping has the field 'more'"),
    (
        {"config": {"n_head": None}},
        "does not say n_head in its config: fill it in, or add --set n_head",
    ),
    ({"config": {"n_layer": 10**9}}, "n_layer is 1000000000"),
    ({"config": {"layers": 3}}, "unknown config field 'layers'"),
    ({"config": {"n_encoder_layer": 1}}, "of one stack"),
    ({"ignore": "mask"}, '"ignore" must be a list'),
    ({"ignore": ["{}" * 20]}, '"ignore" must have at most 100 names, each with at most 3 times'),
    ({"ignore": ["mask"] * 101}, '"ignore" must have at most 100 names'),
    ({"rotary_pairs": "odd"}, "\"rotary_pairs\" is 'odd'"),
    ({"characters": ["a"]}, '"characters" must be a text'),
    ({"tensors": {"embed.weight": 3}}, r"embed\.weight must be a name, or a table"),
    ({"tensors": {"embed.weight": {"from": "a", "stack": ["b"]}}}, "must be a name, or a table"),
    (
        {"tensors": {"embed.weight": {"from": "a", "turn": True}}},
        "has 'turn'; there are from, stack",
    ),
    ({"tensors": {"embed.weight": {"stack": []}}}, "one to 4,096"),
    ({"tensors": {"embed.weight": {"stack": ["a", 2]}}}, "the names must be texts"),
    (
        {"tensors": {"embed.weight": {"from": "a", "transpose": 1}}},
        "transpose must be true or false",
    ),
    *(
        ({"tensors": {"embed.weight": {"from": "a", "split": cut}}}, "split must be")
        for cut in ([3, 3], [-1, 2], [0], 1, [0, 2.5])
    ),
]


@pytest.mark.parametrize(("change", "words"), BAD)
def test_a_mapping_that_is_none_is_refused_in_a_line_that_names_the_field(
    course: CourseGPT, change: Any, words: str
) -> None:
    mapping, _ = course_mapping(course)
    if isinstance(change, dict):
        joined = {
            name: {**mapping[name], **value}
            for name, value in change.items()
            if isinstance(value, dict)
        }
        change = mapping | change | joined
    with pytest.raises(ImportRefusedError, match=words) as refused:
        mapping_of(change)
    assert "\n" not in str(refused.value)


def test_a_mapping_for_a_trillion_numbers_takes_no_memory(
    course: CourseGPT, tmp_path: Path
) -> None:
    torch.save(course.state_dict(), tmp_path / "model.pt")
    mapping, _ = course_mapping(course)
    mapping["config"] |= {"d_model": 999_999, "d_mlp": 10**7}
    with pytest.raises(
        ImportRefusedError, match=r"model\.pt does not match its mapping: .* wrong shape"
    ):
        mapped(tmp_path / "model.pt", mapping)


def test_a_file_that_would_run_something_or_claims_more_than_it_holds_is_refused(
    course: CourseGPT, tmp_path: Path
) -> None:
    mapping, _ = course_mapping(course)
    torch.save({**course.state_dict(), "more": Touch(tmp_path / "it ran")}, tmp_path / "model.pt")
    with pytest.raises(ImportRefusedError, match=r"model\.pt holds more than tensors"):
        mapped(tmp_path / "model.pt", mapping)
    assert not (tmp_path / "it ran").exists()
    for odd in (
        torch.zeros(1).expand(10**12),
        torch.zeros(3, device="meta"),
        torch.zeros(3, 3).to_sparse(),
    ):
        torch.save({**course.state_dict(), "more": odd}, tmp_path / "model.pt")
        with pytest.raises(
            ImportRefusedError, match="the tensor more is not stored number by number"
        ):
            mapped(tmp_path / "model.pt", mapping)


@pytest.mark.parametrize("key", ["model", "model_state_dict", "state_dict", "module"])
@pytest.mark.parametrize("name", ["a.pt", "a.pth", "a.ckpt"])
def test_the_tensors_are_found_under_the_names_that_other_programs_give_them(
    course: CourseGPT, key: str, name: str, tmp_path: Path
) -> None:
    tensors = course.state_dict()
    torch.save(
        {"epoch": 3, key: tensors, "optimizer_state_dict": {"state": {}, "param_groups": []}},
        tmp_path / name,
    )
    source = source_at(tmp_path / name)
    assert isinstance(source, Mapped)
    assert source.shapes == {one: tuple(tensor.shape) for one, tensor in tensors.items()}


def test_the_settings_of_llama2_c_are_not_those_of_nanogpt(
    course: CourseGPT, tmp_path: Path
) -> None:
    settings = {
        "dim": WIDTH,
        "n_layers": BLOCKS,
        "n_heads": HEADS,
        "vocab_size": VOCAB,
        "max_seq_len": CONTEXT,
    }
    torch.save({"model": course.state_dict(), "model_args": settings}, tmp_path / "ckpt.pt")
    assert isinstance(source_at(tmp_path / "ckpt.pt"), Mapped)


CHARACTERS = "".join(chr(ord("A") + place) for place in range(VOCAB))


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (None, {"characters": CHARACTERS}),
        (json.dumps(list(CHARACTERS)), {"tokenizer": "characters.json"}),
        (json.dumps({c: i for i, c in enumerate(CHARACTERS)}), {"tokenizer": "characters.json"}),
        (
            json.dumps({"kind": "characters", "characters": list(CHARACTERS), "unknown": None}),
            {"tokenizer": "characters.json"},
        ),
    ],
)
def test_a_vocabulary_of_characters_stands_in_the_mapping_or_in_a_file_beside_the_weights(
    course: CourseGPT, tmp_path: Path, content: str | None, field: dict[str, str]
) -> None:
    torch.save(course.state_dict(), tmp_path / "model.pt")
    if content is not None:
        (tmp_path / "characters.json").write_text(content)
    found = source_at(
        tmp_path / "model.pt", {"mapping": course_mapping(course)[0] | field}
    ).describe_model()
    assert found.tokenizer.encode("CAB").ids == [2, 0, 1]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"tokenizer": "../secret.json"}, "must be the name of a file beside the weights"),
        ({"tokenizer": "none.json"}, r"none\.json is missing"),
        ({"tokenizer": "odd.json"}, r"odd\.json is no tokenizer\.json"),
        ({"tokenizer": "holes.json"}, "numbers 0 to 1, each once"),
        ({"characters": "BA"}, "not in their usual order"),
        ({"characters": CHARACTERS + "~"}, "the tokenizer has 32 tokens, the model 31 rows"),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_refused(
    course: CourseGPT, tmp_path: Path, field: dict[str, str], words: str
) -> None:
    torch.save(course.state_dict(), tmp_path / "model.pt")
    (tmp_path / "odd.json").write_text("[1, 2]")
    (tmp_path / "holes.json").write_text('{"a": 0, "b": 5}')
    with pytest.raises(ImportRefusedError, match=words):
        source_at(
            tmp_path / "model.pt", {"mapping": course_mapping(course)[0] | field}
        ).describe_model()


# The command


@pytest.fixture
def saved(course: CourseGPT, home: Path, tmp_path: Path) -> Path:
    torch.save({"model": course.state_dict(), "step": 7}, tmp_path / "mine.pt")
    return tmp_path / "mine.pt"


def test_the_command_drafts_a_mapping_opens_with_it_and_keeps_it(
    course: CourseGPT, saved: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["import", str(saved)]) == 2
    shown = capsys.readouterr()
    assert "blocks.{}.ln1.weight  [12]" in shown.out
    assert "Assumed: activation: gelu; no tensor tells it." in shown.out
    assert "needs a mapping (--map)" in shown.err
    assert shown.err.count("\n") == 1
    assert main(["import", str(saved), "--json"]) == 2
    mapping = json.loads(capsys.readouterr().out)["mapping"]
    mapping["config"]["n_head"] = None
    (tmp_path / "mapping.json").write_text(json.dumps(mapping))
    command = ["import", str(saved), "--map", str(tmp_path / "mapping.json")]
    assert main(command) == 2
    assert "does not say n_head" in capsys.readouterr().err
    made = answered(capsys, *command, "--set", f"n_head={HEADS}")
    assert made["name"] == "mine"
    assert {row["state"] for row in made["rows"]} == {"matched"}
    (tmp_path / "mapping.json").unlink()  # what it said is kept
    lm = gptviz.load("mine")
    ids = some_ids(9, batch=1, vocab=VOCAB)
    trace = lm.trace(" ".join(map(str, ids[0].tolist())))
    torch.testing.assert_close(trace["logits"], course(ids).detach(), rtol=1e-4, atol=1e-4)


def test_the_draft_is_written_into_a_file_which_opens_the_model(
    saved: Path, tmp_path: Path, capsys: Capture
) -> None:
    draft = tmp_path / "draft.json"
    command = ["import", str(saved), "--draft", str(draft)]
    assert main(command) == 0
    assert "Assumed: activation: gelu" in capsys.readouterr().out
    assert main(command) == 2
    assert "draft.json is there already" in capsys.readouterr().err
    assert main(["import", str(saved), "--map", str(draft)]) == 0
    assert "--draft is for a .pt or .safetensors file" in error(capsys, *command, "--map", draft)


def test_the_command_shows_what_does_not_match(
    saved: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["import", str(saved), "--json"]) == 2
    mapping = json.loads(capsys.readouterr().out)["mapping"]
    mapping["config"]["d_mlp"] = 24
    (tmp_path / "mapping.json").write_text(json.dumps(mapping))
    assert main(["import", str(saved), "--map", str(tmp_path / "mapping.json")]) == 2
    shown = capsys.readouterr()
    assert re.search(
        r"wrong shape +2 ×  blocks\.\{\}\.mlp\.up\.weight ← blocks\.\{\}\.net\.0\.weight: \[20, "
        r"12\], must be \[24, 12\]",
        shown.out,
    )
    assert "mine.pt does not match its mapping: " in shown.err
    for wrong in ("none.json", "mine.pt"):
        assert wrong in error(capsys, "import", saved, "--map", tmp_path / wrong)


def test_what_tells_itself_what_it_is_takes_no_mapping(
    home: Path, tmp_path: Path, capsys: Capture
) -> None:
    theirs("llama", GROUPED).save_pretrained(tmp_path / "folder")
    assert "says itself what model it holds: leave --set out" in error(
        capsys, "import", tmp_path / "folder", "--set", "n_head=3"
    )
    same = source_at(tmp_path / "folder" / "model.safetensors")
    assert (same.kind, same.path) == ("folder", tmp_path / "folder")


def test_the_example_of_the_documentation_opens(course: CourseGPT, tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", text, re.S)
    mapping = json.loads(example)
    config = mapping_of(mapping).config
    width = config.d_model
    hidden = config.mlp_size
    shapes: dict[str, tuple[int, ...]] = {
        "tok_emb.weight": (config.vocab_size, width),
        "pos_emb": (1, config.context_length, width),
        "ln_f.scale": (width,),
    }
    for block in range(config.n_layer):
        inside = {f"attn.{one}.weight": (width, width) for one in ("query", "key", "value", "proj")}
        inside |= {
            "attn.mask": (config.context_length, config.context_length),
            "ln1.scale": (width,),
            "ln2.scale": (width,),
        }
        inside |= {"fc.weight": (width, hidden), "out.weight": (hidden, width)}
        shapes |= {f"layers.{block}.{name}": shape for name, shape in inside.items()}
    generator = torch.Generator().manual_seed(0)
    torch.save(
        {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()},
        tmp_path / "model.pt",
    )
    assert mapped(tmp_path / "model.pt", mapping).config == config


def test_a_mapping_file_is_read_within_bounds(tmp_path: Path) -> None:
    for content, words in (
        ("[" * 200_000, "holds 200,001 values"),
        ("{}", "is no mapping"),
        (" " * (2**20 + 1), "longer than"),
    ):
        (tmp_path / "mapping.json").write_text(content)
        with pytest.raises(ImportRefusedError, match=words):
            additions_of(tmp_path / "mapping.json", {})


def test_a_reference_keeps_what_was_said(course: CourseGPT, tmp_path: Path) -> None:
    torch.save(course.state_dict(), tmp_path / "model.pt")
    source = source_at(tmp_path / "model.pt", {"mapping": course_mapping(course)[0]})
    content = json.loads(json.dumps(reference(source)))
    assert isinstance(source_from_reference(content), Mapped)
    assert source_from_reference(content).describe_model().config == source.describe_model().config
    with pytest.raises(ImportRefusedError, match=r"source\.json is damaged"):
        source_from_reference(content | {"said": 3})


def test_rows_are_json(course: CourseGPT) -> None:
    mapping, shapes = course_mapping(course)
    rows = match_rows(mapping_of(mapping), shapes)
    assert [
        MatchRow(
            **{
                **row.as_json(),
                "theirs": tuple(row.theirs),
                "found": row.found,
                "expected": row.expected,
            }
        )
        for row in rows
    ] == rows


# minGPT


@pytest.mark.parametrize(
    ("heads", "beside"),
    [
        (2, None),
        (4, {"model_type": None, "n_head": 4}),
        (3, {"model_type": "gpt-nano", "n_head": None}),
    ],
)
def test_mingpts_file_has_the_same_logits_once_its_heads_are_known(
    tmp_path: Path, heads: int, beside: dict[str, Any] | None
) -> None:
    model = saved_by_mingpt(tmp_path, heads)
    if beside is not None:
        (tmp_path / "config.json").write_text(json.dumps({"system": {}, "model": beside}))
    source = source_at(
        tmp_path / "model.pt", {"set": {"n_head": heads}} if beside is None else None
    )
    found = source.describe_model()
    assert (found.family, found.config.n_head) == ("minGPT", heads)
    same_logits(with_weights(source, found.config).eval(), model)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (None, "does not tell how many heads a block has: put the config.json"),
        ({"n_head": 5}, "its width 24 does not divide into 5 heads"),
        ({"n_head": "two"}, "does not divide into 'two' heads"),
        ({"n_head": 2, "d_model": 3}, "tells d_model itself"),
    ],
)
def test_mingpts_heads_are_asked_for(
    tmp_path: Path, fields: dict[str, Any] | None, words: str
) -> None:
    saved_by_mingpt(tmp_path)
    with pytest.raises(ImportRefusedError, match=words):
        source_at(tmp_path / "model.pt", fields and {"set": fields}).describe_model()
