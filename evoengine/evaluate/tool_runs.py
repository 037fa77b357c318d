"""Runs a candidate's cases under Nsight Compute or compute-sanitizer, each in a process of its own.

Nothing is judged here: verdicts do not depend on these tools.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CountersRefused, UsageError, WorkerError, hint
from evoengine.evaluate import profiler_output, sanitizer_output
from evoengine.evaluate.case_launch import LAUNCHER, CaseLaunch
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.compile_candidate import CandidateCompiler, CompiledCandidate
from evoengine.evaluate.cuda_driver import cuda_facts
from evoengine.evaluate.cuda_tool import NCU, SANITIZER, ToolRun, find_tool, run_tool
from evoengine.protocols import Progress
from evoengine.records import KernelProfile, SanitizerFinding
from evoengine.task.schema import Task

FOUND_EXIT = 86  # of compute-sanitizer where it found something: no program's own
_ALLOW = (
    "ask an administrator to set the module option NVreg_RestrictProfilingToAdminUsers=0 of the"
    " NVIDIA driver, or run the command as root (in a container: with --cap-add SYS_ADMIN)"
)


@dataclass(frozen=True)
class GpuCode:
    """A candidate compiled for a GPU; the machine code of its cases by the path of each."""

    compiled: CompiledCandidate
    machine_code: dict[str, bytes]


async def compiled_for_gpu(
    task: Task, candidate: Candidate, ordinal: int, progress: Progress
) -> GpuCode:
    """The candidate's machine code for every case on a GPU, or its refusal."""
    facts = cuda_facts(ordinal)
    limits = DeviceLimits(facts.arch, facts.max_shared_bytes, facts.sm_count)
    pool = CompilePool(1)
    compiler = CandidateCompiler(task, pool)
    try:
        await pool.start()
        compiled = await compiler.compile(candidate, limits, progress)
        # the pool may remove its files when it is closed
        return GpuCode(compiled, await asyncio.to_thread(_machine_code, compiled))
    finally:
        await compiler.close()
        await pool.close()


def _machine_code(compiled: CompiledCandidate) -> dict[str, bytes]:
    return {case.code_path: Path(case.code_path).read_bytes() for case in compiled.cases}


class ToolRuns:
    """Runs of one compiled candidate under a tool."""

    def __init__(self, task: Task, task_path: Path, code: GpuCode, ordinal: int) -> None:
        self._task = task
        self._task_path = task_path
        self._cases = {case.plan.case: case for case in code.compiled.cases}
        self._machine_code = code.machine_code
        self._ordinal = ordinal

    def profile(self, case: str) -> tuple[KernelProfile, ...]:
        """The launches of one call; raises CountersRefused, ToolchainError or WorkerError."""
        arguments = ["--csv", "--page", "raw", "--print-units", "base"]
        # clocks and caches as they are in a verdict: warm, and what was just written in L2
        arguments += ["--clock-control", "none", "--cache-control", "none"]
        arguments += ["--profile-from-start", "off", "--target-processes", "all"]
        for section in profiler_output.SECTIONS:
            arguments += ["--section", section]
        run = self._run([find_tool(NCU), *arguments], case, warm_up_calls=1)
        if profiler_output.REFUSED in run.everything:
            raise CountersRefused(
                "the NVIDIA driver does not let this user read the GPU's performance counters"
                f" ({profiler_output.REFUSED}); {_ALLOW}"
            )
        found = profiler_output.profiles(run.log, case)
        if not found:
            raise WorkerError(
                f"ncu measured nothing in case {case} (exit code {run.exit_code}): {run.last_line}"
            )
        return found

    def sanitize(self, case: str, tool: str) -> tuple[SanitizerFinding, ...]:
        """What `tool` found in one call; raises ToolchainError or WorkerError."""
        arguments = ["--tool", tool, "--target-processes", "all"]
        arguments += ["--error-exitcode", str(FOUND_EXIT), "--print-limit", "1000"]
        # calls that fail as expected, such as to look for a variable, are no fault of the kernel
        arguments += ["--report-api-errors", "no"]
        run = self._run([find_tool(SANITIZER), *arguments], case, warm_up_calls=0)
        found = sanitizer_output.findings(run.log, case)
        if found:
            return found
        if run.exit_code or not sanitizer_output.is_complete(run.log):
            raise WorkerError(
                f"compute-sanitizer did not check case {case} (exit code {run.exit_code}):"
                f" {run.last_line}"
            )
        return ()

    def _run(self, command: Sequence[str], case: str, warm_up_calls: int) -> ToolRun:
        found = self._cases[case]
        with tempfile.TemporaryDirectory(prefix="evoengine-") as name:
            folder = Path(name)
            code, plan, log = folder / "code.cubin", folder / "launch.json", folder / "tool.log"
            code.write_bytes(self._machine_code[found.code_path])
            wanted = CaseLaunch(
                task=self._task,
                task_path=str(self._task_path),
                case=found.model_copy(update={"code_path": str(code)}),
                ordinal=self._ordinal,
                distribution=self._task.distributions[0],
                warm_up_calls=warm_up_calls,
            )
            plan.write_text(wanted.model_dump_json(), encoding="utf-8")
            program = [sys.executable, "-m", LAUNCHER, str(plan)]
            return run_tool([*command, "--log-file", str(log), *program], log)


def chosen_cases(task: Task, case: str | None, default: Sequence[str]) -> tuple[str, ...]:
    """The cases to run: `case`, or `default`; raises UsageError for an unknown one."""
    known = [*task.cases, *task.hidden_cases]
    if case is not None and case not in known:
        raise UsageError(f"task {task.name} has no case {case!r}{hint(case, known)}")
    return (case,) if case is not None else tuple(default)
