"""Device printf behaves as C's, for any format."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evoengine.emulator.lower.call import ASSERTION
from evoengine.emulator.run.memory import DeviceMemory
from evoengine.emulator.run.printing import (
    LIMIT_CHARACTERS,
    LIMIT_STRING,
    LIMIT_WIDTH,
    PRINTF,
    RECORD_CHARACTERS,
    DevicePrinter,
)


@pytest.fixture
def memory() -> Iterator[DeviceMemory]:
    memory = DeviceMemory(1 << 20)
    yield memory
    memory.close()


def placed(memory: DeviceMemory, data: bytes) -> int:
    address = memory.allocate(max(1, len(data)))
    memory.view(address, len(data))[:] = np.frombuffer(data, dtype=np.uint8)
    return address


def printed(
    memory: DeviceMemory, format_: str | bytes, *arguments: bytes, times: int = 1
) -> tuple[str, int]:
    """The output of lane 3, and the result of its printf."""
    printer = DevicePrinter(memory)
    text, buffer = (
        placed(memory, (format_ if isinstance(format_, bytes) else format_.encode()) + b"\0"),
        placed(memory, b"".join(arguments)),
    )
    formats, places = (ctypes.c_uint64 * 32)(*[text] * 32), (ctypes.c_uint64 * 32)(*[buffer] * 32)
    for _ in range(times):
        places[3] = buffer
        printer.print(1 << 3, ctypes.addressof(formats), ctypes.addressof(places), 0)
    return printer.text, ctypes.c_int64(places[3]).value


def test_conversions_are_those_of_c(memory: DeviceMemory) -> None:
    long, real = struct.pack("<q", -5), struct.pack("<d", 0.1)
    word = struct.pack("<i", -7)
    for format_, argument, expected in [
        ("%d|", word, "-7|"),
        ("%5d|", word, "   -7|"),
        ("%-5d|", word, "-7   |"),
        ("%05i", word, "-0007"),
        ("%+.3d", struct.pack("<i", 7), "+007"),
        ("%u", word, "4294967289"),
        ("%x", word, "fffffff9"),
        ("%#X", struct.pack("<i", 255), "0XFF"),
        ("%c", struct.pack("<i", 65), "A"),
        ("%lld", long, "-5"),
        ("%lu", long, "18446744073709551611"),
        ("%zu", struct.pack("<q", 9), "9"),
        ("%hhd", struct.pack("<i", 511), "-1"),
        ("%hu", struct.pack("<i", 65537), "1"),
        ("%f", real, "0.100000"),
        ("%.1e", real, "1.0e-01"),
        ("%g", real, "0.1"),
        ("%8.3f|", real, "   0.100|"),
        ("%a", struct.pack("<d", 1.5), "0x1.8p+0"),
        ("%a", struct.pack("<d", 1.0), "0x1p+0"),
        ("%.f", struct.pack("<d", 2.5), "2"),
        ("%p", struct.pack("<Q", 255), "0xff"),
        ("100%%", b"", "100%"),
        ("%k", b"", "%k"),
    ]:
        assert printed(memory, format_, argument)[0] == expected, format_


def test_printf_returns_the_number_of_arguments(memory: DeviceMemory) -> None:
    assert printed(memory, "%d %d\n", struct.pack("<ii", 1, 2)) == ("1 2\n", 2)
    assert printed(memory, "%*.*f", struct.pack("<iid", 7, 2, 3.14159)) == ("   3.14", 3)


def test_a_width_below_zero_is_to_the_left_and_a_precision_below_zero_is_none(
    memory: DeviceMemory,
) -> None:
    assert printed(memory, "%*d|", struct.pack("<ii", -4, 7))[0] == "7   |"
    assert printed(memory, "%.*d|", struct.pack("<ii", -4, 7))[0] == "7|"


@pytest.mark.parametrize(
    "format_",
    [
        "%2147483647d",
        "%.2147483647f",
        "%99999999999999999999s",
        "%*.*g",
        "%.2147483647x",
        "%-0+ #2147483647.2147483647a",
    ],
)
def test_huge_widths_are_limited(memory: DeviceMemory, format_: str) -> None:
    text, _ = printed(memory, format_, struct.pack("<iiqqq", 2**31 - 1, 2**31 - 1, 1, 1, 1))
    assert len(text) <= LIMIT_WIDTH + 400  # the digits before the point of the largest f64


def test_strings_and_arguments_beyond_any_buffer_are_empty(memory: DeviceMemory) -> None:
    assert printed(memory, "<%s>", struct.pack("<Q", 12345)) == ("<>", 1)
    assert printed(memory, "%d %lld %f") == ("0 0 0.000000", 3)


def test_the_output_of_a_launch_is_limited(memory: DeviceMemory) -> None:
    text, count = printed(memory, "0123456789" * 10, times=700)
    assert len(text) == LIMIT_CHARACTERS and count == -1


def test_empty_prints_count_as_well(memory: DeviceMemory) -> None:
    most = LIMIT_CHARACTERS // RECORD_CHARACTERS
    assert printed(memory, "", times=most) == ("", 0)
    assert printed(memory, "", times=most + 1) == ("", -1)


def test_a_string_without_an_end_stops_at_the_limit_or_where_its_buffer_does(
    memory: DeviceMemory,
) -> None:
    long, short = placed(memory, b"a" * 2 * LIMIT_STRING), placed(memory, b"bcd")
    assert printed(memory, "%s", struct.pack("<Q", long))[0] == "a" * LIMIT_STRING
    assert printed(memory, "%s", struct.pack("<Q", short))[0] == "bcd"
    assert printed(memory, "%s", struct.pack("<Q", short + 3))[0] == ""


def test_a_failed_assertion_is_printed_beyond_the_limit(memory: DeviceMemory) -> None:
    printer, text, room = (
        DevicePrinter(memory),
        placed(memory, b"x > 0\0"),
        placed(memory, b"a" * LIMIT_STRING + b"\0"),
    )
    lanes, places = (ctypes.c_uint64 * 32)(*[room] * 32), (ctypes.c_uint64 * 32)()
    assert not printer.print(~0, ctypes.addressof(lanes), ctypes.addressof(places), PRINTF)
    lanes[3] = text
    printer.print(1 << 3, ctypes.addressof(lanes), ctypes.addressof(places), ASSERTION)
    assert printer.text.endswith("assertion `x > 0` failed\n")


@given(
    format_=st.one_of(
        st.binary(max_size=40),
        st.text("%-+ #0123456789*.hlzjtLdiouxXcsfFeEgGaApn", max_size=40).map(str.encode),
    ),
    arguments=st.binary(max_size=80),
)
def test_no_format_and_no_arguments_raise_anything(format_: bytes, arguments: bytes) -> None:
    memory = DeviceMemory(1 << 20)
    try:
        text, count = printed(memory, format_, arguments)
        assert 0 <= count <= 40 and len(text) <= LIMIT_CHARACTERS
    finally:
        memory.close()
