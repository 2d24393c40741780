"""Quantities: the functions that the expressions of a lesson may call. Each computes its value from
a model or data.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any, Literal, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from cachetools import LRUCache, cached
from cachetools.keys import hashkey

from gptviz.generate.sampling import Ledger, Sampling, ledger
from gptviz.generate.speculation import Speculated
from gptviz.interp.dictionaries import superposition
from gptviz.interp.explaining.weight_circuit import WeightCircuit
from gptviz.interp.over_training.history import History
from gptviz.interp.over_training.measures import MEASURES, MeasureQuestion
from gptviz.interp.reading import (
    attention,
    cross_attention,
    embeddings,
    gradients,
    positions,
    stream,
)
from gptviz.interp.reading.next_token import logits_after, perplexity, probabilities
from gptviz.interp.reading.waves import ClockWaves
from gptviz.language_model import LanguageModel, explaining, load, weight_circuits
from gptviz.language_model.core import decode_answer, ids_of, special_tokenizer
from gptviz.language_model.over_training import measure_input
from gptviz.model import parameter_count
from gptviz.runs import checkpoints
from gptviz.settings.fields import check_number, check_value, parameter_infos, whole_number
from gptviz.settings.kinds import Space
from gptviz.text import GENERATED, cleaned, make_visible, passages
from gptviz.text.datasets.languages import FIRST, examples
from gptviz.text.tokenizers.learning import learn_merges
from gptviz.text.tokenizers.pieces import cost

from .guessing import GuessableTokens

LONGEST_TEXT = 20_000  # characters
MOST_ENTRIES = 50
# The most blocks of the untrained models whose gradients are compared, as on the page Gradients.
_DEEPEST = 32
_MOST_DIGITS = 12

Function = Callable[..., Any]
Entry = TypeVar("Entry")
StepNumber = Literal["slope", "before", "after", "loss", "loss_before", "loss_after"]


class Quantities:
    """The functions of expressions, for the models that a lesson names.

    Every function takes `model`, the name of a model, and `step`, one of its snapshots; by default
    the lesson's model as it was saved last. It also takes `without`, a part that is switched off,
    as in `without="blocks.1.attention.head.3"`, or a list. `opened` returns the model of a name and
    a step.
    """

    def __init__(self, opened: Callable[[str, int | None], LanguageModel], model: str) -> None:
        self.opened = opened
        self.model = model

    @property
    def functions(self) -> dict[str, Function]:
        """The functions by name."""
        return {name: self._with_model(function) for name, function in OF_MODELS.items()} | PLAIN

    def _with_model(self, function: Function) -> Function:
        def called(
            *arguments: Any, model: str | None = None, step: int | None = None, **named: Any
        ) -> Any:
            for value in (*arguments, *named.values()):
                if isinstance(value, str) and len(value) > LONGEST_TEXT:
                    raise ValueError(
                        f"a text has {len(value):,} characters, and {LONGEST_TEXT:,} are the most"
                    )
            lm = self.opened(self.model if model is None else model, step)
            without = named.pop("without", None)
            if without is not None:
                lm = lm.edited(*([without] if isinstance(without, str) else without))
            _check(function, lm, *arguments, **named)
            return function(lm, *arguments, **named)

        return called


def _check(function: Function, *arguments: Any, **named: Any) -> None:
    """Refuse too few or too many arguments, or one that its parameter cannot be."""
    signature = inspect.signature(function)
    try:
        given = signature.bind(*arguments, **named).arguments
    except TypeError as error:
        raise ValueError(str(error)) from None
    infos = parameter_infos(function)
    for name, value in given.items():
        if name in infos:
            check_value(infos[name], name, value)


def _named(name: str, what: str, known: Mapping[str, Entry]) -> Entry:
    """The entry of this name; if there is none, a ValueError says `what` it would be, and names
    those that there are.
    """
    if name not in known:
        raise ValueError(f"there is no {what} {name!r:.40}; there are {', '.join(known)}")
    return known[name]


def _within(name: str, number: int, low: int, high: int) -> int:
    """The number, which is called `name`; a ValueError if it is not from `low` to `high`."""
    check_number(whole_number(low, high), name, number)
    return number


def _ids(lm: LanguageModel, text: str) -> list[int]:
    return lm.seen(ids_of(lm, lm.tokenizer.encode(text))).tolist()


def _token(lm: LanguageModel, token: str) -> int:
    """The id of a token that is given as its text. A ValueError if there is no such token."""
    if (number := lm.tokenizer.id_of(token)) is None:
        raise ValueError(f"{lm.name} has no token {token!r:.40}")
    return number


def _text(lm: LanguageModel, token: int) -> str:
    """The text of a token; that of a whole word is without the space before it, as on pages and in
    lessons.
    """
    label = lm.tokenizer.label(token)
    if lm.tokenizer.id_of(label) == token:
        return label
    return lm.tokenizer.piece(token)


def _logits(lm: LanguageModel, prompt: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The logits [vocab_size] of the token after a prompt."""
    return logits_after(lm.model, _ids(lm, prompt), slice(-1, None))[0].astype(np.float64)


