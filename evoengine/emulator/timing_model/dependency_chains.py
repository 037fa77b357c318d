"""The longest dependency chain of straight-line code.

The chain is one of data: an instruction waits for the registers that it reads, for its guard, and
for barriers and waits before it. A load also waits for the operands of an earlier store that may
be to the same address: a GPU issues the instructions of a warp in order, and a compiler leaves
the two in theirs. A load of global memory is not issued before an exchange between lanes that may
have diverged, because the meeting of lanes ends a basic block of machine code (seen in that of
tests/structures/embedding_bag_shuffled_indices.cu). Otherwise the order in the code does not
matter, because ptxas reschedules machine code. Nothing is carried over from one piece of code to
the next; of a loop that is one piece, several iterations are followed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evoengine.emulator.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Not,
    Operand,
    Pair,
    Register,
    Vector,
)
from evoengine.emulator.timing_model.pipes import Cost, bytes_of_lane, classify, is_shared
from evoengine.emulator.timing_model.site_memory import SiteMemory

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
    "l1": 38,
    "l2": 300,
    "line": 1,
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
_ORDERS = frozenset(("bar", "barrier", "membar", "fence"))  # later instructions wait for these
_STORES = frozenset(("st", "red", "atom"))
_LOADS = frozenset(("ld", "ldu", "atom"))
# warp-wide: all lanes of a warp meet
_OF_WARP = frozenset(("shfl", "vote", "match", "redux"))
_LOADED = frozenset(("global", "l1", "l2", "local", "shared"))


@dataclass(frozen=True)
class Step:
    """An instruction of straight-line code."""

    instruction: Instruction
    share: float = 1.0  # of the executions of the code in which it runs
    conditions: frozenset[str] = frozenset()  # predicates of the conditions that it is under
    memory: SiteMemory | None = None  # what it accesses, if that was counted
    may_diverge: bool = False  # whether some lanes of the warp may be elsewhere


def delays_of(steps: Sequence[Step], iterations: int) -> dict[str, float]:
    """The delays of the longest chain of so many iterations."""
    chains = _Chains()
    for _ in range(iterations):
        for step in steps:
            chains.follow(step)
        chains.end_iteration(steps)
    return chains.longest.total()


@dataclass(frozen=True)
class _DependencyChain:
    clocks: float = 0.0
    delays: Mapping[str, float] = field(default_factory=dict)  # of the last link
    before: _DependencyChain | None = None

    def then(self, delays: Mapping[str, float]) -> _DependencyChain:
        if not delays:
            return self
        clocks = sum(_CLOCKS[name] * steps for name, steps in delays.items())
        return _DependencyChain(self.clocks + clocks, delays, self)

    def total(self) -> dict[str, float]:
        """The delays of all its links."""
        found: dict[str, float] = {}
        link: _DependencyChain | None = self
        while link is not None:
            for name, steps in link.delays.items():
                found[name] = found.get(name, 0.0) + steps
            link = link.before
        return found


_EMPTY = _DependencyChain()


class _Chains:
    """The longest chain before each register, and what orders instructions otherwise."""

    def __init__(self) -> None:
        self._ready: dict[str, _DependencyChain] = {}
        self._writes: dict[str, int] = {}  # of each register, so far
        self._ordered = self.longest = _EMPTY
        self._issued = self._met = _EMPTY
        self._may_diverge = False  # whether lanes may have, so far
        # of each space: stores so far, with the place and the chain of each
        self._stores: dict[str, list[tuple[_Place, _DependencyChain]]] = {}

    def follow(self, step: Step) -> None:
        """Adds an instruction behind all that it waits for."""
        item = step.instruction
        cost = classify(item.op, item.modifiers)
        delays = _delays(item, cost, step.memory)
        if item.op in _ORDERS or cost.delay == "wait":
            before = self.longest if item.op in _ORDERS else self._ordered
            self._ordered = chain = before.then(delays)
        else:
            start = self._before(step)
            chain = start.then(delays)
            self._issued = max(self._issued, start, key=lambda link: link.clocks)
            self._may_diverge |= bool(step.conditions) or step.may_diverge
            if item.op in _OF_WARP and self._may_diverge:
                self._met = self._issued
        for name in _writes(item):
            self._ready[name] = chain
            self._writes[name] = self._writes.get(name, 0) + 1
        self.longest = max(self.longest, chain, key=lambda link: link.clocks)

    def _before(self, step: Step) -> _DependencyChain:
        """The longest chain that an instruction waits for."""
        item = step.instruction
        reads = _reads(item) | step.conditions
        if step.conditions:
            reads |= _writes(item)  # as with a guard: the old value may stay
        waits = [self._ready[name] for name in reads if name in self._ready]
        if item.op in _LOADS and not is_shared(item.modifiers):
            waits.append(self._met)
        place = _place(item, self._writes)
        if place is None:
            return max((*waits, self._ordered), key=lambda link: link.clocks)
        earlier = self._stores.get(place.space, [])
        if item.op not in _STORES or item.op == "atom":
            waits += [chain for other, chain in earlier if place.may_be(other)]
        found = max((*waits, self._ordered), key=lambda link: link.clocks)
        if item.op in _STORES or _is_store(item):
            self._stores.setdefault(place.space, []).append((place, found))
        return found

    def end_iteration(self, steps: Sequence[Step]) -> None:
        """A loop whose end depends on what it loads does not begin its next iteration before."""
        last = steps[-1].instruction if steps else None
        if last is None or last.guard is None:
            return
        chain = self._ready.get(last.guard.register.name, _EMPTY)
        if _LOADED & chain.total().keys():
            self._ordered = max(self._ordered, chain, key=lambda link: link.clocks)


@dataclass(frozen=True)
class _Place:
    """Where an instruction accesses memory: a range of bytes behind a value of a register."""

    space: str
    base: tuple[str, int] | None  # a register and how often it was written; None: unknown
    start: int
    end: int

    def may_be(self, other: _Place) -> bool:
        """Whether both may have a byte in common."""
        if self.base is None or self.base != other.base:
            return True
        return self.start < other.end and other.start < self.end


def _place(instruction: Instruction, writes: Mapping[str, int]) -> _Place | None:
    """Where an instruction loads or stores; None where no store of the kernel matters."""
    if instruction.op not in ("ld", "ldu", "ldmatrix", "stmatrix", "wmma") and (
        instruction.op not in _STORES
    ):
        return None
    words = instruction.modifiers
    if "nc" in words or "param" in words or "const" in words or "mma" in words:
        return None
    space = (
        "shared"
        if is_shared(words) or instruction.op.endswith("matrix")
        else "local"
        if "local" in words
        else "global"
    )
    address = next((item for item in instruction.operands if isinstance(item, Address)), None)
    if address is None or isinstance(address.base, Integer) or instruction.op == "wmma":
        return _Place(space, None, 0, 0)
    base, start = address.base.name, address.offset
    return _Place(space, (base, writes.get(base, 0)), start, start + bytes_of_lane(words))


def _delays(instruction: Instruction, cost: Cost, memory: SiteMemory | None) -> Mapping[str, float]:
    """The delays of the link that an instruction is."""
    if cost.delay is None:
        return {}
    if memory is None or cost.delay not in ("global", "shared", "local"):
        return {cost.delay: cost.steps}
    found: dict[str, float] = {}
    if memory.wavefronts or (cost.delay == "shared" and not memory.lines):
        return {"shared": cost.steps}
    if cost.delay == "local":
        found["local"] = cost.steps
    else:
        missed = 1.0 if _BEYOND_L1 & set(instruction.modifiers) else memory.missed
        missed = 1.0 if instruction.op == "atom" else missed
        found = {"l1": cost.steps * (1.0 - missed), "l2": cost.steps * missed}
    found["line"] = max(0.0, memory.lines - memory.requests)
    return {name: count for name, count in found.items() if count}


# PTX ISA 8.3, cache operators: loads that L1 does not serve
_BEYOND_L1 = frozenset(("cg", "cv", "volatile", "relaxed", "acquire", "mmio"))


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
