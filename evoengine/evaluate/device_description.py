"""What a device is, as verdicts and prompts describe it, without starting it: no torch, no
context.
"""

from __future__ import annotations

import os

from evoengine.emulator import targets
from evoengine.evaluate.cuda_driver import cuda_facts
from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_DEVICE
from evoengine.records import Environment


def describe_device(chosen: DeviceChoice) -> Environment:
    """The environment of `chosen`, without the versions of programs; raises DeviceError for a CUDA
    device that is not there.
    """
    if chosen.is_scripted:
        return SCRIPTED_DEVICE
    if chosen.ordinal is None:
        return modelled_gpu(targets.find(chosen.target), len(os.sched_getaffinity(0)))
    facts = cuda_facts(chosen.ordinal)
    return Environment(
        device=f"cuda:{chosen.ordinal} {facts.name}",
        kind="cuda",
        arch=facts.arch,
        sm_count=facts.sm_count,
        max_shared_bytes=facts.max_shared_bytes,
        l2_bytes=facts.l2_bytes,
        memory_bytes=facts.memory_bytes,
        versions={},
    )


def modelled_gpu(target: targets.TargetGpu, threads: int) -> Environment:
    """The GPU that the emulator models on `threads` cores."""
    cores = f"{threads} core{'' if threads == 1 else 's'}"
    return Environment(
        device=f"emulator:{target.name} {target.title} (modelled on {cores})",
        kind="emulator",
        arch=target.arch,
        sm_count=target.sms,
        max_shared_bytes=target.shared_per_block,
        l2_bytes=target.l2_bytes,
        memory_bytes=0,  # not modelled
        versions={},
    )
