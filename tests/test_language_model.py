"""The library's front door: load a model by name, from text to text, and to every tensor
between.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import gptviz
from gptviz.generate.sampling import Sampling
from gptviz.interp.changing.attribution_patching import preview
from gptviz.interp.changing.patching import PromptPair, patch
from gptviz.interp.reading import fitted_lens
from gptviz.interp.units.head_scores import Stack
from gptviz.language_model.core import decode_answer, end_tokens, special_tokenizer
from gptviz.language_model.data import counted_rows, rows_to_fit
from gptviz.language_model.steering import count_turned
from gptviz.model import change_config, parameter_count
from gptviz.runs import checkpoints
from gptviz.runs.checkpoints import CheckpointError
from gptviz.text import CharTokenizer, SpecialTokensTokenizer, WordTokenizer
from tests.tiny import CONTEXT, TinyModel, scrambled, tiny


def test_a_model_opens_by_name_or_by_folder(tiny_model: TinyModel) -> None:
    folder = tiny_model("mine", card={"corpus": "pangram"})
    for lm in (gptviz.load("mine"), gptviz.load(folder, "cpu")):
        assert isinstance(lm, gptviz.LanguageModel)
        assert (lm.name, lm.card.corpus, lm.device.type) == ("mine", "pangram", "cpu")
        assert not lm.model.training


def test_a_model_in_this_folder_is_called_as_the_folder_is(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_model("mine"))
    assert gptviz.load(Path()).name == "mine"


def test_a_model_opens_as_it_was_after_a_step_whose_snapshot_was_kept(
    tiny_model: TinyModel,
) -> None:
    folder = tiny_model("mine")
    earlier = scrambled(gptviz.load("mine").model.config, seed=5)
    checkpoints.write_weights(checkpoints.snapshot_path(folder, 20), earlier)
    then = gptviz.load("mine", step=20)
    now = gptviz.load("mine")
    assert (then.step, now.step) == (20, None)
    assert torch.equal(then.model.embed.weight, earlier.embed.weight)
    assert not torch.equal(now.model.embed.weight, earlier.embed.weight)
    with pytest.raises(CheckpointError, match="mine has no snapshot of step 21: there are 20"):
        gptviz.load("mine", step=21)


def test_a_model_or_device_that_is_not_there_is_an_error_that_says_so(
    tiny_model: TinyModel,
) -> None:
    folder = tiny_model("mine")
    with pytest.raises(
        CheckpointError, match=r"no model named '\.\./checkpoints/mine'; there are .*mine"
    ):
        gptviz.load("../checkpoints/mine")
    with pytest.raises(
        CheckpointError,
        match=r"A file or folder is opened with load\(pathlib.Path\('/no/model'\)\)",
    ):
        gptviz.load("/no/model")
    with pytest.raises(CheckpointError, match="no file and no folder at .*elsewhere"):
        gptviz.load(folder.with_name("elsewhere"))
    (emptied := folder.with_name("emptied")).mkdir()
    with pytest.raises(CheckpointError, match="the model emptied lacks config.json"):
        gptviz.load(emptied)
    with pytest.raises(TypeError, match="None names no model"):
        gptviz.load(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no device 'abacus'"):
        gptviz.load("mine", "abacus")


def test_what_is_no_text_and_what_is_misspelt_is_named_with_what_to_write_instead(
    tiny_model: TinyModel,
) -> None:
    lm = gptviz.load(tiny_model("shakespeare-2"))
    wrong: dict[str, Callable[[], object]] = {
        "did you mean 'shakespeare-2'": lambda: gptviz.load("shakespere-2x/."),
        "prompt is 5; it must be a text": lambda: lm.generate(5),  # type: ignore[arg-type]
        "'temprature' is no setting .*: did you mean 'temperature'": lambda: lm.generate(
            "the fox", temprature=1
        ),
        "top is 0": lambda: lm.lens("the fox", top=0),
        "blocks.9.mlp: there is no block 9": lambda: lm.activity("blocks.9.mlp", "the fox"),
        "did you mean 'blocks.1.mlp.out'": lambda: lm.trace(
            "the fox", edits={"blocks.1.mpl.out": torch.zeros_like}
        ),
        "did you mean 'blocks.1.attention.pattern'": lambda: lm.trace("the fox")[
            "blocks.1.attention.patern"
        ],
        "no positions called 'rotray': a kind is one of .*rotary": lambda: lm.positions("rotray"),
        "block is 9; it must be a whole number from 0 to 1": lambda: lm.positions(block=9),
        "5 cannot be shown": lambda: gptviz.show(5),  # type: ignore[arg-type]
        "no page 'atention': did you mean 'attention'": lambda: gptviz.show(lm, page="atention"),
    }
    for said, asked in wrong.items():
        with pytest.raises((CheckpointError, TypeError, ValueError, KeyError), match=said):
            asked()


def test_an_editor_is_offered_all_that_the_package_gives() -> None:
    assert set(gptviz.__all__) <= set(dir(gptviz))


@pytest.mark.parametrize("slide", [1, 4])
def test_the_text_generated_is_that_of_the_steps_without_the_prompt(
    tiny_model: TinyModel, slide: int
) -> None:
    lm = gptviz.load(tiny_model())
    text = lm.generate("the fox", 30, temperature=0.9, top_k=5, seed=2, slide=slide)
    steps = lm.generation("the fox", Sampling(temperature=0.9, top_k=5, seed=2), slide=slide)
    assert text == "".join(lm.tokenizer.piece(int(step.tokens)) for step in islice(steps, 30))
    assert len(text) == 30
    assert text == lm.generate("the fox", 30, temperature=0.9, top_k=5, seed=2, slide=slide)
    assert text != lm.generate("the fox", 30, temperature=0.9, top_k=5, seed=3, slide=slide)
    assert text != lm.generate("the fox", 30, temperature=0.9, top_k=5, seed=2, slide=5 - slide)
    assert lm.generate("the fox", 0) == ""


def test_a_text_stops_before_a_token_that_ends_it_unless_it_is_to_go_on(
    tiny_model: TinyModel,
) -> None:
    whole = gptviz.load(tiny_model()).generate("the fox", 30, seed=2)
    end = gptviz.load("tiny").tokenizer.id_of(whole[9])
    lm = gptviz.load(tiny_model("ends", card={"end_tokens": [end, 10**6, "x"]}))
    assert end_tokens(lm) == {end}
    assert lm.generate("the fox", 30, seed=2) == whole[: whole.index(whole[9])]
    assert lm.generate("the fox", 30, go_on=True, seed=2) == whole


@pytest.mark.parametrize("name", ["addition", "reversal", "induction"])
def test_a_model_of_a_task_writes_no_more_than_completes_a_sequence_unless_it_is_to_go_on(
    name: str,
) -> None:
    lm = gptviz.load(name)
    assert lm.task is not None
    prompt, _ = lm.task.example_prompts(1)[0]
    prompt = lm.tokenizer.decode(lm.encode(prompt)[: lm.task.length // 2].tolist())
    given = len(lm.encode(prompt))
    assert given + len(lm.encode(lm.generate(prompt, temperature=0))) == lm.task.length
    whole = lm.generate(prompt, 100, go_on=True, temperature=0)
    assert len(lm.encode(whole)) == 100
    assert lm.generate(whole, temperature=0) == ""


def test_a_trace_reads_the_end_of_a_prompt_longer_than_the_context(tiny_model: TinyModel) -> None:
    lm = gptviz.load(tiny_model())
    prompt = "the quick brown fox"
    trace = lm.trace(prompt)
    assert lm.tokenizer.decode(trace.ids[0].numpy()) == prompt[-CONTEXT:]
    with torch.inference_mode():
        assert torch.equal(trace["logits"], lm.model(lm.encode(prompt)[None, -CONTEXT:]))
    torch.testing.assert_close(lm.generation(prompt).logits, trace["logits"][:, -1])
    assert list(lm.trace("fox", ["*.pattern"])) == [
        "blocks.0.attention.pattern",
        "blocks.1.attention.pattern",
    ]
    silenced = lm.trace("fox", edits={"blocks.0.attention.out": torch.zeros_like})
    assert (silenced["blocks.0.attention.out"] == 0).all()


@pytest.mark.parametrize("use", ["encode", "trace", "generate", "generation"])
def test_an_empty_prompt_is_an_error_that_says_what_to_do(use: str, tiny_model: TinyModel) -> None:
    with pytest.raises(ValueError, match="prompt is empty: type at least one character"):
        getattr(gptviz.load(tiny_model()), use)("")


def test_what_the_vocabulary_lacks_is_named_in_a_warning_about_the_line_that_asked(
    tiny_model: TinyModel,
) -> None:
    tiny_model()
    lm = gptviz.load("tiny")
    for use in (lm.encode, lm.trace, lm.generation, partial(lm.generate, max_new_tokens=1)):
        with pytest.warns(
            UserWarning, match=r"Not in the vocabulary: € \(U\+20AC EURO SIGN\)"
        ) as warned:
            use("a€")
        assert [Path(one.filename) for one in warned] == [Path(__file__)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lm.generate("the quick", max_new_tokens=1)


@pytest.mark.parametrize("number", [-3, 2.5, "7", None])
def test_a_number_of_tokens_that_cannot_be_is_named(
    number: Any, tiny_model: TinyModel, home: Path
) -> None:
    tiny_model()
    for lm in (gptviz.load("tiny"), translator(home)):
        with pytest.raises(
            ValueError,
            match=f"max_new_tokens is {number!r}; it must be a whole number from 0 to 1,000,000",
        ):
            lm.generate("a", max_new_tokens=number)
    assert gptviz.load("tiny").generate("the", max_new_tokens=0) == ""


def test_a_model_says_what_it_is(tiny_model: TinyModel) -> None:
    folder = tiny_model()
    lm = gptviz.load("tiny", "cpu")
    size = parameter_count(lm.model.config)
    is_what = (
        f"decoder, {size:,} parameters, 29 tokens (characters), context "
        f"{lm.model.config.context_length}, float32, on cpu"
    )
    assert repr(lm) == f"<LanguageModel tiny: {is_what}>"
    path = checkpoints.snapshot_path(folder, 2_000)
    path.parent.mkdir()
    checkpoints.write_weights(path, lm.model)
    assert (
        repr(gptviz.load("tiny", "cpu", 2_000))
        == f"<LanguageModel tiny after 2,000 steps: {is_what}>"
    )


def classifier(
    card: dict[str, object] | None = None, head: str = "flatten"
) -> gptviz.LanguageModel:
    tokenizer = WordTokenizer(["good", "bad", "film"])
    config = tiny(vocab_size=5, mask="full", head=head, n_label=2, padding=tokenizer.padding)
    return gptviz.load(checkpoints.save("judge", scrambled(config), tokenizer, card or {}))


@pytest.mark.parametrize(
    ("card", "labels"),
    [
        ({"labels": ["negative", "positive"]}, ("negative", "positive")),
        ({}, ("0", "1")),
        ({"labels": ["one"]}, ("0", "1")),
        ({"labels": "ab"}, ("0", "1")),
        ({"labels": [0, 1]}, ("0", "1")),
        ({"labels": [["a"], ["b"]]}, ("0", "1")),
        ({"labels": ["same", "same"]}, ("0", "1")),
    ],
)
def test_labels_have_the_names_on_the_card_or_numbers(
    home: Path, card: dict[str, object], labels: tuple[str, ...]
) -> None:
    assert classifier(card).labels == labels


def test_a_text_is_classified_by_its_beginning_with_the_probabilities_of_its_logits(
    home: Path,
) -> None:
    lm = classifier({"labels": ["negative", "positive"]})
    text = "good film, bad film: " * 5
    first = torch.tensor([[0, 2, 1, 2] * (CONTEXT // 4)])
    with torch.inference_mode():
        expected = lm.model(first)[0].double().softmax(-1).tolist()
    assert lm.classify(text) == {
        "negative": pytest.approx(expected[0]),
        "positive": pytest.approx(expected[1]),
    }
    assert lm.trace(text).ids.tolist() == first.tolist()
    texts = [text, "good", "unheard of", ""]
    together = lm.probabilities(texts)
    assert together.shape == (4, 2)
    assert together[:2].tolist() == [
        pytest.approx([*lm.classify(each).values()], abs=1e-6) for each in texts[:2]
    ]
    # Without a word it is read as a single unknown one.
    assert together[3].tolist() == pytest.approx([*lm.classify("unheard").values()], abs=1e-6)


def test_a_classifier_writes_nothing_and_a_decoder_has_no_labels(
    home: Path, tiny_model: TinyModel
) -> None:
    lm = classifier()
    for use in (lm.generate, lm.generation):
        with pytest.raises(
            ValueError, match="judge is a classifier and writes no text: classify the text instead"
        ):
            use("a good film")
    for text in ("", "7/10", "кино"):
        for use in (lm.classify, lm.encode, lm.trace):
            with pytest.raises(ValueError, match="the text to classify has no word"):
                use(text)
    decoder = gptviz.load(tiny_model())
    assert decoder.labels == ()
    for use in (decoder.classify, lambda text: decoder.probabilities([text])):
        with pytest.raises(ValueError, match="not a classifier|read word by word"):
            use("the fox")


def translator(home: Path, **changes: object) -> gptviz.LanguageModel:
    """An untrained encoder–decoder over the letters a to f."""
    marked = SpecialTokensTokenizer(CharTokenizer("abcdef"))
    sizes = {
        "vocab_size": marked.vocab_size,
        "padding": marked.padding,
        "n_encoder_layer": 1,
        "d_model": 24,
    }
    return gptviz.load(
        checkpoints.save("translator", scrambled(tiny(**sizes | changes)), marked, {})
    )


def test_an_answer_is_the_text_of_the_greedy_tokens_before_the_end(home: Path) -> None:
    answers = set()
    for seed in range(4):
        marked = SpecialTokensTokenizer(CharTokenizer("abcdef"))
        config = tiny(
            vocab_size=marked.vocab_size, padding=marked.padding, n_encoder_layer=1, d_model=24
        )
        model = scrambled(change_config(config, unembed_bias=True), seed)
        with torch.no_grad():
            model.head.unembed.bias[marked.end] += seed
        lm = gptviz.load(checkpoints.save(f"translator-{seed}", model, marked, {}))
        source = torch.tensor([marked.source_ids("face")])
        assert torch.equal(lm.source("face"), source[0])
        written: list[int] = []
        while len(written) < CONTEXT and marked.end not in written:
            with torch.inference_mode():
                written.append(
                    int(lm.model(torch.tensor([[marked.start, *written]]), source)[0, -1].argmax())
                )
        tokens, ended = decode_answer(lm, "face")
        assert [*tokens, *([marked.end] if ended else [])] == written
        assert lm.answer("face") == lm.generate("face") == marked.decode(written)
        assert lm.generate("face", 2) == lm.answer("face", 2) == marked.decode(written[:2])
        assert lm.beams("face", 1).best.ids == tuple(tokens)
        answers.add(ended)
    assert answers == {True, False}


def test_a_trace_of_an_encoder_decoder_reads_the_source_and_the_answer_or_a_target(
    home: Path,
) -> None:
    lm = translator(home)
    start = special_tokenizer(lm).start
    trace = lm.trace("face")
    assert trace.source.tolist() == [special_tokenizer(lm).source_ids("face")]
    assert trace.ids[0].tolist() == [start, *decode_answer(lm, "face")[0]][:CONTEXT]
    forced = lm.trace("face", ["*cross_attention.pattern", "memory", "logits"], "bad")
    assert forced.ids[0].tolist() == special_tokenizer(lm).target_ids("bad")[:-1]
    assert set(forced) == {f"blocks.{i}.cross_attention.pattern" for i in range(2)} | {
        "memory",
        "logits",
    }
    assert forced["blocks.0.cross_attention.pattern"].shape == (1, 3, 4, 5)
    with torch.inference_mode():
        assert torch.equal(forced["logits"], lm.model(forced.ids, lm.source("face")[None]))
    silenced = lm.trace("face", target="bad", edits={"memory": torch.zeros_like})
    assert not torch.allclose(silenced["logits"], forced["logits"])


def test_what_an_encoder_decoder_cannot_read_or_do_is_said(
    home: Path, tiny_model: TinyModel
) -> None:
    lm = translator(home)
    decoder = gptviz.load(tiny_model())
    for use in (lm.answer, lm.source, lm.trace, lm.generate, lambda text: lm.beams(text, 2)):
        with pytest.raises(ValueError, match="prompt is empty"):
            use("")
        with pytest.raises(
            ValueError,
            match=f"has {CONTEXT + 1} tokens with its end; translator reads at most {CONTEXT}",
        ):
            use("abcdefab")
    assert lm.source("abcdefa").shape == (CONTEXT,)
    with pytest.raises(ValueError, match="translator answers a text and does not continue it"):
        lm.generation("face")
    with pytest.raises(ValueError, match="temperature is -1"):
        lm.generate("face", temperature=-1.0)
    with pytest.raises(ValueError, match=f"{CONTEXT + 1} tokens do not fit"):
        lm.trace("face", target="abcdefab")
    for use in (decoder.answer, decoder.source, lambda text: decoder.beams(text, 2)):
        with pytest.raises(ValueError, match="tiny is a decoder: only an encoder–decoder answers"):
            use("fox")
    with pytest.raises(ValueError, match="only an encoder–decoder has a target"):
        decoder.trace("fox", target="dog")
    unmarked = scrambled(tiny(n_encoder_layer=1, vocab_size=6))
    with pytest.raises(ValueError, match=r"its tokens \(characters\) have no start and end tokens"):
        gptviz.load(checkpoints.save("unmarked", unmarked, CharTokenizer("abcdef"), {})).answer(
            "face"
        )


def test_an_edited_model_shares_its_weights_and_everything_it_computes_is_edited(
    tiny_model: TinyModel,
) -> None:
    lm = gptviz.load(tiny_model())
    prompt = "the fox"
    before = lm.trace("the fox")["logits"]
    edited = lm.edited(
        "blocks.1.attention.head.2",
        "blocks.0.mlp=mean",
        text="the quick brown fox jumps over the lazy dog",
    )
    assert edited.edits == ("blocks.0.mlp=mean", "blocks.1.attention.head.2")
    assert edited.edit_text == "the quick brown fox jumps over the lazy dog"
    assert not edited.trace(prompt)["blocks.1.attention.z"][:, 2].any()
    changed = edited.trace(prompt)["logits"]
    assert not torch.allclose(changed, before)
    assert torch.equal(lm.trace(prompt)["logits"], before)
    first = next(edited.generation(prompt, Sampling(temperature=0)))
    torch.testing.assert_close(first.logits, changed[:, -1])
    assert lm.edited() is lm
    assert edited.original is lm
    added = lm.edited("blocks.1.attention.head.2").edited(
        "blocks.0.mlp=mean", text=edited.edit_text
    )
    assert torch.equal(added.trace(prompt)["logits"], changed)
    assert lm.edited("positions", text="unread").edit_text is None


def test_a_mean_is_over_all_of_a_long_reference_text(tiny_model: TinyModel) -> None:
    lm = gptviz.load(tiny_model())
    text = "the quick brown fox jumps over the lazy dog"
    ids = lm.encode(text)
    pieces = [lm.model.embed(piece) for piece in ids.split(CONTEXT)]
    mean = torch.cat(pieces).mean(0)
    assert len(pieces) > 2
    torch.testing.assert_close(lm.edited("embed=mean", text=text).trace("fox")["embed"][0, 0], mean)


def test_edits_have_one_reference_text(tiny_model: TinyModel) -> None:
    lm = gptviz.load(tiny_model())
    with pytest.raises(ValueError, match="another reference text already"):
        lm.edited("blocks.0.mlp=mean", text="the fox").edited("blocks.1.mlp=mean", text="the dog")


def test_a_lens_is_fitted_once_for_the_same_weights_and_text(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model("mine", text="abc ")
    lm = gptviz.load("mine")
    text = "a cab " * 20
    first = lm.fitted_lens("jacobian", text)
    fits: list[str] = []
    monkeypatch.setattr(fitted_lens, "fit", lambda model, rows, kind: fits.append(kind) or first)
    again = lm.fitted_lens("jacobian", text)
    assert torch.equal(first.matrices, again.matrices)
    assert first.measured.tolist() == again.measured.tolist()
    lm.edited("blocks.0.mlp").fitted_lens("jacobian", text)
    assert not fits, "it is fitted to the model without edits"
    lm.fitted_lens("tuned", text)
    lm.fitted_lens("jacobian", text[6:])
    assert fits == ["tuned", "jacobian"]


def test_a_label_of_a_table_is_that_of_the_last_token_of_each_text(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="abcd ")
    lm = gptviz.load("mine")
    ends = {"a": "vowel", "b": "other"}
    table = "text,label\n" + "\n".join(
        f"{before}{end},{ends[end]}"
        for end in ends
        for before in map("".join, product("abcd", repeat=3))
    )
    probed = lm.probe("table", table)
    assert sorted(probed.classes) == ["other", "vowel"]
    assert probed.accuracy[0] == 1, "the embedding of the last token has it"
    assert probed.control[0] == 1, "two kinds of tokens have two random labels"
    with pytest.raises(ValueError, match="label"):
        lm.probe("table", "text\na")


def test_the_lens_of_an_encoder_decoder_reads_the_source_and_its_own_answer() -> None:
    lm = gptviz.load("seq2seq")
    seen = lm.lens("the third of march 1977")
    answer = decode_answer(lm, "the third of march 1977")[0]
    assert list(seen.ids) == [special_tokenizer(lm).start, *answer]
    assert seen.top[-1, : len(answer), 0].tolist() == answer
    assert "blocks.0.cross_attention" in [layer.name for layer in seen.layers]


def test_the_attribution_of_an_answer_has_the_heads_that_read_the_source() -> None:
    lm = gptviz.load("seq2seq")
    source = "the third of march 1977"
    found = lm.attribute(source, position=0)
    assert found.token == decode_answer(lm, source)[0][0]
    assert found.adds_up
    assert len(found.sources["blocks.0.cross_attention.head.0"]) == len(lm.source(source))


def test_a_token_is_named_by_its_text_and_a_label_by_its_name(tiny_model: TinyModel) -> None:
    lm = gptviz.load(tiny_model())
    assert lm.token("f") == lm.tokenizer.id_of("f")
    with pytest.raises(
        ValueError, match="'fox' is no single token of tiny: it is read as f · o · x"
    ):
        lm.token("fox")
    with pytest.raises(ValueError, match="'' is no single token of tiny"):
        lm.token("")
    judge = gptviz.load("classifier")
    assert [judge.token(label) for label in judge.labels] == list(range(len(judge.labels)))


def test_a_patch_is_that_of_the_prompts_and_answers_in_words(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="abcdefg ", context_length=6)
    lm = gptviz.load("mine")
    found = lm.patch("a cab a", "a cad a", "b", "d", "attention.z")
    ids = lm.encode("a cab a")[-6:].tolist(), lm.encode("a cad a")[-6:].tolist()
    pair = PromptPair(tuple(ids[0]), tuple(ids[1]), int(lm.encode("b")), int(lm.encode("d")))
    expected = patch(lm.model, pair, "attention.z")
    assert found.answers == pytest.approx(expected.answers)
    guessed = lm.patch("a cab a", "a cad a", pair.right, pair.wrong, "attention.z", exact=False)
    assert guessed.answers == pytest.approx(
        preview(lm.model, pair, ["attention.z"])["attention.z"].answers
    )
    logits = lm.model(pair.ids(lm.device))[:, -1]
    default = lm.pair("a cab a", "a cad a")
    assert default.right == int(logits[0].argmax())
    assert default.wrong == next(
        token for token in logits[1].argsort(descending=True).tolist() if token != default.right
    )


def test_prompts_and_answers_that_cannot_be_patched_are_named(
    tiny_model: TinyModel, home: Path
) -> None:
    tiny_model("mine", text="abcdefg ", context_length=6)
    lm = gptviz.load("mine")
    # Both are cut to the last six tokens, which do not stand in the same places.
    with pytest.raises(ValueError, match="clean prompt has 8 tokens and the corrupted prompt 9"):
        lm.patch("a cab ab", "a cab aab")
    with pytest.raises(ValueError, match="'ab' is no single token of mine: it is read as a · b"):
        lm.patch("a cab", "a cad", "ab")
    # not the token that stands in for it
    with pytest.raises(ValueError, match="'€' is no single token of mine"):
        lm.patch("a cab", "a cad", "€")


def test_of_an_encoder_decoder_sources_are_patched_where_its_answers_part(home: Path) -> None:
    lm = translator(home)
    clean = "face"
    corrupted = "fade"
    written = [decode_answer(lm, text)[0] for text in (clean, corrupted)]
    pair = lm.pair(clean, corrupted)
    length = len(pair.clean) - 1
    assert pair.clean == pair.corrupted == (special_tokenizer(lm).start, *written[0][:length])
    assert written[0][:length] == written[1][:length]
    assert (pair.clean_source, pair.corrupted_source) == tuple(
        tuple(lm.source(text).tolist()) for text in (clean, corrupted)
    )
    assert lm.patch(clean, corrupted, what="cross_attention.z").answers.shape == (2, 3)


def test_the_decoder_of_a_pair_reads_what_both_answers_begin_with() -> None:
    lm = gptviz.load("seq2seq")
    prompts = ("March 1, 1998", "March 1, 1997")
    assert [lm.answer(prompt) for prompt in prompts] == ["1998-03-01", "1997-03-01"]
    pair = lm.pair(*prompts)
    assert lm.tokenizer.decode(pair.clean) == lm.tokenizer.decode(pair.corrupted) == "199"
    assert [lm.tokenizer.piece(answer) for answer in (pair.right, pair.wrong)] == ["8", "7"]


def test_what_an_encoder_decoder_would_answer_is_what_an_edited_one_has_to_predict() -> None:
    lm = gptviz.load("seq2seq")
    text = "March 1, 1998"
    written, ended = decode_answer(lm, text)
    assert ended
    targets = torch.tensor([*written, special_tokenizer(lm).end])
    for model in (lm, lm.edited("blocks.0.mlp")):
        logits = model.trace(text, target=lm.answer(text))["logits"][0]
        guess = model.guess(text)
        assert guess.loss == pytest.approx(float(F.cross_entropy(logits, targets)), abs=1e-5)
        np.testing.assert_allclose(guess.probabilities, logits[0].softmax(-1), atol=1e-6)
    ((read, counted),) = counted_rows(lm, text)
    assert (counted.tolist(), read.ids.shape) == ([targets.tolist()], (1, len(targets)))
    rises = lm.losses_without(text)
    assert rises["blocks.0.mlp"] == pytest.approx(
        lm.edited("blocks.0.mlp").guess(text).loss - lm.guess(text).loss, abs=1e-5
    )


def test_a_model_whose_data_nobody_knows_writes_what_is_fitted_to_it(
    tiny_model: TinyModel,
) -> None:
    lm = gptviz.load(tiny_model(text="abcdefg "))
    assert lm.card.source is None
    rows = rows_to_fit(lm, None, 200)
    assert sum(map(len, rows)) == 200
    assert len({tuple(row.tolist()) for row in rows}) > 10
    again = rows_to_fit(lm.edited("blocks.0.mlp"), None, 200)
    assert all(torch.equal(one, other) for one, other in zip(rows, again, strict=True))
    # a text that is given is read in their place
    assert torch.equal(rows_to_fit(lm, "a cab", 200)[0], lm.encode("a cab"))
    lens = lm.fitted_lens("tuned")
    distinct = {tuple(row.tolist()) for row in rows_to_fit(lm, None, 8_192)}
    assert lens.fitted_to == sum(map(len, distinct)) * 4 // 5 > 5_000
    assert lens.per_number == pytest.approx(lens.fitted_to / (lm.model.config.d_model + 1))
    assert "below 10" not in lens.support
    assert gptviz.load(lm.name).fitted_lens("tuned").support == lens.support


def test_of_few_tokens_the_lens_says_that_they_are_few(tiny_model: TinyModel) -> None:
    lm = gptviz.load(tiny_model(text="abcdefg "))
    lens = lm.fitted_lens("tuned", "a cab bed, a bad fag, gaga dad")
    assert "below 10" in lens.support


def test_copies_of_a_text_are_not_held_out_of_a_direction(tiny_model: TinyModel) -> None:
    lm = gptviz.load(tiny_model(text="abcdefg "))
    toward = ["a cab"] * 6 + ["bad"]
    away = ["a bed"] * 5 + ["fed"] * 2
    assert math.isnan(lm.direction(toward, away).separated)
    assert count_turned(lm, lm.direction(toward, away).name, toward, away) == (0, 0)


@pytest.mark.parametrize("name", ["mine", "windowed", "judge"])
def test_the_attention_of_a_text_is_that_of_its_trace_without_what_masks_forbid(
    name: str, tiny_model: TinyModel
) -> None:
    tiny_model("mine")
    tiny_model("windowed", window=2, window_pattern="wf")
    tiny_model("judge", mask="full", head="mean", n_label=2)
    lm = gptviz.load(name)
    found, trace = lm.attention("the fox"), lm.trace("the fox")
    assert [axis.name for axis in found.axes[:2]] == ["block", "head"]
    assert [axis.labels for axis in found.axes[2:]] == 2 * [tuple("the␣fox")]
    for block, own in enumerate(found.values):
        pattern = trace[f"blocks.{block}.attention.pattern"][0].numpy()
        np.testing.assert_array_equal(np.nan_to_num(own), pattern)
        for query, key in product(range(7), repeat=2):
            far = name == "windowed" and block == 0 and query - key >= 2
            hidden = name != "judge" and (key > query or far)
            assert np.isnan(own[:, query, key]).all() == hidden
    np.testing.assert_allclose(np.nansum(found.values, -1), 1, atol=1e-6)


@pytest.mark.parametrize("stack", ["encoder", "decoder", "cross"])
def test_of_two_stacks_each_has_its_attention(stack: Stack) -> None:
    lm = gptviz.load("seq2seq")
    found = lm.attention("may 1977", "1977", stack=stack)
    name = {
        "encoder": "encoder.blocks.0.attention",
        "decoder": "blocks.0.attention",
        "cross": "blocks.0.cross_attention",
    }
    pattern = lm.trace("may 1977", target="1977")[f"{name[stack]}.pattern"]
    np.testing.assert_array_equal(np.nan_to_num(found.values[0]), pattern[0].numpy())
    read = tuple(lm.tokenizer.label(token) for token in lm.source("may 1977").tolist())
    written = (lm.tokenizer.label(special_tokenizer(lm).start), *"1977")
    assert found.axes[-2].labels == (read if stack == "encoder" else written)
    assert found.axes[-1].labels == (written if stack == "decoder" else read)


def test_the_likeliest_next_tokens_come_first(tiny_model: TinyModel) -> None:
    lm = gptviz.load(tiny_model())
    found = lm.next_token("the fox", top=4)
    expected = lm.trace("the fox")["logits"][0, -1].softmax(-1).sort(descending=True)
    np.testing.assert_allclose(found.values, expected.values[:4], rtol=1e-5)
    assert found.axes[0].labels == tuple(map(lm.tokenizer.label, expected.indices[:4].tolist()))


def test_a_map_of_embeddings_is_their_projection_and_two_models_are_compared_by_their_guesses(
    tiny_model: TinyModel,
) -> None:
    lm = gptviz.load(tiny_model())
    rows = lm.model.embed.weight.detach()
    u, s, _ = torch.linalg.svd(rows - rows.mean(0), full_matrices=False)
    points = torch.from_numpy(lm.embeddings().points.values).abs()
    torch.testing.assert_close(points, (u * s)[:, :2].abs(), atol=1e-4, rtol=1e-4)
    both = lm.compare(lm.edited("blocks.0.mlp"), "the fox")
    before, after = (
        one.trace("the fox")["logits"][0, -1].softmax(-1) for one in (lm, lm.edited("blocks.0.mlp"))
    )
    np.testing.assert_allclose(both.difference.values, after - before, atol=1e-6)
