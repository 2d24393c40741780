"""The Translate page as a reader meets it, without a browser."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.figures.kit.format import percent
from gptviz.figures.reading import beams
from gptviz.generate import decoding
from gptviz.generate.decoding import decode_greedily, until_end
from gptviz.generate.sampling import Sampling
from gptviz.interp.trace import run
from gptviz.language_model import writing
from gptviz.language_model.core import decode_answer
from gptviz.model import Transformer
from gptviz.pretrained.sources.folder_tokens import FolderTokens
from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer, SymbolTokenizer
from gptviz.text.tokenizers.marian import MarianTokenizer
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer
from gptviz.ui.pages.translate import beam_search, translation
from gptviz.ui.pages.translate.translation import known_words, unknown_words
from gptviz.ui.records.translate import CROSS_ATTENTION, VIEWS
from gptviz.ui.shell.subject import ask
from gptviz.ui.shell.subject.models import model_key
from gptviz.ui.views import encoder_decoder
from gptviz.ui.widgets import escape_markdown, in_quotes
from tests.app.explorer import pattern, sent
from tests.app.opening import charts, opened, page_at, payload, ran, says, strip
from tests.drawn import numbers
from tests.text import marian_vocabulary
from tests.tiny import scrambled, tiny

pytestmark = pytest.mark.usefixtures("fresh_caches")

CONTEXT = 16
SOURCE = "may the 3rd"
TOKENIZER = SpecialTokensTokenizer(CharTokenizer("may the 3rd of june 1977-0456"))


def made(seed: int, end_bias: float) -> Transformer:
    """A small encoder–decoder, the likelier to end the larger `end_bias` is, that never writes the
    other special tokens.
    """
    sizes: dict[str, Any] = {
        "vocab_size": TOKENIZER.vocab_size,
        "context_length": CONTEXT,
        "padding": TOKENIZER.padding,
    }
    model = scrambled(
        tiny(**sizes, n_encoder_layer=2, unembed_bias=True, positions="sinusoidal"), seed
    )
    with torch.no_grad():
        model.head.unembed.bias[TOKENIZER.end] += end_bias
        model.head.unembed.bias[[TOKENIZER.start, TOKENIZER.padding]] -= 1e4
    return model


def answered(model: Transformer) -> list[int]:
    """Its answer to `SOURCE`, without the end."""
    source = torch.tensor([TOKENIZER.source_ids(SOURCE)])
    return until_end(
        decode_greedily(model, source, TOKENIZER.start, TOKENIZER.end)[0], TOKENIZER.end
    )[0]


def save(model: Transformer) -> list[int]:
    """Put the model into this test's home; its answer."""
    checkpoints.save("tiny", model, TOKENIZER, {})
    return answered(model)


@cache
def ending() -> Transformer:
    """A model whose answer ends after some tokens that are not all alike."""
    for seed in range(500):
        model = made(seed, 1.0)
        answer = answered(model)
        if 3 <= len(answer) < CONTEXT - 1 and len(set(answer)) > 1:
            return model
    raise AssertionError("no seed gives a model whose answer ends in the middle")


@pytest.fixture
def answer(home: Path) -> list[int]:
    """The answer of the model in this test's home, which ends."""
    return save(ending())


page = page_at("pages/translate.py", model="tiny", prompt=SOURCE)


def mean(at: AppTest, block: int = 1) -> np.ndarray[Any, Any]:
    """The mean of the heads of a block that the explorer was sent."""
    return np.mean([pattern(at, block, head) for head in range(sent(at)[0]["n_head"])], axis=0)


def run_code(at: AppTest) -> Any:
    """The reading that the code behind the explorer computes."""
    made = ran(sent(at)[0]["code"])
    return made["reading"]


def traced(written: list[int], source: str = SOURCE) -> Any:
    """A trace of the model when it has written these ids after the start mark."""
    lm = gptviz.load("tiny")
    return run(
        lm.model,
        torch.tensor([[TOKENIZER.start, *written]]),
        source=torch.tensor([TOKENIZER.source_ids(source)]),
    )


