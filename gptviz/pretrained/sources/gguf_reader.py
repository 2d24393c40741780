"""Reading the header of a GGUF file in one pass over its long lists.

The reader of the `gguf` library makes several arrays for each entry of a list, which takes seconds
for a vocabulary.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from gguf import GGUFEndian, GGUFReader, GGUFValueType, ReaderField, ReaderTensor

MOST_ENTRIES = 4_000_000  # of a list: the largest vocabularies have 600,000 merges


class Reader(GGUFReader):
    """The library's reader, with each list as one part of its field. Errors name the tensor that
    they are about.
    """

    unread: int  #: how many bytes come after the last tensor

    def _build_tensors(self, start_offs: int, fields: list[ReaderField]) -> None:
        tensors: list[ReaderTensor] = []
        end = start_offs
        before = "the header"
        for field in fields:
            _, name, _, _, kind, offset = field.parts
            title = bytes(name).decode("utf-8", "replace")
            # as llama.cpp asks for: another kind or shape would be another length
            if start_offs + int(offset[0]) != end:
                raise ValueError(
                    f"{title} does not begin where {before} ends: the kind or shape of one of "
                    "them is wrong"
                )
            if any(other.name == title for other in tensors):
                raise ValueError(f"there are two tensors {title}")
            try:
                super()._build_tensors(start_offs, [field])
            except ValueError as error:
                raise ValueError(f"{title}: {_explain_error(str(error), int(kind[0]))}") from None
            tensors += self.tensors
            behind = int(self.tensors[0].data_offset) + int(self.tensors[0].n_bytes)
            end = -(-behind // int(self.alignment)) * int(self.alignment)
            before = title
        self.tensors = tensors
        self.unread = max(0, len(self.data) - end)

    def _get_field_parts(
        self, orig_offs: int, raw_type: int
    ) -> tuple[int, list[np.ndarray[Any, Any]], list[int], list[GGUFValueType]]:
        if raw_type != GGUFValueType.ARRAY:
            return super()._get_field_parts(orig_offs, raw_type)
        entry = self._get(orig_offs, np.uint32)
        length = self._get(orig_offs + 4, np.uint64)
        start = orig_offs + 12
        kind = GGUFValueType(entry[0])
        count = int(length[0])
        if count > len(self.data) - start:  # each entry takes at least a byte
            raise ValueError(f"a list has {count:,} entries, more than the file has bytes")
        if count > MOST_ENTRIES:
            raise ValueError(f"a list has {count:,} entries, and {MOST_ENTRIES:,} are the most")
        if kind == GGUFValueType.STRING:
            entries = self._get(start, np.uint8, self._end_of_texts(start, count) - start)
        elif kind in self.gguf_scalar_to_np:
            entries = self._get(start, self.gguf_scalar_to_np[kind], count)
            if len(entries) != count:
                raise ValueError("a list is cut short")
        else:
            raise ValueError(
                f"a list has entries of the kind {kind.name}, which gptviz does not read"
            )
        return 12 + entries.nbytes, [entry, length, entries], [2], [GGUFValueType.ARRAY, kind]

    @property
    def _length_of_text(self) -> struct.Struct:
        return struct.Struct("<Q" if self.endianess == GGUFEndian.LITTLE else ">Q")

    def _end_of_texts(self, start: int, count: int) -> int:
        unpack = self._length_of_text.unpack_from
        data = self.data.data
        end = start
        try:
            for _ in range(count):
                end += 8 + unpack(data, end)[0]
        except (struct.error, OverflowError):
            end = len(data) + 1
        if end > len(data):
            raise ValueError("a list of texts is cut short")
        return end

    def value(self, name: str) -> Any:
        """The value of a setting: a number, a text, true or false, or a list of them, or None if
        there is no such setting.
        """
        field = self.fields.get(name)
        if field is None:
            return None
        if field.types[0] != GGUFValueType.ARRAY:
            return field.contents()
        entries = field.parts[-1]
        if field.types[-1] != GGUFValueType.STRING:
            return entries.tolist()
        unpack = self._length_of_text.unpack_from
        data = entries.tobytes()
        texts = []
        at = 0
        for _ in range(int(field.parts[-2][0])):
            begin = at + 8
            at = begin + unpack(data, at)[0]
            texts.append(data[begin:at].decode("utf-8"))
        return texts


def _explain_error(error: str, kind: int) -> str:
    """What is wrong with a tensor, in the place of the library's words."""
    if "GGMLQuantizationType" in error:
        return f"there is no kind {kind} of numbers"
    if "reshape" in error:
        return "the file ends before it does"
    return error
