"""The page Over training: its numbers are those of the other pages at each step, and what it says
of them is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args
from unittest.mock import patch

import numpy as np
import pytest
import torch

import gptviz
from gptviz.data.classification import LabelledSource
from gptviz.data.seq2seq import PairSource
from gptviz.data.text import TaskSource
from gptviz.figures.kit.format import brief
from gptviz.interp.changing.ablation import Rows
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.explaining.circuit_check import Checked
from gptviz.interp.over_training.measures import (
    MEASURES,
    MeasureInput,
    MeasureQuestion,
    measure_named,
)
from gptviz.interp.reading import stream
from gptviz.interp.reading.next_token import probabilities
from gptviz.interp.units.head_scores import SCORES, Stack
from gptviz.language_model import LanguageModel, data
from gptviz.language_model.core import decode_answer, special_tokenizer
from gptviz.model import Transformer
from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer, labelled_of, pairs_of, task
from gptviz.text.datasets.pairs import PAIR_TASKS
from gptviz.ui.pages.attribution.logit import AttributionSetting
from gptviz.ui.pages.circuit import graph as circuit
from gptviz.ui.pages.classify.decision import judge_text
from gptviz.ui.pages.context import left_out as context
from gptviz.ui.pages.embeddings import token_map as embeddings
from gptviz.ui.pages.over_training.charts import values_at as values
from gptviz.ui.pages.switch_off import grid
from gptviz.ui.pages.translate.translation import output_of
from gptviz.ui.shell.subject.bar import read_prompt
from gptviz.ui.shell.subject.models import Subject, language_model, model_key
from gptviz.ui.views import guesses
from gptviz.ui.views import loss_texts as texts
from gptviz.ui.views.read import PromptRead, read_by
from tests.app.conftest import OF_KIND, save_classifier, with_snapshots
from tests.app.opening import chart, opened, page_at, press, ran, says
from tests.drawn import numbers
from tests.examples import quick
from tests.tiny import TinyModel, scrambled, tiny

PAGE = "pages/over_training.py"
PROMPT = "When Mary and John went to the shop, John gave a book to"
STEPS = (0, 1, 16)

page = page_at(PAGE, model="mixed")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One home for this file: its models are saved once, and what is computed of them is kept."""
    with pytest.MonkeyPatch.context() as changed:
        folder = tmp_path_factory.mktemp("home")
        changed.setenv("GPTVIZ_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module", autouse=True)
def trained(home: Path) -> None:
    """A model of several tasks, which are here, and one of letters, with snapshots that differ from
    each other.
    """
    learned = task("sentences")
    config = tiny(vocab_size=learned.tokenizer.vocab_size, context_length=learned.length - 1)
    card = {"source": TaskSource(learned).to_dict()}
    with_snapshots(
        checkpoints.save("mixed", scrambled(config), learned.tokenizer, card, replace=True), STEPS
    )
    letters = CharTokenizer("the quick brown fox\njumps over the lazy dog.")
    with_snapshots(
        checkpoints.save(
            "letters", scrambled(tiny(vocab_size=letters.vocab_size)), letters, {}, replace=True
        ),
        STEPS,
    )
    clock = task("modular", modulus=5)
    card = {"source": TaskSource(clock).to_dict()}
    config = tiny(vocab_size=7, context_length=4)
    with_snapshots(
        checkpoints.save("clock", scrambled(config), clock.tokenizer, card, replace=True), STEPS
    )


