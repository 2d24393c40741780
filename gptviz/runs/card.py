"""The card of a checkpoint, card.json: how the model was made and how good it is.

A card may come from an older version, from another machine or from a damaged disk. It is checked
once, here: a field that the card lacks, or whose value is impossible, is None (or empty), and the
rest is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from gptviz.text.chat import ChatTemplate

if TYPE_CHECKING:
    from gptviz.pretrained.sources.source import Opened
    from gptviz.train.engine import Engine

LARGEST_NUMBER = 1e300
LARGEST_COUNT = 10**12
LONGEST_TIME = 1e12  # seconds


def values_of(opened: Opened) -> dict[str, Any]:
    """The values of the card of a model that another program made, from its source."""
    return {
        "family": opened.family,
        "notes": list(opened.notes),
        **({"licence": opened.licence} if opened.licence else {}),
        **({"chat": asdict(opened.chat)} if opened.chat else {}),
        **({"end_tokens": list(opened.ends)} if opened.ends else {}),
        **({"labels": list(opened.labels)} if opened.labels else {}),
        **({"languages": list(opened.languages)} if opened.languages else {}),
    }


def finite_or_none(value: object) -> float | None:
    """`value` if it is a finite number, else None."""
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < LARGEST_NUMBER
    ):
        return float(value)
    return None


def count(value: object) -> int | None:
    """`value` if it is a whole number from 0 to `LARGEST_COUNT`, else None."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT:
        return value
    return None


def share(value: object) -> float | None:
    """`value` if it is a number from 0 to 1, else None."""
    number = finite_or_none(value)
    if number is not None and 0 <= number <= 1:
        return number
    return None


def shares(value: object) -> tuple[float | None, ...] | None:
    """`value` as a row of shares, each None if it is no share; or None if `value` is no list."""
    if isinstance(value, list):
        return tuple(map(share, value))
    return None


@dataclass(frozen=True, kw_only=True)
class LossEntry:
    """An evaluation made during training, as the card has it."""

    step: int  #: the number of steps before it
    #: the loss on held-out data, in nats per token (for a classifier: per text)
    validation: float | None = None
    training: float | None = None  #: the mean training loss of the last steps
    seconds: float | None = None  #: the time that training had taken
    accuracy: float | None = None  #: the share of predictions that were right
    others: Mapping[str, float] = field(default_factory=dict)  #: other numbers measured, by name

    @classmethod
    def from_json(cls, value: object) -> LossEntry | None:
        """The entry written down as `value`, or None if that has no step."""
        if not isinstance(value, dict) or (step := count(value.get("step"))) is None:
            return None
        numbers = {
            name: number
            for name, given in value.items()
            if name != "step" and (number := finite_or_none(given)) is not None
        }
        known = {
            name: numbers.pop(name)
            for name in ("validation", "training", "seconds", "accuracy")
            if name in numbers
        }
        return cls(step=step, others=numbers, **known)

    def to_json(self) -> dict[str, float]:
        """The entry as a JSON object."""
        content = {
            name: value
            for name, value in asdict(self).items()
            if name != "others" and value is not None
        }
        return content | dict(self.others)


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    return None


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(text for text in value if isinstance(text, str))
    return ()


def _pair(value: object) -> tuple[str, str] | None:
    texts = _texts(value)
    if len(texts) == 2:
        return (texts[0], texts[1])
    return None


def _object(value: object) -> Mapping[str, Any] | None:
    if isinstance(value, dict):
        return value
    return None


def _names(value: object) -> Mapping[str, str] | None:
    if isinstance(value, dict):
        return {key: name for key, name in value.items() if isinstance(name, str)}
    return None


def _settings(value: object) -> Mapping[str, Any] | None:
    """A table of settings: those that are a word, true, false, null or a finite number, or None if
    it is no table.
    """
    if not isinstance(value, dict):
        return None
    return {
        name: setting
        for name, setting in value.items()
        if isinstance(setting, str | bool | None) or finite_or_none(setting) is not None
    }


def _counts(value: object) -> Mapping[str, int] | None:
    if value is None:
        return None
    if isinstance(value, dict):
        return {key: number for key, number in value.items() if count(number) is not None}
    return {}


def _labels(value: object) -> tuple[str, ...] | None:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    return None


def _chat(value: object) -> ChatTemplate | None:
    """How a chat is written, or None if it is not written down as it should be."""
    fields = value if isinstance(value, dict) else {}
    template = fields.get("template")
    tokens = fields.get("tokens")
    if not isinstance(template, str) or not isinstance(tokens, dict):
        return None
    return ChatTemplate(
        template, {name: text for name, text in tokens.items() if isinstance(text, str)}
    )


def _ids(value: object) -> tuple[int, ...]:
    if isinstance(value, list):
        return tuple(number for number in value if count(number) is not None)
    return ()


def _confusion(value: object) -> tuple[tuple[int, ...], ...] | None:
    """The rows of a square table of counts, or None if it is none."""
    rows = value if isinstance(value, list) else [None]
    if any(
        not isinstance(row, list) or len(row) != len(rows) or None in map(count, row)
        for row in rows
    ):
        return None
    return tuple(map(tuple, rows))


