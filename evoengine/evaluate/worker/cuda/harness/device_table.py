"""Small pieces of device memory that the host writes and reads in the order of one stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
from cupy.cuda import runtime

from evoengine.evaluate.worker.cuda.harness.virtual_memory import PAGE_BYTES, AddressRange

Array = numpy.ndarray[Any, Any]


class SecretTable:
    """Rows at a random address, which no candidate finds: they name places that it may not know."""

    def __init__(self, addresses: AddressRange, stream: int) -> None:
        self._address = addresses.allocate(PAGE_BYTES)
        self._stream = stream

    @contextmanager
    def holding(self, rows: Array) -> Iterator[int]:
        """The address of a copy of `rows` for the kernels that are launched inside; afterwards it
        is overwritten, in the order of the stream.
        """
        _begin_copy(rows, self._address, self._stream)
        yield self._address
        runtime.memsetAsync(self._address, 0, rows.nbytes, self._stream)


class DeviceTable:
    """Memory that grows with what is written to it; used from one stream only."""

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._bytes = 0
        self.address = 0

    def write(self, rows: Array) -> int:
        """Begins to copy `rows` (contiguous) to the device; returns their address."""
        self._reserve(rows.nbytes)
        _begin_copy(rows, self.address, self._stream)
        return self.address

    def clear(self, size: int) -> int:
        """Begins to write `size` zero bytes; returns their address."""
        self._reserve(size)
        runtime.memsetAsync(self.address, 0, size, self._stream)
        return self.address

    def read(self, rows: Array) -> Array:
        """Fills `rows` from the device once all earlier work has ended, and returns them."""
        runtime.memcpyAsync(
            rows.ctypes.data, self.address, rows.nbytes, runtime.memcpyDeviceToHost, self._stream
        )
        runtime.streamSynchronize(self._stream)
        return rows

    def _reserve(self, size: int) -> None:
        if size <= self._bytes:
            return
        if self.address:
            runtime.streamSynchronize(self._stream)
            runtime.free(self.address)
        self._bytes = 2 * size
        self.address = int(runtime.malloc(self._bytes))


def _begin_copy(rows: Array, address: int, stream: int) -> None:
    """Begins to copy `rows` (contiguous) to the device, in the order of the stream."""
    # pageable memory is copied away before this returns, so `rows` may be gone afterwards
    runtime.memcpyAsync(address, rows.ctypes.data, rows.nbytes, runtime.memcpyHostToDevice, stream)
