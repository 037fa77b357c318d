"""Fixtures of all emulator tests."""

from __future__ import annotations

import pytest

from evoengine.emulator.emulator_errors import CompilerMissing
from evoengine.emulator.front.clang import find_clang


@pytest.fixture(autouse=True, scope="session")
def clang() -> None:
    """Skips if there is no clang: with a GPU the emulator is an optional extra."""
    try:
        find_clang()
    except CompilerMissing as missing:
        pytest.skip(str(missing))
