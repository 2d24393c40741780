"""Watching a run on the Train page: how far it is, how its loss falls, and what it has learned so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import streamlit as st

from gptviz.figures import curves, heatmap, marks, places, scatter
from gptviz.figures.format import duration
from gptviz.interp import embeddings
from gptviz.interp.attention import one_head
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints, queue
from gptviz.runs.checkpoints import CheckpointError
from gptviz.runs.experiments import PLANS
from gptviz.runs.log import read_log
from gptviz.runs.run import read_run
from gptviz.runs.status import RunError, Status, read_status
from gptviz.train.recipe import Recipe
from gptviz.ui.pages import embeddings as vocabulary
from gptviz.ui.shell import kinds, pages
from gptviz.ui.shell.models import ModelKey, language_model, model_key
from gptviz.ui.shell.subject import default_prompt, prompt_box, read_prompt
from gptviz.ui.shell.theme import theme
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.views.learning_curves import curve_of, per_text
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.markdown import escaped

TICK, LOOK = 1.0, 2.0  # seconds between two looks at the log, and at the weights
ACTIVE = ("running", "waiting")
RESUMABLE = ("ready", "paused", "stopped", "interrupted", "failed")
MOST_BESIDE = 8
MOST_PLACED = 80  # tokens on a small map
# Beyond this a look at the weights would take the time of the training.
MOST_LOOKED_INTO = 20_000_000
LOSS, PERPLEXITY, SPEED, RATE, NORM = "Loss", "Perplexity", "Tokens/s", "Learning rate", "Gradient norm"
PLACES, ACCURACY = "Right by place", "Accuracy"
QUANTITIES = {SPEED: ("tokens_per_second", "tokens/s"), RATE: ("learning_rate", ""), NORM: ("gradient_norm", "")}
EXACT = "exact_match"
MAKES: dict[Kind, str] = {
    "decoder": "What it writes",
    "classifier": "What it makes of some texts",
    "encoder-decoder": "What it answers",
}
STEP = ("loss", "progress", "learning_rate", "gradient_norm", "tokens_per_second", "seconds_left")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
WORDS = {
    "ready": "It has not begun.",
    "paused": "Paused: it can go on exactly where it is.",
    "stopped": "Stopped before its end: it can go on exactly where it is.",
    "finished": "Finished.",
    "failed": "It failed.",
    "interrupted": "It was interrupted.",
}
HOW = r"""
Each step draws a batch, lets the model predict every next token of it at once (an encoder–decoder those of the answers, a
classifier one label for each text), and takes the mean of $-\ln p$, $p$ the probability it gave to what came: the **loss**, in
nats. Backpropagation says for every weight how the loss would
change with it, the **gradient** $g$, and the optimiser moves the weights the other way. AdamW, for one, by

$$w \leftarrow w - \eta\Big(\frac{m}{\sqrt{v} + \epsilon} + \lambda w\Big)$$

with $m$ and $v$ the running means of $g$ and $g^2$, $\eta$ the learning rate and $\lambda$ the weight decay. Guessing among $V$
tokens, or labels, without knowing anything has the loss $\ln V$; a task's floor is its random part, which nobody can guess.
Beside a classifier's accuracy stands that of a baseline trained on the same texts, which weighs how often each word occurs
(TF-IDF).

