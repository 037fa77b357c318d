"""The registers that a suspended warp saves: those that are live where it resumes, after the fields
of run/abi.py's WarpRecord.

A register has one offset for all barriers, because a warp waits at one of them at a time. A
fragment group, which is kept in memory anyway, stays there permanently if one of its registers is
live while the warp is suspended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evoengine.emulator.analyse.lane_variance import VARYING
from evoengine.emulator.lower.context import LoweringContext
from evoengine.emulator.lower.emitter import LANES
from evoengine.emulator.ptx.syntax import TYPE_BITS
from evoengine.emulator.run.abi import REGISTERS_OFFSET

VECTOR_ALIGN = 64  # of AVX-512
SCALAR_BYTES = 8
WORD_BYTES = 4  # of a lane of a grouped register
# LLVM 22's code generator for AVX2 compares every load with all those that may be moved beside it:
# 500 vectors that nothing keeps apart took it four minutes, and a second with this.
LOADS_AT_A_TIME = 16
KEEP_APART = 'fence syncscope("singlethread") seq_cst'  # no instruction


class SavedRegisters:
    """Where registers are saved in the record of a warp."""

    def __init__(self, cx: LoweringContext, alive: frozenset[str]) -> None:
        """`alive`: registers that may be live while the warp is suspended."""
        self._cx = cx
        self._ir = cx.ir
        self._offsets: dict[str, int] = {}
        self._end = REGISTERS_OFFSET
        self._group_offsets = {
            number: self._allocate(LANES * WORD_BYTES * len(names), VECTOR_ALIGN)
            for number, names in enumerate(cx.fragment_groups)
            if not alive.isdisjoint(names)
        }
        self._resident = frozenset(
            name for number in self._group_offsets for name in cx.fragment_groups[number]
        )

    @property
    def warp_bytes(self) -> int:
        """The size of a warp's record, as a multiple of its alignment."""
        return _aligned(self._end, VECTOR_ALIGN)

    def group_offset(self, number: int) -> int | None:
        """The offset of fragment group `number` in the warp's record; None if it is on the
        stack.
        """
        return self._group_offsets.get(number)

    def save(self, registers: Iterable[str]) -> None:
        """Saves registers to the record; predicates as a bit for each lane."""
        for name in self._to_save(registers):
            value, at = self._as_saved(name), self._at(name)
            self._ir.do(f"store {self._type(name)} {value}, ptr {at}, align {self._align(name)}")

    def restore(self, registers: Iterable[str]) -> None:
        """Restores registers from the record."""
        for count, name in enumerate(self._to_save(registers), 1):
            if count % LOADS_AT_A_TIME == 0:
                self._ir.do(KEEP_APART)
            loaded = self._ir.get(
                f"load {self._type(name)}, ptr {self._at(name)}, align {self._align(name)}"
            )
            if self._is_predicate(name):
                loaded = self._ir.get(
                    f"bitcast i32 {loaded} to <{LANES} x i1>"
                    if self._is_vector(name)
                    else f"trunc i32 {loaded} to i1"
                )
            self._ir.do(f"store {self._cx.slot_type(name)} {loaded}, {self._cx.slot_access(name)}")

    def _to_save(self, registers: Iterable[str]) -> Iterator[str]:
        return (name for name in registers if name not in self._resident)

    def parked(self, number: int) -> str:
        """A pointer to the saved mask of the lanes that are parked before block `number`."""
        key = f" parked {number}"  # not the name of a register: it has blanks
        if key not in self._offsets:
            self._offsets[key] = self._allocate(SCALAR_BYTES, SCALAR_BYTES)
        return self._ir.get(f"getelementptr i8, ptr %warp, i64 {self._offsets[key]}")

    def _is_predicate(self, name: str) -> bool:
        return self._cx.registers[name] == "pred"

    def _is_vector(self, name: str) -> bool:
        return self._cx.variance(name) is VARYING

    def _type(self, name: str) -> str:
        return "i32" if self._is_predicate(name) else self._cx.slot_type(name)

    def _align(self, name: str) -> int:
        return VECTOR_ALIGN if self._is_vector(name) and not self._is_predicate(name) else 4

    def _as_saved(self, name: str) -> str:
        value = self._ir.get(f"load {self._cx.slot_type(name)}, {self._cx.slot_access(name)}")
        if not self._is_predicate(name):
            return value
        return self._ir.get(
            f"bitcast <{LANES} x i1> {value} to i32"
            if self._is_vector(name)
            else f"zext i1 {value} to i32"
        )

    def _at(self, name: str) -> str:
        if name not in self._offsets:
            wide = self._is_vector(name) and not self._is_predicate(name)
            size = TYPE_BITS[self._cx.registers[name]] // 8
            self._offsets[name] = (
                self._allocate(LANES * size, VECTOR_ALIGN)
                if wide
                else self._allocate(max(SCALAR_BYTES, size), SCALAR_BYTES)
            )
        return self._ir.get(f"getelementptr i8, ptr %warp, i64 {self._offsets[name]}")

    def _allocate(self, size: int, align: int) -> int:
        start = _aligned(self._end, align)
        self._end = start + size
        return start


def _aligned(size: int, align: int) -> int:
    return -(-size // align) * align
