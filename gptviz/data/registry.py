"""The classes of sources: a source by its name, from a file, or from a card."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from gptviz.model.kinds import Kind
from gptviz.text import GENERATED, PAIR_TASKS, TASKS, Task, Tokenizer, corpora, task

from .classification import LabelledSource
from .seq2seq import PairSource, PairTaskSource
from .source import FileSource, Source
from .text import TaskSource, TextSource

SOURCES: dict[str, type[Source]] = {
    source.kind: source
    for source in (TextSource, TaskSource, LabelledSource, PairTaskSource, PairSource)
}
"""The sources by their kind on a card."""

FROM_FILES: dict[Kind, type[FileSource]] = {
    source.model_kind: source for source in (TextSource, LabelledSource, PairSource)
}
"""The sources that can be read from files, by the kind of model that learns from them."""


def source_named(name: str, fraction: float = 0.9) -> Source:
    """The data called `name`: a task (of sequences or of pairs), a corpus, or generated texts with
    labels.

    A ValueError names the data that exist if there are none of this name; a
    `CorpusUnavailableError` if they cannot be opened now.
    """
    if name in TASKS:
        return TaskSource(task(name))
    if name in PAIR_TASKS:
        return PairTaskSource(PAIR_TASKS[name])
    if name in GENERATED:
        return LabelledSource(GENERATED[name](), fraction)
    offers = {offer.name: offer for offer in corpora()}
    if name not in offers:
        raise ValueError(
            f"there are no data named {name[:80]!r}; known are the texts {', '.join(offers)}, the "
            "texts with labels "
            f"{', '.join(GENERATED)} and the tasks {', '.join((*TASKS, *PAIR_TASKS))}"
        )
    return TextSource(offers[name].open(), fraction)


def source_of_path(path: str | PathLike[str], model_kind: Kind, fraction: float = 0.9) -> Source:
    """A file or a folder as data for models of this kind (see `from_file`); if there is none at
    `path`, `source_named` so.
    """
    if not Path(path).exists():
        return source_named(str(path), fraction)
    return FROM_FILES[model_kind].from_file(path, fraction)


def kind_of(content: dict[str, Any]) -> Any:
    """The kind of source that a card describes: a key of `SOURCES`, or something else if another
    program wrote the card.

    Older cards do not name the kind: then it follows from their keys.
    """
    old_keys = (LabelledSource.kind, PairTaskSource.kind, PairSource.kind, TaskSource.kind)
    return content.get(
        "kind", next((kind for kind in old_keys if kind in content), TextSource.kind)
    )


def source_from(content: dict[str, Any]) -> Source:
    """The source that `to_dict` wrote down. A ValueError if nothing like that was written, a
    `CorpusUnavailableError` if its data are not here.
    """
    try:
        kind = kind_of(content)
        if kind not in SOURCES:
            raise ValueError(
                f"the card names data of the kind {kind!r:.80}; there are {', '.join(SOURCES)}"
            )
        return SOURCES[kind].from_dict(content)
    except (AttributeError, KeyError, OverflowError, TypeError) as error:
        raise ValueError(f"the card does not say what the model learned from ({error})") from None


def task_of(content: Mapping[str, Any] | None) -> Task | None:
    """The task whose sequences a decoder has learned, from the source on its card; None for other
    data, or if unreadable.
    """
    if not content or kind_of(dict(content)) != TaskSource.kind:
        return None
    try:
        source = source_from(dict(content))
    except ValueError:  # the card was not written by gptviz
        return None
    if isinstance(source, TaskSource):
        return source.task
    return None


def learned_task(content: Mapping[str, Any] | None, tokenizer: Tokenizer) -> Task | None:
    """The task of `task_of`, where a decoder with this tokenizer reads it in the task's own
    tokens.
    """
    task = task_of(content)
    has_its_tokens = task is not None and tokenizer.to_json() == task.tokenizer.to_json()
    if has_its_tokens:
        return task
    return None


def held_out(content: Mapping[str, Any] | None) -> str:
    """What is held out of the training of a model with this source on its card, in words that go on
    after "over".
    """
    task = task_of(content)
    if task is None or task.is_new:
        return "data that the model was not trained on"
    return "rows that are drawn to measure the model, although it was trained on equal ones"
