"""The base of all generated tasks: a generator of token sequences whose best possible loss is
known.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from math import log
from typing import ClassVar, Final, Self

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import NDArray

from gptviz.text.tokenizers.base import Ids, Tokenizer

HELD_OUT: Final = 2_000
"""How many sequences of a task, or pairs, are held out to validate on."""
LONGEST_TEXT: Final = 400
# No training reads so many sequences that one of these many comes again by chance.
MOST_READ: Final = 1e9
"""The most characters of a setting that is a text."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Sequences of one task, all of one length."""

    ids: Ids  #: [count, length], the whole sequences
    #: [count, length − 1], whether the prediction of token t + 1 from the tokens up to t counts in
    #: the loss
    counted: NDArray[np.bool_]
    #: [count], which of the `parts` of its task each sequence belongs to, or None if the task has
    #: no parts
    part: Ids | None = None


@dataclass(frozen=True)
class Contrast:
    """Two prompts of equally many tokens that differ in the words that decide what the next word
    is.
    """

    part: str  #: the task that they belong to
    title: str  #: the thing to know, in a few words
    about: str  #: the thing that decides, in a sentence
    clean: str  #: a prompt that is followed by `right`
    corrupted: str  #: the same prompt with other words, so that it is followed by `wrong`
    right: str  #: the answer to the clean prompt, a token
    wrong: str  #: the answer to the corrupted one, a token


@dataclass(frozen=True, eq=False)
class Choices:
    """Sequences of one task, each with a place where one token is right and another is wrong."""

    ids: Ids  #: [count, length]
    at: Ids  #: [count], the position after which the token is to be known
    right: Ids  #: [count], the token that is right there
    wrong: Ids  #: [count], another answer of the task, which is wrong there


