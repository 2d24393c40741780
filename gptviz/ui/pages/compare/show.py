"""The views of the page Compare: the same figure of A and of B on one scale, and the difference B − A around 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st

from gptviz.figures.changing import compared as figures
from gptviz.figures.kit.format import brief, percent
from gptviz.figures.kit.theme import OUTPUT, PATTERN
from gptviz.interp import compare
from gptviz.interp.compare import LENS, Compared, Moved
from gptviz.interp.reading import embeddings
from gptviz.interp.units.head_scores import SCORES
from gptviz.interp.units.unit import Unit
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.model import Config
from gptviz.model.costs.effort import MOST
from gptviz.ui.pages.compare import answers as answering
from gptviz.ui.pages.compare import rows as by_row
from gptviz.ui.pages.compare.sides import Sides, own_text, side
from gptviz.ui.pages.compare.weights import differing
from gptviz.ui.records.compare import ANSWERS, ATTENTION, ATTRIBUTION, EMBEDDINGS, HEADS, LOGIT_LENS, NEXT_TOKEN, ROWS, WEIGHTS
from gptviz.ui.shell.subject import ModelKey
from gptviz.ui.widgets import controls, escaped, in_quotes, jobs, show_figure, theme

# So many rows end within a window 800 pixels high.
SHOWN = 12
# A probability that is written "< 0.1 %" has no bar that could be seen.
LEAST_SHOWN = 0.001
MOST_CHANGED, LARGEST = "changed most", "differs most"
# More tokens than this would be cells narrower than a pixel: of a longer text the end is shown. The lens multiplies every layer
# by the whole vocabulary: with a large model it shows as many tokens as `MOST` allows on each side, and at least `FEWEST_TOKENS`.
MOST_TOKENS, FEWEST_TOKENS = 256, 16
Key = tuple[ModelKey, tuple[int, ...], ModelKey, tuple[int, ...]]


@dataclass(frozen=True)
class ViewNumbers:
    """The numbers behind a view, and the `call` of `gptviz.interp.compare` that computes them from `a` and `b`: two sides, or
    where it is `of_models` two models.
    """

    numbers: Callable[[], LabelledArray]
    call: str
    of_models: bool = False


# Shared by all sessions: read-only. A long text is read once for all comparisons.
@jobs.resource("Reading the text", max_entries=32)
def _distribution(key: ModelKey, ids: tuple[int, ...]) -> Float64Array:
    return compare.distribution(side(key, ids))


@st.cache_resource(max_entries=16, show_spinner=False)
def distributions(key: Key) -> Compared:
    """The probabilities of the next token of both sides."""
    a, b = key[:2], key[2:]
    of_a = own_text(*a).distribution
    return compare.next_token(side(*a), side(*b), (of_a, of_a if a == b else _distribution(*b)))


def next_token(sides: Sides) -> ViewNumbers:
    """The probability of each token to come next."""
    found = distributions(sides.key)
    some = compare.chosen(found, SHOWN, LEAST_SHOWN)
    assert some.difference is not None
    tops = [int(np.nanargmax(one.values)) for one in (found.a, found.b)]
    guesses = [
        f"{name} finds “{one.axes[0].labels[top]}” likeliest ({percent(float(one.values[top]))})"
        for name, one, top in zip("AB", (found.a, found.b), tops, strict=True)
    ]
    moved = compare.total_variation(found)
    _say_what_is_missing(found)
    alts = (
        f"Probability of the next token in A and in B. {'; '.join(guesses)}.",
        f"Difference of the probabilities, B minus A, for the {len(some.difference.values)} tokens that differ most.",
    )
    _bars(some, keys=("pairs", "differences"), alts=alts, more="what B finds likelier", in_percent=True)
    st.markdown(
        f"After the last token {escaped('; '.join(guesses))}. To make one of the other, **{percent(moved)}** of the probability "
        "would move."
    )
    return ViewNumbers(found.table, "compare.next_token(a, b)")


def _bars(some: Compared, *, keys: tuple[str, str], alts: tuple[str, str], more: str, in_percent: bool) -> None:
    """Bars of A and B on one scale, and next to them bars of the difference, which goes to the right for `more` in B."""
    assert some.difference is not None
    left, right = st.columns(2)
    top = max(float(np.nanmax(one.values, initial=0.0)) for one in (some.a, some.b))
    with left.container(gap="xsmall"):
        st.markdown("**A** and **B**, on one scale")
        show_figure(figures.pairs(some.a, some.b, theme(), limit=top, percent=in_percent), key=keys[0], alt=alts[0])
    with right.container(gap="xsmall"):
        st.markdown(f"**B − A**: to the right {more}")
        figure = figures.differences(some.difference, theme(), limit=some.largest, percent=in_percent)
        show_figure(figure, key=keys[1], alt=alts[1])


def _say_what_is_missing(found: Compared) -> None:
    """Where the vocabularies differ: how much of the probability of each side lies on tokens that the other lacks."""
    missing = [np.isnan(np.asarray(one.values, float)) for one in (found.a, found.b)]
    if not (missing[0].any() or missing[1].any()):
        return
    only_b, only_a = (float(np.nansum(one.values[gone])) for one, gone in ((found.b, missing[0]), (found.a, missing[1])))
    st.info(
        f"The vocabularies differ: tokens are matched by what they look like. {int(missing[1].sum()):,} tokens are A's alone, "
        f"with {percent(only_a)} of its probability, and {int(missing[0].sum()):,} are B's alone, with {percent(only_b)}: they "
        "have no difference.",
        icon=":material/difference:",
    )


@jobs.resource("Comparing every head", max_entries=8)
def _changed_heads(key: Key, last: int | None) -> LabelledArray | None:
    return compare.changed_heads(side(*key[:2]), side(*key[2:]), last)


@jobs.resource("Comparing", max_entries=16)
def _attention(key: Key, block: int, head: int | None, last: int | None) -> Compared:
    return compare.attention(side(*key[:2]), side(*key[2:]), block, head, last)


def _last(sides: Sides, most: int) -> int | None:
    """How many tokens at the end are shown, where a text has more than `most`, or None if all are."""
    longest = max(len(one.seen) for one in (sides.a, sides.b))
    if longest <= most:
        return None
    st.caption(f"Of a text of more than {most:,} tokens the last {most:,} are shown; all of it is read.")
    return most


def _in_call(last: int | None) -> str:
    return "" if last is None else f", last={last}"


def attention(sides: Sides) -> ViewNumbers | None:
    """The pattern of a head, or the mean of a block, or None if a model has no blocks."""
    configs = [one.lm.model.config for one in (sides.a, sides.b)]
    n_layer, n_head = min(config.n_layer for config in configs), min(config.n_head for config in configs)
    if not n_layer:
        st.info("One of the models has no blocks, and so no attention.", icon=":material/info:")
        return None
    last = _last(sides, MOST_TOKENS)
    table = _changed_heads(sides.key, last)
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
        help="Which head is compared, in both models; or the mean over the heads of a block. Without a choice, it is the head "
        "whose pattern differs most.",
    )
    block, head = options[chosen]
    what = f"mean of block {block}" if head is None else Unit("attention", block, head).title
    found = _attention(sides.key, block, head, last)
    if table is not None:
        moved = float(np.nanmean(table.values[block])) if head is None else float(table.values[block, head])
        st.markdown(
            f"**{what.capitalize()}**: {percent(moved)} of the attention of a query, on average, lies on other tokens in B."
        )
    _triple(found, limit=1.0, colour=PATTERN, height=400, key="attention", what=f"Attention of {what}")
    if table is not None and table.values.size > 1:
        st.markdown("**Every head**: the share of its attention that lies on other tokens")
        largest = max(float(np.max(table.values)), 1e-9)
        show_figure(
            figures.cells(table, theme(), limit=largest, signed=False, colour=PATTERN, height=240),
            key="heads that changed",
            alt=f"How much each head's pattern differs, block by head; most: {Unit('attention', *options[MOST_CHANGED]).title}.",
        )
    if len({(config.n_layer, config.n_head) for config in configs}) > 1:
        st.caption(f"Only the {n_layer} blocks and {n_head} heads that both models have can be chosen.")
    return ViewNumbers(found.table, f"compare.attention(a, b, block={block}, head={head}{_in_call(last)})")


def _triple(found: Compared, *, limit: float, colour: str, height: int, key: str, what: str) -> None:
    """A, B and their difference as cells; without a difference, why there is none."""
    if found.difference is None:
        st.info(f"{found.why}: cell by cell there is no difference. Both sides are shown.", icon=":material/difference:")
    places = st.columns(2 if found.difference is None else 3)
    for place, name, one in zip(places, "AB", (found.a, found.b), strict=False):
        with place:
            st.markdown(f"**{name}** ({one.unit.partition(' (')[0]}, 0 to {limit:.3g})")
            alt = f"{what} in {name}, {one.axes[0].name} by {one.axes[1].name}, from 0 to {limit:.3g}."
            shown = figures.cells(one, theme(), limit=limit, signed=bool(np.nanmin(one.values) < 0), colour=colour, height=height)
            show_figure(shown, key=f"{key} {name}", alt=alt)
    if found.difference is not None:
        with places[2]:
            st.markdown("**B − A**: blue where B has more")
            reach = found.largest
            show_figure(
                figures.cells(found.difference, theme(), limit=reach or 1.0, signed=True, height=height),
                key=f"{key} difference",
                alt=f"{what}, B minus A, from {brief(-reach)} to {brief(reach)}.",
            )


@st.cache_resource(max_entries=8, show_spinner="Comparing")
def _embeddings(key: Key, space: str) -> Moved:
    return compare.embeddings(side(*key[:2]), side(*key[2:]), space)


def tokens(sides: Sides) -> ViewNumbers | None:
    """Where the vectors of the tokens lie, or None if the vocabularies have too little in common."""
    spaces = embeddings.SPACES[:1] if all(one.lm.model.config.tied for one in (sides.a, sides.b)) else embeddings.SPACES
    space = spaces[0]
    if len(spaces) > 1:
        about = "Embedding: the vectors that tokens are read as. Unembedding: those that the last state is compared with."
        space = controls.select("Vectors", spaces, key="compared_space", help=about, segmented=True)
    try:
        # Prompts make no difference to the vectors of the vocabulary.
        found = _embeddings((sides.a.key, sides.a.seen[:1], sides.b.key, sides.b.seen[:1]), space)
    except ValueError as error:
        st.info(f"{escaped(str(error)).capitalize()}.", icon=":material/difference:")
        return None
    if sides.a.key == sides.b.key:
        st.info(
            "A and B are the same model: a prompt does not change the vectors of its tokens. Choose another step or model for B.",
            icon=":material/info:",
        )
    distance, labels = np.asarray(found.distance.values, float), found.distance.axes[0].labels
    order = np.argsort(-distance, kind="stable").tolist()
    names = ", ".join(f"“{labels[index]}”" for index in order[:3] if distance[index] > 0)
    shares = " and ".join(percent(share) for share in found.explained)
    moved = f" Most moved: {names}." if names else ""
    st.markdown(
        f"Both in one picture, along the axes in which they vary most together ({shares} of the variance). {escaped(moved)}"
    )
    if found.turned:
        st.caption(
            "The two models have no directions in common: both were brought to one size and turned to lie as near to each other "
            "as possible. What is left is the difference."
        )
    if any(found.left_out):
        st.caption(f"Left out: {found.left_out[0]:,} tokens that only A has, and {found.left_out[1]:,} that only B has.")
    left, right = st.columns([3, 2])
    with left:
        show_figure(
            figures.movers(found.points.a, found.points.b, found.distance, theme(), height=460),
            key="movers",
            alt=f"The vectors of the tokens in A and in B, in one picture.{moved}",
        )
    with right:
        st.markdown("**What moved most**, over all dimensions")
        axis = Axis("token", tuple(labels[index] for index in order[:SHOWN]))
        some = LabelledArray(distance[order[:SHOWN]], (axis,), found.distance.unit)
        show_figure(
            figures.differences(some, theme(), limit=float(np.max(some.values)), percent=False, signed=False),
            key="distances",
            alt=f"How far the tokens moved, over all dimensions.{moved}",
        )
    return ViewNumbers(found.points.table, f"compare.embeddings(a, b, {space!r}).points")


@jobs.resource("Reading every layer", max_entries=8)
def _lens(key: Key, quantity: str, last: int | None) -> Compared:
    return compare.logit_lens(side(*key[:2]), side(*key[2:]), quantity, last)


def lens(sides: Sides) -> ViewNumbers:
    """The guesses that the model would make if it stopped after each layer."""
    quantity = controls.select(
        "Of every layer and token",
        list(LENS),
        key="compared_lens",
        help="What the model's head makes of the stream after each layer: how likely its likeliest token is, how likely the "
        "token is that really comes, or how uncertain the guess is (entropy, in nats).",
        format_func=lambda name: {"entropy": "entropy"}.get(name, f"probability {LENS[name][0]}"),
        segmented=True,
    )
    each = max(_work_of_token(one.lm.model.config) for one in (sides.a, sides.b))
    last = _last(sides, max(FEWEST_TOKENS, min(MOST_TOKENS, int(MOST / each))))
    found = _lens(sides.key, quantity, last)
    limit = 1.0 if quantity != "entropy" else max(float(np.nanmax(one.values)) for one in (found.a, found.b))
    _triple(found, limit=limit, colour=OUTPUT, height=420, key="lens", what="What the lens reads")
    return ViewNumbers(found.table, f"compare.logit_lens(a, b, {quantity!r}{_in_call(last)})")


def _work_of_token(config: Config) -> int:
    """How many multiplications the lens does for one token: the unembedding after every layer."""
    return config.vocab_size * config.d_model * (1 + 2 * config.n_layer)


@jobs.resource("Adding up", max_entries=8)
def _attribution(key: Key, token: str) -> Compared:
    return compare.attribution(side(*key[:2]), side(*key[2:]), token)


def attribution(sides: Sides) -> ViewNumbers | None:
    """The amount that each part adds to the logit of a token, or None if nothing can be added up."""
    some = compare.chosen(distributions(sides.key), SHOWN, LEAST_SHOWN)
    assert some.difference is not None
    by_name = dict(zip(some.difference.axes[0].labels, some.difference.values.tolist(), strict=True))
    names = [name for name, value in by_name.items() if not np.isnan(value)]
    if not names:
        st.info("The vocabularies have none of these tokens in common: there is nothing to add up.", icon=":material/difference:")
        return None
    most = max(names, key=lambda name: abs(by_name[name]))
    chosen = controls.select(
        "Token",
        [LARGEST, *names],
        key="compared_token",
        help="Whose logit is added up, at the end of both texts. Without a choice, that of the token whose probability differs "
        "most.",
    )
    token = most if chosen == LARGEST else chosen
    try:
        found = _attribution(sides.key, token)
    except ValueError as error:
        st.info(f"{escaped(str(error)).capitalize()}.", icon=":material/info:")
        return None
    logits = [float(np.nansum(one.values)) for one in (found.a, found.b)]
    sums = f"**{logits[0]:.3f}** in A and **{logits[1]:.3f}** in B".replace("-", "−")
    st.markdown(f"The logit of {in_quotes(token)} is {sums}; the parts of each side add up to it.")
    parts = compare.chosen(found, SHOWN)
    alts = (
        f"What parts add to the logit of {token} in A and in B, those that differ most.",
        f"What parts add to the logit of {token}, B minus A.",
    )
    _bars(parts, keys=("parts", "part differences"), alts=alts, more="what adds more in B", in_percent=False)
    return ViewNumbers(found.table, f"compare.attribution(a, b, {token!r})")


@jobs.resource("Scoring every head", max_entries=16)
def _head_scores(key: Key, score: str) -> Compared:
    return compare.head_scores(side(*key[:2]), side(*key[2:]), score)


def heads(sides: Sides) -> ViewNumbers | None:
    """One score of every head, or None if a model has no blocks."""
    if not all(one.lm.model.config.n_layer for one in (sides.a, sides.b)):
        st.info("One of the models has no blocks, and so no heads.", icon=":material/info:")
        return None
    score = controls.select(
        "Score",
        list(compare.HEAD_SCORES),
        key="compared_score",
        help="What is measured of every head; the page Heads says more about each.",
        format_func=lambda name: SCORES[name].title,
    )
    st.caption(SCORES[score].about)
    found = _head_scores(sides.key, score)
    every = np.concatenate([np.asarray(one.values, float).ravel() for one in (found.a, found.b)])
    every = every[~np.isnan(every)]
    if not every.size:
        st.info("This score has no meaning for these texts: no token of them stands twice.", icon=":material/info:")
        return None
    limit = SCORES[score].high or float(every.max()) or 1.0
    _triple(found, limit=limit, colour=PATTERN, height=320, key="scores", what=f"The score {SCORES[score].title}")
    return ViewNumbers(found.table, f"compare.head_scores(a, b, {score!r})")


def answers(sides: Sides) -> ViewNumbers | None:
    """Sentences that both complete, beside the shares in their data, or None if one of them cannot read them."""
    sentences, words = answering.asked(sides)
    try:
        found = answering.found(sides, sentences, words)
    except ValueError as error:
        st.info(f"{escaped(str(error))}.", icon=":material/info:")
        return None
    answering.show(sides, sentences, words, found)
    asked = f"{list(sentences)!r}, {list(words)!r}"
    return ViewNumbers(found.table, f"compare.compared(a.answers({asked}), b.answers({asked}))", of_models=True)


def rows(sides: Sides) -> ViewNumbers | None:
    """The loss of single rows of the data, or None if B reads other tokens."""
    text = by_row.asked(sides)
    try:
        some, found = by_row.found(sides, text)
    except ValueError as error:
        st.info(f"{escaped(str(error))}.", icon=":material/info:")
        return None
    by_row.show(sides, some, found)
    own = f"a.data_rows({'' if text is None else repr(text)})"
    return ViewNumbers(found.table, f"compare.compared(a.losses_of_rows({own}), b.losses_of_rows({own}))", of_models=True)


def weights(sides: Sides) -> ViewNumbers:
    """How far each matrix of B is from that of A."""
    found = differing(sides)
    return ViewNumbers(found.table, "compare.weights(a, b)")


SHOWS: dict[str, Callable[[Sides], ViewNumbers | None]] = {
    NEXT_TOKEN: next_token,
    ATTENTION: attention,
    EMBEDDINGS: tokens,
    LOGIT_LENS: lens,
    ATTRIBUTION: attribution,
    HEADS: heads,
    ANSWERS: answers,
    ROWS: rows,
    WEIGHTS: weights,
}
