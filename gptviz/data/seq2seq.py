"""Pairs as a source: an encoder reads the source, a decoder the right answer up to each token
(teacher forcing).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import torch

from gptviz.generate.decoding import decode_greedily, until_end
from gptviz.model import Config, Transformer
from gptviz.model.kinds import MODEL_KINDS, Kind
from gptviz.text import (
    PAIR_TASKS,
    BPETokenizer,
    CharTokenizer,
    Pairs,
    PairTask,
    SpecialTokensTokenizer,
    Tokenizer,
    pairs_of,
    read_pairs,
    recall,
)
from gptviz.text.datasets.pairs import SourceAndAnswer

from .batches import EVALUATION_TOKENS, NOT_COUNTED, Batch, Data, spread_evenly
from .source import (
    EvaluationData,
    GeneratedSource,
    Share,
    Source,
    SplitSource,
    each_once,
    first_of,
)

# Every evaluation reads all the held-out pairs: this many are enough.
MOST_HELD_OUT_PAIRS = 10_000
MOST_ANSWERED = 2_000  # pairs that exact match is measured on
MOST_CONTEXT = 512  # the most tokens to which the context is enlarged by itself if a file needs it
SAMPLE_PAIRS = 4


def batch_of(pairs: Sequence[SourceAndAnswer], tokenizer: SpecialTokensTokenizer) -> Batch:
    """Pairs as a batch: inputs (start + answer [B, T], source + end [B, S]), targets answer + end
    [B, T], with padding.

    So the decoder predicts every token of the answer, and then the end, from the source and the
    right tokens before it.
    """
    answers = [tokenizer.target_ids(answer) for _, answer in pairs]
    decoder_ids = torch.from_numpy(tokenizer.pad_rows([ids[:-1] for ids in answers]))  # [B, T]
    # [B, S]
    encoder_ids = torch.from_numpy(
        tokenizer.pad_rows([tokenizer.source_ids(source) for source, _ in pairs])
    )
    targets = torch.from_numpy(tokenizer.pad_rows([ids[1:] for ids in answers]))  # [B, T]
    return Batch(
        (decoder_ids, encoder_ids), targets.masked_fill(targets == tokenizer.padding, NOT_COUNTED)
    )


def batches(pairs: Sequence[SourceAndAnswer], tokenizer: SpecialTokensTokenizer) -> Iterator[Batch]:
    """All these pairs, about `EVALUATION_TOKENS` tokens at a time, sorted by length so that there
    is little padding.
    """
    in_order = sorted(pairs, key=lambda pair: (len(pair[0]), len(pair[1])))
    rows = max(EVALUATION_TOKENS // max(_longest_text(in_order, tokenizer), 1), 1)
    for start in range(0, len(in_order), rows):
        yield batch_of(in_order[start : start + rows], tokenizer)


class PairData:
    """Pairs drawn to train on by `draw`, and those held out; `known` are all those trained on,
    empty if every pair is new.
    """

    def __init__(
        self,
        tokenizer: SpecialTokensTokenizer,
        draw: Callable[[int, np.random.Generator], list[SourceAndAnswer]],
        held_out: list[SourceAndAnswer],
        known: Sequence[SourceAndAnswer] = (),
    ) -> None:
        self.tokenizer = tokenizer
        self.draw = draw
        self.held_out = held_out
        self.known = known

    def training(self, size: int, seed: int) -> Batch:
        return batch_of(self.draw(size, np.random.default_rng(seed)), self.tokenizer)

    def validation(self) -> Iterator[Batch]:
        return iter(self._validation)

    def trained_on(self) -> Iterator[Batch]:
        return iter(self._trained_on)

    @cached_property
    def _validation(self) -> list[Batch]:
        return list(batches(self.held_out, self.tokenizer))

    @cached_property
    def _trained_on(self) -> list[Batch]:
        return list(
            batches(
                [self.known[i] for i in spread_evenly(len(self.held_out), len(self.known))],
                self.tokenizer,
            )
        )


def answers(
    model: Transformer, tokenizer: SpecialTokensTokenizer, sources: Sequence[str]
) -> list[tuple[str, bool]]:
    """The greedy answer to each source, and whether it ends (else it was cut); a ValueError if a
    source is too long.
    """
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    by_index: dict[int, tuple[str, bool]] = {}
    rows = max(EVALUATION_TOKENS // model.config.context_length, 1)
    for first in range(0, len(order), rows):
        some = order[first : first + rows]
        ids = torch.from_numpy(tokenizer.pad_rows([tokenizer.source_ids(sources[i]) for i in some]))
        for i, row in zip(
            some, decode_greedily(model, ids, tokenizer.start, tokenizer.end).cpu(), strict=True
        ):
            answer_ids, ended = until_end(row, tokenizer.end)
            by_index[i] = tokenizer.decode(answer_ids), ended
    return [by_index[i] for i in range(len(sources))]


def exact_match(
    model: Transformer, tokenizer: SpecialTokensTokenizer, pairs: Sequence[SourceAndAnswer]
) -> float:
    """The share of sources whose greedy answer ends, and equals the right one in every character; a
    ValueError without pairs.
    """
    if not pairs:
        raise ValueError("there is nothing to answer: no pair was given")
    given = answers(model, tokenizer, [source for source, _ in pairs])
    return sum(
        answer == (right, True) for answer, (_, right) in zip(given, pairs, strict=True)
    ) / len(pairs)


class _Seq2SeqSource(Source):
    """The common base of tasks and files of pairs."""

    model_kind: ClassVar[Kind] = "encoder-decoder"

    def fit_config(self, config: Config, tokenizer: Tokenizer) -> Config:
        self._check(config)
        return super().fit_config(config, tokenizer)

    def _check(self, config: Config) -> None:
        if config.kind != "encoder-decoder":
            raise ValueError(
                f"{self.title} has pairs of a source and an answer: train an encoder–decoder on "
                f"it (seq2seq), not {MODEL_KINDS[config.kind].with_article}"
            )

    def checked_tokenizer(self, tokenizer: Tokenizer, config: Config) -> SpecialTokensTokenizer:
        """The tokenizer, which has special tokens, those of the model."""
        self._check(config)
        if not isinstance(tokenizer, SpecialTokensTokenizer):
            raise ValueError(
                "pairs need the special tokens start, end and padding, and these tokens "
                f"({tokenizer.kind}) have none: "
                "take a tokenizer learned on pairs"
            )
        if config.padding != tokenizer.padding:
            raise ValueError(
                f"padding is {config.padding} in the model and {tokenizer.padding} among the "
                "tokens: leave it out"
            )
        return tokenizer

    def evaluation(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        *,
        everything: bool = False,
        labels: Sequence[str] = (),
    ) -> EvaluationData:
        """The pairs held out, and how many of them the model answers exactly."""
        data = self.data(tokenizer, model.config)
        return EvaluationData(data.validation(), shares=self._shares(model, tokenizer, data))

    def _shares(self, model: Transformer, tokenizer: Tokenizer, data: Data) -> tuple[Share, ...]:
        return (
            Share(
                "exact_match",
                "exact match",
                self.measure_model(model, tokenizer, data)["exact_match"],
            ),
        )

    def sample(self, model: Transformer, tokenizer: Tokenizer, data: Data) -> str:
        """Its answers to the first sources held out, with the right answer wherever it is wrong."""
        assert isinstance(tokenizer, SpecialTokensTokenizer)
        assert isinstance(data, PairData)
        some = data.held_out[:SAMPLE_PAIRS]
        given = answers(model, tokenizer, [source for source, _ in some])
        lines = []
        for (source, right), (answer, ended) in zip(some, given, strict=True):
            if answer == right and ended:
                wrong = ""
            else:
                wrong = f"   (right: {right})"
            lines.append(f"{source} → {answer}{'' if ended else ' …'}{wrong}")
        return "\n".join(lines)

    def measure_model(
        self, model: Transformer, tokenizer: Tokenizer, data: Data, rows: int | None = None
    ) -> dict[str, Any]:
        """The share of held-out sources, of the first `MOST_ANSWERED`, that it answers exactly."""
        assert isinstance(tokenizer, SpecialTokensTokenizer)
        assert isinstance(data, PairData)
        some = data.held_out[:MOST_ANSWERED]
        if rows is None:
            some = some
        else:
            some = [some[i] for i in spread_evenly(rows, len(some))]
        return {"exact_match": exact_match(model, tokenizer, some)}


@dataclass(frozen=True)
class PairTaskSource(_Seq2SeqSource, GeneratedSource):
    """A task that makes pairs whose answers it knows."""

    kind: ClassVar = "pair_task"

    task: PairTask
    floor = 0.0  # the answer follows from the source

    def data(self, tokenizer: Tokenizer, config: Config) -> PairData:
        checked = self.checked_tokenizer(tokenizer, config)
        if checked.to_json() != self.task.tokenizer.to_json():
            raise ValueError(
                f"{self.task.name} has tokens of its own: take a model trained on it, or a file "
                "of pairs instead"
            )
        if config.context_length < self.tokens(config):
            raise ValueError(
                f"context_length is {config.context_length}; {self.task.name} needs "
                f"{self.tokens(config)} or more"
            )
        return PairData(checked, self.task.pairs, self.task.held_out())

    def sources(self, count: int) -> tuple[list[str], list[str]]:
        """`count` sources like those that are trained on, and those held out."""
        drawn = self.task.pairs(count, np.random.default_rng(0))
        return [source for source, _ in drawn], [source for source, _ in self.task.held_out()]

    @property
    def has_places(self) -> bool:
        return self.task.answer_length is not None

    def tokens(self, config: Config) -> int:
        """Those of the longest source and its end."""
        return self.task.longest + 1

    def origin(self) -> dict[str, Any]:
        return {"task": self.task.name, "floor": self.floor}

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "pair_task": self.task.name}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> PairTaskSource:
        name = content["pair_task"]
        if name not in PAIR_TASKS:
            raise ValueError(
                f"there is no task {name!r:.80} of pairs; there are {', '.join(PAIR_TASKS)}"
            )
        return cls(PAIR_TASKS[name])


@dataclass(frozen=True)
class PairSource(_Seq2SeqSource, SplitSource[tuple[SourceAndAnswer, ...]]):
    """The user's pairs: a `fraction` of the sources, drawn by `seed`, is to train on; the others
    are held out.
    """

    kind: ClassVar = "pairs"
    tokenizer_kinds: ClassVar = ("characters", "bpe")
    read = staticmethod(read_pairs)
    parse = staticmethod(pairs_of)

    pairs: Pairs = field(hash=False)
    fraction: float = 0.9
    seed: int = 0

    @property
    def rows(self) -> Pairs:
        return self.pairs

    def new_split(self) -> tuple[tuple[SourceAndAnswer, ...], tuple[SourceAndAnswer, ...]]:
        """See `split`; at most `MOST_HELD_OUT_PAIRS` pairs are held out."""
        training, held_out = self.pairs.split(self.fraction, self.seed)
        if len(held_out) > MOST_HELD_OUT_PAIRS:
            rows = np.random.default_rng(self.seed).choice(
                len(held_out), MOST_HELD_OUT_PAIRS, replace=False
            )
            held_out = [held_out[row] for row in sorted(rows.tolist())]
        return tuple(training), tuple(held_out)

    def excerpts(self) -> Sequence[str]:
        return first_of(text for pair in self.split()[0] for text in pair)

    def data(self, tokenizer: Tokenizer, config: Config) -> PairData:
        checked = self.checked_tokenizer(tokenizer, config)
        training, held_out = self.split()
        if config.context_length < (needed := self.longest_text(checked)):
            raise ValueError(
                f"context_length is {config.context_length}; the longest text of {self.title} has "
                f"{needed:,} tokens with its "
                f"end: shorten it, or set context_length={needed}"
            )

        def draw(size: int, rng: np.random.Generator) -> list[SourceAndAnswer]:
            return [training[i] for i in rng.integers(len(training), size=size).tolist()]

        return PairData(checked, draw, list(held_out), training)

    def sources(self, count: int) -> tuple[list[str], list[str]]:
        """Up to `count` sources that are trained on, and those held out."""
        training, held_out = self.split()
        return [source for source, _ in training[:count]], [source for source, _ in held_out]

    def longest_text(self, tokenizer: SpecialTokensTokenizer) -> int:
        """Tokens of the longest source or answer, with its end."""
        return _longest_text(self.pairs.pairs, tokenizer)

    def fit_config(self, config: Config, tokenizer: Tokenizer) -> Config:
        """`config` with the vocabulary's size, and a context that takes the longest text, up to
        `MOST_CONTEXT` tokens.
        """
        fitted = super().fit_config(config, tokenizer)
        needed = self.longest_text(self.checked_tokenizer(tokenizer, fitted))
        return replace(fitted, context_length=max(fitted.context_length, min(needed, MOST_CONTEXT)))

    def all_pairs(self, tokenizer: Tokenizer, config: Config) -> PairData:
        """All pairs, as if they were held out."""
        data = self.data(tokenizer, config)
        return PairData(data.tokenizer, data.draw, list(self.pairs.pairs))

    def evaluation(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        *,
        everything: bool = False,
        labels: Sequence[str] = (),
    ) -> EvaluationData:
        """The pairs (held out, or all) and how many the model answers exactly."""
        checked = self.checked_tokenizer(tokenizer, model.config)
        if (needed := self.longest_text(checked)) > (most := model.config.context_length):
            raise ValueError(
                f"the longest text of {self.title} has {needed:,} tokens with its end; the model "
                f"reads at most {most:,}: "
                "shorten it, or take it out"
            )
        data = (self.all_pairs if everything else self.data)(checked, model.config)
        sample = each_once(chain.from_iterable(self.pairs.pairs), checked)
        return EvaluationData(data.validation(), sample, self._shares(model, checked, data))

    def facts(self) -> dict[str, int]:
        training, held_out = self.split()
        return {
            "pairs": len(self.pairs.pairs),
            "pairs to train on": len(training),
            "pairs held out": len(held_out),
        }

    @property
    def example(self) -> str | None:
        """The first source held out that is not blank, or None if all are."""
        return next((source for source, _ in self.split()[1] if source.strip()), None)

    def tokenizer(self, kind: str, vocab_size: int) -> SpecialTokensTokenizer:
        """The characters of all pairs, or byte pairs learned on them, with the special tokens.
        Sources and answers share them.
        """
        text = "".join(source + answer for source, answer in self.pairs.pairs)
        return SpecialTokensTokenizer(
            BPETokenizer.learn(text, vocab_size) if kind == "bpe" else CharTokenizer(text)
        )

    def tokens(self, config: Config) -> int:
        """The context: the length of the pairs is known only with their tokens."""
        return config.context_length

    def origin(self) -> dict[str, Any]:
        n_used = sum(map(len, self.split()))
        if n_used == len(self.pairs.pairs):
            rest = "the rest"
        else:
            rest = f"{MOST_HELD_OUT_PAIRS:,} pairs of the rest"
        split = (
            f"{self.fraction:.0%} of the sources, drawn by seed {self.seed}, to train, {rest} to "
            "validate"
        )
        return {"corpus": self.pairs.name, "corpus_sha256": self.pairs.sha256, "split": split}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> PairSource:
        name = content["pairs"]
        pairs = Pairs.from_canonical(name, recall(name, content["sha256"]).text)
        return cls(pairs, float(content.get("fraction", 0.9)), int(content.get("seed", 0)))


def _longest_text(pairs: Sequence[SourceAndAnswer], tokenizer: SpecialTokensTokenizer) -> int:
    """Tokens of the longest source or answer, with its end."""
    return max((len(tokenizer.source_ids(text)) for pair in pairs for text in pair), default=0)
