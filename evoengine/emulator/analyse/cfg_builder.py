"""Builds the control flow graph of a kernel from its instructions."""

from __future__ import annotations

from dataclasses import replace

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph, Node, suspends
from evoengine.emulator.analyse.dominance import post_dominators
from evoengine.emulator.analyse.liveness import compute_liveness
from evoengine.emulator.analyse.spin_loops import add_yields, natural_loop
from evoengine.emulator.emulator_errors import PtxError, Unsupported
from evoengine.emulator.ptx.syntax import Block, Function, Guard, Instruction, Symbol


def build_cfg(function: Function) -> ControlFlowGraph:
    """The control flow graph of `function`, whose calls are inlined; raises Unsupported for
    indirect branches.
    """
    cfg = _connect(_split(function.blocks))
    if add_yields(cfg):  # a yield ends its block, as a barrier does
        cfg = _connect(_split(_with_explicit_jumps(cfg)))
    cfg.post_dominator = post_dominators([node.successors for node in cfg.nodes])
    compute_liveness(cfg, function.registers)
    return cfg


def _split(blocks: list[Block]) -> list[Block]:
    """The blocks, split after every barrier, because a warp resumes there; a guarded barrier
    becomes a branch around it.
    """
    found: list[Block] = []
    for block in blocks:
        current = Block(block.label)
        found.append(current)
        for instruction in block.instructions:
            if suspends(instruction) and instruction.guard:
                after = f"{block.label}.after{len(found)}"
                current.instructions.append(_branch_around(instruction, instruction.guard, after))
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
        found.append(Block("end"))  # lanes that do not take the branch exit here
    return found


def _may_branch(block: Block) -> bool:
    return (
        bool(block.instructions)
        and block.instructions[-1].op == "bra"
        and block.instructions[-1].guard is not None
    )


def _branch_around(instruction: Instruction, guard: Guard, after: str) -> Instruction:
    """A branch to `after` for the lanes that do not run `instruction`."""
    return replace(
        instruction,
        op="bra",
        modifiers=(),
        operands=(Symbol(after),),
        text="bra",
        guard=replace(guard, negated=not guard.negated),
    )


def _connect(blocks: list[Block]) -> ControlFlowGraph:
    labels = {block.label: number for number, block in enumerate(blocks)}
    nodes = []
    for number, block in enumerate(blocks):
        after = number + 1 if number + 1 < len(blocks) else None
        taken, fallthrough = _successors(block, after, labels)
        nodes.append(Node(block.label, block.instructions, taken, fallthrough))
    cfg = _in_reverse_post_order(nodes, [node.successors for node in nodes])
    if _loop_headers(cfg):
        cfg = _in_reverse_post_order(cfg.nodes, _with_ways_out(cfg))
    cfg.loop_headers = _loop_headers(cfg)
    return cfg


def _loop_headers(cfg: ControlFlowGraph) -> frozenset[int]:
    """The blocks that a jump backwards goes to."""
    return frozenset(
        target
        for number, node in enumerate(cfg.nodes)
        for target in node.successors
        if target <= number
    )


def _with_ways_out(cfg: ControlFlowGraph) -> list[tuple[int, ...]]:
    """The successors of every block, and those of all blocks of its loops.

    Of the blocks before which lanes of a warp stand, the first one runs: what comes after a loop
    must be behind all of it, or lanes that have left would exchange values without the others.
    """
    after = [set(node.successors) for node in cfg.nodes]
    for header in _loop_headers(cfg):
        body = natural_loop(cfg, header)
        out = {item for number in body for item in cfg.nodes[number].successors} - body
        for number in body:
            after[number] |= out
    return [tuple(items) for items in after]


def _successors(
    block: Block, after: int | None, labels: dict[str, int]
) -> tuple[int | None, int | None]:
    """The branch target and the fall-through block of `block`."""
    last = block.instructions[-1] if block.instructions else None
    if last is None or last.op not in ("bra", "brx", "ret", "exit", "trap"):
        return None, after
    if last.op == "brx":
        raise Unsupported(last.text, last.line)
    fallthrough = after if last.guard else None
    if last.op != "bra":
        return None, fallthrough
    target = last.operands[0] if last.operands else None
    if not isinstance(target, Symbol) or target.name not in labels:
        raise PtxError(f"`{last.text}` has no label in this function as its target")
    return labels[target.name], fallthrough


def _in_reverse_post_order(nodes: list[Node], after: list[tuple[int, ...]]) -> ControlFlowGraph:
    """The reachable nodes in reverse post-order of the edges `after`, renumbered."""
    order, seen, stack = list[int](), {0}, [(0, iter(sorted(after[0], reverse=True)))]
    while stack:
        number, rest = stack[-1]
        fresh = next((item for item in rest if item not in seen), None)
        if fresh is None:
            order.append(number)
            stack.pop()
        else:
            seen.add(fresh)
            stack.append((fresh, iter(sorted(after[fresh], reverse=True))))
    order.reverse()
    place = {old: new for new, old in enumerate(order)}
    for node in (nodes[old] for old in order):
        node.taken = None if node.taken is None else place[node.taken]
        node.fallthrough = None if node.fallthrough is None else place[node.fallthrough]
    return ControlFlowGraph([nodes[old] for old in order])


def _with_explicit_jumps(cfg: ControlFlowGraph) -> list[Block]:
    """The nodes with explicit jumps in place of fall-through, so that their order no longer
    matters.
    """
    blocks = []
    for number, node in enumerate(cfg.nodes):
        blocks.append(Block(node.label, list(node.instructions)))
        if node.fallthrough is not None and node.fallthrough != number + 1:
            jump = Instruction(
                "bra", (), (Symbol(cfg.nodes[node.fallthrough].label),), None, 0, "bra"
            )
            blocks.append(Block(f"{node.label}.to{number}", [jump]))
    return blocks
