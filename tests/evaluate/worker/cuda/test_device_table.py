"""Tables on the device, with memory of the host in its place."""

from __future__ import annotations

import numpy
import pytest

from evoengine.evaluate.worker.cuda.harness.device_table import SecretTable
from evoengine.evaluate.worker.cuda.harness.virtual_memory import AddressRange
from tests.evaluate.worker.cuda.host_device import host_bytes, install


def test_a_secret_table_holds_its_rows_only_while_they_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)
    table, rows = SecretTable(AddressRange(0), 0), numpy.arange(1, 7, dtype=numpy.uint64)
    for _ in range(2):
        with table.holding(rows) as address:
            held = host_bytes(address, rows.nbytes)
            assert held.numpy().view(numpy.uint64).tolist() == rows.tolist()
        assert not bool(held.any())
    assert SecretTable(AddressRange(0), 0)._address != address
