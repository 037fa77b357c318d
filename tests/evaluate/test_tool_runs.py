"""Runs under a profiler and a memory checker, with programs of their names that do what theirs are
documented to do.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.errors import CountersRefused, ToolchainError, UsageError, WorkerError
from evoengine.evaluate.case_launch import LAUNCHER
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.compile_candidate import CandidateCompiler, CompiledCandidate
from evoengine.evaluate.cuda_tool import find_tool, run_tool
from evoengine.evaluate.tool_runs import GpuCode, ToolRuns, chosen_cases
from evoengine.task.load import load_task
from tests.evaluate.test_tool_outputs import MEMCHECK, PROFILE
from tests.processes import still_alive
from tests.scale_task import kernel, write_task

# Checks what it is asked to run, writes LOG, prints PRINTED and exits with CODE.
TOOL = """#!{python}
import os, sys
from pathlib import Path
from evoengine.evaluate.case_launch import CaseLaunch
arguments = sys.argv[1:]
assert arguments[-4:-1] == [{python!r}, "-m", {launcher!r}], arguments
wanted = CaseLaunch.model_validate_json(Path(arguments[-1]).read_bytes())
assert Path(wanted.case.code_path).read_bytes()[:4] == b"\\x7fELF"
assert wanted.case.plan.case in wanted.task.cases
assert "SOME_API_KEY" not in os.environ
Path(arguments[arguments.index("--log-file") + 1]).write_text({log!r})
print({printed!r})
sys.exit({code})
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a tool of the name on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SOME_API_KEY", "secret")
    root = Path(__file__).resolve().parent.parent.parent
    monkeypatch.setenv("PYTHONPATH", str(root))

    def put(name: str, log: str, printed: str = "", code: int = 0) -> None:
        text = TOOL.format(
            python=sys.executable, launcher=LAUNCHER, log=log, printed=printed, code=code
        )
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)

    return put


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> ToolRuns:
    folder = tmp_path_factory.mktemp("tools")
    path = write_task(folder)
    task = load_task(path)
    candidate = kernel_file.parse(kernel("scale_a"))

    async def compiled() -> CompiledCandidate:
        pool = CompilePool(1, folder / "cubins")
        compiler = CandidateCompiler(task, pool)
        try:
            return await compiler.compile(candidate, limits_of_arch("sm_90"), lambda _: None)
        finally:
            await pool.close()

    found = asyncio.run(compiled())
    assert found.refusal is None
    code = {case.code_path: Path(case.code_path).read_bytes() for case in found.cases}
    return ToolRuns(task, path, GpuCode(found, code), 0)


def test_a_profile_is_that_of_the_tool(runs: ToolRuns, install: Install) -> None:
    install("ncu", PROFILE)
    (found,) = runs.profile("small")
    assert (found.case, found.us) == ("small", pytest.approx(31.456))


def test_refused_counters_are_told_with_what_to_do(runs: ToolRuns, install: Install) -> None:
    refusal = (
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU"
        " Performance Counters on the target device 0."
    )
    install("ncu", refusal, code=1)
    with pytest.raises(CountersRefused, match="NVreg_RestrictProfilingToAdminUsers=0"):
        runs.profile("small")
    assert CountersRefused.exit_code == 11


def test_a_launcher_that_fails_is_quoted(runs: ToolRuns, install: Install) -> None:
    install("ncu", "==WARNING== No kernels were profiled.", "launcher: out of memory", 3)
    with pytest.raises(WorkerError, match=r"exit code 3\): launcher: out of memory"):
        runs.profile("small")


def test_findings_are_those_of_the_tool(runs: ToolRuns, install: Install) -> None:
    install("compute-sanitizer", MEMCHECK, code=86)
    (found,) = runs.sanitize("small", "memcheck")
    assert found.places == ("row_sums.cu:31",)


def test_only_a_complete_log_says_that_nothing_was_found(runs: ToolRuns, install: Install) -> None:
    clean = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
    install("compute-sanitizer", clean)
    assert runs.sanitize("small", "racecheck") == ()
    install("compute-sanitizer", "========= COMPUTE-SANITIZER\n")
    with pytest.raises(WorkerError, match="did not check case small"):
        runs.sanitize("small", "racecheck")
    install("compute-sanitizer", clean, "launcher: no device", 3)
    with pytest.raises(WorkerError, match="launcher: no device"):
        runs.sanitize("small", "racecheck")


def test_a_tool_that_is_not_there_is_named_with_how_to_get_it(tmp_path: Path) -> None:
    nowhere = {"PATH": str(tmp_path)}
    with pytest.raises(ToolchainError, match="no compute-sanitizer on this machine; pip install"):
        find_tool("compute-sanitizer", nowhere, (tmp_path,))
    toolkit = tmp_path / "toolkit" / "bin"
    toolkit.mkdir(parents=True)
    (toolkit / "ncu").write_text("#!/bin/sh\n")
    (toolkit / "ncu").chmod(0o755)
    found = find_tool("ncu", {**nowhere, "CUDA_HOME": str(toolkit.parent)}, ())
    assert found == str(toolkit / "ncu")


def test_a_tool_that_does_not_end_is_killed_with_what_it_started(tmp_path: Path) -> None:
    number = tmp_path / "number"
    command = ["/bin/sh", "-c", f"sleep 600 & echo $! > {number}; wait"]
    with pytest.raises(WorkerError, match="sh did not end within 2 s"):
        run_tool(command, tmp_path / "log", limit_s=2)
    assert not still_alive([int(number.read_text())])


def test_a_tool_that_cannot_start_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="none does not start: No such file"):
        run_tool([str(tmp_path / "none")], tmp_path / "log")


def test_an_unknown_case_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    task = load_task(write_task(tmp_path))
    with pytest.raises(UsageError, match=r"no case 'smal'; did you mean 'small'\?"):
        chosen_cases(task, "smal", ())
    assert chosen_cases(task, None, ("small",)) == ("small",)
