"""The process that only launches: its buffers here, its launches and NVIDIA's tools on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind
from evoengine.cli.main import answer
from evoengine.errors import ToolchainError
from evoengine.evaluate.case_launch import CaseLaunch
from evoengine.evaluate.cuda_tool import SANITIZER, find_tool
from evoengine.protocols import CompiledCase
from evoengine.task.load import load_task
from tests.scale_task import kernel, write_task

RIGHT = kernel("right").replace(
    "y[0] = 2 * x[0];", "int i = blockIdx.x * BLOCK + threadIdx.x; if (i < n) y[i] = 2 * x[i];"
)
BEYOND = RIGHT.replace(
    "if (i < n) y[i] = 2 * x[i];", "if (i <= n + 1) y[i] = i < n ? 2 * x[i] : 0;"
).replace('grid: ["ceil_div(N, BLOCK)"]', 'grid: ["ceil_div(N, BLOCK) + 1"]')


def wanted(folder: Path, text: str) -> CaseLaunch:
    path = write_task(folder)
    task = load_task(path)
    plan = bind(kernel_file.parse(text), task, "small", limits_of_arch("sm_90"))
    case = CompiledCase(plan=plan, code_path="code.cubin", functions={"scale": "scale"})
    return CaseLaunch(
        task=task, task_path=str(path), case=case, ordinal=0, distribution="normal", seed=3
    )


def test_every_buffer_has_exactly_its_bytes(tmp_path: Path) -> None:
    from evoengine.evaluate.worker.cuda import case_launcher

    with_scratch = RIGHT.replace(
        "launches:", "scratch:\n  partial: {dtype: float16, shape: [N, 3]}\nlaunches:"
    )
    launch = wanted(tmp_path, with_scratch)
    launch = CaseLaunch.model_validate_json(launch.model_dump_json())
    tensors = case_launcher._inputs(launch)
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == {"x": (1024,)}
    assert case_launcher.buffer_bytes(launch, tensors) == {
        "x": 4096,
        "y": 4096,
        "partial": 6144,
    }


def test_a_plan_whose_machine_code_is_gone_fails_with_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evoengine.evaluate.worker.cuda import case_launcher

    plan = tmp_path / "launch.json"
    plan.write_text(wanted(tmp_path / "task", RIGHT).model_dump_json())
    assert case_launcher.main(plan) == case_launcher.FAILED
    assert capsys.readouterr().err.startswith("launcher: ")


@pytest.mark.gpu
def test_a_write_beyond_a_buffer_is_found_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        find_tool(SANITIZER)
    except ToolchainError as error:
        pytest.skip(str(error))
    task = write_task(tmp_path)
    for name, text in (("right", RIGHT), ("beyond", BEYOND)):
        (tmp_path / f"{name}.cu").write_text(text)
    common = ["--task", str(task), "--case", "small"]
    assert answer(["sanitize", str(tmp_path / "right.cu"), *common]) == 0
    assert "memcheck found nothing in small" in capsys.readouterr().out
    assert answer(["sanitize", str(tmp_path / "beyond.cu"), *common]) == 1
    line = next(
        number for number, words in enumerate(BEYOND.splitlines(), 1) if "i <= n + 1" in words
    )
    found = capsys.readouterr().out
    assert "small: Invalid __global__ write of size 4 bytes" in found
    assert f".cu:{line}" in found


@pytest.mark.gpu
def test_a_profile_has_a_time_pipes_and_stalls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = write_task(tmp_path)
    (tmp_path / "right.cu").write_text(RIGHT)
    code = answer(["profile", str(tmp_path / "right.cu"), "--task", str(task)])
    out, err = capsys.readouterr()
    if code in (6, 11):
        pytest.skip(f"ncu is not here or may not count: {err.splitlines()[-1]}")
    assert code == 0, err
    for words in ("large: scale", "time: ", "busiest pipes: ", "occupancy reached: ", "waited for"):
        assert words in out
