"""A softmax as kernels do it wrongly: in tiles that are not rescaled, in parts merged wrongly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    MOST_TILES,
    ChangedStep,
    Instead,
    change,
)
from evoengine.evaluate.worker.forensics.exchanged_places import TileMix, tile_mixes
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep

ONLINE_TILES = (16, 32, 64, 128)
END_TILES = (8, 16, 32, 64, 128)
SPLITS = (2, 4, 8)
# (scores, along their last axis) -> weights
Weights = Callable[[torch.Tensor], torch.Tensor]
# (number of columns) -> the part of each
Parting = Callable[[int], torch.Tensor]


def changed_softmax(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of a step that is a softmax, the likelier ones first."""
    if step.name != "softmax":
        return
    yield from _plain(step)
    yield from _ends(step, tiles)
    yield from _online(step, tiles)
    yield from _parts(step, tiles)
    yield from _mixed_weights(step, tiles)


def _plain(step: ReferenceStep) -> Iterator[ChangedStep]:
    yield change(
        step,
        f"without dividing by the sum in {step.words}",
        _along_last(lambda scores: (scores - _top(scores)).exp()),
        1.04,
        "the softmax is not normalised, its sum is missing",
    )
    yield change(
        step,
        f"without subtracting the maximum in {step.words}",
        _along_last(_without_maximum),
        1.02,
        "the maximum is not subtracted before the exponential, which overflows",
    )
    yield change(
        step,
        f"with a maximum that begins at 0 in {step.words}",
        _along_last(_from_zero),
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
        lambda f, a, k: a[0].softmax(-2 if _is_last(a, k) else -1),
        mistake="the softmax runs along the wrong axis",
    )
    yield change(
        step,
        f"with the maximum added to the sum in {step.words}",
        _along_last(
            lambda s: (s - _top(s)).exp() / (1 + (s - _top(s)).exp().sum(-1, keepdim=True))
        ),
        0.99,
        "the sum of the softmax begins at 1 in place of 0",
    )


