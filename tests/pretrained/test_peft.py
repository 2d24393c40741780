"""LoRA adapters of PEFT: what is written is read again, both compute what PEFT computes, and all
else is refused in a line.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import gptviz
from gptviz.__main__ import main
from gptviz.model import Config
from gptviz.model.lora import Factors, MergedTransformer, every_matrix, matrices, parameters
from gptviz.pretrained import peft as ours
from gptviz.pretrained.families import ImportRefusedError
from gptviz.runs import checkpoints, exports, imports
from gptviz.runs.checkpoints import CheckpointError
from gptviz.text import CharTokenizer
from tests.command_line import Capture, output
from tests.pretrained.torch_files import Touch
from tests.tiny import scrambled, some_ids, tiny

TOKENIZER = CharTokenizer("abcdefghijk")
BASES = {
    "gpt2": tiny(activation="gelu-tanh", tied=True),
    "gpt-neo": tiny(activation="gelu-tanh", tied=True, score_scale=1.0, qkv_bias=False),
    "llama": tiny(
        positions="rotary",
        norm="rmsnorm",
        mlp="gated",
        activation="silu",
        n_kv_head=1,
        **dict.fromkeys(("qkv_bias", "output_bias", "mlp_bias", "norm_bias"), False),
    ),
    "neox": tiny(positions="rotary", rotary_fraction=0.5, residual="parallel", activation="gelu"),
}

pytestmark = pytest.mark.usefixtures("no_bundled_models")


def adapter(config: Config, rank: int = 2, seed: int = 0) -> dict[str, Factors]:
    generator = torch.Generator().manual_seed(seed)
    return {
        name: Factors(
            torch.randn(rank, reads, generator=generator) / 3,
            torch.randn(out, rank, generator=generator) / 3,
        )
        for name, (out, reads) in matrices(config).items()
    }


def saved(config: Config, name: str = "tuned") -> Path:
    """A base and an adapter of it among the user's own models."""
    base = checkpoints.save("base", scrambled(config), TOKENIZER, {}, replace=True)
    made = checkpoints.adapter_of(base, every_matrix(config, 2))
    weights = parameters(adapter(config))
    return checkpoints.save_opened(name, config, TOKENIZER, {}, weights=weights, adapter=made)


