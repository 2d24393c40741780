"""The circuit of a task in single weights: what is switched off passes on its mean, and what is left
does what is said of it.
"""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import gptviz
from gptviz.interp.explaining import weight_circuit as circuits
from gptviz.interp.explaining.weight_circuit import Questions, Switchable, prune
from gptviz.interp.trace import run
from gptviz.language_model import LanguageModel, weight_circuits
from tests.command_line import Capture, answered, output
from tests.tiny import scrambled, some_ids, tiny

TINY = scrambled(tiny(n_layer=1, tied=True))
ASKED = Questions(
    some_ids(5, 6),
    torch.tensor([4, 2, 4, 3, 4, 1]),
    torch.tensor([1, 2, 3, 4, 5, 6]),
    torch.tensor([2, 3, 4, 5, 6, 7]),
)


@pytest.fixture(scope="module")
def sparse() -> LanguageModel:
    return gptviz.load("sentences-sparse", device="cpu")


def logits_with(of: Switchable, name: str, row: int, column: int) -> torch.Tensor:
    masks = {one: mask.clone() for one, mask in of.all.items()}
    masks[name][row, column] = 0
    return of.logits(masks)


def where_asked(logits: torch.Tensor) -> torch.Tensor:
    return torch.stack([row[at] for row, at in zip(logits, ASKED.at, strict=True)])


def mean_where_read(values: torch.Tensor) -> torch.Tensor:
    read = [row[: at + 1] for row, at in zip(values, ASKED.at, strict=True)]
    return torch.cat(read).mean(0)


def test_with_all_weights_on_the_model_answers_as_it_does() -> None:
    of = Switchable(TINY, ASKED)
    with torch.no_grad():
        assert torch.allclose(of.logits(of.all), where_asked(TINY(ASKED.ids)), atol=1e-5)


def test_a_weight_that_is_off_passes_on_its_mean_in_an_mlp() -> None:
    neurons = run(TINY, ASKED.ids, ("blocks.0.mlp.neurons",))["blocks.0.mlp.neurons"]
    beyond = neurons[..., 7] - mean_where_read(neurons)[7]  # [N, T]
    weight = TINY.blocks[0].mlp.down.weight[3, 7]

    def without(out: torch.Tensor) -> torch.Tensor:
        fewer = out.clone()
        fewer[..., 3] -= weight * beyond
        return fewer

    expected = run(TINY, ASKED.ids, ("logits",), edits={"blocks.0.mlp.out": without})["logits"]
    found = logits_with(Switchable(TINY, ASKED), "blocks.0.mlp.down.weight", 3, 7)
    torch.testing.assert_close(found, where_asked(expected), rtol=1e-4, atol=1e-4)


def test_a_number_of_a_token_that_is_off_is_its_mean_over_all_tokens_read() -> None:
    token = int(ASKED.ids[0, 1])
    read = torch.cat([row[: at + 1] for row, at in zip(ASKED.ids, ASKED.at, strict=True)])
    share = float((read == token).float().mean())
    weight = float(TINY.embed.weight[token, 2])

    def without(vectors: torch.Tensor) -> torch.Tensor:
        fewer = vectors.clone()
        fewer[..., 2] += weight * share
        fewer[..., 2] -= weight * (ASKED.ids == token)
        return fewer

    expected = run(TINY, ASKED.ids, ("logits",), edits={"embed": without})["logits"]
    found = logits_with(Switchable(TINY, ASKED), "embed.weight", token, 2)
    torch.testing.assert_close(found, where_asked(expected), rtol=1e-4, atol=1e-4)


