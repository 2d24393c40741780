"""nanochat's checkpoints, against its forward pass in a few lines of our own, and its tokenizer
against merging by hand.
"""

from __future__ import annotations

import json
import pickle
import sys
import types
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import regex
import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import reference, source_at, source_from_reference
from tests.pretrained.test_families import opened
from tests.tiny import some_ids

PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| "
    r"?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
SPECIAL = ["<|bos|>", "<|user_start|>", "<|user_end|>", "<|assistant_start|>", "<|assistant_end|>"]
MERGED = [b"th", b"the", b" the", b"12", b"in", b"ing", b"\xc3\xa4", b" f", b" fo", b" fox"]
VOCAB = 256 + len(MERGED) + len(SPECIAL)
SIZES = {
    "sequence_len": 24,
    "vocab_size": VOCAB,
    "n_layer": 3,
    "n_head": 4,
    "n_kv_head": 2,
    "n_embd": 32,
}


class Version(NamedTuple):
    """What nanochat's code did at a time, beside its sizes."""

    mixes: bool = False
    gate: int = 0
    most: float = 0.0
    sharper: float = 1.0
    base: float = 10_000.0
    smears: bool = False
    reach: int = 24  # tokens before its own that a query reads in a block with a window


VERSIONS = [
    Version(reach=12),
    Version(mixes=True, reach=12),
    Version(mixes=True, gate=32, most=2.0, reach=12),
    Version(mixes=True, gate=12, most=3.0, sharper=1.15, base=100_000.0),
    Version(mixes=True, gate=12, most=3.0, sharper=1.2, base=100_000.0, smears=True),
]


