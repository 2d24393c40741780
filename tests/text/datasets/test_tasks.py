"""Generated tasks, checked against loops, Python's own arithmetic, and predictors that count or
enumerate.
"""

import json
import sys
from collections import Counter, defaultdict
from itertools import permutations
from math import isclose, log, perm, sqrt
from statistics import mean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from gptviz.text import TASKS, Examples, Task, from_json, task
from gptviz.text.datasets import tasks
from gptviz.text.datasets.tasks import Addition, Induction

DEFAULTS = [task(name) for name in TASKS]
# Small enough that every sequence turns up many times among a hundred thousand.
SMALL = [
    task("reversal", vocab=3, length=6),
    task("reversal", vocab=3, length=7),
    task("reversal", vocab=4, length=2),
    task("addition", digits=1),
    task("copy", vocab=3, lag=4, length=9),
    task("copy", vocab=4, lag=1, length=3),
    task("copy", vocab=2, lag=5, length=6),
    task("induction", vocab=4, length=9, shortest=2, longest=4),
    task("induction", vocab=5, length=4, shortest=1, longest=3),
    task("induction", vocab=3, length=5, shortest=3, longest=3),
    task("modular", modulus=7),
]


def called(some: Task) -> str:
    return " ".join([some.name, *map(str, some.settings().values())])


@st.composite
def any_task(draw: st.DrawFn) -> Task:
    """A task of any kind, each setting anywhere within its limits, up to a size that is quick to
    draw.
    """
    kind = draw(st.sampled_from(list(TASKS.values())))
    chosen: dict[str, int] = {}
    # Limits hang on the settings before, so they are asked of a task that is filled in one by one,
    # unchecked.
    growing = object.__new__(kind)
    vars(growing).update(dict.fromkeys(kind().settings(), 1))
    for setting in kind().limits():
        least, most = growing.limits()[setting]
        chosen[setting] = draw(st.integers(least, min(most, 60)))
        vars(growing)[setting] = chosen[setting]
    return task(kind.name, **chosen)


def as_told(ids: np.ndarray, some: Task) -> bool:
    """Whether the sequences are as the task's docstring says, by a loop over the tokens."""
    if some.name == "addition":
        for row in ids:
            problem, answer = some.tokenizer.decode(row).split("=")
            a, b = problem.split("+")
            if (
                len(a) != len(b)
                or len(answer) != len(a) + 1
                or int(a) + int(b) != int(answer[::-1])
            ):
                return False
        return True
    if some.name in ("sentences", "jobs", "quotes"):
        return True  # their sentences are read one by one in a file of their own
    for row in ids.tolist():
        if some.name == "modular" and row != [
            row[0],
            (p := some.settings()["modulus"]),
            row[2],
            p + 1,
            (row[0] + row[2]) % p,
        ]:
            return False
        if some.name == "reversal" and row != row[::-1]:
            return False
        if some.name == "copy":
            lag = some.settings()["lag"]
            if any(row[t] != row[t - lag] for t in range(lag, len(row))):
                return False
        if some.name == "induction":
            size = row.index(row[0], 1)
            limits = some.settings()
            if len(set(row[:size])) < size or not limits["shortest"] <= size <= limits["longest"]:
                return False
            if any(row[t] != row[t % size] for t in range(size, len(row))):
                return False
    return True


@given(any_task(), st.integers(0, 2**63 - 1))
def test_every_sequence_is_as_its_task_says(some: Task, seed: int) -> None:
    for drawn in (some.examples(7, default_rng(seed)), some.held_out(7, seed)):
        assert drawn.ids.dtype == np.int64
        assert drawn.counted.dtype == np.bool_
        assert drawn.ids.shape == (7, some.length)
        assert drawn.counted.shape == (7, some.length - 1)
        assert drawn.ids.min() >= 0
        assert drawn.ids.max() < some.tokenizer.vocab_size
        assert as_told(drawn.ids, some)


@given(any_task(), st.integers(0, 2**63 - 1))
def test_the_same_seed_draws_the_same_and_held_out_is_another_stream(some: Task, seed: int) -> None:
    def same(x: Examples, y: Examples) -> bool:
        return bool((x.ids == y.ids).all() and (x.counted == y.counted).all())

    assert same(some.examples(9, default_rng(seed)), some.examples(9, default_rng(seed)))
    assert same(some.held_out(9, seed), some.held_out(9, seed))
    large = task(some.name)
    first = large.held_out(9, seed)
    for other in (
        large.examples(9, default_rng(seed)),
        large.examples(9, default_rng(seed + 1)),
        large.held_out(9, seed + 1),
    ):
        assert not same(first, other)


