import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from evoengine.errors import ToolchainError, WorkerError
from evoengine.evaluate.compile.pool import CompilePool, CompileResult, CompileUnit, toolchain
from tests.evaluate.compile import bombs
from tests.evaluate.compile.kernels import COPY, VARIED, VARIED_KERNELS
from tests.evaluate.compile.tricks import LEAKING, OTHERS
from tests.processes import still_alive

UNIT = CompileUnit(code=COPY, arch="sm_89", kernels=("copy",))
# NVRTC takes 400 MiB of address space before the first line; the smallest of the bombs more than
# 800 MiB
LARGE_LIMIT_BYTES = 640 << 20
Body = Callable[[CompilePool], Coroutine[Any, Any, None]]


@asynccontextmanager
async def opened(
    folder: Path, workers: int = 1, warn: Callable[[str], None] = pytest.fail
) -> AsyncIterator[CompilePool]:
    pool = CompilePool(workers, folder, warn)
    try:
        yield pool
    finally:
        await pool.close()


def run(folder: Path, body: Body, workers: int = 1) -> None:
    async def main() -> None:
        async with opened(folder, workers) as pool:
            await body(pool)
        assert children() == []

    asyncio.run(main())


def compile_one(folder: Path, unit: CompileUnit) -> CompileResult:
    results = []

    async def body(pool: CompilePool) -> None:
        results.append(await pool.compile(unit))

    run(folder, body)
    return results[0]


