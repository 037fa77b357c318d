"""Finds the line of the candidate's source for each instruction."""

from __future__ import annotations

from evoengine.emulator.ptx.lexer import TokenCursor, literal
from evoengine.emulator.ptx.syntax import Integer

_MAX_CALLS = 64  # of inlining that are followed outwards; bounded, because the text is untrusted

Location = tuple[int, int, int]  # file, line, column


class SourceLines:
    """Reads .loc: the innermost line in the main file that an instruction belongs to.

    The main file is where the first kernel is defined, because our headers define none. Inlining is
    recorded in `inlined_at` (one step per .loc, the outer ones before) or, without full debug
    information, only in clang's comment after the .loc: `in.h:1:82 @[ in.h:3:14 @[ in.cu:5:10 ] ]`,
    which the lexer passes on as a string.
    """

    def __init__(self, main: int, name: str) -> None:
        self.main = main
        self.name = name
        self._callers: dict[Location, Location] = {}
        self._chains: dict[str, int] = {}

    @staticmethod
    def of(cursor: TokenCursor) -> SourceLines:
        """For a PTX text: the first .loc of its first kernel names the main file."""
        texts = cursor.texts
        try:
            at = texts.index(".loc", texts.index(".entry") if ".entry" in texts else 0)
        except ValueError:  # there is no line information
            return SourceLines(0, "")
        number = literal(texts[at + 1])
        comment = texts[min(at + 4, len(texts) - 1)]
        name = comment[1:-1].rsplit(":", 2)[0] if comment[:1] == '"' and "@[" not in comment else ""
        return SourceLines(number.value if isinstance(number, Integer) else 0, name)

    def enter(self) -> None:
        """Begins a new function: callers are recorded per function."""
        self._callers.clear()

    def file(self, cursor: TokenCursor) -> None:
        """Consumes the operands of `.file`: number, names of folder and file, time stamp and
        size.
        """
        cursor.integer()
        if not cursor.comment():
            cursor.fail(f"expected the file's name, got {cursor.shown()}")
        cursor.comment()
        while cursor.take(","):
            cursor.integer()

    def location(self, cursor: TokenCursor) -> int:
        """Consumes the operands of `.loc`; returns the line in the main file, 0 if there is
        none.
        """
        place = self._place(cursor)
        while cursor.take(","):
            word = cursor.name()
            if word == "inlined_at":
                self._callers[place] = self._place(cursor)
            elif word == "function_name":
                cursor.name()
                if cursor.take("+"):
                    cursor.integer()
            else:
                cursor.fail(f"expected function_name or inlined_at, got {word!r}", cursor.at - 1)
        comment = cursor.comment()
        return self._chained(comment) if "@[" in comment else self._line(place)

    def _place(self, cursor: TokenCursor) -> Location:
        return cursor.integer(), cursor.integer(), cursor.integer()

    def _line(self, place: Location) -> int:
        for _ in range(_MAX_CALLS):
            if place[0] == self.main:
                return place[1]
            outer = self._callers.get(place)
            if outer is None:
                return 0
            place = outer
        return 0

    def _chained(self, comment: str) -> int:
        """The first line of the main file in `a.h:1:82 @[ in.cu:5:10 @[ in.cu:8:10 ] ]`."""
        if comment not in self._chains:
            self._chains[comment] = 0
            for part in comment.split(" @[ "):
                # a header's name has no number
                number = part.removeprefix(f"{self.name}:").partition(":")[0]
                if number.isascii() and number.isdecimal() and len(number) < 10 and int(number):
                    self._chains[comment] = int(number)
                    break
        return self._chains[comment]
