"""The commands that show which parts of a model a guess comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .analysis import analysis
from .common import UsageError, answer, picked
from .pairs import Pairs
from .printing import Lines, Shown, Table

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel


@analysis(120, Pairs("attribute", "clean, right, wrong", "what each piece adds"))
def attribute(
    lm: LanguageModel, prompt: str, token: str | None = None, against: str | None = None, position: int | None = None
) -> Shown:
    """What each head, MLP and bias adds to the logit of a token, or of a label.

    Args:
        prompt: what the model reads; of an encoder–decoder the source.
        token: whose logit; of a classifier a label. Default: the likeliest.
        against: another token: the parts then add up to the difference of both logits.
    """
    is_classifier = lm.model.config.kind == "classifier"
    if position is not None and is_classifier:
        raise UsageError(f"{lm.name} is a classifier: a label is of the whole text, so leave --position out")
    found = lm.attribute(prompt, token, position, against)
    content = picked(found, "logit", "sum", "capped", "error")
    content |= {"token": answer(lm, found.token), "against": None if found.against is None else answer(lm, found.against)}
    content |= {"position": found.position, "parts": [picked(part, "name", "value") for part in found.parts]}
    of = lm.labels.__getitem__ if is_classifier else lm.tokenizer.label
    minus = "" if found.against is None else f" minus that of {of(found.against)}"
    after = "" if found.position is None else f" after position {found.position}"
    lines: Lines = [f"the logit of {of(found.token)}{minus}{after} is {found.logit:.4f}"]
    if found.capped != found.logit:
        lines.append(f"the model caps its logits: it answers with {found.capped:.4f}")
    lines.append(Table([(f"{part.value:>+10.4f}", part.name) for part in sorted(found.parts, key=lambda one: -abs(one.value))]))
    off = "" if found.adds_up else ": they do NOT add up"
    lines.append(f"all parts together: {found.sum:.4f}, off by {found.error:.1g} of the largest{off}")
    return Shown(content, lines)


@analysis(125)
def scan(lm: LanguageModel, prompt: str) -> Shown:
    """What stands out in a model that reads a prompt, the most telling first."""
    findings = lm.scan(prompt)
    rows = [(f"{one.strength:.2f}", one.page, one.sentence) for one in findings]
    return Shown([one.to_dict() for one in findings], [Table(rows) if rows else "Nothing stands out."])


@analysis(130)
def circuit(
    lm: LanguageModel,
    prompt: str,
    token: str | None = None,
    against: str | None = None,
    position: int | None = None,
    share: float = 0.8,
    reference: str | None = None,
) -> Shown:
    """The parts that contribute most to a guess, as a graph, and what is left without all others.

    Args:
        token: whose logit; default: the likeliest.
        against: another token, whose logit is subtracted.
        share: how much of the logit is traced back to tokens within the graph, above 0, at most 1.
        reference: the text that means are taken over for the check; default: the prompt.
    """
    found = lm.circuit(prompt, token, position, against, share)
    checked, piece, label = lm.check_circuit(found, reference), lm.tokenizer.piece, lm.tokenizer.label
    nodes: list[dict[str, Any]] = [
        {
            "name": "logit" if one.unit is None else one.unit.name,
            "position": one.position,
            "token": piece(found.ids[one.position]),
            "value": found.given[one],
            "weight": found.weights[one],
        }
        for one in found.nodes
    ]
    edges = [{"from": edge.source.name, "to": edge.target.name, **picked(edge, "kind", "value", "share")} for edge in found.edges]
    content: dict[str, Any] = {"token": piece(found.token), "against": None if found.against is None else piece(found.against)}
    content |= {"position": found.position, "logit": found.total, **picked(found, "rest", "share", "reached")}
    content |= {"nodes": nodes, "edges": edges, "check": picked(checked, "whole", "kept", "without", "probability")}
    minus = "" if found.against is None else f" minus that of {label(found.against)}"
    rows = [(f"{one['value']:>+10.4f}", f"{one['kind']:<5}", f"{one['from']} → {one['to']}") for one in edges]
    limit = "" if found.reached else ": a larger share needs a graph too large to read"
    lines: Lines = [
        f"the logit of {label(found.token)}{minus} after position {found.position} is {found.total:.4f}",
        "what each part (name@position) adds to what a later one reads, beyond its mean over this text:",
        Table(rows),
        f"{found.rest:>+10.4f}  biases, and the means of all parts over this text",
        f"{len(nodes)} nodes, {len(edges)} edges, which trace {found.share:.1%} back to tokens{limit}",
        f"with everything outside at its mean {checked.kept:.4f} of {checked.whole:.4f} is left; with all parts at their means "
        f"{checked.without:.4f}",
    ]
    return Shown(content, lines)