def test_the_weights_that_are_found_keep_the_share_and_of_equal_ones_the_useful_are_kept() -> None:
    # Right is token 1 after token 0, and token 2 after token 3: nothing else matters.
    asked = Questions(
        torch.tensor([[0], [3]] * 8),
        torch.zeros(16, dtype=torch.long),
        torch.tensor([1, 2] * 8),
        torch.tensor([2, 1] * 8),
    )
    model = scrambled(tiny(n_layer=0, final_norm=False, positions="none"))
    with torch.no_grad():
        model.embed.weight.fill_(0.1)
        model.embed.weight[0, 4] = model.embed.weight[3, 5] = 3
        model.head.unembed.weight.fill_(0.1)
        model.head.unembed.weight[1, 4] = model.head.unembed.weight[2, 5] = 2
    circuit = circuits.weight_circuit(model, asked)
    assert circuit.share >= 0.9
    assert {(weight.matrix, weight.row, weight.column) for weight in circuit.weights} == {
        ("embed.weight", 0, 4),
        ("embed.weight", 3, 5),
        ("head.unembed.weight", 1, 4),
        ("head.unembed.weight", 2, 5),
    }
    assert all(weight.effect > 0.2 for weight in circuit.weights)
    # What goes without one of them, by running the model without it.
    of = Switchable(model, asked)
    alone = float(of.whole.mean()) * circuit.share
    without = prune(model, asked, circuit.weights[1:])
    left = without(asked.ids)[:, 0]
    gained = left.gather(1, asked.right[:, None]) - left.gather(1, asked.wrong[:, None])
    lost = (alone - float(gained.mean())) / float(of.whole.mean())
    assert circuit.weights[0].effect == pytest.approx(lost, rel=0.05)


def test_a_model_with_the_weights_that_are_named_is_a_model_with_zeros_and_other_biases() -> None:
    of = Switchable(TINY, ASKED)
    name = "blocks.0.mlp.up.weight"
    kept = circuits.Weight(name, 1, 2, float(of.matrices[name][1, 2]), 0.0)
    alone = prune(TINY, ASKED, (kept,))
    left = alone.state_dict()[name]
    assert left.nonzero().tolist() == [[1, 2]]
    assert left[1, 2] == TINY.blocks[0].mlp.up.weight[1, 2]
    masks = {one: mask.clone() for one, mask in of.nothing.items()}
    masks[name][1, 2] = 1
    with torch.no_grad():
        assert torch.allclose(of.logits(masks), where_asked(alone(ASKED.ids)), atol=1e-5)


@pytest.mark.parametrize("part", ["agreement"])
def test_the_circuit_alone_has_the_loss_and_the_share_that_are_said_of_it(
    sparse: LanguageModel, part: str
) -> None:
    circuit = sparse.weight_circuit(part)
    assert circuit.share >= 0.9
    assert circuit.right > 0.95
    assert len(circuit.weights) < circuit.of / 5
    # The model alone, asked as any model is.
    asked = sparse.task.choices(part, 256)
    ids = torch.from_numpy(asked.ids)[:, : int(asked.at.max()) + 1]
    alone = weight_circuits.pruned(sparse, circuit, part)
    with torch.no_grad():
        logits = alone(ids)[torch.arange(256), torch.from_numpy(asked.at)]
    both = torch.from_numpy(np.stack((asked.right, asked.wrong), axis=1))
    chosen = logits.gather(1, both)
    loss = F.cross_entropy(chosen, torch.zeros(256, dtype=torch.long))
    assert float(loss) == pytest.approx(circuit.loss, abs=1e-4)
    assert float((chosen[:, 0] - chosen[:, 1]).mean()) == pytest.approx(circuit.kept, abs=1e-3)
    matrices = {name: value for name, value in alone.named_parameters() if value.dim() == 2}
    for name in {weight.matrix for weight in circuit.weights} - {
        "embed.weight",
        "positions.table.weight",
    }:
        assert int(matrices[name].count_nonzero()) == sum(
            weight.matrix == name for weight in circuit.weights
        )


def test_without_its_circuit_far_less_is_left_than_without_as_many_other_weights(
    sparse: LanguageModel,
) -> None:
    checked = weight_circuits.check_weights(sparse, sparse.weight_circuit("agreement"), "agreement")
    assert checked.right > 0.95  # sentences that it was not found with
    assert checked.without_circuit < 0.3
    assert checked.without_others > 3 * checked.without_circuit


def test_what_is_impossible_is_refused_by_its_name(sparse: LanguageModel) -> None:
    assert weight_circuits.weight_tasks(sparse) == ("names", "agreement", "brackets", "colours")
    with pytest.raises(ValueError, match="no questions about 'sums': choose names, agreement"):
        sparse.weight_circuit("sums")
    with pytest.raises(ValueError, match="share is 1.5; it must be above 0 and below 1"):
        sparse.weight_circuit("names", 1.5)
    with pytest.raises(ValueError, match="it has learned no task that has any"):
        gptviz.load("generator").weight_circuit("names")


