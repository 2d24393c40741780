"""The sentences with known answers, read as text by rules of their own: the answer follows, and
what is held out stays out.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.random import default_rng

from gptviz.text import task
from gptviz.text.datasets.sentences import Sentences, contrasts

TASK = Sentences()
DRAWN = {"trained": TASK.examples(6_000, default_rng(3)), "held out": TASK.held_out()}
CLOSES = {"(": ")", "[": "]", "“": "”"}
PLURALS = ("children", "men", "women")


@cache
def texts(which: str) -> list[tuple[str, list[str], list[int]]]:
    """For each row drawn: which task it is of, the words up to its end, and the places of the words
    that count.
    """
    drawn = DRAWN[which]
    rows = []
    for ids, counted, part in zip(
        drawn.ids.tolist(), drawn.counted, drawn.part.tolist(), strict=True
    ):
        words = [TASK.tokenizer.label(i) for i in ids[: ids.index(TASK.end)]]
        assert set(ids[len(words) :]) == {TASK.end}
        rows.append((TASK.parts[part], words, [int(place) + 1 for place in counted.nonzero()[0]]))
    return rows


def answers(part: str, words: list[str]) -> dict[int, str]:
    """The words that can be known, by their place, found by reading the sentence as a person
    would.
    """
    if part == "names":
        comma = max(i for i, word in enumerate(words) if word == ",")
        first, second = [
            word for word in words[:comma] if word.istitle() and word not in BEGINNINGS
        ]
        return {len(words) - 2: second if words[comma + 1] == first else first}
    if part == "agreement":
        subject = next(word for i, word in enumerate(words) if words[i - 1].lower() == "the")
        is_plural = subject in PLURALS or subject.endswith("s")
        was = words[0] in ("Yesterday", "Last")
        return {
            len(words) - 3: {(0, 0): "is", (0, 1): "was", (1, 0): "are", (1, 1): "were"}[
                is_plural, was
            ]
        }
    if part == "brackets":
        found = {}
        opened = []
        for i, word in enumerate(words):
            if word in CLOSES:
                opened.append(word)
            elif word in CLOSES.values():
                found[i] = CLOSES[opened.pop()]
        assert not opened
        return found | {len(words) - 1: "."}
    (colour,) = {word for word in words if word in COLOURS}
    return {len(words) - 2: colour}


BEGINNINGS = ("When", "While", "After", "Then", "One")


@pytest.mark.parametrize("which", DRAWN)
def test_the_words_that_can_be_known_are_what_a_reader_would_say(which: str) -> None:
    for part, words, _ in texts(which):
        for place, word in answers(part, words).items():
            assert words[place] == word, " ".join(words)


def test_of_held_out_sentences_just_the_words_count_that_can_be_known() -> None:
    for part, words, places in texts("held out"):
        assert places == sorted(answers(part, words)), " ".join(words)


def test_of_one_sentence_in_eight_to_train_on_every_word_counts_and_one_end() -> None:
    whole = 0
    for part, words, places in texts("trained"):
        whole += (is_whole := places == list(range(1, len(words) + 1)))
        assert is_whole or places == sorted(answers(part, words))
    assert whole / len(texts("trained")) == pytest.approx(1 / 8, abs=0.02)


def pair_of(part: str, words: list[str]) -> tuple[str, ...]:
    """What two words it is about: names and things and colours, or nouns in singular."""
    if part == "names":
        comma = max(i for i, word in enumerate(words) if word == ",")
        return tuple(
            sorted(word for word in words[:comma] if word.istitle() and word not in BEGINNINGS)
        )
    if part == "agreement":
        verb = max(answers(part, words))
        subject = next(word for i, word in enumerate(words) if words[i - 1].lower() == "the")
        return singular(subject), singular(words[verb - 1])
    if part == "brackets":
        first = min(i for i, word in enumerate(words) if word in CLOSES)
        return words[first - 1], words[min(answers(part, words)) - 1]
    return next((words[i + 1], word) for i, word in enumerate(words) if word in COLOURS)


def singular(noun: str) -> str:
    return {"children": "child", "men": "man", "women": "woman", "boxes": "box"}.get(
        noun, noun.removesuffix("s")
    )


def template_of(part: str, words: list[str]) -> tuple[str, ...]:
    """The sentence without the words that are picked for each sentence again."""
    if part == "brackets":
        return tuple(word for word in words if word in CLOSES)
    if part == "agreement":
        return tuple("adjective" if word in ADJECTIVES else word for word in words if word in KEPT)
    picked = {*NAMES, *PLACES, *GIFTS, *COLOURS, *THINGS}
    return tuple(word for word in words if word not in picked)


NAMES = [
    "Mary",
    "John",
    "Tom",
    "Ann",
    "Sue",
    "Paul",
    "Kate",
    "Mark",
    "Lucy",
    "Peter",
    "Emma",
    "David",
    "Alice",
    "James",
]
PLACES = [
    "shop",
    "park",
    "school",
    "garden",
    "station",
    "market",
    "river",
    "beach",
    "library",
    "town",
]
GIFTS = ["book", "letter", "ball", "map", "ring", "cup", "cake", "drink", "pen", "flower"]
COLOURS = ["red", "blue", "green", "white", "black", "yellow", "brown", "grey", "pink", "golden"]
THINGS = ["hat", "coat", "bag", "car", "door", "chair", "bike", "boat", "shirt", "lamp"]
ADJECTIVES = ["old", "small", "big", "long", "new", "dark", "clean"]
TIMES = ["The", "the", "Today", "Now", "Yesterday", "Last", "week"]
KEPT = {*TIMES, *ADJECTIVES, *["to", "near", "behind", "above", "with"]}


@pytest.mark.parametrize("part", TASK.parts)
def test_no_held_out_sentence_has_a_template_or_a_pair_of_training(part: str) -> None:
    def seen(which: str) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
        rows = [words for name, words, _ in texts(which) if name == part]
        # The state after the verb is no part of a template.
        templates = {
            template_of(part, words[:-2] if part == "agreement" else words) for words in rows
        }
        return templates, {pair_of(part, words) for words in rows}

    (templates, pairs), (held_templates, held_pairs) = map(seen, DRAWN)
    assert len(templates) > 2 * len(held_templates) > 6
    assert len(pairs) > 2 * len(held_pairs) > 10
    assert not templates & held_templates
    assert not pairs & held_pairs
    if part == "names":
        known = TASK.contrasts()[0]
        words = [
            TASK.tokenizer.label(i)
            for i in TASK.tokenizer.encode(f"{TASK.example_prompt()} {known.right}.").ids
        ]
        assert template_of(part, words) not in templates, (
            "nor has the example, whose answer is known"
        )


def test_each_thing_has_every_colour_but_one_in_training_and_that_one_when_held_out() -> None:
    trained, held_out = (
        {pair_of(part, words) for part, words, _ in texts(which) if part == "colours"}
        for which in DRAWN
    )
    assert sorted(thing for thing, _ in held_out) == sorted(THINGS)
    assert trained | held_out == {(thing, colour) for thing in THINGS for colour in COLOURS}


def test_every_answer_of_a_held_out_sentence_is_an_answer_in_training() -> None:
    def given(which: str) -> set[tuple[str, str]]:
        return {
            (part, word)
            for part, words, _ in texts(which)
            for word in answers(part, words).values()
        }

    assert given("held out") <= given("trained")


def test_all_four_tasks_are_drawn_equally_often_and_read_without_an_unknown_word() -> None:
    for drawn in DRAWN.values():
        assert drawn.part is not None
        assert set(np.bincount(drawn.part)) == {len(drawn.ids) // 4}
        assert TASK.tokenizer.unknown not in drawn.ids


def test_nothing_is_cut_off() -> None:
    many = TASK.examples(20_000, default_rng(8)).ids
    assert ((many == TASK.end).argmax(1)).max() == TASK.length - 1, (
        "the longest sentence just has room for its end"
    )
    assert (many[:, -1] == TASK.end).all()


@pytest.mark.parametrize("contrast", contrasts(), ids=lambda contrast: contrast.part)
def test_a_contrast_is_two_prompts_of_one_length_with_two_answers(contrast) -> None:  # type: ignore[no-untyped-def]
    clean, corrupted = (
        TASK.tokenizer.encode(prompt) for prompt in (contrast.clean, contrast.corrupted)
    )
    assert clean.unknown == corrupted.unknown == ()
    assert len(clean.ids) == len(corrupted.ids) < TASK.length
    assert clean.ids != corrupted.ids
    for prompt, answer in ((contrast.clean, contrast.right), (contrast.corrupted, contrast.wrong)):
        closing = {"names": [], "agreement": ["lost"], "brackets": ["]", ")"], "colours": []}[
            contrast.part
        ]
        rest = [answer] + [sign for sign in closing if sign != answer] + ["."]
        words = [TASK.tokenizer.label(i) for i in TASK.tokenizer.encode(prompt).ids]
        place = len(words)
        assert answers(contrast.part, words + rest)[place] == answer
    assert [each.part for each in contrasts()] == list(TASK.parts)
    assert TASK.contrasts() == contrasts()
    assert task("sentences") == TASK
