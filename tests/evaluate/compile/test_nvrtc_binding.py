"""NVRTC without CuPy: which library is taken, and that it compiles."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine.evaluate.compile import nvrtc_binding
from evoengine.evaluate.compile.nvrtc_binding import load_nvrtc
from evoengine.evaluate.compile.pool import CompilePool, CompileUnit

UNIT = CompileUnit(
    code="__global__ void k(float* x) { x[threadIdx.x] = 1; }", arch="sm_80", kernels=("k",)
)


def test_kernels_are_compiled_on_a_machine_without_cupy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("cupy", "cupy_backends", "torch"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise ImportError('not here')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    async def compiled() -> str:
        pool = CompilePool(1, tmp_path / "cache")
        try:
            return (await pool.compile(UNIT)).status
        finally:
            await pool.close()

    assert asyncio.run(compiled()) == "ok"


def library(root: Path, folder: str, major: int) -> str:
    path = root / folder / f"libnvrtc.so.{major}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("no library")
    return str(path)


def test_wheels_come_before_a_toolkit_and_the_newest_before_an_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvrtc_binding.importlib.metadata, "version", _not_installed)
    site, toolkit = tmp_path / "site", tmp_path / "toolkit"
    old = library(site, "nvidia/cuda_nvrtc/lib", 12)
    in_toolkit = library(toolkit, "lib64", 13)
    environ = {"CUDA_HOME": str(toolkit)}
    assert taken([str(site)], environ) == in_toolkit
    new = library(site, "nvidia/cu13/lib", 13)
    assert taken([str(site)], environ) == new
    # CuPy for CUDA 12, for an older driver
    monkeypatch.setattr(nvrtc_binding.importlib.metadata, "version", lambda _: "14.0")
    assert taken([str(site)], environ) == old


def _not_installed(name: str) -> str:
    raise nvrtc_binding.importlib.metadata.PackageNotFoundError(name)


def taken(path: list[str], environ: dict[str, str]) -> str:
    """The library that is chosen; none of them can be loaded, and then no other one is taken in
    silence.
    """
    with pytest.raises(OSError, match="libnvrtc") as found:
        load_nvrtc(path, environ)
    return str(found.value).split(":")[0]


def test_what_nvrtc_refuses_has_a_name_and_words() -> None:
    nvrtc = load_nvrtc()
    program = nvrtc.createProgram("__global__ void k() { nothing; }", "k.cu")
    with pytest.raises(nvrtc_binding.NVRTCError, match=r"NVRTC_ERROR_COMPILATION \(6\)"):
        nvrtc.compileProgram(program, ["--gpu-architecture=sm_80"])
    assert 'k.cu(1): error: identifier "nothing" is undefined' in nvrtc.getProgramLog(program)
    nvrtc.destroyProgram(program)
