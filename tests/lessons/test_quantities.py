"""Quantities: each is what the library computes in another way; and what a model does not have is
refused by name.
"""

from __future__ import annotations

import gc
import math
import weakref
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch

import gptviz
from gptviz.data.trained_on import Share
from gptviz.interp.reading.gradients import GRADIENT, compare_untrained
from gptviz.lessons.answering import Answer, answer_to, fill_text
from gptviz.lessons.expression import ExpressionError, compute_expression
from gptviz.lessons.lesson import Question
from gptviz.lessons.quantities import OF_MODELS, PLAIN, Quantities
from gptviz.text import passages
from gptviz.text.datasets.languages import examples
from gptviz.text.datasets.sentences import contrasts
from gptviz.text.tokenizers.bpe import split_words

PROMPT = "ROMEO:"


@pytest.fixture(scope="module")
def functions():
    models = {}

    def opened(name, step):
        if (name, step) not in models:
            models[name, step] = gptviz.load(name, "cpu", step)
        return models[name, step]

    return Quantities(opened, "shakespeare").functions


@pytest.fixture(scope="module")
def logits():
    return gptviz.load("shakespeare", "cpu").trace(PROMPT, ["logits"])["logits"][0, -1].double()


def test_probability_logit_rank_and_entropy_are_those_of_the_trace(functions, logits):
    lm = gptviz.load("shakespeare", "cpu")
    shares = logits.softmax(-1)
    for token in ("\n", " ", "a"):
        place = lm.tokenizer.id_of(token)
        text = repr(token)
        assert compute_expression(f"probability({PROMPT!r}, {text})", functions) == pytest.approx(
            shares[place].item(), rel=1e-5
        )
        assert compute_expression(f"logit({PROMPT!r}, {text})", functions) == pytest.approx(
            logits[place].item(), abs=1e-4
        )
        assert compute_expression(f"rank({PROMPT!r}, {text})", functions) == 1 + sum(
            other > logits[place] for other in logits
        )
    assert compute_expression(f"entropy({PROMPT!r})", functions) == pytest.approx(
        -(shares * shares.log()).sum().item(), abs=1e-5
    )
    best = [lm.tokenizer.piece(int(i)) for i in logits.argsort(descending=True)[:3]]
    assert compute_expression(f"likeliest({PROMPT!r}, 3)", functions) == best
    assert compute_expression(f"likeliest({PROMPT!r})", functions) == best[0]


def test_loss_is_the_mean_surprise_and_attention_that_of_the_trace(functions):
    text = "O Romeo, Romeo"
    lm = gptviz.load("shakespeare", "cpu")
    trace = lm.trace(text)
    ids = lm.encode(text)
    expected = torch.nn.functional.cross_entropy(trace["logits"][0, :-1], ids[1:]).item()
    assert compute_expression(f"loss({text!r})", functions) == pytest.approx(expected, abs=1e-5)
    pattern = trace["blocks.1.attention.pattern"][0, 3]
    assert compute_expression(f"attends({text!r}, 1, 3, -1, 2)", functions) == pytest.approx(
        pattern[-1, 2].item(), abs=1e-6
    )
    assert (
        compute_expression(f"most_read({text!r}, 1, 3)", functions) == pattern[-1].argmax().item()
    )


def test_what_is_switched_off_is_off_and_another_model_or_step_is_another(functions):
    off = "blocks.0.attention.head.0"
    lm = gptviz.load("shakespeare", "cpu").edited(off)
    expected = (
        lm.trace(PROMPT, ["logits"])["logits"][0, -1].softmax(-1)[lm.tokenizer.id_of("\n")].item()
    )
    assert compute_expression(
        f"probability({PROMPT!r}, '\\n', without={off!r})", functions
    ) == pytest.approx(expected, rel=1e-5)
    assert expected != pytest.approx(
        compute_expression(f"probability({PROMPT!r}, '\\n')", functions), rel=1e-3
    )
    assert (
        compute_expression("vocabulary(model='bpe')", functions)
        == gptviz.load("bpe").tokenizer.vocab_size
    )
    assert (
        compute_expression("validation_loss(model='ladder-0')", functions)
        == gptviz.load("ladder-0").card.validation_loss
    )
    early = compute_expression("loss('ROMEO: what', model='generator', step=0)", functions)
    assert early > compute_expression("loss('ROMEO: what', model='generator')", functions)


