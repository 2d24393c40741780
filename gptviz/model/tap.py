"""Taps: how intermediate values get out of a forward pass, and how edited values get in.

A part calls `tap(name, value)` where it has computed something worth seeing, and continues with
what the tap returns. The default tap returns its input, so the pass that trains and generates is
the pass that feeds the pictures.
A tap is an argument of one call: a model that several users share stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase

from torch import Tensor

# Every name a part may tap, with its shape. B batch, T tokens, H heads. In cross-attention keys are
# the S tokens of the source; an encoder's names begin with `encoder.`.
GLOSSARY: dict[str, str] = {
    "embed": "token embeddings, [B, T, d_model]",
    "positions": "position vectors added to the embeddings, [T, d_model]; absent where positions "
    "act elsewhere",
    "embed_norm": "token embeddings with their positions after the norm that some models have "
    "there, [B, T, d_model]",
    "smear": "the same with a share of the token before, in models that have it, [B, T, d_model]",
    "resid_pre": "residual stream entering a block, [B, T, d_model]",
    "resid_self": "residual stream between attention and cross-attention, [B, T, d_model]; absent "
    "without an encoder",
    "resid_mid": "residual stream entering the MLP, [B, T, d_model]; absent where a block has no "
    "MLP, or reads it beside the attention",
    "resid_post": "residual stream leaving a block, [B, T, d_model]",
    "q": "queries, after rotation and normalisation, [B, H, T, d_head]",
    "k": "keys, after rotation and normalisation, [B, n_kv_head, T, d_head]",
    "v": "values, [B, n_kv_head, T, d_head]",
    "scores": "q · k / √d_head plus any position term, capped where a model caps it, before mask "
    "and softmax, [B, H, query, key]",
    "pattern": "attention after mask and softmax, [B, H, query, key]; each row sums to 1",
    "z": "pattern · v per head, [B, H, T, d_head]",
    "read": "what an MLP reads, behind the norm before it where there is one, [B, T, d_model]",
    "router": "scores of the experts of a mixture before softmax, [B, T, n_expert]",
    "experts": "how much each expert counts for a token, [B, T, expert]; 0 where the router chose "
    "others, a shared one last",
    "neurons": "MLP after the activation, [B, T, d_mlp]; in a mixture those of all experts, each "
    "times the weight of its expert",
    "out": "what a sublayer adds to the stream, [B, T, d_model]",
    "backout": "residual stream without a share of that in the middle, in models that have it, [B, "
    "T, d_model]",
    "final_norm": "residual stream after the final norm, [B, T, d_model]",
    "memory": "what an encoder hands to the decoder, [B, S, d_model]",
    "shares": "what each token adds to the logit of each label, [B, T, n_label]; with the head's "
    "bias they sum to the logits",
    "pooled": "what the head of some classifiers makes of the first token, [B, d_model]; the "
    "labels read nothing else",
    "logits": "scores of every next token before softmax, [B, T, vocab_size]; of labels, [B, "
    "n_label]",
}


class Tap:
    """The identity, which a forward pass uses unless it is given another tap."""

    #: whether it leaves all values but patterns as they are, and looks at none of them
    only_patterns = False

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Take the `value` that was computed as `name`; return the value with which the pass
        continues.
        """
        return value

    def for_part(self, part: str) -> Tap:
        """The tap for a part: it puts the part's path before names, such as
        `blocks.2.attention.pattern`.
        """
        return self

    def needs_whole(self, name: str) -> bool:
        """Whether it needs the scores or the pattern of this `name` at once, however long the text.
        If it does not, it gets those of a long text in several calls: of some queries after the
        other, with the keys up to the last of them.
        """
        return True


class _Identity(Tap):
    only_patterns = True

    def needs_whole(self, name: str) -> bool:
        return False


IDENTITY: Tap = _Identity()


class _Prefixed(Tap):
    def __init__(self, tap: Tap, prefix: str) -> None:
        self.tap = tap
        self.prefix = prefix

    def __call__(self, name: str, value: Tensor) -> Tensor:
        return self.tap(f"{self.prefix}.{name}", value)

    def for_part(self, part: str) -> Tap:
        return _Prefixed(self.tap, f"{self.prefix}.{part}")

    def needs_whole(self, name: str) -> bool:
        return self.tap.needs_whole(f"{self.prefix}.{name}")


class Watch(Tap):
    """Hands to `see` the name and the value of what matches one of `names` (shell style, as in
    `blocks.*.attention.pattern`); with `in_parts`, scores and patterns of a long text in parts, as
    `needs_whole` says.

    It keeps none of them: what `see` makes of a value may be far smaller than the value. The
    patterns of all blocks over a long text together take more memory than most machines have.
    """

    def __init__(
        self, names: Iterable[str], see: Callable[[str, Tensor], object], *, in_parts: bool = False
    ) -> None:
        self.names = (names,) if isinstance(names, str) else tuple(names)
        self.see = see
        self.in_parts = in_parts

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if self._is_watched(name):
            self.see(name, value)
        return value

    def for_part(self, part: str) -> Tap:
        return _Prefixed(self, part)

    def needs_whole(self, name: str) -> bool:
        return not self.in_parts and self._is_watched(name)

    def _is_watched(self, name: str) -> bool:
        return any(fnmatchcase(name, wanted) for wanted in self.names)


class EnoughError(Exception):
    """Raised by a tap that has seen all that it needs: it ends the pass, and the caller of the pass
    suppresses it.
    """


class Record(Watch):
    """Keeps the values whose full name matches one of `names`, as in `Watch`; with `last`, those of
    so many tokens at the end.
    """

    def __init__(self, names: Iterable[str] = ("*",), last: int | None = None) -> None:
        self.values: dict[str, Tensor] = {}
        self.last = last
        super().__init__(names, self._keep)

    def _keep(self, name: str, value: Tensor) -> None:
        # tokens are the last axis but one of every value
        if self.last is not None and value.shape[-2] > self.last:
            value = value[..., -self.last :, :].clone()  # a view would keep all of them
        self.values[name] = value


class Edit(Tap):
    """Replaces named values: the pass continues with `edits[name](value)`, and the tap `then` sees
    that edited value.

    An edit receives a copy: changing it in place changes neither weights nor values recorded
    before. `path` is that of the part that this tap is for; `in_parts` says whether the edits take
    scores and patterns of a long text in parts: see `needs_whole`.
    """

    def __init__(
        self,
        edits: Mapping[str, Callable[[Tensor], Tensor]],
        then: Tap = IDENTITY,
        path: str = "",
        *,
        in_parts: bool = False,
    ) -> None:
        self.edits = edits
        self.then = then
        self.path = path
        self.in_parts = in_parts

    def __call__(self, name: str, value: Tensor) -> Tensor:
        edit = self.edits.get(self.path + name)
        return self.then(name, value if edit is None else edit(value.clone()))

    def for_part(self, part: str) -> Tap:
        # `then` decides itself what names it is told: some taps want them without their path.
        return Edit(
            self.edits, self.then.for_part(part), f"{self.path}{part}.", in_parts=self.in_parts
        )

    def needs_whole(self, name: str) -> bool:
        return (not self.in_parts and self.path + name in self.edits) or self.then.needs_whole(name)
