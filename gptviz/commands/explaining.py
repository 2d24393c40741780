"""The commands that show which parts of a model a guess comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from gptviz.settings.fields import check_number, whole_number

from .common import UsageError, pick_values, token_text
from .options import command
from .pairs import Pairs
from .printing import CommandOutput, Lines, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gptviz.interp.explaining.attribution import Attribution
    from gptviz.interp.explaining.circuit import Circuit, Node
    from gptviz.language_model import LanguageModel

SPEAKS = 3  # tokens that a feature is said to speak for


@command(120, pairs=Pairs("attribute", "clean, right, wrong", "what each piece adds"))
def attribute(
    lm: LanguageModel,
    prompt: str,
    token: str | None = None,
    against: str | None = None,
    position: int | None = None,
) -> CommandOutput:
    """What each head, MLP and bias adds to the logit of a token, or of a label.

    Args:
        prompt: what the model reads; of an encoder–decoder the source.
        token: whose logit; of a classifier a label. Default: the likeliest.
        against: another token: the parts then add up to the difference of both logits.
    """
    from gptviz.language_model.core import answer_space_of

    answers = answer_space_of(lm)
    if position is not None and answers.noun == "label":
        raise UsageError(
            f"{lm.name} is a classifier: a label is of the whole text, so leave --position out"
        )
    attribution = lm.attribute(prompt, token, position, against)
    content = pick_values(attribution, "logit", "sum", "capped", "error", "position")
    content |= {
        "token": answers.text(attribution.token),
        "against": None if attribution.against is None else answers.text(attribution.against),
        "parts": [pick_values(part, "name", "value") for part in attribution.parts],
    }
    if attribution.position is None:
        after = ""
    else:
        after = f" after position {attribution.position}"
    lines: Lines = [f"{_of_logit(attribution, answers.label)}{after} is {attribution.logit:.4f}"]
    if attribution.capped != attribution.logit:
        lines.append(f"the model caps its logits: it answers with {attribution.capped:.4f}")
    parts = sorted(attribution.parts, key=lambda part: -abs(part.value))
    lines.append(Table([(f"{part.value:>+10.4f}", part.name) for part in parts]))
    off = "" if attribution.adds_up else ": they do NOT add up"
    lines.append(
        f"all parts together: {attribution.sum:.4f}, off by {attribution.error:.1g} of the "
        f"largest{off}"
    )
    return CommandOutput(content, lines)


@command(125)
def scan(lm: LanguageModel, prompt: str) -> CommandOutput:
    """What stands out in a model that reads a prompt, the most telling first."""
    findings = lm.scan(prompt)
    rows = [(f"{finding.strength:.2f}", finding.page, finding.sentence) for finding in findings]
    return CommandOutput(
        findings,
        [Table(rows) if rows else "Nothing stands out."],
    )


@command(130)
def circuit(
    lm: LanguageModel,
    prompt: str,
    token: str | None = None,
    against: str | None = None,
    position: int | None = None,
    share: float = 0.8,
    nodes: Literal["parts", "features"] = "parts",
    reference: str | None = None,
    check: bool = False,
) -> CommandOutput:
    """The parts that contribute most to a guess, as a graph, and what is left without all others.

    Args:
        token: whose logit; default: the likeliest.
        against: another token, whose logit is subtracted.
        share: how much of the logit is traced back to tokens within the graph, above 0, at most 1.
        nodes: with features, each MLP is drawn as the features of its transcoder, with what they
            speak for, and an error: what the transcoder misses.
        reference: the text that means are taken over for the check; default: the prompt.
        check: print what is left without all others, and nothing else.
    """
    graph = lm.circuit(prompt, token, position, against, share, nodes=nodes)
    checked = lm.check_circuit(graph, reference)
    piece = lm.tokenizer.piece
    listed: list[dict[str, Any]] = [
        {
            "name": "logit" if node.unit is None else node.unit.name,
            "position": node.position,
            "token": piece(graph.ids[node.position]),
            "value": graph.given[node],
            "weight": graph.weights[node],
            **_speaks_for(lm, node),
        }
        for node in graph.nodes
    ]
    edges = [
        {
            "from": edge.source.name,
            "to": edge.target.name,
            **pick_values(edge, "kind", "value", "share"),
        }
        for edge in graph.edges
    ]
    content: dict[str, Any] = {
        "token": piece(graph.token),
        "against": None if graph.against is None else piece(graph.against),
    }
    content |= pick_values(graph, "position", "rest", "share", "reached")
    content |= {
        "logit": graph.total,
        "nodes": listed,
        "edges": edges,
        "check": pick_values(checked, "whole", "kept", "without", "probability"),
        "kept": checked.share,
        "random": pick_values(checked.random, "median", "low", "high"),
    }
    rows = [
        (f"{edge['value']:>+10.4f}", f"{edge['kind']:<5}", f"{edge['from']} → {edge['to']}")
        for edge in edges
    ]
    missed: Lines = []
    if graph.transcoders:
        content |= {"explained": graph.share, "error": graph.missed}
        spoken = [
            (each["name"], f"@{each['position']}", " ".join(each["speaks_for"]))
            for each in listed
            if "speaks_for" in each
        ]
        missed = [
            f"{graph.missed:.1%} ends in what the transcoders miss",
            Table(spoken, ("feature", "at", "speaks for")),
        ]
    if graph.reached:
        limit = ""
    else:
        limit = ": a larger share needs a graph too large to read"
    of = f"{_of_logit(graph, lm.tokenizer.label)} after position {graph.position}"
    found: Lines = [
        f"{of} is {graph.total:.4f}",
        "what each part (name@position) adds to what a later one reads, beyond its mean over this "
        "text:",
        Table(rows),
        f"{graph.rest:>+10.4f}  biases, and the means of all parts over this text",
        f"{len(listed)} nodes, {len(edges)} edges, which trace {graph.share:.1%} back to "
        f"tokens{limit}",
        *missed,
    ]
    random = checked.random
    left: Lines = [
        f"with everything outside at its mean {checked.kept:.4f} of {checked.whole:.4f} is left; "
        "with all parts at their means "
        f"{checked.without:.4f}",
        f"so the {len(edges)} edges keep {checked.share:.1%} of {of}; as many random edges keep "
        f"{random.median:.1%} (median of {len(checked.kept_at_random)} draws, from "
        f"{random.low:.1%} to {random.high:.1%})",
    ]
    lines = left if check else found + left
    return CommandOutput(content, lines)


def _speaks_for(lm: LanguageModel, node: Node) -> dict[str, list[str]]:
    """The tokens that a feature raises most; nothing of other nodes."""
    if node.unit is None or node.unit.part != "dictionary":
        return {}
    return {"speaks_for": list(lm.promoted(node.unit.name, SPEAKS).axes[0].labels[:SPEAKS])}


@command(135)
def gradient(
    lm: LanguageModel, prompt: str, block: int | None = None, top: int = 3
) -> CommandOutput:
    """What one step of training on a prompt writes into the MLP of a block, read as words.

    Args:
        prompt: what the step learns from.
        block: whose MLP, counted from 0; default: the last.
        top: how many words of each reading.
    """
    from gptviz.interp.explaining.backward_lens import UNIT, largest

    step = lm.backward_lens(prompt, block)
    check_number(whole_number(1, lm.tokenizer.vocab_size), "--top", top)
    label = lm.tokenizer.label
    tokens = list[dict[str, Any]]()
    rows = list[tuple[str, ...]]()
    for place, token in enumerate(step.ids[:-1]):
        readings = {
            "asked": step.asked,
            "written_before": step.written_before,
            "written_after": step.written_after,
            "added": step.change,
            "taken": -step.change,
        }
        words = {name: largest(values[place], top) for name, values in readings.items()}
        following = step.ids[place + 1]
        before = float(step.probability_before[place])
        after = float(step.probability_after[place])
        tokens.append(
            {
                "token": token_text(lm, token),
                "next": token_text(lm, following),
                "probability_before": before,
                "probability_after": after,
            }
            | {
                name: [{"token": token_text(lm, word), "value": value} for word, value in each]
                for name, each in words.items()
            }
        )
        shown = [
            ", ".join(f"{label(word)} {value:+.3g}" for word, value in words[name])
            for name in ("asked", "written_before", "written_after", "added")
        ]
        chances = f"{before:.2%} → {after:.2%}"
        rows.append((f"{place} {label(token)}", label(following), *shown, chances))
    names = ("token read", "next", "asked for", "written before", "written after", "added")
    lines: Lines = [
        f"what a step on this text writes into the MLP of block {step.block}, in words ({UNIT}s, "
        "but for the size of norms); and how likely it makes the next token",
        Table(rows, (*names, "probability")),
    ]
    return CommandOutput({"block": step.block, "unit": UNIT, "tokens": tokens}, lines)


def _of_logit(of: Attribution | Circuit, label: Callable[[int], str]) -> str:
    """The logit, or the difference of two, that something is about."""
    minus = "" if of.against is None else f" minus that of {label(of.against)}"
    return f"the logit of {label(of.token)}{minus}"
