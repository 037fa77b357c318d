"""Settings of the whole suite."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from evoengine.evaluate.cuda_driver import cuda_devices
from tests.evaluate.kept_fork_server import kept

# Hooks and a fixture of pytest, which it finds here by their names.
from tests.sampling import (
    EXAMPLES,
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_configure_node,
    pytest_report_header,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
    sampling,
)

__all__ = [
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_configure_node",
    "pytest_report_header",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_testnodedown",
    "sampling",
]

# While tests are collected, what is imported is kept compiled, whatever PYTHONDONTWRITEBYTECODE
# says: of a thousand processes that tests start, each would compile the package anew. Not afterwards:
# a test may write a file twice in one second, whose compiled form would be taken for the second's.
WRITES_NO_BYTECODE = sys.dont_write_bytecode
sys.dont_write_bytecode = False

# Tests run side by side on all cores: threads that wait for a core would spin, and torch's took
# most of a run's CPU time. Read when torch is imported, here and in the processes of the tests.
for name, value in (
    ("OMP_NUM_THREADS", "1"),
    ("OPENBLAS_NUM_THREADS", "1"),
    ("MKL_NUM_THREADS", "1"),
    ("OMP_WAIT_POLICY", "PASSIVE"),
):
    os.environ.setdefault(name, value)

# The same examples on every run, and no limit on their time: the machine may be busy. Look for new
# ones with `pytest --hypothesis-profile=explore`.
for profile, examples in EXAMPLES.items():
    settings.register_profile(
        profile, derandomize=True, deadline=None, max_examples=examples, database=None
    )
settings.register_profile("explore", deadline=None, max_examples=5000)
settings.load_profile("sample")


@pytest.fixture(autouse=True, scope="session")
def _no_terminal() -> None:
    """Processes of pytest-xdist are given the width of a terminal, which tables would fit."""
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)


@pytest.fixture(autouse=True, scope="session")
def _end_of_kept_fork_servers() -> Iterator[None]:
    yield
    if kept.cache_info().currsize:
        kept().close()


def pytest_collection(session: pytest.Session) -> None:
    if session.config.getoption("whole") and not session.config.getoption("hypothesis_profile"):
        settings.load_profile("whole")


def pytest_collection_finish() -> None:
    sys.dont_write_bytecode = WRITES_NO_BYTECODE


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not cuda_devices().names:
        pytest.skip("needs a CUDA device")
