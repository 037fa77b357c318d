"""Simplifies control flow: removes empty blocks, jumps to jumps and unreachable blocks."""

from __future__ import annotations

from dataclasses import replace

from evoengine.emulator.ptx.syntax import (
    Block,
    Function,
    Guard,
    Instruction,
    Operand,
    Symbol,
    Vector,
)

_PASSES = 8  # two or three are enough for clang's output
_LEAVES = ("ret", "exit")


def simplify(kernel: Function) -> Function:
    """An equivalent copy of `kernel` with simpler control flow.

    Chains of jumps are shortened; a guarded jump to a block that only returns becomes a guarded
    `exit`, after which the block continues; a block is merged with its only predecessor if it is
    that one's only successor.
    """
    blocks = [
        Block(block.label, [_leaving(old) for old in block.instructions]) for block in kernel.blocks
    ]
    for _ in range(_PASSES):
        before = [(block.label, len(block.instructions)) for block in blocks]
        _thread(blocks)
        _leave_early(blocks)
        blocks = _merged(_reached(blocks))
        if before == [(block.label, len(block.instructions)) for block in blocks]:
            break
    return replace(kernel, blocks=blocks)


def _leaving(instruction: Instruction) -> Instruction:
    """A kernel's guarded ret is an exit."""
    return (
        replace(instruction, op="exit", modifiers=())
        if instruction.op == "ret" and instruction.guard
        else instruction
    )


def targets(block: Block) -> list[str]:
    """The labels that the block's last instruction may jump to."""
    last = block.instructions[-1] if block.instructions else None
    if last is None or last.op not in ("bra", "brx"):
        return []
    where = last.operands[-1]
    return [
        item.name
        for item in (where.items if isinstance(where, Vector) else (where,))
        if isinstance(item, Symbol)
    ]


def falls_through(block: Block) -> bool:
    """Whether the block may fall through to the next one."""
    last = block.instructions[-1] if block.instructions else None
    return last is None or last.guard is not None or last.op not in ("bra", "brx", *_LEAVES)


def _ends_at(blocks: list[Block]) -> dict[str, str]:
    """The final target of a jump to each label, past empty blocks and blocks of one jump."""
    steps: dict[str, str] = {}
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if not block.instructions and following is not None:
            steps[block.label] = following.label
        elif (
            len(block.instructions) == 1
            and block.instructions[0].op == "bra"
            and not block.instructions[0].guard
        ):
            steps[block.label] = targets(block)[0]
    ends: dict[str, str] = {}
    for label in steps:
        path: dict[str, None] = {}
        place = label
        # an endless loop of jumps: any label in it is correct
        while place in steps and place not in ends and place not in path:
            path[place] = None
            place = steps[place]
        ends.update(dict.fromkeys(path, ends.get(place, place)))
    return ends


def _thread(blocks: list[Block]) -> None:
    ends = _ends_at(blocks)
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if not block.instructions or block.instructions[-1].op not in ("bra", "brx"):
            continue
        jump = block.instructions[-1]
        new = [Symbol(ends.get(name, name)) for name in targets(block)]
        last: Operand = Vector(tuple(new)) if isinstance(jump.operands[-1], Vector) else new[0]
        if (
            jump.op == "bra"
            and following is not None
            and new[0].name == ends.get(following.label, following.label)
        ):
            block.instructions.pop()  # it falls through to there anyway
        elif last != jump.operands[-1]:
            block.instructions[-1] = replace(jump, operands=(*jump.operands[:-1], last))


def _leave_early(blocks: list[Block]) -> None:
    """`@p bra L`, where L only returns, becomes `@p exit`; where the fall-through only returns,
    `@!p exit` and `bra L`.
    """
    ends = _ends_at(blocks)
    returning = {
        block.label
        for block in blocks
        if len(block.instructions) == 1 and _returns(block.instructions[0])
    }
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        last = block.instructions[-1] if block.instructions else None
        if last is None or last.op != "bra" or last.guard is None:
            continue
        if targets(block)[0] in returning:
            block.instructions[-1] = replace(last, op="exit", modifiers=(), operands=())
        elif following is not None and ends.get(following.label, following.label) in returning:
            guard = Guard(last.guard.register, not last.guard.negated)
            leave = replace(last, op="exit", modifiers=(), operands=(), guard=guard)
            block.instructions[-1:] = [leave, replace(last, guard=None)]


def _returns(instruction: Instruction) -> bool:
    return instruction.op in _LEAVES and instruction.guard is None


def _reached(blocks: list[Block]) -> list[Block]:
    """The blocks that are reachable from the first, in their order."""
    index = {block.label: number for number, block in enumerate(blocks)}
    seen = {0}
    todo = [0]
    while todo:
        number = todo.pop()
        ways = [index[label] for label in targets(blocks[number])]
        if falls_through(blocks[number]) and number + 1 < len(blocks):
            ways.append(number + 1)
        todo += (fresh := set(ways) - seen)
        seen |= fresh
    return [block for number, block in enumerate(blocks) if number in seen]


def _merged(blocks: list[Block]) -> list[Block]:
    """Merges each block with its only predecessor, if it is that one's only successor.

    A block that falls through can only be merged if it comes right after its predecessor, because
    its own successor must follow it.
    """
    index = {block.label: number for number, block in enumerate(blocks)}
    arrivals = _arrivals(blocks, index)
    gone: set[int] = set()
    for number, block in enumerate(blocks):
        if number in gone:
            continue
        # index of the last following block that was merged into this one; -2 if one came from
        # elsewhere
        end = number
        while (
            (way := _only_way(block, end, index)) is not None
            and arrivals[way] == 1
            and way not in (0, number)
        ):
            if way != end + 1 and falls_through(blocks[way]):
                break
            if targets(block):
                block.instructions.pop()
            block.instructions += blocks[way].instructions
            blocks[way].instructions = []
            gone.add(way)
            end = way if way == end + 1 else -2
    return [block for number, block in enumerate(blocks) if number not in gone]


def _arrivals(blocks: list[Block], index: dict[str, int]) -> list[int]:
    counts = [0] * (len(blocks) + 1)
    for number, block in enumerate(blocks):
        for label in targets(block):
            counts[index[label]] += 1
        counts[number + 1] += falls_through(block)
    return counts


def _only_way(block: Block, end: int, index: dict[str, int]) -> int | None:
    """The index of the block's only successor, else None; `end` is its own index, for
    fall-through.
    """
    last = block.instructions[-1] if block.instructions else None
    if last is None or last.op not in ("bra", "brx"):
        return end + 1 if falls_through(block) and end + 1 < len(index) else None
    return index[targets(block)[0]] if last.op == "bra" and last.guard is None else None
