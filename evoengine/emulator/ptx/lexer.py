"""Splits PTX text into tokens, with one regular expression."""

from __future__ import annotations

import functools
import re
import struct
from typing import NoReturn

from evoengine.emulator.emulator_errors import PtxError
from evoengine.emulator.ptx.syntax import Float, Integer

# above the largest unrolled kernels (1-2 MiB); bounds time and memory
MAX_CHARACTERS = 1 << 22

_COMMENT = re.compile(
    r'"[^"\n]*"|//[^\n]*|/\*(?:[\s\S]*?\*/|[\s\S]*)|(?P<loc>\.loc\s+\d+ \d+ \d+)['
    r" \t]*//(?P<said>[^\n]*)"
)
_TOKEN = re.compile(
    r'"[^"\n]*"'
    r"|[.%$_A-Za-z](?:[\w$.%]|::)*"  # a name, or an opcode or directive with its modifiers
    r"|\d+\.\d*(?:[eE][+-]?\d+)?|\d\w*"
    r"|\S",
    re.ASCII,
)
# the ISA's 4.4; no dots, so the parser may invent names with a dot
IDENTIFIER = re.compile(r"[A-Za-z_$%][\w$]*", re.ASCII)
_LITERAL = re.compile(
    r"0[fF](?P<single>[0-9a-fA-F]{8})|0[dD](?P<double>[0-9a-fA-F]{16})"
    r"|0[xX](?P<hex>[0-9a-fA-F]{1,16})U?|0[bB](?P<binary>[01]{1,64})U?|0(?P<octal>[0-7]{1,22})U?"
    r"|(?P<decimal>[0-9]{1,20})U?|(?P<real>[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,4})?)",
    re.ASCII,
)
_BASES = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}


class TokenCursor:
    """A position in the tokens of a text; `texts` ends with empty tokens, so that a look-ahead of
    two is always valid.
    """

    __slots__ = ("at", "source", "starts", "texts")

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARACTERS:
            raise PtxError(f"{len(text)} characters, more than the {MAX_CHARACTERS} that are read")
        self.source = _COMMENT.sub(_without_comment, text)
        found = list(_TOKEN.finditer(self.source))
        self.texts = [match.group() for match in found] + ["", "", ""]
        self.starts = [match.start() for match in found] + [len(self.source)] * 3
        self.at = 0

    def error(self, message: str, at: int | None = None) -> PtxError:
        """A PtxError with the line of token `at`, by default the current one."""
        place = self.starts[min(self.at if at is None else at, len(self.starts) - 1)]
        return PtxError(message, self.source.count("\n", 0, place) + 1)

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raises `error(message, at)`."""
        raise self.error(message, at)

    def shown(self) -> str:
        """The current token, for error messages."""
        text = self.texts[self.at]
        return repr(text[:60]) if text else "the end"

    def take(self, text: str) -> bool:
        """Consumes the current token if it is `text`; returns whether it was."""
        if self.texts[self.at] != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        """Consumes `text`; raises PtxError for any other token."""
        if self.texts[self.at] != text:
            self.fail(f"expected {text!r}, got {self.shown()}")
        self.at += 1

    def name(self) -> str:
        """Consumes and returns an identifier."""
        text = self.texts[self.at]
        if not IDENTIFIER.fullmatch(text):
            self.fail(f"expected a name, got {self.shown()}")
        self.at += 1
        return text

    def comment(self) -> str:
        """Consumes a string token and returns its content; "" if there is none."""
        text = self.texts[self.at]
        if text[:1] != '"' or len(text) < 2:
            return ""
        self.at += 1
        return text[1:-1]

    def integer(self) -> int:
        """Consumes and returns an integer with an optional sign."""
        negative = self.take("-")
        value = literal(self.texts[self.at])
        if not isinstance(value, Integer):
            self.fail(f"expected an integer, got {self.shown()}")
        self.at += 1
        return -value.value if negative else value.value

    def skip_braces(self) -> None:
        """Consumes `{ ... }`, including nested braces."""
        self.expect("{")
        depth = 1
        while depth:
            text = self.texts[self.at]
            if not text:
                self.fail("expected '}', got the end")
            depth += (text == "{") - (text == "}")
            self.at += 1


@functools.lru_cache(maxsize=4096)  # most of a text's numbers are the same few
def literal(text: str) -> Integer | Float | None:
    """The value of a number token; None for any other token, or if it does not fit 64 bits."""
    match = _LITERAL.fullmatch(text)
    if match is None:
        return None
    kind, digits = match.lastgroup, match.group(match.lastgroup or 0)
    if kind == "single" or kind == "double":
        return Float(int(digits, 16), 32 if kind == "single" else 64)
    if kind == "real":
        return Float(struct.unpack("<Q", struct.pack("<d", float(digits)))[0], 64)
    value = int(digits, _BASES[kind or ""])
    return Integer(value) if value < 1 << 64 else None


def negative(value: Integer | Float) -> Integer | Float:
    """-value; flips the sign bit of a float."""
    if isinstance(value, Integer):
        return Integer(-value.value)
    return Float(value.bits ^ 1 << (value.width - 1), value.width)


def _without_comment(match: re.Match[str]) -> str:
    text = match.group()
    if match.lastgroup == "said":  # only there does clang record what was inlined where
        return match.group("loc") + ' "' + match.group("said").strip().replace('"', "'") + '"'
    if text[0] == '"':
        return text
    if text.startswith("/*") and (len(text) < 4 or not text.endswith("*/")):
        raise PtxError("a comment without an end", match.string.count("\n", 0, match.start()) + 1)
    return " " + "\n" * text.count("\n")  # lines keep their numbers
