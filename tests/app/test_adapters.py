"""LoRA adapters on the pages: the slider from base to tuned, which is an edit of the address, and
what is said of them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import gptviz
from gptviz.figures.kit.format import percent
from gptviz.interp import compare
from gptviz.model.lora import AdaptedTransformer, every_matrix
from gptviz.runs import checkpoints, exports
from gptviz.ui.shell.subject.models import model_key
from tests.app.opening import chart, page_at, payload, says
from tests.drawn import numbers
from tests.tiny import TinyModel

pytestmark = pytest.mark.usefixtures("home")
page = page_at("pages/next_token.py", model="finetune-lora", prompt="KING")


def logits(*edits: str) -> np.ndarray:
    return np.asarray(gptviz.load("finetune-lora").edited(*edits).trace("KING")["logits"][0, -1])


def test_the_slider_is_an_edit_from_the_base_to_the_tuned_model_and_beyond() -> None:
    at = page()
    hints = [one.proto.popover.help.replace("\\", "") for one in at.get("popover")]
    assert any("LoRA adapter on pretrain, rank 4" in hint for hint in hints)
    np.testing.assert_allclose(payload(at, "ledger")[1]["logits"], logits(), atol=1e-5)
    slider = at.slider(key="strength of the adapter")
    assert (slider.value, slider.min, slider.max) == (1.0, 0.0, 2.0)
    slider.set_value(0.5).run()
    assert at.query_params["edits"] == "adapter=0.5"
    np.testing.assert_allclose(payload(at, "ledger")[1]["logits"], logits("adapter=0.5"), atol=1e-5)
    at.slider(key="strength of the adapter").set_value(0.0).run()
    base = np.asarray(gptviz.load("pretrain").trace("KING")["logits"][0, -1])
    np.testing.assert_array_equal(logits("adapter=0"), base)
    np.testing.assert_allclose(payload(at, "ledger")[1]["logits"], base, atol=1e-5)
    at.slider(key="strength of the adapter").set_value(1.0).run()
    assert "edits" not in at.query_params


def test_a_link_may_go_further_than_the_slider_and_the_other_edits_stay() -> None:
    at = page(edits="adapter=3,blocks.0.mlp")
    assert at.slider(key="strength of the adapter").value == 3.0
    np.testing.assert_allclose(
        payload(at, "ledger")[1]["logits"], logits("adapter=3", "blocks.0.mlp"), atol=1e-5
    )
    at.slider(key="strength of the adapter").set_value(1.0).run()
    assert at.query_params["edits"] == "blocks.0.mlp"


def test_a_strength_that_is_none_is_named_and_left_out() -> None:
    at = page(edits="adapter=lots")
    assert "the strength of an adapter is a number from -10 to 10" in says(at)
    assert at.slider(key="strength of the adapter").value == 1.0


def test_a_model_without_an_adapter_has_no_slider_and_names_the_edit() -> None:
    at = page(model="pretrain", edits="adapter=0.5")
    assert not [one for one in at.slider if one.key == "strength of the adapter"]
    assert "this model is no LoRA adapter" in says(at)


def test_the_key_of_an_adapter_changes_with_its_base() -> None:
    before = model_key("finetune-lora", "cpu")
    opened = checkpoints.load(checkpoints.find("shakespeare"))
    checkpoints.save("pretrain", opened.model, opened.tokenizer, {}, replace=True)
    assert model_key("finetune-lora", "cpu") != before


compared = page_at("pages/compare.py", model="finetune-lora", prompt="KING", compared="Weights")


def test_an_adapter_is_compared_with_its_base_and_each_matrix_differs_by_what_was_added() -> None:
    at = compared()
    assert "A: finetune-lora · B: pretrain at its last step. They differ in the model" in says(
        at
    ).replace("**", "")
    a, b = (gptviz.load(name).side("KING") for name in ("finetune-lora", "pretrain"))
    shares = compare.relative(compare.weights(a, b))
    np.testing.assert_allclose(
        numbers(chart(at, "weights that differ")["data"][0]["z"]), shares.values, rtol=1e-5
    )
    (bars,) = chart(at, "singular values")["data"]
    assert (np.array(numbers(bars["y"])) > 1e-4 * numbers(bars["y"])[0]).sum() == 4
    assert "acts in **4 of 64** directions" in says(at)
    at.selectbox(key="compared_matrix").set_value("embed").run()
    assert "acts in **0 of" in says(at)


def test_the_losses_along_the_strength_are_those_of_the_model_with_each() -> None:
    at = compared(edits="adapter=0.5")
    assert "Not on this machine, so left out: tiny-shakespeare (finetune-lora)." in says(at)
    figure = chart(at, "losses along the strength")
    (line,) = [one for one in figure["data"] if one.get("name")]
    assert "python-reference (pretrain)" in line["name"]
    with pytest.warns(UserWarning, match="is left out"):
        table = gptviz.load("finetune-lora").along_strength()
    assert numbers(line["x"]).tolist() == [float(strength) for strength in table.axes[1].labels]
    np.testing.assert_allclose(numbers(line["y"]), table.values[0], rtol=1e-5)
    (point,) = [one for one in figure["data"] if not one.get("name")]
    assert numbers(point["x"]).tolist() == [0.5]
    assert f"On python-reference (pretrain) it rises from {numbers(line['y'])[0]:.3f} at 0" in says(
        at
    )


def test_models_of_other_shapes_and_equal_weights_say_so() -> None:
    assert "only models of one shape have a difference of weights" in says(
        compared(b_model="generator")
    )
    assert "A and B have the same weights" in says(compared(model="ladder-8"))
    assert "A and B have the same weights" in says(compared(edits="adapter=0"))


def test_half_the_adapter_is_suggested_with_what_it_does_to_this_prompt() -> None:
    at = compared(compared="Next token")
    assert "Half the adapter" in [one.label for one in at.button]
    half = compare.next_token(
        *(
            gptviz.load("finetune-lora").edited(*edits).side("KING")
            for edits in ((), ("adapter=0.5",))
        )
    )
    assert f"{percent(compare.total_variation(half))} of the probability" in says(at)


def test_runs_saves_an_adapter_for_peft_and_offers_that_of_no_other_model() -> None:
    for name, offered in (("finetune-lora", True), ("finetune", False)):
        at = page_at("pages/runs.py", model=name)()
        labels = [each.proto.label.partition(" (")[0] for each in at.get("download_button")]
        assert ("A LoRA adapter for PEFT, zipped" in labels) == offered


def test_an_adapter_of_peft_is_opened_on_the_base_that_its_files_name(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    exports.FORMATS["peft"].write(checkpoints.find("finetune-lora"), folder)
    at = page_at("pages/open_model.py")(source=str(folder))
    assert "A LoRA adapter of PEFT on pretrain. It is copied among your models." in says(at)
    assert [one for one in at.button if one.key == "open what was asked for"]
    (folder / "adapter_config.json").write_text('{"peft_type": "IA3"}')
    at = page_at("pages/open_model.py")(source=str(folder))
    assert "this adapter is of type 'IA3'" in says(at)
    assert not [one for one in at.button if one.key == "open what was asked for"]


def test_an_adapter_whose_base_is_gone_says_so_on_every_page_and_is_listed() -> None:
    folder = checkpoints.own_folder() / "orphan"
    shutil.copytree(checkpoints.find("finetune-lora"), folder)
    adapter = checkpoints.read_adapter(folder)
    checkpoints.write_json(
        folder / "adapter.json", {"base": "gone", "sha256": adapter.sha256, "ranks": adapter.ranks}
    )
    for where in ("next_token", "compare"):
        at = page_at(f"pages/{where}.py")(model="orphan")
        assert "'gone', and there is no model of that name: bring that model back" in says(at)
        assert "Choose another model above" in says(at)
    assert "there is no model of that name" in says(page_at("pages/runs.py")(model="orphan"))
    (folder / "adapter.json").write_text("[]")
    assert "adapter.json is not a JSON object" in says(
        page_at("pages/next_token.py")(model="orphan")
    )
    assert "adapter.json is not a JSON object" in says(page_at("pages/runs.py")(model="orphan"))


def test_who_deletes_a_base_hears_which_adapters_need_it(tiny_model: TinyModel) -> None:
    base = tiny_model("mine")
    opened = checkpoints.load(base)
    adapter = checkpoints.adapter_of(base, every_matrix(opened.model.config, 1))
    model = AdaptedTransformer(opened.model, adapter.ranks)
    checkpoints.save("tuned", model, opened.tokenizer, {}, adapter=adapter)
    at = page_at("pages/runs.py")(model="mine")
    at.button(key="delete").click().run()
    assert "mine is in the trash. Without it its LoRA adapters do not open: tuned." in says(at)
    at.button(key="undo").click().run()
    assert "mine is back." in says(at)
    at = page_at("pages/runs.py")(model="tuned")
    at.button(key="delete").click().run()
    assert "tuned is in the trash." in says(at)
    assert "its LoRA adapters do not open" not in says(at)
