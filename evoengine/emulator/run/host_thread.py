"""One host thread of a launch: its memory, and the records that the driver works on."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

import numpy

from evoengine.emulator.check.findings import AccessCounts, SiteCounts
from evoengine.emulator.emulator_errors import LaunchRefused
from evoengine.emulator.run.abi import WARP_ALIGN, BlockRecord, LaunchRecord, StopReason
from evoengine.emulator.run.barrier_waits import BarrierWait, barrier_waits
from evoengine.emulator.run.geometry import LaunchGeometry
from evoengine.emulator.run.launch_checker import LaunchChecker
from evoengine.emulator.run.memory import DeviceMemory


@dataclass(frozen=True)
class LaunchFault:
    """Why a launch stopped early."""

    end: StopReason
    site: int
    block: int  # linear index
    warp: int
    lanes: int
    waits: tuple[BarrierWait, ...] = ()  # of a deadlock


class HostThreadMemory:
    """Memory of one host thread: shared memory of a block, local frames of its threads, records of
    its warps.
    """

    def __init__(self, memory: DeviceMemory, geometry: LaunchGeometry, poison: int) -> None:
        """Local memory is filled with the byte `poison`."""
        self._memory = memory
        self.shared = memory.allocate(max(geometry.shared, 1), "shared memory")
        try:
            self.local = memory.allocate(max(geometry.local, 1), "local memory")
        except LaunchRefused:
            memory.free(self.shared)
            raise
        memory.view(self.local, geometry.local)[:] = poison
        self._warps = ctypes.create_string_buffer(geometry.warps * geometry.warp_bytes + WARP_ALIGN)
        self.warps = -(-ctypes.addressof(self._warps) // WARP_ALIGN) * WARP_ALIGN

    def close(self) -> None:
        """Frees the memory."""
        self._memory.free(self.shared)
        self._memory.free(self.local)


class HostThread:
    """One host thread of a launch."""

    def __init__(
        self,
        memory: DeviceMemory,
        geometry: LaunchGeometry,
        launch: LaunchRecord,
        block: BlockRecord,
        launch_checker: LaunchChecker | None,
    ) -> None:
        """`launch` and `block` are filled in except for the fields of this thread."""
        self.end = StopReason.done
        # [basic blocks, 2]: executions by warps, and by lanes
        self.counters = numpy.zeros((launch.nodes, 2), dtype=numpy.int64)
        self._geometry, self._launch, self._block, self._launch_checker = (
            geometry,
            launch,
            block,
            launch_checker,
        )
        self._own_memory = HostThreadMemory(memory, geometry, launch.poison)
        self._checker_handle = 0
        if launch_checker is not None:
            try:
                self._checker_handle = launch_checker.open_thread(
                    geometry, self._own_memory.shared, self._own_memory.local
                )
            except LaunchRefused:
                self._own_memory.close()
                raise
        block.shared, block.local = self._own_memory.shared, self._own_memory.local
        block.counters, block.checker = self.counters.ctypes.data, self._checker_handle

    def run(self, driver: int) -> None:
        """Runs blocks until none are left, without holding the GIL."""
        function = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        )(driver)
        self.end = StopReason(
            function(
                ctypes.addressof(self._launch),
                ctypes.addressof(self._block),
                self._own_memory.warps,
            )
        )

    @property
    def fuel(self) -> int:
        """The loop rounds that are left to it."""
        return int(self._block.fuel)

    def fault(self) -> LaunchFault | None:
        """Why it stopped early; None if it did not."""
        if self.end is StopReason.done:
            return None
        x, y, _ = self._geometry.grid
        index = self._block.index
        number = index[0] + x * (index[1] + y * index[2])
        return LaunchFault(
            self.end,
            self._block.fault_site,
            number,
            self._block.fault_warp,
            self._block.fault_lanes,
            tuple(self._waits()) if self.end is StopReason.deadlock else (),
        )

    def _waits(self) -> Iterator[BarrierWait]:
        geometry = self._geometry
        return barrier_waits(self._own_memory.warps, geometry.warps, geometry.warp_bytes)

    def accesses(self) -> AccessCounts:
        """The accesses that the checker counted; zeros outside checked mode."""
        return (
            self._launch_checker.counts(self._checker_handle)
            if self._launch_checker is not None
            else AccessCounts()
        )

    def site_accesses(self) -> tuple[SiteCounts, ...]:
        """The same for each instruction that accessed memory."""
        return (
            self._launch_checker.site_counts(self._checker_handle)
            if self._launch_checker is not None
            else ()
        )

    def close(self) -> None:
        """Frees everything."""
        if self._launch_checker is not None:
            self._launch_checker.close_thread(self._checker_handle)
        self._own_memory.close()