def _online(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Running maxima by tiles, also of several splits that take tiles in turn or in a row."""
    for tile in dict.fromkeys((*tiles[:MOST_TILES], *ONLINE_TILES)):
        yield from _tiles_of_parts(step, tile, _single, "", 1.02)
    for tile in dict.fromkeys((*tiles[:MOST_TILES], 16, 32, 64)):
        for parts in SPLITS:
            named = f" of {parts} splits that take them in turn"
            yield from _tiles_of_parts(step, tile, _in_turn(tile, parts), named, 1.01)
        for parts in SPLITS[:2]:
            yield from _tiles_of_parts(step, tile, _in_a_row(parts), f" of {parts} splits", 1.01)


def _tiles_of_parts(
    step: ReferenceStep, tile: int, parting: Parting, named: str, weight: float
) -> Iterator[ChangedStep]:
    for keeps_sum, keeps_accumulator, what in (
        (True, False, "the accumulator not rescaled"),
        (False, True, "the sum not rescaled"),
        (False, False, "neither sum nor accumulator rescaled"),
    ):
        yield change(
            step,
            f"in tiles of {tile}{named} with {what} when the maximum grows ({step.words})",
            _along_last(
                lambda s, t=tile, ks=keeps_sum, ka=keeps_accumulator: _running(  # type: ignore[misc]
                    s, t, parting(s.shape[-1]), ka, ks
                )
            ),
            weight,
            f"the online softmax: {what} when the running maximum grows",
        )


def _running(
    scores: torch.Tensor, tile: int, part: torch.Tensor, rescales: bool, rescales_sum: bool
) -> torch.Tensor:
    """The weights of an online softmax that forgets to rescale what it has."""
    extent = scores.shape[-1]
    if extent <= tile:
        raise ValueError("one tile")
    made = torch.empty_like(scores)
    for number in range(int(part.max()) + 1):
        own = (part == number).nonzero().flatten().to(scores.device)
        running = torch.full_like(scores[..., :1], -math.inf)
        for places in own.split(tile):
            running = torch.maximum(running, scores.index_select(-1, places).amax(-1, keepdim=True))
            made.index_copy_(-1, places, running.expand(*scores.shape[:-1], len(places)))
        last = running  # the part's own maximum: its splits are merged rightly
        made[..., own] = (scores[..., own] - _finite(made[..., own])) + (
            last - _finite(_top(scores))
        )
    own_weights = made.exp().nan_to_num(0.0)
    right = (scores - _finite(_top(scores))).exp()
    total = (right if rescales_sum else own_weights).sum(-1, keepdim=True)
    return (right if rescales else own_weights) / total


def _ends(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Some of the columns left out, or more of them counted."""
    yield change(
        step,
        f"without the last one in {step.words}",
        _along_last(lambda s: _hidden(s, _from(s, s.shape[-1] - 1))),
        1.01,
        "the last element of every row (the last key) is left out, off by one",
    )
    yield change(
        step,
        f"without the first one in {step.words}",
        _along_last(lambda s: _hidden(s, ~_from(s, 1))),
        1.0,
        "the first element of every row (the first key) is left out, off by one",
    )
    for tile in dict.fromkeys((*tiles[:MOST_TILES], *END_TILES)):
        yield change(
            step,
            f"without the last tile of {tile} (or its rest) in {step.words}",
            _along_last(lambda s, t=tile: _hidden(s, _from(s, (s.shape[-1] - 1) // t * t))),  # type: ignore[misc]
            1.0,
            f"the last tile of {tile} keys is left out",
        )
        yield change(
            step,
            f"with the last tile of {tile} filled up with zeros that count in {step.words}",
            _along_last(lambda s, t=tile: _filled_up(s, t)),  # type: ignore[misc]
            1.0,
            "the padding behind the last element is not masked: its zeros count in the softmax",
        )
        yield change(
            step,
            f"without the first {tile} in {step.words}",
            _along_last(lambda s, t=tile: _hidden(s, ~_from(s, t))),  # type: ignore[misc]
            1.0,
            f"the first tile of {tile} keys is left out",
        )
        yield change(
            step,
            f"with the last tile of {tile} left out of the sum of {step.words}",
            _along_last(lambda s, t=tile: _summed(s, ~_from(s, (s.shape[-1] - 1) // t * t))),  # type: ignore[misc]
            1.0,
            f"the last tile of {tile} is missing in the sum of the softmax",
        )


def _parts(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Parts that have maxima and sums of their own: splits, warps, lanes."""
    partings: list[tuple[str, Parting]] = []
    for parts in SPLITS:
        partings.append((f"in {parts} splits", _in_a_row(parts)))
    for width in (4, 2, 1, 8, 16, 32, *tiles[:MOST_TILES]):
        for parts in (2, 4, 8):
            named = f"in {parts} parts of which each takes {width} columns in turn"
            partings.append((named, _in_turn(width, parts)))
    for named, parting in partings:
        yield from _merged(step, named, parting)
    for named, parting in partings:
        yield from _of_one_part(step, named, parting)


def _merged(step: ReferenceStep, named: str, parting: Parting) -> Iterator[ChangedStep]:
    merge = "the partial results of the splits are merged without rescaling to the common maximum"
    lanes = "the maximum is that of a part of the row (half of the lanes, or one split), not of all"
    for words, weights, mistake in (
        (
            "each with its own maximum, merged without rescaling",
            _own_maxima(True, True),
            f"{merge}",
        ),
        ("whose sums are not rescaled when they are merged", _own_maxima(False, True), merge),
        ("whose outputs are not rescaled when they are merged", _own_maxima(True, False), merge),
        (
            "each with its own maximum and sum, and added",
            _own_softmax(mean=False),
            "the partial results are added without rescaling each by its sum and maximum",
        ),
        (
            "each with its own maximum and sum, and averaged",
            _own_softmax(mean=True),
            "the partial results are averaged without rescaling each by its sum and maximum",
        ),
    ):
        said = lanes if "in turn" in named and mistake == merge else mistake
        yield change(
            step,
            f"{named}, {words} ({step.words})",
            _along_last(lambda s, w=weights: w(s, parting(s.shape[-1]))),  # type: ignore[misc]
            1.0,
            said,
        )


def _of_one_part(step: ReferenceStep, named: str, parting: Parting) -> Iterator[ChangedStep]:
    for number, which in ((0, "first"), (-1, "last")):
        yield change(
            step,
            f"{named}, with the sum of the {which} part alone ({step.words})",
            _along_last(lambda s, n=number: _summed(s, _is_part(s, parting, n))),  # type: ignore[misc]
            0.99,
            "the sum of the softmax is that of a part of the row (some of the lanes, or one"
            " split), not of all",
        )
        yield change(
            step,
            f"{named}, of which the {which} is left out ({step.words})",
            _along_last(lambda s, n=number: _hidden(s, _is_part(s, parting, n))),  # type: ignore[misc]
            0.99,
            f"a part of every row is left out, the {which} split",
        )


def _mixed_weights(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Weights that are mixed up between rows before they are divided by the sums of the rows."""
    for mix in tile_mixes(tiles[:MOST_TILES]):

        def mixed(scores: torch.Tensor, mix: TileMix = mix) -> torch.Tensor:
            power = (scores - _finite(_top(scores))).exp()
            return mix.mix(power) / power.sum(-1, keepdim=True)

        yield change(
            step,
            f"{mix.words} before the division by the sum in {step.words}",
            _along_last(mixed),
            1.0,
            f"the weights are used {mix.words}, as a fragment with another layout",
        )


def _is_part(scores: torch.Tensor, parting: Parting, number: int) -> torch.Tensor:
    part = parting(scores.shape[-1]).to(scores.device)
    return part == (number if number >= 0 else int(part.max()) + 1 + number)


def _own_maxima(accumulates_own: bool, sums_own: bool) -> Callable[..., torch.Tensor]:
    """Weights of parts that are not brought to one maximum before they are added."""

    def weights(scores: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        own = _by_part(scores, part, lambda one: (one - _finite(_top(one))).exp())
        right = (scores - _finite(_top(scores))).exp()
        total = (own if sums_own else right).sum(-1, keepdim=True)
        return (own if accumulates_own else right) / total

    return weights


def _own_softmax(mean: bool) -> Callable[..., torch.Tensor]:
    def weights(scores: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        own = _by_part(scores, part, lambda one: one.softmax(-1).nan_to_num(0))
        return own / (int(part.max()) + 1 if mean else 1)

    return weights


def _by_part(
    scores: torch.Tensor, part: torch.Tensor, made: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    number = int(part.max()) + 1
    if number < 2:
        raise ValueError("one part")
    whole = torch.empty_like(scores)
    for one in range(number):
        own = (part == one).nonzero().flatten().to(scores.device)
        whole[..., own] = made(scores[..., own])
    return whole


def _single(extent: int) -> torch.Tensor:
    return torch.zeros(extent, dtype=torch.long)


def _in_turn(width: int, parts: int) -> Parting:
    return lambda extent: torch.arange(extent) // width % parts


def _in_a_row(parts: int) -> Parting:
    return lambda extent: torch.arange(extent) // max(1, -(-extent // parts))


def _along_last(weights: Weights) -> Instead:
    def instead(_func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        if not _is_last(args, kwargs) or args[0].shape[-1] < 2:
            raise ValueError("not along the last axis")
        return weights(args[0])

    return instead


def _is_last(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    axis = int(kwargs.get("dim", args[1] if len(args) > 1 else -1))
    return axis in (-1, args[0].dim() - 1)


def _top(scores: torch.Tensor) -> torch.Tensor:
    return scores.amax(-1, keepdim=True)


def _finite(maximum: torch.Tensor) -> torch.Tensor:
    return maximum.masked_fill(maximum == -math.inf, 0)


def _without_maximum(scores: torch.Tensor) -> torch.Tensor:
    power = scores.float().exp()  # overflows as a kernel's does
    return (power / power.sum(-1, keepdim=True)).double()


def _from_zero(scores: torch.Tensor) -> torch.Tensor:
    power = (scores - _top(scores).clamp_min(0)).float().exp()
    power = power.masked_fill(power < torch.finfo(torch.float32).tiny, 0)  # flushed, as by ex2.ftz
    return (power / power.sum(-1, keepdim=True)).double()


def _from(scores: torch.Tensor, start: int) -> torch.Tensor:
    """Which columns are `start` or behind."""
    if not 0 < start < scores.shape[-1]:
        raise ValueError("none or all")
    return torch.arange(scores.shape[-1], device=scores.device) >= start


def _hidden(scores: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    return scores.masked_fill(columns, -math.inf).softmax(-1)


def _summed(scores: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Divided by the sum over some columns alone."""
    power = (scores - _finite(_top(scores))).exp()
    return power / (power * columns).sum(-1, keepdim=True)


def _filled_up(scores: torch.Tensor, tile: int) -> torch.Tensor:
    """Columns of zeros up to a whole tile count in the sum."""
    extent = scores.shape[-1]
    if extent % tile == 0:
        raise ValueError("no rest")
    more = scores.new_zeros(*scores.shape[:-1], tile - extent % tile)
    return torch.cat([scores, more], -1).softmax(-1)[..., :extent]
