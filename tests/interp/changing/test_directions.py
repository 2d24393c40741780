"""Directions in the stream: against planted ones, sums by hand, and what a model says whose right
answers are known.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import gptviz
from gptviz.interp.changing import directions
from gptviz.interp.changing.directions import Direction, contrast
from gptviz.interp.changing.edits import edit_model, edits, fitting
from gptviz.interp.explaining.attribution import attribute
from gptviz.interp.trace import run
from gptviz.language_model import LanguageModel, steering
from gptviz.language_model.steering import count_turned, likely_strength
from gptviz.settings.fields import info_of
from gptviz.settings.kinds import HowFound
from gptviz.text.datasets.sentences import Sentences
from tests.tiny import scrambled, some_ids, tiny

NAME = "planted-00000001"
TAP = "blocks.1.resid_post"


pytestmark = pytest.mark.usefixtures("home")


def planted(block: int = 1, name: str = NAME, seed: int = 1) -> Tensor:
    """A random vector of the tiny model's stream, kept as a direction."""
    vector = torch.randn(12, generator=torch.Generator().manual_seed(seed))
    directions.keep(Direction(name, {block: vector}, np.full(2, np.nan)))
    return vector


def cosine(a: Tensor, b: Tensor) -> float:
    return float(torch.cosine_similarity(a, b, dim=-1).min())


@pytest.mark.parametrize("how", info_of(HowFound).choices)
@pytest.mark.parametrize("are_pairs", [True, False])
def test_a_planted_direction_is_found_with_its_spread_and_its_sign(
    how: HowFound, are_pairs: bool
) -> None:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(800, 2, 12, generator=generator)
    hidden = torch.randn(2, 12, generator=generator) * torch.tensor([[3.0], [-5.0]])
    toward = noise[:400] + hidden
    away = noise[400 : 800 if are_pairs else 700] - hidden
    vectors, separation = contrast(toward, away, how)
    assert cosine(vectors, hidden) > 0.99
    # Two heaps at ±|hidden|, each with a variance of 1.
    np.testing.assert_allclose(
        vectors.norm(dim=-1), (hidden.norm(dim=-1) ** 2 + 1).sqrt(), rtol=0.03
    )
    assert separation.tolist() == [1, 1]


@pytest.mark.parametrize("how", info_of(HowFound).choices)
def test_where_there_is_nothing_to_find_held_out_texts_are_not_told_apart(how: HowFound) -> None:
    noise = torch.randn(800, 3, 12, generator=torch.Generator().manual_seed(0))
    _, separation = contrast(noise[:400], noise[400:], how)
    assert (abs(separation - 0.5) < 4 * (0.25 / 200) ** 0.5).all()


def test_few_texts_are_all_used_and_none_is_held_out() -> None:
    assert contrast(torch.ones(1, 2, 3), torch.zeros(3, 2, 3))[1].isnan().all()
    with pytest.raises(ValueError, match="a text on each side"):
        contrast(torch.ones(0, 2, 3), torch.zeros(3, 2, 3))
    with pytest.raises(ValueError, match="no direction between them"):
        contrast(torch.ones(2, 2, 3), torch.ones(2, 2, 3))


def test_what_an_edit_adds_to_the_stream_is_found_in_it_again() -> None:
    model = scrambled(tiny())
    vector = planted(block=0)
    rows = list(some_ids(8, batch=6, vocab=11))
    with_it = edit_model(model, edits([f"direction.{NAME}=2"], model.config))
    vectors, _ = contrast(
        directions.stream_at_ends(with_it, rows), directions.stream_at_ends(model, rows)
    )
    assert cosine(vectors[0], vector) > 0.999
    with pytest.raises(ValueError, match="decoders that have blocks"):
        directions.stream_at_ends(scrambled(tiny(n_layer=0)), rows)


def test_the_stream_is_linear_in_the_strength_and_equal_to_the_bit_at_0() -> None:
    model = scrambled(tiny())
    vector = planted()
    ids = some_ids()
    plain = run(model, ids)
    for strength in (-4, -1.5, 0, 1, 3.25):
        steered = run(edit_model(model, edits([f"direction.{NAME}={strength}"], model.config)), ids)
        torch.testing.assert_close(steered[TAP], plain[TAP] + strength * vector)
        assert torch.equal(steered["blocks.1.resid_pre"], plain["blocks.1.resid_pre"])
        assert torch.equal(steered["logits"], plain["logits"]) == (strength == 0)


def test_a_direction_that_is_switched_off_is_taken_out_and_nothing_else() -> None:
    model = scrambled(tiny())
    vector = planted()
    ids = some_ids()
    plain = run(model, ids)[TAP]
    without = run(edit_model(model, edits([f"direction.{NAME}"], model.config)), ids)[TAP]
    torch.testing.assert_close(without @ vector, torch.zeros(2, 8), atol=1e-5, rtol=0)
    across = torch.eye(12) - torch.outer(vector, vector) / vector.dot(vector)
    torch.testing.assert_close(without, plain @ across)


