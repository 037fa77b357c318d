"""The end of what tests of this folder keep for each other."""

from collections.abc import Iterator

import pytest

from tests.evaluate.kept_fork_server import kept


@pytest.fixture(autouse=True, scope="session")
def _end_of_kept_emulators() -> Iterator[None]:
    yield
    if kept.cache_info().currsize:
        kept().close()
