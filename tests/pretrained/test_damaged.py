"""Damaged and hostile files: whatever bytes they hold, a model opens or is refused in one line,
soon, and in little memory.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import struct
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor

from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import source_at
from tests.examples import tried
from tests.pretrained.test_families import GROUPED, opened, theirs
from tests.pretrained.torch_files import Touch, saved_by_nanogpt

MOST_MEMORY = 200 * 2**20
MOST_CALLS = 300_000  # of functions; a sound file of this size takes a tenth


def refused(path: Path) -> str | None:
    """Why a file is refused, or None if it opens. Anything but a refusal in one line is an
    error.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            opened(path)
    except ImportRefusedError as error:
        assert "\n" not in str(error)
        folder = path if path.is_dir() else path.parent
        assert any(
            name in str(error) for name in (path.name, *(file.name for file in folder.iterdir()))
        ), error
        return str(error)
    return None


@contextmanager
def few_calls() -> Iterator[None]:
    """Ends what calls more functions than a sound file makes it call."""
    left = [MOST_CALLS]

    def count(frame: FrameType, event: str, argument: Any) -> None:
        left[0] -= event in ("call", "c_call")
        if left[0] < 0:
            sys.setprofile(None)
            raise AssertionError(f"more than {MOST_CALLS:,} functions were called")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)


def most_memory() -> int:
    """The most bytes that this process has had since its count was reset."""
    return 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])


@pytest.fixture
def little_memory() -> Iterator[None]:
    """The test takes little more memory than what is taken when it begins."""
    if not Path("/proc/self/clear_refs").exists():
        yield
        return
    Path("/proc/self/clear_refs").write_text("5")  # the count begins again
    before = most_memory()
    yield
    assert most_memory() - before < MOST_MEMORY


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By its ending, a file of one model as others keep it."""
    gguf_files = pytest.importorskip("tests.pretrained.gguf_files")
    folder = tmp_path_factory.mktemp("sound")
    model = theirs("llama", GROUPED)
    model.save_pretrained(folder / "safetensors")
    gguf_files.saved(model, folder / "model.gguf")
    saved_by_nanogpt(folder, stem="")
    return {
        "safetensors": folder / "safetensors" / "model.safetensors",
        "config": folder / "safetensors" / "config.json",
        "gguf": folder / "model.gguf",
        "pt": folder / "ckpt.pt",
    }


def lengths_of_header(kind: str, content: bytes) -> int:
    """How many bytes come before the numbers."""
    if kind == "safetensors":
        return 8 + int(struct.unpack("<Q", content[:8])[0])
    if kind == "gguf":
        return content.rfind(b"output.weight") + 64  # the last tensor that the header lists
    return len(content)


@contextmanager
def replaced(path: Path, content: bytes) -> Iterator[Path]:
    """The file with other content, until the end of the block; what is opened."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield path.parent if path.parent.name == "safetensors" else path
    finally:
        path.write_bytes(before)


KINDS = ("safetensors", "config", "gguf", "pt")
BYTES = st.sampled_from([0, 1, 2, 127, 128, 255, *b'"{}[],:09ea.'])


@pytest.mark.parametrize("kind", KINDS)
def test_each_of_these_files_opens_as_it_was(sound: dict[str, Path], kind: str) -> None:
    path = sound[kind]
    with few_calls():
        assert refused(path.parent if path.parent.name == "safetensors" else path) is None


@pytest.mark.parametrize("kind", KINDS)
@tried(60, 120, data=st.data())
def test_flipped_bytes_are_refused_in_a_line_or_change_numbers_only(
    sound: dict[str, Path], kind: str, data: st.DataObject, little_memory: None
) -> None:
    content = bytearray(sound[kind].read_bytes())
    places = st.integers(0, lengths_of_header(kind, bytes(content)) - 1)
    for place, byte in data.draw(
        st.lists(st.tuples(places, BYTES | st.integers(0, 255)), min_size=1, max_size=4)
    ):
        content[place] = byte
    with replaced(sound[kind], bytes(content)) as path, few_calls():
        refused(path)


