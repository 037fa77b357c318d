"""Which case of a wrong candidate is looked at, until one shows the cause."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from evoengine.candidate.binding import CasePlan
from evoengine.evaluate.diagnosed_report import diagnosed
from evoengine.paths import find_task
from evoengine.protocols import CompiledCase, Job, Progress, Purpose, Report
from evoengine.records import CaseCheck, Diagnosis, DiagnosisKind, Forensics, Status
from evoengine.task.load import load_task
from evoengine.task.small_cases import smaller_versions, tiny_versions

TASK = load_task(find_task("matmul_fp16"))
ODD, SMALL = smaller_versions(TASK, "square")
TINY = tiny_versions(TASK, "square")
CAUSE = Diagnosis(kind=DiagnosisKind.changed_step, sentence="a cause", share=1.0)
HALF = CAUSE.model_copy(update={"share": 0.5})
SEEN = Diagnosis(kind=DiagnosisKind.region, sentence="c is wrong everywhere.", share=1.0)


class Findings:
    """A device that finds what is written down for each case, the others being right."""

    def __init__(self, found: dict[str, Diagnosis]) -> None:
        self.found = found
        self.looked_at: list[str] = []

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        assert job.purpose is Purpose.diagnosis
        checks = []
        for name in (case.plan.case for case in job.cases):
            self.looked_at.append(name)
            checks.append(CaseCheck(case=name, hidden=False, sets=(), ok=name not in self.found))
            if name in self.found:
                forensics = Forensics(case=name, diagnoses=(self.found[name],))
                return Report(status=Status.wrong_result, checks=tuple(checks), forensics=forensics)
        return Report(status=Status.correct, checks=tuple(checks))


def case(name: str) -> CompiledCase:
    plan = CasePlan(case=name, hidden=False, macros={}, scratch={}, launches=())
    return CompiledCase(plan=plan, code_path="", functions={})


async def compile_small(names: Sequence[str]) -> tuple[CompiledCase, ...]:
    return tuple(map(case, names))


@pytest.mark.parametrize(
    ("found", "looked_at", "told"),
    [
        ({ODD: CAUSE, SMALL: SEEN}, [ODD], ODD),
        ({SMALL: CAUSE}, [ODD, SMALL], SMALL),
        ({ODD: SEEN, TINY[1]: CAUSE}, [ODD, *TINY[:2]], TINY[1]),
        ({ODD: HALF, TINY[0]: CAUSE}, [ODD, TINY[0]], TINY[0]),
        ({ODD: HALF, TINY[0]: SEEN}, [ODD, *TINY], ODD),
        ({TINY[2]: SEEN}, [ODD, SMALL, *TINY], TINY[2]),
        ({"square": SEEN}, [ODD, SMALL, *TINY, "square"], "square"),
    ],
)
def test_small_cases_are_looked_at_until_one_shows_the_cause(
    found: dict[str, Diagnosis], looked_at: list[str], told: str
) -> None:
    device = Findings(found)
    job = Job(cases=(case("square"),), tier="", purpose=Purpose.quick_verdict)
    wrong = CaseCheck(case="square", hidden=False, sets=(), ok=False)
    report = asyncio.run(
        diagnosed(
            Report(status=Status.wrong_result, checks=(wrong,)),
            job,
            TASK,
            device,  # type: ignore[arg-type]  # only `run` is used
            compile_small,
            lambda _: None,
        )
    )
    assert device.looked_at == looked_at
    assert report.forensics is not None and report.forensics.case == told