def test_the_page_opens_on_the_mean_of_what_the_last_blocks_heads_read_for_the_models_own_answer(
    answer: list[int],
) -> None:
    at = page()
    header, _ = sent(at)
    assert header["start"] == {"block": 1, "head": 0, "heads": "mean"}
    np.testing.assert_allclose(
        mean(at), traced(answer)["blocks.1.cross_attention.pattern"][0].mean(0), atol=1e-6
    )
    assert header["queries"] == [TOKENIZER.label(i) for i in (*answer, TOKENIZER.end)], (
        "a row is called by what is written there"
    )
    assert header["keys"] == [TOKENIZER.label(i) for i in TOKENIZER.source_ids(SOURCE)]
    place, read = divmod(int(mean(at).argmax()), mean(at).shape[1])
    assert (
        f"It answers {in_quotes(TOKENIZER.decode(answer))}. Before it writes "
        f"{in_quotes(header['queries'][place])} at position {place} it reads "
        f"{in_quotes(header['keys'][read])} most: {percent(mean(at).max())} of its last block"
        in says(at)
    )
    assert not at.warning
    assert not at.info


def test_the_self_attention_of_both_stacks_is_a_link_away(answer: list[int]) -> None:
    links = [str(link.proto) for link in page().get("page_link")]
    for stack in ("encoder", "decoder"):
        (link,) = (link for link in links if f"stack={stack}" in link)
        assert "attention" in link
        assert "model=tiny" in link


def spread(rows: torch.Tensor) -> float:
    """Among how many tokens rows [query, key] are shared out."""
    return float(torch.special.entr(rows).sum(-1).mean(-1).exp())


def test_what_the_mean_hides_is_measured_on_this_answer(answer: list[int]) -> None:
    said = sent(page())[0]["hidden"]
    assert len(said) == 2
    for block, sentence in enumerate(said):
        # [n_head, T, S]
        heads = traced(answer)[f"blocks.{block}.cross_attention.pattern"][0].double()
        each = [spread(head) for head in heads]
        assert f"over {spread(heads.mean(0)):.1f} tokens" in sentence
        assert f"head {int(np.argmin(each))} over {min(each):.1f}" in sentence


def test_every_position_of_the_output_can_be_asked_for_what_may_stand_there(
    answer: list[int],
) -> None:
    logits = traced(answer)["logits"][0].double()
    at = page(view="Next token")
    first, arrays = payload(at, "ledger")
    assert json.loads(arrays["labels"].tobytes()) == TOKENIZER.labels()
    for place in range(len(answer) + 1):
        at.select_slider(key="position").set_value(place).run()
        header, arrays = payload(at, "ledger")
        np.testing.assert_allclose(arrays["logits"], logits[place], atol=1e-5)
        assert set(arrays) - {"labels"} == {"logits"}, "nothing is drawn here"
        assert header["true"] == [*answer, TOKENIZER.end][place] == int(logits[place].argmax()), (
            "greedily, the likeliest is written"
        )
        assert header["vocabulary"] == first["vocabulary"], "whose labels the browser has"
        assert not header["takes"]
        assert strip(at)["settings"]["selected"] == place


def test_the_chips_of_the_output_have_the_probability_of_what_is_written(answer: list[int]) -> None:
    logits = traced(answer)["logits"][0].double()
    written = [*answer, TOKENIZER.end]
    for chip, token, row in zip(
        strip(page(view="Next token"))["tokens"], written, logits, strict=True
    ):
        label, probability, likely, _, mark, *_ = chip
        assert (label, mark) == (TOKENIZER.label(token), 0)
        assert probability == pytest.approx(float(row.softmax(-1)[token]), rel=1e-3)
        assert likely[0] == [label, probability]


