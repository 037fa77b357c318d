from pathlib import Path

import pytest

from tests.generate.row_sums_task import write_task


@pytest.fixture
def task_path(tmp_path: Path) -> Path:
    return write_task(tmp_path)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the machine must not come between a test and its own server."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
