"""Every instruction that can be lowered, by its name."""

from __future__ import annotations

from collections.abc import Callable

from evoengine.emulator.lower import (
    address,
    approximate,
    arithmetic,
    async_copy,
    atomic,
    bits,
    call,
    carry,
    checking,
    compare,
    control,
    convert,
    floats,
    logic,
    matrix,
    memory,
    tiles,
    warp,
)
from evoengine.emulator.lower.context import Context
from evoengine.emulator.ptx.program import Instruction

FAMILIES = (
    address,
    approximate,
    arithmetic,
    async_copy,
    atomic,
    bits,
    call,
    carry,
    checking,
    compare,
    control,
    convert,
    floats,
    logic,
    matrix,
    memory,
    tiles,
    warp,
)

HANDLERS: dict[str, Callable[[Context, Instruction], None]] = {
    name: handler for family in FAMILIES for name, handler in family.HANDLERS.items()
}
