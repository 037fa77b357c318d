"""What compiling alone finds out about a candidate, with the real compiler."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine import candidate as candidates
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.local import CompileOnly
from evoengine.records import Status, Verdict
from tests.report.scene import kernel, the_task

START = "{ y[0]"


def compiled(folder: Path, source: str) -> Verdict:
    async def run() -> Verdict:
        pool = CompilePool(1, folder / "cache")
        try:
            return await CompileOnly(the_task(folder / "tasks"), pool).evaluate(candidates.parse(source), lambda _: None)
        finally:
            await pool.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("old", "new", "status", "says"),
    [
        (START, START, Status.correct, "compiled for sm_89, not run"),
        (START, "{ __shared__ float tile[60000]; tile[n] = 1; y[1] = tile[n + 1]; y[0]", Status.over_limits, "uses too much shared data"),
        (
            "args:",
            "shared: 300000\n    args:",
            Status.over_limits,
            "asks for 300000 bytes of shared memory in case small, sm_89 allows 101376",
        ),
        ("block: [BLOCK]", "block: [16*BLOCK]", Status.over_limits, "has 2048 threads in case small"),
        ("args: [x, y, N]", "args: [x, y]", Status.rejected, "takes 3 parameters, its launch passes 2"),
        ("args: [x, y, N]", "args: [x, z, N]", Status.rejected, "unknown name 'z'"),
        ("precision: fp32", "precision: fp64", Status.rejected, "no tier 'fp64' in task scale; known: fp32, fp16"),
        (
            START,
            "{ static __device__ float kept[20000]; kept[n + 1] = x[0]; __syncthreads(); y[1] = kept[n]; y[0]",
            Status.rejected,
            "global variables take 80000 bytes, allowed are 65536",
        ),
        (START, "{ float* kept = (float*)malloc(64); kept[n] = x[1]; y[1] = kept[n / 2]; y[0]", Status.rejected, "malloc or new"),
        (START, "{ bug; y[0]", Status.compile_error, 'identifier "bug" is undefined'),
        ("extern", '#include "/etc/hostname"\nextern', Status.rejected, "'/etc/hostname' is not allowed"),
    ],
)
def test_every_fault_that_needs_no_device_has_its_status(tmp_path: Path, old: str, new: str, status: Status, says: str) -> None:
    source = kernel("scale_a")
    assert old in source
    verdict = compiled(tmp_path, source.replace(old, new, 1))
    assert (verdict.status, says in verdict.reason) == (status, True), verdict