@pytest.mark.parametrize("kind", KINDS)
@tried(60, 100, share=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_anywhere_is_refused_in_a_line(
    sound: dict[str, Path], kind: str, share: float, little_memory: None
) -> None:
    content = sound[kind].read_bytes().rstrip(b"\n")  # which JSON may do without
    with replaced(sound[kind], content[: int(share * len(content))]) as path, few_calls():
        assert refused(path) is not None


def test_a_part_that_is_cut_short_is_named(tmp_path: Path) -> None:
    theirs("llama", GROUPED).save_pretrained(tmp_path, max_shard_size="6KB")
    second = sorted(tmp_path.glob("*.safetensors"))[1]
    os.truncate(second, second.stat().st_size - 100)
    assert second.name in str(refused(tmp_path))


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"embedding_length": 10**6, "feed_forward_length": 10**7}, "more than its files of"),
        ({"block_count": 2**31}, "block_count is 2147483648"),
        ({"context_length": 2**31}, "context_length is 2147483648"),
    ],
)
def test_a_gguf_header_of_a_trillion_numbers_takes_no_memory(
    sound: dict[str, Path], sizes: dict[str, int], words: str, little_memory: None
) -> None:
    content = sound["gguf"].read_bytes()
    for name, size in sizes.items():
        # the type: a whole number of four bytes
        key = f"llama.{name}".encode() + struct.pack("<I", 4)
        at = content.index(key) + len(key)
        content = content[:at] + struct.pack("<I", size) + content[at + 4 :]
    with replaced(sound["gguf"], content) as path, few_calls():
        assert words in str(refused(path))


def with_header(sound: dict[str, Path], tensor: str, place: int, form: str, value: int) -> bytes:
    """The GGUF file with another number at this place after a matrix's name: 4 is its width, 20 its
    kind, 24 where it begins.
    """
    content = bytearray(sound["gguf"].read_bytes())
    struct.pack_into(form, content, content.index(tensor.encode()) + len(tensor) + place, value)
    return bytes(content)


@pytest.mark.parametrize(
    ("place", "form", "value", "why"),
    [
        (
            4,
            "<Q",
            8,
            "does not begin where blk.1.ffn_up.weight ends: the kind or shape of one of them is "
            "wrong",
        ),
        (20, "<I", 1, "does not begin where blk.1.ffn_up.weight ends"),  # F16 instead of F32
        (20, "<I", 999, "blk.1.ffn_up.weight: there is no kind 999 of numbers"),
        (24, "<Q", 2**40, "blk.1.ffn_up.weight does not begin where"),
    ],
)
def test_a_mislabelled_tensor_of_a_gguf_file_is_named(
    place: int, form: str, value: int, why: str, sound: dict[str, Path], little_memory: None
) -> None:
    with replaced(
        sound["gguf"], with_header(sound, "blk.1.ffn_up.weight", place, form, value)
    ) as path:
        said = str(refused(path))
    assert why in said
    assert said.startswith("model.gguf is damaged or cut short")
    assert said.endswith("copy or download it again")


def test_a_gguf_file_that_is_cut_names_the_tensor_and_one_that_is_too_long_says_so(
    sound: dict[str, Path],
) -> None:
    content = sound["gguf"].read_bytes()
    with replaced(sound["gguf"], content[:-200]) as path:
        assert "weight: the file ends before it does" in str(refused(path))
    with replaced(sound["gguf"], content + b"x" * 1000) as path:
        assert any(
            "Its last 1,000 bytes belong to no tensor" in note
            for note in source_at(path).describe_model().notes
        )
    with replaced(sound["gguf"], content) as path:
        assert not any(
            "belong to no tensor" in note for note in source_at(path).describe_model().notes
        )


NAME = "model.norm.weight"
ODD: dict[str, Callable[[Tensor], Tensor]] = {
    "whole numbers": lambda t: t.to(torch.int32),
    "true or false": lambda t: t > 0,
    "complex": lambda t: t.to(torch.complex64),
    "eight bits": lambda t: t.to(torch.float8_e4m3fn),
}


