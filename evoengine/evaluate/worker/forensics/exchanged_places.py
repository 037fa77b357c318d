"""Places of an axis, or of two, that a kernel takes for one another, as registers of a fragment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

TILES = (8, 16, 32, 64)


@dataclass(frozen=True)
class AxisExchange:
    """Another order of the places of one axis: place i holds what belongs to `source(extent)[i]`.

    `words` follow a name: "with the halves of every 16 swapped".
    """

    words: str
    source: Callable[[int], torch.Tensor]


@dataclass(frozen=True)
class TileMix:
    """Another order of the places of every tile of two axes."""

    words: str
    mix: Callable[[torch.Tensor], torch.Tensor]  # of a tensor, over its last two axes


def axis_exchanges(tiles: Sequence[int]) -> Iterator[AxisExchange]:
    """Orders in which a fragment's registers, lanes or tiles are exchanged."""
    yield AxisExchange("with neighbouring pairs swapped", _within(2, lambda at: 1 - at))
    for tile in dict.fromkeys((16, 8, 4, 32, 64, *tiles)):
        half = tile // 2
        yield AxisExchange(
            f"with the halves of every {tile} swapped",
            _within(tile, lambda at, t=tile, h=half: (at + h) % t),  # type: ignore[misc]
        )
    for tile in (16, 8, 32, 64):
        for parts in (2, 4, 8, 16):
            if parts * 2 <= tile:
                yield AxisExchange(
                    f"with every {tile} in another order, interleaved by {parts}",
                    _within(tile, lambda at, t=tile, p=parts: at % p * (t // p) + at // p),  # type: ignore[misc]
                )
        quarter = tile // 4
        yield AxisExchange(
            f"with the middle quarters of every {tile} swapped",
            _within(
                tile,
                lambda at, q=quarter: torch.where(  # type: ignore[misc]
                    at // q == 1, at + q, torch.where(at // q == 2, at - q, at)
                ),
            ),
        )
        yield AxisExchange(
            f"with every {tile} reversed",
            _within(tile, lambda at, t=tile: t - 1 - at),  # type: ignore[misc]
        )
    for unit in (2, 4, 8):  # what a lane loads at once
        for tile in dict.fromkeys((32, 64, 128, *tiles)):
            for parts in (2, 4, 8, 16, 32):
                if tile % (unit * parts) == 0 and tile // (unit * parts) > 1:
                    whole = tile // unit
                    yield AxisExchange(
                        f"with every {tile} in another order, groups of {unit} interleaved by"
                        f" {parts}: lanes that take turns in one place and lie in a row in the"
                        " other",
                        _within(
                            tile,
                            lambda at, u=unit, w=whole, p=parts: (  # type: ignore[misc]
                                (at // u % p * (w // p) + at // u // p) * u + at % u
                            ),
                        ),
                    )
    for tile in dict.fromkeys((8, 16, 32, 64, *tiles)):
        half = max(1, tile // 2)
        for first, which in ((0, "first"), (half, "second")):
            yield AxisExchange(
                f"with the {which} half ({half}) of every {tile} in place of both, which repeats",
                _within(tile, lambda at, h=half, f=first: f + at % h),  # type: ignore[misc]
            )


def axis_repeats(tiles: Sequence[int]) -> Iterator[AxisExchange]:
    """Tiles of which each is read without its offset, or holds what belongs to one nearby, as in a
    pipeline whose stages are a step apart.
    """
    for tile in dict.fromkeys((*tiles, 16, 32, 64)):
        yield AxisExchange(
            f"with the first {tile} (0..{tile - 1}) in place of every tile of {tile}, which repeat:"
            " the offset of the tile is missing",
            lambda n, t=tile: torch.arange(n) % t,  # type: ignore[misc]
        )
        for steps, which in (
            (1, "before it (stale)"),
            (-1, "behind it (a step ahead)"),
        ):
            yield AxisExchange(
                f"with the tile of {tile} {which} in place of each",
                lambda n, t=tile, s=steps: _stepped(n, t, s),  # type: ignore[misc]
            )
    for size in (32, 16, 8, 4):
        for step, which in ((1, "next"), (-1, "one before")):
            yield AxisExchange(
                f"with the {which} of every {size} in place of each, off by one lane",
                _within(size, lambda at, s=size, d=step: (at + d) % s),  # type: ignore[misc]
            )
    for size in (2, 4, 8):
        yield AxisExchange(
            f"with every {size} in reverse order",
            _within(size, lambda at, s=size: s - 1 - at),  # type: ignore[misc]
        )
        for taken in (0, size - 1):
            which = "first" if taken == 0 else "second" if size == 2 else "last"
            said = f"with the {which} of every {size} in place of all of them, the same again"
            if size == 2:
                other = "second" if taken == 0 else "first"
                said = f"with the {which} of every two neighbours in place of the {other}, too"
            yield AxisExchange(
                said,
                _within(size, lambda at, f=taken: torch.full_like(at, f)),  # type: ignore[misc]
            )
        yield AxisExchange(
            f"with the third and the fourth of every {size} as the first two again"
            if size == 4
            else f"with the last of every {size} as the one before it again",
            _within(
                size,
                (lambda at: at % 2) if size == 4 else (lambda at, s=size: at.clamp_max(s - 2)),  # type: ignore[misc]
            ),
        )


def _stepped(extent: int, tile: int, steps: int) -> torch.Tensor:
    """The places `steps` tiles earlier; at an end those of the own tile."""
    at = torch.arange(extent)
    moved = at - steps * tile
    return torch.where((moved >= 0) & (moved < extent), moved, at)


def tile_mixes(tiles: Sequence[int]) -> Iterator[TileMix]:
    """Tiles that are transposed, and halves of a tile that are exchanged crosswise."""
    for tile in dict.fromkeys((8, 16, *tiles, 32)):
        if tile >= 2:
            yield TileMix(
                f"with every {tile}x{tile} tile transposed",
                lambda value, t=tile: _mixed(value, t, t, lambda one: one.transpose(-1, -2)),  # type: ignore[misc]
            )
    for tile in (16, 8, 32):
        yield TileMix(
            f"with the off-diagonal {tile // 2}x{tile // 2} blocks of every {tile}x{tile} tile"
            " swapped, rows and columns mixed up as by registers in the wrong order",
            lambda value, t=tile: _mixed(value, t, t, _crossed),  # type: ignore[misc]
        )


def _within(
    tile: int, order: Callable[[torch.Tensor], torch.Tensor]
) -> Callable[[int], torch.Tensor]:
    """The same order in every whole tile; what is beyond the last one stays."""

    def source(extent: int) -> torch.Tensor:
        at = torch.arange(extent)
        moved = at // tile * tile + order(at % tile)
        return torch.where(at < extent // tile * tile, moved, at)

    return source


def _mixed(
    value: torch.Tensor, height: int, width: int, mix: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """`value` with every whole tile of its last two axes mixed."""
    rows, columns = value.shape[-2] // height * height, value.shape[-1] // width * width
    made = value.clone()
    whole = made[..., :rows, :columns]
    cut = whole.reshape(*value.shape[:-2], rows // height, height, columns // width, width)
    mixed = mix(cut.transpose(-2, -3)).transpose(-2, -3)
    made[..., :rows, :columns] = mixed.reshape(whole.shape)
    return made


def _crossed(tile: torch.Tensor) -> torch.Tensor:
    half = tile.shape[-1] // 2
    made = tile.clone()
    made[..., :half, half:] = tile[..., half:, :half]
    made[..., half:, :half] = tile[..., :half, half:]
    return made