def tensors(
    sizes: dict[str, int] = SIZES, seed: int = 0, version: Version = VERSIONS[0]
) -> dict[str, Tensor]:
    """Random weights, the vocabulary filled up to a multiple of 64."""
    generator = torch.Generator().manual_seed(seed)
    width = sizes["n_embd"]
    head = sizes["n_embd"] // sizes["n_head"]
    padded = -(-sizes["vocab_size"] // 64) * 64
    shapes = {"transformer.wte.weight": (padded, width), "lm_head.weight": (padded, width)}
    for i in range(sizes["n_layer"]):
        own = {
            "c_q": (width, width),
            "c_k": (sizes["n_kv_head"] * head, width),
            "c_v": (sizes["n_kv_head"] * head, width),
        }
        shapes |= {
            f"transformer.h.{i}.attn.{name}.weight": shape
            for name, shape in (own | {"c_proj": (width, width)}).items()
        }
        shapes |= {
            f"transformer.h.{i}.mlp.c_fc.weight": (4 * width, width),
            f"transformer.h.{i}.mlp.c_proj.weight": (width, 4 * width),
        }
        if version.gate and (sizes["n_layer"] - 1 - i) % 2 == 0:
            shapes[f"transformer.h.{i}.attn.ve_gate.weight"] = (sizes["n_kv_head"], version.gate)
            shapes[f"value_embeds.{i}.weight"] = (padded, sizes["n_kv_head"] * head)
    if version.mixes:
        shapes |= {"resid_lambdas": (sizes["n_layer"],), "x0_lambdas": (sizes["n_layer"],)}
    if version.smears:
        shapes |= {"smear_gate.weight": (1, 24), "smear_lambda": (1,), "backout_lambda": (1,)}
    drawn = {name: torch.randn(shape, generator=generator) * 0.3 for name, shape in shapes.items()}
    return {name: 1 + value if name == "resid_lambdas" else value for name, value in drawn.items()}


def logits_by_hand(
    weights: dict[str, Tensor],
    ids: Tensor,
    sizes: dict[str, int] = SIZES,
    version: Version = VERSIONS[0],
    pattern: str = "L",
) -> Tensor:
    """What nanochat computes of ids [T], position by position and head by head: [T, vocab_size]."""

    def normed(x: Tensor) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + torch.finfo(torch.float32).eps).sqrt()

    n_head = sizes["n_head"]
    n_kv = sizes["n_kv_head"]
    size = sizes["n_embd"] // n_head
    speeds = version.base ** (-torch.arange(0, size, 2) / size)

    def turned(x: Tensor, place: int) -> Tensor:
        first = x[: size // 2]
        second = x[size // 2 :]
        cos = (place * speeds).cos()
        sin = (place * speeds).sin()
        return torch.cat((first * cos + second * sin, second * cos - first * sin))

    x = normed(weights["transformer.wte.weight"][ids])
    if version.smears:
        shares = weights["smear_lambda"] * (x[:, :24] @ weights["smear_gate.weight"][0]).sigmoid()
        x = torch.stack([x[0], *(x[t] + shares[t] * x[t - 1] for t in range(1, len(ids)))])
    first = x
    middle = x
    for i in range(sizes["n_layer"]):
        at = f"transformer.h.{i}"
        if version.mixes:
            x = weights["resid_lambdas"][i] * x + weights["x0_lambdas"][i] * first
        h = normed(x)
        q, k, v = (h @ weights[f"{at}.attn.c_{one}.weight"].T for one in "qkv")
        if f"value_embeds.{i}.weight" in weights:
            share = (
                version.most
                * (h[:, : version.gate] @ weights[f"{at}.attn.ve_gate.weight"].T).sigmoid()
            )
            v = v + share.repeat_interleave(size, 1) * weights[f"value_embeds.{i}.weight"][ids]
        is_near = i < sizes["n_layer"] - 1 and pattern[i % len(pattern)] == "S"
        rows = []
        for place in range(len(ids)):
            heads = []
            for head in range(n_head):
                group = slice(
                    head // (n_head // n_kv) * size, (head // (n_head // n_kv) + 1) * size
                )
                query = normed(turned(q[place, head * size : (head + 1) * size], place))
                read = range(max(0, place - version.reach) if is_near else 0, place + 1)
                keys = torch.stack([normed(turned(k[other, group], other)) for other in read])
                shares = (version.sharper**2 * keys @ query / size**0.5).softmax(0)
                heads.append(shares @ v[read.start : place + 1, group])
            rows.append(torch.cat(heads))
        x = x + torch.stack(rows) @ weights[f"{at}.attn.c_proj.weight"].T
        x = (
            x
            + F.relu(normed(x) @ weights[f"{at}.mlp.c_fc.weight"].T) ** 2
            @ weights[f"{at}.mlp.c_proj.weight"].T
        )
        middle = x if i == sizes["n_layer"] // 2 else middle
    if version.smears:
        x = x - weights["backout_lambda"] * middle
    scores = normed(x) @ weights["lm_head.weight"][: sizes["vocab_size"]].T
    return 15 * torch.tanh(scores / 15)


def saved(
    folder: Path, weights: dict[str, Tensor] | None = None, step: int = 650, **changes: Any
) -> Path:
    """A checkpoint as nanochat writes it."""
    folder.mkdir(exist_ok=True)
    path = folder / f"model_{step:06d}.pt"
    torch.save(tensors() if weights is None else weights, path)
    meta = {"step": step, "model_config": SIZES | changes, "user_config": {"depth": 3}}
    (folder / f"meta_{step:06d}.json").write_text(json.dumps(meta))
    return path


@pytest.fixture
def encoding(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What tiktoken's class of an encoding leaves in a pickle, without tiktoken."""

    class Encoding:
        def __init__(self, **tables: Any) -> None:
            self.tables = tables

        def __getstate__(self) -> dict[str, Any]:
            return self.tables

    Encoding.__module__ = "tiktoken.core"
    Encoding.__qualname__ = "Encoding"
    module = types.ModuleType("tiktoken.core")
    module.Encoding = Encoding  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tiktoken", types.ModuleType("tiktoken"))
    monkeypatch.setitem(sys.modules, "tiktoken.core", module)
    return Encoding


def tables() -> dict[str, Any]:
    ranks = {bytes([byte]): byte for byte in range(256)} | {
        token: 256 + i for i, token in enumerate(MERGED)
    }
    special = {token: len(ranks) + i for i, token in enumerate(SPECIAL)}
    return {
        "name": "rustbpe",
        "pat_str": PATTERN,
        "mergeable_ranks": ranks,
        "special_tokens": special,
    }


def by_hand(text: str) -> list[int]:
    """tiktoken's rule: in each part of the text the pair of the lowest rank is merged, until there
    is none.
    """
    ranks = tables()["mergeable_ranks"]
    ids = []
    for part in regex.findall(PATTERN, text):
        pieces = [bytes([byte]) for byte in part.encode()]
        while True:
            known = [
                (ranks[a + b], i) for i, (a, b) in enumerate(pairwise(pieces)) if a + b in ranks
            ]
            if not known:
                break
            _, i = min(known)
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
        ids += [ranks[piece] for piece in pieces]
    return ids


@torch.inference_mode()
@pytest.mark.parametrize("pattern", ["L", "SSL"])
@pytest.mark.parametrize("version", VERSIONS)
def test_logits_are_those_of_its_forward_pass(
    version: Version, pattern: str, tmp_path: Path
) -> None:
    weights = tensors(version=version)
    ids = some_ids(20, 1, VOCAB)[0]
    named = {f"_orig_mod.{name}": tensor for name, tensor in weights.items()}
    model = opened(saved(tmp_path, named, window_pattern=pattern))
    expected = logits_by_hand(weights, ids, version=version, pattern=pattern)
    torch.testing.assert_close(model(ids[None])[0], expected, rtol=1e-4, atol=1e-4)
    cache = model.new_cache()
    parts = [model(some, cache=cache) for some in ids[None].split((7, 1, 12), dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1)[0], expected, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_of_a_folder_the_last_step_is_opened_and_found_again(tmp_path: Path) -> None:
    saved(tmp_path, tensors(seed=1), step=9)
    saved(tmp_path, tensors(seed=2), step=1_200)
    ids = some_ids(6, 1, VOCAB)
    expected = opened(tmp_path / "model_001200.pt")(ids)
    assert torch.equal(opened(tmp_path)(ids), expected)
    assert not torch.equal(opened(tmp_path / "model_000009.pt")(ids), expected)
    again = source_from_reference(reference(source_at(tmp_path)))
    assert again.files() == [tmp_path / "model_001200.pt"]


TEXTS = ["the fox is in there, singing 1234 times", "Ärger\n\n  the  fox's 'LL?!", "日本 the", ""]


@pytest.mark.parametrize("inside", ["", "tokenizer"])
def test_its_tokenizer_gives_the_tokens_that_merging_by_hand_gives(
    inside: str, tmp_path: Path, encoding: Any
) -> None:
    path = saved(tmp_path / "base")
    (path.parent / inside).mkdir(exist_ok=True)
    (path.parent / inside / "tokenizer.pkl").write_bytes(pickle.dumps(encoding(**tables())))
    source = source_at(path).describe_model()
    begin = tables()["special_tokens"]["<|bos|>"]
    for text in TEXTS:
        assert list(source.tokenizer.encode(text).ids) == [begin, *by_hand(text)], text
    ids = [begin, *by_hand(TEXTS[1])]
    assert source.tokenizer.decode(ids) == "<|bos|>" + TEXTS[1]
    assert source.ends == (tables()["special_tokens"]["<|assistant_end|>"],)
    assert source.chat is not None
    turn = source.chat.turn("the fox")
    assert turn == "<|bos|><|user_start|>the fox<|user_end|><|assistant_start|>"
    names = {place: token for token, place in tables()["special_tokens"].items()}
    read = [names.get(one, one) for one in source.tokenizer.encode(turn).ids]
    assert read == [
        "<|bos|>",
        "<|user_start|>",
        *by_hand("the fox"),
        "<|user_end|>",
        "<|assistant_start|>",
    ]


class Runs:
    """What an enemy puts into a pickle."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("ran"),))


def test_a_tokenizer_that_would_run_code_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    path = saved(tmp_path / "base")
    for content in (Runs(), encoding(**(tables() | {"mergeable_ranks": Runs()}))):
        (path.parent / "tokenizer.pkl").write_bytes(pickle.dumps(content))
        with pytest.raises(
            ImportRefusedError, match=r"tokenizer.pkl holds more than the tables .* could run code"
        ) as refused:
            source_at(path).describe_model()
        assert "\n" not in str(refused.value)
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mergeable_ranks": 3}, "no tables mergeable_ranks"),
        ({"mergeable_ranks": {b"a": 7}}, "do not run from 0 on"),
        ({"mergeable_ranks": {"a": 0}}, "not those of bytes"),
        ({"special_tokens": {"<|bos|>": "x"}}, "special tokens are no texts with numbers"),
        ({"pat_str": "(a+)+b"}, "known to be quick"),
    ],
)
def test_a_damaged_tokenizer_is_named_in_one_line(
    change: dict[str, Any], words: str, tmp_path: Path, encoding: Any
) -> None:
    path = saved(tmp_path / "base")
    content = pickle.dumps(encoding(**(tables() | change)))
    for bad, said in ((content, words), (content[:-40], "cut short|could run code")):
        (path.parent / "tokenizer.pkl").write_bytes(bad)
        with pytest.raises(ImportRefusedError, match=rf"tokenizer.pkl.*({said})") as refused:
            source_at(path).describe_model()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("version", "window"), list(zip(VERSIONS, [1_025, 1_025, 1_025, 769, 513], strict=True))
)
def test_the_window_is_a_share_of_the_context(
    version: Version, window: int, tmp_path: Path
) -> None:
    path = saved(tmp_path, tensors(version=version), sequence_len=2_048, window_pattern="SL")
    config = source_at(path).describe_model().config
    assert (config.window, config.window_pattern) == (window, "wff")


@pytest.mark.parametrize(
    "name", ["resid_lambdas", "smear_gate.weight", "transformer.h.1.attn.ve_gate.weight"]
)
def test_tensors_of_no_version_are_refused_by_their_names(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path, tensors() | {name: torch.ones(3)})
    with pytest.raises(
        ImportRefusedError,
        match=r"model_000650.pt: its tensors are those of no version of nanochat",
    ) as refused:
        source_at(path).describe_model()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"window_pattern": "SXL"}, "meta_000650.json: window_pattern is 'SXL'"),
        ({"n_embd": "wide"}, "meta_000650.json: n_embd is 'wide'"),
        ({"n_head": 0}, "meta_000650.json: "),
        ({"n_layer": 2}, "2 tensors|6 tensors have no place"),
        ({"n_layer": 4}, r"the tensor transformer.h.3.attn.c_q.weight is missing"),
        ({"n_head": 8}, "qkv|c_q.weight"),
        ({"vocab_size": 4_000}, "wte.weight has the shape"),
    ],
)
def test_a_checkpoint_that_does_not_fit_its_meta_is_refused_in_one_line(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = saved(tmp_path, **change)
    with pytest.raises(ImportRefusedError, match=words) as refused:
        opened(path)
    assert "\n" not in str(refused.value)


def test_without_its_meta_it_is_no_checkpoint_of_nanochat(tmp_path: Path) -> None:
    path = saved(tmp_path)
    (tmp_path / "meta_000650.json").unlink()
    assert source_at(path).kind != "nanochat"
    (tmp_path / "meta_000650.json").write_text("{")
    with pytest.raises(ImportRefusedError, match=r"meta_000650.json is damaged"):
        source_at(path).describe_model()
