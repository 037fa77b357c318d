"""A softmax as kernels do it wrongly: in tiles that are not rescaled, in parts merged wrongly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    MOST_TILES,
    ChangedStep,
    change,
)
from evoengine.evaluate.worker.forensics.exchanged_places import TileMix, tile_mixes
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.softmax_parts import online_softmax, softmax_in_parts
from evoengine.evaluate.worker.forensics.softmax_weights import (
    along_last,
    behind,
    finite,
    is_last,
    top,
    with_sum_over,
    without_columns,
)

END_TILES = (8, 16, 32, 64, 128)
WIDE_TILES = (256, 512, 1024, 2048, 4096)
LARGEST_PADDED = 8192


def changed_softmax(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of a step that is a softmax, the likelier ones first."""
    if step.name != "softmax":
        return
    yield from _ends(step, tiles)
    yield from _counted_again(step, tiles)
    yield from _padded(step, tiles)
    yield from online_softmax(step, tiles)
    yield from _mixed_weights(step, tiles)
    yield from _mixed_in_tiles(step, tiles)
    yield from softmax_in_parts(step, tiles)


def plain_softmax(step: ReferenceStep) -> Iterator[ChangedStep]:
    """One part of a softmax left out or done otherwise, whichever way its row is divided."""
    if step.name != "softmax":
        return
    yield change(
        step,
        f"without dividing by the sum in {step.words}",
        along_last(lambda scores: (scores - top(scores)).exp()),
        1.04,
        "the softmax is not normalised, its sum is missing",
    )
    yield change(
        step,
        f"without subtracting the maximum in {step.words}",
        along_last(_without_maximum),
        1.02,
        "the maximum is not subtracted before the exponential, which overflows",
    )
    yield change(
        step,
        f"with a maximum that begins at 0 in {step.words}",
        along_last(_from_zero),
        1.04,
        "the running maximum begins at 0 in place of minus infinity: rows of negative scores"
        " underflow",
    )
    yield change(
        step,
        f"with exp2 in place of exp in {step.words}",
        lambda f, a, k: f(a[0] * math.log(2), *a[1:], **k),
        1.02,
        "exp2 is taken without the factor log2(e)",
    )
    yield change(
        step,
        f"along the other axis in {step.words}",
        lambda f, a, k: a[0].softmax(-2 if is_last(a, k) else -1),
        mistake="the softmax runs along the wrong axis",
    )
    yield change(
        step,
        f"with the maximum added to the sum in {step.words}",
        along_last(lambda s: (s - top(s)).exp() / (1 + (s - top(s)).exp().sum(-1, keepdim=True))),
        0.99,
        "the sum of the softmax begins at 1 in place of 0",
    )


