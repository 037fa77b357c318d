"""The statements of a block one by one, simple ones and those with a head, and what each of them
reads and changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.expression_extents import ASSIGNMENTS
from evoengine.evaluate.repair.kernel_code import KernelCode

ORDERED = re.compile(r"sync|wait|commit|fence|arrive|barrier|bar\.")  # what memory is ordered by
_SHUFFLE = re.compile(r"__shfl|__ballot|__any|__all|__reduce")
_HEADS = ("if", "for", "while", "switch")
_BEFORE_BLOCK = (")", "else", "do", ";", "{", "}")
_ALIGNMENTS = ("__align__", "alignas")
_CHANGING = ASSIGNMENTS | {"++", "--"}
_WITH_REFERENCES = re.compile(r"\b(\w+)\s*\([^(){};]*&[^(){};]*\)\s*\{")


@dataclass(frozen=True)
class BlockStatement:
    """One statement of a block: first and last token."""

    first: int
    last: int
    is_simple: bool


@dataclass(frozen=True)
class Loop:
    """`for` or `while` at `place`: the brackets of its head, and its body."""

    place: int
    opening: int
    closing: int
    first: int
    last: int


class StatementBlocks:
    """The blocks, loops and statements of a kernel's code."""

    def __init__(self, code: KernelCode) -> None:
        self.code = code
        self.tokens = code.tokens
        self._changing_functions = set(_WITH_REFERENCES.findall(code.tokens.code))

    def blocks(self) -> Iterator[tuple[int, list[BlockStatement]]]:
        """The { of each block of statements, and its statements."""
        for place in range(len(self.tokens)):
            if self.tokens.text(place) == "{" and place in self.tokens.partners:
                before = self._behind_head(place)
                begins = before in _BEFORE_BLOCK
                is_function = before == ")"
                if begins and (self.code.function_places[place] or is_function):
                    yield place, self.items(place)

    def _behind_head(self, opening: int) -> str:
        """The text before { at `opening`, without what may stand behind the head of a function."""
        place = opening - 1
        if self.tokens.text(place - 1) == "->":  # the type that a lambda returns
            place -= 2
        while self.tokens.text(place) in ("const", "noexcept", "mutable"):
            place -= 1
        return self.tokens.text(place)

    def items(self, opening: int) -> list[BlockStatement]:
        """The statements between { at `opening` and its }."""
        found, place, end = [], opening + 1, self.tokens.partners[opening]
        while place < end:
            last = min(self.last_of(place), end - 1)
            is_simple = self.tokens.text(place) not in (*_HEADS, "{", "do", "else")
            if last > place or not is_simple:
                found.append(BlockStatement(place, last, is_simple))
            place = last + 1
        return found

    def last_of(self, first: int) -> int:
        """The last token of the statement that begins at `first`, with its `else`."""
        tokens, ifs = self.tokens, 0
        while True:  # not by recursion: a model may write a thousand of them
            if self.is_head(first):
                ifs += tokens.text(first) == "if"
                first = tokens.partners[first + 1] + 1
                continue
            last = self._last_of_simple(first)
            if not ifs or tokens.text(last + 1) != "else":
                return last
            ifs -= 1
            first = last + 2

    def is_head(self, place: int) -> bool:
        """Whether a condition or a loop begins there, with its brackets."""
        tokens = self.tokens
        return (
            tokens.text(place) in _HEADS
            and tokens.text(place + 1) == "("
            and place + 1 in tokens.partners
        )

    def _last_of_simple(self, first: int) -> int:
        """The last token of a block, of `do`, or of a statement up to its `;`."""
        tokens, text = self.tokens, self.tokens.text(first)
        if text == "{":
            return tokens.partners.get(first, first)
        place = self.last_of(first + 1) + 1 if text == "do" else first
        while place < len(tokens) - 1 and tokens.text(place) != ";":
            place = tokens.partners.get(place, place) if tokens.text(place) in "([{" else place
            place += 1
        return place

    def loops(self) -> Iterator[Loop]:
        """Each loop, the outer ones first."""
        tokens = self.tokens
        for place in range(len(tokens)):
            is_loop = tokens.text(place) in ("for", "while") and self.is_head(place)
            if is_loop and self.code.function_places[place]:
                closing = tokens.partners[place + 1]
                if tokens.text(closing + 1) != ";":
                    last = self.last_of(closing + 1)
                    yield Loop(place, place + 1, closing, closing + 1, last)

    def begin_of_body(self, loop: Loop) -> int | None:
        """The { behind which a round of the loop, or of those in it, begins; None without one."""
        place = loop.first
        while self.tokens.text(place) == "for" and self.is_head(place):
            place = self.tokens.partners[place + 1] + 1
        return place if self.tokens.text(place) == "{" else None

    def changed(self, first: int, last: int) -> set[str]:
        """The variables that are given another value between two tokens, or may be, or elements
        of them.
        """
        return {self.tokens.text(place) for place in self.changes(first, last)}

    def changes(self, first: int, last: int) -> Iterator[int]:
        """Where variables are given another value between two tokens, or may be."""
        tokens = self.tokens
        for place in range(first, last + 1):
            if tokens.kind(place) != "name" or self.code.names.at(place) is None:
                continue
            following = tokens.text(self.code.extents.postfix(place) + 1)
            before = tokens.text(place - 1)
            is_changed = following in _CHANGING or before in ("++", "--")
            if is_changed or self._is_reference(place) or self._is_cast(place):
                yield place

    def _is_reference(self, place: int) -> bool:
        """Whether a function gets the variable itself: by & or as a parameter with &."""
        tokens, around = self.tokens, self.tokens.enclosing[place]
        if tokens.text(around) != "(" or tokens.text(place - 1) not in ("(", ",", "&"):
            return False
        if tokens.text(place - 1) == "&":
            return tokens.text(place - 2) in ("(", ",")
        return tokens.text(around - 1) in self._changing_functions

    def _is_cast(self, place: int) -> bool:
        """Whether elements of an array are changed as those of another type:
        `reinterpret_cast<float4*>(tile + i)[0] = v`.
        """
        tokens, around = self.tokens, self.tokens.enclosing[place]
        own = self.code.names.at(place)
        if own is None or own.sort not in ("array", "pointer"):
            return False
        if tokens.text(around) != "(" or tokens.text(around - 1) != ">":
            return False
        last = tokens.partners[around]
        while tokens.text(last + 1) == "[" and last + 1 in tokens.partners:
            last = tokens.partners[last + 1]
        return tokens.text(last + 1) in ASSIGNMENTS

    def reads(self, first: int, last: int) -> set[str]:
        """The variables whose values are used between two tokens."""
        tokens, found = self.tokens, set()
        for place in range(first, last + 1):
            own = self.code.names.at(place) if tokens.kind(place) == "name" else None
            if own is not None and tokens.text(place + 1) != "=":
                found.add(own.name)
        return found

    def declared(self, first: int, last: int) -> set[str]:
        """The variables that are declared between two tokens."""
        return {item.name for item in self.code.names.all if first <= item.position <= last}

    def depend(self, one: BlockStatement, other: BlockStatement) -> bool:
        """Whether the order of two statements counts: one changes what the other has, or memory
        is ordered by one.
        """
        changed = self.changed(one.first, one.last)
        changed_by_other = self.changed(other.first, other.last)
        if changed & (self.reads(other.first, other.last) | changed_by_other):
            return True
        if changed_by_other & self.reads(one.first, one.last):
            return True
        texts = [self.tokens.source(item.first, item.last) for item in (one, other)]
        return any(
            ORDERED.search(text) and not _SHUFFLE.search(text) and ("[" in rest or "(" in rest)
            for text, rest in (texts, texts[::-1])
        )

    def is_constant(self, item: DeclaredName) -> bool:
        """Whether a variable was declared const."""
        return bool({"const", "constexpr"} & set(self._words_before(item)))

    def is_known(self, item: DeclaredName) -> bool:
        """Whether a variable has the same value in all threads, known while compiling."""
        return "constexpr" in self._words_before(item)

    def is_shared(self, item: DeclaredName) -> bool:
        """Whether a variable is in shared memory."""
        return "__shared__" in self._words_before(item)

    def _words_before(self, item: DeclaredName) -> list[str]:
        """The words of a declaration before the name of the first variable."""
        place, words = item.declaration, []
        while place >= 0 and self.tokens.text(place) not in (";", "{", "}", "(", ","):
            opening = self.tokens.partners.get(place, -1)
            if self.tokens.text(place) == ")":
                if self.tokens.text(opening - 1) not in _ALIGNMENTS:
                    break
                place = opening  # __shared__ __align__(16) half tile[...]
            words.append(self.tokens.text(place))
            place -= 1
        return words

    def first_value(self, item: DeclaredName) -> tuple[int, int] | None:
        """What a variable is declared with behind its `=`; None without one."""
        start = item.position + 1
        if item.position < 0 or self.tokens.text(start) != "=":
            return None
        last = self.code.extents.last_of(start, 0)
        if self.tokens.text(last + 1) == "?":
            while self.tokens.text(last + 1) not in (",", ";", ""):
                last = self.code.extents.last_of(last + 1, 0)
        return (start + 1, last) if last > start else None
