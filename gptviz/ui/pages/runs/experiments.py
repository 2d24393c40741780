"""What is below the curves: the ladder, rung by rung, and the experiments that can be trained
here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from gptviz.figures.kit import thumbnail
from gptviz.figures.kit.format import brief, format_signed, format_small, percent
from gptviz.figures.training.curves import perplexity_in_words
from gptviz.figures.training.ladder import level_by_level
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model.presets import RUNGS
from gptviz.runs.experiments import GROUPS, PLANS, Plan
from gptviz.runs.manage import is_own
from gptviz.settings.fields import field_infos
from gptviz.train.recipe import Recipe
from gptviz.ui.records.runs import PAGE
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.views.entries import Entry
from gptviz.ui.widgets import controls, escape_markdown, say_answer, show_figure, theme
from gptviz.ui.widgets.details import details, folded_part

# Settings of a recipe that change how fast a run is or what is kept of it, not what it learns.
WITHOUT_EFFECT = ("precision", "compile", "evaluations", "snapshots")
# Between runs that differ only in their seed, losses of the ladder differ by about this much (nats
# per token).
CHANCE = 0.005
PER_ROW = 3
PICTURE = 90  # pixels
MOST_NAMED = 3


@dataclass(frozen=True)
class Rung:
    """A rung of the ladder with its model; the label names the part that the rung before it
    lacks.
    """

    label: str
    entry: Entry

    @property
    def part(self) -> str:
        """The label within a sentence."""
        return self.label.removeprefix("+ ")


def ladder(entries: Mapping[str, Entry]) -> None:
    """The ladder as a waterfall, what it says in words, and whose losses they are; how to get a
    ladder where there is none.
    """
    shipped = rungs(entries, own=False)
    mine = rungs(entries, own=True)
    if len(shipped) < 2:
        st.info(
            "This compares the models of the ladder, of which there are fewer than two here: "
            "train them under The experiments."
        )
        return
    sentence = st.container()
    st.caption(
        "The ladder is a row of models from a bigram (each token is guessed from the one before "
        "it) to a GPT: every rung has "
        "one part that the rung before it lacks. Lower is better."
    )
    shown = shipped
    if [rung.entry.name for rung in mine] != [rung.entry.name for rung in shipped]:
        hint = (
            "For each rung that you trained yourself, shows your finished model instead of the "
            "one that came with gptviz."
        )
        if controls.switch("My own rungs", key="own_rungs", help=hint):
            shown = mine
        else:
            shown = shipped
    with sentence:
        say_answer(*map(escape_markdown, which_learned_best(shown)))
    alt = f"A waterfall of the loss from rung to rung. {in_words(shown)}"
    show_figure(level_by_level(losses(shown), theme()), key="ladder", alt=alt)
    st.caption(f"{escape_markdown(in_words(shown))} {escape_markdown(who_is_shown(shown))}")
    about_view = PAGE.about["What does each part bring?"]
    details(lambda: table_of_changes(shown), code=code(shown), about=about_view, key="ladder")


def rungs(entries: Mapping[str, Entry], *, own: bool) -> list[Rung]:
    """The rungs that have a finished model among `entries`; `own` prefers the user's own models to
    those that ship.
    """

    def is_finished(entry: Entry) -> bool:
        return (
            entry.has_curve
            and entry.status.state == "finished"
            and not entry.diverged
            and bool(np.isfinite(entry.last_loss))
        )

    complete: list[Rung] = []
    parts: list[str] = []
    for number, part in enumerate(RUNGS):
        parts.append(part.partition(" (")[0])
        fit = [
            entry
            for entry in entries.values()
            if entry.plan == f"ladder-{number}" and is_finished(entry)
        ]
        fit.sort(key=lambda entry: is_own(entry.folder) != own)
        if fit:
            complete.append(
                Rung(" ".join(parts) if complete else parts[-1].removeprefix("+ "), fit[0])
            )
            parts = []
    return complete


def which_learned_best(rungs: Sequence[Rung]) -> tuple[str, str]:
    """Which rung has the lowest loss, and the part that lowered it most; then their numbers."""
    values = losses(rungs).values.astype(float)
    best = int(values.argmin())
    if best == 0:
        first = f"{rungs[0].label[0].upper()}{rungs[0].label[1:]}"
        return f"{first} learned best: no later rung has a lower loss.", ""
    largest = int(np.diff(values).argmin()) + 1
    change = values[largest] - values[largest - 1]
    name = rungs[best].entry.name
    if best == len(rungs) - 1:
        who = f"Of these models the one with all parts, {name},"
    else:
        who = f"Of these models {name}"
    return (
        f"{who} learned best. What helped most: {rungs[largest].part}.",
        f"The loss of {name} is {values[best]:.3f} nats a token, that of {rungs[0].label} "
        f"{values[0]:.3f}; with {rungs[largest].part} it changed by {format_signed(change, 3)}.",
    )


def in_words(rungs: Sequence[Rung]) -> str:
    """The picture in a few sentences, from its own numbers."""
    values = losses(rungs).values.astype(float)
    changes = sorted(zip(np.diff(values).tolist(), (rung.part for rung in rungs[1:]), strict=True))
    whole = values[-1] - values[0]

    def list_parts(some: Iterable[tuple[float, str]]) -> str:
        return "; ".join(f"{part} ({format_signed(change, 3)})" for change, part in some)

    told = [
        f"From the first rung to the last the loss {'falls' if whole < 0 else 'rises'} by "
        f"{abs(whole):.3f} nats."
    ]
    if helped := [pair for pair in changes if pair[0] < -CHANCE][:MOST_NAMED]:
        told.append(f"What lowers it most: {list_parts(helped)}.")
    if hurt := [pair for pair in reversed(changes) if pair[0] > CHANCE]:
        told.append(f"What raises it: {list_parts(hurt)}.")
    if same := [pair for pair in changes if abs(pair[0]) <= CHANCE]:
        told.append(f"What changes it no more than chance does: {list_parts(same)}.")
    return " ".join(told)


def losses(rungs: Sequence[Rung]) -> LabelledArray:
    """The last loss of each rung, [rung]."""
    values = np.array([rung.entry.last_loss for rung in rungs])
    return LabelledArray(
        values, (Axis("rung", tuple(rung.label for rung in rungs)),), "loss (nats per token)"
    )


def who_is_shown(rungs: Sequence[Rung]) -> str:
    """Which models stand for the rungs, and which of them were trained in another way than most."""
    own = [rung.entry.name for rung in rungs if is_own(rung.entry.folder)]
    shipped = [rung.entry.name for rung in rungs if not is_own(rung.entry.folder)]
    parts = [
        f"These are your own: {', '.join(own)}." if own else "",
        f"These came with gptviz: {', '.join(shipped)}." if shipped else "",
    ]
    # The models whose data or recipe differ from those of most rungs, and in what.
    names = ["data", *(name for name in field_infos(Recipe) if name not in WITHOUT_EFFECT)]
    usual = {
        name: Counter(repr(rung.entry.settings.get(name)) for rung in rungs).most_common(1)[0][0]
        for name in names
    }
    others = []
    for rung in rungs:
        values = {name: rung.entry.settings.get(name) for name in names}
        if different := [
            f"{name} {value}" for name, value in values.items() if repr(value) != usual[name]
        ]:
            others.append(f"{rung.entry.name} ({', '.join(different)[:120]})")
    if others:
        parts.append(
            "These were trained in another way than most, so more than one part differs: "
            f"{'; '.join(others)}."
        )
    return " ".join(part for part in parts if part)


def table_of_changes(rungs: Sequence[Rung]) -> LabelledArray:
    """The loss of each rung and what it changes, [rung, number]; the first changes nothing."""
    values = losses(rungs).values.astype(float)
    changes = np.concatenate([[np.nan], np.diff(values)])
    names = tuple(f"{rung.label} ({rung.entry.name})" for rung in rungs)
    axes = Axis("rung", names), Axis("number", ("loss", "change"))
    return LabelledArray(np.stack([values, changes], axis=1), axes, "nats per token")


def code(rungs: Sequence[Rung]) -> str:
    """The lines of `gptviz` that give the same numbers."""
    return f"""from gptviz.runs import checkpoints

