"""The number formats that the instructions of a cubin convert or multiply.

An instruction of sm_70 and later has 128 bits. The lowest 9 are its opcode, the next 3 say what
kind of operands it has; bits 64 to 95 hold its modifiers. The patterns below were read from
kernels that NVRTC 13.0 compiled for sm_80, sm_89, sm_90a, sm_100a and sm_120a from one PTX
instruction each, beside what nvdisasm prints for them.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from evoengine.evaluate.compile import cubin
from evoengine.task.instruction_formats import in_order

_INSTRUCTION = struct.Struct("<QQ")
_OPCODE = 0x1FF
_TEXT = ".text."


class _Pattern(NamedTuple):
    """An instruction on `name` has this opcode, and `modifiers` under `mask` in bits 64 to 95."""

    opcode: int
    mask: int
    modifiers: int
    name: str


_HMMA, _IMMA, _DMMA, _QMMA = 0x03C, 0x037, 0x03F, 0x07A  # mma.sync, wmma
_HGMMA, _IGMMA, _QGMMA = 0x1F0, 0x1F1, 0x1F3  # wgmma
_UTCMMA = 0x1EA  # tcgen05.mma: its formats are in a register, so each that it may have counts
_F2FP = 0x03E  # conversions of pairs

_PATTERNS = (
    _Pattern(_HMMA, 0xC0000, 0x00000, "f16"),
    _Pattern(_HMMA, 0xC0000, 0x40000, "bf16"),
    _Pattern(_HMMA, 0xC0000, 0x80000, "tf32"),
    _Pattern(_IMMA, 0x180000, 0, "int8"),  # both bits: 4-bit integers
    _Pattern(_DMMA, 0, 0, "fp64"),
    # A, then B; the upper two bits of a mask: formats of 6 and 4 bits
    _Pattern(_QMMA, 0xC4000, 0x0000, "e4m3"),
    _Pattern(_QMMA, 0xC4000, 0x4000, "e5m2"),
    _Pattern(_QMMA, 0x308000, 0x0000, "e4m3"),
    _Pattern(_QMMA, 0x308000, 0x8000, "e5m2"),
    _Pattern(_HGMMA, 0x3000, 0x0000, "f16"),
    _Pattern(_HGMMA, 0x3000, 0x1000, "bf16"),
    _Pattern(_HGMMA, 0x3000, 0x2000, "tf32"),
    _Pattern(_IGMMA, 0, 0, "int8"),
    _Pattern(_QGMMA, 0x1000, 0x0000, "e4m3"),
    _Pattern(_QGMMA, 0x1000, 0x1000, "e5m2"),
    _Pattern(_QGMMA, 0x2000, 0x0000, "e4m3"),
    _Pattern(_QGMMA, 0x2000, 0x2000, "e5m2"),
    _Pattern(_UTCMMA, 0x300, 0x000, "f16"),
    _Pattern(_UTCMMA, 0x300, 0x000, "bf16"),
    _Pattern(_UTCMMA, 0x300, 0x000, "tf32"),
    _Pattern(_UTCMMA, 0x300, 0x100, "int8"),
    _Pattern(_UTCMMA, 0x300, 0x300, "e4m3"),
    _Pattern(_UTCMMA, 0x300, 0x300, "e5m2"),
    # PACK_AB and UNPACK_B_MERGE_C to 8 bits, then UNPACK_B from 8 bits
    _Pattern(_F2FP, 0x07E01000, 0x04801000, "e4m3"),
    _Pattern(_F2FP, 0x07E01000, 0x04800000, "e5m2"),
    _Pattern(_F2FP, 0x06E40600, 0x02000600, "e4m3"),
    _Pattern(_F2FP, 0x06E40600, 0x02000400, "e5m2"),
)
_BY_OPCODE: dict[int, list[_Pattern]] = defaultdict(list)
for _pattern in _PATTERNS:
    _BY_OPCODE[_pattern.opcode].append(_pattern)


def formats(machine_code: bytes, kernels: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The formats of each kernel's instructions, by its name in the cubin.

    Functions that are not inlined into a kernel count for all kernels. Raises ValueError unless
    `machine_code` is a whole cubin.
    """
    found = {
        name.removeprefix(_TEXT): _of_instructions(code)
        for name, code in cubin.contents(machine_code, _TEXT).items()
    }
    wanted = set(kernels)
    shared = set().union(*(names for function, names in found.items() if function not in wanted))
    return {kernel: in_order(found.get(kernel, set()) | shared) for kernel in wanted}


def _of_instructions(code: bytes) -> set[str]:
    whole = len(code) // _INSTRUCTION.size * _INSTRUCTION.size
    modifiers = {
        (low & _OPCODE, high & 0xFFFFFFFF)
        for low, high in _INSTRUCTION.iter_unpack(code[:whole])
        if low & _OPCODE in _BY_OPCODE
    }
    return {
        pattern.name
        for opcode, bits in modifiers
        for pattern in _BY_OPCODE[opcode]
        if bits & pattern.mask == pattern.modifiers
    }