def test_the_command_gives_what_the_library_gives(
    sparse: LanguageModel, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        weight_circuits, "compute_circuit", partial(circuits.weight_circuit, steps=200)
    )
    asked = ("weights", "sentences-sparse", "--part", "agreement", "--device", "cpu")
    content = answered(capsys, *asked, "--check")
    circuit = sparse.weight_circuit("agreement")
    checked = weight_circuits.check_weights(sparse, circuit, "agreement")
    assert content["of"] == circuit.of
    assert content["loss"] == pytest.approx(circuit.loss)
    assert content["check"]["right"] == pytest.approx(checked.right)
    for one, weight, (source, target) in zip(
        content["weights"],
        circuit.weights,
        weight_circuits.name_weights(sparse, circuit),
        strict=True,
    ):
        assert (one["matrix"], one["row"], one["column"]) == (
            weight.matrix,
            weight.row,
            weight.column,
        )
        assert (one["from"], one["to"]) == (source, target)
        matrix = sparse.model.state_dict()[weight.matrix]
        assert one["value"] == pytest.approx(float(matrix[weight.row, weight.column]))
    printed = output(capsys, *asked)
    assert f"{len(circuit.weights):,} of {circuit.of:,} weights keep" in printed


@pytest.fixture(scope="module")
def quotes() -> LanguageModel:
    return gptviz.load("quotes", device="cpu")


def test_a_whole_task_is_a_circuit_that_fits_on_a_screen(quotes: LanguageModel) -> None:
    circuit = quotes.weight_circuit("quotes")
    assert len(circuit.weights) <= 20
    assert circuit.share >= 0.9
    assert circuit.right == 1


def test_one_weight_of_the_circuit_breaks_its_task_and_none_outside_of_it_does(
    quotes: LanguageModel,
) -> None:
    circuit = quotes.weight_circuit("quotes")
    inside = {(one.matrix, one.row, one.column) for one in circuit.weights}
    asked = quotes.task.choices("quotes", 200, held_out=True)  # type: ignore[union-attr]
    found_with = weight_circuits._ask(quotes, "quotes", 200, held_out=True)
    means = Switchable(quotes.model, found_with).means

    def right_without(name: str, row: int, column: int) -> float:
        """The same by hand: the parameters of a copy are changed, and its own pass answers."""
        model = copy.deepcopy(quotes.model)
        matrix = dict(model.named_parameters())[name]
        with torch.no_grad():
            value = float(matrix[row, column])
            matrix[row, column] = 0
            lost = value * float(means[name][row if name in circuits.TABLES else column])
            if name in circuits.TABLES:
                matrix[:, column] += lost
            elif "unembed" not in name:
                dict(model.named_parameters())[name.replace("weight", "bias")][row] += lost
            logits = model(torch.as_tensor(asked.ids[:, :-1]))
        if "unembed" in name:
            logits[..., row] += lost
        of = torch.arange(len(asked.ids)), torch.as_tensor(asked.at)
        right, wrong = (logits[*of, torch.as_tensor(one)] for one in (asked.right, asked.wrong))
        return float((right > wrong).float().mean())

    every = {
        (name, row, column): right_without(name, row, column)
        for name, matrix in quotes.model.named_parameters()
        if matrix.dim() == 2
        for row, column in matrix.nonzero().tolist()
    }
    assert len(every) == circuit.of
    assert min(every[one] for one in every if one not in inside) == 1
    # Without one of these a coin would do as well.
    assert sum(every[one] < 0.6 for one in inside) >= 5
    checked = weight_circuits.check_weights(quotes, circuit, "quotes", questions=200)
    alone = [every[one.matrix, one.row, one.column] for one in circuits.by_effect(circuit.weights)]
    assert checked.right_without_each == pytest.approx(alone)
    assert set(checked.right_without_others) == {1.0}


def test_weights_are_found_by_the_names_of_their_ends(quotes: LanguageModel) -> None:
    circuit = quotes.weight_circuit("quotes")
    for weight, (source, target) in zip(
        circuit.weights, weight_circuits.name_weights(quotes, circuit), strict=True
    ):
        assert weight_circuits.weight_between(quotes, circuit, source, target) == weight
    with pytest.raises(ValueError, match="no weight of the circuit leads from 'here' to 'there'"):
        weight_circuits.weight_between(quotes, circuit, "here", "there")
