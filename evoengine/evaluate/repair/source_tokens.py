"""The tokens of a kernel's device code, with their places and matching brackets."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cached_property

OPENING = {"(": ")", "[": "]", "{": "}"}
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/|\\\n)
      |(?P<directive>^[ \t]*\#(?![ \t]*define)[^\n]*|\b_Pragma[ \t]*\([ \t]*"[^"\n]*"[ \t]*\))
      |(?P<define>^[ \t]*\#[ \t]*define[ \t]+\w+)
      |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      |(?P<number>0[xX][0-9a-fA-F]+[uUlL]*
        |(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?[fFlL]?|\d+[uUlL]*)
      |(?P<name>[A-Za-z_]\w*)
      |(?P<sign><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
# a macro that stands for a directive, such as UNROLL
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+_Pragma[ \t]*\(", re.MULTILINE)


@dataclass(frozen=True)
class Token:
    """One token: `text` stands at `start` of the code; `kind` is name, number, string or sign."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The place behind it."""
        return self.start + len(self.text)


def words(code: str) -> tuple[str, ...]:
    """The texts of the tokens of a code."""
    return tuple(
        found[0]
        for found in _TOKEN.finditer(code)
        if found.lastgroup not in ("space", "directive", "define")
    )


class TokenList:
    """The tokens of a code without comments, directives and macros that stand for one; #define is
    left out, its body is in.
    """

    def __init__(self, code: str) -> None:
        self.code = code
        directives = set(_DIRECTIVE.findall(code))
        self.tokens: tuple[Token, ...] = tuple(
            Token(str(found.lastgroup), found[0], found.start())
            for found in _TOKEN.finditer(code)
            if found.lastgroup not in ("space", "directive", "define")
            and found[0] not in directives
        )
        self._count = len(self.tokens)
        self._texts = [token.text for token in self.tokens]
        self._kinds = [token.kind for token in self.tokens]

    def __len__(self) -> int:
        return self._count

    @cached_property
    def starts(self) -> list[int]:
        """Where each token begins."""
        return [token.start for token in self.tokens]

    def before(self, place: int, count: int) -> tuple[Token, ...]:
        """The last `count` tokens that end at `place` of the code or before it."""
        position = bisect.bisect_left(self.starts, place)
        while position and self.tokens[position - 1].end > place:
            position -= 1
        return self.tokens[max(0, position - count) : position]

    def behind(self, place: int, count: int) -> tuple[Token, ...]:
        """The first `count` tokens that begin at `place` of the code or behind it."""
        position = bisect.bisect_left(self.starts, place)
        return self.tokens[position : position + count]

    def text(self, position: int) -> str:
        """The text of a token; empty beyond the ends."""
        return self._texts[position] if 0 <= position < self._count else ""

    def kind(self, position: int) -> str:
        """The kind of a token; empty beyond the ends."""
        return self._kinds[position] if 0 <= position < self._count else ""

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The places in the code of the tokens `first` to `last`, both included."""
        return self.tokens[first].start, self.tokens[last].end

    def source(self, first: int, last: int) -> str:
        """The code of the tokens `first` to `last`, both included."""
        start, end = self.span(first, last)
        return self.code[start:end]

    def rewritten(self, first: int, last: int, pieces: Iterable[tuple[int, int, str]]) -> str:
        """The code of the tokens `first` to `last` with other texts in place of some of them:
        `pieces`, which do not overlap, are first and last token of each, and its text.
        """
        start, _ = self.span(first, last)
        text = self.source(first, last)
        for begin, end, new in sorted(pieces, reverse=True):
            left, right = self.span(begin, end)
            text = text[: left - start] + new + text[right - start :]
        return text

    @cached_property
    def partners(self) -> dict[int, int]:
        """Of each bracket the position of the one that it belongs to."""
        found: dict[int, int] = {}
        open_ones: list[int] = []
        for position, token in enumerate(self.tokens):
            if _opens(token):
                open_ones.append(position)
            elif _closes(token) and open_ones and OPENING[self.text(open_ones[-1])] == token.text:
                found[open_ones[-1]] = position
                found[position] = open_ones.pop()
        return found

    @cached_property
    def enclosing(self) -> tuple[int, ...]:
        """Of each token the position of the bracket that it stands in; -1 outside of all."""
        found: list[int] = []
        open_ones = [-1]
        for position, token in enumerate(self.tokens):
            is_paired = position in self.partners
            if is_paired and _closes(token) and len(open_ones) > 1:
                open_ones.pop()
            found.append(open_ones[-1])
            if is_paired and _opens(token):
                open_ones.append(position)
        return tuple(found)

    def has_any(self, first: int, last: int, texts: Set[str]) -> bool:
        """Whether one of the tokens `first` to `last` is one of `texts`."""
        return any(self.text(place) in texts for place in range(first, last + 1))

    @property
    def is_balanced(self) -> bool:
        """Whether every bracket has its partner."""
        brackets = {*OPENING, *OPENING.values()}
        return all(
            position in self.partners
            for position, token in enumerate(self.tokens)
            if token.kind == "sign" and token.text in brackets
        )

    def line(self, position: int) -> int:
        """The line of a token, from 1."""
        return self.code.count("\n", 0, self.tokens[position].start) + 1


def _opens(token: Token) -> bool:
    return token.kind == "sign" and token.text in OPENING


def _closes(token: Token) -> bool:
    return token.kind == "sign" and token.text in OPENING.values()
