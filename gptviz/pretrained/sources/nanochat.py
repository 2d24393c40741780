"""nanochat's checkpoints: `model_000650.pt` with `meta_000650.json`, and its `tokenizer.pkl`. No
file can run code here.

It has rotary positions, queries and keys that are normalised, ReLU², norms without gains, a norm
after the embedding, and a cap on the logits. A file does not say its version; the tensors do (see
`VERSIONS`). A version between two of these whose tensors are not all known is refused by the name
of a tensor.

Source: github.com/karpathy/nanochat, `nanochat/gpt.py` and `nanochat/checkpoint_manager.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from gptviz.machine.bounded import parse_json, read_regular
from gptviz.model import Config

from ..families import Given, ImportRefusedError
from ..families.base import MISMATCHED, ShapeError, in_order, missing_tensor
from ..given import without_place
from .folder import LONGEST_CONFIG
from .nanochat_tokens import ASSISTANT_END, chat, tokenizer_near
from .source import ModelSource, Opened, Outline, fit_tokenizer
from .tensors import reading, state_dict

TITLE = "nanochat"
WEIGHTS = re.compile(r"model_(\d{6,})\.pt")
MOST_SETTINGS = 10_000
COMPILED = "_orig_mod."
TILE = 128  # windows are whole numbers of it
GATE = ".attn.ve_gate.weight"
EMBEDDING = "transformer.wte.weight"
UNEMBEDDING = "lm_head.weight"


@dataclass(frozen=True)
class Version:
    """What the code of nanochat held for granted at a time."""

    until: str  #: the day on which it changed, or nothing for the newest
    has: tuple[str, ...]  #: tensors that no earlier version has
    #: how many numbers the gate of an embedding of values reads, 0 without such embeddings
    gate: int = 0
    most: float = 0.0  #: the largest share of such an embedding
    sharper: float = 1.0  #: what queries and keys are multiplied by
    base: float = 10_000.0  #: of the rotary positions
    #: of a context, how many tokens before its own a query reads in the blocks with a window
    window: Callable[[int], int] = lambda context: context // 2
    note: str = ""  #: what else a reader should know


def _in_tiles(parts: int) -> Callable[[int], int]:
    return lambda context: -(-context // parts // TILE) * TILE


CAPPED_HIGHER = (
    "The logits are capped at 15, as nanochat does; from 2 to 9 March 2026 it capped them at 20, "
    "and its file does not say when "
    "it was trained."
)
MIXES = ("resid_lambdas", "x0_lambdas")
SMEARS = ("smear_gate.weight", "smear_lambda", "backout_lambda")
VERSIONS = (
    Version("11 January 2026", ()),
    Version("16 January 2026", MIXES),
    Version("9 March 2026", MIXES, gate=32, most=2.0, note=CAPPED_HIGHER),
    Version(
        "14 March 2026", MIXES, gate=12, most=3.0, sharper=1.15, base=100_000.0, window=_in_tiles(3)
    ),
    Version(
        "", (*MIXES, *SMEARS), gate=12, most=3.0, sharper=1.2, base=100_000.0, window=_in_tiles(4)
    ),
)


class NanoChat(ModelSource):
    """A `.pt` file of nanochat with its `meta_….json`, or the folder that has them, of which the
    last step is opened.
    """

    kind = "nanochat"

    @classmethod
    def recognises_path(cls, path: Path) -> bool:
        return _weights_at(path) is not None

    @cached_property
    def _file(self) -> Path:
        weights = _weights_at(self.path)
        if weights is None:
            raise ImportRefusedError(
                f"the weights at {self.path} are gone: put them back, or import the model again"
            )
        return weights

    def files(self) -> list[Path]:
        return [self._file]

    @cached_property
    def _settings(self) -> Given:
        file = _meta_of(self._file)
        with reading(file):
            fields = parse_json(read_regular(file, LONGEST_CONFIG), MOST_SETTINGS)
        if isinstance(fields, dict):
            settings = fields.get("model_config")
        else:
            settings = None
        if not isinstance(settings, dict):
            raise ImportRefusedError(
                f"{file.name} has no table model_config: copy or download it again"
            )
        return Given(settings, f"{TITLE} model", file.name)

    @cached_property
    def _tensors(self) -> dict[str, Tensor]:
        return {
            name.removeprefix(COMPILED): value for name, value in state_dict(self._file).items()
        }

    @cached_property
    def _version(self) -> Version:
        """The version that has these tensors; the newest one lacks none of them."""
        gates = [value.shape[-1] for name, value in self._tensors.items() if name.endswith(GATE)]
        gate = gates[0] if gates else 0
        has = [name for name in VERSIONS[-1].has if name in self._tensors]
        for version in VERSIONS:
            if version.gate == gate and list(version.has) == has:
                return version
        raise ImportRefusedError(
            f"{self._file.name}: its tensors are those of no version of nanochat that gptviz "
            f"knows: a gate of values over {gate} "
            f"numbers, and {', '.join(has) or 'no scalars between blocks'}"
        )

    def outline(self) -> Outline:
        given = self._settings
        with given.refusing():
            config = self._config(given, self._version)
        given.refuse_unread()
        return Outline(TITLE, config)

    def _config(self, given: Given, version: Version) -> Config:
        width = given.our_number("d_model", "n_embd")
        heads = given.our_number("n_head", "n_head")
        keys = given.our_number("n_kv_head", "n_kv_head", heads)
        context = given.our_number("context_length", "sequence_len")
        n_layer = given.our_number("n_layer", "n_layer")
        window = version.window(context) + 1  # with its own token
        blocks = _windows(given, n_layer)
        return Config(
            vocab_size=given.our_number("vocab_size", "vocab_size"),
            context_length=context,
            d_model=width,
            n_layer=n_layer,
            n_head=heads,
            n_kv_head=None if keys == heads else keys,
            norm="rmsnorm",
            # what `torch.nn.functional.rms_norm` adds unless told otherwise
            norm_eps=torch.finfo(torch.float32).eps,
            norm_gain=False,
            positions="rotary",
            rotary_base=version.base,
            window=window if "w" in blocks and window < context else None,
            window_pattern=blocks,
            score_scale=None
            if version.sharper == 1
            else version.sharper**2 * (width // heads) ** -0.5,
            smear=self._tensors["smear_gate.weight"].shape[-1] if version.has[2:] else 0,
            mix_embedding=bool(version.has),
            backout=bool(version.has[2:]),
            value_gate=version.gate,
            activation="relu2",
            embed_norm=True,
            qk_norm="shared",
            logit_cap=15.0,
            qkv_bias=False,
            output_bias=False,
            mlp_bias=False,
        )

    def describe_model(self) -> Opened:
        outline = self.outline()
        # Its tensors come first, to refuse a version that is not opened here, and a file that could
        # run code.
        words = tokenizer_near(self._file) if self._tensors else None
        tokenizer, notes = fit_tokenizer(words, outline.config.vocab_size, "tokenizer.pkl")
        notes = (*notes, *filter(None, [self._version.note]))
        if words is None:
            return Opened(outline.family, outline.config, tokenizer, notes)
        end = words.id_of(ASSISTANT_END)
        return Opened(
            outline.family,
            outline.config,
            tokenizer,
            notes,
            chat=chat(words),
            ends=() if end is None else (end,),
        )

    def parameters(self, config: Config) -> Iterator[tuple[str, Tensor]]:
        left = dict(self._tensors)
        for name in MIXES:
            left |= {
                f"{name}.{block}": scalar
                for block, scalar in enumerate(left.pop(name, torch.empty(0)).flatten())
            }

        def take(name: str) -> Tensor:
            if name not in left:
                raise missing_tensor(self._file.name, name)
            return left.pop(name)

        for ours, theirs in _names(config):
            tensors = [take(name) for name in theirs]
            if ours.endswith("mix.weight"):
                yield ours, torch.stack(tensors)
            elif ours == "backout.weight":
                yield ours, torch.cat((torch.ones(1), -tensors[0].float().flatten()))
            elif ours.endswith("value_embed.table.weight"):
                yield ours, tensors[0][: config.vocab_size].float() * self._version.most
            elif ours in ("embed.weight", "head.unembed.weight"):
                yield ours, tensors[0][: config.vocab_size]  # filled up to a multiple of 64
            elif ours.endswith("attention.qkv.weight"):
                yield ours, _stack_heads(tensors, theirs, config)
            else:
                yield ours, tensors[0]
        if left:
            raise without_place(self._file.name, list(left), f"a {TITLE} model")

    def origin(self, config: Config, parameter: str) -> str:
        return f"{self._file.name}: {dict(_names(config)).get(parameter, (parameter,))[0]}"


def _weights_at(path: Path) -> Path | None:
    """The weights at this path, the last ones of a folder; None if they are not nanochat's."""
    if path.is_dir():
        try:
            names = [name for name in os.listdir(path) if WEIGHTS.fullmatch(name)]
        except OSError:
            return None
        path = path / max(names, key=lambda name: int(WEIGHTS.fullmatch(name)[1]), default="")  # type: ignore[index]
    if WEIGHTS.fullmatch(path.name) and os.path.lexists(path) and os.path.lexists(_meta_of(path)):
        return path
    return None


