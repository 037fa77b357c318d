"""Scans whose parts are joined wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead, change
from evoengine.evaluate.worker.forensics.pair_scans import pair_scans
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.scan_kinds import SCAN_KINDS, ScanKind, scanned
from evoengine.evaluate.worker.forensics.warp_scans import WARP, warp_scans
from evoengine.records import DiagnosisKind

PARTS = (32, 64, 128, 256, 512, 1024, 8, 16)


def joined_scans(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """A running sum, product, maximum or logarithm in parts, as warps and blocks compute it."""
    kind = SCAN_KINDS.get(step.name)
    if kind is None:
        return
    sizes = list(dict.fromkeys((*tiles, *PARTS)))
    for size in sizes:
        named = f"{size} elements{' (of each warp)' if size == WARP else ''}"
        yield change(
            step,
            f"begun again every {size} in {step.words}",
            _parted(kind, size, carried=0),
            1.01,
            f"the carry is missing: the scan begins again every {named}",
        )
        yield change(
            step,
            f"with the sum of the previous {size} alone carried on in {step.words}",
            _parted(kind, size, carried=1),
            1.01,
            f"the carry holds the total of the previous part of {named} alone, not of all parts"
            " before",
        )
        yield change(
            step,
            f"with the totals of the parts behind in place of those before every {size} in"
            f" {step.words}",
            _carried_from_behind(kind, size),
            1.0,
            f"the carry comes from the wrong side: each chunk of {named} adds the totals of the"
            " chunks behind it, not of those before it",
        )
    yield from _of_rows(step, kind)
    yield from _carried_in_part(step, kind, sizes)
    for size in sizes:
        for inner in (one for one in sizes if one < size and size % one == 0):
            named = f"{inner} elements{', as the warps of a block' if inner == WARP else ''}"
            yield change(
                step,
                f"with the sum of the previous {inner} alone carried on inside every {size} in"
                f" {step.words}",
                _parted_twice(kind, size, inner, carried=1),
                1.0,
                f"inside a tile of {size}, each part of {named}, adds the total of the part (the"
                " warp) before it alone, not of all parts before",
            )
            yield change(
                step,
                f"begun again every {inner} inside every {size} in {step.words}",
                _parted_twice(kind, size, inner, carried=0),
                1.0,
                f"inside a tile of {size}, parts of {named}, do not add the totals of the parts"
                " (warps) before them",
            )
    yield from warp_scans(step, kind, sizes)
    if step.name == "logcumsumexp":
        yield from pair_scans(step, sizes)


def _of_rows(step: ReferenceStep, kind: ScanKind) -> Iterator[ChangedStep]:
    """A scan that does not begin anew with each row."""
    for is_whole, said in (
        (True, "goes on from the end of the row before"),
        (False, "begins with the total of the row before"),
    ):
        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"where each row {said} in {step.words}",
            {step.place: _begun_by_rows(kind, is_whole)},
            1.01,
            mistake=f"the carry is not set back (reset) between rows: each row {said}",
            of_whole=True,
        )


def _begun_by_rows(kind: ScanKind, is_whole: bool) -> Instead:
    def along(value: torch.Tensor) -> torch.Tensor:
        rows = value.flatten(0, -2) if value.dim() > 1 else value
        if rows.dim() < 2 or rows.shape[0] < 2:
            raise ValueError("one row")
        totals = kind.total(rows)
        before = kind.shifted(kind.scan(totals) if is_whole else totals, 1)
        return kind.join(before.unsqueeze(-1), kind.scan(rows)).view(value.shape)

    return scanned(along)


def _carried_from_behind(kind: ScanKind, size: int) -> Instead:
    def along(value: torch.Tensor) -> torch.Tensor:
        parts = value.split(size, -1)
        if len(parts) < 2:
            raise ValueError("one part")
        found = []
        begin = torch.full_like(value[..., :1], kind.empty)
        for part in parts[::-1]:
            found.append(kind.join(begin, kind.scan(part)))
            begin = kind.join(begin, kind.total(part).unsqueeze(-1))
        return torch.cat(found[::-1], -1)

    return scanned(along)


def _carried_in_part(
    step: ReferenceStep, kind: ScanKind, sizes: Sequence[int]
) -> Iterator[ChangedStep]:
    for size in sizes:
        for lost in (one for one in (WARP, 1, *sizes) if one < size and size % one == 0):
            last = f"the last {lost} elements" if lost > 1 else "the last element"
            warp = " (the last warp)" if lost == WARP else ""
            yield change(
                step,
                f"where what is carried over every {size} lacks {last} of them in {step.words}",
                _with_carry(kind, size, slice(0, -lost)),
                1.0,
                f"the carry to the next tile (chunk) of {size} leaves out {last}{warp} of each",
            )
            yield change(
                step,
                f"where what is carried over every {size} is of {last} of them in {step.words}",
                _with_carry(kind, size, slice(-lost, None)),
                1.0,
                f"the carry to the next tile (chunk) of {size} has {last}{warp} of each only",
            )
        yield change(
            step,
            f"where what is carried over every {size} is joined twice in {step.words}",
            _with_carry(kind, size, slice(None), twice=True),
            1.0,
            f"the carry to the next tile (chunk) of {size} is added twice: it is part of the total"
            " that is added to it again",
        )


def _parted(kind: ScanKind, size: int, carried: int) -> Instead:
    def along(value: torch.Tensor) -> torch.Tensor:
        parts = value.split(size, -1)
        if len(parts) < 2:
            raise ValueError("one part")
        return _joined(kind, parts, carried)

    return scanned(along)


def _with_carry(kind: ScanKind, size: int, taken: slice, twice: bool = False) -> Instead:
    """Tiles of `size`, of each of which a part is carried over."""

    def along(value: torch.Tensor) -> torch.Tensor:
        parts = value.split(size, -1)
        if len(parts) < 2:
            raise ValueError("one tile")
        begin = torch.full_like(value[..., :1], kind.empty)
        found = []
        for part in parts:
            found.append(kind.join(begin, kind.scan(part)))
            carried = kind.join(begin, kind.total(part[..., taken]).unsqueeze(-1))
            begin = kind.join(begin, carried) if twice else carried
        return torch.cat(found, -1)

    return scanned(along)


def _joined(kind: ScanKind, parts: Sequence[torch.Tensor], carried: int) -> torch.Tensor:
    """Scans of parts, each with so many of the parts before it added."""
    found = []
    for number, part in enumerate(parts):
        own = kind.scan(part)
        if carried and number:
            own = kind.join(kind.total(parts[number - 1]).unsqueeze(-1), own)
        found.append(own)
    return torch.cat(found, -1)


def _parted_twice(kind: ScanKind, size: int, inner: int, carried: int) -> Instead:
    """Tiles that are joined rightly, of parts that are not."""

    def along(value: torch.Tensor) -> torch.Tensor:
        if value.shape[-1] <= 2 * inner:
            raise ValueError("two parts")
        begin = torch.full_like(value[..., :1], kind.empty)
        found = []
        for tile in value.split(size, -1):
            found.append(kind.join(begin, _joined(kind, tile.split(inner, -1), carried)))
            begin = kind.join(begin, kind.total(tile).unsqueeze(-1))
        return torch.cat(found, -1)

    return scanned(along)
