"""The check of `evoengine doctor` whether the state of the GPUs can be read beside a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evoengine.evaluate.cuda_driver import CudaDevices
from evoengine.evaluate.nvml import PACKAGE, Nvml, NvmlError, start_nvml
from evoengine.report.rows import DoctorFinding

WITHOUT = "without it no verdict says whether its GPU was throttled or shared"


def check_nvml(
    devices: CudaDevices, start: Callable[[], Nvml] = start_nvml
) -> Iterator[DoctorFinding]:
    """One finding if there is a device: what NVML tells about each."""
    if not devices.names:
        return
    try:
        nvml = start()
        missing = [nvml.gpu(bus_id).read().missing for bus_id in devices.bus_ids]
    except NvmlError as error:
        yield DoctorFinding(
            name="NVML",
            state="absent",
            found=str(error),
            remedy=f"pip install {PACKAGE}, with the driver's libnvidia-ml.so.1; {WITHOUT}",
        )
        return
    words = [
        f"; cuda:{ordinal} does not give {', '.join(names)}"
        for ordinal, names in enumerate(missing)
        if names
    ]
    yield DoctorFinding(name="NVML", state="ok", found=f"driver {nvml.driver}{''.join(words)}")
