"""What a cubin demands beyond its kernels' code: symbols from outside, memory, and stack.

Everything counts, also what no launch of the plan uses: the driver loads the whole file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from evoengine.evaluate.compile.cubin import largest_stack_bytes, variable_symbols
from evoengine.evaluate.compile.elf_sections import (
    ElfSection,
    ElfSymbol,
    as_value_error,
    sections_of,
    symbols_of,
)

# Functions of the driver that device code may call: those behind printf and assert.
ALLOWED_SYMBOLS = frozenset({"vprintf", "__assertfail"})
# The compiler's own marks of the shared memory that the system reserves; no identifier of a source
# can begin with a dot.
_RESERVED_SHARED = ".nv.reservedSmem."
_ALLOCATED, _EXECUTABLE = 2, 4  # section flags
# Code that the driver may translate for later devices: it repeats the other sections.
_COPIES = (".nv.merc.", ".nv.capmerc")
# Parameters are written for every launch; shared memory has no contents in the file. The compiler
# fills bank 4, with the addresses of what the source declares: 8 bytes each.
_NOT_DECLARED = (".nv.constant0.", ".nv.shared.", ".nv.constant4")
# Variables that inline PTX declares inside of a function have names that the driver does not find;
# so have string literals, whose names differ.
_SCOPED = re.compile(r"\$(?!str(\$\d+)?$)")
_MANAGED = 4  # of a symbol's `other` (STO_CUDA_MANAGED)


@dataclass(frozen=True)
class CubinDemands:
    """What the whole file demands of a device."""

    external_symbols: tuple[str, ...]  # not defined in the file, and not allowed
    managed_variables: tuple[str, ...]
    scoped_variables: tuple[str, ...]  # declared by inline PTX inside of a function
    # variables, constants and literals: what keeps its contents between launches
    lasting_bytes: int
    stack_bytes: int  # of a thread: the most of any function


def demands_of(cubin: bytes) -> CubinDemands:
    """What `cubin` demands; raises ValueError unless it is a whole cubin."""
    with as_value_error(cubin):
        sections = sections_of(cubin)
        symbols = symbols_of(sections)
        return CubinDemands(
            external_symbols=tuple(item.name for item in symbols if _is_external(item)),
            managed_variables=tuple(
                item.name for item in symbols if item.kind == 1 and item.other & _MANAGED
            ),
            scoped_variables=tuple(name for name in variable_symbols(cubin) if _SCOPED.match(name)),
            lasting_bytes=sum(
                item.size for name, item in sections.items() if _outlives_a_launch(name, item)
            ),
            stack_bytes=largest_stack_bytes(sections),
        )


def _is_external(symbol: ElfSymbol) -> bool:
    """Whether the driver would have to find it elsewhere; common symbols are not expected either.

    Textures and surfaces without a host are among them.
    """
    defined = 0 < symbol.section < 0xFF00
    known = symbol.name in ALLOWED_SYMBOLS or symbol.name.startswith(_RESERVED_SHARED)
    return not defined and bool(symbol.name) and not known


def _outlives_a_launch(name: str, section: ElfSection) -> bool:
    """Whether it lies in device memory as long as the module is loaded, machine code aside.

    A list of what does not count: a kind of section that is not known yet counts.
    """
    if not section.flags & _ALLOCATED or section.flags & _EXECUTABLE:
        return False
    return not name.startswith((*_COPIES, *_NOT_DECLARED))
