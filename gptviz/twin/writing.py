"""The plain twin of a model: `template.txt` has the parts of all twins in their order, and each
twin has those of its model.

A section begins at a line `#: condition`, and a line may end with `#? condition`. A condition is a
row of terms joined by “and”, each one of `facts_of`, with or without “not” before it; where it does
not hold, the section or line is left out. `$name` is one of `values_of`. To give twins another
part, write its section: a model with a part that has none is refused.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from torch import Tensor

from gptviz.model import Config, parameter_count
from gptviz.model.parts.norms import NORMS
from gptviz.model.parts.positions import POSITIONS, alibi_slopes
from gptviz.model.parts.residuals import RESIDUALS
from gptviz.settings.fields import field_info
from gptviz.text import Tokenizer

TEMPLATE = Path(__file__).with_name("template.txt").read_text(encoding="utf-8")
MOST_PARAMETERS = 5_000_000  # with more, plain Python takes seconds for each token
MOST_TO_LEARN = 10_000  # parameters: a step of training then takes about a second
BYTES_A_NUMBER = 13  # of JSON
# The fields of a config that choose a part, and those that must be as they usually are.
PARTS = ("residual", "norm", "positions", "mask", "mlp", "activation", "qk_norm")
USUAL = (
    *("rotary_fraction", "rotary_scaling", "window", "score_cap", "logit_cap"),
    *("smear", "mix_embedding", "backout", "value_gate"),
)
# The modules of Python's library that a twin may use, with the names that it takes from them, or
# none.
MODULES = {
    **dict.fromkeys(("argparse", "json", "math", "random", "re", "sys"), ()),
    "collections.abc": ("Callable", "Iterable"),
    "itertools": ("accumulate", "pairwise"),
    " math": ("cos", "erf", "exp", "pi", "sin", "tanh"),
    "operator": ("add", "mul"),
    "pathlib": ("Path",),
}


@dataclass(frozen=True)
class Stops:
    """Where a text ends by itself."""

    ends: tuple[int, ...] = ()  #: the tokens that end a text
    whole: int | None = (
        None  #: how many tokens each sequence of the model's task has, if equally many
    )


NEVER = Stops()


def check(config: Config, tokenizer: Tokenizer) -> None:
    """Refuse a model that has no twin. The message of the ValueError names the part that is
    missing.
    """
    if config.kind != "decoder":
        raise ValueError("only a decoder can be written as plain Python")
    if (number := parameter_count(config)) > MOST_PARAMETERS:
        raise ValueError(
            f"its {number:,} parameters are too many for plain Python: at most {MOST_PARAMETERS:,}"
        )
    there = set(re.findall(r"\S+=\S+", TEMPLATE)) | {f"{field}=none" for field in PARTS}
    usual = Config(vocab_size=1, context_length=1, d_model=1, n_layer=0)
    for field in (*PARTS, *USUAL):
        value = getattr(config, field)
        if value != getattr(usual, field) if field in USUAL else f"{field}={value}" not in there:
            raise ValueError(
                f"plain Python has no part for “{field_info(Config, field).label}”: {value}"
            )
    if _fact("tokenizer", tokenizer.kind) not in there:
        raise ValueError(f"plain Python has no part for “Tokenizer”: {tokenizer.kind}")
    tokens(tokenizer)


def write(
    name: str,
    config: Config,
    tokenizer: Tokenizer,
    weights: Mapping[str, Tensor],
    stops: Stops,
    folder: Path,
) -> None:
    """Write the files `name`.py and `name`.json into an empty folder, for a model that `check`
    accepts; `weights` are its parameters by name. An OSError if the disk is full or not writable.
    """
    (folder / f"{name}.py").write_text(source(name, config, tokenizer, stops), encoding="utf-8")
    with (folder / f"{name}.json").open("w", encoding="utf-8") as file:
        file.write(json.dumps(tokens(tokenizer))[:-1] + ',\n"weights": {')
        for number, (part, tensor) in enumerate(weights.items()):
            file.write(
                f"{',' if number else ''}\n{json.dumps(part)}: {_in_json(tensor.float().tolist())}"
            )
        file.write("\n}}\n")


def _in_json(numbers: Any) -> str:
    """A vector or a matrix, with as many digits as tell apart all numbers of float32."""
    if isinstance(numbers, list):
        return f"[{', '.join(map(_in_json, numbers))}]"
    return f"{numbers:.9g}"


def tokens(tokenizer: Tokenizer) -> dict[str, Any]:
    """What lies beside a twin of its tokenizer: all `tokens`, and any `merges`; a ValueError says
    why a twin cannot read them.
    """
    if tokenizer.kind != "bpe":
        pieces = map(tokenizer.piece, range(tokenizer.vocab_size))
        return {
            "tokens": [
                piece.removeprefix(" ") if tokenizer.is_spaced else piece for piece in pieces
            ]
        }
    fields = json.loads(tokenizer.to_json())
    model = fields["model"]
    cut = fields.get("pre_tokenizer") or {}
    is_as_gpt2s = (
        model["type"] == "BPE" and cut.get("type") == "ByteLevel" and cut.get("use_regex", True)
    )
    others = [
        stage for stage in ("added_tokens", "normalizer", "post_processor") if fields.get(stage)
    ]
    if others or not is_as_gpt2s or cut.get("add_prefix_space") or model.get("ignore_merges"):
        raise ValueError(
            "plain Python has no part for “Tokenizer”: "
            f"{', '.join(others) or 'byte pairs other than GPT-2’s'}"
        )
    ids = model["vocab"]
    pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"])
    return {
        "tokens": [
            tokenizer.bytes_of(token).decode("latin-1") for token in range(tokenizer.vocab_size)
        ],
        "merges": [[ids[left], ids[right], ids[left + right]] for left, right in pairs],
    }


def source(
    name: str,
    config: Config,
    tokenizer: Tokenizer,
    stops: Stops = NEVER,
    known: Mapping[str, object] | None = None,
) -> str:
    """The Python of a model, whose weights lie beside it in `name`.json; `known` has values that
    stand in it instead of the model's own.
    """
    facts = facts_of(config, tokenizer, stops)

    def condition_holds(condition: str) -> bool:
        terms = condition.split(" and ") if condition else []
        return all(
            (term.removeprefix("not ") in facts) != term.startswith("not ") for term in terms
        )

    beginning, *sections = re.split(r"\n+#: ?(.*)\n", TEMPLATE)
    texts = [
        beginning,
        *(
            text
            for condition, text in zip(sections[::2], sections[1::2], strict=True)
            if condition_holds(condition)
        ),
    ]
    lines = [[line.partition("  #? ") for line in text.rstrip("\n").split("\n")] for text in texts]
    chosen = [
        "\n".join(line for line, _, condition in text if condition_holds(condition))
        for text in lines
    ]
    title, *body = (
        Template(text).substitute(values_of(name, config, tokenizer, stops) | dict(known or {}))
        for text in chosen
    )
    return "\n\n".join((title, imports("\n".join(body)), "\n\n\n".join(body))) + "\n"


def facts_of(config: Config, tokenizer: Tokenizer, stops: Stops) -> set[str]:
    """The conditions that hold for a model."""
    has_blocks = config.n_layer > 0
    residual = config.residual
    positions = POSITIONS[config.positions]
    has_mlp = has_blocks and config.mlp_size > 0
    adds_positions = positions.acts_on == "embedding"
    in_blocks = has_blocks and (
        config.qkv_bias or config.output_bias or (has_mlp and config.mlp_bias)
    )
    has_bias = in_blocks or (config.unembed_bias and not config.tied)
    norms = has_blocks and (residual not in ("plain", "none") or config.qk_norm != "none")
    facts = {
        "learns": parameter_count(config) <= MOST_TO_LEARN,
        "bias": has_bias,
        "plus": has_bias
        or adds_positions
        or config.unembed_bias
        or (has_blocks and residual not in ("norm-only", "none")),
        "norm": norms or config.embed_norm or config.final_norm,
        "final_norm": config.final_norm,
        "gain": config.norm_gain,
        "norm_bias": config.norm_gain and config.norm_bias and NORMS[config.norm].may_have_bias,
        "blocks": has_blocks,
        "keeps": has_blocks and config.mask == "causal",
        "groups": config.key_heads < config.n_head and has_blocks,
        "mlp": has_mlp,
        "erf": has_mlp and config.activation == "gelu",
        "tanh": has_mlp and config.activation in ("gelu-tanh", "silu"),
        "tied": config.tied,
        "unembed_bias": config.unembed_bias,
        "ends": bool(stops.ends),
        "whole": stops.whole is not None,
    }
    chosen = {_fact(field, getattr(config, field)) for field in PARTS} | {
        _fact("tokenizer", tokenizer.kind)
    }
    return {fact for fact, holds in facts.items() if holds} | chosen


def _fact(field: str, value: str) -> str:
    """The condition that a field has this value."""
    return f"{field}={value.replace(' ', '-')}"


def values_of(name: str, config: Config, tokenizer: Tokenizer, stops: Stops) -> dict[str, object]:
    """The numbers and expressions of a model."""
    embedded = ['WEIGHTS["embed.weight"][token]']
    if config.embed_scale != 1:
        embedded.append(f"[{config.embed_scale!r} * number for number in vector]")
    if POSITIONS[config.positions].acts_on == "embedding":
        embedded.append("plus(vector, position(place))")
    if config.embed_norm:
        embedded.append('norm(vector, "embed_norm")')
    *steps, last = embedded
    has_groups = config.key_heads < config.n_head
    return {
        "name": name,
        "parameters": f"{parameter_count(config):,}",
        "context": config.context_length,
        "blocks": config.n_layer,
        "width": config.d_model,
        "heads": config.n_head,
        "head_size": config.head_size,
        "groups": config.key_heads,
        "key_heads": "KEY_HEADS" if has_groups else "HEADS",
        "serving": "shared" if has_groups else "head",
        "ends": set(stops.ends),
        "whole": stops.whole,
        "eps": config.norm_eps or NORMS[config.norm].usual_eps,
        "embedded": "\n    ".join([*(f"vector = {step}" for step in steps), f"return {last}"]),
        "rotary_base": f"{config.rotary_base:.10g}",
        "slopes": alibi_slopes(config.n_head).tolist(),
        "scale": "HEAD_SIZE**-0.5" if config.scale == config.head_size**-0.5 else config.scale,
        "equation": RESIDUALS[config.residual].equation,
        "unknown": getattr(tokenizer, "stand_in", getattr(tokenizer, "unknown", 0)),
    }


def imports(body: str) -> str:
    """The imports of what the Python `body` uses and does not define."""
    names = [node for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)]
    used = {node.id for node in names} - {
        node.id for node in names if isinstance(node.ctx, ast.Store)
    }
    if "Number" in used:
        lines = ["from __future__ import annotations\n"]
    else:
        lines = []
    for module, functions in MODULES.items():
        if here := [function for function in functions if function in used]:
            lines.append(f"from {module.strip()} import {', '.join(here)}")
        elif module in used:
            lines.append(f"import {module}")
    return "\n".join(lines)
