"""The Train page as a reader meets it, without a browser; runs are real, and tiny."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.data.batches import NOT_COUNTED
from gptviz.data.classification import LabelledSource
from gptviz.data.trained_on import draw_seed
from gptviz.figures.kit.format import percent
from gptviz.machine import memory
from gptviz.model import change_config, parameter_count
from gptviz.runs import checkpoints, fits, queue
from gptviz.runs.experiments import PLANS
from gptviz.runs.log import read_log
from gptviz.runs.status import RunState, Status, read_status, request_stop
from gptviz.streamlit_internals import READ_AS_A_WHOLE
from gptviz.text import TASKS, labelled_of
from gptviz.text.datasets.pairs import PAIR_TASKS
from gptviz.train.recipe import Recipe
from gptviz.ui.pages.train import form, inside, watch
from gptviz.ui.pages.train.rules import OWN_PLAN, plan_named
from gptviz.ui.pages.train.watch import companions, tries
from gptviz.ui.pages.train.watched import watched_run
from gptviz.ui.views import planned_run
from gptviz.ui.views.learning_curves import curve_of
from gptviz.ui.widgets import escape_markdown
from tests.app.opening import button, chart, opened, page_at, press, says
from tests.drawn import numbers
from tests.examples import quick
from tests.processes import TrainingThread
from tests.tiny import TinyModel
from tests.waiting import wait_until

# In float32 and not compiled: nothing is tried out first.
PLAIN = {"run_precision": "float32", "run_compile": "no"}
TINY = PLAIN | {
    "plan": "copy",
    "run_n_layer": "1",
    "run_d_model": "8",
    "run_batch_size": "4",
    "run_steps": "40",
    "run_evaluations": "2",
}
WORDS = (
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
LONG = TINY | {"run_steps": "1000000"}


page = page_at("pages/train.py")


def progress(at: AppTest) -> str:
    (bar,) = at.get("progress")
    return str(bar.proto.text)


@pytest.fixture(autouse=True)
def _nothing_trains_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(queue, "POLL", 0.05)
    yield
    queue.own_queue().close()


@pytest.fixture(autouse=True)
def _in_threads(
    home: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs are trained by threads of this process, but in the full tests."""
    if request.node.get_closest_marker("full"):
        return
    monkeypatch.setattr(queue.own_queue(), "_launch", TrainingThread)


def at_state(at: AppTest, name: str, state: str) -> AppTest:
    """The page once the run is in this state, as its timer would show it."""
    wait_until(lambda: read_status(checkpoints.find(name)).state == state)
    wait_until(lambda: state in ("running", "waiting") or queue.own_queue().place(name) is None)
    at.run()
    return at


def test_without_any_run_of_ones_own_the_page_shows_how_a_shipped_model_learned() -> None:
    at = page()
    assert at.selectbox(key="run").value == "shakespeare"
    assert progress(at).startswith("Finished")
    assert any(
        "held-out data" in str(trace.get("hovertemplate")) for trace in chart(at, "live")["data"]
    )
    assert at.query_params["run"] == "shakespeare"
    curve = curve_of(checkpoints.find("shakespeare"))
    first = float(curve.validation[0])
    last = float(curve.validation[-1])
    step = min(curve.validation_steps[first - curve.validation >= 0.9 * (first - last)])
    assert (
        f"the loss fell from {first:.3f} to {last:.3f}, and nine tenths of that by step "
        f"{step:,.0f}." in says(at)
    )


# test_train_rules tests without the page which run every plan describes. Here: one plan that needs
# a text, one that needs none.
OPENED = ("generator", "induction")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in OPENED else pytest.mark.full)
        for name, plan in PLANS.items()
        if plan.begin is None
    ],
)
def test_every_plan_opens_and_says_how_many_parameters_it_has(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inside, "look_inside", lambda *arguments: None)
    plan = PLANS[name]
    at = page(plan=name)
    assert plan.sentence in says(at)
    if plan.data == "tiny-shakespeare":
        assert f"{parameter_count(plan.config):,} parameters" in says(at)
        assert "not on this machine yet" in says(at)
    else:
        source = plan.source()
        fitted = source.fit_config(plan.config, plan.learn_tokenizer(source))
        assert f"{parameter_count(fitted):,} parameters" in says(at)
        assert not button(at, "Train").disabled


def test_a_changed_dimension_changes_the_count_and_another_plan_sets_all_of_them() -> None:
    at = page(plan="copy")
    at.number_input(key="run_d_model").set_value(32).run()
    at.number_input(key="run_n_layer").set_value(5).run()
    at.selectbox(key="run_positions").set_value("alibi").run()
    wanted = change_config(PLANS["copy"].config, d_model=32, n_layer=5, positions="alibi")
    assert f"{parameter_count(wanted):,} parameters" in says(at)
    at.selectbox(key="plan").set_value("induction").run()
    assert f"{parameter_count(PLANS['induction'].config):,} parameters" in says(at)
    assert at.selectbox(key="data").value == "induction"
    assert at.selectbox(key="run_positions").value == PLANS["induction"].config.positions
    assert at.number_input(key="run_steps").value == PLANS["induction"].recipe.steps


