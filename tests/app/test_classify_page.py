"""The Classify page as a reader meets it, without a browser."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.data.baseline import baseline
from gptviz.data.classification import LabelledSource
from gptviz.figures.kit.format import format_signed, percent
from gptviz.runs import checkpoints, queue
from gptviz.text import LabelledTexts
from gptviz.text.tokenizers.wordpiece import from_wordpiece
from gptviz.ui.pages.classify import held_out, own_file
from gptviz.ui.pages.classify.decision import ALONE
from gptviz.ui.records.classify import ATTENTION, HELD_OUT, OWN, VIEWS, WORDS
from gptviz.ui.shell.subject import models
from tests.app.explorer import pattern, sent
from tests.app.opening import chart, last_value, page_at, ran, says
from tests.drawn import numbers
from tests.tiny import scrambled, tiny

PLACES = ("plot", "cast", "music", "ending")
PRAISE = {"negative": ("dull", "bad"), "positive": ("good", "funny"), "neutral": ("long", "plain")}
TWO = ("negative", "positive")
THREE = ("negative", "neutral", "positive")
REVIEW = "The plot was never dull, and the cast was good"
Make = Callable[..., LabelledTexts]
Opened = Callable[..., gptviz.LanguageModel]


@pytest.fixture
def judge(home: Path) -> Make:
    """Saves an untrained classifier called judge, and returns the texts that its card says it was
    trained on.
    """

    def make(
        names: tuple[str, ...] = TWO,
        *,
        kept: bool = True,
        card: dict[str, Any] | None = None,
        **changes: Any,
    ) -> LabelledTexts:
        pairs = [
            (f"the {place} was {denied}{word}", label)
            for label, name in enumerate(names)
            for place in PLACES
            for denied in ("", "never ")
            for word in PRAISE.get(name, PRAISE["negative"])
        ]
        labelled = LabelledTexts(
            "reviews", tuple(text for text, _ in pairs), tuple(label for _, label in pairs), names
        )
        source = LabelledSource(labelled, 0.5)
        if kept:
            source.keep()
        tokenizer = source.tokenizer("words", 100)
        sizes = {
            "head": "mean",
            "n_label": 2,
            "mask": "full",
            "final_norm": False,
            "context_length": 16,
        } | changes
        config = source.fit_config(tiny(**sizes), tokenizer)
        written = {"labels": list(names), "corpus": "reviews", "source": source.to_dict()}
        checkpoints.save("judge", scrambled(config), tokenizer, written | (card or {}))
        return labelled

    return make


@pytest.fixture
def labelled(judge: Make) -> LabelledTexts:
    """The texts of the classifier called judge, which are on this machine."""
    return judge()


page = page_at("pages/classify.py", model="judge", prompt=REVIEW)


def bars(at: AppTest) -> np.ndarray:
    """The bias and what each word adds, as they travel."""
    return numbers(chart(at, "contributions")["data"][0]["y"])


def words(at: AppTest) -> list[str]:
    return list(chart(at, "contributions")["data"][0]["customdata"])


def table(at: AppTest, column: str) -> list[Any]:
    return next(list(frame.value[column]) for frame in at.dataframe if column in frame.value)


def logits(prompt: str) -> np.ndarray:
    lm = gptviz.load("judge")
    return np.log(np.array(list(lm.classify(prompt).values())))


def give(at: AppTest, content: str | bytes, name: str = "mine.csv") -> AppTest:
    data = content.encode() if isinstance(content, str) else content
    at.file_uploader(key=own_file.UPLOADER).upload(name, data, "text/csv").run()
    return at


@pytest.mark.parametrize("head", ["mean", "flatten", "sum"])
def test_the_bars_add_up_to_the_margin_of_the_two_labels(judge: Make, head: str) -> None:
    judge(head=head)
    at = page()
    negative, positive = logits(REVIEW)
    assert bars(at).sum() == pytest.approx(positive - negative, abs=1e-5)
    assert words(at) == [
        "(bias)",
        *"the plot was never dull and the cast was good".replace("and", "⟨unknown⟩").split(),
    ]
    shown = [
        float(number.replace("−", "-"))
        for number in re.findall(r"\| \**([+−][\d.]+)\** \|", says(at))
    ]
    bias, sum_of_words, total, model = shown
    assert bias + sum_of_words == pytest.approx(total, abs=2e-3)
    assert total == model == pytest.approx(positive - negative, abs=1e-3)
    sign = 1 if positive > negative else -1
    by_word = sorted(zip(sign * bars(at)[1:], words(at)[1:], strict=True), reverse=True)
    label = "positive" if positive > negative else "negative"
    assert by_word[0][0] > 0
    assert f"“{by_word[0][1]}” speaks most for “{label}”" in says(at)
    if by_word[-1][0] < 0:
        assert f"“{by_word[-1][1]}” speaks most against it" in says(at)
    most = 1 + int(np.abs(bars(at)[1:]).argmax())
    assert (
        f"The largest bar is that of “{words(at)[most]}”: {format_signed(bars(at)[most], 3)} of"
        in says(at)
    )


def test_of_three_labels_the_likeliest_stands_against_the_next_and_a_chosen_one_alone_adds_up_to_its_logit(
    judge: Make,
) -> None:
    judge(THREE, n_label=3)
    at = page()
    found = np.sort(logits(REVIEW))
    assert bars(at).sum() == pytest.approx(found[-1] - found[-2], abs=1e-5)
    at.selectbox(key="label").set_value("neutral")
    at.selectbox(key="against").set_value(ALONE).run()
    lm = gptviz.load("judge")
    expected = lm.trace(REVIEW, ["logits"])["logits"][0, 1].item()
    assert bars(at).sum() == pytest.approx(expected, abs=1e-5)
    assert "not neutral" in chart(at, "contributions")["layout"]["annotations"][0]["text"]


def test_what_is_counted_on_held_out_texts_is_what_the_model_says_of_each(
    labelled: LabelledTexts,
) -> None:
    at = page(view=HELD_OUT)
    held_out = LabelledSource(labelled, 0.5).split()[1]
    lm = gptviz.load("judge")
    counts = np.zeros((2, 2), int)
    wrong = []
    for text, label in zip(held_out.texts, held_out.labels, strict=True):
        found = list(lm.classify(text).values())
        predicted = int(np.argmax(found))
        counts[label, predicted] += 1
        if predicted != label:
            wrong.append((max(found), text))
    assert numbers(chart(at, "held out confusion")["data"][0]["text"]).tolist() == counts.tolist()
    assert not [c for c in at.get("plotly_chart") if c.proto.id.endswith("distances")], (
        "these labels have no order"
    )
    assert at.metric[0].value == percent(counts.trace() / counts.sum())
    shown = table(at, "text")
    assert sorted(shown) == sorted(text for _, text in wrong)
    sure = table(at, "probability")
    assert sure == sorted(sure, reverse=True)
    np.testing.assert_allclose(sure, sorted((100 * p for p, _ in wrong), reverse=True), atol=1e-3)


def test_of_stars_the_page_counts_how_far_off_model_and_baseline_are(judge: Make) -> None:
    stars = ("5", "1", "3")  # as a model may number them
    training, held_out = LabelledSource(judge(stars), 0.5).split()
    at = page(view=HELD_OUT)
    lm = gptviz.load("judge")
    own = [
        int(lm.labels[int(np.argmax(list(lm.classify(text).values())))]) for text in held_out.texts
    ]
    of_baseline = [int(stars[i]) for i in baseline(training, held_out).probabilities.argmax(1)]
    truth = [int(stars[label]) for label in held_out.labels]
    for bar, given in zip(chart(at, "held out distances")["data"], (own, of_baseline), strict=True):
        # 1, 3 and 5 are neighbours
        apart = [abs(a - b) // 2 for a, b in zip(truth, given, strict=True)]
        np.testing.assert_allclose(
            numbers(bar["y"]), [apart.count(distance) / len(apart) for distance in range(3)]
        )
    assert (
        f"{np.mean([abs(a - b) / 2 for a, b in zip(truth, own, strict=True)]):.2f} labels on "
        "average" in says(at)
    )
    counts = numbers(chart(at, "held out confusion")["data"][0]["text"])
    by_stars = [
        [sum((a, b) == pair for pair in zip(truth, own, strict=True)) for b in (1, 3, 5)]
        for a in (1, 3, 5)
    ]
    assert counts.tolist() == by_stars


def test_texts_that_are_not_here_are_said_not_to_be_and_a_file_is_asked_for(judge: Make) -> None:
    judge(
        kept=False,
        card={"accuracy": 0.781, "baseline_accuracy": 0.767, "texts": {"held_out": 1066}},
    )
    at = page(view=HELD_OUT)
    assert "reviews" in says(at)
    assert "not on this machine" in says(at)
    assert "78.1 % of 1,066" in says(at)
    assert "76.7 %" in says(at)
    give(at, "text,label\nthe cast was good,positive\nthe plot was dull,negative\n")
    assert at.metric[0].value in ("0 %", "50.0 %", "100 %")
    assert at.metric[1].value == "–"


@pytest.mark.parametrize(
    "source",
    [{}, 3, {"task": "copy"}, {"labelled": "x", "sha256": "../../etc/passwd"}, {"labelled": 1}],
)
def test_a_card_that_names_no_texts_is_said_not_to(judge: Make, source: object) -> None:
    judge(card={"source": source, "accuracy": "high", "texts": 3})
    at = page(view=HELD_OUT)
    assert at.info
    assert at.file_uploader


def csv_of(labelled: LabelledTexts) -> str:
    rows = zip(labelled.texts, labelled.labels, strict=True)
    return "text,label\n" + "".join(f'"{text}",{labelled.names[label]}\n' for text, label in rows)


def test_without_its_texts_the_confusion_on_the_card_is_shown_with_what_is_missing(
    judge: Make,
) -> None:
    counts = [[401, 132], [121, 412]]
    judge(kept=False, card={"confusion": counts, "corpus_sha256": "0" * 64})
    at = page(view=HELD_OUT)
    assert numbers(chart(at, "card confusion")["data"][0]["text"]).tolist() == counts
    assert "the texts that it gets wrong cannot be shown" in says(at)
    assert "in the one it was trained on, the texts held out are found again" in says(at)


def test_a_confusion_on_the_card_of_other_labels_is_ignored(judge: Make) -> None:
    judge(kept=False, card={"confusion": [[1, 2, 0], [3, 4, 0], [0, 0, 0]]})
    at = page(view=HELD_OUT)
    assert not [c for c in at.get("plotly_chart") if c.proto.id.endswith("card confusion")]
    assert "not on this machine" in says(at)


def test_of_the_file_it_was_trained_on_only_the_texts_held_out_test_it(judge: Make) -> None:
    labelled = judge(kept=False)
    card = checkpoints.read_card(checkpoints.find("judge")).to_json() | {
        "corpus_sha256": labelled.sha256
    }
    (checkpoints.find("judge") / "card.json").write_text(json.dumps(card))
    training, held_out = LabelledSource(labelled, 0.5).split()
    for view in (HELD_OUT, OWN):
        at = give(page(view=view), csv_of(labelled))
        lm = gptviz.load("judge")
        names = [max(found, key=found.__getitem__) for found in map(lm.classify, held_out.texts)]
        right = np.mean(
            [
                name == held_out.names[label]
                for name, label in zip(names, held_out.labels, strict=True)
            ]
        )
        assert numbers(chart(at, "own confusion")["data"][0]["text"]).sum() == len(held_out)
        assert at.metric[0].value == percent(float(right))
        assert at.metric[1].value == percent(baseline(training, held_out).accuracy)
        assert f"only on the {len(held_out)} texts that were held out" in says(at)


@pytest.mark.parametrize(
    "change",
    [
        {"corpus_sha256": "0" * 64},
        {"source": 3},
        {"source": {"seed": -1}},
        {"texts": {"training": 1}},
    ],
)
def test_any_other_file_is_said_to_hold_perhaps_what_it_was_trained_on(
    judge: Make, change: dict[str, Any]
) -> None:
    labelled = judge(kept=False)
    card = (
        checkpoints.read_card(checkpoints.find("judge")).to_json()
        | {"corpus_sha256": labelled.sha256}
        | change
    )
    (checkpoints.find("judge") / "card.json").write_text(json.dumps(card))
    at = give(page(view=OWN), csv_of(labelled))
    assert numbers(chart(at, "own confusion")["data"][0]["text"]).sum() == len(labelled)
    assert "Texts that the model was trained on may be among these" in says(at)


def test_a_mistake_longer_than_the_longest_prompt_is_cut(
    labelled: LabelledTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_out, "longest_prompt", lambda: 12)
    at = page(view=WORDS, prompt="good")
    at.button(key="try A confident mistake").click().run()
    assert len(at.text_area(key="prompt").value) == 12


def test_a_file_is_labelled_as_the_model_labels_its_texts(labelled: LabelledTexts) -> None:
    at = page(view=OWN)
    texts = ["the plot was dull", 'good, "never" bad', "two\nlines of music", "בגד"]
    written = io.StringIO()
    csv.writer(written).writerows(
        [["id", "text"], *([str(i), text] for i, text in enumerate(texts))]
    )
    give(at, written.getvalue())
    lm = gptviz.load("judge")
    expected = lm.probabilities(texts)
    assert table(at, "text") == texts
    assert table(at, "label") == [TWO[i] for i in expected.argmax(1)]
    np.testing.assert_allclose(
        table(at, "probability of negative"), 100 * expected[:, 0], atol=1e-4
    )
    assert "mine.csv: 4 texts" in says(at)
    assert "label" in says(at)  # it has none to test with
    assert not at.metric


def test_many_texts_are_labelled_part_by_part_as_they_are_at_once(
    labelled: LabelledTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_out, "AT_A_TIME", 3)
    at = page(view=OWN)
    expected = gptviz.load("judge").probabilities(table(at, "text"))
    np.testing.assert_allclose(
        table(at, "probability of negative"), 100 * expected[:, 0], atol=1e-4
    )


def test_a_file_of_more_texts_than_are_labelled_says_so(
    labelled: LabelledTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_file, "MOST_TEXTS", 2)
    at = give(page(view=OWN), "text\na\nb\nc\n")
    assert any("3 texts" in error.value and "2" in error.value for error in at.error)


def test_a_file_with_labels_tests_the_model(labelled: LabelledTexts) -> None:
    at = give(
        page(view=OWN),
        "label;text\npositive;the plot was dull\nnegative;the cast was good\nnegative;bad music\n",
    )
    lm = gptviz.load("judge")
    predicted = [
        max(d, key=d.__getitem__)
        for d in map(lm.classify, ("the plot was dull", "the cast was good", "bad music"))
    ]
    right = sum(
        a == b for a, b in zip(predicted, ("positive", "negative", "negative"), strict=True)
    )
    assert at.metric[0].value == percent(right / 3)
    assert numbers(chart(at, "own confusion")["data"][0]["text"]).sum() == 3


def test_a_file_stays_while_another_view_is_looked_at(labelled: LabelledTexts) -> None:
    at = give(page(view=OWN), "text\nthe plot was dull\n")
    at.segmented_control(key="view").set_value(WORDS).run()
    at.segmented_control(key="view").set_value(OWN).run()
    assert table(at, "text") == ["the plot was dull"]


def test_until_there_is_a_file_an_example_is_labelled_and_tested(labelled: LabelledTexts) -> None:
    at = page(view=OWN)
    assert len(table(at, "text")) == own_file.N_OPINIONS
    assert at.metric
    assert not [button for button in at.button if "Train" in button.label]


def test_a_bad_file_is_named_with_what_is_wrong_and_the_page_stays(labelled: LabelledTexts) -> None:
    at = give(page(view=OWN), "text\ncaf\xe9\n".encode("latin-1"), "odd *file*.csv")
    assert any(
        "UTF-8" in error.value.replace("\\", "") and "odd" in error.value for error in at.error
    )
    assert len(table(at, "text")) == own_file.N_OPINIONS


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("text,label\ngood,positive\nbad,positive\n", "at least two labels"),
        ("text,label\ngood,yes\nbad,no\n", "the model knows"),
    ],
)
def test_labels_that_test_nothing_are_named_and_the_texts_labelled_nevertheless(
    labelled: LabelledTexts, content: str, complaint: str
) -> None:
    at = give(page(view=OWN), content)
    assert any(complaint in info.value.replace("\\", "") for info in at.info)
    assert table(at, "text")[0] == "good"
    assert not at.metric


@pytest.mark.parametrize(
    ("view", "table_of"), [(OWN, "predictions"), (HELD_OUT, "held out mistakes")]
)
def test_a_text_of_a_table_is_taken_apart_from_the_select_box_too(
    labelled: LabelledTexts, view: str, table_of: str
) -> None:
    at = page(view=view)
    text = table(at, "text")[1]
    box = at.selectbox(key=f"{table_of} pick")
    assert box.value is None
    box.set_value(1).run()
    assert at.text_area(key="prompt").value == text
    assert at.segmented_control(key="view").value == WORDS
    assert len(words(at)[1:]) == len(text.split())


def test_a_labelled_file_trains_a_classifier_of_its_labels(
    labelled: LabelledTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[str, str | None]] = []
    monkeypatch.setattr(
        queue, "submit", lambda name, device=None: begun.append((name, device)) or 0
    )
    rows = "".join(
        f"the {place} was {word},{word}\n"
        for word in ("red", "green", "blue")
        for place in PLACES * 3
    )
    at = give(page(view=OWN), f"text,label\n{rows}", "colours.csv")
    next(button for button in at.button if button.label.startswith("Train")).click().run()
    assert [name for name, _ in begun] == [own_file.NAME]
    card = checkpoints.read_card(checkpoints.find(own_file.NAME))
    assert card.labels == ("blue", "green", "red")
    assert card.corpus == "colours"
    assert gptviz.load(own_file.NAME).model.config.n_label == 3
    assert held_out.split(models.model_key(own_file.NAME, "cpu"))[0].names == (
        "blue",
        "green",
        "red",
    )


def test_too_few_texts_cannot_train_and_the_page_says_so(labelled: LabelledTexts) -> None:
    at = give(page(view=OWN), "text,label\ngood,positive\nbad,negative\n")
    assert next(button for button in at.button if button.label.startswith("Train")).disabled
    assert any("some can be held out" in info.value for info in at.info)


def test_try_without_a_word_takes_away_the_one_that_counts_most(labelled: LabelledTexts) -> None:
    at = page()
    tokens = words(at)[1:]
    before = logits(REVIEW)
    label = int(before.argmax())
    rests = [
        " ".join(tokens[:i] + tokens[i + 1 :]).replace("⟨unknown⟩", "and")
        for i in range(len(tokens))
    ]
    weakest = min(rests, key=lambda rest: logits(rest)[label])
    button = next(button for button in at.button if "ithout “" in button.label)
    button.click().run()
    rest = at.text_area(key="prompt").value
    assert logits(rest)[label] == pytest.approx(logits(weakest)[label], abs=1e-6)
    assert bars(at).sum() == pytest.approx(logits(rest)[1] - logits(rest)[0], abs=1e-5)


def test_labels_and_words_are_no_markup(judge: Make) -> None:
    hostile = ("<b>bad</b> | $x$", "**good** `code`")
    judge(hostile, n_label=2)
    for view in VIEWS:
        at = page(view=view)
        for element in (*at.markdown, *at.caption, *at.info):
            assert "**good**" not in element.value
            assert "<b>bad" not in element.value


def test_the_code_counts_the_texts_held_out_and_labels_those_of_a_file(
    labelled: LabelledTexts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    at = page(view=HELD_OUT)
    counts = numbers(chart(at, "held out confusion")["data"][0]["text"])
    assert last_value(at.code[0].value).values.tolist() == counts.tolist()
    (tmp_path / "mine.csv").write_text("text\nthe plot was dull\nbad\n")
    at = give(page(view=OWN), (tmp_path / "mine.csv").read_bytes())
    np.testing.assert_allclose(
        100 * ran(at.code[0].value)["probabilities"].max(1), table(at, "probability"), atol=1e-4
    )


PIECES = "[PAD] [UNK] [CLS] [SEP] the plot was never dull and cast good film ##s ,".split()  # noqa: SIM905


@pytest.fixture
def first_token(home: Path) -> Opened:
    """Saves a classifier called judge whose head reads the first token, [CLS], as BERT's does, and
    opens it.
    """

    def make(**changes: Any) -> gptviz.LanguageModel:
        tokenizer = from_wordpiece("\n".join(PIECES))
        sizes = {
            "head": "first",
            "n_label": 2,
            "mask": "full",
            "final_norm": False,
            "residual": "post-norm",
            "embed_norm": True,
        }
        config = tiny(
            **{"vocab_size": len(PIECES), "context_length": 16, "padding": 0} | sizes | changes
        )
        names = [f"label {i}" for i in range(config.n_label)]
        checkpoints.save("judge", scrambled(config), tokenizer, {"labels": names})
        return gptviz.load("judge")

    return make


def margin_of(lm: gptviz.LanguageModel, tokens: list[str], label: int, against: int) -> float:
    ids = torch.tensor([[PIECES.index(token) for token in tokens]])
    with torch.inference_mode():
        logits = lm.model(ids)[0]
    return float(logits[label] - logits[against])


@pytest.mark.parametrize("head", ["first", "first-relu"])
def test_under_a_head_of_the_first_token_a_bar_is_what_the_decision_loses_without_the_word(
    first_token: Opened, head: str
) -> None:
    lm = first_token(head=head)
    at = page(prompt="The plot was never dull, films")
    text = ["the", "plot", "was", "never", "dull", ",", "film", "##s"]
    whole = margin_of(lm, ["[CLS]", *text, "[SEP]"], 1, 0)
    lost = [
        whole - margin_of(lm, ["[CLS]", *text[:i], *text[i + 1 :], "[SEP]"], 1, 0)
        for i in range(len(text))
    ]
    assert words(at) == text
    np.testing.assert_allclose(bars(at), lost, atol=1e-5)
    np.testing.assert_allclose(ran(at.code[0].value)["result"].of_tokens, bars(at), atol=1e-6)
    assert f"**{whole:+.3f}**".replace("-", "−") in says(at)
    assert "do not add up" in says(at)
    assert "It adds up" not in says(at)


def test_of_three_labels_the_bars_are_about_those_that_are_chosen(first_token: Opened) -> None:
    lm = first_token(n_label=3)
    at = page(prompt="the film")
    at.selectbox(key="label").set_value("label 2").run()
    logits = lm.trace("the film", ["logits"])["logits"][0]
    other = int(logits[:2].argmax())
    whole = margin_of(lm, ["[CLS]", "the", "film", "[SEP]"], 2, other)
    expected = [
        whole - margin_of(lm, ["[CLS]", left, "[SEP]"], 2, other) for left in ("film", "the")
    ]
    np.testing.assert_allclose(bars(at), expected, atol=1e-5)


def test_the_button_without_the_decisive_piece_leads_to_a_text_that_is_read_so(
    first_token: Opened,
) -> None:
    lm = first_token()
    text = "the plot was never dull , and the cast was good"
    at = page(prompt=text)
    [button] = [one for one in at.button if "ithout “" in one.label]
    token = re.search("“(.*)”", button.label)
    assert token is not None
    probabilities = {
        i: lm.classify(" ".join([*text.split()[:i], *text.split()[i + 1 :]]))
        for i in range(len(text.split()))
    }
    own = max(lm.classify(text).items(), key=lambda pair: pair[1])[0]
    least = min(probabilities, key=lambda i: probabilities[i][own])
    assert token[1] == text.split()[least]
    button.click().run()
    assert words(at) == [word for i, word in enumerate(text.split()) if i != least]


def test_a_text_too_long_to_be_read_so_often_is_said_to_be_and_one_too_long_for_the_model_is_cut(
    first_token: Opened,
) -> None:
    first_token(context_length=200)
    at = page(prompt="good film " * 70)
    assert "This text has 140 tokens; that is done for texts of 1 to 128" in says(at)
    at.text_area(key="prompt").set_value("good film " * 64).run()
    assert len(bars(at)) == 128
    at.text_area(key="prompt").set_value("good film " * 150).run()
    assert "This text has 198 tokens" in says(at)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_opens_for_a_classifier_of_pieces_without_texts_of_its_own(
    first_token: Opened, view: str
) -> None:
    lm = first_token()
    at = page(view=view, prompt="the unheard film")
    if view == ATTENTION:
        assert sent(at)[0]["spaced"]
        np.testing.assert_allclose(
            pattern(at, 1, 0),
            lm.trace("the unheard film")["blocks.1.attention.pattern"][0, 0],
            atol=1e-6,
        )
    if view == OWN:
        give(at, 'text\nthe film was good\ngood\n"dull, dull"\n')
        assert table(at, "text") == ["the film was good", "good", "dull, dull"]
        expected = [max(lm.classify(text).values()) for text in table(at, "text")]
        np.testing.assert_allclose(
            table(at, "probability"), [100 * one for one in expected], atol=1e-3
        )


def test_a_text_without_a_word_of_the_vocabulary_says_nothing(first_token: Opened) -> None:
    first_token()
    assert "it reads “[UNK]” for each" in says(page(prompt="unheard things"))