@pytest.fixture(scope="module")
def other_kinds(home: Path) -> None:
    """A classifier and an encoder–decoder with snapshots, whose data are here, and few."""
    words = "the film was never dull", "good and funny", "bad", "the film was bad and dull"
    table = "text,label\n" + "".join(
        f"{words[i % 4]} {words[i % 3]},{'ab'[i % 2]}\n" for i in range(40)
    )
    own = LabelledSource(labelled_of(table.encode(), "own.csv"))
    own.keep()
    with_snapshots(save_classifier(card={"source": own.to_dict(), "labels": ["a", "b"]}), STEPS)
    tens = ("twenty", "thirty", "forty", "fifty", "sixty")
    numbers = "".join(
        f"{ten} {one},{i}{j}\n"
        for i, ten in enumerate(tens, 2)
        for j, one in enumerate(("one", "two", "three"), 1)
    )
    pairs = PairSource(pairs_of(numbers.encode(), "own.csv"), 0.8)
    pairs.keep()
    tokenizer = PAIR_TASKS["numbers"].tokenizer
    config = tiny(
        vocab_size=tokenizer.vocab_size,
        padding=tokenizer.padding,
        n_encoder_layer=3,
        context_length=16,
    )
    card = {"source": pairs.to_dict()}
    with_snapshots(
        checkpoints.save("pair", scrambled(config), tokenizer, card, replace=True), STEPS
    )


def of_heads(subject: Subject, score: str) -> list[float]:
    """A score of all heads of a model, as the page Heads has it for each of its stacks, which read
    what the model as it was saved last wrote; of a decoder over data held out.
    """
    lm = language_model(subject.key)
    losses = score == "delta_loss"
    if subject.kind.continues:
        return lm.head_scores(losses=losses).values[score].ravel().tolist()
    read = language_model(replace(subject.key, step=None)).inputs(subject.text)
    stacks = ("decoder",) if subject.kind.guesses == "label" else get_args(Stack)
    with patch.object(LanguageModel, "inputs", lambda *_: read):
        found = [
            lm.head_scores(subject.text, stack=stack, losses=losses).values[score].ravel()
            for stack in stacks
        ]
    return [value for values in found for value in values.tolist()]


def probability(subject: Subject, read: PromptRead, token: int) -> float:
    """The probability of a token after the text, of the first token of an answer, or of a label."""
    if subject.kind.guesses == "label":
        return judge_text(subject.key, subject.seen).probabilities[token]
    if subject.kind.has_source:
        return float(probabilities(output_of(subject.key, subject.seen, read.ids).logits[0])[token])
    return float(
        probabilities(guesses.logits_after(subject.key, subject.seen, len(subject.seen) - 1))[token]
    )


def shares(checked: Checked) -> list[float]:
    """What a circuit keeps, and what random edges keep."""
    return [checked.share, checked.random.median]


def lengths_of_last(model: Transformer, read: PromptRead) -> list[float]:
    """How long the vector of the last token is after each layer."""
    return stream.stream(model, read.ids, read.source).states[:, -1].norm(dim=-1).tolist()


def on_its_page(name: str, subject: Subject, token: int, against: int) -> Sequence[float]:
    """What the page of a measure computes for the model, and at the place, of `subject`."""
    key = subject.key
    read = PromptRead(subject.seen)
    last = len(subject.seen) - 1
    if subject.kind.has_source:
        read = read_by(replace(subject, key=replace(key, step=None)))
    place = {"decoder": last, "classifier": None, "encoder-decoder": 0}[subject.kind.name]
    held_out = texts.LossText(texts.HELD_OUT)
    near = embeddings.neighbours_of(key, "embedding", token)
    of: dict[str, Callable[[], Sequence[float]]] = {
        "loss": lambda: [texts.loss_of(key, held_out)],
        "loss.without": lambda: [
            texts.loss_of(replace(key, edits=("blocks.1.mlp",)), held_out)
            - texts.loss_of(key, held_out)
        ],
        "loss.by_position": lambda: context.loss_by_position(key).values[1:].tolist(),  # type: ignore[union-attr]
        "switched_off": lambda: [
            loss - texts.loss_of(key, held_out)
            for loss in grid.losses(subject, held_out, "zero").values()
        ],
        "attribution": lambda: [
            part.value
            for part in AttributionSetting(subject, read, place, token, against).attribution().parts
        ],
        "circuit.share": lambda: shares(
            circuit.check_answer(
                circuit.ask_circuit(subject, circuit.CircuitChoice(last, token, against, 0.8))
            )
        ),
        "probability": lambda: [probability(subject, read, token)],
        "similarity": lambda: [float(near.similarity.values[near.ids.index(against)])],
        "stream.length": lambda: (
            stream.stream(language_model(key).model, read.ids, read.source)
            .states[:, -1]
            .norm(dim=-1)
            .tolist()
        ),
        "waves": lambda: language_model(key).waves().powers.values[-1].tolist(),
        "similarity.vowels": lambda: embeddings.vowel_cosines(key, "embedding"),
    } | {f"heads.{score}": lambda score=score: of_heads(subject, score) for score in SCORES}
    return of[name]()


