"""The commands about the architecture of a model, which is read without its weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from gptviz.settings.fields import described

from .common import UsageError, pick_values
from .options import Name, command
from .printing import CommandOutput, Table

if TYPE_CHECKING:
    from gptviz.model import Config

Preset = Annotated[str, described("PRESET")]


@command(30, on_device=False)
def describe(name: Name | None = None, /, *, preset: Preset | None = None) -> CommandOutput:
    """List the layers of a model and their parameters."""
    from gptviz.model import describe

    layers = describe(_architecture("describe", name, preset))
    total = sum(layer.parameters for layer in layers)
    rows = [
        (layer.name, layer.kind, f"{layer.parameters:>12,}", _shapes(layer.shapes))
        for layer in layers
    ]
    content = {
        "parameters": total,
        "layers": [pick_values(layer, "name", "kind", "parameters", "shapes") for layer in layers],
    }
    return CommandOutput(content, [Table([*rows, ("total", "", f"{total:>12,}", "")])])


@command(40, on_device=False)
def costs(
    name: Name | None = None,
    /,
    *,
    preset: Preset | None = None,
    batch: int = 1,
    context: int | None = None,
) -> CommandOutput:
    """Count parameters, operations and memory of a model.

    Args:
        batch: texts that are read side by side.
        context: tokens of each text; default: as many as the model can read.
    """
    from gptviz.interp.reading.costs import costs
    from gptviz.machine.memory import in_bytes

    whole = costs(_architecture("costs", name, preset), batch, context)
    texts = f"{whole.batch:,} {'text' if whole.batch == 1 else 'texts'} of {whole.tokens:,} tokens"
    rows = [
        ("parameters", f"{whole.parameters:,}"),
        (f"operations to read {texts}", f"{whole.forward:,}"),
        ("operations of a step of training on them", f"{whole.training:,}"),
        *((f"weights in {name}", in_bytes(count)) for name, count in whole.weights.items()),
        ("gradients", in_bytes(whole.gradients)),
        ("activations that a step keeps", in_bytes(whole.activations)),
        *(
            (f"what the optimiser {name} keeps", in_bytes(count))
            for name, count in whole.optimiser.items()
        ),
    ]
    if whole.cache is not None:
        rows.append(("keys and values of these texts", in_bytes(whole.cache)))
    return CommandOutput(whole, [Table([(name, f"{value:>16}") for name, value in rows])])


def _architecture(command: str, name: str | None, of_preset: str | None) -> Config:
    """The configuration of a model, or of a preset. A UsageError if neither is named, or both."""
    from gptviz.model import preset
    from gptviz.runs import checkpoints

    if of_preset is None and name is not None:
        return checkpoints.read_config(checkpoints.find(name))
    if of_preset is None or name is not None:
        raise UsageError(f"{command} takes the name of a model or --preset PRESET, one of the two")
    return preset(of_preset)


def _shapes(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {' × '.join(map(str, shape))}" for name, shape in shapes.items())
