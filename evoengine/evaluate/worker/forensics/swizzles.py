"""Orders of the chunks of a row that XOR swizzles make where reading and writing differ."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch

WIDTHS = (8, 4)  # elements of a chunk: 16 bytes of two or of four bytes each
# rows that share an order, and orders after which it comes back
TURNS = ((1, 8), (2, 4), (1, 4))
WIDE_TURN = (1, 16)  # of rows of 64 elements in four bytes each


@dataclass(frozen=True)
class Swizzle:
    """Chunk c of a row holds what belongs to chunk c XOR the number that the row's turns give."""

    width: int
    turns: tuple[tuple[int, int], ...]  # that are XORed: one of the writing, one of the reading

    @property
    def words(self) -> str:
        """`chunk XOR (row % 8) in place of XOR (row / 2 % 4)`."""
        said = [
            f"XOR (row{f' / {rows}' if rows > 1 else ''} % {period})" for rows, period in self.turns
        ]
        return f"chunk {said[0]} in place of {said[1] if len(said) > 1 else 'none'}"

    def of(self, value: torch.Tensor, axis: int) -> torch.Tensor:
        """`value` with the chunks along `axis` (-1 or -2) exchanged, by the other one's index."""
        laid = value if axis == -1 else value.mT
        rows, extent = laid.shape[-2:]
        number = torch.arange(rows, device=value.device).view(-1, 1)
        turn = torch.zeros_like(number)
        for shared, period in self.turns:
            turn = turn ^ (number // shared % period)
        column = torch.arange(extent, device=value.device)
        whole = self.width * max(period for _, period in self.turns)
        if extent <= self.width:
            raise ValueError("one chunk")
        filled = torch.nn.functional.pad(laid, (0, -extent % whole))  # as the rest of a tile is
        place = ((column // self.width) ^ turn) * self.width + column % self.width
        made = filled.gather(-1, place.expand(laid.shape))
        return made if axis == -1 else made.mT


def swizzles() -> Iterator[Swizzle]:
    """Those of one swizzle that is missing, then of one in place of another."""
    for width in WIDTHS:
        for turn in (*TURNS, WIDE_TURN):
            yield Swizzle(width, (turn,))
        for two in itertools.combinations(TURNS, 2):
            yield Swizzle(width, two)