def expected(at: AppTest) -> tuple[int, float, float]:
    """The expected parameters, seconds and bytes of memory of a run, as the page gives them."""
    sentence = next(line for line in says(at).splitlines() if " parameters, about " in line)
    parameters, duration, memory = re.fullmatch(
        r"([\d,]+) parameters, about (.*), (.*) of memory", sentence
    ).groups()
    units = {"s": 1, "min": 60, "h": 3_600, "MB": 1e6, "GB": 1e9}

    def total(amount: str) -> float:
        return sum(
            float(number) * units[unit] for number, unit in re.findall(r"([\d.]+) (\w+)", amount)
        )

    return int(parameters.replace(",", "")), total(duration), total(memory)


def test_the_time_said_grows_with_the_steps_and_the_memory_with_the_batch() -> None:
    at = page(**TINY | {"run_steps": "20000"})
    parameters, seconds, memory = expected(at)
    at.number_input(key="run_steps").set_value(200_000).run()
    assert expected(at)[0] == parameters
    assert expected(at)[1] == pytest.approx(10 * seconds, rel=0.1)
    assert expected(at)[2] == memory
    at.number_input(key="run_batch_size").set_value(4_096).run()
    assert expected(at)[1] > 20 * seconds
    assert expected(at)[2] > 1.2 * memory


def test_a_name_no_model_can_have_is_refused_with_the_reason(home: Path) -> None:
    at = page(**TINY)
    for name in ("../../x", "a b"):
        at.text_input(key="save_as").set_value(name).run()
        assert "cannot name a model" in says(at), name
        assert button(at, "Train").disabled, name
    at.text_input(key="save_as").set_value("a-b").run()
    assert not button(at, "Train").disabled
    assert not list(home.rglob("config.json"))


def check_a_run_from_beginning_to_end() -> None:
    at = press(page(**TINY), "Train")
    assert at.selectbox(key="run").value == "copy"
    assert at.query_params["run"] == "copy"
    assert at.text_input(key="save_as").placeholder == "copy-2"
    assert re.match("Beginning|Step|Finished", progress(at))
    again = at_state(page(run="copy"), "copy", "finished")
    assert again.selectbox(key="run").value == "copy"
    assert "Finished: 40 steps" in progress(again)
    assert "validation **" in says(again)
    assert "floor 0.78" in says(again)
    assert any("What it writes" in element.value for element in again.markdown)
    assert "It computes in float32" in says(again)
    assert not [one for one in again.button if one.label in ("Pause", "Stop", "Go on")]
    again.selectbox(key="chart").set_value("Right by place").run()
    assert len(chart(again, "live")["data"]) == 1
    for quantity in ("Perplexity", "Tokens/s", "Learning rate", "Gradient norm"):
        again.selectbox(key="chart").set_value(quantity).run()
        assert quantity.lower() in json.dumps(chart(again, "live")["layout"]).lower()
        if quantity == "Perplexity":
            losses = [
                line.loss
                for line in watched_run("copy").log
                if line.kind == "evaluation" and line.loss is not None
            ]
            assert numbers(chart(again, "live")["data"][0]["y"]) == pytest.approx(
                [math.exp(loss) for loss in losses]
            )


def test_a_run_is_begun_watched_reloaded_and_finished() -> None:
    check_a_run_from_beginning_to_end()


def test_a_chart_that_is_shown_again_while_a_run_is_begun_does_not_bring_back_the_run_watched_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = page(**TINY)
    as_before = at._tree.get_widget_states()
    assert at.selectbox(key="run").value != "copy"
    begin = planned_run.begin

    def meanwhile(*arguments: Any) -> int:
        context = get_script_run_ctx()
        assert context is not None
        assert context.script_requests is not None
        # What the browser sends each second: its controls as they were, and the part of the page to
        # show again.
        context.script_requests.request_rerun(
            RerunData(widget_states=as_before, fragment_id="live", is_auto_rerun=True)
        )
        return begin(*arguments)

    monkeypatch.setattr(planned_run, "begin", meanwhile)
    press(at, "Train")
    assert at.selectbox(key="run").value == "copy"
    assert at.query_params["run"] == "copy"


@pytest.mark.full
def test_a_process_of_its_own_trains_a_run_from_beginning_to_end() -> None:
    check_a_run_from_beginning_to_end()


def last_step(name: str = "copy") -> int:
    """The last step in the log of a run, 0 before the first."""
    line = watched_run(name).step
    return line.step if line else 0


def test_a_run_is_paused_and_gone_on_with_and_a_second_one_waits_its_turn() -> None:
    at = press(page(**LONG), "Train")
    other = press(page(**TINY, save_as=""), "Train")
    assert "second in line: copy is in training" in progress(other)
    assert other.selectbox(key="run").value == "copy-2"
    press(other, "Take back")
    assert "has not begun" in progress(other)
    wait_until(last_step)
    at_state(at, "copy", "running")
    assert re.match(r"Step [\d,]+ of 1,000,000 · .* left", progress(at))
    press(at, "Pause")
    at_state(at, "copy", "paused")
    paused_at = last_step()
    assert re.match(rf"Step {paused_at:,} of 1,000,000\. Paused", progress(at))
    press(at, "Go on")
    at_state(at, "copy", "running")
    wait_until(lambda: last_step() > paused_at)
    press(at, "Stop")
    at_state(at, "copy", "stopped")
    assert "Stopped before its end" in progress(at)
    assert last_step() > paused_at


def test_a_request_is_shown_before_it_is_carried_out(tiny_model: TinyModel) -> None:
    folder = tiny_model("asked")
    for how, word in (("pause", "pausing"), ("stop", "stopping: a last evaluation")):
        request_stop(folder, how)
        assert word in watch.headline(dataclasses.replace(watched_run("asked"), place=0))
    for name in get_args(RunState):  # one that has ended since its state was read is shown too
        assert watch.headline(
            dataclasses.replace(watched_run("asked"), place=None, status=Status(name))
        )


