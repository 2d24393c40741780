"""Residuals: how what a sublayer computes joins the residual stream, and where it is normalised."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from torch import Tensor, nn

from .norms import new_norm
from .part import ModelPart, Settings


class Dropout(nn.Dropout):
    """Each number zeroed with probability p in training, the others divided by 1 - p (Srivastava et
    al. 2014).
    """

    def __call__(self, x: Tensor) -> Tensor:
        # A call of torch's own costs some microseconds in evaluation too, where it changes nothing.
        if self.training:
            return super().__call__(x)
        return x


class Residual(ModelPart):
    """How a sublayer f joins the residual stream x."""

    #: in which order `forward` does what, for the model map: "sublayer"; "add", which adds the
    #: stream as it came in; or the name of a norm of this module
    steps: ClassVar[tuple[str, ...]]
    #: whether attention and MLP both read the stream as the block finds it, instead of one after
    #: the other
    parallel: ClassVar[bool] = False
    #: whether they read it through one norm, which belongs to the attention's residual
    shares_norm: ClassVar[bool] = False

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.dropout = Dropout(settings.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x [B, T, d_model] → [B, T, d_model]."""
        raise NotImplementedError

    @classmethod
    def equation_with(cls, x: str, out: str) -> str:
        """The equation with `x` in place of the letter x, and `out` in place of what the sublayer
        computes.
        """
        return re.sub(
            r"(?<![A-Za-z])(x|f\((?:x|\w+\(x\))\))(?![A-Za-z])",
            lambda m: x if m[0] == "x" else out,
            cls.equation,
        )


class NoResidual(Residual):
    """f(x): the sublayer replaces the stream (the first rungs of the ladder)."""

    title = "No residual"
    equation = "f(x)"
    steps = ("sublayer",)
    about = "The sublayer replaces the stream."

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.dropout(sublayer(x))


class Plain(Residual):
    """x + f(x) (He et al. 2015)."""

    title = "Plain"
    equation = "x + f(x)"
    steps = ("sublayer", "add")
    about = "The sublayer's output is added to the stream, without any norm."

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.dropout(sublayer(x))


class NormedResidual(Residual):
    """The base of the residuals with one norm."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.norm = new_norm(settings, settings.d_model)


class PreNorm(NormedResidual):
    """x + f(norm(x)) (GPT-2; Xiong et al. 2020)."""

    title = "Pre-norm"
    equation = "x + f(norm(x))"
    steps = ("norm", "sublayer", "add")
    about = "The sublayer reads the stream through a norm; the stream itself is never normalised."

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.branch(x, sublayer)

    def branch(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """The vector that is added to the stream x [B, T, d_model]."""
        return self.dropout(sublayer(self.norm(x)))


class Parallel(PreNorm):
    """x + attention(norm_1(x)) + mlp(norm_2(x)) (GPT-NeoX, Black et al. 2022)."""

    title = "Parallel"
    about = (
        "Attention and MLP both read the stream as the block finds it, each through a norm of its "
        "own."
    )
    parallel = True


class ParallelOneNorm(Parallel):
    """x + attention(norm(x)) + mlp(norm(x)) (GPT-J, Wang & Komatsuzaki 2021)."""

    title = "Parallel, one norm"
    about = "Attention and MLP both read the stream as the block finds it, through one norm."
    shares_norm = True


class BranchNorm(NormedResidual):
    """x + norm(f(x)) (OLMo 2, 2024)."""

    title = "Norm on the branch"
    equation = "x + norm(f(x))"
    steps = ("sublayer", "norm", "add")
    about = (
        "The sublayer reads the stream as it is; what it computed is normalised before it is added."
    )

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.dropout(self.norm(sublayer(x)))


class DoubleNorm(NormedResidual):
    """x + norm_after(f(norm(x))) (Gemma 2, 2024)."""

    title = "Norm before and after"
    equation = "x + norm(f(norm(x)))"
    steps = ("norm", "sublayer", "norm_after", "add")
    about = (
        "The sublayer reads the stream through a norm, and what it computed is normalised before "
        "it is added."
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.norm_after = new_norm(settings, settings.d_model)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.dropout(self.norm_after(sublayer(self.norm(x))))


class PostNorm(NormedResidual):
    """norm(x + f(x)) (Vaswani et al. 2017, GPT-1)."""

    title = "Post-norm"
    equation = "norm(x + f(x))"
    steps = ("sublayer", "add", "norm")
    about = "The sublayer's output is added to the stream, and the sum is normalised."

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(x + self.dropout(sublayer(x)))


class NormOnly(NormedResidual):
    """norm(f(x)): what a norm does without a residual connection."""

    title = "Norm only"
    equation = "norm(f(x))"
    steps = ("sublayer", "norm")
    about = "The sublayer's output, normalised, replaces the stream."

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(self.dropout(sublayer(x)))


RESIDUALS: dict[str, type[Residual]] = {
    "pre-norm": PreNorm,
    "post-norm": PostNorm,
    "parallel": Parallel,
    "parallel-one-norm": ParallelOneNorm,
    "branch-norm": BranchNorm,
    "double-norm": DoubleNorm,
    "plain": Plain,
    "norm-only": NormOnly,
    "none": NoResidual,
}
