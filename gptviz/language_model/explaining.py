"""Which parts of a language model a guess comes from."""

from __future__ import annotations

from typing import Literal

import torch

from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.interp.explaining.attribution import Attribution
from gptviz.interp.explaining.attribution import attribute as compute_attribution
from gptviz.interp.explaining.backward_lens import BackwardLens
from gptviz.interp.explaining.backward_lens import backward_lens as compute_backward_lens
from gptviz.interp.explaining.circuit import MOST_NODES, Circuit
from gptviz.interp.explaining.circuit import circuit as compute_circuit
from gptviz.interp.explaining.circuit_check import Checked, check
from gptviz.interp.explaining.circuit_reads import means
from gptviz.interp.explaining.learning_step import LearningStep
from gptviz.interp.explaining.learning_step import learning_step as compute_learning_step
from gptviz.model.kinds import MODEL_KINDS
from gptviz.settings.kinds import Count

from .core import LoadedModel, find_tokens
from .dictionaries import dictionaries, open_dictionary
from .settings import check_settings


@check_settings
def attribute(
    lm: LoadedModel,
    prompt: str,
    token: str | int | None = None,
    position: int | None = None,
    against: str | int | None = None,
    target: str | None = None,
    neurons_of: str | None = None,
) -> Attribution:
    """How much each part of the model adds to the logit of a token, and each neuron of an MLP
    `neurons_of`: see `gptviz.interp.explaining.attribution`.
    """
    ids, source = lm.inputs(prompt, target)
    chosen, other = find_tokens(lm, token, against)
    read = None if source is None else source.tolist()
    return compute_attribution(lm.model, ids.tolist(), chosen, position, other, read, neurons_of)


@check_settings
def learning_step(
    lm: LoadedModel,
    prompt: str,
    part: str,
    at: tuple[int, ...] | None = None,
    *,
    last: Count | None = None,
) -> LearningStep:
    """The first step of training on only this prompt, seen from one weight: see
    `gptviz.interp.explaining.learning_step`.

    Args:
        prompt: the text; of a longer one, the last tokens are read that fit in the context.
        part: the name of a tensor of weights.
        at: the place of the weight there; the one with the steepest slope unless given.
        last: guess no more than this many tokens, and read none before those.
    """
    return compute_learning_step(lm.model, _read_to_learn(lm, prompt, last), part, at)


@check_settings
def backward_lens(
    lm: LoadedModel, prompt: str, block: int | None = None, *, last: Count | None = None
) -> BackwardLens:
    """What the first step of training on only this prompt writes into the MLP of a block, read as
    words: see `gptviz.interp.explaining.backward_lens`.

    Args:
        prompt: as of `learning_step`.
        block: counted from 0; the last one unless given.
        last: as of `learning_step`.
    """
    return compute_backward_lens(lm.model, _read_to_learn(lm, prompt, last), block)


def _read_to_learn(lm: LoadedModel, prompt: str, last: int | None) -> list[int]:
    guesses = min(lm.model.config.context_length, last or lm.model.config.context_length)
    ids: list[int] = lm.encode(prompt)[-guesses - 1 :].tolist()
    return ids


@check_settings
def circuit(
    lm: LoadedModel,
    prompt: str,
    token: str | int | None = None,
    position: int | None = None,
    against: str | int | None = None,
    share: float = 0.8,
    *,
    beyond_mean: bool = True,
    most: Count = MOST_NODES,
    lines: Count | None = None,
    nodes: Literal["parts", "features"] = "parts",
) -> Circuit:
    """The parts that the logit of a token owes most to, and what each owes to those before it: see
    `gptviz.interp.explaining.circuit`.

    Args:
        share: how much is traced back to tokens within the graph, above 0, at most 1.
        beyond_mean: count only what parts add beyond their means over the positions of this text;
            else all that they add. A text of a single token has no such mean.
        most: the most nodes that the graph may have.
        lines: the most edges that it may have.
        nodes: with "features", MLPs are drawn as the features of their transcoders, the first of
            each block among `dictionaries`; those of blocks that have none stay whole.
    """
    if lm.model.config.kind != "decoder":
        raise ValueError(
            f"a circuit is that of a decoder's guess, and {lm.name} is "
            f"{MODEL_KINDS[lm.model.config.kind].with_article}"
        )
    ids, _ = lm.inputs(prompt)
    chosen, other = find_tokens(lm, token, against)
    at = len(ids) - 1 if position is None else position
    return compute_circuit(
        lm.model,
        ids,
        at,
        chosen,
        other,
        share,
        usual="its mean" if beyond_mean else None,
        most=most,
        lines=lines,
        transcoders=_some_transcoders(lm) if nodes == "features" else (),
    )


def transcoders(lm: LoadedModel) -> list[Dictionary]:
    """The first transcoder of each block that has one."""
    every = (open_dictionary(lm, name) for name in dictionaries(lm))
    first: dict[int, Dictionary] = {}
    for one in every:
        if one.is_transcoder:
            first.setdefault(one.block, one)
    return [first[block] for block in sorted(first)]


def _some_transcoders(lm: LoadedModel) -> list[Dictionary]:
    """As `transcoders`; a ValueError if no block has one."""
    if found := transcoders(lm):
        return found
    raise ValueError(
        f"{lm.name} has no transcoder yet, whose features a circuit could be drawn with: fit one "
        'with gptviz dictionary --block N --target mlp, or lm.fit_dictionary(N, target="mlp")'
    )


@check_settings
def check_circuit(lm: LoadedModel, circuit: Circuit, text: str | None = None) -> Checked:
    """The share of the answer that is left with everything outside a circuit at its mean over all
    positions of a text, by default the circuit's own; and what as many random edges leave of it:
    see `gptviz.interp.explaining.circuit_check`.
    """
    if text is None:
        ids = torch.tensor(circuit.ids, device=lm.device)
    else:
        ids = lm.seen(lm.encode(text))
    return check(circuit, lm.model, means(lm.model, ids[None]), ids)
