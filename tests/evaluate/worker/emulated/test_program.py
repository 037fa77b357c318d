"""Plans on the emulator, launch by launch."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from evoengine.emulator.device import Emulator
from evoengine.emulator.front.clang import compile_cuda
from evoengine.evaluate.worker.emulated.program import Loaded
from evoengine.plan import CasePlan, Launch
from evoengine.seams import CompiledCase

SOURCE = 'extern "C" __global__ void k() { printf("%c\\n", 200); }'


def test_what_a_kernel_prints_is_passed_on_whatever_the_locale_encodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile_cuda(SOURCE, name="k.cu", macros={}, arch="sm_89", kernels=["k"])
    (tmp_path / "k.ptx").write_text(compiled.ptx)
    launch = Launch(kernel="k", grid=(1,), block=(1,), shared_bytes=0, args=())
    plan = CasePlan(case="small", hidden=False, macros={}, scratch={}, launches=(launch,))
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    emulator = Emulator("l4", threads=1)
    try:
        case = CompiledCase(plan=plan, code_path=str(tmp_path / "k.ptx"), functions=dict(compiled.functions))
        Loaded(emulator, lambda: None).program(case, rounds=1.0).run(launch, {})
    finally:
        emulator.close()
    assert written.getvalue() == "\u00c8\n".encode()