@given(any_task(), st.integers(0, 2**32))
def test_the_text_of_a_sequence_reads_as_its_ids(some: Task, seed: int) -> None:
    for row in some.examples(3, default_rng(seed)).ids:
        encoding = some.tokenizer.encode(some.tokenizer.decode(row))
        assert encoding.ids == row.tolist()
        assert encoding.unknown == ()
    assert from_json(some.tokenizer.to_json()).labels() == some.tokenizer.labels()


@given(any_task())
def test_the_settings_rebuild_an_equal_task_from_json(some: Task) -> None:
    again = task(some.name, **json.loads(json.dumps(some.settings())))
    assert again == some
    assert hash(again) == hash(some)
    assert again.floor == some.floor


@given(any_task())
def test_the_prompt_fits_in_the_context_and_begins_a_held_out_sequence_or_has_a_known_answer(
    some: Task,
) -> None:
    prompt = some.example_prompt()
    ids = some.tokenizer.encode(prompt).ids
    assert 0 < len(ids) < some.length
    known = [contrast.clean for contrast in some.contrasts()]
    assert ids == some.held_out(1).ids[0, : len(ids)].tolist() or prompt in known


def test_the_prompt_of_an_addition_is_a_problem_without_its_answer() -> None:
    a, b = task("addition").example_prompt().removesuffix("=").split("+")
    assert len(a) == len(b) == 3
    assert task("addition", digits=5).example_prompt().endswith("=")


@given(st.integers(0, 999), st.integers(0, 999), st.integers(0, 9_999))
def test_a_sum_is_shown_as_people_write_it_and_a_wrong_one_with_the_right_one(
    a: int, b: int, answer: int
) -> None:
    shown = task("addition").as_people_write(f"{a:03}+{b:03}={f'{answer:04}'[::-1]}")
    assert shown.startswith(f"{a} + {b} = {answer}")
    assert shown.endswith(f"(the sum is {a + b})") == (answer != a + b)
    assert [each.as_people_write("12 5 5 12") for each in DEFAULTS] == [""] * len(DEFAULTS)


def test_the_settings_of_the_issue_are_the_defaults() -> None:
    assert [(some.name, some.length, some.tokenizer.vocab_size) for some in DEFAULTS] == [
        ("reversal", 16, 100),
        ("addition", 12, 12),
        ("copy", 32, 32),
        ("induction", 65, 64),
        ("modular", 5, 61),
        ("sentences", 27, 145),
        ("jobs", 8, 22),
        ("quotes", 12, 44),
    ]
    assert task("reversal").floor == pytest.approx(log(100) * 7 / 15)
    assert round(task("reversal").floor, 3) == 2.149  # the number its seed gives
    assert all(some.sentence.endswith(".") and "\n" not in some.sentence for some in DEFAULTS)


def test_only_the_answer_of_an_addition_counts() -> None:
    drawn = task("addition").held_out(5)
    for ids, counted in zip(drawn.ids, drawn.counted, strict=True):
        text = task("addition").tokenizer.decode(ids)
        assert [text[t + 1] for t in range(len(counted)) if counted[t]] == list(text.split("=")[1])
    assert all(
        some.held_out(5).counted.all()
        for some in DEFAULTS
        if some.name not in ("addition", "modular", "sentences", "quotes")
    )


@given(st.integers(3, 40))
def test_a_third_of_all_sums_on_a_clock_is_learned_and_the_others_are_held_out(
    modulus: int,
) -> None:
    some = task("modular", modulus=modulus)
    every = modulus**2
    learned = some.all_learned()
    assert learned is not None
    known = {tuple(row) for row in learned.ids[:, [0, 2]].tolist()}
    unknown = {tuple(row) for row in some.held_out(every - len(known)).ids[:, [0, 2]].tolist()}
    assert len(known) == every // 3
    assert len(unknown) == every - len(known)
    assert not known & unknown
    assert {
        tuple(row) for row in some.examples(200, default_rng(0)).ids[:, [0, 2]].tolist()
    } <= known
    assert learned.counted.tolist() == [[False, False, False, True]] * len(known)


