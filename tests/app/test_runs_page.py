"""The Runs page as a reader meets it, without a browser."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.runs import checkpoints, manage, sharing
from gptviz.runs.experiments import PLANS
from gptviz.runs.exports import FORMATS
from gptviz.runs.status import locked
from gptviz.train.recipe import Recipe
from gptviz.ui.pages.runs import manage as managing
from gptviz.ui.pages.runs.curves import differences, names_in_link
from gptviz.ui.pages.runs.experiments import lowest_losses, results, rungs
from gptviz.ui.views.entries import entries
from gptviz.ui.views.learning_curves import accuracy_of, curve_of, loss_unit
from tests.app.opening import button, chart, charts, page_at, press, says
from tests.tiny import TinyModel
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("only_shakespeare", "fresh_caches")
RECIPE = Recipe(steps=100).to_dict()


@pytest.fixture
def trained(tiny_model: TinyModel) -> TinyModel:
    """Saves a model with a log, as a run leaves it: `trained("name", [losses], **fields of its
    card)`.
    """

    def make(
        name: str, losses: list[float], recipe: dict[str, Any] | None = None, **card: Any
    ) -> Path:
        about = {
            "recipe": RECIPE | (recipe or {}),
            "steps": 100,
            "seconds": 90.0,
            "corpus": "my text",
        } | card
        folder = tiny_model(name, card=about)
        lines: list[dict[str, Any]] = [
            {"kind": "step", "step": step, "loss": 3.0 - step / 100} for step in range(1, 101)
        ]
        lines += [
            {"kind": "evaluation", "step": 10 * i, "loss": loss, "accuracy": 0.5}
            for i, loss in enumerate(losses)
        ]
        (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder

    return make


page = page_at("pages/runs.py")


def curves(at: AppTest) -> dict[str, list[float]]:
    """The validation losses drawn, by the name of the run."""
    return {
        trace["name"]: trace["customdata"] for trace in charts(at)[0]["data"] if trace.get("name")
    }


def table(at: AppTest) -> dict[str, dict[str, Any]]:
    return {row["model"]: row for row in at.dataframe[0].value.to_dict("records")}


def test_every_model_has_a_row_with_its_numbers(trained: TinyModel) -> None:
    trained("mine", [4.0, 2.5, 2.6], preset="ladder-8", task="reversal", accuracy=0.25)
    at = page()
    row = table(at)["mine"]
    assert (row["best loss"], row["last loss"], row["steps"]) == (2.5, 2.6, 100)
    assert row["perplexity"] == pytest.approx(math.exp(2.5), rel=0.005)
    assert (row["accuracy"], row["data"], row["state"]) == (25.0, "reversal", "finished")
    assert row["published"] == "loss 1.7507"
    assert row["parameters"] == checkpoints.read_card(checkpoints.find("mine")).values["parameters"]
    assert set(table(at)) == set(checkpoints.folders())
    columns = json.loads(at.dataframe[0].proto.columns)
    assert columns["model"]["width"] > 6 * len("shakespeare"), "a name has room"
    assert columns["perplexity"]["type_config"]["format"] == "%.3g"  # e to the 300 has 131 digits


def test_the_best_loss_is_never_the_one_before_the_first_step(trained: TinyModel) -> None:
    trained(
        "wild",
        [4.0, 5_000.0, 119_295.0],
        diverged="it diverged: after 20 steps its loss is 119,295 nats",
    )
    trained("not-begun", [4.0])
    at = page(model="wild", chosen="wild")
    row = table(at)["wild"]
    assert (row["state"], row["best loss"], row["last loss"]) == ("diverged", 5_000.0, 119_295.0)
    assert math.isnan(row["perplexity"])
    assert math.isnan(table(at)["not-begun"]["best loss"])
    assert any(
        "it diverged: after 20 steps its loss is 119,295 nats" in text.value for text in at.text
    )


def test_the_best_loss_is_one_that_was_measured_on_all_that_is_held_out_where_there_is_one(
    trained: TinyModel,
) -> None:
    folder = trained("mine", [4.0, 2.1, 2.6])
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    parts = [
        line | {"share": 0.1} if line["kind"] == "evaluation" and line["step"] < 20 else line
        for line in lines
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in parts))
    assert entries()["mine"].best_loss == 2.6
    (folder / "log.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in parts if line["step"] < 20)
    )
    assert entries()["mine"].best_loss == 2.1, "while it trains, what is known of it"


def test_how_much_is_right_stands_below_the_losses(trained: TinyModel) -> None:
    trained("mine", [4.0, 2.5], accuracy=0.5)
    trained("text", [4.0, 2.5])
    assert [trace["name"] for trace in chart(page(chosen="mine,text"), "accuracies")["data"]] == [
        "mine"
    ]
    alone = {c.proto.id.rsplit("-", 1)[-1] for c in page(chosen="text").get("plotly_chart")}
    assert "accuracies" not in alone


def test_an_experiment_whose_run_diverged_has_no_result(trained: TinyModel) -> None:
    trained("ladder-2", [4.0, 119_295.0], diverged="it diverged", preset="ladder-2")
    assert entries()["ladder-2"].diverged
    assert "it diverged here" in results(PLANS["ladder-2"], entries()["ladder-2"])
    assert lowest_losses([entries()["ladder-2"]]) == "ladder-2 diverged"
    assert rungs(entries(), own=True) == []


def test_a_model_from_before_there_were_logs_has_its_curve_from_its_card(
    tiny_model: TinyModel,
) -> None:
    losses = [{"step": 5, "training": 3.0, "validation": 3.5}, {"step": 9, "validation": 2.5}]
    curve = curve_of(tiny_model("old", card={"losses": losses, "floor": 1.5}))
    assert curve.validation_steps.tolist() == [5, 9]
    assert curve.validation.tolist() == [3.5, 2.5]
    assert curve.training is not None
    assert (curve.steps.tolist(), curve.training.tolist()) == ([5], [3.0])
    assert curve.floor == 1.5
    assert curve.uniform == pytest.approx(
        math.log(checkpoints.read_config(checkpoints.find("old")).vocab_size)
    )
    at = page(chosen="old")
    assert list(curves(at)) == ["old"]


def test_a_log_that_grows_is_read_again(trained: TinyModel) -> None:
    folder = trained("mine", [4.0])
    assert len(curve_of(folder).validation) == 1
    with (folder / "log.jsonl").open("a") as log:
        log.write('{"kind": "evaluation", "step": 77, "loss": 1.25}\n{"kind": "evaluation", "st')
    assert curve_of(folder).validation.tolist() == [4.0, 1.25]


def test_the_link_says_whose_curves_are_compared_in_which_order_and_a_sentence_which_end_lowest_and_highest(
    trained: TinyModel,
) -> None:
    for name, last in (("a", 3.0), ("b", 2.5), ("c", 3.25)):
        trained(name, [4.0, last])
    at = page(chosen="c,a,b")
    assert list(curves(at)) == ["c", "a", "b"]
    assert "“b” ends lowest, at 2.500 nats per token, and “c” highest, at 3.250." in says(at)
    assert "ends lowest" not in says(page(chosen="a"))


def test_with_a_ladder_its_rungs_are_compared_unless_asked_otherwise(trained: TinyModel) -> None:
    for name in ("another", "ladder-0", "ladder-3"):
        trained(name, [4.0, 3.0])
    assert list(curves(page())) == ["ladder-0", "ladder-3"]


def test_only_where_all_are_classifiers_losses_are_per_text(
    tiny_model: TinyModel, tiny_classifier: TinyModel
) -> None:
    decoder = tiny_model("writer")
    classifier = tiny_classifier("judge")
    assert [
        loss_unit(folders) for folders in ([classifier], [decoder], [classifier, decoder], [])
    ] == [
        "nats per text",
        *["nats per token"] * 3,
    ]


def test_an_epoch_has_as_many_steps_as_the_texts_have_batches(tiny_classifier: TinyModel) -> None:
    card = {
        "accuracy": 0.5,
        "texts": {"training": 80, "held_out": 20},
        "recipe": {"batch_size": 16},
    }
    found = accuracy_of(tiny_classifier(card=card | {"losses": [{"step": 1, "accuracy": 0.5}]}))
    assert found is not None
    assert found.epoch == 5


def test_any_name_of_a_folder_can_stand_in_the_link(trained: TinyModel) -> None:
    odd = "a, b & 100 % c"
    trained("mine", [4.0]).rename(checkpoints.home() / "checkpoints" / odd)
    link = f"shakespeare,{quote(odd, safe='')}"
    assert names_in_link(["shakespeare", odd]) == link
    at = page(chosen=link)
    assert not at.warning
    assert len(curves(at)) == 2


@pytest.mark.parametrize("asked", ["mine,<b>x</b>", ",,,"])
def test_a_link_that_asks_for_models_that_are_not_there_gets_a_message_and_the_page(
    trained: TinyModel, asked: str
) -> None:
    trained("mine", [4.0, 3.0])
    at = page(chosen=asked)
    (warning,) = at.warning
    assert "The link asks for the model" in warning.value
    assert len(at.get("plotly_chart")) == ("mine" in asked)


def test_models_are_chosen_by_name_as_by_ticks(trained: TinyModel) -> None:
    for name in ("a", "b", "c"):
        trained(name, [4.0, 3.0])
    at = page(chosen="c")
    (names,) = (one for one in at.multiselect if one.label == "Models compared")
    assert names.value == ["c"]
    names.set_value(["c", "a"]).run()
    assert list(curves(at)) == ["c", "a"]
    assert at.query_params["chosen"] == "c,a"
    assert len(at.session_state["table of models"]["selection"]["rows"]) == 2
    next(one for one in at.multiselect if one.label == "Models compared").set_value([]).run()
    assert any("Nothing is chosen" in info.value for info in at.info)


def test_the_switches_change_the_scales(trained: TinyModel) -> None:
    trained("mine", [4.0, 3.0])

    def shown(at: AppTest) -> tuple[str | None, str | None, int]:
        spec = charts(at)[0]
        return (
            spec["layout"]["xaxis"].get("type"),
            spec["layout"]["yaxis"].get("type"),
            len(spec["data"]),
        )

    assert shown(page(chosen="mine")) == (None, None, 1)
    assert shown(page(chosen="mine", log_steps="true", training="true")) == ("log", None, 3)
    at = page(chosen="mine")
    at.toggle(key="log_loss").set_value(True).run()
    assert shown(at) == (None, "log", 1)


def test_only_what_differs_is_in_the_table_of_differences(trained: TinyModel) -> None:
    trained("a", [4.0, 3.0], recipe={"learning_rate": 0.5})
    trained("b", [4.0, 3.0], recipe={"learning_rate": 0.25, "seed": 7}, corpus="another text")
    models = entries()
    table = differences([models["a"], models["b"]])
    assert {row[0]: (row[1], row[2]) for row in table.itertuples(index=False)} == {
        "data": ("my text", "another text"),
        "learning_rate": ("0.5", "0.25"),
        "seed": ("0", "7"),
    }
    assert all(table["what it does"])
    assert differences([models["a"]]).empty


def test_a_model_whose_weights_are_broken_is_marked_as_such_until_they_are_whole(
    trained: TinyModel,
) -> None:
    weights = trained("hurt", [4.0, 2.5]) / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-8])
    at = page(model="hurt")
    assert table(at)["hurt"]["state"] == "damaged"
    assert table(at)["hurt"]["best loss"] == 2.5
    assert any("model.safetensors" in text.value for text in at.text)
    weights.write_bytes(whole)
    assert table(page(model="hurt"))["hurt"]["state"] == "finished"
    weights.unlink()
    assert table(page(model="hurt"))["hurt"]["state"] == "damaged"


def test_what_nobody_wrote_down_is_no_difference(trained: TinyModel, tiny_model: TinyModel) -> None:
    trained("a", [4.0])
    tiny_model("old", card={"losses": [{"step": 1, "validation": 2.0}], "corpus": "my text"})
    models = entries()
    assert differences([models["a"], models["old"]]).empty


@pytest.mark.parametrize(
    ("file", "content"),
    [("config.json", '{"format": 99}'), ("card.json", "torn"), ("card.json", "[]")],
)
def test_a_damaged_model_is_a_row_that_says_so(trained: TinyModel, file: str, content: str) -> None:
    (trained("hurt", [4.0]) / file).write_text(content)
    trained("sound", [4.0])
    at = page(model="hurt")
    assert table(at)["hurt"]["state"] == "damaged"
    assert "hurt" not in curves(at)
    assert any("hurt/" in text.value for text in at.text)


def test_a_card_full_of_nonsense_does_no_harm(tiny_model: TinyModel) -> None:
    card = {
        "recipe": "none",
        "steps": "many",
        "seconds": [],
        "losses": 3,
        "floor": "low",
        "accuracy": math.inf,
        "preset": {},
    }
    tiny_model(
        "odd",
        card=card
        | {"task": {"<b>": 1}, "corpus": "half: \ud800", "notes": ["\udfff"], "licence": "\ud800"},
    )
    at = page()
    assert table(at)["odd"]["data"] == "half: \ufffd"


def test_a_run_says_how_far_it_is_and_cannot_be_deleted(trained: TinyModel) -> None:
    folder = trained("mine", [4.0], recipe={"steps": 200})
    checkpoints.write_json(folder / "status.json", {"state": "running", "message": ""})
    with locked(folder):
        at = page(model="mine")
        assert table(at)["mine"]["state"] == "training 50 %"
        assert [
            link.proto.label
            for link in at.main.get("page_link")
            if "run=mine" in link.proto.query_string
        ] == ["Watch it train"]
        press(at, "Delete")
        assert "stop it first" in at.error[0].value
    assert folder.exists()


@pytest.mark.parametrize("state", ["paused", "stopped", "interrupted"])
def test_a_run_that_ended_early_can_go_on_on_the_page_train(trained: TinyModel, state: str) -> None:
    folder = trained("mine", [4.0])
    checkpoints.write_json(folder / "status.json", {"state": state, "message": "its <b>reason</b>"})
    at = page(model="mine")
    assert table(at)["mine"]["state"] == state
    assert [
        link.proto.label
        for link in at.main.get("page_link")
        if "run=mine" in link.proto.query_string
    ] == ["Go on training"]
    assert any("its <b>reason</b>" in text.value for text in at.text)


def test_a_renamed_model_keeps_its_place_in_the_comparison(trained: TinyModel) -> None:
    trained("mine", [4.0])
    trained("other", [4.0])
    at = page(chosen="mine,other", model="mine")
    at.text_input(key="new name of mine").set_value("better").run()
    press(at, "Rename it")
    assert any("better" in message.value for message in at.success)
    assert at.query_params["chosen"] == "better,other"
    assert list(curves(at)) == ["better", "other"]
    assert at.selectbox(key="model").value == "better"


@pytest.mark.parametrize("name", ["other", "<b>x</b>"])
def test_a_name_that_cannot_be_had_is_refused_with_a_message(trained: TinyModel, name: str) -> None:
    trained("mine", [4.0])
    trained("other", [4.0])
    at = page(model="mine")
    at.text_input(key="new name of mine").set_value(name).run()
    press(at, "Rename it")
    assert at.error
    assert {"mine", "other"} <= set(checkpoints.folders())


def test_a_deleted_model_comes_back_by_a_click(trained: TinyModel) -> None:
    trained("mine", [4.0])
    at = page(model="mine", chosen="mine")
    press(at, "Delete")
    assert "mine" not in table(at)
    assert not at.get("plotly_chart")
    press(at, "Undo")
    assert "mine" in table(at)
    assert not manage.deleted_models()


def test_the_trash_outlives_the_message(trained: TinyModel) -> None:
    trained("mine", [4.0])
    manage.delete("mine")
    button(page(), "mine").click().run()
    assert "mine" in checkpoints.folders()


def test_bundled_models_offer_neither_renaming_nor_deletion(home: Path) -> None:
    at = page(model="shakespeare")
    assert not {"Delete", "Rename it"} & {button.label for button in at.button}
    assert any("came with gptviz" in caption.value for caption in at.caption)


def test_experiments_show_the_published_number_beside_ours_and_lead_to_it(
    trained: TinyModel,
) -> None:
    trained("ladder-0", [4.0, 2.5])
    trained("ladder-8", [4.0, 1.7123])
    at = page(chosen="ladder-0")
    assert any(caption.value == "loss: published 1.7507, here 1.7123" for caption in at.caption)
    assert any(caption.value == "loss: here 2.5000" for caption in at.caption)
    assert any("plan=ladder-8" in link.proto.query_string for link in at.main.get("page_link"))


def test_without_a_model_the_page_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "BUNDLED", home / "none")
    at = page()
    assert "no model" in at.error[0].value


def downloads(at: AppTest) -> dict[str, bool]:
    """The label of every download of a model, and whether it can be pressed."""
    # its key
    offered = [each.proto for each in at.get("download_button") if "-download " in each.proto.id]
    return {proto.label: not proto.disabled for proto in offered}


def test_a_model_is_saved_in_the_formats_it_has_and_why_not_in_others(
    tiny_model: TinyModel,
) -> None:
    tiny_model("all", tied=True, d_mlp=48, card={"losses": [{"step": 0, "validation": 3.0}]})
    tiny_model("one", residual="post-norm")
    at = page(model="all")
    assert [label.partition(" (")[0].removesuffix(", zipped") for label in downloads(at)] == [
        each.title for key, each in FORMATS.items() if key != "peft"
    ]
    assert (
        sum("Left out: the course of its training." in caption.value for caption in at.caption) == 3
    )
    at = page(model="one")
    assert [label.partition(" (")[0].removesuffix(", zipped") for label in downloads(at)] == [
        FORMATS[key].title for key in ("zip", "python")
    ]
    assert [
        caption.value
        for caption in at.caption
        if "residual (here post-norm)" in caption.value.replace("\\", "")
    ]
    at = page(model="shakespeare")
    assert len(downloads(at)) == 2


def test_a_run_without_weights_is_saved_nowhere(tiny_model: TinyModel) -> None:
    (tiny_model("mine") / "model.safetensors").unlink()
    at = page(model="mine")
    assert not downloads(at)
    assert any("mine lacks model.safetensors" in text.value for text in at.text)


def test_a_download_is_the_model_or_a_report_about_it(tiny_model: TinyModel) -> None:
    folder = tiny_model("mine")
    assert "Report" in [each.proto.label for each in page(model="mine").get("download_button")]
    assert b"How mine was trained" in managing.written_report("mine")
    made = sharing.unpack(managing.zip_model("mine", FORMATS["zip"], snapshots=True), "again")
    assert {path.name: path.read_bytes() for path in made.iterdir()} == {
        path.name: path.read_bytes() for path in folder.iterdir()
    }


def test_what_is_too_large_to_download_is_written_to_a_folder_and_nothing_there_is_replaced(
    tiny_model: TinyModel, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_model("mine")
    checkpoints.snapshot_path(folder, 1).parent.mkdir()
    checkpoints.snapshot_path(folder, 1).write_bytes((folder / "model.safetensors").read_bytes())
    monkeypatch.setattr(managing, "MOST_DOWNLOADED", sharing.packed_bytes(folder) - 1)
    at = page(model="mine")
    next(box for box in at.checkbox if "its snapshot" in box.label).uncheck().run()
    # without its snapshots it is small enough; nanoGPT has no such model
    assert len(downloads(at)) == 3
    next(box for box in at.checkbox if "its snapshot" in box.label).check().run()
    for name in ("mine.zip", "mine-2.zip"):
        next(each for each in at.button if each.key == "save zip").click().run()
        wait_until(
            lambda name=name: any(name in said.value.replace("\\", "") for said in at.run().success)
        )
        assert name in at.success[0].value.replace("\\", "")
        assert sharing.unpack(home / "exports" / name, name.removesuffix(".zip") + "-again")


def rung(
    trained: TinyModel, number: int, loss: float, name: str | None = None, **card: Any
) -> None:
    trained(name or f"ladder-{number}", [4.0, loss], preset=f"ladder-{number}", **card)


def waterfall(at: AppTest) -> dict[str, Any]:
    return next(trace for trace in chart(at, "ladder")["data"] if trace["type"] == "bar")


def test_each_bar_of_the_ladder_is_what_a_rung_changes(trained: TinyModel) -> None:
    # some rungs are missing
    for number, loss in ((0, 2.5), (1, 2.501), (2, 2.4), (4, 2.45), (8, 1.75)):
        rung(trained, number, loss)
    at = page()
    bars = waterfall(at)
    parts = ["+ positions", "+ one attention head", "+ eight heads + dropout"]
    assert bars["y"] == [
        *parts,
        "+ residual connections + an MLP + layer norms + six blocks",
        "all together",
    ]
    assert bars["text"] == ["+0.001", "−0.101", "+0.050", "−0.700", "−0.750"]
    assert "the loss falls by 0.750 nats" in says(at)
    said = says(at).replace("\\", "")
    assert "Of these models the one with all parts, ladder-8, learned best." in said
    assert "The loss of ladder-8 is 1.750 nats a token" in said
    assert "What helped most: residual connections + an MLP" in said
    assert "What raises it: eight heads + dropout (+0.050)." in says(at)
    assert "What changes it no more than chance does: positions (+0.001)." in says(at)


def test_rungs_that_the_user_trained_take_the_place_of_those_that_ship(
    trained: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, loss in ((0, 2.5), (1, 2.4), (2, 2.3)):
        rung(trained, number, loss)
    rung(trained, 1, 2.2, "mine", recipe={"learning_rate": 0.5})
    rung(trained, 2, 1.0, "unfinished")
    checkpoints.write_json(
        checkpoints.find("unfinished") / "status.json", {"state": "stopped", "message": ""}
    )
    monkeypatch.setattr(
        "gptviz.ui.pages.runs.experiments.is_own", lambda folder: folder.name == "mine"
    )
    assert waterfall(page())["text"] == ["−0.100", "−0.100", "−0.200"]
    at = page(own_rungs="true")
    assert waterfall(at)["text"] == ["−0.300", "+0.100", "−0.200"]
    assert "These are your own: mine. These came with gptviz: ladder-0, ladder-2." in says(at)
    assert (
        "These were trained in another way than most, so more than one part differs: mine "
        "(learning_rate 0.5)." in says(at)
    )


def test_without_two_rungs_there_is_no_ladder(trained: TinyModel) -> None:
    rung(trained, 0, 2.5)
    assert not [c for c in page().get("plotly_chart") if c.proto.id.endswith("-ladder")]
