"""Modelled times of a case from what its launches counted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evoengine.emulator.check.findings import Check
from evoengine.emulator.device import Checks, LaunchReport
from evoengine.emulator.errors import EmulatorError
from evoengine.emulator.model.counts import Counts
from evoengine.emulator.model.observe import executed, with_accesses
from evoengine.emulator.model.time import modelled
from evoengine.emulator.targets import Target
from evoengine.evaluate.worker.emulated.memory import EmulatedArena
from evoengine.evaluate.worker.emulated.program import Program, finding_of, three
from evoengine.evaluate.worker.emulated.screening import sample
from evoengine.plan import Buffer, Launch
from evoengine.records import CaseModel, LaunchModel

UNKNOWN_REGISTERS = 0  # without NVRTC nobody says how many: the model then lets occupancy depend on the rest alone
COUNTED_BLOCKS = 8  # whose bank conflicts and sectors are counted; what is executed is counted on the whole grid


def model_case(program: Program, arena: EmulatedArena, executions: Sequence[LaunchReport], target: Target, cold: bool) -> CaseModel:
    """The modelled time of a whole plan, launch by launch, whose buffers are filled; raises Finding where no block fits on the target.

    `executions` are the reports of whole grids on the same inputs.
    """
    pointers = {name: arena.pointer(name) for name in arena.tensors}
    launches = []
    for launch, whole in zip(program.compiled.plan.launches, executions, strict=True):
        chosen = sample(math.prod(launch.grid), COUNTED_BLOCKS)
        sampled = program.run(launch, pointers, Checks(Check(0)), chosen)
        launches.append(
            _model_launch(program, launch, counts_of(launch, whole, sampled, arena), whole.lowered.layout.static_shared, target, cold)
        )
        if len(launches) < len(executions):
            program.run(launch, pointers)  # the next launch reads what all blocks write
    return CaseModel(case=program.compiled.plan.case, target=target.name, launches=tuple(launches))


def counts_of(launch: Launch, whole: LaunchReport, sampled: LaunchReport, arena: EmulatedArena) -> Counts:
    """What a launch did: instructions of the whole grid, memory traffic of a sample of its blocks, scaled."""
    assert sampled.accesses is not None
    warps = -(-math.prod(launch.block) // 32) * whole.blocks
    code = zip((node.instructions for node in whole.lowered.flow.nodes), whole.counters[:, 0].tolist(), strict=True)
    touched = {argument.buffer for argument in launch.args if isinstance(argument, Buffer)}
    unique_bytes = sum(arena.tensors[name].numel() * arena.tensors[name].element_size() for name in touched)
    counts = executed(code, blocks=whole.blocks, warps=warps, unique_bytes=unique_bytes)
    return with_accesses(counts, sampled.accesses, sampled.blocks_run)


def _model_launch(program: Program, launch: Launch, counts: Counts, static_shared_bytes: int, target: Target, cold: bool) -> LaunchModel:
    resources = next((item for item in program.compiled.resources if item.kernel == launch.kernel), None)
    try:
        found = modelled(
            counts,
            target=target,
            grid=three(launch.grid),
            block=three(launch.block),
            registers=resources.registers if resources else UNKNOWN_REGISTERS,
            shared_bytes=static_shared_bytes + launch.shared_bytes,
            cold=cold,
        )
    except EmulatorError as error:
        raise finding_of(error) from None
    return LaunchModel(kernel=launch.kernel, us=found.us, limiter=found.limiter, bounds_us=dict(found.bounds_us))
