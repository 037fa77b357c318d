"""Models the time of a case from the counts of its launches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evoengine.candidate.binding import BoundLaunch, BufferArgument, Fill
from evoengine.emulator.check.findings import Check
from evoengine.emulator.device import Checks, LaunchReport
from evoengine.emulator.emulator_errors import EmulatorError
from evoengine.emulator.targets import TargetGpu
from evoengine.emulator.timing_model.counts import Counts
from evoengine.emulator.timing_model.launch_counts import counts_from_reports
from evoengine.emulator.timing_model.launch_time import model_launch
from evoengine.evaluate.worker.candidate_failures import LaunchTimeout
from evoengine.evaluate.worker.emulated.checked_mode import sample
from evoengine.evaluate.worker.emulated.emulated_arena import EmulatedArena
from evoengine.evaluate.worker.emulated.emulated_program import EmulatedProgram, failure_of, three
from evoengine.evaluate.worker.emulated.plan_state import PlanState
from evoengine.records import CaseModel, LaunchModel

# without NVRTC their number is unknown: occupancy then depends on threads and shared memory alone
UNKNOWN_REGISTERS = 0
# bank conflicts and sectors are counted on so many blocks, instructions on the whole grid
COUNTED_BLOCKS = 8


def model_case(
    program: EmulatedProgram,
    arena: EmulatedArena,
    written: Sequence[str],
    executions: Sequence[LaunchReport],
    target: TargetGpu,
    cold: bool,
) -> CaseModel:
    """The modelled time of each launch of a plan, in microseconds; raises CandidateFailure where no
    block fits on the target.

    The arena's inputs are filled. `written` names the buffers that are not inputs; `executions`
    are the reports of whole grids on the same inputs.
    """
    pointers = arena.pointers
    launches = []
    filled = [model_fill(fill, target) for fill in program.compiled.plan.fills]
    for launch, whole in zip(program.compiled.plan.launches, executions, strict=True):
        before = PlanState(program, arena, written)
        sampled = _sampled(program, launch, pointers, before)
        counts = counts_from_reports(whole, sampled, unique_bytes=_touched_bytes(launch, arena))
        launches.append(
            _model_launch(program, launch, counts, whole.lowered.layout.static_shared, target, cold)
        )
        if len(launches) < len(executions) and sampled.blocks_run < sampled.blocks:
            before.restore()
            program.run(launch, pointers)  # the next launch reads what all blocks write
    return CaseModel(
        case=program.compiled.plan.case, target=target.name, launches=(*filled, *launches)
    )


def model_fill(fill: Fill, target: TargetGpu) -> LaunchModel:
    """A memset or a copy at the bandwidth of L2, where what it writes stays."""
    moved = fill.bytes * (2 if fill.source else 1)
    us = target.launch_us + moved / (target.l2_gb_s * 1e3)
    return LaunchModel(kernel=f"fill {fill.buffer}", us=us, limiter="l2", bounds_us={"l2": us})


def _sampled(
    program: EmulatedProgram, launch: BoundLaunch, pointers: Mapping[str, int], before: PlanState
) -> LaunchReport:
    """The report of some blocks, or of the whole grid where these do not end alone."""
    try:
        return program.run(
            launch, pointers, Checks(Check(0)), sample(math.prod(launch.grid), COUNTED_BLOCKS)
        )
    except LaunchTimeout:  # blocks that wait for blocks outside of the sample
        before.restore()
        return program.run(launch, pointers, Checks(Check(0)))


def _touched_bytes(launch: BoundLaunch, arena: EmulatedArena) -> int:
    """The bytes of all buffers that a launch is given: an estimate of those that it touches."""
    touched = {argument.buffer for argument in launch.args if isinstance(argument, BufferArgument)}
    return sum(arena.tensors[name].numel() * arena.tensors[name].element_size() for name in touched)


def _model_launch(
    program: EmulatedProgram,
    launch: BoundLaunch,
    counts: Counts,
    static_shared_bytes: int,
    target: TargetGpu,
    cold: bool,
) -> LaunchModel:
    resources = next(
        (item for item in program.compiled.resources if item.kernel == launch.kernel), None
    )
    try:
        found = model_launch(
            counts,
            target=target,
            grid=three(launch.grid),
            block=three(launch.block),
            registers=resources.registers if resources else UNKNOWN_REGISTERS,
            shared_bytes=static_shared_bytes + launch.shared_bytes,
            cold=cold,
        )
    except EmulatorError as error:
        raise failure_of(error) from None
    return LaunchModel(
        kernel=launch.kernel,
        us=found.us,
        limiter=found.limiter,
        bounds_us=dict(found.bounds_us),
        latency_shares=dict(found.latency_shares),
    )