def test_a_typed_output_is_read_as_it_stands_and_the_model_says_what_it_would_have_written(
    answer: list[int],
) -> None:
    typed = "june 3"
    forced = TOKENIZER.encode(typed).ids
    logits = traced(forced)["logits"][0]
    at = page(output=typed, view="Next token")
    chips = strip(at)["tokens"]
    assert [chip[0] for chip in chips[:-1]] == [TOKENIZER.label(i) for i in forced]
    assert chips[-1][0] == TOKENIZER.label(int(logits[-1].argmax())), (
        "after the last, the model's own guess"
    )
    assert [bool(chip[4]) for chip in chips[:-1]] == [
        int(row.argmax()) != token for row, token in zip(logits, forced, strict=False)
    ]
    assert any(chip[4] for chip in chips)
    at.segmented_control(key="view").set_value("Cross-attention").run()
    expected = traced(forced)["blocks.1.cross_attention.pattern"][0].mean(0)
    np.testing.assert_allclose(mean(at), expected, atol=1e-6)
    assert any(
        "By itself the model writes" in caption.value
        and escape_markdown(TOKENIZER.decode(answer)) in caption.value
        for caption in at.caption
    )
    at.text_input(key="output").set_value("").run()
    np.testing.assert_allclose(
        mean(at), traced(answer)["blocks.1.cross_attention.pattern"][0].mean(0), atol=1e-6
    )


def test_a_beam_of_one_is_the_greedy_answer_and_a_wider_one_lists_its_answers_best_first(
    answer: list[int],
) -> None:
    at = page(view="Beam search", width="1")
    table = at.dataframe[0].value
    assert table["answer"].tolist() == [TOKENIZER.decode(answer)]
    total = sum(
        float(row.log_softmax(-1)[token])
        for row, token in zip(traced(answer)["logits"][0], [*answer, TOKENIZER.end], strict=True)
    )
    assert table["sum (nats)"].tolist() == pytest.approx([total], abs=1e-4)
    at.select_slider(key="width").set_value(4)
    at.slider(key="penalty").set_value(1.0).run()
    table = at.dataframe[0].value
    assert len(table) == 4
    assert table["probability"].tolist() == [
        percent(math.exp(total)) for total in table["sum (nats)"]
    ]
    ended = table[table["ends"]]
    assert ended["score"].tolist() == sorted(ended["score"], reverse=True)
    nodes = gptviz.load("tiny").beams(SOURCE, 4).nodes
    depths = range(max(node.depth for node in nodes) + 1)
    kept, cut = (
        [sum(node.depth == depth and node.kept is fate for node in nodes) for depth in depths]
        for fate in (True, False)
    )
    assert len(numbers(charts(at)[0]["data"][3]["x"])) == sum(kept) + sum(
        min(beams.MOST_CUT, count) for count in cut
    )


def test_the_sums_of_a_search_are_by_the_output_up_to_there(answer: list[int]) -> None:
    lm = gptviz.load("tiny")
    found = lm.beams(SOURCE, 2)
    numbers = writing.beam_sums(lm, found)
    at = {
        name: row
        for name, row in zip(numbers.axes[0].labels, numbers.values, strict=True)
        if "(cut)" not in name
    }
    assert len(numbers.values) == len(found.nodes) - 1
    assert len(at) == sum(node.kept for node in found.nodes) - 1
    for one in found.finished:
        assert at[f"{TOKENIZER.decode(one.ids)}{'⟨end⟩' if one.ended else ''}"][1] == pytest.approx(
            one.total
        )
    path = found.path(found.best.node)[1:]
    assert sum(
        at[TOKENIZER.decode([found.nodes[i].token for i in path[: n + 1]])][0]
        for n in range(len(path) - 1)
    ) == pytest.approx(found.best.total - found.nodes[found.best.node].log_probability)


def test_an_output_that_never_ends_is_stopped_where_the_positions_end_and_says_so(
    home: Path,
) -> None:
    assert len(save(made(0, -1e4))) == CONTEXT
    for view in VIEWS:
        at = page(view=view)
        assert any("does not end" in info.value and str(CONTEXT) in info.value for info in at.info)
    assert pattern(page(), 0, 0).shape == (CONTEXT, len(SOURCE) + 1)
    assert not page(view="Beam search").dataframe[0].value["ends"].any()


