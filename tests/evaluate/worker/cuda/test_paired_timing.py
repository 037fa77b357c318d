"""The rules of a race, on a stage where Python functions play the candidates and nothing is
timed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from evoengine.candidate.binding import CasePlan
from evoengine.errors import TaskError
from evoengine.evaluate.worker.candidate_failures import CannotLaunch, Cheated
from evoengine.evaluate.worker.cuda import paired_timing, timing
from evoengine.evaluate.worker.cuda.baselines import time_baselines
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import CompiledCase
from evoengine.records import CaseTiming, InputSetCheck
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

N, C = 64, 96
Kernel = Callable[[torch.Tensor, torch.Tensor], None]


class Stage:
    """What stands for the device: graphs that run their calls, and events that read one number."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / "scale_rows.py").write_text(
            "def forward(x):\n    return x * 2\ndef spoiling(x):\n    return x.mul_(2)\n"
        )
        self.task = small_task(
            baselines={"torch.mul": "scale_rows.py:forward", "spoiling": "scale_rows.py:spoiling"}
        )
        self.expected_outputs = ExpectedOutputs(
            self.task, TaskFunctions(self.task, folder / "t.yaml"), CPU
        )
        self.elapsed_ms = 1.0
        self.baseline_outputs: list[torch.Tensor] = []
        self.kernel: Kernel = honest
        stage = self

        class Graph(timing.Graph):
            def __init__(self, calls: list[timing.Call]) -> None:
                self.calls = calls
                self._kept = [call() for call in calls]
                tensors = [
                    value
                    for result in self._kept
                    if isinstance(result, dict)
                    for value in result.values()
                ]
                stage.baseline_outputs += tensors
                self._written = timing.storages(tensors)
                self.wipe()  # a capture runs nothing

            def replay(self) -> None:
                for call, kept in zip(self.calls, self._kept, strict=True):
                    result = call()
                    if isinstance(result, dict):
                        kept["out"].copy_(result["out"])

        class Event:
            def record(self) -> None: ...

            def synchronize(self) -> None: ...

            def elapsed_time(self, _: Event) -> float:
                return stage.elapsed_ms

        class Program:
            def __init__(self, _: CompiledCase) -> None: ...

            def prepare(self, pointers: dict[str, int], _: object) -> Callable[[], None]:
                x, out = at(pointers["x"]), at(pointers["out"])
                return lambda: stage.kernel(x, out)

        monkeypatch.setattr(timing, "Graph", Graph)
        monkeypatch.setattr(timing, "_event", Event)
        monkeypatch.setattr(paired_timing, "CudaProgram", Program)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda: None)

    def flush(self) -> None: ...

    def run(
        self, kernel: Kernel, baseline: str = "torch.mul"
    ) -> tuple[CaseTiming, list[InputSetCheck]]:
        self.kernel = kernel
        compiled = CompiledCase(
            plan=CasePlan(case="plain", hidden=False, macros={}, scratch={}, launches=()),
            code_path="",
            functions={},
        )
        contest = paired_timing.PairedTiming(
            self.task, self.expected_outputs, self, compiled, baseline
        )  # type: ignore[arg-type]  # it flushes
        return contest.run(), contest.verify("fp32")


def at(pointer: int) -> torch.Tensor:
    """The tensor at an address."""
    return torch.frombuffer(
        (ctypes.c_float * (N * C)).from_address(pointer), dtype=torch.float32
    ).view(N, C)


def honest(x: torch.Tensor, out: torch.Tensor) -> None:
    torch.mul(x, 2, out=out)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def test_an_honest_candidate_is_right_in_every_hot_call_and_in_the_cold_one(stage: Stage) -> None:
    stage.elapsed_ms = 0.15  # three calls in the estimate: 50 us each, four of them make a sample
    found, checks = stage.run(honest)
    assert (found.hot.candidate_calls, found.hot.baseline_calls) == (4, 4)
    assert found.cold is not None and found.cold.candidate_calls == 1
    assert [check.ok for check in checks] == [True] * 5


