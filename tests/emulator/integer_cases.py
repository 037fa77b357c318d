"""Cases of integer instructions: arithmetic, bits, shifts, comparisons, selections, conversions
between integers.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator

from tests.emulator.instruction import INTEGER_BITS, Case, signed

WORDS = ("u32", "s32", "u64", "s64")
WIDTHS = ("u16", "s16", *WORDS)


def integer_cases() -> Iterator[Case]:
    """All integer cases."""
    yield from _arithmetic()
    yield from _carries()
    yield from _bits()
    yield from _fields()
    yield from _bytes()
    yield from _shifts()
    yield from _comparisons()
    yield from _conversions()


def _binary(name: str, type_: str, model: object, result: str = "") -> Case:
    return Case(f"{name}.{type_}", (type_, type_), result or type_, model)  # type: ignore[arg-type]


def _arithmetic() -> Iterator[Case]:
    for type_ in WIDTHS:
        bits = INTEGER_BITS[type_]
        yield _binary("add", type_, operator.add)
        yield _binary("sub", type_, operator.sub)
        yield _binary("mul.lo", type_, operator.mul)
        yield _binary("mul.hi", type_, lambda a, b, bits=bits: a * b >> bits)
        yield Case(f"mad.lo.{type_}", (type_,) * 3, type_, lambda a, b, c: a * b + c)
        yield Case(
            f"mad.hi.{type_}", (type_,) * 3, type_, lambda a, b, c, bits=bits: (a * b >> bits) + c
        )
        yield _binary("min", type_, min)
        yield _binary("max", type_, max)
        yield _binary("div", type_, quotient)
        yield _binary("rem", type_, lambda a, b: a - quotient(a, b) * b if b else -1)
        yield Case(f"sad.{type_}", (type_,) * 3, type_, lambda a, b, c: c + abs(a - b))
        if bits < 64:
            wide = f"{type_[0]}{2 * bits}"
            yield _binary("mul.wide", type_, operator.mul, wide)
            yield Case(f"mad.wide.{type_}", (type_, type_, wide), wide, lambda a, b, c: a * b + c)
        if type_[0] == "s":
            yield Case(f"neg.{type_}", (type_,), type_, operator.neg)
            yield Case(f"abs.{type_}", (type_,), type_, abs)
    for type_ in ("u32", "s32"):
        for high in (False, True):
            name = f"mul24.{'hi' if high else 'lo'}.{type_}"
            yield _binary(
                name.rsplit(".", 1)[0],
                type_,
                lambda a, b, type_=type_, high=high: _product24(a, b, type_, high),
            )
            yield Case(name.replace("mul", "mad"), (type_,) * 3, type_,
                       lambda a, b, c, type_=type_, high=high: _product24(a, b, type_, high) + c)  # fmt: skip
    yield _binary("add.sat", "s32", lambda a, b: _limited(a + b, "s32"))
    yield _binary("sub.sat", "s32", lambda a, b: _limited(a - b, "s32"))
    yield Case(
        "mad.hi.sat.s32", ("s32",) * 3, "s32", lambda a, b, c: _limited((a * b >> 32) + c, "s32")
    )


def quotient(a: int, b: int) -> int:
    """The quotient rounded towards zero; all ones for division by zero."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def _limited(value: int, type_: str) -> int:
    """Clamped to the range of a type."""
    low, high = _range(type_)
    return max(low, min(high, value))


def _range(type_: str) -> tuple[int, int]:
    bits = INTEGER_BITS[type_]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)


def _product24(a: int, b: int, type_: str, high: bool) -> int:
    cut = (lambda x: signed(x, 24)) if type_ == "s32" else (lambda x: x & 0xFFFFFF)
    return cut(a) * cut(b) >> (16 if high else 0)


