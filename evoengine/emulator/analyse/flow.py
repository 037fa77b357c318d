"""The control flow of one kernel: edges, order, post-dominators, liveness.

Blocks are numbered in reverse post-order, so that a block comes before everything that
is only reached through it; EXIT is one more than the last number.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from evoengine.emulator.errors import Unsupported
from evoengine.emulator.ptx.program import (
    Address,
    Block,
    Function,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)

WRITES_NOTHING = frozenset(
    ("st", "bra", "brx", "ret", "exit", "trap", "brkpt", "red", "fence", "membar", "nanosleep", "cp", "prefetch", "prefetchu",
     "stmatrix", "discard", "applypriority", "pmevent", "griddepcontrol", "setmaxnreg", "yield")
)  # fmt: skip
SPINS = frozenset(("volatile", "acquire", "relaxed", "mmio"))


@dataclass
class Node:
    """One block of the flow: its instructions and where it goes."""

    label: str
    instructions: list[Instruction]
    taken: int | None = None  # where a branch at its end goes
    falls: int | None = None  # where it goes otherwise; None when it always branches or ends
    live_in: frozenset[str] = frozenset()

    @property
    def last(self) -> Instruction | None:
        """Its last instruction; None when it is empty."""
        return self.instructions[-1] if self.instructions else None

    @property
    def successors(self) -> tuple[int, ...]:
        """The blocks that may follow."""
        return tuple(dict.fromkeys(item for item in (self.taken, self.falls) if item is not None))


@dataclass
class Flow:
    """The graph of a kernel's blocks, in reverse post-order."""

    nodes: list[Node]
    post_dominator: list[int] = field(default_factory=list)  # immediate; EXIT where there is none
    loop_headers: frozenset[int] = frozenset()

    @property
    def exit(self) -> int:
        """The number of the place where threads end."""
        return len(self.nodes)

    def influence(self, branch: int) -> frozenset[int]:
        """The blocks that are reached from `branch` before all of its paths meet again."""
        join, seen = self.post_dominator[branch], set[int]()
        stack = [item for item in self.nodes[branch].successors if item != join]
        while stack:
            item = stack.pop()
            if item not in seen:
                seen.add(item)
                stack += [after for after in self.nodes[item].successors if after != join]
        return frozenset(seen)


    def reachable(self, start: int) -> frozenset[int]:
        """`start` and every block that may follow it."""
        seen, stack = {start}, [start]
        while stack:
            fresh = [item for item in self.nodes[stack.pop()].successors if item not in seen]
            seen.update(fresh)
            stack += fresh
        return frozenset(seen)


def suspends(instruction: Instruction) -> bool:
    """Whether a warp may stop at this instruction to let others run."""
    if instruction.op in ("bar", "barrier"):
        return not instruction.has("warp") and not instruction.has("arrive")
    return instruction.op == "yield"


def flow_of(function: Function) -> Flow:
    """The flow of `function`, whose calls are inlined; raises Unsupported for a branch that it cannot follow."""
    blocks = _split(function.blocks)
    labels = {block.label: number for number, block in enumerate(blocks)}
    nodes = [_node(blocks, number, labels) for number in range(len(blocks))]
    flow = _ordered(nodes)
    flow.loop_headers = frozenset(
        target for number, node in enumerate(flow.nodes) for target in node.successors if target <= number
    )
    if _add_yields(flow):
        return flow_of(replace_blocks(function, [Block(node.label, node.instructions) for node in _in_layout(flow)]))
    flow.post_dominator = _post_dominators(flow)
    _find_live(flow, function.registers)
    return flow


def replace_blocks(function: Function, blocks: list[Block]) -> Function:
    """`function` with other blocks."""
    return replace(function, blocks=blocks)


def _split(blocks: list[Block]) -> list[Block]:
    """Blocks that end behind every barrier; a guarded barrier becomes a branch around it."""
    found: list[Block] = []
    for block in blocks:
        current = Block(block.label)
        found.append(current)
        for instruction in block.instructions:
            if suspends(instruction) and instruction.guard:
                after = f"{block.label}.after{len(found)}"
                around = replace(instruction, op="bra", modifiers=(), operands=(Symbol(after),), text="bra", guard=_inverse(instruction))
                current.instructions.append(around)
                found += [Block(f"{block.label}.at{len(found)}", [replace(instruction, guard=None)]), Block(after)]
                current = found[-1]
                continue
            current.instructions.append(instruction)
            if suspends(instruction):
                current = Block(f"{block.label}.after{len(found)}")
                found.append(current)
    return found


