"""Wrong kernels are repaired on a real GPU, and a change that loops for ever costs little."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.corpora import ROOT
from benchmarks.planted_bugs import PlantedBug, bug_manifest, bug_task, bug_task_path
from evoengine.candidate.arch import limits_of
from evoengine.config import CHECKS
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.compile_candidate import CandidateCompiler
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.evaluate.repair.change_order import kernel_code
from evoengine.evaluate.repair.changed_launches import ChangedLaunches
from evoengine.evaluate.repair.repair_job import ChangeCompiler
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.switched_change import SwitchedChange, switched
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.evaluate.repair.wrong_inputs import WrongInputs
from evoengine.records import DiagnosisKind, Status, Verdict
from evoengine.search.make_executor import make_executor

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device"),
]
FOLDER = ROOT / "tests" / "bugs_second"
REPAIRED = ["softmax_base_two", "scan_last_step_missing", "transpose_bias_of_other_axis"]
SEARCHED_S = 120.0  # a search ends when it has found a change


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOENGINE_CACHE_DIR", str(tmp_path / "cache"))


def planted(name: str) -> PlantedBug:
    return bug_manifest(FOLDER).bugs[name]


def judged(bug: PlantedBug, checks: Sequence[str] = ()) -> Verdict:
    async def run() -> Verdict:
        task = bug_task(bug.task, False, FOLDER)
        path = bug_task_path(bug.task, FOLDER)
        executor = make_executor(task, path, DeviceChoice(0), checks, repair_s=SEARCHED_S)
        try:
            await executor.start()
            return await executor.evaluate(bug.candidate(FOLDER), lambda _: None)
        finally:
            await executor.close()

    return asyncio.run(run())


@pytest.mark.parametrize("name", REPAIRED)
def test_the_planted_change_is_found_on_a_gpu_and_said_first(name: str) -> None:
    bug = planted(name)
    verdict = judged(bug)
    assert verdict.status is Status.wrong_result, verdict.reason
    assert verdict.forensics is not None
    first = verdict.forensics.diagnoses[0]
    assert first.kind is DiagnosisKind.changed_source, first.sentence
    assert first.evidence["line"] in bug.planted_lines(FOLDER)
    assert bug.is_named_by([first.sentence])


def test_an_emulator_beside_the_gpu_finds_it_as_well() -> None:
    bug = planted(REPAIRED[0])
    verdict = judged(bug, CHECKS)
    assert verdict.forensics is not None
    first = verdict.forensics.diagnoses[0]
    assert first.kind is DiagnosisKind.changed_source, first.sentence
    assert first.evidence["line"] in bug.planted_lines(FOLDER)


def test_a_change_that_loops_for_ever_and_one_that_crashes_leave_the_others_to_be_found() -> None:
    bug = planted("softmax_base_two")
    candidate = bug.candidate(FOLDER)
    code = kernel_code(candidate)

    def change(old: str, new: str) -> SwitchedChange:
        start = candidate.source.index(old, code.offset)
        found = switched(code, SourceChange(start, start + len(old), new, "other"))
        assert found is not None
        return found

    statements = [code.tokens.source(*pair) for pair in code.statements]
    last = statements[-1]
    endless = change(last, "while (true) { __nanosleep(10); }")
    crashing = change(last, "*(volatile int*)(size_t)8 = 1;")
    planted_old, planted_new = bug.replace or ("", "")
    right = change(planted_new, planted_old)

    async def found() -> tuple[list[SourceChange], float]:
        task, path = bug_task(bug.task, False, FOLDER), bug_task_path(bug.task, FOLDER)
        device, nvrtc = DeviceChoice(0).make_device(()), CompilePool(2)
        try:
            await nvrtc.start()
            limits = limits_of(await device.start(task, str(path)))
            compiler = CandidateCompiler(task, nvrtc)
            launches = ChangedLaunches(candidate, Workbench(compiler, device), {})
            case = next(iter(task.cases))
            changes = ChangeCompiler(candidate, case, compiler, limits)
            compiled = await changes.together([endless, crashing, right])
            assert compiled is not None and len(compiled.changes) == 3
            began = time.monotonic()
            launched = await launches.launched(compiled, WrongInputs(case, 0), began + 120)
            return launched.right_ones, time.monotonic() - began
        finally:
            await device.close()
            await nvrtc.close()

    rights, seconds = asyncio.run(found())
    assert rights == [right.change]
    assert seconds < 60
