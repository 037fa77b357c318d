"""Launches: host threads take blocks in turn and run their warps."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy

from evoengine.emulator.check.findings import AccessCounts, Check, Finding, read_counts, read_findings
from evoengine.emulator.errors import LaunchRefused
from evoengine.emulator.run.abi import PRINT, Block, End, Launch, Warp
from evoengine.emulator.run.memory import DeviceMemory
from evoengine.emulator.run.native import Native

Dimensions = tuple[int, int, int]
ALIGN = 64
FRAME_POISON = 0xFF
WORKS = 1 << 16  # blocks whose work is kept apart: half a megabyte


@dataclass(frozen=True)
class Geometry:
    """What a launch asks for."""

    grid: Dimensions
    block: Dimensions
    static_shared: int
    dynamic_shared: int
    frame_bytes: int
    warp_bytes: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        x, y, z = self.block
        return x * y * z

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return -(-self.threads // 32)

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        x, y, z = self.grid
        return x * y * z

    @property
    def shared(self) -> int:
        """Shared memory of a block in bytes."""
        return self.static_shared + self.dynamic_shared


@dataclass(frozen=True)
class Fault:
    """Why a launch ended early."""

    end: End
    site: int
    block: int
    warp: int
    lanes: int


@dataclass(frozen=True)
class Outcome:
    """What running blocks gave."""

    counters: numpy.ndarray  # [blocks of the flow, 2]: warps, lanes
    fault: Fault | None
    blocks_run: int
    findings: tuple[Finding, ...]
    accesses: AccessCounts | None
    works: numpy.ndarray  # [blocks run, WORKS at most]: the sum of the weights of what a block executed


class Room:
    """Memory of one host thread: shared memory of a block, frames of its threads, state of its warps."""

    def __init__(self, memory: DeviceMemory, geometry: Geometry, flow_blocks: int) -> None:
        self._memory = memory
        self.shared = memory.allocate(max(geometry.shared, 1), "shared memory")
        frames = geometry.frame_bytes * geometry.warps * 32
        try:
            self.local = memory.allocate(max(frames, 1), "local memory")
        except LaunchRefused:
            memory.free(self.shared)
            raise
        memory.view(self.local, frames)[:] = FRAME_POISON
        self._warps = ctypes.create_string_buffer(geometry.warps * geometry.warp_bytes + ALIGN)
        self.warps = -(-ctypes.addressof(self._warps) // ALIGN) * ALIGN
        self.counters = numpy.zeros((flow_blocks, 2), dtype=numpy.int64)

    def close(self) -> None:
        """Gives the memory back."""
        self._memory.free(self.shared)
        self._memory.free(self.local)


@dataclass(frozen=True)
class Buffers:
    """What the checker knows of global memory: (address, bytes, initialised) by index."""

    spans: tuple[tuple[int, int, bool], ...]


class Runner:
    """Runs one compiled kernel."""

    def __init__(self, native: Native, memory: DeviceMemory, address: int, geometry: Geometry, weights: Sequence[int]) -> None:
        """`weights`: of each block of the flow, what one execution by a warp counts as work."""
        self._native = native
        self._memory = memory
        self._address = address
        self._geometry = geometry
        self._weights = numpy.array(weights, dtype=numpy.uint32)
        self._run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(native.address("ev_run"))

    def run(
        self,
        params: int,
        globals_: int,
        *,
        threads: int,
        fuel: int,
        chosen: Sequence[int] | None,
        printed: Callable[[int, int, int, int], None],
        checking: Checking | None,
    ) -> Outcome:
        """Runs the blocks of the grid, or the `chosen` ones (linear indices); `params` is the address of the parameter buffer."""
        geometry = self._geometry
        count = len(chosen) if chosen is not None else geometry.blocks
        order = (ctypes.c_uint64 * count)(*chosen) if chosen is not None else None
        shared_next, stop = ctypes.c_uint64(0), ctypes.c_uint32(0)
        callback = PRINT(lambda _, mask, formats, arguments, kind: printed(mask, formats or 0, arguments or 0, kind))
        works = numpy.zeros(min(count, WORKS), dtype=numpy.uint64)
        lives: list[_Life] = []
        try:
            for _ in range(max(1, min(threads, count))):
                lives.append(_Life(self, geometry, globals_, params, fuel, callback, checking))
            for life in lives:
                life.launch(self._address, shared_next, count, order, stop, self._weights, works)
            _in_parallel([lambda life=life: life.go(self._run) for life in lives])
            return self._outcome(lives, min(shared_next.value, count), checking, works)
        finally:
            for life in lives:
                life.close()

    def room(self) -> Room:
        """Memory for one more host thread."""
        return Room(self._memory, self._geometry, len(self._weights))

    def _outcome(self, lives: list[_Life], blocks_run: int, checking: Checking | None, works: numpy.ndarray) -> Outcome:
        counters = sum((life.room.counters for life in lives), numpy.zeros((len(self._weights), 2), dtype=numpy.int64))
        fault = next((life.fault() for life in lives if life.end is not End.done), None)
        if checking is None:
            return Outcome(counters, fault, blocks_run, (), None, works)
        accesses = sum((life.accesses() for life in lives), AccessCounts())
        return Outcome(counters, fault, blocks_run, checking.findings(), accesses, works)


class Checking:
    """The checker's part that the host threads of a launch share."""

    def __init__(self, native: Native, checks: Check, buffers: Buffers, blocks: int, sites: int) -> None:
        self.native = native
        self.checks = checks
        self.sites = sites
        self.handle = call(native, "ev_check_launch_new", ctypes.c_void_p, (ctypes.c_uint64, blocks))
        for index, (address, size, initialised) in enumerate(buffers.spans):
            call(
                native, "ev_check_buffer", None, (ctypes.c_void_p, self.handle), (ctypes.c_uint64, address), (ctypes.c_uint64, size),
                (ctypes.c_uint32, int(initialised)), (ctypes.c_int32, index),
            )  # fmt: skip

    def checker(self, geometry: Geometry, room: Room) -> int:
        """A checker for one host thread."""
        found = call(
            self.native, "ev_check_new", ctypes.c_void_p, (ctypes.c_void_p, self.handle), (ctypes.c_uint32, geometry.shared),
            (ctypes.c_uint32, geometry.threads), (ctypes.c_uint32, geometry.frame_bytes), (ctypes.c_uint32, int(self.checks)),
            (ctypes.c_uint32, self.sites),
        )  # fmt: skip
        if not found:
            raise LaunchRefused("no memory for checked mode")
        call(
            self.native, "ev_check_windows", None, (ctypes.c_void_p, found), (ctypes.c_uint64, room.shared), (ctypes.c_uint64, room.local)
        )
        return int(found)

    def findings(self) -> tuple[Finding, ...]:
        """What was found so far."""
        first = ctypes.c_void_p()
        count = call(self.native, "ev_check_findings", ctypes.c_uint32, (ctypes.c_void_p, self.handle), (ctypes.c_void_p, ctypes.addressof(first)))
        return read_findings(first.value or 0, int(count))

    def close(self) -> None:
        """Frees it."""
        call(self.native, "ev_check_launch_free", None, (ctypes.c_void_p, self.handle))


