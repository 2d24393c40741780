"""The page Over training: its numbers are those of the other pages at each step, and what it says of them is true."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import gptviz
from gptviz.data.text import TaskSource
from gptviz.interp.over_training.measures import MEASURES, Question
from gptviz.interp.reading.next_token import probabilities
from gptviz.interp.units.head_scores import SCORES
from gptviz.runs import checkpoints
from gptviz.text import task
from gptviz.ui.pages.attribution.setting import AttributionSetting
from gptviz.ui.pages.circuit import computed as circuit
from gptviz.ui.pages.context import computed as context
from gptviz.ui.pages.embeddings import computed as embeddings
from gptviz.ui.pages.heads import choices
from gptviz.ui.pages.heads import computed as heads
from gptviz.ui.pages.over_training.computed import values
from gptviz.ui.pages.stream import computed as stream
from gptviz.ui.pages.switch_off import grid
from gptviz.ui.shell.subject.bar import read_prompt
from gptviz.ui.shell.subject.models import ModelKey, Subject, language_model, model_key
from gptviz.ui.views import guesses, sums
from gptviz.ui.views import loss_texts as texts
from gptviz.ui.views.encoder_decoder import DECODER
from gptviz.ui.views.read import Read
from tests.app.conftest import with_snapshots
from tests.app.opening import chart, opened, page_at, ran, says
from tests.drawn import numbers
from tests.tiny import TinyModel, scrambled, tiny

PAGE, PROMPT = "pages/over_training.py", "When Mary and John went to the shop, John gave a book to"
STEPS = (0, 1, 16)

page = page_at(PAGE, model="mixed")


@pytest.fixture(autouse=True)
def trained(tiny_model: TinyModel) -> None:
    """A model of several tasks, which are here, and one of letters, with snapshots that differ from each other."""
    learned = task("sentences")
    config = tiny(vocab_size=learned.tokenizer.vocab_size, context_length=learned.length - 1)
    card = {"source": TaskSource(learned).to_dict()}
    with_snapshots(checkpoints.save("mixed", scrambled(config), learned.tokenizer, card, replace=True), STEPS)
    with_snapshots(tiny_model("letters"), STEPS)
    clock = task("modular", modulus=5)
    card = {"source": TaskSource(clock).to_dict()}
    config = tiny(vocab_size=7, context_length=4)
    with_snapshots(checkpoints.save("clock", scrambled(config), clock.tokenizer, card, replace=True), STEPS)


def of_head(key: ModelKey, score: str) -> Sequence[float]:
    setting = choices.HeadSetting(key, DECODER, None)
    if score == "delta_loss":
        heads.losses(setting)
    return heads.with_losses(setting, heads.scores(setting)).values[score].ravel().tolist()


def on_its_page(name: str, subject: Subject, token: int, against: int) -> Sequence[float]:
    """What the page of a measure computes for the model, and at the place, of `subject`."""
    key, ids, last = subject.key, subject.seen, len(subject.seen) - 1
    chosen = circuit.CircuitChoice(last, token, against, 0.8)
    held_out = texts.LossText(texts.HELD_OUT)
    near = embeddings.neighbours_of(key, "embedding", token)
    of: dict[str, Callable[[], Sequence[float]]] = {
        "loss": lambda: [texts.loss_of(key, held_out)],
        "loss.by_position": lambda: context.loss_by_position(key).values[1:].tolist(),  # type: ignore[union-attr]
        "switched_off": lambda: [
            loss - texts.loss_of(key, held_out) for loss in grid.losses(subject, held_out, "zero", "").values()
        ],
        "attribution": lambda: [
            part.value for part in AttributionSetting(subject, Read(ids), last, token, against).found().parts
        ],
        "circuit.share": lambda: [circuit.checked(key, ids, chosen, circuit.found(key, ids, chosen)).share],
        "probability": lambda: [float(probabilities(guesses.logits_after(key, ids, last))[token])],
        "similarity": lambda: [float(near.similarity.values[near.ids.index(against)])],
        "stream.length": lambda: stream.lengths_of(key, Read(ids)).values[:, -1].tolist(),
        "waves": lambda: sums.found(key).powers.values[-1].tolist(),
        "similarity.vowels": lambda: embeddings.vowel_cosines(key, "embedding"),
    } | {f"heads.{score}": lambda score=score: of_head(key, score) for score in SCORES}
    return of[name]()


@pytest.mark.parametrize("name", [one.name for one in MEASURES.values() if one.page])
def test_the_value_at_a_step_is_that_of_its_page_at_this_step(name: str) -> None:
    lm = gptviz.load({"similarity.vowels": "letters", "waves": "clock"}.get(name, "mixed"))
    token, other = map(lm.token, ("Mary", "John")) if lm.name == "mixed" else (0, 1)
    for step in STEPS:
        key = model_key(lm.name, "cpu", step)
        subject = read_prompt(key, language_model(key), PROMPT, PROMPT)
        against = embeddings.neighbours_of(key, "embedding", token).ids[0] if name == "similarity" else other
        reads_prompt = MEASURES[name].needs in ("a prompt", "a token")
        question = Question(PROMPT if reads_prompt else "", token, against) if "heads" not in name else Question()
        found = values(key, name, question)
        assert list(found.values()) == pytest.approx(on_its_page(name, subject, token, against), abs=1e-6, nan_ok=True)
    history = lm.over_training(name, question.prompt or None, question.token, question.against)
    assert history.steps == STEPS
    assert history.values[-1].tolist() == pytest.approx(list(found.values()), abs=1e-6, nan_ok=True)


def test_a_link_opens_its_measures_and_the_charts_show_every_snapshot() -> None:
    at = page(measures="loss,heads.entropy", log_steps="false", prompt=PROMPT)
    for name in ("loss", "heads.entropy"):
        history = gptviz.load("mixed").over_training(name)
        drawn = [trace for trace in chart(at, f"over {name}")["data"] if trace["mode"] == "lines+markers"]
        assert len(drawn) == len(history.series)
        assert all(numbers(trace["customdata"]).tolist() == list(STEPS) for trace in drawn)
        shown = sorted(tuple(np.round(numbers(trace["y"]), 9)) for trace in drawn)
        assert shown == sorted(map(tuple, np.round(history.values.T, 9)))
        change = history.sharpest(log_steps=False)
        assert change is not None
        assert change.words in says(at)


def test_every_series_has_a_panel_and_a_measure_that_is_not_here_is_named() -> None:
    at = page(measures="heads.induction", show="A panel each")
    titles = [one["text"] for one in chart(at, "over heads.induction")["layout"]["annotations"]]
    assert titles[:6] == ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
    assert "has no measure 'losss': did you mean 'loss'?" in says(page(measures="losss"))


def test_the_code_computes_what_is_drawn() -> None:
    at = page(measures="heads.self,probability", prompt=PROMPT)
    made = ran(at.code[0].value)
    (drawn,) = (one for one in chart(at, "over probability")["data"] if one["mode"] == "lines+markers")
    assert numbers(drawn["y"])[1:].tolist() == pytest.approx(made["probability"].values[1:, 0].tolist())
    assert made["heads_self"].values.shape == (len(STEPS), 6)


def test_a_model_without_snapshots_says_so_and_leads_to_one_that_has_some(tiny_model: TinyModel) -> None:
    tiny_model("plain")
    assert "plain has no snapshots" in says(opened(PAGE, model="plain"))