@pytest.mark.parametrize("lazy", [0, 1], ids=["hot", "cold"])
def test_one_call_a_sample_is_checked_hot_and_cold(stage: Stage, lazy: int) -> None:
    launches: dict[int, int] = {}

    def idle_after_a_while(x: torch.Tensor, out: torch.Tensor) -> None:
        launches[out.data_ptr()] = launches.get(out.data_ptr(), 0) + 1
        if list(launches).index(out.data_ptr()) != lazy or launches[out.data_ptr()] <= 4:
            honest(x, out)

    _, checks = stage.run(idle_after_a_while)
    assert [check.ok for check in checks] == [lazy != 0, lazy != 1]
    assert checks[lazy].nan_count == N * C


def test_an_input_that_a_timed_launch_changes_is_a_cheat(stage: Stage) -> None:
    def spoils(x: torch.Tensor, out: torch.Tensor) -> None:
        honest(x, out)
        x[-1, -1] = 7.0

    with pytest.raises(Cheated, match="input 'x' was overwritten in a timed launch"):
        stage.run(spoils)


def test_a_baseline_that_writes_into_its_inputs_condemns_no_candidate(stage: Stage) -> None:
    _, checks = stage.run(honest, "spoiling")
    assert all(check.ok for check in checks)


def test_a_baseline_that_writes_into_its_inputs_is_left_out_by_name(stage: Stage) -> None:
    found = time_baselines(stage.task, stage.expected_outputs, "plain", stage)  # type: ignore[arg-type]  # it flushes
    assert list(found.median_us) == ["torch.mul"]
    assert found.problems["spoiling"].startswith(
        "scale_rows.py:spoiling writes into its input x for case plain: expected it to leave"
    )


def test_a_fault_of_the_reference_is_not_told_as_that_of_every_baseline(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "scale_rows.py").write_text("def forward(x):\n    return x.float() * 2\n")
    with pytest.raises(TaskError, match=r"^scale_rows.py:forward: out must be torch.float64"):
        time_baselines(stage.task, stage.expected_outputs, "plain", stage)  # type: ignore[arg-type]  # it flushes


def test_the_time_of_a_baseline_is_told_as_its_own(stage: Stage) -> None:
    told: list[str] = []

    @contextmanager
    def announce(_: str, function: str) -> Iterator[None]:
        told.append(function)
        yield
        told.append("")

    stage.expected_outputs.functions._announce = announce
    stage.run(honest)
    assert told[:2] == [
        "scale_rows.py:forward for case plain",
        "",
    ], "what is compiled for a minute is no fault of a candidate"


@pytest.mark.parametrize("begun", [False, True])
def test_a_reference_without_memory_beside_a_candidates_buffers_ends_no_run(
    stage: Stage, begun: bool
) -> None:
    def no_memory(*_: object) -> object:
        try:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        except torch.cuda.OutOfMemoryError as error:
            raise TaskError("scale_rows.py:forward raised OutOfMemoryError") from (
                error if begun else None
            )

    stage.expected_outputs.one_off = no_memory  # type: ignore[assignment,method-assign]
    with pytest.raises(CannotLaunch if begun else TaskError, match="raised OutOfMemoryError"):
        stage.run(honest)


def test_a_candidate_never_runs_beside_an_answer_of_the_baseline(stage: Stage) -> None:
    seen: list[bool] = []

    def looks_around(x: torch.Tensor, out: torch.Tensor) -> None:
        honest(x, out)
        seen.append(any(bool((value == out).all()) for value in stage.baseline_outputs))

    stage.run(looks_around)
    assert seen and not any(seen)


def test_how_many_rounds_come_before_the_last_is_drawn_by_lot(stage: Stage) -> None:
    def rounds() -> int:
        side = timing.Side([lambda: None], [])
        return len(timing.measure(side, side, 0.0).candidate_us)

    found = [rounds() for _ in range(30)]
    assert len(set(found)) > 1
    assert min(found) >= timing.MIN_ROUNDS


def test_no_time_is_zero(stage: Stage) -> None:
    stage.elapsed_ms = 0.0
    side = timing.Side([lambda: None], [])
    assert min(timing.measure(side, side, 0.0).candidate_us) > 0
