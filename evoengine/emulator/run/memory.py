"""Device memory: one reserved range of addresses (the arena) that no access can leave, with buffers
between red zones.

Addresses of the device are addresses of this process. The size of the arena is a power of two and
it is aligned to its size, so an `and` and an `or` mask any address into it (software fault
isolation). Only allocated pages are backed by memory; an access to any other page ends the process
with a signal, so launches belong in a worker process.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
from dataclasses import dataclass

import numpy

from evoengine.emulator.emulator_errors import LaunchRefused

RESERVED_BITS = 38  # 256 GiB of addresses; more than any GPU's memory
ALIGN_BYTES = 512  # alignment that cudaMalloc guarantees
RED_ZONE_BYTES = 4096
# A vector access of 32 lanes, up to 16 bytes each, may begin at the arena's last byte.
GUARD_BYTES = 1 << 16
# From 16 TiB on, 1 TiB apart: below programs (85 TiB on x86-64 Linux, 170 on Arm) and libraries
# (128, 256), above 32-bit addresses.
FAR_STARTS = range(16 << 40, 80 << 40, 1 << 40)
RED = 0xA5

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux; only a hint elsewhere
_DONT_NEED = 4  # MADV_DONTNEED


@dataclass(frozen=True)
class Buffer:
    """One allocation."""

    address: int
    bytes: int
    name: str


def _reserved(size: int) -> int:
    """The start of `size` bytes of reserved addresses, not backed by memory yet.

    Far from the system's other mappings: machine code and its constants must lie within 2 GiB of
    one another, and this range must not separate them.
    """
    for hint in (*FAR_STARTS, None):
        found = _libc.mmap(
            hint, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE, -1, 0
        )
        if found in (None, ctypes.c_void_p(-1).value):
            continue
        if hint in (found, None):
            return int(found)
        _libc.munmap(found, size)  # the range is taken, by another device
    raise LaunchRefused(f"cannot reserve {size >> 30} GiB of address space on this system")


class DeviceMemory:
    """The memory of one emulated device."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.bits = RESERVED_BITS
        size = 1 << self.bits
        self._whole = 2 * size + GUARD_BYTES
        self._start = _reserved(self._whole)
        self.base = -(-self._start // size) * size
        # (address, bytes), by address
        self._free: list[tuple[int, int]] = [(self.base + mmap.PAGESIZE, size - mmap.PAGESIZE)]
        self._spans: dict[int, tuple[int, int]] = {}
        self.buffers: dict[int, Buffer] = {}

    @property
    def used_bytes(self) -> int:
        """Allocated bytes, without red zones."""
        return sum(buffer.bytes for buffer in self.buffers.values())

    def allocate(self, size: int, name: str = "") -> int:
        """Allocates `size` zeroed bytes; returns their address. Raises LaunchRefused if the device
        is out of memory.
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
        if _libc.mprotect(start, span, mmap.PROT_READ | mmap.PROT_WRITE):
            self._give_back(start, span)
            raise LaunchRefused(
                f"out of memory: the system cannot back {span} bytes for {name or 'a buffer'}"
            )
        address = start + RED_ZONE_BYTES  # a page: aligned to more than ALIGN_BYTES
        ctypes.memset(start, RED, RED_ZONE_BYTES)
        ctypes.memset(address + size, RED, start + span - address - size)
        self._spans[address] = (start, span)
        self.buffers[address] = Buffer(address, size, name)
        return address

    def _take(self, span: int, name: str) -> int:
        for place, (start, size) in enumerate(self._free):
            if size >= span:
                self._free[place : place + 1] = [(start + span, size - span)] if size > span else []
                return start
        raise LaunchRefused(f"out of memory: no {span} contiguous bytes for {name or 'a buffer'}")

    def free(self, address: int) -> None:
        """Frees a buffer and returns its memory to the system. Does nothing on a closed device,
        which has freed everything.
        """
        if not self._start:
            return
        start, span = self._spans.pop(address)
        del self.buffers[address]
        _libc.madvise(start, span, _DONT_NEED)
        self._give_back(start, span)

    def _give_back(self, start: int, span: int) -> None:
        _libc.mprotect(start, span, 0)
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
            _libc.munmap(self._start, self._whole)
            self._start = 0
            self._spans.clear()
            self.buffers.clear()
