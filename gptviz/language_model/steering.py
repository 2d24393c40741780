"""Steering: a direction is added to the stream of a language model, and what it says then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from gptviz.figures.kit.format import percent
from gptviz.interp.changing import directions
from gptviz.interp.changing.directions import Direction
from gptviz.interp.held_out import split_lists
from gptviz.interp.trace import run
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine import progress
from gptviz.pretrained import control_vectors
from gptviz.runs import fitted
from gptviz.settings.kinds import Length

from .core import LoadedModel, end_tokens
from .settings import check_settings
from .writing import generate, to_write

# The strengths that the probabilities are computed at, and how many tokens are named.
STRENGTHS = tuple(map(float, range(-4, 5)))
MOST_NAMED = 5
# The strengths of which the largest is chosen whose text stays likely: to the model without the
# direction its tokens are on average no more than so many nats less likely than those of its own.
TRIED = (2.0, 1.0, 0.5)
LESS_LIKELY = 2.0
# Attention is frozen for so many tokens at most: the patterns of all heads are kept.
MOST_FROZEN = 512


@dataclass(frozen=True)
class Steered:
    """What a model says with a direction in its stream."""

    strength: float  #: how often the direction is added
    #: what follows the prompt with the direction taken away so often, without it, and with it
    texts: tuple[str, str, str]
    #: [token, strength] of the next token, of those that are likeliest at some strength
    probability: LabelledArray

    @property
    def said(self) -> str:
        """How the guess changes, in a sentence."""
        tokens, strengths = (axis.labels for axis in self.probability.axes)
        before, after = (
            self.probability.values[:, strengths.index(f"{at:g}")] for at in (0, self.strength)
        )
        first, then = (
            f"“{tokens[int(each.argmax())]}” ({percent(float(each.max()))})"
            for each in (before, after)
        )
        if before.argmax() == after.argmax():
            return (
                f"The likeliest next token is {first}, and at strength {self.strength:g} it stays "
                f"{then}."
            )
        return (
            f"At strength {self.strength:g} the likeliest next token is {then}, in place of "
            f"{first}."
        )


@check_settings
def steer(
    lm: LoadedModel,
    prompt: str,
    direction: str | Direction,
    strength: float = 2.0,
    *,
    frozen: bool = False,
    max_new_tokens: Length = 40,
) -> Steered:
    """What this model says after a prompt with a direction in its stream: the next token from
    strength −4 to 4, and the texts that it writes, always with the likeliest token, at `-strength`,
    0 and `strength`.

    Args:
        direction: that of `lm.direction(…)`, or the name of one that is kept.
        strength: how often its spread is added to the stream.
        frozen: whether attention looks, in every pass, where it looks without the direction; the
            prompt then has at most 512 tokens.
        max_new_tokens: the most tokens of a text.
    """
    ids, _ = lm.inputs(prompt)
    if frozen and len(ids) > MOST_FROZEN:
        raise ValueError(
            f"attention is frozen for at most {MOST_FROZEN:,} tokens, and the prompt has "
            f"{len(ids):,}: shorten it"
        )
    found = directions.open_direction(direction, lm.model.config)
    patterns = _patterns(lm, ids) if frozen else {}
    strengths = sorted({*STRENGTHS, strength})
    with progress.part(0, 2, doing="next tokens"):
        logits = [_next_logits(at, ids, patterns) for at in _steer_models(lm, found, strengths)]
    # [vocabulary, strength]
    values = np.stack([each.softmax(-1).double().numpy(force=True) for each in logits], axis=1)
    leading = list(dict.fromkeys(values.argsort(axis=0)[::-1][:2].ravel().tolist()))[:MOST_NAMED]
    axes = (
        Axis("token", tuple(map(lm.tokenizer.label, leading))),
        Axis("strength", tuple(f"{at:g}" for at in strengths)),
    )
    texts = list[str]()
    for done, at in enumerate(_steer_models(lm, found, (-strength, 0, strength))):
        with progress.part(3 + done, 6, doing="writing"):
            texts.append(
                _write_steered(lm, at, ids, max_new_tokens)
                if frozen
                else generate(at, prompt, max_new_tokens, temperature=0)
            )
    return Steered(
        strength,
        (texts[0], texts[1], texts[2]),
        LabelledArray(values[leading], axes, "probability"),
    )


@check_settings
def likely_strength(
    lm: LoadedModel, prompt: str, direction: str | Direction, max_new_tokens: Length = 8
) -> tuple[float, float]:
    """The largest strength up to 2 at which the text that this model writes after a prompt, always
    with the likeliest token, stays likely to it without the direction; the smallest that is tried
    where none does. And by how many nats a token it is less likely than the text without it.
    """
    found = directions.open_direction(direction, lm.model.config)
    usual = _surprise(lm, prompt, generate(lm, prompt, max_new_tokens, temperature=0))
    less = float("inf")
    for strength in TRIED:
        (at,) = _steer_models(lm, found, (strength,))
        text = generate(at, prompt, max_new_tokens, temperature=0)
        less = _surprise(lm, prompt, text) - usual
        if not less > LESS_LIKELY:
            break
    return strength, less


def _surprise(lm: LoadedModel, prompt: str, text: str) -> float:
    """The mean surprise of this model at the tokens of a text after a prompt, in nats. The first
    does not count, which may be another on purpose; nor does one that is repeated, which surprises
    nobody: infinite where all are, NaN where there are no others.
    """
    whole = lm.encode(prompt + text)
    ids = lm.seen(whole)
    second = max(0, len(lm.encode(prompt)) - (len(whole) - len(ids))) + 1
    if len(ids) <= second:
        return float("nan")
    new = [at for at in range(second, len(ids)) if ids[at] not in ids[second - 1 : at]]
    if not new:
        return float("inf")
    places = torch.tensor(new)
    logits = run(lm.model, ids[None], ["logits"])["logits"][0].cpu().float()
    return float(cross_entropy(logits[places - 1], ids[places].cpu()))


def _patterns(lm: LoadedModel, ids: Tensor) -> Mapping[str, Callable[[Tensor], Tensor]]:
    """The edits that put the patterns of all heads over `ids` [T] in the place of others."""
    kept = run(lm.model, ids[None], ["*.pattern"], logits_at=slice(-1, None))
    return {name: _fixed_pattern(pattern) for name, pattern in kept.items()}


def _next_logits(
    at: LoadedModel, ids: Tensor, patterns: Mapping[str, Callable[[Tensor], Tensor]]
) -> Tensor:
    """The logits after the last of `ids` [T] with these patterns: [vocab_size]."""
    return run(at.model, ids[None], ["logits"], edits=patterns, logits_at=slice(-1, None))[
        "logits"
    ][0, -1]


def _write_steered(lm: LoadedModel, at: LoadedModel, ids: Tensor, most: int) -> str:
    """What the steered model `at` writes after `ids` [T], always with the likeliest token. At each
    step attention looks where it looks in `lm`. As in `generate`, an end token or the end of a task
    ends it.
    """
    written = list[int]()
    never = list(lm.tokenizer.unused_ids)
    for _ in progress.report_each(iter(range(most := to_write(lm, len(ids), most))), most, "token"):
        logits = _next_logits(at, ids, _patterns(lm, ids)).clone()
        logits[never] = -torch.inf
        token = logits.argmax()
        if int(token) in end_tokens(lm):
            break
        written.append(int(token))
        ids = lm.seen(torch.cat((ids, token[None])))
    return lm.tokenizer.continuation(written)


def _steer_models(
    lm: LoadedModel, direction: Direction, strengths: Sequence[float]
) -> list[LoadedModel]:
    return [lm.edited(direction * strength) for strength in strengths]


def _fixed_pattern(pattern: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda _: pattern


@check_settings
def count_turned(
    lm: LoadedModel,
    direction: str | Direction,
    toward: Sequence[str],
    away: Sequence[str],
    strength: float = 2.0,
) -> tuple[int, int]:
    """How many held-out texts of `away` go on with the direction as their partners of `toward` do
    without it, and of how many. Below strength 0 it is the other way round; pairs that go on alike
    in any case do not count. The arguments are those of `direction` and `steer`; both lists are
    equally long.
    """
    if len(toward) != len(away):
        raise ValueError(f"{len(toward):,} and {len(away):,} texts are no pairs")
    pairs = held_out_pairs(lm, toward, away)
    start, goal = ([pair[side] for pair in pairs] for side in ((1, 0) if strength > 0 else (0, 1)))
    (with_it,) = _steer_models(
        lm, directions.open_direction(direction, lm.model.config), (strength,)
    )
    plain = _guesses(lm, start)
    aim = _guesses(lm, goal)
    now = _guesses(with_it, start)
    differ = [place for place in range(len(plain)) if plain[place] != aim[place]]
    return sum(now[place] == aim[place] for place in differ), len(differ)


def held_out_pairs(
    lm: LoadedModel, toward: Sequence[str], away: Sequence[str]
) -> list[tuple[str, str]]:
    """The pairs of texts that no direction between these lists was found on."""
    first, second = (
        [tuple(lm.tokenizer.encode(text).ids) for text in texts] for texts in (toward, away)
    )
    (_, held_out), _ = split_lists(first, second, directions.HELD_OUT)
    return [(toward[index], away[index]) for index in held_out]


def _guesses(lm: LoadedModel, texts: Sequence[str]) -> list[int]:
    """The likeliest token after each text."""
    ends = (
        run(lm.model, lm.inputs(text)[0][None], ["logits"], logits_at=slice(-1, None))
        for text in texts
    )
    return [int(end["logits"][0, -1].argmax()) for end in ends]


@check_settings
def read_direction(lm: LoadedModel, path: str | Path) -> Direction:
    """The direction of a GGUF control vector (of llama.cpp, repeng or `write_direction`), kept
    under the name of its file.
    """
    path = Path(path)
    count = lm.model.config.n_layer
    vectors = control_vectors.read_vectors(path)
    digest = sha256(
        b"".join(
            f"{block}:".encode() + each.numpy().tobytes() for block, each in sorted(vectors.items())
        )
    )
    direction = Direction(
        fitted.name_with_digest(path.stem, digest.hexdigest()), vectors, np.full(count, np.nan)
    )
    directions.require_fit(direction, lm.model.config)
    directions.keep(direction)
    return direction


@check_settings
def write_direction(lm: LoadedModel, direction: str | Direction, path: str | Path) -> None:
    """Write a direction that is kept as a GGUF control vector. llama.cpp takes no vector after
    block 0, so in its eyes the file has none: a ValueError if the direction acts only there.
    """
    control_vectors.write(
        Path(path).absolute(),
        directions.open_direction(direction, lm.model.config).vectors,
        lm.name,
    )
