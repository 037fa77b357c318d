"""Converts between vectors of 32-bit words and vectors of the narrower or wider items packed in
them, the first in the lowest bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from evoengine.emulator.lower.emitter import Emitter, integer

WORD_BITS = 32


def items_of_words(ir: Emitter, words: Sequence[str], bits: int) -> list[str]:
    """The items of `bits` bits that are packed in `words`: vectors <32 x i32> in, <32 x i`bits`>
    out.
    """
    if bits > WORD_BITS:
        return [
            _joined(ir, [low, high], WORD_BITS, bits)
            for low, high in zip(words[::2], words[1::2], strict=True)
        ]
    return [
        _cut(ir, word, WORD_BITS, offset, bits)
        for word in words
        for offset in range(0, WORD_BITS, bits)
    ]


def words_of_items(ir: Emitter, items: Sequence[str], bits: int) -> list[str]:
    """The words into which `items` are packed: vectors <32 x i`bits`> in, <32 x i32> out."""
    if bits > WORD_BITS:
        return [
            _cut(ir, item, bits, offset, WORD_BITS) for item in items for offset in (0, WORD_BITS)
        ]
    each = WORD_BITS // bits
    return [
        _joined(ir, items[first : first + each], bits, WORD_BITS)
        for first in range(0, len(items), each)
    ]


def _cut(ir: Emitter, text: str, bits: int, offset: int, result: int) -> str:
    """`result` of the `bits` of an item, from bit `offset` on."""
    kind = integer(bits, True)
    low = ir.get(f"lshr {kind} {text}, splat (i{bits} {offset})") if offset else text
    return low if bits == result else ir.get(f"trunc {kind} {low} to {integer(result, True)}")


def _joined(ir: Emitter, parts: Sequence[str], bits: int, result: int) -> str:
    """Parts of `bits` bits, the first lowest, as one item of `result` bits."""
    if bits == result:
        return parts[0]
    kind, whole = integer(result, True), ""
    for place, part in enumerate(parts):
        wide = ir.get(f"zext {integer(bits, True)} {part} to {kind}")
        high = ir.get(f"shl {kind} {wide}, splat (i{result} {place * bits})") if place else wide
        whole = ir.get(f"or {kind} {whole}, {high}") if whole else high
    return whole
