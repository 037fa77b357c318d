"""The instructions that a tier asks for with `uses`.

That they are there is a label, not a proof: nothing shows that the results come from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evoengine.candidate.binding import CasePlan
from evoengine.evaluate.candidate_refused import CandidateRefused
from evoengine.evaluate.compile.compile_unit import CompileResult
from evoengine.records import Status
from evoengine.task.schema import Task


def check_tier_instructions(
    task: Task,
    tier: str,
    plans: Iterable[CasePlan],
    results: Mapping[str, CompileResult],
    arch: str,
) -> None:
    """Raises CandidateRefused if the code of a scored case lacks an instruction that `tier` asks
    for.

    `results` are by specialisation. Other cases may take a more exact path.
    """
    for plan in plans:
        if plan.case not in task.objective.cases:
            continue
        result = results[plan.specialisation]
        found = {name for launch in plan.launches for name in result.formats.get(launch.kernel, ())}
        for name in task.tiers[tier].uses:
            if name not in found:
                reason = (
                    f"tier {tier} asks for {name} instructions, the machine code for {arch} has"
                    f" none in case {plan.case}"
                )
                raise CandidateRefused(Status.rejected, reason)
