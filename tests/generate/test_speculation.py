"""With any drafter the text is the large model's: the same when greedy, the same in distribution
when drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice, product

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, chisquare
from torch import Tensor

import gptviz
from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling, draw, ledger, uniform
from gptviz.generate.speculation import (
    LookupDrafter,
    ModelDrafter,
    Proposal,
    Speculated,
    Speculation,
    judge_proposals,
)
from tests.tiny import CONTEXT, VOCAB, scrambled, some_ids, tiny

GREEDY = Sampling(temperature=0)


def alone(model: gptviz.Transformer, ids: Tensor, sampling: Sampling, count: int) -> list[int]:
    return [int(step.tokens[0]) for step in islice(Generation(model, ids, sampling), count)]


class Wrong:
    """A drafter that proposes what the large model would never write."""

    def __init__(self, right: list[int]) -> None:
        self.right = right

    def propose(self, ids: Sequence[int], most: int) -> list[Proposal]:
        tokens = [(token + 1) % VOCAB for token in self.right[len(ids) :][:most]]
        return [Proposal(token, torch.eye(VOCAB, dtype=torch.float64)[token]) for token in tokens]


@pytest.mark.parametrize(
    ("large", "draft", "prompt"),
    [
        ("ladder-8", "ladder-2", "Before we pro"),
        ("ladder-8", "ladder-0", "Before we pro"),
        ("shakespeare", "generator", "ROMEO:\nO, she doth"),
        ("shakespeare", "prompt", "ROMEO:\nO, she doth"),
        ("finetune", "pretrain", "The "),
        ("jobs-90", "jobs-10", "the nurse said"),
    ],
)
def test_greedy_text_is_the_large_models_own_also_past_the_context(
    large: str, draft: str, prompt: str
) -> None:
    lm = gptviz.load(large)
    ids = lm.encode(prompt)
    lookup = LookupDrafter(lm.tokenizer.vocab_size)
    drafter = lookup if draft == "prompt" else ModelDrafter(gptviz.load(draft).model, GREEDY)
    rounds = Speculated(tuple(Speculation(lm.model, drafter, ids, GREEDY).rounds(60)))
    assert rounds.tokens == alone(lm.model, ids, GREEDY, 60)
    assert 1 <= rounds.tokens_per_pass <= 5


@pytest.mark.parametrize("prompt", [1, CONTEXT - 1, CONTEXT, CONTEXT + 5])
@pytest.mark.parametrize("drafted", [1, 3, CONTEXT + 4])
def test_a_model_that_drafts_for_itself_writes_what_it_writes_alone(
    prompt: int, drafted: int
) -> None:
    model = scrambled(tiny(positions="rotary")).double()
    ids = some_ids(prompt, batch=1)[0]
    sampling = Sampling(temperature=0.9, top_k=6, top_p=0.95, seed=3)
    one = Speculation(model, ModelDrafter(model, sampling), ids, sampling, most_drafted=drafted)
    rounds = list(one.rounds(3 * CONTEXT))
    assert Speculated(tuple(rounds)).acceptance_rate == 1
    assert one.ids == ids.tolist() + alone(model, ids, sampling, 3 * CONTEXT)
    # A round ends where the context does; else it writes one more than it drafts.
    whole = [each for each in rounds[:-1] if each.drafted[-1].position != CONTEXT - 1]
    assert {len(each.tokens) for each in whole} <= {drafted + 1}


def test_one_pass_per_round_judges_all_and_wrong_drafts_cost_no_more_than_one_pass_per_token() -> (
    None
):
    model = scrambled(tiny(context_length=30))
    ids = some_ids(3, batch=1)[0]
    right = ids.tolist() + alone(model, ids, GREEDY, 12)
    seen: list[int] = []
    model.embed.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[1]))
    rounds = list(Speculation(model, Wrong(right), ids, GREEDY, most_drafted=3).rounds(12))
    assert [token for one in rounds for token in one.tokens] == right[3:]
    # the prompt and 3 drafted tokens; then each last token and its drafts
    assert seen == [6, *[4] * 8, 3, 2, 1]
    assert [one.accepted for one in rounds] == [0] * 12
    assert [one.judged for one in rounds] == [1] * 11 + [0]
    assert [(each.accepted, each.p, each.number) for each in rounds[0].drafted[1:]] == [
        (None, None, None)
    ] * 2


class Remembered(Speculation):
    """A speculation that computes each distribution once: 20,000 texts in seconds."""

    known: dict[tuple[int, ...], Tensor]

    def distributions(self, ids: list[int], count: int) -> Tensor:
        key = (*ids, -count)
        if key not in self.known:
            self._cache.truncate(0)
            self.known[key] = super().distributions(ids, count)
        return self.known[key]


class RememberedDrafter(ModelDrafter):
    """A drafter that draws with its own random numbers from distributions that it computes once."""

    known: dict[tuple[int, ...], Tensor]

    def propose(self, ids: Sequence[int], most: int) -> list[Proposal]:
        text = list(ids)
        proposals = []
        for _ in range(most):
            key = tuple(text)
            if key not in self.known:
                with torch.inference_mode():
                    self.known[key] = ledger(
                        self.model(torch.tensor([text]))[:, -1], self.sampling
                    ).after
            token = int(draw(self.known[key], uniform(self.sampling.seed, len(text))))
            proposals.append(Proposal(token, self.known[key][0]))
            text.append(token)
        return proposals


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"temperature": 0.8}, marks=pytest.mark.full),
        {"temperature": 1.5, "top_k": 3, "top_p": 0.9},
    ],
)
def test_over_8_000_texts_the_distribution_is_the_large_models(settings: dict[str, float]) -> None:
    size = 4
    texts = 8_000
    large, small = (
        scrambled(tiny(vocab_size=size, n_layer=1), seed=seed, std=0.5) for seed in (1, 2)
    )
    p: dict[tuple[int, ...], Tensor] = {}
    q: dict[tuple[int, ...], Tensor] = {}
    found = Counter()
    accepted_first = 0
    for seed in range(texts):
        sampling = Sampling(**settings, seed=seed)
        drafter = RememberedDrafter(small, sampling)
        one = Remembered(large, drafter, torch.tensor([1]), sampling, most_drafted=2)
        drafter.known = q
        one.known = p
        rounds = list(one.rounds(3))
        accepted_first += rounds[0].accepted > 0
        found[tuple(one.ids[1:])] += 1
    expected = {
        (a, b, c): float(chain[0][a] * chain[1][b] * chain[2][c])
        for a, b, c in product(range(size), repeat=3)
        if (chain := [one_of(large, ids, settings) for ids in ([1], [1, a], [1, a, b])])
    }
    possible = {text: share for text, share in expected.items() if share * texts >= 5}
    rest = [texts - sum(found[text] for text in possible)], [(1 - sum(possible.values())) * texts]
    counts = [found[text] for text in possible], [share * texts for share in possible.values()]
    assert set(found) <= {text for text, share in expected.items() if share > 0}
    if rest[1][0] > 1:
        counts = counts[0] + rest[0], counts[1] + rest[1]
    assert chisquare(*counts, sum_check=False).pvalue > 0.001
    # The drafter's distribution is far away, so that the test could tell them apart.
    assert (one_of(small, [1], settings) - one_of(large, [1], settings)).abs().sum() > 0.2
    overlap = float(torch.minimum(one_of(large, [1], settings), one_of(small, [1], settings)).sum())
    assert binomtest(accepted_first, texts, overlap).pvalue > 0.001


def one_of(model: gptviz.Transformer, ids: list[int], settings: dict[str, float]) -> Tensor:
    """The distribution after `ids` by plain numpy."""
    with torch.inference_mode():
        logits = model(torch.tensor([ids]))[0, -1].double().numpy() / settings["temperature"]
    p = np.exp(logits - logits.max())
    order = np.argsort(-p, kind="stable")
    p[order[settings.get("top_k", len(p)) :]] = 0
    p /= p.sum()
    before = np.cumsum(p[order]) - p[order]
    p[order[before >= settings.get("top_p", 2.0)]] = 0
    return torch.from_numpy(p / p.sum())


def test_a_refused_token_is_replaced_from_what_the_large_model_gives_more() -> None:
    p = torch.tensor([[0.1, 0.6, 0.3], [0.2, 0.3, 0.5]], dtype=torch.float64)
    q = torch.tensor([0.8, 0.1, 0.1], dtype=torch.float64)
    replaced = Counter()
    for seed in range(4_000):
        one = judge_proposals([Proposal(0, q)], p, seed, 7)
        [drafted] = one.drafted
        assert (drafted.p, drafted.q, drafted.position) == (0.1, 0.8, 7)
        assert drafted.accepted == (drafted.number < 0.1 / 0.8)
        if not drafted.accepted:
            replaced[one.token] += 1
            assert one.probability == pytest.approx({1: 5 / 7, 2: 2 / 7}[one.token])
        else:
            assert one.probability == p[1, one.token]
    assert binomtest(4_000 - replaced.total(), 4_000, 0.125).pvalue > 0.001
    assert binomtest(replaced[1], replaced.total(), 5 / 7).pvalue > 0.001


@pytest.mark.parametrize(
    ("text", "n", "proposed"),
    [
        ([1, 2, 3, 9, 1, 2, 3, 8, 4, 1, 2, 3], 3, [8, 4, 1]),  # the latest place, not the first
        ([1, 2, 3, 9, 5, 3, 7, 2, 3], 3, [9, 5, 3]),  # no place with 3: the latest with 2
        ([1, 2, 3, 9, 5, 3, 7, 2, 3], 1, [7, 2, 3]),
        ([4, 4], 3, [4, 4, 4]),
        ([1, 2, 1, 2, 1], 3, [2, 1, 2]),
        ([1, 2, 3], 3, []),
        ([5], 3, []),
    ],
)
def test_the_lookup_proposes_what_follows_the_latest_earlier_place(
    text: list[int], n: int, proposed: list[int]
) -> None:
    proposals = LookupDrafter(10, n).propose(text, 3)
    assert [one.token for one in proposals] == proposed
    assert all(one.distribution.sum() == one.distribution[one.token] == 1 for one in proposals)


def test_nothing_is_written_after_a_token_that_ends_the_text() -> None:
    model = scrambled(tiny(context_length=40))
    ids = some_ids(3, batch=1)[0]
    text = alone(model, ids, GREEDY, 20)
    end = text[5]
    for drafter in (ModelDrafter(model, GREEDY), Wrong(ids.tolist() + text), LookupDrafter(VOCAB)):
        one = Speculation(model, drafter, ids, GREEDY, ends={end})
        assert [token for each in one.rounds(20) for token in each.tokens] == text[
            : text.index(end) + 1
        ]


def test_what_is_never_drawn_is_never_written_even_if_it_is_drafted() -> None:
    model = scrambled(tiny(context_length=40))
    ids = some_ids(3, batch=1)[0]
    sampling = Sampling(temperature=3.0)
    never = [2, 5]
    one = Speculation(
        model, ModelDrafter(scrambled(tiny(), seed=4), sampling), ids, sampling, never=never
    )
    rounds = list(one.rounds(30))
    assert any(each.token in never for every in rounds for each in every.drafted)
    assert not set(one.ids[3:]) & set(never)
