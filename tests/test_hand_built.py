"""Each head that is built by hand does what its name says."""

import torch
from torch.testing import assert_close

from gptviz.interp.trace import run
from tests import hand_built
from tests.hand_built import CONTEXT, LOUD, VOCAB, Head, Neuron, induction_circuit

IDS = torch.tensor([3, 5, 3, 7, 5, 1, 3, 8])


def pattern(head: Head) -> torch.Tensor:
    """What a head looks at, beside another head that does nothing: [query, key]."""
    model = hand_built.hand_built((hand_built.nothing(), head))
    return run(model, IDS[None])["blocks.0.attention.pattern"][0, 1]


def test_a_previous_token_head_looks_at_the_token_before() -> None:
    expected = torch.eye(8).roll(-1, dims=1).tril()
    expected[0, 0] = 1
    assert_close(pattern(hand_built.previous_token()), expected, rtol=0, atol=0)


def test_a_sink_looks_at_the_first_token() -> None:
    expected = torch.zeros(8, 8)
    expected[:, 0] = 1
    assert_close(pattern(hand_built.first_token()), expected, rtol=0, atol=0)


def test_a_self_head_looks_at_its_own_position() -> None:
    assert_close(pattern(hand_built.itself()), torch.eye(8), rtol=0, atol=0)


def test_a_duplicate_token_head_looks_at_the_same_token_earlier() -> None:
    expected = torch.eye(8)
    for query, keys in ((2, [0]), (4, [1]), (6, [0, 2])):
        expected[query] = 0
        expected[query, keys] = 1 / len(keys)
    assert_close(pattern(hand_built.duplicate_token()), expected, rtol=0, atol=1e-7)


def test_a_copy_head_says_what_it_reads_and_its_opposite_speaks_against_it() -> None:
    share = torch.nn.functional.one_hot(IDS, VOCAB).float().cumsum(0) / torch.arange(1, 9)[:, None]
    for sign in (1.0, -1.0):
        model = hand_built.hand_built((hand_built.copy(sign),))
        assert_close(model(IDS[None])[0], sign * LOUD * share, rtol=0, atol=1e-5)


def test_the_induction_circuit_goes_on_with_what_came_next_before() -> None:
    order = torch.randperm(VOCAB, generator=torch.Generator().manual_seed(0))
    text = order.repeat(3)[:CONTEXT]  # 10 different tokens, again and again
    logits = induction_circuit()(text[None])[0]
    known = slice(VOCAB, CONTEXT - 1)  # tokens that have come before
    expected = LOUD * torch.nn.functional.one_hot(text[VOCAB + 1 :], VOCAB).float()
    assert_close(logits[known], expected, rtol=0, atol=1e-5)


def test_the_induction_circuit_needs_both_of_its_heads() -> None:
    text = torch.tensor([[3, 5, 7, 1, 3]])
    assert induction_circuit()(text)[0, -1].argmax() == 5
    for name, head in (("blocks.0.attention.z", 1), ("blocks.1.attention.z", 2)):

        def off(z: torch.Tensor, head: int = head) -> torch.Tensor:
            z[:, head] = 0
            return z

        logits = run(induction_circuit(), text, ["logits"], edits={name: off})["logits"][0, -1]
        assert logits.softmax(-1)[5] < 0.5, "without one of them the answer is gone"


def test_a_neuron_reads_one_token_and_says_another() -> None:
    model = hand_built.hand_built((hand_built.nothing(),), neurons=((Neuron(3, 8), Neuron(5, 1)),))
    expected = torch.zeros(8, VOCAB)
    expected[IDS == 3, 8] = expected[IDS == 5, 1] = LOUD
    assert_close(model(IDS[None])[0], expected, rtol=0, atol=0)
