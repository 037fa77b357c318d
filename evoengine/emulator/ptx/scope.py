"""Scopes: the registers, variables and labels declared between two braces."""

from __future__ import annotations

from evoengine.emulator.ptx.lexer import literal
from evoengine.emulator.ptx.syntax import (
    TYPE_BITS,
    Block,
    Integer,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)

_DIGITS = 9  # of a register's number
_AXES = (
    "tid",
    "ntid",
    "ctaid",
    "nctaid",
    "clusterid",
    "nclusterid",
    "cluster_ctaid",
    "cluster_nctaid",
)
SPECIALS = frozenset(  # ISA, chapter 10
    [f"%{name}.{axis}" for name in _AXES for axis in "xyz"]
    + [f"%lanemask_{order}" for order in ("eq", "le", "lt", "ge", "gt")]
    + [f"%pm{number}" for number in range(8)]
    + [f"%pm{number}_64" for number in range(8)]
    + [f"%envreg{number}" for number in range(32)]
    + [
        "%laneid",
        "%warpid",
        "%nwarpid",
        "%smid",
        "%nsmid",
        "%gridid",
        "%clock",
        "%clock_hi",
        "%clock64",
    ]
    + [
        "%globaltimer",
        "%globaltimer_lo",
        "%globaltimer_hi",
        "%dynamic_smem_size",
        "%total_smem_size",
        "%aggr_smem_size",
    ]
    + ["%cluster_ctarank", "%cluster_nctarank", "%is_explicit_cluster", "%current_graph_exec"]
    + ["%reserved_smem_offset_begin", "%reserved_smem_offset_end", "%reserved_smem_offset_cap"]
    + [f"%reserved_smem_offset_{number}" for number in range(2)]
)


class Scope:
    """The names declared between two braces; `suffix` makes those of inner scopes unique in the
    function ("" outside).
    """

    __slots__ = (
        "cache",
        "jumps",
        "labels",
        "lists",
        "names",
        "parent",
        "ranges",
        "registers",
        "suffix",
    )

    def __init__(self, parent: Scope | None, suffix: str, registers: dict[str, str]) -> None:
        self.parent = parent
        self.suffix = suffix
        self.registers = registers  # the function's registers that are used
        self.names: dict[str, Operand] = {}
        self.ranges: dict[str, tuple[int, str]] = {}  # "%r" -> (12, "b32") for %r<12>
        self.labels: dict[str, str] = {}  # as written -> unique
        self.lists: dict[str, Vector] = {}  # .branchtargets: Symbols of labels
        self.jumps: list[
            tuple[Block, int]
        ] = []  # branches to labels that this scope may still declare
        self.cache: dict[str, Operand] = {}

    def declare_register(self, name: str, kind: str) -> bool:
        """False if the scope already has the name."""
        if name in self.names or kind not in TYPE_BITS:
            return False
        unique = name + self.suffix
        self.names[name] = Register(unique)
        self.registers[unique] = kind
        self.cache.clear()
        return True

    def declare_range(self, prefix: str, count: int, kind: str) -> bool:
        """Declares %r<12>; its registers are created when they are used. False if the scope already
        has the prefix.
        """
        if prefix in self.ranges or kind not in TYPE_BITS:
            return False
        self.ranges[prefix] = (count, kind)
        self.cache.clear()
        return True

    def declare_symbol(self, name: str) -> str | None:
        """The unique name of a variable; None if the scope already has it."""
        if name in self.names:
            return None
        self.names[name] = Symbol(name + self.suffix)
        self.cache.clear()
        return name + self.suffix

    def find(self, text: str) -> Operand | None:
        """The operand that a token denotes: a declared name, a special register, a number or `_`;
        else None.
        """
        found = self.cache.get(text)
        if found is None:
            found = self._declared(text) or _fixed(text)
            if found is not None:
                self.cache[text] = found
        return found

    def targets(self, name: str) -> Vector | None:
        """The labels of the list `name: .branchtargets`, declared here or in an outer scope."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.lists:
                return scope.lists[name]
            scope = scope.parent
        return None

    def _declared(self, text: str) -> Operand | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(text) or (scope._ranged(text) if scope.ranges else None)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def _ranged(self, text: str) -> Register | None:
        """`text` as one of the registers of a range; of "p21" both p<30> and p2<5> are tried."""
        first = max(len(text.rstrip("0123456789")), len(text) - _DIGITS)
        for cut in range(first, len(text)):
            count, kind = self.ranges.get(text[:cut], (0, ""))
            if int(text[cut:]) < count and (text[cut] != "0" or cut == len(text) - 1):
                name = text + self.suffix
                self.registers[name] = kind
                return Register(name)
        return None


def _fixed(text: str) -> Operand | None:
    if text == "_":
        return Sink()
    if text == "WARP_SZ":
        return Integer(32)
    if text in SPECIALS:
        return Special(text)
    return literal(text)