PROMPTS = {
    "decoder": PROMPT,
    "classifier": "the film was never dull and the film was good",
    "encoder-decoder": "twenty two",
}
# Of the scores of heads, one in `make test` of those that patterns, weights and held-out data have.
FEW_SCORES = ("heads.induction", "heads.copying", "heads.delta_loss")
# What a page shows of each kind. A classifier of words has no letters.
SHOWN = [
    pytest.param(
        name,
        kind,
        marks=[pytest.mark.full] * (name.startswith("heads.") and name not in FEW_SCORES),
    )
    for name, one in MEASURES.items()
    for kind in PROMPTS
    if kind in one.kinds and one.page and (name, kind) != ("similarity.vowels", "classifier")
]


@pytest.mark.parametrize(("name", "kind"), SHOWN)
def test_the_value_at_a_step_is_that_of_its_page_at_this_step(
    name: str, kind: Kind, other_kinds: None
) -> None:
    lm = gptviz.load(
        OF_KIND[kind]
        if kind != "decoder"
        else {"similarity.vowels": "letters", "waves": "clock"}.get(name, "mixed")
    )
    words = {"mixed": ("Mary", "John"), "pair": ("2", "1")}
    token, against = map(lm.token, words[lm.name]) if lm.name in words else (1, 0)
    # A decoder's heads are measured over random tokens, those of other kinds over a text.
    is_of_prompt = MEASURES[name].needs in ("a prompt", "a token") or (
        kind != "decoder" and name != "similarity"
    )
    for step in STEPS:
        key = model_key(lm.name, "cpu", step)
        subject = read_prompt(key, language_model(key), PROMPTS[kind], PROMPTS[kind])
        if name == "similarity":  # the page lists the nearest
            against = embeddings.neighbours_of(key, "embedding", token).ids[0]
        unit = "blocks.1.mlp" if name == "loss.without" else ""
        question = MeasureQuestion(PROMPTS[kind] if is_of_prompt else "", token, against, unit)
        found = values(key, name, question)
        assert list(found.values()) == pytest.approx(
            list(on_its_page(name, subject, token, against)), abs=1e-6, nan_ok=True
        )
    assert set(found.values()) - {0.0}
    asked = question.prompt or None, question.token, question.against, question.unit
    history = lm.over_training(name, *asked)
    assert (history.steps, history.measure) == (STEPS, measure_named(name, kind))
    assert history.values[-1].tolist() == pytest.approx(list(found.values()), abs=1e-6, nan_ok=True)


def test_right_answers_of_a_classifier_are_counted_one_by_one(other_kinds: None) -> None:
    judge = gptviz.load("judge")
    right = [
        int(judge.model(ids[None])[0].argmax()) == int(label)
        for reading, labels in data.tested_rows(judge)["loss"]
        for ids, label in zip(reading.ids, labels, strict=True)
    ]
    assert judge.over_training("accuracy").values[-1, 0] == pytest.approx(np.mean(right))


def test_the_answer_of_an_encoder_decoder_is_right_if_it_writes_exactly_that(
    other_kinds: None,
) -> None:
    pair = gptviz.load("pair")
    start = special_tokenizer(pair).start
    end = special_tokenizer(pair).end
    own = list[Rows]()
    one_wrong = list[Rows]()
    for text in ("two", "twenty two", "seven"):
        written, ended = decode_answer(pair, text)
        whole = torch.tensor([[start, *written, *([end] if ended else [])]])
        own.append(Rows(Inputs(whole[:, :-1], pair.source(text)[None]), whole[:, 1:]))
        other = whole[:, 1:].clone()
        other[0, -1] = (other[0, -1] + (text == "two")) % pair.tokenizer.vocab_size
        one_wrong.append(Rows(own[-1].reading, other))
    found = MEASURES["accuracy"].compute(
        pair.model, MeasureInput(rows={"own": own, "one wrong": one_wrong})
    )
    assert found == {"own": 1.0, "one wrong": pytest.approx(2 / 3)}


