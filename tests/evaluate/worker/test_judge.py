"""Which errors end a job as the candidate's failure, and whether the process may go on."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import cupy
import pytest
import torch

from evoengine.candidate.binding import CasePlan
from evoengine.evaluate.worker.backend import Announce, SanitizedCase
from evoengine.evaluate.worker.candidate_failures import CannotLaunch, Cheated, Crashed, VoidTiming
from evoengine.evaluate.worker.check import compare_outputs
from evoengine.evaluate.worker.cuda.cuda_backend import CudaBackend
from evoengine.evaluate.worker.cuda.harness.virtual_memory import VirtualMemoryError
from evoengine.evaluate.worker.cuda.runner.cuda_errors import NO_MEMORY, translate
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.judge import Judge
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import CompiledCase, Job, Purpose
from evoengine.records import CaseCheck, CheckedRun, Status
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

TOO_LITTLE = "CUDA out of memory. Tried to allocate 2.00 GiB"


class RaisingBackend:
    """Raises one exception while it prepares a case, or while it checks it."""

    timing_phase = "timing"
    errors = (*NO_MEMORY, VirtualMemoryError)

    def __init__(self, fault: Exception, preparing: bool) -> None:
        self.fault = fault
        self.preparing = preparing
        self.failure = CudaBackend.failure.__get__(self)

    def sanitize(self, job: Job, announce: Announce) -> None: ...

    def prepare(self, compiled: CompiledCase, job: Job, announce: Announce) -> None:
        if self.preparing:
            raise self.fault

    def check(self, compiled: CompiledCase, tier: str, announce: Announce) -> CaseCheck:
        raise self.fault

    def gpu_state(self) -> None: ...


def judging(fault: Exception, preparing: bool = False) -> Judge:
    return Judge(small_task(), RaisingBackend(fault, preparing), lambda *_: None)  # type: ignore[arg-type]  # it has no times


def job() -> Job:
    plan = CasePlan(case="plain", hidden=False, macros={}, scratch={}, launches=())
    return Job(cases=(CompiledCase(plan=plan, code_path="", functions={}),), tier="fp32")


@pytest.mark.parametrize(
    ("fault", "status", "healthy"),
    [
        (torch.cuda.OutOfMemoryError(TOO_LITTLE), Status.launch_error, True),
        (CannotLaunch("CUDA_ERROR_INVALID_VALUE"), Status.launch_error, True),
        (Crashed("an illegal memory access was encountered"), Status.crash, False),
        (VoidTiming("the baseline takes another time"), Status.unstable, True),
        (VirtualMemoryError("cuMemCreate", 2), Status.launch_error, True),
        (Cheated("memory outside the buffers was written"), Status.cheat, False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_goes_wrong_in_a_candidates_time_is_its_status(
    fault: Exception, status: Status, healthy: bool
) -> None:
    made = judging(fault)
    report = made.run(job())
    assert (report.status, made.healthy) == (status, healthy)
    assert report.reason.endswith(f"{fault} (checking plain)")


@pytest.mark.parametrize(
    "fault", [torch.cuda.OutOfMemoryError(TOO_LITTLE), VirtualMemoryError("cuMemCreate", 2)]
)
def test_what_goes_wrong_in_our_time_is_our_fault(fault: Exception) -> None:
    with pytest.raises(type(fault), match=re.escape(str(fault))):
        judging(fault, preparing=True).run(job())


def test_the_step_of_a_changed_kernel_says_which_one_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a step that the backend tells of: what ends there is the change of that number."""
    made = judging(AssertionError("no check fails here"))
    right = CaseCheck(case="plain", hidden=False, ok=True, sets=())

    def check(compiled: CompiledCase, job: Job, announce: Announce) -> CaseCheck:
        announce("checking plain", True)
        if len(checked) == 2:
            raise Crashed("an illegal memory access was encountered")
        checked.append(compiled)
        return right

    checked = list[CompiledCase]()
    monkeypatch.setattr(made.backend, "check", check)
    changed = job().model_copy(update={"cases": job().cases * 4, "only_set": 0})
    report = made.run(changed)
    assert report.status is Status.crash
    assert report.reason.endswith("(checking plain, change 3)")


