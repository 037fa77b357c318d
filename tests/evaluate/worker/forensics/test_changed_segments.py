"""Bags of rows that are added up wrongly: what the first two findings say."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable

import pytest
import torch

from evoengine.evaluate.worker.inputs import Tensors
from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.mutated import Scalars, diagnosed
from tests.evaluate.worker.forensics.own_reference import first_words

SLICE = 40
Taken = Callable[[int, int], Iterable[int]]  # (begin, end) of a bag -> places of its rows


def added(given: Tensors, taken: Taken) -> torch.Tensor:
    """The sums of the rows at the places that `taken` has for each bag."""
    rows = given["table"][given["indices"].long()]
    ends = given["offsets"].tolist()
    sums = torch.zeros(len(ends) - 1, rows.shape[1], dtype=torch.float64)
    for bag, (begin, end) in enumerate(itertools.pairwise(ends)):
        places = [place for place in taken(begin, end) if 0 <= place < len(rows)]
        sums[bag] = rows[places].sum(0)
    return sums


def sliced(
    given: Tensors, keeps: bool = False, last: bool = True, adds: bool = True
) -> torch.Tensor:
    """By blocks that each walk over SLICE rows and add what they have of a bag when it ends."""
    rows = given["table"][given["indices"].long()]
    offsets = given["offsets"].long()
    bags = torch.searchsorted(offsets, torch.arange(len(rows)), right=True) - 1
    sums = torch.zeros(len(offsets) - 1, rows.shape[1], dtype=torch.float64)
    for begin in range(0, len(rows), SLICE):
        run = torch.zeros(rows.shape[1], dtype=torch.float64)
        for place in range(begin, min(begin + SLICE, len(rows))):
            bag = int(bags[place])
            run = run + rows[place]
            is_last = place + 1 == min(begin + SLICE, len(rows))
            if is_last or int(bags[place + 1]) != bag:
                if last or not is_last:
                    sums[bag] = sums[bag] + run if adds else run
                run = run if keeps else torch.zeros_like(run)
    return sums


def padded(given: Tensors, size: int) -> torch.Tensor:
    """With the first row of the table in place of what is missing to a multiple of `size`."""
    counts = given["offsets"].long().diff()
    more = (-counts) % size
    return added(given, range) + more[:, None] * given["table"][0]


MISTAKES: dict[str, tuple[Callable[[Tensors], torch.Tensor], str]] = {
    "one more": (
        lambda t: added(t, lambda begin, end: range(begin, end + 1)),
        "each bag .* one row too many at its end, the first one of the next bag",
    ),
    "one before": (
        lambda t: added(t, lambda begin, end: range(begin - 1, end)),
        "one row too many at its beginning, the last one of the bag before",
    ),
    "kept over all": (
        lambda t: added(t, range).cumsum(0),
        "not set back to zero between bags: what was added for earlier bags is kept",
    ),
    "kept in slices": (
        lambda t: sliced(t, keeps=True),
        f"not set back to zero where a new bag begins, in slices of {SLICE} rows",
    ),
    "last of a slice": (
        lambda t: sliced(t, last=False),
        f"never added for the last bag of a slice, in slices of {SLICE} rows",
    ),
    "overwritten": (
        lambda t: sliced(t, adds=False),
        f"overwritten in place of being added to, in slices of {SLICE} rows",
    ),
    "from the beginning": (
        lambda t: added(t, lambda begin, end: range(end - begin)),
        "from the beginning of all: the offset of the bag is missing",
    ),
    "begins too early": (
        lambda t: added(t, lambda begin, end: range(begin // 4 * 4, end)),
        "begins too early, rounded down to a multiple of 4",
    ),
    "ends too late": (
        lambda t: added(t, lambda begin, end: range(begin, -(-end // 4) * 4)),
        "ends too late, rounded up to a multiple of 4",
    ),
    "whole vectors": (
        lambda t: added(t, lambda begin, end: range(begin, begin - (begin - end) // 8 * 8)),
        "has too many rows, its number rounded up to a multiple of 8",
    ),
    "remainder twice": (
        lambda t: added(
            t,
            lambda begin, end: [
                *range(begin, end),
                *range(begin + (end - begin) // 4 * 4, end),
            ],
        ),
        "adds the last rows beyond a multiple of 4 .the remainder. twice",
    ),
    "first chunk again": (
        lambda t: added(t, lambda begin, end: [begin + place % 8 for place in range(end - begin)]),
        "reads its first 8 rows again and again: every chunk of 8 begins at the first index",
    ),
    "padded": (
        lambda t: padded(t, 32),
        "first row of table is added to rows of out .* up to 31 times: what is beyond the end",
    ),
    "index zero": (
        lambda t: added(
            {**t, "table": torch.cat([torch.zeros_like(t["table"][:1]), t["table"][1:]])}, range
        ),
        "first row of table is missing from rows of out, index 0 is left out",
    ),
}


@of_some
@pytest.mark.parametrize("name", MISTAKES)
def test_the_mistake_is_named(name: str) -> None:
    mutant, said = MISTAKES[name]

    def computed(given: Tensors, _: Scalars) -> torch.Tensor:
        return mutant(given)

    words = first_words(diagnosed("embedding_bag", "bags", computed, seconds=30.0))
    assert re.search(said, words), words
