"""Uniformity analysis: which registers are uniform, affine or varying, and where lanes diverge.

Variances and regions of divergence depend on one another: what a block writes while only some lanes
run is no longer uniform. Lanes that have exited do not count, because their registers are not read
again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evoengine.emulator.analyse.address_registers import address_only_registers
from evoengine.emulator.analyse.affine import SourceOperands, affine_rule
from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.analyse.lane_variance import (
    UNIFORM,
    VARYING,
    WARP,
    Affine,
    Variance,
    meet,
    special_register_variance,
    thread_index_variance,
)
from evoengine.emulator.analyse.regions import Influence, Region, influences, regions_of
from evoengine.emulator.analyse.registers import read, registers_of, written
from evoengine.emulator.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Integer,
    Not,
    Operand,
    Register,
    Special,
    Vector,
)

__all__ = [
    "UNIFORM",
    "VARYING",
    "Affine",
    "Region",
    "UniformityInfo",
    "Variance",
    "analyse_uniformity",
    "thread_index_variance",
]

VECTOR_ONLY = frozenset(("mma", "wmma", "ldmatrix", "movmatrix", "atom", "match", "call", "elect"))
# These return one value for all lanes of a member mask, whatever their other operands are.
COLLECTIVE = frozenset(("vote", "redux"))


@dataclass
class UniformityInfo:
    """The variance of every register, and the regions of divergence."""

    variance_of: dict[str, Variance]  # by register
    regions: list[Region]
    region_of: dict[int, int] = field(default_factory=dict)  # block -> index of its region
    local: frozenset[str] = frozenset()  # registers that are live in one block only


def analyse_uniformity(
    function: Function, cfg: ControlFlowGraph, block: tuple[int, int, int]
) -> UniformityInfo:
    """The uniformity of `function` for thread blocks of `block` = (x, y, z) threads."""
    analysis = _Analysis(function, cfg, block)
    parts: list[Influence] = []
    divergent: frozenset[int] = frozenset()
    while True:
        found = analysis.variances(divergent)
        parts = influences(cfg, lambda name, found=found: found.get(name) is UNIFORM)  # type: ignore[misc]  # mypy knows no lambda defaults
        grown = divergent.union(*(blocks for blocks, _ in parts))
        if grown == divergent:
            break
        divergent = grown
    regions = regions_of(parts)
    region_of = {number: index for index, region in enumerate(regions) for number in region.blocks}
    return UniformityInfo(found, regions, region_of, analysis.local)


class _Analysis:
    """The least fixed point: every register starts out unknown and its variance only gets worse."""

    def __init__(
        self, function: Function, cfg: ControlFlowGraph, block: tuple[int, int, int]
    ) -> None:
        self.function = function
        self.cfg = cfg
        self.block = block
        self.written = {
            name for node in cfg.nodes for item in node.instructions for name in written(item)
        }
        self.constants = self._constants()
        self.addresses = address_only_registers(function, cfg)
        alive = set[str]().union(*(node.live_in for node in cfg.nodes))
        self.local = frozenset(name for name in function.registers if name not in alive)

    def _constants(self) -> dict[str, int]:
        """The registers that are only ever set to one integer literal, with its value."""
        writers: dict[str, list[Instruction]] = {}
        for node in self.cfg.nodes:
            for instruction in node.instructions:
                for name in written(instruction):
                    writers.setdefault(name, []).append(instruction)
        found = {}
        for name, (first, *others) in writers.items():
            source = first.operands[1] if len(first.operands) > 1 else None
            if (
                not others
                and first.op == "mov"
                and first.guard is None
                and isinstance(source, Integer)
            ):
                found[name] = source.value
        return found

    def variances(self, divergent: frozenset[int]) -> dict[str, Variance]:
        """The variance of every register if only some lanes may run the blocks `divergent`.

        Registers that are never written, or only from themselves, are uniform. Compilers leave such
        registers in half-used vectors, so what is computed from them matters.
        """
        found: dict[str, Variance] = dict.fromkeys(
            self.function.registers.keys() - self.written, UNIFORM
        )
        while True:
            self._run_to_fixed_point(found, divergent)
            missing = self.function.registers.keys() - found.keys()
            if not missing:
                return found
            found.update(dict.fromkeys(missing, UNIFORM))

    def _run_to_fixed_point(self, found: dict[str, Variance], divergent: frozenset[int]) -> None:
        changed = True
        while changed:
            changed = False
            for number, node in enumerate(self.cfg.nodes):
                for instruction in node.instructions:
                    changed |= self._update(found, instruction, number in divergent)

    def _update(
        self, found: dict[str, Variance], instruction: Instruction, divergent: bool
    ) -> bool:
        """Updates the results of an instruction; returns whether the variance of one got worse."""
        names = written(instruction)
        if not names or any(name not in found for name in read(instruction)):
            return False
        changed = False
        for name in names:
            variance = self._written_variance(found, instruction, name, divergent)
            before = found.get(name)
            after = variance if before is None else meet(before, variance)
            changed |= after != before
            found[name] = after
        return changed

    def _written_variance(
        self, found: dict[str, Variance], instruction: Instruction, name: str, divergent: bool
    ) -> Variance:
        """The variance of a result, given that inactive lanes keep their old value."""
        if divergent and name not in self.local:
            return VARYING
        variance = self._result(found, instruction)
        if instruction.guard and (
            found.get(instruction.guard.register.name) is not UNIFORM
            or isinstance(variance, Affine)
        ):
            return VARYING
        return variance

    def _result(self, found: dict[str, Variance], instruction: Instruction) -> Variance:
        op, of_local = instruction.op, instruction.has("local")
        if op == "activemask":
            return UNIFORM
        if op in VECTOR_ONLY or (of_local and (op == "ld" or not instruction.has("to"))):
            return VARYING
        variances = [self._operand(found, item) for item in instruction.operands[1:]]
        if op in COLLECTIVE:
            return UNIFORM if variances and variances[-1] is UNIFORM else VARYING
        if op == "shfl":
            return UNIFORM if self._is_broadcast(instruction, variances) else VARYING
        if all(variance is UNIFORM for variance in variances) and all(
            found.get(item) is UNIFORM for item in read(instruction)
        ):
            return UNIFORM
        addressing = all(name in self.addresses for name in written(instruction))
        return affine_rule(
            instruction,
            SourceOperands(
                variances, [self._integer(item) for item in instruction.operands[1:]], addressing
            ),
        )

    def _operand(self, found: dict[str, Variance], operand: Operand) -> Variance:
        if isinstance(operand, Register):
            return found.get(operand.name, UNIFORM)
        if isinstance(operand, Special):
            return special_register_variance(operand.name, self.block)
        if isinstance(operand, Address):
            return self._operand(found, operand.base)
        if isinstance(operand, Vector | Not):
            return (
                UNIFORM
                if all(found.get(item.name) is UNIFORM for item in registers_of(operand))
                else VARYING
            )
        return UNIFORM

    def _integer(self, operand: Operand) -> int | None:
        """The value of a literal, or of a register that always holds one."""
        if isinstance(operand, Integer):
            return operand.value
        return self.constants.get(operand.name) if isinstance(operand, Register) else None

    def _is_broadcast(self, instruction: Instruction, variances: list[Variance]) -> bool:
        """Whether a shuffle broadcasts one lane's value to the whole warp: shfl.idx d, a, lane, 31,
        mask.
        """
        if len(variances) != 4 or not instruction.has("idx"):
            return False
        return (
            variances[1] is UNIFORM
            and self._integer(instruction.operands[3]) == WARP - 1
            and variances[3] is UNIFORM
        )
