"""What a buffer holds before each call: a number in every element, or a copy of an input."""

from __future__ import annotations

import math
import struct
from typing import Annotated, Any

from pydantic import BeforeValidator

_INFINITIES = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf}
_CODES = {
    "float16": "<e",
    "float32": "<f",
    "float64": "<d",
    "int8": "<b",
    "uint8": "<B",
    "int32": "<i",
    "int64": "<q",
    "bool": "<?",
}


def _read(value: Any) -> Any:
    if isinstance(value, str):
        return _INFINITIES.get(value, value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number, inf, -inf or the name of an input")
    return value


# A number, or the name of an input tensor.
InitialValue = Annotated[float | int | str, BeforeValidator(_read)]


def element_bytes(value: float, dtype: str) -> bytes:
    """One element of `dtype` that holds `value`, little-endian; raises ValueError where the dtype
    cannot hold it.
    """
    try:
        if dtype == "bfloat16":
            return _bfloat16(value)
        if dtype in ("float16", "float32", "float64"):
            return struct.pack(_CODES[dtype], value)
        if value != int(value):
            raise ValueError
        if dtype == "bool" and value not in (0, 1):
            raise ValueError
        return struct.pack(_CODES[dtype], int(value))
    except (ValueError, OverflowError, struct.error):
        raise ValueError(f"{dtype} cannot hold {value}") from None


def _bfloat16(value: float) -> bytes:
    """The upper half of a float32; what needs the lower half is refused, not rounded."""
    whole = struct.pack("<f", value)
    if whole[:2] != b"\0\0":
        raise ValueError
    return whole[2:]
