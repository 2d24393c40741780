"""Every page with a classifier and with an encoder–decoder: it works, or says why not and leads to
the page that does.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz import text as texts
from gptviz.components.kit import unpack
from gptviz.data.classification import LabelledSource
from gptviz.language_model.core import special_tokenizer
from gptviz.machine.files import home
from gptviz.model import Record
from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints
from gptviz.runs.card import Card
from gptviz.ui.menu import PAGES
from gptviz.ui.page import Page
from gptviz.ui.shell.around.next_step import page_after
from gptviz.ui.shell.subject import kinds, reading, scrubber
from gptviz.ui.views.learning_curves import curve_of
from tests.app.conftest import OF_KIND
from tests.app.explorer import pattern, sent
from tests.app.opening import chart, last_link, last_value, opened, ran, says, views
from tests.drawn import numbers
from tests.tiny import TinyModel, scrambled

REVIEW = "The film was never dull, and good"


def links(at: AppTest) -> dict[str, dict[str, list[str]]]:
    """The links of the page, not those of the menu: what each is called, and its query."""
    return {
        link.proto.label: parse_qs(link.proto.query_string) for link in at.main.get("page_link")
    }


def trace(
    name: str, ids: tuple[int, ...], wanted: str, source: tuple[int, ...] | None = None
) -> np.ndarray:
    """The tensor under this tap name, from a separate forward pass."""
    record = Record([wanted])
    with torch.inference_mode():
        gptviz.load(name).model(
            torch.tensor([ids]), None if source is None else torch.tensor([source]), tap=record
        )
    return record.values[wanted][0].numpy()


def answer_by_loop(name: str, source: tuple[int, ...]) -> tuple[int, ...]:
    """The start token, then the likeliest token each time until the end token, each from a whole
    forward pass.
    """
    lm = gptviz.load(name)
    ids = [special_tokenizer(lm).start]
    while len(ids) < lm.model.config.context_length:
        with torch.inference_mode():
            token = int(lm.model(torch.tensor([ids]), torch.tensor([source]))[0, -1].argmax())
        if token == special_tokenizer(lm).end:
            break
        ids.append(token)
    return tuple(ids)


MARKUP = "**:red[x]$`<b>"


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("kind", OF_KIND)
def test_every_page_opens_on_every_kind_of_model_shows_no_text_as_markup_and_ends_with_the_next_step(
    page: Page, kind: Kind, tiny_model: TinyModel, tiny_classifier: TinyModel, tiny_pair: TinyModel
) -> None:
    make = {
        "decoder": partial(tiny_model, text=MARKUP),
        "classifier": tiny_classifier,
        "encoder-decoder": tiny_pair,
    }[kind]
    card = {
        "labels": [MARKUP, f"{MARKUP} 2"],
        "languages": [MARKUP, MARKUP],
        "corpus": MARKUP,
        "licence": MARKUP,
    }
    folder = make("plain", card=card)
    query = {"model": "**:red[m]", "prompt": 2 * MARKUP, "edits": MARKUP}
    folder.rename(folder.with_name(query["model"]))
    at = opened(page.path, **query)
    assert not at.error
    assert ("This page is about a model that" in says(at)) == (kind not in page.kinds)
    said = [
        str(one.value)
        for kinds in (at.markdown, at.caption, at.info, at.warning, at.success)
        for one in kinds
    ]
    said += [str(one.label) for kinds in (at.button, at.expander, at.metric) for one in kinds]
    assert not [one for one in said for part in (":red[", "$`<", "<b>") if part in one]
    after = page_after(page, kind)
    if page.name != "home" and kind in page.kinds and after is not None:
        assert last_link(at) == (after.name, {key: [value] for key, value in query.items()})


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize(
    ("path", "model", "kind", "own"),
    [
        (
            "pages/generate.py",
            "judge",
            "judge is a classifier: it gives a whole text a label",
            "Classify",
        ),
        (
            "pages/next_token.py",
            "judge",
            "judge is a classifier: it gives a whole text a label",
            "Classify",
        ),
        (
            "pages/generate.py",
            "pair",
            "pair is an encoder–decoder: it reads one text and writes another",
            "Translate",
        ),
        (
            "pages/next_token.py",
            "pair",
            "pair is an encoder–decoder: it reads one text and writes another",
            "Translate",
        ),
        ("pages/classify.py", "pair", "pair is an encoder–decoder", "Translate"),
        (
            "pages/translate.py",
            "writer",
            "writer is a decoder: it goes on with a text, one token after another",
            "Next token",
        ),
    ],
)
def test_a_page_about_other_models_says_so_and_leads_to_the_page_for_this_one(
    path: str, model: str, kind: str, own: str
) -> None:
    at = opened(path, model=model, prompt="the film")
    assert kind in says(at)
    assert links(at) == {f"Open it on the page {own}": {"model": [model], "prompt": ["the film"]}}
    assert not at.get("plotly_chart")


@pytest.mark.usefixtures("one_of_each")
def test_a_page_about_other_models_offers_to_stay_with_one_of_those() -> None:
    at = opened("pages/next_token.py", model="judge")
    (stay,) = (button for button in at.button if "Stay here" in button.label)
    stay.click().run()
    assert at.selectbox(key="model").value == "writer"
    assert any(view.proto.id.endswith("-ledger") for view in views(at))


def test_where_there_is_no_such_model_a_page_leads_to_training_one(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model("writer")
    monkeypatch.setattr(checkpoints, "BUNDLED", home() / "none")
    at = opened("pages/classify.py")
    assert links(at)["Train a classifier"]["plan"] == ["classifier"]


@pytest.mark.usefixtures("one_of_each")
def test_a_page_opens_on_a_model_of_its_own_kind_and_its_links_keep_it() -> None:
    at = opened("pages/translate.py")
    assert at.selectbox(key="model").value == "pair"
    menu = {
        link.proto.label: parse_qs(link.proto.query_string) for link in at.sidebar.get("page_link")
    }
    assert menu["Attention"] == {"model": ["pair"]}
    assert opened("pages/attention.py").selectbox(key="model").value == "writer"


@pytest.mark.usefixtures("one_of_each")
def test_home_shows_the_probabilities_of_the_labels_and_leads_to_classify() -> None:
    at = opened("app.py", model="judge", prompt=REVIEW)
    with torch.inference_mode():
        ids = gptviz.load("judge").encode(REVIEW)
        expected = gptviz.load("judge").model(ids[None])[0].softmax(-1)
    header, _ = unpack(views(at)[0].proto.bytes)
    assert dict(header["guesses"]) == {
        f"label {i}": pytest.approx(expected[i].item(), abs=1e-6) for i in range(2)
    }
    assert not header["takes"]
    assert "it gives a whole text a label" in says(at)
    assert "tell what a text is" in at.title[0].value
    assert links(at)["Look at it closely: Classify"] == {"model": ["judge"], "prompt": [REVIEW]}


@pytest.mark.usefixtures("one_of_each")
def test_home_shows_the_answer_with_its_probabilities_and_leads_to_translate() -> None:
    at = opened("app.py", model="pair", prompt="one")
    lm = gptviz.load("pair")
    source = tuple(lm.source("one").tolist())
    ids = answer_by_loop("pair", source)
    header, _ = unpack(views(at)[0].proto.bytes)
    shown = header["guesses"]
    assert [token[0] for token in shown] == [lm.tokenizer.label(i) for i in ids[1:]]
    assert [token[0] for token in header["source"]] == [lm.tokenizer.label(i) for i in source]
    assert [token[0] for token in header["tokens"]] == [lm.tokenizer.label(i) for i in ids]
    for place, token in enumerate(ids[1:]):
        with torch.inference_mode():
            logits = lm.model(torch.tensor([ids[: place + 1]]), torch.tensor([source]))[0, -1]
        assert shown[place][1] == pytest.approx(logits.softmax(-1)[token].item(), abs=1e-3)
    assert links(at)["Look at it closely: Translate"]["model"] == ["pair"]
    assert "answer one text with another" in at.title[0].value


@pytest.mark.usefixtures("one_of_each")
def test_home_links_to_pages_about_other_kinds_with_a_model_of_theirs() -> None:
    found = links(opened("app.py", model="judge"))
    assert found["Translate"] == {"model": ["pair"]}
    assert found["Generate"] == {"model": ["writer"]}


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize(
    "query",
    [
        {"model": "judge"},
        *({"model": "pair", "stack": stack} for stack in ("encoder", "decoder", "cross")),
    ],
)
def test_the_code_behind_the_attention_makes_it(query: dict[str, str]) -> None:
    at = opened("pages/attention.py", **query, prompt="never good " * 20)
    made = ran(sent(at)[0]["code"])
    np.testing.assert_allclose(made["reading"].pattern(1, 0), pattern(at, 1, 0), atol=1e-6)


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize(("model", "first", "rest"), [("judge", 8, 0), ("pair", 23, 1)])
def test_of_a_text_longer_than_the_context_the_beginning_is_read(
    model: str, first: int, rest: int
) -> None:
    at = opened("pages/attention.py", model=model, prompt="good film never " * 20)
    lm = gptviz.load(model)
    ids = lm.tokenizer.encode("good film never " * 20).ids
    shown = sent(at)[0]["keys"]
    assert shown[:first] == [lm.tokenizer.label(i) for i in ids[:first]]
    assert len(shown) == first + rest
    assert (
        f"{len(ids)} tokens; this model sees {first} at a time: it reads the first {first}"
        in says(at)
    )


@pytest.mark.usefixtures("one_of_each")
def test_words_that_the_model_lacks_are_named_and_read_as_unknown() -> None:
    at = opened("pages/attention.py", model="judge", prompt="good spaghetti")
    assert "spaghetti" in at.warning[0].value
    assert sent(at)[0]["keys"] == ["good", "⟨unknown⟩"]


@pytest.mark.usefixtures("one_of_each")
def test_a_classifier_has_no_unembedding_to_show() -> None:
    at = opened("pages/embeddings.py", model="judge")
    assert at.segmented_control(key="space").options == ["embedding"]
    # the last word of the prompt that the model knows
    assert at.selectbox(key="token").value == "the"
    assert {"⟨unknown⟩", "⟨padding⟩"} <= set(at.selectbox(key="token").options)
    at.selectbox(key="token").set_value("⟨padding⟩").run()
    assert opened("pages/embeddings.py", model="pair").segmented_control(key="space").options == [
        "embedding",
        "unembedding",
    ]


@pytest.mark.parametrize("positions", ["learned", "relative"])
def test_each_stack_shows_the_positions_it_has_learned(
    tiny_pair: TinyModel, positions: str
) -> None:
    tiny_pair(positions=positions)
    model = gptviz.load("pair").model
    at = opened("pages/positions.py", model="pair", wave="1", table=positions)
    for stack, part in (("encoder", model.encoder), ("decoder", model)):
        at.segmented_control(key="stack").set_value(stack).run()
        if positions == "learned":
            table = part.positions.table.weight
        else:
            heads = part.blocks[0].attention.positions.table  # [H, d_head, 2 · reach + 1]
            table = heads.flatten(0, 1).T[heads.shape[-1] // 2 if stack == "decoder" else 0 :]
        shown = numbers(chart(at, "wave line")["data"][-1]["y"])
        np.testing.assert_allclose(shown, table[:, 1].detach().numpy(), atol=1e-6)
        rows = torch.nn.functional.normalize(table.detach().double(), dim=1)
        np.testing.assert_allclose(last_value(at.code[0].value).values, rows @ rows.T, atol=1e-6)


def test_a_step_of_training_is_shown_for_every_kind(
    tiny_classifier: TinyModel, tiny_pair: TinyModel
) -> None:
    for folder in (tiny_classifier(), tiny_pair()):
        config = checkpoints.read_config(folder)
        for step in (0, 4):
            checkpoints.write_weights(
                checkpoints.snapshot_path(folder, step), scrambled(config, 50 + step)
            )
        pictures = []
        for step in ("0", "4", "last"):
            at = opened("pages/attention.py", model=folder.name, prompt="good", step=step)
            model = gptviz.load(folder.name, step=None if step == "last" else int(step)).model
            record = Record(["blocks.0.attention.pattern"])
            with torch.inference_mode():
                ids = (
                    gptviz.load(folder.name).source("good")
                    if model.encoder
                    else gptviz.load(folder.name).encode("good")
                )
                (model.encoder or model)(ids[None], tap=record)
            np.testing.assert_allclose(
                pattern(at, 0, 1),
                record.values["blocks.0.attention.pattern"][0, 1].numpy(),
                atol=1e-6,
            )
            pictures.append(
                chart(opened("pages/embeddings.py", model=folder.name, step=step), "map")
            )
            assert at.select_slider(key="step").value == step
        assert pictures[0] != pictures[1] != pictures[2]


def test_guessing_is_as_hard_as_there_are_labels_or_tokens(
    tiny_classifier: TinyModel, tiny_pair: TinyModel
) -> None:
    assert curve_of(tiny_classifier(n_label=5)).uniform == pytest.approx(np.log(5))
    assert curve_of(tiny_pair()).uniform == pytest.approx(
        np.log(gptviz.load("pair").tokenizer.vocab_size)
    )


def test_a_model_begins_with_an_example_of_what_it_was_trained_on(
    tiny_classifier: TinyModel, tiny_pair: TinyModel
) -> None:
    opinions = LabelledSource(texts.opinions())
    cases = {  # test_examples.py has texts of ones own
        "opinions": (tiny_classifier, opinions.to_dict(), opinions.split()[1].texts[0]),
        "dates": (tiny_pair, {"pair_task": "dates"}, "the third of march 1977"),
    }
    for name, (make, source, prompt) in cases.items():
        make(name, card={"source": source})
        at = opened("pages/positions.py", model=name)
        assert at.text_area(key="prompt").value == prompt, name


@pytest.mark.usefixtures("one_of_each")
def test_only_pages_about_this_kind_are_offered_to_open_a_model_on() -> None:
    offers = {
        "judge": ["Home", "Classify", "Attention", "Size and cost"],
        "pair": ["Home", "Translate", "Attention", "Size and cost"],
        "writer": ["Home", "Next token", "Generate", "Attention", "Size and cost"],
    }
    known = {page.title for page in PAGES.values()}
    for name, titles in offers.items():
        every = [link.proto for link in opened("pages/runs.py", model=name).main.get("page_link")]
        offered = [
            link.label for link in every if parse_qs(link.query_string).get("model") == [name]
        ]
        assert [title for title in offered if title in known] == titles


def test_at_a_step_a_classifier_is_said_to_be_right_and_others_to_be_perplexed() -> None:
    losses = [
        {"step": 0, "validation": 0.7, "accuracy": 0.5},
        {"step": 4, "validation": 0.35, "accuracy": 0.8},
    ]
    assert (
        scrubber.readout("4", Card.from_json({"losses": losses, "labels": ["a", "b"]}))
        == "Step 4: loss 0.35, 80.0 % right"
    )
    assert (
        scrubber.readout("3", Card.from_json({"losses": losses}))
        == "Step 3: loss ≈ 0.35, perplexity 1.42"
    )
    unmeasured = Card.from_json({"losses": [{"step": 4, "validation": 0.0}], "labels": ["a", "b"]})
    assert scrubber.readout("4", unmeasured).endswith("perplexity 1")


@pytest.mark.usefixtures("one_of_each")
def test_the_best_model_of_a_kind_is_the_one_named_for_it_if_it_is_of_that_kind(
    tiny_classifier: TinyModel, tiny_model: TinyModel
) -> None:
    assert kinds.best_model("classifier") == "judge"
    tiny_model("classifier")
    assert kinds.best_model("classifier") == "judge"
    tiny_classifier("classifier")
    assert kinds.best_model("classifier") == "classifier"
    assert kinds.models_of("encoder-decoder") == ["pair"]


def test_what_cannot_be_read_is_of_no_kind(home: Path, tiny_model: TinyModel) -> None:
    folder = tiny_model()
    assert kinds.kind_of(folder) == "decoder"
    (folder / "config.json").write_text("[")
    assert kinds.kind_of(folder) is None
    assert kinds.kind_of(home / "nowhere") is None


def test_of_an_unknown_model_nothing_is_read_where_the_app_was_started(
    tiny_model: TinyModel, tiny_pair: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model("writer")
    monkeypatch.setattr(checkpoints, "BUNDLED", home() / "none")
    expected = opened("app.py", model="nowhere").title[0].value
    elsewhere = tiny_pair()
    elsewhere.rename(home() / "elsewhere")
    monkeypatch.chdir(home() / "elsewhere")
    assert kinds.kind_of(None) is None
    assert opened("app.py", model="nowhere").title[0].value == expected


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize("length", [1, 7, 8, 9, 23, 24, 40])
def test_what_is_read_of_a_text_fits_in_the_context_and_is_never_empty(length: int) -> None:
    ids = [i % 5 for i in range(length)]
    assert reading.tokens_read(gptviz.load("writer"), ids) == ids[max(0, length - 8) :]
    assert reading.tokens_read(gptviz.load("judge"), ids) == ids[:8]
    pair = gptviz.load("pair")
    assert reading.tokens_read(pair, ids) == [*ids[:23], special_tokenizer(pair).end]


@pytest.mark.parametrize("chosen", [None, "addition", "shakespeare"])
def test_each_page_opens_on_its_own_model_until_one_is_chosen_and_then_on_that_one(
    chosen: str | None,
) -> None:
    own = {page.title: page.opens_on for page in PAGES.values() if page.opens_on}
    assert len(set(own.values())) > 1
    at = opened("pages/lens.py", **({} if chosen is None else {"model": chosen}))
    assert at.selectbox(key="model").value == (chosen or own["Logit lens"])
    menu = {
        link.proto.label: parse_qs(link.proto.query_string).get("model")
        for link in at.sidebar.get("page_link")
    }
    assert {title: menu[title] for title in own} == {
        title: [chosen or model] for title, model in own.items()
    }


def test_an_address_without_a_model_that_asks_for_something_is_about_the_usual_model_as_ever() -> (
    None
):
    assert opened("pages/lens.py", position="3").selectbox(key="model").value == "shakespeare"
