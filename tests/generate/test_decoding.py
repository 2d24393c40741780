"""Answers: greedy and beam search are what plain loops without any cache find, and a wide beam what
trying everything finds.
"""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gptviz.generate.decoding import Beams, Decoder, beam_search, decode, decode_greedily, until_end
from gptviz.generate.sampling import Sampling, draw, ledger, uniform
from gptviz.model import Config, Transformer
from tests.tiny import CONTEXT, VOCAB, configs, scrambled, some_ids, tiny

many = settings(max_examples=25)
PADDING = VOCAB - 3
START = VOCAB - 2
END = VOCAB - 1
WORDS = VOCAB - 3


def answering(**changes: object) -> Transformer:
    """A small encoder–decoder in float64, so that no rounding decides between two tokens."""
    return scrambled(
        tiny(**{"n_encoder_layer": 1, "padding": PADDING, "unembed_bias": True} | changes)
    ).double()


def sources(batch: int = 3, length: int = 5, seed: int = 0) -> Tensor:
    return some_ids(length, batch, WORDS, seed)


@torch.no_grad()
def with_bias(model: Transformer, token: int, bias: float) -> Transformer:
    """The model with this token's logit raised everywhere."""
    model.head.unembed.bias[token] += bias
    return model


@torch.inference_mode()
def log_probabilities(model: Transformer, source: list[int], written: list[int]) -> Tensor:
    """Of every next token after `written`, by a whole pass over both texts."""
    return model(torch.tensor([[START, *written]]), torch.tensor([source]))[0, -1].log_softmax(-1)


def greedy_loop(model: Transformer, source: list[int], longest: int) -> list[int]:
    written: list[int] = []
    while len(written) < longest and END not in written:
        written.append(int(log_probabilities(model, source, written).argmax()))
    return written


def encoder_decoders(**fixed: object) -> st.SearchStrategy[Config]:
    return configs(head="unembed", **{"n_encoder_layer": 1, "padding": PADDING} | fixed)


@many
@given(encoder_decoders(), st.integers(1, CONTEXT))
def test_greedy_is_a_plain_loop_over_whole_passes_for_every_architecture(
    config: Config, longest: int
) -> None:
    model = scrambled(config).double()
    answers = decode_greedily(model, sources(), START, END, longest)
    for source, answer in zip(sources().tolist(), answers.tolist(), strict=True):
        expected = greedy_loop(model, source, longest)
        assert answer == expected + [END] * (answers.shape[1] - len(expected))


