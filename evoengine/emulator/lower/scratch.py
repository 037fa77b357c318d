"""Passes vectors to C functions and back through memory on the stack, because these take pointers
to lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from evoengine.emulator.lower.emitter import LANES, Emitter, integer

# the most that one instruction needs: the fragments of a matrix product, and addresses
SCRATCH_BYTES = 16384
SLOT_BYTES = LANES * 8  # lanes of up to 64 bits


class Scratch:
    """The stack buffer `%scratch` of the function under construction."""

    def __init__(self, ir: Emitter) -> None:
        self.ir = ir

    def lanes(self, slot: int, bits: int, text: str | None = None) -> str:
        """A pointer to scratch slot `slot` (256 bytes each: 32 lanes of up to 64 bits); `text` is
        stored there first.
        """
        _within(slot * SLOT_BYTES, SLOT_BYTES)
        pointer = self.ir.get(f"getelementptr i8, ptr %scratch, i64 {slot * SLOT_BYTES}")
        if text is not None:
            self.ir.do(f"store {integer(bits, True)} {text}, ptr {pointer}, align 64")
        return pointer

    def from_lanes(self, pointer: str, bits: int) -> str:
        """The <32 x i`bits`> that C code stored at `pointer`."""
        return self.ir.get(f"load {integer(bits, True)}, ptr {pointer}, align 64")

    def rows(self, offset: int, bits: int, vectors: Sequence[str]) -> str:
        """A pointer to byte `offset` of the scratch, where `vectors` of <32 x i`bits`> are stored
        contiguously.
        """
        _within(offset, len(vectors) * LANES * bits // 8)
        pointer = self.ir.get(f"getelementptr i8, ptr %scratch, i64 {offset}")
        for place, text in enumerate(vectors):
            at = (
                self.ir.get(
                    f"getelementptr i8, ptr %scratch, i64 {offset + place * LANES * bits // 8}"
                )
                if place
                else pointer
            )
            self.ir.do(f"store {integer(bits, True)} {text}, ptr {at}, align 64")
        return pointer

    def from_rows(self, pointer: str, bits: int, count: int) -> list[str]:
        """The `count` vectors of <32 x i`bits`> that C code stored contiguously at `pointer`."""
        step = LANES * bits // 8
        places = [
            self.ir.get(f"getelementptr i8, ptr {pointer}, i64 {step * place}")
            if place
            else pointer
            for place in range(count)
        ]
        return [self.from_lanes(place, bits) for place in places]

    def call_lanes(
        self,
        name: str,
        arguments: Sequence[tuple[int, str]],
        results: Sequence[int],
        *also: tuple[str, str],
    ) -> list[str]:
        """C function `name`(lanes of each argument..., lanes of each result..., also...): the
        results as vectors.

        `arguments` are (bits, <32 x i`bits`>), `results` are bits.
        """
        pointers = [self.lanes(slot, bits, text) for slot, (bits, text) in enumerate(arguments)]
        outs = [self.lanes(len(pointers) + slot, bits) for slot, bits in enumerate(results)]
        self.ir.call("void", name, *(("ptr", pointer) for pointer in [*pointers, *outs]), *also)
        return [self.from_lanes(pointer, bits) for pointer, bits in zip(outs, results, strict=True)]


def _within(offset: int, size: int) -> None:
    """Raises ValueError, which becomes Unsupported for the instruction, unless the range lies in
    the scratch.
    """
    if not 0 <= offset <= SCRATCH_BYTES - size:
        raise ValueError(
            f"{size} bytes at {offset} of {SCRATCH_BYTES}: more operands than an instruction has"
        )
