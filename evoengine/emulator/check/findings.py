"""The findings and counts of checked mode, read from the structures of checker.h."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum, IntFlag


class Space(IntEnum):
    """The memory space of an access."""

    GLOBAL = 0
    SHARED = 1
    LOCAL = 2
    GENERIC = 3


class Access(IntEnum):
    """The kind of an access. Strong: volatile, relaxed, acquire or release."""

    READ = 0
    WRITE = 1
    ATOMIC = 2
    STRONG_READ = 3
    STRONG_WRITE = 4


# Flags of a read, added to its kind: DATA controls nothing, POLL comes before an atomic operation
# on the same address.
DATA, POLL = 8, 16


class Check(IntFlag):
    """What checked mode looks for; with none of them, accesses are only counted."""

    RACES = 1
    BOUNDS = 2
    INIT = 4
    ASYNC = 8
    SAME_ADDRESS = 16


ALL_CHECKS = Check.RACES | Check.BOUNDS | Check.INIT | Check.ASYNC


class FindingKind(IntEnum):
    """The kind of a finding."""

    READ_AFTER_WRITE = 1
    WRITE_AFTER_READ = 2
    WRITE_AFTER_WRITE = 3
    SAME_ADDRESS_WRITE = 4
    OUT_OF_BOUNDS = 5
    MISALIGNED = 6
    UNINITIALISED = 7
    ASYNC_READ = 8
    ASYNC_WRITE = 9
    DIVERGENT_BARRIER = 10


RACES = frozenset(
    {FindingKind.READ_AFTER_WRITE, FindingKind.WRITE_AFTER_READ, FindingKind.WRITE_AFTER_WRITE}
)


class FindingRecord(ctypes.Structure):
    """`Finding` of checker.h."""

    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("space", ctypes.c_uint32),
        ("buffer", ctypes.c_int32),
        ("bytes", ctypes.c_uint32),
        ("offset", ctypes.c_int64),
        ("distance", ctypes.c_int64),
        ("thread", ctypes.c_int32),
        ("site", ctypes.c_int32),
        ("other_thread", ctypes.c_int32),
        ("other_site", ctypes.c_int32),
        ("block", ctypes.c_int64),
        ("other_block", ctypes.c_int64),
        ("times", ctypes.c_uint64),
    ]


class SiteRecord(ctypes.Structure):
    """`SiteCounts` of checker.h."""

    _fields_ = [
        ("requests", ctypes.c_uint64),
        ("units", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("lines", ctypes.c_uint64),
        ("fresh", ctypes.c_uint64),
    ]


@dataclass(frozen=True)
class AccessCounts:
    """Counts of memory accesses; the order of the fields is that of checker.h.

    Atomics on shared memory are among shared_store_wavefronts, not among shared_stores.
    """

    shared_loads: int = 0  # requests: one per warp and instruction
    shared_stores: int = 0
    shared_load_wavefronts: int = 0
    shared_store_wavefronts: int = 0
    shared_atomics: int = 0
    shared_bytes: int = 0
    global_loads: int = 0
    global_stores: int = 0
    global_load_sectors: int = 0  # of 32 bytes, distinct within a request
    global_store_sectors: int = 0
    global_atomics: int = 0
    global_atomic_sectors: int = 0
    global_load_bytes: int = 0  # requested by the lanes
    global_store_bytes: int = 0
    local_loads: int = 0
    local_stores: int = 0
    local_bytes: int = 0
    async_copies: int = 0
    async_bytes: int = 0
    async_sectors: int = 0  # of their sources, included in global_load_sectors
    async_wavefronts: int = 0  # of their targets, not included elsewhere
    # distinct sectors that a block loads other than by copies, summed over blocks
    block_sectors: int = 0
    launch_sectors: int = 0  # distinct sectors that all of these blocks load
    same_address_writes: int = 0  # lanes overwritten by another lane of the same instruction
    barriers: int = 0  # warps that took part
    # of 128 bytes, distinct within a request; not of asynchronous copies
    global_load_lines: int = 0
    global_store_lines: int = 0  # atomics, too
    # words that the lanes of a request access, by their offset in the frame
    local_lines: int = 0

    def __add__(self, other: AccessCounts) -> AccessCounts:
        return AccessCounts(
            *(getattr(self, field.name) + getattr(other, field.name) for field in fields(self))
        )


COUNT_FIELDS = tuple(field.name for field in fields(AccessCounts))


@dataclass(frozen=True)
class SiteCounts:
    """Accesses of one instruction; `units`: wavefronts for shared, sectors for global, 0 for local
    memory; `lines` of 128 bytes: 0 for shared memory; `fresh`: requests for sectors of global
    memory that their warp had not loaded before, if accesses are counted and nothing is checked.
    """

    site: int
    requests: int
    units: int
    bytes: int
    lines: int = 0
    fresh: int = 0

    def __add__(self, other: SiteCounts) -> SiteCounts:
        """The sum of both, which are of the same instruction."""
        return SiteCounts(
            self.site,
            *(getattr(self, name) + getattr(other, name) for name in SITE_FIELDS),
        )


SITE_FIELDS = tuple(field.name for field in fields(SiteCounts) if field.name != "site")


@dataclass(frozen=True)
class Finding:
    """An error that checked mode found; threads are numbered within their block, -1 stands for
    none.
    """

    kind: FindingKind
    space: Space
    buffer: int  # index of the global buffer; -1: none
    bytes: int  # of one lane's access
    # of the first bad byte in the buffer, the shared window or the frame; the address if no buffer
    # is near
    offset: int
    distance: int  # out of bounds: bytes beyond the end (> 0) or before the start (< 0)
    thread: int
    site: int
    other_thread: int
    other_site: int
    block: int
    other_block: int
    times: int

    def describe(
        self,
        site_name: Callable[[int], str] = "instruction {}".format,
        buffers: Sequence[str] = (),
    ) -> str:
        """The finding in one line; `site_name(site)` describes an instruction ("line 42"),
        `buffers` are the names of buffers by index.
        """
        what = _SENTENCES[self.kind].format(
            thread=f"thread {self.thread}",
            verb=(
                "writes"
                if self.kind in (FindingKind.WRITE_AFTER_READ, FindingKind.WRITE_AFTER_WRITE)
                else "reads"
            ),
            bytes=self.bytes,
            memory=self._memory(buffers),
            line=site_name(self.site),
            other=f"thread {self.other_thread}" + self._elsewhere(),
            other_line=site_name(self.other_site),
            missing=(
                "without ordering between the blocks"
                if self._elsewhere()
                else "without a barrier between"
            ),
            distance=self._distance(),
        )
        return f"{what} (block {self.block}" + (f", {self.times} times)" if self.times > 1 else ")")

    def _elsewhere(self) -> str:
        return f" of block {self.other_block}" if self.other_block not in (-1, self.block) else ""

    def _distance(self) -> str:
        if self.space is Space.GLOBAL and self.buffer < 0:
            return "far from any buffer"
        return f"{abs(self.distance)} bytes " + (
            "before its start" if self.distance < 0 else "beyond its end"
        )

    def _memory(self, buffers: Sequence[str]) -> str:
        if self.space is not Space.GLOBAL:
            return f"{self.space.name.lower()}{self.offset:+d}"
        if self.buffer < 0:
            address = self.offset & (1 << 64) - 1
            # larger ones come from the addresses of buffers, which differ from run to run
            return f"address 0x{address:x}" if address < 1 << 32 else "an address"
        name = buffers[self.buffer] if self.buffer < len(buffers) else f"buffer {self.buffer}"
        return f"{name}{self.offset:+d}"


_SENTENCES = {
    FindingKind.READ_AFTER_WRITE: (
        "race: {thread} reads {memory} at {line} that {other} wrote at {other_line}, {missing}"
    ),
    FindingKind.WRITE_AFTER_READ: (
        "race: {thread} writes {memory} at {line} that {other} read at {other_line}, {missing}"
    ),
    FindingKind.WRITE_AFTER_WRITE: (
        "race: {thread} writes {memory} at {line} that {other} wrote at {other_line}, {missing}"
    ),
    FindingKind.SAME_ADDRESS_WRITE: (
        "same address: {thread} and {other} write {memory} with one instruction at {line}; which"
        " value is kept is undefined"
    ),
    FindingKind.OUT_OF_BOUNDS: (
        "out of bounds: {thread} accesses {bytes} bytes at {memory} at {line}, {distance}"
    ),
    FindingKind.MISALIGNED: (
        "misaligned: {thread} accesses {bytes} bytes at {memory} at {line}, not a multiple of"
        " {bytes}"
    ),
    FindingKind.UNINITIALISED: (
        "uninitialised: {thread} reads {memory} at {line}, which was never written"
    ),
    FindingKind.ASYNC_READ: (
        "async copy: {thread} reads {memory} at {line} before the copy of {other} at {other_line}"
        " was waited for"
    ),
    FindingKind.ASYNC_WRITE: (
        "async copy: {thread} writes {memory} at {line} before the copy of {other} at {other_line}"
        " was waited for"
    ),
    FindingKind.DIVERGENT_BARRIER: (
        "divergent barrier: {thread} waits at {line}, {other} of its warp does not reach it"
    ),
}


def to_finding(record: FindingRecord) -> Finding:
    """The finding in a C record."""
    values = {name: getattr(record, name) for name, *_ in FindingRecord._fields_}
    return Finding(**{**values, "kind": FindingKind(record.kind), "space": Space(record.space)})


def read_findings(address: int, count: int) -> tuple[Finding, ...]:
    """The `count` findings at `address`, from ev_check_findings, in the order of their first
    occurrence.
    """
    if not count:
        return ()
    return tuple(to_finding(record) for record in (FindingRecord * count).from_address(address))


def read_counts(address: int) -> AccessCounts:
    """The counts at `address`, from ev_check_counts."""
    return AccessCounts(*(ctypes.c_uint64 * len(COUNT_FIELDS)).from_address(address))


def read_site_counts(address: int, sites: int) -> tuple[SiteCounts, ...]:
    """The counts of those of the `sites` instructions that accessed memory, from
    ev_check_site_counts.
    """
    if not sites:
        return ()
    records = (SiteRecord * sites).from_address(address)
    return tuple(
        SiteCounts(site, r.requests, r.units, r.bytes, r.lines, r.fresh)
        for site, r in enumerate(records)
        if r.requests
    )
