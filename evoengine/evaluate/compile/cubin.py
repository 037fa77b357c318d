"""What the kernels of a cubin need, read from its ELF sections alone.

Layout: ELF-64, little endian; NVIDIA's attributes as `cuobjdump -elf` prints them. No
length in the file is trusted: what does not fit raises ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from evoengine.digest import digest
from evoengine.evaluate.compile.elf_sections import (
    ElfSection,
    as_value_error,
    cut,
    sections_of,
    symbols_of,
)

_VARIABLE = 1  # the kind of a symbol that names data
_KEPT = (".nv.global", ".nv.constant3")
_INFO = ".nv.info"

# Attributes (EIATTR_*), numbers from the output of `cuobjdump -elf` beside the bytes.
_SIZED = 4  # EIFMT_SVAL: a length and as many bytes follow; every other format is four bytes in all
_KPARAM_INFO, _REGCOUNT = 0x17, 0x2F
# frame size, smallest and largest stack size; all are 0 for a function that calls itself
_STACK = (0x11, 0x12, 0x23)


@dataclass(frozen=True)
class KernelFacts:
    """One kernel of a cubin, lengths in bytes."""

    registers: int
    # as the file has it: from sm_90 on with the 1024 that the system reserves
    static_shared_bytes: int
    local_bytes: int  # stack of a thread, callees included
    params: tuple[int, ...]


def reserved_shared_bytes(arch: str) -> int:
    """The part of static_shared_bytes that the system reserves on `arch`; it does not count against
    MAX_SHARED_BYTES.

    CUDA C++ Programming Guide 13.0, "Compute Capability 9.0": 1 KiB of shared memory is reserved
    per block.
    """
    return 1024 if int(arch.removeprefix("sm_").rstrip("af")) >= 90 else 0


def kernels(cubin: bytes) -> dict[str, KernelFacts]:
    """The kernels of a cubin by their name in it; raises ValueError unless it is a whole cubin."""
    with as_value_error(cubin):
        sections = sections_of(cubin)
        table = _by_symbol(sections)
        return {
            name.removeprefix(f"{_INFO}."): _facts(sections, table, name)
            for name in sections
            if name.startswith(f"{_INFO}.")
        }


def largest_stack_bytes(sections: dict[str, ElfSection]) -> int:
    """The most stack that any function takes of a thread, its callees included."""
    table = _by_symbol(sections)
    return max((size for (_, attribute), size in table.items() if attribute in _STACK), default=0)


def code_digest(cubin: bytes) -> str:
    """A name for instructions, constants and initial values; the line table does not count."""
    with as_value_error(cubin):
        sections = sections_of(cubin)
    parts: list[str | bytes] = []
    for name in sorted(sections):
        if name.startswith((".text.", ".nv.constant", ".nv.global", ".nv.shared.")):
            parts += [name, sections[name].data, str(sections[name].size)]
    return digest(*parts)


def variable_symbols(cubin: bytes) -> tuple[str, ...]:
    """The names of all variables and constants that a module keeps, static ones too."""
    with as_value_error(cubin):
        sections = sections_of(cubin)
        kept = {number for number, name in enumerate(sections) if name.startswith(_KEPT)}
        return tuple(
            symbol.name
            for symbol in symbols_of(sections)
            if symbol.kind == _VARIABLE and symbol.section in kept
        )


def contents(cubin: bytes, prefix: str) -> dict[str, bytes]:
    """The contents of the sections whose name begins with `prefix`, by name."""
    with as_value_error(cubin):
        return {
            name: section.data
            for name, section in sections_of(cubin).items()
            if name.startswith(prefix)
        }


def completed(cubin: bytes) -> bytes:
    """The cubin with the last byte that CuPy's binding cuts off as if it ended a string.

    The file ends with a program header whose last byte is the highest of a small number: zero.
    """
    if len(cubin) < 64 or cubin[:4] != b"\x7fELF":
        return cubin
    offset, size, count = (
        struct.unpack_from("<Q", cubin, 0x20)[0],
        *struct.unpack_from("<HH", cubin, 0x36),
    )
    return cubin + b"\0" if len(cubin) + 1 == offset + size * count else cubin


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(data):
        form, attribute, length = struct.unpack_from("<BBH", data, position)
        position += 4
        if form == _SIZED:
            yield attribute, cut(data, position, length)
            position += length


def _by_symbol(sections: dict[str, ElfSection]) -> dict[tuple[str, int], int]:
    """(function, attribute) -> value, from the section for all functions."""
    symbols = symbols_of(sections)
    result = {}
    for attribute, value in _attributes(sections[_INFO].data if _INFO in sections else b""):
        if attribute in (_REGCOUNT, *_STACK):
            index, number = struct.unpack_from("<II", value)
            result[symbols[index].name, attribute] = number
    return result


def _facts(
    sections: dict[str, ElfSection], table: dict[tuple[str, int], int], name: str
) -> KernelFacts:
    kernel = name.removeprefix(f"{_INFO}.")
    if (kernel, _REGCOUNT) not in table:
        raise ValueError(f"expected a register count of kernel {kernel!r}, found none")
    sizes = {}
    for attribute, value in _attributes(sections[name].data):
        if attribute == _KPARAM_INFO:
            _, ordinal, _, packed = struct.unpack_from("<IHHI", value)
            sizes[ordinal] = packed >> 18  # below: alignment, address space and constant bank
    if sorted(sizes) != list(range(len(sizes))):
        raise ValueError(
            f"expected the parameters of kernel {kernel!r} to count from 0, got {sorted(sizes)}"
        )
    shared = sections.get(f".nv.shared.{kernel}")
    return KernelFacts(
        registers=table[kernel, _REGCOUNT],
        static_shared_bytes=shared.size if shared else 0,
        local_bytes=max(table.get((kernel, attribute), 0) for attribute in _STACK),
        params=tuple(sizes[ordinal] for ordinal in range(len(sizes))),
    )
