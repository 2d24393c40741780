"""nanochat's checkpoints: `model_000650.pt` with `meta_000650.json`, and its `tokenizer.pkl`. No file can run code here.

Of its versions, those until 10 January 2026 are opened, of which weights are published: rotary positions, queries and keys that
are normalised, ReLU², norms without gains, a norm after the embedding, and a cap of 15 on the logits. Later versions mix the
embedding into every block, have embeddings of values, and more; they are refused by the name of the first tensor that says so.

Source: github.com/karpathy/nanochat, `nanochat/gpt.py` and `nanochat/checkpoint_manager.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from gptviz.machine.bounded import parse_json, read_regular
from gptviz.model import Config

from ..families import Given, ImportRefusedError
from ..families.base import MISMATCHED, ShapeError, in_order, lacking, without_place
from .folder import LONGEST_CONFIG
from .nanochat_tokens import ASSISTANT_END, chat, tokenizer_near
from .source import ModelSource, Opened, Outline, fitted
from .tensors import reading, state_dict

TITLE = "nanochat"
WEIGHTS = re.compile(r"model_(\d{6,})\.pt")
MOST_SETTINGS = 10_000
COMPILED = "_orig_mod."
LOGIT_CAP = 15.0
ROTARY_BASE = 10_000.0
# `torch.nn.functional.rms_norm` adds this where nothing else is asked for.
EPS = torch.finfo(torch.float32).eps
EMBEDDING, UNEMBEDDING = "transformer.wte.weight", "lm_head.weight"
# The first words of tensors that later versions have, and what they do.
LATER = {
    "resid_lambdas": "mixes the embedding into every block",
    "x0_lambdas": "mixes the embedding into every block",
    "value_embeds": "adds embeddings to the values of attention",
    "smear_gate": "mixes each token with the one before it",
    "backout_lambda": "takes away the stream of its middle",
}


class NanoChat(ModelSource):
    """A `.pt` file of nanochat with its `meta_….json`, or the folder that has them, of which the last step is opened."""

    kind = "nanochat"

    @classmethod
    def fits(cls, path: Path) -> bool:
        return _weights_at(path) is not None

    @cached_property
    def _file(self) -> Path:
        found = _weights_at(self.path)
        if found is None:
            raise ImportRefusedError(f"the weights at {self.path} are gone: put them back, or import the model again")
        return found

    def files(self) -> list[Path]:
        return [self._file]

    @cached_property
    def _settings(self) -> Given:
        file = _meta_of(self._file)
        with reading(file):
            fields = parse_json(read_regular(file, LONGEST_CONFIG), MOST_SETTINGS)
        settings = fields.get("model_config") if isinstance(fields, dict) else None
        if not isinstance(settings, dict):
            raise ImportRefusedError(f"{file.name} has no table model_config: copy or download it again")
        return Given(settings, TITLE)

    @cached_property
    def _tensors(self) -> dict[str, Tensor]:
        tensors = {name.removeprefix(COMPILED): value for name, value in state_dict(self._file).items()}
        for name in tensors:
            if (words := LATER.get(name.partition(".")[0])) is not None:
                raise ImportRefusedError(
                    f"{self._file.name}: it has {name}: this version of nanochat {words}; gptviz opens those until 10 January "
                    "2026"
                )
        return tensors

    def outline(self) -> Outline:
        given, meta = self._settings, _meta_of(self._file).name
        try:
            given.only("window_pattern", "L")
            width, heads = given.whole("n_embd"), given.whole("n_head")
            keys = given.whole("n_kv_head", heads)
            config = Config(
                vocab_size=given.whole("vocab_size"),
                context_length=given.whole("sequence_len"),
                d_model=width,
                n_layer=given.whole("n_layer"),
                n_head=heads,
                n_kv_head=None if keys == heads else keys,
                norm="rmsnorm",
                norm_eps=EPS,
                norm_gain=False,
                positions="rotary",
                rotary_base=ROTARY_BASE,
                activation="relu2",
                embed_norm=True,
                qk_norm="shared",
                logit_cap=LOGIT_CAP,
                qkv_bias=False,
                output_bias=False,
                mlp_bias=False,
            )
        except (ImportRefusedError, ValueError, TypeError, ZeroDivisionError) as error:
            raise ImportRefusedError(f"{meta}: {str(error).removeprefix('config.json: ')}") from None
        return Outline(TITLE, config)

    def opened(self) -> Opened:
        outline = self.outline()
        # Its tensors come first, to refuse a version that is not opened here, and a file that could run code.
        words = tokenizer_near(self._file) if self._tensors else None
        tokenizer, notes = fitted(words, outline.config.vocab_size, "tokenizer.pkl")
        if words is None:
            return Opened(outline.family, outline.config, tokenizer, notes)
        end = words.id_of(ASSISTANT_END)
        return Opened(outline.family, outline.config, tokenizer, notes, chat=chat(words), ends=() if end is None else (end,))

    def parameters(self, config: Config) -> Iterator[tuple[str, Tensor]]:
        left = dict(self._tensors)

        def take(name: str) -> Tensor:
            if name not in left:
                raise lacking(self._file.name, name)
            return left.pop(name)

        for ours, theirs in _names(config):
            tensors = [take(name) for name in theirs]
            if ours in ("embed.weight", "head.unembed.weight"):
                yield ours, tensors[0][: config.vocab_size]  # filled up to a multiple of 64
            elif ours.endswith("attention.qkv.weight"):
                yield ours, _stacked(tensors, theirs, config)
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
    return path if WEIGHTS.fullmatch(path.name) and os.path.lexists(path) and os.path.lexists(_meta_of(path)) else None


def _meta_of(file: Path) -> Path:
    return file.parent / f"meta_{file.stem.removeprefix('model_')}.json"


def _names(config: Config) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Our parameters, and the tensors that each is made of."""
    yield "embed.weight", (EMBEDDING,)
    for index in range(config.n_layer):
        ours, theirs = f"blocks.{index}", f"transformer.h.{index}"
        yield f"{ours}.attention.qkv.weight", tuple(f"{theirs}.attn.c_{one}.weight" for one in "qkv")
        yield f"{ours}.attention.output.weight", (f"{theirs}.attn.c_proj.weight",)
        yield f"{ours}.mlp.up.weight", (f"{theirs}.mlp.c_fc.weight",)
        yield f"{ours}.mlp.down.weight", (f"{theirs}.mlp.c_proj.weight",)
    yield "head.unembed.weight", (UNEMBEDDING,)


def _stacked(tensors: list[Tensor], names: tuple[str, ...], config: Config) -> Tensor:
    """Queries, keys and values in one matrix. There the pairs of a head are turned the other way round, which is the same as the
    second half of its numbers before the first.
    """
    half = config.head_size // 2
    order = torch.cat((torch.arange(half, config.head_size), torch.arange(half)))
    try:
        return in_order(torch.cat(tensors), config, config.n_head + config.key_heads, order)
    except (RuntimeError, IndexError):
        raise ShapeError(f"the shape of {' or '.join(names)} does not go with the config: {MISMATCHED}") from None
