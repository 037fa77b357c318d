"""Plans on the emulator, launch by launch."""

from __future__ import annotations

import io
import resource
import sys
from pathlib import Path

import pytest

from evoengine.candidate.binding import BoundLaunch, CasePlan
from evoengine.emulator.device import Emulator
from evoengine.emulator.front.clang import compile_cuda
from evoengine.evaluate.worker.candidate_failures import CannotLaunch
from evoengine.evaluate.worker.emulated import emulated_backend
from evoengine.evaluate.worker.emulated.emulated_arena import SPARE_BYTES
from evoengine.evaluate.worker.emulated.emulated_backend import EmulatedBackend
from evoengine.evaluate.worker.emulated.emulated_program import LoadedModule
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import CompiledCase, Job
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

SOURCE = 'extern "C" __global__ void k() { printf("%c\\n", 200); }'


def test_what_a_kernel_prints_is_passed_on_whatever_the_locale_encodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compile_cuda(SOURCE, name="k.cu", macros={}, arch="sm_89", kernels=["k"])
    (tmp_path / "k.ptx").write_text(compiled.ptx)
    launch = BoundLaunch(kernel="k", grid=(1,), block=(1,), shared_bytes=0, args=())
    plan = CasePlan(case="small", hidden=False, macros={}, scratch={}, launches=(launch,))
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    emulator = Emulator("l4", threads=1)
    try:
        case = CompiledCase(
            plan=plan, code_path=str(tmp_path / "k.ptx"), functions=dict(compiled.functions)
        )
        LoadedModule(emulator, lambda: None).program(case, rounds=1.0).run(launch, {})
    finally:
        emulator.close()
    assert written.getvalue() == "\u00c8\n".encode()


def test_variables_that_this_machine_cannot_keep_twice_are_refused_before_they_take_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k.ptx").write_text(
        ".version 8.3\n.target sm_89\n.address_size 64\n.global .b8 huge[1073741824];\n.visible"
        " .entry k() { ret; }"
    )
    monkeypatch.setattr(emulated_backend, "available_bytes", lambda: SPARE_BYTES + (2 << 30) - 2)
    task, emulator = small_task(), Emulator("l4", threads=1)
    plan = CasePlan(case="plain", hidden=False, macros={}, scratch={}, launches=())
    job = Job(
        cases=(CompiledCase(plan=plan, code_path=str(tmp_path / "k.ptx"), functions={"k": "k"}),),
        tier="fp32",
    )
    expected_outputs = ExpectedOutputs(task, TaskFunctions(task, tmp_path / "t.yaml"), CPU)
    backend = EmulatedBackend(task, expected_outputs, emulator, "secret", (), lambda: None)
    before = resident_bytes()
    try:
        with pytest.raises(
            CannotLaunch,
            match="global variables of 1073741824 bytes do not fit into this machine's memory",
        ):
            backend.sanitize(job, lambda *_: None)
        assert resident_bytes() - before < 1 << 29
    finally:
        emulator.close()


def resident_bytes() -> int:
    """What this process holds of the machine's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
