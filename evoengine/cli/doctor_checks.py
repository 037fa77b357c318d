"""The checks of `evoengine doctor`; none of them imports torch or CuPy into this process."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from evoengine.cli.doctor_emulator_checks import check_beside, check_emulator
from evoengine.cli.doctor_nvml_check import check_nvml
from evoengine.cli.endpoint_probe import probe
from evoengine.errors import DeviceError, EvoError, StoreError, ToolchainError
from evoengine.evaluate.compile.compile_unit import Toolchain
from evoengine.evaluate.compile.landlock import has_domains
from evoengine.evaluate.compile.pool import toolchain
from evoengine.evaluate.cuda_driver import CudaDevices, cuda_devices
from evoengine.generate.endpoint_address import DEFAULT_URL
from evoengine.paths import cache_dir
from evoengine.report.rows import DoctorFinding

# a run of a few hundred trials with its exports takes far less; a full disk ends a run
LOW_SPACE_BYTES = 1 << 30
CUDA13_DRIVER = (13, 0)
# PyPI's torch for Linux is built for CUDA and brings its libraries; PyTorch's own index has the
# CPU build.
CPU_BUILD = (
    "pip install --extra-index-url https://download.pytorch.org/whl/cpu 'evoengine[emulator]'"
)
INSTALL = "pip install 'evoengine[cuda13]' (driver 580 or later) or 'evoengine[cuda12]'"
WITHOUT_NVRTC = (
    "kernels run without it, but their register counts are unknown, which changes modelled times:"
    " pip install 'evoengine[emulator]'"
)
CUPY_PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


def run_checks(runs_dir: Path, environ: Mapping[str, str], connect: bool) -> list[DoctorFinding]:
    """All findings, in the order in which they are shown."""
    devices = cuda_devices()
    emulators = [*check_emulator(needed=not devices.names)]
    # then a run needs nothing that a GPU needs
    emulated = all(finding.state == "ok" for finding in emulators)
    return [
        _python(),
        *(
            _optional_with_emulator(finding, emulated and not devices.names)
            for finding in (_driver(devices), _devices(devices))
        ),
        *check_nvml(devices),
        _torch(bool(devices.names)),
        _optional_with_emulator(_cupy(devices), emulated and not devices.names),
        *(
            _optional_with_emulator(finding, emulated and not devices.names, WITHOUT_NVRTC)
            for finding in _compiler(_toolchain())
        ),
        *emulators,
        *check_beside(devices, emulated),
        *_workers(),
        _endpoint(environ, connect),
        _folder("runs folder", runs_dir, "--runs-dir chooses another folder"),
        _folder("cache", cache_dir(environ), "EVOENGINE_CACHE_DIR chooses another folder"),
    ]


def _optional_with_emulator(
    finding: DoctorFinding, emulated: bool, remedy: str = ""
) -> DoctorFinding:
    """`finding` about something that a GPU needs: absent, not missing, if the emulator is used.

    `remedy` replaces its remedy then.
    """
    if finding.state != "missing" or not emulated:
        return finding
    words = remedy or f"the emulator does not need it; for a GPU: {finding.remedy}"
    return finding.model_copy(update={"state": "absent", "remedy": words, "exit_code": 0})


def _python() -> DoctorFinding:
    return DoctorFinding(
        name="python", state="ok", found=f"{platform.python_version()} ({sys.executable})"
    )


def _driver(devices: CudaDevices) -> DoctorFinding:
    if devices.driver:
        return DoctorFinding(name="driver", state="ok", found=f"CUDA {devices.driver}")
    remedy = "install NVIDIA's driver, or give the container the GPU (docker run --gpus all)"
    return DoctorFinding(
        name="driver",
        state="missing",
        found=devices.problem,
        remedy=remedy,
        exit_code=DeviceError.exit_code,
    )


def _devices(devices: CudaDevices) -> DoctorFinding:
    if devices.names:
        return DoctorFinding(
            name="devices",
            state="ok",
            found=", ".join(f"cuda:{number} {name}" for number, name in enumerate(devices.names)),
        )
    remedy = (
        "check that `nvidia-smi` lists a device and that CUDA_VISIBLE_DEVICES does not hide it"
        if devices.driver
        else "install the driver first"
    )
    return DoctorFinding(
        name="devices",
        state="missing",
        found="none",
        remedy=remedy,
        exit_code=DeviceError.exit_code,
    )


def _torch(has_device: bool) -> DoctorFinding:
    version = _version("torch")
    if version is None:
        remedy = INSTALL if has_device else f"{CPU_BUILD} for the emulator; for a GPU: {INSTALL}"
        return DoctorFinding(
            name="torch",
            state="missing",
            found="not installed",
            remedy=remedy,
            exit_code=ToolchainError.exit_code,
        )
    cuda = "" if has_device else _cuda_of_torch()
    if cuda:
        remedy = (
            "it works; the CPU build does the same without 6 GB of CUDA libraries; in a new"
            f" environment: {CPU_BUILD}"
        )
        return DoctorFinding(
            name="torch",
            state="ok",
            found=f"{version}, built for CUDA {cuda}, which no device here can use",
            remedy=remedy,
        )
    if has_device and version.endswith("+cpu"):
        return DoctorFinding(
            name="torch",
            state="missing",
            found=f"{version}, built without CUDA",
            remedy=INSTALL,
            exit_code=ToolchainError.exit_code,
        )
    return DoctorFinding(name="torch", state="ok", found=version)


def _cuda_of_torch() -> str:
    """The CUDA version that the installed torch was built for, from its version.py; empty for a
    CPU build or if the file does not say.
    """
    found = importlib.util.find_spec("torch")
    file = Path(found.origin or "").parent / "version.py" if found else Path()
    try:
        match = re.search(
            r"^cuda\b[^=\n]*= *'([\d.]+)'", file.read_text(encoding="utf-8"), re.MULTILINE
        )
    except OSError:
        return ""
    return match[1] if match else ""


def _cupy(devices: CudaDevices) -> DoctorFinding:
    for package in CUPY_PACKAGES:
        version = _version(package)
        if version is None:
            continue
        if (
            package == "cupy-cuda13x"
            and devices.driver
            and _numbers(devices.driver) < CUDA13_DRIVER
        ):
            remedy = (
                f"pip install 'evoengine[cuda12]': the driver supports only CUDA {devices.driver}"
            )
            return DoctorFinding(
                name="CuPy",
                state="missing",
                found=f"{package} {version}",
                remedy=remedy,
                exit_code=ToolchainError.exit_code,
            )
        return DoctorFinding(name="CuPy", state="ok", found=f"{package} {version}")
    return DoctorFinding(
        name="CuPy",
        state="missing",
        found="not installed",
        remedy=INSTALL,
        exit_code=ToolchainError.exit_code,
    )


def _toolchain() -> Toolchain:
    """The toolchain that a real compiler process finds, or why that process does not start."""
    try:
        return asyncio.run(toolchain())
    except EvoError as error:
        return Toolchain(problem=str(error))


def _compiler(found: Toolchain) -> Iterator[DoctorFinding]:
    code = ToolchainError.exit_code
    if found.nvrtc and not found.problem:
        archs = (
            f"sm_{min(found.architectures)} to sm_{max(found.architectures)}"
            if found.architectures
            else "architectures unknown"
        )
        yield DoctorFinding(
            name="compiler", state="ok", found=f"NVRTC {found.nvrtc}, {archs} ({found.library})"
        )
    else:
        problem = (found.problem.strip() or "no error message").splitlines()[-1]
        yield DoctorFinding(
            name="compiler",
            state="missing",
            found=f"NVRTC {found.nvrtc or 'does not start'}: {problem}",
            remedy=INSTALL,
            exit_code=code,
        )
    if found.missing:
        yield DoctorFinding(
            name="headers",
            state="missing",
            found=f"{', '.join(found.missing)} not found",
            remedy=INSTALL,
            exit_code=code,
        )
    elif found.headers:
        yield DoctorFinding(
            name="headers", state="ok", found=f"{len(found.headers)} from {found.source}"
        )
    if found.nvrtc and not found.confined:
        remedy = (
            "Linux 5.13 or later with Landlock; until then only the check of #include lines keeps a"
            " kernel from reading files"
        )
        yield DoctorFinding(
            name="confinement",
            state="absent",
            found="compiler processes can open any file",
            remedy=remedy,
        )


def _workers() -> Iterator[DoctorFinding]:
    if not has_domains():
        found = (
            "a kernel that breaks out of its worker can read the environment of your other programs"
        )
        remedy = (
            "Linux 5.19 or later with Landlock; until then give the key only to evoengine"
            " (OPENAI_API_KEY=... evoengine run)"
        )
        yield DoctorFinding(name="workers", state="absent", found=found, remedy=remedy)


def _endpoint(environ: Mapping[str, str], connect: bool) -> DoctorFinding:
    url = environ.get("OPENAI_BASE_URL") or DEFAULT_URL
    key = environ.get("OPENAI_API_KEY", "").strip()
    if not key and not environ.get("OPENAI_BASE_URL"):
        remedy = (
            "set OPENAI_API_KEY (and OPENAI_BASE_URL for another endpoint) to have a model propose"
            " kernels; the tuner needs none"
        )
        return DoctorFinding(
            name="model endpoint", state="absent", found="OPENAI_API_KEY is not set", remedy=remedy
        )
    shown = f"{_without_secrets(url)}, {'a key is set' if key else 'no key'}"
    if not connect:
        return DoctorFinding(
            name="model endpoint", state="ok", found=f"{shown}; not contacted (--connect does)"
        )
    problem = probe(url, key)
    if problem:
        return DoctorFinding(
            name="model endpoint",
            state="absent",
            found=f"{shown}; {problem}",
            remedy="check OPENAI_BASE_URL and OPENAI_API_KEY",
        )
    return DoctorFinding(name="model endpoint", state="ok", found=f"{shown}; it answers")


def _folder(name: str, folder: Path, elsewhere: str) -> DoctorFinding:
    existing = next(
        place for place in (folder.absolute(), *folder.absolute().parents) if place.exists()
    )
    code = StoreError.exit_code
    if not existing.is_dir():
        return DoctorFinding(
            name=name,
            state="missing",
            found=f"{folder}: {existing} is not a folder",
            remedy=elsewhere,
            exit_code=code,
        )
    if not os.access(existing, os.W_OK | os.X_OK):
        return DoctorFinding(
            name=name,
            state="missing",
            found=f"{folder}: {existing} cannot be written",
            remedy=f"make it writable; {elsewhere}",
            exit_code=code,
        )
    free = shutil.disk_usage(existing).free
    words = f"{folder}: {free / 2**30:.1f} GiB free"
    if free < LOW_SPACE_BYTES:
        return DoctorFinding(
            name=name,
            state="missing",
            found=words,
            remedy=f"free some space; {elsewhere}",
            exit_code=code,
        )
    return DoctorFinding(name=name, state="ok", found=words)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _without_secrets(url: str) -> str:
    """`url` without a user, a password or a query."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.split('?')[0].rpartition('@')[2]}" if rest else url