def _once(compute: Function) -> Function:
    """The same function that computes each value once, and forgets it with the model."""
    kept: WeakKeyDictionary[LanguageModel, LRUCache[Any, Any]] = WeakKeyDictionary()

    @wraps(compute)
    def known(lm: LanguageModel, *asked: Any, **named: Any) -> Any:
        values = kept.setdefault(lm, LRUCache(64))
        return cached(values, key=lambda _, *asked, **named: hashkey(*asked, **named))(compute)(
            lm, *asked, **named
        )

    return known


def tokens(lm: LanguageModel, text: str) -> list[str]:
    """The visible forms of the tokens of a text."""
    return [lm.tokenizer.label(i) for i in _ids(lm, text)]


def merges(lm: LanguageModel, text: str) -> list[str]:
    """The tokens that byte-pair encoding makes of a text, one after the other, the last ones being
    its tokens.
    """
    merging = lm.tokenizer.merging(_ids(lm, text))
    if merging is None:
        raise ValueError(f"{lm.name} does not make its tokens by merges")
    return [lm.tokenizer.label(merge.id) for merge in merging.merges]


def times_as_many(lm: LanguageModel, language: str) -> float:
    """How many times as many tokens as in English the example of the page Tokens in a language
    takes.
    """
    texts = examples()
    return (
        cost(lm.tokenizer, _named(language, "example", texts)).tokens
        / cost(lm.tokenizer, texts[FIRST]).tokens
    )


def vocabulary(lm: LanguageModel) -> int:
    """How many tokens the model knows."""
    return lm.tokenizer.vocab_size


def probability(lm: LanguageModel, prompt: str, token: str) -> float:
    """How likely a token is to come next."""
    return float(probabilities(_logits(lm, prompt))[_token(lm, token)])


def first_token(lm: LanguageModel, prompt: str, text: str) -> str:
    """The visible form of the token with which a text begins where it goes on from a prompt. A
    word has a space before it, unless every character is a token.
    """
    name = GuessableTokens(lm.tokenizer).first_token(prompt, text)
    if name is None:
        raise ValueError(f"{lm.name} has no token with which {text!r:.40} begins")
    return name


@_once
def share_in_data(lm: LanguageModel, sentence: str, word: str) -> float:
    """How often a word came after a sentence in the data that the model was trained on, as a
    share.
    """
    ((share,),) = lm.shares_in_data([sentence], [word])
    return share.value


def logit(lm: LanguageModel, prompt: str, token: str) -> float:
    """The logit of a token to come next."""
    return float(_logits(lm, prompt)[_token(lm, token)])


def rank(lm: LanguageModel, prompt: str, token: str) -> int:
    """The rank of a token as the next one, 1 for the likeliest."""
    logits = _logits(lm, prompt)
    return int((logits > logits[_token(lm, token)]).sum()) + 1


def likeliest(lm: LanguageModel, prompt: str, count: int = 1) -> str | list[str]:
    """The text of the likeliest next token; with `count`, those of the likeliest ones."""
    order = np.argsort(-_logits(lm, prompt), kind="stable")[
        : _within("count", count, 1, MOST_ENTRIES)
    ]
    texts = [_text(lm, int(i)) for i in order]
    if count == 1:
        return texts[0]
    return texts