def test_an_output_that_never_ends_is_stopped_where_the_page_ends_in_a_long_context(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder_decoder, "LONGEST_ANSWER", 6)
    answer = save(made(0, -1e4))
    assert len(answer) == CONTEXT
    at = page(view="Next token")
    assert any(
        "stopped after 6 tokens, as many as are shown here" in info.value for info in at.info
    )
    assert at.select_slider(key="position").options == [str(place) for place in range(6)]
    assert [chip[0] for chip in strip(at)["tokens"]] == [TOKENIZER.label(i) for i in answer[:6]]
    at = page(view="Beam search", width="2")
    assert any("stopped after 6 tokens" in caption.value for caption in at.caption)
    written = at.dataframe[0].value["answer"].tolist()
    assert all(len(TOKENIZER.encode(text).ids) <= 6 for text in written)
    made_by_code = ran(at.code[0].value)
    assert [TOKENIZER.decode(one.ids) for one in made_by_code["result"].finished] == written
    at = page()
    np.testing.assert_allclose(run_code(at).pattern(1, 2), pattern(at, 1, 2), atol=1e-6)


def test_a_typed_output_is_cut_where_the_page_ends_in_a_long_context(
    answer: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder_decoder, "LONGEST_ANSWER", 6)
    at = page(output="june june")
    assert any("9 tokens: the first 5 are shown" in info.value for info in at.info)
    expected = traced(TOKENIZER.encode("june ").ids)["blocks.1.cross_attention.pattern"][0].mean(0)
    np.testing.assert_allclose(mean(at), expected, atol=1e-6)
    np.testing.assert_allclose(run_code(at).pattern(1, None), expected, atol=1e-6)


def test_an_answer_in_a_context_of_a_thousand_has_some_hundred_tokens() -> None:
    assert encoder_decoder.longest_answer(tiny(context_length=1_000)) < 200
    assert encoder_decoder.longest_answer(tiny(context_length=10)) == 10