@dataclass(frozen=True)
class Task(ABC):
    """A generator of sequences with something to learn in them. The fields are its settings.

    Raises:
        ValueError: a setting is not a whole number within its `limits`, or one that is a text is
            none, or too long; the message names it and what it may be.
    """

    name: ClassVar[str]  #: what it is called
    sentence: ClassVar[str]  #: what the sequences are and what there is to learn, in one sentence
    #: how its answers are written, in a sentence, where people write them otherwise; else empty
    writes: ClassVar[str] = ""
    #: the names of the tasks that it mixes; empty if it is one task
    parts: ClassVar[tuple[str, ...]] = ()
    #: whether all sequences have the same form, so that the accuracy at each place means something
    has_places: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, str):
                if not isinstance(value, str) or len(value) > LONGEST_TEXT:
                    raise ValueError(
                        f"{field.name} of the task {self.name} is {value!r:.80}; it must be a "
                        f"text of at most {LONGEST_TEXT} "
                        "characters"
                    )
            elif not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(
                    f"{field.name} of the task {self.name} is {value!r:.80}; it must be a whole "
                    "number"
                )
        for setting, (least, most) in self.limits().items():
            value = getattr(self, setting)
            if not least <= value <= most:
                if least < most:
                    allowed = f"from {least:,} to {most:,}"
                else:
                    allowed = f"{least:,} here"
                raise ValueError(
                    f"{setting} of the task {self.name} is {value!r:.80}; it must be {allowed}"
                )

    def settings(self) -> dict[str, int | str]:
        """The settings as JSON values; `task(name, **settings)` makes an equal task."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def changed_settings(self) -> dict[str, int | str]:
        """Those of the settings that are not as they are by default."""
        return {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        }

    @property
    def sequence_length(self) -> int | None:
        """How many tokens each sequence has; None where a token ends it, so that some are
        shorter.
        """
        if self.end is None:
            return self.length
        return None

    @property
    def title(self) -> str:
        """Its name, and the settings that are not as they are by default: "jobs (nurse 10, doctor
        90)".
        """
        changed = ", ".join(
            f"{setting} {value}" for setting, value in self.changed_settings().items()
        )
        if changed:
            return f"{self.name} ({changed})"
        return self.name

    def limits(self) -> dict[str, tuple[int, int]]:
        """The least and the greatest value of each setting that is a number, given those before: a
        file cannot ask for more.
        """
        return {}

    @property
    @abstractmethod
    def length(self) -> int:
        """Tokens per sequence. A model needs a context of one less, because nothing is predicted
        from the last token.
        """

    @property
    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that turns the ids of the sequences into text, and back."""

    @property
    def end(self) -> int | None:
        """The token that follows the last one of a sequence and fills the rest, or None if all
        sequences are equally long.
        """
        return None

    @property
    @abstractmethod
    def floor(self) -> float:
        """The expected loss of the best possible model, in nats per counted prediction."""

    @property
    def is_new(self) -> bool:
        """Whether a sequence that is held out never comes in training, or as good as never: here
        because there are more different ones than any training reads.
        """
        return self.floor * (self.length - 1) > log(MOST_READ)

    @abstractmethod
    def examples(self, count: int, rng: Generator) -> Examples:
        """`count` sequences to train on, drawn only by `rng`."""

    def held_out(self, count: int = HELD_OUT, seed: int = 0) -> Examples:
        """`count` sequences to validate on, always the same ones: drawn from random numbers that no
        seed gives to `examples`.
        """
        return self.examples(count, validation_rng(seed))

    def all_learned(self) -> Examples | None:
        """All sequences that it trains on, each once, if they are so few that they come again and
        again; else None.
        """
        return None

    def example_prompt(self) -> str:
        """The beginning of a held-out sequence as text; what follows is to be predicted, and it
        fits in the context.
        """
        return self.example_prompts(1)[0][0]

    def example_prompts(self, count: int, part: str = "") -> list[tuple[str, int]]:
        """The beginnings of `count` held-out sequences as text, and the token that follows each:
        the first that counts, or where all count the last. With a `part`, only sequences of this
        one of the `parts`.
        """
        held_out = self.held_out(count * max(1, len(self.parts)))
        is_asked = np.ones(len(held_out.ids), bool)
        if held_out.part is not None and part:
            is_asked = held_out.part == self.parts.index(part)
        prompts = []
        for ids, counted in zip(
            held_out.ids[is_asked][:count], held_out.counted[is_asked], strict=False
        ):
            if counted.all():
                end = len(counted)
            else:
                end = int(counted.argmax()) + 1
            prompts.append((self.tokenizer.decode(ids[:end]), int(ids[end])))
        return prompts

    def token_labels(self, ids: Ids) -> dict[str, Ids]:
        """What is known of the tokens of whole sequences `ids` [count, length] and stands nowhere
        in them, by name, for probes.

        The values are numbers [count, length], −1 for a token of which it is not known.
        """
        return {}

    def as_people_write(self, text: str) -> str:
        """A sequence of this task as people write it, with the right answer if it has another one;
        empty where that is `text`.
        """
        return ""

    def twin(self) -> Self:
        """The same task with other settings, to train a second model on and to compare: itself if
        it has no such settings.
        """
        return self

    def questions(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Sentences to complete, and the words of interest after each: what pages ask models of
        this task first. Both empty if there is nothing that every one of them could be asked.
        """
        return (), ()

    def opposites(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Pairs of texts that differ in one thing: its name, one text of each pair, and the others;
        all empty without any.
        """
        return "", (), ()

    def contrasts(self) -> tuple[Contrast, ...]:
        """Prompts with known answers, which pages suggest for models of this task; empty if the
        task has none.
        """
        return ()

    def choices(self, part: str, count: int, *, held_out: bool = False) -> Choices | None:
        """`count` sequences of one of its `parts`, drawn as for training or as those to validate
        on, and a wrong answer beside the right one; None if the task has no wrong answers of the
        kind.
        """
        return None


def validation_rng(seed: int) -> Generator:
    """Random numbers that no training draws: no `default_rng(seed)` has a spawn key."""
    return default_rng(SeedSequence(seed, spawn_key=(0,)))


def all_counted(ids: Ids) -> Examples:
    """Sequences in which every prediction counts."""
    return Examples(ids, np.ones((len(ids), ids.shape[1] - 1), bool))
