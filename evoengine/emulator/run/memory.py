"""Device memory: one reserved range of addresses (the arena) that no access can leave, with buffers
between red zones, at random places with unmapped pages around.

Addresses of the device are addresses of this process. The size of the arena is a power of two and
it is aligned to its size, so an `and` and an `or` mask any address into it (software fault
isolation). Only allocated pages are backed by memory; an access to any other page ends the process
with a signal, so launches belong in a worker process, or the launch, if it is guarded.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy

from evoengine.emulator.check.buffer_shape import BufferShape
from evoengine.emulator.emulator_errors import LaunchRefused
from evoengine.emulator.run.page_store import CHUNK_BYTES, STORE_BYTES, PageStore, libc, reserve

RESERVED_BITS = 38  # 256 GiB of addresses; more than any GPU's memory
ALIGN_BYTES = 512  # alignment that cudaMalloc guarantees
RED_ZONE_BYTES = 4096
# A vector access of 32 lanes, up to 16 bytes each, may begin at the arena's last byte.
GUARD_BYTES = 1 << 16
# From 16 TiB on, 1 TiB apart: below programs (85 TiB on x86-64 Linux, 170 on Arm) and libraries
# (128, 256), above 32-bit addresses.
FAR_STARTS = range(16 << 40, 80 << 40, 1 << 40)
RED = 0xA5
# Buffers lie in a window of this size, which is drawn once, and larger ones than LARGE_BYTES in the
# whole arena: the system keeps page tables of all places that were ever used, here 16 MiB at most.
WINDOW_BYTES = 8 << 30
LARGE_BYTES = WINDOW_BYTES // 8
# Between two buffers: an access that strays by less than half of this belongs to the nearer one.
APART_BYTES = 16 << 20
# On each side of a buffer, that is backed for kernels that may stray: it counts as memory of the
# process, which may be limited.
NEAR_BYTES = 4 * APART_BYTES
DRAWS = 100  # of a place, until the lowest free one is taken

_DONT_NEED = 4  # MADV_DONTNEED


@dataclass(frozen=True)
class Buffer:
    """One allocation."""

    address: int
    bytes: int
    name: str
    shape: BufferShape | None = None


def _ends(start: int, end: int) -> list[tuple[int, int]]:
    """The begin and the end of a free range, as far as they are near to a buffer."""
    if end - start <= 2 * NEAR_BYTES:
        return [(start, end)]
    return [(start, start + NEAR_BYTES), (end - NEAR_BYTES, end)]


def _reserved(size: int) -> int:
    """The start of `size` bytes of reserved addresses, not backed by memory yet.

    Far from the system's other mappings: machine code and its constants must lie within 2 GiB of
    one another, and this range must not separate them.
    """
    for hint in (*FAR_STARTS, None):
        found = reserve(hint, size)
        if found is None:
            continue
        if hint in (found, None):
            return found
        libc.munmap(found, size)  # the range is taken, by another device
    raise LaunchRefused(f"cannot reserve {size >> 30} GiB of address space on this system")


class DeviceMemory:
    """The memory of one emulated device."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.bits = RESERVED_BITS
        size = 1 << self.bits
        self._whole = 2 * size + GUARD_BYTES + STORE_BYTES
        self._start = _reserved(self._whole)
        self.base = -(-self._start // size) * size
        # (address, bytes), by address
        self._free: list[tuple[int, int]] = [(self.base + mmap.PAGESIZE, size - mmap.PAGESIZE)]
        self._window = self.base + secrets.randbelow(size // WINDOW_BYTES) * WINDOW_BYTES
        self._spans: dict[int, tuple[int, int]] = {}
        self._pages = PageStore(self._start + 2 * size + GUARD_BYTES)
        self.buffers: dict[int, Buffer] = {}
        self.is_guarded = False  # whether launches may stray, as in `surroundings`

    @property
    def used_bytes(self) -> int:
        """Allocated bytes, without red zones."""
        return sum(buffer.bytes for buffer in self.buffers.values())

    @property
    def kept_bytes(self) -> int:
        """Memory of this machine that the next buffers take first."""
        return self._pages.kept_bytes

    def allocate(
        self,
        size: int,
        name: str = "",
        zeroed: bool = True,
        shape: BufferShape | None = None,
    ) -> int:
        """Allocates `size` bytes; returns their address. Raises LaunchRefused if the device is out
        of memory.

        Without `zeroed`, their contents are undefined, and large buffers take less time. Findings
        use `name` and `shape`.
        """
        if not self._start:
            raise LaunchRefused(f"the device is closed: {name or 'a buffer'} of {size} bytes")
        if size < 0 or self.used_bytes + size > self.limit_bytes:
            raise LaunchRefused(
                f"out of memory: {name or 'a buffer'} of {size} bytes,"
                f" {self.limit_bytes - self.used_bytes} are free"
            )
        span = RED_ZONE_BYTES + size + RED_ZONE_BYTES
        span = -(-span // mmap.PAGESIZE) * mmap.PAGESIZE
        start = self._take(span, name)
        reused = 0
        while reused + CHUNK_BYTES <= span and self._pages.give(start + reused):
            reused += CHUNK_BYTES
        if libc.mprotect(start + reused, span - reused, mmap.PROT_READ | mmap.PROT_WRITE):
            self._give_back(start, span)
            raise LaunchRefused(
                f"out of memory: the system cannot back {span} bytes for {name or 'a buffer'}"
            )
        if zeroed and reused:
            ctypes.memset(start, 0, reused)
        address = start + RED_ZONE_BYTES  # a page: aligned to more than ALIGN_BYTES
        ctypes.memset(start, RED, RED_ZONE_BYTES)
        ctypes.memset(address + size, RED, start + span - address - size)
        self._spans[address] = (start, span)
        self.buffers[address] = Buffer(address, size, name, shape)
        return address

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        """Backs the free memory beside buffers meanwhile, as far as the system allows, so that an
        access that strays there ends nothing; it is empty at the begin, and gone at the end. One
        that strays farther ends the launch, which is guarded, and not the process.
        """
        first, last = self._window, self._window + WINDOW_BYTES
        free = [
            near
            for start, size in self._free
            if start < last and start + size > first
            for near in _ends(max(start, first), min(start + size, last))
        ]
        for start, end in free:
            libc.mprotect(start, end - start, mmap.PROT_READ | mmap.PROT_WRITE)
        self.is_guarded = True
        try:
            yield
        finally:
            self.is_guarded = False
            for start, end in free:
                libc.madvise(start, end - start, _DONT_NEED)
                libc.mprotect(start, end - start, 0)

    def _take(self, span: int, name: str) -> int:
        """The start of `span` bytes at a random place, at least APART_BYTES from all others.

        It is a multiple of CHUNK_BYTES where a chunk fits, else of a page.
        """
        unit = CHUNK_BYTES if span >= CHUNK_BYTES else mmap.PAGESIZE
        start, size = (
            (self.base, 1 << self.bits) if span > LARGE_BYTES else (self._window, WINDOW_BYTES)
        )
        for _ in range(DRAWS):
            drawn = start + secrets.randbelow(max(1, (size - span) // unit)) * unit
            place = bisect.bisect(self._free, (drawn, 0)) - 1
            if place >= 0 and self._is_apart(place, drawn, span):
                return self._cut(place, drawn, span)
        for place, (lowest, _) in enumerate(self._free):
            found = -(-(lowest + APART_BYTES) // unit) * unit
            if self._is_apart(place, found, span):
                return self._cut(place, found, span)
        raise LaunchRefused(f"out of memory: no {span} contiguous bytes for {name or 'a buffer'}")

    def _is_apart(self, place: int, start: int, span: int) -> bool:
        """Whether a free range holds `span` bytes at `start`, and APART_BYTES on both sides."""
        lowest, size = self._free[place]
        return lowest + APART_BYTES <= start and start + span + APART_BYTES <= lowest + size

    def _cut(self, place: int, start: int, span: int) -> int:
        lowest, size = self._free[place]
        end = start + span
        self._free[place : place + 1] = [(lowest, start - lowest), (end, lowest + size - end)]
        return start

    def free(self, address: int) -> None:
        """Frees a buffer and returns its memory to the system. Does nothing on a closed device,
        which has freed everything.
        """
        if not self._start:
            return
        start, span = self._spans.pop(address)
        del self.buffers[address]
        kept = 0
        while kept + CHUNK_BYTES <= span and self._pages.keep(start + kept):
            kept += CHUNK_BYTES
        libc.madvise(start + kept, span - kept, _DONT_NEED)
        self._give_back(start, span)

    def _give_back(self, start: int, span: int) -> None:
        libc.mprotect(start, span, 0)
        bisect.insort(self._free, (start, span))
        self._merge()

    def _merge(self) -> None:
        merged: list[tuple[int, int]] = []
        for start, size in self._free:
            if merged and merged[-1][0] + merged[-1][1] == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + size)
            else:
                merged.append((start, size))
        self._free = merged

    def view(self, address: int, size: int) -> numpy.ndarray[tuple[int], numpy.dtype[numpy.uint8]]:
        """The `size` bytes at `address` as a uint8 array (size,) that shares the memory."""
        return numpy.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))

    def red_zones_broken(self, address: int) -> bool:
        """Whether a byte in the red zones of a buffer changed."""
        start, span = self._spans[address]
        end = address + self.buffers[address].bytes
        return bool(
            (self.view(start, address - start) != RED).any()
            or (self.view(end, start + span - end) != RED).any()
        )

    def close(self) -> None:
        """Frees everything; views must not be used any more."""
        if self._start:
            libc.munmap(self._start, self._whole)
            self._start = 0
            self._spans.clear()
            self.buffers.clear()
