"""Which device a text means, on machines with and without a GPU."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine.config import CHECKS
from evoengine.errors import DeviceError, UsageError, WorkerError
from evoengine.evaluate import device_choice
from evoengine.evaluate.cuda_driver import CudaDevices
from evoengine.evaluate.device_choice import choose_device
from evoengine.protocols import Job

NONE = CudaDevices((), problem="no NVIDIA driver (libcuda.so.1 is not there)")
TWO = CudaDevices(("NVIDIA H200", "NVIDIA L4"), "13.0")


def chosen(
    text: str, arch: str | None = None, found: CudaDevices = NONE
) -> device_choice.DeviceChoice:
    return choose_device(text, arch, lambda: found)


@pytest.mark.parametrize(("text", "ordinal"), [("auto", 0), ("cuda", 0), ("cuda:1", 1)])
def test_a_machine_with_gpus_uses_them_and_says_nothing(text: str, ordinal: int) -> None:
    assert chosen(text, "sm_89", TWO) == device_choice.DeviceChoice(ordinal)


@pytest.mark.parametrize(
    ("arch", "target"),
    [
        ("sm_75", "t4"),
        ("sm_80", "a100"),
        ("sm_89", "l4"),
        ("sm_90", "h200"),
        ("sm_90a", "h200"),
        (None, "h200"),
    ],
)
def test_auto_without_a_gpu_is_the_emulator_of_the_tasks_target_and_says_what_is_modelled(
    arch: str | None, target: str
) -> None:
    found = chosen("auto", arch)
    assert found.is_emulator and found.target == target
    assert found.notice.startswith(
        "no NVIDIA driver (libcuda.so.1 is not there): kernels run on an emulator"
    )
    assert (
        "The results of every case are verified" in found.notice
        and "times are modelled for an" in found.notice
    )
    assert found.brief.startswith("no GPU here: an emulated NVIDIA ") and len(found.brief) < 100
    assert found.brief.endswith(" judges; results are verified, times are modelled")


@pytest.mark.parametrize(
    ("text", "target"), [("emulator", "l4"), ("emulator:a100", "a100"), ("emulator:H200", "h200")]
)
def test_the_emulator_can_be_asked_for_beside_a_gpu(text: str, target: str) -> None:
    found = chosen(text, "sm_89", TWO)
    assert (found.ordinal, found.target) == (None, target)
    assert found.notice.startswith("kernels run on an emulator") and found.brief.startswith(
        "an emulated NVIDIA "
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("emulator:h20", r"no target 'h20'; did you mean 'h200'\? known: .*l4"),
        (
            "gpu",
            "expected --device auto, cuda, cuda:N, emulator, emulator:TARGET or scripted, got 'gpu'",
        ),
        ("cuda:x", "got 'cuda:x'"),
        ("emulator:", "got 'emulator:'"),
    ],
)
def test_a_text_that_means_no_device_is_a_usage_error_that_names_those_there_are(
    text: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        chosen(text, found=TWO)


def test_a_target_that_no_figures_are_known_of_is_a_usage_error() -> None:
    with pytest.raises(
        UsageError, match=r"the task's target cannot be emulated: no target of architecture 'sm_87'"
    ):
        chosen("auto", "sm_87")


@pytest.mark.parametrize(("text", "found"), [("cuda", NONE), ("cuda:2", TWO)])
def test_a_gpu_that_is_not_there_is_a_device_error_and_nothing_takes_its_place(
    text: str, found: CudaDevices
) -> None:
    with pytest.raises(DeviceError, match=f"no device '{text}'.*--device emulator needs none"):
        chosen(text, found=found)


def test_an_emulator_without_its_packages_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_choice, "missing_for_emulator", lambda: ["llvmlite"])
    with pytest.raises(
        DeviceError,
        match=r"no NVIDIA driver .*, and the emulator cannot run without llvmlite: pip install",
    ):
        chosen("auto", "sm_89")


@pytest.mark.parametrize("text", ["cuda:1", "emulator:l4"])
def test_a_choice_makes_a_device_that_was_not_started(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVOENGINE_CACHE_DIR", str(tmp_path))
    device = choose_device(text, "sm_89", lambda: TWO).make_device(CHECKS)

    async def run() -> None:
        with pytest.raises(WorkerError, match="before it was started"):
            await device.run(Job(cases=(), tier=""), lambda _: None)
        await device.close()

    asyncio.run(run())