def test_the_loss_says_after_which_step_and_on_how_much_of_the_data_it_was_measured(
    tiny_model: TinyModel,
) -> None:
    folder = tiny_model("late")
    step = {
        "loss": 1,
        "progress": 0.1,
        "learning_rate": 1,
        "gradient_norm": 1,
        "tokens_per_second": 1,
        "seconds_left": 1,
    }
    lines = [
        {"kind": "evaluation", "step": 0, "loss": 4.25, "share": 0.07},
        {"kind": "step", "step": 920, **step},
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert (
        "validation **4.250** nats, perplexity 70.1 after 0 steps on 7.00 % of the data held out"
        in watch.numbers_line(watched_run("late"))
    )
    lines.append({"kind": "evaluation", "step": 920, "loss": 4.25})
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "validation **4.250** nats, perplexity 70.1 ·" in watch.numbers_line(watched_run("late"))


def drawn(at: AppTest) -> dict[str, list[Any]]:
    """The curves of the chart by their names."""
    return {
        str(trace["name"]): numbers(trace["y"]).tolist()
        for trace in chart(at, "live")["data"]
        if trace.get("name")
    }


def test_the_same_address_shows_the_same_chart_after_a_reload() -> None:
    at = page(run="ladder-8")
    at.multiselect(key="beside").set_value(["ladder-0", "generator"]).run()
    at.toggle(key="log_steps").set_value(True).run()
    again = page(run="ladder-8", beside=["ladder-0", "generator"], log_steps="true")
    assert set(drawn(at)) == {"ladder-8", "ladder-0", "generator"}
    assert drawn(again) == drawn(at)
    assert chart(again, "live")["layout"] == chart(at, "live")["layout"]
    # Another run brings those along that belong beside it, as its address does.
    at.selectbox(key="run").set_value("reversal").run()
    assert set(drawn(at)) == {"reversal", "reversal-no-positions"}
    assert drawn(page(run="reversal", log_steps="true")) == drawn(at)


def test_beside_a_run_are_models_of_its_own_experiment_and_of_related_ones_but_not_itself() -> None:
    mine = dataclasses.replace(watched_run("reversal"), folder=Path("mine"))
    names = ["generator", "mine", "reversal", "reversal-no-positions"]
    assert companions(mine, names) == ["reversal", "reversal-no-positions"]
    assert companions(watched_run("reversal"), names) == ["reversal-no-positions"]


def test_every_try_changes_what_is_on_screen_and_says_what_the_logs_say() -> None:
    at = page()
    offers = tries("shakespeare", "sums")
    assert {offer.title for offer in offers} == {
        "A sudden insight",
        "Far too fast",
        "What did my data do?",
    }
    for offer in reversed(offers):
        before = chart(at, "live")["data"], says(at)
        press(at, offer.title)
        assert (chart(at, "live")["data"], says(at)) != before, offer.title
        assert offer.title != "Far too fast" or "Changed: Learning rate 1 instead of 0.004" in says(
            at
        )
        assert offer.title != "What did my data do?" or at.selectbox(key="data_b").value == "jobs"
    losses = {
        line.step: line.loss for line in watched_run("induction").log if line.kind == "evaluation"
    }
    falls = {(a, b): losses[a] - losses[b] for a, b in pairwise(sorted(losses))}
    (before_it, after_it), fall = max(falls.items(), key=lambda item: item[1])
    sudden = next(offer.notice for offer in offers if offer.title == "A sudden insight")
    assert f"{fall:.2f} of the" in sudden
    assert f"between steps {before_it:,} and {after_it:,}" in sudden


def test_the_list_of_experiments_says_what_each_is_for_and_how_long_it_takes() -> None:
    at = page()
    assert expected(at)[1] <= 60, "the experiment that the page begins with"
    at.session_state["all experiments"] = True
    at.run()
    for name, plan in PLANS.items():
        (line,) = [
            caption.value
            for caption in at.caption
            if caption.value.startswith(f"{plan.sentence} About ")
        ]
        assert re.fullmatch(r"[\d hminsday]+\.", line.removeprefix(f"{plan.sentence} About ")), line
        assert button(at, name)
    press(at, "induction")
    assert at.selectbox(key="plan").value == "induction"
    assert at.number_input(key="run_steps").value == PLANS["induction"].recipe.steps


@pytest.mark.parametrize(
    "plan", quick(["sums", "classifier", "mirror", "my own"], "sums", "classifier", "mirror")
)
def test_the_first_batch_of_a_run_is_shown_as_the_model_gets_it(plan: str) -> None:
    at = press(page(plan=plan), "Look at the data")
    rows = at.dataframe[-1].value
    source = plan_named(plan).source()
    tokenizer = plan_named(plan).learn_tokenizer(source)
    config = source.fit_config(plan_named(plan).config, tokenizer)
    recipe = plan_named(plan).recipe
    batch = source.data(tokenizer, config).training(
        recipe.batch_size, draw_seed(recipe.seed, 0, "batch")
    )
    shown = {
        name: [label for label in rows.loc[name] if label]
        for name in rows.index
        if name.startswith("row 1")
    }
    reads = [
        tokenizer.label(token) for token in batch.inputs[0][0].tolist() if token != config.padding
    ]
    if config.kind == "classifier":
        assert shown == {
            f"row 1, label {source.label_names[int(batch.targets[0])]}: x, it reads": reads
        }
        return
    guessed = [
        "·" if token == NOT_COUNTED else tokenizer.label(token)
        for token in batch.targets[0].tolist()
    ]
    assert shown["row 1: x, it reads"] == reads
    assert shown["row 1: y, it is to guess"] == guessed
    if config.kind == "encoder-decoder":
        encoder = [
            tokenizer.label(token)
            for token in batch.inputs[1][0].tolist()
            if token != config.padding
        ]
        assert shown["row 1: source, the encoder reads"] == encoder
    else:
        assert all(x == y for x, y in zip(reads[1:], guessed, strict=False) if y != "·"), (
            "y is x moved by one place"
        )


def test_when_as_many_wait_as_may_the_next_is_refused_before_anything_is_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue.own_queue(), "most_waiting", 0)
    at = press(page(**TINY), "Train")
    assert "which is the most allowed" in says(at)
    assert not list(home.rglob("config.json"))
    assert at.number_input(key="run_steps").value == 40


