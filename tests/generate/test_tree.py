"""The tree of what was generated: whichever way one comes to a node, its ids, logits and attention
are the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
import torch
from torch import Tensor

from gptviz.generate.generation import Generation, window_start
from gptviz.generate.sampling import Sampling, ledger
from gptviz.generate.tree import ROOT, Attended, Tree, TreeNode
from gptviz.model import Record, Transformer
from gptviz.model.parts.positions import POSITIONS
from tests.tiny import CONTEXT, VOCAB, scrambled, some_ids, tiny

# (tokens in the prompt, how far the window slides): shorter than the context, filling it, longer.
CASES = [(prompt, slide) for prompt in (1, 3, CONTEXT, CONTEXT + 5) for slide in (1, 3)]
NOTHING = 1  # bytes: all but what was computed last is dropped


def planted(
    model: Transformer | None = None, prompt: int = 3, *, slide: int = 1, **options: Any
) -> Tree:
    """A tree with nothing but a prompt of this many tokens."""
    ids = some_ids(prompt, batch=1)[0]
    return Tree(
        Generation(model or scrambled(tiny()), ids, Sampling(seed=2), slide=slide), **options
    )


def grow(tree: Tree, steps: int) -> list[TreeNode]:
    return [tree.step() for _ in range(steps)]


def other(tree: Tree) -> int:
    """A token that does not follow the current node yet."""
    return next(token for token in range(VOCAB) if token not in tree.nodes[tree.current].children)


def fresh_logits(tree: Tree, node: int, slide: int = 1) -> Tensor:
    """What a generation of its own computes that never went anywhere else."""
    grown = Generation(tree.generation.model, torch.tensor(tree.prompt), slide=slide)
    for one in tree.path(node):
        grown.take(torch.tensor([one.token]))
    return grown.logits[0]


def counted(model: Transformer) -> list[int]:
    """How many tokens each pass from now on computes."""
    passes: list[int] = []
    model.embed.register_forward_pre_hook(lambda _, inputs: passes.append(inputs[0].shape[1]))
    return passes


@pytest.mark.parametrize(("prompt", "slide"), CASES)
def test_a_tree_that_only_steps_is_a_generation(prompt: int, slide: int) -> None:
    tree = planted(prompt=prompt, slide=slide)
    plain = Generation(
        tree.generation.model, torch.tensor(tree.prompt), Sampling(seed=2), slide=slide
    )
    for node, step in zip(grow(tree, 3 * CONTEXT), islice(plain, 3 * CONTEXT), strict=True):
        assert (node.token, node.position) == (int(step.tokens[0]), step.position)
        assert torch.equal(tree.chosen_from(node.id).logits, step.logits[0])
    assert tree.ids() == plain.ids[0].tolist()


@pytest.mark.parametrize(("prompt", "slide"), CASES)
@pytest.mark.parametrize("most_bytes", [NOTHING, pytest.param(2**20, marks=pytest.mark.full)])
def test_wherever_one_comes_from_ids_logits_and_attention_are_the_same_to_the_bit(
    prompt: int, slide: int, most_bytes: int
) -> None:
    tree = planted(prompt=prompt, slide=slide, most_bytes=most_bytes)
    draws = random.Random(prompt)
    first = {}
    for _ in range(120):
        match draws.choice(["step", "take", "go", "up"]):
            case "step":
                grow(tree, draws.randrange(1, 5))
            case "take":
                tree.take(draws.randrange(VOCAB))
            case "go":
                tree.go(draws.choice(list(tree.nodes)))
            case _:
                tree.go_back(draws.randrange(1, 6))
        here = tree.current
        ids = tree.ids()
        logits = tree.compute_after().logits.clone()
        attention = tree.compute_after().attention.clone()
        if here not in first:
            assert torch.equal(logits, fresh_logits(tree, here, slide))
            first[here] = ids, logits, attention
        assert ids == first[here][0]
        assert torch.equal(logits, first[here][1])
        assert torch.equal(attention, first[here][2])
    assert max(len(node.children) for node in tree.nodes.values()) > 1
    assert len(tree.ids(max(tree.nodes, key=lambda node: tree.nodes[node].position))) > CONTEXT


def test_undoing_taking_another_token_and_going_back_restores_everything() -> None:
    tree = planted()
    grow(tree, 2 * CONTEXT)
    end = tree.current
    ids = tree.ids()
    logits = tree.compute_after().logits
    for steps in (1, 4, 2 * CONTEXT):
        tree.go_back(steps)
        tree.take(other(tree))
        grow(tree, 3)
        assert tree.ids() != ids
        assert tree.go(end).id == end
        assert tree.ids() == ids
        assert torch.equal(tree.compute_after().logits, logits)


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_step_attends_as_in_a_pass_of_its_own_over_the_whole_window(positions: str) -> None:
    tree = planted(scrambled(tiny(positions=positions)).double())
    for node in grow(tree, 2 * CONTEXT):
        computed = tree.chosen_from(node.id)
        ids = tree.ids(node.parent)
        start = window_start(len(ids), CONTEXT)
        record = Record("*.pattern")
        with torch.inference_mode():
            tree.generation.model(torch.tensor([ids[start:]]), tap=record)
        # [n_layer, n_head, keys]
        rows = torch.stack([pattern[0, :, -1] for pattern in record.values.values()])
        assert computed.start == start
        torch.testing.assert_close(computed.attention, rows, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(computed.attention.sum(-1), torch.ones(2, 3, dtype=torch.double))


@pytest.mark.parametrize("changes", [{"mask": "full"}, {"n_layer": 0}])
def test_a_model_without_cache_or_without_attention_has_a_tree_too(changes: dict[str, Any]) -> None:
    tree = planted(scrambled(tiny(**changes)), most_bytes=NOTHING)
    grow(tree, CONTEXT)
    tree.go_back(3)
    tree.take(other(tree))
    grow(tree, 4)
    assert torch.equal(tree.compute_after().logits, fresh_logits(tree, tree.current))
    assert tree.compute_after().attention.shape[:2] == (tree.generation.model.config.n_layer, 3)


def test_log_probabilities_are_those_of_the_model_and_of_the_draw_and_sum_along_the_branch() -> (
    None
):
    tree = planted()
    sampling = Sampling(temperature=0.7, top_k=4, top_p=0.9, seed=1)
    tree.generation.sampling = sampling
    grow(tree, 6)
    tree.take(int(tree.compute_after().logits.argmin()))
    total = 0.0
    for node in tree.path():
        logits = fresh_logits(tree, node.parent or ROOT).double()
        shares = [math.exp(one) for one in logits.tolist()]
        total += math.log(shares[node.token] / sum(shares))
        assert node.logprob == pytest.approx(math.log(shares[node.token] / sum(shares)), abs=1e-9)
        assert node.total == pytest.approx(total, abs=1e-9)
        drawn = float(ledger(logits, sampling).after[node.token])
        assert math.exp(node.draw_logprob) == pytest.approx(drawn, abs=1e-12)
        likely = sorted(range(VOCAB), key=lambda token: -shares[token])[:8]
        assert [candidate.token for candidate in node.candidates] == likely
        assert [candidate.probability for candidate in node.candidates] == pytest.approx(
            [shares[i] / sum(shares) for i in likely]
        )
    assert [node.drawn for node in tree.path()] == [sampling] * 6 + [None]
    assert tree.path()[-1].draw_logprob == -math.inf, "top-k had cut the least likely token"


@pytest.mark.parametrize("again", [Tree.step, lambda tree: tree.take(tree.nodes[ROOT + 1].token)])
def test_the_same_token_again_is_the_same_node(again: Callable[[Tree], TreeNode]) -> None:
    tree = planted()
    first = tree.step()
    grow(tree, 3)
    tree.go(ROOT)
    assert again(tree) is first
    assert len(tree.nodes) == 5
    assert list(tree.nodes[ROOT].children.values()) == [first.id]


def test_the_attention_and_the_logits_of_a_step_take_no_pass_of_their_own() -> None:
    model = scrambled(tiny())
    passes = counted(model)
    tree = planted(model)
    grow(tree, 12)
    assert passes == [3, 1, 1, 1, 1, 1, 8, 8, 8, 8, 8, 8], "as without a tree"
    for node in tree.path():
        assert tree.chosen_from(node.id).attention.numel()
    tree.go_back(8)
    grow(tree, 8)
    tree.go(ROOT)
    assert tree.compute_after().logits.numel()
    assert len(passes) == 12


def test_of_the_pattern_of_a_long_prompt_its_last_row_alone_stays_in_memory() -> None:
    attended = Attended()
    attended("pattern", torch.rand(1, 3, 50, 50))
    assert [row.untyped_storage().nbytes() for row in attended.rows] == [3 * 50 * 4]


def test_going_over_to_another_branch_computes_what_differs_alone() -> None:
    model = scrambled(tiny(context_length=32))
    tree = planted(model, most_bytes=NOTHING)
    fork = grow(tree, 10)[-1].id
    left = grow(tree, 5)[-1].id
    tree.go(fork)
    tree.take(other(tree))
    right = grow(tree, 3)[-1].id
    passes = counted(model)
    for there, computed in ((left, 5), (right, 4), (fork, 1), (left, 5)):
        passes.clear()
        tree.go(there)
        assert tree.compute_after().logits.numel()
        assert passes == [1] * computed


def test_after_a_branch_written_aside_the_text_goes_on_without_computing_the_way_back() -> None:
    model = scrambled(tiny(context_length=32))
    tree = planted(model, most_bytes=NOTHING)
    fork = grow(tree, 6)[-1].id
    here = grow(tree, 5)[-1].id
    with tree.write_aside():
        tree.go(fork)
        tree.take(other(tree))
        assert grow(tree, 4)[-1].id in tree.nodes
    assert tree.current == here
    passes = counted(model)
    on = tree.step().id
    logits = tree.compute_after().logits
    assert len(passes) <= 2, "the last token before, whose logits were dropped, and the new one"
    assert torch.equal(logits, fresh_logits(tree, on))


@pytest.mark.parametrize("context", [CONTEXT, 32])
def test_a_tree_restored_with_what_was_computed_goes_on_as_if_it_had_computed_it(
    context: int,
) -> None:
    model = scrambled(tiny(context_length=context))
    tree = planted(model)
    fork = grow(tree, 6)[-1].id
    grow(tree, 6)
    tree.compute_after()
    kept = tree.snapshot(at_hand=True)
    ids = tree.ids()
    grow(tree, 3)
    tree.go(fork)
    tree.take(other(tree))
    grow(tree, 2)
    for _ in range(2):  # the first that goes on from a snapshot changes nothing of it
        again = planted(model)
        again.restore(kept)
        passes = counted(model)
        assert again.ids() == ids
        assert again.compute_after().logits.numel()
        assert again.step().id in again.nodes
        assert not passes
        grow(again, 2)
        assert len(passes) == (2 if context > CONTEXT else len(passes))
        again.go(fork)
        again.take(other(again))
        for node in (again.current, fork, ROOT):
            assert torch.equal(again.compute_after(node).logits, fresh_logits(again, node))


def test_going_somewhere_computes_nothing_until_somebody_looks() -> None:
    model = scrambled(tiny())
    tree = planted(model, most_bytes=NOTHING)
    grow(tree, 5)
    passes = counted(model)
    for node in tree.nodes:
        tree.go(node)
        assert tree.ids()
    assert not passes


def test_what_is_kept_stays_within_its_bytes_and_what_was_seen_longest_ago_goes_first() -> None:
    probe = planted(prompt=CONTEXT)
    one = probe.compute_after().bytes
    assert one == 4 * (VOCAB + 2 * 3 * CONTEXT)
    tree = planted(prompt=CONTEXT, most_bytes=5 * one)
    nodes = [ROOT, *(node.id for node in grow(tree, 9))]

    def in_memory() -> set[int]:
        return {node for node in nodes if tree.cached_values(node) is not None}

    assert in_memory() == set(nodes[4:9])
    tree.compute_after(nodes[4])
    tree.compute_after(nodes[9])
    assert in_memory() == {nodes[4], *nodes[6:]}
    for node in nodes:
        tree.compute_after(node)
        assert sum(tree.cached_values(node).bytes for node in in_memory()) <= 5 * one


def test_beyond_the_most_nodes_the_oldest_ends_off_the_path_go_first() -> None:
    tree = planted(most_nodes=12)
    first = grow(tree, 5)
    tree.go(ROOT)
    second = [tree.take(other(tree)), *grow(tree, 6)]
    assert tree.dropped == 0
    second += grow(tree, 2)
    assert tree.dropped == 2
    assert [node.id in tree.nodes for node in first] == [True] * 3 + [False] * 2
    with pytest.raises(KeyError):
        tree.go(first[-1].id)
    tree.go(first[2].id)
    assert not tree.nodes[first[2].id].children
    grow(tree, 2)
    assert all(node.id in tree.nodes for node in first[:3]), "the path itself stays"
    assert [node.id in tree.nodes for node in second] == [True] * 7 + [False] * 2, (
        "no longer the path"
    )
    assert len(tree.nodes) == 13


def test_a_path_longer_than_the_most_nodes_is_kept_whole() -> None:
    tree = planted(most_nodes=4)
    grow(tree, 9)
    assert len(tree.path()) == 9


def test_a_tree_that_dropped_the_branch_it_computed_last_goes_on_rightly() -> None:
    tree = planted(most_nodes=10, most_bytes=NOTHING)
    grow(tree, 4)
    tree.go(ROOT)
    tree.take(other(tree))
    left = grow(tree, 3)[-1].id
    tree.go(1)
    computed = tree.compute_after(
        left
    )  # the generation now stands at the end of a branch that will go
    assert computed.logits.numel()
    for _ in range(8):
        tree.take(other(tree))
        if left not in tree.nodes:
            break
    assert torch.equal(tree.compute_after().logits, fresh_logits(tree, tree.current))
    grow(tree, 6)
    assert left not in tree.nodes
    for node in list(tree.nodes):
        assert torch.equal(tree.compute_after(node).logits, fresh_logits(tree, node))


def test_its_branches_taken_one_by_one_make_the_same_tree() -> None:
    tree = planted()
    grow(tree, 6)
    for place in (2, 5, 2):
        tree.go(place)
        tree.take(other(tree))
        grow(tree, 3)
    tree.go(4)
    again = planted()
    for branch in tree.branches():
        again.go(ROOT)
        for token in branch:
            again.take(token)
    paths = [
        {tuple(one.ids(node)): one.nodes[node].total for node in one.nodes} for one in (tree, again)
    ]
    assert paths[0] == paths[1]
    assert again.ids() == tree.ids()


def test_the_state_changes_with_the_tree_and_with_nothing_else() -> None:
    tree = planted(most_nodes=3)
    seen = [tree.state]
    for act in (
        tree.step,
        tree.go_back,
        lambda: tree.take(other(tree)),
        lambda: tree.go(ROOT),
        lambda: grow(tree, 4),
    ):
        act()
        assert tree.state not in seen
        seen.append(tree.state)
    tree.compute_after(ROOT)
    tree.path()
    assert tree.state == seen[-1]


def test_up_ends_at_the_prompt() -> None:
    tree = planted()
    grow(tree, 2)
    assert tree.go_back(100).id == ROOT
    assert tree.go_back().id == ROOT
    assert tree.ids() == tree.prompt


def test_what_is_never_drawn_is_no_candidate_and_cannot_be_taken() -> None:
    model = scrambled(tiny())
    ids = some_ids(3, batch=1)[0]
    likeliest = int(Generation(model, ids).logits[0].argmax())
    tree = Tree(Generation(model, ids, Sampling(seed=2), never=[likeliest]), n_candidates=VOCAB)
    for _ in range(30):
        node = tree.step()
        assert node.token != likeliest
        assert sorted(candidate.token for candidate in node.candidates) == [
            one for one in range(VOCAB) if one != likeliest
        ]
        logits = fresh_logits(tree, node.parent or ROOT)
        assert node.logprob == pytest.approx(
            float(logits.double().log_softmax(-1)[node.token]), abs=1e-6
        )
    with pytest.raises(ValueError, match="stands for no text"):
        tree.take(likeliest)
