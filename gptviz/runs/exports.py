"""The formats in which a model can be exported: gptviz's own, those of `transformers`, nanoGPT,
GGUF, PEFT, and plain Python.
"""

from __future__ import annotations

import zipfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import BinaryIO, ClassVar

from safetensors import SafetensorError
from torch import Tensor

from gptviz.data.registry import learned_task
from gptviz.machine import progress
from gptviz.machine.errors import reason_of
from gptviz.machine.files import replacement_path, scratch_folder
from gptviz.model import Config, parameter_count
from gptviz.pretrained import peft
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.families.expressing import NotExpressibleError, express_model
from gptviz.pretrained.gguf_writing import BITS_OF_KIND, check_gguf, write_gguf
from gptviz.pretrained.places.hub import is_name
from gptviz.pretrained.sources import nanogpt
from gptviz.pretrained.sources.gguf_header import USUAL_END, end_in_place, header_of
from gptviz.pretrained.writing import Written, write_nanogpt, write_transformers
from gptviz.twin import writing as twin

from . import checkpoints, names, sharing
from .card import Card
from .checkpoints import CheckpointError


class Format(ABC):
    """A format in which a model can be exported. What cannot be read or written is a
    `CheckpointError`.
    """

    title: ClassVar[str]  #: its name for people
    about: ClassVar[str]  #: what it is and who opens it, in a sentence
    ending: ClassVar[str]  #: of the usual name of its file or folder, after the model's

    def is_for(self, folder: Path) -> bool:
        """Whether this format is for models like the one in `folder`; pages offer no other."""
        return True

    @abstractmethod
    def why_not(self, folder: Path) -> str | None:
        """The reason why the model in `folder` cannot be written in this format, or None if it can.
        No weights are read.
        """

    def left_out(self, folder: Path) -> str | None:
        """The parts of the model in `folder` that this format cannot hold, in words, or None if it
        can hold all of it.
        """
        return None

    @abstractmethod
    def bytes(self, folder: Path, *, snapshots: bool = True) -> int:
        """About how many bytes it has in this format."""

    @abstractmethod
    def write(self, folder: Path, to: Path, *, snapshots: bool = True) -> None:
        """Write the model in `folder` to the new path `to`, as a whole or not at all."""

    @abstractmethod
    def write_zip(self, folder: Path, file: BinaryIO, *, snapshots: bool = True) -> None:
        """Write the model in `folder` as one zip file."""


class ZipFormat(Format):
    """One zip file for another gptviz."""

    title = "One zip file for gptviz"
    ending = ".zip"
    about = "All of the model in one file: another gptviz opens it as the same model."

    def why_not(self, folder: Path) -> str | None:
        return None

    def bytes(self, folder: Path, *, snapshots: bool = True) -> int:
        return sharing.packed_bytes(folder, snapshots=snapshots)

    def write(self, folder: Path, to: Path, *, snapshots: bool = True) -> None:
        _check_free(to)
        sharing.pack(folder, to, snapshots=snapshots)

    def write_zip(self, folder: Path, file: BinaryIO, *, snapshots: bool = True) -> None:
        sharing.pack(folder, file, snapshots=snapshots)


