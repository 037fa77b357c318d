"""Binds a candidate's launch plan to every case of a task; refuses what needs no compiler to
be refused.
"""

from __future__ import annotations

from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import CasePlan, OverLimits, bind
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError, hint
from evoengine.evaluate.candidate_refused import CandidateRefused
from evoengine.evaluate.compile.includes import check_includes
from evoengine.records import Status
from evoengine.task.schema import Task


def bound_plans(candidate: Candidate, task: Task, limits: DeviceLimits) -> list[CasePlan]:
    """The plans of all cases, hidden ones included; raises CandidateRefused for an unknown tier, an
    include that is not allowed, and a plan that does not bind or fit.
    """
    tier = candidate.plan.precision
    if tier not in task.tiers:
        reason = f"precision: no tier {tier!r} in task {task.name}{hint('', task.tiers)}"
        raise CandidateRefused(Status.rejected, reason)
    try:
        check_includes(candidate.code)
        return [bind(candidate, task, case, limits) for case in task.all_cases]
    except OverLimits as error:
        raise CandidateRefused(Status.over_limits, str(error)) from None
    except CandidateError as error:
        reason, _, more = str(error).partition("\n")
        raise CandidateRefused(Status.rejected, reason, more) from None
