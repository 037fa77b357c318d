import asyncio
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import CasePlan, bind
from evoengine.evaluate.compile.pool import CompilePool, CompileResult, CompileUnit
from evoengine.paths import find_task, seeds_dir
from evoengine.task.load import load_task

SEEDS = sorted(path.stem for path in seeds_dir().glob("*.cu"))
OTHERS = ("layernorm", "matmul_fp16", "embedding_bag", "adamw")  # tasks with a seed of their name


def plans(seed: str, arch: str) -> list[CasePlan]:
    """The seed's plans, one for each machine code that its task's cases need."""
    path = seeds_dir() / f"{seed}.cu"
    kernel = kernel_file.parse(path.read_text(), path.name)
    task = load_task(find_task(seed if seed in OTHERS else "sdpa_l4"))
    bound = [bind(kernel, task, case, limits_of_arch(arch)) for case in task.cases]
    return list({plan.specialisation: plan for plan in bound}.values())


@pytest.mark.parametrize("arch", ["sm_89", "sm_90"])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_seed_compiles_for_its_launches_and_the_one_in_8_bits_alone_uses_e4m3(
    seed: str, arch: str, tmp_path: Path
) -> None:
    path = seeds_dir() / f"{seed}.cu"
    code = kernel_file.parse(path.read_text(), path.name).code
    bound = plans(seed, arch)

    async def compile_all() -> list[CompileResult]:
        pool = CompilePool(2, tmp_path, pytest.fail)
        try:
            return await asyncio.gather(
                *(pool.compile(unit_of(code, plan, arch)) for plan in bound)
            )
        finally:
            await pool.close()

    for plan, result in zip(bound, asyncio.run(compile_all()), strict=True):
        assert (result.status, result.log) == ("ok", "")
        for launch in plan.launches:
            assert len(result.params[launch.kernel]) == len(launch.args)
        found = {name for names in result.formats.values() for name in names}
        assert ("e4m3" in found) is (seed == "sdpa_fp8")
        assert found <= {"f16", "e4m3"}


def unit_of(code: str, plan: CasePlan, arch: str) -> CompileUnit:
    return CompileUnit(
        code=code,
        arch=arch,
        macros=plan.macros,
        kernels=tuple(sorted({launch.kernel for launch in plan.launches})),
    )


def test_an_error_in_a_seed_is_reported_at_the_line_of_the_file(tmp_path: Path) -> None:
    text = (seeds_dir() / "sdpa_v2c.cu").read_text()
    line = next(
        number
        for number, content in enumerate(text.splitlines(), 1)
        if content.startswith("constexpr unsigned")
    )
    broken = kernel_file.parse(text.replace("constexpr unsigned", "constexpr unsignedd", 1))
    plan = plans("sdpa_v2c", "sm_89")[0]

    async def compile_broken() -> CompileResult:
        pool = CompilePool(1, tmp_path, pytest.fail)
        try:
            return await pool.compile(unit_of(broken.code, plan, "sm_89"))
        finally:
            await pool.close()

    result = asyncio.run(compile_broken())
    assert result.status == "compile_error"
    assert result.log.startswith(f"kernel.cu({line}): error: ")