def test_heads_parts_and_layers_are_those_of_the_library(functions):
    lm = gptviz.load("induction")
    rows = lm.heads()
    best = max(rows, key=lambda row: row["induction"])
    assert (
        compute_expression("best_head('induction', model='induction')", functions)
        == f"{best['block']}.{best['head']}"
    )
    said = compute_expression(
        f"head_score('induction', {best['block']}, {best['head']}, model='induction')", functions
    )
    assert said == pytest.approx(best["induction"])
    lm = gptviz.load("ladder-8")
    prompt = "O Romeo"
    token = lm.tokenizer.piece(int(lm.trace(prompt, ["logits"])["logits"][0, -1].argmax()))
    parts = {one.name: one.value for one in lm.attribute(prompt, token).parts}
    strongest = compute_expression(
        f"strongest_part({prompt!r}, {token!r}, model='ladder-8')", functions
    )
    assert parts[strongest] == max(parts.values())
    name = compute_expression(f"strongest_head({prompt!r}, {token!r}, model='ladder-8')", functions)
    assert parts[name] == max(value for part, value in parts.items() if ".head." in part)
    assert compute_expression(
        f"contribution({prompt!r}, {token!r}, {name!r}, model='ladder-8')", functions
    ) == pytest.approx(parts[name])
    assert (
        compute_expression(f"lens_rank({prompt!r}, {token!r}, -1, model='ladder-8')", functions)
        == 1
    )


def test_embeddings_are_compared_by_their_cosine(functions):
    rows = gptviz.load("shakespeare").model.embed.weight.detach().double().numpy()
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    lm = gptviz.load("shakespeare")
    a = lm.tokenizer.id_of("a")
    b = lm.tokenizer.id_of("e")
    assert compute_expression("similarity('a', 'e')", functions) == pytest.approx(
        rows[a] @ rows[b], abs=1e-6
    )
    cosines = rows @ rows[a]
    cosines[a] = -2
    assert compute_expression("nearest('a')", functions) == lm.tokenizer.piece(
        int(cosines.argmax())
    )
    own = [lm.tokenizer.id_of(vowel) for vowel in "aeiou"]
    others = rows @ rows.T - 3 * np.eye(len(rows))
    beside = sum(int(others[i].argmax()) in own for i in own)
    assert compute_expression("nearest_within('aeiou')", functions) == pytest.approx(beside / 5)


def test_what_a_picture_by_pca_keeps_is_the_share_of_its_largest_singular_values(functions):
    rows = gptviz.load("generator").model.head.unembed.weight.detach().double().numpy()
    found = np.square(np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False))
    for dimensions in (2, 3):
        kept = compute_expression(
            f"pca_share('unembedding', {dimensions}, model='generator')", functions
        )
        assert kept == pytest.approx(found[:dimensions].sum() / found.sum(), rel=1e-4)


def test_a_token_that_surprises_a_wave_a_cache_and_what_a_card_says_are_those_of_the_library(
    functions,
):
    text = "My kingdom for a xylophone"
    lm = gptviz.load("shakespeare")
    shares = lm.trace(text, ["logits"])["logits"][0].softmax(-1)
    found = [
        shares[place, token].item() for place, token in enumerate(lm.encode(text).tolist()[1:])
    ]
    assert compute_expression(f"least_expected({text!r})", functions) == 1 + found.index(min(found))
    width = gptviz.load("generator").model.config.d_model
    expected = 2 * math.pi * 10_000 ** (8 / width)
    assert compute_expression("wave(8, model='generator')", functions) == pytest.approx(expected)
    config = lm.model.config
    assert (
        compute_expression("cache_size(7)", functions)
        == 4 * 7 * config.n_layer * 2 * config.n_head * config.head_size
    )
    card = gptviz.load("classifier").card
    assert compute_expression("accuracy(model='classifier')", functions) == card.accuracy
    assert (
        compute_expression("accuracy('baseline', model='classifier')", functions)
        == card.baseline_accuracy
    )
    trained = [entry for entry in card.losses if entry.training is not None]
    assert (
        compute_expression(f"training_loss_at({trained[1].step}, model='classifier')", functions)
        == trained[1].training
    )