def _carries() -> Iterator[Case]:
    """The carry is observed by the next instruction: {t} = low part, {d} = high part or the carry
    itself.
    """
    for bits in (32, 64):
        type_, temporary = f"u{bits}", f"%{'r' if bits == 32 else 'q'}9"
        top = 1 << bits
        add = f"add.cc.u{bits} {temporary}, {{a}}, {{b}};"
        subtract = f"sub.cc.u{bits} {temporary}, {{a}}, {{b}};"
        sources = (type_,) * 3
        yield Case(f"add.cc+addc.u{bits}", sources, type_, lambda a, b, c, top=top: c + (a + b >= top),
                   text=f"{add} addc.u{bits} {{d}}, {{c}}, 0;")  # fmt: skip
        yield Case(
            f"add.cc.u{bits}",
            (type_, type_),
            type_,
            operator.add,
            text=f"add.cc.u{bits} {{d}}, {{a}}, {{b}};",
        )
        yield Case(f"add.cc+addc.cc+addc.u{bits}", sources, type_, lambda a, b, c, top=top: (a + c + (a + b >= top)) >= top,
                   text=f"{add} addc.cc.u{bits} {temporary}, {{a}}, {{c}}; addc.u{bits} {{d}}, 0, 0;")  # fmt: skip
        yield Case(f"sub.cc+subc.u{bits}", sources, type_, lambda a, b, c: c - a - (a < b),
                   text=f"{subtract} subc.u{bits} {{d}}, {{c}}, {{a}};")  # fmt: skip
        yield Case(f"sub.cc+subc.cc+subc.u{bits}", sources, type_, lambda a, b, c: -(c - (a < b) < 0),
                   text=f"{subtract} subc.cc.u{bits} {temporary}, {{c}}, 0; subc.u{bits} {{d}}, 0, 0;")  # fmt: skip
        yield Case(f"mad.lo.cc+madc.hi.u{bits}", sources, type_, lambda a, b, c, bits=bits: (a * b + c) >> bits,
                   text=f"mad.lo.cc.u{bits} {temporary}, {{a}}, {{b}}, {{c}}; madc.hi.u{bits} {{d}}, {{a}}, {{b}}, 0;")  # fmt: skip
        yield Case(f"mad.hi.cc+addc.u{bits}", sources, type_, lambda a, b, c, bits=bits: (a * b >> bits) + c >= 1 << bits,
                   text=f"mad.hi.cc.u{bits} {temporary}, {{a}}, {{b}}, {{c}}; addc.u{bits} {{d}}, 0, 0;")  # fmt: skip


def _bits() -> Iterator[Case]:
    for type_ in ("b16", "b32", "b64", "pred"):
        yield _binary("and", type_, operator.and_)
        yield _binary("or", type_, operator.or_)
        yield _binary("xor", type_, operator.xor)
        yield Case(
            f"not.{type_}", (type_,), type_, operator.not_ if type_ == "pred" else operator.invert
        )
    for bits in (32, 64):
        yield Case(f"popc.b{bits}", (f"b{bits}",), "u32", lambda a: a.bit_count())
        yield Case(f"clz.b{bits}", (f"b{bits}",), "u32", lambda a, bits=bits: bits - a.bit_length())
        yield Case(
            f"brev.b{bits}",
            (f"b{bits}",),
            f"b{bits}",
            lambda a, bits=bits: int(f"{a:0{bits}b}"[::-1], 2),
        )
        for sign in "us":
            type_ = f"{sign}{bits}"
            yield Case(f"bfind.{type_}", (type_,), "u32", _highest)
            yield Case(
                f"bfind.shiftamt.{type_}",
                (type_,),
                "u32",
                lambda a, bits=bits: _distance_from_top(a, bits),
            )
    for table in (0x00, 0x1E, 0x80, 0x96, 0xAC, 0xE8, 0xFE, 0xFF):
        yield Case(f"lop3.b32 {table:#04x}", ("b32",) * 3, "b32", lambda a, b, c, table=table: _lookup(a, b, c, table),
                   text=f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};")  # fmt: skip
    # Halved: of the most negative offset, whose size is no number of 32 bits, PTX ISA says nothing.
    yield Case("fns.b32", ("b32", "u32", "s32"), "u32", lambda a, b, c: _nth(a, b, c >> 1),
               text="and.b32 %r8, {b}, 31; shr.s32 %r9, {c}, 1; fns.b32 {d}, {a}, %r8, %r9;")  # fmt: skip


def _highest(a: int) -> int:
    """The position of the highest bit that differs from the sign; all ones if there is none."""
    return (~a if a < 0 else a).bit_length() - 1


def _distance_from_top(a: int, bits: int) -> int:
    found = _highest(a)
    return -1 if found < 0 else bits - 1 - found


def _lookup(a: int, b: int, c: int, table: int) -> int:
    return sum(
        (table >> ((a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1)) & 1) << bit
        for bit in range(32)
    )


