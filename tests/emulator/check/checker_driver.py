"""Drives the checker directly: one block of a kernel as a sequence of calls."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import llvmlite.binding as llvm

from evoengine.emulator.check import findings
from evoengine.emulator.check.findings import (
    ALL_CHECKS,
    Access,
    AccessCounts,
    Check,
    Finding,
    SiteCounts,
    Space,
)
from evoengine.emulator.run.native import NativeRuntime, load_runtime

FULL = 0xFFFFFFFF
GLOBAL = 1 << 40  # where the first buffer lies; nothing is really there

u32, u64, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
SIGNATURES: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "ev_check_launch_new": (pointer, (u64,)),
    "ev_check_launch_next": (None, (pointer, u64)),
    "ev_check_launch_free": (None, (pointer,)),
    "ev_check_buffer": (None, (pointer, u64, u64, u32, ctypes.c_int32)),
    "ev_check_findings": (u32, (pointer, ctypes.POINTER(pointer))),
    "ev_check_findings_dropped": (u64, (pointer,)),
    "ev_check_unchecked_bytes": (u64, (pointer,)),
    "ev_check_new": (pointer, (pointer, u32, u32, u32, u32, u32)),
    "ev_check_free": (None, (pointer,)),
    "ev_check_counts": (pointer, (pointer,)),
    "ev_check_site_counts": (pointer, (pointer,)),
    "ev_check_windows": (None, (pointer, u64, u64)),
    "ev_check_block": (None, (pointer, u64)),
    "ev_check_access": (u32, (pointer, u32, u32, u32, u32, u32, pointer, u32)),
    "ev_check_warp_sync": (None, (pointer, u32, u32)),
    "ev_check_wait": (None, (pointer, u32, u32)),
    "ev_check_barrier": (None, (pointer, u32, u32, u32)),
    "ev_check_arrive": (None, (pointer, u32, u32)),
    "ev_check_exit": (None, (pointer, u32)),
    "ev_check_fence": (None, (pointer, u32, u32)),
    "ev_check_block_fence": (None, (pointer, u32, u32)),
    "ev_check_performed": (None, (pointer,)),
    "ev_check_divergent_barrier": (None, (pointer, u32, u32, u32, u32)),
    "ev_check_async": (u32, (pointer, u32, u32, u32, pointer, pointer, pointer, u32)),
    "ev_check_async_commit": (None, (pointer, u32, u32)),
    "ev_check_async_wait": (None, (pointer, u32, u32, u32)),
}


class Library:
    """The C functions of checker.h, without their prefix."""

    def __init__(self, native: NativeRuntime) -> None:
        self._native = native  # owns the code
        for name, (result, arguments) in SIGNATURES.items():
            function = ctypes.CFUNCTYPE(result, *arguments)(native.address(name))
            short = name.removeprefix("ev_check_")
            setattr(self, "async_" if short == "async" else short, function)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"checker.h has no ev_check_{name}")


@cache
def library() -> Library:
    folder = Path(tempfile.gettempdir()) / f"evoengine-native-{Path.home().name}"
    return Library(
        load_runtime(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), folder)
    )


class Launch:
    """A checked launch; buffers are numbered in the order they were added, with gaps of 4 KiB
    between them.
    """

    def __init__(self, blocks: int = 1) -> None:
        self.c = library()
        self.handle = self.c.launch_new(blocks)
        self._next = GLOBAL
        self._buffers = 0

    def buffer(self, nbytes: int, initialised: bool = True) -> int:
        """The address of a new buffer."""
        address = self._next
        self.c.buffer(self.handle, address, nbytes, int(initialised), self._buffers)
        self._buffers += 1
        self._next += (nbytes + 8191) // 4096 * 4096
        return address

    def findings(self) -> tuple[Finding, ...]:
        first = pointer()
        count = self.c.findings(self.handle, ctypes.byref(first))
        return findings.read_findings(first.value or 0, count)

    def kinds(self) -> list[str]:
        return [found.kind.name for found in self.findings()]

    def __enter__(self) -> Launch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.c.launch_free(self.handle)


class CheckerDriver:
    """A checker. The addresses of an access are one number for all lanes, or one for each lane of
    the mask.
    """

    def __init__(
        self,
        launch: Launch,
        threads: int = 64,
        shared: int = 1024,
        local: int = 0,
        checks: Check = ALL_CHECKS,
        sites: int = 64,
    ) -> None:
        self.c = launch.c
        self.launch = launch
        self.sites = sites
        self.warps = (threads + 31) // 32
        self.handle = self.c.new(launch.handle, shared, threads, local, int(checks), sites)
        assert self.handle

    def access(
        self,
        space: Space,
        kind: Access,
        warp: int,
        address: int | Sequence[int],
        *,
        bytes: int = 4,
        mask: int = FULL,
        site: int = 0,
        performed: bool = True,
    ) -> int:
        allowed = self.c.access(
            self.handle, warp, mask, space, kind, bytes, _lanes(u64, mask, address), site
        )
        if performed:
            self.c.performed(self.handle)
        return int(allowed)

    def read(self, warp: int, address: int | Sequence[int], **more: Any) -> int:
        return self.access(Space.SHARED, Access.READ, warp, address, **more)

    def write(self, warp: int, address: int | Sequence[int], **more: Any) -> int:
        return self.access(Space.SHARED, Access.WRITE, warp, address, **more)

    def atomic(self, warp: int, address: int | Sequence[int], **more: Any) -> int:
        return self.access(Space.SHARED, Access.ATOMIC, warp, address, **more)

    def load(self, warp: int, address: int | Sequence[int], **more: Any) -> int:
        return self.access(Space.GLOBAL, Access.READ, warp, address, **more)

    def store(self, warp: int, address: int | Sequence[int], **more: Any) -> int:
        return self.access(Space.GLOBAL, Access.WRITE, warp, address, **more)

    def global_atomic(self, warp: int, address: int | Sequence[int], **more: Any) -> int:
        return self.access(Space.GLOBAL, Access.ATOMIC, warp, address, **more)

    def block(self, index: int) -> None:
        self.c.block(self.handle, index)

    def warp_sync(self, warp: int, mask: int = FULL) -> None:
        self.c.warp_sync(self.handle, warp, mask)

    def barrier(self, warps: Sequence[int] | None = None, barrier: int = 0) -> None:
        chosen = range(self.warps) if warps is None else warps
        self.c.barrier(self.handle, barrier, sum(1 << warp for warp in chosen), 0)

    def arrive(self, warp: int, barrier: int) -> None:
        self.c.arrive(self.handle, barrier, warp)

    def fence(self, warp: int) -> None:
        self.c.fence(self.handle, warp, FULL)

    def block_fence(self, warp: int) -> None:
        self.c.block_fence(self.handle, warp, FULL)

    def copy(
        self,
        warp: int,
        offset: Sequence[int],
        address: Sequence[int],
        *,
        bytes: int = 16,
        mask: int = FULL,
        source: int | None = None,
        site: int = 0,
    ) -> int:
        sizes = None if source is None else _lanes(u32, mask, source)
        return int(
            self.c.async_(
                self.handle,
                warp,
                mask,
                bytes,
                _lanes(u32, mask, offset),
                _lanes(u64, mask, address),
                sizes,
                site,
            )
        )

    def commit(self, warp: int, mask: int = FULL) -> None:
        self.c.async_commit(self.handle, warp, mask)

    def wait(self, warp: int, pending: int, mask: int = FULL) -> None:
        self.c.async_wait(self.handle, warp, mask, pending)

    def counts(self) -> AccessCounts:
        return findings.read_counts(self.c.counts(self.handle))

    def site_counts(self) -> dict[int, SiteCounts]:
        return {
            found.site: found
            for found in findings.read_site_counts(self.c.site_counts(self.handle), self.sites)
        }

    def __enter__(self) -> CheckerDriver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.c.free(self.handle)


def _lanes(element: Any, mask: int, values: int | Sequence[int]) -> Any:
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    array = (element * 32)()
    for lane, value in zip(
        lanes, [values] * len(lanes) if isinstance(values, int) else values, strict=True
    ):
        array[lane] = value & 0xFFFFFFFFFFFFFFFF
    return array


def row(start: int, stride: int = 4, lanes: int = 32) -> list[int]:
    """Addresses of consecutive lanes."""
    return [start + stride * lane for lane in range(lanes)]


def on_machine(blocks: int = 1, **more: Any) -> Iterator[CheckerDriver]:
    with Launch(blocks) as launch, CheckerDriver(launch, **more) as machine:
        yield machine
