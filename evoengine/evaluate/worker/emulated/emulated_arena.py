"""Buffers in the emulator's memory as tensors, each at a random place between its red zones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy
import torch

from evoengine.candidate.binding import Fill
from evoengine.emulator.check.buffer_shape import BufferShape
from evoengine.emulator.device import Emulator
from evoengine.emulator.emulator_errors import EmulatorError
from evoengine.evaluate.worker.arena import Arena, Layout
from evoengine.evaluate.worker.candidate_failures import CannotLaunch
from evoengine.evaluate.worker.emulated.emulated_program import failure_of

SPARE_BYTES = 1 << 30  # left for comparisons, the JIT and the rest of the machine


class EmulatedArena(Arena):
    """The buffers of one call; leaving the `with` block frees them, and their tensors must not be
    used after it.
    """

    def __init__(self, layout: Layout, emulator: Emulator) -> None:
        """The contents of all buffers are undefined. Raises CannotLaunch where the device, or this
        machine, has too little memory.
        """
        self._memory = emulator.memory
        self._flat: dict[str, torch.Tensor] = {}
        sizes = {name: math.prod(shape) * dtype.itemsize for name, (dtype, shape) in layout.items()}
        free = available_bytes() + self._memory.kept_bytes
        if sum(sizes.values()) > free - SPARE_BYTES:
            raise CannotLaunch(
                f"buffers of {sum(sizes.values())} bytes do not fit into this machine's memory, of"
                f" which {free} are free"
            )
        try:
            for name, size in sizes.items():
                dtype, shape = layout[name]
                address = self._memory.allocate(
                    size, name, zeroed=False, shape=BufferShape(tuple(shape), dtype.itemsize)
                )
                self._flat[name] = torch.from_numpy(self._memory.view(address, size))
        except EmulatorError as error:
            self.free()
            raise failure_of(error) from None
        self.tensors = {
            name: self._flat[name].view(dtype).view(shape)
            for name, (dtype, shape) in layout.items()
        }

    @property
    def pointers(self) -> dict[str, int]:
        """The device address of each buffer by name."""
        return {name: self.pointer(name) for name in self.tensors}

    def differs(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """As Arena.differs; numpy compares without threads, in 8-byte words, four times as fast."""
        return torch.tensor(not numpy.array_equal(_words(self._flat[name]), _words(value)))

    def guards_broken(self) -> torch.Tensor:
        """Whether any byte of a red zone changed; a bool tensor of shape () on the host."""
        return torch.tensor(
            any(self._memory.red_zones_broken(flat.data_ptr()) for flat in self._flat.values())
        )

    def begin(self, fills: Sequence[Fill]) -> None:
        """Fills buffers with what they hold before the launches of a call."""
        for fill in fills:
            if fill.source:
                self._flat[fill.buffer].copy_(self._flat[fill.source])
            else:
                element = torch.tensor(list(bytes.fromhex(fill.element)), dtype=torch.uint8)
                self._flat[fill.buffer].view(-1, len(element)).copy_(element)

    def free(self) -> None:
        """Frees all buffers."""
        for flat in self._flat.values():
            self._memory.free(flat.data_ptr())
        self._flat.clear()

    def _span(self, name: str) -> torch.Tensor:
        return self._flat[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.free()


def _words(value: torch.Tensor) -> numpy.ndarray[Any, Any]:
    """The bytes of a contiguous tensor, flat: uint64 where 8 divides their number, else uint8."""
    array = value.view(-1).view(torch.uint8).numpy()
    return array.view(numpy.uint64) if array.size % 8 == 0 else array


def available_bytes() -> int:
    """The memory that is available without swapping, in bytes, as Linux estimates it."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/meminfo has no MemAvailable")
