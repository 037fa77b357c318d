"""The global and constant variables of a PTX module in device memory."""

from __future__ import annotations

import numpy

from evoengine.emulator.emulator_errors import PtxError
from evoengine.emulator.ptx.syntax import Module, Symbol
from evoengine.emulator.run.memory import DeviceMemory

POINTER_BYTES = 8


class ModuleVariables:
    """All variables of a module in one buffer, at their initial values."""

    def __init__(self, memory: DeviceMemory, module: Module) -> None:
        """Raises LaunchRefused if they do not fit the device, PtxError if an initial value is
        larger than its variable.
        """
        self._memory = memory
        self._variables = [
            item for item in module.variables.values() if item.space in ("global", "const")
        ]
        self.places: dict[str, int] = {}  # offsets in the buffer, in bytes
        end = 0
        for item in self._variables:
            if (
                max([len(item.data), *(offset + POINTER_BYTES for offset, _ in item.addresses)])
                > item.size
                and not item.extern
            ):
                raise PtxError(
                    f"the initial value of {item.name} is larger than its {item.size} bytes"
                )
            end = -(-end // max(1, item.align)) * max(1, item.align)
            self.places[item.name] = end
            end += item.size
        self.bytes = end
        self.address = memory.allocate(max(1, end), "global variables")
        # the rest is zero already; pages that are never touched take no memory of this machine
        self._fill()

    def reset(self) -> None:
        """Resets every variable to its initial value, at another address."""
        self._memory.free(self.address)
        self.address = self._memory.allocate(max(1, self.bytes), "global variables")
        self._fill()

    def _fill(self) -> None:
        view = self._memory.view(self.address, self.bytes)
        for item in self._variables:
            place = self.places[item.name]
            view[place : place + len(item.data)] = numpy.frombuffer(item.data, dtype=numpy.uint8)
            for offset, symbol in item.addresses:
                pointer = (self._address(symbol) & (1 << 64) - 1).to_bytes(POINTER_BYTES, "little")
                view[place + offset : place + offset + POINTER_BYTES] = numpy.frombuffer(
                    pointer, dtype=numpy.uint8
                )

    @property
    def values(self) -> bytes:
        """The current contents of all variables."""
        return self._memory.view(self.address, self.bytes).tobytes()

    @values.setter
    def values(self, kept: bytes) -> None:
        self._memory.view(self.address, self.bytes)[:] = numpy.frombuffer(kept, dtype=numpy.uint8)

    def _address(self, symbol: Symbol) -> int:
        """The address of a variable that another one points to; 0 for any other symbol, such as a
        kernel.
        """
        place = self.places.get(symbol.name)
        return 0 if place is None else self.address + place + symbol.offset

    def close(self) -> None:
        """Frees their memory."""
        self._memory.free(self.address)
