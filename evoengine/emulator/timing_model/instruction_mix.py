"""The cost of one execution of a basic block by a warp: instructions by pipe, and the longest
dependency chain.

The chain is one of data: an instruction waits for the registers that it reads, for its guard, and
for barriers and waits before it. Otherwise the order in the block does not matter, because ptxas
reschedules machine code. Nothing is carried over from one block to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evoengine.emulator.ptx.syntax import (
    Address,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Vector,
)
from evoengine.emulator.timing_model.counts import CountsBuilder
from evoengine.emulator.timing_model.pipes import Cost, classify

# Only used to compare chains; the model charges the target's own latencies. From an A100 and H100,
# `targets`.
_CLOCKS = {
    "fixed": 4,
    "mufu": 18,
    "fp64": 16,
    "shuffle": 23,
    "shared": 29,
    "local": 38,
    "global": 300,
    "tensor": 30,
    "barrier": 22,
    "wait": 100,
}
_NO_RESULT = frozenset(
    (
        "st",
        "red",
        "bra",
        "brx",
        "bar",
        "barrier",
        "cp",
        "ret",
        "exit",
        "membar",
        "fence",
        "trap",
        "prefetch",
        "stmatrix",
    )
)
UNROLLED = 4  # iterations of a loop without a known trip count: the usual factor of LLVM and nvcc
_LOADS = ("global", "local", "shared")
_ORDERS = frozenset(("bar", "barrier", "membar", "fence"))  # later instructions wait for these


@dataclass(frozen=True)
class InstructionMix:
    """Warp instructions by pipe, tensor operations by kind and delays of the longest chain, for one
    execution by one warp.
    """

    instructions: Mapping[str, float]
    flops: Mapping[str, float]
    delays: Mapping[str, float]
    wavefronts: float  # of shared memory, without bank conflicts
    sectors: float  # of global memory, with coalesced accesses


@dataclass(frozen=True)
class _DependencyChain:
    clocks: float = 0.0
    delay: str = ""
    steps: float = 0.0
    before: _DependencyChain | None = None

    def then(self, cost: Cost) -> _DependencyChain:
        if cost.delay is None:
            return self
        return _DependencyChain(
            self.clocks + _CLOCKS[cost.delay] * cost.steps, cost.delay, cost.steps, self
        )

    def delays(self) -> dict[str, float]:
        found: dict[str, float] = {}
        link: _DependencyChain | None = self
        while link is not None and link.delay:
            found[link.delay] = found.get(link.delay, 0.0) + link.steps
            link = link.before
        return found


_EMPTY = _DependencyChain()


def instruction_mix(code: Sequence[Instruction], *, repeats: bool = False) -> InstructionMix:
    """The instruction mix of straight-line code: a basic block, or a part of one between two
    suspensions.

    `repeats`: it is the whole body of a loop. GPU compilers unroll such loops, so that the loads of
    several iterations overlap, unless one iteration loads the address of another load.
    """
    builder = CountsBuilder()
    ready: dict[str, _DependencyChain] = {}
    ordered = longest = _EMPTY
    wavefronts = sectors = 0.0
    for instruction in code:
        cost = classify(instruction.op, instruction.modifiers)
        flops = {cost.tensor_kind: cost.tensor_flops} if cost.tensor_flops else {}
        builder.add(_by_pipe(cost), flops, {}, 1.0)
        wavefronts += cost.wavefronts
        sectors += cost.sectors
        reads = [ready[name] for name in _reads(instruction) if name in ready]
        if instruction.op in _ORDERS or cost.delay == "wait":
            ordered = longest.then(cost) if instruction.op in _ORDERS else ordered.then(cost)
            chain = ordered
        else:
            chain = max((*reads, ordered), key=lambda link: link.clocks).then(cost)
        for name in _writes(instruction):
            ready[name] = chain
        longest = max(longest, chain, key=lambda link: link.clocks)
    delays = longest.delays()
    if repeats and not _chases_pointers(code):
        delays = {
            name: steps / UNROLLED if name in _LOADS else steps for name, steps in delays.items()
        }
    return InstructionMix(builder.instructions, builder.flops, delays, wavefronts, sectors)


def _chases_pointers(code: Sequence[Instruction]) -> bool:
    """Whether an address depends on a value that an iteration of this loop loads (pointer
    chasing).
    """
    loaded: set[str] = set()
    before = -1
    while len(loaded) > before:
        before = len(loaded)
        for instruction in code:
            if instruction.op in ("ld", "ldmatrix", "atom") or _reads(instruction) & loaded:
                loaded |= _writes(instruction)
    return any(
        _registers(operand) & loaded
        for instruction in code
        for operand in instruction.operands
        if isinstance(operand, Address)
    )


def _by_pipe(cost: Cost) -> dict[str, float]:
    found: dict[str, float] = {}
    for pipe, count in cost.pipes:
        found[pipe] = found.get(pipe, 0.0) + count
    return found


def _reads(instruction: Instruction) -> set[str]:
    names: set[str] = set()
    start = 0 if instruction.op in _NO_RESULT or _is_store(instruction) else 1
    for operand in instruction.operands[start:]:
        names |= _registers(operand)
    if start and isinstance(instruction.operands[0] if instruction.operands else None, Address):
        names |= _registers(instruction.operands[0])
    if instruction.guard is not None:
        # a false guard leaves the old value, so the result counts as read
        names |= {
            instruction.guard.register.name,
            *_writes(instruction),
        }
    return names


def _writes(instruction: Instruction) -> set[str]:
    if instruction.op in _NO_RESULT or _is_store(instruction) or not instruction.operands:
        return set()
    first = instruction.operands[0]
    return set() if isinstance(first, Address) else _registers(first)


def _is_store(instruction: Instruction) -> bool:
    return instruction.op == "wmma" and "store" in instruction.modifiers


def _registers(operand: Operand) -> set[str]:
    if isinstance(operand, Register):
        return {operand.name}
    if isinstance(operand, Not):
        return {operand.register.name}
    if isinstance(operand, Address):
        return _registers(operand.base) if isinstance(operand.base, Register) else set()
    if isinstance(operand, Vector):
        return set().union(*map(_registers, operand.items))
    if isinstance(operand, Pair):
        return _registers(operand.first) | _registers(operand.second)
    return set()
