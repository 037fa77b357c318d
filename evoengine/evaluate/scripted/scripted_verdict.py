"""A verdict that is drawn from the candidate's digest."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from evoengine.candidate.arch import limits_of
from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import derived_seed
from evoengine.evaluate.bound_plans import bound_plans
from evoengine.evaluate.candidate_refused import CandidateRefused
from evoengine.evaluate.kernel_resources import exceeded_limits
from evoengine.evaluate.scoring import modelled_us, score_of
from evoengine.evaluate.scripted import scripted_findings as findings
from evoengine.evaluate.scripted.scripted_findings import BASELINE_US
from evoengine.records import CaseCheck, Environment, Interval, Status, Verdict
from evoengine.task.schema import Task

VERIFIED_SLOWDOWN = 1.001  # two processes never measure the same time
NOISE = 0.01  # half of the interval around a score without samples


@dataclass(frozen=True)
class VerdictRule:
    """How a verdict follows from the candidate's digest and from `verify`."""

    correct_share: float = 0.8  # of all candidates
    failures: tuple[Status, ...] = (Status.wrong_result, Status.crash)  # each as likely
    unstable_share: float = 0.1  # of the correct ones: their verification finds a wrong result
    scores: tuple[float, float] = (0.5, 2.0)  # the range of candidate time / baseline time
    samples: int = 20  # of each timed case; with 0 a verdict has neither checks nor samples
    void_share: float = 0.1  # of all races


def scripted_verdict(
    candidate: Candidate, task: Task, environment: Environment, rule: VerdictRule, verify: bool
) -> Verdict:
    """The verdict that `rule` draws for `candidate`: the same each time.

    A header that does not fit the task or the device is refused first, as in a real run.
    """
    tier = candidate.plan.precision
    try:
        plans = bound_plans(candidate, task, limits_of(environment))
    except CandidateRefused as refused:
        return refused.verdict.model_copy(update={"tier": tier, "environment": environment})
    status, score = _draw(candidate, rule, verify)
    kernels = sorted({launch.kernel for plan in plans for launch in plan.launches})
    resources, on_target = findings.resources(kernels, task, environment)
    luck = Random(derived_seed(candidate.digest, verify))  # noqa: S311 - must repeat
    checks = findings.checks(status, task, environment, verify, luck) if rule.samples else ()
    verdict = Verdict(
        status=status,
        reason=_reason(status, checks),
        tier=tier,
        resources=resources,
        target_exceeds=exceeded_limits(task.target, on_target) if task.target else (),
        checks=checks,
        code_digest=candidate.digest,
        phases_s={"compile": 0.1, "check": 0.2, "timing": 0.2, "total": 0.5},
        environment=environment,
    )
    if status is not Status.correct:
        return verdict
    if environment.is_modelled:
        return verdict.model_copy(update=_modelled(score, task, kernels))
    slower = score * (VERIFIED_SLOWDOWN if verify else 1.0)
    return verdict.model_copy(update=_measured(slower, task, rule.samples, luck))


def drawn_score(candidate: Candidate, rule: VerdictRule) -> float:
    """The score that `rule` draws for `candidate`, before any noise."""
    return _draw(candidate, rule, verify=False)[1]


def _draw(candidate: Candidate, rule: VerdictRule, verify: bool) -> tuple[Status, float]:
    """The status and the score of a verdict."""
    luck = Random(derived_seed(candidate.digest))  # noqa: S311 - must repeat, need not be secret
    score, failure = luck.uniform(*rule.scores), luck.choice(rule.failures)
    correct, stable = luck.random() < rule.correct_share, luck.random() >= rule.unstable_share
    if not correct:
        return failure, score
    return Status.correct if stable or not verify else Status.wrong_result, score


def _reason(status: Status, checks: tuple[CaseCheck, ...]) -> str:
    if status is Status.correct:
        return "correct on every case"
    for check in checks:
        if not check.ok:
            wrong = sum(not item.ok for item in check.sets)
            return f"case {check.case}: {wrong} of {len(check.sets)} input sets fail"
    return f"scripted {status}"


def _modelled(score: float, task: Task, kernels: list[str]) -> dict[str, Any]:
    modelled = findings.modelled(score * BASELINE_US, task, kernels)
    us = modelled_us(task, modelled)
    return {"modelled": modelled, "score": us, "latency_us": us}


def _measured(score: float, task: Task, samples: int, luck: Random) -> dict[str, Any]:
    if not samples:
        return {"score": _around(score), "latency_us": _around(score * BASELINE_US)}
    timings = findings.timings(score * BASELINE_US, task, samples, luck)
    ratio, latency = score_of(task, timings)
    return {"timings": timings, "score": ratio, "latency_us": latency}


def _around(value: float) -> Interval:
    return Interval(value=value, low=value * (1 - NOISE), high=value * (1 + NOISE))
