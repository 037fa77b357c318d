"""clang behind the pool: PTX for the emulator, with the same limits and the same cache as cubins
have.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from evoengine.evaluate.compile.pool import CLANG, CompilePool, CompileUnit

TEMPLATE = "template <int N, bool B> __global__ void k(float* x) { x[threadIdx.x] = N; }"
# Every level instantiates two of the next: far more than any compiler finishes, within any template
# depth.
ENDLESS = (
    "template <int N, unsigned I> struct S { static constexpr unsigned v = S<N - 1, 2 * I>::v ^ S<N"
    " - 1, 2 * I + 1>::v; };template <unsigned I> struct S<0, I> { static constexpr unsigned v = I;"
    " };__global__ void k(float* x) { x[0] = S<26, 1>::v; }"
)


def play(folder: Path, scene: Callable[[CompilePool], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        pool = CompilePool(1, folder, module=CLANG)
        try:
            return await scene(pool)
        finally:
            await pool.close()

    return asyncio.run(run())


def test_a_unit_becomes_ptx_once_and_is_found_in_the_cache_afterwards(tmp_path: Path) -> None:
    unit = CompileUnit(code=TEMPLATE, arch="sm_89", kernels=("k<64, true>",))

    async def scene(pool: CompilePool) -> Any:
        assert await pool.start() == pool.toolchain.clang != ""
        return await pool.compile(unit), await pool.compile(unit)

    first, second = play(tmp_path, scene)
    text = Path(first.code_path).read_text()
    assert f".entry {first.functions['k<64, true>']}(" in text and ".target sm_89" in text
    assert first.code_path.endswith(".ptx") and (first.cached, second.cached) == (False, True)
    assert first.resources == (), "only NVRTC tells registers"


def test_a_comment_changes_no_digest_and_a_figure_does(tmp_path: Path) -> None:
    async def scene(pool: CompilePool) -> list[str]:
        codes = (TEMPLATE, f"// a word\n\n{TEMPLATE}", TEMPLATE.replace("= N", "= N + 1"))
        found = [
            await pool.compile(CompileUnit(code=code, arch="sm_89", kernels=("k<64, true>",)))
            for code in codes
        ]
        return [item.code_digest for item in found]

    plain, commented, changed = play(tmp_path, scene)
    assert plain == commented != changed


def test_what_our_headers_lack_is_unsupported_and_named(tmp_path: Path) -> None:
    code = "__global__ void k(float* x) { x[0] = __nv_no_such_function(x[1]); }"
    found = play(
        tmp_path, lambda pool: pool.compile(CompileUnit(code=code, arch="sm_89", kernels=("k",)))
    )
    assert found.status == "unsupported" and found.log.startswith(
        "the emulator's headers lack __nv_no_such_function"
    )
    assert "kernel.cu:1:" in found.log and "/" not in found.log.replace("kernel.cu", "")


def test_an_endless_compilation_is_ended_with_the_clang_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    seen: list[Path] = []

    async def watch() -> None:
        while not seen:
            seen.extend(_clangs(tmp_path))
            await asyncio.sleep(0.02)

    async def scene(pool: CompilePool) -> Any:
        watching = asyncio.ensure_future(watch())
        endless = await pool.compile(
            CompileUnit(code=ENDLESS, arch="sm_89", kernels=("k",), timeout_s=1.0)
        )
        watching.cancel()
        return endless, await pool.compile(
            CompileUnit(code=TEMPLATE, arch="sm_89", kernels=("k<1, false>",))
        )

    endless, good = play(tmp_path, scene)
    assert endless.status == "timeout" and good.status == "ok"
    assert seen, "the compiler works in a folder of this test"
    for _ in range(100):
        if not _clangs(tmp_path):
            break
        time.sleep(0.05)
    assert not _clangs(tmp_path)


def _clangs(folder: Path) -> list[Path]:
    """The compilers that work in `folder`; one that has ended works nowhere."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                compiles = b"-cc1" in (process / "cmdline").read_bytes().split(b"\0")
                if compiles and str(folder) in str((process / "cwd").readlink()):
                    found.append(process)
            except OSError:
                continue
    return found
