"""The C runtime in its variants."""

from __future__ import annotations

import pytest

from tests.emulator.run.native_lanes import VARIANTS, Runtime


@pytest.fixture(params=list(VARIANTS))
def runtime(request: pytest.FixtureRequest) -> Runtime:
    return Runtime(request.param)
