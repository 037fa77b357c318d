"""The handler of every instruction that can be lowered, by opcode."""

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
    checker_calls,
    compare,
    convert,
    extended_precision,
    floats,
    load_store,
    logic,
    matrix,
    matrix_memory,
    trap,
    warp,
)
from evoengine.emulator.lower.context import LoweringContext
from evoengine.emulator.ptx.syntax import Instruction

FAMILIES = (
    address,
    approximate,
    arithmetic,
    async_copy,
    atomic,
    bits,
    call,
    extended_precision,
    checker_calls,
    compare,
    trap,
    convert,
    floats,
    logic,
    matrix,
    load_store,
    matrix_memory,
    warp,
)

HANDLERS: dict[str, Callable[[LoweringContext, Instruction], None]] = {
    name: handler for family in FAMILIES for name, handler in family.HANDLERS.items()
}
