"""The control flow of one kernel, from its instructions."""

from __future__ import annotations

from dataclasses import replace

from evoengine.emulator.analyse.control_flow_graph import Flow, Node, suspends
from evoengine.emulator.analyse.dominance import post_dominators
from evoengine.emulator.analyse.liveness import find_live
from evoengine.emulator.analyse.spin_loops import add_yields
from evoengine.emulator.emulator_errors import PtxError, Unsupported
from evoengine.emulator.ptx.syntax import Block, Function, Guard, Instruction, Symbol


def flow_of(function: Function) -> Flow:
    """The flow of `function`, whose calls are inlined; raises Unsupported for a branch that it
    cannot follow.
    """
    flow = _connected(_split(function.blocks))
    if add_yields(flow):  # a yield ends its block, as a barrier does
        flow = _connected(_split(_laid_out(flow)))
    flow.post_dominator = post_dominators([node.successors for node in flow.nodes])
    find_live(flow, function.registers)
    return flow


def _split(blocks: list[Block]) -> list[Block]:
    """Blocks that end behind every barrier, because a warp goes on from there; a guarded barrier
    becomes a branch around it.
    """
    found: list[Block] = []
    for block in blocks:
        current = Block(block.label)
        found.append(current)
        for instruction in block.instructions:
            if suspends(instruction) and instruction.guard:
                after = f"{block.label}.after{len(found)}"
                current.instructions.append(_around(instruction, instruction.guard, after))
                found += [
                    Block(f"{block.label}.at{len(found)}", [replace(instruction, guard=None)]),
                    Block(after),
                ]
                current = found[-1]
                continue
            current.instructions.append(instruction)
            if suspends(instruction):
                current = Block(f"{block.label}.after{len(found)}")
                found.append(current)
    if not found or _may_branch(found[-1]):
        found.append(Block("end"))  # where lanes end that do not take the branch
    return found


def _may_branch(block: Block) -> bool:
    return (
        bool(block.instructions)
        and block.instructions[-1].op == "bra"
        and block.instructions[-1].guard is not None
    )


def _around(instruction: Instruction, guard: Guard, after: str) -> Instruction:
    """A branch to `after` for the lanes that do not run `instruction`."""
    return replace(
        instruction,
        op="bra",
        modifiers=(),
        operands=(Symbol(after),),
        text="bra",
        guard=replace(guard, negated=not guard.negated),
    )


def _connected(blocks: list[Block]) -> Flow:
    labels = {block.label: number for number, block in enumerate(blocks)}
    nodes = []
    for number, block in enumerate(blocks):
        after = number + 1 if number + 1 < len(blocks) else None
        taken, falls = _ways(block, after, labels)
        nodes.append(Node(block.label, block.instructions, taken, falls))
    flow = _ordered(nodes)
    flow.loop_headers = frozenset(
        target
        for number, node in enumerate(flow.nodes)
        for target in node.successors
        if target <= number
    )
    return flow


def _ways(block: Block, after: int | None, labels: dict[str, int]) -> tuple[int | None, int | None]:
    """Where a block branches to and where it falls through to."""
    last = block.instructions[-1] if block.instructions else None
    if last is None or last.op not in ("bra", "brx", "ret", "exit", "trap"):
        return None, after
    if last.op == "brx":
        raise Unsupported(last.text, last.line)
    falls = after if last.guard else None
    if last.op != "bra":
        return None, falls
    target = last.operands[0] if last.operands else None
    if not isinstance(target, Symbol) or target.name not in labels:
        raise PtxError(f"`{last.text}` goes nowhere")
    return labels[target.name], falls


def _ordered(nodes: list[Node]) -> Flow:
    """The reachable nodes in reverse post-order, renumbered."""
    order, seen, stack = list[int](), {0}, [(0, iter(sorted(nodes[0].successors, reverse=True)))]
    while stack:
        number, rest = stack[-1]
        fresh = next((item for item in rest if item not in seen), None)
        if fresh is None:
            order.append(number)
            stack.pop()
        else:
            seen.add(fresh)
            stack.append((fresh, iter(sorted(nodes[fresh].successors, reverse=True))))
    order.reverse()
    place = {old: new for new, old in enumerate(order)}
    for node in (nodes[old] for old in order):
        node.taken = None if node.taken is None else place[node.taken]
        node.falls = None if node.falls is None else place[node.falls]
    return Flow([nodes[old] for old in order])


def _laid_out(flow: Flow) -> list[Block]:
    """The nodes with their jumps spelled out, so that their order says nothing any more."""
    laid = []
    for number, node in enumerate(flow.nodes):
        laid.append(Block(node.label, list(node.instructions)))
        if node.falls is not None and node.falls != number + 1:
            jump = Instruction("bra", (), (Symbol(flow.nodes[node.falls].label),), None, 0, "bra")
            laid.append(Block(f"{node.label}.to{number}", [jump]))
    return laid