def test_a_wrong_sum_on_a_clock_is_shown_with_the_right_one() -> None:
    assert task("modular").as_people_write("52 + 30 = 23") == ""
    assert task("modular").as_people_write("52 + 30 = 24") == "52 + 30 = 24 (82 modulo 59 is 23)"


def loss_of_counting(drawn: Examples) -> float:
    """The loss per counted token of the predictor that knows how often each token followed each
    beginning.
    """
    after: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    rows, times = np.unique(drawn.ids, axis=0, return_counts=True)
    for row, n in zip(rows.tolist(), times.tolist(), strict=True):
        for t in np.flatnonzero(drawn.counted[0]):
            after[tuple(row[: t + 1])][row[t + 1]] += n
    nats = sum(-n * log(n / nexts.total()) for nexts in after.values() for n in nexts.values())
    return nats / int(drawn.counted.sum())


@pytest.mark.parametrize("some", SMALL, ids=called)
def test_the_floor_is_the_loss_of_a_predictor_that_counts(some: Task) -> None:
    loss = loss_of_counting(some.examples(100_000, default_rng(1)))
    assert isclose(loss, some.floor, rel_tol=0.005, abs_tol=1e-12)


@given(st.integers(2, 5), st.integers(2, 8), st.data())
@settings(max_examples=40)
def test_the_floor_of_induction_is_the_entropy_of_all_its_sequences(
    vocab: int, length: int, data: st.DataObject
) -> None:
    most = min(vocab, length - 1)
    shortest = data.draw(st.integers(1, most))
    longest = data.draw(st.integers(shortest, most))
    probability: Counter[tuple[int, ...]] = Counter()
    for size in range(shortest, longest + 1):
        for block in permutations(range(vocab), size):
            row = tuple(block[t % size] for t in range(length))
            probability[row] += 1 / (longest - shortest + 1) / perm(vocab, size)  # type: ignore[assignment]
    beginnings: Counter[tuple[int, ...]] = Counter()
    for row, p in probability.items():
        for t in range(1, length + 1):
            beginnings[row[:t]] += p
    nats = sum(
        -p * log(beginnings[row[: t + 1]] / beginnings[row[:t]])
        for row, p in probability.items()
        for t in range(1, length)
    )
    some = Induction(vocab=vocab, length=length, shortest=shortest, longest=longest)
    assert isclose(some.floor, nats / (length - 1), abs_tol=1e-9)


def ideal_losses(some: Induction, ids: np.ndarray) -> list[float]:
    """Nats per token that each row costs the predictor which knows the sizes and what it has seen,
    token by token.
    """
    losses = []
    for row in ids.tolist():
        nats = 0.0
        for t in range(1, some.length):
            seen = row[:t]
            if len(set(seen)) < t:
                continue  # something has come again: the rest is known
            ends = [size for size in range(some.shortest, some.longest + 1) if size >= t]
            comes_again = (t in ends) / len(ends)
            nats -= (
                log(comes_again) if row[t] == row[0] else log((1 - comes_again) / (some.vocab - t))
            )
        losses.append(nats / (some.length - 1))
    return losses


def test_the_floor_of_induction_is_the_loss_of_the_best_predictor_on_fresh_and_on_held_out_sequences() -> (
    None
):
    some = Induction()
    # Rows of separate draws are independent, so their mean has the usual error.
    losses = ideal_losses(
        some, np.concatenate([some.examples(1, default_rng(seed)).ids for seed in range(1_000)])
    )
    assert abs(mean(losses) - some.floor) < 4 * stdev(losses) / sqrt(len(losses))
    assert mean(ideal_losses(some, some.held_out().ids)) == pytest.approx(some.floor, abs=0.002)
    whole_rounds = some.held_out(17 * 5).ids
    assert mean(ideal_losses(some, whole_rounds)) == pytest.approx(some.floor, rel=1e-9)


def test_every_block_of_an_induction_is_equally_likely() -> None:
    some = task("induction", vocab=4, length=5, shortest=2, longest=3)
    n = 60_000
    sequences = Counter(map(tuple, some.examples(n, default_rng(5)).ids.tolist()))
    assert len(sequences) == perm(4, 2) + perm(4, 3)
    for row, times in sequences.items():
        expected = n / 2 / perm(4, row.index(row[0], 1))
        assert abs(times - expected) < 5 * sqrt(expected)


