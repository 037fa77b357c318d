"""The number formats that the instructions of PTX convert or multiply.

For the emulator without NVRTC: it runs the PTX of clang, and there is no machine code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from evoengine.task.instruction_formats import in_order

_FUNCTION = re.compile(r"^\s*(?:\.(?:visible|weak|extern)\s+)*\.(entry|func)\b", re.MULTILINE)
_ENTRY_NAME = re.compile(r"\.entry\s+([\w$%]+)")
_INSTRUCTION = re.compile(r"\b(mma|wmma\.mma|wgmma\.mma_async|tcgen05\.mma|cvt)\.([\w.:]+)")
_CONVERTED = {"e4m3x2": "e4m3", "e5m2x2": "e5m2", "e4m3x4": "e4m3", "e5m2x4": "e5m2"}
_MULTIPLIED = {
    **{name: name for name in ("e4m3", "e5m2", "f16", "bf16", "tf32")},
    **{"s8": "int8", "u8": "int8", "f64": "fp64"},
}
# tcgen05.mma has its formats in a register, so each that it may have counts
_KINDS = {"f16": ("f16", "bf16"), "tf32": ("tf32",), "f8f6f4": ("e4m3", "e5m2"), "i8": ("int8",)}


def formats(ptx: str, kernels: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The formats of each kernel's instructions, by its name in the PTX.

    Functions that are not inlined into a kernel count for all kernels.
    """
    text = re.sub(r"//.*", "", ptx)
    starts = [match.start() for match in _FUNCTION.finditer(text)]
    found: dict[str, set[str]] = {}
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        entry = _ENTRY_NAME.search(text[start:end].partition("(")[0])
        found.setdefault(entry[1] if entry else "", set()).update(_of_text(text[start:end]))
    shared = found.get("", set())
    return {kernel: in_order(found.get(kernel, set()) | shared) for kernel in set(kernels)}


def _of_text(text: str) -> set[str]:
    names: set[str] = set()
    for operation, modifiers in _INSTRUCTION.findall(text):
        names |= _of_modifiers(operation, modifiers)
    return names


def _of_modifiers(operation: str, modifiers: str) -> set[str]:
    parts = modifiers.split(".")
    if operation == "cvt":
        return {_CONVERTED[part] for part in parts if part in _CONVERTED}
    if operation == "tcgen05.mma":
        kinds = (part.removeprefix("kind::") for part in parts)
        return {name for kind in kinds for name in _KINDS.get(kind, ())}
    found = {_MULTIPLIED[part] for part in parts if part in _MULTIPLIED}
    # half precision may be the format of the sums of others; wmma alone does not name it
    return found - {"f16"} or ({"f16"} if found or operation == "wmma.mma" else set())