@pytest.mark.parametrize("kind", BASES)
def test_what_is_written_and_read_again_changes_every_matrix_in_the_same_way(
    kind: str, tmp_path: Path
) -> None:
    config = BASES[kind]
    before = adapter(BASES[kind])
    ours.write(before, config, None, "base", tmp_path)
    after = ours.as_ours(ours.read_adapter(tmp_path), config, None)
    assert after.keys() == before.keys()
    for name, one in before.items():
        torch.testing.assert_close(after[name].change, one.change, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", BASES)
def test_peft_puts_what_is_exported_on_the_exported_base_and_computes_the_same(
    kind: str, tmp_path: Path
) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    folder = saved(BASES[kind])
    exports.FORMATS["transformers"].write(checkpoints.find("base"), tmp_path / "base")
    exports.FORMATS["peft"].write(folder, tmp_path / "tuned")
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base", dtype=torch.float32)
    model = peft.PeftModel.from_pretrained(base, tmp_path / "tuned").eval()
    with torch.no_grad():
        theirs = model(some_ids()).logits
        expected = checkpoints.load(folder).model(some_ids())
        torch.testing.assert_close(theirs, expected, atol=1e-4, rtol=1e-4)
        assert not torch.allclose(
            checkpoints.load(checkpoints.find("base")).model(some_ids()), expected, atol=1e-2
        )


TARGETS = {
    "gpt2": ["c_attn", "c_fc"],
    "gpt-neo": ["q_proj", "v_proj"],
    "llama": ["q_proj", "v_proj", "down_proj"],
    "neox": ["query_key_value"],
}
SETTINGS: list[dict[str, Any]] = [
    {"r": 3, "lora_alpha": 12},
    {"r": 3, "lora_alpha": 12, "use_rslora": True},
    {
        "r": 4,
        "lora_alpha": 2,
        "rank_pattern": {"c_attn|q_proj|query_key_value": 2},
        "alpha_pattern": {"v_proj|c_fc": 8},
    },
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", BASES)
def test_an_adapter_that_peft_made_opens_on_its_base_and_computes_the_same(
    kind: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    checkpoints.save("base", scrambled(BASES[kind]), TOKENIZER, {})
    exports.FORMATS["transformers"].write(checkpoints.find("base"), tmp_path / "base")
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base", dtype=torch.float32)
    chosen = peft.LoraConfig(
        **settings,
        target_modules=TARGETS[kind],
        task_type="CAUSAL_LM",
        fan_in_fan_out=kind == "gpt2",
    )
    model = peft.get_peft_model(base, chosen).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.normal_(0, 0.3, generator=generator)
        expected = model(some_ids()).logits
    model.save_pretrained(tmp_path / "theirs")
    made = imports.import_model(str(tmp_path / "theirs"), base=None)
    assert made.folder.name == "theirs"
    opened = checkpoints.load(made.folder).model
    assert isinstance(opened, MergedTransformer)
    with torch.no_grad():
        torch.testing.assert_close(opened(some_ids()), expected, atol=1e-4, rtol=1e-4)


def written(tmp_path: Path, **fields: Any) -> Path:
    """An adapter as PEFT keeps it, with these fields changed."""
    ours.write(adapter(BASES["gpt2"]), BASES["gpt2"], None, "base", tmp_path)
    config = json.loads((tmp_path / ours.CONFIG).read_text())
    (tmp_path / ours.CONFIG).write_text(json.dumps(config | fields))
    return tmp_path


@pytest.mark.parametrize("inside", ["", "tuned/"], ids=["files", "folder"])
def test_a_zip_of_an_adapter_opens_as_its_folder_does(inside: str, tmp_path: Path) -> None:
    checkpoints.save("base", scrambled(BASES["gpt2"]), TOKENIZER, {})
    checkpoints.save("other", scrambled(BASES["gpt2"], seed=5), TOKENIZER, {})
    folder = tmp_path / "tuned"
    folder.mkdir()
    written(folder)
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as file:
        for path in folder.iterdir():
            file.write(path, f"{inside}{path.name}")
    for base in (None, "other"):
        one, zipped = (
            imports.import_model(str(tmp_path / name), base=base).folder
            for name in ("tuned", "zipped.zip")
        )
        first, second = (checkpoints.load(made).model(some_ids()) for made in (one, zipped))
        assert torch.equal(first, second)
        assert checkpoints.base_of(zipped) == checkpoints.find(base or "base")


def test_a_zip_of_another_model_takes_no_base(tmp_path: Path) -> None:
    checkpoints.save("base", scrambled(BASES["gpt2"]), TOKENIZER, {})
    exports.FORMATS["zip"].write(checkpoints.find("base"), tmp_path / "whole.zip")
    with pytest.raises(checkpoints.CheckpointError, match="is no LoRA adapter of PEFT"):
        imports.import_model(str(tmp_path / "whole.zip"), base="base")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"peft_type": "IA3"}, "this adapter is of type 'IA3'"),
        ({"use_dora": True}, "use_dora is True"),
        ({"bias": "all"}, "bias is 'all'"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save is"),
        ({"r": 0}, "r is 0; it must be a number above 0"),
        ({"lora_alpha": "x"}, "lora_alpha is 'x'"),
        ({"rank_pattern": [1]}, "rank_pattern is"),
        ({"rank_pattern": {"(": 2}}, "is no regular expression"),
        ({"r": 4}, "r is 4 for .*, whose factors in adapter_model.safetensors have the rank 2"),
        ({"rank_pattern": {"c_fc": 1}}, "r is 1 for transformer.h.0.mlp.c_fc"),
        *(
            (
                {"init_lora_weights": kind},
                f"init_lora_weights is '{kind}'; .* save it as a plain one",
            )
            for kind in ("pissa", "pissa_niter_4", "OLoRA", "corda", "loftq", "lora_ga")
        ),
        ({"rank_pattern": {"((.)+)+!": 2}}, "rank_pattern is .* takes longer than 3 seconds"),
        ({"alpha_pattern": {"c_attn": 10**400}}, "lora_alpha is"),
    ],
)
def test_what_gptviz_has_not_is_refused_by_its_name(
    fields: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ImportRefusedError, match=words.replace("(", r"\(")) as refused:
        ours.read_adapter(written(tmp_path, **fields))
    assert "\n" not in str(refused.value)


def test_damaged_and_strange_factors_are_refused_by_their_name(tmp_path: Path) -> None:
    folder = written(tmp_path)
    whole = load_file(folder / ours.WEIGHTS)
    first = "base_model.model.transformer.h.0.attn.c_attn.lora_A.weight"
    for change, words in (
        (
            {first: torch.zeros(3, 12)},
            "the two factors of transformer.h.0.attn.c_attn do not go together",
        ),
        ({first: torch.full((2, 12), torch.nan)}, "values that are not numbers"),
        ({"base_model.model.lm_head.weight": torch.zeros(2, 2)}, "is no factor of a matrix"),
    ):
        save_file(whole | change, folder / ours.WEIGHTS)
        with pytest.raises(ImportRefusedError, match=words):
            ours.read_adapter(folder)
    (folder / ours.WEIGHTS).write_bytes(b"nothing")
    with pytest.raises(
        ImportRefusedError, match=r"adapter_model\.safetensors is damaged or cut short"
    ):
        ours.read_adapter(folder)
    (folder / ours.WEIGHTS).unlink()
    with pytest.raises(ImportRefusedError, match=r"adapter_model\.safetensors is missing"):
        ours.read_adapter(folder)