@pytest.mark.parametrize("kind", quick(["classifier", "encoder-decoder"], "classifier"))
def test_the_page_offers_a_kind_what_it_has_and_draws_it(kind: Kind, other_kinds: None) -> None:
    name = OF_KIND[kind]
    prompt = PROMPTS[kind]
    offered = opened(PAGE, model=name, prompt=prompt)
    listed = set(offered.multiselect[0].options)
    has = {one.for_kind(kind).title for one in MEASURES.values() if kind in one.kinds}
    without = {
        "classifier": {"Loss, each task", "Similarity of vowels"},
        "encoder-decoder": set[str](),
    }[kind]
    assert listed == has - without
    assert len(offered.get("plotly_chart")) == 2
    every = [one.name for one in MEASURES.values() if one.for_kind(kind).title in listed]
    for start in range(0, len(every), 8):
        some = every[start : start + 8]
        at = opened(PAGE, model=name, prompt=prompt, measures=",".join(some))
        assert not at.error
        made = ran(at.code[0].value)
        for one in some:
            drawn = [
                trace
                for trace in chart(at, f"over {one}")["data"]
                if trace["mode"] == "lines+markers"
            ]
            assert len(drawn) == len(made[one.replace(".", "_")].series), one
    refused = opened(PAGE, model=name, prompt=prompt, measures="circuit.share")
    assert "this model has no measure" in says(refused)


def test_a_link_opens_its_measures_and_the_charts_show_every_snapshot() -> None:
    at = page(measures="loss,heads.entropy", log_steps="false", prompt=PROMPT)
    for name in ("loss", "heads.entropy"):
        history = gptviz.load("mixed").over_training(name)
        drawn = [
            trace for trace in chart(at, f"over {name}")["data"] if trace["mode"] == "lines+markers"
        ]
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
    (drawn,) = (
        one for one in chart(at, "over probability")["data"] if one["mode"] == "lines+markers"
    )
    assert numbers(drawn["y"])[1:].tolist() == pytest.approx(
        made["probability"].values[1:, 0].tolist()
    )
    assert made["heads_self"].values.shape == (len(STEPS), 6)


def test_a_model_without_snapshots_says_so_and_leads_to_one_that_has_some(
    tiny_model: TinyModel,
) -> None:
    tiny_model("plain")
    assert "plain has no snapshots" in says(opened(PAGE, model="plain"))


def test_a_model_without_snapshots_shows_its_losses_beside_those_of_its_relatives() -> None:
    at = opened(PAGE, model="ladder-8")
    cards = {
        f"ladder-{number}": checkpoints.read_card(checkpoints.find(f"ladder-{number}"))
        for number in range(9)
    }
    table = at.dataframe[0].value
    assert dict(zip(table["model"], table["loss at the end (nats per token)"], strict=True)) == {
        name: f"{card.validation_loss:.4f}" for name, card in cards.items()
    }
    assert table["model"].tolist()[0] == "ladder-8"
    assert table["published"].tolist()[0].startswith("loss 1.7507")
    lines = {
        trace["name"]: trace
        for trace in chart(at, "beside its relatives")["data"]
        if trace.get("name") in cards
    }
    for name, card in cards.items():
        assert numbers(lines[name]["y"])[-1] == pytest.approx(card.validation_loss, abs=1e-4)
    assert "lowest at the end: ladder-8 with 1.7446" in says(at).replace("\\", "")


def test_after_pretraining_the_loss_begins_lower_and_ends_lower() -> None:
    at = page(model="finetune", show="Beside relatives")
    assert at.dataframe[0].value["model"].tolist() == [
        "finetune",
        "finetune-lora",
        "from-scratch",
    ], "pretrain read another text"
    lines = {
        trace["name"]: numbers(trace["y"])
        for trace in chart(at, "beside its relatives")["data"]
        if trace.get("name")
    }
    assert all(lines["finetune"] < lines["from-scratch"])
    for name in ("finetune", "from-scratch", "pretrain"):
        assert len(checkpoints.snapshots(checkpoints.find(name))) >= 8
    assert "published" not in at.dataframe[0].value
    assert "Published" not in says(at)


