"""LoRA adapters of PEFT: a folder with adapter_config.json and adapter_model.safetensors (or .bin),
read and written.

The factors of a module are stored as `base_model.model.MODULE.lora_A.weight` [r, in] and
`….lora_B.weight` [out, r], and its matrix changes by alpha / r times their product. Their modules
are those of `transformers`; ours may hold several of them, one above the other, or their rows in
another order: see `families`.

Source: the PEFT documentation, “PEFT checkpoint format”.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import torch.nn.functional as F
from torch import Tensor

from gptviz.machine.bounded import parse_json, read_regular
from gptviz.machine.errors import reason_of
from gptviz.model import Config
from gptviz.model.lora import Adapter, Factors, matrices
from gptviz.text.confined import first_fitting

from .families import ImportRefusedError
from .families.base import Match
from .families.expressing import NotExpressibleError, express_model
from .given import Given, WithoutEffect, real_numbers
from .sources.tensors import SafetensorsFile, TorchFile, reading

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
OF_TORCH = "adapter_model.bin"  # what PEFT reads where there is no other
LONGEST_CONFIG = 2**20
MOST_VALUES = 100_000
_NAME = re.compile(
    r"base_model\.model\.(?P<module>.+)\.lora_(?P<factor>[AB])(?:\.default)?\.weight"
)
# What an adapter may have besides two factors for a matrix, and the values with which it has it
# not. The ways to draw the first factors that are listed leave the base as it is; for all others,
# such as "pissa", PEFT changes the base as it loads an adapter.
WITHOUT: dict[str, tuple[object, ...]] = {
    "init_lora_weights": (True, False, None, "gaussian", "eva", "orthogonal", "mica"),
    "bias": ("none",),
    "use_dora": (False, None),
    "lora_bias": (False, None),
    "modules_to_save": (None, []),
    "layer_replication": (None,),
    "target_parameters": (None, []),
    "trainable_token_indices": (None, [], {}),
    "alora_invocation_tokens": (None,),
    **dict.fromkeys(("use_qalora", "use_bdlora"), (False, None)),
    **dict.fromkeys(("arrow_config", "kasa_config", "monteclora_config"), (None,)),
}
# What can be done about it.
CONVERT = {
    "init_lora_weights": ": save it as a plain one, with the "
    "path_initial_model_for_weight_conversion of PEFT's save_pretrained"
}
# The settings that change nothing in an adapter that is read.
WITHOUT_EFFECT: WithoutEffect = {
    "the tensors say it too, and the base how its matrices lie": """
        target_modules exclude_modules layers_to_transform layers_pattern fan_in_fan_out""",
    "it is about training": """
        lora_dropout qalora_group_size eva_config corda_config loftq_config lora_ga_config
        megatron_config runtime_config""",
    "it is about the program and the base": """
        task_type inference_mode auto_mapping revision megatron_core unsloth* *version""",
}


@dataclass(frozen=True)
class PeftAdapter:
    """An adapter as PEFT keeps it."""

    #: the name or path of the model that it was made for, as its config says; empty if it does not
    #: say
    base: str
    #: by the name of a module of `transformers`, its factors with the scale in B
    modules: Mapping[str, Factors]
    file: str  #: the name of the file that they are read from


def is_adapter(path: Path) -> bool:
    """Whether the folder at this path looks like an adapter of PEFT."""
    return (path / CONFIG).is_file()


def read_adapter(folder: Path) -> PeftAdapter:
    """The adapter in a folder."""
    with reading(folder / CONFIG):
        fields = parse_json(read_regular(folder / CONFIG, LONGEST_CONFIG), MOST_VALUES)
    if not isinstance(fields, dict) or fields.get("peft_type") != "LORA":
        if isinstance(fields, dict):
            kind = fields.get("peft_type")
        else:
            kind = None
        raise ImportRefusedError(
            f"{CONFIG}: this adapter is of type {kind!r:.40}; gptviz opens only LORA"
        )
    given = Given(fields, "LoRA adapter", CONFIG)
    given.read |= {"peft_type", "base_model_name_or_path", "use_rslora", "r", "rank_pattern"}
    given.read |= {"lora_alpha", "alpha_pattern", *WITHOUT}
    given.refuse_unread(WITHOUT_EFFECT)
    for name, values in WITHOUT.items():
        if name in fields and fields[name] not in values:
            raise ImportRefusedError(
                f"{CONFIG}: {name} is {fields[name]!r:.60}; gptviz opens adapters without "
                f"it{CONVERT.get(name, '')}"
            )
    pairs: dict[str, dict[str, Tensor]] = {}
    is_of_torch = (folder / OF_TORCH).exists() and not (folder / WEIGHTS).exists()
    path = folder / (OF_TORCH if is_of_torch else WEIGHTS)
    with reading(path):
        file = TorchFile(path) if is_of_torch else SafetensorsFile(path)
        for name in file.names():
            named = _NAME.fullmatch(name)
            if named is None:
                raise ImportRefusedError(
                    f"{path.name}: {name[:80]} is no factor of a matrix: gptviz opens only "
                    "adapters of matrices"
                )
            pair = pairs.setdefault(named["module"], {})
            if named["factor"] in pair:
                raise ImportRefusedError(f"{path.name} has {name[:80]} twice")
            pair[named["factor"]] = real_numbers(f"{path.name}: {name[:80]}", file.tensor(name))
    base = fields.get("base_model_name_or_path")
    ranks, alphas = (
        _of_modules(fields, *names, list(pairs))
        for names in (("rank_pattern", "r"), ("alpha_pattern", "lora_alpha"))
    )
    modules = dict[str, Factors]()
    for (module, pair), rank, alpha in zip(pairs.items(), ranks, alphas, strict=True):
        modules[module] = _scale_factors(
            path.name, module, pair, alpha / (rank**0.5 if fields.get("use_rslora") else rank)
        )
        if rank != modules[module].rank:
            raise ImportRefusedError(
                f"{CONFIG}: r is {rank:g} for {module[:80]}, whose factors in {path.name} have "
                f"the rank {modules[module].rank}: "
                "the two files are not of one adapter"
            )
    return PeftAdapter(base if isinstance(base, str) else "", modules, path.name)


def _scale_factors(file: str, module: str, pair: Mapping[str, Tensor], scale: float) -> Factors:
    a = pair.get("A")
    b = pair.get("B")
    if a is None or b is None or a.dim() != 2 or b.dim() != 2 or len(a) != b.shape[1] or not len(a):
        raise ImportRefusedError(
            f"{file}: the two factors of {module[:80]} do not go together: copy or download it "
            "again"
        )
    return Factors(a, b * scale)


def _of_modules(
    fields: Mapping[str, Any], patterns: str, usual: str, modules: Sequence[str]
) -> list[float]:
    """For each module the value of the first of the `patterns` that fits the end of its name, else
    the `usual` one.
    """
    listed = fields.get(patterns) or {}
    if not isinstance(listed, dict):
        raise ImportRefusedError(f"{CONFIG}: {patterns} is {listed!r:.40}; it must be a table")
    try:
        places = first_fitting(list(listed), modules)
    except (ValueError, OSError) as error:
        raise ImportRefusedError(
            f"{CONFIG}: {patterns} is {listed!r:.60}, whose modules are not found: "
            f"{reason_of(error)}"
        ) from None
    values = list[float]()
    for place in places:
        if place is None:
            value = fields.get(usual)
        else:
            value = [*listed.values()][place]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise ImportRefusedError(
                f"{CONFIG}: {usual} is {value!r:.40}; it must be a number above 0"
            )
        values.append(float(value))
    return values


@dataclass(frozen=True)
class _Piece:
    """A matrix of ours and the modules of `transformers` that hold its rows."""

    ours: str  #: the name of our part
    #: how the tensors become one another; it acts only on rows, so in the same way on the rows of B
    match: Match
    turned: bool  #: whether they store matrices as [in, out]
    sizes: tuple[int, ...]  #: how many rows each of their modules has

    @property
    def modules(self) -> list[str]:
        """The names of their modules."""
        return [name.removesuffix(".weight") for name in self.match.theirs]

    def to_ours(self, rows: list[Tensor]) -> Tensor:
        """B [out, r] of ours, made of the B of each of their modules."""
        return self.match.to_ours([matrix.T for matrix in rows] if self.turned else rows)

    def to_theirs(self, rows: Tensor) -> list[Tensor]:
        """The inverse."""
        return [matrix.T if self.turned else matrix for matrix in self.match.to_theirs(rows)]


def _pieces(config: Config, family: str | None) -> Iterator[_Piece]:
    """Every matrix that an adapter can change, in the form of the family that computes the same as
    a model of `config`.
    """
    try:
        written = express_model(config, family)
    except NotExpressibleError as error:
        raise ImportRefusedError(str(error)) from None
    shapes = matrices(config)
    for match in written.family.matches(written.config):
        part = match.ours.removesuffix(".weight")
        if part not in shapes or not match.ours.endswith(".weight"):
            continue
        out, _ = shapes[part]
        # Two columns are enough to see where rows go: each row has one number, wherever it lies.
        theirs = match.to_theirs(torch.arange(out, dtype=torch.float32)[:, None].expand(out, 2))
        turned = not all(bool((matrix == matrix[:, :1]).all()) for matrix in theirs)
        yield _Piece(
            part, match, turned, tuple(matrix.shape[1 if turned else 0] for matrix in theirs)
        )


def as_ours(adapter: PeftAdapter, config: Config, family: str | None) -> dict[str, Factors]:
    """The factors of our matrices, for a base of this config that was imported as this `family`
    (its title). Those of several modules that are one matrix here stand side by side, so their
    ranks add up. An ImportRefusedError if the adapter changes what is no matrix inside the blocks
    of the base, or is of a model of another shape.
    """
    left = dict(adapter.modules)
    ours = dict[str, Factors]()
    reads = {name: shape[1] for name, shape in matrices(config).items()}
    for piece in _pieces(config, family):
        a = []
        b = []
        for place, (module, size) in enumerate(zip(piece.modules, piece.sizes, strict=True)):
            factors = left.pop(module, None)
            if factors is None:
                continue
            if (len(factors.b), factors.a.shape[1]) != (size, reads[piece.ours]):
                raise ImportRefusedError(
                    f"{adapter.file}: {module[:80]} changes a matrix of {len(factors.b)} × "
                    f"{factors.a.shape[1]}, and that of the "
                    f"base has {size} × {reads[piece.ours]}: name the model that the adapter was "
                    "made for"
                )
            rows = [
                factors.b if at == place else factors.b.new_zeros(rest, factors.rank)
                for at, rest in enumerate(piece.sizes)
            ]
            a.append(factors.a)
            b.append(piece.to_ours(rows))
        if a:
            ours[piece.ours] = Factors(torch.cat(a), torch.cat(b, dim=1).contiguous())
    if left or not ours:
        if left:
            what = f"{min(left)[:80]} is no matrix inside the blocks of the base"
        else:
            what = "there are no factors"
        raise ImportRefusedError(
            f"{adapter.file}: {what}: name the model that the adapter was made for"
        )
    return ours


def write(adapter: Adapter, config: Config, family: str | None, base: str, folder: Path) -> None:
    """Write an adapter into an empty folder, for PEFT.

    Args:
        adapter: the factors by the names of our parts.
        config: of its base.
        family: as in `as_ours`.
        base: the name of the base, as the hub or a path has it.

    Raises:
        ImportRefusedError: no family of `transformers` computes the same as the base.
        OSError: the disk is full or not writable.
    """
    rank = max(factors.rank for factors in adapter.values())
    tensors = dict[str, Tensor]()
    turned = False
    for piece in _pieces(config, family):
        if (one := adapter.get(piece.ours)) is None:
            continue
        turned |= piece.turned
        for module, rows in zip(piece.modules, piece.to_theirs(one.b), strict=True):
            # All have one rank; a smaller one is filled up with zeros.
            tensors[f"base_model.model.{module}.lora_A.weight"] = F.pad(
                one.a, (0, 0, 0, rank - one.rank)
            )
            tensors[f"base_model.model.{module}.lora_B.weight"] = F.pad(rows, (0, rank - one.rank))
    modules = sorted({named["module"] for name in tensors if (named := _NAME.fullmatch(name))})
    fields = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": rank,  # the scale is in B
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": turned,
        "target_modules": modules,
        "modules_to_save": None,
        "inference_mode": True,
    }
    (folder / CONFIG).write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
    safetensors.torch.save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
