"""Chooses the device of a run: a CUDA device of this machine, or an emulated GPU."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evoengine.candidate.arch import DEFAULT_ARCH
from evoengine.emulator import targets
from evoengine.errors import DeviceError, UsageError
from evoengine.evaluate.checked_beside import MEMORY_BYTES, THREADS
from evoengine.evaluate.cuda_driver import CudaDevices, cuda_devices
from evoengine.evaluate.device.two_graders import cuda_search_device
from evoengine.evaluate.device.worker_device import emulator_device
from evoengine.paths import cache_dir
from evoengine.protocols import Device
from evoengine.records import Environment

EMULATOR = "emulator"
SCRIPTED = "scripted"
SCRIPTED_NOTICE = (
    "no kernel is compiled or run: verdicts and times are drawn at random, to try a generator"
)
INSTALL_EMULATOR = "pip install 'evoengine[emulator]'"
# of the GPUs of one architecture; elsewhere the table of targets decides
_PREFERRED = {"sm_90": "h200"}
_NEEDED = ("llvmlite", "numpy", "torch")  # by the emulator's worker


@dataclass(frozen=True)
class DeviceChoice:
    """A CUDA device by its number, or (None) the emulator with the name of its target, or none.

    `notice` is a message for the user, `brief` the same in one short line.
    """

    ordinal: int | None
    target: str = ""
    notice: str = ""
    brief: str = ""
    is_scripted: bool = False  # no device: verdicts are drawn

    @property
    def is_emulator(self) -> bool:
        """Whether kernels run on the emulator."""
        return self.ordinal is None and not self.is_scripted

    def make_device(self, checks: Sequence[str]) -> Device:
        """The device, not started yet; `checks` are those of an emulator's checked mode."""
        assert not self.is_scripted
        if self.ordinal is None:
            return emulator_device(self.target, checks, cache_dir() / "answers")
        return cuda_search_device(self.ordinal, cache_dir() / "baseline-code")


def device_beside(arch: str, checks: Sequence[str]) -> Device:
    """The emulator that follows candidates of a GPU of `arch` in checked mode, not started yet.

    Raises DeviceError where there is none, or a package is missing.
    """
    if missing := missing_for_emulator():
        raise DeviceError(f"{', '.join(missing)} not installed: {INSTALL_EMULATOR}")
    target = emulated_gpu(arch)
    threads = min(THREADS, len(os.sched_getaffinity(0)))
    return emulator_device(target, checks, cache_dir() / "answers", threads, MEMORY_BYTES)


def emulated_gpu(arch: str) -> str:
    """The emulator's target that stands for GPUs of `arch`; raises DeviceError without one."""
    try:
        return _preferred_target(arch)
    except targets.UnknownTarget as error:
        raise DeviceError(f"the emulator has {error}") from None


def missing_for_emulator() -> list[str]:
    """The packages that the emulator needs and that are not installed."""
    return [name for name in _NEEDED if importlib.util.find_spec(name) is None]


def choose_device(
    text: str,
    arch: str | None,
    probe: Callable[[], CudaDevices] = cuda_devices,
    missing: Callable[[], list[str]] | None = None,
) -> DeviceChoice:
    """The device that `text` asks for: auto, cuda, cuda:N, emulator, emulator:TARGET or scripted.

    `auto` is the first CUDA device or, if there is none, the emulator of a GPU of `arch`, the
    task's target. `missing` returns the packages that the emulator lacks here, by default those
    that it needs to run. Raises UsageError for another text or an unknown target, DeviceError for
    a device or package that is not there.
    """
    kind, _, which = text.partition(":")
    lacking = missing or missing_for_emulator
    if text == SCRIPTED:
        return DeviceChoice(None, notice=SCRIPTED_NOTICE, brief=SCRIPTED_NOTICE, is_scripted=True)
    if kind == EMULATOR and text != f"{EMULATOR}:":
        return _emulator(which or _target_of(arch), "", lacking())
    found = probe()
    if text == "auto":
        return (
            DeviceChoice(0)
            if found.names
            else _emulator(_target_of(arch), found.problem or "no CUDA device", lacking())
        )
    if kind != "cuda" or not (which or "0").isdecimal():
        raise UsageError(
            "expected --device auto, cuda, cuda:N, emulator, emulator:TARGET or scripted, got"
            f" {text!r}"
        )
    number = int(which or "0")
    if number >= len(found.names):
        here = found.problem or f"this machine has {len(found.names)}: {', '.join(found.names)}"
        raise DeviceError(f"no device {text!r}: {here}; --device emulator needs none")
    return DeviceChoice(number)


def same_compilers(begun: Environment, here: Environment) -> list[str]:
    """How to get the compilers of `begun` if those of `here` differ: one sentence for each."""
    ways = []
    clang, nvrtc = begun.versions.get("clang", ""), begun.versions.get("nvrtc", "")
    if clang != here.versions.get("clang", ""):
        ways.append(
            f"install clang {clang} ({INSTALL_EMULATOR} brings the one of the wheel ziglang) and"
            " name it with EVOENGINE_CLANG"
        )
    if nvrtc and nvrtc != here.versions.get("nvrtc"):
        ways.append(f"install NVRTC {nvrtc} with its headers (pip install '{_toolkit(nvrtc)}')")
    if not nvrtc and "nvrtc" in here.versions:
        ways.append(
            "resume in an environment without NVRTC (pip uninstall nvidia-cuda-nvrtc, and no CUDA"
            " toolkit)"
        )
    return ways


def _toolkit(nvrtc: str) -> str:
    """NVIDIA's package with this NVRTC; up to CUDA 12, some headers come with its nvcc."""
    headers = "crt" if int(nvrtc.partition(".")[0]) >= 13 else "nvcc"
    return f"cuda-toolkit[nvrtc,cudart,{headers},cccl]=={nvrtc}.*"


def _emulator(target: str, instead: str, missing: list[str]) -> DeviceChoice:
    try:
        found = targets.find(target)
    except targets.UnknownTarget as error:
        raise UsageError(f"--device emulator:TARGET: {error}") from None
    if missing:
        why = f"{instead}, and the emulator" if instead else "the emulator"
        raise DeviceError(f"{why} cannot run without {', '.join(missing)}: {INSTALL_EMULATOR}")
    begin = f"{instead}: kernels run" if instead else "kernels run"
    return DeviceChoice(
        None,
        found.name,
        f"{begin} on an emulator on this machine's CPU. The results of every case are verified;"
        f" times are modelled for an {found.title} ({found.arch}), not measured, so no speed-up"
        " against a library is claimed",
        f"{'no GPU here: ' if instead else ''}an emulated {found.title} judges; results are"
        " verified, times are modelled",
    )


def _target_of(arch: str | None) -> str:
    try:
        return _preferred_target(arch or DEFAULT_ARCH)
    except targets.UnknownTarget as error:
        raise UsageError(
            f"the task's target cannot be emulated: {error}; choose one with --device"
            " emulator:TARGET"
        ) from None


def _preferred_target(arch: str) -> str:
    """Raises UnknownTarget."""
    wanted = arch.rstrip("af")
    return _PREFERRED.get(wanted) or targets.for_arch(wanted).name