def test_a_model_without_relatives_is_not_offered_to_stand_beside_them() -> None:
    assert "The link asks for show = “Beside relatives”, which is not available here" in says(
        page(show="Beside relatives")
    )


def test_one_click_leads_from_any_model_to_the_ladder() -> None:
    at = press(page(prompt=PROMPT), "The ladder, part by part")
    assert at.selectbox(key="model").value == "ladder-8"
    assert "beside its relatives" in [
        figure for figure in ("beside its relatives",) if chart(at, figure)
    ]


def test_a_unit_of_any_kind_is_switched_off_at_every_snapshot_and_a_feature_is_listed() -> None:
    at = opened(PAGE, model="sentences", measures="loss.without", prompt=PROMPT)
    lm = gptviz.load("sentences")
    listed = at.selectbox(key="without").options
    active = lm.features(PROMPT)
    strongest = int(active.axes[1].labels[int(active.values.mean(0).argmax())])
    assert listed[0] == "blocks.0.attention.head.0"
    assert lm.dictionary().edit(strongest) in listed
    assert "Loss without head 0 of block 0" in says(at)
    for name, title in (
        ("dictionary.sentences-features.feature.90", "feature 90 of sentences-features"),
        ("blocks.0.mlp.neuron.3", "neuron 3 of block 0"),
    ):
        query = {"measures": "loss.without", "without": name, "log_steps": "false"}
        at = opened(PAGE, model="sentences", prompt=PROMPT, **query)
        assert f"Loss without {title}" in says(at)
        (line,) = (
            trace
            for trace in chart(at, "over loss.without")["data"]
            if trace["mode"] == "lines+markers"
        )
        expected = lm.over_training("loss.without", unit=name).values[:, 0]
        assert numbers(line["y"]) == pytest.approx(expected, abs=1e-9)
        made = ran(at.code[0].value)["loss_without"]
        assert made.values[:, 0] == pytest.approx(expected, abs=1e-9)


def test_a_unit_that_a_link_asks_for_and_the_model_lacks_is_named() -> None:
    at = opened(PAGE, model="sentences", measures="loss.without", without="blocks.9.mlp")
    assert not at.exception
    assert "blocks.9.mlp" in says(at)
    assert "Loss without head 0 of block 0" in says(at)


@pytest.mark.parametrize("model", ["induction", "modular", "mixed", "clock"])
def test_the_sentence_says_what_was_learned_where_half_of_the_change_lies(model: str) -> None:
    at = opened(PAGE, model=model)
    (said,) = (one.value.split("**")[1] for one in at.markdown if "**It learned" in one.value)
    found = re.search(
        r"It learned (.+) between steps ([\d,]+) and ([\d,]+): (.+) (falls|rises) from (\S+) to "
        r"([\d.]*\d)",
        said.replace("\\", ""),
    )
    assert found is not None
    learned, *ends, what, _, before, after = found.groups()
    first, second = (int(step.replace(",", "")) for step in ends)
    lm = gptviz.load(model)
    if what == "the loss":
        history = lm.over_training("loss")
        values = dict(zip(history.steps, history.values[:, 0].tolist(), strict=True))
        assert (before, after) == (brief(values[first]), brief(values[second]))
        half = (values[history.steps[0]] + values[history.steps[-1]]) / 2
        assert values[first] >= half >= values[second]
    if learned == "to copy what came before":
        copies = lm.over_training("heads.induction")
        rises = copies.values[:, np.ptp(copies.values, axis=0).argmax()]
        half = (rises[0] + rises[-1]) / 2
        assert rises[copies.steps.index(first)] <= half <= rises[copies.steps.index(second)]
    else:
        assert learned == "most" or (model, what) == ("mixed", f"the loss of {learned}")
    if model == "induction":
        assert (learned, what) == ("to copy what came before", "the loss")
