"""Means and variances of rows that were taken in parts, merged with a mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

Rows = torch.Tensor  # float64 of shape (rows,)
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
SHARES = (2, 3, 4, 8, 16)  # of a row, one block's or warp's each
FEW_LANES = (8, 16, 32)  # that share a row
LANES = (64, 128, 192, 256, 384, 512)
VECTORS = (1, 2, 4, 8)  # elements that a lane takes at once
WARP = 32
MOST_TENSORS = 3
MOST_IDLE = 8  # times as many elements as a row has that all lanes could take at once
MOST_ELEMENTS = 1 << 22  # of all rows: beyond, the partitions would take seconds
FITTED = 0.15  # of the squared difference that may be left
SAME = 1e-6  # of a statistic, relative


@dataclass(frozen=True, eq=False)
class Parts:
    """One way to cut rows: the part of each element, of `count` parts; some may be empty."""

    words: str  # "parts of 128 elements"
    part: torch.Tensor  # int64 (extent,)
    count: int
    full: int  # elements of a part that is not cut short
    vector: int = 0  # elements at once, where a part is what one thread takes


def merged_parts(
    terms: torch.Tensor,
    own: Rows,
    implied: Rows,
    tensors: Mapping[str, torch.Tensor],
    hints: Sequence[int],
) -> Iterator[tuple[str, Rows]]:
    """What a statistic is after a mistake in the merge of its parts, where that comes near to what
    is implied, with words that follow its name. `own` is the right one, the mean of `terms` (rows,
    extent), float64, or the variance of one of `tensors`, of the same shape. `hints` are sizes that
    the kernel knows.
    """
    power = float((implied - own).square().sum())
    if terms.numel() > MOST_ELEMENTS or terms.shape[1] < 4:
        return
    made = [(terms, _means)] if _same(terms.mean(1), own) else []
    # x and x - mean have one variance; threads without elements add a mean of 0 to either
    varied = [one for one in tensors.values() if _same(one.var(1, unbiased=False), own)]
    made += [(one, _variances) for one in varied[:MOST_TENSORS]]
    for values, mistakes in made:
        for parts in _partitions(values.shape[1], hints):
            for words, value in mistakes(values, parts):
                if float((implied - value).square().sum()) <= FITTED * power:
                    yield f"{words} ({parts.words})", value


def _same(found: Rows, own: Rows) -> bool:
    return bool(torch.isclose(found, own, rtol=SAME, atol=0).all())


def _partitions(extent: int, hints: Sequence[int]) -> Iterator[Parts]:
    at = torch.arange(extent)
    shares = [-(-extent // share) for share in SHARES]
    for length in dict.fromkeys((*shares, *LENGTHS, *hints)):
        if 1 < length < extent:
            count = -(-extent // length)
            yield Parts(f"parts of {length} elements each", at // length, count, length)
    threads = [size for size in hints if size % WARP == 0]
    for lanes in dict.fromkeys((*(threads or LANES), *FEW_LANES)):
        for vector in VECTORS:
            if lanes < 2 or extent % vector or lanes * vector >= MOST_IDLE * extent:
                continue
            part = at // vector % lanes
            words = f"what each of {lanes} threads takes"
            if vector > 1:
                words += f", {vector} elements at a time"
            full = -(-extent // (lanes * vector)) * vector
            yield Parts(words, part, lanes, full, vector)


def _sums(values: torch.Tensor, parts: Parts) -> torch.Tensor:
    """The sum over each part, (rows, count)."""
    found = values.new_zeros(values.shape[0], parts.count)
    return found.index_add_(1, parts.part, values)


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, mean, and sum of squared deviations of parts, each float64 (rows, parts)."""

    count: torch.Tensor
    mean: torch.Tensor
    squares: torch.Tensor

    def cut(self, start: int, stop: int) -> Moments:
        """Those of some parts."""
        return Moments(
            self.count[..., start:stop], self.mean[..., start:stop], self.squares[..., start:stop]
        )

    def in_warps(self, warps: int) -> Moments:
        """Of shape (rows, warps, 32)."""
        shape = (-1, warps, WARP)
        return Moments(
            self.count.reshape(shape), self.mean.reshape(shape), self.squares.reshape(shape)
        )

    def alone(self) -> Moments:
        """Of shape (rows,), of one part."""
        return Moments(self.count.flatten(), self.mean.flatten(), self.squares.flatten())

    def filled_up(self) -> Moments:
        """Of one for each warp (rows, warps, 1), those of a warp's lanes (rows, 32), with nothing
        in the last ones.
        """
        more = WARP - self.count.shape[1]
        return Moments(
            *(
                torch.nn.functional.pad(one[..., 0], (0, more))
                for one in (self.count, self.mean, self.squares)
            )
        )


