"""Running sums of exponentials as pairs of a maximum and a sum, which are joined wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch.nn.functional import pad

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, change
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.scan_kinds import scanned

WARP = 32
LOWEST = -1e30
ITEMS = (1, 4)  # elements of one thread
MOST_CHUNK = 1024

Pair = tuple[torch.Tensor, torch.Tensor]  # a maximum, and a sum in units of its exponential
# the factors of the two sums that are joined, of what is (own maximum - common maximum) for both
Factors = Callable[[torch.Tensor, torch.Tensor], Pair]

WRONG_FACTORS: tuple[tuple[str, Factors], ...] = (
    ("the first (earlier) sum is", lambda a, b: (torch.ones_like(a), b.exp())),
    ("the second (later) sum is", lambda a, b: (a.exp(), torch.ones_like(b))),
    ("neither sum is", lambda a, b: (torch.ones_like(a), torch.ones_like(b))),
)
OTHER_FACTORS: tuple[tuple[str, Factors], ...] = (
    (
        "the factors by which the two sums are rescaled are exchanged: each has the other's",
        lambda a, b: (b.exp(), a.exp()),
    ),
    (
        "the sums are rescaled by a power of 2, not of e (exp2 without log2(e))",
        lambda a, b: (a.exp2(), b.exp2()),
    ),
    (
        "the sums are rescaled by the inverse of their factors, exp(top - own)",
        lambda a, b: ((-a).exp(), (-b).exp()),
    ),
)


def pair_scans(step: ReferenceStep, sizes: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of a step that is a running logarithm of sums of exponentials."""
    said = [
        (f"{which} not rescaled to the common maximum", factors) for which, factors in WRONG_FACTORS
    ]
    said += OTHER_FACTORS
    chunks = [one for one in sizes if one % WARP == 0 and one <= MOST_CHUNK]
    for words, factors in said:
        mistake = f"when two partial sums of exponentials are joined (merged), {words}"
        for chunk in chunks:
            for items in ITEMS:
                yield change(
                    step,
                    f"by pairs in chunks of {chunk} threads of {items}, where {words}, in"
                    f" {step.words}",
                    scanned(lambda x, c=chunk, i=items, f=factors: _by_pairs(x, c, i, f)),  # type: ignore[misc]
                    1.0,
                    mistake,
                )
    for tile in dict.fromkeys((1, *sizes)):
        yield change(
            step,
            f"in tiles of {tile} with the running sum not rescaled in {step.words}",
            scanned(lambda x, t=tile: _online(x, t)),  # type: ignore[misc]
            1.0,
            "the running sum of exponentials is not rescaled when the running maximum grows",
        )


def _online(value: torch.Tensor, tile: int) -> torch.Tensor:
    extent = value.shape[-1]
    if extent <= tile:
        raise ValueError("one tile")
    cut = pad(value, (0, -extent % tile), value=LOWEST).unflatten(-1, (-1, tile))
    running = cut.amax(-1).cummax(-1).values.repeat_interleave(tile, -1)[..., :extent]
    found: torch.Tensor = running + (value - running).exp().cumsum(-1).log()
    return found


def _by_pairs(value: torch.Tensor, chunk: int, items: int, factors: Factors) -> torch.Tensor:
    """Lanes by Hillis and Steele's steps, warps and chunks one after another."""

    def joined(a: Pair, b: Pair) -> Pair:
        top = torch.maximum(a[0], b[0])
        first, second = factors(a[0] - top, b[0] - top)
        # an empty sum stays empty, whatever its factor
        left = torch.where(a[1] == 0, a[1], a[1] * first)
        right = torch.where(b[1] == 0, b[1], b[1] * second)
        return top, left + right

    extent, size = value.shape[-1], chunk * items
    if extent <= 1:
        raise ValueError("one element")
    top = pad(value, (0, -extent % size), value=LOWEST)
    some = pad(torch.ones_like(value), (0, -extent % size))
    shape = (-1, chunk // WARP, WARP, items)  # chunks, warps, lanes, elements
    own: Pair = (top.unflatten(-1, shape), some.unflatten(-1, shape))
    inside = [_at(own, 0)]
    for number in range(1, items):
        inside.append(joined(inside[-1], _at(own, number)))
    lanes = inside[-1]
    step = 1
    while step < WARP:
        after = joined(_shifted(lanes, step), lanes)
        is_first = torch.arange(WARP, device=value.device) < step
        lanes = _where(is_first, lanes, after)
        step *= 2
    ahead: list[Pair] = []
    none = torch.zeros_like(lanes[1][..., 0, 0, 0])
    carry: Pair = (none + LOWEST, none)
    for at in range(lanes[0].shape[-3]):
        for warp in range(lanes[0].shape[-2]):
            ahead.append(carry)
            carry = joined(carry, (lanes[0][..., at, warp, -1], lanes[1][..., at, warp, -1]))
    places = lanes[0].shape[-3:-1]
    before: Pair = tuple(
        torch.stack([one[part] for one in ahead], -1).unflatten(-1, places).unsqueeze(-1)
        for part in range(2)
    )
    if items == 1:
        whole = joined(before, lanes)
        return (whole[0] + whole[1].log()).flatten(-3)[..., :extent]
    lane_before = joined(before, _shifted(lanes, 1))
    found = [joined(lane_before, one) for one in inside]
    logarithms = torch.stack([one[0] + one[1].log() for one in found], -1)
    return logarithms.flatten(-4)[..., :extent]


def _at(pair: Pair, number: int) -> Pair:
    return pair[0][..., number], pair[1][..., number]


def _shifted(pair: Pair, places: int) -> Pair:
    """What stands so many lanes before, or nothing."""
    extent = pair[0].shape[-1]
    top = pad(pair[0], (places, 0), value=LOWEST)[..., :extent]
    return top, pad(pair[1], (places, 0))[..., :extent]


def _where(chosen: torch.Tensor, first: Pair, second: Pair) -> Pair:
    return torch.where(chosen, first[0], second[0]), torch.where(chosen, first[1], second[1])