def _nth(mask: int, base: int, offset: int) -> int:
    """PTX ISA's description: the offset-th bit that is set, counted from base upwards, or downwards
    for negative offsets.
    """
    base &= 31
    if offset == 0:
        return base if mask >> base & 1 else -1
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [place for place in places if mask >> place & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else -1


def _fields() -> Iterator[Case]:
    for type_ in WORDS:
        bits = INTEGER_BITS[type_]
        yield Case(
            f"bfe.{type_}",
            (type_, "u32", "u32"),
            type_,
            lambda a, at, count, type_=type_: _extracted(a, at, count, type_),
            amounts=(1, 2),
        )
    for bits in (32, 64):
        name = f"bfi.b{bits}"
        yield Case(f"{name} at 5, 9", (f"b{bits}", f"b{bits}"), f"b{bits}", lambda a, b: b & ~(511 << 5) | (a & 511) << 5,
                   text=f"{name} {{d}}, {{a}}, {{b}}, 5, 9;")  # fmt: skip
        yield Case(name, (f"b{bits}", "u32", "u32"), f"b{bits}",
                   lambda a, at, count, bits=bits: _inserted(a, a ^ 0x5A5A5A5A, at, count, bits),
                   text=f"xor.b{bits} %{'r' if bits == 32 else 'q'}9, {{a}}, 0x5a5a5a5a; {name} {{d}}, {{a}}, "
                   f"%{'r' if bits == 32 else 'q'}9, {{b}}, {{c}};", amounts=(1, 2))  # fmt: skip
    for mode, limit in (("clamp", lambda n: min(n, 32)), ("wrap", lambda n: n & 31)):
        yield Case(
            f"szext.{mode}.u32",
            ("u32", "u32"),
            "u32",
            lambda a, n, limit=limit: a & ((1 << limit(n)) - 1),
            amounts=(1,),
        )
        yield Case(
            f"szext.{mode}.s32",
            ("s32", "u32"),
            "s32",
            lambda a, n, limit=limit: signed(a, limit(n)) if limit(n) else 0,
            amounts=(1,),
        )
        yield Case(
            f"bmsk.{mode}.b32",
            ("u32", "u32"),
            "b32",
            lambda at, n, limit=limit: ((1 << limit(n)) - 1) << limit(at),
            amounts=(0, 1),
        )


def _extracted(a: int, at: int, count: int, type_: str) -> int:
    """PTX ISA's pseudo code of bfe."""
    bits, at, count = INTEGER_BITS[type_], at & 255, count & 255
    if count == 0:
        return 0
    last = min(at + count - 1, bits - 1)
    fill = (a >> last & 1) if type_[0] == "s" else 0
    return sum(
        ((a >> (at + place) & 1) if place < count and at + place < bits else fill) << place
        for place in range(bits)
    )


def _inserted(a: int, b: int, at: int, count: int, bits: int) -> int:
    """PTX ISA's pseudo code of bfi."""
    at, count = at & 255, count & 255
    for place in range(count):
        if at + place < bits:
            b = b & ~(1 << (at + place)) | (a >> place & 1) << (at + place)
    return b


def _bytes() -> Iterator[Case]:
    for mode in ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        name = "prmt.b32" + (f".{mode}" if mode else "")
        yield Case(name, ("b32",) * 3, "b32", lambda a, b, c, mode=mode: _permuted(a, b, c, mode))
    for selector in (
        0x3210,
        0x5410,
        0x7632,
        0x0123,
        0x1032,
        0x4321,
        0x0000,
        0x8888,
        0xBA98,
        0x9180,
    ):
        yield Case(f"prmt.b32 {selector:#06x}", ("b32", "b32"), "b32", lambda a, b, c=selector: _permuted(a, b, c, ""),
                   text=f"prmt.b32 {{d}}, {{a}}, {{b}}, {selector};")  # fmt: skip
    for one in ("u32", "s32"):
        for other in ("u32", "s32"):
            total = "s32" if "s32" in (one, other) else "u32"
            yield Case(f"dp4a.{one}.{other}", ("b32", "b32", total), total,
                       lambda a, b, c, one=one, other=other:
                       c + sum(_part(a, i, 8, one) * _part(b, i, 8, other) for i in range(4)))  # fmt: skip
            for half in (0, 1):
                yield Case(f"dp2a.{('lo', 'hi')[half]}.{one}.{other}", ("b32", "b32", total), total,
                           lambda a, b, c, one=one, other=other, half=half:
                           c + sum(_part(a, i, 16, one) * _part(b, 2 * half + i, 8, other) for i in range(2)))  # fmt: skip


def _part(a: int, place: int, bits: int, type_: str) -> int:
    found = a >> place * bits & ((1 << bits) - 1)
    return signed(found, bits) if type_[0] == "s" else found


def _permuted(a: int, b: int, c: int, mode: str) -> int:
    """PTX ISA's pseudo code and tables of prmt."""
    low, whole = c & 3, b << 32 | a
    choices = {
        "": [c >> 4 * place & 15 for place in range(4)],
        "f4e": [low + place for place in range(4)],
        "b4e": [(low - place) & 7 for place in range(4)],
        "rc8": [low] * 4,
        "ecl": [max(low, place) for place in range(4)],
        "ecr": [min(low, place) for place in range(4)],
        "rc16": [(low & 1) * 2 + place % 2 for place in range(4)],
    }[mode]
    result = 0
    for place, choice in enumerate(choices):
        byte = whole >> 8 * (choice & 7) & 255
        result |= ((255 if byte >> 7 else 0) if choice & 8 else byte) << 8 * place
    return result


def _shifts() -> Iterator[Case]:
    for type_ in ("b16", "b32", "b64"):
        yield Case(
            f"shl.{type_}",
            (type_, "u32"),
            type_,
            lambda a, n, bits=INTEGER_BITS[type_]: a << min(n, bits),
            amounts=(1,),
        )
        yield Case(
            f"shl.{type_} by 7",
            (type_,),
            type_,
            lambda a: a << 7,
            text=f"shl.{type_} {{d}}, {{a}}, 7;",
        )
    for type_ in WIDTHS:
        yield Case(
            f"shr.{type_}", (type_, "u32"), type_, lambda a, n: a >> min(n, 64), amounts=(1,)
        )
        yield Case(
            f"shr.{type_} by 7",
            (type_,),
            type_,
            lambda a: a >> 7,
            text=f"shr.{type_} {{d}}, {{a}}, 7;",
        )
    for mode, limit in (("clamp", lambda n: min(n, 32)), ("wrap", lambda n: n & 31)):
        yield Case(
            f"shf.l.{mode}.b32",
            ("b32", "b32", "u32"),
            "b32",
            lambda a, b, n, limit=limit: (b << 32 | a) << limit(n) >> 32,
            amounts=(2,),
        )
        yield Case(
            f"shf.r.{mode}.b32",
            ("b32", "b32", "u32"),
            "b32",
            lambda a, b, n, limit=limit: (b << 32 | a) >> limit(n),
            amounts=(2,),
        )


def _comparisons() -> Iterator[Case]:
    orders = {
        "eq": operator.eq,
        "ne": operator.ne,
        "lt": operator.lt,
        "le": operator.le,
        "gt": operator.gt,
        "ge": operator.ge,
    }
    for type_ in WIDTHS:
        for name, model in orders.items():
            yield _binary(f"setp.{name}", type_, model, "pred")
        if type_[0] == "u":
            for name, model in zip(
                ("lo", "ls", "hi", "hs"), list(orders.values())[2:], strict=True
            ):
                yield _binary(f"setp.{name}", type_, model, "pred")
        yield Case(
            f"slct.{type_}.s32", (type_, type_, "s32"), type_, lambda a, b, c: a if c >= 0 else b
        )
    for type_ in ("b16", "b32", "b64"):
        yield Case(f"selp.{type_}", (type_, type_, "pred"), type_, lambda a, b, p: a if p else b)
    for name in ("eq", "ne"):
        yield _binary(f"setp.{name}", "b32", orders[name], "pred")
    for how, combine in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor)):
        yield Case(
            f"setp.lt.{how}.s32",
            ("s32", "s32", "pred"),
            "pred",
            lambda a, b, p, combine=combine: combine(a < b, p),
        )
        yield Case(f"setp.lt.{how}.s32 second", ("s32", "s32", "pred"), "pred", lambda a, b, p, combine=combine: combine(a >= b, p),
                   text=f"setp.lt.{how}.s32 %p8|{{d}}, {{a}}, {{b}}, {{c}};")  # fmt: skip
        yield Case(
            f"set.lt.{how}.u32.s32",
            ("s32", "s32", "pred"),
            "u32",
            lambda a, b, p, combine=combine: -combine(a < b, p),
        )
    yield Case("set.ge.s32.u64", ("u64", "u64"), "s32", lambda a, b: -(a >= b))
    yield Case("set.ge.f32.s32", ("s32", "s32"), "b32", lambda a, b: 0x3F800000 * (a >= b))


def _conversions() -> Iterator[Case]:
    types = ("u8", "s8", *WIDTHS)
    for source in types:
        for to in types:
            if source == to:
                continue
            yield Case(f"cvt.{to}.{source}", (source,), to, lambda a: a)
            if any(_limited(edge, to) != edge for edge in _range(source)):
                yield Case(
                    f"cvt.sat.{to}.{source}", (source,), to, lambda a, to=to: _limited(a, to)
                )
    for to in ("u8", "s8", "u16", "s16"):
        bits, third = INTEGER_BITS[to], INTEGER_BITS[to] == 8
        low = (1 << bits) - 1
        yield Case(f"cvt.pack.sat.{to}.s32" + (".b32" if third else ""), ("s32", "s32", "b32")[: 3 if third else 2], "b32",
                   lambda a, b, c=0, to=to, bits=bits, low=low:
                   c << 2 * bits | (_limited(a, to) & low) << bits | _limited(b, to) & low)  # fmt: skip
