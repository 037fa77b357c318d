"""Counts of a kernel's instructions by kind, width and loop, from its cubin alone."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Sequence

from evoengine.evaluate.compile import cubin, opcodes
from evoengine.evaluate.compile.machine_loops import Word, in_loops
from evoengine.records import MachineCode

_INSTRUCTION = struct.Struct("<QQ")
_TEXT = ".text."
# Finding loops takes some 30 us an instruction; kernels with more have loops that are not known.
MOST_FOR_LOOPS = 100_000

_ACCESSES = {
    opcodes.LD: "global load",
    opcodes.LDG: "global load",
    opcodes.ST: "global store",
    opcodes.STG: "global store",
    opcodes.LDGSTS: "asynchronous copy",
    opcodes.LDL: "local load",
    opcodes.STL: "local store",
    opcodes.LDS: "shared load",
    opcodes.STS: "shared store",
    opcodes.LDSM: "ldmatrix",
    opcodes.STSM: "stmatrix",
}


def counted(machine_code: bytes, kernels: Iterable[str], arch: str) -> dict[str, MachineCode]:
    """The counts of each kernel by its name in the cubin; raises ValueError unless `machine_code`
    is a whole cubin.
    """
    found = cubin.contents(machine_code, _TEXT)
    number = re.search(r"\d+", arch)
    compute = int(number[0]) if number else 0
    return {
        kernel: _counts(list(_INSTRUCTION.iter_unpack(_whole(code))), compute)
        for kernel in kernels
        if (code := found.get(f"{_TEXT}{kernel}")) is not None
    }


def _whole(code: bytes) -> bytes:
    return code[: len(code) // _INSTRUCTION.size * _INSTRUCTION.size]


def _counts(words: Sequence[Word], compute: int) -> MachineCode:
    loops = in_loops(words, compute) if len(words) <= MOST_FOR_LOOPS else None
    real = [number for number, (low, _) in enumerate(words) if low & 0x1FF != opcodes.NOP]
    all_words = [words[number] for number in real]
    looped = [words[number] for number in real if loops and number in loops]
    return MachineCode(
        instructions=len(real),
        kinds=_kinds(all_words, compute),
        loop_kinds=_kinds(looped, compute),
        loops_known=loops is not None,
        accesses=_accesses(all_words, compute),
        loop_accesses=_accesses(looped, compute),
        tensor_shapes=_shapes(all_words, compute),
        loop_integer_divisions=sum(opcodes.divides_integers(*word) for word in looped),
        loop_float_divisions=sum(low & 0x1FF == opcodes.FCHK for low, _ in looped),
        loop_barriers=sum(low & 0x1FF == opcodes.BAR for low, _ in looped),
    )


def _kinds(words: Sequence[Word], compute: int) -> tuple[tuple[str, int], ...]:
    found = Counter(opcodes.kind_of(low & 0x1FF, compute) for low, _ in words)
    return tuple((kind, found[kind]) for kind in opcodes.KINDS if found[kind])


def _accesses(words: Sequence[Word], compute: int) -> tuple[tuple[str, int, int], ...]:
    found = Counter(
        (name, opcodes.access_bytes(low, high, compute))
        for low, high in words
        if (name := _ACCESSES.get(low & 0x1FF))
    )
    return tuple((name, size, found[name, size]) for name, size in sorted(found))


def _shapes(words: Sequence[Word], compute: int) -> tuple[tuple[str, int], ...]:
    found = Counter(
        opcodes.tensor_shape(low, high)
        for low, high in words
        if opcodes.kind_of(low & 0x1FF, compute) == "tensor"
    )
    return tuple(sorted(found.items()))
