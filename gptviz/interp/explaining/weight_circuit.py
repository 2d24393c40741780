"""The circuit of a task, down to single weights: the few weights that keep what a model answers.

The task is a set of questions: a text, the token that is right next, and one that is wrong. What is
kept is the difference of their logits, right minus wrong, on average over the questions.

**Switched off** means that a weight passes on only what it passes on average (mean ablation). The
output that it goes to loses weight · input and gains weight · mean input, a constant; the mean is
over the tokens of the questions up to where they are asked. So a model with weights switched off is
a model with zeros in its matrices and other biases (`prune`). A table of vectors is a matrix too:
its input is 1 at the token and 0 elsewhere, so a vector without one of its numbers has there the
mean of those that were switched off.

**What is switched off.** Each weight has a score, the same for all at first, and the weights with
the highest scores are on. At each step some of the questions are asked, and the scores follow the
gradient of how far the differences fall short of those of the whole model, as if a weight were on
by as much as its score (straight through); and as long as the share that is asked for is kept, a
few weights fewer are on. The smallest set that keeps the share of all questions is the circuit.

Sources: L. Gao et al., “Weight-sparse transformers have interpretable circuits” (2025), who learn
masks of nodes so; Wang et al. 2023 (mean ablation).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from gptviz.machine import progress
from gptviz.model import Config, Transformer
from gptviz.model.parts.part import Linear

# How long scores are learned, and how far a step moves one at most.
STEPS = 600
RATE = 0.05
# The part of the weights that goes at a step, and the questions that are asked there.
FEWER = 0.015
ASKED = 64
# So many weights of a circuit, and as many others, are switched off one at a time.
SWITCHED = 48
# The tables of vectors: what is read of them is a row.
TABLES = ("embed.weight", "positions.table.weight")


@dataclass(frozen=True, eq=False)
class Questions:
    """Texts of a task, each with a right and a wrong token to come next."""

    ids: Tensor  #: [N, T]; what stands after the token `at` is not read
    at: Tensor  #: [N], the position after which the next token is asked
    right: Tensor  #: [N], the token that is right there
    wrong: Tensor  #: [N], one that is wrong


@dataclass(frozen=True)
class Weight:
    """One weight of a circuit."""

    matrix: str  #: the parameter that it is in, such as `blocks.0.attention.qkv.weight`
    row: int  #: the output that it goes to; of a table, the token or the position
    column: int  #: the input that it comes from; of a table, the number of the vector
    value: float  #: the weight
    #: about which share of the whole model's difference the circuit loses if this one is switched
    #: off too, by its derivative
    effect: float


@dataclass(frozen=True)
class WeightCircuit:
    """The weights that are left."""

    weights: tuple[Weight, ...]  #: from the tokens to the logits
    of: int  #: how many weights of the model are not 0
    whole: float  #: the mean difference of the logits, right minus wrong, of the whole model
    kept: float  #: that of the circuit alone
    without: float  #: that with every weight switched off
    #: the mean loss of the whole model in the choice between the right and the wrong token, in nats
    whole_loss: float
    loss: float  #: that of the circuit alone
    right: float  #: the share of the questions in which the circuit prefers the right token

    @property
    def share(self) -> float:
        """The part of `whole` - `without` that is kept."""
        return (self.kept - self.without) / (self.whole - self.without)


@dataclass(frozen=True)
class WeightCheck:
    """How a circuit answers questions that it was not found with, and the rest of the model without
    it.
    """

    whole_loss: float  #: the mean loss of the whole model in the choice, in nats
    loss: float  #: that of the circuit alone
    right: float  #: the share of the questions in which the circuit prefers the right token
    #: the share of the whole model's difference that is left if only the circuit is switched off
    without_circuit: float
    #: the same if as many other weights are, drawn at random
    without_others: float
    #: of each of the first `by_effect` weights of the circuit, at most `SWITCHED`, the share of the
    #: questions in which the whole model prefers the right token if that weight alone is off
    right_without_each: tuple[float, ...]
    #: the same of as many other weights, or of all if there are fewer, drawn at random
    right_without_others: tuple[float, ...]


Masks = dict[str, Tensor]


class Switchable:
    """A model with weights that can be switched off, and the questions that it is asked."""

    def __init__(self, model: Transformer, questions: Questions) -> None:
        self.questions = questions
        self.model = _with_biases(model)
        self.numbers = {name: p.detach() for name, p in self.model.named_parameters()}
        last = int(questions.at.max()) + 1
        self.ids = questions.ids[:, :last]  # [N, T]
        positions = torch.arange(last, device=self.ids.device)
        self.is_read = positions <= questions.at[:, None]  # [N, T]
        #: the mean input of every matrix, by the name of its weights
        self.means = self._mean_inputs()
        self.matrices = {name: self.numbers[name] for name in self.means}
        self.all = {name: (matrix != 0).float() for name, matrix in self.matrices.items()}
        self.nothing = {name: torch.zeros_like(mask) for name, mask in self.all.items()}
        self.whole = self.differences(self.all)  # [N]
        self.without = float(self.differences(self.nothing).mean())

    def _mean_inputs(self) -> dict[str, Tensor]:
        """The mean input of every matrix over the tokens that are read: [in]; of a table, how often
        each row of it is read, as shares [rows].
        """
        means: dict[str, Tensor] = {}
        weight = self.is_read / self.is_read.sum()  # [N, T]
        asked = F.one_hot(self.questions.at, self.ids.shape[1]) / len(self.ids)  # [N, T]

        def watch(name: str, linear: Linear) -> Callable[..., Tensor]:
            # The logits are read only where a question is asked.
            of = asked if linear is getattr(self.model.head, "unembed", None) else weight

            def multiply(x: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
                means[name] = (x * of[..., None]).sum((0, 1))
                return F.linear(x, matrix, bias)

            return multiply

        linears = {
            name: part for name, part in self.model.named_modules() if isinstance(part, Linear)
        }
        for name, linear in linears.items():
            linear.multiply = watch(f"{name}.weight", linear)
        with torch.no_grad():
            self.model(self.ids)
        for linear in linears.values():
            del linear.multiply
        tables = {
            "embed.weight": torch.bincount(
                self.ids.flatten(), weight.flatten(), len(self.numbers["embed.weight"])
            )
        }
        if "positions.table.weight" in self.numbers:
            rows = len(self.numbers["positions.table.weight"])
            tables["positions.table.weight"] = F.pad(weight.sum(0), (0, rows - self.ids.shape[1]))
        return tables | means

    def weights_with(self, masks: Masks) -> dict[str, Tensor]:
        """The parameters of the model in which only the weights with a 1 in `masks` are on."""
        numbers = dict(self.numbers)
        for name, mask in masks.items():
            matrix = self.matrices[name]
            off = matrix * (1 - mask)
            if name in TABLES:
                numbers[name] = matrix * mask + self.means[name] @ off
            else:
                bias = name.removesuffix("weight") + "bias"
                numbers[name] = matrix * mask
                numbers[bias] = self.numbers[bias] + off @ self.means[name]
        return numbers

    def logits(self, masks: Masks, rows: Tensor | None = None) -> Tensor:
        """The logits [N, vocab_size] where the questions are asked, or those of these `rows`."""
        of = torch.arange(len(self.ids), device=self.ids.device) if rows is None else rows
        everywhere = functional_call(self.model, self.weights_with(masks), (self.ids[of],))
        asked: Tensor = everywhere[torch.arange(len(of), device=of.device), self.questions.at[of]]
        return asked

    @torch.no_grad()
    def differences(self, masks: Masks) -> Tensor:
        """The logit of the right token minus that of the wrong one, of each question: [N]."""
        return self.differences_of(self.logits(masks))

    def differences_of(self, logits: Tensor, rows: Tensor | None = None) -> Tensor:
        """The same of logits [N, vocab_size] where the questions, or these `rows` of them, are
        asked: [N].
        """
        both = (self.questions.right, self.questions.wrong)
        tokens = [one if rows is None else one[rows] for one in both]
        right, wrong = (logits.gather(1, one[:, None])[:, 0] for one in tokens)
        return right - wrong


def weight_circuit(
    model: Transformer, questions: Questions, share: float = 0.9, *, steps: int = STEPS
) -> WeightCircuit:
    """The weights that keep a share of how much more likely the right tokens are than the wrong
    ones: see the top of this file.

    Args:
        share: how much of the mean difference of the logits is kept, above 0, below 1.
        steps: how long scores are learned.

    Raises:
        ValueError: the model is not a decoder, the share is not possible, or the model does not
            prefer the right tokens.
    """
    if model.config.kind != "decoder":
        raise ValueError("the weights behind a guess can be found only in a decoder")
    if not 0 < share < 1:
        raise ValueError(f"share is {share!r:.40}; it must be above 0 and below 1")
    of = Switchable(model, questions)
    whole = float(of.whole.mean())
    if whole <= of.without:
        raise ValueError("the model does not prefer the right tokens to the wrong ones here")
    least = of.without + share * (whole - of.without)
    masks = _learn(of, least, steps)
    return _describe(of, masks, _effects(of, masks))


def loss_of(differences: Tensor) -> float:
    """The mean loss, in nats, of a choice between the right and the wrong token whose logits differ
    by so much [N].
    """
    return float(F.softplus(-differences).mean())


def count_of(masks: Masks) -> int:
    """How many weights are on."""
    return sum(int(mask.sum()) for mask in masks.values())


def _learn(of: Switchable, least: float, steps: int) -> Masks:
    """The masks of the fewest weights with which the mean difference is at least `least`."""
    scores = {name: mask.clone().requires_grad_() for name, mask in of.all.items()}
    optimiser = torch.optim.Adam(list(scores.values()), lr=RATE, betas=(0.9, 0.99))
    scale = float(of.whole.mean()) - of.without
    batches = torch.arange(len(of.ids), device=of.ids.device).split(ASKED)
    count = count_of(of.all)
    tried = [of.all]
    for step in range(steps):
        progress.report(step, steps, "step")
        rows = batches[step % len(batches)]
        on = _highest(of, scores, count)
        soft = {
            name: on[name] + of.all[name] * (score - score.detach())
            for name, score in scores.items()
        }
        differences = of.differences_of(of.logits(soft, rows), rows)
        missing = (of.whole[rows] - differences).relu()
        optimiser.zero_grad()
        ((missing / scale) ** 2).mean().backward()
        optimiser.step()
        if float(differences.detach().mean()) >= least:
            tried.append(on)
            count = max(1, int(count * (1 - FEWER)))
    # Each of these kept the share of the questions of its step: the smallest that keeps it of all.
    while float(of.differences(tried[-1]).mean()) < least:
        tried.pop()
    return tried[-1]


def _highest(of: Switchable, scores: Masks, count: int) -> Masks:
    """The masks in which the `count` weights with the highest scores are on, among those that are
    not 0.
    """
    every = torch.cat([scores[name].detach()[mask > 0] for name, mask in of.all.items()])
    order = every.argsort(descending=True, stable=True)
    chosen = torch.zeros_like(every)
    chosen[order[:count]] = 1
    masks = {name: torch.zeros_like(mask) for name, mask in of.all.items()}
    begin = 0
    for name, mask in of.all.items():
        end = begin + int(mask.sum())
        masks[name][mask > 0] = chosen[begin:end]
        begin = end
    return masks


def _effects(of: Switchable, masks: Masks) -> Masks:
    """About which share of the whole model's difference goes if a weight is switched off too, by
    its derivative.
    """
    on = {name: mask.clone().requires_grad_() for name, mask in masks.items()}
    of.differences_of(of.logits(on)).mean().backward()
    scale = float(of.whole.mean()) - of.without
    return {
        name: torch.zeros_like(mask) if mask.grad is None else mask.grad / scale
        for name, mask in on.items()
    }


@torch.no_grad()
def _describe(of: Switchable, masks: Masks, effects: Masks) -> WeightCircuit:
    kept = of.differences(masks)
    weights = [
        Weight(
            name,
            row,
            column,
            float(of.matrices[name][row, column]),
            float(effects[name][row, column]),
        )
        for name, mask in masks.items()
        for row, column in mask.nonzero().tolist()
    ]
    return WeightCircuit(
        weights=tuple(weights),
        of=count_of(of.all),
        whole=float(of.whole.mean()),
        kept=float(kept.mean()),
        without=of.without,
        whole_loss=loss_of(of.whole),
        loss=loss_of(kept),
        right=float((kept > 0).float().mean()),
    )


def prune(model: Transformer, questions: Questions, weights: tuple[Weight, ...]) -> Transformer:
    """The model in which all but these weights are switched off, with means over these questions: a
    model of its own.
    """
    of = Switchable(model, questions)
    numbers = of.weights_with(_masks_of(of, weights))
    with torch.no_grad():
        for name, parameter in of.model.named_parameters():
            parameter.copy_(numbers[name])
    return of.model


@torch.no_grad()
def check(
    model: Transformer, questions: Questions, others: Questions, weights: tuple[Weight, ...]
) -> WeightCheck:
    """What a circuit that was found with `questions` does with `others`, and what the whole model
    does without it, and without as many other weights.
    """
    alone = prune(model, questions, weights)
    of = Switchable(model, others)
    rows = torch.arange(len(others.at), device=of.ids.device)
    kept = of.differences_of(alone(of.ids)[rows, others.at])  # [N]
    circuit = _masks_of(of, weights)
    generator = torch.Generator().manual_seed(0)
    chances = {
        name: torch.rand(mask.shape, generator=generator).to(mask) - circuit[name]
        for name, mask in of.all.items()
    }
    drawn = _highest(of, chances, len(weights))
    scale = float(of.whole.mean()) - of.without

    def left_without(off: Masks) -> float:
        fewer = {name: mask - off[name] for name, mask in of.all.items()}
        return (float(of.differences(fewer).mean()) - of.without) / scale

    return WeightCheck(
        whole_loss=loss_of(of.whole),
        loss=loss_of(kept),
        right=float((kept > 0).float().mean()),
        without_circuit=left_without(circuit),
        without_others=left_without(drawn),
        right_without_each=tuple(
            right_without(of, one.matrix, one.row, one.column)
            for one in by_effect(weights)[:SWITCHED]
        ),
        right_without_others=tuple(
            right_without(of, name, row, column)
            for name, mask in _highest(of, chances, min(len(weights), SWITCHED)).items()
            for row, column in (mask * of.all[name] * (1 - circuit[name])).nonzero().tolist()
        ),
    )


def by_effect(weights: Iterable[Weight]) -> list[Weight]:
    """The weights, first the one without which most of the difference goes."""
    return sorted(weights, key=lambda one: -one.effect)


def right_without(of: Switchable, matrix: str, row: int, column: int) -> float:
    """The share of the questions in which the model prefers the right token if one weight is
    switched off.
    """
    mask = of.all[matrix].clone()
    mask[row, column] = 0
    return float((of.differences({**of.all, matrix: mask}) > 0).float().mean())


def _masks_of(of: Switchable, weights: tuple[Weight, ...]) -> Masks:
    """The masks in which these weights are on."""
    masks = {name: mask.clone() for name, mask in of.nothing.items()}
    for weight in weights:
        masks[weight.matrix][weight.row, weight.column] = 1
    return masks


def _with_biases(model: Transformer) -> Transformer:
    """A copy of a model whose matrices all have a bias, and whose table of tokens is not also that
    of the logits.
    """
    own = copy.deepcopy(model).eval()
    for part in own.modules():
        if isinstance(part, Linear):
            if part.weight is own.embed.weight:
                part.weight = nn.Parameter(part.weight.detach().clone())
            if part.bias is None:
                part.bias = nn.Parameter(torch.zeros(part.out_features, device=part.weight.device))
    return own.requires_grad_(False)


@dataclass(frozen=True)
class End:
    """One end of a weight: where it reads, or where it writes."""

    #: how far from the tokens, 0: per block the stream that the heads read, the heads, the stream
    #: that the neurons read, the neurons; then the stream of the end, and the logits
    stage: int
    #: the kind of thing it is a number of: "token", "position", "stream", "q", "k", "v", "neuron",
    #: "gate" or "logit"
    kind: str
    index: int  #: which token, position, number of the stream, of a head's vector, or neuron
    head: int | None = None  #: of the vector of a head, which one

    @property
    def name(self) -> str:
        """Its name without the words of a vocabulary, such as `stream 17` or `block 0 head 1 k
        5`.
        """
        if self.kind in ("stream", "token", "position", "logit"):
            return f"{self.kind} {self.index}"
        block = f"block {(self.stage - 1) // 4}"
        if self.head is None:
            return f"{block} {self.kind} {self.index}"
        return f"{block} head {self.head} {self.kind} {self.index}"


def ends(weight: Weight, config: Config) -> tuple[End, End]:
    """The two ends of a weight of a model: from and to."""
    last = 1 + 4 * config.n_layer
    if weight.matrix in TABLES:
        kind = "token" if weight.matrix == "embed.weight" else "position"
        return End(0, kind, weight.row), End(1, "stream", weight.column)
    if not weight.matrix.startswith("blocks."):
        return End(last, "stream", weight.column), End(last + 1, "logit", weight.row)
    _, block, _, *part, _ = weight.matrix.split(".")
    before = 1 + 4 * int(block)
    size = config.head_size
    if part == ["qkv"]:
        n_head = config.n_head
        key_heads = config.key_heads
        head, index = divmod(weight.row, size)
        kinds = [("q", head), ("k", head - n_head), ("v", head - n_head - key_heads)]
        kind, of = kinds[(head >= n_head) + (head >= n_head + key_heads)]
        return End(before, "stream", weight.column), End(before + 1, kind, index, of)
    if part == ["output"]:
        head, index = divmod(weight.column, size)
        served = head // (config.n_head // config.key_heads)
        return End(before + 1, "v", index, served), End(before + 2, "stream", weight.row)
    if part == ["down"]:
        return End(before + 3, "neuron", weight.column), End(before + 4, "stream", weight.row)
    kind = "gate" if part == ["gate"] else "neuron"
    return End(before + 2, "stream", weight.column), End(before + 3, kind, weight.row)
