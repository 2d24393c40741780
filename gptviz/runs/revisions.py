"""Public checkpoints of a training: revisions of a repository on the hub become the snapshots of
one model here, so that the slider of every page steps through them.

They are fetched one at a time. Of each, the weights are kept, in the types that they are stored in;
its files are removed before the next one is fetched. The model itself is the last of them. It is
there as soon as that has arrived, and every further revision is added to it: an import that was
stopped has what it had, and the next one goes on.

Where the names of all revisions say a step (`step1000`, `step1000-tokens4B`, `checkpoint-500`,
`1000`), they are ordered by it, and it is the step of the snapshot. Else they are ordered as given,
and counted from 0.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from gptviz.machine import progress
from gptviz.machine.files import home
from gptviz.machine.memory import in_bytes
from gptviz.model import Config, parameter_count
from gptviz.model.precision import STORED
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import checked_tensors, require_room, source_at
from gptviz.pretrained.places import hub
from gptviz.pretrained.places.hub import BYTE, HubModel
from gptviz.pretrained.sources.folder import outline_of

from . import checkpoints, names
from .card import values_of
from .checkpoints import CheckpointError
from .imports import Imported, too_large

MOST = 200
_STEP = re.compile(
    r".*step[-_]?(?P<step>\d{1,12})(?!\d).*|(?:iter|checkpoint|ckpt)?[-_]?(?P<number>\d{1,12})"
)


@dataclass(frozen=True)
class Revisions:
    """Revisions of a model on the hub, before they are fetched."""

    name: str  #: the model's name there
    offers: Mapping[int, HubModel]  #: by step, in their order
    config: Config  #: of all of them

    @property
    def last(self) -> HubModel:
        """The one that becomes the model itself."""
        return self.offers[max(self.offers)]

    @property
    def fetched_bytes(self) -> int:
        """The bytes of the files that are fetched, all together."""
        return sum(offer.size for offer in self.offers.values())

    @property
    def kept_bytes(self) -> int:
        """The bytes that stay here: the weights of each, and those of the last once more."""
        return sum(offer.weights for offer in self.offers.values()) + self.last.weights

    @property
    def said(self) -> str:
        """How much is fetched and kept, in a sentence."""
        return (
            f"{len(self.offers)} revisions: {in_bytes(self.fetched_bytes)} are fetched from the "
            f"hub, one revision at a time, and {in_bytes(self.kept_bytes)} stay among your models"
        )


def split_names(text: str) -> list[str]:
    """The names of revisions in a text in which commas or spaces stand between them."""
    return [name for name in re.split(r"[,\s]+", text) if name]


def every_name(given: str) -> list[str]:
    """The names of all revisions that the hub has of a model, but for the main one."""
    name = given.removeprefix("hub:")
    try:
        return hub.revisions(name)
    except ImportRefusedError as error:
        raise CheckpointError(f"{name}: {error}") from None


def by_step(revisions: Sequence[str]) -> dict[int, str]:
    """The revisions by step, in their order: see the top of this file."""
    matches = [_STEP.fullmatch(revision) for revision in revisions]
    steps = [int(match["step"] or match["number"]) for match in matches if match is not None]
    if len(set(steps)) == len(revisions):
        return dict(sorted(zip(steps, revisions, strict=True)))
    return dict(enumerate(revisions))


def names_on_axis(revisions: Mapping[str, str] | None) -> dict[int, str]:
    """The revisions on a card by step, where their names say no step, but are only in an order;
    else none.
    """
    named = revisions or {}
    is_counted = [*by_step([*named.values()])] == [*range(len(named))]
    return {int(step): name for step, name in named.items()} if is_counted else {}


def look_up(given: str, revisions: Sequence[str]) -> Revisions:
    """What the hub has of revisions of a model. No weights are fetched.

    Raises:
        CheckpointError: there is no such model or revision, one of them is another model or cannot
            be opened, or none, too many or two with one name are asked for.
    """
    name = given.removeprefix("hub:")
    if not revisions or len(revisions) > MOST or len(set(revisions)) < len(revisions):
        raise CheckpointError(
            f"{name}: name from 1 to {MOST} revisions, each of them once; there are "
            f"{len(revisions)}"
        )
    offers = dict[int, HubModel]()
    configs = dict[int, Config]()
    ordered = by_step(revisions)
    for step, revision in progress.report_each(ordered.items(), len(ordered), "revision"):
        with _explain(name, revision):
            offers[step] = hub.look_up(name, revision)
            if not offers[step].fields:
                raise ImportRefusedError("a GGUF file is one model and has no revisions")
            configs[step] = outline_of(offers[step].fields).config
    of_last = configs[max(configs)].to_dict()
    for step, config in configs.items():
        for field, value in config.to_dict().items():
            if value != of_last[field]:
                raise CheckpointError(
                    f"revision {ordered[step]} of {name} is of another shape: its {field} is "
                    f"{value!r:.40}, and {of_last[field]!r:.40} in {ordered[max(ordered)]}; "
                    "leave it out"
                )
    return Revisions(name, offers, configs[max(configs)])


def import_revisions(
    given: str,
    revisions: Sequence[str],
    name: str | None = None,
    *,
    suggested: str | None = None,
    command: str | None = None,
    offered: Callable[[Revisions], object] = lambda _: None,
) -> Imported:
    """Fetch revisions of a model on the hub as the snapshots of one model.

    It reports the bytes that arrive. A model of the same repository that has revisions already gets
    those that it lacks.

    Args:
        given: its name on the hub, which may begin with "hub:".
        revisions: their names; see the top of this file for their order.
        name: as of `import_model`, and so are `suggested` and `command`.
        offered: called with what will be fetched, before that, if anything is.

    Raises:
        CheckpointError: as in `look_up`, and as in `import_model`. Snapshots that were whole by
            then stay.
    """
    found = look_up(given, revisions)
    if problem := too_large(found.last):
        raise CheckpointError(f"{found.name} is not fetched: {problem}")
    with _claimed_folder(found, name, suggested) as folder:
        before = checkpoints.snapshots(folder)
        missing = [step for step in found.offers if step not in before]
        # The last one first: it is the model, which the others are snapshots of.
        missing = [*missing[-1:], *missing[:-1]]
        if missing:
            offered(replace(found, offers={step: found.offers[step] for step in missing}))
        _require_disk(found, missing)
        total = sum(found.offers[step].size for step in missing)
        arrived = 0
        for step in missing:
            offer = found.offers[step]
            with _explain(found.name, str(offer.revision)):
                place = home() / "fetching" / folder.name / offer.commit
                with progress.part(
                    arrived, total, offer.size, step=BYTE, doing=f"revision {offer.revision}"
                ):
                    hub.fetch_into(offer, place)
                arrived += offer.size
                with progress.part(arrived, total, 0), _removed(place):
                    _add(found, step, place, folder, command)
    card = checkpoints.read_card(folder)
    named = list((card.revisions or {}).values())
    note = f"It has {len(named)} snapshots, from {named[0]} to {named[-1]}."
    notes = (*card.notes, note)
    return Imported(folder, card.family or "", parameter_count(found.config), notes)


@contextmanager
def _claimed_folder(found: Revisions, name: str | None, suggested: str | None) -> Iterator[Path]:
    """The folder of the model, claimed: that of the one which has revisions of this repository
    already, or a new one.
    """
    known = [
        folder
        for each, folder in checkpoints.folders().items()
        if name in (None, each) and _has_revisions_of(folder, found)
    ]
    if known:
        with names.claim_name(known[0].name, replace=True) as claim:
            yield claim.folder
        return
    there = names.possible_name(suggested or found.name.rpartition("/")[2])
    with names.claim_name(name or there, or_next=name is None) as claim:
        yield claim.folder


def _has_revisions_of(folder: Path, found: Revisions) -> bool:
    """Whether the model in a folder has revisions of this repository, none of them under the step
    of another one.
    """
    with suppress(CheckpointError):
        card = checkpoints.read_card(folder)
        return (
            card.imported_from == found.name
            and card.revisions is not None
            and all(
                card.revisions.get(str(step), offer.revision) == offer.revision
                for step, offer in found.offers.items()
            )
        )
    return False


def _require_disk(found: Revisions, missing: Sequence[int]) -> None:
    """Refuse what has no room on the disk."""
    if not missing:
        return
    offers = [found.offers[step] for step in missing]
    needed = sum(offer.weights for offer in offers) + 2 * max(offer.size for offer in offers)
    root = home()
    while not root.exists():
        root = root.parent
    free = shutil.disk_usage(root).free
    if needed > free:
        raise CheckpointError(
            f"{found.name} takes {in_bytes(needed)} more on the disk of {root}, and "
            f"{in_bytes(free)} is free: free some space, or name fewer revisions"
        )


def _add(found: Revisions, step: int, place: Path, folder: Path, command: str | None) -> None:
    """Add the revision whose files are at a `place` to the model in a folder, as the snapshot of
    its step; the last one is the model too.
    """
    source = source_at(place)
    require_room(source, found.config, precision=STORED)
    is_new = checkpoints.folder_of(folder.name) != folder
    opened = source.describe_model()
    config = opened.config if is_new else checkpoints.read_config(folder)
    # A copy of each tensor in the type that it is stored in: a file has no two that share memory.
    weights = {
        name: tensor.clone().contiguous() for name, tensor in checked_tensors(source, config)
    }
    if is_new:
        card = {"imported_from": found.name, "revisions": {}, **values_of(opened)}
        card |= {"command": command} if command else {}
        checkpoints.save_opened(folder.name, config, opened.tokenizer, card, weights=weights)
    elif step > max(checkpoints.snapshots(folder), default=-1):
        checkpoints.write_tensors(folder / "model.safetensors", weights)
    snapshot = checkpoints.snapshot_path(folder, step)
    snapshot.parent.mkdir(exist_ok=True)
    checkpoints.write_tensors(snapshot, weights)
    card = checkpoints.read_card(folder).to_json()
    named = {**card["revisions"], str(step): found.offers[step].revision}
    checkpoints.write_json(
        folder / "card.json",
        card | {"revisions": dict(sorted(named.items(), key=lambda pair: int(pair[0])))},
    )


@contextmanager
def _removed(place: Path) -> Iterator[None]:
    """Remove the files at a place at the end, whatever becomes of them."""
    try:
        yield
    finally:
        shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):  # the folder of others is not empty
            place.parent.rmdir()


@contextmanager
def _explain(name: str, revision: str) -> Iterator[None]:
    """Name the revision in what is refused of it."""
    try:
        yield
    except ImportRefusedError as error:
        raise CheckpointError(f"revision {revision} of {name}: {error}") from None
