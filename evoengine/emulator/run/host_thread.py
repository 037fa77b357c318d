"""One host thread's share of a launch: its memory, and the structures that the driver works on."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy

from evoengine.emulator.check.findings import AccessCounts
from evoengine.emulator.emulator_errors import LaunchRefused
from evoengine.emulator.run.abi import WARP_ALIGN, BlockRecord, End, LaunchRecord
from evoengine.emulator.run.geometry import Geometry
from evoengine.emulator.run.launch_checker import Checking
from evoengine.emulator.run.memory import DeviceMemory

FRAME_POISON = 0xFF  # NaN, so that what was never written shows


@dataclass(frozen=True)
class Fault:
    """Why a launch ended early."""

    end: End
    site: int
    block: int  # linear index
    warp: int
    lanes: int


class Room:
    """Memory of one host thread: shared memory of a block, frames of its threads, state of its
    warps.
    """

    def __init__(self, memory: DeviceMemory, geometry: Geometry) -> None:
        self._memory = memory
        self.shared = memory.allocate(max(geometry.shared, 1), "shared memory")
        try:
            self.local = memory.allocate(max(geometry.local, 1), "local memory")
        except LaunchRefused:
            memory.free(self.shared)
            raise
        memory.view(self.local, geometry.local)[:] = FRAME_POISON
        self._warps = ctypes.create_string_buffer(geometry.warps * geometry.warp_bytes + WARP_ALIGN)
        self.warps = -(-ctypes.addressof(self._warps) // WARP_ALIGN) * WARP_ALIGN

    def close(self) -> None:
        """Gives the memory back."""
        self._memory.free(self.shared)
        self._memory.free(self.local)


class HostThread:
    """What one host thread does of a launch."""

    def __init__(
        self,
        memory: DeviceMemory,
        geometry: Geometry,
        launch: LaunchRecord,
        block: BlockRecord,
        checking: Checking | None,
    ) -> None:
        """`launch` and `block` are filled in but for what is this thread's own."""
        self.end = End.done
        # of each block of the flow: warps, lanes
        self.counters = numpy.zeros((launch.nodes, 2), dtype=numpy.int64)
        self._geometry, self._launch, self._block, self._checking = (
            geometry,
            launch,
            block,
            checking,
        )
        self._room = Room(memory, geometry)
        self._checker = 0
        if checking is not None:
            try:
                self._checker = checking.open(geometry, self._room.shared, self._room.local)
            except LaunchRefused:
                self._room.close()
                raise
        block.shared, block.local = self._room.shared, self._room.local
        block.counters, block.checker = self.counters.ctypes.data, self._checker

    def run(self, driver: int) -> None:
        """Runs blocks until there are none left; the interpreter's lock is not held."""
        function = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        )(driver)
        self.end = End(
            function(
                ctypes.addressof(self._launch), ctypes.addressof(self._block), self._room.warps
            )
        )

    def fault(self) -> Fault | None:
        """Why it stopped before the end."""
        if self.end is End.done:
            return None
        x, y, _ = self._geometry.grid
        index = self._block.index
        number = index[0] + x * (index[1] + y * index[2])
        return Fault(
            self.end,
            self._block.fault_site,
            number,
            self._block.fault_warp,
            self._block.fault_lanes,
        )

    def accesses(self) -> AccessCounts:
        """What the checker counted; nothing outside checked mode."""
        return (
            self._checking.counts(self._checker) if self._checking is not None else AccessCounts()
        )

    def close(self) -> None:
        """Gives everything back."""
        if self._checking is not None:
            self._checking.shut(self._checker)
        self._room.close()
