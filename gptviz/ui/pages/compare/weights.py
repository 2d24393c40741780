"""The view Weights of the page Compare: by how much each matrix differs, in which directions, and
what that did to the losses.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from gptviz.figures.changing import strength as strengths
from gptviz.figures.kit.format import brief, percent
from gptviz.figures.kit.labelled import cells
from gptviz.figures.kit.theme import OUTPUT
from gptviz.interp import compare
from gptviz.interp.changing.strength import losses_along
from gptviz.interp.compare import Compared
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.language_model.core import data_title
from gptviz.model import precision
from gptviz.model.lora import MergedTransformer
from gptviz.ui.shell.close import PageResult
from gptviz.ui.shell.subject import ModelKey, edits, language_model, model_key
from gptviz.ui.views import held_out
from gptviz.ui.widgets import controls, escape_markdown, in_quotes, jobs, show_figure, theme

from .sides import Sides, ask_both, code

MOST = "differs most"
# Singular values above this share of the largest are counted: smaller ones are rounding.
COUNTED = 1e-4
# So many singular values are drawn at least, and else twice as many as are counted.
FEWEST_SHOWN = 16


def weights(sides: Sides) -> PageResult:
    """How far every matrix of B is from that of A, its singular values, what that does to the text
    on screen, and for an adapter the losses along its strength.
    """
    both, call = ask_both((sides.a.key, (), sides.b.key, ()), compare.weights)
    if both.difference is None:
        st.info(
            f"{both.why}: only models of one shape have a difference of weights.",
            icon=":material/difference:",
        )
    elif not both.largest:
        st.info(
            "A and B have the same weights: nothing differs. Choose another model or step for B.",
            icon=":material/info:",
        )
    else:
        _heat_map(sides, both)
    _along_strength(sides)
    return PageResult(both.table, code(sides, call))


def _heat_map(sides: Sides, both: Compared) -> None:
    shares = compare.relative(both)
    rows, columns = (axis.labels for axis in shares.axes)
    there = [
        (row, column)
        for row, column in np.ndindex(shares.values.shape)
        if not np.isnan(shares.values[row, column])
    ]
    names = {
        _title(rows[row], columns[column]): float(shares.values[row, column])
        for row, column in there
    }
    paths = {
        _title(rows[row], columns[column]): _path(rows[row], columns[column])
        for row, column in there
    }
    most = max(names, key=names.__getitem__)
    if np.isfinite(names[most]):
        much = f"‖B − A‖ is **{percent(names[most])}** of ‖A‖"
    else:
        much = "in A all its numbers are 0"
    limit = max((share for share in names.values() if np.isfinite(share)), default=0.0) or 1.0
    unchanged = sum(1 for share in names.values() if share == 0)
    if unchanged:
        same = f" {unchanged} of {len(names)} matrices are the same to the bit."
    else:
        same = ""
    st.markdown(f"Of all matrices, **{escape_markdown(most)}** differs most: {much}.{same}")
    _on_the_text(sides)
    left, right = st.columns([3, 2])
    with left:
        st.markdown("**Every matrix**: ‖B − A‖ as a share of ‖A‖")
        show_figure(
            cells(
                shares,
                theme(),
                limit=limit,
                signed=False,
                colour=OUTPUT,
                height=max(300, 180 + 10 * len(rows)),
            ),
            key="weights that differ",
            alt=f"How far each matrix of B is from that of A, block by matrix; most: {most}: "
            f"{much.replace('**', '')}.",
        )
    with right:
        chosen = controls.select(
            "Matrix",
            [MOST, *names],
            key="compared_matrix",
            help="Whose difference is taken apart. Without a choice, it is the matrix that differs "
            "most.",
        )
        name = most if chosen == MOST else chosen
        values, _ = ask_both(
            (sides.a.key, (), sides.b.key, ()), compare.singular_values, name=paths[name]
        )
        sizes = np.asarray(values.values, float)
        count = int((sizes > COUNTED * sizes.max(initial=0.0)).sum())
        first = slice(0, max(FEWEST_SHOWN, 2 * count))
        shown = LabelledArray(
            sizes[first], (Axis("number", values.axes[0].labels[first]),), values.unit
        )
        show_figure(
            strengths.singular_values(shown, theme(), height=240),
            key="singular values",
            alt=f"The singular values of the difference of {name}; {count} of {len(sizes)} are "
            "more than rounding.",
        )
        st.caption(
            f"The difference of {escape_markdown(name)} acts in **{count} of {len(sizes)}** "
            "directions: "
            "so many of its singular "
            "values are more than a ten-thousandth of the largest."
        )


def _title(row: str, column: str) -> str:
    """The matrix in this cell in words."""
    if row == compare.OUTSIDE:
        return column
    return f"{column} of block {row}"


def _path(row: str, column: str) -> str:
    """The name of the part with the matrix in this cell."""
    if row == compare.OUTSIDE:
        return column
    return f"blocks.{row}.{column}"


def _on_the_text(sides: Sides) -> None:
    """What the matrices are kept in, where that differs, and how far the guesses of the text on
    screen move.
    """
    kept = [escape_markdown(precision.describe_types(one.lm.model)) for one in (sides.a, sides.b)]
    if kept[0] != kept[1]:
        st.caption(f"In memory A is {kept[0]}; B is {kept[1]}.")
    if sides.a.seen == sides.b.seen:
        moved = ask_both(sides.key, compare.moved_guesses)[0]
    else:
        moved = None
    if moved is None:
        st.caption("Let A and B read the same tokens to see what that does to one text.")
        return
    values = np.asarray(moved.values, float)
    tokens = moved.axes[0].labels
    most = int(values.argmax())
    if len(values) > 1:
        where = f", most after {in_quotes(tokens[most])} ({brief(float(values[most]))})"
    else:
        where = ""
    st.markdown(
        f"On the text on screen a guess moves by **{brief(float(values.mean()))} nats**{where}: "
        "the mean Kullback–Leibler "
        "divergence of B’s guess from A’s, 0 if they are the same. The other views show what they "
        "guess."
    )


def _along_strength(sides: Sides) -> None:
    """What was learned and what was forgotten on the way from the base of an adapter to the tuned
    model, and beyond.
    """
    keys = [
        one.key
        for one in (sides.a, sides.b)
        if isinstance(language_model(one.key.unedited).model, MergedTransformer)
    ]
    if not keys:
        return
    key = keys[0].unedited
    base = language_model(key).base
    assert base is not None
    st.markdown(
        f"**What {escape_markdown(key.name)} learned, and what it forgot**: its loss along the "
        "strength "
        "of the adapter"
    )
    table, missing = _losses(key, model_key(base.name, key.device, None, key.precision))
    if missing:
        st.caption(f"Not on this machine, so left out: {escape_markdown(', '.join(missing))}.")
    if table is None:
        return
    at = edits.strength_of(keys[0].edits)
    show_figure(
        strengths.losses(table, theme(), height=320, at=at),
        key="losses along the strength",
        alt="The loss in nats per token along the strength of the adapter, on "
        f"{' and '.join(table.axes[0].labels)}.",
    )
    st.caption(
        f"{escape_markdown(' '.join(describe_losses(table)))} About {held_out.MOST_TOKENS:,} "
        "tokens held out of "
        "each; without other edits."
    )


@jobs.resource("Reading both texts at each strength", max_entries=8)
def _losses(adapter: ModelKey, base: ModelKey) -> tuple[LabelledArray | None, tuple[str, ...]]:
    """The losses of an adapter along its strength, on its data and on its base's, and the names of
    data that are not here.
    """
    texts = {}
    missing = []
    for key in (adapter, base):
        lm = language_model(key)
        try:
            texts[data_title(lm)] = held_out.scored_rows(key)
        except (ValueError, OSError, KeyError, TypeError):
            missing.append(data_title(lm))
    model = language_model(adapter).model
    assert isinstance(model, MergedTransformer)
    return losses_along(model, texts) if texts else None, tuple(missing)


def describe_losses(table: LabelledArray) -> list[str]:
    """A sentence for each text of a table [text, strength]: its loss with the base, as trained, and
    where it is lowest.
    """
    names = table.axes[1].labels
    sentences = []
    for text, values in zip(table.axes[0].labels, table.values, strict=True):
        before = values[names.index("0")]
        after = values[names.index("1")]
        what = "falls" if after < before else "rises"
        lowest = names[int(np.argmin(values))]
        sentences.append(
            f"On {text} it {what} from {before:.3f} at 0 to {after:.3f} at 1, and is lowest at "
            f"{lowest}."
        )
    return sentences
