"""An access beyond the end of a buffer says which element of its tensor that would be."""

from __future__ import annotations

import pytest

from evoengine.emulator.check.buffer_shape import BufferShape
from evoengine.emulator.device import Checks
from tests.emulator.lower.small_kernels import emulator, kernel


@pytest.mark.parametrize(
    ("extents", "element_bytes", "offset", "said"),
    [
        ((100,), 4, 400, "element 100 of 100"),
        ((64, 70), 2, 64 * 140, "row 64, column 0 of 64 x 70, or column 70 of the last row"),
        ((64, 70), 2, 64 * 140 + 7, "row 64, column 3 of 64 x 70, or column 73 of the last row"),
        ((64, 70), 2, 65 * 140 + 2, "row 65, column 1 of 64 x 70"),
        ((2, 32, 70), 2, 64 * 140, "row 64, column 0 of 64 x 70, or column 70 of the last row"),
        ((0, 70), 2, 0, "element 0 of 0"),
    ],
)
def test_the_element_is_named(
    extents: tuple[int, ...], element_bytes: int, offset: int, said: str
) -> None:
    assert BufferShape(extents, element_bytes).beyond(offset) == said


@pytest.mark.parametrize(("operation", "does"), [("st", "writes"), ("ld", "reads")])
def test_a_finding_says_what_was_done_to_which_element(operation: str, does: str) -> None:
    operands = {"st": "[%rd0+5600], %r1", "ld": "%r1, [%rd0+5600]"}[operation]
    device = emulator()
    shape = BufferShape((20, 70), 4)
    address = device.memory.allocate(5600, "out", shape=shape)
    program = device.load(kernel(f"{operation}.global.u32 {operands};", arrays=1))
    try:
        report = program.launch(
            "k",
            grid=(1, 1, 1),
            block=(1, 1, 1),
            args=[address.to_bytes(8, "little")],
            checks=Checks(),
        )
    finally:
        device.memory.free(address)
        program.close()
    said = report.describe(report.findings[0])
    assert said.startswith(f"out of bounds: thread 0 {does} 4 bytes at out+5600 at ")
    assert "4 bytes beyond its end: row 20, column 0 of 20 x 70, or column 70 of the last" in said
