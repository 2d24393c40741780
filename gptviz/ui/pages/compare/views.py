"""Each view of what is different."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from gptviz.figures.changing import compared as figures
from gptviz.figures.kit.format import brief, format_count, percent
from gptviz.figures.kit.labelled import cells
from gptviz.figures.kit.theme import OUTPUT, PATTERN
from gptviz.interp import compare
from gptviz.interp.compare import LENS, Compared
from gptviz.interp.reading import embeddings
from gptviz.interp.units.head_scores import SCORES
from gptviz.interp.units.unit import Unit
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.model.costs.effort import MOST
from gptviz.ui.records.compare import (
    ANSWERS,
    ATTENTION,
    ATTRIBUTION,
    EMBEDDINGS,
    HEADS,
    LOGIT_LENS,
    NEXT_TOKEN,
    UNITS,
    WEIGHTS,
)
from gptviz.ui.shell.close import NOTHING, PageResult
from gptviz.ui.shell.subject import ModelKey, Subject, edits, language_model, model_key, scrubber
from gptviz.ui.shell.subject.unit_titles import said_title
from gptviz.ui.widgets import (
    Try,
    capitalise_text,
    controls,
    escape_markdown,
    in_quotes,
    jobs,
    say_answer,
    show_figure,
    theme,
)

from .answers import answers
from .sides import (
    EDITS,
    MODEL,
    PROMPT,
    SAME,
    STEP,
    Key,
    Sides,
    ask_both,
    code,
    other_prompt,
    own_text,
    short_names,
    side,
    twin,
)
from .weights import weights

# So many rows end within a window 800 pixels high.
SHOWN = 12
# A probability that is written "< 0.1 %" has no bar that could be seen.
LEAST_SHOWN = 0.001
MOST_CHANGED = "changed most"
LARGEST = "differs most"
# More tokens than this would be cells narrower than a pixel: of a longer text the end is shown. The
# lens multiplies every layer by the whole vocabulary: with a large model it shows as many tokens as
# `MOST` allows on each side, and at least `FEWEST_TOKENS`.
MOST_TOKENS = 256
FEWEST_TOKENS = 16


def next_token(sides: Sides) -> PageResult:
    """The probability of each token to come next."""
    both = distributions(sides.key)
    some = compare.chosen(both, SHOWN, LEAST_SHOWN)
    assert some.difference is not None
    tops = [int(np.nanargmax(one.values)) for one in (both.a, both.b)]
    labels, shares = zip(
        *(
            (one.axes[0].labels[top], percent(float(one.values[top])))
            for one, top in zip((both.a, both.b), tops, strict=True)
        ),
        strict=True,
    )
    a, b = called = short_names(sides)
    if labels[0] == labels[1]:
        guesses = f"Both guess “{labels[0]}”: {a} with {shares[0]}, {b} with {shares[1]}"
    else:
        guesses = f"{a} guesses “{labels[0]}” with {shares[0]}, {b} “{labels[1]}” with {shares[1]}"
    moved = compare.total_variation(both)
    _say_what_is_missing(both)
    alts = (
        f"Probability of the next token in A and in B. {guesses}.",
        f"Difference of the probabilities, B minus A, for the {len(some.difference.values)} "
        "tokens that differ most.",
    )
    say_answer(
        f"{escape_markdown(guesses)}.",
        f"The two answers differ in {percent(moved)} of the probability.",
    )
    _bars(
        some,
        keys=("pairs", "differences"),
        alts=alts,
        more="what B finds likelier",
        in_percent=True,
        called=called,
    )
    return PageResult(both.table, code(sides, "compare.next_token(a, b)"))


@st.cache_resource(max_entries=16, show_spinner=False)
def distributions(key: Key) -> Compared:
    """The probabilities of the next token of both sides."""
    a = key[:2]
    b = key[2:]
    of_a = own_text(*a).distribution
    return compare.next_token(side(*a), side(*b), (of_a, of_a if a == b else _distribution(*b)))


# Shared by all sessions: read-only. A long text is read once for all comparisons.
@jobs.resource("Reading the text", max_entries=32)
def _distribution(key: ModelKey, ids: tuple[int, ...]) -> Float64Array:
    return compare.distribution(side(key, ids))


def _say_what_is_missing(both: Compared) -> None:
    """Where the vocabularies differ: how much of the probability of each side lies on tokens that
    the other lacks.
    """
    missing = [np.isnan(np.asarray(one.values, float)) for one in (both.a, both.b)]
    if not (missing[0].any() or missing[1].any()):
        return
    only_b, only_a = (
        float(np.nansum(one.values[gone]))
        for one, gone in ((both.b, missing[0]), (both.a, missing[1]))
    )
    st.info(
        "The vocabularies differ: tokens are matched by what they look like. "
        f"{int(missing[1].sum()):,} tokens are only in A, "
        f"with {percent(only_a)} of its probability, and {int(missing[0].sum()):,} only in B, "
        f"with {percent(only_b)}: they "
        "have no difference.",
        icon=":material/difference:",
    )


def _bars(
    some: Compared,
    *,
    keys: tuple[str, str],
    alts: tuple[str, str],
    more: str,
    in_percent: bool,
    called: tuple[str, str],
) -> None:
    """Bars of A and B on one scale, and next to them bars of the difference, which goes to the
    right for `more` in B.
    """
    assert some.difference is not None
    left, right = st.columns(2)
    top = max(float(np.nanmax(one.values, initial=0.0)) for one in (some.a, some.b))
    with left.container(gap="xsmall"):
        st.markdown("**A** and **B**, on one scale")
        show_figure(
            figures.pairs(some.a, some.b, theme(), limit=top, percent=in_percent, called=called),
            key=keys[0],
            alt=alts[0],
        )
    with right.container(gap="xsmall"):
        st.markdown(f"**B − A**: to the right {more}")
        figure = figures.differences(
            some.difference, theme(), limit=some.largest, percent=in_percent
        )
        show_figure(figure, key=keys[1], alt=alts[1])


def attention(sides: Sides) -> PageResult:
    """The pattern of a head, or the mean of a block, unless a model has no blocks."""
    configs = [one.lm.model.config for one in (sides.a, sides.b)]
    n_layer = min(config.n_layer for config in configs)
    n_head = min(config.n_head for config in configs)
    if not n_layer:
        st.info("One of the models has no blocks, and so no attention.", icon=":material/info:")
        return NOTHING
    last = _last_tokens(sides, MOST_TOKENS)
    table, _ = ask_both(sides.key, compare.changed_heads, last=last)
    options: dict[str, tuple[int, int | None]] = {}
    if table is not None:
        options[MOST_CHANGED] = divmod(int(np.nanargmax(table.values)), n_head)
    for index in range(n_layer):
        options |= {Unit("attention", index, head).title: (index, head) for head in range(n_head)}
        options[f"mean of block {index}"] = index, None
    chosen = controls.select(
        "Head",
        list(options),
        key="compared_head",
        help="Which head is compared, in both models; or the mean over the heads of a block. "
        "Without a choice, it is the head "
        "whose pattern differs most.",
    )
    block, head = options[chosen]
    if head is None:
        what = f"mean of block {block}"
    else:
        what = Unit("attention", block, head).title
    both, call = ask_both(sides.key, compare.attention, block=block, head=head, last=last)
    if table is not None:
        if head is None:
            moved = float(np.nanmean(table.values[block]))
        else:
            moved = float(table.values[block, head])
        st.markdown(
            f"**{what.capitalize()}**: {percent(moved)} of the attention of a query, on average, "
            "lies on other tokens in B."
        )
    _triple(
        both, limit=1.0, colour=PATTERN, height=400, key="attention", what=f"Attention of {what}"
    )
    if table is not None and table.values.size > 1:
        st.markdown("**Every head**: the share of its attention that lies on other tokens")
        largest = max(float(np.max(table.values)), 1e-9)
        show_figure(
            cells(table, theme(), limit=largest, signed=False, colour=PATTERN, height=240),
            key="heads that changed",
            alt="How much each head's pattern differs, block by head; most: "
            f"{Unit('attention', *options[MOST_CHANGED]).title}.",
        )
    if len({(config.n_layer, config.n_head) for config in configs}) > 1:
        st.caption(
            f"Only the {n_layer} blocks and {n_head} heads that both models have can be chosen."
        )
    return PageResult(both.table, code(sides, call))


def _last_tokens(sides: Sides, most: int) -> int | None:
    """How many tokens at the end are shown, where a text has more than `most`, or None if all
    are.
    """
    longest = max(len(one.seen) for one in (sides.a, sides.b))
    if longest <= most:
        return None
    st.caption(
        f"Of a text of more than {most:,} tokens the last {most:,} are shown; all of it is read."
    )
    return most


def _triple(both: Compared, *, limit: float, colour: str, height: int, key: str, what: str) -> None:
    """A, B and their difference as cells; without a difference, why there is none."""
    if both.difference is None:
        st.info(
            f"{both.why}: cell by cell there is no difference. Both sides are shown.",
            icon=":material/difference:",
        )
    places = st.columns(2 if both.difference is None else 3)
    for place, name, one in zip(places, "AB", (both.a, both.b), strict=False):
        with place:
            st.markdown(f"**{name}** ({one.unit.partition(' (')[0]}, 0 to {limit:.3g})")
            alt = (
                f"{what} in {name}, {one.axes[0].name} by {one.axes[1].name}, from 0 to "
                f"{limit:.3g}."
            )
            shown = cells(
                one,
                theme(),
                limit=limit,
                signed=bool(np.nanmin(one.values) < 0),
                colour=colour,
                height=height,
            )
            show_figure(shown, key=f"{key} {name}", alt=alt)
    if both.difference is not None:
        with places[2]:
            st.markdown("**B − A**: blue where B has more")
            reach = both.largest
            show_figure(
                cells(both.difference, theme(), limit=reach or 1.0, signed=True, height=height),
                key=f"{key} difference",
                alt=f"{what}, B minus A, from {brief(-reach)} to {brief(reach)}.",
            )


def tokens(sides: Sides) -> PageResult:
    """Where the vectors of the tokens lie, unless the vocabularies have too little in common."""
    spaces = (
        embeddings.SPACES[:1]
        if all(one.lm.model.config.tied for one in (sides.a, sides.b))
        else embeddings.SPACES
    )
    space = spaces[0]
    if len(spaces) > 1:
        hint = (
            "Embedding: the vectors that tokens are read as. Unembedding: those that the last "
            "state is compared with."
        )
        space = controls.select("Vectors", spaces, key="compared_space", help=hint, segmented=True)
    try:
        # Prompts make no difference to the vectors of the vocabulary.
        key = sides.a.key, sides.a.seen[:1], sides.b.key, sides.b.seen[:1]
        both, call = ask_both(key, compare.embeddings, space=space)
    except ValueError as error:
        st.info(f"{escape_markdown(str(error)).capitalize()}.", icon=":material/difference:")
        return NOTHING
    if sides.a.key == sides.b.key:
        st.info(
            "A and B are the same model: a prompt does not change the vectors of its tokens. "
            "Choose another step or model for B.",
            icon=":material/info:",
        )
    distance = np.asarray(both.distance.values, float)
    labels = both.distance.axes[0].labels
    order = np.argsort(-distance, kind="stable").tolist()
    names = ", ".join(in_quotes(labels[index]) for index in order[:3] if distance[index] > 0)
    shares = " and ".join(percent(share) for share in both.explained)
    moved = f" Most moved: {names}." if names else ""
    st.markdown(
        f"Both in one picture, along the axes in which they vary most together ({shares} of the "
        f"variance).{moved}"
    )
    if both.turned:
        st.caption(
            "The two models have no directions in common: both were brought to one size and "
            "turned to lie as near to each other "
            "as possible. What is left is the difference."
        )
    if any(both.left_out):
        st.caption(
            f"Left out: {both.left_out[0]:,} tokens that only A has, and {both.left_out[1]:,} "
            "that only B has."
        )
    left, right = st.columns([3, 2])
    with left:
        show_figure(
            figures.movers(both.points.a, both.points.b, both.distance, theme(), height=460),
            key="movers",
            alt=f"The vectors of the tokens in A and in B, in one picture.{moved}",
        )
    with right:
        st.markdown("**What moved most**, over all dimensions")
        axis = Axis("token", tuple(labels[index] for index in order[:SHOWN]))
        some = LabelledArray(distance[order[:SHOWN]], (axis,), both.distance.unit)
        show_figure(
            figures.differences(
                some, theme(), limit=float(np.max(some.values)), percent=False, signed=False
            ),
            key="distances",
            alt=f"How far the tokens moved, over all dimensions.{moved}",
        )
    return PageResult(both.points.table, code(sides, f"{call}.points"))


def lens(sides: Sides) -> PageResult:
    """The guesses that the model would make if it stopped after each layer."""
    quantity = controls.select(
        "Of every layer and token",
        list(LENS),
        key="compared_lens",
        help="What the model's head makes of the stream after each layer: how likely its likeliest "
        "token is, how likely the "
        "token is that really comes, or how uncertain the guess is (entropy, in nats).",
        format_func=lambda name: {"entropy": "entropy"}.get(name, f"probability {LENS[name][0]}"),
        segmented=True,
    )
    # What is multiplied for one token: the unembedding after every layer.
    configs = [one.lm.model.config for one in (sides.a, sides.b)]
    each = max(config.vocab_size * config.d_model * (1 + 2 * config.n_layer) for config in configs)
    last = _last_tokens(sides, max(FEWEST_TOKENS, min(MOST_TOKENS, int(MOST / each))))
    both, call = ask_both(sides.key, compare.logit_lens, quantity=quantity, last=last)
    if quantity != "entropy":
        limit = 1.0
    else:
        limit = max(float(np.nanmax(one.values)) for one in (both.a, both.b))
    _triple(both, limit=limit, colour=OUTPUT, height=420, key="lens", what="What the lens reads")
    return PageResult(both.table, code(sides, call))


def attribution(sides: Sides) -> PageResult:
    """The amount that each part adds to the logit of a token, unless nothing can be added up."""
    some = compare.chosen(distributions(sides.key), SHOWN, LEAST_SHOWN)
    assert some.difference is not None
    by_name = dict(
        zip(some.difference.axes[0].labels, some.difference.values.tolist(), strict=True)
    )
    names = [name for name, value in by_name.items() if not np.isnan(value)]
    if not names:
        st.info(
            "The vocabularies have none of these tokens in common: there is nothing to add up.",
            icon=":material/difference:",
        )
        return NOTHING
    most = max(names, key=lambda name: abs(by_name[name]))
    chosen = controls.select(
        "Token",
        [LARGEST, *names],
        key="compared_token",
        help="Whose logit is added up, at the end of both texts. Without a choice, that of the "
        "token whose probability differs "
        "most.",
    )
    token = most if chosen == LARGEST else chosen
    try:
        both, call = ask_both(sides.key, compare.attribution, token=token)
    except ValueError as error:
        st.info(f"{escape_markdown(str(error)).capitalize()}.", icon=":material/info:")
        return NOTHING
    logits = [float(np.nansum(one.values)) for one in (both.a, both.b)]
    sums = f"**{logits[0]:.3f}** in A and **{logits[1]:.3f}** in B".replace("-", "−")
    st.markdown(f"The logit of {in_quotes(token)} is {sums}; the parts of each side add up to it.")
    parts = compare.chosen(both, SHOWN)
    alts = (
        f"What parts add to the logit of {token} in A and in B, those that differ most.",
        f"What parts add to the logit of {token}, B minus A.",
    )
    _bars(
        parts,
        keys=("parts", "part differences"),
        alts=alts,
        more="what adds more in B",
        in_percent=False,
        called=short_names(sides),
    )
    return PageResult(both.table, code(sides, call))


def heads(sides: Sides) -> PageResult:
    """One score of every head, unless a model has no blocks."""
    if not all(one.lm.model.config.n_layer for one in (sides.a, sides.b)):
        st.info("One of the models has no blocks, and so no heads.", icon=":material/info:")
        return NOTHING
    score = controls.select(
        "Score",
        list(compare.HEAD_SCORES),
        key="compared_score",
        help="What is measured of every head; the page Heads says more about each.",
        format_func=lambda name: SCORES[name].title,
    )
    st.caption(SCORES[score].about)
    both, call = ask_both(sides.key, compare.head_scores, score=score)
    every = np.concatenate([np.asarray(one.values, float).ravel() for one in (both.a, both.b)])
    every = every[~np.isnan(every)]
    if not every.size:
        st.info(
            "This score has no meaning for these texts: no token of them stands twice.",
            icon=":material/info:",
        )
        return NOTHING
    limit = SCORES[score].high or float(every.max()) or 1.0
    _triple(
        both,
        limit=limit,
        colour=PATTERN,
        height=320,
        key="scores",
        what=f"The score {SCORES[score].title}",
    )
    return PageResult(both.table, code(sides, call))


def units(sides: Sides) -> PageResult:
    """The mean number of each unit of a layer over the text of each side: neurons, heads, or the
    features of a dictionary; unless the models have no such layer.
    """
    config = sides.a.lm.model.config
    # a dictionary is fitted to a model as it was saved last
    last = language_model(scrubber.as_saved_last(sides.a.key).unedited)
    layers = [Unit("dictionary", called=name) for name in last.dictionaries()]
    for block in range(config.n_layer):
        layers += [Unit("mlp", block)] if config.mlp_size else []
        layers.append(Unit("attention", block))
    if not layers:
        st.info("A has no blocks, and so no neurons and no heads.", icon=":material/info:")
        return NOTHING
    named = {one.title: one for one in layers}
    title = controls.select(
        "Layer",
        list(named),
        key="compared_layer",
        help="Whose units are compared: the features of a dictionary, the neurons of an MLP, or the "
        "heads of an attention.",
        label_visibility="collapsed",
    )
    layer = named[title]
    try:
        both, call = ask_both(sides.key, compare.units, layer=layer.layer)
    except ValueError as error:
        st.info(f"{escape_markdown(str(error)).capitalize()}.", icon=":material/info:")
        return NOTHING
    if both.difference is None:
        st.info(f"{both.why}: unit by unit there is no difference.", icon=":material/difference:")
        return NOTHING
    most = int(np.abs(both.difference.values).argmax())
    of_a, of_b = (brief(float(one.values[most])) for one in (both.a, both.b))
    unit = said_title(sides.a.key, replace(layer, index=most))
    if both.largest:
        say_answer(
            f"{capitalise_text(unit)} differs most: {both.a.unit} {of_a} in A, {of_b} in B.",
            "Each number is the mean over the tokens of the text.",
        )
    else:
        say_answer(f"No {layer.kind} of this layer differs.")
    some = compare.chosen(both, SHOWN)
    alts = (
        f"The mean {both.a.unit} in A and in B, of the units of the {title} that differ most.",
        f"The mean {both.a.unit}, B minus A, of the units of the {title} that differ most.",
    )
    _bars(
        some,
        keys=("units", "unit differences"),
        alts=alts,
        more="what is larger in B",
        in_percent=False,
        called=short_names(sides),
    )
    return PageResult(both.table, code(sides, call))


SHOWS: dict[str, Callable[[Sides], PageResult]] = {
    NEXT_TOKEN: next_token,
    ATTENTION: attention,
    EMBEDDINGS: tokens,
    LOGIT_LENS: lens,
    ATTRIBUTION: attribution,
    HEADS: heads,
    UNITS: units,
    ANSWERS: answers,
    WEIGHTS: weights,
}


def tries(sides: Sides) -> list[Try]:
    """The suggestions: a step of training, another token, a head switched off; each sentence is
    computed for this model.
    """
    offers = [
        _half_way(sides.a),
        _other_data(sides.a),
        _training(sides.a),
        _other_token(sides.a),
        _without_head(sides.a),
    ]
    if not np.isfinite(distributions(sides.key).a.values).any():
        return []
    return [offer for offer in offers if offer is not None]


def _half_way(a: Subject) -> Try | None:
    """A LoRA adapter half way to its base."""
    if a.lm.base is None or a.key.edits:
        return None
    half = edits.at_strength(a.key, 0.5)
    moved, token, tuned, then = _moved_probability(a.key, a.seen, half, a.seen)
    notice = (
        f"A is {escape_markdown(a.lm.base.name)} with its adapter as trained. With half of its "
        "strength "
        f"{token} has {percent(then)} "
        f"instead of {percent(tuned)}, and {percent(moved)} of the probability moves. The slider "
        "above does so on every page."
    )
    return Try("Half the adapter", notice, _state(**{EDITS: ", ".join(half.edits)}))


def _moved_probability(
    a: ModelKey, a_ids: tuple[int, ...], b: ModelKey, b_ids: tuple[int, ...]
) -> tuple[float, str, float, float]:
    """How much probability moves, and the likeliest token of A with its probability in A and in
    B.
    """
    both = distributions((a, a_ids, b, b_ids))
    top = int(np.nanargmax(both.a.values))
    before = float(both.a.values[top])
    after = float(np.nan_to_num(both.b.values[top]))
    return compare.total_variation(both), in_quotes(both.a.axes[0].labels[top]), before, after


def _state(**chosen: Any) -> dict[str, Any]:
    return {MODEL: SAME, PROMPT: "", EDITS: "", **chosen}


def _other_data(a: Subject) -> Try | None:
    """Another model of the same task with other settings: what both answer to the first question of
    the task.
    """
    sentences, words = ((), ()) if a.lm.task is None else a.lm.task.questions()
    other = twin(a.key.name)
    if not sentences or other is None:
        return None
    b = language_model(model_key(other, a.key.device, None, a.key.precision))
    try:
        likely = [float(lm.answers(sentences[:1], words[:1]).values[0, 0]) for lm in (a.lm, b)]
    except ValueError:  # it has other words
        return None
    notice = (
        f"{escape_markdown(a.key.name)} and {escape_markdown(other)} were trained on other shares "
        "of the same "
        "sentences. After "
        f"{in_quotes(sentences[0])} one gives {in_quotes(words[0])} {percent(likely[0])}, the "
        f"other {percent(likely[1])}: what "
        "are the shares in their data?"
    )
    return Try("Other data", notice, _state(**{MODEL: other, "compared": ANSWERS}))


def _training(a: Subject) -> Try | None:
    """The model at the first of its snapshots, as a rule before its training."""
    steps = scrubber.steps(a.key.name)
    if len(steps) < 2 or a.key.step is not None:
        return None
    moved, token, last, then = _moved_probability(
        a.key, a.seen, scrubber.at_step(a.key, steps[0]), a.seen
    )
    notice = (
        f"After {format_count(steps[0], 'step')} {token} had {percent(then)}, and has "
        f"{percent(last)} "
        "now: since then "
        f"{percent(moved)} of the probability of the next token moved."
    )
    return Try("Where it began", notice, _state(**{STEP: str(steps[0])}))


def _other_token(a: Subject) -> Try | None:
    changed = other_prompt(a)
    ids = tuple(a.lm.tokenizer.encode(changed).ids)
    if (
        len(ids) != len(a.seen)
        or sum(one != other for one, other in zip(a.seen, ids, strict=True)) != 1
    ):
        return None
    moved, token, before, after = _moved_probability(a.key, a.seen, a.key, ids)
    at = next(i for i, (one, other) in enumerate(zip(a.seen, ids, strict=True)) if one != other)
    label = a.lm.tokenizer.label
    notice = (
        f"With {in_quotes(label(ids[at]))} in the place of {in_quotes(label(a.seen[at]))} at "
        f"position {at}, {token} goes from "
        f"{percent(before)} to {percent(after)}, and {percent(moved)} of the probability moves."
    )
    if scrubber.steps(a.key.name):
        step = {STEP: scrubber.LAST if a.key.step is None else str(a.key.step)}
    else:
        step = {}
    return Try("One other token", notice, _state(**{PROMPT: changed, **step}))


def _without_head(a: Subject) -> Try | None:
    """B without the head that adds most to the model's guess."""
    strongest = own_text(a.key, a.seen).strongest
    if strongest is None:
        return None
    name = strongest.name
    title = strongest.title
    value = strongest.value
    listed = [*(edit for edit in a.key.edits if edit.partition("=")[0] != name), name]
    try:
        _, token, before, after = _moved_probability(
            a.key, a.seen, replace(a.key, edits=tuple(listed)), a.seen
        )
    except ValueError:  # there are as many edits as a model may have
        return None
    notice = (
        f"Of all heads, {title} adds most to the logit of the likeliest token, {token}: "
        f"{brief(value)}. Switched off in B, that "
        f"token goes from {percent(before)} to {percent(after)}."
    )
    if scrubber.steps(a.key.name):
        step = {STEP: scrubber.LAST if a.key.step is None else str(a.key.step)}
    else:
        step = {}
    return Try("Without its strongest head", notice, _state(**{EDITS: ", ".join(listed), **step}))