def _meta_of(file: Path) -> Path:
    return file.parent / f"meta_{file.stem.removeprefix('model_')}.json"


def _names(config: Config) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Our parameters, and the tensors that each is made of."""
    yield "embed.weight", (EMBEDDING,)
    if config.smear:
        yield from zip(
            ("smear.gate.weight", "smear.weight", "backout.weight"),
            ((name,) for name in SMEARS),
            strict=True,
        )
    for index in range(config.n_layer):
        ours = f"blocks.{index}"
        theirs = f"transformer.h.{index}"
        yield (
            f"{ours}.attention.qkv.weight",
            tuple(f"{theirs}.attn.c_{kind}.weight" for kind in "qkv"),
        )
        yield f"{ours}.attention.output.weight", (f"{theirs}.attn.c_proj.weight",)
        if config.embeds_values(index):
            yield f"{ours}.attention.value_embed.table.weight", (f"value_embeds.{index}.weight",)
            yield f"{ours}.attention.value_embed.gate.weight", (f"{theirs}{GATE}",)
        if config.mix_embedding:
            yield f"{ours}.mix.weight", tuple(f"{name}.{index}" for name in MIXES)
        yield f"{ours}.mlp.up.weight", (f"{theirs}.mlp.c_fc.weight",)
        yield f"{ours}.mlp.down.weight", (f"{theirs}.mlp.c_proj.weight",)
    yield "head.unembed.weight", (UNEMBEDDING,)


def _windows(given: Given, n_layer: int) -> str:
    """Which blocks see only a window (w) and which everything (f), from a pattern such as SSSL; the
    last one sees everything.
    """
    pattern = given.optional("window_pattern")
    pattern = "L" if pattern is None else pattern
    if not isinstance(pattern, str) or not pattern or set(pattern.upper()) - set("SL"):
        raise given.refusal("window_pattern", "it must be letters S and L, such as SSSL")
    letters = ["wf"[pattern.upper()[block % len(pattern)] == "L"] for block in range(n_layer)]
    return "".join([*letters[:-1], "f"])


def _stack_heads(tensors: list[Tensor], names: tuple[str, ...], config: Config) -> Tensor:
    """Queries, keys and values in one matrix. There the pairs of a head are turned the other way
    round, which is the same as the second half of its numbers before the first.
    """
    half = config.head_size // 2
    order = torch.cat((torch.arange(half, config.head_size), torch.arange(half)))
    try:
        return in_order(torch.cat(tensors), config, config.n_head + config.key_heads, order)
    except (RuntimeError, IndexError):
        raise ShapeError(
            f"the shape of {' or '.join(names)} does not go with the config: {MISMATCHED}"
        ) from None
