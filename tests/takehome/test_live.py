"""The page "Try it": what JavaScript computes and packs is what torch computes and Python packs."""

from __future__ import annotations

import base64
import dataclasses
import json
import random
import shutil
import subprocess
import unicodedata
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import gptviz
from gptviz.components import attention_explorer, generation_tree, kit, lens_grid, sampling_ledger
from gptviz.components.generation_tree.finished import Finished
from gptviz.components.generation_tree.look import Ghost, Look
from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling, uniform
from gptviz.generate.tree import Tree
from gptviz.interp.reading import attention, overview
from gptviz.interp.reading.next_token import predict
from gptviz.language_model import LanguageModel
from gptviz.model import Config, build
from gptviz.runs import checkpoints
from gptviz.takehome.live import PARTS, missing_feature
from gptviz.takehome.live.page import LivePage
from gptviz.text import CharTokenizer

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted(
    folder.name for folder in checkpoints.BUNDLED.iterdir() if (folder / "config.json").exists()
)
LIVE = [name for name in SHIPPED if not missing_feature(checkpoints.BUNDLED / name)]
NEAR = 1e-4
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")


def prompts_of(lm: LanguageModel, count: int) -> list[str]:
    """Prompts of random tokens: one is longer than the context, one is a single token, the others
    are no longer than a short context: past a long one every token costs a whole window.
    """
    random = np.random.default_rng(7)
    context = lm.model.config.context_length
    size = lm.tokenizer.vocab_size
    lengths = [context + 3, 1, *random.integers(2, min(context, 40) + 1, count)][:count]
    return [
        "".join(lm.tokenizer.piece(int(i)) for i in random.integers(0, size, length)).strip() or "a"
        for length in lengths
    ]


