"""What every test of the emulator needs."""

from __future__ import annotations

import pytest

from evoengine.emulator.emulator_errors import CompilerMissing
from evoengine.emulator.front.clang import find_clang


@pytest.fixture(autouse=True, scope="session")
def clang() -> None:
    """Skips where there is no clang: with a GPU the emulator is an extra that need not be
    installed.
    """
    try:
        find_clang()
    except CompilerMissing as missing:
        pytest.skip(str(missing))