Trained by `Trainer` in `gptviz/train/trainer.py`, in a process of its own (`gptviz/runs/queue.py`), which keeps the run in the
model's folder (`gptviz/runs/training.py`); this page reads it there. Memory and time are estimated in `gptviz/train/estimate.py`.
"""
LIMITS = (
    "The loss is measured in tokens: models with other tokens cannot be compared by it. One seed is one draw. The attention and "
    "the map are those of the newest snapshot, which may be some steps old; between two the map is turned so that it lies on the "
    "one before, since PCA does not say which way is up."
)
_FAILED = "train failed"


def watched(notices: Any) -> str | None:
    """The control `run`: which run is watched; it is in the link at all times. None where there is none."""
    names = list(checkpoints.folders())
    if not names:
        return None
    asked = st.query_params.get("run")
    if st.session_state.get("run") not in names:
        if asked is not None and asked not in names:
            notices.warning(
                f"The link asks for run = “{escaped(asked[:80])}”, which is not to be had here.",
                icon=":material/link_off:",
            )
        st.session_state["run"] = asked if asked in names else _most_interesting(names)
    about = "Whichever model you like, its training still going on or long over. The one in training is shown first."
    name = st.selectbox("Model watched", names, key="run", help=about, persist_state="session")
    if asked != name:
        st.query_params["run"] = name
    return name


def _most_interesting(names: Sequence[str]) -> str:
    """The run in training, else the next in line, else the one that changed last, else a model that came with gptviz."""
    own = queue.own_queue()
    for name in [*own.training(), *own.waiting()]:
        if name in names:
            return name
    runs = [folder for folder in checkpoints.folders().values() if (folder / "status.json").exists()]
    if runs:
        return max(runs, key=lambda folder: (folder / "status.json").stat().st_mtime).name
    return pages.DEFAULT_MODEL if pages.DEFAULT_MODEL in names else names[0]


@dataclass(frozen=True)
class Watched:
    """What is known of a run now.

    Attributes:
        place: in the queue: 0 in training, n for the n-th in line, None for neither.
        kind: what the model makes of a text, None where that cannot be read.
        step: the last line of its log that tells of a step; empty before the first.
        evaluation: the same for an evaluation.
        sample: what it wrote last, None if it never did.
    """

    folder: Path
    status: Status
    place: int | None
    kind: Kind | None
    card: Mapping[str, Any]
    recipe: Recipe | None
    step: Mapping[str, Any]
    evaluation: Mapping[str, Any]
    sample: Mapping[str, Any]

    @property
    def is_active(self) -> bool:
        """Whether it trains or waits to."""
        return self.place is not None

    @property
    def plan(self) -> str:
        """The experiment it is of, empty if of none."""
        return str(self.card.get("preset", ""))


def look(name: str) -> Watched:
    """What is known of the run called `name`.

    Raises:
        CheckpointError: there is none, or it cannot be read.
    """
    folder = checkpoints.find(name)
    try:
        recipe = read_run(folder).recipe
    except RunError:
        recipe = None
    log = _log(folder)
    step, evaluation = _last(log, "step", STEP), _last(log, "evaluation", ("loss",))
    sample = _last(log, "sample", ())
    place = queue.place(name) if folder.parent == queue.own_queue().root else None
    card = checkpoints.read_card(folder)
    return Watched(folder, read_status(folder), place, kinds.kind_of(folder), card, recipe, step, evaluation, sample)


def _last(log: Sequence[Mapping[str, Any]], kind: str, fields: Sequence[str]) -> Mapping[str, Any]:
    """The last line of one kind whose `fields` are numbers: a log may come from a stranger."""
    told = (line for line in reversed(log) if line.get("kind") == kind)
    return next((line for line in told if all(_is_number(line.get(field)) for field in fields)), {})


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300  # NaN is not


def _log(folder: Path) -> list[dict[str, Any]]:
    try:
        about = (folder / "log.jsonl").stat()
    except OSError:
        return []
    return _read_log(folder, about.st_mtime_ns, about.st_size)


# Read-only: all who watch one run share it.
@st.cache_resource(max_entries=8, show_spinner=False)
def _read_log(folder: Path, written: int, length: int) -> list[dict[str, Any]]:
    return read_log(folder / "log.jsonl")


def _ticking(body: Callable[[], Watched], every: float, active: bool) -> None:
    """Show `body`, anew by the clock while the run is active; once it is no more, the page runs once and all stands still."""

    def tick() -> None:
        try:
            now = body()
        except CheckpointError as error:  # it was deleted, or renamed
            st.text(str(error))
            return
        if now.is_active != active:
            st.rerun()

    st.fragment(tick, run_every=every if active else None)()


def live(name: str) -> None:
    """How far the run is, its buttons, and its curves."""

    def body() -> Watched:
        now = look(name)
        _state(now)
        _curves(now)
        st.caption(numbers(now))
        _sample(now)
        return now

    _ticking(body, TICK, look(name).is_active)


def _state(now: Watched) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        share = 1.0 if now.status.state == "finished" else min(1.0, float(now.step.get("progress", 0.0)))
        st.progress(share, headline(now), width="stretch")
        _buttons(now)
    if failed := st.session_state.get(_FAILED):
        st.error(escaped(failed))
    if now.status.message and not now.is_active:
        st.text(now.status.message)


def headline(now: Watched) -> str:
    """What is becoming of the run, and how far it is, as Markdown."""
    if now.place:
        ahead = queue.own_queue().training()
        behind = f": {escaped(ahead[0])} is in training" if ahead else ""
        return f"Waiting, {ordinal(now.place + len(ahead))} in line{behind}."
    at = f"Step {now.step['step']:,}" if now.step else "Step 0"
    if now.recipe is not None and now.recipe.steps:
        at += f" of {now.recipe.steps:,}"
    if now.place == 0:
        if now.status.state != "running" or not now.step:
            return f"Beginning: {escaped(now.status.message) or 'Python and torch are being loaded'}."
        return f"{at} · {duration(now.step.get('seconds_left'))} left"
    if now.status.state == "finished":
        total = now.card.get("steps")
        took = f" in {duration(seconds)}" if _is_number(seconds := now.card.get("seconds")) else ""
        return f"Finished: {total:,} steps{took}." if isinstance(total, int) else "Finished."
    return f"{at}. {WORDS[now.status.state]}"


def ordinal(place: int) -> str:
    """A place in line, in words as far as people say them."""
    return ORDINALS[place - 1] if place <= len(ORDINALS) else f"number {place}"


def _buttons(now: Watched) -> None:
    name = now.folder.name
    if now.place == 0:
        _button("Pause", ":material/pause:", queue.pause, name, "Keeps everything and ends; going on later changes nothing.")
        _button("Stop", ":material/stop:", queue.stop, name, "Ends here, with a last evaluation. It can still go on later.")
    elif now.place:
        _button("Take back", ":material/undo:", queue.stop, name, "Takes it out of the line; it can be put there again.")
    elif now.status.state in RESUMABLE and now.recipe is not None and now.folder.parent == queue.own_queue().root:
        label = "Begin" if now.status.state == "ready" else "Go on"
        _button(label, ":material/resume:", queue.submit, name, "Trains on from where it is.")


def _button(label: str, icon: str, act: Callable[[str], object], name: str, help: str) -> None:
    def pressed() -> None:
        st.session_state[_FAILED] = ""
        try:
            act(name)
        except (ValueError, OSError) as error:
            st.session_state[_FAILED] = str(error)

    # The name is part of the key: a click that arrives late must not meet another run.
    st.button(label, icon=icon, on_click=pressed, help=help, key=f"{label} {name}")


def _curves(now: Watched) -> None:
    quantity = str(st.session_state.get("chart") or LOSS)
    height = 310
    lines = _log(now.folder)
    until = now.recipe.steps if now.recipe else None
    if quantity == PLACES and isinstance(by_place := now.evaluation.get("by_place"), list):
        shares = [share if _is_number(share) else None for share in by_place]
        figure = places.right_by_place(shares, theme(), height=height, name=f"after {now.evaluation['step']:,} steps")
        about = "How often each token of the held-out sequences is predicted right."
    elif quantity == ACCURACY and lines:
        what = EXACT if EXACT in now.evaluation else "accuracy"
        steps, values = _points(lines, "evaluation", what)
        name = "answers without a mistake" if what == EXACT else "right on held-out data"
        figure = curves.values(name, "share", steps, values, theme(), height=height, until=until)
        figure.update_yaxes(range=[0, 1.02])
        about = f"The share {name}, over the steps."
    elif quantity in QUANTITIES and lines:
        field, unit = QUANTITIES[quantity]
        steps, values = _points(lines, "step", field)
        figure = curves.values(quantity.lower(), unit, steps, values, theme(), height=height, until=until)
        about = f"{quantity} over the steps."
    elif quantity == PERPLEXITY:
        one = curve_of(now.folder)
        figure = curves.values(
            "perplexity",
            "among as many tokens it might choose",
            one.validation_steps,
            np.exp(np.minimum(one.validation, 50)),
            theme(),
            height=height,
            log=True,
            until=until,
        )
        about = "The perplexity on held-out data over the steps."
    else:
        shown = [curve_of(now.folder)]
        for name in _beside(now):
            with suppress(CheckpointError):
                shown.append(curve_of(checkpoints.find(name)))
        log_steps, log_loss = bool(st.session_state.get("log_steps")), bool(st.session_state.get("log_loss"))
        figure = curves.losses(shown, theme(), height=height, log_steps=log_steps, log_loss=log_loss, until=until)
        figure = per_text(figure) if now.kind == "classifier" else figure
        about = f"The loss of {now.folder.name} over its steps, training and validation."
    st.plotly_chart(figure, key="live", config={"displayModeBar": False}, alt=about)


def _points(lines: Sequence[Mapping[str, Any]], kind: str, field: str) -> tuple[list[int], list[float]]:
    """The steps and values of the lines of one kind whose `field` is a number."""
    found = [(line["step"], line[field]) for line in lines if line.get("kind") == kind and _is_number(line.get(field))]
    return [step for step, _ in found], [value for _, value in found]


def _beside(now: Watched) -> list[str]:
    known = checkpoints.folders()
    asked = st.session_state.get("beside")
    names = beside_by_plan(now, list(known)) if asked is None else asked
    return [name for name in names if name in known and name != now.folder.name][:MOST_BESIDE]


def beside_by_plan(now: Watched, names: Sequence[str]) -> list[str]:
    """The models whose curves belong beside this run's: those of its plan's companions, and its plan's own before."""
    plan = PLANS.get(now.plan)
    wanted = [*plan.beside, now.plan] if plan else []
    return [name for name in names if name in wanted and name != now.folder.name][:MOST_BESIDE]


