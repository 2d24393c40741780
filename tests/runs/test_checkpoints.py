"""Checkpoints: what is saved comes back, a failed save costs nothing, and no file from a stranger
does harm.
"""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import strategies as st
from safetensors import SafetensorError

from gptviz.model import PRESETS, Transformer
from gptviz.model.kinds import kind_said
from gptviz.runs import checkpoints
from gptviz.runs.card import Card
from gptviz.runs.checkpoints import CheckpointError
from gptviz.runs.log import read_log
from gptviz.runs.status import read_status
from gptviz.text import BPETokenizer, CharTokenizer
from tests.examples import tried
from tests.systems import named_pipe, odd_name
from tests.tiny import TinyModel, scrambled, some_ids, tiny

TOKENIZER = CharTokenizer("abcdefghijk")


pytestmark = pytest.mark.usefixtures("no_bundled_models")


def state(model: Transformer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tied": True},
        {"positions": "relative", "n_layer": 1},
        {"positions": "rotary", "n_layer": 0},
    ],
)
def test_what_is_saved_comes_back_to_the_bit(changes: dict[str, Any]) -> None:
    model = scrambled(tiny(dropout=0.5, **changes)).train()
    folder = checkpoints.save("one", model, TOKENIZER, {"corpus": "é ␣ 日本"})
    opened = checkpoints.load(checkpoints.find("one"))
    assert (opened.name, opened.model.config) == ("one", model.config)
    assert opened.card.to_json() == {
        "corpus": "é ␣ 日本",
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    assert opened.tokenizer.to_json() == TOKENIZER.to_json()
    assert list(state(opened.model)) == list(state(model))
    assert all(
        torch.equal(value, state(model)[name]) for name, value in state(opened.model).items()
    )
    assert not opened.model.training
    assert torch.equal(opened.model(some_ids()), model.eval()(some_ids()))
    assert sorted(file.name for file in folder.iterdir()) == [
        "card.json",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]


def test_tied_weights_are_stored_once_and_come_back_tied() -> None:
    folder = checkpoints.save("tied", scrambled(tiny(tied=True)), TOKENIZER, {})
    stored = safetensors.torch.load_file(folder / "model.safetensors")
    assert sorted(name for name in stored if "embed" in name) == ["embed.weight"]
    model = checkpoints.load(folder).model
    assert model.head.unembed.weight is model.embed.weight


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_stored_short_come_back_in_float32_as_rounded(dtype: torch.dtype) -> None:
    model = scrambled(tiny())
    folder = checkpoints.save("short", model, TOKENIZER, {}, dtype=dtype)
    sizes = [checkpoints.save("long", model, TOKENIZER, {}), folder]
    long, short = ((where / "model.safetensors").stat().st_size for where in sizes)
    # Two bytes less per number; the headers differ by a few characters.
    assert long - short == pytest.approx(2 * sum(p.numel() for p in model.parameters()), abs=64)
    opened = state(checkpoints.load(folder).model)
    assert all(
        torch.equal(opened[name], value.to(dtype).float()) for name, value in state(model).items()
    )


def test_a_bpe_model_comes_back_with_its_tokens() -> None:
    tokenizer = BPETokenizer.learn("to be or not to be, that is the question " * 5, 270)
    checkpoints.save("bpe", scrambled(tiny(vocab_size=tokenizer.vocab_size)), tokenizer, {})
    opened = checkpoints.load(checkpoints.find("bpe")).tokenizer
    assert opened.encode("to be").ids == tokenizer.encode("to be").ids


def test_saving_again_replaces_the_whole_model() -> None:
    checkpoints.save("one", scrambled(tiny()), TOKENIZER, {"steps": 1})
    other = scrambled(tiny(n_layer=1), seed=5)
    folder = checkpoints.save("one", other, TOKENIZER, {"steps": 2}, replace=True)
    opened = checkpoints.load(folder)
    assert opened.card.steps == 2
    assert torch.equal(opened.model.embed.weight, other.embed.weight)
    assert [file.name for file in folder.parent.iterdir()] == ["one"]


def test_a_card_with_a_name_no_encoding_has_is_saved_and_read_as_one_that_can_be_shown() -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    folder = checkpoints.save("one", scrambled(tiny()), TOKENIZER, {"corpus": name, "command": "é"})
    assert checkpoints.read_card(folder).to_json() == {
        "corpus": "caf\ufffd.txt",
        "command": "é",
        "parameters": 2_752,
    }


def full_disk(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def full_disk_midway(weights: Any, path: Path, **_: Any) -> None:
    path.write_bytes(b"half a file")
    raise SafetensorError(
        "Error while serializing: I/O error: No space left on device (os error 28)"
    )


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("failure", [full_disk, full_disk_midway, interrupted])
def test_a_save_that_fails_midway_leaves_the_last_good_model_and_no_litter(
    failure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    good = scrambled(tiny())
    folder = checkpoints.save("one", good, TOKENIZER, {})
    monkeypatch.setattr(safetensors.torch, "save_file", failure)
    for name in ("one", "new"):
        with pytest.raises(
            KeyboardInterrupt if failure is interrupted else CheckpointError
        ) as raised:
            checkpoints.save(name, scrambled(tiny(), seed=1), TOKENIZER, {}, replace=True)
        if failure is not interrupted:
            assert "No space left on device" in str(raised.value)
            assert str(folder.parent) in str(raised.value)
    assert [file.name for file in folder.parent.iterdir()] == ["one"]
    assert all(
        torch.equal(value, state(good)[name])
        for name, value in state(checkpoints.load(folder).model).items()
    )


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_save_that_fails_at_the_last_rename_puts_the_old_model_back(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = checkpoints.save("one", scrambled(tiny()), TOKENIZER, {"steps": 1})
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if target == folder and self.suffix != ".old":
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(CheckpointError if error is OSError else KeyboardInterrupt):
        checkpoints.save("one", scrambled(tiny()), TOKENIZER, {"steps": 2}, replace=True)
    assert checkpoints.load(folder).card.steps == 1
    assert [file.name for file in folder.parent.iterdir()] == ["one"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e5])
def test_weights_that_the_stored_type_cannot_hold_are_not_saved_over_good_ones(
    value: float,
) -> None:
    folder = checkpoints.save("one", scrambled(tiny()), TOKENIZER, {})
    broken = scrambled(tiny())
    broken.blocks[1].mlp.up.weight.data[3, 2] = value
    with pytest.raises(
        CheckpointError,
        match=r"one is not saved: blocks\.1\.mlp\.up\.weight holds .* numbers in float16",
    ):
        checkpoints.save("one", broken, TOKENIZER, {}, dtype=torch.float16, replace=True)
    checkpoints.load(folder)


def test_names_that_are_fine_are_taken() -> None:
    for name in ("a", "shakespeare", "ladder-0", "v1.2_b", "x" * 64):
        assert checkpoints.save(name, scrambled(tiny(n_layer=0)), TOKENIZER, {}).name == name
    assert set(checkpoints.folders()) == {"a", "shakespeare", "ladder-0", "v1.2_b", "x" * 64}


@pytest.mark.parametrize("kind", ["other files", "a model and other files", "a file", "a link"])
def test_saving_never_destroys_what_is_not_a_model(
    kind: str, tmp_path: Path, tiny_model: TinyModel
) -> None:
    root = tmp_path / "project"
    target = tmp_path / "project/tests"
    root.mkdir()
    if kind == "a file":
        target.write_text("precious")
    elif kind == "a link":
        target.symlink_to(tiny_model("linked"))
    else:
        target.mkdir()
        (target / "precious.py").touch()
        if kind.startswith("a model"):
            (target / "config.json").touch()
    with pytest.raises(CheckpointError, match="tests holds something other than a model"):
        checkpoints.save("tests", scrambled(tiny()), TOKENIZER, {}, root=root)
    assert [file.name for file in root.iterdir()] == ["tests"]
    assert target.is_symlink() or target.is_file() or (target / "precious.py").exists()


def test_a_name_is_looked_up_among_the_folders_the_users_own_first(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    checkpoints.save("both", scrambled(tiny()), TOKENIZER, {}, root=checkpoints.BUNDLED)
    checkpoints.save("bundled", scrambled(tiny()), TOKENIZER, {}, root=checkpoints.BUNDLED)
    own = tiny_model("both")
    (own.parent / "not-a-model").mkdir()
    (own.parent / ".both-x").mkdir()
    (own.parent / ".both-x/config.json").touch()
    (own.parent / "file").touch()
    assert checkpoints.folders() == {"both": own, "bundled": checkpoints.BUNDLED / "bundled"}
    assert checkpoints.find("both") == own
    with pytest.raises(CheckpointError, match="no model named 'nothing'; there are both, bundled"):
        checkpoints.find("nothing")


def test_a_look_up_by_one_name_finds_what_the_list_of_all_has_and_takes_no_name_for_a_path(
    tiny_model: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("both", "bundled"):
        checkpoints.save(name, scrambled(tiny()), TOKENIZER, {}, root=checkpoints.BUNDLED)
    own = tiny_model("both").parent
    tiny_model("other").rename(own / "two\nlines")
    outside = checkpoints.save("outside", scrambled(tiny()), TOKENIZER, {}, root=tmp_path)
    (own / "escape").symlink_to(outside)
    (own / "latest").symlink_to(own / "both")
    for directory in ("not-a-model", "a"):
        (own / directory).mkdir()
    shutil.copytree(own / "both", own / "a" / "inner")
    shutil.copytree(own / "both", own / ".hidden")
    names = [
        *checkpoints.folders(),
        "BOTH",
        "escape",
        ".hidden",
        "not-a-model",
        "a/inner",
        "two\nlines",
        "both/",
        "both.",
    ]
    names += [
        "",
        ".",
        "..",
        "../checkpoints/both",
        str(own / "both"),
        f"both/../{own.name}/both",
        os.path.relpath(outside, own),
    ]
    assert {"both", "bundled", "latest", r"two\nlines"} == set(checkpoints.folders())
    for allowed in ("", "bundled,latest"):
        monkeypatch.setenv("GPTVIZ_MODELS", allowed)
        assert {name: checkpoints.folder_of(name) for name in names} == {
            name: checkpoints.folders().get(name) for name in names
        }


def test_a_link_that_leads_out_of_the_folder_is_not_followed(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    inside = tiny_model("inside")
    outside = checkpoints.save(
        "outside", scrambled(tiny()), TOKENIZER, {}, root=tmp_path / "elsewhere"
    )
    (inside.parent / "escape").symlink_to(outside)
    (inside.parent / "latest").symlink_to(inside)
    (inside.parent / "loop").symlink_to(inside.parent / "loop")
    assert set(checkpoints.folders()) == {"inside", "latest"}
    with pytest.raises(CheckpointError, match="no model named 'escape'"):
        checkpoints.find("escape")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("two\nlines", r"two\nlines"),
        ("a\u202eb", r"a\u202eb"),
        ("modèle 語 🙂", "modèle 語 🙂"),
        ("tab\tand \x1b[31m", r"tab\tand \x1b[31m"),
    ],
)
def test_a_name_is_a_line_that_every_page_can_show_and_finds_its_folder(
    name: str, shown: str, tiny_model: TinyModel
) -> None:
    if sys.platform == "win32" and min(name) < " ":
        pytest.skip("Windows refuses such a name")
    folder = tiny_model().rename(checkpoints.home() / "checkpoints" / name)
    assert checkpoints.folders() == {shown: folder}
    assert checkpoints.load(checkpoints.find(shown)).name == shown


def test_a_folder_whose_name_is_not_utf_8_says_so_and_hides_no_other(tiny_model: TinyModel) -> None:
    tiny_model("other")
    odd = odd_name(checkpoints.home() / "checkpoints", b"caf\xe9")
    tiny_model("tiny").rename(odd)
    assert checkpoints.folders() == {r"caf\xe9": odd, "other": odd.parent / "other"}
    for read in (checkpoints.read_card, checkpoints.read_config, checkpoints.load):
        with pytest.raises(
            CheckpointError, match=r"caf\\xe9 is in a folder whose name is not UTF-8 text: rename"
        ):
            read(odd)


def test_a_home_that_cannot_be_read_hides_no_bundled_model(home: Path) -> None:
    checkpoints.save("bundled", scrambled(tiny()), TOKENIZER, {}, root=checkpoints.BUNDLED)
    (home / "checkpoints").write_text("a file where a folder should be")
    assert set(checkpoints.folders()) == {"bundled"}


def test_home_is_where_the_variable_says_and_a_tilde_is_the_users_home(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("HOME", "USERPROFILE"):  # the second is that of Windows
        monkeypatch.setenv(variable, "/someone")
    monkeypatch.setenv("GPTVIZ_HOME", "~/models")
    assert checkpoints.home() == Path("/someone/models")
    for unset in ("", None):
        monkeypatch.setenv("GPTVIZ_HOME", unset) if unset is not None else monkeypatch.delenv(
            "GPTVIZ_HOME"
        )
        assert checkpoints.home() == Path("/someone/.cache/gptviz")


# What a stranger, a crash or a bad copy can do to a folder, and what the message must say.


def edit_config(folder: Path, **changes: Any) -> None:
    content = json.loads((folder / "config.json").read_text())
    content["config"] |= changes
    (folder / "config.json").write_text(json.dumps(content))


def cut(folder: Path, file: str, keep: int) -> None:
    (folder / file).write_bytes((folder / file).read_bytes()[:keep])


def with_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    change(weights)
    safetensors.torch.save_file(weights, folder / "model.safetensors")


def set_nan(weights: dict[str, torch.Tensor]) -> None:
    weights["blocks.0.mlp.up.weight"][0, 0] = float("nan")


def beyond_float32(weights: dict[str, torch.Tensor]) -> None:
    weights["embed.weight"] = torch.full_like(weights["embed.weight"], 1e300, dtype=torch.float64)


def whole_numbers(weights: dict[str, torch.Tensor]) -> None:
    weights["embed.weight"] = weights["embed.weight"].to(torch.int64)


class Evil:
    ran = False

    def __reduce__(self) -> tuple[Any, ...]:
        return (setattr, (Evil, "ran", True))


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps(Evil()))


def torch_pickled(folder: Path) -> None:
    torch.save({"x": Evil()}, folder / "model.safetensors")


def a_folder(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()


def a_pipe(folder: Path, file: str) -> None:
    (folder / file).unlink()
    named_pipe(folder / file)


def a_circle(folder: Path, file: str) -> None:
    (folder / file).unlink()
    (folder / file).symlink_to(file)


def long(folder: Path, file: str) -> None:
    os.truncate(folder / file, 300 * 2**20)


def crowded(folder: Path, file: str) -> None:
    (folder / file).write_text(f'{{"a": [{"[]," * 2_000_000}[]]}}')


DAMAGE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no config": (lambda f: (f / "config.json").unlink(), "the model tiny lacks config.json"),
    "no tokenizer": (
        lambda f: (f / "tokenizer.json").unlink(),
        "the model tiny lacks tokenizer.json",
    ),
    "no weights": (
        lambda f: (f / "model.safetensors").unlink(),
        "the model tiny lacks model.safetensors",
    ),
    "empty config": (lambda f: cut(f, "config.json", 0), "tiny/config.json cannot be read"),
    "half a config": (lambda f: cut(f, "config.json", 40), "tiny/config.json cannot be read"),
    "half a tokenizer": (
        lambda f: cut(f, "tokenizer.json", 40),
        "tiny/tokenizer.json cannot be read",
    ),
    "half a card": (lambda f: cut(f, "card.json", 5), "tiny/card.json cannot be read"),
    "no bytes of weights": (
        lambda f: cut(f, "model.safetensors", 0),
        "tiny/model.safetensors is damaged or cut short",
    ),
    "half the header": (
        lambda f: cut(f, "model.safetensors", 100),
        "tiny/model.safetensors is damaged or cut short",
    ),
    "half the weights": (
        lambda f: cut(f, "model.safetensors", 5_000),
        "tiny/model.safetensors is damaged or cut short",
    ),
    "a byte less": (
        lambda f: cut(f, "model.safetensors", -1),
        "tiny/model.safetensors is damaged or cut short",
    ),
    "a byte more": (
        lambda f: os.truncate(
            f / "model.safetensors", (f / "model.safetensors").stat().st_size + 1
        ),
        "tiny/model.safetensors is damaged or cut short",
    ),
    "a folder": (a_folder, "tiny/model.safetensors is damaged"),
    "a pickle": (pickled, "tiny/model.safetensors is damaged"),
    "a pickle of torch": (torch_pickled, "tiny/model.safetensors is damaged"),
    "a newer version": (
        lambda f: (f / "config.json").write_text('{"format": 2, "config": {}}'),
        "tiny/config.json is of format 2, this version reads 1",
    ),
    "no version": (
        lambda f: (f / "config.json").write_text("{}"),
        "format None, this version reads 1",
    ),
    "a list": (
        lambda f: (f / "config.json").write_text("[1]"),
        "tiny/config.json is not a JSON object",
    ),
    "no fields": (
        lambda f: (f / "config.json").write_text('{"format": 1}'),
        "a config is a table of fields",
    ),
    "an unknown field": (
        lambda f: edit_config(f, exec="rm"),
        "tiny/config.json: unknown config field 'exec'",
    ),
    "a strange value": (lambda f: edit_config(f, positions="magnetic"), "positions is 'magnetic'"),
    "10¹² tokens": (lambda f: edit_config(f, vocab_size=10**12), "vocab_size is 1000000000000"),
    "another vocabulary": (
        lambda f: edit_config(f, vocab_size=10**7),
        "tokenizer has 29 tokens, the model 10,000,000",
    ),
    "10¹² parameters": (
        lambda f: edit_config(f, d_model=10**6, d_head=1, n_head=1, d_mlp=10**5, n_layer=5),
        r"describes 1,000,\d\d\d,\d\d\d,\d\d\d parameters, with blocks.0.attention.output.bias "
        r"\(1000000,\); .* has it \(12,\)",
    ),
    "10¹⁵ parameters": (
        lambda f: edit_config(f, d_model=10**6, d_head=10**6, n_head=1, d_mlp=10**6, n_layer=256),
        r"describes 1,\d\d\d,\d\d\d,\d\d\d,\d\d\d,\d\d\d parameters",
    ),
    "a block more": (
        lambda f: edit_config(f, n_layer=3),
        r"with blocks.2.\S+ \(12,\); model.safetensors has it absent",
    ),
    "a block less": (
        lambda f: edit_config(f, n_layer=1),
        "with blocks.1.attention.output.bias absent",
    ),
    "a shape": (
        lambda f: edit_config(f, d_mlp=21),
        r"with blocks.0.mlp.down.weight \(12, 21\); .* has it \(12, 20\)",
    ),
    "not a number": (
        lambda f: with_weights(f, set_nan),
        "tiny: blocks.0.mlp.up.weight holds values that are not numbers",
    ),
    "beyond float32": (
        lambda f: with_weights(f, beyond_float32),
        "tiny: embed.weight holds values that are not numbers",
    ),
    "whole numbers": (
        lambda f: with_weights(f, whole_numbers),
        "stores embed.weight as I64, this version reads F16",
    ),
    "deep config": (
        lambda f: (f / "config.json").write_text("[" * 200_000),
        "tiny/config.json cannot be read",
    ),
    "deep tokenizer": (
        lambda f: (f / "tokenizer.json").write_text('{"a":' * 200_000),
        "tiny/tokenizer.json cannot be read",
    ),
    "bytes": (
        lambda f: (f / "config.json").write_bytes(b"\xff\xfe\x00"),
        "tiny/config.json cannot be read",
    ),
}
FILES = ("config.json", "card.json", "tokenizer.json", "model.safetensors")
for _file in FILES:
    DAMAGE |= {
        f"a pipe for {_file}": (
            partial(a_pipe, file=_file),
            f"tiny/{_file} .*a pipe, not a regular file",
        ),
        f"links in a circle for {_file}": (
            partial(a_circle, file=_file),
            f"tiny/{_file} .*symbolic links",
        ),
    }
for _file in FILES[:-1]:
    DAMAGE |= {
        f"300 MB of {_file}": (
            partial(long, file=_file),
            f"tiny/{_file} cannot be read .*longer than",
        ),
        f"many values in {_file}": (
            partial(crowded, file=_file),
            f"tiny/{_file} cannot be read .*(values|longer)",
        ),
    }


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_model_is_refused_quickly_with_its_name_and_what_is_wrong(
    kind: str, tiny_model: TinyModel
) -> None:
    damage, named = DAMAGE[kind]
    folder = tiny_model()
    damage(folder)
    begun = time.process_time()
    with pytest.raises(CheckpointError, match=named) as raised:
        checkpoints.load(folder)
    assert time.process_time() - begun < 5
    assert len(str(raised.value)) < 1_200
    assert "\n" not in str(raised.value)
    assert not Evil.ran


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with all files that a folder of models may have."""
    folder = checkpoints.save(
        "sound", scrambled(tiny()), TOKENIZER, {"losses": []}, root=tmp_path_factory.mktemp("sound")
    )
    (folder / "log.jsonl").write_text(
        '{"kind": "step", "step": 1, "loss": 2.5, "by_place": [0.5, null]}\n' * 3
    )
    (folder / "status.json").write_text('{"state": "paused", "message": ""}')
    return folder


@tried(
    150,
    1_000,
    file=st.sampled_from(
        [
            "config.json",
            "card.json",
            "tokenizer.json",
            "model.safetensors",
            "log.jsonl",
            "status.json",
        ]
    ),
    place=st.floats(0, 1),
    removed=st.integers(0, 40),
    put=st.binary(max_size=8)
    | st.sampled_from(
        [b"[" * 2_000, b"1e999", b"-" + b"9" * 400, b'\\ud800"', b"null", b"{}", b"NaN"]
    ),
)
def test_bytes_changed_anywhere_give_a_model_or_a_line_that_names_the_file(
    sound: Path, file: str, place: float, removed: int, put: bytes
) -> None:
    good = (sound / file).read_bytes()
    at = int(place * len(good))
    (sound / file).write_bytes(good[:at] + put + good[at + removed :])
    try:
        read_log(sound / "log.jsonl")
        read_status(sound)
        model = checkpoints.load(sound)
    except CheckpointError as error:
        assert str(error).startswith("sound") or "the model sound" in str(error)
        assert "\n" not in str(error)
        assert len(str(error)) < 1_200
    else:
        assert model.model(torch.zeros(1, 1, dtype=torch.long)).isfinite().all()
        assert model.tokenizer.labels()
    finally:
        (sound / file).write_bytes(good)


def test_tables_that_no_weights_vouch_for_stay_small(tiny_model: TinyModel) -> None:
    # Rotary, sinusoidal and ALiBi models hold no weight of the context's length: a config alone
    # decides it.
    folder = tiny_model(positions="rotary")
    edit_config(folder, context_length=10**6)
    with pytest.raises(
        CheckpointError,
        match="context_length is 1000000; it must be a whole number from 1 to 131,072",
    ):
        checkpoints.load(folder)


def test_a_model_without_a_card_opens() -> None:
    folder = checkpoints.save("one", scrambled(tiny()), TOKENIZER, {})
    (folder / "card.json").unlink()
    assert checkpoints.load(folder).card == Card()


def test_snapshots_are_found_by_their_steps_in_order_and_what_is_none_is_left_out(
    tiny_model: TinyModel,
) -> None:
    folder = tiny_model()
    assert checkpoints.snapshots(folder) == {}
    for step in (100_000_000, 0, 7):
        checkpoints.write_weights(
            checkpoints.snapshot_path(folder, step), scrambled(tiny(), seed=step)
        )
    for name in (
        "x.safetensors",
        "-0000001.safetensors",
        "7.safetensors",
        ".00000009.safetensors-12",
        "00000008.json",
    ):
        (folder / "snapshots" / name).touch()
    assert list(checkpoints.snapshots(folder)) == [0, 7, 100_000_000]
    assert all(
        path == checkpoints.snapshot_path(folder, step)
        for step, path in checkpoints.snapshots(folder).items()
    )


def test_a_snapshot_of_another_model_is_refused_with_its_name(tiny_model: TinyModel) -> None:
    folder = tiny_model()
    checkpoints.write_weights(checkpoints.snapshot_path(folder, 3), scrambled(tiny(d_model=24)))
    with pytest.raises(
        CheckpointError,
        match=r"tiny: config.json describes .*snapshots/00000003.safetensors has it",
    ):
        checkpoints.load(folder, step=3)


def test_weights_too_large_for_the_type_they_are_stored_in_leave_the_good_file(
    tiny_model: TinyModel,
) -> None:
    folder = tiny_model()
    path = folder / "model.safetensors"
    before = path.read_bytes()
    model = scrambled(tiny(vocab_size=29))
    model.embed.weight.data[0, 0] = 1e5
    with pytest.raises(
        checkpoints.NotNumbersError,
        match="embed.weight holds values that are not numbers in float16",
    ):
        checkpoints.write_weights(path, model, torch.float16)
    assert path.read_bytes() == before
    checkpoints.write_weights(path, model)
    assert checkpoints.load(folder).model.embed.weight[0, 0] == 1e5


@pytest.mark.parametrize("failure", [full_disk_midway, full_disk, interrupted])
def test_a_file_is_replaced_as_a_whole_or_not_at_all(
    failure: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new/tensors.safetensors"
    path.parent.mkdir()
    checkpoints.write_tensors(path, {"x": torch.ones(3)})
    with monkeypatch.context() as patch:
        patch.setattr(safetensors.torch, "save_file", failure)
        with pytest.raises((CheckpointError, KeyboardInterrupt)):
            checkpoints.write_tensors(path, {"x": torch.zeros(3)})
    assert torch.equal(safetensors.torch.load_file(path)["x"], torch.ones(3))
    assert os.listdir(path.parent) == ["tensors.safetensors"]


def test_the_kind_of_every_shipped_model_and_preset_is_known_without_its_parts() -> None:
    for folder in (Path(__file__).parents[2] / "checkpoints").iterdir():
        if (folder / "config.json").exists():
            assert checkpoints.read_kind(folder) == checkpoints.read_config(folder).kind
    assert all(kind_said(config.to_dict()) == config.kind for config in PRESETS.values())
