"""The options --device and --check, which the commands that judge share."""

from __future__ import annotations

from typing import Annotated

import typer

Device = Annotated[
    str,
    typer.Option(
        help=(
            "auto, cuda, cuda:N, emulator or emulator:TARGET (l4, h200, a100, ...); auto uses a"
            " GPU, or without one the emulator of the task's target, which checks results as a GPU"
            " would and models times; scripted draws verdicts at random, to try a generator."
        )
    ),
]
Check = Annotated[
    str | None,
    typer.Option(
        metavar="CHECKS",
        help=(
            "Checks of checked mode, which follows every access: some of races,bounds,init,async"
            " (all by default), or none. On the emulator in every first verdict; on a GPU beside"
            " it, on the CPU, of what would take a place."
        ),
    ),
]
