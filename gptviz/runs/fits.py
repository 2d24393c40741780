"""The fit of a dictionary as a run, in a folder of its own beside those of the models: so names,
locks and the queue are the same.

plan.json           which dictionary is fitted to which model: see `FitPlan`
card.json           how far the fit is, and once it has ended the dictionary and how good it is
log.jsonl, state.safetensors, status.json, stop_request     as of a model in training: see `run`

The dictionary itself is kept where all are: see `fitted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from gptviz.machine.errors import reason_of
from gptviz.machine.files import replacement_path
from gptviz.machine.memory import FLOAT32, in_bytes
from gptviz.settings.fields import check_choices, check_numbers, setting
from gptviz.settings.known_names import name_known
from gptviz.text.datasets.corpora import Corpus, recall, remember

from . import checkpoints
from .checkpoints import PLAN, CheckpointError
from .fitted import MOST_OF_ONE
from .names import claim_name
from .run import free_disk
from .status import RunError, write_status


@dataclass(frozen=True, kw_only=True)
class FitPlan:
    """Which dictionary is fitted to which model."""

    of: str  #: the name of the model
    model: str  #: the hash of its weights
    d_model: int = setting(1, "Numbers in the stream", "How long a vector is.", low=1)
    block: int = setting(0, "Block", "The number of the block.", low=0)
    target: Literal["stream", "mlp"] = setting(
        "stream", "Of what", "What its features give back: the stream, or the output of the MLP."
    )
    size: int = setting(1, "Features", "How many features there are.", low=1, high=10**6)
    kind: Literal["topk", "relu"] = setting("topk", "Kind", "Which activations count.")
    k: int = setting(16, "Active", "With topk, how many of them count at a token.", low=1)
    cost: float = setting(0.4, "Cost", "With relu, what the sum of activations costs.", low=0)
    steps: int = setting(2_000, "Steps", "How many steps it is fitted for.", low=1, high=10**6)
    seed: int = setting(0, "Seed", "Decides where the features begin.")
    #: the text that it is fitted to, its name and SHA-256; None for the data of the model
    corpus: Mapping[str, str] | None = None
    called: str = ""  #: what the dictionary is called; a digest of its numbers is added
    step: int | None = None  #: the step of training at which the model is read; None: its end
    precision: str = "stored"  #: what the model's weights are multiplied in

    def __post_init__(self) -> None:
        check_choices(self)
        check_numbers(self)
        corpus = self.corpus or {"name": "", "sha256": ""}
        texts = (self.of, self.model, self.called, self.precision, *corpus.values())
        if corpus.keys() != {"name", "sha256"} or not all(isinstance(each, str) for each in texts):
            raise ValueError("its model, its name or its text is no text")

    @property
    def text(self) -> str | None:
        """The text that it is fitted to; None for the data of the model. A ValueError if the text
        is not on this machine any more.
        """
        if self.corpus is None:
            return None
        return recall(self.corpus["name"], self.corpus["sha256"]).text

    @property
    def bytes_needed(self) -> int:
        """What the fit takes on the disk: both matrices, what Adam remembers of them, and the
        dictionary at the end.
        """
        return 2 * 4 * FLOAT32 * self.size * self.d_model


def kept_text(text: str | None) -> dict[str, str] | None:
    """A text for `FitPlan.corpus`, of which a copy is kept; a CheckpointError if that fails."""
    if text is None:
        return None
    corpus = Corpus("a text", text)
    try:
        remember(corpus)
    except OSError as error:
        raise CheckpointError(
            f"cannot keep a copy of the text to fit to ({reason_of(error)}): make room on the disk"
        ) from None
    return {"name": corpus.name, "sha256": corpus.sha256}


def prepare(plan: FitPlan, name: str) -> Path:
    """Write a fit that has not begun, and return its folder, called `name` or by the next free
    name.

    Raises:
        CheckpointError: the name is not possible, the dictionary would be too large to be kept, or
            the disk is full or not writable.
        RunError: another process has claimed the name.
    """
    of_one = 2 * FLOAT32 * plan.size * plan.d_model
    if of_one > MOST_OF_ONE:
        raise CheckpointError(
            f"a dictionary of {plan.size:,} features takes {in_bytes(of_one)}, and "
            f"{in_bytes(MOST_OF_ONE)} is the most that is kept: choose fewer features"
        )
    with claim_name(name, or_next=True) as claim:
        if plan.bytes_needed > (free := free_disk(claim.folder)):
            raise CheckpointError(
                f"the fit {claim.name} takes {in_bytes(plan.bytes_needed)} on the disk, and "
                f"{in_bytes(free)} is free: make room, or choose fewer features"
            )
        try:
            with replacement_path(claim.folder) as fresh:
                fresh.mkdir()
                checkpoints.write_json(fresh / PLAN, asdict(plan))
                checkpoints.write_json(fresh / "card.json", {"steps": 0, "seconds": 0.0})
                write_status(fresh, "ready")
                fresh.rename(claim.folder)
        except OSError as error:
            raise CheckpointError(
                f"cannot write the fit {claim.name} below {claim.folder.parent} "
                f"({reason_of(error)}): see that there is room and that you may write there"
            ) from None
        return claim.folder


def read_fit(folder: Path) -> FitPlan:
    """The plan of the fit in `folder`; a RunError if it does not say what is fitted, a
    CheckpointError if the file cannot be read.
    """
    try:
        return FitPlan(**checkpoints.read_json(folder, PLAN))
    except (TypeError, ValueError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise RunError(
            f"{folder.name} does not say what it fits ({error}): it cannot go on"
        ) from None


def folders() -> dict[str, Path]:
    """Every fit by its name, of the models that are shown here."""
    return checkpoints.folders_with(PLAN)


def find(name: str) -> Path:
    """The folder of the fit called `name`."""
    known = folders()
    if name not in known:
        raise CheckpointError(f"no fit named {name[:80]!r}{name_known(name, known)}")
    return known[name]
