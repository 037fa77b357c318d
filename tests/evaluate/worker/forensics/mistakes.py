"""Which mistakes a run plants: a sample, and all of them where the diagnosis itself changed."""

from __future__ import annotations

import pytest

from tests.sampling import ROOT

SOURCES = tuple((ROOT / "evoengine" / "evaluate" / "worker" / "forensics").glob("*.py"))

# of a test whose parameter is the name of a mistake, or of a function; each takes up to seconds
of_some = pytest.mark.sampled("name", one_in=6, files=lambda _: SOURCES)
