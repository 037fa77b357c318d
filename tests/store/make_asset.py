"""Writes assets/v<version>/run.db with the present code: once for every released schema version.

    python -m tests.store.make_asset

An asset of a released version is never written again: it stands for the databases that
users have.
"""

from __future__ import annotations

from pathlib import Path

from evoengine.protocols import FINAL, VERIFY
from evoengine.records import RaceResult, Status
from evoengine.store.migrations import MIGRATIONS
from evoengine.store.sqlite_store import SqliteStore
from tests.store.rows_of_a_run import (
    change,
    end,
    failure,
    info,
    promising,
    proposal,
    race,
    reply,
    request,
    verdict,
)


def main() -> None:
    path = Path(__file__).parent / "assets" / f"v{len(MIGRATIONS)}" / "run.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with SqliteStore(path, create=True) as store:
        store.append(info())
        store.append(proposal(0), promising(verdict(0)), verdict(0, VERIFY))
        store.append(
            request(1), failure(1), request(1, 1), reply(1), request(1, 2, turn=1), reply(1, 1)
        )
        store.append(proposal(1), promising(verdict(1)), verdict(1, VERIFY))
        store.append(race(1, 0, result=RaceResult.void), race(1, 1), verdict(1, FINAL))
        store.append(proposal(2, None), promising(verdict(2, 0, Status.rejected), False))
        store.append(proposal(3), promising(verdict(3)), verdict(3, VERIFY, Status.wrong_result))
        store.append(change(0))
        store.append(end(0))


if __name__ == "__main__":
    main()
