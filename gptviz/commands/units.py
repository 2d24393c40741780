"""The commands that show what single heads and neurons of a model do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from gptviz.settings.fields import check_number, whole_number

from .common import UsageError, pick_values, text_of, token_text
from .options import File, Name, command
from .pairs import Pairs
from .printing import CommandOutput, Lines, Table

if TYPE_CHECKING:
    from gptviz.interp.units.activity import Activity
    from gptviz.language_model import LanguageModel

# The neurons listed, and the tokens of a neuron or a head.
LISTED = 20
TOKENS = 10
# Of a head, tokens that stand less often in the text are not listed.
OFTEN = 3
# The tokens of a context before and after the one at which the neuron is active.
BEFORE = 20
BEHIND = 5
NUMBERS = ("largest", "smallest", "active", "effect")


@command(
    160,
    pairs=Pairs(
        "switch off",
        "clean, right",
        "by how much the loss of the right answer rises without each piece",
        is_needed=False,
    ),
)
def heads(
    lm: LanguageModel,
    prompt: str | None = None,
    losses: bool = False,
    head: Name | None = None,
    corpus: File | None = None,
    tokens: int = 16_384,
) -> CommandOutput:
    """Score every head: previous token, induction, first token, copying and more. Or look at one:
    where in a text it does most.

    Args:
        prompt: the text that the heads read; default: repeated random tokens.
        losses: also how much the loss rises without each head; a pass for each.
        head: the head to look at, as in blocks.1.attention.head.2; default: all are scored.
        corpus: with --head, a text file to read; default: the data held out of training.
        tokens: with --head, how many tokens are read at most.
    """
    if head is not None:
        return _one_head(lm, head, text_of(corpus), tokens)
    rows = lm.heads(prompt, losses=losses)
    names = [
        name
        for name in rows[0]
        if name not in ("name", "block", "head") and any(row[name] is not None for row in rows)
    ]
    cells = [
        [row["name"], *("" if row[name] is None else f"{row[name]:.3f}" for name in names)]
        for row in rows
    ]
    return CommandOutput(rows, [Table(cells, ["", *names])])


def _one_head(lm: LanguageModel, name: str, text: str | None, tokens: int) -> CommandOutput:
    from gptviz.interp.units.unit import unit

    of = unit(name, lm.model.config)
    if not of.is_head or of.index is None:
        raise UsageError(f"{name} is no head: name one as in blocks.1.attention.head.2")
    seen = lm.activity(of.layer, text, tokens)
    about = {"name": name, "tokens": seen.n_tokens, "effect": seen.effect[of.index]}
    contexts = _contexts(lm, seen, of.index)
    most: dict[str, list[dict[str, Any]]] = {}
    for side, activity in (
        ("query", seen),
        ("key", lm.activity(of.layer, text, tokens, side="key")),
    ):
        pairs = activity.tokens(of.index, TOKENS, min(OFTEN, int(activity.seen.max())))
        most[side] = [{"token": token_text(lm, token), "value": value} for token, value in pairs]
    lines: Lines = [
        f"{of.title}, over {seen.n_tokens:,} tokens: it adds a vector of the mean length "
        f"{about['effect']:.4g} to the stream",
        "where it adds most: the text before, the token in [ ], and the text after it",
        _context_table(contexts),
        f"it adds most at: {_list_tokens(most['query'], '.3g')}",
        f"it reads most from: {_list_tokens(most['key'], '.3g')}",
    ]
    return CommandOutput(about | {"contexts": contexts} | most, lines)


@command(170)
def neurons(
    lm: LanguageModel,
    block: int | None = None,
    neuron: int | None = None,
    corpus: File | None = None,
    tokens: int = 16_384,
    by: Literal["largest", "active", "effect"] = "largest",
) -> CommandOutput:
    """Rank the neurons of a block, or look at one: where it is active, and what it promotes.

    Args:
        block: the block, counted from 0; default: the one in the middle.
        neuron: the neuron to look at, counted from 0; default: all are ranked.
        tokens: how many tokens are read at most.
        by: what neurons are ranked by.
    """
    config = lm.model.config
    if config.kind == "encoder-decoder":
        raise UsageError(f"{lm.name} has two stacks: the command neurons is for models of one")
    check_number(whole_number(1), "--tokens", tokens)
    block = config.n_layer // 2 if block is None else block
    if not 0 <= block < config.n_layer or not config.mlp_size:
        has = f"it has {config.n_layer} blocks of {config.mlp_size} neurons"
        raise UsageError(f"{lm.name} has no neurons in block {block}: {has}")
    if neuron is not None:
        check_number(whole_number(0, config.mlp_size - 1), "--neuron", neuron)
    seen = lm.activity(f"blocks.{block}.mlp", text_of(corpus), tokens)
    if neuron is None:
        return _ranking(seen, by)
    return _one_neuron(lm, seen, neuron)


def _ranking(seen: Activity, by: str) -> CommandOutput:
    order = seen.ranked(by)
    numbers = {name: values.tolist() for name, values in pick_values(seen, *NUMBERS).items()}
    content = [
        {"block": seen.layer.block, "neuron": n} | {name: of[n] for name, of in numbers.items()}
        for n in order
    ]
    rows = [[f"neuron {n}", *(f"{of[n]:.4g}" for of in numbers.values())] for n in order[:LISTED]]
    return CommandOutput(
        content,
        [Table(rows, [f"block {seen.layer.block}, over {seen.n_tokens:,} tokens", *NUMBERS])],
    )


def _one_neuron(lm: LanguageModel, seen: Activity, neuron: int) -> CommandOutput:
    from gptviz.interp.units.neurons import columns, promoted_tokens

    block = seen.layer.block or 0
    about: dict[str, Any] = {"block": block, "neuron": neuron, "tokens": seen.n_tokens}
    about |= {name: values[neuron] for name, values in pick_values(seen, *NUMBERS).items()}
    contexts = _contexts(lm, seen, neuron)
    speaks: dict[str, list[dict[str, Any]]] = {}
    if lm.model.config.kind == "decoder":
        values = promoted_tokens(lm.model, columns(lm.model, block)[:, neuron])
        order = values.argsort().tolist()
        # A small vocabulary may have fewer tokens that are raised, or lowered.
        for name, sign, ids in (("promoted", 1, order[::-1]), ("suppressed", -1, order)):
            speaks[name] = [
                {"token": token_text(lm, i), "value": float(values[i])}
                for i in ids[:TOKENS]
                if sign * values[i] > 0
            ]
    lines: Lines = [
        f"neuron {neuron} of block {block}, over {seen.n_tokens:,} tokens",
        f"activation from {about['smallest']:.4g} to {about['largest']:.4g}, above 0 at "
        f"{about['active']:.1%} of the tokens",
        f"it adds a vector of the mean length {about['effect']:.4g} to the residual stream",
        "its highest activations: the text before, the token in [ ], and the text after it",
        _context_table(contexts),
    ]
    for name, some in speaks.items():
        lines.append(
            f"{name}, by what is added to their logits, but for one common factor: "
            f"{_list_tokens(some, '+.3g')}"
        )
    return CommandOutput(about | {"contexts": contexts} | speaks, lines)


def _contexts(lm: LanguageModel, seen: Activity, unit: int) -> list[dict[str, Any]]:
    """The places with the highest numbers of a unit, with the text around each."""
    places = zip(seen.highest[:, unit].tolist(), seen.places(unit), strict=False)
    return [
        {"activation": value} | _texts(lm, seen.rows[row].tolist(), at)
        for value, (row, at) in places
    ]


def _context_table(contexts: list[dict[str, Any]]) -> Table:
    return Table(
        [
            (
                f"{one['activation']:>9.4g}",
                f"{one['before']!r} [{one['token']!r}] {one['behind']!r}",
            )
            for one in contexts
        ]
    )


def _list_tokens(tokens: list[dict[str, Any]], form: str) -> str:
    return ", ".join(f"{one['token']!r} {one['value']:{form}}" for one in tokens) or "none"


def _texts(lm: LanguageModel, ids: list[int], at: int) -> dict[str, str]:
    """The text before the token at a place of a row, the token, and the text behind it."""
    pieces = {
        "before": ids[max(0, at - BEFORE) : at],
        "token": ids[at : at + 1],
        "behind": ids[at + 1 : at + 1 + BEHIND],
    }
    return {name: "".join(map(lm.tokenizer.piece, some)) for name, some in pieces.items()}