def test_positions_and_tokens_are_compared_in_other_spaces_too(functions):
    lm = gptviz.load("generator")
    d = lm.model.config.d_model
    place = np.array([[10.0], [40.0]])
    angles = place / 10_000 ** (np.arange(0, d, 2) / d)
    rows = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    cosine = rows[0] @ rows[1] / (np.linalg.norm(rows[0]) * np.linalg.norm(rows[1]))
    said = compute_expression(
        "position_similarity(10, 40, 'sinusoidal', model='generator')", functions
    )
    assert said == pytest.approx(cosine, abs=1e-4)
    rows = lm.model.head.unembed.weight.detach().double().numpy()
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    own = lm.tokenizer.id_of("A")
    cosines = rows @ rows[own]
    cosines[own] = -2
    assert compute_expression(
        "nearest('A', 'unembedding', model='generator')", functions
    ) == lm.tokenizer.piece(int(cosines.argmax()))


def test_what_is_drafted_is_what_the_library_writes(functions):
    found = gptviz.load("generator", "cpu").speculate("ROMEO:", "prompt", 40, temperature=0.5)
    asked = "('ROMEO:', 'prompt', 0.5, 40, model='generator')"
    assert compute_expression(f"tokens_per_pass{asked}", functions) == found.tokens_per_pass
    assert compute_expression(f"share_accepted{asked}", functions) == found.acceptance_rate
    drafted = "drafted_continuation('ROMEO:', 'ladder-2', 30, model='generator')"
    assert compute_expression(drafted, functions) == gptviz.load("generator", "cpu").generate(
        "ROMEO:", 30, temperature=0
    )


def test_what_takes_long_is_computed_once_for_a_model_and_keeps_no_model_alive(monkeypatch):
    models = [gptviz.load("shakespeare", "cpu")]
    asked = []
    monkeypatch.setattr(
        gptviz.LanguageModel,
        "shares_in_data",
        lambda *words: asked.append(words[1:]) or [[Share(1, 4)]],
    )
    own = Quantities(lambda *_: models[0], "shakespeare").functions["share_in_data"]
    assert [
        own("ROMEO", "is"),
        own("ROMEO", word="is"),
        own("ROMEO", "is"),
        own("JULIET", "is"),
    ] == [0.25] * 4
    assert len(asked) == 3, "by the call, as it was written"
    gone = weakref.ref(models.pop())
    gc.collect()
    assert gone() is None


def test_every_quantity_says_what_it_is():
    assert all(function.__doc__ for function in OF_MODELS.values())
    assert not set(OF_MODELS) & set(PLAIN)


