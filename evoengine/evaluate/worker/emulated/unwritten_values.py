"""Whether a launch depends on shared or local memory that was never written.

A kernel may load a value and leave it out, or copy it as the padding of a structure. It is at fault
where the value decides what is stored or which way a warp takes. The same blocks are run with
several patterns in that memory; of what they then do, all must be equal.
"""

from __future__ import annotations

from collections.abc import Callable

from evoengine.emulator.check.findings import Finding, FindingKind, Space
from evoengine.emulator.device import LaunchReport
from evoengine.evaluate.worker.candidate_failures import DeviceTrap, LaunchTimeout
from evoengine.evaluate.worker.emulated.emulated_program import EmulatedProgram
from evoengine.evaluate.worker.emulated.plan_state import PlanState

PATTERNS = (0xFF, 0x7F, 0x00)  # every bit of a byte differs between two of them


def is_unwritten_read(finding: Finding) -> bool:
    """Whether a finding is a read of shared or local memory that was never written."""
    return finding.kind is FindingKind.UNINITIALISED and finding.space is not Space.GLOBAL


def depends_on_unwritten(
    program: EmulatedProgram, run: Callable[[], LaunchReport], before: PlanState
) -> bool:
    """Whether a launch from the state `before` does anything else with another pattern.

    `run` launches it with all checks on bounds. Kernels whose results differ from run to run count
    as dependent. The state is that after a launch.
    """
    poison, effects = program.poison, []
    try:
        for pattern in PATTERNS:
            before.restore()
            program.poison = pattern
            effects.append(_effect(run(), before))
    except (DeviceTrap, LaunchTimeout):
        return True
    finally:
        program.poison = poison
    return any(effect != effects[0] for effect in effects)


def _effect(report: LaunchReport, before: PlanState) -> tuple[object, ...]:
    """All that a launch did: what it left in memory, the ways that its warps took, other faults."""
    faults = {
        (item.kind, item.site, item.other_site)
        for item in report.findings
        if not is_unwritten_read(item)
    }
    return before.digest_now(), report.counters.tobytes(), faults
