"""Parses the operands of an instruction."""

from __future__ import annotations

from evoengine.emulator.emulator_errors import Unsupported
from evoengine.emulator.ptx.lexer import TokenCursor, literal, negative
from evoengine.emulator.ptx.scope import Scope
from evoengine.emulator.ptx.syntax import (
    Address,
    Float,
    Integer,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)

MAX_ITEMS = 256  # of a vector or an argument list; the ISA's widest vector has 128 (wgmma)


def operands(cursor: TokenCursor, scope: Scope, opcode: str) -> tuple[Operand, ...]:
    """Parses all operands; the cursor ends after the semicolon."""
    texts, cache = cursor.texts, scope.cache
    found: list[Operand] = []
    if cursor.take(";"):
        return ()
    while True:
        value = cache.get(texts[cursor.at])
        following = texts[cursor.at + 1]
        if value is not None and (following == "," or following == ";"):
            cursor.at += 1  # by far the most frequent case: a single register or number
        else:
            value = operand(cursor, scope, opcode)
            following = texts[cursor.at]
        found.append(value)
        if following == ";":
            cursor.at += 1
            return tuple(found)
        cursor.expect(",")


def operand(cursor: TokenCursor, scope: Scope, opcode: str) -> Operand:
    """Parses one operand of any form."""
    text = cursor.texts[cursor.at]
    if text == "[":
        return _address(cursor, scope, opcode)
    if text == "{":
        return vector(cursor, scope, "{", "}")
    value = simple(cursor, scope)
    if cursor.take("|"):
        return Pair(value, simple(cursor, scope))
    if isinstance(value, Symbol) and cursor.texts[cursor.at] in ("+", "-"):
        return Symbol(value.name, _offset(cursor))
    return value


def simple(cursor: TokenCursor, scope: Scope) -> Operand:
    """A register, number, name, `!p`, or `_`."""
    text = cursor.texts[cursor.at]
    value = scope.find(text)
    if value is None:
        return _operated(cursor, scope, text)
    cursor.at += 1
    return value


def _operated(cursor: TokenCursor, scope: Scope, text: str) -> Operand:
    """!p, -5, ~5"""
    if text == "!":
        cursor.at += 1
        register = scope.find(cursor.texts[cursor.at])
        if not isinstance(register, Register):
            cursor.fail(f"expected a predicate after '!', got {cursor.shown()}")
        cursor.at += 1
        return Not(register)
    if text in ("-", "~", "+"):
        cursor.at += 1
        return _signed(cursor, text)
    raise cursor.error(
        f"register {text[:60]} is not declared"
        if text[:1] == "%"
        else f"expected an operand, got {cursor.shown()}"
    )


def vector(cursor: TokenCursor, scope: Scope, opening: str, closing: str) -> Vector:
    """{a, b} or (a, b), of simple operands."""
    cursor.expect(opening)
    items: list[Operand] = []
    while not cursor.take(closing):
        if items:
            cursor.expect(",")
        items.append(simple(cursor, scope))
        if len(items) > MAX_ITEMS:
            cursor.fail(f"more than {MAX_ITEMS} items")
    return Vector(tuple(items))


def call_operands(cursor: TokenCursor, scope: Scope, opcode: str) -> tuple[Operand, ...]:
    """(Vector(results), Symbol(function) or Register, Vector(arguments)[, Symbol(prototype or
    list)]) up to the semicolon.

    Results and arguments are Symbols of .param variables (what clang writes), registers or numbers.
    """
    results = Vector(())
    if cursor.texts[cursor.at] == "(":
        results = vector(cursor, scope, "(", ")")
        cursor.expect(",")
    callee = scope.find(cursor.texts[cursor.at])
    if isinstance(callee, Register):
        cursor.at += 1
    else:
        callee = Symbol(cursor.name())
    arguments = Vector(())
    if cursor.texts[cursor.at] == "," and cursor.texts[cursor.at + 1] == "(":
        cursor.at += 1
        arguments = vector(cursor, scope, "(", ")")
    found: tuple[Operand, ...] = (results, callee, arguments)
    if cursor.take(","):
        found += (Symbol(cursor.name()),)
    cursor.expect(";")
    return found


def _signed(cursor: TokenCursor, sign: str) -> Integer | Float:
    value = literal(cursor.texts[cursor.at])
    if value is None or (sign == "~" and isinstance(value, Float)):
        cursor.fail(f"expected a number after {sign!r}, got {cursor.shown()}")
    cursor.at += 1
    if sign == "~" and isinstance(value, Integer):
        return Integer(~value.value)
    return negative(value) if sign == "-" else value


def _address(cursor: TokenCursor, scope: Scope, opcode: str) -> Address:
    cursor.expect("[")
    base = simple(cursor, scope)
    if isinstance(base, (Not, Float, Special, Sink)) or not isinstance(
        base, (Register, Symbol, Integer)
    ):
        cursor.fail("expected a register, a variable or a number as address", cursor.at - 1)
    offset = _offset(cursor) if cursor.texts[cursor.at] in ("+", "-") else 0
    if cursor.texts[cursor.at] == ",":  # coordinates of textures and tensor maps
        raise Unsupported(opcode)
    cursor.expect("]")
    return Address(base, offset)


def _offset(cursor: TokenCursor) -> int:
    """+8, -8, +-8"""
    cursor.take("+")
    return cursor.integer()