class _Files(Format):
    """A folder with the files of another program, or a single file."""

    is_single: ClassVar[bool] = False
    is_exact: ClassVar[bool] = False  # whether the change of an adapter is added in float32

    @abstractmethod
    def check(self, config: Config, family: str | None, folder: Path) -> None:
        """Refuse with a `NotExpressibleError` what the other program does not have; `folder` has
        what more there is to know.
        """

    @abstractmethod
    def write_files(self, model: Written, folder: Path) -> None:
        """Write its files into an empty folder."""

    def write_model(self, folder: Path, fresh: Path) -> None:
        """Write the model in `folder` into an empty folder; a `NotExpressibleError` if the other
        program has no such model.
        """
        with progress.part(0, 2):
            config = checkpoints.read_config(folder)
            card = checkpoints.read_card(folder)
            tokenizer = checkpoints.read_tokenizer(folder)
            task = learned_task(card.source, tokenizer)
            written = Written(
                name=names.possible_name(folder.name),
                config=config,
                tokenizer=tokenizer,
                weights=_weights(folder, config, exactly=self.is_exact),
                family=card.family,
                card=_describe_origin(config, card),
                licence=card.licence,
                chat=card.chat,
                ends=card.end_tokens,
                whole=None if task is None else task.sequence_length,
                labels=card.labels or (),
                notes=card.notes,
                languages=card.languages,
            )
        self.write_files(written, fresh)

    def why_not(self, folder: Path) -> str | None:
        try:
            self.check(
                checkpoints.read_config(folder), checkpoints.read_card(folder).family, folder
            )
        except NotExpressibleError as error:
            return str(error)
        return None

    def left_out(self, folder: Path) -> str | None:
        number = len(checkpoints.snapshots(folder))
        if number:
            parts = [f"its {number} snapshots" if number > 1 else "its snapshot"]
        else:
            parts = []
        parts += ["the course of its training"] if checkpoints.read_card(folder).losses else []
        return " and ".join(parts) or None

    def bytes(self, folder: Path, *, snapshots: bool = True) -> int:
        return sharing.packed_bytes(folder, snapshots=False)

    def write(self, folder: Path, to: Path, *, snapshots: bool = True) -> None:
        _check_free(to)
        name = checkpoints.name_of(folder)
        try:
            with replacement_path(to) as fresh:
                fresh.mkdir()
                self.write_model(folder, fresh)
                made = next(fresh.iterdir()) if self.is_single else fresh
                made.rename(to)
        except NotExpressibleError as error:
            raise CheckpointError(f"{name} is not written: {error}") from None
        # PyTorch raises a RuntimeError if the disk is full
        except (OSError, SafetensorError, RuntimeError) as error:
            raise CheckpointError(
                f"{name} cannot be written to {to} ({reason_of(error)}): make room there, or "
                "choose another place"
            ) from None

    def write_zip(self, folder: Path, file: BinaryIO, *, snapshots: bool = True) -> None:
        name = names.possible_name(folder.name)
        with scratch_folder("exporting") as fresh:
            made = fresh / (f"{name}{self.ending}" if self.is_single else name)
            self.write(folder, made)
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for path in [made] if self.is_single else sorted(made.iterdir()):
                    sharing.add(archive, path, path.relative_to(fresh).as_posix())


class TransformersFormat(_Files):
    """A folder for `transformers`, and for all that reads its models."""

    title = "A folder for transformers"
    ending = "-transformers"
    about = (
        "config.json, weights and tokenizer as the Hugging Face hub has them: transformers and "
        "many other programs open them."
    )

    def check(self, config: Config, family: str | None, folder: Path) -> None:
        express_model(config, family)

    def write_files(self, model: Written, folder: Path) -> None:
        write_transformers(model, folder)


class NanoGPTFormat(_Files):
    """The two files of nanoGPT."""

    title = "A checkpoint of nanoGPT"
    ending = "-nanogpt"
    about = (
        "ckpt.pt, and meta.pkl for a vocabulary of characters, as nanoGPT's sample.py reads them; "
        "any other tokens it takes for "
        "GPT-2's."
    )

    def check(self, config: Config, family: str | None, folder: Path) -> None:
        nanogpt.as_nanogpt(config)

    def write_files(self, model: Written, folder: Path) -> None:
        write_nanogpt(model, folder)


class GGUFFormat(_Files):
    """One file of llama.cpp; `kind` is how its matrices are kept, a key of
    `gguf_writing.BITS_OF_KIND`.
    """

    title = "A GGUF file"
    ending = ".gguf"
    is_single = True
    about = (
        "One file with weights in float16 and tokenizer, for llama.cpp and the programs built on "
        "it: Ollama, LM Studio."
    )

    def __init__(self, kind: str = "F16") -> None:
        self.kind = kind

    def check(self, config: Config, family: str | None, folder: Path) -> None:
        check_gguf(config, checkpoints.read_tokenizer(folder), family)

    def bytes(self, folder: Path, *, snapshots: bool = True) -> int:
        return round(parameter_count(checkpoints.read_config(folder)) * BITS_OF_KIND[self.kind] / 8)

    def left_out(self, folder: Path) -> str | None:
        parts = [super().left_out(folder)]
        tokenizer = checkpoints.read_tokenizer(folder)
        if checkpoints.read_config(folder).activation == "gelu":
            parts.append(
                "what GELU differs from its approximation, which llama.cpp computes (below 0.0005)"
            )
        never_ends = not checkpoints.read_card(folder).end_tokens and not end_in_place(
            header_of(tokenizer)
        )
        if never_ends and tokenizer.vocab_size > USUAL_END:
            parts.append(
                "that no token ends a text: llama.cpp stops where the model writes "
                f"{tokenizer.label(USUAL_END)!r}"
            )
        return "; ".join(part for part in parts if part) or None

    def write_files(self, model: Written, folder: Path) -> None:
        write_gguf(model, folder / f"{model.name}.gguf", self.kind)


