"""Several sessions of one server: what they can share is there once, and what each has done is its
own.
"""

from __future__ import annotations

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.classroom import MIX, TRAINING, Measured, Pupil, begin_training, watch_trainings
from gptviz.ui.shell.subject.models import language_model, model_key
from tests.app.opening import opened
from tests.browser.machinery import serve
from tests.tiny import TinyModel
from tests.waiting import PATIENCE


def test_sessions_share_the_weights_and_not_what_was_done_in_them():
    prompts = "ROMEO:", "JULIET:", "ROMEO:"
    sessions = [opened("pages/generate.py", model="ladder-2", prompt=prompt) for prompt in prompts]
    sessions[2].query_params["edits"] = "blocks.0.attention.head.0"
    sessions[2].run()
    before = [session.session_state["writing"].length for session in sessions]
    sessions[0].button(key="one token").click().run()
    first, second, edited = (session.session_state["writing"] for session in sessions)
    assert [first.length, second.length, edited.length] == [before[0] + 1, before[1], before[2]]
    models = [writing.tree.generation.model for writing in (first, second, edited)]
    assert models[0] is models[1]
    assert models[2] is not models[0]
    assert {one.data_ptr() for one in models[2].parameters()} == {
        one.data_ptr() for one in models[0].parameters()
    }
    assert first.tree is not second.tree
    assert [session.query_params.get("prompt") for session in sessions] == list(prompts)


def test_a_prompt_that_another_session_has_opened_is_not_computed_again():
    first = opened("pages/generate.py", model="ladder-2", prompt="HAMLET:")
    writing = first.session_state["writing"]
    passes = []
    hook = writing.lm.model.embed.register_forward_pre_hook(lambda *_: passes.append(1))
    try:
        second = opened("pages/generate.py", model="ladder-2", prompt="HAMLET:")
        assert second.session_state["writing"].ids == writing.ids
        assert not passes
        second.button(key="one token").click().run()
        assert len(passes) == 1, "and what goes on from there is one pass a token"
        opened("pages/generate.py", model="ladder-2", prompt="HAMLET:", temperature="0.3")
        assert len(passes) > 1, "other settings are another text"
    finally:
        hook.remove()


def test_a_class_with_many_small_models_opens_each_once(tiny_model: TinyModel):
    for number in range(8):
        tiny_model(f"model-{number}")
    keys = [model_key(f"model-{number}", "cpu") for number in range(8)]
    first = [language_model(key) for key in keys]
    assert all(language_model(key) is one for key, one in zip(keys, first, strict=True))


@pytest.mark.full
def test_two_visitors_of_a_real_server_meet_no_error_and_two_trainings_wait_for_each_other(
    tmp_path: Path,
):
    with serve(tmp_path) as server:
        # the browser of other tests has a loop in this one
        with ThreadPoolExecutor(1) as own_thread:
            done = own_thread.submit(
                lambda: asyncio.run(meet(server.url, tmp_path / "home" / "checkpoints"))
            ).result()
        assert not done.errors
        assert len(done.together) == done.hovered == 2
        assert set(MIX) - {"hovers"} <= set(done.seconds)
        assert done.trained == (TRAINING, TRAINING)
        assert done.most_training == 1
        assert "Traceback" not in server.log.read_text()


async def meet(url: str, runs: Path) -> Measured:
    """Two visitors, each of whom does everything once, while two models are trained."""
    done = Measured()
    await asyncio.gather(
        *(Pupil(url, number, done, math.inf, (0.0, 0.1)).learn(MIX) for number in range(2)),
        *(begin_training(url, f"training-{number}", done) for number in range(TRAINING)),
        watch_trainings(runs, done, 2 * PATIENCE),
    )
    return done
