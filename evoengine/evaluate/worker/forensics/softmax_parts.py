"""A softmax in tiles, splits, warps or lanes that are merged wrongly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch

from evoengine.evaluate.worker.forensics.changed_step import MOST_TILES, ChangedStep, change
from evoengine.evaluate.worker.forensics.lead import figure
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.softmax_weights import (
    Parting,
    along_last,
    by_part,
    finite,
    in_a_row,
    in_turn,
    is_part,
    of_size,
    top,
    with_sum_over,
    without_columns,
)

ONLINE_TILES = (16, 32, 64, 128)
WIDTHS = (64, 128, 32, 80, 96, 256)  # of heads
SPLITS = (2, 4, 8)
SIZES = (32, 64, 128, 16)  # of parts that lie in a row
IN_BASE_TWO, IN_BASE_E = math.log(2), 1 / math.log(2)
OF_SPLITS = 5  # of them are tried for splits
# powers of the right factor by which the accumulator and the sum are rescaled
RESCALINGS = (
    (0, 1, "the accumulator not rescaled"),
    (1, 0, "the sum not rescaled"),
    (0, 0, "neither sum nor accumulator rescaled"),
    (IN_BASE_E, IN_BASE_E, "what was summed before rescaled by a power of e, not of 2"),
    (IN_BASE_TWO, IN_BASE_TWO, "what was summed before rescaled by a power of 2, not of e"),
    (IN_BASE_E, 1, "the accumulator rescaled by a power of e, not of 2"),
    (IN_BASE_TWO, 1, "the accumulator rescaled by a power of 2, not of e"),
    (1, IN_BASE_E, "the sum rescaled by a power of e, not of 2"),
    (1, IN_BASE_TWO, "the sum rescaled by a power of 2, not of e"),
    (2, 2, "what was summed before rescaled twice"),
)
MERGED = "the partial results of the splits are merged without rescaling to the common maximum"
TOTALS = (
    "the totals (sums of weights, the denominator) of the parts are joined without rescaling"
    " them to the common maximum, although the results are: the factor exp(own maximum - common"
    " maximum) is missing in the denominator, or the maximum is that of a part of the row (half"
    " of the lanes, or one split)"
)
OUTPUTS = (
    "the results (accumulators) of the parts are joined without rescaling them to the common"
    " maximum, although their totals are: the partial results are merged without rescaling to"
    " the common maximum in the numerator"
)


def online_softmax(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Running maxima by tiles, also of several splits that take tiles in turn or in a row."""
    for tile in dict.fromkeys((*tiles[:MOST_TILES], *ONLINE_TILES, 1)):
        yield from _tiles_of_parts(step, tile, _single, "", 1.02)
    yield from _rescaled_unscaled(step, tiles)
    for tile in dict.fromkeys((*tiles[:MOST_TILES], 16, 32, 64)):
        for parts in SPLITS:
            named = f" of {parts} splits that take them in turn"
            yield from _tiles_of_parts(step, tile, in_turn(tile, parts), named, 1.01)
        for parts in SPLITS[:2]:
            yield from _tiles_of_parts(step, tile, in_a_row(parts), f" of {parts} splits", 1.01)


