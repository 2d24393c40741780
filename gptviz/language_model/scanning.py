"""What stands out in a model that reads a prompt: heads of a known kind, what its guess comes from,
and where it is decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gptviz.figures.kit.format import brief, format_signed, percent
from gptviz.interp.changing.before_after import guess
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.changing.edits import edit_unit, edited_by_each
from gptviz.interp.explaining.attribution import attribute_logit, stream_at
from gptviz.interp.reading.lens import course
from gptviz.interp.reading.lens import lens as compute_lens
from gptviz.interp.units.head_scores import SCORES, head_scores
from gptviz.interp.units.unit import Unit, heads_and_mlps
from gptviz.machine import progress
from gptviz.model.costs.effort import LITTLE, effort
from gptviz.text.datasets.word_kinds import other_of_its_kind

from .core import LoadedModel, require
from .settings import check_settings
from .units import repeats_of

# A finding stands out if it is at least so far from what is usual, from 0 to 1.
LEAST = 0.2
# The kinds of heads that are looked for, each with what such a head does.
KINDS = {
    "induction": "looks at what followed an earlier copy of the token",
    "previous_token": "looks at the token just before",
    "duplicate_token": "looks at earlier copies of the token",
}


@dataclass(frozen=True)
class Finding:
    """Something that stands out."""

    page: str  #: the name of the page that shows it
    #: what the address of that page says besides model and prompt
    query: tuple[tuple[str, str], ...]
    sentence: str  #: what was found
    value: float  #: the number on that page
    #: the number that it is compared with: that of the middle head, or what is there before
    usual: float
    strength: float  #: how far the value is from what is usual, from 0 to 1

    def to_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self) | {"query": dict(self.query)}


@check_settings
def scan(lm: LoadedModel, prompt: str) -> tuple[Finding, ...]:
    """What stands out in a decoder that reads `prompt`; empty if nothing does. What the guess comes
    from is first, then what heads do on other texts; of both the most telling first.

    Every finding is compared with a number of the model itself: a head with the middle one of all
    heads, a part of the guess with the whole, both weighted by how much surer the guess is than one
    among equally likely tokens.
    """
    require(lm, "decoder", "only a decoder is scanned")
    ids = lm.inputs(prompt)[0].tolist()
    parts = (
        _kinds_of_heads(lm),
        _guess(lm, prompt, ids),
        _deciding_layer(lm, ids),
        _needed_head(lm, ids),
    )
    findings = [
        finding
        for part in progress.report_each(iter(parts), len(parts), "look")
        for finding in part
    ]
    return tuple(
        sorted(
            (finding for finding in findings if finding.strength >= LEAST),
            key=lambda finding: (finding.page == "heads", -finding.strength),
        )
    )


@check_settings
def rival(lm: LoadedModel, prompt: str, token: int) -> int | None:
    """The wrong answer to a prompt for which `token` is the right one.

    If the model's task has known answers it is theirs; otherwise it is the other word of the same
    kind in the prompt, such as a second name. It is None if there is no such token.
    """
    known = () if lm.task is None else lm.task.contrasts()
    for contrast in known:
        if contrast.clean == prompt and lm.token(contrast.right) == token:
            return lm.token(contrast.wrong)
    piece = lm.tokenizer.piece(token)
    other = other_of_its_kind(prompt, piece.strip())
    if other is None:
        return None
    return lm.tokenizer.id_of(piece.replace(piece.strip(), other))


def _kinds_of_heads(lm: LoadedModel) -> Iterator[Finding]:
    """The head that is most of each kind, over repeated random tokens."""
    repeats = repeats_of(lm)
    if repeats is None or not lm.model.config.n_layer:
        return
    values = head_scores(lm.model, repeats).values
    for name, does in KINDS.items():
        scores = values[name]
        usual = float(np.nanmedian(values[name]))
        if np.isnan(scores).all():
            continue
        block, index = np.unravel_index(np.nanargmax(scores), scores.shape)
        head = Unit("attention", int(block), int(index))
        value = float(scores[block, index])
        sentence = (
            f"Over random tokens that stand twice, {head.title} {does} with {percent(value)} of "
            "its "
            f"attention; half of all heads with {percent(usual)} or less."
        )
        query = (
            ("over", "Repeated random tokens"),
            ("score", SCORES[name].title),
            ("unit", head.name),
        )
        yield Finding("heads", query, sentence, value, usual, value - usual)


def _guess(lm: LoadedModel, prompt: str, ids: list[int]) -> Iterator[Finding]:
    """The two heads or MLPs that add most to the likeliest token, as far as it is ahead of its
    rival.
    """
    try:
        stream = stream_at(lm.model, ids)
    except ValueError:  # a part of the model lets no sum through
        return
    order = stream.logits.argsort(descending=True).tolist()
    token = order[0]
    other = rival(lm, prompt, order[0])
    attribution = attribute_logit(stream, token, order[1] if other is None else other)
    units = sorted(
        (
            part
            for part in attribution.parts
            if part.name in attribution.sources or part.name.endswith(".mlp")
        ),
        key=lambda part: -part.value,
    )
    if units:
        usual = float(np.median([part.value for part in units]))
    else:
        usual = 0.0
    label = lm.tokenizer.label
    whole = f"the {brief(attribution.logit)} points of “{label(token)}”"
    if attribution.against is not None:
        whole = (
            f"the {brief(attribution.logit)} points by which “{label(token)}” leads "
            f"“{label(attribution.against)}”"
        )
    # How much likelier the likeliest token is than each of equally likely ones, from 0 to 1.
    reading = Inputs(lm.model.embed.weight.new_tensor([ids]).long())
    certainty = float(guess(lm.model, reading).max()) - 1 / lm.model.config.vocab_size
    for part in units[:2]:
        if attribution.logit > 0:
            strength = certainty * min(1.0, (part.value - usual) / attribution.logit)
        else:
            strength = 0.0
        sentence = f"{_capital_first(part.title)} adds {format_signed(part.value)} to {whole}."
        yield Finding("attribution", (("part", part.name),), sentence, part.value, usual, strength)


def _deciding_layer(lm: LoadedModel, ids: list[int]) -> Iterator[Finding]:
    """The layer that raises the probability of the final guess most."""
    lens = compute_lens(lm.model, ids, last=1)
    if len(lens.layers) < 2:
        return
    risen = course(
        lm.model, lens, len(lens.layers) - 1, 0, lm.tokenizer.labels(), count=1
    ).probability.values[0]
    layer = int(np.diff(risen).argmax()) + 1
    before = float(risen[layer - 1])
    after = float(risen[layer])
    label = lm.tokenizer.label(int(lens.top[-1, 0, 0]))
    sentence = (
        f"{_capital_first(lens.layers[layer].title)} decides: “{label}” goes from "
        f"{percent(before)} to "
        f"{percent(after)} there."
    )
    query = (("layer", lens.layers[layer].name), ("position", str(len(ids) - 1)))
    yield Finding("lens", query, sentence, after, before, after - before)


def _needed_head(lm: LoadedModel, ids: list[int]) -> Iterator[Finding]:
    """The head without which the likeliest token loses most of its probability, where all heads are
    tried quickly.
    """
    heads = [unit for unit in heads_and_mlps(lm.model.config) if unit.is_head]
    if not heads or effort(lm.model, len(ids), len(heads)) > LITTLE:
        return
    reading = Inputs(lm.model.embed.weight.new_tensor([ids]).long())
    whole = guess(lm.model, reading)
    token = int(whole.argmax())
    twins = edited_by_each(lm.model, list(map(edit_unit, heads)))
    without = {edit.unit: float(guess(twin, reading)[token]) for edit, twin in twins}
    head = min(without, key=without.__getitem__)
    before = float(whole[token])
    after = without[head]
    sentence = (
        f"Without {head.title}, “{lm.tokenizer.label(token)}” goes from {percent(before)} to "
        f"{percent(after)}."
    )
    yield Finding("switch_off", (("edits", head.name),), sentence, after, before, before - after)


def _capital_first(text: str) -> str:
    return text[:1].upper() + text[1:]
