"""A run that is watched: its state, its numbers and its charts, as they come."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.data.registry import task_of
from gptviz.figures.kit.format import brief, format_count, format_small, percent
from gptviz.figures.training import curves, places
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model.kinds import MODEL_KINDS, Kind
from gptviz.runs import checkpoints
from gptviz.runs.experiments import PLANS
from gptviz.runs.log import curve_points
from gptviz.settings.address_values import ANY
from gptviz.ui.records.compare import ANSWERS
from gptviz.ui.records.compare import PAGE as COMPARE
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import hidden
from gptviz.ui.views.how_written import say_how_written
from gptviz.ui.views.learning_curves import (
    accuracy_of,
    curve_of,
    loss_unit,
    most_of_its_fall,
    with_unit,
)
from gptviz.ui.views.open_in import open_in
from gptviz.ui.views.run_bar import headline, repeat_body, run_bar
from gptviz.ui.widgets import (
    Try,
    addresses,
    capitalise_text,
    controls,
    escape_markdown,
    say_answer,
    show_figure,
    theme,
)
from gptviz.ui.widgets.figure import pixels

from .data import TWO, TWO_PLAN
from .rules import plan_named
from .watched import WatchedRun, run_control, watched_run

LONGEST_SAMPLE = 2_000  # characters
SAMPLE_TITLES: dict[Kind, str] = {
    "decoder": "What it writes",
    "classifier": "What it makes of some texts",
    "encoder-decoder": "What it answers",
}
HEIGHT = 310
MOST_BESIDE = 8
LARGEST_LOSS = 50  # whose perplexity is still drawn
_BESIDE_OF = "beside of"  # the run that the control `beside` is about
EVERY = 1.0  # seconds
TOO_FAST = 1.0  # a learning rate
RIGHT = 0.99  # of the answers, for a model that can do it
CLEAR = 0.1  # nats between two losses, to be seen in the chart


@dataclass(frozen=True)
class Drawn:
    """A figure, and what it shows for somebody who cannot see it."""

    figure: go.Figure
    description: str


@dataclass(frozen=True)
class Chart:
    """One choice of the control `chart`."""

    label: str  #: what the control and the link call it
    #: the figure, or None if the run has nothing to draw yet, which shows the loss instead
    draw: Callable[[WatchedRun], Drawn | None]
    #: the field of the card that says whether a run has this quantity at all, or None if every run
    #: has it
    on_card: str | None = None


def bar() -> str | None:
    """The controls above the chart: which run is watched, and what its chart shows. Returns the
    name of the run, if any.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width="stretch"):
            name = run_control()
        if name is None:
            return None
        try:
            run = watched_run(name)
        except checkpoints.CheckpointError as error:
            st.error(f"{escape_markdown(str(error))}. Watch another model.")
            st.stop()
        with st.container(width="stretch"):
            # The control `chart`: which of the charts that the run has is shown.
            controls.select(
                "Chart",
                [
                    chart.label
                    for chart in CHARTS
                    if chart.on_card is None or getattr(run.card, chart.on_card) is not None
                ],
                key="chart",
                default=LOSS.label,
                help=(
                    "Loss: the mean surprise at the token that came, in nats. Perplexity: e to "
                    "the power of the loss; a choice "
                    "among this many equally likely tokens would be as hard. Learning rate: how "
                    "far a step goes. Gradient norm: "
                    "how steep the loss is."
                ),
            )
        with st.popover("Compare"):
            compare_controls(run)
        open_in(name)
    return name


def compare_controls(run: WatchedRun) -> None:
    """The controls `beside`, `log_steps` and `log_loss`: what the chart of the loss shows."""
    names = [other for other in checkpoints.folders() if other != run.name]
    # A choice made for another run, such as its own earlier versions, does not belong next to this
    # one.
    is_another = st.session_state.get(_BESIDE_OF, run.name) != run.name
    st.session_state[_BESIDE_OF] = run.name
    if is_another or any(name not in names for name in st.session_state.get("beside") or ()):
        st.session_state["beside"] = companions(run, names)
    addresses.accept_values("beside", ANY)
    beside = st.multiselect(
        "Beside it",
        names,
        companions(run, names),
        key="beside",
        max_selections=MOST_BESIDE,
        help="Other models to draw into the same charts: their losses and accuracies.",
        bind="query-params",
    )
    hidden.say_what_hides(beside)
    controls.switch(
        "Log steps", key="log_steps", help="Each doubling of the steps takes the same room."
    )
    controls.switch(
        "Log loss", key="log_loss", help="Each halving of the loss takes the same room."
    )