def bar(notices: Any) -> str | None:
    """Which run is watched, and what its chart shows; None where there is no run."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width=170):
            name = watched(notices)
        if name is None:
            return None
        try:
            now = look(name)
        except CheckpointError as error:
            st.error(f"{escaped(str(error))}. Watch another model.")
            st.stop()
        places = [PLACES] if "accuracy_by_place" in now.card else []
        accuracy = [ACCURACY] if "accuracy" in now.card else []
        options = [LOSS, *accuracy, *places, PERPLEXITY, SPEED, RATE, NORM]
        with st.container(width=135):
            controls.select(
                "Chart",
                options,
                key="chart",
                default=LOSS,
                help="Loss: the mean surprise at the token that came, in nats. Perplexity: e to the loss, among how many equally "
                "likely tokens it might choose. Learning rate: how far a step goes. Gradient norm: how steep the loss is.",
                notices=notices,
            )
        with st.popover("Compare"):
            names = [other for other in checkpoints.folders() if other != name]
            _forget(names)
            st.multiselect(
                "Beside it",
                names,
                beside_by_plan(now, names),
                key="beside",
                max_selections=MOST_BESIDE,
                help="Other models whose losses are drawn into the same chart.",
            )
            controls.switch("Log steps", key="log_steps", help="Each doubling of the steps takes the same room.")
            controls.switch("Log loss", key="log_loss", help="Each halving of the loss takes the same room.")
        with st.popover("Open in"):
            query = {key: value for key, value in pages.shared_state().items() if key != "step"} | {"model": name}
            for page in pages.PAGES.values():
                if page not in (pages.HOME, pages.TRAIN) and now.kind in page.kinds:
                    pages.link(page, query=query)
    return name


def _forget(names: Sequence[str]) -> None:
    if any(name not in names for name in st.session_state.get("beside") or ()):
        del st.session_state["beside"]


def numbers(now: Watched) -> str:
    """Where the run stands, in a line, and what it computes with."""
    said = []
    if now.step:
        said.append(f"training loss {now.step['loss']:.3f}")
    loss = now.evaluation.get("loss", now.card.get("validation_loss"))
    if _is_number(loss):
        among = "" if now.kind == "classifier" else f", perplexity {curves.perplexity(loss)}"
        said.append(f"validation **{loss:.3f}** nats{among}")
    floor = now.card.get("floor")
    if _is_number(floor):
        said.append(f"floor {floor:.3f}")
    if "accuracy" in now.card and _is_number(accuracy := now.evaluation.get("accuracy")):
        said.append(f"{accuracy:.1%} {'of the tokens ' if EXACT in now.evaluation else ''}right")
    if _is_number(exact := now.evaluation.get(EXACT)):
        said.append(f"{exact:.1%} of the answers without a mistake")
    if _is_number(baseline := now.card.get("baseline_accuracy")):
        said.append(f"baseline {baseline:.1%}")
    if now.step:
        rate, norm = now.step["learning_rate"], now.step["gradient_norm"]
        said.append(f"{now.step['tokens_per_second']:,.0f} tokens/s, learning rate {rate:.3g}, gradient norm {norm:.3g}")
    return " · ".join(said)


def engine(name: str) -> str | None:
    """What the run computes with, and why, as Markdown; None where that is not known."""
    chosen = look(name).card.get("engine")
    if not isinstance(chosen, dict):
        return None
    what = "bfloat16" if chosen.get("bfloat16") else "float32"
    return f"It computes in {what}{', compiled' if chosen.get('compiled') else ''} ({escaped(str(chosen.get('why', ''))[:300])})."


def latest(name: str, device: str) -> ModelKey:
    """The newest weights of a run on the disk: a snapshot, or those saved last.

    Raises:
        CheckpointError: there are none.
    """
    folder = checkpoints.find(name)
    steps = checkpoints.read_card(folder).get("steps")
    newest = max(checkpoints.snapshots(folder), default=None)
    saved = steps if isinstance(steps, int) else math.inf
    return model_key(name, device, newest if newest is not None and newest > saved else None)


def look_inside(name: str, device: str) -> None:
    """What the model has learned so far, the controls for that, and the way to the other pages."""
    try:
        config, card = checkpoints.read_config(checkpoints.find(name)), checkpoints.read_card(checkpoints.find(name))
    except CheckpointError as error:
        st.text(str(error))
        return
    default = default_prompt(config.kind, card)
    view = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        block = head = 0
        stack = encoder_decoder.DECODER
        if config.kind == "encoder-decoder":
            with st.container(width=180):
                stack = encoder_decoder.stack_control()
        n_layer = encoder_decoder.n_blocks(config, stack)
        if n_layer:
            with st.container(width=150):
                block = controls.whole("Block", 0, n_layer - 1, key="block", default=0, help="Numbered from the input.")
            with st.container(width=150):
                about = "The heads of a block read side by side."
                head = controls.whole("Head", 0, config.n_head - 1, key="head", default=0, help=about)
        with st.container(width="stretch"):
            prompt = prompt_box(default)
    with view:
        _inside(name, device, prompt, default, (stack, block, head))
    if why := engine(name):
        st.caption(why)


def _inside(name: str, device: str, prompt: str, default: str, where: tuple[str, int, int]) -> None:
    """What the model has learned so far: where a head (by stack, block and number) looks, and its map of tokens."""
    stack, block, head = where

    def body() -> Watched:
        now = look(name)
        try:
            key = latest(name, device)
            lm = language_model(key)
        except (CheckpointError, MemoryError, RuntimeError) as error:
            st.text(str(error))
            return now
        step = key.step if key.step is not None else now.card.get("steps")
        looks, knows = st.columns(2, gap="medium")
        if sum(parameter.numel() for parameter in lm.model.parameters()) > MOST_LOOKED_INTO:
            looks.caption("This model is too large to be looked into while it trains; the other pages open it.")
            return now
        at = f" after {step:,} steps" if isinstance(step, int) else ""
        with looks:
            of = f" of the {stack}" if lm.model.encoder is not None else ""
            blocks = encoder_decoder.n_blocks(lm.model.config, stack)
            st.markdown(f"**What head {head} of block {block}{of} looks at**{at}" if blocks else "**No attention**")
            _pattern(key, prompt, default, stack, block, head)
        with knows:
            st.markdown(f"**How it arranges the tokens**{at}")
            _map(key)
        return now

    _ticking(body, LOOK, look(name).is_active)


def _sample(now: Watched) -> None:
    """The text of the last sample; of a task, what the model made of a sequence it was never trained on."""
    if not now.sample:
        return
    st.markdown(f"**{MAKES[now.kind or 'decoder']}** after {now.sample['step']:,} steps")
    is_short = "task" in now.card or now.kind != "decoder"
    st.code(str(now.sample.get("text", ""))[:2_000], language=None, wrap_lines=True, height="content" if is_short else 150)
    if now.kind == "classifier":
        st.caption("Texts it was never trained on: its label and how sure it is, in brackets the right one, then the text.")
    elif now.kind == "encoder-decoder":
        st.caption("A source it was never trained on, and its answer.")
    elif is_short:
        st.caption("The first part is given, from a sequence it was never trained on; the rest is its own.")


def _pattern(key: ModelKey, prompt: str, default: str, stack: str, block: int, head: int) -> None:
    lm = language_model(key)
    config = lm.model.config
    n_layer = encoder_decoder.n_blocks(config, stack)
    if not n_layer:
        alone = ": it guesses the next token from the last one alone" if config.kind == "decoder" else ""
        st.caption(f"This model has no blocks, hence no attention{alone}.")
        return
    read = attention.read_by(read_prompt(key, lm, prompt, default), stack)
    block, head = min(block, n_layer - 1), min(head, config.n_head - 1)
    labels = tuple(map(lm.tokenizer.label, read.ids))
    pattern = one_head(attention.view(key, read).patterns, block, head, labels)
    figure = heatmap.one_head(pattern, theme(), title=marks.said(labels), height=320)
    about = f"How each of {len(labels)} tokens shares its attention among them, in block {block}, head {head}."
    st.plotly_chart(figure, key="looks", config={"displayModeBar": False}, alt=about)


def _map(key: ModelKey) -> None:
    labels, kinds = vocabulary.tokens(key).labels, vocabulary.tokens(key).kinds
    some = embeddings.sample(len(labels), MOST_PLACED, 0)
    points, explained = embeddings.pca(embeddings.vectors(language_model(key).model, "embedding"), 2)
    shown = _steadied(key.name, points)[some]
    axes = (Axis("token", tuple(labels[i] for i in some)), Axis("component", ("1", "2")))
    figure = scatter.cloud(LabelledArray(shown, axes, "coordinate"), [kinds[i] for i in some], theme(), height=320)
    figure.update_layout(showlegend=False)
    st.plotly_chart(figure, key="knows", config={"displayModeBar": False}, alt=f"A map of {len(some)} tokens by PCA.")
    st.caption(f"PCA of the embedding: {sum(explained):.0%} of the variance.")


def _steadied(name: str, points: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The map turned, or mirrored, so that it lies on the one shown before as well as it can: PCA leaves that open."""
    before = st.session_state.get("map shown")
    if before is not None and before[0] == name and before[1].shape == points.shape:
        points = turned(points, before[1])
    st.session_state["map shown"] = name, points
    return points


def turned(points: npt.NDArray[np.float32], onto: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """`points` [token, 2], turned or mirrored about the origin to lie nearest to `onto` [token, 2] (orthogonal Procrustes,
    Schönemann 1966)."""
    u, _, v = np.linalg.svd(points.T.astype(np.float64) @ onto)
    return (points @ (u @ v)).astype(np.float32)


def code(name: str, command: str) -> str:
    """How the same is had without a browser: the run the form describes, and the losses of the one watched."""
    return f"""# in a shell, what the form now says:
#   {command}

from gptviz.runs import checkpoints
from gptviz.runs.log import read_log

folder = checkpoints.find({name!r})
for line in read_log(folder / "log.jsonl"):
    if line["kind"] == "evaluation":
        print(line["step"], line["loss"])"""


def losses(name: str) -> LabelledArray:
    """The validation losses of a run, by step."""
    curve = curve_of(checkpoints.find(name))
    steps = tuple(f"{step:.0f}" for step in curve.validation_steps)
    return LabelledArray(curve.validation, (Axis("step", steps),), "validation loss in nats per token")