def test_factors_that_torch_saved_are_those_of_safetensors_and_errors_name_their_file(
    tmp_path: Path,
) -> None:
    folder = written(tmp_path)
    whole = load_file(folder / ours.WEIGHTS)
    expected = ours.read_adapter(folder).modules
    (folder / ours.WEIGHTS).unlink()
    torch.save(whole, folder / "adapter_model.bin")
    found = ours.read_adapter(folder).modules
    assert found.keys() == expected.keys()
    assert all(
        torch.equal(found[name].a, expected[name].a)
        and torch.equal(found[name].b, expected[name].b)
        for name in expected
    )
    torch.save(
        {name: tensor * torch.nan for name, tensor in whole.items()}, folder / "adapter_model.bin"
    )
    with pytest.raises(
        ImportRefusedError, match=r"adapter_model\.bin: .* values that are not numbers"
    ):
        ours.read_adapter(folder)
    torch.save(whole | {"more": Touch(tmp_path / "it ran")}, folder / "adapter_model.bin")
    with pytest.raises(ImportRefusedError, match=r"adapter_model\.bin holds more than tensors"):
        ours.read_adapter(folder)
    assert not (tmp_path / "it ran").exists()


def test_factors_whose_product_is_no_finite_number_are_not_imported(tmp_path: Path) -> None:
    checkpoints.save("base", scrambled(BASES["gpt2"]), TOKENIZER, {})
    folder = written(tmp_path)
    whole = load_file(folder / ours.WEIGHTS)
    module = "base_model.model.transformer.h.1.mlp.c_fc"
    save_file(
        whole | {name: whole[name] * 1e30 for name in whole if name.startswith(module)},
        folder / ours.WEIGHTS,
    )
    with pytest.raises(
        CheckpointError, match=r"the weights of blocks\.1\.mlp\.\w+ are no finite numbers"
    ):
        imports.import_model(str(folder))
    assert list(checkpoints.folders()) == ["base"]


@pytest.mark.parametrize("kind", [True, False, "gaussian", "orthogonal", "mica"])
def test_a_way_to_draw_the_first_factors_that_leaves_the_base_alone_is_opened(
    kind: object, tmp_path: Path
) -> None:
    assert ours.read_adapter(written(tmp_path, init_lora_weights=kind)).modules


def test_an_adapter_of_another_model_is_refused_and_a_base_that_is_not_here_is_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "one").mkdir()
    folder = written(tmp_path / "one")
    with pytest.raises(
        CheckpointError,
        match="the adapter changes the model 'base', and there is none of that name here",
    ):
        imports.import_model(str(folder))
    checkpoints.save(
        "wide", scrambled(tiny(activation="gelu-tanh", tied=True, d_mlp=24)), TOKENIZER, {}
    )
    with pytest.raises(
        CheckpointError, match="changes a matrix of 20 × 12, and that of the base has 24 × 12"
    ):
        imports.import_model(str(folder), base="wide")
    checkpoints.save("other", scrambled(BASES["llama"]), TOKENIZER, {})
    with pytest.raises(
        CheckpointError,
        match=r"transformer\.h\.0\.attn\.c_attn is no matrix inside the blocks of the base",
    ):
        imports.import_model(str(folder), base="other")
    checkpoints.save("mine", scrambled(BASES["gpt2"]), TOKENIZER, {})
    made = imports.import_model(str(folder), base="mine")
    assert checkpoints.read_adapter(made.folder).base == "mine"
    with pytest.raises(CheckpointError, match="is an adapter itself, of mine"):
        imports.import_model(str(folder), base=made.folder.name)
    with pytest.raises(CheckpointError, match="leave --base out"):
        imports.import_model(str(tmp_path), base="mine")
    assert sorted(checkpoints.folders()) == ["mine", "one", "other", "wide"]


def test_a_model_that_is_no_adapter_is_not_written_for_peft(tmp_path: Path) -> None:
    folder = saved(BASES["gpt2"])
    assert exports.FORMATS["peft"].why_not(folder) is None
    assert exports.FORMATS["peft"].why_not(checkpoints.find("base")) == "it is no LoRA adapter"
    with pytest.raises(CheckpointError, match="base is not written: it is no LoRA adapter"):
        exports.FORMATS["peft"].write(checkpoints.find("base"), tmp_path / "made")


def test_the_commands_export_an_adapter_and_import_it_again(
    tmp_path: Path, capsys: Capture
) -> None:
    folder = saved(BASES["gpt2"])
    assert (
        main(["export", "tuned", "--format", "peft", "--out", str(tmp_path / "theirs"), "--json"])
        == 0
    )
    assert "changes 8 matrices of base" in output(
        capsys, "import", tmp_path / "theirs", "--base", "base", "--name", "again"
    )
    again = checkpoints.find("again")
    for name, one in checkpoints.read_factors(folder).items():
        torch.testing.assert_close(
            checkpoints.read_factors(again)[name].change, one.change, atol=1e-5, rtol=1e-5
        )
    assert checkpoints.read_card(again).to_json()["command"].endswith("theirs --base base")


def test_a_folder_of_peft_is_not_opened_without_its_base(tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointError, match="is a LoRA adapter of PEFT: import it first, with gptviz import"
    ):
        gptviz.load(written(tmp_path))
