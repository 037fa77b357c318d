"""The command line on a pretended device: the executor is scripted, everything else is real."""

from __future__ import annotations

import os
from typing import Any

from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.search import choose_run, make_executor, resume_run, start_run
from tests.report.scene import ScriptedExecutor


def pretend(setattr_: Any = setattr, modelled: bool = False) -> None:
    """Gives this process a device that judges by the script; `modelled`: an emulator."""
    delay_s = float(os.environ.get("SCRIPTED_DELAY_S", "0"))
    device = DeviceChoice(0)
    if modelled:
        device = DeviceChoice(None, "l4", "kernels run on an emulator", "emulated")
    for module in (make_executor, start_run, resume_run):
        setattr_(module, "make_executor", lambda *_: ScriptedExecutor(delay_s, modelled))
    for module in (make_executor, choose_run, resume_run):
        setattr_(module, "find_device", lambda *_: device)


if __name__ == "__main__":
    from evoengine.cli.main import main

    pretend()
    main()
