"""The state of the watched run: how far it is, its buttons, its numbers, and a sample of what it writes."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from gptviz.data.registry import task_of
from gptviz.figures.kit.format import brief, counted, duration, percent, small
from gptviz.figures.training import curves
from gptviz.model.kinds import Kind
from gptviz.runs import queue
from gptviz.runs.status import StopRequest
from gptviz.ui.widgets import capitalised, escaped
from gptviz.ui.widgets.figure import pixels

from .watched import WatchedRun

LONGEST_SAMPLE = 2_000  # characters
RESUMABLE = ("ready", "paused", "stopped", "interrupted", "failed")
STATES = {
    "ready": "It has not begun.",
    "paused": "Paused: it can go on exactly where it is.",
    "stopped": "Stopped before its end: it can go on exactly where it is.",
    "finished": "Finished.",
    "failed": "It failed.",
    "interrupted": "It was interrupted.",
    # Whether it is active is read a moment after its state: it has ended in between.
    "waiting": "It has not begun.",
    "running": "It is ending.",
}
ENDING: dict[StopRequest, str] = {
    "pause": "pausing: what it has learned is being saved",
    "stop": "stopping: a last evaluation on all the data held out (Pause leaves it out)",
}
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
SAMPLE_TITLES: dict[Kind, str] = {
    "decoder": "What it writes",
    "classifier": "What it makes of some texts",
    "encoder-decoder": "What it answers",
}
_FAILED = "train failed"


def show_state(run: WatchedRun) -> None:
    """The progress bar of the run with its buttons, and the error if there was one."""
    with st.container(horizontal=True, vertical_alignment="center"):
        share = 1.0 if run.status.state == "finished" else min(1.0, (run.step and run.step.progress) or 0.0)
        st.progress(share, headline(run), width="stretch")
        _buttons(run)
    if failed := st.session_state.get(_FAILED):
        st.error(escaped(failed))
    if run.diverged:
        st.warning(escaped(f"{capitalised(run.diverged)}."), icon=":material/trending_up:")
    elif run.status.message and not run.is_active:
        st.text(run.status.message)


def headline(run: WatchedRun) -> str:
    """The state of the run and how far it is, as Markdown."""
    if run.place:
        training = queue.own_queue().training()
        ahead = f": {escaped(training[0])} is in training" if training else ""
        return f"Waiting, {ordinal(run.place + len(training))} in line{ahead}."
    at = f"Step {run.step.step:,}" if run.step else "Step 0"
    if run.recipe is not None and run.recipe.steps:
        at += f" of {run.recipe.steps:,}"
    if run.place == 0 and run.request is not None:
        return f"{at} · {ENDING[run.request]}"
    if run.place == 0:
        if run.status.state != "running" or not run.step:
            return f"Beginning: {escaped(run.status.message) or 'Python and torch are being loaded'}."
        return f"{at} · {duration(run.step.seconds_left)} left"
    if run.status.state == "finished":
        took = "" if run.card.seconds is None else f" in {duration(run.card.seconds)}"
        how = "Finished, but it diverged" if run.diverged else "Finished"
        return f"{how}." if run.card.steps is None else f"{how}: {counted(run.card.steps, 'step')}{took}."
    return f"{at}. {STATES[run.status.state]}"


def learned_from(run: WatchedRun, twin: WatchedRun) -> str:
    """What the run learns from, in words: the name of its text, or of its task with the settings in which that of its twin
    differs.
    """
    task, other = task_of(run.card.source), task_of(twin.card.source)
    if task is None:
        return run.card.corpus or "its data"
    if other is None or other.name != task.name or other == task:
        return task.title
    theirs = other.settings()
    differing = (f"{name} {'none' if value == '' else value}" for name, value in task.settings().items() if theirs[name] != value)
    return f"{task.name} ({', '.join(differing)})"


def ordinal(place: int) -> str:
    """A place in line, as a word where there is a short one."""
    return ORDINALS[place - 1] if place <= len(ORDINALS) else f"number {place}"


def _buttons(run: WatchedRun) -> None:
    if run.place == 0:
        about = "Saves everything and pauses. The result will be the same as without a pause."
        _button("Pause", ":material/pause:", queue.own_queue().pause, run.name, about)
        about = "Ends the run here, with a last evaluation. It can still go on later."
        _button("Stop", ":material/stop:", queue.own_queue().stop, run.name, about)
    elif run.place:
        about = "Takes the run out of the line of waiting runs. You can put it back later."
        _button("Take back", ":material/undo:", queue.own_queue().stop, run.name, about)
    elif run.status.state in RESUMABLE and run.recipe is not None and run.folder.parent == queue.own_queue().root:
        label = "Begin" if run.status.state == "ready" else "Go on"
        _button(label, ":material/resume:", queue.submit, run.name, "Continues the training from this step.")


def _button(label: str, icon: str, act: Callable[[str], object], name: str, help: str) -> None:
    def pressed() -> None:
        st.session_state[_FAILED] = ""
        try:
            act(name)
        except (ValueError, OSError) as error:
            st.session_state[_FAILED] = str(error)

    # The name is part of the key: a click that arrives late must not meet another run.
    st.button(label, icon=icon, on_click=pressed, help=help, key=f"{label} {name}")


def numbers_line(run: WatchedRun) -> str:
    """The losses, the accuracy and the speed of the run, in a line of Markdown."""
    parts = [*_losses(run), *_accuracies(run)]
    if run.step:
        measured = {"learning rate": run.step.learning_rate, "gradient norm": run.step.gradient_norm}
        known = [f"{name} {brief(value)}" for name, value in measured.items() if value is not None]
        parts.append(", ".join([f"{run.step.tokens_per_second:,.0f} tokens/s", *known]))
    return " · ".join(parts)


def _losses(run: WatchedRun) -> list[str]:
    parts = []
    if run.step and run.step.loss is not None:
        parts.append(f"training loss {small(run.step.loss, 3)}")
    loss = run.card.validation_loss if run.evaluation is None else run.evaluation.loss
    if loss is not None:
        perplexity = "" if run.kind == "classifier" else f", perplexity {curves.perplexity_in_words(loss)}"
        parts.append(f"validation **{small(loss, 3)}** nats{perplexity}{_when(run)}")
    if run.card.floor is not None:
        parts.append(f"floor {run.card.floor:.3f}")
    return parts


def _when(run: WatchedRun) -> str:
    """The step of the last evaluation, if more were taken since then, and its share of the held-out data."""
    last = run.evaluation
    if last is None:
        return ""
    is_old = run.step is not None and run.step.step > last.step
    at = f" after {counted(last.step, 'step')}" if is_old else ""
    part = f" on {percent(last.share)} of the data held out" if last.share is not None and last.share < 1 else ""
    return f"{at}{part}"


def _accuracies(run: WatchedRun) -> list[str]:
    parts = []
    accuracy, exact = (run.evaluation.accuracy, run.evaluation.exact_match) if run.evaluation else (None, None)
    if accuracy is not None and run.card.accuracy is not None:
        parts.append(f"{percent(accuracy)} {'' if exact is None else 'of the tokens '}right")
    trained_on = run.evaluation.training_accuracy if run.evaluation else None
    if accuracy is not None and trained_on is not None:
        gap = 100 * (trained_on - accuracy)
        parts.append(f"{percent(trained_on)} on what it is trained on (without dropout), a gap of {gap:.1f} points")
    if exact is not None:
        parts.append(f"{percent(exact)} of the answers without a mistake")
    if run.card.baseline_accuracy is not None:
        parts.append(f"baseline {percent(run.card.baseline_accuracy)}")
    return parts


def engine(run: WatchedRun) -> str | None:
    """The type of numbers that the run computes with, and why, as Markdown, or None if that is not known."""
    chosen = run.card.engine
    if chosen is None:
        return None
    what = "bfloat16" if chosen.bfloat16 else "float32"
    return f"It computes in {what}{', compiled' if chosen.compiled else ''} ({escaped(chosen.why[:300])})."


def show_sample(run: WatchedRun) -> None:
    """The last sample: a text; of a task, what the model made of a sequence it was never trained on."""
    if not run.sample:
        return
    st.markdown(f"**{SAMPLE_TITLES[run.kind or 'decoder']}** after {counted(run.sample.step, 'step')}")
    is_short = run.card.task is not None or run.kind != "decoder"
    text = (run.sample.text or "")[:LONGEST_SAMPLE]
    st.code(text, language=None, wrap_lines=True, height="content" if is_short else pixels(150))
    if run.kind == "classifier":
        st.caption("Texts it was never trained on: its label and how sure it is, the right label in brackets, then the text.")
    elif run.kind == "encoder-decoder":
        st.caption("A source it was never trained on, and its answer.")
    elif is_short:
        task = task_of(run.card.source)
        plainly = task.as_people_write(text.strip()) if task else ""
        never = "" if task and not task.is_new else ", from a sequence it was never trained on"
        st.caption(
            f"The first part is given{never}; the model wrote the rest."
            + (f" As people write it: {escaped(plainly)}." if plainly else "")
        )
