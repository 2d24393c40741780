"""The scrubber: step k shows exactly snapshot k on every page, and what did not change does not
move.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.components.kit import unpack
from gptviz.interp.reading import embeddings
from gptviz.machine.job import Job
from gptviz.runs import checkpoints
from gptviz.text import task
from gptviz.ui.pages.embeddings import token_map
from gptviz.ui.pages.generate import writing
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import models, scrubber
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import escape_markdown, playing
from tests.app.conftest import with_snapshots
from tests.app.opening import charts, opened, payload, ran, says, views
from tests.drawn import numbers
from tests.examples import quick
from tests.tiny import TinyModel, scrambled
from tests.waiting import PATIENCE

PROMPT = "the fox"
STEPS = (0, 1, 16)
CARD = {
    "steps": 16,
    "validation_loss": 1.5,
    "losses": [
        {"step": 0, "validation": 3.25},
        {"step": 10, "validation": 2.0},
        {"step": 16, "validation": 1.5},
    ],
}


@pytest.fixture
def trained(tiny_model: TinyModel) -> Path:
    return with_snapshots(tiny_model(card=CARD))


page = partial(opened, model="tiny", prompt=PROMPT)


def codes(at: AppTest) -> list[str]:
    """The lines of code on the page, those behind the views made by hand among them."""
    # after its length
    packed = [view.proto.bytes for view in views(at) if view.proto.bytes[4:5] == b"{"]
    behind = [code for code in (unpack(one)[0].get("code") for one in packed) if code]
    # Of the ledger's, the browser fills in how the token is drawn.
    return [
        *(one.value for one in at.code),
        *(code if isinstance(code, str) else "Sampling()".join(code) for code in behind),
    ]


def by_hand(folder: Path, step: int) -> torch.nn.Module:
    """The model of a snapshot, put together from the file without the code under test."""
    from safetensors.torch import load_file

    model = scrambled(checkpoints.read_config(folder), seed=7)
    weights = load_file(checkpoints.snapshot_path(folder, step))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    return model


def ids() -> torch.Tensor:
    return torch.tensor([gptviz.load("tiny").tokenizer.encode(PROMPT).ids])


@pytest.mark.parametrize("step", STEPS)
def test_the_ledger_at_a_step_has_the_logits_of_its_snapshot(trained: Path, step: int) -> None:
    _, arrays = payload(page("pages/next_token.py", step=str(step)), "ledger")
    with torch.inference_mode():
        expected = by_hand(trained, step)(ids())[0, -1].numpy()
    np.testing.assert_allclose(arrays["logits"], expected, atol=1e-5)


def is_map(figure: dict[str, Any]) -> bool:
    return "scaleanchor" in figure["layout"]["yaxis"]


def cloud(at: AppTest) -> np.ndarray:
    """Where the map shows each token [token, 2]."""
    (figure,) = filter(is_map, charts(at))
    places: dict[int, list[float]] = {}
    for trace in figure["data"]:
        if "customdata" in trace:
            for index, x, y in zip(
                numbers(trace["customdata"]), numbers(trace["x"]), numbers(trace["y"]), strict=True
            ):
                places[int(index)] = [x, y]
    return np.array([places[index] for index in sorted(places)])


def principal(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    origin = rows.mean(axis=0)
    _, _, directions = np.linalg.svd(rows - origin, full_matrices=False)
    return origin, directions[:2].T


def test_the_map_at_a_step_is_its_snapshot_along_the_axes_of_the_model_as_saved_which_hold_every_step(
    trained: Path,
) -> None:
    last = gptviz.load("tiny").model.embed.weight.detach().double().numpy()
    origin, directions = principal(last)
    final = (last - origin) @ directions
    directions *= np.sign(final[np.abs(final).argmax(axis=0), [0, 1]])
    pages = {
        step: page("pages/embeddings.py", step=str(step), token="e") for step in (*STEPS, "last")
    }
    maps = [next(filter(is_map, charts(at)))["layout"] for at in pages.values()]
    for step, at in pages.items():
        rows = (
            last
            if step == "last"
            else by_hand(trained, int(step)).embed.weight.detach().double().numpy()
        )
        shown = cloud(at)
        np.testing.assert_allclose(shown, (rows - origin) @ directions, atol=1e-4)
        for values, axis in zip(shown.T, ("xaxis", "yaxis"), strict=True):
            (low, high), *others = (layout[axis]["range"] for layout in maps)
            assert others == 3 * [[low, high]]
            assert low < values.min()
            assert values.max() < high


def test_the_scales_of_learned_positions_are_those_of_every_step(tiny_model: TinyModel) -> None:
    folder = with_snapshots(tiny_model(positions="learned"))
    largest = max(
        float(by_hand(folder, step).positions.table.weight.detach().abs().max()) for step in STEPS
    )  # type: ignore[union-attr]
    for step in ("0", "1", "last"):
        at = page("pages/positions.py", step=step, table="learned")
        table, wave = charts(at)[-2:]
        assert table["data"][0]["zmax"] == pytest.approx(largest)
        assert wave["layout"]["yaxis"]["tickvals"] == pytest.approx([-largest, 0, largest])


def test_the_trail_is_the_way_of_the_chosen_token(trained: Path) -> None:
    at = page("pages/embeddings.py", step="1", token="q", trail="true")
    (trail,) = [
        trace for figure in charts(at) for trace in figure["data"] if trace.get("name") == "trail"
    ]
    assert trail["hovertext"] == ["step 0", "step 1", "step 16", "last"]
    token = gptviz.load("tiny").tokenizer.encode("q").ids[0]
    expected = [
        cloud(page("pages/embeddings.py", **step))[token]
        for step in ({"step": "0"}, {"step": "1"}, {"step": "16"}, {})
    ]
    np.testing.assert_allclose(
        np.column_stack((numbers(trail["x"]), numbers(trail["y"]))), expected, atol=1e-5
    )


def test_the_text_at_a_step_is_what_its_snapshot_writes_from_the_same_prompt(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "FIRST_TOKENS", 12)
    at = page("pages/generate.py", step="1")
    at.select_slider(key="step").set_value("0").run()
    texts = {"0": at.session_state["writing"].text}
    for step in ("1", "last", "0"):
        at.select_slider(key="step").set_value(step).run()
        assert not at.toast, "moving through training is not a surprise"
        text = at.session_state["writing"].text
        assert texts.setdefault(step, text) == text
        assert text == gptviz.load("tiny", step=None if step == "last" else int(step)).generate(
            PROMPT, 12, temperature=0.8
        )
    assert len(set(texts.values())) == 3
    assert at.text_area(key="prompt").value == PROMPT


@pytest.mark.parametrize(
    "path",
    [
        "pages/generate.py",
        "pages/attention.py",
        "pages/next_token.py",
        "pages/positions.py",
        "pages/embeddings.py",
    ],
)
def test_the_code_behind_a_figure_opens_the_step_shown(trained: Path, path: str) -> None:
    for query, call in (
        ({"step": "1"}, "gptviz.load('tiny', step=1)"),
        ({}, "gptviz.load('tiny')"),
    ):
        code = next(one for one in codes(page(path, **query)) if "gptviz.load" in one)
        assert call in code
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, {})


def test_every_step_is_offered_and_shown_with_the_loss_measured_nearest_to_it(
    trained: Path,
) -> None:
    assert page("pages/attention.py").select_slider(key="step").value == "last"
    at = page("pages/attention.py", step="0")
    assert at.select_slider(key="step").options == ["0", "1", "16", "last"]
    for step, line in {
        "0": "Step 0: loss 3.25, perplexity 25.8",
        "1": "Step 1: loss ≈ 3.25, perplexity 25.8",
        "16": "Step 16: loss 1.5, perplexity 4.48",
        "last": "Step 16: loss 1.5, perplexity 4.48",
    }.items():
        at.select_slider(key="step").set_value(step).run()
        name, how_good = line.split(": ")
        (caption,) = [one for one in at.caption if one.value == name]
        assert caption.proto.help.startswith(f"{how_good}. ")


def test_a_card_that_tells_nothing_is_no_obstacle(tiny_model: TinyModel) -> None:
    with_snapshots(tiny_model(card={"losses": [{"step": "a"}, 3], "steps": "many"}))
    assert "Step 1" in says(page("pages/attention.py", step="1"))
    assert "As saved last" in says(page("pages/attention.py"))


def test_a_model_without_snapshots_has_no_slider_and_a_link_that_asks_for_one_is_told(
    tiny_model: TinyModel,
) -> None:
    tiny_model()
    assert not [one for one in page("pages/next_token.py").select_slider if one.key == "step"]
    assert any(
        "step = “8”" in warning.value for warning in page("pages/next_token.py", step="8").warning
    )


def links(at: AppTest) -> list[str]:
    return [
        link.proto.query_string for link in at.get("page_link") if "Attention" in str(link.proto)
    ]


def test_links_to_other_pages_keep_the_step_until_a_model_without_it_is_chosen(
    trained: Path, tiny_model: TinyModel
) -> None:
    tiny_model("untrained")
    at = page("pages/attention.py", step="1")
    at.run()
    assert all("step=1" in link for link in links(at))
    assert links(at)
    at.selectbox(key="model").set_value("untrained").run()
    assert not at.warning
    assert not any("step" in link for link in links(at))
    at.selectbox(key="model").set_value("tiny").run()
    assert at.select_slider(key="step").value == "last"


def test_snapshots_that_appear_while_it_trains_are_offered(trained: Path) -> None:
    at = page("pages/embeddings.py", step="1")
    checkpoints.write_weights(
        checkpoints.snapshot_path(trained, 32), scrambled(checkpoints.read_config(trained), 9)
    )
    at.run()
    assert at.select_slider(key="step").options == ["0", "1", "16", "32", "last"]
    assert at.select_slider(key="step").value == "1"


def test_a_damaged_snapshot_is_said_and_the_others_can_be_chosen(trained: Path) -> None:
    checkpoints.snapshot_path(trained, 1).write_bytes(b"not weights")
    at = page("pages/embeddings.py", step="1")
    assert any(
        escape_markdown("00000001.safetensors is damaged") in error.value
        and "another step" in error.value
        for error in at.error
    )
    at.select_slider(key="step").set_value("0").run()
    assert not at.error
    assert charts(at)


def test_a_run_begun_again_under_the_same_name_is_read_again(trained: Path) -> None:
    import os

    at = page("pages/embeddings.py", step="1")
    before = cloud(at)
    path = checkpoints.snapshot_path(trained, 1)
    checkpoints.write_weights(path, scrambled(checkpoints.read_config(trained), 77))
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime + 5))
    assert np.abs(cloud(at.run()) - before).max() > 0.01


def test_playing_goes_through_every_step_to_the_last_and_stops() -> None:
    options = ["0", "1", "16", "last"]
    seen = [options[0]]
    while (after := playing.option_after(options, seen[-1])) is not None:
        seen.append(after)
    assert seen == options
    assert playing.option_after(options, "2") == "0"


def test_play_begins_at_the_start_where_it_is_at_its_end_and_else_goes_on_and_pause_stops_it(
    trained: Path,
) -> None:
    at = page("pages/attention.py")
    at.button(key="scrubber play").click().run()
    assert at.select_slider(key="step").value == "0"
    at.run()
    assert at.select_slider(key="step").value == "0", "a rerun of the page is no tick of the clock"
    at.button(key="scrubber pause").click().run()
    at.select_slider(key="step").set_value("1").run()
    at.button(key="scrubber play").click().run()
    assert at.select_slider(key="step").value == "1"


def test_a_page_is_waited_for_while_it_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks: list[Callable[[], None]] = []
    monkeypatch.setattr(
        playing.st, "fragment", lambda run_every: lambda body: ticks.append(body) or body
    )
    reruns: list[bool] = []
    monkeypatch.setattr(playing.st, "rerun", lambda: reruns.append(True))
    state: dict[str, Any] = {}
    monkeypatch.setattr(playing.st, "session_state", state)
    state["scrubber plays"] = True
    scrubber.PLAYER.go_on(["0", "1", "last"], "0")
    assert not reruns, "drawing the page is no tick"
    go_on = Event()
    slow = Job("Slow", lambda: go_on.wait(PATIENCE))
    scrubber.PLAYER.wait_for(slow)
    ticks[0]()
    assert not reruns
    go_on.set()
    slow.wait()
    ticks[0]()
    assert reruns == [True]
    assert state["scrubber next"] == "1"
    assert scrubber.PLAYER.is_playing
    scrubber.PLAYER.go_on(["0", "1", "last"], "1")
    ticks[1]()
    assert state["scrubber next"] == "last"
    assert not scrubber.PLAYER.is_playing


def test_the_snapshots_used_last_stay_open_within_bounds(trained: Path) -> None:
    keys = [models.model_key("tiny", "cpu", step) for step in STEPS]
    kept = models.snapshot_cache(most=2)
    opened = [kept(key) for key in keys]
    assert [kept(key) is one for key, one in zip(keys[1:], opened[1:], strict=True)] == [True, True]
    assert kept(keys[1]) is opened[1]
    kept(keys[0])
    assert [key for (key,) in kept.cache] == [keys[1], keys[0]]
    size = 4 * sum(parameter.numel() for parameter in opened[0].model.parameters())
    small = models.snapshot_cache(most_bytes=2 * size)
    for key in keys:
        assert small(key).step == key.step
    assert [key for (key,) in small.cache] == keys[1:]
    assert small.cache.currsize == 2 * size


def test_what_all_steps_share_is_read_from_a_bounded_number_of_them(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = checkpoints.read_config(trained)
    for step in range(20, 60):
        checkpoints.write_weights(checkpoints.snapshot_path(trained, step), scrambled(config, step))
    monkeypatch.setattr(scrubber, "MOST_COMPARED", 5)
    found = [key.step for key in scrubber.compared_keys(models.model_key("tiny", "cpu", 1))]
    assert (found[0], found[-2:], len(found)) == (0, [59, None], 6)
    monkeypatch.setattr(scrubber, "MOST_PARAMETERS", 1)
    assert [key.step for key in scrubber.compared_keys(models.model_key("tiny", "cpu"))] == [
        0,
        59,
        None,
    ]


def test_the_labels_of_tokens_are_made_once_for_all_steps(trained: Path) -> None:
    assert tokens(models.model_key("tiny", "cpu", 0)) is tokens(models.model_key("tiny", "cpu", 1))


# Models of tasks


@pytest.fixture
def reversal(home: Path) -> str:
    from tests.tiny import tiny

    kind = task("reversal")
    config = tiny(vocab_size=100, context_length=15, positions="none")
    card = {
        "task": "reversal",
        "source": {"task": "reversal", "settings": kind.settings()},
        "steps": 16,
    }
    with_snapshots(checkpoints.save("mirror", scrambled(config), kind.tokenizer, card))
    return kind.example_prompt()


PATHS = (
    "app.py",
    "pages/generate.py",
    "pages/attention.py",
    "pages/next_token.py",
    "pages/positions.py",
    "pages/embeddings.py",
)


@pytest.mark.parametrize("path", quick(PATHS, "pages/generate.py", "pages/next_token.py"))
def test_a_model_of_a_task_opens_on_an_example_of_it_and_every_suggestion_leads_somewhere_known(
    reversal: str, path: str
) -> None:
    at = opened(path, model="mirror")
    assert at.text_area(key="prompt").value == reversal
    for label in [button.label for button in at.button if str(button.key).startswith("try ")]:
        if not [button for button in at.button if button.key == f"try {label}"]:
            at = opened(path, model="mirror")
        at.button(key=f"try {label}").click().run()
        assert not at.warning
    assert not at.warning


@pytest.mark.parametrize("query", [{"prompt": frame.DEFAULT_PROMPT}, {"step": "1"}])
def test_a_model_of_a_task_opens_on_an_example_at_any_step_and_in_place_of_lines(
    reversal: str, query: dict[str, str]
) -> None:
    # the quickest: all pages have the same bar
    at = opened("pages/positions.py", model="mirror", **query)
    assert not at.warning
    assert at.text_area(key="prompt").value == reversal


def test_the_default_prompt_follows_the_model_and_a_typed_one_stays(
    reversal: str, tiny_model: TinyModel
) -> None:
    tiny_model(text=frame.DEFAULT_PROMPT)
    at = opened("pages/attention.py", model="tiny")
    for name, prompt in (
        ("mirror", reversal),
        ("tiny", frame.DEFAULT_PROMPT),
        ("mirror", reversal),
    ):
        at.selectbox(key="model").set_value(name).run()
        assert at.text_area(key="prompt").value == prompt
        assert not any("prompt" in link for link in links(at.run()))
    at.text_area(key="prompt").set_value("7 12 7").run()
    at.selectbox(key="model").set_value("tiny").run()
    assert at.text_area(key="prompt").value == "7 12 7"


def test_a_card_with_a_task_nobody_knows_falls_back_to_the_usual_prompt(
    tiny_model: TinyModel,
) -> None:
    tiny_model(text=frame.DEFAULT_PROMPT, card={"task": "chess", "source": {"task": "chess"}})
    assert (
        opened("pages/attention.py", model="tiny").text_area(key="prompt").value
        == frame.DEFAULT_PROMPT
    )


@pytest.mark.usefixtures("fresh_caches")
def test_a_step_has_one_picture_whichever_way_the_slider_came_and_the_code_makes_it(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "ITERATIONS", 250)

    def picture(step: int | None) -> np.ndarray:
        view = token_map.ProjectionChoice(
            models.model_key("tiny", "cpu", step), "embedding", "t-SNE", 2, 0
        )
        return token_map.placing_of(view).job.result().points.values

    ways = []
    for way in ((0,), (None, 16, 1, 0), (1, 0)):
        token_map._begin_projection.clear()
        ways.append([picture(step) for step in way][-1])
    np.testing.assert_array_equal(ways[0], ways[1])
    np.testing.assert_array_equal(ways[0], ways[2])
    shown = token_map.ProjectionChoice(
        models.model_key("tiny", "cpu", 0), "embedding", "t-SNE", 2, 0
    )
    made = ran(token_map.code(gptviz.load("tiny", step=0), shown, 3))
    np.testing.assert_array_equal(made["picture"].points.values, ways[0])