def children(of: int | None = None) -> list[int]:
    """The compiler processes of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes()
            except (OSError, ValueError):
                continue
            if parent == (of or os.getpid()) and b"compile.nvrtc_worker" in command:
                found.append(int(entry.name))
    return found


def is_cubin(result: CompileResult) -> bool:
    return Path(result.code_path).read_bytes()[:4] == b"\x7fELF"


def damage(result: CompileResult) -> None:
    Path(result.code_path).write_bytes(b"something else")


def environment_of(process: int) -> bytes:
    return Path(f"/proc/{process}/environ").read_bytes()


def with_code(code: str, *kernels: str, **changes: object) -> CompileUnit:
    return UNIT.model_copy(update={"code": code, "kernels": kernels or ("k",), **changes})


class Shared:
    """One pool for many tests, with a loop of its own."""

    def __init__(self, folder: Path) -> None:
        self.runner = asyncio.Runner()
        self.pool = self.runner.run(self._open(folder))

    async def _open(self, folder: Path) -> CompilePool:
        return CompilePool(1, folder, pytest.fail)

    def compile(self, unit: CompileUnit) -> CompileResult:
        return self.runner.run(self.pool.compile(unit))

    def close(self) -> None:
        self.runner.run(self.pool.close())
        self.runner.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    pool = Shared(tmp_path_factory.mktemp("cache"))
    yield pool
    pool.close()
    assert children() == []


def test_a_kernel_becomes_a_cubin_with_its_resources_and_parameters(tmp_path: Path) -> None:
    result = compile_one(tmp_path, with_code(VARIED, *VARIED_KERNELS))
    assert (result.status, result.log, result.cached) == ("ok", "", False)
    assert is_cubin(result)
    assert [item.kernel for item in result.resources] == list(VARIED_KERNELS)
    assert set(result.functions) == set(VARIED_KERNELS)
    assert result.params["mixed<32, true>"] == (32, 8, 4, 1, 8, 2)
    spilling = next(item for item in result.resources if item.kernel == "spilling")
    assert spilling.registers <= 64  # what 1024 threads leave each of them
    assert spilling.spill_store_bytes > 0
    assert spilling.spill_load_bytes > 0
    assert spilling.arch == "sm_89"
    assert spilling.cubin_bytes == Path(result.code_path).stat().st_size


def test_macros_reach_the_source(tmp_path: Path) -> None:
    code = (
        "__global__ void k(float* a) { __shared__ float s[BLOCK]; s[threadIdx.x] = a[0];"
        " __syncthreads(); a[1] = s[FLAG ? 1 : 2]; }"
    )
    result = compile_one(tmp_path, with_code(code, macros={"BLOCK": "96", "FLAG": "true"}))
    assert result.resources[0].static_shared_bytes == 384


def test_the_second_time_comes_from_the_cache_and_a_damaged_entry_is_built_again(
    tmp_path: Path,
) -> None:
    async def body(pool: CompilePool) -> None:
        first = await pool.compile(UNIT)
        second = await pool.compile(UNIT)
        assert (first.cached, second.cached) == (False, True)
        assert second.model_copy(update={"seconds": 0.0, "cached": False}) == first.model_copy(
            update={"seconds": 0.0}
        )
        damage(first)
        third = await pool.compile(UNIT)
        assert not third.cached
        assert is_cubin(third)

    run(tmp_path, body)


def test_a_cache_that_cannot_be_written_is_said_and_compiling_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []

    async def main() -> list[str]:
        async with opened(tmp_path / "file", warn=said.append) as pool:
            results = [await pool.compile(UNIT), await pool.compile(UNIT)]
            assert [item.status for item in results] == ["ok", "ok"]
            assert all(is_cubin(item) for item in results)
        return [item.code_path for item in results]

    paths = asyncio.run(main())
    assert len(said) == 1
    assert not any(Path(path).exists() for path in paths)


ERRORS = {
    "name": (
        "\n\n__global__ void k() {\n  oops;\n}",
        r'^kernel\.cu\(4\): error: identifier "oops" is undefined',
    ),
    "inline assembly": (
        '\n__global__ void k() {\n\n  asm("bogus.op;");\n}',
        r"^kernel\.cu\(4\): error: .*bogus",
    ),
    "absent kernel": (
        "__global__ void other() {}",
        r'^launch plan: error: identifier "k" is undefined',
    ),
    "not a kernel": ("__device__ void k() {}", r"^launch plan: error: .*non-__global__"),
    "swallowed": ("__global__ void k() {}\n#if 0\n", r"^kernel\.cu\(\d+\): error: "),
    "open comment": ("__global__ void k() {}\n/* ", r"^kernel\.cu\(\d+\): "),
    "variable": ("__device__ int k;", r"^launch plan: error: "),
    "shared memory": (
        "__global__ void k(int* p) { __shared__ int s[60000]; s[*p] = 1; *p = s[3]; }",
        r"(?s)shared data.*0x3a980 bytes",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_a_result_that_names_the_candidates_own_line(name: str, tmp_path: Path) -> None:
    code, expected = ERRORS[name]
    result = compile_one(tmp_path, with_code(code))
    assert result.status == "compile_error"
    assert result.code_path == ""
    assert re.search(expected, result.log), result.log


def test_messages_hold_no_path_of_the_machine(tmp_path: Path) -> None:
    code = (
        "#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n__global__ void k(half* a) { *a ="
        ' __hadd(*a, "x"); cooperative_groups::nothing(); __half2 h = a; }'
    )
    result = compile_one(tmp_path, with_code(code))
    assert result.status == "compile_error"
    assert "/" not in result.log.replace("//", "")


@pytest.mark.parametrize("name", [*LEAKING, *OTHERS])
def test_no_trick_shows_a_file_in_any_result(name: str, tmp_path: Path, shared: Shared) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET_TOKEN_4711 is here\n")
    result = shared.compile(
        with_code({**LEAKING, **OTHERS}[name].format(path=secret) + "__global__ void k() {}\n")
    )
    assert result.status == "refused"
    assert "SECRET" not in result.model_dump_json()


def test_a_confined_compiler_reads_no_file_even_when_told_to(tmp_path: Path) -> None:
    """The second wall: the process itself is asked, past the check."""
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET_TOKEN_4711 is here\n")

    async def body(pool: CompilePool) -> None:
        await pool.start()
        if not pool.toolchain.confined:
            pytest.skip("this kernel has no Landlock")
        built, _ = await pool._idle[0].compile(
            with_code(f'#include "{secret}"\n__global__ void k() {{}}\n')
        )
        assert built.status == "compile_error"
        assert "SECRET" not in built.log

    run(tmp_path / "cache", body)


@pytest.mark.parametrize("name", bombs.SLOW)
def test_a_source_that_takes_forever_is_a_timeout_and_its_process_is_gone(
    name: str, tmp_path: Path
) -> None:
    async def body(pool: CompilePool) -> None:
        await pool.start()
        before = children()
        result = await pool.compile(with_code(bombs.SLOW[name], timeout_s=1.0))
        assert (result.status, result.code_path) == ("timeout", "")
        assert "longer than 1 s" in result.log
        assert children() == []
        assert (await pool.compile(UNIT)).status == "ok"
        assert children() != before

    run(tmp_path, body)


@pytest.mark.parametrize("name", bombs.LARGE)
def test_a_source_that_takes_all_memory_is_a_result(name: str, tmp_path: Path) -> None:
    async def body(pool: CompilePool) -> None:
        result = await pool.compile(
            with_code(bombs.LARGE[name], memory_bytes=LARGE_LIMIT_BYTES, timeout_s=60.0)
        )
        assert result.status == "out_of_memory"
        assert (await pool.compile(UNIT)).status == "ok"

    run(tmp_path, body)


@pytest.mark.parametrize("name", bombs.REFUSED)
def test_a_bomb_that_the_compiler_sees_through_is_a_compile_error(
    name: str, tmp_path: Path
) -> None:
    assert (
        compile_one(tmp_path, with_code(bombs.REFUSED[name], timeout_s=30.0)).status
        == "compile_error"
    )


def test_a_process_that_is_killed_from_outside_is_replaced_and_the_work_done(
    tmp_path: Path,
) -> None:
    async def body(pool: CompilePool) -> None:
        await pool.start()
        (process,) = children()
        work = asyncio.create_task(
            pool.compile(with_code("#include <cuda/barrier>\n__global__ void k() {}\n"))
        )
        await asyncio.sleep(0.3)
        os.kill(process, signal.SIGKILL)
        assert (await work).status == "ok"
        assert process not in children()

    run(tmp_path, body)


def test_a_process_that_is_killed_while_idle_is_replaced(tmp_path: Path) -> None:
    async def body(pool: CompilePool) -> None:
        await pool.start()
        os.kill(children()[0], signal.SIGKILL)
        assert (await pool.compile(UNIT)).status == "ok"

    run(tmp_path, body)


def test_a_compiler_that_crashes_is_a_compile_error(tmp_path: Path) -> None:
    async def body(pool: CompilePool) -> None:
        await pool.start()
        work = asyncio.create_task(
            pool.compile(with_code(bombs.SLOW["constant expression"], timeout_s=30.0))
        )
        await asyncio.sleep(0.2)
        os.kill(children()[0], signal.SIGSEGV)
        result = await work
        assert result.status == "compile_error"
        assert "SIGSEGV" in result.log

    run(tmp_path, body)


def test_killed_twice_is_an_error_of_the_machine(tmp_path: Path) -> None:
    async def body(pool: CompilePool) -> None:
        await pool.start()
        work = asyncio.create_task(
            pool.compile(with_code(bombs.SLOW["constant expression"], timeout_s=30.0))
        )
        for _ in range(2):
            await asyncio.sleep(1.0)
            os.kill(children()[0], signal.SIGKILL)
        with pytest.raises(WorkerError, match=r"SIGKILL.*twice"):
            await work

    run(tmp_path, body)


def test_cancelling_leaves_no_stale_work(tmp_path: Path) -> None:
    async def body(pool: CompilePool) -> None:
        await pool.start()
        (process,) = children()
        work = asyncio.create_task(
            pool.compile(with_code(bombs.SLOW["constant expression"], timeout_s=60.0))
        )
        await asyncio.sleep(0.2)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        result = await pool.compile(UNIT)
        assert (result.status, list(result.functions)) == ("ok", ["copy"])
        assert process not in children()

    run(tmp_path, body)


def test_many_units_over_few_processes_each_get_their_own_answer(tmp_path: Path) -> None:
    async def body(pool: CompilePool) -> None:
        units = [with_code(COPY.replace("copy", f"copy{i}"), f"copy{i}") for i in range(12)]
        tasks = [asyncio.create_task(pool.compile(unit)) for unit in units]
        await asyncio.sleep(0.05)
        tasks[3].cancel()
        tasks[7].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for index, result in enumerate(results):
            if index not in (3, 7):
                assert isinstance(result, CompileResult)
                assert result.functions == {
                    f"copy{index}": f"_Z{4 + len(str(index))}copy{index}PKfPfi"
                }
        assert len(children()) <= 2

    run(tmp_path, body, workers=2)


def test_closing_while_work_is_under_way_leaves_no_process(tmp_path: Path) -> None:
    async def main() -> None:
        pool = CompilePool(2, tmp_path, pytest.fail)
        await pool.start()
        work = [
            asyncio.create_task(pool.compile(with_code(code, timeout_s=60.0)))
            for code in bombs.SLOW.values()
        ]
        await asyncio.sleep(0.8)
        await pool.close()
        results = await asyncio.gather(*work, return_exceptions=True)
        assert all(isinstance(item, WorkerError) for item in results)
        assert children() == []
        await pool.close()

    asyncio.run(main())


PARENT = """
import asyncio, sys
from pathlib import Path
from evoengine.evaluate.compile.pool import CompilePool, CompileUnit
async def main():
    pool = CompilePool(1, Path(sys.argv[1]))
    await pool.start()
    print("ready", flush=True)
    await pool.compile(CompileUnit(code=Path(sys.argv[2]).read_text(), arch="sm_80", kernels=("k",), timeout_s=100))
