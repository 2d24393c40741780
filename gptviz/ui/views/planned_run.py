"""A planned run, which Train and Classify share: its cost, why it cannot start, and how it
starts.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import streamlit as st

from gptviz.data.source import Source
from gptviz.data.text import TaskSource, TextSource
from gptviz.figures.kit.format import duration, format_count, in_words, moment
from gptviz.machine import job, memory
from gptviz.machine.errors import reason_of
from gptviz.machine.hosting import hosting
from gptviz.machine.job import Job
from gptviz.machine.memory import in_bytes
from gptviz.model import Config, devices
from gptviz.runs import checkpoints, queue
from gptviz.runs.experiments import PLANS, Plan
from gptviz.runs.names import claim_name
from gptviz.runs.run import free_disk
from gptviz.text import Corpus, Tokenizer
from gptviz.train import estimate
from gptviz.train.estimate import Estimate, Speed
from gptviz.train.recipe import Recipe
from gptviz.ui.widgets import escape_markdown

UPLOADED = "a file of yours"  # its name in the form's control `data`, and so in links
TWINS = ("-a", "-b")  # the ends of the names of two runs that differ only in their data
# if a run takes this many times as long as on a machine that does nothing else, both times are
# stated
BUSY = 1.5


@dataclass(frozen=True)
class PlannedRun:
    """A run as the form of the Train page, or a file of the Classify page, describes it."""

    plan_name: str  #: the experiment it changes, or the name for a model of the user's own
    plan: Plan  #: that experiment
    source: Source | None  #: the data, once it is chosen
    #: how many tokens are learned from the data, or None if they are its characters or given
    vocabulary: int | None
    recipe: Recipe  #: how it is trained
    changes: Mapping[str, object]  #: the fields of the architecture that differ from the plan's
    config: Config | None  #: the architecture, or None if the fields do not go together
    begin: str | None  #: the name of the model whose weights it begins with; None for new weights
    problem: str | None  #: why it cannot be trained; None if it can
    #: the same run on other data, which begins together with it, if there is one
    twin: PlannedRun | None = None

    @property
    def is_as_published(self) -> bool:
        """Whether the experiment is unchanged, so that its published number holds for this run
        too.
        """
        plan = PLANS.get(self.plan_name)
        if plan is None or self.source is None:
            return False
        return not self.changes and (self.recipe, self.begin, self.source.title) == (
            plan.recipe,
            plan.begin,
            plan.data,
        )


# The fastest measurement so far by device: the speed of a machine does not change, only how busy it
# is.
_fastest: dict[str, Speed] = {}
# Seconds after which it is measured again how busy a device is.
MEASURED_FOR = 120


def measuring(device: str) -> Job[Speed]:
    """The measurement of how fast `device` is, and how busy it is now: begun if the last one is too
    long ago.
    """

    def measure() -> Speed:
        now = estimate.measure(device)
        _fastest[device] = _fastest[device].or_faster(now) if device in _fastest else now
        return _fastest[device]

    key = "speed", device, int(time.monotonic() / MEASURED_FOR)
    return job.begin(
        key, "Measuring how fast this machine is", measure, slots=None, patience=MEASURED_FOR
    )


def speed_so_far(device: str) -> Speed | None:
    """How fast `device` is, for the estimate, as it was measured last; None while it is measured
    for the first time.
    """
    measured = measuring(device)
    return _fastest.get(device) or measured.value


def speed(device: str) -> Speed:
    """The same for a page that shows nothing without it: it waits for the first measurement."""
    if (fast := speed_so_far(device)) is not None:
        return fast
    with st.spinner("Measuring how fast this machine is"):
        return measuring(device).result()


@st.cache_data(max_entries=256, show_spinner=False)
def estimate_run(
    config: Config, recipe: Recipe, fast: Speed, tokens: int, held_out: int = 0
) -> Estimate:
    """The cost of a run, with `tokens` in each row of a batch, see `estimate.estimate`."""
    return estimate.estimate(config, recipe, fast, tokens=tokens, held_out=held_out)


def estimate_of(planned: PlannedRun, device: str) -> Estimate | None:
    """The cost of the run, or None if its fields do not go together yet."""
    if planned.config is None:
        return None
    tokens = planned.config.context_length
    held_out = 0
    if planned.source is not None:
        tokens = min(planned.source.tokens(planned.config), tokens)
        held_out = planned.source.evaluation_tokens(planned.config, planned.plan.tokenizer)
    return estimate_run(planned.config, planned.recipe, speed(device), tokens, held_out)


def refusal(planned: PlannedRun, expected: Estimate | None, name: str, device: str) -> str | None:
    """Why this run cannot start under this name; None if it can."""
    if planned.problem:
        return planned.problem
    if planned.twin is not None and planned.twin.problem:
        return f"the second text: {planned.twin.problem}"
    if hosting().read_only or not hosting().training:
        return (
            "this server shows models and trains none: run gptviz on a machine of your own to "
            "train one"
        )
    try:
        target = checkpoints.destination(name)
    except checkpoints.CheckpointError as error:
        return str(error)
    for one in names_of(planned, name):
        if checkpoints.is_in_use(one):
            return (
                f"there is a model named {one} already: choose another name, or leave the field "
                "empty"
            )
    if expected is None:
        return None
    room = free_disk(target)
    if expected.disk > 0.9 * room:
        return (
            f"the run would take about {in_bytes(expected.disk)} of the disk, and "
            f"{in_bytes(room)} is free: keep fewer snapshots"
        )
    # they are trained at once
    if planned.twin is None:
        together = expected
    else:
        together = replace(expected, memory=2 * expected.memory)
    return estimate.refusal(together, memory.room(together.memory, device))


def time_needed(expected: Estimate) -> str:
    """How long a run will take; on a busy machine a range: from the time on an idle machine to that
    if it stays busy.
    """
    alone = duration(expected.seconds)
    if expected.slowdown < BUSY:
        return alone
    return f"{alone} to {duration(expected.seconds * expected.slowdown)}"


def summary(expected: Estimate) -> str:
    """The cost of a run, in one line."""
    if expected.trained == expected.parameters:
        trained = ""
    else:
        trained = f", {expected.trained:,} numbers trained beside them"
    return (
        f"{expected.parameters:,} parameters{trained}, about {time_needed(expected)}, "
        f"{in_bytes(expected.memory)} of memory"
    )


def explanation(expected: Estimate) -> str:
    """Where the numbers of the `summary` come from, as Markdown."""
    a_step = f"{moment(expected.seconds_per_step)} a step of {in_words(expected.flops)} operations"
    if expected.slowdown < BUSY:
        busy = ""
    else:
        busy = " The longer time is for a machine that stays as busy with other work as it is now."
    return (
        f"**Time**: {a_step}, if this machine has nothing else to do.{busy}\n\n"
        f"**Memory**: weights {in_bytes(expected.weights)}, optimiser "
        f"{in_bytes(expected.optimiser)}, what a step keeps until "
        f"its gradients are known {in_bytes(expected.activations)}, of which logits "
        f"{in_bytes(expected.logits)}; the rest is for "
        "Python, torch and the evaluations.\n\n"
        f"**Disk**: {in_bytes(expected.disk)}, including "
        f"{format_count(expected.snapshots, 'snapshot')}."
    )


def names_of(planned: PlannedRun, name: str) -> tuple[str, ...]:
    """What the run is called: the name; for a run with a twin, "name-a" and "name-b"."""
    if planned.twin is None:
        return (name,)
    return tuple(f"{name}{end}" for end in TWINS)


def begin(planned: PlannedRun, name: str, device: str) -> int:
    """Save the run under this name and put it into the queue; its place there. With a twin, both
    begin, see `names_of`.

    Raises:
        ValueError: it cannot be trained, or too many runs wait; the message says what to do.
        OSError: its text cannot be fetched.
    """
    if planned.twin is None:
        return _begin(planned, name, device)
    tokenizer, (one, other) = _of_both(planned, planned.twin), names_of(planned, name)
    place = _begin(planned, one, device, tokenizer, other)
    _begin(planned.twin, other, device, tokenizer, one)
    return place


def _of_both(first: PlannedRun, second: PlannedRun) -> Tokenizer | None:
    """For two texts the tokens that both are read as, so that the two models differ in nothing
    else; else None.
    """
    if (
        not (isinstance(first.source, TextSource) and isinstance(second.source, TextSource))
        or first.begin is not None
    ):
        return None
    both = TextSource(
        Corpus("both texts", f"{first.source.corpus.text}\n{second.source.corpus.text}")
    )
    return both.tokenizer(first.plan.tokenizer, first.vocabulary or first.plan.config.vocab_size)


def _begin(
    planned: PlannedRun,
    name: str,
    device: str,
    tokenizer: Tokenizer | None = None,
    twin: str | None = None,
) -> int:
    # Until it waits in the queue, no other process may replace it.
    with claim_name(name) as claim:
        own = queue.own_queue()
        if len(own.waiting_runs()) >= own.most_waiting:
            raise queue.QueueFullError(
                f"{own.most_waiting} runs wait already, which is the most allowed: try again later"
            )
        plan = planned.plan
        if tokenizer is None and planned.vocabulary is not None and planned.source is not None:
            tokenizer = planned.source.tokenizer(plan.tokenizer, planned.vocabulary)
        if not planned.is_as_published:
            plan = replace(plan, target=None)
        plan.prepare(
            name,
            source=planned.source,
            recipe=planned.recipe,
            changes=planned.changes,
            tokenizer=tokenizer,
            begin=planned.begin,
            about={"preset": planned.plan_name, "command": command(planned, name)}
            | ({} if twin is None else {"twin": twin}),
            claim=claim,
        )
        return queue.submit(name, None if device == devices.devices()[0] else device)


def has_begun(planned: PlannedRun, name: str, device: str) -> bool:
    """Begin the run, see `begin`, and return whether it has begun; if not, a message on the page
    says why.
    """
    try:
        with st.spinner("Getting the data ready"):
            begin(planned, name, device)
    except (ValueError, OSError, MemoryError, RuntimeError) as error:
        st.error(escape_markdown(reason_of(error)) or "There is not enough memory for this model.")
        return False
    return True


def commands(planned: PlannedRun, name: str) -> list[str]:
    """The command that trains the same model without a browser; with a twin, two."""
    each = (planned,) if planned.twin is None else (planned, planned.twin)
    return [command(one, own) for one, own in zip(each, names_of(planned, name), strict=True)]


def command(planned: PlannedRun, name: str) -> str:
    """The command that trains the same model without a browser."""
    if planned.plan_name in PLANS:
        preset = planned.plan_name
    else:
        preset = planned.plan.preset
    plan = PLANS[preset]
    words = ["python", "-m", "gptviz", "train", preset, "--name", name]
    if isinstance(planned.source, TaskSource):
        task = planned.source.task
        words += [] if task.name == plan.data else ["--corpus", task.name]
        words += [
            word
            for field, value in task.changed_settings().items()
            for word in ("--task", f"{field}={value}")
        ]
    elif planned.source is not None and planned.source.title != plan.data:
        words += ["--corpus", planned.source.title]
    if planned.begin is not None and planned.begin != plan.begin:
        words += ["--from", planned.begin]
    for field, value in planned.changes.items():
        as_json = {True: "true", False: "false", None: "null"}
        written = as_json[value] if isinstance(value, bool | None) else value
        words += ["--set", f"{field}={written}"]
    defaults = plan.recipe.to_dict()
    for field, value in planned.recipe.to_dict().items():
        if value != defaults[field] and value is not None:
            words += [
                f"--{field.replace('_', '-')}",
                f"{value:g}" if isinstance(value, float) else str(value),
            ]
    return shlex.join(words)
