"""Sums of consecutive rows, one for each group, that take rows of other groups, keep earlier sums,
or lose the piece of a group that a slice of the rows has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_scatters import SCATTERS
from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead, change
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep

VECTORS = (4, 2, 8, 16, 32)
CHUNKS = (32, 64, 128, 256, 16, 8, 4, 512)  # of indices that are staged together
SLICES = (*range(2, 257), *range(272, 1025, 16))


@dataclass(frozen=True, eq=False)
class _Segments:
    """The rows of each group, from `first` to before `behind`: (groups,); `rows` float64 (rows,
    elements), `owner` the group of each. All on the CPU.
    """

    first: torch.Tensor
    behind: torch.Tensor
    rows: torch.Tensor
    owner: torch.Tensor

    def between(self, first: torch.Tensor, behind: torch.Tensor) -> torch.Tensor:
        """The sum of the rows of each range, (groups, elements); ranges end where the rows do."""
        count = len(self.rows)
        until = torch.zeros(count + 1, self.rows.shape[1], dtype=torch.float64)
        torch.cumsum(self.rows, 0, out=until[1:])
        first, behind = first.clamp(0, count), behind.clamp(0, count)
        return until[torch.maximum(first, behind)] - until[first]

    def of_pieces(self, sums: torch.Tensor, owner: torch.Tensor) -> torch.Tensor:
        """The sum of each group's pieces, (groups, elements)."""
        whole = torch.zeros(len(self.first), self.rows.shape[1], dtype=torch.float64)
        return whole.index_add_(0, owner, sums)


Sums = Callable[[_Segments], torch.Tensor]  # -> (groups, elements)


def changed_segments(step: ReferenceStep, noun: str) -> Iterator[ChangedStep]:
    """The changes of a step that adds consecutive rows by index, those that are few; a group is
    called `noun`.
    """
    if step.name not in SCATTERS:
        return
    yield _change(
        step,
        noun,
        "also has the first row of the next group",
        "reads one row too many at its end, the first one of the next group (off by one)",
        lambda s: s.between(s.first, s.behind + 1),
    )
    yield _change(
        step,
        noun,
        "also has the last row of the group before",
        "reads one row too many at its beginning, the last one of the group before (off by one)",
        lambda s: s.between(s.first - 1, s.behind),
    )
    yield _change(
        step,
        noun,
        "also has those of all groups before it",
        "is not set back to zero between groups: what was added for earlier groups is kept",
        lambda s: s.between(torch.zeros_like(s.first), s.behind),
    )
    yield _change(
        step,
        noun,
        "takes its rows from the beginning",
        "reads its rows from the beginning of all: the offset of the group is missing",
        lambda s: s.between(torch.zeros_like(s.first), s.behind - s.first),
    )
    yield _change(
        step,
        noun,
        "is the maximum of its rows",
        "is a maximum in place of a sum",
        _largest,
    )
    for size in VECTORS:
        yield from _rounded(step, noun, size)
    for size in CHUNKS:
        yield _change(
            step,
            noun,
            f"takes its first {size} rows for every {size}",
            f"reads its first {size} rows again and again: every chunk of {size} begins at the"
            " first index of the group (the offset of the chunk is missing), and later rows are"
            " never added",
            lambda s, n=size: _of_first_chunk(s, n),  # type: ignore[misc]
        )


