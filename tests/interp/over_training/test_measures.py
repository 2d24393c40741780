"""Measures that no page shows, against loops and numpy; and what a measure needs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gptviz
from gptviz.data.text import TaskSource
from gptviz.interp.changing.ablation import NOT_COUNTED
from gptviz.interp.over_training.measures import MEASURES, MeasureQuestion, measure_named
from gptviz.interp.reading.waves import powers
from gptviz.interp.trace import run
from gptviz.language_model import data
from gptviz.language_model.core import special_tokenizer
from gptviz.language_model.over_training import measure_input
from gptviz.runs import checkpoints
from gptviz.text import WordTokenizer, task
from gptviz.text.datasets.pairs import PAIR_TASKS
from gptviz.text.datasets.tasks import Modular
from tests.tiny import TinyModel, scrambled, tiny


def with_a_snapshot(name: str) -> gptviz.LanguageModel:
    lm = gptviz.load(name)
    checkpoints.write_weights(checkpoints.snapshot_path(checkpoints.find(name), 4), lm.model)
    return lm


def test_the_loss_of_a_task_is_the_mean_surprise_at_its_answers(home: object) -> None:
    learned = task("sentences")
    config = tiny(vocab_size=learned.tokenizer.vocab_size, context_length=learned.length - 1)
    checkpoints.save(
        "mixed", scrambled(config), learned.tokenizer, {"source": TaskSource(learned).to_dict()}
    )
    lm = with_a_snapshot("mixed")
    history = lm.over_training("loss.by_task")
    rows = data.tested_rows(lm, of="tasks")
    assert history.series == tuple(learned.parts)
    for name, value in zip(history.series, history.values[0], strict=True):
        surprises = []
        for (ids, _), targets in rows[name]:
            for row, wanted in zip(lm.model(ids).log_softmax(-1), targets, strict=True):
                surprises += [
                    -row[place, token].item()
                    for place, token in enumerate(wanted.tolist())
                    if token >= 0
                ]
        assert value == pytest.approx(np.mean(surprises), abs=1e-5)


def test_right_answers_are_counted_one_by_one_and_waves_are_those_of_the_page(home: object) -> None:
    learned = task("modular", modulus=5)
    config = tiny(vocab_size=7, context_length=4)
    checkpoints.save(
        "clock", scrambled(config), learned.tokenizer, {"source": TaskSource(learned).to_dict()}
    )
    lm = with_a_snapshot("clock")
    history = lm.over_training("accuracy")
    assert history.series == ("held out", "learned")
    for examples, value in zip(
        (learned.held_out(), learned.all_learned()), history.values[0], strict=True
    ):
        assert examples is not None
        right = [
            int(lm.model(torch.tensor([row[:4].tolist()]))[0, -1].argmax()) == row[4]
            for row in examples.ids
        ]
        assert value == pytest.approx(np.mean(right))
    np.testing.assert_allclose(
        lm.over_training("waves").values[0],
        powers(lm.model, Modular(modulus=5)).values[-1],
        atol=1e-9,
    )


def test_norm_and_rank_of_a_matrix_are_those_of_numpy(tiny_model: TinyModel) -> None:
    tiny_model("mine")
    lm = with_a_snapshot("mine")
    norms = lm.over_training("weights.norm")
    ranks = lm.over_training("weights.rank")
    weights = {
        name: each.detach().double().numpy()
        for name, each in lm.model.named_parameters()
        if each.dim() > 1
    }
    assert norms.series == ranks.series == tuple(weights)
    for i, matrix in enumerate(weights.values()):
        values = np.linalg.svd(matrix, compute_uv=False)
        shares = values / values.sum()
        assert norms.values[0, i] == pytest.approx(np.sqrt((matrix**2).sum()))
        assert ranks.values[0, i] == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))


def test_a_matrix_that_turns_all_directions_alike_has_full_rank(tiny_model: TinyModel) -> None:
    tiny_model("mine")
    lm = gptviz.load("mine")
    embed = lm.model.embed.weight
    with torch.no_grad():
        embed.copy_(torch.eye(*embed.shape))
    rank = MEASURES["weights.rank"].compute(
        lm.model, measure_input(lm, MEASURES["weights.rank"], MeasureQuestion())
    )
    assert rank["embed.weight"] == pytest.approx(min(embed.shape))


def test_edits_stay_in_place_at_every_snapshot(tiny_model: TinyModel) -> None:
    tiny_model("mine", context_length=64)
    lm = with_a_snapshot("mine")
    edited = lm.edited("blocks.0.attention.head.1=uniform")
    values = edited.over_training("heads.entropy").values[0]
    assert values[1] == pytest.approx(1.0)
    assert lm.over_training("heads.entropy").values[0, 1] < 1


@pytest.mark.parametrize(
    ("measure", "asked", "said"),
    [
        ("losss", {}, "no measure 'losss': did you mean 'loss'"),
        ("probability", {}, "needs a prompt"),
        ("similarity", {"token": "a"}, "compares two tokens"),
        ("attribution", {"prompt": "fox", "token": "o", "against": "o"}, "are the same"),
        ("waves", {}, "no task"),
        ("loss.without", {}, "name what is switched off, such as blocks.1.mlp"),
        ("loss.without", {"unit": "blocks.9.mlp"}, "there is no block 9"),
        ("loss.without", {"unit": "blocks.0.mlp=mean"}, "give its name alone"),
        ("loss.without", {"unit": "dictionary.none.feature.1"}, "there is no dictionary none"),
        ("loss.without", {"unit": "dictionary.sentences-features.feature.1"}, "another model"),
        ("loss.by_task", {}, "the card does not say|not trained on a mixture"),
    ],
)
def test_what_a_measure_lacks_is_said_in_a_line(
    tiny_model: TinyModel, measure: str, asked: dict[str, str], said: str
) -> None:
    tiny_model("mine")
    lm = with_a_snapshot("mine")
    with pytest.raises(ValueError, match=said):
        lm.over_training(measure, **asked)


def test_a_model_without_snapshots_is_refused(tiny_model: TinyModel) -> None:
    tiny_model("mine")
    with pytest.raises(ValueError, match="mine has no snapshots"):
        gptviz.load("mine").over_training("weights.norm")


def test_kinds_have_measures_of_their_own_and_are_refused_those_of_others(home: object) -> None:
    tokenizer = PAIR_TASKS["numbers"].tokenizer
    config = tiny(
        vocab_size=tokenizer.vocab_size,
        padding=tokenizer.padding,
        n_encoder_layer=1,
        context_length=64,
    )
    checkpoints.save("pair", scrambled(config), tokenizer, {"source": {"pair_task": "numbers"}})
    pair = with_a_snapshot("pair")
    with pytest.raises(
        ValueError, match="an encoder–decoder has no measure circuit.share: it is one of a decoder"
    ):
        pair.over_training("circuit.share", "two")
    scores = pair.over_training("heads.entropy", "two")
    assert len(scores.series) == (1 + 2 + 2) * config.n_head, (
        "those of the encoder, of the decoder, and those that cross"
    )
    with pytest.raises(ValueError, match="needs a prompt"):
        pair.over_training("heads.entropy")
    right, wrong = (pair.over_training("probability", "two", token).values[0, 0] for token in "21")
    logits = pair.model(torch.tensor([[special_tokenizer(pair).start]]), pair.source("two")[None])[
        0, -1
    ]
    assert [right, wrong] == pytest.approx(
        [logits.softmax(0)[pair.token(token)].item() for token in "21"]
    )


def test_a_classifier_is_asked_for_labels_and_its_loss_is_per_text(home: object) -> None:
    tokenizer = WordTokenizer(["good", "bad", "film"])
    sizes = {
        "vocab_size": tokenizer.vocab_size,
        "padding": tokenizer.padding,
        "mask": "full",
        "head": "mean",
        "n_label": 2,
    }
    checkpoints.save(
        "judge", scrambled(tiny(**sizes, final_norm=False)), tokenizer, {"labels": ["up", "down"]}
    )
    judge = with_a_snapshot("judge")
    assert measure_named("loss", "classifier").unit == "nats per text"
    both = [
        judge.over_training("probability", "good film", label).values[0, 0]
        for label in ("up", "down")
    ]
    assert both == pytest.approx(
        judge.model(judge.encode("good film")[None])[0].softmax(0).tolist()
    )
    assert judge.over_training("similarity", token="good", against="bad").values.shape == (1, 1)
    with pytest.raises(ValueError, match="is no label of judge"):
        judge.over_training("probability", "good film", "film")
    with pytest.raises(
        ValueError,
        match="a classifier has no measure heads.copying: it is one of a decoder or an "
        "encoder–decoder",
    ):
        judge.over_training("heads.copying")


def test_the_loss_without_a_feature_is_that_of_the_stream_without_its_row(home: object) -> None:
    lm = gptviz.load("sentences")
    dictionary = lm.dictionary()
    (rows,) = data.tested_rows(lm).values()
    feature = 90
    name = dictionary.edit(feature)
    found = lm.over_training("loss.without", unit=name)
    assert found.series == (name,)
    steps = checkpoints.snapshots(checkpoints.find("sentences"))
    assert found.steps == tuple(steps)

    def without(stream: torch.Tensor) -> torch.Tensor:
        # by hand: W (x − c) + b, the k largest of which count
        before = (stream - dictionary.decoder_bias) @ dictionary.encoder.T + dictionary.encoder_bias
        kth = before.topk(dictionary.k, -1).values[..., -1]
        value = before[..., feature]
        active = torch.where(value >= kth, value.clamp(min=0), torch.zeros_like(value))
        return stream - active[..., None] * dictionary.decoder[feature]

    assert len(steps) > 2
    for step in (min(steps), sorted(steps)[len(steps) // 2], max(steps)):
        model = gptviz.load("sentences", step=step).model
        changes, counted = 0.0, 0
        for row in rows:
            taps = {dictionary.tap: without}
            kept = row.targets != NOT_COUNTED
            for sign, edits in ((1, taps), (-1, {})):
                logits = run(model, row.reading.ids, ["logits"], edits=edits)["logits"]
                surprise = -logits.double().log_softmax(-1)[kept]
                changes += sign * float(surprise.gather(-1, row.targets[kept][:, None]).sum())
            counted += int(kept.sum())
        assert found.values[found.steps.index(step), 0] == pytest.approx(
            changes / counted, abs=1e-5
        )
    assert found.values[-1, 0] > 0.01
