"""A trace: the values that one forward pass computed, by name. Training and generating use the same
forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from gptviz.model import Edit, Record, Transformer
from gptviz.settings.known_names import name_known


class Trace(Mapping[str, Tensor]):
    """Tensors by tap name; `model.tap.GLOSSARY` lists the names."""

    def __init__(
        self, ids: Tensor, values: Mapping[str, Tensor], source: Tensor | None = None
    ) -> None:
        self.ids = ids  #: [B, T], the ids they were computed from
        #: [B, S], the ids that the encoder read, or None if there is no encoder
        self.source = source
        self._values = values

    def __repr__(self) -> str:
        read = f"ids {list(self.ids.shape)}" + (
            "" if self.source is None else f", source {list(self.source.shape)}"
        )
        names = list(self._values)
        ends = dict.fromkeys(names[:1] + names[-1:])  # the first tensor and the last
        tensors = ", ".join(f"{name} {list(self._values[name].shape)}" for name in ends)
        return f"<Trace of {read}: {len(self):,} tensors{': ' if tensors else ''}{tensors}>"

    def __getitem__(self, name: str) -> Tensor:
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(
                f"nothing was recorded as {name!r}{name_known(name, self._values)}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def one_row(
    model: Transformer, ids: Sequence[int], source: Sequence[int] | None = None
) -> tuple[Tensor, Tensor | None]:
    """A text as the model takes it, on its device: the ids [1, T], and those of a source [1, S]
    where an encoder reads one.
    """
    device = model.embed.weight.device
    return torch.tensor([ids], device=device), None if source is None else torch.tensor(
        [source], device=device
    )


@torch.inference_mode()
def run(
    model: Transformer,
    ids: Tensor,
    names: Iterable[str] = ("*",),
    *,
    source: Tensor | None = None,
    edits: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
    logits_at: slice = slice(None),
    last: int | None = None,
) -> Trace:
    """Run `model` over `ids` [B, T] and keep the values whose names match one of `names` (shell
    patterns).

    Args:
        source: what an encoder reads, [B, S] ids; for models that have one.
        edits: by tap name, a function from a value to its replacement; later parts read the
            replacement.
        logits_at: the positions to compute logits for.
        last: of how many tokens at the end the values are kept; all unless given.

    Raises:
        ValueError: there are more tokens than the context holds, or an edit of something the model
            does not compute.
    """
    record = Record(names, last)
    if edits:
        touched: set[str] = set()

        def count_edit(name: str, edit: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
            def apply(value: Tensor) -> Tensor:
                touched.add(name)
                return edit(value)

            return apply

        tap = Edit({name: count_edit(name, edit) for name, edit in edits.items()}, record)
        model(ids, source, tap=tap, logits_at=logits_at)
        if missed := sorted(set(edits) - touched):
            known = run(model, ids, source=source)
            raise ValueError(
                f"the model computes nothing called {missed[0]!r}{name_known(missed[0], known)}"
            )
    else:
        model(ids, source, tap=record, logits_at=logits_at)
    return Trace(ids, record.values, source)
