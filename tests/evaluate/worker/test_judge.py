"""Which errors end a job as the candidate's failure, and whether the process may go on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from evoengine.candidate.binding import CasePlan
from evoengine.errors import TaskError
from evoengine.evaluate.worker import judge
from evoengine.evaluate.worker.candidate_failures import CannotLaunch, Cheated, Crashed
from evoengine.evaluate.worker.check import compare_outputs
from evoengine.evaluate.worker.cuda import cuda_backend, cuda_launch
from evoengine.evaluate.worker.cuda.cuda_launch import translate
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import CompiledCase, Job
from evoengine.records import Status
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

NO_MEMORY = "CUDA out of memory. Tried to allocate 2.00 GiB"
KEEPING = "kept = []\ndef forward(x):\n    kept.append(x * 2)\n    return kept[-1]\n"


def expected_outputs_of(folder: Path) -> ExpectedOutputs:
    (folder / "scale_rows.py").write_text(KEEPING)
    task = small_task(
        tiers={"fp32": {"atol": 1e-6, "rel_rmse": 1e-6, "trusted": "scale_rows.py:forward"}}
    )
    return ExpectedOutputs(task, TaskFunctions(task, folder / "t.yaml"), CPU)


@pytest.fixture
def judging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], judge.Judge]:
    def make(fault: Exception) -> judge.Judge:
        def check_case(*_: Any) -> None:
            raise fault

        monkeypatch.setattr(judge, "check_case", check_case)
        monkeypatch.setattr(cuda_backend, "Flusher", lambda _: None)
        expected_outputs = expected_outputs_of(tmp_path)
        return judge.Judge(
            expected_outputs.task,
            expected_outputs,
            cuda_backend.CudaBackend(expected_outputs.task, expected_outputs),
            lambda *_: None,
        )

    return make


def job() -> Job:
    plan = CasePlan(case="plain", hidden=False, macros={}, scratch={}, launches=())
    return Job(cases=(CompiledCase(plan=plan, code_path="", functions={}),), tier="fp32")


@pytest.mark.parametrize(
    ("fault", "status", "healthy"),
    [
        (torch.cuda.OutOfMemoryError(NO_MEMORY), Status.launch_error, True),
        (CannotLaunch("CUDA_ERROR_INVALID_VALUE"), Status.launch_error, True),
        (Crashed("an illegal memory access was encountered"), Status.crash, False),
        (Cheated("memory outside the buffers was written"), Status.cheat, False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_goes_wrong_in_a_candidates_time_is_its_status(
    judging: Any, fault: Exception, status: Status, healthy: bool
) -> None:
    made = judging(fault)
    report = made.run(job())
    assert (report.status, made.healthy) == (status, healthy)
    assert report.reason == f"{fault} (checking plain)"


def test_what_goes_wrong_in_our_time_is_our_fault(
    judging: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = judging(TaskError("never raised"))

    def no_memory(*_: Any) -> None:
        raise torch.cuda.OutOfMemoryError(NO_MEMORY)

    monkeypatch.setattr(made.expected_outputs, "get", no_memory)
    with pytest.raises(torch.cuda.OutOfMemoryError, match=r"Tried to allocate 2\.00 GiB"):
        made.run(job())


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (torch.cuda.OutOfMemoryError(NO_MEMORY), CannotLaunch),
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


def test_torch_without_a_type_for_device_errors_will_do() -> None:
    program = (
        "import torch; vars(torch).pop('AcceleratorError', None);"
        "from evoengine.evaluate.worker.cuda.cuda_launch import CUDA_ERRORS as e; print(e)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "<class 'RuntimeError'>" in found.stdout


def test_code_is_loaded_anew_for_every_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy keeps modules by path; a candidate's globals would live on from check to timing."""
    calls: list[str] = []
    monkeypatch.setattr(cuda_launch.cupy, "clear_memo", lambda: calls.append("forgotten"))
    monkeypatch.setattr(cuda_launch.cupy, "RawModule", lambda **_: calls.append("loaded"))
    cuda_launch.CudaProgram(job().cases[0])
    assert calls == ["forgotten", "loaded"]


def test_no_expected_output_stays_in_freed_memory(tmp_path: Path) -> None:
    expected_outputs = expected_outputs_of(tmp_path)
    expected = expected_outputs.get("plain", "normal", 0)
    left = expected_outputs.functions._modules["scale_rows.py"].kept
    assert len(left) == 4, (
        "the reference, twice more to compare two calls, and the trusted implementation"
    )
    assert all(bool(value.isnan().all()) for value in left)
    assert bool(expected.reference["out"].isfinite().all())


def test_a_comparison_leaves_the_expected_output_as_it_is(tmp_path: Path) -> None:
    expected_outputs = expected_outputs_of(tmp_path)
    expected = expected_outputs.get("plain", "normal", 0)
    outputs = {"out": expected.reference["out"].float()}
    assert all(compare_outputs(outputs, expected, "fp32", "normal", 0).ok for _ in range(2))