class PeftFormat(_Files):
    """The two files of a LoRA adapter of PEFT."""

    title = "A LoRA adapter for PEFT"
    ending = "-peft"
    about = (
        "adapter_config.json and adapter_model.safetensors: PEFT puts them on the base, written "
        "as a folder for transformers."
    )

    def is_for(self, folder: Path) -> bool:
        return checkpoints.is_adapter(folder)

    def why_not(self, folder: Path) -> str | None:
        if self.is_for(folder):
            return super().why_not(folder)
        return "it is no LoRA adapter"

    def check(self, config: Config, family: str | None, folder: Path) -> None:
        express_model(config, family)

    def write_files(self, model: Written, folder: Path) -> None:
        raise NotImplementedError

    def write_model(self, folder: Path, fresh: Path) -> None:
        if not self.is_for(folder):
            raise NotExpressibleError("it is no LoRA adapter")
        base = checkpoints.base_of(folder)
        source = checkpoints.read_card(base).imported_from or ""
        name = source if is_name(source) else checkpoints.name_of(base)
        config = checkpoints.read_config(folder)
        family = checkpoints.read_card(base).family
        try:
            peft.write(checkpoints.read_factors(folder), config, family, name, fresh)
        except ImportRefusedError as error:
            raise NotExpressibleError(str(error)) from None


class PythonFormat(_Files):
    """The plain twin: a decoder as one file of Python, with its weights beside it."""

    title = "Plain Python"
    ending = "-python"
    is_exact = True
    about = (
        "Tokenizer, forward pass and sampling in one file to read, which needs only Python; its "
        "weights lie beside it."
    )

    def is_for(self, folder: Path) -> bool:
        return checkpoints.read_config(folder).kind == "decoder"

    def check(self, config: Config, family: str | None, folder: Path) -> None:
        try:
            twin.check(config, checkpoints.read_tokenizer(folder))
        except ValueError as error:
            raise NotExpressibleError(str(error)) from None

    def bytes(self, folder: Path, *, snapshots: bool = True) -> int:
        return twin.BYTES_A_NUMBER * parameter_count(checkpoints.read_config(folder))

    def write_model(self, folder: Path, fresh: Path) -> None:
        self.check(checkpoints.read_config(folder), None, folder)
        super().write_model(folder, fresh)

    def write_files(self, model: Written, folder: Path) -> None:
        stops = twin.Stops(model.ends, model.whole)
        twin.write(model.name, model.config, model.tokenizer, model.weights, stops, folder)


FORMATS: dict[str, Format] = {
    "zip": ZipFormat(),
    "transformers": TransformersFormat(),
    "nanogpt": NanoGPTFormat(),
    "gguf": GGUFFormat(),
    "peft": PeftFormat(),
    "python": PythonFormat(),
}


def _check_free(to: Path) -> None:
    """Refuse a path that exists already."""
    if to.exists() or to.is_symlink():
        raise CheckpointError(
            f"there is something at {to} already: choose another path, or remove it first"
        )
    if not to.parent.is_dir():
        raise CheckpointError(f"there is no folder {to.parent}: make it, or choose another path")


def _weights(folder: Path, config: Config, *, exactly: bool) -> dict[str, Tensor]:
    """The weights in their stored types; of an adapter, those of its base with its changes, in
    float32 if wanted `exactly`.
    """
    if checkpoints.is_adapter(folder):
        weights = _weights(checkpoints.base_of(folder), config, exactly=exactly)
        for part, factors in checkpoints.read_factors(folder).items():
            matrix = weights[f"{part}.weight"]
            changed = matrix.float() + factors.change
            weights[f"{part}.weight"] = changed if exactly else changed.to(matrix.dtype)
        return weights
    if checkpoints.is_reference(folder):
        return sharing.weights_of(checkpoints.source_of(folder), config)
    return checkpoints.stored_weights(folder, config)


def _describe_origin(config: Config, card: Card) -> str:
    """A description of the model and where it comes from, in sentences."""
    kind = "a model" if card.family is None else f"a {card.family} model"
    sentences = [
        f"This is {kind} with {parameter_count(config):,} parameters and {config.n_layer} blocks, "
        "written by gptviz."
    ]
    # a path of this machine tells others nothing
    if card.imported_from is not None and is_name(card.imported_from):
        sentences.append(f"It is {card.imported_from} on the Hugging Face hub.")
    if card.corpus or card.task:
        sentences.append(f"It was trained on {card.corpus or card.task}.")
    if card.validation_loss is not None:
        sentences.append(f"Its loss on held-out data is {card.validation_loss:.4f} nats.")
    return " ".join(sentences)