def _inverse(instruction: Instruction):  # type: ignore[no-untyped-def]  # Guard | None
    guard = instruction.guard
    assert guard is not None
    return replace(guard, negated=not guard.negated)


def _node(blocks: list[Block], number: int, labels: dict[str, int]) -> Node:
    block = blocks[number]
    node = Node(block.label, block.instructions)
    after = number + 1 if number + 1 < len(blocks) else None
    last = node.last
    if last is None:
        node.falls = after
    elif last.op == "bra":
        target = last.operands[0]
        assert isinstance(target, Symbol)
        if target.name not in labels:
            raise Unsupported(last.text, last.line)
        node.taken = labels[target.name]
        node.falls = after if last.guard else None
    elif last.op == "brx":
        raise Unsupported(last.text, last.line)
    elif last.op in ("ret", "exit", "trap"):
        node.falls = after if last.guard else None
    else:
        node.falls = after
    return node


def _ordered(nodes: list[Node]) -> Flow:
    """The reachable nodes in reverse post-order, renumbered."""
    order, state, stack = list[int](), dict[int, int](), [(0, iter(sorted(nodes[0].successors, reverse=True)))]
    state[0] = 1
    while stack:
        number, rest = stack[-1]
        for after in rest:
            if after not in state:
                state[after] = 1
                stack.append((after, iter(sorted(nodes[after].successors, reverse=True))))
                break
        else:
            order.append(number)
            stack.pop()
    order.reverse()
    place = {old: new for new, old in enumerate(order)}
    for node in (nodes[old] for old in order):
        node.taken = None if node.taken is None else place[node.taken]
        node.falls = None if node.falls is None else place[node.falls]
    return Flow([nodes[old] for old in order])


def _in_layout(flow: Flow) -> list[Node]:
    """The nodes with their jumps spelled out, so that their order says nothing any more."""
    laid = []
    for number, node in enumerate(flow.nodes):
        instructions = list(node.instructions)
        laid.append(Node(node.label, instructions))
        if node.falls is not None and node.falls != number + 1:
            jump = Instruction("bra", (), (Symbol(flow.nodes[node.falls].label),), None, 0, "bra")
            laid.append(Node(f"{node.label}.to{number}", [jump]))
    return laid


def _add_yields(flow: Flow) -> bool:
    """Lets other warps run in loops that wait for them; whether there was such a loop that had none yet."""
    changed = False
    for header in flow.loop_headers:
        body = _loop(flow, header)
        instructions = [item for number in body for item in flow.nodes[number].instructions]
        if any(suspends(item) for item in instructions) or not _waits_for_others(flow, body, instructions):
            continue
        flow.nodes[header].instructions.insert(0, Instruction("yield", (), (), None, instructions[0].line, "yield"))
        changed = True
    return changed


def _waits_for_others(flow: Flow, body: set[int], instructions: list[Instruction]) -> bool:
    """Whether the end of a loop depends on what others write to memory: on a volatile load or the result of an atomic operation."""
    depends = {name for item in instructions if _hears(item) for name in written(item)}
    grown = True
    while grown and depends:
        before = len(depends)
        depends.update(name for item in instructions if depends & set(read(item)) for name in written(item))
        grown = len(depends) > before
    leaving = [item for number in body for item in flow.nodes[number].instructions if item.guard and _leaves(flow, number, body, item)]
    return any(item.guard and item.guard.register.name in depends for item in leaving)


def _leaves(flow: Flow, number: int, body: set[int], instruction: Instruction) -> bool:
    """Whether a guarded instruction may end the loop."""
    if instruction.op == "bra":
        return any(after not in body for after in flow.nodes[number].successors)
    return instruction.op in ("exit", "ret")


def _hears(instruction: Instruction) -> bool:
    return instruction.op == "atom" or (instruction.op == "ld" and bool(SPINS & set(instruction.modifiers)))


def _loop(flow: Flow, header: int) -> set[int]:
    """The blocks of the loop of `header`: those that reach a jump back to it without passing it."""
    before: dict[int, list[int]] = {}
    for number, node in enumerate(flow.nodes):
        for after in node.successors:
            before.setdefault(after, []).append(number)
    body, stack = {header}, [number for number in before.get(header, ()) if number >= header]
    while stack:
        number = stack.pop()
        if number not in body:
            body.add(number)
            stack += before.get(number, ())
    return body


