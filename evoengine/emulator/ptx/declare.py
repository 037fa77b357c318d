"""Parses declarations of variables and parameters, with initialisers."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from evoengine.emulator.emulator_errors import Unsupported
from evoengine.emulator.ptx.lexer import IDENTIFIER, TokenCursor, literal, negative
from evoengine.emulator.ptx.syntax import TYPE_BITS, Float, Integer, Symbol, Variable

MAX_BYTES = 1 << 40  # of one variable; more than the memory of any device
_VECTORS = {".v2": 2, ".v4": 4, ".v8": 8}
_OPAQUE = {".texref", ".samplerref", ".surfref"}
_POINTS_AT = {".global", ".const", ".shared", ".local", ".generic", ".param"}


@dataclass(frozen=True, slots=True)
class Declaration:
    """A parsed declaration such as `.align 8 .b8 name[24]`; `size` is 0 for an array without a
    length.
    """

    name: str
    type: str
    size: int  # bytes
    align: int
    element: int  # bytes of one element of the type, for initialisers


def declarator(cursor: TokenCursor) -> Declaration:
    """Parses a declarator after .param, .global, .shared...; the cursor ends after the name and its
    dimensions.
    """
    align = _alignment(cursor)
    width = _VECTORS.get(cursor.texts[cursor.at], 1)
    cursor.at += width > 1
    kind = _type(cursor)
    if cursor.take(".ptr"):
        cursor.at += cursor.texts[cursor.at] in _POINTS_AT
        _alignment(cursor)
    align = align or _alignment(cursor)  # both orders occur in practice
    name = cursor.name()
    element = TYPE_BITS[kind] // 8
    count = _dimensions(cursor)
    size = element * width * count
    if size > MAX_BYTES:
        cursor.fail(f"{name} has {size} bytes, more than {MAX_BYTES}")
    return Declaration(name, kind, size, align or element * width, element)


def variables(cursor: TokenCursor, space: str, extern: bool) -> list[Variable]:
    """Parses all variables of one statement, from after its space to after its semicolon."""
    found = []
    start = cursor.at
    while True:
        declared = declarator(cursor)
        data, addresses = _initialiser(cursor, declared) if cursor.take("=") else (b"", ())
        size = declared.size or len(data)
        found.append(Variable(declared.name, space, size, declared.align, data, addresses, extern))
        if not cursor.take(","):
            cursor.expect(";")
            return found
        cursor.fail("several variables in one statement; declare each on its own", start)


def _alignment(cursor: TokenCursor) -> int:
    if not cursor.take(".align"):
        return 0
    align = cursor.integer()
    if not 1 <= align <= 1 << 16 or align & (align - 1):
        cursor.fail(f"expected an alignment that is a power of two, got {align}", cursor.at - 1)
    return align


def _type(cursor: TokenCursor) -> str:
    text = cursor.texts[cursor.at]
    if text in _OPAQUE:
        raise Unsupported(text)
    if not text.startswith(".") or text[1:] not in TYPE_BITS or text == ".pred":
        cursor.fail(f"expected a type, got {cursor.shown()}")
    cursor.at += 1
    return text[1:]


def _dimensions(cursor: TokenCursor) -> int:
    """The number of elements of `[4][5]`: 1 without brackets, 0 for []."""
    lengths = []
    while cursor.take("["):
        lengths.append(0 if cursor.texts[cursor.at] == "]" else cursor.integer())
        if lengths[-1] < 0 or len(lengths) > 8:
            cursor.fail("expected at most 8 dimensions, each of at least 0 elements", cursor.at - 1)
        cursor.expect("]")
    return math.prod(lengths)


def _initialiser(
    cursor: TokenCursor, declared: Declaration
) -> tuple[bytes, tuple[tuple[int, Symbol], ...]]:
    data = bytearray()
    addresses: dict[int, Symbol] = {}
    start = cursor.at
    braces = cursor.take("{")
    while not (braces and cursor.take("}")):
        _element(cursor, declared, data, addresses)
        if braces and cursor.texts[cursor.at] != "}":
            cursor.expect(",")
        elif not braces:
            break
    if declared.size and len(data) > declared.size:
        cursor.fail(
            f"{declared.name} has {declared.size} bytes, its initial contents {len(data)}", start
        )
    return bytes(data), tuple(sorted(addresses.items(), key=lambda entry: entry[0]))


def _element(
    cursor: TokenCursor, declared: Declaration, data: bytearray, addresses: dict[int, Symbol]
) -> None:
    if cursor.texts[cursor.at] == "{":
        raise Unsupported("an initialiser with braces in braces")
    minus = cursor.take("-")
    text = cursor.texts[cursor.at]
    value = literal(text)
    if value is not None and cursor.texts[cursor.at + 1] == "(" and not minus:
        cursor.at += 1
        _masked(cursor, value, data, addresses)
        return
    if value is not None:
        cursor.at += 1
        data += _encoded(negative(value) if minus else value, declared)
    elif IDENTIFIER.fullmatch(text) and not minus:
        addresses[len(data)] = _address(cursor, declared.element)
        data += bytes(declared.element)
    else:
        cursor.fail(f"expected an initial value, got {cursor.shown()}")


def _masked(
    cursor: TokenCursor, mask: Integer | Float, data: bytearray, addresses: dict[int, Symbol]
) -> None:
    """Parses `0xFF00(sym)`, one byte of an address; the first (0xFF) records it, the others must
    follow in order.
    """
    cursor.expect("(")
    symbol = _address(cursor, 8)
    cursor.expect(")")
    place = (mask.value.bit_length() - 1) // 8 if isinstance(mask, Integer) else -1
    if place < 0 or mask != Integer(0xFF << 8 * place):
        cursor.fail("expected a mask of one byte, such as 0xFF00")
    if place == 0:
        addresses[len(data)] = symbol
    elif addresses.get(len(data) - place) != symbol:
        raise Unsupported("single bytes of an address as initial value")
    data.append(0)


def _address(cursor: TokenCursor, width: int) -> Symbol:
    """`sym`, `sym+4`, `generic(sym)`, `generic(sym)+4`: generic() makes no difference here."""
    if width != 8:
        raise Unsupported("an address of other than 64 bits as initial value")
    name = cursor.name()
    inner = 0
    if name == "generic" and cursor.take("("):
        name = cursor.name()
        inner = _offset(cursor)
        cursor.expect(")")
    return Symbol(name, inner + _offset(cursor))


def _offset(cursor: TokenCursor) -> int:
    if cursor.take("+"):
        return cursor.integer()
    return cursor.integer() if cursor.texts[cursor.at] == "-" else 0


def _encoded(value: Integer | Float, declared: Declaration) -> bytes:
    """Little-endian bytes of one element."""
    size = declared.element
    if isinstance(value, Integer):
        if declared.type in ("f32", "f64"):
            return struct.pack("<f" if size == 4 else "<d", value.value)
        return (value.value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    if value.width == 8 * size:
        return value.bits.to_bytes(size, "little")
    if value.width == 64 and declared.type == "f32":
        return _single(struct.unpack("<d", value.bits.to_bytes(8, "little"))[0])
    raise Unsupported(f"a {value.width} bit float as initial value of .{declared.type}")


def _single(number: float) -> bytes:
    try:
        return struct.pack("<f", number)
    except OverflowError:  # rounds to infinity
        return struct.pack("<f", math.copysign(math.inf, number))
