"""The shape of a buffer, and which of its elements lies at an offset, or would beyond its end."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class BufferShape:
    """The extents of a buffer's tensor, of which the last one is contiguous."""

    extents: tuple[int, ...]
    element_bytes: int

    def inside(self, offset: int) -> str:
        """Which element lies `offset` bytes from the start: "row 3, column 5"; "" for a vector,
        where the offset says it.
        """
        if len(self.extents) < 2 or not self.extents[-1]:
            return ""
        row, column = divmod(offset // self.element_bytes, self.extents[-1])
        return f"row {row}, column {column}"

    def beyond(self, offset: int) -> str:
        """Which element lies `offset` bytes from the start, beyond the end: "row 64, column 3 of
        64 x 70".

        An element less than a row beyond the end has two names: a row too many, or a column too
        many of the last row.
        """
        elements, element = math.prod(self.extents), offset // self.element_bytes
        if len(self.extents) < 2 or not elements:
            return f"element {element} of {elements}"
        columns = self.extents[-1]
        rows = elements // columns
        row, column = divmod(element, columns)
        where = f"row {row}, column {column} of {rows} x {columns}"
        is_near = row == rows
        return where + (f", or column {columns + column} of the last row" if is_near else "")