def test_rows_of_a_batch_do_not_touch_each_other_and_padding_changes_no_answer() -> None:
    ended = set()
    for seed in range(6):
        model = with_bias(answering(d_model=24), END, 0.4)
        rows = [
            row[:length]
            for row, length in zip(sources(6, 6, seed).tolist(), (1, 2, 3, 4, 5, 6), strict=True)
        ]
        padded = torch.tensor([row + [PADDING] * (CONTEXT - len(row)) for row in rows])
        together = decode_greedily(model, padded, START, END)
        for row, answer in zip(rows, together, strict=True):
            alone = decode_greedily(model, torch.tensor([row]), START, END)[0]
            assert until_end(answer, END) == until_end(alone, END)
            ended.add(len(until_end(alone, END)[0]))
        order = torch.randperm(6, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(decode_greedily(model, padded[order], START, END), together[order])
    assert len(ended) > 2  # rows that end early stood beside others that went on


def test_an_answer_that_never_ends_is_cut_and_says_so() -> None:
    endless = with_bias(answering(), END, -1e9)
    for longest in (1, 3, CONTEXT, None):
        answers = decode_greedily(endless, sources(), START, END, longest)
        assert answers.shape == (3, longest or CONTEXT)
        for answer in answers:
            assert until_end(answer, END) == (answer.tolist(), False)
        beams = beam_search(endless, sources()[0], START, END, 3, longest)
        assert [one.ended for one in beams.finished] == [False] * 3
        assert {len(one.ids) for one in beams.finished} == {longest or CONTEXT}
        assert not any(node.finished for node in beams.nodes)


def test_an_answer_may_be_empty() -> None:
    silent = with_bias(answering(), END, 1e9)
    assert decode_greedily(silent, sources(), START, END).tolist() == [[END]] * 3
    best = beam_search(silent, sources()[0], START, END, 3).best
    assert (best.ids, best.ended, best.total) == ((), True, pytest.approx(0.0))


def test_what_stands_after_the_end_is_no_part_of_an_answer() -> None:
    assert until_end(torch.tensor([3, 1, END, END, 2]), END) == ([3, 1], True)
    assert until_end(torch.tensor([END]), END) == ([], True)
    assert until_end(torch.tensor([3, 1]), END) == ([3, 1], False)


@many
@given(encoder_decoders(mask="causal"), st.integers(0, 99))
def test_a_beam_of_one_is_greedy(config: Config, seed: int) -> None:
    model = scrambled(config).double()
    source = sources(1, seed=seed)
    beams = beam_search(model, source[0], START, END, 1)
    (only,) = beams.finished
    assert (list(only.ids), only.ended) == until_end(
        decode_greedily(model, source, START, END)[0], END
    )
    assert len(beams.nodes) == len(only.ids) + only.ended + 1


def plain_beam(
    model: Transformer, source: list[int], width: int, longest: int
) -> list[tuple[float, list[int]]]:
    """Beam search as a reader would write it: every step from whole passes, what has ended set
    aside.
    """
    beam = [(0.0, list[int]())]
    done = list[tuple[float, list[int]]]()
    for _ in range(longest):
        candidates = [
            (total + step, [*written, token])
            for total, written in beam
            for token, step in enumerate(log_probabilities(model, source, written).tolist())
        ]
        best = sorted(candidates, reverse=True)[: width - len(done)]
        done += [one for one in best if one[1][-1] == END]
        beam = [one for one in best if one[1][-1] != END]
    return sorted(done, reverse=True) + sorted(beam, reverse=True)


@pytest.mark.parametrize("width", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("mask", ["causal", "full"])
def test_a_beam_finds_what_a_plain_loop_over_whole_passes_finds(width: int, mask: str) -> None:
    for seed in range(4):
        model = with_bias(answering(mask=mask, d_model=24), END, 1.5)
        source = sources(1, seed=seed)[0]
        expected = plain_beam(model, source.tolist(), width, 5)
        hypotheses = beam_search(model, source, START, END, width, 5).finished
        assert [[*one.ids, *([END] if one.ended else [])] for one in hypotheses] == [
            written for _, written in expected
        ]
        assert [one.total for one in hypotheses] == pytest.approx(
            [total for total, _ in expected], abs=1e-9
        )
        assert width == 1 or any(one.ended for one in hypotheses)


VERY_SMALL = {"vocab_size": 5, "padding": None, "d_model": 24}


def every_answer(longest: int, end: int, vocab: int) -> list[tuple[tuple[int, ...], bool]]:
    """All answers that end within `longest` tokens, and all of `longest` tokens that do not."""
    words = [token for token in range(vocab) if token != end]
    whole = [(ids, True) for n in range(longest) for ids in product(words, repeat=n)]
    return whole + [(ids, False) for ids in product(words, repeat=longest)]


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 1.0])
def test_a_beam_wide_enough_finds_all_answers_in_the_order_that_trying_everything_gives(
    length_penalty: float,
) -> None:
    longest = 3
    start = 0
    end = 4
    model = answering(**VERY_SMALL)
    source = some_ids(4, 1, 4)[0]
    expected = []
    for ids, ended in every_answer(longest, end, 5):
        written = torch.tensor([[start, *ids]])
        steps = model(written, source[None])[0].log_softmax(-1)
        targets = [*ids, *([end] if ended else [])]
        total = sum(steps[place, token].item() for place, token in enumerate(targets))
        expected.append((not ended, -total / len(targets) ** length_penalty, ids))
    beams = beam_search(model, source, start, end, len(expected), longest, length_penalty)
    assert [(not one.ended, one.ids) for one in beams.finished] == [
        (cut, ids) for cut, _, ids in sorted(expected)
    ]
    assert [one.score for one in beams.finished] == pytest.approx(
        [-score for _, score, _ in sorted(expected)], abs=1e-9
    )
    # The probabilities of all that can happen sum to 1, and nothing was cut on the way.
    assert sum(torch.tensor(one.total).exp().item() for one in beams.finished) == pytest.approx(1.0)
    assert all(node.kept for node in beams.nodes)