def _ends(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Some of the columns left out, or more of them counted."""
    yield change(
        step,
        f"without the last one in {step.words}",
        along_last(lambda s: without_columns(s, behind(s, s.shape[-1] - 1))),
        1.01,
        "the last element of every row (the last key) is left out, off by one",
    )
    yield change(
        step,
        f"without the first one in {step.words}",
        along_last(lambda s: without_columns(s, ~behind(s, 1))),
        1.0,
        "the first element of every row (the first key) is left out, off by one",
    )
    for tile in dict.fromkeys((*tiles[:MOST_TILES], *END_TILES)):
        yield change(
            step,
            f"without the last tile of {tile} (or its rest) in {step.words}",
            along_last(lambda s, t=tile: without_columns(s, behind(s, (s.shape[-1] - 1) // t * t))),  # type: ignore[misc]
            1.0,
            f"the last tile of {tile} keys is left out",
        )
        yield change(
            step,
            f"without the first {tile} in {step.words}",
            along_last(lambda s, t=tile: without_columns(s, ~behind(s, t))),  # type: ignore[misc]
            1.0,
            f"the first tile of {tile} keys is left out",
        )
        yield change(
            step,
            f"with the last tile of {tile} left out of the sum of {step.words}",
            along_last(lambda s, t=tile: with_sum_over(s, ~behind(s, (s.shape[-1] - 1) // t * t))),  # type: ignore[misc]
            1.0,
            f"the last tile of {tile} is missing in the sum of the softmax",
        )


def _counted_again(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The last column, which places beyond the end are limited to, counted once more or up to the
    end of a tile: in the sum alone, or in the weights as well.
    """
    for tile in (0, *dict.fromkeys((*tiles[:MOST_TILES], *END_TILES[1:4]))):
        times = "a second time" if not tile else f"again up to the end of the tile of {tile}"
        for in_sum_alone in (True, False):
            where = (
                "in the sum (the denominator) of the softmax alone"
                if in_sum_alone
                else "in the sum of the softmax and in what is added alike"
            )
            yield change(
                step,
                f"with the last one counted {times}, {where}, in {step.words}",
                along_last(
                    lambda s, t=tile, a=in_sum_alone: _last_again(s, t, a)  # type: ignore[misc]
                ),
                1.0,
                f"the last element (key) of a row is counted {times}, {where}: places past the end"
                " (<= in place of <, or an index that is limited to the last one) are not masked",
            )


def _last_again(scores: torch.Tensor, tile: int, in_sum_alone: bool) -> torch.Tensor:
    more = -scores.shape[-1] % tile if tile else 1
    if not more:
        raise ValueError("whole tiles")
    power = (scores - finite(top(scores))).exp()
    counts = torch.ones(scores.shape[-1], dtype=scores.dtype, device=scores.device)
    counts[-1] += more
    total = (power * counts).sum(-1, keepdim=True)
    return (power if in_sum_alone else power * counts) / total


def _padded(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Places beyond the end of a row that count, up to a whole tile."""
    several = [a * b for a in tiles for b in tiles if a < b and a * b <= LARGEST_PADDED]
    for tile in dict.fromkeys((*tiles, *END_TILES, *several, *WIDE_TILES)):
        yield change(
            step,
            f"with every row filled up to a multiple of {tile} with zeros that count in"
            f" {step.words}",
            along_last(lambda s, t=tile: _filled_up(s, t)),  # type: ignore[misc]
            1.0,
            "the padding beyond the end of a row (behind the last element) is not masked with minus"
            f" infinity: its zeros, up to a multiple of {tile}, count in the sum of the softmax",
        )


def _mixed_weights(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Weights that are mixed up between rows before they are divided by the sums of the rows."""
    for mix in tile_mixes(tiles[:MOST_TILES]):

        def mixed(scores: torch.Tensor, mix: TileMix = mix) -> torch.Tensor:
            power = (scores - finite(top(scores))).exp()
            return mix.mix(power) / power.sum(-1, keepdim=True)

        yield change(
            step,
            f"{mix.words} before the division by the sum in {step.words}",
            along_last(mixed),
            1.0,
            f"the weights are used {mix.words}, as a fragment with another layout",
        )


def _mixed_in_tiles(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The same in an online softmax: a row gets weights that are relative to another row's maximum
    of the tile, and rescales them as its own. The maxima may begin anew in every part of the row,
    as where blocks share it.
    """
    known = tiles[:MOST_TILES]
    sizes = dict.fromkeys((*known, *END_TILES[1:4]))
    for part, tile in ((part, tile) for part in (0, *known) for tile in sizes):
        if part and (part % tile or part == tile):
            continue
        named = f"tiles of {tile}{f', parts of {part}' if part else ''}"
        for mix in tile_mixes(()):
            yield change(
                step,
                f"{mix.words} in {named}, before they are rescaled, in {step.words}",
                along_last(partial(_mixed_in_some, tile=tile, part=part, mix=mix)),
                1.0,
                f"the weights of the softmax are used {mix.words} in {named}, as a fragment"
                " with another layout: weights of other rows and keys, registers swapped",
            )


def _mixed_in_some(scores: torch.Tensor, tile: int, part: int, mix: TileMix) -> torch.Tensor:
    if scores.shape[-1] <= max(tile, part):
        raise ValueError("one tile")
    places = torch.arange(scores.shape[-1], device=scores.device) // tile
    highest = torch.stack([one.amax(-1) for one in scores.split(tile, -1)], -1)
    each = part // tile if part else highest.shape[-1]
    running = [one.cummax(-1).values for one in highest.split(each, -1)]
    then = finite(torch.cat(running, -1)).index_select(-1, places)
    last = finite(highest.amax(-1, keepdim=True))
    power = mix.mix((scores - then).exp()) * (then - last).exp()
    return power / (scores - last).exp().sum(-1, keepdim=True)


def _without_maximum(scores: torch.Tensor) -> torch.Tensor:
    power = scores.float().exp()  # overflows as a kernel's does
    return (power / power.sum(-1, keepdim=True)).double()


def _from_zero(scores: torch.Tensor) -> torch.Tensor:
    power = (scores - top(scores).clamp_min(0)).float().exp()
    power = power.masked_fill(power < torch.finfo(torch.float32).tiny, 0)  # flushed, as by ex2.ftz
    return (power / power.sum(-1, keepdim=True)).double()


def _filled_up(scores: torch.Tensor, tile: int) -> torch.Tensor:
    """Columns of zeros up to a whole tile count in the sum."""
    extent = scores.shape[-1]
    if extent % tile == 0:
        raise ValueError("no rest")
    more = scores.new_zeros(*scores.shape[:-1], tile - extent % tile)
    return torch.cat([scores, more], -1).softmax(-1)[..., :extent]