def problems(drawn: Examples, some: Task) -> list[tuple[int, int]]:
    length = drawn.ids.shape[1]
    # all at once: a call for each row takes seconds
    text = some.tokenizer.decode(drawn.ids.reshape(-1))
    rows = (
        text[start : start + length].split("=")[0].split("+")
        for start in range(0, len(text), length)
    )
    return [(int(a), int(b)) for a, b in rows]


@pytest.mark.parametrize(("digits", "count"), [(1, 3_000), (2, 200_000)])
def test_training_and_held_out_problems_are_disjoint_and_together_all_there_are(
    digits: int, count: int
) -> None:
    some = Addition(digits=digits)
    trained = Counter(problems(some.examples(count, default_rng(3)), some))
    tested = Counter(problems(some.held_out(count // 5), some))
    assert not set(trained) & set(tested)
    assert set(trained) | set(tested) == {
        (a, b) for a in range(10**digits) for b in range(10**digits)
    }
    assert {(b, a) for a, b in tested} == set(tested)
    for times in (trained, tested):
        expected = times.total() / len(times)
        assert all(abs(n - expected) < 6 * sqrt(expected) for n in times.values())


@pytest.mark.parametrize("digits", range(1, 10))
def test_about_a_tenth_of_the_problems_is_held_out_whatever_the_operands(digits: int) -> None:
    some = Addition(digits=digits)
    a, b = default_rng(0).integers(10**digits, size=(2, 100_000))
    out = some.holds_out(a, b)
    # With one digit there are 55 pairs, with two 5,050.
    assert out.mean() == pytest.approx(0.1, abs={1: 0.05, 2: 0.015}.get(digits, 0.005))
    if digits > 2:
        for operand in (a, b, a + b):
            for last in range(10):
                assert out[operand % 10 == last].mean() == pytest.approx(0.1, abs=0.02)


def test_the_hash_is_that_of_the_published_generator() -> None:
    # The first outputs of SplitMix64 for the seeds 0 and 1234567, as its reference implementations
    # print them.
    assert tasks._hash(np.array([0, 1234567], np.uint64)).tolist() == [
        0xE220A8397B1DCDAF,
        6457827717110365317,
    ]


@pytest.mark.parametrize("some", DEFAULTS, ids=called)
def test_a_batch_takes_few_calls(some: Task) -> None:
    calls: list[str] = []
    sys.setprofile(lambda _frame, event, _what: calls.append(event))
    some.examples(64, default_rng(0))
    sys.setprofile(None)
    assert len(calls) < 5_000


@pytest.mark.parametrize("digits", [1, 2, 4])
def test_the_carry_of_addition_is_that_of_whole_numbers(digits: int) -> None:
    some = Addition(digits=digits)
    ids = some.held_out(50).ids
    carry = some.token_labels(ids)["carry"]
    for row, said in zip(ids, carry, strict=True):
        a, b = (int(one) for one in some.tokenizer.decode(row).split("=")[0].split("+"))
        known = [int(a % 10**place + b % 10**place >= 10**place) for place in range(1, digits + 1)]
        assert said.tolist() == [-1] * (2 * digits + 2) + known + [-1]


@pytest.mark.parametrize("held_out", [False, True])
def test_a_choice_in_a_sum_is_between_its_digit_and_the_one_that_a_wrong_carry_gives(
    held_out: bool,
) -> None:
    some = Addition(digits=3)
    choices = some.choices("addition", 200, held_out=held_out)
    places = set()
    for ids, at, right, wrong in zip(
        choices.ids, choices.at, choices.right, choices.wrong, strict=True
    ):
        problem, answer = some.tokenizer.decode(ids).split("=")
        a, b = map(int, problem.split("+"))
        assert bool(some.holds_out(np.array([a]), np.array([b]))[0]) == held_out
        place = int(at) - len(problem)
        places.add(place)
        assert answer[place] == str(a + b)[::-1].ljust(4, "0")[place]
        assert some.tokenizer.label(int(right)) == answer[place]
        carried = (a % 10**place + b % 10**place) // 10**place
        digits = a // 10**place % 10 + b // 10**place % 10
        assert int(some.tokenizer.label(int(wrong))) == (digits + 1 - carried) % 10
    assert places == {0, 1, 2, 3}