def sliced_segments(step: ReferenceStep, noun: str, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of such a step where blocks or warps walk over slices of all rows: they are many,
    because the length of a slice is not known; `tiles` are tried first.
    """
    if step.name not in SCATTERS:
        return
    for size in dict.fromkeys((*tiles, *SLICES)):
        of_slices = f"in slices of {size} rows"
        for words, mistake, choose in OF_SLICES:
            yield _change(
                step,
                noun,
                words.format(size=size),
                mistake.format(of_slices=of_slices),
                lambda s, n=size, c=choose: _of_slices(s, n, c),  # type: ignore[misc]
            )


def _change(step: ReferenceStep, noun: str, words: str, mistake: str, sums: Sums) -> ChangedStep:
    """A change whose words and mistake name a group as `group`."""
    words, mistake = (text.replace("group", noun) for text in (words, mistake))
    return change(
        step,
        f"where the sum of each {noun} {words} ({step.words})",
        _with_sums(sums),
        1.02,
        f"the sum of each {noun} (the rows that one index collects) {mistake}",
    )


def _rounded(step: ReferenceStep, noun: str, size: int) -> Iterator[ChangedStep]:
    """Groups that begin or end at multiples of a vector's rows."""
    whole = f"a multiple of {size}"
    yield _change(
        step,
        noun,
        f"begins at {whole} before it",
        f"begins too early, rounded down to {whole}: it also has rows of the group before",
        lambda s: s.between(s.first // size * size, s.behind),
    )
    yield _change(
        step,
        noun,
        f"ends at {whole} behind it",
        f"ends too late, rounded up to {whole}: it also has rows of the next group (the tail is not"
        " checked)",
        lambda s: s.between(s.first, -(-s.behind // size) * size),
    )
    yield _change(
        step,
        noun,
        f"has a number of rows that is {whole}",
        f"has too many rows, its number rounded up to {whole}: it also has rows of the next group"
        " (the tail is not checked)",
        lambda s: s.between(s.first, s.first - (s.first - s.behind) // size * size),
    )
    yield _change(
        step,
        noun,
        f"has the rows beyond {whole} twice",
        f"adds the last rows beyond {whole} (the remainder) twice",
        lambda s: (
            s.between(s.first, s.behind)
            + s.between(s.first + (s.behind - s.first) // size * size, s.behind)
        ),
    )


def _with_sums(sums: Sums) -> Instead:
    def instead(_func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        total, axis, index, rows = args[:4]
        if index.dim() != 1 or int(axis) % total.dim() or kwargs or len(args) > 4:
            raise ValueError("not along the first axis")
        owner = index.long().cpu()
        if len(owner) < 2 or bool((owner[1:] < owner[:-1]).any()):
            raise ValueError("the rows of a group are not consecutive")
        groups = torch.arange(total.shape[0])
        flat = rows.reshape(len(rows), -1).to(torch.float64).cpu()
        segments = _Segments(
            torch.searchsorted(owner, groups),
            torch.searchsorted(owner, groups, right=True),
            flat,
            owner,
        )
        return total + sums(segments).reshape(total.shape).to(total)

    return instead


def _of_first_chunk(segments: _Segments, size: int) -> torch.Tensor:
    first, count = segments.first, segments.behind - segments.first
    if int(count.max()) <= size:
        raise ValueError("one chunk")
    whole = segments.between(first, first + size) * (count // size)[:, None]
    return whole + segments.between(first, first + count % size)


def _largest(segments: _Segments) -> torch.Tensor:
    whole = torch.zeros(len(segments.first), segments.rows.shape[1], dtype=torch.float64)
    owner = segments.owner[:, None].expand_as(segments.rows)
    return whole.scatter_reduce(0, owner, segments.rows, "amax", include_self=False)


@dataclass(frozen=True, eq=False)
class _Pieces:
    """What slices of the rows have of groups, in their order: the slice and the group of each,
    (pieces,), and its sum (pieces, elements).
    """

    slice: torch.Tensor
    owner: torch.Tensor
    sums: torch.Tensor


def _of_slices(
    segments: _Segments, size: int, choose: Callable[[_Pieces], torch.Tensor]
) -> torch.Tensor:
    count = len(segments.owner)
    if size >= count:
        raise ValueError("one slice")
    slices = torch.arange(count) // size
    both = torch.stack([slices, segments.owner], 1)
    found, place = torch.unique_consecutive(both, dim=0, return_inverse=True)
    sums = torch.zeros(len(found), segments.rows.shape[1], dtype=torch.float64)
    sums.index_add_(0, place, segments.rows)
    return segments.of_pieces(choose(_Pieces(found[:, 0], found[:, 1], sums)), found[:, 1])


def _begins(values: torch.Tensor) -> torch.Tensor:
    """Whether each differs from the one before it, (pieces,)."""
    found = torch.ones_like(values, dtype=torch.bool)
    found[1:] = values[1:] != values[:-1]
    return found


def _ends(values: torch.Tensor) -> torch.Tensor:
    """Whether each differs from the one behind it, (pieces,)."""
    return _begins(values.flip(0)).flip(0)


def _kept(pieces: _Pieces) -> torch.Tensor:
    """Each piece with those before it in its slice."""
    until = pieces.sums.cumsum(0)
    begins = _begins(pieces.slice)
    before = (until - pieces.sums)[begins]
    return until - before[begins.long().cumsum(0) - 1]


# how the changes of slices are said, and what they leave of the pieces
OF_SLICES: Sequence[tuple[str, str, Callable[[_Pieces], torch.Tensor]]] = (
    (
        "also has those before it in its slice of {size} rows",
        "is not set back to zero where a new group begins, {of_slices}: what was added for earlier"
        " groups of the slice is kept",
        _kept,
    ),
    (
        "is without the last group of each slice of {size} rows",
        "is never added for the last group of a slice, {of_slices}: what a slice has of it when it"
        " ends is lost",
        lambda pieces: pieces.sums * ~_ends(pieces.slice)[:, None],
    ),
    (
        "is without the first group of each slice of {size} rows",
        "is never added for the first group of a slice, {of_slices}: what a slice has of it is"
        " lost",
        lambda pieces: pieces.sums * ~_begins(pieces.slice)[:, None],
    ),
    (
        "is that of the last slice of {size} rows that has some of it",
        "is overwritten in place of being added to, {of_slices}: of a group that several slices"
        " share only the last part is kept",
        lambda pieces: pieces.sums * _ends(pieces.owner)[:, None],
    ),
)
