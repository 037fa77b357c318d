"""Settings of the whole suite."""

import os

import pytest
from hypothesis import settings

from evoengine.evaluate.cuda_driver import cuda_devices

# Hooks and a fixture of pytest, which it finds here by their names.
from tests.sampling import (
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

# The same examples on every run, and no limit on their time: the machine may be busy. Look for new
# ones with `pytest --hypothesis-profile=explore`.
for profile, examples in (("sample", 50), ("whole", 150)):
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


def pytest_collection(session: pytest.Session) -> None:
    if session.config.getoption("whole") and not session.config.getoption("hypothesis_profile"):
        settings.load_profile("whole")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not cuda_devices().names:
        pytest.skip("needs a CUDA device")