def check_tree(beams: Beams, width: int) -> None:
    nodes = beams.nodes
    assert (nodes[0].parent, nodes[0].token, nodes[0].total, nodes[0].depth, nodes[0].kept) == (
        None,
        START,
        0.0,
        0,
        True,
    )
    left = width
    for depth in range(1, nodes[-1].depth + 1):
        level = [node for node in nodes if node.depth == depth]
        kept = [node for node in level if node.kept]
        assert len(kept) == left
        assert min(node.total for node in kept) >= max(
            (node.total for node in level if not node.kept), default=float("-inf")
        )
        left -= sum(node.finished for node in kept)
    for index, node in enumerate(nodes[1:], 1):
        parent = nodes[node.parent]
        assert node.parent < index
        assert parent.kept
        assert not parent.finished
        assert node.depth == parent.depth + 1
        assert node.total == pytest.approx(parent.total + node.log_probability)
        assert node.finished == (node.kept and node.token == END)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_the_tree_holds_every_candidate_weighed_and_leads_to_every_answer(width: int) -> None:
    model = with_bias(answering(d_model=24), END, 1.0)
    source = sources(1)[0]
    beams = beam_search(model, source, START, END, width)
    check_tree(beams, width)
    for one in beams.finished:
        path = beams.path(one.node)
        tokens = [beams.nodes[node].token for node in path]
        assert tokens == [START, *one.ids, *([END] if one.ended else [])]
        assert beams.nodes[one.node].total == one.total
        steps = [
            log_probabilities(model, source.tolist(), tokens[1:place])[tokens[place]]
            for place in range(1, len(tokens))
        ]
        assert [beams.nodes[node].log_probability for node in path[1:]] == pytest.approx(
            [float(step) for step in steps]
        )
    assert beams.best == beams.finished[0]


def test_the_encoder_runs_once_and_its_keys_are_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = answering()
    ran = list[str]()
    model.encoder.register_forward_hook(lambda *_: ran.append("encoder"))
    for block in model.blocks:
        block.cross_attention.kv.register_forward_hook(lambda *_: ran.append("keys"))
    decode_greedily(with_bias(model, END, -1e9), sources(), START, END)
    assert ran == ["encoder", "keys", "keys"]
    ran.clear()
    beam_search(model, sources()[0], START, END, 4)
    assert ran == ["encoder", "keys", "keys"]


def test_rows_chosen_again_go_on_as_if_they_had_been_written_so() -> None:
    model = answering()
    source = sources(1)
    grown = Decoder(model, source, START, 3)
    steps = [
        (torch.tensor([1, 2, 3]), None),
        (torch.tensor([4, 5, 6]), torch.tensor([2, 2, 0])),
        (torch.tensor([7, 0, 1]), None),
    ]
    for tokens, rows in steps:
        with torch.inference_mode():
            grown.logits()
            grown.grow(tokens, rows)
    assert grown.ids.tolist() == [[START, 3, 4, 7], [START, 3, 5, 0], [START, 1, 6, 1]]
    with torch.inference_mode():
        whole = model(grown.ids, source.expand(3, -1))[:, -1]
        torch.testing.assert_close(grown.logits(), whole, rtol=1e-9, atol=1e-9)


@many
@given(st.integers(0, 99), st.sampled_from([(1.0, None, None), (0.7, 4, None), (1.6, None, 0.8)]))
def test_a_drawn_answer_is_a_plain_loop_over_whole_passes_with_the_sampler_of_generation(
    seed: int, settings: tuple[float, int | None, float | None]
) -> None:
    temperature, top_k, top_p = settings
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    model = answering()
    source = sources(1)
    written: list[int] = []
    while len(written) < CONTEXT and END not in written:
        with torch.inference_mode():
            logits = model(torch.tensor([[START, *written]]), source)[:, -1]
        written.append(int(draw(ledger(logits, sampling).after, uniform(seed, len(written) + 1))))
    assert decode(model, source, START, END, sampling)[0].tolist() == written


def test_at_temperature_0_a_drawn_answer_is_the_greedy_one() -> None:
    model = answering()
    torch.testing.assert_close(
        decode(model, sources(), START, END, Sampling(temperature=0)),
        decode_greedily(model, sources(), START, END),
    )