def _wall_seconds(value: object) -> float:
    seconds = finite_or_none(value)
    if seconds is not None and 0 <= seconds < LONGEST_TIME:
        return seconds
    return 0.0


def _losses(value: object) -> tuple[LossEntry, ...]:
    entries = map(LossEntry.from_json, value) if isinstance(value, list) else ()
    return tuple(entry for entry in entries if entry is not None)


def _read_field(by: Callable[[object], Any], key: str = "") -> Any:
    """A field whose value is read `by` this function, under this key of the card or else under its
    own name.
    """
    return field(default=by(None), metadata={"by": by, "key": key})


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card as read. `values[key]` is a value as it is written down, also one that has no field
    here.
    """

    values: Mapping[str, Any] = field(default_factory=dict)  #: everything as it is written down
    #: the experiment the model was made for; for historical reasons its key is "preset"
    plan: str | None = _read_field(_text, "preset")
    command: str | None = _read_field(_text)  #: the command line that makes the model again
    task: str | None = _read_field(_text)  #: the generated task it learned from
    corpus: str | None = _read_field(_text)  #: the name of the texts it learned from
    corpus_sha256: str | None = _read_field(_text)  #: the hash of these texts
    #: the names of the labels that a classifier tells apart
    labels: tuple[str, ...] | None = _read_field(_labels)
    #: how many texts a classifier was trained on ("training") and how many were held out
    #: ("held_out")
    texts: Mapping[str, int] | None = _read_field(_counts)
    #: how it was trained: the fields of a `Recipe` as they are written down
    recipe: Mapping[str, Any] | None = _read_field(_settings)
    #: the data it learned from, for `source_from`
    source: Mapping[str, Any] | None = _read_field(_object)
    steps: int | None = _read_field(count)  #: how many steps of training were taken
    seconds: float | None = _read_field(finite_or_none)  #: the time they took
    #: the time that passed meanwhile, 0 if it is not known
    wall_seconds: float = _read_field(_wall_seconds)
    #: the last loss on held-out data, in nats per token (for a classifier: per text)
    validation_loss: float | None = _read_field(finite_or_none)
    #: the evaluations made during training, in the order they were made
    losses: tuple[LossEntry, ...] = _read_field(_losses)
    floor: float | None = _read_field(
        finite_or_none
    )  #: the lowest loss that any model can have on this data
    accuracy: float | None = _read_field(share)  #: the share of held-out predictions that are right
    #: the same for rows that the model was trained on
    training_accuracy: float | None = _read_field(share)
    #: the same by place in the row; None for a place where no prediction counts
    accuracy_by_place: tuple[float | None, ...] | None = _read_field(shares)
    baseline_accuracy: float | None = _read_field(share)  #: the share that a baseline gets right
    #: the number of held-out texts by right and predicted label: [label][predicted]
    confusion: tuple[tuple[int, ...], ...] | None = _read_field(_confusion)
    #: for a run that diverged, a sentence that says so and what to change (see `divergence`)
    diverged: str | None = _read_field(_text)
    #: how a chat is written as one text for the model, if its source tells it
    chat: ChatTemplate | None = _read_field(_chat)
    end_tokens: tuple[int, ...] = _read_field(_ids)  #: the tokens that end a text
    family: str | None = _read_field(_text)  #: the usual name of models like an imported one
    imported_from: str | None = _read_field(
        _text
    )  #: where it came from: its name on the hub, or a path
    #: of a model whose snapshots are revisions on the hub, their names by step
    revisions: Mapping[str, str] | None = _read_field(_names)
    licence: str | None = _read_field(_text)  #: its licence, as its files or the hub name it
    #: facts that a reader should know, of an imported model or of what a run cannot read, in
    #: sentences
    notes: tuple[str, ...] = _read_field(_texts)
    #: the language that an imported translator reads and the one it writes, as its files name them
    languages: tuple[str, str] | None = _read_field(_pair)
    #: the name of the model that was begun together with it: only their data differ
    twin: str | None = _read_field(_text)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Card:
        """The card written down as `values`, of this version or an older one."""
        read = {
            field.name: field.metadata["by"](values.get(field.metadata["key"] or field.name))
            for field in fields(cls)
            if field.metadata
        }
        return cls(values=values, **read)

    # What follows needs torch, for which a list of models does not wait.

    @property
    def architecture(self) -> str | None:
        """The name of the preset it was built from. Older cards name only the plan, which may have
        the name of its preset.
        """
        from gptviz.model import PRESETS

        return _text(self.values.get("architecture")) or (
            self.plan if self.plan in PRESETS else None
        )

    @property
    def engine(self) -> Engine | None:
        """The precision it was computed in, and whether it was compiled."""
        from gptviz.train.engine import Engine

        value = self.values.get("engine")
        try:
            if isinstance(value, dict) and value:
                return Engine.from_dict(value)
            return None
        except ValueError:
            return None

    def to_json(self) -> dict[str, Any]:
        """The card as a JSON object: everything that was read, also keys that this version does not
        know.
        """
        return dict(self.values)

    def change_values(self, **values: Any) -> Card:
        """A card in which these keys have these JSON values."""
        return Card.from_json({**self.values, **values})
