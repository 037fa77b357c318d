"""How the processes of a run ended: stored, and read by reports."""

from __future__ import annotations

from evoengine.events import RunEnded
from evoengine.protocols import EndRow, Store
from evoengine.records import RunEnd
from evoengine.search.changes import changes_of
from evoengine.search.clock import utc_now


def store_end(store: Store, ended: RunEnded, settled: int) -> None:
    """Stores how this process ended the run, which has that many `settled` trials."""
    changes = len(changes_of(store))
    end = RunEnd(
        kind=ended.kind, reason=ended.reason, settled=settled, changes=changes, made=utc_now()
    )
    store.append(EndRow(len(_ends_of(store)), end))


def current_end(store: Store, settled: int) -> RunEnd | None:
    """How the run with that many `settled` trials ended; None if it has gone on since, or if its
    last process was killed.
    """
    ends = _ends_of(store)
    if not ends or (ends[-1].settled, ends[-1].changes) != (settled, len(changes_of(store))):
        return None
    return ends[-1]


def _ends_of(store: Store) -> list[RunEnd]:
    """All ends, oldest first."""
    found: list[RunEnd] = []
    while (row := store.get(EndRow, 0, len(found))) is not None:
        found.append(row.end)
    return found
