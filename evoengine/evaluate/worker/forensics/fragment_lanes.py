"""Fragments of mma whose elements are loaded for other lanes than the ones that multiply them.

A lane of m16n8k16 has row or column `lane / 4` of a fragment, and places of the depth that begin at
`lane % 4 * 2`. A kernel that computes either otherwise feeds the right registers from wrong places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import torch

from evoengine.evaluate.worker.forensics.exchanged_places import TileMix

LANE = torch.arange(32)
GROUP: Mapping[str, torch.Tensor] = {
    "lane / 4": LANE // 4,
    "lane % 8": LANE % 8,
    "lane / 8": LANE // 8,
    "lane % 4": LANE % 4,
    "lane % 4 * 2": LANE % 4 * 2,
}
MEMBER: Mapping[str, torch.Tensor] = {
    "lane % 4": LANE % 4,
    "lane / 8": LANE // 8,
    "lane / 4 % 4": LANE // 4 % 4,
    "lane % 8 / 2": LANE % 8 // 2,
}
# depth of a tile, neighbours along it in one register: of 16-bit and of 32-bit operands
SHAPES = ((16, 2), (8, 1))


def wrong_lanes(operand: int) -> Iterator[TileMix]:
    """Tiles of the first operand (16 rows) or of the second (8 columns), as loaded wrongly."""
    (right_group, _), (right_member, _) = next(iter(GROUP.items())), next(iter(MEMBER.items()))
    for depth, width in SHAPES:
        for group in GROUP:
            for member in MEMBER:
                if (group, member) == (right_group, right_member):
                    continue
                said = []
                if group != right_group:
                    said.append(f"{'row' if operand == 0 else 'column'} {group}, not {right_group}")
                if member != right_member:
                    said.append(f"depth by {member}, not {right_member}")
                known = GROUP[group], MEMBER[member]
                yield TileMix(
                    " and ".join(said),
                    partial(_loaded, operand=operand, depth=depth, width=width, known=known),
                )


def _loaded(
    value: torch.Tensor,
    operand: int,
    depth: int,
    width: int,
    known: tuple[torch.Tensor, torch.Tensor],
) -> torch.Tensor:
    """`value` with what lanes load in every whole tile."""
    if value.dim() < 2:
        raise ValueError("a vector")
    along = value if operand == 0 else value.mT  # rows or columns, then depth
    high = 16 if operand == 0 else 8
    rows, places = along.shape[-2] // high * high, along.shape[-1] // depth * depth
    if not rows or not places:
        raise ValueError("no tile")
    row, place = torch.meshgrid(torch.arange(high), torch.arange(depth), indexing="ij")
    lane = row % 8 * 4 + place // width % 4  # which lane multiplies it
    from_row = row // 8 * 8 + known[0][lane]
    from_place = place // (4 * width) * (4 * width) + known[1][lane] * width + place % width
    whole = along[..., :rows, :places]
    tiles = whole.unflatten(-1, (-1, depth)).unflatten(-3, (-1, high)).transpose(-2, -3)
    flat = tiles.flatten(-2)[..., (from_row * depth + from_place).flatten()]
    mixed = flat.unflatten(-1, (high, depth)).transpose(-2, -3).reshape(whole.shape)
    made = along.clone()
    made[..., :rows, :places] = mixed
    return made if operand == 0 else made.mT
