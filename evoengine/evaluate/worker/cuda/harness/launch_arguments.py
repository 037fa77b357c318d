"""The arguments of a launch as the driver takes them."""

from __future__ import annotations

import ctypes
from typing import Any, TypeAlias

Value: TypeAlias = "ctypes._SimpleCData[Any]"


class LaunchArguments:
    """An array of pointers to values; it keeps the values."""

    def __init__(self, *values: Value) -> None:
        """`values` are in the order of the kernel's parameters."""
        self._values = values
        self._array = (ctypes.c_void_p * max(1, len(values)))(*map(ctypes.addressof, values))
        self.address = ctypes.addressof(self._array)
