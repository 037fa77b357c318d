"""Instructions that are written out in asm: their types, and whether they transpose; the selectors
of __byte_perm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

# What may stand in place of each, of equal size in registers.
_TYPES = {
    "f16": ("bf16",),
    "bf16": ("f16",),
    "f16x2": ("bf16x2",),
    "bf16x2": ("f16x2",),
    "s8": ("u8",),
    "u8": ("s8",),
    "e4m3": ("e5m2",),
    "e5m2": ("e4m3",),
    "s32": ("u32",),
    "u32": ("s32",),
}
_SELECTORS = ("0x5410", "0x7632", "0x3210", "0x7654", "0x6420", "0x7531", "0x1032", "0x0123")
_BOTH = frozenset(("f16", "bf16", "f16x2", "bf16x2"))  # operands have one type of these
TYPE = re.compile(rf"(?<=\.)(?:{'|'.join(sorted(_TYPES, key=len, reverse=True))})\b")
_LANES = re.compile(r"%lanemask_(lt|le|gt|ge|eq)\b")
_NAME = re.compile(r"(?:mma|wmma|cvt|ldmatrix|add|mul|fma|max|min|dp4a)\S*")
_TRANSPOSED, _LOADED = ".trans", re.compile(r"ldmatrix\S*?\.x[124]\b(?!\.trans)")


def instruction_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Every statement of asm with other types, transposed or not: the whole of it, because
    a text of asm cannot be chosen while the kernel runs.
    """
    yield from _selectors(code)
    for position, token in enumerate(code.tokens.tokens):
        if token.kind != "string" or not code.function_places[position]:
            continue
        first, last = code.extents.statement(position)
        for text, kind in _others(token.text):
            new = code.tokens.rewritten(first, last, [(position, position, text)])
            yield code.replaced(first, last, new, kind)


def _selectors(code: KernelCode) -> Iterator[SourceChange]:
    """`__byte_perm(a, b, 0x7654)` with another usual selector: halves, low or high ones of both,
    bytes in another order.
    """
    for place in range(1, len(code.tokens)):
        if code.tokens.text(place - 1) != "__byte_perm" or place not in code.tokens.partners:
            continue
        for first, last in code.extents.arguments(place)[2:3]:
            for number in range(first, last + 1):
                if not code.tokens.text(number).lower().startswith("0x"):
                    continue
                for selector in _SELECTORS:
                    if code.tokens.text(number).lower() != selector:
                        yield code.replaced(number, number, selector, "bytes that are chosen")


def _others(text: str) -> Iterator[tuple[str, str]]:
    """Other texts of asm, each with the kind of the change."""
    for new in _other_types(text):
        yield new, "type of an instruction"
    if found := _LANES.search(text):
        for own in ("lt", "le", "gt", "ge", "eq"):
            if own != found[1]:
                new = f"{text[: found.start(1)]}{own}{text[found.end(1) :]}"
                yield new, "mask of other lanes in asm"
    if _TRANSPOSED in text:
        yield text.replace(_TRANSPOSED, ""), "transposition of an instruction too many"
    elif found := _LOADED.search(text):
        new = f"{text[: found.end()]}{_TRANSPOSED}{text[found.end() :]}"
        yield new, "transposition of an instruction missing"


def _other_types(text: str) -> Iterator[str]:
    """The text with each type of an instruction another: one of them, or all that are equal."""
    instruction = _NAME.search(text)
    if instruction is None:
        return
    found = [
        item for item in TYPE.finditer(text, instruction.start()) if item.end() <= instruction.end()
    ]
    for old in dict.fromkeys(item[0] for item in found):
        places = [item.span() for item in found if item[0] == old]
        for new in _TYPES[old]:
            single = () if old in _BOTH else tuple((place,) for place in places)
            for chosen in dict.fromkeys((tuple(places), *single)):
                changed = text
                for first, last in reversed(chosen):
                    changed = f"{changed[:first]}{new}{changed[last:]}"
                yield changed
