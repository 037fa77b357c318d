"""The findings and counts of checked mode, read from the structures of checker.h."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
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
    MIXED_BARRIER = 11


# In place of pending groups: the copy's group is not committed; there was no wait since it was.
NOT_COMMITTED, NOT_WAITED = -1, -2

RACES = frozenset(
    {FindingKind.READ_AFTER_WRITE, FindingKind.WRITE_AFTER_READ, FindingKind.WRITE_AFTER_WRITE}
)
STRAYS = frozenset({FindingKind.OUT_OF_BOUNDS, FindingKind.MISALIGNED})


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
        ("end_site", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
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
    # of global memory: sectors that a warp loads again after more than 64 others, and the sum of
    # how many others each time, leaving aside what several blocks load; of so many blocks. If
    # accesses are counted and nothing is checked
    reloads: int = 0
    reload_span: int = 0
    reload_blocks: int = 0

    def __add__(self, other: AccessCounts) -> AccessCounts:
        return AccessCounts(
            *(getattr(self, field.name) + getattr(other, field.name) for field in fields(self))
        )


COUNT_FIELDS = tuple(field.name for field in fields(AccessCounts))


@dataclass(frozen=True)
class SiteCounts:
    """Accesses of one instruction; `units`: wavefronts for shared, sectors for global, 0 for local
    memory; `lines` of 128 bytes: 0 for shared memory; `fresh`: loads of global memory
    that wait for L2, because nothing of their block had loaded one of their sectors long enough
    before, if accesses are counted and nothing is checked.
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


@dataclass(frozen=True)
class Contention:
    """Passes of atomic operations on the one line of global memory that has the most of them,
    counted where accesses are counted and nothing is checked. Lanes of one instruction share a pass
    where they are in one sector and their addresses differ, or where all of the warp have the same
    address.
    """

    most: int = 0
    most_common: int = 0  # of the lines that at least half of the blocks have
    # of the longest chain of blocks of which each waits for a flag of the one before
    hops: int = 0
    # of the address that most lanes read before an atomic operation on it, if at least half of the
    # blocks do: those lanes
    visits: int = 0
    line_visits: int = 0  # passes that such reads would take if they were atomic, of the line
    # of the addresses that at least half as many lanes read so: their number, all those lanes, and
    # the requests that then change them
    places: int = 0
    visits_of_all: int = 0
    changes: int = 0


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
    # Out of bounds: bytes beyond the end (> 0) or before the start (< 0). Uninitialised shared
    # memory: bytes of the gap between what other_site and end_site wrote, 0: no gap. A write after
    # a read of shared memory: 1 if nothing was written before the read. Copies: pending groups that
    # the last wait of its thread may leave, or one of the names below.
    distance: int
    thread: int
    site: int
    other_thread: int
    other_site: int
    block: int
    other_block: int
    times: int
    end_site: int = -1  # of a gap; -1: the other site

    @property
    def is_early_read(self) -> bool:
        """Whether a read came before the first write, and nothing orders them."""
        is_shared = self.space is Space.SHARED
        return is_shared and self.kind is FindingKind.WRITE_AFTER_READ and self.distance == 1

    @property
    def is_between_warps(self) -> bool:
        """Whether it is a race between two warps, of one block or of two."""
        is_elsewhere = self.other_block not in (-1, self.block)
        return self.kind in RACES and (is_elsewhere or self.thread // 32 != self.other_thread // 32)

    @property
    def is_unwritten_shared(self) -> bool:
        """Whether it is a read of shared memory to which nothing was written before."""
        return self.space is Space.SHARED and self.kind is FindingKind.UNINITIALISED


def to_finding(record: FindingRecord) -> Finding:
    """The finding in a C record."""
    values = {name: getattr(record, name) for name, *_ in FindingRecord._fields_}
    del values["reserved"]
    return Finding(**{**values, "kind": FindingKind(record.kind), "space": Space(record.space)})


def read_findings(address: int, count: int) -> tuple[Finding, ...]:
    """The `count` findings at `address`, from ev_check_findings, in the order of their first
    occurrence, causes first.
    """
    if not count:
        return ()
    records = (FindingRecord * count).from_address(address)
    return causes_first(tuple(to_finding(record) for record in records))


def causes_first(found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Races between lanes of a warp go behind the others where there are races between warps, which
    a barrier of the warp would not mend. Races of blocks by one instruction that also leaves its
    buffer go behind its strays: what it stores beyond a row lies in the next one. Reads of
    unwritten shared memory go last where there are races in it: a race is why it was not written
    yet, and one loop has many sites.
    """
    has_races = any(item.kind in RACES and item.space is Space.SHARED for item in found)
    between_warps = {item.space for item in found if item.is_between_warps}
    strays = {item.site for item in found if item.kind is FindingKind.OUT_OF_BOUNDS}

    def rank(item: Finding) -> int:
        if item.is_unwritten_shared and has_races:
            return 2
        if item.space is Space.GLOBAL and item.kind in RACES and item.site in strays:
            return 1
        is_of_a_warp = item.kind in RACES and not item.is_between_warps
        return int(is_of_a_warp and item.space in between_warps)

    return tuple(sorted(found, key=rank))


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
