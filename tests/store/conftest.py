"""Both stores, for the contract suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evoengine.store.memory_store import MemoryStore
from evoengine.store.sqlite_store import SqliteStore


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteStore | MemoryStore]:
    made = (
        SqliteStore(tmp_path / "run.db", create=True)
        if request.param == "sqlite"
        else MemoryStore()
    )
    yield made
    made.close()
