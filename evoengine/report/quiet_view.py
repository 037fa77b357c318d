"""The view of a run with --quiet: only notices."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from evoengine.events import Event, Notice
from evoengine.report import format


class QuietView:
    """An Observer that passes only notices to `write`: fallbacks that are used, and what goes
    wrong.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Has nothing to close."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice):
            self._write(" ".join(format.printable(f"note: {event.text}").split("\n")))
