"""The checker's part in a launch: one for the launch, and one for each host thread
(check/checker.h).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from evoengine.emulator.check.findings import (
    AccessCounts,
    Check,
    Finding,
    read_counts,
    read_findings,
)
from evoengine.emulator.emulator_errors import LaunchRefused
from evoengine.emulator.run.geometry import Geometry
from evoengine.emulator.run.native import Native

Span = tuple[int, int, bool]  # address, bytes, initialised


class Checking:
    """The checker of one launch, which its host threads share."""

    def __init__(
        self, native: Native, checks: Check, spans: Sequence[Span], blocks: int, sites: int
    ) -> None:
        """`spans` are the buffers of global memory, by the index that findings give; `sites`: how
        many instructions have a number.
        """
        self._native = native
        self._checks = checks
        self._sites = sites
        self._launch = call(
            native, "ev_check_launch_new", ctypes.c_void_p, (ctypes.c_uint64, blocks)
        )
        if not self._launch:
            raise LaunchRefused("no memory for checked mode")
        for index, (address, size, initialised) in enumerate(spans):
            call(
                native, "ev_check_buffer", None, (ctypes.c_void_p, self._launch),
                (ctypes.c_uint64, address), (ctypes.c_uint64, size),
                (ctypes.c_uint32, int(initialised)), (ctypes.c_int32, index),
            )  # fmt: skip

    def open(self, geometry: Geometry, shared: int, local: int) -> int:
        """A checker for one host thread, whose blocks have their shared and local memory at these
        addresses.
        """
        found = call(
            self._native, "ev_check_new", ctypes.c_void_p, (ctypes.c_void_p, self._launch),
            (ctypes.c_uint32, geometry.shared),
            (ctypes.c_uint32, geometry.threads), (ctypes.c_uint32, geometry.frame_bytes),
            (ctypes.c_uint32, int(self._checks)),
            (ctypes.c_uint32, self._sites),
        )  # fmt: skip
        if not found:
            raise LaunchRefused("no memory for checked mode")
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
        """What the checker of a host thread counted."""
        return read_counts(
            call(self._native, "ev_check_counts", ctypes.c_void_p, (ctypes.c_void_p, checker))
        )

    def shut(self, checker: int) -> None:
        """Frees the checker of a host thread."""
        call(self._native, "ev_check_free", None, (ctypes.c_void_p, checker))

    def findings(self) -> tuple[Finding, ...]:
        """What was found so far."""
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

    def close(self) -> None:
        """Frees all of it."""
        call(self._native, "ev_check_launch_free", None, (ctypes.c_void_p, self._launch))


def call(
    native: Native, name: str, result: type | None, *arguments: tuple[type, int | None]
) -> int:
    """What C function `name` gives, 0 for a null pointer or nothing; arguments are (ctypes type,
    value).
    """
    prototype = ctypes.CFUNCTYPE(result, *(kind for kind, _ in arguments))
    return int(prototype(native.address(name))(*(value for _, value in arguments)) or 0)