def companions(run: WatchedRun, names: Sequence[str]) -> list[str]:
    """The models among `names` to compare with this run: only its twin, or those of its experiment
    and of experiments related to that.
    """
    if (twin := run.card.twin) is not None and twin in names:
        return [twin]
    plan = PLANS.get(run.plan)
    related = [*plan.related, run.plan] if plan else []
    return [name for name in names if name in related and name != run.name][:MOST_BESIDE]


def live(name: str) -> None:
    """How far the run is, its buttons, its chart, its numbers and its last sample; beside it, those
    of its twin.
    """

    def body() -> bool:
        run = watched_run(name)
        twin = run.twin
        if fell := most_of_its_fall(curve_of(run.folder)):
            learner = escape_markdown(run.name)
            say_answer(
                f"At each step the weights of {learner} move a little, so that the right answer "
                "surprises it less.",
                fell,
            )
        run_bar(run)
        if run.diverged:
            st.warning(
                escape_markdown(f"{capitalise_text(run.diverged)}."), icon=":material/trending_up:"
            )
        elif run.status.message and not run.is_active:
            st.text(run.status.message)
        show_chart(run)
        if twin is None:
            st.caption(numbers_line(run))
            show_sample(run)
            return run.is_active
        for column, shown, other in zip(st.columns(2), (run, twin), (twin, run), strict=True):
            with column:
                st.markdown(
                    f"**{escape_markdown(shown.name)}**, trained on "
                    f"{escape_markdown(learned_from(shown, other))}"
                )
                st.caption(f"{headline(shown)}  \n{numbers_line(shown)}")
                show_sample(shown)
        if not run.is_active and not twin.is_active:
            both = {"model": run.name, "b_model": twin.name, "compared": ANSWERS}
            frame.link(COMPARE, "Ask both: what did the data do?", query=both)
        return run.is_active or twin.is_active

    run = watched_run(name)
    repeat_body(body, EVERY, run.is_active or (run.twin is not None and run.twin.is_active))


def show_chart(run: WatchedRun) -> None:
    """The chosen chart, or the loss if that chart has nothing to draw yet; next to the loss, the
    accuracy if there is one.
    """
    label = st.session_state.get("chart")
    chart = next((chart for chart in CHARTS if chart.label == label), LOSS)
    drawn = chart.draw(run) or draw_loss(run)
    beside = draw_accuracy(run) if chart is LOSS else None
    if beside is None:
        show_figure(drawn.figure, key="live", alt=drawn.description)
    else:
        left, right = st.columns([3, 2], gap="small")
        with left:
            show_figure(drawn.figure, key="live", alt=drawn.description)
        with right:
            show_figure(beside.figure, key="live accuracy", alt=beside.description)
    if chart.label == "Accuracy" or beside is not None:
        st.caption(
            curves.ACCURACY_LEGEND
            if run.card.training_accuracy is not None
            else "Accuracy: on held-out data."
        )


def draw_loss(run: WatchedRun) -> Drawn:
    """The training and validation loss, with those of the runs compared with it."""
    drawn = [curve_of(run.folder)]
    for name in _other_runs(run):
        with suppress(checkpoints.CheckpointError):
            other = curve_of(checkpoints.find(name))
            drawn.append(
                replace(other, name=f"{name} (finished)")
                if run.is_active and not watched_run(name).is_active
                else other
            )
    log_steps = bool(st.session_state.get("log_steps"))
    log_loss = bool(st.session_state.get("log_loss"))
    figure = curves.losses(
        drawn, theme(), height=HEIGHT, log_steps=log_steps, log_loss=log_loss, until=_last_step(run)
    )
    figure = with_unit(figure, loss_unit([run.folder]))
    return Drawn(figure, f"The loss of {run.name} over its steps, training and validation.")


def _other_runs(run: WatchedRun) -> list[str]:
    known = checkpoints.folders()
    chosen = st.session_state.get("beside")
    names = companions(run, list(known)) if chosen is None else chosen
    return [name for name in names if name in known and name != run.name][:MOST_BESIDE]


def _last_step(run: WatchedRun) -> int | None:
    """The step at which the run will end, if that is known."""
    if run.recipe:
        return run.recipe.steps
    return None


def draw_accuracy(run: WatchedRun) -> Drawn | None:
    """How much is right, on data held out and on data trained on, with the compared runs that count
    the same.
    """
    own = accuracy_of(run.folder)
    if own is None:
        return None
    shown = [own]
    for name in _other_runs(run):
        with suppress(checkpoints.CheckpointError):
            other = accuracy_of(checkpoints.find(name))
            shown += [other] if other is not None and other.what == own.what else []
    log_steps = bool(st.session_state.get("log_steps"))
    figure = curves.accuracies(
        shown, theme(), height=HEIGHT, log_steps=log_steps, until=_last_step(run)
    )
    return Drawn(
        figure,
        f"{own.what.capitalize()} over the steps; at the end {percent(own.validation[-1])} on "
        "held-out data.",
    )


