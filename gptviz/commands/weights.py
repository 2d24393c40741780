"""The command `weights`: the few weights behind what a model answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .common import pick_values
from .options import command
from .printing import CommandOutput, Lines, Table

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel

SAID = ("of", "share", "whole", "kept", "without", "whole_loss", "loss", "right")


@command(131)
def weights(lm: LanguageModel, part: str, share: float = 0.9, check: bool = False) -> CommandOutput:
    """The few weights that keep what a model answers to questions of its task.

    Args:
        part: the questions, such as names or agreement.
        share: how much of the difference between the right and the wrong answer is kept, above 0,
            below 1.
        check: also ask held-out sentences, and the whole model without these weights.
    """
    from gptviz.language_model.weight_circuits import check_weights, name_weights

    circuit = lm.weight_circuit(part, share)
    named = name_weights(lm, circuit)
    found = [
        {"from": source, "to": target, **pick_values(weight, "value", "effect")}
        | pick_values(weight, "matrix", "row", "column")
        for weight, (source, target) in zip(circuit.weights, named, strict=True)
    ]
    content: dict[str, Any] = {"part": part, **pick_values(circuit, *SAID), "weights": found}
    rows = [(f"{one['value']:>+8.3f}", f"{one['from']} → {one['to']}") for one in found]
    lines: Lines = [
        Table(rows),
        f"{len(found):,} of {circuit.of:,} weights keep {circuit.share:.1%} of what makes the "
        "right "
        f"answer likelier than the wrong one: {circuit.kept:.3f} of {circuit.whole:.3f}",
        f"they alone answer {circuit.right:.1%} of the questions, with a loss of "
        f"{circuit.loss:.4f} "
        f"nats; the whole model has {circuit.whole_loss:.4f}",
    ]
    if check:
        checked = check_weights(lm, circuit, part)
        content["check"] = pick_values(
            checked,
            "whole_loss",
            "loss",
            "right",
            "without_circuit",
            "without_others",
            "right_without_each",
            "right_without_others",
        )
        lines.append(
            f"of sentences that they were not found with they answer {checked.right:.1%}; the "
            "whole "
            f"model without them keeps {checked.without_circuit:.1%} of the difference, without as "
            f"many others {checked.without_others:.1%}"
        )
        each = checked.right_without_each
        others = checked.right_without_others
        if each and others:
            lines.append(
                f"without one of the {len(each)} that matter most alone, it answers from "
                f"{min(each):.1%} to {max(each):.1%} of them, without one of {len(others)} others "
                f"drawn at random from {min(others):.1%} to {max(others):.1%}"
            )
    return CommandOutput(content, lines)
