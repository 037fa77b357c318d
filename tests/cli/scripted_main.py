"""The command line on a pretended device: the executor is scripted, everything else is real."""

from __future__ import annotations

import os
from typing import Any

from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.search import wiring
from tests.report.scene import ScriptedExecutor


def pretend(setattr_: Any = setattr, modelled: bool = False) -> None:
    """Gives this process a device that judges by the script; `modelled`: an emulator."""
    delay_s = float(os.environ.get("SCRIPTED_DELAY_S", "0"))
    setattr_(wiring, "_executor", lambda *_: ScriptedExecutor(delay_s, modelled))
    setattr_(
        wiring,
        "find_device",
        lambda device, task: (
            DeviceChoice(None, "l4", "kernels run on an emulator", "emulated")
            if modelled
            else DeviceChoice(0)
        ),
    )


if __name__ == "__main__":
    from evoengine.cli.main import main

    pretend()
    main()
