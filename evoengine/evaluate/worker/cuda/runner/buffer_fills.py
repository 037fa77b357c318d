"""Fills buffers before the launches of a call: memsets and copies, which a graph can hold."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping

import cupy
from cupy.cuda import runtime

from evoengine.candidate.binding import Fill
from evoengine.evaluate.worker.cuda.harness.driver_library import driver_library

_HALF_BYTES = 4  # of an element of 8 bytes, which takes two strided memsets


def fill_step(fill: Fill, pointers: Mapping[str, int]) -> Callable[[int], None]:
    """A function that enqueues the fill on a stream, given by its handle."""
    address = pointers[fill.buffer]
    if fill.source:
        source = pointers[fill.source]
        return lambda stream: runtime.memcpyAsync(
            address, source, fill.bytes, runtime.memcpyDeviceToDevice, stream
        )
    element = bytes.fromhex(fill.element)
    if len(set(element)) == 1:  # all bytes are the same, as those of 0
        return lambda stream: runtime.memsetAsync(address, element[0], fill.bytes, stream)
    if len(element) == 2 * _HALF_BYTES:
        return lambda stream: _fill_halves(address, element, fill.bytes // len(element), stream)
    return lambda stream: _fill_words(address, element, fill.bytes // len(element), stream)


def _fill_words(address: int, element: bytes, count: int, stream: int) -> None:
    """Elements of 2 or 4 bytes."""
    library = driver_library()
    memset = library.cuMemsetD16Async if len(element) == 2 else library.cuMemsetD32Async
    value = ctypes.c_ushort if len(element) == 2 else ctypes.c_uint
    _refuse(
        memset(
            ctypes.c_uint64(address),
            value(int.from_bytes(element, "little")),
            ctypes.c_size_t(count),
            ctypes.c_void_p(stream),
        )
    )


def _fill_halves(address: int, element: bytes, count: int, stream: int) -> None:
    """Elements of 8 bytes: the lower halves, then the upper ones, each as a column."""
    for offset in (0, _HALF_BYTES):
        half = int.from_bytes(element[offset : offset + _HALF_BYTES], "little")
        _refuse(
            driver_library().cuMemsetD2D32Async(
                ctypes.c_uint64(address + offset),
                ctypes.c_size_t(len(element)),  # from one row to the next
                ctypes.c_uint(half),
                ctypes.c_size_t(1),  # column
                ctypes.c_size_t(count),  # rows
                ctypes.c_void_p(stream),
            )
        )


def _refuse(code: int) -> None:
    if code:
        raise cupy.cuda.driver.CUDADriverError(code)
