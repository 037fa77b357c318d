"""Which line of the candidate's source an instruction comes from."""

from __future__ import annotations

from evoengine.emulator.ptx.lexer import TokenCursor, literal
from evoengine.emulator.ptx.syntax import Integer

_MAX_CALLS = 64  # of inlining followed outwards; a bound, because the text may say anything

Location = tuple[int, int, int]  # file, line, column


class SourceLines:
    """Reads .loc: the innermost place in the main file that an instruction belongs to.

    The main file is where the first kernel is defined, because our headers define none. How code
    was inlined stands in `inlined_at` (one step per .loc, the outer ones before) or, without full
    debug information, only in clang's comment behind the .loc: `in.h:1:82 @[ in.h:3:14 @[
    in.cu:5:10 ] ]`, which the lexer hands on as a string.
    """

    def __init__(self, main: int, name: str) -> None:
        self.main = main
        self.name = name
        self._callers: dict[Location, Location] = {}
        self._chains: dict[str, int] = {}

    @staticmethod
    def of(cursor: TokenCursor) -> SourceLines:
        """For a text whose first kernel's first .loc tells the main file."""
        texts = cursor.texts
        try:
            at = texts.index(".loc", texts.index(".entry") if ".entry" in texts else 0)
        except ValueError:  # nothing tells lines
            return SourceLines(0, "")
        number = literal(texts[at + 1])
        comment = texts[min(at + 4, len(texts) - 1)]
        name = comment[1:-1].rsplit(":", 2)[0] if comment[:1] == '"' and "@[" not in comment else ""
        return SourceLines(number.value if isinstance(number, Integer) else 0, name)

    def enter(self) -> None:
        """A new function begins: callers are remembered per function."""
        self._callers.clear()

    def file(self, cursor: TokenCursor) -> None:
        """Steps over what stands behind `.file`: number, names of folder and file, time stamp and
        size.
        """
        cursor.integer()
        if not cursor.comment():
            cursor.fail(f"expected the file's name, got {cursor.shown()}")
        cursor.comment()
        while cursor.take(","):
            cursor.integer()

    def location(self, cursor: TokenCursor) -> int:
        """Steps over what stands behind `.loc`; the line in the main file, 0 where it says none."""
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
                # a header keeps its name: no number
                number = part.removeprefix(f"{self.name}:").partition(":")[0]
                if number.isascii() and number.isdecimal() and len(number) < 10 and int(number):
                    self._chains[comment] = int(number)
                    break
        return self._chains[comment]