def test_a_batch_that_does_not_fit_in_memory_is_refused_with_the_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 600 * 10**6)
    at = page(plan="copy", run_batch_size="4096")
    assert "of memory, and 600 MB is free" in says(at)
    assert button(at, "Train").disabled
    at.number_input(key="run_batch_size").set_value(2).run()
    assert not button(at, "Train").disabled


def upload(at: AppTest, name: str, content: bytes, key: str = "uploaded") -> AppTest:
    at.file_uploader(key=key).upload(name, content)
    at.run()
    return at


def test_a_file_is_trained_on_character_by_character() -> None:
    text = "to be or not to be that is the question\n" * 40
    query = {
        "plan": "my own",
        "data": "a file of yours",
        "run_context_length": "8",
        "run_d_model": "8",
        "run_steps": "9000000",
    }
    at = upload(page(**query), "ham<b>let.txt", text.encode())
    config = change_config(OWN_PLAN.config, vocab_size=len(set(text)), context_length=8, d_model=8)
    assert f"{parameter_count(config):,} parameters" in says(at)
    press(at, "Train")
    card = checkpoints.read_card(checkpoints.find("my-own"))
    assert card.corpus == "ham<b>let.txt"
    assert card.plan == "my own"


def test_a_text_that_was_pasted_is_there_after_a_reload_and_after_another_page() -> None:
    text = "to be or not to be " * 400
    at = page(plan="my own", data="a text you paste")
    at.text_area(key="pasted").set_value(text).run()
    said = at.query_params["pasted"]
    assert len(said) < 100, (
        "its key: `test_texts_in_addresses` has texts that stand there themselves"
    )
    assert (
        page(plan="my own", data="a text you paste", pasted=said).text_area(key="pasted").value
        == text
    )
    at.switch_page("pages/gradients.py").run()
    del at.query_params["pasted"]
    at.switch_page("pages/train.py").run()
    assert at.text_area(key="pasted").value == text


def test_tiny_shakespeare_offline_says_so_and_what_to_take_instead() -> None:
    at = page(plan="generator")
    assert "fetch it, or take other data" in says(at)
    press(at, "Fetch it now")
    assert "are you offline?" in says(at)
    at.selectbox(key="data").set_value("python-reference").run()
    assert not button(at, "Train").disabled


def test_a_run_whose_card_and_log_are_nonsense_is_shown_as_far_as_it_can_be(
    tiny_model: TinyModel,
) -> None:
    folder = tiny_model(
        "odd",
        card={
            "recipe": 3,
            "engine": "x",
            "losses": {"a": 1},
            "preset": 7,
            "floor": "low",
            "steps": "many",
        },
    )
    lines = [
        {"kind": "step", "step": 1},
        {"kind": "evaluation", "step": 2, "loss": "none", "by_place": "all"},
        {"kind": "sample", "step": 3},
    ]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\nrubbish")
    (tiny_model("broken") / "card.json").write_text("[")
    at = page(run="odd")
    assert at.selectbox(key="run").value == "odd"
    at.selectbox(key="run").set_value("broken").run()
    assert "broken/card.json" in says(at)


def test_what_a_model_writes_is_never_markup(tiny_model: TinyModel) -> None:
    folder = tiny_model("writer")
    text = "**bold** :red[x] <img src=x> $y$"
    (folder / "log.jsonl").write_text(
        json.dumps({"kind": "sample", "step": 3, "text": text}) + "\n"
    )
    at = page(run="writer")
    assert text in [code.value for code in at.code]
    assert text not in says(at)
    assert all(text not in element.value for element in at.markdown)


