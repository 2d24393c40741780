"""Measures at every snapshot: what is followed, a chart of each, and which came first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
import streamlit as st

from gptviz.figures.kit.format import brief, format_count, join_words
from gptviz.figures.training import over_training as figures
from gptviz.interp.over_training.history import Halfway, History, in_order
from gptviz.interp.over_training.measures import (
    MEASURES,
    Measure,
    MeasureInput,
    MeasureQuestion,
    Numbers,
)
from gptviz.interp.units.head_scores import SCORES
from gptviz.interp.units.unit import heads_and_mlps, unit
from gptviz.language_model import dictionaries, over_training
from gptviz.language_model.units import repeats_of
from gptviz.machine import progress
from gptviz.model.costs.effort import LITTLE, MOST, effort
from gptviz.model.kinds import Kind
from gptviz.model.parts.heads import HEADS
from gptviz.runs.checkpoints import find, read_card
from gptviz.runs.revisions import names_on_axis
from gptviz.settings import address_values
from gptviz.settings.known_names import name_known
from gptviz.text.datasets.tasks import Modular
from gptviz.ui.menu import PAGES
from gptviz.ui.records.over_training import APART, RELATIVES, TOGETHER
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import (
    ModelKey,
    Subject,
    ask,
    language_model,
    load_call,
    scrubber,
)
from gptviz.ui.shell.subject.unit_titles import title_of
from gptviz.ui.views import held_out
from gptviz.ui.views.loss_texts import ask_guess
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.views.which_logit import LISTED, which_logit
from gptviz.ui.widgets import (
    Try,
    addresses,
    capitalise_text,
    controls,
    escape_markdown,
    jobs,
    say_answer,
    show_figure,
    theme,
)
from gptviz.ui.widgets.headings import say_chosen

from . import beside

KEY = "measures"
USUAL: dict[Kind, tuple[str, ...]] = {
    "decoder": ("loss", "heads.induction"),
    "classifier": ("loss", "accuracy"),
    "encoder-decoder": ("loss", "accuracy"),
}
# What a model of a task is known for, before all else.
OF_TASKS = (("accuracy", "waves"), ("loss.by_task",))
# What a model learned whose measure rose.
LEARNED = {"heads.induction": "to copy what came before"}
MOST_CHOSEN = 8
# A score of a head that changed by less than this in all of the training is no event of it.
CLEARLY = 0.25
RANDOM = "Repeated random tokens"
PROMPT = "The prompt"
# So many features of each dictionary are listed.
LISTED_FEATURES = 5
_BY_NAME = "measures chosen"
STEP = "step"
# Pixels of a chart where there are one, two, three or more: in front of a class the first of three
# is seen without scrolling.
HEIGHTS = (420, 300, 208)


@dataclass(frozen=True)
class Axes:
    """How the charts are drawn."""

    apart: bool  #: whether every series has a panel of its own
    log_steps: bool  #: whether the axis of steps is logarithmic
    log_values: bool  #: whether the axis of values is


def without_snapshots(subject: Subject) -> None:
    """The page of a model without snapshots: its losses beside those of its relatives, if its
    training wrote them down, and a way to a model that has snapshots.
    """
    name = subject.key.name
    known = beside.show(name)
    rest = "but for these losses nothing" if known else "nothing"
    st.info(
        f"{escape_markdown(name)} has no snapshots: {rest} is known of what it was like while it "
        "was "
        "trained. A model that is trained on "
        "the page Train keeps some.",
        icon=":material/info:",
    )
    if (instead := frame.default_model()) != name and scrubber.steps(instead):
        with st.container(horizontal=True):
            frame.link(
                frame.current_page(),
                f"Open {escape_markdown(instead)}, which has some",
                query={"model": instead},
            )
            frame.link(TRAIN)


def choose_series(name: str) -> str:
    """The control `show`: all series of a measure in one chart, a panel for each, or the losses of
    the model called `name` beside those of its relatives, if it has any.
    """
    hint = "All series of a measure in one chart, or a small panel for each."
    options = [TOGETHER, APART]
    if beside.relatives(name):
        options.append(RELATIVES)
        hint += (
            " Beside relatives: its loss while it was trained, beside those of models that differ "
            "from it in one thing."
        )
    return controls.select("Show", options, key="show", help=hint, segmented=True)


def measures(subject: Subject) -> list[Measure]:
    """The control for the measures: their names are in the address, with commas between."""
    offered = possible_measures(subject)

    def parse_names(text: str) -> list[str]:
        names = list(dict.fromkeys(text.split(",")))
        if unknown := [name for name in names if name not in offered]:
            raise ValueError(
                f"this model has no measure {unknown[0]!r:.60}{name_known(unknown[0], offered)}"
            )
        if len(names) > MOST_CHOSEN:
            raise ValueError(f"it names {len(names)} measures, and at most {MOST_CHOSEN} are shown")
        return names

    known_for = next(
        (names for names in OF_TASKS if subject.lm.task and set(names) <= set(offered)),
        USUAL[subject.kind.name],
    )
    usual = [name for name in known_for if name in offered] or list(offered[:1])
    words = address_values.Values(f"at most {MOST_CHOSEN} names of measures with commas between")
    st.session_state[_BY_NAME] = controls.linked_choice(
        KEY, parse_names, usual, values=words, instead="the usual measures"
    )

    def take() -> None:
        chosen = st.session_state[_BY_NAME]
        addresses.write(KEY, ",".join(chosen) if chosen and chosen != usual else None)

    told = {name: MEASURES[name].for_kind(subject.kind.name) for name in offered}
    chosen: list[str] = st.multiselect(
        "Measures",
        offered,
        key=_BY_NAME,
        on_change=take,
        max_selections=MOST_CHOSEN,
        select_all=False,
        format_func=lambda name: told[name].title,
        help="What is followed through the training: one chart for each. Type a part of a name and "
        "press Enter.",
    )
    say_chosen("Measures", ", ".join(told[name].title for name in chosen))
    return [told[name] for name in chosen]


def possible_measures(subject: Subject) -> tuple[str, ...]:
    """The measures that this model has."""
    config = subject.lm.model.config
    task = subject.lm.task
    kinds = tokens(subject.key).kinds
    adds_up = subject.kind.guesses == "token" or HEADS[config.head].has_shares
    has = {
        "weights": True,
        "a prompt": True,
        "a token": True,
        "two tokens": True,
        "texts for heads": config.n_layer > 0,
        "held-out data": (here := held_out.is_here(subject.key)),
        "held-out texts": here,
        "a unit": here and config.n_layer > 0,
        "vowels": kinds.count("vowel") > 1 and "consonant" in kinds,
        "tasks": task is not None and bool(task.parts),
        "answers": task is not None or (not subject.kind.continues and here),
        "a clock": isinstance(task, Modular),
    }
    without = {"switched_off": not config.n_layer, "attribution": not adds_up}
    offered = (
        measure
        for measure in MEASURES.values()
        if has[measure.needs] and config.kind in measure.kinds
    )
    return tuple(measure.name for measure in offered if not without.get(measure.name))


def logarithmic() -> tuple[bool, bool]:
    """The controls `log_steps` and `log_values`: which axes are logarithmic."""
    hint = "Each doubling of the steps takes the same room; step 0 has none."
    log_steps = controls.switch("Log steps", key="log_steps", help=hint, default=True)
    hint = "Each doubling of a value takes the same room; what is not above 0 has none."
    return log_steps, controls.switch("Log values", key="log_values", help=hint)


def questions(subject: Subject, chosen: Sequence[Measure]) -> dict[str, MeasureQuestion]:
    """What each measure is asked, by its name; with the controls `over`, `logit_of` and `minus`
    where a measure depends on them: what heads read, and which tokens count.
    """
    needs = {measure.needs for measure in chosen}
    heads_read = subject.prompt
    if (
        "texts for heads" in needs
        and repeats_of(subject.lm) is not None
        and not subject.kind.has_source
    ):
        hint = "Random tokens that are repeated once, as on the page Heads, or the prompt above."
        over = controls.select(
            "Heads read", [RANDOM, PROMPT], key="over", help=hint, segmented=True
        )
        heads_read = subject.prompt if over == PROMPT else ""
    token = against = None
    if needs & {"a token", "two tokens"}:
        # The likeliest ones are those of the model as it was saved last.
        shares = ask_guess(scrubber.as_saved_last(subject.key), subject.text).value.probabilities
        likeliest = (-shares).argsort(kind="stable")[:LISTED].tolist()
        token, against = which_logit(subject, likeliest, nullcontext(), nullcontext())
    two = (
        _two_tokens(subject)
        if subject.kind.guesses == "label" and "two tokens" in needs
        else (token, against)
    )
    by_need = {
        "a unit": MeasureQuestion(unit=_unit(subject) if "a unit" in needs else ""),
        "texts for heads": MeasureQuestion(heads_read),
        "a prompt": MeasureQuestion(subject.prompt),
        "a token": MeasureQuestion(subject.prompt, token, against),
        "two tokens": MeasureQuestion("", *two),
    }
    return {measure.name: by_need.get(measure.needs, MeasureQuestion()) for measure in chosen}


def _two_tokens(subject: Subject) -> tuple[int, int]:
    """The controls `one` and `another`, for a classifier, which guesses no tokens: at first two
    tokens of the prompt.
    """
    names = tokens(subject.key).names
    listed = list(dict.fromkeys(names[i] for i in (*subject.seen, *range(min(2, len(names))))))
    hint = "A token whose embedding is compared; any one can be typed."
    one = controls.select("Embedding of", listed, key="one", help=hint, other=names.__contains__)
    another = controls.select(
        "and of", listed, key="another", help=hint, default=listed[1], other=names.__contains__
    )
    return names.index(one), names.index(another)


def _unit(subject: Subject) -> str:
    """The control `without`: the name of the unit that is switched off. Heads and MLPs are listed,
    and the features that are most active in the prompt; any other unit can be typed.
    """
    last = scrubber.as_saved_last(subject.key).unedited
    lm = language_model(last)
    listed = [one.name for one in heads_and_mlps(lm.model.config)]
    for name in lm.dictionaries() if subject.kind.continues else ():
        settings = {"prompt": subject.text, "dictionary": name}
        active = ask(last, dictionaries.features, "Reading the prompt", **settings).value
        order = (-active.values.mean(0)).argsort(kind="stable")[:LISTED_FEATURES]
        listed += [lm.dictionary(name).edit(int(active.axes[1].labels[i])) for i in order]

    def is_unit(name: str) -> bool:
        try:
            return bool(over_training.edit_of_unit(lm, name))
        except ValueError:
            return False

    hint = (
        "What is switched off: a head, an MLP, or a feature of a dictionary of this model as it "
        "was "
        "saved last; those most active in the prompt are listed. The name of another unit, such as "
        "blocks.0.mlp.neuron.17, can be typed."
    )
    return controls.select("Unit", listed, key="without", help=hint, other=is_unit)


def say_missing(subject: Subject) -> None:
    """A line where the data that losses are measured on are not here."""
    if not held_out.is_here(subject.key):
        st.caption(
            "The data that this model learned from are not on this machine: its losses are not "
            "among the measures."
        )


def follow_measure(
    key: ModelKey, measure: Measure, question: MeasureQuestion
) -> tuple[History | None, Callable[[], None]]:
    """The history of a measure, if any of it is known, and a function that shows how far it is, or
    a button that begins it if it takes long. A history that takes only a moment is complete.

    Raises:
        ValueError: as in `measure_input`.
        OSError: as in `measure_input`.
    """
    last = scrubber.as_saved_last(key)
    steps = scrubber.steps(key.name)
    given = _measure_input(last.unedited, measure.name, question)
    name = ("over training", last, measure.name, question, steps)
    title = f"{measure.title}, at {len(steps)} snapshots"

    def compute() -> dict[int, Numbers]:
        known: dict[int, Numbers] = {}
        for done, step in enumerate(steps):
            with progress.part(done, len(steps), step="snapshot"):
                at_step = values_at(scrubber.at_step(key, step), measure.name, question)
            known = known | {step: at_step}
            progress.show_so_far(known)
        return known

    model = language_model(last).model
    work = effort(model, given.tokens, measure.passes(model.config) * len(steps))
    is_quick = work <= LITTLE
    computing, show = jobs.on_demand(
        name, title, compute, begins=work <= MOST, waits=None if is_quick else 0.0, spins=is_quick
    )
    ready = None if computing is None else computing.value
    about = f"{len(steps)} snapshots; it goes on while you look at other pages."
    labels = f"Compute it: {measure.title}", f"Go on: {measure.title}"
    shows = partial(show, *labels, f"over training {measure.name}", about)
    return History.from_values(measure, ready) if ready else None, shows


@st.cache_resource(max_entries=24, show_spinner="Reading the data")
def _measure_input(last: ModelKey, measure: str, question: MeasureQuestion) -> MeasureInput:
    return over_training.measure_input(language_model(last), MEASURES[measure], question)


def title(subject: Subject, history: History, series: int) -> str:
    """A series in words: "head 2 of block 1"; a measure with a single one has its own name."""
    config = subject.lm.model.config
    name = history.series[series]
    if history.measure.needs == "a unit":
        return f"loss without {title_of(subject.key, unit(name, config))}"
    if len(history.series) == 1:
        return history.measure.title.lower()
    if history.measure.needs == "held-out texts":
        return f"position {name}"
    *whole, matrix = name.removesuffix(".weight").split(".")
    for given, words in (
        (name, ""),
        (".".join(whole), f"matrix {matrix} of the "),
        (name.removesuffix(".weight"), "matrix of the "),
    ):
        with suppress(ValueError):
            return words + title_of(subject.key, unit(given, config))
    return name


# The values of one snapshot: a few hundred numbers.
@st.cache_data(max_entries=4_096, show_spinner=False)
def values_at(key: ModelKey, measure: str, question: MeasureQuestion) -> Numbers:
    """A measure of the snapshot of `key`; what it reads is that of the model as it was saved
    last.
    """
    given = _measure_input(scrubber.as_saved_last(key.unedited), measure, question)
    return MEASURES[measure].compute(language_model(key).model, given)


def chart(subject: Subject, history: History, axes: Axes, height: int) -> None:
    """The chart of a measure, with a sentence on its sharpest change. A click on a point puts its
    step on screen.
    """
    measure = history.measure
    key = f"over {history.measure.name}"

    def choose(step: Sequence[int]) -> None:
        st.session_state[STEP] = str(step[0])

    change = history.sharpest(log_steps=axes.log_steps)
    said = describe_sharpest(subject, history, axes)
    marked = None if change is None else (change.series, change.row)
    named = names_on_axis(read_card(find(subject.key.name)).revisions)
    log_steps = axes.log_steps and not named
    look = figures.ChartLook(log_steps, axes.log_values, marked, subject.key.step, named)
    names = [title(subject, history, series) for series in range(len(history.series))]
    is_apart = axes.apart and len(history.series) > 1
    if is_apart:
        drawn = figures.panels(
            history.labelled(), theme(), look, list(map(short_name, history.series))
        )
    else:
        drawn = figures.lines(history.labelled(), theme(), look, names, height=height)
    heading = capitalise_text(names[0]) if measure.needs == "a unit" else measure.title
    st.markdown(f"**{escape_markdown(heading)}**")
    show_figure(
        drawn,
        key=key,
        choose=choose,
        alt=f"{heading} ({measure.unit}) at {format_count(len(history.steps), 'snapshot')} of "
        f"the training. {said}",
    )
    most = figures.MOST_PANELS
    heads = is_apart and any(".head." in name for name in history.series)
    of_heads = " 0.1 is head 1 of block 0."
    if subject.kind.has_source:
        of_heads = (
            " 0.1 is head 1 of block 0, e0.1 that of the encoder, c0.1 that of cross-attention."
        )
    if is_apart and len(history.series) > most:
        cut = f" The first {most} of {len(history.series)} have a panel."
    else:
        cut = ""
    st.caption(
        f"{escape_markdown(measure.about)} {escape_markdown(said)}{of_heads if heads else ''}{cut}"
    )


def describe_sharpest(subject: Subject, history: History, axes: Axes) -> str:
    """A sentence on the sharpest change of a measure."""
    change = history.sharpest(log_steps=axes.log_steps)
    if change is None:
        return "Nothing changes."
    name = title(subject, history, change.series)
    return f"Sharpest change: {name} {change.words}."


def short_name(name: str) -> str:
    """The name of a series above its panel: a head as block and number, "1.2", "e1.2" in an
    encoder, "c1.2" if it crosses.
    """
    if ".attention.head." in name:
        return (
            name.replace(".attention.head.", ".")
            .replace("encoder.blocks.", "e")
            .removeprefix("blocks.")
        )
    if ".cross_attention.head." in name:
        return name.replace(".cross_attention.head.", ".").replace("blocks.", "c")
    return name.removeprefix("blocks.").removesuffix(".weight")


def which_came_first(subject: Subject, histories: Sequence[History]) -> None:
    """Which of the measures had changed by half first, and when; nothing where none changed."""
    scores = [one for one in histories if one.measure.name.startswith("heads.")]
    unclear = [one for one in scores if np.abs(one.values[-1] - one.values[0]).max() < CLEARLY]
    order = in_order([one for one in histories if one not in unclear])
    if not order:
        return

    def name(history: History, half: Halfway) -> str:
        if history.measure.name == "loss":
            return "the loss"
        if history.measure.name.startswith("loss."):
            return escape_markdown(f"the loss of {title(subject, history, half.series)}")
        what = history.measure.title.split(",")[0]
        # in a sentence "accuracy", but "MLP …"
        if not what[1:2].isupper():
            what = what[:1].lower() + what[1:]
        if len(history.series) == 1:
            return escape_markdown(what)
        of = title(subject, history, half.series)
        return escape_markdown(f"{what} ({of})")

    def ends(history: History, half: Halfway) -> tuple[float, float]:
        """The values at the two snapshots."""
        before, after = (
            float(history.values[history.steps.index(step), half.series]) for step in half.steps
        )
        return before, after

    def change(history: History, half: Halfway) -> str:
        before, after = ends(history, half)
        moves = f"{'falls' if after < before else 'rises'} from {brief(before)} to {brief(after)}"
        score = SCORES.get(history.measure.name.removeprefix("heads."))
        if score is None or not score.is_kind or after < before:
            return f"{name(history, half)} {moves}"
        of = title(subject, history, half.series)
        return escape_markdown(f"{of} {score.does} (its score {moves})")

    # Between the same two snapshots nobody has looked: what lies there has no order.
    groups = [
        (steps, list(pairs)) for steps, pairs in groupby(order, key=lambda pair: pair[1].steps)
    ]
    (before, after), together = groups[0]
    first, *others = sorted(together, key=lambda pair: pair[0].measure.name != "loss")
    rose = [history.measure.name for history, half in together if np.diff(ends(history, half)) > 0]
    learned = next((LEARNED[one] for one in rose if one in LEARNED), "most")
    if first[0].measure.name == "loss.by_task":
        learned = escape_markdown(first[0].series[first[1].series])
    then = [f"{capitalise_text(change(*one))}." for one in others]
    for (earlier, later), pairs in groups[1:]:
        names = join_words([name(*pair) for pair in pairs])
        then.append(
            f"For {names} half of the change was reached between steps {earlier:,} and {later:,}."
        )
    say_answer(
        f"It learned {learned} between steps {before:,} and {after:,}: {change(*first)}.",
        " ".join(then),
        help="Between these two snapshots half of the whole change was reached, from the first "
        "snapshot to the last.",
    )


def pages_at(subject: Subject, histories: Sequence[History]) -> None:
    """Links to the pages of the measures, at the step on screen."""
    step = subject.key.step
    if step is None:
        st.caption(
            "Click a point of a chart to open its step: all pages then show the model as it was "
            "there."
        )
        return
    st.markdown(f"**At step {step:,}**, open")
    for page in dict.fromkeys(
        history.measure.page for history in histories if history.measure.page
    ):
        frame.link(PAGES[page])
    st.caption("or any other page of the menu: all show the model as it was at this step.")


def tries(subject: Subject, histories: Sequence[History], axes: Axes) -> list[Try]:
    """The suggestions for this model and these measures; what they say is computed from the charts
    on screen.
    """
    offers = []
    # The step just after the sharpest change of the first measure that changes.
    changes = ((one, one.sharpest(log_steps=axes.log_steps)) for one in histories)
    if (
        first := next(((one, change) for one, change in changes if change is not None), None)
    ) is not None:
        history, change = first
        notice = (
            f"{describe_sharpest(subject, history, axes)} Open a page at the second of these two, "
            "then "
            "move the slider back."
        )
        offers.append(
            Try("At the sharpest change", escape_markdown(notice), {STEP: str(change.steps[1])})
        )
    heads = next((one for one in histories if one.measure.name.startswith("heads.")), None)
    if heads is not None and len(heads.series) > 1:
        last = heads.values[-1]
        above = int((last > (last.min() + last.max()) / 2).sum())
        notice = (
            "A panel for each head, all on the same axes. In the upper half between the lowest "
            "and the highest value of the end: "
            f"{above} of {len(last)} heads. Did they rise together?"
        )
        offers.append(
            Try("A panel for each head", notice, {"show": APART}, {KEY: heads.measure.name})
        )
    offers += _vowels(subject)
    # The models that show what one part more is worth, beside each other.
    if cards := list(beside.relatives("ladder-8").values()):
        low = cards[0].validation_loss
        high = cards[-1].validation_loss
        notice = (
            f"From the bigram to a GPT, one part more each time: {len(cards)} losses, from "
            f"{high:.4f} at the end down to "
            f"{low:.4f}. Which part lowers it most?"
        )
        shown = {"show": RELATIVES} if scrubber.steps("ladder-8") else {}
        return [
            *offers[:2],
            Try("The ladder, part by part", notice, {"model": "ladder-8", **shown}),
        ]
    return offers[:2]


def _vowels(subject: Subject) -> list[Try]:
    """A model of letters whose training brought the vowels together, as the picture of its
    embeddings shows.
    """
    name = "similarity.vowels"
    steps = scrubber.steps(subject.key.name)
    if name not in possible_measures(subject):
        return []
    ends = [
        values_at(scrubber.at_step(subject.key, step), name, MeasureQuestion())
        for step in (steps[0], steps[-1])
    ]
    if ends[1]["two vowels"] < ends[0]["two vowels"] + 0.1:
        return []
    said = [
        f"{brief(found['two vowels'])} for two vowels and "
        f"{brief(found['a vowel and a consonant'])} for a vowel and a consonant"
        for found in ends
    ]
    notice = (
        f"Mean cosines of embeddings: at step {steps[0]:,} {said[0]}, at step {steps[-1]:,} "
        f"{said[1]}. Sinai 2024 shows "
        "in a picture of the embeddings of such a model that vowels come together: see when."
    )
    return [Try("Do vowels come together?", notice, {}, {KEY: name})]


def code(subject: Subject, asked: Mapping[str, MeasureQuestion]) -> str:
    """The lines of `gptviz` that compute what the charts show."""
    lines = []
    for name, question in asked.items():
        given = {
            "prompt": question.prompt or None,
            "token": question.token,
            "against": question.against,
            "unit": question.unit or None,
        }
        arguments = "".join(
            f", {key}={value!r}" for key, value in given.items() if value is not None
        )
        lines.append(f"{name.replace('.', '_')} = lm.over_training({name!r}{arguments})")
    last = load_call(subject.lm).replace(f", step={subject.lm.step}", "")
    return "\n".join(
        [
            "import gptviz",
            "",
            f"lm = {last}",
            *lines,
            f"{next(iter(asked)).replace('.', '_')}.values  # [step, series]",
        ]
    )
