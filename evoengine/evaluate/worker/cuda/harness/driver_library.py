"""NVIDIA's driver, for the calls that CuPy does not have."""

from __future__ import annotations

import ctypes
from functools import cache


@cache
def driver_library() -> ctypes.CDLL:
    """The driver's library; loaded once, because marks and variables use it in every replay."""
    return ctypes.CDLL("libcuda.so.1")