@pytest.mark.parametrize(
    "text",
    [
        "probability('ROMEO:', 'ab')",
        "probability('', 'a')",
        "label('x')",
        "attends('ab', 9, 0, 0, 0)",
        "attends('ab', 0, 0, 9, 0)",
        "setting('nothing')",
        "tokens('x', model='../x')",
        "loss('a')",
        "likeliest('a', 5000)",
        "best_head('unheard')",
        "head_score('induction', 99, 0)",
        "contribution('a', 'b', 'blocks.99.mlp')",
        "lens_rank('a', 'b', 99)",
        "least_expected('a')",
        "wave(9999)",
        "tokens_per_pass('ab', 'nobody')",
        "tokens_per_pass('ab', '../x')",
        "tokens_per_pass('ab', 'bpe')",
        "nearest('a', 'nowhere')",
        "accuracy()",
        "accuracy('nothing', model='classifier')",
        "training_loss_at(1, model='nothing')",
        "tokens(1)",
        "tokens()",
        "probability('a', 'b', without='blocks.99.mlp')",
        f"tokens('{'x' * 900}' , 3)",
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_line(functions, text):
    with pytest.raises(ExpressionError) as refused:
        compute_expression(text, functions)
    assert "\n" not in str(refused.value)


def question(kind: str, answer: str, **more) -> Question:
    return Question(ask="?", kind=kind, answer=answer, **more)


def test_an_answer_is_right_within_its_tolerance_or_exactly():
    number = answer_to(question("number", "10 / 4", within=0.1), {})
    assert [number.is_right(given) for given in (2.5, 2.6, 2.4, 2.61, math.nan, "2.5")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    choice = answer_to(question("choice", "1 + 1", options=("1", "2")), {})
    token = answer_to(question("token", "' Mary'"), {})
    assert [token.is_right(given) for given in ("Mary", " Mary", "mary", " ")] == [
        True,
        True,
        False,
        False,
    ]
    space = answer_to(question("token", "' '"), {})
    assert [space.is_right(given) for given in (" ", "a")] == [True, False]
    assert (choice.value, choice.is_right("2"), choice.is_right("1")) == ("2", True, False)


@pytest.mark.parametrize(
    "asked",
    [
        question("number", "'x'"),
        question("number", "True"),
        question("choice", "'c'", options=("a", "b")),
    ],
)
def test_an_answer_of_another_kind_is_refused(asked):
    with pytest.raises(ExpressionError):
        answer_to(asked, {})


def test_values_in_a_text_are_no_markup():
    text = fill_text("It is {{ 1 / 4 }}, {{ [1, 'a'] }} and {{ '**<b>[x](y)$' }}.", {})
    assert text == r"It is 0\.25, 1, a and \*\*\<b\>\[x\]\(y\)\$."
    assert isinstance(Answer(1.0, question("number", "1")).value, float)


def test_a_draw_is_that_of_the_ledger(functions, logits):
    shares = (logits / 2).softmax(-1).sort(descending=True).values
    lm = gptviz.load("shakespeare")
    best = lm.tokenizer.piece(int(logits.argmax()))
    assert compute_expression(f"drawn({PROMPT!r}, {best!r}, 2)", functions) == pytest.approx(
        shares[0].item(), rel=1e-5
    )
    cut = shares[:3] / shares[:3].sum()
    assert compute_expression(f"drawn({PROMPT!r}, {best!r}, 2, 3)", functions) == pytest.approx(
        cut[0].item(), rel=1e-5
    )
    assert compute_expression(f"stay({PROMPT!r}, 2, 3)", functions) == 3
    plain = logits.softmax(-1).sort(descending=True).values
    fewest = int((plain.cumsum(0) < 0.9).sum()) + 1
    assert compute_expression(f"stay({PROMPT!r}, 1, 0, 0.9)", functions) == fewest


def test_lengths_of_the_stream_and_products_of_embeddings_are_those_of_the_tensors(functions):
    lm = gptviz.load("ladder-8")
    stream = lm.trace("sea", ["blocks.2.resid_mid"])["blocks.2.resid_mid"][0, 1]
    assert compute_expression(
        "stream_length('sea', 5, 1, model='ladder-8')", functions
    ) == pytest.approx(stream.norm().item(), rel=1e-4)
    a, z = (lm.model.embed.weight[lm.tokenizer.id_of(letter)] for letter in "az")
    assert compute_expression("dot('a', 'z', model='ladder-8')", functions) == pytest.approx(
        (a @ z).item(), rel=1e-4
    )


def test_what_a_card_says_of_training_is_asked_by_its_step(functions):
    lm = gptviz.load("induction")
    entry = next(
        entry for entry in lm.card.losses if entry.validation is not None and entry.step > 0
    )
    assert (
        compute_expression(f"validation_loss_at({entry.step}, model='induction')", functions)
        == entry.validation
    )
    steps = compute_expression("snapshots(model='induction')", functions)
    assert steps == sorted(steps)
    assert compute_expression(f"name(model='induction', step={steps[3]})", functions) == "induction"


def test_a_patch_restores_what_the_library_says(functions):
    one = contrasts()[0]
    shares = (
        gptviz.load("sentences")
        .patch(one.clean, one.corrupted, one.right, one.wrong, "attention.z")
        .shares
    )
    asked = (
        f"restored({one.clean!r}, {one.corrupted!r}, {one.right!r}, {one.wrong!r}, 'attention.z', "
        "1, 2, model='sentences')"
    )
    assert compute_expression(asked, functions) == pytest.approx(shares[1, 2])


def test_a_source_is_read_where_cross_attention_is_largest(functions):
    lm = gptviz.load("seq2seq")
    text = "the third of march 1977"
    trace = lm.trace(text)
    patterns = [
        trace[f"blocks.{block}.cross_attention.pattern"][0]
        for block in range(lm.model.config.n_layer)
    ]
    place = int(torch.cat(patterns).mean(0)[2].argmax())
    read = lm.tokenizer.label(lm.source(text).tolist()[place])
    assert compute_expression(f"source_read({text!r}, 2, model='seq2seq')", functions) == read


def test_a_gradient_that_reaches_the_first_block_is_a_share(functions):
    shown = compare_untrained(depth=4)  # as on the page Gradients
    sizes = shown.values[shown.axes[0].labels.index(GRADIENT)]
    for kind, row in zip(shown.axes[1].labels, sizes, strict=True):
        assert compute_expression(f"gradient_reaching({kind!r}, 4)", functions) == pytest.approx(
            row[0] / row[-1], rel=1e-6
        )
    deeper = [
        compute_expression(f"gradient_reaching('none', {depth})", functions) for depth in (2, 4, 8)
    ]
    assert deeper[0] > deeper[1] > deeper[2] > 0
    with pytest.raises(ExpressionError, match="no residual"):
        compute_expression("gradient_reaching('nothing')", functions)
    assert compute_expression("occurrences('banana', 'an')", functions) == 2


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("percent(0)", "0 %"),
        ("percent(0.004)", "< 1 %"),
        ("percent(0.006)", "1 %"),
        ("percent(0.0004, 1)", "< 0.1 %"),
    ],
)
def test_a_share_that_is_more_than_nothing_is_not_said_to_be_nothing(
    functions, said: str, words: str
) -> None:
    assert compute_expression(said, functions) == words


def test_a_number_has_a_real_minus_and_nothing_has_no_sign(functions) -> None:
    assert compute_expression("rounded(-0.24)", functions) == "−0.24"
    assert compute_expression("rounded(-0.001)", functions) == "0.00"
    assert compute_expression("rounded(-1234.5, 0)", functions) == "−1,234"


def test_a_word_is_written_without_the_space_before_it(functions) -> None:
    prompt = "When Mary and John went to the shop, John gave a book to"
    best = gptviz.load("sentences", "cpu").trace(prompt, ["logits"])["logits"][0, -1].argmax()
    word = compute_expression(f"likeliest({prompt!r}, model='sentences')", functions)
    assert word == word.strip()
    assert gptviz.load("sentences", "cpu").tokenizer.id_of(word) == best
    assert compute_expression("nearest('Mary', model='sentences')", functions).isalpha()


def test_chance_is_how_often_the_most_frequent_label_is_right(functions) -> None:
    labels = gptviz.text.starred_opinions().labels
    assert compute_expression("chance('stars')", functions) == max(
        labels.count(label) for label in set(labels)
    ) / len(labels)
    with pytest.raises(ExpressionError, match="no texts 'cats'"):
        compute_expression("chance('cats')", functions)


def test_a_text_is_cleaned_as_a_model_of_words_reads_it(functions) -> None:
    assert compute_expression("cleaned('DON\\'T miss É!')", functions) == "dont miss e!"


def test_merges_and_costs_are_those_of_the_tokenizer(functions):
    tokenizer = gptviz.load("bpe").tokenizer
    made = compute_expression("merges(' unicorn', model='bpe')", functions)
    pieces = compute_expression("tokens(' unicorn', model='bpe')", functions)
    assert len(made) + len(pieces) == len(" unicorn")
    assert set(made) >= {piece for piece in pieces if len(piece) > 1}
    with pytest.raises(ExpressionError, match="not make its tokens by merges"):
        compute_expression("merges('a')", functions)
    german, english = (
        len(tokenizer.encode(examples()[name]).ids) for name in ("German", "English")
    )
    assert compute_expression("times_as_many('German', model='bpe')", functions) == german / english
    with pytest.raises(ExpressionError, match="Japanese"):
        compute_expression("times_as_many('Latin')", functions)
    most = Counter[tuple[str, str]]()
    for word, times in split_words(passages()).items():
        for pair in pairwise(word):
            most[pair] += times
    assert compute_expression("learned_merges(1)", functions) == [
        "".join(max(most, key=most.__getitem__)).replace("Ġ", "␣")
    ]