asyncio.run(main())
"""


def test_a_compilation_does_not_outlive_a_parent_that_was_killed(tmp_path: Path) -> None:
    source = tmp_path / "bomb.cu"
    source.write_text(bombs.SLOW["constant expression"])
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "cache"), str(source)], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == b"ready\n"
        time.sleep(0.3)  # the compilation has begun
        (child,) = children(parent.pid)
        parent.kill()
    assert not still_alive([child])


def test_keys_of_the_environment_do_not_reach_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    async def body(pool: CompilePool) -> None:
        await pool.start()
        assert b"sk-secret" not in environment_of(children()[0])

    run(tmp_path, body)


def test_the_toolchain_says_what_it_found_and_where() -> None:
    found = asyncio.run(toolchain())
    assert found.problem == ""
    assert found.nvrtc.count(".") == 1
    assert Path(found.library).is_file()
    assert 89 in found.architectures
    assert all(Path(path).is_file() for path in found.headers.values())
    assert found.missing == ()
    assert children() == []


def test_a_machine_without_a_compiler_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13"
    hidden.parent.mkdir(parents=True)
    hidden.write_text("no library")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    async def body(pool: CompilePool) -> None:
        for _ in range(2):
            with pytest.raises(
                ToolchainError,
                match=(
                    r"no NVRTC: .*libnvrtc.so.13: .*; install"
                    r" .*evoengine\[cuda13\].*evoengine\[emulator\]"
                ),
            ):
                await pool.compile(UNIT)

    run(tmp_path / "cache", body)
    assert "no NVRTC" in asyncio.run(toolchain()).problem


@pytest.mark.parametrize(
    "change",
    [
        {"kernels": ('k\n#include "/etc/passwd"',)},
        {"macros": {"A": "1\n#include <x>"}},
        {"name": "../x.cu"},
        {"arch": "sm_80 -I/"},
    ],
)
def test_nothing_but_the_code_can_carry_a_line_into_the_compiler(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="String should match pattern"):
        CompileUnit(**{**UNIT.model_dump(), **change})
