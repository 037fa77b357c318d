"""`profile` and `sanitize` where they cannot run: each with its message and exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.evaluate.cuda_driver import cuda_devices
from tests.cli.conftest import Call

without_gpu = pytest.mark.skipif(bool(cuda_devices().names), reason="this machine has a GPU")


@without_gpu
@pytest.mark.parametrize(
    ("command", "tool"), [("profile", "ncu"), ("sanitize", "compute-sanitizer")]
)
def test_without_a_gpu_both_say_so(command: str, tool: str, call: Call, task: Path) -> None:
    found = call(command, task.parent / "scale_a.cu", "--task", task)
    assert found.code == 5
    assert f"{tool} needs a GPU: " in found.err


@pytest.mark.parametrize("command", ["profile", "sanitize"])
def test_an_unknown_case_is_named_before_anything_runs(
    command: str, call: Call, task: Path
) -> None:
    found = call(command, task.parent / "scale_a.cu", "--task", task, "--case", "larg")
    assert (found.code, found.out) == (2, "")
    assert "no case 'larg'; did you mean 'large'?" in found.err


def test_an_unknown_tool_is_answered_with_the_known_ones(call: Call, task: Path) -> None:
    found = call("sanitize", task.parent / "scale_a.cu", "--task", task, "--tool", "memchek")
    assert found.code == 2
    assert "did you mean 'memcheck'? known: memcheck, racecheck, initcheck, synccheck" in found.err
