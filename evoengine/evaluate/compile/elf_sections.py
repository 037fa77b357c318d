"""The sections and symbols of a cubin: ELF-64, little endian.

No length in the file is trusted: what does not fit raises ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOBITS = 8
# names are the candidate's: bytes that are not UTF-8 are escaped, so that names stay different
FOREIGN = "backslashreplace"


@dataclass(frozen=True)
class ElfSection:
    """One section; `data` is empty where the file holds none, e.g. for zeroed variables."""

    kind: int
    flags: int
    data: bytes
    size: int


@dataclass(frozen=True)
class ElfSymbol:
    """One symbol; `section` is the number of its section, 0 if it is not defined in the file."""

    name: str
    kind: int  # 1: a variable, 2: a function, 10 and more: textures, surfaces and samplers
    other: int
    section: int


@contextmanager
def as_value_error(cubin: bytes) -> Iterator[None]:
    """Turns the errors that a wrong offset raises into ValueError."""
    try:
        yield
    except (struct.error, LookupError, OverflowError) as error:
        raise ValueError(
            f"expected a cubin, got {len(cubin)} bytes that break off or do not fit together"
            f" ({error})"
        ) from None


def sections_of(data: bytes) -> dict[str, ElfSection]:
    """The sections by name."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(
            f"expected a cubin (ELF-64, little endian), got bytes that begin with {data[:6]!r}"
        )
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    entry, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    if entry != _SECTION.size:
        raise ValueError(f"expected section headers of {_SECTION.size} bytes, got {entry}")
    headers = [_SECTION.unpack_from(data, offset + entry * index) for index in range(count)]
    names = cut(data, headers[names_index][4], headers[names_index][5])
    result = {}
    for header in headers:
        kind, flags, start, size = header[1], header[2], header[4], header[5]
        contents = b"" if kind == _NOBITS else cut(data, start, size)
        result[_text(names, header[0])] = ElfSection(kind, flags, contents, size)
    return result


def symbols_of(sections: dict[str, ElfSection]) -> list[ElfSymbol]:
    """All symbols by their numbers; the first one of every file has no name."""
    if ".symtab" not in sections or ".strtab" not in sections:
        raise ValueError("expected a cubin with a symbol table, found none")
    table, names = sections[".symtab"].data, sections[".strtab"].data
    return [
        ElfSymbol(_text(names, name), info & 15, other, section)
        for name, info, other, section, _, _ in _SYMBOL.iter_unpack(table)
    ]


def cut(data: bytes, start: int, size: int) -> bytes:
    """`size` bytes of `data` from `start` on."""
    if start + size > len(data):
        raise ValueError(f"expected a cubin, got {len(data)} bytes where {start + size} are needed")
    return data[start : start + size]


def _text(table: bytes, start: int) -> str:
    end = table.find(b"\0", start)
    if start > len(table) or end < 0:
        raise ValueError(f"expected a name at {start} of a table of {len(table)} bytes")
    return table[start:end].decode("utf-8", FOREIGN)
