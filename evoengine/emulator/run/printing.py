"""Device printf: C's formats, with arguments from the buffer that the compiler lays out.

On a GPU a launch prints into a buffer of fixed size, and output that does not fit is lost at no
cost to the host. The same here: the first prints are kept, and after them printf prints nothing.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable

from evoengine.emulator.run.memory import DeviceMemory

LIMIT_CHARACTERS = 64 * 1024  # limit of a launch's output; more than a verdict shows
# minimum cost of a lane's printf, and of each of its arguments
RECORD_CHARACTERS, ARGUMENT_CHARACTERS = (
    16,
    8,
)
LIMIT_STRING = 4096
LIMIT_WIDTH = 4096  # of one conversion, also of its precision
PRINTF = 0  # kinds of output; lower/call.py has the same
_CONVERSION = re.compile(
    r"%(?P<flags>[-+"
    r" #0]*)(?P<width>\d+|\*)?(?:\.(?P<precision>\d+|\*)?(?P<point>))?(?P<size>hh|h|ll|l|z|j|t|L)?"
    r"(?P<kind>[diouxXcsfFeEgGaAp%])"
)
# format letters of `struct`; others are "i"
_INTEGERS = {
    "hh": "b",
    "h": "h",
    "l": "q",
    "ll": "q",
    "z": "q",
    "j": "q",
    "t": "q",
}

Take = Callable[[int], bytes]  # size -> bytes of the next argument


class DevicePrinter:
    """Collects what the threads of a launch print."""

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._parts: list[str] = []
        self._left = LIMIT_CHARACTERS

    @property
    def text(self) -> str:
        """All output, in the order of printing."""
        return "".join(self._parts)

    def print(self, mask: int, formats: int, arguments: int, kind: int) -> bool:
        """One vprintf of a warp (kind 0): addresses of 32 formats and 32 argument buffers; kind 1
        is a failed assertion's text.

        The number of arguments that a lane's format took replaces the address of its buffer, as the
        result of CUDA's printf, and -1 if nothing more can be printed. Returns whether anything
        more can be printed.
        """
        if kind != PRINTF:
            self._fail(_read_u64(formats + 8 * ((mask & -mask).bit_length() - 1)))
            return self._left > 0
        for lane in range(32):
            if mask >> lane & 1:
                place = arguments + 8 * lane
                ctypes.c_int64.from_address(place).value = self._print(
                    _read_u64(formats + 8 * lane), _read_u64(place)
                )
        return self._left > 0

    def _print(self, format_: int, buffer: int) -> int:
        """One lane's printf: the number of arguments it took, -1 if the limit is reached."""
        if self._left <= 0:
            return -1
        text, count = self._formatted(self._string(format_), buffer)
        self._parts.append(text[: self._left])
        self._left -= max(len(text), RECORD_CHARACTERS + ARGUMENT_CHARACTERS * count)
        return count

    def _fail(self, message: int) -> None:
        """Prints a failed assertion, whatever was printed before, because it ends the launch."""
        self._parts.append(f"assertion `{self._string(message)}` failed\n")

    def _bytes_from(self, address: int) -> int:
        """How many bytes of a buffer follow from `address` on; 0 outside of buffers, because a
        kernel's pointer is not to be trusted.
        """
        ends = (
            item.address + item.bytes
            for item in self._memory.buffers.values()
            if item.address <= address
        )
        return next((end - address for end in ends if address < end), 0)

    def _string(self, address: int) -> str:
        """The text up to its zero, the end of its buffer, or LIMIT_STRING bytes."""
        available = min(LIMIT_STRING, self._bytes_from(address))
        found = ctypes.string_at(address, available) if available else b""
        return found.partition(b"\0")[0].decode(errors="replace")

    def _formatted(self, format_: str, buffer: int) -> tuple[str, int]:
        """The formatted text, and the number of arguments in it."""
        place = count = 0

        def take(size: int) -> bytes:
            nonlocal place, count
            count += 1
            place = -(-place // size) * size
            start, place = buffer + place, place + size
            return ctypes.string_at(start, size) if self._bytes_from(start) >= size else bytes(size)

        return _CONVERSION.sub(lambda match: self._converted(match, take), format_), count

    def _converted(self, match: re.Match[str], take: Take) -> str:
        """One conversion; the precision of %a is ignored."""
        kind = match["kind"]
        if kind == "%":
            return "%"
        flags, width = match["flags"], _number(match["width"], take)
        if width is not None and width < 0:  # C: a negative width given by * is the flag -
            flags, width = flags + "-", -width
        precision = (
            _number(match["precision"], take) if match["point"] is None or match["precision"] else 0
        )
        spec = "%" + flags + _limited(width)
        if precision is not None and precision >= 0:
            spec += "." + _limited(precision)
        if kind in "fFeEgG":
            return str((spec + kind) % struct.unpack("<d", take(8)))
        if kind in "aA":
            text = _hexadecimal(struct.unpack("<d", take(8))[0])
            return str(f"%{flags}{_limited(width)}s" % (text.upper() if kind == "A" else text))
        if kind in "sp":
            (address,) = struct.unpack("<Q", take(8))
            return str((spec + "s") % (self._string(address) if kind == "s" else f"0x{address:x}"))
        return _integer(spec, kind, match["size"], take)


def _read_u64(address: int) -> int:
    return int(ctypes.c_uint64.from_address(address).value)


def _number(text: str | None, take: Take) -> int | None:
    """A width or precision: as written, or the next argument."""
    if text == "*":
        return int(struct.unpack("<i", take(4))[0])
    return int(text) if text else None


def _limited(number: int | None) -> str:
    return "" if number is None else str(min(number, LIMIT_WIDTH))


def _integer(spec: str, kind: str, size: str | None, take: Take) -> str:
    """An argument of 4 bytes, or 8 for l, ll, z and j; for hh and h the low bytes count."""
    letter = _INTEGERS.get(size or "", "i")
    data = take(8 if letter == "q" else 4)[: struct.calcsize(letter)]
    (number,) = struct.unpack("<" + (letter if kind in "di" else letter.upper()), data)
    if kind == "c":
        return str((spec + "c") % chr(number & 0xFF))
    return str((spec + kind.replace("i", "d").replace("u", "d")) % number)


def _hexadecimal(value: float) -> str:
    """A float as by C's %a: without trailing zeros of the fraction."""
    mantissa, mark, exponent = value.hex().partition("p")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + mark + exponent
