"""The semantics of PTX's integer instructions, on Python's integers (PTX ISA 8.3, chapter 9.7)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache


def signed(value: int, bits: int) -> int:
    """The signed value of `bits` in two's complement."""
    return value - (1 << bits) if value >> (bits - 1) else value


@cache
def rule_of(text: str) -> Callable[..., int]:
    """The function that an instruction computes on unsigned integers; the caller truncates the
    result.
    """
    op, *modifiers = text.split(".")
    type_ = modifiers[-1]
    bits = 1 if type_ == "pred" else int(type_[1:])

    def s(value: int) -> int:
        return signed(value, bits) if type_[0] == "s" else value

    def divided(a: int, b: int) -> int:
        quotient = abs(s(a)) // abs(s(b))
        return quotient if (s(a) < 0) == (s(b) < 0) else -quotient

    def test(name: str) -> Callable[[int, int], bool]:
        return {
            "eq": lambda a, b: a == b,
            "ne": lambda a, b: a != b,
            "lt": lambda a, b: s(a) < s(b),
            "le": lambda a, b: s(a) <= s(b),
            "gt": lambda a, b: s(a) > s(b),
            "ge": lambda a, b: s(a) >= s(b),
        }[name]

    def multiplied(a: int, b: int) -> int:
        return s(a) * s(b) >> bits if "hi" in modifiers else s(a) * s(b)

    def extracted(a: int, position: int, length: int) -> int:
        position, length = position & 255, length & 255
        edge = min(position + length - 1, bits - 1)
        sign = 0 if type_[0] == "u" or length == 0 else a >> edge & 1
        found = 0
        for place in range(bits):
            bit = (
                a >> (position + place) & 1 if place < length and position + place < bits else sign
            )
            found |= bit << place
        return found

    def inserted(a: int, b: int, position: int, length: int) -> int:
        found = b
        for place in range(length & 255):
            at = place + (position & 255)
            if at < bits:
                found = found & ~(1 << at) | (a >> place & 1) << at
        return found

    def funnel(a: int, b: int, by: int) -> int:
        by = by & 31 if "wrap" in modifiers else min(by, 32)
        whole = b << 32 | a
        return whole << by >> 32 if "l" in modifiers else whole >> by

    def looked_up(a: int, b: int, c: int, table: int) -> int:
        return sum(
            (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i
            for i in range(32)
        )

    def permuted(a: int, b: int, selector: int) -> int:
        source, found = b << 32 | a, 0
        for place in range(4):
            nibble = selector >> 4 * place & 15
            byte = source >> 8 * (nibble & 7) & 255
            found |= (byte if nibble < 8 else 255 * (byte >> 7)) << 8 * place
        return found

    def converted(a: int) -> int:
        return s(a)  # from its own type; cutting it to the other's width is what conversion does

    rules: dict[str, Callable[..., int]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": multiplied,
        "mad": lambda a, b, c: multiplied(a, b) + c,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "not": lambda a: ~a,
        "shl": lambda a, n: a << min(n, bits),
        "shr": lambda a, n: s(a) >> min(n, bits),
        "min": lambda a, b: a if s(a) <= s(b) else b,
        "max": lambda a, b: a if s(a) >= s(b) else b,
        "div": divided,
        "rem": lambda a, b: s(a) - divided(a, b) * s(b),
        "abs": lambda a: abs(s(a)),
        "neg": lambda a: -a,
        "selp": lambda a, b, p: a if p else b,
        "slct": lambda a, b, c: a if s(c) >= 0 else b,
        "set": lambda a, b: -int(test(modifiers[0])(a, b)),
        "popc": lambda a: a.bit_count(),
        "clz": lambda a: bits - a.bit_length(),
        "brev": lambda a: sum((a >> i & 1) << (bits - 1 - i) for i in range(bits)),
        "bfe": extracted,
        "bfi": inserted,
        "shf": funnel,
        "lop3": looked_up,
        "prmt": permuted,
        "cvt": converted,
    }
    if op == "setp":
        return lambda a, b: int(test(modifiers[0])(a, b))
    return rules[op]