@pytest.mark.parametrize("residual", ["pre-norm", "post-norm", "parallel"])
@pytest.mark.parametrize("strength", ["=2", "=-1", ""])
def test_a_logit_is_still_the_sum_of_its_parts_and_the_direction_is_one_of_them(
    residual: str, strength: str
) -> None:
    model = scrambled(tiny(residual=residual))
    ids = some_ids(batch=1)[0].tolist()
    for block in (0, 1):
        vector = planted(block=block)
        with_it = edit_model(model, edits([f"direction.{NAME}{strength}"], model.config))
        found = attribute(with_it, ids)
        assert found.adds_up
        (part,) = (
            part for part in found.parts if part.title == f"what edits add after block {block}"
        )
        # nothing but the final norm is left on its way
        if strength and block == 1 and residual != "post-norm":
            stream = run(with_it, torch.tensor([ids]))[TAP][0, -1]
            row = model.head.unembed.weight[found.token]
            norm = model.head.final_norm
            scaled = (
                float(strength[1:])
                * (vector - vector.mean())
                / (stream.var(correction=0) + norm.eps).sqrt()
            )
            assert part.value == pytest.approx(float((scaled * norm.weight) @ row), rel=1e-4)


def test_a_direction_that_is_not_here_or_of_another_model_is_refused() -> None:
    model = scrambled(tiny())
    planted(block=2)
    found = fitting([f"direction.{NAME}=1", "direction.gone-00000000=1", "blocks.0.mlp"], model)
    assert [one.text for one in found.edits] == ["blocks.0.mlp"]
    assert "of another model" in found.rejected[0]
    assert "no direction gone-00000000 on this machine" in found.rejected[1]
    with pytest.raises(ValueError, match="no direction"):
        directions.keep(Direction(NAME, {0: torch.zeros(12)}, np.full(2, np.nan)))


@pytest.fixture(scope="module")
def sentences() -> LanguageModel:
    return gptviz.load("sentences")


PLURAL = ("keys", "dogs", "books", "letters", "houses")
SINGULAR = ("key", "dog", "book", "letter", "house")
OTHERS = {
    "man": "men",
    "child": "children",
    "king": "kings",
    "box": "boxes",
    "woman": "women",
    "flower": "flowers",
}


@pytest.mark.parametrize("how", info_of(HowFound).choices)
def test_in_sentences_the_number_of_some_words_turns_is_into_are_on_others(
    sentences: LanguageModel, how: HowFound
) -> None:
    lists = [
        [f"The {noun} near the {word} tree" for noun in nouns for word in ("old", "big")]
        for nouns in (PLURAL, SINGULAR)
    ]
    found = sentences.direction(*lists, block=1, how=how, name="Number!")
    assert found.name.startswith("number-")
    assert found.separated == 1
    said = {"=0": dict[str, str](), "=2": {}, "=-2": {}}
    for strength, by_noun in said.items():
        with_it = sentences.edited(f"direction.{found.name}{strength}")
        for noun in (*OTHERS, *OTHERS.values()):
            by_noun[noun] = with_it.generate(
                f"The {noun} behind the new cabinet", 1, temperature=0
            ).strip()
    assert all(
        said["=0"][one] == "is" and said["=0"][many] == "are" for one, many in OTHERS.items()
    )
    assert all(said["=2"][one] == "are" for one in OTHERS)
    assert all(said["=-2"][many] == "is" for many in OTHERS.values())


@pytest.mark.parametrize("allowed", [-1e9, 2.0, 1e9])
def test_the_likely_strength_is_the_largest_whose_new_tokens_the_model_finds_likely(
    sentences: LanguageModel, monkeypatch: pytest.MonkeyPatch, allowed: float
) -> None:
    monkeypatch.setattr(steering, "LESS_LIKELY", allowed)
    prompt = "When Mary and John went to the shop, John gave a book to"
    found = sentences.direction(["Mary and Sue", "Sue"], ["the king", "a dog"], block=1, name="who")

    def surprise(text: str) -> float:
        ids = sentences.encode(prompt + text).tolist()
        start = len(sentences.encode(prompt))
        odds = sentences.trace(prompt + text)["logits"][0].log_softmax(-1)
        new = [
            -float(odds[place - 1, ids[place]])
            for place in range(start + 1, len(ids))
            if ids[place] not in ids[start:place]
        ]
        return sum(new) / len(new) if new else float("nan")

    less = {}
    for strength in (2.0, 1.0, 0.5):
        _, plain, text = sentences.steer(prompt, found, strength, max_new_tokens=8).texts
        less[strength] = surprise(text) - surprise(plain)
    kept = next((one for one in less if not less[one] > allowed), 0.5)
    strength, by = likely_strength(sentences, prompt, found)
    assert strength == kept
    np.testing.assert_allclose(by, less[kept], atol=1e-5)