Merge = Callable[[Moments, Moments], Moments]


def _merge(first: Moments, second: Moments, between: torch.Tensor, share: torch.Tensor) -> Moments:
    """Two parts, where the squares of both have `between` times the squared distance of their means
    added to them, and the mean lies `share` of the way to the second one.
    """
    apart = second.mean - first.mean
    squares = first.squares + second.squares + apart.square() * between
    return Moments(first.count + second.count, first.mean + apart * share, squares)


def _shares(first: Moments, second: Moments) -> tuple[torch.Tensor, torch.Tensor]:
    """Those of both in their count, 0 where there is none."""
    count = (first.count + second.count).clamp_min(1)
    return first.count / count, second.count / count


def _without_count(first: Moments, second: Moments) -> Moments:
    _, share = _shares(first, second)
    return _merge(first, second, share, share)


def _halfway(first: Moments, second: Moments) -> Moments:
    _, share = _shares(first, second)
    half = torch.where(first.count + second.count > 0, 0.5, 0.0)
    return _merge(first, second, first.count * share, half.to(share))


def _by_the_other(first: Moments, second: Moments) -> Moments:
    other, share = _shares(first, second)
    return _merge(first, second, first.count * share, other)


PAIR_BY_PAIR = "when two parts are merged"
MERGES: Mapping[str, Merge] = {
    f"is wrong because {PAIR_BY_PAIR}, the squared distance of their means is not multiplied by the"
    " count of both: the spread between the parts counts too little": _without_count,
    f"is wrong because {PAIR_BY_PAIR}, their mean is taken halfway between both, which are not"
    " weighted by their counts": _halfway,
    f"is wrong because {PAIR_BY_PAIR}, each mean is weighted by the count of the other one": (
        _by_the_other
    ),
}


def _pair_by_pair(values: torch.Tensor, parts: Parts) -> Iterator[tuple[str, Moments]]:
    """Of what lanes take, after a mistake in each merge: of the vectors of a lane, where those are
    merged, of the lanes of each warp in a tree, and of the warps in a tree or one after the other.
    """
    if parts.count % WARP or parts.count > WARP * WARP or not parts.vector:
        return
    warps = parts.count // WARP
    exact = _moments(values, parts.part, parts.count)
    for words, merge in MERGES.items():
        for own in (exact, *_vector_by_vector(values, parts, merge)):
            of_warps = _tree(own.in_warps(warps), merge)
            yield words, _tree(of_warps.filled_up(), merge).alone()
            if warps > 2:
                yield words, _one_by_one(of_warps, merge).alone()


def _moments(values: torch.Tensor, part: torch.Tensor, count: int) -> Moments:
    sizes = part.bincount(minlength=count).double()
    sums = values.new_zeros(values.shape[0], count).index_add_(1, part, values)
    means = sums / sizes.clamp_min(1)
    squares = torch.zeros_like(means).index_add_(1, part, (values - means[:, part]).square())
    return Moments(sizes.expand_as(means), means, squares)


def _vector_by_vector(values: torch.Tensor, parts: Parts, merge: Merge) -> list[Moments]:
    """What each lane has that merges its vectors one by one: into the first, or into nothing."""
    step = parts.count * parts.vector
    own: list[Moments] = []
    for start in range(0, values.shape[1], step):
        part = parts.part[start : start + step]
        one = _moments(values[:, start : start + step], part, parts.count)
        zero = torch.zeros_like(one.mean)
        own = [merge(before, one) for before in own or (Moments(zero, zero, zero),)]
        if start == 0:
            own = [one, *own]
    return own


