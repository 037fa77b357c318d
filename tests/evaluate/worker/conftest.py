from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Importing torch.compile's back end warns about torch's own use of torch.jit, which nobody here can help."""
    for item in items:
        if "/worker/" in item.nodeid:
            item.add_marker(pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"))
