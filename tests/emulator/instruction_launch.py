"""Runs a single instruction on the emulator."""

from __future__ import annotations

import numpy as np

from evoengine.emulator.device import Emulator
from tests.emulator.instruction import Case, grid_of, inputs_of, ptx_of, stored_width


def launched(emulator: Emulator, case: Case, uniform: bool = False) -> np.ndarray:
    """The results of the instruction for `inputs_of`, as bits; `uniform`: one element per warp, so
    that operands are uniform.
    """
    inputs = inputs_of(case)
    arrays = [*inputs, np.zeros(len(inputs[0]), f"uint{stored_width(case.result)}")]
    places = [emulator.memory.allocate(array.nbytes) for array in arrays]
    program = emulator.load(ptx_of(case, uniform))
    try:
        for place, array in zip(places, arrays, strict=True):
            emulator.memory.view(place, array.nbytes)[:] = array.view(np.uint8)
        args = [
            *(place.to_bytes(8, "little") for place in places),
            len(inputs[0]).to_bytes(4, "little"),
        ]
        blocks, threads = grid_of(case, uniform)
        program.launch("k", grid=(blocks, 1, 1), block=(threads, 1, 1), args=args)
        return emulator.memory.view(places[-1], arrays[-1].nbytes).copy().view(arrays[-1].dtype)
    finally:
        program.close()
        for place in places:
            emulator.memory.free(place)