def numbers_line(run: WatchedRun) -> str:
    """The losses, the accuracy and the speed of the run, in a line of Markdown."""
    parts = list[str]()
    step = run.step
    last = run.evaluation
    card = run.card
    kind = MODEL_KINDS[run.kind or "decoder"]
    if step and step.loss is not None:
        parts.append(f"training loss {format_small(step.loss, 3)}")
    loss = card.validation_loss if last is None else last.loss
    if loss is not None:
        # When it was measured, and on how much of the data.
        if last and step and step.step > last.step:
            when = f" after {format_count(last.step, 'step')}"
        else:
            when = ""
        if last and last.share is not None and last.share < 1:
            when += f" on {percent(last.share)} of the data held out"
        if kind.guesses == "label":
            perplexity = ""
        else:
            perplexity = f", perplexity {curves.perplexity_in_words(loss)}"
        parts.append(f"validation **{format_small(loss, 3)}** nats{perplexity}{when}")
    if card.floor is not None:
        parts.append(f"floor {card.floor:.3f}")
    # How much is right.
    if last and last.accuracy is not None:
        if card.accuracy is not None:
            parts.append(
                f"{percent(last.accuracy)} "
                f"{'' if last.exact_match is None else 'of the tokens '}right"
            )
        if (trained_on := last.training_accuracy) is not None:
            gap = 100 * (trained_on - last.accuracy)
            parts.append(
                f"{percent(trained_on)} on what it is trained on (without dropout), a gap of "
                f"{gap:.1f} points"
            )
    if last and last.exact_match is not None:
        parts.append(f"{percent(last.exact_match)} of the answers without a mistake")
    if card.baseline_accuracy is not None:
        parts.append(f"baseline {percent(card.baseline_accuracy)}")
    if step:
        measured = {"learning rate": step.learning_rate, "gradient norm": step.gradient_norm}
        known = [f"{name} {brief(value)}" for name, value in measured.items() if value is not None]
        parts.append(", ".join([f"{step.tokens_per_second:,.0f} tokens/s", *known]))
    return " · ".join(parts)


def show_sample(run: WatchedRun) -> None:
    """The last sample: a text; of a task, what the model made of a sequence it was never trained
    on.
    """
    if not run.sample:
        return
    kind = MODEL_KINDS[run.kind or "decoder"]
    st.markdown(f"**{SAMPLE_TITLES[kind.name]}** after {format_count(run.sample.step, 'step')}")
    is_short = run.card.task is not None or not kind.continues
    say_how_written(task_of(run.card.source))
    text = (run.sample.text or "")[:LONGEST_SAMPLE]
    st.code(text, language=None, wrap_lines=True, height="content" if is_short else pixels(150))
    if kind.guesses == "label":
        st.caption(
            "Texts it was never trained on: its label and how sure it is, the right label in "
            "brackets, then the text."
        )
    elif kind.has_source:
        st.caption("A source it was never trained on, and its answer.")
    elif is_short:
        task = task_of(run.card.source)
        plainly = task.as_people_write(text.strip()) if task else ""
        if task and not task.is_new:
            never = ""
        else:
            never = ", from a sequence it was never trained on"
        st.caption(
            f"The first part is given{never}; the model wrote the rest."
            + (f" As people write it: {escape_markdown(plainly)}." if plainly else "")
        )


def learned_from(run: WatchedRun, twin: WatchedRun) -> str:
    """What the run learns from: the name of its text, or its task with the settings in which its
    twin's task differs.
    """
    task = task_of(run.card.source)
    other = task_of(twin.card.source)
    if task is None:
        return run.card.corpus or "its data"
    if other is None or other.name != task.name or other == task:
        return task.title
    theirs = other.settings()
    differing = (
        f"{name} {'none' if value == '' else value}"
        for name, value in task.settings().items()
        if theirs[name] != value
    )
    return f"{task.name} ({', '.join(differing)})"