def call(native: Native, name: str, result: type | None, *arguments: tuple[type, int | None]) -> int:
    """Calls C function `name`; arguments are (ctypes type, value)."""
    prototype = ctypes.CFUNCTYPE(result, *(kind for kind, _ in arguments))
    return prototype(native.address(name))(*(value for _, value in arguments))  # type: ignore[no-any-return]


class _Life:
    """One host thread's share of a launch."""

    def __init__(
        self, runner: Runner, geometry: Geometry, globals_: int, params: int, fuel: int, callback: object, checking: Checking | None
    ) -> None:
        self.room = runner.room()
        self.geometry = geometry
        self.checking = checking
        self.end = End.done
        self.checker = checking.checker(geometry, self.room) if checking else None
        self.block = Block(
            grid=(ctypes.c_uint32 * 3)(*geometry.grid),
            shared=self.room.shared,
            local=self.room.local,
            globals=globals_,
            params=params,
            counters=self.room.counters.ctypes.data,
            checker=self.checker,
            print=callback,
            fuel=fuel,
            dynamic_shared_bytes=geometry.dynamic_shared,
        )

    def launch(
        self,
        address: int,
        shared_next: ctypes.c_uint64,
        count: int,
        order: object,
        stop: ctypes.c_uint32,
        weights: numpy.ndarray,
        works: numpy.ndarray,
    ) -> None:
        """Fills in what the driver reads."""
        geometry = self.geometry
        self._launch = Launch(
            run=address,
            next=ctypes.addressof(shared_next),
            end=count,
            chosen=ctypes.addressof(order) if order is not None else None,  # type: ignore[arg-type]
            grid=(ctypes.c_uint32 * 3)(*geometry.grid),
            threads=geometry.threads,
            warps=geometry.warps,
            warp_bytes=geometry.warp_bytes,
            shared_bytes=geometry.shared,
            dynamic_shared_bytes=geometry.dynamic_shared,
            stop=ctypes.addressof(stop),
            weights=weights.ctypes.data,
            nodes=len(weights),
            works=works.ctypes.data,
            works_end=len(works),
        )

    def go(self, run: Callable[[int, int, int], int]) -> None:
        """Runs blocks until there are none left."""
        self.end = End(run(ctypes.addressof(self._launch), ctypes.addressof(self.block), self.room.warps))

    def fault(self) -> Fault:
        """Why it stopped."""
        x, y, _ = self.geometry.grid
        index = self.block.index
        block = index[0] + x * (index[1] + y * index[2])
        return Fault(self.end, self.block.fault_site, block, self.block.fault_warp, self.block.fault_lanes)

    def accesses(self) -> AccessCounts:
        """What the checker counted."""
        assert self.checking is not None
        return read_counts(call(self.checking.native, "ev_check_counts", ctypes.c_void_p, (ctypes.c_void_p, self.checker)))

    def close(self) -> None:
        """Gives everything back."""
        if self.checking is not None:
            call(self.checking.native, "ev_check_free", None, (ctypes.c_void_p, self.checker))
        self.room.close()


def _in_parallel(works: list[Callable[[], None]]) -> None:
    """Runs all of them at once, the first in this thread."""
    others = [threading.Thread(target=work) for work in works[1:]]
    for thread in others:
        thread.start()
    works[0]()
    for thread in others:
        thread.join()


assert ctypes.sizeof(Warp) % ALIGN == 0
