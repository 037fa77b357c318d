"""Whose doing it is when a compiler process fails: the source's, or the machine's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine.errors import WorkerError
from evoengine.evaluate.compile.compiler_protocol import (
    MAX_CODE_BYTES,
    MAX_LINE_BYTES,
    CompileAnswer,
)
from evoengine.evaluate.compile.pool import CompilePool, CompileResult, CompileUnit

UNWELL = "tests.evaluate.compile.unwell_worker"


def compiled(folder: Path, *codes: str) -> list[CompileResult]:
    """What becomes of each source, one after the other, in one pool."""

    async def run() -> list[CompileResult]:
        pool = CompilePool(1, folder, pytest.fail, UNWELL)
        try:
            return [
                await pool.compile(CompileUnit(code=code, arch="sm_89", kernels=("k",)))
                for code in codes
            ]
        finally:
            await pool.close()

    return asyncio.run(run())


def test_a_source_that_the_process_cannot_finish_is_a_result_and_the_next_one_is_compiled(
    tmp_path: Path,
) -> None:
    gave_up, stumbled, well, again = compiled(tmp_path, "gives up", "stumbles", "well", "stumbles")
    assert (
        gave_up.status == "failed"
        and "gave up on this source (exit code 3); it printed: internal error\ufffd: gave up"
        in gave_up.log
    )
    assert (
        stumbled.status == "failed"
        and "failed on this source (ValueError: expected a cubin, got ?)" in stumbled.log
    )
    assert well.status == "ok"
    assert not again.cached, "it says nothing about the next version of the compiler"


def test_a_fault_of_the_machine_is_no_verdict_on_a_source(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="No space left on device"):
        compiled(tmp_path, "full disk")


def test_code_that_no_pipe_takes_is_refused_in_the_process_that_made_it(tmp_path: Path) -> None:
    most, more = compiled(tmp_path, "as much as is allowed", "too much")
    assert most.status == "ok" and Path(most.code_path).stat().st_size == MAX_CODE_BYTES
    assert (
        more.status == "compile_error"
        and f"{MAX_CODE_BYTES + 1} bytes of machine code, allowed are {MAX_CODE_BYTES}" in more.log
    )
    assert 4 * MAX_CODE_BYTES // 3 + 1024**2 < MAX_LINE_BYTES
    assert len(CompileAnswer(id=1).model_dump_json()) < 1024
