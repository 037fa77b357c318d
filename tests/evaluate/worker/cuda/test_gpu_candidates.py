"""The candidates of the GPU tests compile on any machine, and demand nothing that is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.compile_candidate import CandidateCompiler, CompiledCandidate
from evoengine.task.load import load_task
from tests.evaluate.worker.cuda.gpu_candidates import DEEP_STACK, IN_THE_LAB, JUDGED, source

TASK = """
name: scale
reference: scale.py:forward
dims: {N: int}
inputs: {x: {shape: [N], dtype: float32}}
outputs: {out: {shape: [N], dtype: float32}}
distributions: [normal, outliers, wide, shifted]
seeds: [0, 1, 2, 3, 4]
cases: {small: {N: 4096}, large: {N: 2097152}}
hidden_cases: {odd: {N: 77}}
tiers: {fp32: {atol: 1e-6, rel_rmse: 1e-6}}
objective: {cases: [small]}
baselines: {torch: scale.py:forward}
limits: {launch_s: 1.5, evaluate_s: 20}
budget: {trials: 1}
"""


async def compile_all(
    task_path: Path, arch: str, sources: dict[str, str]
) -> dict[str, CompiledCandidate]:
    """All sources, side by side."""
    pool = CompilePool(8, task_path.parent / "cubins")
    compiler = CandidateCompiler(load_task(task_path), pool)
    try:
        found = await asyncio.gather(
            *(
                compiler.compile(kernel_file.parse(text), limits_of_arch(arch), lambda _: None)
                for text in sources.values()
            )
        )
        return dict(zip(sources, found, strict=True))
    finally:
        await pool.close()


def test_every_candidate_of_the_gpu_tests_compiles_and_is_let_through(tmp_path: Path) -> None:
    (tmp_path / "scale.yaml").write_text(TASK)
    (tmp_path / "scale.py").write_text("def forward(x):\n    return x * 2\n")
    sources = {**IN_THE_LAB, **JUDGED, "honest": source()}
    found = asyncio.run(compile_all(tmp_path / "scale.yaml", "sm_90", sources))
    refused = {name: one.refusal for name, one in found.items() if one.refusal is not None}
    assert not refused
    local = found["deep stack"].cases[0].resources[0].local_bytes
    assert local >= 4 * 1800 and DEEP_STACK in JUDGED.values()
