"""The number formats that a tier may ask for with `uses`: each name with the instructions that
count.

evaluate/compile/machine_code.py finds them in machine code, evaluate/compile/ptx_formats.py in PTX.
"""

from __future__ import annotations

from evoengine.errors import hint

FORMATS: dict[str, str] = {
    "e4m3": "conversions from and to e4m3, tensor instructions on it",
    "e5m2": "conversions from and to e5m2, tensor instructions on it",
    "f16": "tensor instructions on half precision (HMMA, HGMMA)",
    "bf16": "tensor instructions on bfloat16",
    "tf32": "tensor instructions on TF32",
    "int8": "tensor instructions on 8-bit integers (IMMA, IGMMA)",
    "fp64": "tensor instructions on double precision (DMMA)",
}


def known_format(name: str) -> str:
    """`name`; raises ValueError if it is not the name of a format."""
    if name not in FORMATS:
        raise ValueError(f"no instructions are known as {name!r}{hint(name, FORMATS)}")
    return name


def in_order(names: set[str]) -> tuple[str, ...]:
    """The formats in the order of the table."""
    return tuple(name for name in FORMATS if name in names)
