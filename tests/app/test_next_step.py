"""The way through the app: the list of models on every page, and the next step at the end of
each.
"""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.machine.files import home
from gptviz.model.kinds import MODEL_KINDS, Kind
from gptviz.runs import checkpoints
from gptviz.runs.experiments import PLANS
from gptviz.ui.menu import PAGES
from gptviz.ui.records.home import PAGE as HOME
from gptviz.ui.shell import frame
from gptviz.ui.shell.around.next_step import page_after
from gptviz.ui.shell.subject import model_list
from gptviz.ui.widgets import escape_markdown
from tests.app.opening import last_link, opened
from tests.tiny import TinyModel


@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_the_steps_lead_through_every_page_about_a_kind_once(kind: Kind) -> None:
    walked = [HOME]
    while (after := page_after(walked[-1], kind)) is not None:
        assert after.step
        walked.append(after)
    assert len(walked) == len(set(walked))
    assert set(walked) == {page for page in PAGES.values() if kind in page.kinds}


def test_after_the_last_page_comes_a_model_of_another_kind(tiny_model: TinyModel) -> None:
    tiny_model("writer", text=frame.DEFAULT_PROMPT)
    at = opened("pages/runs.py", model="writer")
    assert last_link(at)[1] == {"model": ["classifier"]}
    assert any("open a classifier" in caption.value for caption in at.caption)


def test_every_model_is_listed_once_with_a_line_the_users_own_first(tiny_model: TinyModel) -> None:
    folder = tiny_model(
        "mine", card={"preset": "generator", "corpus": "my <b>text</b>", "validation_loss": 1.25}
    )
    tiny_model("bare")
    groups = model_list.model_groups()
    assert groups[0].title == model_list.YOURS
    assert set(groups[0].folders) == {"mine", "bare"}
    assert sorted(model_list.names_of(groups)) == sorted(checkpoints.folders())
    for group in groups[1:]:
        for place in group.folders.values():
            is_adapter = (place / "adapter.json").exists()
            assert (
                model_list.line_about(place)
                == ("LoRA adapter on pretrain, rank 4: " if is_adapter else "")
                + PLANS[checkpoints.read_card(place).plan].sentence
            )
    line = model_list.line_about(folder)
    assert line.startswith("experiment generator, my <b>text</b>, ")
    assert line.endswith(" parameters, loss 1.25")
    (folder / "card.json").write_text("[")
    assert model_list.line_about(folder) == "Its files cannot be read."


def test_the_list_of_models_opens_one(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model("writer", text=frame.DEFAULT_PROMPT)
    tiny_model("other", text=frame.DEFAULT_PROMPT)
    monkeypatch.setattr(checkpoints, "BUNDLED", home() / "none")
    at = opened("pages/positions.py", model="writer")
    # read once somebody opens it
    assert not [button for button in at.button if "**other**" in button.label]
    at.session_state["all models"] = True
    at.run()
    (button,) = (button for button in at.button if button.label.startswith("**other**"))
    button.click().run()
    assert at.selectbox(key="model").value == "other"


def test_the_rungs_between_the_ends_of_the_ladder_are_one_entry_that_unfolds() -> None:
    between = {f"ladder-{number}" for number in range(1, 8)}
    at = opened("pages/positions.py")
    assert {"ladder-0", "ladder-8"} == {
        name for name in at.selectbox(key="model").options if name.startswith("ladder")
    }
    at.session_state["all models"] = True
    at.run()
    (fold,) = (one for one in at.expander if one.label == "ladder-1 to ladder-7")
    assert {button.key.removeprefix("open the model ") for button in fold.button} == between
    at.button(key="open the model ladder-3").click().run()
    asked = opened("pages/positions.py", model="ladder-3")
    for one in (at, asked):
        box = one.selectbox(key="model")
        assert box.value == "ladder-3"
        assert between & set(box.options) == {"ladder-3"}
    assert not asked.warning
    assert (
        at.selectbox(key="model").set_value("ladder-8").run().selectbox(key="model").value
        == "ladder-8"
    )


def test_the_list_of_models_says_what_the_one_on_screen_is(tiny_model: TinyModel) -> None:
    def hint(at: AppTest) -> str:
        """The hint of the button that opens the list."""
        return next(
            one.proto.popover.help for one in at.get("popover") if one.proto.popover.label == "All"
        )

    folder = tiny_model(
        "mine", text=frame.DEFAULT_PROMPT, card={"preset": "generator", "corpus": "my <b>text</b>"}
    )
    at = opened("pages/positions.py", model="mine")
    assert escape_markdown(model_list.line_about(folder)) in hint(at)
    at.selectbox(key="model").set_value("shakespeare").run()
    assert escape_markdown(PLANS["shakespeare"].sentence) in hint(at)


def test_the_step_passes_over_a_page_about_parts_that_the_model_lacks() -> None:
    """`ladder-5` has heads and no MLP, `ladder-0` no block at all."""

    def follows(path: str, name: str) -> str:
        return last_link(opened(path, model=name))[0]

    assert follows("pages/heads.py", "ladder-5") == "features"
    assert follows("pages/attribution.py", "ladder-0") == "circuit"
    assert follows("pages/positions.py", "ladder-0") == "gradients"
