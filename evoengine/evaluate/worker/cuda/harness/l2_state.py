"""What lies in L2 when a sample begins: what it reads, or nothing of it."""

from __future__ import annotations

from collections.abc import Sequence

import cupy
import numpy

from evoengine.evaluate.worker.cuda.harness.device_table import SecretTable
from evoengine.evaluate.worker.cuda.harness.driver_library import driver_library
from evoengine.evaluate.worker.cuda.harness.harness_kernels import HarnessKernels
from evoengine.evaluate.worker.cuda.harness.virtual_memory import (
    AddressRange,
    pages,
)

FLUSH_FACTOR = 2  # of the size of L2
LEAST_FLUSH_BYTES = 32 * 1024**2


class L2State:
    """Sets the state of L2 of the current device, in the order of one stream.

    Its buffers lie at random addresses, where no candidate finds them: they name later calls'.
    """

    def __init__(
        self,
        kernels: HarnessKernels,
        addresses: AddressRange,
        stream: int,
    ) -> None:
        l2_bytes = int(cupy.cuda.Device().attributes["L2CacheSize"])
        self._kernels = kernels
        self._bytes = pages(max(FLUSH_FACTOR * l2_bytes, LEAST_FLUSH_BYTES))
        self._address = addresses.allocate(self._bytes)
        self._table = SecretTable(addresses, stream)

    def flush(self, _stream: int = 0) -> None:
        """Evicts everything, lines that hints protect too."""
        self._kernels.flush(self._address, self._bytes)

    def prepare(self, spans: Sequence[tuple[int, int]], cold: bool) -> None:
        """Ends the protection of all persisting lines, and of those of the spans (address, bytes)
        that hints protect; unless `cold`, reads the spans, so that they lie in L2 as far as they
        fit.
        """
        driver_library().cuCtxResetPersistingL2Cache()  # refused before sm_80
        if not spans:
            return
        # no address of a later call stays for the candidate to find
        with self._table.holding(numpy.array(spans, dtype=numpy.uint64)) as table:
            self._kernels.demote(table, len(spans))
            if not cold:
                # lines that hints protect would take room from what is read now, on either side
                self.flush()
                self._kernels.touch(table, len(spans))
        self._kernels.scrub_registers()
