"""Modelled times of a case from what its launches counted."""

from __future__ import annotations

from collections.abc import Sequence

from evoengine.emulator.device import LaunchReport
from evoengine.emulator.errors import EmulatorError
from evoengine.emulator.model.time import modelled
from evoengine.emulator.targets import Target
from evoengine.evaluate.worker.emulated.program import finding_of, three
from evoengine.plan import Launch
from evoengine.records import CaseModel, LaunchModel
from evoengine.seams import CompiledCase

UNKNOWN_REGISTERS = 0  # without NVRTC nobody says how many: the model then lets occupancy depend on the rest alone


def model_case(compiled: CompiledCase, reports: Sequence[LaunchReport], target: Target, cold: bool) -> CaseModel:
    """The modelled time of a whole plan, launch by launch; raises Finding where no block fits on the target."""
    launches = tuple(
        _model_launch(compiled, launch, report, target, cold) for launch, report in zip(compiled.plan.launches, reports, strict=True)
    )
    return CaseModel(case=compiled.plan.case, target=target.name, launches=launches)


def _model_launch(compiled: CompiledCase, launch: Launch, report: LaunchReport, target: Target, cold: bool) -> LaunchModel:
    resources = next((item for item in compiled.resources if item.kernel == launch.kernel), None)
    static = resources.static_shared_bytes if resources else report.lowered.layout.static_shared
    try:
        found = modelled(
            report.counts,
            target=target,
            grid=three(launch.grid),
            block=three(launch.block),
            registers=resources.registers if resources else UNKNOWN_REGISTERS,
            shared_bytes=static + launch.shared_bytes,
            cold=cold,
        )
    except EmulatorError as error:
        raise finding_of(error) from None
    return LaunchModel(kernel=launch.kernel, us=found.us, limiter=found.limiter, bounds_us=dict(found.bounds_us))
