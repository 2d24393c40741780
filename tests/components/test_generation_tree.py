"""The generation tree: what travels to the browser, and which clicks count. The browser's half is
tested in a browser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gptviz.components import generation_tree
from gptviz.components.generation_tree import code, finished, pack_tree
from gptviz.components.generation_tree.finished import Finished
from gptviz.components.generation_tree.look import Look
from gptviz.components.kit import Packed, unpack
from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.generate.tree import ROOT, Tree
from gptviz.model import Record
from tests.tiny import CONTEXT, scrambled, some_ids, tiny


def forked(**changes: Any) -> Tree:
    """Two branches, longer than the context, of a prompt of three tokens; the first is the current
    one.
    """
    tree = Tree(
        Generation(
            scrambled(tiny(**changes)),
            some_ids(3, batch=1)[0],
            Sampling(temperature=0.9, top_k=4, seed=1),
        )
    )
    for _ in range(CONTEXT):
        tree.step()
    end = tree.go(tree.current).id
    tree.go(2)
    tree.take(
        next(
            token
            for token in range(tree.generation.model.config.vocab_size)
            if token not in tree.nodes[2].children
        )
    )
    tree.generation.sampling = Sampling(temperature=0)
    for _ in range(CONTEXT):
        tree.step()
    tree.go(end)
    return tree


def looked(label: Callable[[int], str] = "t{}".format, **changes: Any) -> Look:
    return Look(
        **{"number": 7, "prompt": ["a", "b", "c"], "label": label, "described": repr} | changes
    )


def whole(tree: Tree, look: Look, asked: int | None = None) -> bytes:
    """What a browser gets that has nothing yet: of a small tree there are no parts."""
    sent = pack_tree(tree, look, Finished(), asked)
    assert not sent.parts
    return sent.data


def numbers(sent: Packed) -> tuple[dict[int, tuple[Any, ...]], dict[int, Any]]:
    """All that a browser gets of the nodes, by their ids, and of the attention, by the node after
    which a step was made.
    """
    nodes: dict[int, tuple[Any, ...]] = {}
    steps: dict[int, Any] = {}
    for data in (*(part.data for part in sent.parts), sent.data):
        header, arrays = unpack(data)
        for i, node in enumerate(arrays.get("node", ())):
            assert int(node) not in nodes, "a node travels once"
            columns = [
                arrays[name][i].tolist()
                for name in ("parent", "token", "position", "logprob", "draw_logprob", "total")
            ]
            ids = arrays["candidates"][i].tolist()
            p = arrays["candidate_p"][i].tolist()
            nodes[int(node)] = (
                *columns,
                header["how"][arrays["how"][i]],
                header["labels"][str(arrays["token"][i])],
                ids,
                p,
            )
        for after, start, keys, at in arrays["place"].tolist() if "place" in arrays else ():
            assert after not in steps, "a step travels once"
            steps[after] = start, keys, arrays["attention"][at : at + 6 * keys].tolist()
    return nodes, steps


def test_a_small_vocabulary_has_fewer_candidates() -> None:
    tree = Tree(Generation(scrambled(tiny(vocab_size=3)), torch.tensor([1])))
    tree.step()
    _, arrays = unpack(whole(tree, looked()))
    assert sorted(arrays["candidates"][0, :3].tolist()) == [0, 1, 2]
    assert arrays["candidates"][0, 3:].tolist() == [-1] * 5
    assert arrays["candidate_p"][0].sum(0).tolist() == pytest.approx([1, 1])


def test_the_attention_is_that_of_a_pass_over_what_each_step_saw() -> None:
    tree = forked()
    _, arrays = unpack(whole(tree, looked()))
    gone_on_from = {node.id for node in tree.nodes.values() if node.children}
    assert {row[0] for row in arrays["place"].tolist()} == gone_on_from, (
        "nobody looked after the ends"
    )
    for node, start, keys, at in arrays["place"].tolist():
        ids = tree.ids(node)
        assert (start, keys) == (max(len(ids) - CONTEXT, 0), min(len(ids), CONTEXT))
        record = Record("*.pattern")
        with torch.inference_mode():
            tree.generation.model(torch.tensor([ids[start:]]), tap=record)
        rows = np.stack([pattern[0, :, -1].numpy() for pattern in record.values.values()])
        sent = arrays["attention"][at : at + 6 * keys].reshape(2, 3, keys)
        np.testing.assert_allclose(sent, rows, atol=1e-3)


def test_attention_beyond_the_room_stays_behind_except_what_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = forked()
    monkeypatch.setattr(finished, "MOST_BYTES", 3 * 2 * 6 * CONTEXT)

    def sent(asked: int | None = None) -> list[int]:
        return unpack(whole(tree, looked(), asked))[1]["place"][:, 0].tolist()

    path = [node.id for node in tree.path()]
    tree.compute_after()
    assert sent() == path[-3:], "the end of the current path"
    assert 1 in sent(asked=1)
    tree._computed.clear()
    tree.compute_after(ROOT)
    assert 4 in sent(asked=4), "computed again"
    assert sent(asked=10_000) == sent()


def test_what_is_finished_travels_in_parts_that_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(finished, "PART_NODES", 4)
    monkeypatch.setattr(finished, "PART_BYTES", 3 * 2 * 6 * CONTEXT)
    tree = forked()
    parts = Finished()
    before = pack_tree(tree, looked(), parts)
    for _ in range(3):
        tree.step()
        tree.compute_after()
        after = pack_tree(tree, looked(), parts)
        assert set(before.parts) < set(after.parts) or (
            set(before.parts) == set(after.parts) and before.data != after.data
        )
        nodes, steps = numbers(after)
        monkeypatch.setattr(finished, "PART_NODES", 10_000)
        monkeypatch.setattr(finished, "PART_BYTES", 2**30)
        assert numbers(pack_tree(tree, looked(), Finished())) == (nodes, steps), (
            "the same numbers, to the last digit"
        )
        monkeypatch.setattr(finished, "PART_NODES", 4)
        monkeypatch.setattr(finished, "PART_BYTES", 3 * 2 * 6 * CONTEXT)
        before = after
    assert unpack(after.data)[0]["part_names"] == [part.name for part in after.parts]


def test_dropped_nodes_leave_their_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finished, "PART_NODES", 4)
    tree = forked()
    parts = Finished()
    pack_tree(tree, looked(), parts)
    tree.most_nodes = len(tree.nodes) - 1
    for _ in range(2):
        tree.step()
    assert tree.dropped == 2
    nodes, _ = numbers(pack_tree(tree, looked(), parts))
    assert list(nodes) == [node for node in tree.nodes if node != ROOT]


def test_a_tree_that_was_brought_back_is_packed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finished, "PART_NODES", 4)
    tree = forked()
    parts = Finished()
    pack_tree(tree, looked(), parts)
    other = forked(n_layer=1)
    tree.restore(other.snapshot())
    nodes, _ = numbers(pack_tree(tree, looked(), parts))
    assert [fields[1] for fields in nodes.values()] == [
        node.token for node in other.nodes.values() if node.id != ROOT
    ]


def test_while_it_grows_no_attention_travels() -> None:
    tree = forked()
    header, arrays = unpack(whole(tree, looked(playing=True)))
    assert arrays["node"].tolist() == [node for node in tree.nodes if node != ROOT]
    assert (header["current"], header["playing"]) == (tree.current, True)
    assert not {"attention", "code"} & {*arrays, *header}


@pytest.mark.parametrize("changes", [{"n_layer": 0}, {"mask": "full"}])
def test_a_model_without_attention_and_one_that_looks_ahead_travel_too(
    changes: dict[str, Any],
) -> None:
    header, arrays = unpack(whole(forked(**changes), looked()))
    assert header["heads"] == [changes.get("n_layer", 2), 3]
    assert bool(len(arrays["attention"])) == ("n_layer" not in changes)


def test_code_of_a_large_tree_has_the_current_branch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = forked()
    lines = code("gptviz.load('x')", "'''\n", tree)
    compile(lines, "code", "exec")
    assert str(tree.branches()) in lines
    monkeypatch.setattr(generation_tree, "MOST_IN_CODE", CONTEXT)
    assert f"in {[tree.ids()[3:]]}:" in code("gptviz.load('x')", "p", tree)


def test_a_full_tree_is_packed_small_enough_to_be_sent() -> None:
    tree = forked(context_length=256)
    for _ in range(300):
        tree.step()
    sent = pack_tree(tree, looked(), Finished())
    size = len(sent.data) + sum(len(part.data) for part in sent.parts)
    assert size < finished.MOST_BYTES + 200 * len(tree.nodes)
    assert len(sent.data) < finished.PART_BYTES + 200 * finished.PART_NODES
