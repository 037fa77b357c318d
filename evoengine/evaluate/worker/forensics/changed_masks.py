"""Masks of the reference that are missing, inverted, shifted, or kept for whole tiles only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch.nn.functional import max_pool2d

from evoengine.evaluate.worker.forensics.changed_step import (
    MOST_TILES,
    ChangedStep,
    Instead,
    first_operand,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.records import DiagnosisKind

MASK_TILES = (16, 32, 64, 8, 128)
Mask = torch.Tensor


def changed_masks(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of a step that masks."""
    if step.name in ("masked_fill", "masked_fill_"):
        yield from _filled(step, tiles)
    if step.name in ("triu", "tril"):
        yield from _triangles(step)


def _mask(
    step: ReferenceStep, words: str, mistake: str, instead: Instead, weight: float = 1.06
) -> ChangedStep:
    return ChangedStep(DiagnosisKind.mask, words, {step.place: instead}, weight, mistake=mistake)


def _remade(
    step: ReferenceStep,
    words: str,
    mistake: str,
    remade: Any,  # of the right mask
    weight: float = 1.06,
) -> ChangedStep:
    """The step with another mask, made of the right one."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        return func(args[0], remade(args[1]), *args[2:], **kwargs)

    return _mask(step, f"{words} ({step.words})", mistake, instead, weight)


def _filled(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    other = partial(_remade, step)
    yield _mask(step, f"without the mask ({step.words})", "the mask is missing", first_operand)
    yield other("with the mask inverted", "the mask is inverted", torch.logical_not)
    yield _mask(
        step,
        f"with 0 in place of the masked value ({step.words})",
        "masked elements count as 0",
        lambda f, a, k: f(a[0], a[1], 0.0),
    )
    yield other(
        "with the mask transposed",
        "the mask is transposed (upper and lower triangle exchanged)",
        lambda m: m.transpose(-1, -2),
    )
    for axis, what in ((-1, "the last columns in place of the first"), (-2, "rows reversed")):
        yield other(
            f"with the mask mirrored, {what}",
            "the mask is mirrored, on the wrong side",
            lambda m, axis=axis: m.flip(axis),
            1.05,
        )
    for shift, fewer in ((1, "one more element"), (-1, "one element less")):
        yield other(
            f"with the mask off by one, {fewer} kept in each row",
            "the mask is off by one",
            lambda m, shift=shift: _moved(m, shift),
        )
    yield from _of_registers(step)
    for tile in dict.fromkeys((*tiles[:MOST_TILES], *MASK_TILES)):
        yield from _in_tiles(step, tile)
        yield from _of_first_tiles(step, tile)


def _in_tiles(step: ReferenceStep, tile: int) -> Iterator[ChangedStep]:
    """Masks that are wrong in the tiles that they cut."""
    other = partial(_remade, step)
    yield other(
        f"with the mask missing inside the {tile}x{tile} tiles that it cuts",
        "the mask is missing in the tiles on the diagonal",
        lambda m: ~any_in_tile(~m, tile, tile),
        1.05,
    )
    yield _mask(
        step,
        f"with 0 in place of the masked value inside the {tile}x{tile} tiles that the mask cuts"
        f" ({step.words})",
        "masked elements (keys) of the tiles on the diagonal get 0 in place of minus infinity,"
        " so they keep a weight",
        _zero_in_tiles(tile),
        1.05,
    )
    yield other(
        f"with whole {tile}x{tile} tiles masked that should be in part",
        "the mask hides whole tiles on the diagonal",
        lambda m: any_in_tile(m, tile, tile),
        1.05,
    )
    yield other(
        f"with the mask of the first row of every {tile} for all of them",
        "the mask is that of another row of the tile",
        lambda m: _rows_of(m, tile, 0),
        1.04,
    )
    yield other(
        f"with the mask of the last row of every {tile} for all of them",
        "the mask is that of another row of the tile: later elements are seen up to the end of"
        " the tile",
        lambda m: _rows_of(m, tile, tile - 1),
        1.04,
    )


def _of_registers(step: ReferenceStep) -> Iterator[ChangedStep]:
    """Masks whose row or column lacks a part of the place of a register, as of mma's fragments."""
    rows = "rows (queries)"
    for words, mistake, places in (
        (
            f"that of the {rows} 8 above for the second half (8..15) of every 16",
            "the second eight (lower) of every sixteen rows have the mask of the rows eight above:"
            " the offset of half of a fragment's rows is missing, so that these rows see too few"
            " elements (keys)",
            lambda r, c: (r - r % 16 // 8 * 8, c),
        ),
        (
            f"that of the {rows} 8 below for the first half (0..7) of every 16",
            "the first eight (upper) of every sixteen rows have the mask of the rows eight below:"
            " the offset of half of a fragment's rows is too large, so that these rows see later"
            " (hidden) elements",
            lambda r, c: (r + (1 - r % 16 // 8) * 8, c),
        ),
        (
            f"that of the {rows} of the other half of 16 in every second column",
            "rows and columns of a fragment's registers are mixed up in the mask (e % 2 and e / 2):"
            " half of the elements have the mask of the rows eight above or below",
            lambda r, c: (r - r % 16 // 8 * 8 + c % 2 * 8, c),
        ),
        (
            "that of the column that the half of 16 rows says",
            "rows and columns of a fragment's registers are mixed up in the mask (e / 2 and e % 2):"
            " columns (keys) are off by one, every second one has the mask of its neighbour",
            lambda r, c: (r, c - c % 2 + r % 16 // 8),
        ),
        (
            "that of the first of every two columns for both",
            "the mask is off by one in every second column (key): both of two neighbours have the"
            " mask of the first",
            lambda r, c: (r, c - c % 2),
        ),
    ):
        yield _placed(step, f"with the mask {words}", mistake, places)


def _of_first_tiles(step: ReferenceStep, tile: int) -> Iterator[ChangedStep]:
    """Masks of places that are counted from the begin of their tile."""
    for words, what, places in (
        (
            f"of rows counted from the begin of every {tile}",
            "row (query)",
            lambda r, c, t=tile: (r % t, c),
        ),
        (
            f"of columns counted from the begin of every {tile}",
            "column (key)",
            lambda r, c, t=tile: (r, c % t),
        ),
    ):
        yield _placed(
            step,
            f"with the mask {words}",
            f"the mask lacks the offset of the tile: the {what} is counted from the begin of its"
            f" tile of {tile}, so that later tiles have the mask of the first",
            places,
        )


Places = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def _placed(step: ReferenceStep, words: str, mistake: str, places: Places) -> ChangedStep:
    """The step with the mask of other places of its last two axes."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        mask = args[1].expand(args[0].shape)
        rows, columns = mask.shape[-2:]
        r = torch.arange(rows, device=mask.device).unsqueeze(1).expand(rows, columns)
        c = torch.arange(columns, device=mask.device).expand(rows, columns)
        row, column = places(r, c)
        own = mask[..., row.clamp(0, rows - 1), column.clamp(0, columns - 1)]
        return func(args[0], own, *args[2:], **kwargs)

    return _mask(step, f"{words} ({step.words})", mistake, instead, 1.05)


def _zero_in_tiles(tile: int) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        mask = args[1].expand(args[0].shape)
        inside = mask & any_in_tile(~mask, tile, tile)
        return func(*args, **kwargs).masked_fill(inside, 0.0)

    return instead


def _moved(mask: Mask, shift: int) -> Mask:
    """Each row's mask `shift` columns to the right; what comes in at the end is its neighbour."""
    at = (torch.arange(mask.shape[-1], device=mask.device) - shift).clamp(0, mask.shape[-1] - 1)
    return mask.index_select(-1, at)


def any_in_tile(mask: Mask, height: int, width: int) -> Mask:
    """Whether anything is set in the tile of an element."""
    rows, columns = mask.shape[-2:]
    planes = mask.reshape(-1, 1, rows, columns).double()
    pooled = max_pool2d(planes, (height, width), ceil_mode=True)
    wide = pooled.repeat_interleave(height, -2).repeat_interleave(width, -1)
    return wide[..., :rows, :columns].reshape(mask.shape) > 0


def _rows_of(mask: Mask, tile: int, number: int) -> Mask:
    extent = mask.shape[-2]
    at = torch.arange(extent, device=mask.device)
    return mask.index_select(-2, (at // tile * tile + number).clamp_max(extent - 1))


def _triangles(step: ReferenceStep) -> Iterator[ChangedStep]:
    yield _mask(
        step, f"without the triangle ({step.words})", "the mask is missing", first_operand, 1.05
    )
    for shift in (1, -1):
        hidden = "more" if (shift < 0) == (step.name == "triu") else "fewer"
        yield _mask(
            step,
            f"with the mask off by one, {hidden} elements kept by {step.name} ({step.words})",
            "the mask is off by one at the diagonal",
            lambda f, a, k, s=shift: f(a[0], _diagonal(a, k) + s),
        )
    other = torch.tril if step.name == "triu" else torch.triu
    yield _mask(
        step,
        f"with the mask inverted ({step.words})",
        "the mask is inverted",
        lambda f, a, k: other(a[0], _diagonal(a, k)),
    )
    for sign, which, other_end in ((1, "last", "first"), (-1, "first", "last")):
        yield _mask(
            step,
            f"with the diagonal aligned to the {which} column in place of the {other_end}"
            f" ({step.words})",
            "the mask begins at the wrong end of rows that are longer than there are rows: the"
            " position of a row (the offset of its diagonal, a prefix) is "
            + ("counted where it must not be" if sign > 0 else "missing"),
            lambda f, a, k, s=sign: f(
                a[0], _diagonal(a, k) + s * (a[0].shape[-1] - a[0].shape[-2])
            ),
        )


def _diagonal(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    return int(args[1] if len(args) > 1 else kwargs.get("diagonal", 0))
