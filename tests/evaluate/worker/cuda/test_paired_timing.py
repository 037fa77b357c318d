"""The rules of paired timing, with graphs and events that are faked.

What is tested is the order of the samples and what is compared, not the device: Python functions
stand for kernels, and every event reads the same time. test_paired_timing_on_gpu.py tests the same
rules with real graphs and events.
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


class FakeDevice:
    """Fakes the device: graphs that run their calls, and events that read one constant."""

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
        fake = self

        class FakeGraph(timing.Graph):
            def __init__(self, calls: list[timing.Call]) -> None:
                self.calls = calls
                self._outputs = [call() for call in calls]
                tensors = [
                    value
                    for result in self._outputs
                    if isinstance(result, dict)
                    for value in result.values()
                ]
                fake.baseline_outputs += tensors
                self._written = timing.storages(tensors)
                self.wipe()  # a capture runs nothing

            def replay(self) -> None:
                for call, output in zip(self.calls, self._outputs, strict=True):
                    result = call()
                    if isinstance(result, dict):
                        output["out"].copy_(result["out"])

        class FakeEvent:
            def record(self) -> None: ...

            def synchronize(self) -> None: ...

            def elapsed_time(self, _: FakeEvent) -> float:
                return fake.elapsed_ms

        class FakeProgram:
            def __init__(self, _: CompiledCase) -> None: ...

            def prepare(self, pointers: dict[str, int], _: object) -> Callable[[], None]:
                x, out = at(pointers["x"]), at(pointers["out"])
                return lambda: fake.kernel(x, out)

        monkeypatch.setattr(timing, "Graph", FakeGraph)
        monkeypatch.setattr(timing, "_event", FakeEvent)
        monkeypatch.setattr(paired_timing, "CudaProgram", FakeProgram)
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
        pair = paired_timing.PairedTiming(
            self.task, self.expected_outputs, self, compiled, baseline
        )  # type: ignore[arg-type]  # it flushes
        return pair.run(), pair.check_outputs("fp32")


def at(pointer: int) -> torch.Tensor:
    """The tensor at an address."""
    return torch.frombuffer(
        (ctypes.c_float * (N * C)).from_address(pointer), dtype=torch.float32
    ).view(N, C)


def honest(x: torch.Tensor, out: torch.Tensor) -> None:
    torch.mul(x, 2, out=out)


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    return FakeDevice(tmp_path, monkeypatch)


def test_an_honest_candidate_is_right_in_every_hot_call_and_in_the_cold_one(
    device: FakeDevice,
) -> None:
    device.elapsed_ms = 0.15  # three calls in the estimate: 50 us each, four of them make a sample
    found, checks = device.run(honest)
    assert (found.hot.candidate_calls, found.hot.baseline_calls) == (4, 4)
    assert found.cold is not None and found.cold.candidate_calls == 1
    assert [check.ok for check in checks] == [True] * 5


@pytest.mark.parametrize("lazy", [0, 1], ids=["hot", "cold"])
def test_one_call_a_sample_is_checked_hot_and_cold(device: FakeDevice, lazy: int) -> None:
    launches: dict[int, int] = {}

    def idle_after_a_while(x: torch.Tensor, out: torch.Tensor) -> None:
        launches[out.data_ptr()] = launches.get(out.data_ptr(), 0) + 1
        if list(launches).index(out.data_ptr()) != lazy or launches[out.data_ptr()] <= 4:
            honest(x, out)

    _, checks = device.run(idle_after_a_while)
    assert [check.ok for check in checks] == [lazy != 0, lazy != 1]
    assert checks[lazy].nan_count == N * C


def test_an_input_that_a_timed_launch_changes_is_a_cheat(device: FakeDevice) -> None:
    def spoils(x: torch.Tensor, out: torch.Tensor) -> None:
        honest(x, out)
        x[-1, -1] = 7.0

    with pytest.raises(Cheated, match="input 'x' was overwritten in a timed launch"):
        device.run(spoils)


def test_a_baseline_that_writes_into_its_inputs_condemns_no_candidate(device: FakeDevice) -> None:
    _, checks = device.run(honest, "spoiling")
    assert all(check.ok for check in checks)


def test_a_baseline_that_writes_into_its_inputs_is_left_out_by_name(device: FakeDevice) -> None:
    found = time_baselines(device.task, device.expected_outputs, "plain", device)  # type: ignore[arg-type]  # it flushes
    assert list(found.median_us) == ["torch.mul"]
    assert found.problems["spoiling"].startswith(
        "scale_rows.py:spoiling writes into its input x for case plain: expected it to leave"
    )


def test_a_fault_of_the_reference_is_not_reported_as_one_of_every_baseline(
    device: FakeDevice, tmp_path: Path
) -> None:
    (tmp_path / "scale_rows.py").write_text("def forward(x):\n    return x.float() * 2\n")
    with pytest.raises(TaskError, match=r"^scale_rows.py:forward: out must be torch.float64"):
        time_baselines(device.task, device.expected_outputs, "plain", device)  # type: ignore[arg-type]  # it flushes


def test_the_time_of_a_baseline_is_charged_to_it(device: FakeDevice) -> None:
    charged: list[str] = []

    @contextmanager
    def announce(_: str, function: str) -> Iterator[None]:
        charged.append(function)
        yield
        charged.append("")

    device.expected_outputs.functions._announce = announce
    device.run(honest)
    assert charged[:2] == [
        "scale_rows.py:forward for case plain",
        "",
    ], "a baseline that compiles for a minute is not the candidate's fault"


@pytest.mark.parametrize("begun", [False, True])
def test_a_reference_without_memory_beside_a_candidates_buffers_ends_no_run(
    device: FakeDevice, begun: bool
) -> None:
    def no_memory(*_: object) -> object:
        try:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        except torch.cuda.OutOfMemoryError as error:
            raise TaskError("scale_rows.py:forward raised OutOfMemoryError") from (
                error if begun else None
            )

    device.expected_outputs.get_uncached = no_memory  # type: ignore[assignment,method-assign]
    with pytest.raises(CannotLaunch if begun else TaskError, match="raised OutOfMemoryError"):
        device.run(honest)


def test_a_candidate_never_runs_beside_an_output_of_the_baseline(device: FakeDevice) -> None:
    seen: list[bool] = []

    def looks_around(x: torch.Tensor, out: torch.Tensor) -> None:
        honest(x, out)
        seen.append(any(bool((value == out).all()) for value in device.baseline_outputs))

    device.run(looks_around)
    assert seen and not any(seen)


def test_how_many_rounds_come_before_the_last_is_drawn_by_lot(device: FakeDevice) -> None:
    def rounds() -> int:
        side = timing.Side([lambda: None], [])
        return len(timing.measure(side, side, 0.0).candidate_us)

    found = [rounds() for _ in range(30)]
    assert len(set(found)) > 1
    assert min(found) >= timing.MIN_ROUNDS


def test_no_time_is_zero(device: FakeDevice) -> None:
    device.elapsed_ms = 0.0
    side = timing.Side([lambda: None], [])
    assert min(timing.measure(side, side, 0.0).candidate_us) > 0
