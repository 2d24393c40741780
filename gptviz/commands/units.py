"""The commands that show what single heads and neurons of a model do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .analysis import File, analysis
from .common import UsageError, picked, text_of, token_text
from .pairs import Pairs
from .printing import Lines, Shown, Table

if TYPE_CHECKING:
    from torch import Tensor

    from gptviz.interp.units.neurons import Activity
    from gptviz.language_model import LanguageModel

# The neurons listed, and the tokens that a neuron promotes and suppresses.
LISTED, TOKENS = 20, 10
# The tokens of a context before and after the one at which the neuron is active.
BEFORE, BEHIND = 20, 5
NUMBERS = ("largest", "smallest", "active", "effect")


@analysis(
    160, Pairs("switch off", "clean, right", "by how much the loss of the right answer rises without each piece", is_needed=False)
)
def heads(lm: LanguageModel, prompt: str | None = None, losses: bool = False) -> Shown:
    """Score every head: previous token, induction, first token, copying and more.

    Args:
        prompt: the text that the heads read; default: repeated random tokens.
        losses: also how much the loss rises without each head; a pass for each.
    """
    rows = lm.heads(prompt, losses=losses)
    names = [name for name in rows[0] if name not in ("name", "block", "head") and any(row[name] is not None for row in rows)]
    cells = [[row["name"], *("" if row[name] is None else f"{row[name]:.3f}" for name in names)] for row in rows]
    return Shown(rows, [Table(cells, ["", *names])])


@analysis(170)
def neurons(
    lm: LanguageModel,
    block: int | None = None,
    neuron: int | None = None,
    corpus: File | None = None,
    tokens: int = 16_384,
    by: Literal["largest", "active", "effect"] = "largest",
) -> Shown:
    """Rank the neurons of a block, or look at one: where it is active, and what it promotes.

    Args:
        block: the block, counted from 0; default: the one in the middle.
        neuron: the neuron to look at, counted from 0; default: all are ranked.
        tokens: how many tokens are read at most.
        by: what neurons are ranked by.
    """
    from gptviz.interp.units.neurons import observe

    config = lm.model.config
    if config.kind == "encoder-decoder":
        raise UsageError(f"{lm.name} has two stacks: the command neurons is for models of one")
    if tokens < 1:
        raise UsageError(f"--tokens is {tokens}; it must be 1 or more")
    block = config.n_layer // 2 if block is None else block
    if not 0 <= block < config.n_layer or not config.mlp_size:
        has = f"it has {config.n_layer} blocks of {config.mlp_size} neurons"
        raise UsageError(f"{lm.name} has no neurons in block {block}: {has}")
    if neuron is not None and not 0 <= neuron < config.mlp_size:
        raise UsageError(f"there is no neuron {neuron}: neurons are counted from 0 to {config.mlp_size - 1}")
    rows = lm.rows(text_of(corpus), tokens)
    *_, seen = observe(lm.model, block, rows)
    return _ranking(seen.activity(), by) if neuron is None else _one(lm, seen.activity(), rows, neuron)


def _ranking(seen: Activity, by: str) -> Shown:
    order, numbers = seen.ranked(by), {name: values.tolist() for name, values in picked(seen, *NUMBERS).items()}
    content = [{"block": seen.block, "neuron": n} | {name: of[n] for name, of in numbers.items()} for n in order]
    rows = [[f"neuron {n}", *(f"{of[n]:.4g}" for of in numbers.values())] for n in order[:LISTED]]
    return Shown(content, [Table(rows, [f"block {seen.block}, over {seen.n_tokens:,} tokens", *NUMBERS])])


def _one(lm: LanguageModel, seen: Activity, rows: list[Tensor], neuron: int) -> Shown:
    from gptviz.interp.units.neurons import promoted

    about: dict[str, Any] = {"block": seen.block, "neuron": neuron, "tokens": seen.n_tokens}
    about |= {name: float(values[neuron]) for name, values in picked(seen, *NUMBERS).items()}
    places = zip(seen.highest[:, neuron].tolist(), seen.places(neuron), strict=False)
    contexts = [{"activation": value} | _texts(lm, rows[row].tolist(), at) for value, (row, at) in places]
    speaks: dict[str, list[dict[str, Any]]] = {}
    if lm.model.config.kind == "decoder":
        values = promoted(lm.model, seen.block, neuron)
        order = values.argsort().tolist()
        # A small vocabulary may have fewer tokens that are raised, or lowered.
        for name, sign, ids in (("promoted", 1, order[::-1]), ("suppressed", -1, order)):
            speaks[name] = [{"token": token_text(lm, i), "value": float(values[i])} for i in ids[:TOKENS] if sign * values[i] > 0]
    lines: Lines = [
        f"neuron {neuron} of block {seen.block}, over {seen.n_tokens:,} tokens",
        f"activation from {about['smallest']:.4g} to {about['largest']:.4g}, above 0 at {about['active']:.1%} of the tokens",
        f"it adds a vector of the mean length {about['effect']:.4g} to the residual stream",
        "its highest activations: the text before, the token in [ ], and the text after it",
        Table([(f"{one['activation']:>9.4g}", f"{one['before']!r} [{one['token']!r}] {one['behind']!r}") for one in contexts]),
    ]
    for name, some in speaks.items():
        said = ", ".join(f"{one['token']!r} {one['value']:+.3g}" for one in some) or "none"
        lines.append(f"{name}, by what is added to their logits, but for one common factor: {said}")
    return Shown(about | {"contexts": contexts} | speaks, lines)


def _texts(lm: LanguageModel, ids: list[int], at: int) -> dict[str, str]:
    """The text before the token at a place of a row, the token, and the text behind it."""
    pieces = {"before": ids[max(0, at - BEFORE) : at], "token": ids[at : at + 1], "behind": ids[at + 1 : at + 1 + BEHIND]}
    return {name: "".join(map(lm.tokenizer.piece, some)) for name, some in pieces.items()}