def computed(
    name: str, prompts: list[str], steps: list[int], texts: Sequence[str] = ()
) -> dict[str, Any]:
    """What node answers for a model; `steps` says how many tokens it writes after each prompt, and
    `texts` are cut into tokens.
    """
    asked = {"folder": str(checkpoints.BUNDLED / name), "prompts": prompts, "steps": steps}
    asked["texts"] = texts
    script = ROOT / "tests" / "js" / "live.js"
    done = subprocess.run(
        ["node", str(script)], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def unpacked(text: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return kit.unpack(base64.b64decode(text))


def assert_alike(found: str, expected: bytes) -> None:
    """Two payloads have the same header, and arrays that differ by rounding alone."""
    (header, arrays), (known, values) = unpacked(found), kit.unpack(expected)
    if "scale" in header:
        header["scale"] = pytest.approx(header["scale"], rel=1e-12)
    assert header == known
    assert list(arrays) == list(values)
    for name, array in arrays.items():
        assert (array.dtype, array.shape) == (values[name].dtype, values[name].shape), name
        np.testing.assert_allclose(array, values[name], rtol=NEAR, atol=NEAR, err_msg=name)


def check(name: str, count: int, most: int) -> None:
    """Everything that node computes of a model, beside the library; after each prompt it writes
    `most` tokens.
    """
    lm = gptviz.load(name)
    prompts = prompts_of(lm, count)
    # The first prompt is longer than the context: each token after it costs a whole window.
    steps = [most // 10, *[most] * (count - 1)]
    answer = computed(name, prompts, steps)
    assert answer["labels"] == lm.tokenizer.labels()
    for prompt, most, found in zip(prompts, steps, answer["answers"], strict=True):
        ids = lm.tokenizer.encode(prompt).ids
        assert found["ids"] == ids
        check_pass(lm, ids, found)
        seen = lm.seen(torch.tensor(ids)).tolist()
        check_ledger(lm, ids, seen, found["ledger"])
        check_lens(lm, seen, found["lens"])
        if lm.model.config.n_layer:
            check_attention(lm, seen, found["attention"])
        check_tree(lm, ids, found["tree"])
        generation = lm.generation(prompt, Sampling(temperature=0))
        list(islice(generation, most))
        assert found["written"] == generation.ids[0, len(ids) :].tolist()


def check_pass(lm: LanguageModel, ids: list[int], found: dict[str, Any]) -> None:
    """Logits and patterns."""
    seen = lm.seen(torch.tensor(ids))
    with torch.inference_mode():
        logits = lm.model(seen[None])[0].numpy()
    _, arrays = unpacked(found["computed"])
    np.testing.assert_allclose(arrays["logits"].reshape(logits.shape), logits, rtol=0, atol=NEAR)
    if lm.model.config.n_layer:
        for block, pattern in enumerate(attention.patterns(lm.model, seen.tolist()).blocks):
            np.testing.assert_allclose(
                arrays[f"pattern {block}"].reshape(pattern.shape), pattern, rtol=0, atol=NEAR
            )


def check_ledger(lm: LanguageModel, ids: list[int], seen: list[int], found: str) -> None:
    """The payload of the ledger."""
    header, _ = unpacked(found)
    with torch.inference_mode():
        logits = lm.model(torch.tensor([seen]))[0, -1].numpy()
    made = sampling_ledger.payload(
        logits,
        lm.tokenizer.labels(),
        about=None,
        title=f"name, the token after position {len(seen) - 1}",
        code=header["code"],
        numbers=np.array([uniform(seed, len(ids)).item() for seed in range(sampling_ledger.SEEDS)]),
        takes=True,
        note=", as on Generate with this seed",
        prompt="".join(lm.tokenizer.label(i) for i in seen).replace("␣", " "),
    )
    known, arrays = kit.unpack(made.data)
    labels = unpacked(found)[1]["labels"]
    assert json.loads(labels.tobytes()) == json.loads(arrays.pop("labels").tobytes())
    assert_alike(
        found,
        kit.pack(
            known | {key: header[key] for key in ("vocabulary", "generation")},
            **arrays,
            labels=labels,
        ),
    )


def check_lens(lm: LanguageModel, seen: list[int], found: str) -> None:
    """The payload of the lens. Where two tokens are equally likely either may come first."""
    from gptviz.interp.reading.lens import lens

    header, arrays = unpacked(found)
    label = lm.tokenizer.label
    top = min(20, lm.tokenizer.vocab_size)
    read = lens(lm.model, seen, top=top)
    of = {key: header[key] for key in ("of", "model", "code")}
    made = lens_grid.payload(
        read, label, **of, vocab_size=lm.model.config.vocab_size, spaced=lm.tokenizer.is_spaced
    )
    known, values = kit.unpack(made)
    names = np.array(header.pop("names"))[arrays.pop("top")]
    expected = np.array(known.pop("names"))[values.pop("top")]
    chances = read.probability
    apart = np.abs(np.diff(chances, axis=-1, prepend=np.inf, append=-np.inf)) > NEAR
    is_clear = apart[..., 1:] & apart[..., :-1]
    assert (names == expected)[is_clear].all()
    rank = arrays.pop("rank")
    ranks = values.pop("rank")
    assert (np.abs(rank - ranks) <= 1).all()
    assert_alike(base64.b64encode(kit.pack(header, **arrays)).decode(), kit.pack(known, **values))


def check_attention(lm: LanguageModel, seen: list[int], found: str) -> None:
    """The payload of the explorer."""
    header, _ = unpacked(found)
    reading = attention.read_attention(lm.model, seen)
    looks = overview.overview_of(reading.patterns, seen)
    facts = {} if looks.facts is None else dataclasses.asdict(looks.facts)
    config = lm.model.config
    heads = attention_explorer.Heads(
        patterns=reading.patterns.blocks,
        blocked=reading.patterns.blocked,
        q=reading.q,
        k=reading.k,
        moved=reading.moved,
        position=reading.position,
        rollout=attention.rollout(reading.patterns),
        thumbnails=np.asarray(looks.thumbnails.values, np.float32),
        facts={name: values for name, values in facts.items() if values is not None},
        scale=reading.scale,
        sharing=config.n_head // config.key_heads,
        without_first=looks.without_first,
        scaled=reading.scaled,
    )
    labels = [lm.tokenizer.label(i) for i in seen]
    given = {
        "queries": labels,
        "keys": labels,
        "alone": True,
        "reads": attention.QUERY,
        "isRead": attention.KEY,
    }
    given |= {
        "spaced": lm.tokenizer.is_spaced,
        "pooling": looks.pooling,
        "hidden": [],
        "asked": None,
        "number": 0,
        "edited": None,
    }
    assert_alike(
        found,
        attention_explorer.payload(
            heads, given | {key: header[key] for key in ("of", "model", "code", "edited")}
        ),
    )


def check_tree(lm: LanguageModel, ids: list[int], found: str) -> None:
    """The payload of a tree that was grown by the same steps: live.js lists them."""
    header, arrays = unpacked(found)
    sampling = Sampling(temperature=0.8, top_k=5, top_p=0.9, seed=3)
    tree = Tree(Generation(lm.model, torch.tensor(ids), sampling))
    for _ in range(6):
        tree.step()
    tree.go(1)
    tree.take(0)
    for _ in range(2):
        tree.step()
    next_one = predict(tree.compute_after().logits, sampling)
    top = np.argsort(-next_one.before, kind="stable")[: tree.n_candidates].tolist()
    ghosts = [
        Ghost(i, float(next_one.before[i]), float(next_one.after[i]), str(next_one.cut[i]))
        for i in top
    ]
    same = {
        key: header[key] for key in ("number", "prompt", "status", "heading", "address", "code")
    }
    assert same["prompt"] == [lm.tokenizer.label(i) for i in lm.seen(torch.tensor(ids)).tolist()]
    described = "temperature 0.8, top-k 5, top-p 0.9"
    look = Look(
        **same,
        label=lm.tokenizer.label,
        described=lambda _: described,
        ghosts=ghosts,
        spaced=lm.tokenizer.is_spaced,
    )
    packed = generation_tree.pack_tree(tree, look, Finished())
    known, values = kit.unpack(packed.data)
    del known["part_names"]  # they have attention alone: the tree has few nodes
    steps = attention_by_step(arrays)
    expected = attention_by_step(values)
    for part in packed.parts:
        expected |= attention_by_step(kit.unpack(part.data)[1])
    assert sorted(steps) == sorted(expected)
    for place, weights in steps.items():
        np.testing.assert_allclose(weights, expected[place], atol=1e-3)
    assert_alike(base64.b64encode(kit.pack(header, **arrays)).decode(), kit.pack(known, **values))


def attention_by_step(arrays: dict[str, np.ndarray]) -> dict[tuple[int, ...], np.ndarray]:
    """The numbers of each step by its node, first key and keys; they are taken out of `arrays`."""
    places = arrays.pop("place")
    numbers = arrays.pop("attention")
    ends = [*places[:, 3].tolist(), len(numbers)][1:]
    return {
        tuple(place[:3].tolist()): numbers[place[3] : end]
        for place, end in zip(places, ends, strict=True)
    }


@needs_node
@pytest.mark.parametrize("name", LIVE)
def test_a_browser_computes_and_packs_what_the_library_does(name: str) -> None:
    check(name, 3, 20)


@needs_node
@pytest.mark.full
@pytest.mark.parametrize("name", LIVE)
def test_so_for_twenty_prompts_and_texts_of_two_hundred_tokens(name: str) -> None:
    check(name, 20, 200)


# A model of each tokenizer.
CUT = ("shakespeare", "induction", "sentences", "bpe")


def characters(some: bool) -> list[str]:
    """All characters that Python's Unicode has; `some`: controls, white space, and the first."""
    every = [chr(point) for point in range(0x110000) if unicodedata.category(chr(point)) != "Cn"]
    unseen = ("Cc", "Cf", "Zs", "Zl", "Zp")
    return [
        one for one in every if one < "\u0800" or unicodedata.category(one) in unseen or not some
    ]


@needs_node
@pytest.mark.parametrize("some", [True, pytest.param(False, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", CUT)
def test_every_character_is_read_as_in_the_library(name: str, some: bool) -> None:
    every = [f'a{one}b {one}3{one}"x"  {one}' for one in characters(some)]
    texts = ["".join(every[at : at + 64]) for at in range(0, len(every), 64)]
    tokenizer = gptviz.load(name).tokenizer
    for text, found in zip(texts, computed(name, [], [], texts)["cut"], strict=True):
        assert found == list(tokenizer.encode(text).ids), ascii(text)


@needs_node
@pytest.mark.parametrize("name", CUT)
def test_random_texts_are_cut_as_in_the_library(name: str) -> None:
    """Texts of pieces of the vocabulary and of others, some without a space for a long way."""
    drawn = random.Random(5)
    tokenizer = gptviz.load(name).tokenizer
    pieces = [tokenizer.piece(token) for token in range(tokenizer.vocab_size)]
    odd = [*" \n\x1c\x85\ufeff\u180e\u200b\u3000“\"'’-_²é你🙂\ud800", "e\u0301", "don't", "⟨end⟩"]
    texts = ["".join(drawn.choices(pieces + 9 * odd, k=drawn.randrange(200))) for _ in range(100)]
    texts.append("thesewordsarewithoutspaces" * 800)
    for text, found in zip(texts, computed(name, [], [], texts)["cut"], strict=True):
        assert found == list(tokenizer.encode(text).ids), ascii(text)


@needs_node
def test_both_know_the_same_parts_and_draw_the_same_numbers() -> None:
    answer = computed("ladder-0", [], [])
    for name in ("norm", "residual", "positions", "activation"):
        assert sorted(answer["tables"][name]) == sorted(PARTS[name])
    expected = [
        [uniform(seed, position).item() for position in (0, 7, 255, 12345)] for seed in (0, 1, 99)
    ]
    assert answer["numbers"] == expected


def test_what_lacks_a_part_is_left_out_by_name() -> None:
    left = {
        name: missing_feature(checkpoints.BUNDLED / name) for name in SHIPPED if name not in LIVE
    }
    assert left == {
        "classifier": "positions sinusoidal",
        "classifier-no-dropout": "positions sinusoidal",
        "finetune-lora": "an adapter",
        "sentences-sparse": "norm rmsnorm",
        "quotes": "norm rmsnorm",
        "seq2seq": "positions sinusoidal",
    }


@needs_node
def test_heads_that_share_keys_read_what_they_read_in_the_library(tmp_path: Path) -> None:
    config = Config(
        vocab_size=7,
        context_length=8,
        d_model=16,
        n_layer=2,
        n_head=4,
        n_kv_head=2,
        positions="rotary",
    )
    model = build(config, seed=0).eval()
    (tmp_path / "config.json").write_text(
        json.dumps({"format": 1, "config": dataclasses.asdict(config)})
    )
    (tmp_path / "tokenizer.json").write_text(CharTokenizer("abcdef ").to_json())
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    assert not missing_feature(tmp_path)
    found = computed(str(tmp_path), ["fed cab"], [1])["answers"][0]
    ids = torch.tensor([found["ids"]])
    with torch.inference_mode():
        logits = model(ids)[0].numpy()
    _, arrays = unpacked(found["computed"])
    np.testing.assert_allclose(arrays["logits"].reshape(logits.shape), logits, atol=NEAR)
    _, shown = unpacked(found["attention"])
    reading = attention.read_attention(model, found["ids"])
    np.testing.assert_allclose(shown["k"], reading.k, atol=NEAR)
    np.testing.assert_allclose(shown["moved"], reading.moved, atol=NEAR)


def test_a_page_of_the_app_leads_to_the_same_view_unless_it_shows_more() -> None:
    page = LivePage({"sentences": "Mary", "finetune-lora": "O"}, {}, {}, usual="sentences")
    assert (
        page.address("attention", {"block": "1"})
        == "try.html?view=attention&model=sentences&block=1"
    )
    assert page.address("attention", {"blocks.0.mlp": "zero"}) == ""  # an edited model
    assert page.address("attention", {"model": "finetune-lora"}) == ""
    assert page.address("heads", {}) == ""
