"""Inputs staged in shared memory with a swizzle that only the writing or only the reading has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch

from evoengine.evaluate.worker.forensics.changed_input import ChangedInputs, each_input
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind

PIECE_BYTES = 16  # what a lane copies at once, and a bank group holds
# pieces that are exchanged with one another, and rows that share an order of them
ORDERS = ((8, 1), (4, 2), (4, 1))


def without_swizzle(inputs: Tensors) -> Iterator[ChangedInputs]:
    """Pieces of every row in the order that an XOR with the row's number gives: of one input, of
    two, of all.
    """
    names = [
        name
        for name, value in inputs.items()
        if value.dim() >= 2 and value.shape[-1] % (PIECE_BYTES // value.element_size()) == 0
    ]
    groups = [*((name,) for name in names), *itertools.combinations(names, 2)]
    for pieces, rows in ORDERS:
        for group in groups:
            if not all(_fits(inputs[name], pieces) for name in group):
                continue
            named = " and ".join(group)
            yield ChangedInputs(
                DiagnosisKind.changed_input,
                f"the 16-byte pieces of every row of {named} in another order, piece p XOR (row"
                f"{f' / {rows}' if rows > 1 else ''} % {pieces})",
                each_input(group, lambda x, p=pieces, r=rows: _swizzled(x, p, r)),  # type: ignore[misc]
                weight=1.0,
                mistake=f"{named} {'is' if len(group) == 1 else 'are'} written to shared memory"
                " with an XOR swizzle and read without it, or the reverse: pieces of 16 bytes of"
                " each row are exchanged",
            )


def _fits(value: torch.Tensor, pieces: int) -> bool:
    count = value.shape[-1] * value.element_size() // PIECE_BYTES
    return count > 1 and count % pieces == 0


def _swizzled(value: torch.Tensor, pieces: int, rows: int) -> torch.Tensor:
    width = PIECE_BYTES // value.element_size()
    column = torch.arange(value.shape[-1])
    row = torch.arange(value.shape[-2]).view(-1, 1)
    places = ((column // width) ^ (row // rows % pieces)) * width + column % width
    return value.gather(-1, places.expand(value.shape))
