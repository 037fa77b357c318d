"""The cost of one execution of straight-line code by a warp: instructions by pipe, and the longest
dependency chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evoengine.emulator.ptx.syntax import Instruction
from evoengine.emulator.timing_model.counts import CountsBuilder
from evoengine.emulator.timing_model.dependency_chains import Step, delays_of
from evoengine.emulator.timing_model.pipes import Cost, classify

# iterations of a loop without a known trip count that follow one another in machine code: the usual
# factor of LLVM and nvcc
UNROLLED = 4
# rounds of a loop are a whole number each time if their mean is so near to one
SAME_ROUNDS = 1e-3
# PTX instructions of all these iterations: a longer body is repeated less often. Estimate.
UNROLLED_INSTRUCTIONS = 128


@dataclass(frozen=True)
class InstructionMix:
    """Warp instructions by pipe, tensor operations by kind and delays of the longest chain, for one
    execution by one warp.
    """

    instructions: Mapping[str, float]
    flops: Mapping[str, float]
    delays: Mapping[str, float]
    # of shared memory: as counted, else without bank conflicts
    wavefronts: float
    # of global memory from and to L2: as counted, else with coalesced accesses
    sectors: float
    copy_sectors: float = 0.0  # of asynchronous copies, which are not among those
    # of 128 bytes that L1 looks up, of global and local memory
    lines: float = 0.0


def instruction_mix(
    code: Sequence[Instruction | Step], *, rounds: float | None = None, done: int = 1
) -> InstructionMix:
    """The instruction mix of straight-line code.

    `rounds`: it is the whole body of a loop that compilers unroll, with so many rounds each time it
    is entered. So the loads of several iterations overlap, unless one needs what another loads, or
    may load what another stores; those that are left over run one by one.
    """
    steps = [item if isinstance(item, Step) else Step(item) for item in code]
    builder = CountsBuilder()
    wavefronts = sectors = copied = lines = 0.0
    for step in steps:
        cost, memory = classify(step.instruction.op, step.instruction.modifiers), step.memory
        flops = {cost.tensor_kind: cost.tensor_flops} if cost.tensor_flops else {}
        requests = memory.requests if memory else cost.memory_instructions
        builder.add(_by_pipe(cost, requests), flops, {}, step.share)
        wavefronts += step.share * (memory.wavefronts if memory else cost.wavefronts)
        moved = step.share * (memory.l2_sectors if memory else cost.sectors)
        if step.instruction.op == "cp":
            copied += moved
        else:
            sectors += moved
        lines += step.share * (memory.lines if memory else cost.lines)
    delays = _delays_of_loop(steps, rounds, done) if rounds else delays_of(steps, 1)
    return InstructionMix(
        builder.instructions, builder.flops, delays, wavefronts, sectors, copied, lines
    )


def _delays_of_loop(steps: Sequence[Step], rounds: float, done: int) -> dict[str, float]:
    """The delays of one iteration, a mean over all that follow one another."""
    unrolled = max(1, min(UNROLLED // done, UNROLLED_INSTRUCTIONS // max(1, len(steps))))
    left = float(round(rounds) % unrolled)
    if abs(rounds - round(rounds)) >= SAME_ROUNDS:  # it differs from time to time
        left = min((unrolled - 1) / 2, rounds)
    together, alone = delays_of(steps, unrolled), delays_of(steps, 1)
    share = left / rounds
    return {
        name: share * alone.get(name, 0.0) + (1 - share) * together.get(name, 0.0) / unrolled
        for name in alone | together
    }


def _by_pipe(cost: Cost, requests: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for pipe, count in cost.pipes:
        found[pipe] = found.get(pipe, 0.0) + (requests if pipe == "lsu" else count)
    return found