def tries(watched: str, plan_name: str) -> list[Try]:
    """The suggestions for the model watched and the experiment in the form, as far as their models
    are here.
    """
    offers = list[Try]()
    sudden = "induction"
    folder = None if watched == sudden else checkpoints.folder_of(sudden)
    if folder is not None and len((curve := curve_of(folder)).validation) > 2:
        # The two evaluations in a row between which the validation loss falls most.
        steps = curve.validation_steps
        losses = curve.validation
        before = int(np.argmin(np.diff(losses)))
        notice = (
            f"“{sudden}” was trained for {steps[-1]:,.0f} steps, and "
            f"{losses[before] - losses[before + 1]:.2f} of the "
            f"{losses[0] - losses.min():.2f} nats by which its loss fell came between steps "
            f"{steps[before]:,.0f} and "
            f"{steps[before + 1]:,.0f}."
        )
        offers.append(
            Try(
                "A sudden insight",
                notice,
                {"run": sudden, "chart": LOSS.label, "log_steps": True, "block": 1},
            )
        )
    data = (
        "Two models that differ only in their data: in one text a nurse is “she” in nine "
        "sentences of ten, in the other in one. "
        "Press Train, wait for both, and ask them."
    )
    rate = plan_named(plan_name).recipe.learning_rate
    about = (
        f"{TOO_FAST / rate:,.0f} times that of the experiment. Press Train: does the loss fall, "
        "and where does it end?"
    )
    fast = Try(
        "Far too fast",
        f"Sets the learning rate to {TOO_FAST:g}: {about}",
        {"run_learning_rate": TOO_FAST},
    )
    return [*offers, Try("What did my data do?", data, {"plan": TWO_PLAN, TWO: True}), fast]


def validation_losses(name: str) -> LabelledArray:
    """The validation losses of a run, by step."""
    folder = checkpoints.find(name)
    curve = curve_of(folder)
    steps = tuple(f"{step:.0f}" for step in curve.validation_steps)
    return LabelledArray(
        curve.validation, (Axis("step", steps),), f"validation loss in {loss_unit([folder])}"
    )


def code(name: str, commands: Sequence[str]) -> str:
    """How to get the same without a browser: the runs that the form describes, and the losses of
    the run watched.
    """
    lines = "\n".join(f"#   {command}" for command in commands)
    return f"""# in a shell, what the form now says:
{lines}

from gptviz.runs import checkpoints
from gptviz.runs.log import read_log

folder = checkpoints.find({name!r})
for line in read_log(folder / "log.jsonl"):
    if line.kind == "evaluation":
        print(line.step, line.loss)"""


def engine(run: WatchedRun) -> str | None:
    """The type of numbers that the run computes with, and why, as Markdown, if that is known."""
    chosen = run.card.engine
    if chosen is None:
        return None
    what = "bfloat16" if chosen.bfloat16 else "float32"
    return (
        f"It computes in {what}{', compiled' if chosen.compiled else ''} "
        f"({escape_markdown(chosen.why[:300])})."
    )


def draw_perplexity(run: WatchedRun) -> Drawn:
    """The perplexity on held-out data."""
    curve = curve_of(run.folder)
    figure = curves.values(
        "perplexity",
        "a choice among this many equally likely tokens would be as hard",
        curve.validation_steps,
        np.array([math.exp(min(loss, LARGEST_LOSS)) for loss in curve.validation]),
        theme(),
        height=HEIGHT,
        log=True,
        until=_last_step(run),
    )
    return Drawn(figure, "The perplexity on held-out data over the steps.")


def draw_places(run: WatchedRun) -> Drawn | None:
    """How often each token of the held-out sequences is right, at the last evaluation."""
    last = run.evaluation
    if last is None or last.by_place is None:
        return None
    name = f"after {format_count(last.step, 'step')}"
    figure = places.right_by_place(last.by_place, theme(), height=HEIGHT, name=name)
    return Drawn(figure, "How often each token of the held-out sequences is predicted right.")


def _draw_steps(label: str, field: str, unit: str) -> Chart:
    """The chart of a number that every step logs."""

    def draw(run: WatchedRun) -> Drawn | None:
        if not run.log:
            return None
        known = curve_points(run.log, "step", field)
        steps = [step for step, _ in known]
        values = [value for _, value in known]
        figure = curves.values(
            label.lower(), unit, steps, values, theme(), height=HEIGHT, until=_last_step(run)
        )
        return Drawn(figure, f"{label} over the steps.")

    return Chart(label, draw)


LOSS = Chart("Loss", draw_loss)
CHARTS = (
    LOSS,
    Chart("Accuracy", draw_accuracy, on_card="accuracy"),
    Chart("Right by place", draw_places, on_card="accuracy_by_place"),
    Chart("Perplexity", draw_perplexity),
    _draw_steps("Tokens/s", "tokens_per_second", "tokens/s"),
    _draw_steps("Learning rate", "learning_rate", ""),
    _draw_steps("Gradient norm", "gradient_norm", ""),
)
