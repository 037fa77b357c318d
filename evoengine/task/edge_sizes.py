"""Sizes that no case of a task has, so that a mistake at the edge of a tile is not checked.

A kernel copies 16 bytes at once where rows begin on 16 bytes, and single elements elsewhere. These
are two paths as a rule, and each has an edge of its own: the last tile of a row that is no whole
number of tiles. Odd sizes show that of the one path, multiples of a vector that are no multiples of
a tile that of the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.task.initial_value import element_bytes
from evoengine.task.schema import Task

VECTOR_BYTES = 16
TILE = 32  # elements; tiles have a multiple of them as a rule
MOST_WHOLE = 64  # elements; a shorter row is one tile


def unchecked_edges(task: Task) -> list[str]:
    """One line for each dimension along which rows lie in memory, where some case has a part of a
    tile at its end, and none has one of whole vectors.
    """
    found = []
    for name, vector in sorted(_along_rows(task).items()):
        values = [int(case[name]) for case in task.all_cases.values()]
        edges = [value for value in values if value % TILE]
        is_tiled = bool(edges) and max(values) > MOST_WHOLE
        if is_tiled and all(value % vector or value < TILE for value in edges):
            found.append(
                f"{name}: no case has a size of whole vectors ({VECTOR_BYTES} bytes, {vector}"
                f" elements) that is no whole number of tiles, such as {4 * TILE + vector}: the"
                " edge of a kernel that copies vectors is not checked"
            )
    return found


def _along_rows(task: Task) -> dict[str, int]:
    """The dimensions that are the last extent of a tensor, with the elements of a vector."""
    found: dict[str, int] = {}
    for name, dtype in _last_extents(task):
        if name in task.dims and task.dims[name] != "bool":
            vector = max(1, VECTOR_BYTES // len(element_bytes(0.0, dtype)))
            found[name] = max(vector, found.get(name, 1))
    return found


def _last_extents(task: Task) -> Iterator[tuple[str, str]]:
    for tensors in (task.inputs, task.outputs):
        for spec in tensors.values():
            if spec.shape:
                yield str(spec.shape[-1]), spec.dtype
