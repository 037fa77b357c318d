"""Running products, maxima and logarithms of sums are named as running sums are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

LOOSE = {"atol": 2e-4, "rtol": 2e-5, "rel_rmse": 1e-5}


def scan(body: str) -> OwnReference:
    return OwnReference(body, {"N": 5, "L": 300}, {"x": ["N", "L"]}, ["N", "L"], LOOSE)


SUM = scan("return x.cumsum(-1)")
PRODUCT = scan("return (1 + x / 100).cumprod(-1)")
MAXIMUM = scan("return x.cummax(-1).values")
LOGARITHM = scan("return x.logcumsumexp(-1)")

Step = Callable[[torch.Tensor, int], torch.Tensor]  # the values of 32 lanes, a distance -> joined


def by_warps(x: torch.Tensor, step: Step) -> torch.Tensor:
    """Warps that scan by shuffles; what is carried on is the last lane's."""
    found, carry = [], torch.zeros_like(x[:, 0])
    padded = torch.nn.functional.pad(x, (0, -x.shape[-1] % 32))
    for warp in padded.split(32, -1):
        lanes = warp
        for distance in (1, 2, 4, 8, 16):
            lanes = step(lanes, distance)
        found.append(lanes + carry.unsqueeze(-1))
        carry = carry + lanes[:, -1]
    return torch.cat(found, -1)[:, : x.shape[-1]]


def shuffled(lanes: torch.Tensor, distance: int, first: str) -> torch.Tensor:
    """A shuffle up without its condition, or with one that is off by one."""
    result = lanes.clone()
    for lane in range(32):
        if lane >= distance:
            if first != "strict" or lane > distance:
                result[:, lane] = lanes[:, lane] + lanes[:, lane - distance]
        elif first == "own":
            result[:, lane] = 2 * lanes[:, lane]
        elif first == "wrapped":
            result[:, lane] = lanes[:, lane] + lanes[:, lane - distance + 32]
    return result


def backwards(x: torch.Tensor) -> torch.Tensor:
    """Each warp from its other end, joined by whole sums."""
    cut = x.split(32, -1)
    sums = torch.stack([part.sum(-1) for part in cut], -1).cumsum(-1)
    return torch.cat(
        [
            part.flip(-1).cumsum(-1).flip(-1) + (sums[:, number - 1 : number] if number else 0)
            for number, part in enumerate(cut)
        ],
        -1,
    )


def begun_again(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([(1 + part / 100).cumprod(-1) for part in x.split(64, -1)], -1)


def last_part_alone(x: torch.Tensor) -> torch.Tensor:
    parts = x.split(64, -1)
    found = [parts[0].cummax(-1).values]
    for before, part in itertools.pairwise(parts):
        found.append(torch.maximum(part.cummax(-1).values, before.amax(-1, keepdim=True)))
    return torch.cat(found, -1)


def pairs(x: torch.Tensor, rescales_first: bool, rescales_second: bool) -> torch.Tensor:
    """Chunks of 64 in two warps; a warp's lanes join by shuffles."""
    rows = []
    for row in x.tolist():
        carry, out = (-1e30, 0.0), []

        def join(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
            top = max(a[0], b[0])
            first = math.exp(a[0] - top) if rescales_first else 1.0
            second = math.exp(b[0] - top) if rescales_second else 1.0
            return top, a[1] * first + b[1] * second

        for start in range(0, len(row), 32):
            lanes = [(value, 1.0) for value in row[start : start + 32]]
            for distance in (1, 2, 4, 8, 16):
                lanes = [
                    join(lanes[lane - distance], own) if lane >= distance else own
                    for lane, own in enumerate(lanes)
                ]
            whole = [join(carry, own) for own in lanes]
            out += [top + math.log(total) for top, total in whole]
            carry = join(carry, lanes[-1])
        rows.append(out)
    return torch.tensor(rows, dtype=torch.float64)


def running_maximum(x: torch.Tensor) -> torch.Tensor:
    """A sum that is not rescaled when the maximum grows."""
    top = x.cummax(-1).values
    return top + (x - top).exp().cumsum(-1).log()


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "own value again": (
        SUM,
        lambda x: by_warps(x, lambda v, d: shuffled(v, d, "own")),
        "join their own value again",
    ),
    "off by one": (
        SUM,
        lambda x: by_warps(x, lambda v, d: shuffled(v, d, "strict")),
        "off by one (lane > step",
    ),
    "wrapped": (
        SUM,
        lambda x: by_warps(x, lambda v, d: shuffled(v, d, "wrapped")),
        "join those at the end of the warp",
    ),
    "downwards": (SUM, backwards, "reverse direction inside of each warp"),
    "product begun again": (PRODUCT, begun_again, "begins again every 64 elements"),
    "maximum of the last part": (
        MAXIMUM,
        last_part_alone,
        "holds the total of the previous part of 64 elements",
    ),
    "first sum": (LOGARITHM, lambda x: pairs(x, False, True), "the first (earlier) sum is not"),
    "second sum": (LOGARITHM, lambda x: pairs(x, True, False), "the second (later) sum is not"),
    "running sum": (LOGARITHM, running_maximum, "not rescaled when the running maximum grows"),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_scan_of_any_kind_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    found = first_words(reference.diagnosed(reference.write(tmp_path), mutant))
    assert words.lower() in found.lower()
