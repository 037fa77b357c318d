"""Device memory that two processes map, each at an address of its own choice.

CUDA driver API, "Virtual Memory Management": physical memory is created, exported as a file
descriptor, imported by another process, and mapped into a range of reserved addresses. An access
to a reserved address without memory is an illegal address.
"""

from __future__ import annotations

import ctypes
import secrets
from ctypes import byref, c_int, c_size_t, c_ubyte, c_uint64, c_ushort, c_void_p
from typing import Any

from evoengine.evaluate.worker.cuda.harness.driver_library import driver_library

# the granularity of all devices from sm_70 on; checked when a range is reserved
PAGE_BYTES = 2 * 1024**2
RANGE_BYTES = 16 * 1024**4  # of addresses; they cost nothing until memory is mapped
_OUT_OF_MEMORY = 2
_DEVICE_LOCATION, _PINNED, _FILE_DESCRIPTOR, _READ_AND_WRITE = 1, 1, 1, 3


class VirtualMemoryError(Exception):
    """A call of the driver failed; `out_of_memory` says whether for lack of memory."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call} returns {code}")
        self.out_of_memory = code == _OUT_OF_MEMORY


class _Location(ctypes.Structure):
    _fields_ = [("kind", c_int), ("number", c_int)]


class _Flags(ctypes.Structure):
    _fields_ = [
        ("compression", c_ubyte),
        ("rdma", c_ubyte),
        ("usage", c_ushort),
        ("reserved", c_ubyte * 4),
    ]


class _Properties(ctypes.Structure):
    """CUmemAllocationProp of cuda.h."""

    _fields_ = [
        ("kind", c_int),
        ("handle_kind", c_int),
        ("location", _Location),
        ("windows_data", c_void_p),
        ("flags", _Flags),
    ]


class _Access(ctypes.Structure):
    """CUmemAccessDesc of cuda.h."""

    _fields_ = [("location", _Location), ("flags", c_int)]


def _call(name: str, *arguments: Any) -> None:
    code = getattr(driver_library(), name)(*arguments)
    if code:
        raise VirtualMemoryError(name, code)


def _properties(ordinal: int) -> _Properties:
    found = _Properties(kind=_PINNED, handle_kind=_FILE_DESCRIPTOR)
    found.location = _Location(_DEVICE_LOCATION, ordinal)
    return found


def pages(size: int) -> int:
    """`size` bytes rounded up to whole pages, in bytes."""
    return -(-size // PAGE_BYTES) * PAGE_BYTES


class PhysicalMemory:
    """Device memory without an address; it lives until it is released and unmapped everywhere."""

    def __init__(self, handle: int, size: int) -> None:
        self.handle = handle
        self.size = size

    @classmethod
    def create(cls, ordinal: int, size: int) -> PhysicalMemory:
        """New memory of `size` bytes, whole pages, on a device."""
        handle = c_uint64()
        _call(
            "cuMemCreate", byref(handle), c_size_t(size), byref(_properties(ordinal)), c_uint64(0)
        )
        return cls(handle.value, size)

    @classmethod
    def imported(cls, descriptor: int, size: int) -> PhysicalMemory:
        """The memory of `size` bytes that another process exported; `descriptor` stays open."""
        handle = c_uint64()
        _call(
            "cuMemImportFromShareableHandle",
            byref(handle),
            c_void_p(descriptor),
            c_int(_FILE_DESCRIPTOR),
        )
        return cls(handle.value, size)

    def export(self) -> int:
        """A new file descriptor for another process; the caller closes it."""
        descriptor = c_int()
        _call(
            "cuMemExportToShareableHandle",
            byref(descriptor),
            c_uint64(self.handle),
            c_int(_FILE_DESCRIPTOR),
            c_uint64(0),
        )
        return descriptor.value

    def release(self) -> None:
        """Gives the memory back once nothing maps it."""
        _call("cuMemRelease", c_uint64(self.handle))


class AddressRange:
    """A large range of addresses in which memory is mapped at random places.

    At least one page without memory lies on both sides of everything that is mapped.
    """

    def __init__(self, ordinal: int, size: int = RANGE_BYTES) -> None:
        self._ordinal = ordinal
        self._refuse_other_granularity()
        start = c_uint64()
        _call(
            "cuMemAddressReserve",
            byref(start),
            c_size_t(size),
            c_size_t(0),
            c_uint64(0),
            c_uint64(0),
        )
        self.start, self.size = start.value, size
        self._mapped: dict[int, int] = {}  # address -> bytes

    @property
    def mapped_bytes(self) -> int:
        """The memory that is mapped in it."""
        return sum(self._mapped.values())

    def map(self, memory: PhysicalMemory) -> int:
        """Maps `memory` at a random address, and returns the address."""
        address = self._free_address(memory.size)
        _call(
            "cuMemMap",
            c_uint64(address),
            c_size_t(memory.size),
            c_size_t(0),
            c_uint64(memory.handle),
            c_uint64(0),
        )
        access = _Access(_Location(_DEVICE_LOCATION, self._ordinal), _READ_AND_WRITE)
        _call(
            "cuMemSetAccess", c_uint64(address), c_size_t(memory.size), byref(access), c_size_t(1)
        )
        self._mapped[address] = memory.size
        return address

    def allocate(self, size: int) -> int:
        """The address of new memory of our own, whole pages, that stays for good."""
        return self.map(PhysicalMemory.create(self._ordinal, size))

    def unmap(self, address: int) -> None:
        """Removes what is mapped at `address`."""
        _call("cuMemUnmap", c_uint64(address), c_size_t(self._mapped.pop(address)))

    def _free_address(self, size: int) -> int:
        while True:
            page = 1 + secrets.randbelow((self.size - size) // PAGE_BYTES - 1)
            address = self.start + page * PAGE_BYTES
            if all(
                address + size + PAGE_BYTES <= other or other + taken + PAGE_BYTES <= address
                for other, taken in self._mapped.items()
            ):
                return address

    def _refuse_other_granularity(self) -> None:
        found = c_size_t()
        _call(
            "cuMemGetAllocationGranularity",
            byref(found),
            byref(_properties(self._ordinal)),
            c_int(0),
        )
        if PAGE_BYTES % found.value:
            raise VirtualMemoryError(f"cuMemGetAllocationGranularity ({found.value} bytes)", 0)
