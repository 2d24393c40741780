"""The page Tokens: what it shows is what the tokenizers say, its code computes it, and its link
trains with what was learned.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.text import BPETokenizer, passages
from gptviz.text.datasets.languages import examples
from gptviz.text.tokenizers.learning import learn_merges
from gptviz.ui.pages.tokens import compare, cut
from gptviz.ui.pages.tokens.compare import IN_A_FOLDER
from gptviz.ui.pages.tokens.learn import LEARNED
from gptviz.ui.records.tokens import COMPARE, LEARN
from gptviz.ui.views.texts import PASSAGES
from tests.app.opening import chart, opened, page_at, payload, ran, says, strip
from tests.app.test_chat_turn import CHATML, TURN
from tests.tiny import TinyModel

PROMPT = "the king and the unicorn"
page = page_at("pages/tokens.py", model="bpe", prompt=PROMPT)


def run_code(at: AppTest) -> dict[str, Any]:
    """The names in the code of the page with their values; `last` is that of its last line."""
    *lines, last = at.code[-1].value.splitlines()
    return ran("\n".join([*lines, f"last = {last}"]))


def test_every_token_has_its_number_and_its_kind() -> None:
    at = page()
    lm = gptviz.load("bpe")
    ids = lm.tokenizer.encode(PROMPT).ids
    tokens = strip(at)["tokens"]
    assert [token[0] for token in tokens] == [lm.tokenizer.label(i) for i in ids]
    assert [token[7] for token in tokens] == [str(i) for i in ids]
    assert [token[6] for token in tokens] == [piece.kind for piece in lm.pieces(PROMPT)]
    assert f"**{len(ids)} tokens** for {len(PROMPT)} characters" in says(at)
    found = run_code(at)
    assert [piece.id for piece in found["pieces"]] == ids
    assert found["last"].after(1_000) == tuple(ids)


def test_the_slider_builds_the_word_merge_by_merge() -> None:
    lm = gptviz.load("bpe")
    merging = lm.tokenizer.merging(lm.tokenizer.encode(" unicorn").ids)
    assert merging is not None
    at = page(word="1")
    assert at.selectbox(key="word chosen").value == 1
    assert "“␣king”" in says(at)
    at = page()
    assert at.selectbox(key="word chosen").value == 4  # the unicorn, which has most tokens
    for made in (0, 3):
        at.select_slider(key="merges").set_value(made).run()
        shown = chart(at, "merge tree")["layout"]["annotations"]
        assert len(shown) == len(merging.symbols) + made
        assert " · ".join(map(lm.tokenizer.label, merging.after(made))) in says(at)
    at.button(key="tree play").click().run()
    assert at.button(key="tree pause")


def test_a_tokenizer_without_merges_says_what_it_does(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="abc €")
    at = opened("pages/tokens.py", model="mine", prompt="a cab d")
    assert "one token per character" in says(at)
    assert not at.get("plotly_chart")
    assert "unknown" in {token[6] for token in strip(at)["tokens"]}
    assert "Not in the vocabulary: d" in says(at)


def test_two_tokenizers_cost_what_they_need_for_the_examples() -> None:
    at = page(view=COMPARE, other="shakespeare")
    own = gptviz.load("bpe").tokenizer
    count = {name: len(own.encode(text).ids) for name, text in examples().items()}
    bars = chart(at, "languages")["data"]
    assert bars[0]["text"] == [f"{count[name] / count['English']:.1f}×" for name in [*count][:8]]
    assert bars[1]["text"][0] == "1.0×"
    assert "shakespeare cannot read Russian, Arabic, Hindi, Chinese, Japanese" in says(at)
    rows = at.dataframe[0].value
    assert rows[rows.tokenizer == "bpe"].tokens.tolist() == [*count.values()]
    assert [len(chips(at, place)) for place in (0, 1)] == [len(own.encode(PROMPT).ids), len(PROMPT)]


def chips(at: AppTest, place: int) -> list[Any]:
    """The tokens of one of the two strips."""
    return list(json.loads(payload(at, f"tokens {place}")[1]["tokens"].tobytes()))


def test_learning_cuts_the_prompt_after_any_number_of_merges() -> None:
    found = learn_merges(passages(), 200)
    at = page(view=LEARN, learned_from=PASSAGES, learn="200")
    for made in (200, 20):
        at.select_slider(key="made").set_value(made).run()
        assert [token[7] for token in strip(at)["tokens"]] == [
            str(i) for i in found.tokenizer_after(made).encode(PROMPT).ids
        ]
        assert f"is now {found.tokens[made]:,} tokens long" in says(at)
    left, right, times = found.pairs(20)[0]
    assert f"Next: “{left}” and “{right}”, {times} times side by side" in says(at)
    assert run_code(at)["found"].merges == found.merges


@pytest.mark.parametrize("before", [False, True])
def test_the_link_trains_with_the_tokens_that_were_learned(before: bool) -> None:
    at = page(view=LEARN, learned_from=PASSAGES, learn="200")
    (link,) = (
        one.proto
        for one in at.main.get("page_link")
        if "Train a model with these" in one.proto.label
    )
    query = {key: values[0] for key, values in parse_qs(link.query_string).items()}
    assert (query["tokens"], query["run_vocabulary"]) == ("bpe", "456")
    train = opened("pages/train.py", **({"plan": "reversal"} if before else query))
    if before:  # another experiment was looked at there first
        train.switch_page("pages/tokens.py").run()
        train.switch_page("pages/train.py")
        train.query_params.clear()
        for key, value in query.items():
            train.query_params[key] = value
        train.run()
    assert train.number_input(key="run_vocabulary").value == 456
    assert train.text_area(key="pasted").value == passages()
    assert train.selectbox(key="tokens").value == "bpe"


def test_a_text_of_ones_own_may_be_too_short() -> None:
    at = page(view=LEARN, learned_from="A text of yours")
    assert "There is no text to learn from" in says(at)
    at.text_area(key="pasted").set_value("a").run()
    assert "no two neighbours that could be merged" in says(at)
    assert not at.exception


# In a text of which the first tokens alone are shown, too.
@pytest.mark.parametrize("most", [2_000, 20])
def test_the_tokens_of_a_chat_template_and_its_special_ones_have_looks_of_their_own(
    chats: Any, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    chats(CHATML)
    monkeypatch.setattr(cut, "MOST_SHOWN", most)
    at = opened("pages/tokens.py", model="chats", prompt=TURN)
    shown = [(token[0], token[6]) for token in strip(at)["tokens"]]
    message = [*"How␣now?"]
    plain = [*"user⏎", *message, "<|im_end|>", *"⏎", "<|im_start|>", *"assistant⏎"]
    assert [label for label, _ in shown] == ["<|im_start|>", *plain][:most]
    kinds = [
        "special",
        *["chat template"] * 5,
        *[""] * len(message),
        "special",
        "chat template",
        "special",
    ]
    kinds += ["chat template"] * 10
    for (label, kind), wanted in zip(shown, kinds, strict=False):
        assert kind == wanted if wanted else kind in ("part of a word", "sign"), label
    looks = strip(at)["settings"]["kinds"]
    assert (
        len({tuple(looks[kind]) for kind in ("special", "chat template", "part of a word", "sign")})
        == 4
    )
    other = opened("pages/tokens.py", model="chats", prompt="How now?")
    assert not {"special", "chat template"} & {token[6] for token in strip(other)["tokens"]}, (
        "no turn, no template"
    )


def bare(folder: Path, text: str, size: int) -> BPETokenizer:
    """Writes a tokenizer without a model into this folder."""
    tokenizer = BPETokenizer.learn(text, size)
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text(tokenizer.to_json())
    return tokenizer


def test_a_tokenizer_of_the_hub_without_a_model_is_a_choice(user: Path) -> None:
    cached = user / "hub" / "models--someone--words"
    tokenizer = bare(cached / "snapshots" / "abc", "the king and the unicorn", 260)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    compare.places.clear()
    at = page(view=COMPARE, other="someone/words (Hugging Face)")
    assert "someone/words (Hugging Face)" in at.selectbox(key="other").options
    assert [token[7] for token in chips(at, 1)] == [str(i) for i in tokenizer.encode(PROMPT).ids]
    assert run_code(at)["last"][1]["English"].tokens == len(
        tokenizer.encode(examples()["English"]).ids
    )


def test_a_tokenizer_in_a_folder_that_is_named_is_a_choice(user: Path) -> None:
    tokenizer = bare(user / "mine" / "first", "the king and the unicorn", 260)
    bare(user / "mine" / "second", "abcabc", 257)
    at = page(view=COMPARE, other=IN_A_FOLDER)
    assert "Type the path of a folder" in says(at)
    at.text_input(key="folder").set_value(str(user / "mine")).run()
    assert at.selectbox(key="inside").options == ["first", "second"]
    assert [token[7] for token in chips(at, 1)] == [str(i) for i in tokenizer.encode(PROMPT).ids]
    at.selectbox(key="inside").set_value("second").run()
    assert run_code(at)["last"][1]["English"].tokens == len(examples()["English"].encode()), (
        "no pair of this text was learned"
    )
    at.text_input(key="folder").set_value(str(user / "none")).run()
    assert "There is no folder" in says(at)
    (user / "empty").mkdir()
    at.text_input(key="folder").set_value(str(user / "empty")).run()
    assert "No tokenizer was found" in says(at)


def test_a_damaged_tokenizer_is_one_line_that_names_it(user: Path) -> None:
    bare(user / "mine", "abcabc", 257)
    (user / "mine" / "tokenizer.json").write_text("{}")
    at = page(view=COMPARE, other=IN_A_FOLDER, folder=str(user / "mine"))
    (error,) = at.error
    assert "tokenizer\\.json is damaged" in error.value
    assert "Choose another one" in error.value


def test_readers_of_a_server_that_only_shows_models_do_not_learn_what_is_on_it(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTVIZ_READ_ONLY", "1")
    compare.places.clear()
    at = page(view=COMPARE)
    assert IN_A_FOLDER not in at.selectbox(key="other").options
    assert not [name for name in at.selectbox(key="other").options if "Hugging Face" in name]


def test_a_tokenizer_that_is_learned_here_stands_beside_that_of_the_model() -> None:
    found = learn_merges(passages(), 200)
    at = page(view=LEARN, learned_from=PASSAGES, learn="200")
    (link,) = (
        one.proto for one in at.main.get("page_link") if "Beside the tokenizer" in one.proto.label
    )
    query = {key: values[0] for key, values in parse_qs(link.query_string).items()}
    beside = opened("pages/tokens.py", **query)
    assert beside.selectbox(key="other").value == LEARNED
    assert [token[7] for token in chips(beside, 1)] == [
        str(i) for i in found.tokenizer.encode(PROMPT).ids
    ]
    assert "200 merges learned from passages of books" in says(beside)
    assert run_code(beside)["last"][1]["English"].tokens == len(
        found.tokenizer.encode(examples()["English"]).ids
    )
