"""A trace: what one forward pass computed, by name. The pass is the one that trains and generates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import torch
from torch import Tensor

from gptviz.model import Edit, Record, Transformer


class Trace(Mapping[str, Tensor]):
    """Tensors by tap name (`model.tap.GLOSSARY` lists them), with the ids [B, T] they were computed from, and those of the
    source [B, S] where there is an encoder."""

    def __init__(self, ids: Tensor, values: Mapping[str, Tensor], source: Tensor | None = None) -> None:
        self.ids, self.source = ids, source
        self._values = values

    def __getitem__(self, name: str) -> Tensor:
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(f"nothing was recorded as {name!r}; there is {', '.join(self._values)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@torch.inference_mode()
def run(
    model: Transformer,
    ids: Tensor,
    names: Iterable[str] = ("*",),
    *,
    source: Tensor | None = None,
    edits: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
    logits_at: slice = slice(None),
) -> Trace:
    """Run `model` over `ids` [B, T] and keep the values whose names match one of `names` (shell patterns).

    Args:
        source: what an encoder reads, [B, S] ids; for models that have one.
        edits: by tap name, what to replace a value with; later parts see the replacement.
        logits_at: the positions to compute logits for.

    Raises:
        ValueError: more tokens than the context holds, or an edit of something the model does not compute.
    """
    record = Record(names)
    if edits:
        touched: set[str] = set()

        def counted(name: str, edit: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
            def apply(value: Tensor) -> Tensor:
                touched.add(name)
                return edit(value)

            return apply

        tap = Edit({name: counted(name, edit) for name, edit in edits.items()}, record)
        model(ids, source, tap=tap, logits_at=logits_at)
        if missed := sorted(set(edits) - touched):
            raise ValueError(f"the model computes nothing called {missed[0]!r}")
    else:
        model(ids, source, tap=record, logits_at=logits_at)
    return Trace(ids, record.values, source)
