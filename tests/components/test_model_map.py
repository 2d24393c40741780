"""The map of a model: what travels to the browser, which clicks count, and whether the code gives
what is shown.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch

import gptviz
from gptviz.components import model_map as view
from gptviz.components.kit import ROLES, unpack
from gptviz.components.model_map import (
    HIDDEN,
    PAGE,
    WHOLE_SHARE,
    TensorPage,
    fit,
    page,
    summary,
    thumbnails,
)
from gptviz.components.token_strip import Token
from gptviz.interp.reading.anatomy import anatomy
from gptviz.interp.trace import run
from gptviz.model import PRESETS, parameter_count
from gptviz.model.kinds import MODEL_KINDS
from gptviz.ui.shell.subject.models import model_key
from gptviz.ui.views import model_map
from gptviz.ui.views.read import PromptRead
from tests.command_line import printed_elsewhere
from tests.tiny import TinyModel, tiny

TEXT = "the quick brown fox"


def sent(
    key: Any, read: PromptRead, look: TensorPage | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    tokens = tuple(Token(str(i), 0.5) for i in read.ids)
    return unpack(
        model_map.payload(key, read, TEXT, tokens, (Token("a", 0.25),), True, "small", look)
    )


def described(tiny_model: TinyModel, **changes: Any) -> tuple[Any, PromptRead]:
    tiny_model("mine", **changes)
    lm = gptviz.load("mine")
    ids = tuple(lm.seen(lm.encode(TEXT)).tolist())
    return model_key("mine", "cpu"), PromptRead(ids)


def test_a_place_is_brought_into_the_tensor_and_a_box_of_another_model_is_none() -> None:
    drawn = anatomy(tiny(), 5)
    found = fit(TensorPage("blocks.0.attention.q", 0, (99, -3)), drawn)
    assert found[1].symbol == "q"
    assert found[2] == (2, 0, 0)
    assert fit(TensorPage("blocks.9.attention.q", 0, ()), drawn) is None
    assert fit(TensorPage("blocks.0.attention.q", 3, ()), drawn) is None


@pytest.mark.parametrize("shape", [(30,), (30, 40), (3, 30, 40)])
def test_a_small_tensor_travels_whole_and_of_a_large_one_the_page_asked_for(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    at = (2, 24, 36)[-len(shape) :] if len(shape) > 1 else (24,)
    numbers, whole = page(values, at)
    assert whole
    assert np.array_equal(numbers, values)
    monkeypatch.setattr(view, "MOST_WHOLE", 10)
    numbers, whole = page(values, at)
    assert not whole
    expected = (
        values[24:36]
        if len(shape) == 1
        else values[..., 24:36, 36:48][(2,) if len(shape) == 3 else ()]
    )
    assert np.array_equal(numbers, expected)
    assert max(numbers.shape) <= PAGE


def test_the_summary_is_of_all_numbers() -> None:
    values = np.array([[1, -2], [4, 1]], np.float32)
    assert summary(values).tolist() == [-2, 4, 1, np.sqrt(22 / 4)]
    assert np.isnan(summary(np.array([1, np.nan], np.float32))).all()


def test_the_summary_of_a_large_matrix_is_added_up_in_parts_without_a_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(0).standard_normal((37, 91)).astype(np.float32) + 5
    wide = values.astype(np.float64)
    expected = [wide.min(), wide.max(), wide.mean(), np.sqrt(np.square(wide).mean())]
    for most in (1, 10, 3_366, 3_367, 10**9):
        monkeypatch.setattr(view, "MOST_WHOLE", most)
        np.testing.assert_allclose(summary(values), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "changes",
    [{}, {"positions": "rotary", "qk_norm": True}, {"n_layer": 0, "positions": "learned"}],
)
def test_the_numbers_of_every_box_are_those_of_the_whole_pass_and_weights_need_no_pass(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    key, read = described(tiny_model, **changes)
    model = gptviz.load("mine").model
    trace = run(model, torch.tensor([read.ids]))
    passes = []
    monkeypatch.setattr(
        model_map, "run", lambda *rest, **named: passes.append(rest[2]) or run(*rest, **named)
    )
    for box in anatomy(model.config, len(read.ids)).boxes:
        for i, piece in enumerate(box.pieces):
            before = len(passes)
            _, numbers = model_map._tensor(key, read, TEXT, box, piece, (0,) * len(piece.shape))
            assert numbers["tensor"].shape == piece.shape, (box.path, i)
            assert len(passes) - before == (piece.kind == "activation")
            if piece.kind == "activation":
                recorded = trace[piece.name].detach().reshape(piece.shape).numpy()
                np.testing.assert_allclose(numbers["tensor"], recorded, atol=1e-6)


def test_the_payload_says_which_question_it_answers(tiny_model: TinyModel) -> None:
    key, read = described(tiny_model)
    look = TensorPage("blocks.0.attention.q", 0, (1, 99, 0))
    header, _ = sent(key, read, look)
    assert header["opened"] == ["blocks.0.attention.q", 0, [1, 99, 0]]
    assert header["tensor"]["at"] == [1, len(read.ids) - 1, 0]
    assert sent(key, read)[0]["opened"] is None


@pytest.mark.parametrize("size", [1, 5, 32, 33, 100])
@pytest.mark.parametrize("window", [200, 3, 17])
def test_a_thumbnail_keeps_the_largest_share_of_each_cell_and_blanks_what_the_mask_hides(
    size: int, window: int
) -> None:
    scores = torch.randn(3, size, size, generator=torch.Generator().manual_seed(0))
    apart = torch.arange(size)[:, None] - torch.arange(size)
    hides = (apart < 0) | (apart >= window)
    pattern = scores.masked_fill(hides, -torch.inf).softmax(-1).numpy()
    small = thumbnails(pattern, hides.numpy())
    pool = -(-size // 32)
    side = -(-size // pool)
    assert small.shape == (3, side, side)
    for row in range(side):
        for column in range(side):
            queries, keys = (range(i * pool, min(size, (i + 1) * pool)) for i in (row, column))
            largest = max(float(pattern[2, query, key]) for query in queries for key in keys)
            hidden = all(not 0 <= query - key < window for query in queries for key in keys)
            assert small[2, row, column] == (HIDDEN if hidden else round(largest * WHOLE_SHARE))
    assert thumbnails(pattern, None).max() <= WHOLE_SHARE
    # a long text is read in several passes, the keys of each being those up to its end
    cut = pool * (side // 3)
    parts = [(at, at.stop) for at in (slice(0, cut), slice(cut, size)) if at.stop > at.start]
    joined = [
        thumbnails(pattern[:, at, :end], hides.numpy()[at, :end], (size, size)) for at, end in parts
    ]
    assert np.array_equal(np.concatenate(joined, axis=1), small)


def test_the_payload_has_every_box_of_two_blocks_and_the_numbers_that_were_asked_for(
    tiny_model: TinyModel,
) -> None:
    key, read = described(tiny_model, n_layer=4)
    header, arrays = sent(key, read, TensorPage("blocks.3.attention.k", 1, (0, 0)))
    config = gptviz.load("mine").model.config
    own = [box["path"] for box in header["boxes"]]
    every = [box.path for box in anatomy(config, len(read.ids)).boxes]
    assert own == [path for path in every if not path.startswith(("blocks.2.", "blocks.3."))]
    outside = sum(
        piece["parameters"]
        for box in header["boxes"]
        if "blocks." not in box["path"]
        for piece in box["pieces"]
    )
    assert outside + 4 * header["counts"][""] == parameter_count(config)
    weight = (
        gptviz.load("mine")
        .model.get_parameter("blocks.3.attention.qkv.weight")[12:24]
        .detach()
        .numpy()
    )
    np.testing.assert_array_equal(arrays["tensor"], weight)
    assert header["tensor"]["whole"]
    np.testing.assert_allclose(arrays["summary"], summary(weight))
    trace = run(gptviz.load("mine").model, torch.tensor([read.ids]))
    for block in range(4):
        pattern = trace[f"blocks.{block}.attention.pattern"][0].numpy()
        small = np.tril(arrays["decoder"][block].astype(float))
        np.testing.assert_allclose(small / WHOLE_SHARE, pattern, atol=0.5 / WHOLE_SHARE + 1e-6)


FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"n_kv_head": 1, "mlp": "gated", "norm": "rmsnorm", "positions": "rotary"},
    "neox": {"residual": "parallel", "positions": "rotary", "rotary_fraction": 0.5},
    "gemma": {
        "residual": "double-norm",
        "window": 3,
        "window_pattern": "wwf",
        "qk_norm": "separate",
        "positions": "rotary",
    }
    | {"window_rotary_base": 50.0, "embed_norm": True},
    "mixture": {"mlp": "experts", "n_expert": 3, "d_shared": 8},
}


@pytest.mark.parametrize(
    "changes", [*FAMILIES.values(), {"n_encoder_layer": 3}], ids=[*FAMILIES, "pair"]
)
def test_a_block_that_does_not_travel_is_like_the_one_that_stands_for_it(
    changes: dict[str, Any],
) -> None:
    config = tiny(n_layer=7, **changes)
    drawn = anatomy(config, 5, 4)
    described = {box.path: asdict(box) for box in drawn.boxes}
    arrows = Counter((arrow.start, arrow.end, arrow.shape) for arrow in drawn.arrows)
    for stack, stands in model_map.like_blocks(config).items():
        assert len(stands) == (config.n_encoder_layer if stack else 7)
        assert len(set(stands)) <= 3
        for block, other in enumerate(stands):
            own = f"{stack}blocks.{block}."
            its = f"{stack}blocks.{other}."
            as_own = {path: box for path, box in described.items() if path.startswith(own)}
            as_its = json.loads(
                json.dumps(
                    {path: box for path, box in described.items() if path.startswith(its)}
                ).replace(its, own)
            )
            assert json.loads(json.dumps(as_own)) == as_its
            within = [key for key in arrows if key[0].startswith(own) and key[1].startswith(own)]
            assert len(within) == sum(
                key[0].startswith(its) and key[1].startswith(its) for key in arrows
            )


@pytest.mark.parametrize("name", FAMILIES)
def test_the_payload_of_other_families_has_their_boxes_windows_and_blank_cells(
    tiny_model: TinyModel, name: str
) -> None:
    key, read = described(tiny_model, n_layer=4, **FAMILIES[name])
    header, arrays = sent(key, read)
    model = gptviz.load("mine").model
    paths = {box["path"] for box in header["boxes"]}
    sent_blocks = {path.split(".")[1] for path in paths if path.startswith("blocks.")}
    assert sent_blocks == ({"0", "1", "2"} if name == "gemma" else {"0", "1"})
    assert header["windows"] == ([3, 3, None, 3] if name == "gemma" else [None] * 4)
    trace = run(model, torch.tensor([read.ids]))
    for block in range(4):
        pattern = trace[f"blocks.{block}.attention.pattern"][0]
        assert np.array_equal(arrays["decoder"][block] == HIDDEN, pattern.numpy() == 0)


def test_an_unchanged_map_is_the_same_bytes_and_another_text_has_another_mark(
    tiny_model: TinyModel,
) -> None:
    key, read = described(tiny_model)
    again = PromptRead(read.ids[:-1])
    assert sent(key, read)[0]["text"] == sent(key, read)[0]["text"] != sent(key, again)[0]["text"]
    tokens = (Token("x", None),)
    one = model_map.payload(key, read, TEXT, tokens, (), False, "", None)
    assert model_map.payload(key, read, TEXT, tokens, (), False, "", None) is one


def test_the_code_of_map_and_tensor_gives_their_numbers_in_a_fresh_process(
    tiny_model: TinyModel,
) -> None:
    key, read = described(tiny_model, text=TEXT)
    header, arrays = sent(key, read, TensorPage("blocks.1.attention.pattern", 0, ()))
    code = (
        f"{header['code']}\n{header['tensor']['code']}\nimport json; "
        "print(json.dumps([parameters, values.tolist()]))"
    )
    parameters, values = json.loads(printed_elsewhere(code))
    assert parameters == [
        [box["path"], sum(piece["parameters"] for piece in box["pieces"])]
        for box in header["boxes"]
    ]
    np.testing.assert_allclose(values, arrays["tensor"], atol=1e-6)


def test_fixed_numbers_are_those_of_the_buffers(tiny_model: TinyModel) -> None:
    key, read = described(tiny_model, positions="rotary")
    header, arrays = sent(key, read, TensorPage("blocks.0.attention.positions", 1, ()))
    namespace: dict[str, Any] = {}
    exec(header["tensor"]["code"], namespace)
    np.testing.assert_array_equal(arrays["tensor"], namespace["values"].numpy())


def test_the_largest_preset_is_a_payload_of_moderate_size(tiny_model: TinyModel) -> None:
    whole = anatomy(PRESETS["gpt2"], 1_024)
    blocks = model_map.like_blocks(whole.config)
    kept = [asdict(box) for box in whole.boxes if model_map._is_sent(box.path, blocks)]
    assert len(json.dumps(kept)) < 150_000


def test_every_page_a_box_leads_to_is_about_models_of_its_kind() -> None:
    from gptviz.ui.records.attention import PAGE as ATTENTION
    from gptviz.ui.records.translate import PAGE as TRANSLATE

    configs = [
        tiny(),
        tiny(n_encoder_layer=1),
        tiny(head="mean", n_label=2),
        tiny(positions="rotary"),
        tiny(positions="alibi"),
    ]
    for config in configs:
        for box in anatomy(config, 3, 3).boxes:
            found = model_map.page_for(box, MODEL_KINDS[config.kind])
            if found is not None:
                assert config.kind in found[0].kinds, box.path
                assert set(found[1]) <= {"block", "stack"}
        paths = {
            box.path: model_map.page_for(box, MODEL_KINDS[config.kind])
            for box in anatomy(config, 3, 3).boxes
        }
        of_attention = paths["blocks.1.attention.pattern"]
        assert of_attention[0] is ATTENTION
        assert of_attention[1]["block"] == "1"
        assert ("stack" in of_attention[1]) == (config.kind == "encoder-decoder")
        assert paths["logits"] is not None
    box = next(b for b in anatomy(tiny(n_encoder_layer=1), 3).boxes if "cross" in b.path)
    crossing = model_map.page_for(box, MODEL_KINDS["encoder-decoder"])
    assert crossing[0] is TRANSLATE


def test_every_role_of_a_box_has_a_colour() -> None:
    roles = {box.role for config in PRESETS.values() for box in anatomy(config, 2, 2).boxes}
    assert roles == set(ROLES)
