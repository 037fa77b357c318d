"""Which mistakes a run plants: a sample; each takes up to seconds."""

from __future__ import annotations

import pytest

# of a test whose parameter is the name of a mistake, or of a function
of_some = pytest.mark.sampled("name", one_in=6)