def _rescaled_unscaled(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Maxima of scores before they are scaled, as by the root of a head's width."""
    widths = dict.fromkeys((*(size for size in tiles if size in WIDTHS), *WIDTHS[:2]))
    for tile in dict.fromkeys((*tiles[:MOST_TILES], *ONLINE_TILES)):
        for width in widths:
            for base, what in ((IN_BASE_TWO, "two"), (1.0, "e")):
                power = math.sqrt(width) * base
                yield change(
                    step,
                    f"in tiles of {tile}, rescaled by powers of {what} of raw differences of"
                    f" maxima, {figure(math.sqrt(width))} times those of scaled ones"
                    f" ({step.words})",
                    along_last(
                        lambda s, t=tile, p=power: _running(s, t, _single(s.shape[-1]), p, p)  # type: ignore[misc]
                    ),
                    1.0,
                    "the online softmax: what was summed before is rescaled by the difference of"
                    " raw maxima: the scale of the scores is missing in the factor of rescaling",
                )


def _tiles_of_parts(
    step: ReferenceStep, tile: int, parting: Parting, named: str, weight: float
) -> Iterator[ChangedStep]:
    for power, power_of_sum, what in RESCALINGS[: None if parting is _single else OF_SPLITS]:
        yield change(
            step,
            f"in tiles of {tile}{named} with {what} when the maximum grows ({step.words})",
            along_last(
                lambda s, t=tile, p=power, q=power_of_sum: _running(  # type: ignore[misc]
                    s, t, parting(s.shape[-1]), p, q
                )
            ),
            weight,
            f"the online softmax: {what} when the running maximum grows",
        )


def _running(
    scores: torch.Tensor, tile: int, part: torch.Tensor, power: float, power_of_sum: float
) -> torch.Tensor:
    """The weights of an online softmax that rescales what it has by these powers of the factor by
    which it should.
    """
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
        made[..., own] = (scores[..., own] - finite(made[..., own])) + (last - finite(top(scores)))
    right = scores - finite(top(scores))
    # a weight is off by as much as the maximum of its part grew after it
    grown = (made - right).nan_to_num(0.0)
    weights = (right + (1 - power) * grown).exp()
    total = (right + (1 - power_of_sum) * grown).exp().sum(-1, keepdim=True)
    return weights / total


def softmax_in_parts(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Parts that have maxima and sums of their own: splits, warps, lanes."""
    for named, parting in _partings(tiles):
        yield from _merged(step, named, parting)


def softmax_of_a_part(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """A part of every row left out, or the sum of one part for all."""
    if step.name != "softmax":
        return
    for named, parting in _partings(tiles):
        yield from _of_one_part(step, named, parting)


def _partings(tiles: Sequence[int]) -> list[tuple[str, Parting]]:
    partings: list[tuple[str, Parting]] = []
    for parts in SPLITS:
        partings.append((f"in {parts} splits", in_a_row(parts)))
    for size in dict.fromkeys((*tiles[:MOST_TILES], *SIZES)):
        partings.append((f"in splits of {size}", of_size(size)))
    for width in (4, 2, 1, 8, 16, 32, *tiles[:MOST_TILES]):
        for parts in (2, 4, 8):
            named = f"in {parts} parts of which each takes {width} columns in turn"
            partings.append((named, in_turn(width, parts)))
    return partings


def _merged(step: ReferenceStep, named: str, parting: Parting) -> Iterator[ChangedStep]:
    lanes = "the maximum is that of a part of the row (half of the lanes, or one split), not of all"
    for words, weights, mistake in _merges():
        said = lanes if "in turn" in named and mistake == MERGED else mistake
        yield change(
            step,
            f"{named}, {words} ({step.words})",
            along_last(lambda s, w=weights: w(s, parting(s.shape[-1]))),  # type: ignore[misc]
            1.0,
            said,
        )


def _merges() -> tuple[tuple[str, Callable[..., torch.Tensor], str], ...]:
    """Wrong ways to merge the parts: in words, the weights that follow, and the mistake."""
    return (
        (
            "each with its own maximum, merged without rescaling",
            _own_maxima(True, True),
            MERGED,
        ),
        ("whose sums are not rescaled when they are merged", _own_maxima(False, True), TOTALS),
        ("whose outputs are not rescaled when they are merged", _own_maxima(True, False), OUTPUTS),
        (
            "merged with weights in base two",
            _merged_in_base_two,
            "the splits are merged with powers of two without the factor log2(e): exp2 in place of"
            " exp in the weights of the merge",
        ),
        (
            "each with its own maximum and sum, and added",
            _own_softmax(mean=False),
            "the partial results are added without rescaling each by its sum and maximum",
        ),
        (
            "weighed by powers of two of their maxima and natural logarithms of their sums",
            _weighed_by_power(IN_BASE_TWO),
            "the logarithm of each part's sum is taken in base e (logf) and joined with a maximum"
            " in base two: log2f is meant in what the parts are weighed by",
        ),
        (
            "weighed by powers of e of their maxima and logarithms of their sums in base two",
            _weighed_by_power(IN_BASE_E),
            "the logarithm of each part's sum is taken in base two (log2f) and joined with a"
            " maximum in base e: logf is meant in what the parts are weighed by",
        ),
        (
            "each with its own maximum and sum, and averaged",
            _own_softmax(mean=True),
            "the partial results are averaged without rescaling each by its sum and maximum",
        ),
        (
            "each with its own sum, merged by their maxima alone",
            _weighed(by_sums=False),
            "the splits are merged by their maxima alone: the sum (its logarithm) of each is"
            " missing from what it is weighed by",
        ),
        (
            "each with its own sum, merged by their sums alone",
            _weighed(by_sums=True),
            "the splits are merged by their sums alone: the maximum of each is missing from what it"
            " is weighed by",
        ),
        (
            "whose products are not divided by their own sums before they are merged by them",
            _undivided,
            "the results of the splits are not divided by their own sums (not normalised) before"
            " they are merged with weights that count on it",
        ),
    )


def _of_one_part(step: ReferenceStep, named: str, parting: Parting) -> Iterator[ChangedStep]:
    for number, which in ((0, "first"), (-1, "last")):
        yield change(
            step,
            f"{named}, with the sum of the {which} part alone ({step.words})",
            along_last(lambda s, n=number: with_sum_over(s, is_part(s, parting, n))),  # type: ignore[misc]
            0.99,
            "the sum of the softmax is that of a part of the row (some of the lanes, or one"
            " split), not of all",
        )
        yield change(
            step,
            f"{named}, of which the {which} is left out ({step.words})",
            along_last(lambda s, n=number: without_columns(s, is_part(s, parting, n))),  # type: ignore[misc]
            0.99,
            f"a part of every row is left out, the {which} split",
        )


def _own_maxima(accumulates_own: bool, sums_own: bool) -> Callable[..., torch.Tensor]:
    """Weights of parts that are not brought to one maximum before they are added."""

    def weights(scores: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        own = by_part(scores, part, lambda one: (one - finite(top(one))).exp())
        right = (scores - finite(top(scores))).exp()
        total = (own if sums_own else right).sum(-1, keepdim=True)
        return (own if accumulates_own else right) / total

    return weights


def _merged_in_base_two(scores: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    whole = finite(top(scores))

    def weighted(one: torch.Tensor) -> torch.Tensor:
        own = finite(top(one))
        return (one - own).exp() * (own - whole).exp2()

    power = by_part(scores, part, weighted)
    return power / power.sum(-1, keepdim=True)


def _weighed_by_power(power: float) -> Callable[..., torch.Tensor]:
    """Parts with a softmax each, weighed by their maxima and by this power of their sums."""

    def weights(scores: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        whole = finite(top(scores))

        def weighted(one: torch.Tensor) -> torch.Tensor:
            own = finite(top(one))
            grown = (one - own).exp()
            total = grown.sum(-1, keepdim=True)
            return (grown * total ** (power - 1) * (own - whole).exp()).nan_to_num(0)

        made = by_part(scores, part, weighted)
        return made / made.sum(-1, keepdim=True)

    return weights


def _own_softmax(mean: bool) -> Callable[..., torch.Tensor]:
    def weights(scores: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        own = by_part(scores, part, lambda one: one.softmax(-1).nan_to_num(0))
        return own / (int(part.max()) + 1 if mean else 1)

    return weights


def _weighed(by_sums: bool) -> Callable[..., torch.Tensor]:
    """Parts with a softmax each, merged by their sums or by their maxima, not by both."""

    def weights(scores: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        whole = finite(top(scores))

        def share(one: torch.Tensor) -> torch.Tensor:
            if by_sums:
                return (one - finite(top(one))).exp().sum(-1, keepdim=True)
            return (top(one) - whole).exp()

        own = by_part(scores, part, lambda one: one.softmax(-1).nan_to_num(0) * share(one))
        total = by_part(scores, part, lambda one: share(one).expand_as(one) / one.shape[-1])
        return own / total.sum(-1, keepdim=True)

    return weights


def _undivided(scores: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    right = (scores - finite(top(scores))).exp()
    own = by_part(
        scores,
        part,
        lambda one: (one - finite(top(one))).exp().sum(-1, keepdim=True).expand_as(one),
    )
    return right * own / right.sum(-1, keepdim=True)


def _single(extent: int) -> torch.Tensor:
    return torch.zeros(extent, dtype=torch.long)