def test_an_answer_is_decoded_once_for_all_pages(
    answer: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoders = []

    class Counted(decoding.Decoder):
        def __init__(self, *given: Any) -> None:
            decoders.append(given)
            super().__init__(*given)

    monkeypatch.setattr(decoding, "Decoder", Counted)
    page()
    assert encoder_decoder.decoder_ids(
        model_key("tiny", "cpu"), tuple(TOKENIZER.source_ids(SOURCE))
    ) == (
        TOKENIZER.start,
        *answer,
    )
    opened("pages/attention.py", model="tiny", prompt=SOURCE, stack="decoder")
    assert len(decoders) == 1


def test_of_patterns_and_trees_only_a_few_are_kept(answer: list[int]) -> None:
    key = model_key("tiny", "cpu")
    source = tuple(TOKENIZER.source_ids(SOURCE))

    def kept(made: list[Any], make: Any) -> int:
        return sum(make(place) is one for place, one in reversed(list(enumerate(made))))

    def stacks(place: int) -> Any:
        return translation.output_of(key, source, (TOKENIZER.start, place))

    def tree(place: int) -> Any:
        return beam_search._drawn_nodes(
            ask(key, writing.beams, "Searching", text=SOURCE, width=1, length_penalty=place / 10)
        )

    assert kept([stacks(place) for place in range(4)], stacks) == 2
    assert kept([tree(place) for place in range(8)], tree) <= 4


def test_tokens_with_spaces_between_them_have_gaps_between_their_chips_and_letters_have_none(
    answer: list[int],
) -> None:
    assert strip(page(view="Next token"))["settings"]["spaced"] is False
    marked = SpecialTokensTokenizer(SymbolTokenizer(["one", "two", "three"]))
    sizes: dict[str, Any] = {
        "vocab_size": marked.vocab_size,
        "padding": marked.padding,
        "n_encoder_layer": 1,
    }
    checkpoints.save("tiny", scrambled(tiny(**sizes)), marked, {}, replace=True)
    assert (
        strip(page(prompt="one two", output="two three", view="Next token"))["settings"]["spaced"]
        is True
    )


def test_an_output_that_ends_at_once_is_a_page_too(home: Path) -> None:
    assert save(made(0, 1e4)) == []
    for view in VIEWS:
        at = page(view=view)
        assert not at.info
        for title in ("The sharpest head", "A wide beam"):
            at.button(key=f"try {title}").click().run()
    assert pattern(page(), 0, 0).shape == (1, len(SOURCE) + 1)
    assert "It answers nothing: its output ends at once." in says(page())


def test_a_source_or_output_longer_than_the_positions_is_named_and_its_beginning_shown(
    answer: list[int],
) -> None:
    for axis, longer in enumerate(({"output": "june" * 10}, {"prompt": "may " * 10})):
        at = page(**longer)
        assert any("40 tokens" in info.value and str(CONTEXT - 1) in info.value for info in at.info)
        assert pattern(at, 0, 0).shape[axis] == CONTEXT


def test_characters_the_model_lacks_are_named_in_source_and_output(answer: list[int]) -> None:
    at = page(prompt="may 🙂", output="Я")
    said = [warning.value for warning in at.warning]
    assert any("🙂" in line and "Output" not in line for line in said)
    assert any("Я" in line and line.startswith("Output") for line in said)


def test_a_model_without_marks_says_so(home: Path) -> None:
    checkpoints.save(
        "plain", scrambled(tiny(vocab_size=5, n_encoder_layer=1)), CharTokenizer("abcde"), {}
    )
    at = page(model="plain", prompt="abc")
    assert any("no start and end tokens" in error.value for error in at.error)


def test_what_one_may_try_shows_what_it_says(answer: list[int]) -> None:
    at = page()
    each = [
        torch.special.entr(traced(answer)[f"blocks.{b}.cross_attention.pattern"][0])
        .sum(-1)
        .mean(-1)
        for b in range(2)
    ]
    block, head = divmod(int(torch.cat(each).argmin()), 3)
    at.button(key="try The sharpest head").click().run()
    asked = sent(at)[0]["asked"]
    assert (asked["heads"], asked["block"], asked["head"]) == ("one", block, head)
    at.button(key="try One wrong token").click().run()
    chips = strip(at)["tokens"]
    place = strip(at)["settings"]["selected"]
    assert place == len(answer) // 2
    assert [chip[0] for chip in chips[:place]] == [TOKENIZER.label(i) for i in answer[:place]]
    assert chips[place][4], "another is likelier there"
    at.button(key="try A wide beam").click().run()
    assert at.select_slider(key="width").value == 5


@pytest.mark.parametrize("query", [{}, {"output": "june 3"}, {"prompt": "may " * 10}])
def test_the_code_behind_the_attention_makes_it(answer: list[int], query: dict[str, str]) -> None:
    at = page(**query)
    found = run_code(at)
    for block in range(2):
        np.testing.assert_allclose(found.pattern(block, 1), pattern(at, block, 1), atol=1e-6)
        np.testing.assert_allclose(found.pattern(block, None), mean(at, block), atol=1e-6)


def test_the_code_behind_the_ledger_and_that_of_a_tree_whose_source_was_cut_makes_them(
    answer: list[int],
) -> None:
    made: dict[str, Any] = {}
    header, arrays = payload(page(view="Next token", position="1"), "ledger")
    exec("".join(header["code"]), made)
    logits = torch.from_numpy(arrays["logits"].copy()).double()
    np.testing.assert_allclose(made["prediction"].before, logits.softmax(-1), rtol=1e-6)
    at = page(view="Beam search", prompt="may " * 10)
    exec(at.code[0].value, made)
    cut = torch.tensor([*TOKENIZER.source_ids("may " * 10)[: CONTEXT - 1], TOKENIZER.end])
    search = decoding.beam_search(gptviz.load("tiny").model, cut, TOKENIZER.start, TOKENIZER.end, 3)
    assert [one.ids for one in made["result"].finished] == [one.ids for one in search.finished]
    assert [TOKENIZER.decode(one.ids) for one in search.finished] == at.dataframe[0].value[
        "answer"
    ].tolist()


def test_a_drawn_output_is_that_of_the_library_and_a_search_draws_nothing(
    answer: list[int],
) -> None:
    lm = gptviz.load("tiny")
    at = page(view="Next token")
    at.toggle(key="drawn").set_value(True).run()
    at.slider(key="temperature").set_value(1.8).run()
    at.select_slider(key="seed").set_value(3).run()
    drawn, ended = decode_answer(lm, SOURCE, sampling=Sampling(temperature=1.8, seed=3))
    assert drawn != answer
    chips = [chip[0] for chip in strip(at)["tokens"]]
    assert chips[: len(drawn)] == [TOKENIZER.label(i) for i in drawn]
    assert len(chips) == len(drawn) + ended
    at.segmented_control(key="view").set_value("Beam search").run()
    assert not [toggle for toggle in at.toggle if toggle.key == "drawn"]


def test_the_probability_of_the_output_is_the_product_over_its_tokens(answer: list[int]) -> None:
    likely = torch.softmax(traced(answer)["logits"][0], -1)
    each = [likely[place, token].item() for place, token in enumerate([*answer, TOKENIZER.end])][
        : len(likely)
    ]
    at = page()
    (said,) = (
        caption.value.replace("\\", "")
        for caption in at.caption
        if "the whole output" in caption.value
    )
    assert percent(math.prod(each)) in said
    assert f"at position {each.index(min(each))}: {percent(min(each))}" in said


def test_a_word_that_no_source_had_is_named_and_one_that_some_had_is_not() -> None:
    known = known_words('{"kind": "pair_task", "pair_task": "dates"}')
    assert unknown_words("Yesterday, or the day after", known) == [
        "yesterday",
        "or",
        "day",
        "after",
    ]
    assert unknown_words("july twenty-sixth, twelve ninety-five", known) == []
    assert unknown_words("12/03/1977", known) == []
    assert known_words('{"kind": "pair_task", "pair_task": "mirror"}') == frozenset(), (
        "each text has letters of its own"
    )
    assert unknown_words("anything", frozenset()) == []
    assert known_words("{}") == frozenset()


def test_the_page_says_what_the_model_cannot_know() -> None:
    at = opened("pages/translate.py", model="seq2seq", prompt="yesterday")
    (said,) = (warning.value for warning in at.warning)
    assert "“yesterday”" in said
    assert not opened("pages/translate.py", model="seq2seq").warning


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_opens_for_a_model_whose_answers_begin_with_padding(
    home: Path, tmp_path: Path, view: str
) -> None:
    marian_vocabulary.write(tmp_path)
    tokenizer = FolderTokens(tmp_path).tokenizer()
    assert isinstance(tokenizer, MarianTokenizer)
    sizes: dict[str, Any] = {
        "vocab_size": tokenizer.vocab_size,
        "context_length": CONTEXT,
        "padding": tokenizer.padding,
    }
    axes: dict[str, Any] = {
        "positions": "sines-first",
        "tied": True,
        "unembed_bias": True,
        "embed_scale": 3.5,
    }
    model = scrambled(
        tiny(**sizes, **axes, n_encoder_layer=2, residual="post-norm", final_norm=False), 3
    )
    checkpoints.save("tiny", model, tokenizer, {"languages": ["en", "de"]})
    at = page(view=view, prompt="the small frog")
    assert any("from “en” to “de”" in caption.value for caption in at.caption)
    source = torch.tensor([tokenizer.source_ids("the small frog")])
    own, _ = until_end(
        decode_greedily(model, source, tokenizer.start, tokenizer.end)[0], tokenizer.end
    )
    assert tokenizer.padding not in own
    assert tokenizer.decode(own)[:80] in at.text_input(key="output").placeholder
    at.text_input(key="output").set_value("ein Frosch").run()
    if view == CROSS_ATTENTION:
        typed = tokenizer.encode_answer("ein Frosch").ids
        assert typed != tokenizer.encode("ein Frosch").ids
        assert sent(at)[0]["queries"][: len(typed)] == [tokenizer.label(place) for place in typed]
        assert sent(at)[0]["keys"] == [tokenizer.label(place) for place in source[0]]
        expected = run(model, torch.tensor([[tokenizer.start, *typed]]), source=source)[
            "blocks.1.cross_attention.pattern"
        ][0]
        np.testing.assert_allclose(pattern(at, 1, 2), expected[2], atol=1e-5)
