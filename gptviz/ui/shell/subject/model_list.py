"""All models in groups, each with a line about it, and the list of them next to the control that
chooses one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from gptviz.figures.kit.format import power
from gptviz.runs import checkpoints
from gptviz.runs.card import Card
from gptviz.runs.manage import is_own
from gptviz.ui.widgets import escape_markdown

YOURS = "Yours"
OTHERS = "Others"
_OPEN = "all models"


@dataclass(frozen=True)
class ModelGroup:
    """Models that are listed together: the folder of each, by its name; those that are `folded`
    under one entry.
    """

    title: str
    folders: dict[str, Path]
    folded: tuple[str, ...] = ()


def model_groups() -> list[ModelGroup]:
    """All models: the user's own, then those that ship by what they are about; no group is
    empty.
    """
    # with torch, for which the head of a page does not wait
    from gptviz.runs.experiments import GROUPS

    left = dict(checkpoints.folders())
    groups = [
        ModelGroup(
            YOURS, {name: left.pop(name) for name, folder in list(left.items()) if is_own(folder)}
        )
    ]
    for one in GROUPS:
        folders = {name: left.pop(name) for name in one.plans if name in left}
        groups.append(
            ModelGroup(one.title, folders, tuple(name for name in one.folded if name in folders))
        )
    return [group for group in [*groups, ModelGroup(OTHERS, left)] if group.folders]


def names_of(groups: Sequence[ModelGroup]) -> list[str]:
    """The names of all models in the order of the list."""
    return [name for group in groups for name in group.folders]


def unfold_groups(groups: Sequence[ModelGroup], *asked: str | None) -> list[str]:
    """The same, of those that are folded only the ones that are `asked` for."""
    hidden = {name for group in groups for name in group.folded}.difference(asked)
    every = names_of(groups)
    return [name for name in every if name not in hidden] or every


def line_about(folder: Path) -> str:
    """The model in `folder` in one line: what its experiment is; for a model of the user, what its
    card says.
    """
    from gptviz.runs.experiments import PLANS

    try:
        plan = PLANS.get(checkpoints.read_card(folder).plan or "")
    except checkpoints.CheckpointError:
        plan = None
    if plan is None or is_own(folder):
        about = said_by_card(folder)
    else:
        about = plan.sentence
    if adapter := about_adapter(folder):
        return f"{adapter}: {about}"
    return about


def about_adapter(folder: Path) -> str:
    """The adapter in `folder` in a few words; empty if it is none."""
    try:
        if checkpoints.is_adapter(folder):
            adapter = checkpoints.read_adapter(folder)
        else:
            adapter = None
    except checkpoints.CheckpointError:
        return ""
    if adapter is None:
        return ""
    return f"LoRA adapter on {adapter.base[:80]}, rank {adapter.rank}"


def said_by_card(folder: Path) -> str:
    """The model in `folder` in one line: the data it learned from, its size and its loss, as its
    card says.
    """
    try:
        card = checkpoints.read_card(folder)
    except checkpoints.CheckpointError:
        return "Its files cannot be read."
    count = card.values.get("parameters")
    hides = is_own(folder) and checkpoints.name_of(folder) in checkpoints.hidden_checkpoints()
    parts = [
        f"experiment {card.plan[:40]}" if card.plan else "",
        (card.task or card.corpus or "")[:40],
        *describe_import(card),
        f"{count:,} parameters" if isinstance(count, int) and not isinstance(count, bool) else "",
        "" if card.validation_loss is None else f"loss {power(card.validation_loss)}",
        "diverged" if card.diverged else "",
        "hides the model of this name that came with gptviz" if hides else "",
    ]
    return ", ".join(part for part in parts if part) or "Its card says nothing about it."


def describe_import(card: Card) -> list[str]:
    """The family, origin and licence of a model that another program made; empty for any other
    model.
    """
    if card.family is None:
        return []
    if card.imported_from:
        source = [f"from {card.imported_from[:200]}"]
    else:
        source = []
    return [
        card.family[:40],
        *source,
        f"licence {card.licence[:80]}" if card.licence else "no licence named",
    ]


def model_list(groups: Sequence[ModelGroup], chosen: str, folder: Path | None) -> None:
    """A button that opens the list of all models with a line about each; a click on one chooses
    it. Its hint is the line about the `chosen` one.

    Args:
        folder: that of the chosen model, None if it cannot be read.
    """
    about = "" if folder is None else f"{escape_markdown(line_about(folder))}\n\n"
    # The entries of the list are read when somebody opens it.
    listed = st.popover(
        "All",
        key=_OPEN,
        on_change="rerun",
        icon=":material/list:",
        help=f"{about}The list has all models, and what each of them is.",
    )
    if not listed.open:
        return
    with listed.container(gap="xsmall"):
        for group in groups:
            st.markdown(f"**{group.title}**")
            for name, folder in group.folders.items():
                if name in group.folded[:1]:
                    fold = st.expander(
                        f"{name} to {group.folded[-1]}", expanded=chosen in group.folded
                    )
                (fold if name in group.folded else st).button(
                    f"**{escape_markdown(name)}** · {escape_markdown(line_about(folder))}",
                    key=f"open the model {name}",
                    on_click=st.session_state.update,
                    args=({"model": name, _OPEN: False},),
                    type="tertiary",
                    icon=":material/check:" if name == chosen else None,
                )