def test_the_pairs_of_the_task_turn_and_the_sentence_says_it(sentences: LanguageModel) -> None:
    name, toward, away = Sentences().opposites()
    found = sentences.direction(toward, away, block=1, name=name)
    assert [list(found.vectors), found.separated] == [[1], 1]
    assert (
        count_turned(sentences, found.name, toward, away)
        == count_turned(sentences, found.name, toward, away, -2)
        == (6, 6)
    )
    assert count_turned(sentences, found.name, toward, away, 0.01) == (0, 6)
    assert (
        sentences.edited("blocks.0.mlp").direction(toward, away, block=1, name=name).name
        == found.name
    )
    assert sentences.direction(toward, away, block=0, name=name).name != found.name
    prompt = "The king near the old tree"
    steered = sentences.steer(prompt, found.name, 2.5, max_new_tokens=1)
    assert steered.texts == (" is", " is", " are")
    tokens, strengths = (axis.labels for axis in steered.probability.axes)
    assert strengths == ("-4", "-3", "-2", "-1", "0", "1", "2", "2.5", "3", "4")
    for column, strength in enumerate(strengths):
        logits = sentences.edited(found.edit(float(strength))).trace(prompt)["logits"][0, -1]
        expected = [logits.softmax(-1)[sentences.token(token)] for token in tokens]
        np.testing.assert_allclose(steered.probability.values[:, column], expected, atol=1e-6)
    assert "“are” (100 %), in place of “is”" in steered.said


def test_with_frozen_attention_the_patterns_are_those_without_the_direction(
    sentences: LanguageModel,
) -> None:
    _, toward, away = Sentences().opposites()
    found = sentences.direction(toward, away, block=0)
    prompt = "The king near the old tree"
    steered = sentences.steer(prompt, found.name, 3, frozen=True, max_new_tokens=1)
    patterns = {
        name: (lambda _, kept=kept: kept)
        for name, kept in sentences.trace(prompt, ["*.pattern"]).items()
    }
    logits = sentences.edited(found.edit(3)).trace(prompt, edits=patterns)["logits"][0, -1]
    tokens, strengths = (axis.labels for axis in steered.probability.axes)
    expected = [logits.softmax(-1)[sentences.token(token)] for token in tokens]
    np.testing.assert_allclose(
        steered.probability.values[:, strengths.index("3")], expected, atol=1e-6
    )
    free = sentences.steer(prompt, found.name, 3, max_new_tokens=1)
    assert not np.allclose(
        free.probability.values.max(0), steered.probability.values.max(0), atol=1e-4
    )
    for strength in (0, 3):  # the texts too
        ids = sentences.encode(prompt)
        written = list[int]()
        for _ in range(3):
            patterns = {
                name: (lambda _, kept=kept: kept)
                for name, kept in run(sentences.model, ids[None], ["*.pattern"]).items()
            }
            logits = run(sentences.edited(found.edit(strength)).model, ids[None], edits=patterns)[
                "logits"
            ]
            if not strength:
                assert torch.equal(logits, run(sentences.model, ids[None])["logits"])
            written.append(int(logits[0, -1].argmax()))
            ids = torch.cat((ids, logits[0, -1:].argmax(-1)))
        texts = sentences.steer(prompt, found.name, strength, frozen=True, max_new_tokens=3).texts
        assert texts[2] == sentences.tokenizer.continuation(written)
        assert texts[1] == sentences.generate(prompt, 3, temperature=0)
    with pytest.raises(ValueError, match="no pairs"):
        count_turned(sentences, found.name, toward, away[1:])
    with pytest.raises(ValueError, match="block is 3; it must be a whole number from 0 to"):
        sentences.direction(toward, away, block=3)


def test_in_addition_the_direction_of_the_carry_moves_digits_by_one() -> None:
    lm = gptviz.load("addition")
    assert lm.task is not None
    ids = torch.from_numpy(lm.task.held_out(200).ids)
    carry = torch.from_numpy(lm.task.token_labels(ids.numpy())["carry"])[:, :-1]
    value = torch.tensor(
        [int(label) if label.isdigit() else -100 for label in lm.tokenizer.labels()]
    )

    def moved(direction: Direction, strength: float) -> dict[int, float]:
        """For each carry, the share of the digits that are one off in the direction of the
        strength.
        """
        with torch.inference_mode():
            said = lm.edited(direction.edit(strength)).model(ids[:, :-1]).argmax(-1)
        off = (value[said] - value[ids[:, 1:]]) % 10 == np.sign(strength) % 10
        return {one: float(off[carry == one].double().mean()) for one in (0, 1)}

    found = lm.label_direction("carry", "1", block=0)
    up = moved(found, 2.5)
    down = moved(found, -2.5)
    assert up[0] > 0.3 > 0.2 > down[0]
    assert down[1] > 0.3 > 0.2 > up[1]
    other = torch.randn(64, generator=torch.Generator().manual_seed(0))
    same_length = other * found.vectors[0].norm() / other.norm()
    directions.keep(noise := Direction("noise-00000000", {0: same_length}, found.separation))
    assert moved(noise, 2.5)[0] < up[0] / 3
    with pytest.raises(ValueError, match="a text on each side"):
        lm.label_direction("carry", "7", block=0)
