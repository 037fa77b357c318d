"""PTX instructions that ptxas makes one machine instruction of.

Machine instructions of sm_70 and later take three operands: IADD3 adds three numbers, LEA shifts
and adds, LOP3 is any function of three words, IMAD.WIDE multiplies and adds 64 bits, which is the
address of an element. Comparisons combine with a predicate (ISETP.LT.AND), so that logic between
predicates needs none of its own; a selection of what a register holds already is a move under a
predicate, and a rest follows from its quotient. clang leaves all of these apart. Seen in the
machine code that NVRTC 13.0 makes of edit_distance_diagonals.cu, hashes_thread_each.cu and
enlarge_grid_stride.cu (tests/structures).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.analyse.registers import read, written
from evoengine.emulator.ptx.syntax import Instruction, Integer

_IsPart = Callable[[Instruction], bool]
ALU_ALONE = "iadd3"  # no operation of PTX: a sum that the multiplier cannot do
_LOGIC = frozenset(("and", "or", "xor"))
_WORDS = frozenset(("b32", "s32", "u32"))
_PAIRS = frozenset(("s64", "u64", "b64"))


def fused(cfg: ControlFlowGraph) -> Mapping[int, Instruction]:
    """What stands for an instruction, by its `id`: a move, which costs nothing, for one that is
    part of a later one.
    """
    items = [item for node in cfg.nodes for item in node.instructions]
    uses = Counter(name for item in items for name in read(item))
    writes = Counter(name for item in items for name in written(item))
    once = {name for name, count in writes.items() if count == 1}
    found: dict[int, Instruction] = {}
    for node in cfg.nodes:
        _Block(node.instructions, uses, once, found).fuse()
    return found


class _Block:
    """A basic block: only what is computed in it becomes part of an instruction of it."""

    def __init__(
        self,
        items: Sequence[Instruction],
        uses: Mapping[str, int],
        once: AbstractSet[str],
        found: dict[int, Instruction],
    ) -> None:
        self._items, self._uses, self._found = items, uses, found
        self._makers = {
            name: item for item in items if not item.guard for name in written(item) if name in once
        }
        self._wholes: set[int] = set()  # that have become part of nothing, but have a part

    def fuse(self) -> None:
        """Finds the parts of every instruction."""
        products: dict[str, list[Instruction]] = {}
        for item in self._items:
            kind = item.modifiers[-1] if item.modifiers else ""
            if kind == "pred" and (item.op in _LOGIC or item.op == "not"):
                self._drop(item)
            elif item.op in ("add", "sub") and kind in _PAIRS:
                parts = self._parts(item, _is_product)
                for name in parts:
                    products.setdefault(name, []).append(item)
                if not parts:
                    self._take(item, _is_wide_shift)
            elif item.op in ("add", "sub") and kind in _WORDS:
                if self._take(item, _is_sum):
                    self._found[id(item)] = replace(item, op=ALU_ALONE)
            elif item.op in _LOGIC and kind in _WORDS:
                self._take(item, _is_logic)
            elif item.op == "selp" and set(written(item)) & set(read(item)):
                self._found[id(item)] = replace(item, op="add", modifiers=("s32",))  # a move
            elif item.op == "rem" and self._has_quotient(item):
                self._found[id(item)] = replace(item, op="mad", modifiers=("lo", "s32"))
        for name, sums in products.items():
            for item in sums:
                self._found[id(item)] = replace(item, op="mad", modifiers=("wide", "s32"))
            if self._uses[name] == len(sums):
                self._drop(self._makers[name])

    def _parts(self, item: Instruction, is_part: _IsPart) -> list[str]:
        """The operands of an instruction that were made so in this block."""
        return [
            name
            for name in sorted(read(item))
            if name in self._makers and is_part(self._makers[name])
        ]

    def _take(self, item: Instruction, is_part: _IsPart) -> bool:
        """Makes one operand that nothing else reads, and that has no part itself, a part; returns
        whether there is one.
        """
        for name in self._parts(item, is_part):
            maker = self._makers[name]
            if self._uses[name] == 1 and id(maker) not in self._wholes | self._found.keys():
                self._drop(maker)
                self._wholes.add(id(item))
                return True
        return False

    def _has_quotient(self, item: Instruction) -> bool:
        """Whether the block divides the same numbers, too: the rest follows by a product."""
        return any(
            (other.op, other.modifiers, other.operands[1:])
            == ("div", item.modifiers, item.operands[1:])
            for other in self._items
        )

    def _drop(self, item: Instruction) -> None:
        self._found[id(item)] = replace(item, op="mov")


def _is_product(item: Instruction) -> bool:
    return item.op == "mul" and "wide" in item.modifiers and bool(_WORDS & set(item.modifiers))


def _is_wide_shift(item: Instruction) -> bool:
    return item.op == "shl" and "b64" in item.modifiers and _by_constant(item)


def _is_sum(item: Instruction) -> bool:
    if item.op == "shl":
        return "b32" in item.modifiers and _by_constant(item)
    return item.op in ("add", "sub") and bool(_WORDS & set(item.modifiers))


def _is_logic(item: Instruction) -> bool:
    return (item.op in _LOGIC or item.op == "not") and bool(_WORDS & set(item.modifiers))


def _by_constant(item: Instruction) -> bool:
    return isinstance(item.operands[-1], Integer)