@pytest.mark.parametrize("kind", ODD)
def test_whole_numbers_and_short_ones_are_numbers_and_complex_ones_are_refused_by_their_name(
    sound: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    folder = sound["safetensors"].parent
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(tmp_path / "model.safetensors")
    save_file(
        tensors | {NAME: ODD[kind](tensors[NAME])},
        tmp_path / "model.safetensors",
        metadata={"format": "pt"},
    )
    why = refused(tmp_path)
    assert (why is None) == (kind != "complex")
    assert why is None or "model.safetensors: model.norm.weight holds complex numbers" in why


def test_an_unknown_type_or_place_of_numbers_is_refused(
    tmp_path: Path, sound: dict[str, Path]
) -> None:
    content = sound["safetensors"].read_bytes()
    size = lengths_of_header("safetensors", content)
    header = json.loads(content[8:size])
    for change in (
        {"dtype": "F4096"},
        {"shape": [2**62, 2**62]},
        {"data_offsets": [0, 2**63]},
        {"data_offsets": [9, 3]},
    ):
        said = json.dumps(header | {NAME: header[NAME] | change}).encode()
        with replaced(
            sound["safetensors"], struct.pack("<Q", len(said)) + said + content[size:]
        ) as path:
            assert "model.safetensors is damaged" in str(refused(path))


def test_a_header_of_very_many_tensors_is_refused_before_it_is_read(
    tmp_path: Path, sound: dict[str, Path], little_memory: None
) -> None:
    empty = {
        f"tensor {number}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
        for number in range(70_000)
    }
    header = json.dumps(empty).encode()
    shutil.copy(sound["config"], tmp_path)
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    assert re.search(
        r"its header has [\d,]+ bytes, and 4,194,304 are the most", str(refused(tmp_path))
    )


def test_nanogpts_checkpoint_with_more_or_fewer_tensors_or_a_call_in_it_is_refused(
    sound: dict[str, Path],
) -> None:
    content = torch.load(sound["pt"], weights_only=True)
    less = {
        name: tensor for name, tensor in content["model"].items() if name != "transformer.ln_f.bias"
    }
    more = content["model"] | {"transformer.extra": torch.zeros(3)}
    wider = content["model"] | {"transformer.ln_f.bias": torch.zeros(3)}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"model": less}, "tensor transformer.ln_f.bias is missing"),
        ({"model": more}, "1 tensor has no place in a nanoGPT model, such as 'transformer.extra'"),
        ({"model": wider}, "odd.pt: transformer.ln_f.bias has the shape (3,)"),
        ({"model_args": content["model_args"] | {"n_embd": 10**6}}, "more than its files of"),
        ({"model_args": content["model_args"] | {"n_head": "2"}}, "n_head is '2'"),
        ({"model_args": {}}, "is None; a nanoGPT model needs a whole number"),
        ({"model": {}, "best_val_loss": None}, "holds no tensors by name"),
        ({"config": Touch(sound["pt"].parent / "it ran")}, "could run code"),
    ]
    for change, words in cases:
        path = sound["pt"].parent / "odd.pt"
        torch.save(content | change, path)
        assert words in str(refused(path)), words
    assert not (sound["pt"].parent / "it ran").exists()


@tried(60, 120, content=st.binary(max_size=200))
def test_any_bytes_as_meta_pkl_are_refused_in_a_line_or_left_out(
    sound: dict[str, Path], content: bytes
) -> None:
    meta = sound["pt"].parent / "meta.pkl"
    meta.write_bytes(content)
    try:
        with few_calls():
            why = refused(sound["pt"])
        assert why is not None
        assert "meta.pkl" in why
    finally:
        meta.unlink()


HOSTILE = {
    "lists within lists": b"]" * 100_000 + b"a" * 99_999 + b".",
    "a number beyond all": b"\x80\x04" + b"I99999999999999999999\n" * 3 + b".",
    "a reference to memory beyond all there is": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "a list where a table is": b"\x80\x02}Na.",
    "a length of half of all bytes": b"\x80\x04\x95" + b"\xff" * 8,
    "half a file": pickle.dumps({"itos": {0: "a"}})[:-9],
}
TABLES: list[Any] = [
    None,
    ["a", "b"],
    {0: "aaa"},
    {0: "b", 1: "a"},
    {0: "a", "1": "b"},
    {0: "a", 1: 7},
    {0: "a", 1: "bc"},
]
UNTRUSTED = {**HOSTILE, **{str(table): pickle.dumps({"itos": table}) for table in TABLES}}


@pytest.mark.parametrize("kind", UNTRUSTED)
def test_a_table_of_characters_that_cannot_be_trusted_is_refused_by_name(
    kind: str, sound: dict[str, Path], little_memory: None
) -> None:
    meta = sound["pt"].parent / "meta.pkl"
    meta.write_bytes(UNTRUSTED[kind])
    why = "" if kind in HOSTILE else "move it away to open the model"
    try:
        assert re.search(rf"meta\.pkl.*{why}", str(refused(sound["pt"])))
    finally:
        meta.unlink()


def test_nothing_in_meta_pkl_runs(sound: dict[str, Path], tmp_path: Path) -> None:
    meta = sound["pt"].parent / "meta.pkl"
    meta.write_bytes(pickle.dumps({"itos": Touch(tmp_path / "it ran")}))
    assert "meta.pkl holds more than characters" in str(refused(sound["pt"]))
    assert not (tmp_path / "it ran").exists()
    meta.unlink()