def test_a_change_with_a_finding_is_not_compared_and_hides_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = judging(AssertionError("no check fails here"))
    run = CheckedRun(checks=("races",), blocks=1, total_blocks=1)
    faulty = run.model_copy(update={"findings": ("race: no barrier",)})
    changed = job().model_copy(
        update={"cases": job().cases * 3, "only_set": 0, "purpose": Purpose.outputs}
    )
    found = [
        SanitizedCase(one, its) for one, its in zip(changed.cases, (run, faulty, run), strict=True)
    ]
    monkeypatch.setattr(made.backend, "sanitize", lambda *_: iter(found))
    right = CaseCheck(case="plain", hidden=False, ok=True, sets=())
    monkeypatch.setattr(made.backend, "check", lambda *_: right)
    report = made.run(changed)
    assert [check.ok for check in report.checks] == [True, False, True]
    assert report.checks[1].checked == faulty
    assert report.status is Status.correct


def test_a_job_that_only_prepares_runs_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    made, prepared = judging(AssertionError("a candidate ran")), list[str]()
    monkeypatch.setattr(made.backend, "prepare", lambda one, *_: prepared.append(one.plan.case))
    report = made.run(job().model_copy(update={"purpose": Purpose.preparation}))
    assert (report.status, report.checks, prepared) == (Status.correct, (), ["plain"])


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (torch.cuda.OutOfMemoryError(TOO_LITTLE), CannotLaunch),
        (RuntimeError("CUDA error: an illegal memory access was encountered\nhint"), Crashed),
        (RuntimeError("CUDA error: out of memory"), CannotLaunch),
        (RuntimeError(""), Crashed),
    ],
)
def test_a_lack_of_memory_leaves_the_process_healthy_and_nothing_else_that_torch_reports_does(
    error: Exception, kind: type
) -> None:
    assert type(translate(error)) is kind
    assert "\n" not in str(translate(error))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (2, CannotLaunch),  # memory
        (1, CannotLaunch),  # invalid value
        (9, CannotLaunch),  # invalid configuration
        (98, CannotLaunch),  # invalid device function
        (701, CannotLaunch),  # launch out of resources
        (700, Crashed),  # illegal address
        (702, Crashed),  # launch timeout
        (710, Crashed),  # assert
        (714, Crashed),  # hardware stack error
        (715, Crashed),  # illegal instruction
        (716, Crashed),  # misaligned address
        (717, Crashed),  # invalid address space
        (718, Crashed),  # invalid program counter
        (719, Crashed),  # launch failure
        (214, Crashed),  # uncorrectable ECC error
    ],
)
def test_errors_of_the_runtime_break_the_context_or_leave_it_healthy(code: int, kind: type) -> None:
    assert type(translate(cupy.cuda.runtime.CUDARuntimeError(code))) is kind


def test_torch_without_a_type_for_device_errors_will_do() -> None:
    program = (
        "import torch; vars(torch).pop('AcceleratorError', None);"
        "from evoengine.evaluate.worker.cuda.runner.cuda_errors import CUDA_ERRORS as e; print(e)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "<class 'RuntimeError'>" in found.stdout


def test_a_comparison_leaves_the_expected_output_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "scale_rows.py").write_text("def forward(x):\n    return x * 2\n")
    task = small_task()
    expected_outputs = ExpectedOutputs(task, TaskFunctions(task, tmp_path / "t.yaml"), CPU)
    expected = expected_outputs.get("plain", "normal", 0)
    outputs = {"out": expected.reference["out"].float()}
    assert all(compare_outputs(outputs, expected, "fp32", "normal", 0).ok for _ in range(2))
