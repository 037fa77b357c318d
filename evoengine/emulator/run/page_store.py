"""Pages of freed buffers, for the next ones: moving them to another address takes a thousandth of
the time in which the system gives new ones.

They lie outside of the arena meanwhile, where no kernel reaches them.
"""

from __future__ import annotations

import ctypes
import mmap

CHUNK_BYTES = 2 << 20  # moved at once: the system then moves page tables, not pages
STORE_BYTES = 1 << 30

_FIXED = 0x10  # MAP_FIXED
_NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux; only a hint elsewhere
_MOVE = 1 | 2  # MREMAP_MAYMOVE | MREMAP_FIXED
_FAILED = ctypes.c_void_p(-1).value

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_mremap = getattr(libc, "mremap", None)  # Linux only; elsewhere nothing is kept
if _mremap is not None:
    _mremap.restype = ctypes.c_void_p
    _mremap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_void_p,
    ]


def reserve(start: int | None, size: int, fixed: bool = False) -> int | None:
    """The start of `size` bytes of addresses without memory, at `start` if possible; None if the
    system refuses. With `fixed` they replace what is mapped at `start`.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE | (_FIXED if fixed else 0)
    found = libc.mmap(start, size, 0, flags, -1, 0)
    return None if found in (None, _FAILED) else int(found)


class PageStore:
    """Chunks of CHUNK_BYTES, readable and writable, whose contents are those of earlier buffers."""

    def __init__(self, start: int) -> None:
        """STORE_BYTES of addresses are reserved at `start`."""
        first = -(-start // CHUNK_BYTES) * CHUNK_BYTES
        count = STORE_BYTES // CHUNK_BYTES - 1 if _mremap is not None else 0
        self._empty = [first + number * CHUNK_BYTES for number in range(count)]
        self._kept: list[int] = []

    @property
    def kept_bytes(self) -> int:
        """The memory that it holds."""
        return len(self._kept) * CHUNK_BYTES

    def keep(self, address: int) -> bool:
        """Moves the chunk at `address` here and leaves unmapped addresses; False if it is full."""
        if not self._empty or not _moved(address, self._empty[-1]):
            return False
        self._kept.append(self._empty.pop())
        return True

    def give(self, address: int) -> bool:
        """Moves a chunk to unmapped addresses at `address`; False if there is none."""
        if not self._kept or not _moved(self._kept[-1], address):
            return False
        self._empty.append(self._kept.pop())
        return True


def _moved(source: int, target: int) -> bool:
    """Moves a chunk; its old addresses stay reserved. Returns whether the system did it."""
    assert _mremap is not None
    if _mremap(source, CHUNK_BYTES, CHUNK_BYTES, _MOVE, target) != target:
        return False
    reserve(source, CHUNK_BYTES, fixed=True)
    return True
