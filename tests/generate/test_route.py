"""The route to a text: it leads to the same tokens again, and fits in a link."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from gptviz.generate.generation import Generation
from gptviz.generate.route import START, Route, checksum
from gptviz.generate.sampling import Sampling
from gptviz.generate.tree import ROOT, Tree
from tests.tiny import CONTEXT, VOCAB, scrambled, some_ids, tiny

SETTINGS = [
    START,
    Sampling(temperature=0.8),
    Sampling(temperature=0),
    Sampling(temperature=0.1 + 0.2, top_k=3, seed=41),
    Sampling(temperature=1e-5, top_p=0.9),
    Sampling(temperature=2, top_k=1, top_p=1.0, seed=99),
]


def planted() -> Tree:
    return Tree(Generation(scrambled(tiny()), some_ids(3, batch=1)[0], START))


def wandered(seed: int) -> Tree:
    """A tree after drawing under changing settings, taking tokens by hand, undoing, and going to
    other branches.
    """
    tree = planted()
    draws = random.Random(seed)
    for _ in range(40):
        match draws.choice(["step", "settings", "take", "up", "go"]):
            case "step":
                for _ in range(draws.randrange(1, 6)):
                    tree.step()
            case "settings":
                tree.generation.sampling = draws.choice(SETTINGS)
            case "take":
                tree.take(draws.randrange(VOCAB))
            case "up":
                tree.go_back(draws.randrange(1, 4))
            case _:
                tree.go(draws.choice(list(tree.nodes)))
    return tree


def read(line: str, **limits: Any) -> Route:
    return Route.read_line(line, **{"vocab_size": VOCAB, "most": 10_000} | limits)


@pytest.mark.parametrize("seed", range(5))
def test_a_route_read_from_its_line_leads_a_new_tree_to_the_same_tokens(seed: int) -> None:
    tree = wandered(seed)
    for node in random.Random(seed).sample(list(tree.nodes), 12):
        path = tree.path(node)
        route = read(Route.route_to(path).line)
        assert route == Route.route_to(path)
        again = planted()
        for choice in route.choices:
            again.follow(choice)
        assert again.ids() == tree.ids(node)
        assert checksum(one.token for one in again.path()) == route.checksum
        torch.testing.assert_close(
            again.compute_after().logits, tree.compute_after(node).logits, rtol=0, atol=0
        )


@pytest.mark.parametrize("seed", range(3))
def test_in_the_tree_it_comes_from_a_route_leads_to_the_same_node_without_computing(
    seed: int,
) -> None:
    tree = wandered(seed)
    node = max(tree.nodes, key=lambda one: tree.nodes[one].position)
    route = Route.route_to(tree.path(node))
    tree.go(ROOT)
    passes: list[int] = []
    tree.generation.model.embed.register_forward_pre_hook(lambda *_: passes.append(1))
    for choice in route.choices:
        assert tree.has_token(choice)
        tree.follow(choice)
    assert tree.current == node
    assert not passes


def test_a_text_drawn_at_one_go_is_a_number_and_a_token_by_hand_one_more() -> None:
    tree = planted()
    for _ in range(2 * CONTEXT):
        tree.step()
    assert Route.route_to(tree.path()).line.startswith(f"n{2 * CONTEXT}_")
    tree.go(5)
    tree.take(7)
    tree.step(Sampling(temperature=0.5))
    assert Route.route_to(tree.path()).line.startswith("n5f7t0.5n1_")
    tree.go(ROOT)
    assert Route.route_to(tree.path()).line.startswith("n0_")


def test_a_snapshot_restores_every_branch_and_each_goes_on_as_before() -> None:
    tree = wandered(1)
    again = planted()
    again.step()
    again.restore(tree.snapshot())
    assert again.nodes == tree.nodes
    assert (again.current, again.dropped) == (tree.current, tree.dropped)
    for node in tree.nodes:
        assert torch.equal(again.compute_after(node).logits, tree.compute_after(node).logits)
    tree.go(ROOT)
    again.go(ROOT)
    before = len(tree.nodes)
    again.take(next(token for token in range(VOCAB) if token not in again.nodes[ROOT].children))
    again.step()
    assert len(tree.nodes) == before, "the trees share nothing"
    assert again.branches()[:-1] == tree.branches()[:-1], "the oldest first"
