"""The colours of statuses."""

from __future__ import annotations

from evoengine.records import Status

STATUS_STYLES = {  # all others: red
    Status.correct: "green",
    Status.wrong_result: "yellow",
    Status.unstable: "yellow",
    Status.unsupported: "yellow",  # a gap of the emulator, not a fault of the kernel
    Status.rejected: "dim",
}


def status_style(status: Status) -> str:
    """The colour of a status."""
    return STATUS_STYLES.get(status, "red")