@_once
def steered(lm: LanguageModel, prompt: str, strength: float) -> str:
    """The text of the likeliest next token with a direction so often in the stream: the one that
    the view Steering of the page Residual stream finds first, between pairs of texts of the model's
    task.
    """
    if lm.task is None:
        raise ValueError(f"{lm.name} has learned no task with pairs of texts")
    name, toward, away = lm.task.opposites()
    direction = lm.direction(toward, away, block=lm.model.config.n_layer // 2, name=name)
    return _text(lm, int(_logits(lm.edited(direction.edit(strength)), prompt).argmax()))


def drawn(
    lm: LanguageModel,
    prompt: str,
    token: str,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
) -> float:
    """The probability that a draw takes a token, with a temperature, among the `top_k` likeliest
    (0: all), then with top-p.
    """
    return float(_draw(lm, prompt, temperature, top_k, top_p).after[_token(lm, token)])


def stay(
    lm: LanguageModel, prompt: str, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0
) -> int:
    """The number of tokens that a draw with these settings may take."""
    return int((_draw(lm, prompt, temperature, top_k, top_p).after > 0).sum())


def _draw(lm: LanguageModel, prompt: str, temperature: float, top_k: int, top_p: float) -> Ledger:
    sampling = Sampling(temperature=temperature, top_k=top_k or None, top_p=top_p)
    return ledger(torch.from_numpy(_logits(lm, prompt)), sampling, lm.tokenizer.unused_ids)


def entropy(lm: LanguageModel, prompt: str) -> float:
    """The entropy of the next token, in nats: how unsure the model is."""
    return math.log(perplexity(probabilities(_logits(lm, prompt))))


def _losses(lm: LanguageModel, text: str) -> torch.Tensor:
    """The loss [position - 1] of each token of a text but the first, which is not guessed, in
    nats.
    """
    ids = _ids(lm, text)
    if len(ids) < 2:
        raise ValueError("the text needs two tokens or more")
    logits = torch.from_numpy(logits_after(lm.model, ids, slice(0, len(ids) - 1))).double()
    return torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none")


def least_expected(lm: LanguageModel, text: str) -> int:
    """The position, from 0, of the token of a text that the model found least likely; at least 1:
    the first is not guessed.
    """
    return int(_losses(lm, text).argmax()) + 1


def loss(lm: LanguageModel, text: str) -> float:
    """The mean loss over the tokens of a text, in nats per token; the first is not guessed."""
    return float(_losses(lm, text).mean())


def continuation(lm: LanguageModel, prompt: str, count: int = 20) -> str:
    """The text that the model writes after a prompt if it always takes the likeliest token."""
    return lm.generate(prompt, min(count, 200), temperature=0.0)


def tokens_per_pass(
    lm: LanguageModel, prompt: str, drafter: str, temperature: float = 1.0, count: int = 100
) -> float:
    """The tokens per pass of the model in speculative decoding, seed 0; the drafter is a model's
    name, or "prompt".
    """
    return _speculated(lm, prompt, drafter, temperature, count).tokens_per_pass or 0.0


def share_accepted(
    lm: LanguageModel, prompt: str, drafter: str, temperature: float = 1.0, count: int = 100
) -> float:
    """The share of the judged drafts that the model accepts, from 0 to 1; the arguments are those
    of `tokens_per_pass`.
    """
    return _speculated(lm, prompt, drafter, temperature, count).acceptance_rate or 0.0


def drafted_continuation(lm: LanguageModel, prompt: str, drafter: str, count: int = 20) -> str:
    """The text after a prompt at temperature 0 in speculative decoding; the drafter is a model's
    name, or "prompt".
    """
    return lm.tokenizer.continuation(_speculated(lm, prompt, drafter, 0.0, count).tokens)


def _speculated(
    lm: LanguageModel, prompt: str, drafter: str, temperature: float, count: int
) -> Speculated:
    by: Any = "prompt" if drafter == "prompt" else load(checkpoints.find(drafter), lm.device.type)
    return lm.speculate(prompt, by, min(count, 200), temperature=temperature)


def answer(lm: LanguageModel, text: str) -> str:
    """The answer of an encoder–decoder."""
    return lm.answer(text)


def source_read(lm: LanguageModel, text: str, place: int) -> str:
    """The token of the source that an encoder–decoder reads most, by the mean of all heads, as it
    writes the token at a place of its answer, from 0.
    """
    source, (written, _) = lm.source(text).tolist(), decode_answer(lm, text)
    before = written[: _within("place", place, 0, len(written) - 1)]
    decoded = [special_tokenizer(lm).start, *before]
    shares = cross_attention.average_heads(
        cross_attention.read_translation(lm.model, source, decoded).cross, None
    ).blocks[0][0]
    return lm.tokenizer.label(source[int(shares[-1].argmax())])


def label(lm: LanguageModel, text: str) -> str:
    """The likeliest label of a text."""
    judged = lm.classify(text)
    return max(judged, key=judged.__getitem__)


def label_probability(lm: LanguageModel, text: str, name: str) -> float:
    """The probability of a label of a text."""
    return _named(name, "label", lm.classify(text))


def attends(lm: LanguageModel, prompt: str, block: int, head: int, query: int, key: int) -> float:
    """The share of its attention that a query gives a key; places count from 0, or from the end, −1
    for the last.
    """
    return float(_pattern(lm, prompt, block, head)[query, key])


def attention_sum(lm: LanguageModel, prompt: str, block: int, head: int, query: int) -> float:
    """The sum of the shares of a query."""
    return float(_pattern(lm, prompt, block, head)[query].sum())


def most_read(lm: LanguageModel, prompt: str, block: int, head: int, query: int = -1) -> int:
    """The place of the token that a query reads most."""
    return int(_pattern(lm, prompt, block, head)[query].argmax())


def _pattern(
    lm: LanguageModel, prompt: str, block: int, head: int
) -> np.ndarray[Any, np.dtype[np.float32]]:
    blocks = attention.patterns(lm.model, _ids(lm, prompt)).blocks
    if not 0 <= block < len(blocks) or not 0 <= head < len(blocks[block]):
        raise ValueError(f"{lm.name} has no head {head} in a block {block}")
    return blocks[block][head]


def best_head(lm: LanguageModel, score: str, prompt: str | None = None) -> str:
    """The head with the largest value of a score, such as "induction", as "block.head": see the
    page Heads.
    """
    best = max(_heads(lm, score, prompt), key=lambda row: row[score])
    return f"{best['block']}.{best['head']}"


def head_score(
    lm: LanguageModel, score: str, block: int, head: int, prompt: str | None = None
) -> float:
    """The value of a score for one head."""
    scores = [
        row[score]
        for row in _heads(lm, score, prompt)
        if (row["block"], row["head"]) == (block, head)
    ]
    if not scores:
        raise ValueError(f"{lm.name} has no head {head} in a block {block}")
    return float(scores[0])


def highest_score(lm: LanguageModel, score: str, prompt: str | None = None) -> float:
    """The largest value of a score that any head has."""
    return max(float(row[score]) for row in _heads(lm, score, prompt))


def _heads(lm: LanguageModel, score: str, prompt: str | None) -> list[dict[str, Any]]:
    rows = [row for row in lm.heads(prompt) if row.get(score) is not None]
    if not rows:
        raise ValueError(f"there is no score {score!r:.40} for the heads of {lm.name}")
    return rows


def contribution(
    lm: LanguageModel, prompt: str, token: str, part: str, against: str | None = None
) -> float:
    """The amount that a part, such as "blocks.1.attention.head.3", adds to a token's logit, or its
    difference from another's.
    """
    return float(lm.attribute(prompt, token, against=against).of(part))


def strongest_head(lm: LanguageModel, prompt: str, token: str, against: str | None = None) -> str:
    """The name of the head that adds most to the logit of a token, or to its difference from
    another's.
    """
    heads = {
        name: value
        for name, value in lm.attribute(prompt, token, against=against).values.items()
        if ".head." in name
    }
    if not heads:
        raise ValueError(f"{lm.name} has no heads")
    return max(heads, key=heads.__getitem__)


def strongest_part(lm: LanguageModel, prompt: str, token: str, against: str | None = None) -> str:
    """The name of the part (a head, an MLP, a bias …) that adds most to the logit of a token, or to
    its difference.
    """
    values = lm.attribute(prompt, token, against=against).values
    return max(values, key=values.__getitem__)


def restored(
    lm: LanguageModel,
    clean: str,
    corrupted: str,
    right: str,
    wrong: str,
    what: str,
    block: int,
    place: int,
) -> float:
    """The share of the answer that comes back with one patch, such as of `what` "resid_pre" at a
    position, or "attention.z" of a head: see the page Patching.
    """
    shares = lm.patch(clean, corrupted, right, wrong, what).shares
    if not (
        -shares.shape[0] <= block < shares.shape[0] and -shares.shape[1] <= place < shares.shape[1]
    ):
        raise ValueError(f"there are {shares.shape[0]} blocks with {shares.shape[1]} places each")
    return float(shares[block, place])


def stream_length(lm: LanguageModel, prompt: str, layer: int, position: int = -1) -> float:
    """The length of the vector of a token after a layer; 0 is the embedding, −1 the last layer."""
    lengths = stream.lengths(lm.stream(prompt), tokens(lm, prompt)).values
    if not (
        -lengths.shape[0] <= layer < lengths.shape[0]
        and -lengths.shape[1] <= position < lengths.shape[1]
    ):
        raise ValueError(f"there are {lengths.shape[0]} layers and {lengths.shape[1]} positions")
    return float(lengths[layer, position])


def lens_rank(lm: LanguageModel, prompt: str, token: str, layer: int) -> int:
    """The rank of a token, 1 for the likeliest, if the model stopped after a layer; 0 is the
    embedding.
    """
    seen = lm.lens(prompt, top=min(lm.tokenizer.vocab_size, 1_000))
    if not -len(seen.top) <= layer < len(seen.top):
        raise ValueError(f"there is no layer {layer}; there are {len(seen.top)}")
    places = np.flatnonzero(np.asarray(seen.top)[layer, -1] == _token(lm, token))
    if not len(places):
        raise ValueError(f"{token!r:.40} is not among the 1,000 likeliest tokens there")
    return int(places[0]) + 1


def learning(lm: LanguageModel, prompt: str, part: str, what: StepNumber) -> float:
    """A number of the step that learning from `prompt` takes, seen from the weight with the
    steepest slope in the tensor `part`: "slope", "before", "after" (the weight), "loss",
    "loss_before" or "loss_after".
    """
    return float(getattr(explaining.learning_step(lm, prompt, part), what))


def parameters(lm: LanguageModel) -> int:
    """How many numbers the model has learned."""
    return parameter_count(lm.model.config)


def setting(lm: LanguageModel, name: str) -> Any:
    """A setting of the architecture, such as "n_head"."""
    if name not in lm.model.config.to_dict():
        raise ValueError(f"there is no setting {name!r:.40}")
    return lm.model.config.to_dict()[name]


def validation_loss(lm: LanguageModel) -> float:
    """The loss on held-out data according to the model's card, in nats."""
    if lm.card.validation_loss is None:
        raise ValueError(f"the card of {lm.name} has no validation loss")
    return lm.card.validation_loss


def validation_loss_at(lm: LanguageModel, of_step: int) -> float:
    """The validation loss that the card has for the evaluation nearest to a step of training, in
    nats.
    """
    return _nearest_loss(lm, of_step, {entry.step: entry.validation for entry in lm.card.losses})


def training_loss_at(lm: LanguageModel, of_step: int) -> float:
    """The training loss that the card has for the evaluation nearest to a step of training, in
    nats.
    """
    return _nearest_loss(lm, of_step, {entry.step: entry.training for entry in lm.card.losses})


def _nearest_loss(lm: LanguageModel, of_step: int, losses: Mapping[int, float | None]) -> float:
    known = {step: loss for step, loss in losses.items() if loss is not None}
    if not known:
        raise ValueError(f"the card of {lm.name} has no losses of its training")
    return float(known[min(known, key=lambda step: abs(step - of_step))])


def accuracy(lm: LanguageModel, of: str = "model") -> float:
    """The share of held-out predictions that were right, according to the model's card: by the
    "model", or the "baseline".
    """
    share = _named(
        of, "accuracy of", {"model": lm.card.accuracy, "baseline": lm.card.baseline_accuracy}
    )
    if share is None:
        raise ValueError(f"the card of {lm.name} has no accuracy of the {of}")
    return share


def right(lm: LanguageModel, on: str = "held out") -> float:
    """The share of a task's answers that are right: in sequences "held out", or in those that it
    "learned" again and again.
    """
    return _named(
        on,
        "answers",
        MEASURES["accuracy"].compute(
            lm.model, measure_input(lm, MEASURES["accuracy"], MeasureQuestion())
        ),
    )


@_once
def _waves(lm: LanguageModel) -> ClockWaves:
    waves: ClockWaves = lm.waves()
    return waves


def frequencies(lm: LanguageModel) -> list[int]:
    """The frequencies that a model of sums on a clock uses: see the view Waves of the page
    Embeddings.
    """
    return list(_waves(lm).used)


def right_with(lm: LanguageModel, kept: str) -> float:
    """The share of all sums on a clock that are right if its embedding keeps only the "used"
    frequencies, or the "others".
    """
    _, used, others = _waves(lm).right
    return _named(kept, "frequencies", {"used": used, "others": others})


def cache_size(lm: LanguageModel, tokens: int = 1) -> float:
    """The bytes of the keys and values that the model keeps for this number of tokens while it
    writes, in float32.
    """
    if (size := lm.costs(1, tokens).cache) is None:
        raise ValueError(f"{lm.name} keeps no keys and values")
    return float(size)


def snapshots(lm: LanguageModel) -> list[int]:
    """The steps of training of which the model has a snapshot."""
    return list(checkpoints.snapshots(checkpoints.find(lm.name)))


def half_done(lm: LanguageModel, measure: str) -> float:
    """The step at which a measure, such as "heads.induction", had made half of its change: see the
    page Over training.
    """
    half = _history(lm, measure).halfway()
    if half is None:
        raise ValueError(f"{measure!r:.40} does not change while {lm.name} is trained")
    return half.step


@_once
def _history(lm: LanguageModel, measure: str) -> History:
    return lm.over_training(measure)


def name(lm: LanguageModel) -> str:
    """The name of the model."""
    return lm.name


def dot(lm: LanguageModel, one: str, other: str) -> float:
    """The dot product of the embeddings of two tokens."""
    rows = embeddings.vectors(lm.model, "embedding")
    return float(
        rows[_token(lm, one)].astype(np.float64) @ rows[_token(lm, other)].astype(np.float64)
    )


def similarity(lm: LanguageModel, one: str, other: str) -> float:
    """The cosine between the embeddings of two tokens."""
    return embeddings.cosine(
        embeddings.vectors(lm.model, "embedding"), _token(lm, one), _token(lm, other)
    )


def nearest(lm: LanguageModel, token: str, space: Space = "embedding") -> str:
    """The text of the token whose vector has the largest cosine with that of a token, in the
    "embedding" or the "unembedding".
    """
    return _text(
        lm,
        embeddings.neighbours(
            embeddings.vectors(lm.model, space), lm.tokenizer.labels(), _token(lm, token), 1
        ).ids[0],
    )


def nearest_within(lm: LanguageModel, characters: str, space: Space = "embedding") -> float:
    """The share of some tokens, each a character of a text, whose nearest token (see `nearest`) is
    one of them too.
    """
    return embeddings.share_beside_own(
        embeddings.vectors(lm.model, space), [_token(lm, character) for character in characters]
    )


def pca_share(lm: LanguageModel, space: Space = "embedding", dimensions: int = 2) -> float:
    """The share of the variance of all tokens' vectors that a picture by PCA with this number of
    dimensions keeps.
    """
    return sum(embeddings.pca(embeddings.vectors(lm.model, space), dimensions)[1])


def position_similarity(lm: LanguageModel, one: int, other: int, kind: str | None = None) -> float:
    """The cosine between the vectors of two positions: of the model's own kind, or of another that
    needs no training.
    """
    vectors = positions.vectors(lm.model, positions.own_kind(lm.model) if kind is None else kind)
    return float(positions.similarity(vectors).values[one, other])


def wave(lm: LanguageModel, dimension: int) -> float:
    """The number of positions after which a dimension of sinusoidal positions, as wide as this
    model, repeats.
    """
    size = lm.model.config.d_model
    return positions.period(_within("dimension", dimension, 0, size - 1), size)


def gradient_reaching(residual: str, depth: int = 12) -> float:
    """The size of the loss's gradient at the input of block 0, as a share of its size after the
    last block, for an untrained model with these residual connections, such as "pre-norm" or
    "none". See the page Gradients.
    """
    _named(residual, "residual", dict.fromkeys(gradients.compared_residuals()))
    return _reaching(_within("depth", depth, 2, _DEEPEST))[residual]


@lru_cache(maxsize=64)
def _reaching(depth: int) -> dict[str, float]:
    return gradients.reaching(gradients.compare_untrained(depth))


@_once
def _weight_circuit(lm: LanguageModel, part: str) -> WeightCircuit:
    return lm.weight_circuit(part)


def circuit_weights(lm: LanguageModel, part: str) -> int:
    """How many single weights answer the questions of a task: see the page Circuit, Weights of a
    task.
    """
    return len(_weight_circuit(lm, part).weights)


def weights_left(lm: LanguageModel, part: str) -> int:
    """How many weights of the model are not 0; `part` is a task that it has learned."""
    return _weight_circuit(lm, part).of


def weight_between(lm: LanguageModel, part: str, source: str, target: str) -> float:
    """The weight that leads from one place to another, among those that answer the questions of a
    task; places as the page Circuit names them, such as "token “" and "stream 5".
    """
    return weight_circuits.weight_between(lm, _weight_circuit(lm, part), source, target).value


def right_without_weight(lm: LanguageModel, part: str, source: str, target: str) -> float:
    """The share of held-out questions that are answered right without that weight; half of them are
    by chance.
    """
    weight = weight_circuits.weight_between(lm, _weight_circuit(lm, part), source, target)
    return weight_circuits.right_without(lm, part, weight)


@_once
def right_without_another(lm: LanguageModel, part: str) -> float:
    """The least share of held-out questions that are answered right without one other weight,
    drawn at random several times.
    """
    found = weight_circuits.check_weights(lm, _weight_circuit(lm, part), part)
    return min(found.right_without_others)


@lru_cache(maxsize=8)
def chance(data: str) -> float:
    """The share of the most frequent label of generated texts, such as "stars": the accuracy of
    always guessing this label.
    """
    labels = _named(data, "texts", GENERATED)().labels
    return max(labels.count(label) for label in set(labels)) / len(labels)


def arrow_length(sparsity: float, feature: int) -> float:
    """How long the arrow of a feature, counted from 1, is in the toy model of superposition of one
    of its sparsities.
    """
    known = {str(one): place for place, one in enumerate(superposition.SPARSITIES)}
    return float(
        _toy().lengths.values[
            _named(str(float(sparsity)), "sparsity", known), _within("feature", feature, 1, 5) - 1
        ]
    )


@lru_cache(maxsize=8)
def found_again(sparsity: float) -> float:
    """How well a dictionary finds the arrows of this toy again: the mean of the largest cosines."""
    arrow_length(sparsity, 1)  # refuses any other sparsity
    return float(superposition.find(_toy(), float(sparsity)).cosines.mean())


@lru_cache(maxsize=1)
def _toy() -> superposition.Toy:
    return superposition.train()


@lru_cache(maxsize=4)
def learned_merges(count: int) -> list[str]:
    """The first tokens that byte-pair encoding makes of the passages that come with gptviz, in
    their order.
    """
    return learn_merges(passages(), _within("count", count, 1, MOST_ENTRIES)).tokenizer.labels()[
        -count:
    ]


def occurrences(text: str, piece: str) -> int:
    """How often a piece occurs in a text."""
    return text.count(piece)


def percent(value: float, digits: int = 0) -> str:
    """A share as a percentage; one above 0 that is too small for these digits is "less than" the
    smallest of them.
    """
    least = 10.0 ** -_within("digits", digits, 0, _MOST_DIGITS)
    if 0 < 100 * value < least / 2:
        return f"< {least:.{digits}f} %"
    return f"{100 * value:.{digits}f} %"


def rounded(value: float, digits: int = 2) -> str:
    """A number in words, with this number of digits after the point and a real minus."""
    return f"{round(value, _within('digits', digits, 0, _MOST_DIGITS)) + 0.0:,.{digits}f}".replace(
        "-", "−"
    )


def quoted(text: str) -> str:
    """The visible form of a token: a space as ␣, a line break as ⏎."""
    return f"“{make_visible(text)}”"


def count(of: Sequence[Any]) -> int:
    """How many entries a list has, or characters a text."""
    return len(of)


_own: dict[str, Function] = {
    name: value
    for name, value in globals().items()
    if getattr(value, "__module__", "") == __name__ and name[0].islower()
}
OF_MODELS = {
    name: function
    for name, function in _own.items()
    if "lm" in inspect.signature(function).parameters
}
"""The functions of this file that run or read a model, their first argument `lm`."""

PLAIN = {function.__name__: function for function in (cleaned, math.exp, math.log, abs, max, min)}
PLAIN |= {name: function for name, function in _own.items() if name not in OF_MODELS}
"""The functions that need no model."""
