"""The linear part of a norm: its gain and `Norm.linear`, such as taking the mean away.

A norm also divides a vector by its size, which is another number for every vector, and may add a
bias. Where weights are looked at without any text there is no vector: then a norm stands for what
is linear in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from gptviz.model.parts.norms import Norm
from gptviz.model.parts.residuals import RESIDUALS


def norms_of(residual: nn.Module) -> tuple[Norm | None, Norm | None]:
    """The norm through which a sublayer reads the stream, and the norm of what it computed before
    this joins the stream.

    A norm of the sum of both (post-norm) is neither of them.
    """
    steps = next(kind for kind in RESIDUALS.values() if type(residual) is kind).steps
    at = steps.index("sublayer")
    behind = steps[at + 1 :]
    before = [step for step in steps[:at] if step != "add"]
    after = behind[: behind.index("add") if "add" in behind else None]
    return _norm(residual, before), _norm(residual, after)


def norm_behind(residual: nn.Module) -> tuple[Norm | None, bool]:
    """The norm that what a sublayer computed goes through next, and whether the stream is added to
    it before.
    """
    steps = next(kind for kind in RESIDUALS.values() if type(residual) is kind).steps
    behind = steps[steps.index("sublayer") + 1 :]
    return _norm(residual, [step for step in behind if step != "add"]), behind[:1] == ("add",)


def _norm(residual: nn.Module, names: Sequence[str]) -> Norm | None:
    """The norm of a residual that has one of these names."""
    norms = [residual.get_submodule(name) for name in names]
    assert all(isinstance(norm, Norm) for norm in norms)
    if norms:
        return cast(Norm, norms[0])
    return None


def read_through(norm: Norm | None, rows: Tensor) -> Tensor:
    """Matrices `rows` [..., d_model] that read a normed vector, as they read the vector itself,
    except for its size. A ValueError if this kind of norm does not say what is linear in it.
    """
    if norm is None:
        return rows
    with torch.inference_mode(False), torch.enable_grad():
        if norm.weight is None:
            scaled = rows.clone()
        else:
            scaled = rows * norm.weight.detach().float()
        nothing = torch.zeros_like(scaled, requires_grad=True)
        (read,) = torch.autograd.grad(norm.linear(nothing), nothing, scaled)
    return read


def written_through(norm: Norm | None, columns: Tensor) -> Tensor:
    """A matrix `columns` [d_model, n] whose result is normed, as it writes to the stream, except
    for its size. A ValueError as in `read_through`.
    """
    if norm is None:
        return columns
    written = norm.linear(columns.T).T
    if norm.weight is None:
        return written
    return written * norm.weight.detach().float()[:, None]
