"""The command line on a pretended device: the executor is scripted, everything else is real."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.evaluate.scripted.scripted_executor import (
    SCRIPTED_EMULATOR,
    SCRIPTED_GPU,
    ScriptedExecutor,
)
from evoengine.protocols import ExecutorStart
from evoengine.search import choose_run, make_executor, resume_run, start_run
from evoengine.task.schema import Task


class StartingSlowly(ScriptedExecutor):
    """Takes SCRIPTED_START_S seconds to start; of three baselines of a GPU, one does not work."""

    async def start(self) -> ExecutorStart:
        await asyncio.sleep(float(os.environ.get("SCRIPTED_START_S", "0")))
        found = await super().start()
        if found.environment.is_modelled:
            return found
        slower = {case: {"torch.other": 13.5, **times} for case, times in found.baseline_us.items()}
        return found.model_copy(
            update={
                "baseline_us": slower,
                "baseline_problems": {"torch.broken": "no kernel image"},
            }
        )


def pretend(setattr_: Any = setattr, modelled: bool = False) -> None:
    """Gives this process a device that judges by the script; `modelled`: an emulator."""
    delay_s = float(os.environ.get("SCRIPTED_DELAY_S", "0"))
    environment = SCRIPTED_EMULATOR if modelled else SCRIPTED_GPU
    device = DeviceChoice(0)
    if modelled:
        device = DeviceChoice(None, "l4", "kernels run on an emulator", "emulated")

    def executor(task: Task, *_: object, **__: object) -> ScriptedExecutor:
        return StartingSlowly(task, environment, delay_s=delay_s)

    for module in (make_executor, start_run, resume_run):
        setattr_(module, "make_executor", executor)
    for module in (make_executor, choose_run, resume_run):
        setattr_(module, "find_device", lambda *_: device)


if __name__ == "__main__":
    from evoengine.cli.main import main

    pretend()
    main()
