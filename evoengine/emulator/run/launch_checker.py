"""The checker of a launch, and the checker of each of its host threads (check/checker.h)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from evoengine.emulator.check.findings import (
    AccessCounts,
    Check,
    Finding,
    SiteCounts,
    read_counts,
    read_findings,
    read_site_counts,
)
from evoengine.emulator.emulator_errors import LaunchRefused
from evoengine.emulator.run.geometry import LaunchGeometry
from evoengine.emulator.run.native import NativeRuntime

VALUES = 32  # as check/checker.h numbers it

BufferSpan = tuple[int, int, bool]  # (address, bytes, whether initialised)


class LaunchChecker:
    """The checker of one launch, which its host threads share."""

    def __init__(
        self,
        native: NativeRuntime,
        checks: Check,
        buffers: Sequence[BufferSpan],
        blocks: int,
        sites: int,
    ) -> None:
        """`buffers`: the buffers of global memory, by the index in findings; `sites`: the number of
        instruction sites.
        """
        self._native = native
        self._checks = checks
        self._sites = sites
        self._launch = call(
            native, "ev_check_launch_new", ctypes.c_void_p, (ctypes.c_uint64, blocks)
        )
        if not self._launch:
            raise LaunchRefused("out of memory: checked mode needs more for its shadow memory")
        for index, (address, size, initialised) in enumerate(buffers):
            call(
                native, "ev_check_buffer", None, (ctypes.c_void_p, self._launch),
                (ctypes.c_uint64, address), (ctypes.c_uint64, size),
                (ctypes.c_uint32, int(initialised)), (ctypes.c_int32, index),
            )  # fmt: skip

    def open_thread(self, geometry: LaunchGeometry, shared: int, local: int) -> int:
        """Creates the checker of a host thread, with its shared and local memory at these
        addresses; returns its handle.
        """
        found = call(
            self._native, "ev_check_new", ctypes.c_void_p, (ctypes.c_void_p, self._launch),
            (ctypes.c_uint32, geometry.shared),
            (ctypes.c_uint32, geometry.threads), (ctypes.c_uint32, geometry.frame_bytes),
            (ctypes.c_uint32, int(self._checks) | (VALUES if self._checks & Check.RACES else 0)),
            (ctypes.c_uint32, self._sites),
        )  # fmt: skip
        if not found:
            raise LaunchRefused("out of memory: checked mode needs more for its shadow memory")
        call(
            self._native,
            "ev_check_windows",
            None,
            (ctypes.c_void_p, found),
            (ctypes.c_uint64, shared),
            (ctypes.c_uint64, local),
        )
        return found

    def counts(self, checker: int) -> AccessCounts:
        """The accesses that the checker of a host thread counted."""
        return read_counts(
            call(self._native, "ev_check_counts", ctypes.c_void_p, (ctypes.c_void_p, checker))
        )

    def site_counts(self, checker: int) -> tuple[SiteCounts, ...]:
        """The accesses of each instruction that the checker of a host thread counted."""
        return read_site_counts(
            call(self._native, "ev_check_site_counts", ctypes.c_void_p, (ctypes.c_void_p, checker)),
            self._sites,
        )

    def close_thread(self, checker: int) -> None:
        """Frees the checker of a host thread."""
        call(self._native, "ev_check_free", None, (ctypes.c_void_p, checker))

    def findings(self) -> tuple[Finding, ...]:
        """The findings so far."""
        first = ctypes.c_void_p()
        where = ctypes.addressof(first)
        count = call(
            self._native,
            "ev_check_findings",
            ctypes.c_uint32,
            (ctypes.c_void_p, self._launch),
            (ctypes.c_void_p, where),
        )
        return read_findings(first.value or 0, count)

    def most_on_line(self, blocks: int) -> int:
        """Passes of atomic operations on the line of global memory that has the most, of those
        that at least so many of the first 64 blocks have.
        """
        return call(
            self._native, "ev_check_most_on_line", ctypes.c_uint64,
            (ctypes.c_void_p, self._launch), (ctypes.c_uint64, blocks),
        )  # fmt: skip

    def visits(self, blocks: int, what: int) -> int:
        """`VISITS` or another of checker.h, of the addresses that lanes read before an atomic
        operation there and that so many of the first 64 blocks read.
        """
        return call(
            self._native, "ev_check_visits", ctypes.c_uint64,
            (ctypes.c_void_p, self._launch), (ctypes.c_uint64, blocks), (ctypes.c_uint32, what),
        )  # fmt: skip

    def most_hops(self) -> int:
        """Hops of the longest chain of blocks of which each waits for the one before."""
        return call(
            self._native, "ev_check_most_hops", ctypes.c_uint64, (ctypes.c_void_p, self._launch)
        )

    def close(self) -> None:
        """Frees the checker of the launch."""
        call(self._native, "ev_check_launch_free", None, (ctypes.c_void_p, self._launch))


def call(
    native: NativeRuntime, name: str, result: type | None, *arguments: tuple[type, int | None]
) -> int:
    """Calls C function `name`; returns its result, 0 for a null pointer or void. `arguments` are
    (ctypes type, value).
    """
    prototype = ctypes.CFUNCTYPE(result, *(kind for kind, _ in arguments))
    return int(prototype(native.address(name))(*(value for _, value in arguments)) or 0)
