"""The lock files are exact, agree with each other, and satisfy pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("cpu", "cuda13")
HEADERS = ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cccl")
EXACT = re.compile(r"([a-z0-9-]+)===?([0-9][\w.]*)")


def pins(lock: str) -> dict[str, str]:
    """Package and version; every line that is no comment must be one exact version of one
    package.
    """
    lines = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8").splitlines()
    found = {line: EXACT.fullmatch(line) for line in lines if line and not line.startswith("#")}
    assert [line for line, match in found.items() if match is None] == []
    return {match[1]: match[2] for match in found.values() if match}


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_satisfies_pyproject(lock: str) -> None:
    locked = pins(lock)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra in ("cuda13", "emulator", "test"):
        wanted += project["project"]["optional-dependencies"][extra]
    unmet = [text for text in wanted if not _is_met(Requirement(text), locked)]
    assert unmet == []


def _is_met(requirement: Requirement, locked: dict[str, str]) -> bool:
    version = locked.get(canonicalize_name(requirement.name))
    return version is not None and version in requirement.specifier


def test_the_emulator_brings_nvrtc_with_its_headers_and_no_cupy_of_one_cuda_or_the_other() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [Requirement(text) for text in project["project"]["optional-dependencies"]["emulator"]]
    toolkit = next(item for item in wanted if item.name == "cuda-toolkit")
    assert toolkit.extras == {"nvrtc", "cudart", "crt", "cccl"}
    assert all(version in toolkit.specifier for version in ("12.4", "12.9.2.0", "13.0.3.0")), (
        "beside cuda12 as beside cuda13"
    )
    assert not [item.name for item in wanted if item.name.startswith("cupy")]


@pytest.mark.parametrize("extra", ["cuda12", "cuda13"])
def test_a_gpu_gets_what_checked_mode_beside_it_needs(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    emulator = {text for text in extras["emulator"] if not text.startswith(("cuda-", "torch"))}
    assert emulator <= set(extras[extra])


def test_locks_agree_on_what_they_share() -> None:
    cpu, cuda = pins("cpu"), pins("cuda13")
    assert set(cpu) <= set(cuda)
    assert {
        name: (version, cuda[name]) for name, version in cpu.items() if cuda[name] != version
    } == {}


@pytest.mark.parametrize("lock", LOCKS)
def test_compiler_and_its_headers_are_of_one_release(lock: str) -> None:
    locked = pins(lock)
    release = ".".join(locked["cuda-toolkit"].split(".")[:2])
    assert {
        name: locked[name] for name in HEADERS if not locked[name].startswith(f"{release}.")
    } == {}


def test_gpu_lock_never_takes_a_cpu_build_of_torch() -> None:
    assert "\ntorch===" in (ROOT / "requirements" / "cuda13.txt").read_text(encoding="utf-8")
