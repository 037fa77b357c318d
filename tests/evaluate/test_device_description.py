"""A device described without being brought up is the one that a run would find."""

from __future__ import annotations

import pytest

from evoengine.errors import DeviceError
from evoengine.evaluate.cuda_driver import cuda_devices, cuda_facts
from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.evaluate.device_description import describe_device


def test_the_emulator_is_described_as_its_worker_does() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("llvmlite")
    from evoengine.emulator import targets
    from evoengine.evaluate.worker.emulated_session import describe

    found = describe_device(DeviceChoice(None, "l4"))
    cores = int(found.device.rpartition(" on ")[2].split()[0])
    assert found == describe(targets.find("l4"), cores).model_copy(update={"versions": {}})
    assert found.is_modelled and found.arch == "sm_89"


@pytest.mark.skipif(bool(cuda_devices().names), reason="there is a GPU")
def test_a_cuda_device_that_is_not_there_is_a_device_error() -> None:
    with pytest.raises(DeviceError, match="NVIDIA driver"):
        cuda_facts(0)


@pytest.mark.gpu
@pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device")
def test_a_gpu_is_described_as_its_worker_does() -> None:
    from evoengine.evaluate.worker.cuda_session import describe

    assert describe_device(DeviceChoice(0)) == describe(0).model_copy(update={"versions": {}})