def _tree(moments: Moments, merge: Merge) -> Moments:
    """All of the last axis, of 32, merged into one."""
    width = WARP
    while width > 1:
        width //= 2
        moments = merge(moments.cut(0, width), moments.cut(width, 2 * width))
    return moments


def _one_by_one(of_warps: Moments, merge: Merge) -> Moments:
    """Those of (rows, warps, 1) merged into the first one."""
    turned = Moments(of_warps.count.mT, of_warps.mean.mT, of_warps.squares.mT)
    found = turned.cut(0, 1)
    for warp in range(1, of_warps.count.shape[1]):
        found = merge(found, turned.cut(warp, warp + 1))
    return found


def _transposed(of_parts: torch.Tensor) -> torch.Tensor:
    """What (rows, parts) holds where it is read as (parts, rows)."""
    rows, count = of_parts.shape
    return of_parts.reshape(count, rows).T


TRANSPOSED = "of its parts are read as [parts, rows] although they were written as [rows, parts]"


def _means(values: torch.Tensor, parts: Parts) -> Iterator[tuple[str, Rows]]:
    if not parts.vector:
        sums = _transposed(_sums(values, parts)).sum(1)
        yield f"is of other rows too: the sums or means {TRANSPOSED}", sums / values.shape[1]
    for words, merged in _pair_by_pair(values, parts):
        yield words, merged.mean
    sizes = parts.part.bincount(minlength=parts.count).double()
    if int(sizes.min()) == int(sizes.max()):
        return  # parts of one length weigh the same
    means = _sums(values, parts) / sizes.clamp_min(1)
    yield (
        "is the plain mean of the means of its parts, which are not weighted by their counts when"
        " they are merged: an empty or short part counts as much as a full one",
        means.mean(1),
    )
    filled = sizes > 0
    if not bool(filled.all()):
        yield (
            "is the plain mean of the means of its parts, which are not weighted by their counts"
            " when they are merged: a short part counts as much as a full one",
            means[:, filled].mean(1),
        )
    yield (
        "weighs its short last part as a full one when parts are merged",
        (means * parts.full)[:, filled].sum(1) / values.shape[1],
    )


def _variances(values: torch.Tensor, parts: Parts) -> Iterator[tuple[str, Rows]]:
    extent = values.shape[1]
    sizes = parts.part.bincount(minlength=parts.count).double()
    filled = sizes > 0
    sizes = sizes[filled]
    means = _sums(values, parts)[:, filled] / sizes
    apart = (means - values.mean(1, keepdim=True)).square()
    squares = _sums(values.square(), parts)[:, filled] - sizes * means.square()
    within = squares.sum(1)
    if not parts.vector:
        between = (apart * sizes).sum(1)
        yield (
            f"is of other rows too: the squares {TRANSPOSED}",
            (_transposed(squares).sum(1) + between) / extent,
        )
    yield (
        "lacks the spread between the means of its parts: when parts are merged, only the squares"
        " within them are added, and the squared distances of their means are left out",
        within / extent,
    )
    yield (
        "takes the spread between the means of its parts without their counts: when parts are"
        " merged, the squared distance of their means is not multiplied by the count",
        (within + apart.sum(1)) / extent,
    )
    if int(sizes.min()) < int(sizes.max()):
        yield (
            "is the plain mean of the variances of its parts, which are not weighted by their"
            " counts when they are merged",
            (squares / sizes).mean(1),
        )
        yield (
            "weighs its short last part as a full one when parts are merged",
            (within + (apart * parts.full).sum(1)) / extent,
        )
    for words, merged in _pair_by_pair(values, parts):
        yield words, merged.squares / merged.count
    yield (
        "adds the squared sums of its parts in place of the squared distances of their means",
        (within + (sizes * means.square()).sum(1)) / extent,
    )