def _post_dominators(flow: Flow) -> list[int]:
    """The immediate post-dominator of each block (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, on the reversed graph)."""
    exit_ = flow.exit
    after = [node.successors or (exit_,) for node in flow.nodes]
    before = _reversed(after, exit_)
    order, seen, stack = list[int](), {exit_}, [(exit_, iter(before[exit_]))]
    while stack:
        number, rest = stack[-1]
        for item in rest:
            if item not in seen:
                seen.add(item)
                stack.append((item, iter(before[item])))
                break
        else:
            order.append(number)
            stack.pop()
    rank = {number: place for place, number in enumerate(order)}
    found: dict[int, int] = {exit_: exit_}
    changed = True
    while changed:
        changed = False
        for number in reversed(order[:-1]):
            nexts = [item for item in after[number] if item in found]
            new = nexts[0]
            for item in nexts[1:]:
                new = _common(found, rank, new, item)
            if found.get(number) != new:
                found[number] = new
                changed = True
    return [found[number] for number in range(exit_)]


def _reversed(after: list[tuple[int, ...]], exit_: int) -> list[list[int]]:
    """The edges the other way round, with an end for loops that only guarded exits leave: their last block."""
    while True:
        before: list[list[int]] = [[] for _ in range(exit_ + 1)]
        for number, items in enumerate(after):
            for item in items:
                before[item].append(number)
        reach, stack = {exit_}, [exit_]
        while stack:
            fresh = [item for item in before[stack.pop()] if item not in reach]
            reach.update(fresh)
            stack += fresh
        lost = [number for number in range(exit_) if number not in reach]
        if not lost:
            return before
        after[lost[-1]] = (*after[lost[-1]], exit_)


def _common(found: dict[int, int], rank: dict[int, int], a: int, b: int) -> int:
    while a != b:
        while rank[a] < rank[b]:
            a = found[a]
        while rank[b] < rank[a]:
            b = found[b]
    return a


def written(instruction: Instruction) -> list[str]:
    """The names of the registers that `instruction` writes."""
    if instruction.op in WRITES_NOTHING or not instruction.operands:
        return []
    if instruction.op in ("bar", "barrier") and not instruction.has("red"):
        return []
    if instruction.op == "wmma" and instruction.has("store"):
        return []
    return [item.name for item in registers_of(instruction.operands[0])]


def read(instruction: Instruction) -> list[str]:
    """The names of the registers that `instruction` reads, its guard among them."""
    sources = instruction.operands if not written(instruction) and not _first_is_result(instruction) else instruction.operands[1:]
    names = [item.name for operand in sources for item in registers_of(operand)]
    if instruction.guard:
        names.append(instruction.guard.register.name)
    return names


def _first_is_result(instruction: Instruction) -> bool:
    """A result that nobody wants (`_`, or none) is no source either."""
    if instruction.op in WRITES_NOTHING or (instruction.op == "wmma" and instruction.has("store")):
        return False
    return not (instruction.op in ("bar", "barrier") and not instruction.has("red"))


def registers_of(operand: Operand) -> list[Register]:
    """Every register in an operand, in order."""
    match operand:
        case Register():
            return [operand]
        case Not(register):
            return [register]
        case Address(base, _):
            return registers_of(base)
        case Vector(items):
            return [register for item in items for register in registers_of(item)]
        case Pair(first, second):
            return registers_of(first) + registers_of(second)
        case _:
            return []


def _find_live(flow: Flow, registers: dict[str, str]) -> None:
    """Fills in which registers are alive at the start of each block; a guarded write keeps what was there."""
    uses: list[set[str]] = []
    kills: list[set[str]] = []
    for node in flow.nodes:
        used, killed = set[str](), set[str]()
        for instruction in node.instructions:
            used.update(name for name in read(instruction) if name not in killed)
            if instruction.guard:
                used.update(name for name in written(instruction) if name not in killed)
            killed.update(written(instruction))
        uses.append(used & registers.keys())
        kills.append(killed)
    changed = True
    while changed:
        changed = False
        for number in range(len(flow.nodes) - 1, -1, -1):
            after = set[str]().union(*(flow.nodes[item].live_in for item in flow.nodes[number].successors))
            live = frozenset(uses[number] | (after - kills[number]))
            if live != flow.nodes[number].live_in:
                flow.nodes[number].live_in = live
                changed = True