names = {[rung.entry.name for rung in rungs]!r}
losses = [checkpoints.read_card(checkpoints.find(name)).validation_loss for name in names]
changes = [after - before for before, after in zip(losses, losses[1:])]"""


def experiments(entries: Mapping[str, Entry]) -> None:
    """A card for each group: the losses of its models among `entries` and, folded, each result and
    a link to train it.
    """
    state = frame.shared_state()
    for start in range(0, len(GROUPS), PER_ROW):
        for group, column in zip(
            GROUPS[start : start + PER_ROW], st.columns(PER_ROW), strict=False
        ):
            known = [
                entries[name] for name in group.plans if name in entries and entries[name].has_curve
            ]
            with column.container(border=True, gap="xsmall"):
                with st.container(horizontal=True, vertical_alignment="center"):
                    # The curves of the models of a group as a small picture.
                    curves = [entry.curve for entry in known if entry.curve is not None]
                    if curves:
                        alt = (
                            f"{group.title}: validation loss over the steps of training of "
                            f"{', '.join(entry.name for entry in known)}"
                        )
                        st.image(thumbnail.curves(curves, theme()), alt=alt, width=PICTURE)
                    with st.container(width="stretch", gap="xsmall"):
                        st.markdown(f"**{group.title}**")
                        st.caption(
                            escape_markdown(lowest_losses(known)),
                            help="The lowest loss of each experiment, in nats per token.",
                        )
                if fold := folded_part(
                    f"{len(group.plans)} experiments", key=f"experiments {group.title}"
                ):
                    with fold:
                        for name in group.plans:
                            plan = PLANS[name]
                            st.markdown(f"**{name}** · {plan.sentence}")
                            with st.container(
                                horizontal=True,
                                vertical_alignment="center",
                                horizontal_alignment="distribute",
                            ):
                                st.caption(results(plan, entries.get(name)), width="content")
                                st.page_link(
                                    TRAIN.path,
                                    label="Train it",
                                    icon=":material/model_training:",
                                    help=f"Opens the page Train, set to {name}.",
                                    query_params={**state, "plan": name},
                                )


def lowest_losses(known: Sequence[Entry]) -> str:
    """The lowest loss of each model of a group; of many the first and the last."""
    trained = [entry for entry in known if entry.diverged or math.isfinite(entry.best_loss)]
    each = [
        f"{entry.name} {'diverged' if entry.diverged else brief(entry.best_loss, 4)}"
        for entry in trained
    ]
    if not each:
        return "not trained here yet"
    if len(each) <= MOST_NAMED:
        return ", ".join(each)
    return f"{each[0]} … {each[-1]}"


def results(plan: Plan, entry: Entry | None) -> str:
    """The number published for a plan, and the one that the model `entry` of its name reached
    here.
    """
    quantity = plan.target.quantity_name if plan.target else "loss"
    numbers = [f"published {plan.target.value:,g}"] if plan.target else []
    if entry is not None and entry.diverged:
        numbers.append("it diverged here")
    elif entry is not None and (math.isfinite(entry.best_loss) or quantity == "parameters"):
        ours = {
            "loss": format_small(entry.best_loss, 4),
            "perplexity": perplexity_in_words(entry.best_loss),
            "parameters": f"{entry.parameters:,}",
        }
        numbers.append(f"here {ours[quantity]}")
    if not numbers:
        return "not trained here yet"
    if entry is not None and entry.accuracy is not None:
        accuracy = f", {percent(entry.accuracy)} right"
    else:
        accuracy = ""
    return f"{quantity}: {', '.join(numbers)}{accuracy}"
