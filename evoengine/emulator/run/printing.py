"""Device printf: formats in C's way, arguments from the buffer that the compiler lays out."""

from __future__ import annotations

import ctypes
import re
import struct

from evoengine.emulator.run.memory import DeviceMemory

LIMIT_CHARACTERS = 64 * 1024  # what a launch may print
LIMIT_STRING = 4096
_CONVERSION = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\d+|\*)?(?:\.(?P<precision>\d+|\*))?(?P<size>hh|h|ll|l|z|j|t|L)?(?P<kind>[diouxXcsfFeEgGaAp%])")


class Printer:
    """Collects what the threads of a launch print."""

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._parts: list[str] = []
        self._left = LIMIT_CHARACTERS

    @property
    def text(self) -> str:
        """All of it, in the order of printing."""
        return "".join(self._parts)

    def print(self, mask: int, formats: int, arguments: int, kind: int) -> None:
        """One vprintf of a warp (kind 0): addresses of 32 formats and 32 argument buffers; kind 1 is a failed assertion's text.

        How many arguments a lane's format took replaces the address of its buffer: CUDA's printf gives that, and -1 where
        nothing more can be printed.
        """
        for lane in range(32):
            if not mask >> lane & 1:
                continue
            place = arguments + 8 * lane
            text, buffer, count = self._string(self._word(formats + 8 * lane)), self._word(place), -1
            if self._left > 0:
                text, count = self._formatted(text, buffer) if kind == 0 else (f"assertion `{text}` failed\n", 0)
                self._add(text)
            ctypes.c_int64.from_address(place).value = count

    def _add(self, text: str) -> None:
        self._parts.append(text[: self._left])
        self._left -= len(text)

    @staticmethod
    def _word(address: int) -> int:
        return int(ctypes.c_uint64.from_address(address).value)

    def _inside(self, address: int, size: int) -> bool:
        """Whether these bytes are in a buffer: an address of a kernel is no reason to believe it."""
        return any(item.address <= address and address + size <= item.address + item.bytes for item in self._memory.buffers.values())

    def _string(self, address: int) -> str:
        found = bytearray()
        while len(found) < LIMIT_STRING and self._inside(address + len(found), 1):
            byte = int(self._memory.view(address + len(found), 1)[0])
            if not byte:
                break
            found.append(byte)
        return found.decode(errors="replace")

    def _formatted(self, format_: str, buffer: int) -> tuple[str, int]:
        """The text, and how many arguments are in it."""
        place = count = 0

        def take(size: int) -> bytes:
            nonlocal place, count
            count += 1
            place = -(-place // size) * size
            start, place = buffer + place, place + size
            return self._memory.view(start, size).tobytes() if self._inside(start, size) else bytes(size)

        return _CONVERSION.sub(lambda match: self._converted(match, take), format_), count

    def _converted(self, match: re.Match[str], take) -> str:  # type: ignore[no-untyped-def]  # Callable[[int], bytes]
        kind = match["kind"]
        if kind == "%":
            return "%"
        width, precision = (self._number(match[name], take) for name in ("width", "precision"))
        spec = "%" + match["flags"] + width + (f".{precision}" if match["precision"] is not None else "")
        if kind in "fFeEgGaA":
            return (spec + kind.replace("a", "e").replace("A", "E")) % struct.unpack("<d", take(8))
        if kind == "s":
            return (spec + "s") % self._string(struct.unpack("<Q", take(8))[0])
        if kind == "p":
            return f"0x{struct.unpack('<Q', take(8))[0]:x}"
        long = match["size"] in ("l", "ll", "z", "j", "t")
        signed = kind in "dic"
        (number,) = struct.unpack("<" + ("q" if signed else "Q") if long else "<" + ("i" if signed else "I"), take(8 if long else 4))
        if kind == "c":
            return (spec + "c") % (number & 0xFF)
        return (spec + kind.replace("i", "d").replace("u", "d")) % number

    @staticmethod
    def _number(text: str | None, take) -> str:  # type: ignore[no-untyped-def]  # Callable[[int], bytes]
        if text == "*":
            return str(struct.unpack("<i", take(4))[0])
        return text or ""