def test_what_a_card_a_status_and_a_name_say_is_never_markup(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "[a](http://b) **bold** :red[x] $y$"
    tiny_model("odd", card={"engine": {"why": hostile}})
    shown = watch.engine(watched_run("odd"))
    assert shown is not None
    assert hostile not in shown
    assert escape_markdown(hostile) in shown
    now = watched_run("odd")
    waiting = dataclasses.replace(now, place=1)
    with monkeypatch.context() as other:
        other.setattr(queue, "own_queue", lambda: SimpleNamespace(training=lambda: [hostile]))
        assert escape_markdown(hostile) in watch.headline(waiting)
    beginning = dataclasses.replace(now, place=0, status=Status("ready", hostile))
    assert watch.headline(beginning) == f"Beginning: {escape_markdown(hostile)}."


def test_a_run_that_diverged_is_said_to_have_with_what_to_change(tiny_model: TinyModel) -> None:
    losses = [
        {"step": 0, "validation": 3.4},
        {"step": 9, "validation": 119_295.0, "training": 90_000.0},
    ]
    recipe = Recipe(steps=9, learning_rate=1.0).to_dict()
    tiny_model(
        "wild", card={"steps": 9, "losses": losses, "recipe": recipe, "validation_loss": 119_295.0}
    )
    at = page(run="wild")
    (said,) = [warning.value for warning in at.warning if "diverged" in warning.value]
    assert "It diverged: after 9 steps its loss is 119,295 nats" in said.replace("\\", "")
    assert "lower the learning rate" in said
    assert "Finished, but it diverged: 9 steps" in progress(at)


KINDS = {
    "classifier": ["opinions"],
    "seq2seq": ["dates", "numbers", "mirror"],
    "copy": [*TASKS, "python-reference"],
}


@pytest.mark.parametrize("plan", KINDS)
def test_the_data_and_the_models_to_begin_with_are_those_of_the_plans_kind(
    plan: str, tiny_model: TinyModel, tiny_classifier: TinyModel, tiny_pair: TinyModel
) -> None:
    names = {
        "copy": tiny_model("one").name,
        "classifier": tiny_classifier("two").name,
        "seq2seq": tiny_pair("three").name,
    }
    at = page(plan=plan, data="no such data")
    assert {*names.values()} & {*at.selectbox(key="begin").options} == {names[plan]}
    offered = at.selectbox(key="data").options
    assert set(KINDS[plan]) <= set(offered)
    assert not set(offered) & {name for other in KINDS if other != plan for name in KINDS[other]}
    assert at.selectbox(key="data").value == PLANS[plan].data
    assert "no such data" in says(at)
    assert not button(at, "Train").disabled


def test_what_the_data_decide_is_no_control_and_another_plan_sets_what_its_kind_has() -> None:
    at = page(plan="classifier")
    numbers = {one.key for one in at.number_input}
    assert not numbers & {"run_padding", "run_n_label", "run_n_encoder_layer", "run_vocab_size"}
    assert at.selectbox(key="run_head").options == ["flatten", "mean", "sum", "first", "first-relu"]
    at.selectbox(key="plan").set_value("seq2seq").run()
    assert (
        at.number_input(key="run_n_encoder_layer").value == PLANS["seq2seq"].config.n_encoder_layer
    )
    at.number_input(key="run_n_encoder_layer").set_value(1).run()
    wanted = change_config(
        PLANS["seq2seq"]
        .source()
        .fit_config(PLANS["seq2seq"].config, PAIR_TASKS["dates"].tokenizer),
        n_encoder_layer=1,
    )
    assert f"{parameter_count(wanted):,} parameters" in says(at)
    at.selectbox(key="plan").set_value("bpe").run()
    assert at.number_input(key="run_vocabulary").value == PLANS["bpe"].config.vocab_size


def test_a_classifier_is_trained_and_watched_beside_its_baseline() -> None:
    query = {"run_steps": "6", "run_batch_size": "8", "run_d_model": "8", "run_evaluations": "2"}
    at = at_state(
        press(page(plan="classifier", **PLAIN, **query), "Train"), "classifier-2", "finished"
    )
    assert "Finished: 6 steps" in progress(at)
    card = checkpoints.read_card(checkpoints.find("classifier-2"))
    assert f"{percent(card.accuracy)} right" in says(at)
    assert f"baseline {percent(card.baseline_accuracy)}" in says(at)
    assert "perplexity" not in watch.numbers_line(watched_run("classifier-2"))
    assert any(
        "blind guess: ln 2 = 0.693" in note["text"]
        for note in chart(at, "live")["layout"]["annotations"]
    )
    assert any("What it makes of some texts" in element.value for element in at.markdown)
    assert any("positive" in code.value for code in at.code)
    assert any("What head 0 of block 0 looks at" in element.value for element in at.markdown)
    beside = chart(at, "live accuracy")
    assert [trace["hovertemplate"].split("<br>")[0] for trace in beside["data"][:2]] == [
        "classifier-2, held-out data",
        "classifier-2, data it is trained on",
    ]
    assert f"{percent(card.training_accuracy)} on what it is trained on" in says(at)
    assert f"a gap of {100 * (card.training_accuracy - card.accuracy):.1f} points" in says(at)
    at.selectbox(key="chart").set_value("Accuracy").run()
    shares = [
        line.accuracy for line in watched_run("classifier-2").log if line.kind == "evaluation"
    ]
    assert len(shares) == 3
    assert numbers(chart(at, "live")["data"][0]["y"]).tolist() == pytest.approx(shares)


def test_an_encoder_decoder_is_trained_and_both_its_stacks_are_watched() -> None:
    query = {
        "run_steps": "6",
        "run_batch_size": "4",
        "run_d_model": "8",
        "run_context_length": "32",
        "run_evaluations": "1",
    }
    at = at_state(press(page(plan="mirror", **PLAIN, **query), "Train"), "mirror", "finished")
    assert "Finished: 6 steps" in progress(at)
    assert (
        f"{percent(checkpoints.read_card(checkpoints.find('mirror')).values['exact_match'])} of "
        "the answers without a mistake" in says(at)
    )
    assert any("What it answers" in element.value for element in at.markdown)
    assert any("of the encoder looks at" in element.value for element in at.markdown)
    at.segmented_control(key="stack").set_value("decoder").run()
    assert any("of the decoder looks at" in element.value for element in at.markdown)


def test_a_table_of_ones_own_decides_words_and_labels() -> None:
    table = "text,label\n" + "\n".join(
        f"{word} opinion number {word},{label}"
        for word, label in zip(WORDS, "aabbcc" * 2, strict=True)
    )
    at = upload(
        page(plan="classifier", data="a file of yours"), "mine.csv", table.encode(), "labelled"
    )
    source = LabelledSource(labelled_of(table.encode(), "mine.csv"), PLANS["classifier"].fraction)
    config = source.fit_config(PLANS["classifier"].config, source.tokenizer("words", 7_455))
    assert config.n_label == 3
    assert f"{parameter_count(config):,} parameters" in says(at)
    at.number_input(key="run_vocabulary").set_value(5).run()
    assert (
        f"{parameter_count(change_config(config, vocab_size=5, padding=4)):,} parameters"
        in says(at)
    )
    assert not button(at, "Train").disabled


UNSUITED = {
    ("my own", "uploaded"): ("Grüße".encode("utf-16"), "is not UTF-8"),
    ("classifier", "labelled"): (b"review,stars\ngood,5\n", "no column 'text' and 'label'"),
    ("seq2seq", "pairs"): (b"a" * 3_000 + b",1\nb,2\n", "context_length"),
}


@pytest.mark.parametrize(("plan", "key"), UNSUITED)
def test_a_file_that_does_not_suit_the_kind_is_named_with_what_is_wrong(
    plan: str, key: str
) -> None:
    at = page(plan=plan, data="a file of yours")
    content, message = UNSUITED[plan, key]
    upload(at, "mine.csv", content, key)
    assert message in says(at)
    assert "mine" in says(at)
    assert button(at, "Train").disabled


def test_pairs_of_ones_own_are_trained_on() -> None:
    pairs = "".join(f"{word}\t{word[::-1]}\n" for word in WORDS)
    at = page(plan="mirror", data="a file of yours", run_d_model="8", run_steps="9000000")
    assert "choose a file" in says(at)
    assert button(at, "Train").disabled
    press(upload(at, "mine.tsv", pairs.encode(), "pairs"), "Train")
    folder = checkpoints.find("mirror")
    assert checkpoints.read_card(folder).corpus == "mine.tsv"
    assert checkpoints.read_config(folder).n_encoder_layer == PLANS["mirror"].config.n_encoder_layer


LLAMA_LIKE = {
    "run_n_head": "4",
    "run_n_kv_head": "2",
    "run_positions": "rotary",
    "run_rotary_base": "500",
    "run_norm": "rmsnorm",
    "run_mlp": "gated",
    "run_activation": "silu",
    "run_qk_norm": "separate",
    "run_residual": "double-norm",
    "run_window": "4",
    "run_window_pattern": "wf",
    "run_score_cap": "20",
    "run_logit_cap": "10",
    **dict.fromkeys(("run_qkv_bias", "run_output_bias", "run_mlp_bias"), "false"),
}
NEOX_LIKE = {
    "run_n_head": "2",
    "run_residual": "parallel",
    "run_positions": "rotary",
    "run_rotary_fraction": "0.5",
    "run_attention_dropout": "0.1",
    "run_norm_eps": "1e-06",
}
FAMILIES = {"llama-like": LLAMA_LIKE, "neox-like": NEOX_LIKE}
SMALL = TINY | {"run_n_layer": "2", "run_d_model": "16", "run_steps": "20"}


@pytest.mark.parametrize("family", quick(FAMILIES, "llama-like"))
def test_a_family_is_trained_from_the_form_and_every_page_about_its_parts_opens_it(
    family: str,
) -> None:
    axes = FAMILIES[family]
    at = page(**SMALL | axes)
    control = {
        one.key: one
        for kind in (at.number_input, at.selectbox, at.toggle, at.text_input)
        for one in kind
    }
    for key, value in axes.items():
        assert str(control[key].value).lower() in (value, f"{value}.0"), key
    assert not [key for key in axes if control[key].disabled]
    at_state(press(at, "Train"), "copy", "finished")
    config = checkpoints.read_config(checkpoints.find("copy")).to_dict()
    for key, value in axes.items():
        assert str(config[key.removeprefix("run_")]).lower() in (value, f"{value}.0"), key
    assert (
        f"{parameter_count(checkpoints.read_config(checkpoints.find('copy'))):,} parameters"
        in says(page(**SMALL | axes))
    )
    for path in ("app.py", "pages/attention.py", "pages/gradients.py", "pages/positions.py"):
        shown = opened(path, model="copy")
        assert not shown.error, (path, shown.error)


def test_few_controls_are_in_sight_the_others_stand_in_groups_and_what_has_no_effect_cannot_be_set() -> (
    None
):
    at = page(plan="copy")
    folded = {
        one.key
        for box in at.expander
        for kind in ("number_input", "selectbox", "toggle")
        for one in box.get(kind)
    }
    of_task = {f"run_copy_{name}" for name in ("vocab", "lag", "length")}
    in_sight = {one.key for one in at.number_input if one.key.startswith("run_")} - folded - of_task
    assert in_sight == {f"run_{name}" for name in (*form.SIZES_IN_SIGHT, *form.RECIPE_IN_SIGHT)}
    labels = [box.label for box in at.expander]
    assert {
        "Attention",
        "MLP",
        "Residual and norms",
        "Positions",
        "Biases",
        "Embedding and output",
        "Dropout",
    } <= set(labels)

    def off() -> set[str]:
        kinds = (at.number_input, at.selectbox, at.toggle, at.text_input)
        return {one.key.removeprefix("run_") for kind in kinds for one in kind if one.disabled}

    rotary = {"rotary_base", "rotary_fraction", "rotary_scaling", "rotary_factor", "rotary_context"}
    assert off() >= rotary | {"window_pattern", "window_rotary_base"}
    at.selectbox(key="run_positions").set_value("rotary").run()
    assert off() & rotary == {"rotary_factor", "rotary_context"}
    at.selectbox(key="run_rotary_scaling").set_value("linear").run()
    assert off() & rotary == {"rotary_context"}
    at.number_input(key="run_window").set_value(4).run()
    assert not off() & {"window_pattern", "window_rotary_base"}
    # Another kind of model has the parts of its plan again.
    at.selectbox(key="run_mlp").set_value("gated").run()
    at.selectbox(key="plan").set_value("classifier").run()
    usual = PLANS["classifier"].config
    assert (at.selectbox(key="run_mlp").value, at.number_input(key="run_window").value) == (
        usual.mlp,
        None,
    )
    assert at.selectbox(key="run_positions").value == usual.positions


def _fields(plan: str) -> None:
    import streamlit as st

    from gptviz.model import Config
    from gptviz.runs.experiments import PLANS
    from gptviz.settings.fields import field_infos
    from gptviz.train.recipe import Recipe
    from gptviz.ui.pages.train.rules import architecture_values, field_controls, recipe_values

    model = field_controls(
        field_infos(Config), architecture_values(PLANS[plan].config), ("n_layer",)
    )
    st.session_state["set"] = model | field_controls(
        field_infos(Recipe), recipe_values(PLANS[plan].recipe), ("steps",)
    )


@pytest.mark.parametrize("plan", ["copy", "classifier", "seq2seq", "modular"])
def test_groups_that_nobody_opened_are_empty_and_give_what_their_controls_would(plan: str) -> None:
    def filled(*, whole: bool = False, **query: str) -> tuple[int, dict[str, str]]:
        at = AppTest.from_function(_fields, args=(plan,))
        if whole:
            at.session_state[READ_AS_A_WHOLE] = True
        for key, value in query.items():
            at.query_params[key] = value
        at.run()
        controls = sum(
            len(kind) for kind in (at.number_input, at.selectbox, at.toggle, at.text_input)
        )
        return controls, {name: repr(value) for name, value in at.session_state["set"].items()}

    all_controls, usual = filled(whole=True)
    assert filled() == (2, usual)
    few_controls, linked = filled(run_norm_eps="0.5", run_weight_decay="0.25")
    assert linked == usual | {"norm_eps": "0.5", "weight_decay": "0.25"}
    assert 2 < few_controls < all_controls, "only their groups are filled"


TWO = PLAIN | {
    "plan": "jobs",
    "two_texts": "true",
    "run_batch_size": "8",
    "run_steps": "6",
    "run_evaluations": "2",
}


def test_two_texts_are_two_runs_that_differ_in_their_data_alone_and_lead_to_compare() -> None:
    at = at_state(press(page(**TWO, run_jobs_pilot="30"), "Train"), "jobs-b", "finished")
    at = at_state(at, "jobs-a", "finished")
    one, other = (checkpoints.read_card(checkpoints.find(name)) for name in ("jobs-a", "jobs-b"))
    assert (one.twin, other.twin) == ("jobs-b", "jobs-a")
    assert one.recipe == other.recipe
    assert (
        one.source["settings"] | {"nurse": 10, "doctor": 90, "pilot": 20}
        == other.source["settings"]
    )
    assert one.source["settings"]["pilot"] == 30
    assert (
        one.command
        == "python -m gptviz train jobs --name jobs-a --task pilot=30 --steps 6 --batch-size 8 "
        "--evaluations 2"
    )
    first = [
        checkpoints.load(checkpoints.find(name), step=0).model.state_dict()
        for name in ("jobs-a", "jobs-b")
    ]
    assert all(first[0][key].equal(first[1][key]) for key in first[0])
    assert at.query_params["run"] == "jobs-a"
    assert "jobs-a, trained on jobs (nurse 90, doctor 10, pilot 30)" in says(at).replace("**", "")
    assert "jobs-b, trained on jobs (nurse 10, doctor 90, pilot 20)" in says(at).replace("**", "")
    assert at.multiselect(key="beside").value == ["jobs-b"]
    assert sum("the nurse said that" in one.value for one in at.code) == 2
    assert "never trained on" not in says(at)
    (link,) = [one.proto for one in at.get("page_link") if "Ask both" in one.proto.label]
    assert "b_model=jobs-b" in link.query_string
    assert at.text_input(key="save_as").placeholder == "jobs-2"


def test_two_texts_begin_with_the_pair_about_nurses_unless_something_was_chosen() -> None:
    at = page()
    at.toggle(key="two_texts").set_value(True).run()
    assert at.selectbox(key="plan").value == "jobs"
    assert not button(at, "Train").disabled
    assert {at.number_input(key=f"run_jobs_nurse{end}").value for end in ("", "_b")} == {90, 10}
    # a link that asks for both has chosen
    for plan, then in (("generator", "generator"), ("sums", "sums")):
        assert page(plan=plan, two_texts="true").selectbox(key="plan").value == then
    at = page(plan="generator")
    at.toggle(key="two_texts").set_value(True).run()
    assert at.selectbox(key="plan").value == "generator"


def test_two_texts_that_are_the_same_are_refused() -> None:
    at = page(**TWO, run_jobs_nurse_b="90", run_jobs_doctor_b="10")
    assert "the second text: it is the same as the first" in says(at)
    assert button(at, "Train").disabled


def test_two_pasted_texts_are_read_as_the_same_tokens() -> None:
    texts = {
        "pasted": "the cat sat on the mat. " * 60,
        "pasted_b": "a quick brown fox jumped over dogs. " * 60,
    }
    query = (
        TWO
        | {
            "plan": "generator",
            "data": "a text you paste",
            "run_context_length": "8",
            "run_d_model": "8",
        }
        | texts
    )
    at = at_state(
        at_state(press(page(**query), "Train"), "generator-b", "finished"),
        "generator-a",
        "finished",
    )
    tokens = [
        checkpoints.load(checkpoints.find(f"generator-{end}")).tokenizer.to_json() for end in "ab"
    ]
    assert tokens[0] == tokens[1]
    assert not at.exception


def fitted_rows(at: AppTest) -> list[dict[str, Any]]:
    """The rows of the table of the fits of dictionaries."""
    (table,) = (each.value for each in at.dataframe if "fit" in each.value)
    return list(table.to_dict("records"))


@pytest.fixture
def dictionary_page(tiny_model: TinyModel) -> Callable[..., AppTest]:
    """Opens the controls of a dictionary of a small model."""
    tiny_model("aa", text="abcdefgh ")

    def open_page(**more: str) -> AppTest:
        settings = {"dictionary": "true", "of": "aa", "after": "1", "features": "128"}
        return opened("pages/train.py", **settings | {"active": "4", "fit": "500"} | more)

    return open_page


def test_a_dictionary_of_a_layer_is_fitted_by_the_queue_and_two_stand_side_by_side(
    dictionary_page: Callable[..., AppTest],
) -> None:
    at = dictionary_page()
    assert gptviz.load("aa").dictionaries() == []
    assert any("It takes about" in each.value for each in at.caption)
    at.button("fit dictionary").click().run()
    assert queue.own_queue().place("aa-block-1") is not None
    wait_until(lambda: read_status(fits.find("aa-block-1")).state == "finished")
    dictionary_page(active="8").button("fit dictionary").click().run()
    wait_until(lambda: read_status(fits.find("aa-block-1-2")).state == "finished")
    # another session sees both
    at = dictionary_page()
    assert not at.exception
    rows = {row["fit"]: row for row in fitted_rows(at)}
    lm = gptviz.load("aa")
    assert {row["dictionary"] for row in rows.values()} == {*lm.dictionaries()}
    for name, active in (("aa-block-1", 4), ("aa-block-1-2", 8)):
        quality = lm.dictionary_quality(rows[name]["dictionary"])
        assert rows[name]["features"] == 128
        assert rows[name]["active at a token"] == round(quality.l0, 1) <= active
        assert rows[name]["missed"] == percent(1 - quality.explained)
        assert rows[name]["loss with it (nats)"] == quality.loss_with
        assert (rows[name]["steps"], rows[name]["state"]) == (500, "finished")
    # each has its curve
    drawn_lines = [one for one in chart(at, "fits")["data"] if len(one["x"]) > 1]
    assert {one["legendgroup"] for one in drawn_lines} == {"0", "1"}


def test_a_fit_is_paused_and_goes_on_from_its_page_also_after_a_reload(
    dictionary_page: Callable[..., AppTest],
) -> None:
    at = dictionary_page(fit="8000")
    at.button("fit dictionary").click().run()
    folder = fits.find("aa-block-1")
    wait_until(lambda: any(line.kind == "step" for line in read_log(folder / "log.jsonl")))
    at = dictionary_page()
    (row,) = fitted_rows(at)
    assert row["missed"]
    assert row["dictionary"] == ""
    assert chart(at, "fits")["data"]
    at.button("Pause aa-block-1").click().run()
    wait_until(lambda: read_status(folder).state == "paused")
    wait_until(lambda: queue.own_queue().place("aa-block-1") is None)
    steps = checkpoints.read_card(folder).steps
    assert steps
    at = dictionary_page()
    assert f"Step {steps:,} of 8,000. Paused" in at.get("progress")[-1].proto.text
    at.button("Go on aa-block-1").click().run()
    wait_until(lambda: read_status(folder) == Status("running"))
    dictionary_page().button("Stop aa-block-1").click().run()
    wait_until(lambda: read_status(folder).state == "stopped")
    assert checkpoints.read_card(folder).steps > steps
    (name,) = gptviz.load("aa").dictionaries()
    assert fitted_rows(dictionary_page())[0]["dictionary"] == name


def test_a_fit_that_cannot_be_read_is_said_by_name(
    dictionary_page: Callable[..., AppTest],
) -> None:
    at = dictionary_page()
    at.button("fit dictionary").click().run()
    folder = fits.find("aa-block-1")
    wait_until(lambda: read_status(folder).state == "finished")
    (folder / "plan.json").write_text("{}")
    at = dictionary_page()
    said = escape_markdown("aa-block-1 does not say what it fits")
    assert any(said in each.value for each in at.warning)
    assert not at.exception
