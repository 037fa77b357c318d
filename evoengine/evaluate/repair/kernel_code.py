"""A kernel's source as the changes of it see it: tokens, expressions, names, statements."""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

from evoengine.evaluate.repair.declared_names import DeclaredName, DeclaredNames, is_grid_name
from evoengine.evaluate.repair.expression_extents import ASSIGNMENTS, Extents
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.source_tokens import TokenList

_MACRO = re.compile(r"^[ \t]*#[ \t]*define\b(?:[^\\\n]|\\.|\\\n)*", re.MULTILINE)
_WORD = re.compile(r"\w+")
_NEAREST = 6  # variables in place of one that means nothing, the last declared first


class KernelCode:
    """The device code of a candidate, whose header is blanked; `offset` of it is left out.

    Changes are made in the whole source, so places in the code are moved by `offset`.
    """

    def __init__(self, source: str, header_end: int, macros: tuple[str, ...] = ()) -> None:
        self.source = source
        self.offset = header_end
        self.tokens = TokenList(source[header_end:])
        self.extents = Extents(self.tokens)
        self.names = DeclaredNames(self.tokens, self.extents, macros)

    def replaced(self, first: int, last: int, new: str, kind: str) -> SourceChange:
        """The change that puts `new` in place of the tokens `first` to `last`."""
        start, end = self.tokens.span(first, last)
        return SourceChange(start + self.offset, end + self.offset, new, kind)

    def inserted(self, position: int, new: str, kind: str) -> SourceChange:
        """The change that puts `new` behind the token at `position`."""
        end = self.tokens.tokens[position].end + self.offset
        return SourceChange(end, end, new, kind)

    def token_places(self, start: int, end: int) -> tuple[int, int] | None:
        """First and last token of the code from `start` to `end`; of an empty stretch the one
        before it. None where there is no token.
        """
        first = bisect.bisect_left(self.tokens.starts, start)
        last = bisect.bisect_left(self.tokens.starts, end) - 1
        if start == end:
            first = last
        return (first, last) if 0 <= first <= last else None

    def in_template_arguments(self, position: int) -> bool:
        """Whether a token stands between the brackets of template arguments."""
        return position in self._template_arguments

    @cached_property
    def _template_arguments(self) -> frozenset[int]:
        found: set[int] = set()
        for opening, closing in self.extents.template_arguments:
            found |= set(range(opening + 1, closing))
        return frozenset(found)

    @cached_property
    def function_places(self) -> tuple[bool, ...]:
        """Of each token whether it stands inside of a function's body."""
        found, depth = [], 0
        for token in self.tokens.tokens:
            if token.text == "}" and token.kind == "sign":
                depth -= 1
            found.append(depth > 0)
            if token.text == "{" and token.kind == "sign":
                depth += 1
        return tuple(found)

    def in_index(self, position: int) -> bool:
        """Whether a token stands in the brackets of an index."""
        place = self.tokens.enclosing[position]
        while place >= 0 and self.tokens.text(place) in "([":
            if self.tokens.text(place) == "[":
                return True
            place = self.tokens.enclosing[place]
        return False

    def loop_of(self, position: int) -> int | None:
        """The `for` in whose head a token stands."""
        place = self.tokens.enclosing[position]
        while place >= 0 and self.tokens.text(place) in "([":
            if self.tokens.text(place - 1) == "for":
                return place - 1
            place = self.tokens.enclosing[place]
        return None

    def loop_variable(self, position: int) -> str:
        """The variable of the loop in whose head a token stands; empty outside of heads."""
        loop = self.loop_of(position)
        if loop is None:
            return ""
        opening = loop + 1
        for place in range(opening, self.tokens.partners.get(opening, opening)):
            if self.tokens.text(place) in ASSIGNMENTS:
                return self.tokens.text(place - 1)
        return ""

    def atoms(self) -> Iterator[tuple[int, int, str]]:
        """Each use of a variable, or of a number of the grid: first and last token, and its
        sort; declarations are left out.
        """
        yield from self.atoms_between(0, len(self.tokens) - 1)

    def atoms_between(self, first: int, last: int) -> Iterator[tuple[int, int, str]]:
        """The same of the tokens `first` to `last`."""
        for position in range(first, last + 1):
            if self.tokens.kind(position) != "name":
                continue
            text = self.tokens.text(position)
            if is_grid_name(text) and self.tokens.text(position + 1) == ".":
                yield position, position + 2, "int"
                continue
            found = self.names.at(position)
            if found is not None and found.position != position:
                yield position, position, found.sort

    def head_ends(self, opening: int) -> list[int]:
        """The `;` between the brackets of a loop's head, which begins at `opening`."""
        return [
            place
            for place in range(opening + 1, self.tokens.partners[opening])
            if self.tokens.text(place) == ";" and self.tokens.enclosing[place] == opening
        ]

    def counted_loops(self) -> Iterator[tuple[int, int, int, int]]:
        """Of each `for (...; ...; ...)` in a function the `for`, both `;`, and the closing bracket
        of its head.
        """
        for place in range(len(self.tokens)):
            if self.tokens.text(place) != "for" or place + 1 not in self.tokens.partners:
                continue
            ends = self.head_ends(place + 1)
            if len(ends) == 2 and self.function_places[place]:
                yield place, ends[0], ends[1], self.tokens.partners[place + 1]

    def body(self, closing: int) -> tuple[int, int]:
        """First and last token of the statement or block behind a head that ends at `closing`."""
        first = closing + 1
        if self.tokens.text(first) == "{" and first in self.tokens.partners:
            return first, self.tokens.partners[first]
        return first, self.extents.statement(min(first, len(self.tokens) - 1))[1]

    def sizes(self, position: int) -> list[str]:
        """The parameters and constants that are whole numbers at `position`, the last first."""
        items = self.visible(position, "int")
        return [item.name for item in items if item.is_parameter or item.name.isupper()]

    def scope(self, item: DeclaredName) -> str:
        """The code in which a variable can be used, from its name on."""
        return self.tokens.source(item.position, min(item.last, len(self.tokens) - 1))

    def type_words(self, item: DeclaredName) -> list[str]:
        """The words of a declaration between its begin and the name."""
        return [self.tokens.text(place) for place in range(item.declaration, item.position)]

    def visible(self, position: int, sort: str) -> list[DeclaredName]:
        """The variables of a sort that can be used at `position`, the last declared first."""
        return [item for item in self.names.visible(position) if item.sort == sort]

    @cached_property
    def statements(self) -> tuple[tuple[int, int], ...]:
        """First and last token of each simple statement in a function: those that end with `;`
        outside of the head of a loop.
        """
        found, tokens = [], self.tokens
        for position, token in enumerate(tokens.tokens):
            if token.text != ";" or not self.function_places[position]:
                continue
            around = tokens.enclosing[position]
            if around >= 0 and tokens.text(around) != "{":
                continue
            first = self._first_of_statement(position)
            if first < position:
                found.append((first, position))
        return tuple(found)

    @cached_property
    def assignments(self) -> tuple[tuple[int, int], ...]:
        """The statements, those that assign several values one by one: `a = x, b = y;` are two,
        which end with the comma and with the `;`.
        """
        found, tokens = [], self.tokens
        for first, last in self.statements:
            commas = [
                place
                for place in range(first, last)
                if tokens.text(place) == "," and tokens.enclosing[place] == tokens.enclosing[first]
            ]
            bounds = [first - 1, *([] if self.declares(first, last) else commas), last]
            found += [(begin + 1, end) for begin, end in pairwise(bounds)]
        return tuple(found)

    def declares(self, first: int, last: int) -> bool:
        """Whether a variable is declared between two tokens."""
        return any(first <= item.position <= last for item in self.names.all)

    def _first_of_statement(self, end: int) -> int:
        tokens, place = self.tokens, end - 1
        while place >= 0:
            text = tokens.text(place)
            if text in (")", "]", "}") and place in tokens.partners:
                opening = tokens.partners[place]
                heads = text == ")" and tokens.text(opening - 1) in ("for", "if", "while")
                if heads or (text == "}" and not self._is_value(opening)):
                    return place + 1
                place = opening - 1
                continue
            if text in (";", "{", "}", "else", "do"):
                return place + 1
            place -= 1
        return 0

    def _is_value(self, opening: int) -> bool:
        """Whether the brace at `opening` begins a value or the body of a lambda."""
        before = self.tokens.text(opening - 1)
        if before in ("else", "do"):
            return False
        return (
            before in ("=", ",", "(", "{", "return", "]") or self.tokens.kind(opening - 1) == "name"
        )

    @cached_property
    def conditions(self) -> tuple[tuple[int, int], ...]:
        """First and last token of each condition: of if, of ?:, and of the second part of for."""
        found, tokens = set(), self.tokens
        for position in range(len(tokens)):
            text = tokens.text(position)
            if text in ("if", "while") and position + 1 in tokens.partners:
                found.add((position + 2, tokens.partners[position + 1] - 1))
            elif text == "?":
                first = self.extents.first_of(position, 0)
                if first < position:
                    found.add((first, position - 1))
            elif text == "for" and position + 1 in tokens.partners:
                ends = self.head_ends(position + 1)
                if len(ends) == 2 and ends[0] + 1 < ends[1]:
                    found.add((ends[0] + 1, ends[1] - 1))
            elif text == "=" and "bool" in (tokens.text(position - 2), tokens.text(position - 3)):
                last = self.extents.last_of(position, 0)
                found.add((position + 1, last))
        return tuple(sorted(pair for pair in found if pair[0] <= pair[1]))

    def is_left_where(self, last: int) -> bool:
        """Whether a condition that ends at `last` is one under which a round or function ends: it
        holds nowhere behind.
        """
        place = last + 2
        while self.tokens.text(place) in ("{", ")"):
            place += 1
        return self.tokens.text(place) in ("return", "continue", "break")

    @cached_property
    def indices(self) -> tuple[tuple[int, int, int], ...]:
        """Each index of an array or pointer: the array's name, first and last token inside."""
        found, tokens = [], self.tokens
        for position in range(len(tokens)):
            if tokens.text(position) != "[" or position not in tokens.partners:
                continue
            if not self.function_places[position] or tokens.partners[position] == position + 1:
                continue
            place = position - 1
            while tokens.text(place) == "]" and place in tokens.partners:
                place = tokens.partners[place] - 1
            if tokens.kind(place) == "name" and self._is_use(place):
                found.append((place, position + 1, tokens.partners[position] - 1))
        return tuple(found)

    def _is_use(self, position: int) -> bool:
        found = self.names.at(position)
        return found is not None and found.position != position

    def can_stand(self, first: int, last: int, position: int) -> bool:
        """Whether all variables of the tokens `first` to `last` mean the same at `position`."""
        for place in range(first, last + 1):
            if self.tokens.kind(place) != "name":
                continue
            found = self.names.at(place)
            if found is not None and not found.position < position <= found.last:
                return False
        return True

    def with_other_name(self, first: int, last: int, position: int) -> Iterator[str]:
        """The tokens `first` to `last` with a variable of `position` in place of the only one that
        means nothing there: a loop's variable has another name in another loop.
        """
        foreign: dict[str, list[int]] = {}
        for place in range(first, last + 1):
            found = self.names.at(place) if self.tokens.kind(place) == "name" else None
            if found is not None and not found.position < position <= found.last:
                foreign.setdefault(found.name, []).append(place)
        if len(foreign) != 1:
            return
        places = next(iter(foreign.values()))
        item = self.names.at(places[0])
        assert item is not None
        for other in self.visible(position, item.sort)[:_NEAREST]:
            pieces = [(place, place, other.name) for place in places]
            yield self.tokens.rewritten(first, last, pieces)

    @cached_property
    def unread(self) -> tuple[DeclaredName, ...]:
        """The variables that are declared and read nowhere. Of members, and of names that stand for
        several variables, only those whose name nothing reads; a macro may read what has its name.
        """
        of_macros = set(_WORD.findall(" ".join(_MACRO.findall(self.tokens.code))))
        used = [
            found
            for place in range(len(self.tokens))
            if self.tokens.kind(place) == "name"
            and (found := self.names.at(place)) is not None
            and found.position != place
        ]
        places, names = {item.position for item in used}, {item.name for item in used}
        return tuple(
            item
            for item in self.names.all
            if item.position >= 0
            and item.name not in of_macros
            and (item.position not in places if item.is_parameter else item.name not in names)
        )

    def constants(self, position: int) -> list[str]:
        """The numbers that are no variables, by their names, at a place: those that are read most
        often first.
        """
        found = [item.name for item in self.visible(position, "int") if item.name.isupper()]
        return sorted(found, key=lambda name: -self._words[name])

    @cached_property
    def _words(self) -> Counter[str]:
        """How often each token stands in the code."""
        return Counter(self.tokens.text(place) for place in range(len(self.tokens)))

    def is_counter(self, position: int) -> bool:
        """Whether a token is a variable that holds a whole number."""
        item = self.names.at(position) if self.tokens.kind(position) == "name" else None
        return item is not None and item.sort == "int" and not item.name.isupper()

    @cached_property
    def idle_loops(self) -> tuple[DeclaredName, ...]:
        """The variables of loops whose bodies read them nowhere."""
        tokens, found = self.tokens, []
        for item in self.names.all:
            loop = self.loop_of(item.position) if item.position >= 0 else None
            if loop is None:
                continue
            body = range(tokens.partners.get(loop + 1, item.last) + 1, item.last + 1)
            if not any(
                tokens.text(place) == item.name and self.names.at(place) == item for place in body
            ):
                found.append(item)
        return tuple(found)

    def in_kernel(self, position: int) -> bool:
        """Whether a token stands in the body of a kernel, and not of a function that it calls."""
        opening = self.function_of(position)
        if opening < 1:
            return False
        first, _ = self.extents.statement(opening)
        return self.tokens.has_any(first, opening, {"__global__"})

    def function_of(self, position: int) -> int:
        """The { of the function around a token; -1 outside of all."""
        place, found = position, -1
        while (place := self.tokens.enclosing[place]) >= 0:
            if self.tokens.text(place) == "{":
                found = place
        return found

    @cached_property
    def values(self) -> tuple[tuple[int, int], ...]:
        """First and last token of each whole value: what is assigned, an argument of a call, an
        index, what is returned.
        """
        found, tokens = set(), self.tokens
        for position in range(len(tokens)):
            if not self.function_places[position]:
                continue
            text = tokens.text(position)
            if text in ASSIGNMENTS or text in ("return", "?", ":"):
                if tokens.text(position + 1) == "{":
                    continue  # a list has no value that could be multiplied or given to a function
                last = self.extents.last_of(position, 0)
                found.add((position + 1, last))
            elif text in ("(", "[") and self._calls(position):
                found |= set(self.extents.arguments(position))
        return tuple(sorted(pair for pair in found if pair[0] <= pair[1]))

    def _calls(self, opening: int) -> bool:
        """Whether a name or template arguments stand before a bracket: f(x), f<int>(x)."""
        before = opening - 1
        is_template = self.tokens.text(before) == ">" and self.extents.is_template_bracket(before)
        return self.tokens.kind(before) == "name" or is_template
