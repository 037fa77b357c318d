"""What the kernels of a cubin need, read from its ELF sections alone.

Layout: ELF-64, little endian; NVIDIA's attributes as `cuobjdump -elf` prints them. No
length in the file is trusted: what does not fit raises ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from evoengine.digest import digest

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOBITS = 8
_OBJECT = 1  # the type of a symbol that names data
_KEPT = (".nv.global", ".nv.constant3")
_INFO = ".nv.info"
# names are the candidate's: bytes that are not UTF-8 are escaped, so that names stay different
FOREIGN = "backslashreplace"

# Attributes (EIATTR_*), numbers from the output of `cuobjdump -elf` beside the bytes.
_SIZED = 4  # EIFMT_SVAL: a length and as many bytes follow; every other format is four bytes in all
_FRAME_SIZE, _MIN_STACK_SIZE, _KPARAM_INFO, _REGCOUNT, _MAX_STACK_SIZE = (
    0x11,
    0x12,
    0x17,
    0x2F,
    0x23,
)


@dataclass(frozen=True)
class KernelFacts:
    """One kernel of a cubin, lengths in bytes."""

    registers: int
    # as the file has it: from sm_90 on with the 1024 that the system reserves
    static_shared_bytes: int
    local_bytes: int  # stack of a thread, callees included
    params: tuple[int, ...]


@dataclass(frozen=True)
class _Section:
    kind: int
    data: bytes
    size: int


def reserved_shared_bytes(arch: str) -> int:
    """The part of static_shared_bytes that the system reserves on `arch`; it does not count against
    MAX_SHARED_BYTES.

    CUDA C++ Programming Guide 13.0, "Compute Capability 9.0": 1 KiB of shared memory is reserved
    per block.
    """
    return 1024 if int(arch.removeprefix("sm_").rstrip("af")) >= 90 else 0


def kernels(cubin: bytes) -> dict[str, KernelFacts]:
    """The kernels of a cubin by their name in it; raises ValueError unless it is a whole cubin."""
    with _as_value_error(cubin):
        sections = _sections(cubin)
        table = _by_symbol(sections)
        return {
            name.removeprefix(f"{_INFO}."): _facts(sections, table, name)
            for name in sections
            if name.startswith(f"{_INFO}.")
        }


def code_digest(cubin: bytes) -> str:
    """A name for instructions, constants and initial values; the line table does not count."""
    with _as_value_error(cubin):
        sections = _sections(cubin)
    parts: list[str | bytes] = []
    for name in sorted(sections):
        if name.startswith((".text.", ".nv.constant", ".nv.global", ".nv.shared.")):
            parts += [name, sections[name].data, str(sections[name].size)]
    return digest(*parts)


def global_bytes(cubin: bytes) -> int:
    """The bytes that outlive a launch: global variables, and the format strings of printf."""
    with _as_value_error(cubin):
        return sum(
            section.size
            for name, section in _sections(cubin).items()
            if name.startswith(".nv.global")
        )


def allocates(cubin: bytes) -> bool:
    """Whether device code calls malloc, or new."""
    with _as_value_error(cubin):
        sections = _sections(cubin)
        symbols, names = sections[".symtab"].data, sections[".strtab"].data
        return any(_text(names, symbol[0]) == "malloc" for symbol in _SYMBOL.iter_unpack(symbols))


def variable_symbols(cubin: bytes) -> tuple[str, ...]:
    """The names of all variables and constants that a module keeps, static ones too."""
    with _as_value_error(cubin):
        sections = _sections(cubin)
        order = list(sections)
        symbols, names = sections[".symtab"].data, sections[".strtab"].data
        found = []
        for name, info, _, section, _, size in _SYMBOL.iter_unpack(symbols):
            where = order[section] if section < len(order) else ""
            if info & 0xF == _OBJECT and size and where.startswith(_KEPT):
                found.append(_text(names, name))
        return tuple(found)


def contents(cubin: bytes, prefix: str) -> dict[str, bytes]:
    """The contents of the sections whose name begins with `prefix`, by name."""
    with _as_value_error(cubin):
        return {
            name: section.data
            for name, section in _sections(cubin).items()
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


@contextmanager
def _as_value_error(cubin: bytes) -> Iterator[None]:
    """Turns the errors that a wrong offset raises into ValueError."""
    try:
        yield
    except (struct.error, LookupError, OverflowError) as error:
        raise ValueError(
            f"expected a cubin, got {len(cubin)} bytes that break off or do not fit together"
            f" ({error})"
        ) from None


def _sections(data: bytes) -> dict[str, _Section]:
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(
            f"expected a cubin (ELF-64, little endian), got bytes that begin with {data[:6]!r}"
        )
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    entry, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    if entry != _SECTION.size:
        raise ValueError(f"expected section headers of {_SECTION.size} bytes, got {entry}")
    headers = [_SECTION.unpack_from(data, offset + entry * index) for index in range(count)]
    names = _cut(data, headers[names_index][4], headers[names_index][5])
    result = {}
    for header in headers:
        kind, start, size = header[1], header[4], header[5]
        result[_text(names, header[0])] = _Section(
            kind, b"" if kind == _NOBITS else _cut(data, start, size), size
        )
    return result


def _cut(data: bytes, start: int, size: int) -> bytes:
    if start + size > len(data):
        raise ValueError(f"expected a cubin, got {len(data)} bytes where {start + size} are needed")
    return data[start : start + size]


def _text(table: bytes, start: int) -> str:
    end = table.find(b"\0", start)
    if start > len(table) or end < 0:
        raise ValueError(f"expected a name at {start} of a table of {len(table)} bytes")
    return table[start:end].decode("utf-8", FOREIGN)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(data):
        form, attribute, length = struct.unpack_from("<BBH", data, position)
        position += 4
        if form == _SIZED:
            yield attribute, _cut(data, position, length)
            position += length


def _by_symbol(sections: dict[str, _Section]) -> dict[tuple[str, int], int]:
    """(function, attribute) -> value, from the section for all functions."""
    if ".symtab" not in sections or ".strtab" not in sections:
        raise ValueError("expected a cubin with a symbol table, found none")
    symbols, names = sections[".symtab"].data, sections[".strtab"].data
    result = {}
    for attribute, value in _attributes(sections[_INFO].data if _INFO in sections else b""):
        if attribute in (_REGCOUNT, _FRAME_SIZE, _MIN_STACK_SIZE, _MAX_STACK_SIZE):
            index, number = struct.unpack_from("<II", value)
            function = _text(names, _SYMBOL.unpack_from(symbols, index * _SYMBOL.size)[0])
            result[function, attribute] = number
    return result


def _facts(
    sections: dict[str, _Section], table: dict[tuple[str, int], int], name: str
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
    stack = max(
        table.get((kernel, attribute), 0)
        for attribute in (_FRAME_SIZE, _MIN_STACK_SIZE, _MAX_STACK_SIZE)
    )
    return KernelFacts(
        registers=table[kernel, _REGCOUNT],
        static_shared_bytes=shared.size if shared else 0,
        local_bytes=stack,
        params=tuple(sizes[ordinal] for ordinal in range(len(sizes))),
    )
