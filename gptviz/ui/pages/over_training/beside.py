"""Several models that learned from each other's weights, on one axis."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from gptviz.figures.training import curves
from gptviz.runs import checkpoints
from gptviz.runs.card import Card
from gptviz.runs.experiments import PLANS
from gptviz.ui.records.compare import PAGE as COMPARE
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import kinds
from gptviz.ui.views.learning_curves import curve_of, loss_unit, with_unit
from gptviz.ui.widgets import escape_markdown
from gptviz.ui.widgets.figure import show_figure, theme
from gptviz.ui.widgets.tables import show_table

KEY = "beside its relatives"


def relatives(name: str) -> dict[str, Card]:
    """The cards of a model and of the models that its experiment is compared with, the lowest loss
    first: only those that are here and were measured on the same text. Empty if there are no
    relatives.
    """
    folders = checkpoints.folders()
    if name not in folders:
        return {}
    own = checkpoints.read_card(folders[name])
    plan = PLANS.get(own.plan or "")
    if plan is None:
        return {}
    cards = {
        one: checkpoints.read_card(folders[one]) for one in (name, *plan.related) if one in folders
    }
    alike = {
        one: card
        for one, card in cards.items()
        if _data(card) == _data(own) and card.validation_loss is not None
    }
    ordered = sorted(alike.items(), key=lambda pair: pair[1].validation_loss or 0.0)
    if len(ordered) > 1 and name in alike:
        return dict(ordered)
    return {}


def _data(card: Card) -> dict[str, object]:
    """What a model learned from; older cards do not name its kind."""
    return {key: value for key, value in (card.source or {}).items() if key != "kind"}


def show(name: str) -> bool:
    """The curves of the model called `name` and of its relatives, with a table of where they ended;
    whether it has any.
    """
    cards = relatives(name)
    if not cards:
        return False
    folders = {one: checkpoints.find(one) for one in cards}
    unit = loss_unit(folders.values())
    drawn = [curve_of(folders[one]) for one in sorted(cards)]
    best, *_, worst = cards
    low = cards[best].validation_loss
    high = cards[worst].validation_loss
    ends = f"lowest at the end: {best} with {low:.4f}, highest: {worst} with {high:.4f}"
    show_figure(
        with_unit(curves.losses(drawn, theme(), height=380, training=False), unit),
        key=KEY,
        alt=f"The loss of {len(cards)} models on data held out while they were trained; {ends}.",
    )
    # What the published numbers are, and whose.
    plans = [PLANS.get(card.plan or "") for card in cards.values()]
    by = sorted({plan.target.by for plan in plans if plan is not None and plan.target is not None})
    about = (
        " “Published” is the number of the text that describes the experiment, on its own data. "
        "It is by"
    )
    published = f"{about} {escape_markdown(', '.join(by))}." if by else ""
    st.caption(
        f"**Loss on data held out**, measured while each was trained on the same data, in {unit}; "
        f"{escape_markdown(ends)}.{published}"
    )
    rows = pd.DataFrame(
        [
            {
                "model": one,
                "at the start": f"{card.losses[0].validation:.4f}" if card.losses else "",
                f"loss at the end ({unit})": f"{card.validation_loss:.4f}",
                "steps": "" if card.steps is None else f"{card.steps:,}",
                "published": "" if plan is None or plan.target is None else f"{plan.target}",
                "what it is": "" if plan is None else plan.sentence,
            }
            for (one, card), plan in zip(cards.items(), plans, strict=True)
        ]
    )
    show_table(rows.loc[:, (rows != "").any()], hide_index=True)
    other = best if best != name else list(cards)[1]
    if kinds.kind_of(folders[name]) in COMPARE.kinds:
        query = {**frame.shared_state(), "model": name, "b_model": other}
        frame.link(
            COMPARE, f"Compare {escape_markdown(name)} with {escape_markdown(other)}", query=query
        )
    return True
