"""The variables of a kernel's code: what sort of value each holds, and where it can be used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from evoengine.evaluate.repair.expression_extents import TYPE_NAME, Extents
from evoengine.evaluate.repair.source_tokens import TokenList

_WORDS = frozenset(
    [
        "return",
        "if",
        "else",
        "for",
        "while",
        "do",
        "switch",
        "case",
        "break",
        "continue",
        "const",
        "constexpr",
        "static",
        "extern",
        "inline",
        "template",
        "typename",
        "struct",
        "using",
        "namespace",
        "sizeof",
        "true",
        "false",
        "goto",
        "typedef",
        "operator",
        "asm",
        "volatile",
        "__asm__",
        "__device__",
        "__global__",
        "__shared__",
        "__constant__",
        "__forceinline__",
        "__launch_bounds__",
        "__restrict__",
        "__align__",
        "__noinline__",
        "static_cast",
        "reinterpret_cast",
        "const_cast",
        "public",
    ]
)
_MODIFIERS = frozenset(
    [
        "const",
        "constexpr",
        "static",
        "extern",
        "inline",
        "volatile",
        "__device__",
        "__shared__",
        "__constant__",
        "__restrict__",
        "__align__",
        "unsigned",
        "signed",
        "long",
        "short",
        "register",
    ]
)
_INTEGERS = re.compile(
    r"(u?int|unsigned|signed|bool|size_t|u?char|u?short|u?long|u?int(8|16|32|64)_t|auto)"
)
_FLOATS = re.compile(r"(float|double|(__)?half|(__)?(nv_)?bfloat16)")
NARROW = re.compile(r"(__)?(half|(nv_)?bfloat16)")  # types of half a word
_TYPEDEF = re.compile(r"\btypedef ((?:\w+ )*\w+) (\w+) ?;")
_USING = re.compile(r"\busing (\w+) ?= ?((?:\w+ )*\w+) ?;")
_DEFINING = frozenset(("struct", "class", "union", "using", "typename"))
_GRID = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim"))


@dataclass(frozen=True)
class DeclaredName:
    """One variable: `sort` is int, float, pointer, array or another type; it can be used in the
    tokens from `position` to `last`. Those of one `declaration` were declared together.
    """

    name: str
    sort: str
    position: int
    last: int
    declaration: int
    is_parameter: bool = False


class DeclaredNames:
    """All variables of a list of tokens."""

    def __init__(self, tokens: TokenList, extents: Extents, macros: tuple[str, ...] = ()) -> None:
        """`macros` are whole numbers that can be used everywhere, such as tunables."""
        self.tokens = tokens
        self.extents = extents
        self.macros = macros
        self._meant: dict[int, DeclaredName | None] = {}

    @cached_property
    def all(self) -> tuple[DeclaredName, ...]:
        """In the order in which they are declared."""
        return tuple(self._found())

    @cached_property
    def by_name(self) -> dict[str, list[DeclaredName]]:
        """The variables of each name."""
        found: dict[str, list[DeclaredName]] = {}
        for item in self.all:
            found.setdefault(item.name, []).append(item)
        return found

    def at(self, position: int) -> DeclaredName | None:
        """The variable that the name at `position` means; None for a function, type or member."""
        if position not in self._meant:  # every kind of change asks for the same ones
            self._meant[position] = self._meaning(position)
        return self._meant[position]

    def _meaning(self, position: int) -> DeclaredName | None:
        tokens = self.tokens
        if tokens.text(position - 1) in (".", "->", "::") or tokens.text(position + 1) == "::":
            return None
        fitting = [
            item
            for item in self.by_name.get(tokens.text(position), ())
            if item.position < position <= item.last
        ]
        return max(fitting, key=lambda item: item.position, default=None)

    def visible(self, position: int) -> list[DeclaredName]:
        """The variables that can be used at `position`, the last declared first; one has no value
        in its own first value.
        """
        found: dict[str, DeclaredName] = {}
        for item, begins in zip(self.all, self._begins, strict=True):
            if begins < position <= item.last:
                found[item.name] = item
        return sorted(found.values(), key=lambda item: -item.position)

    @cached_property
    def _begins(self) -> tuple[int, ...]:
        """Of each variable the last token before it has a value."""
        return tuple(
            self.extents.last_of(item.position + 1, 0)
            if item.position >= 0 and self.tokens.text(item.position + 1) == "="
            else item.position
            for item in self.all
        )

    def _found(self) -> Iterator[DeclaredName]:
        for name in self.macros:
            yield DeclaredName(name, "int", -1, len(self.tokens), -1)
        for position in range(len(self.tokens)):
            if self._begins_declaration(position):
                yield from self._declared(position)

    def _begins_declaration(self, position: int) -> bool:
        """Whether a type stands at `position`, and a declared name behind it."""
        tokens, text = self.tokens, self.tokens.text(position)
        before = tokens.text(position - 1)
        is_type = text not in _MODIFIERS or text == "unsigned"
        is_type |= text == "long" and before not in ("unsigned", "signed", "long")
        if tokens.kind(position) != "name" or text in _WORDS or not is_type:
            return False
        is_begin = before in ("", ";", "{", "}", "(", ")", ",", "<", "]", "::")
        if not is_begin and before not in _MODIFIERS:
            return False
        place = self._name_behind(position)
        if place is None:
            return False
        signs = {tokens.text(item) for item in range(position + 1, place)} & {"*", "&"}
        return not signs or TYPE_NAME.fullmatch(text) is not None or text in self._own_types

    @cached_property
    def _own_types(self) -> frozenset[str]:
        """The types that the code defines, or that a template is given."""
        tokens = self.tokens
        found = set()
        for place in range(len(tokens)):
            if tokens.text(place) not in _DEFINING:
                continue
            name = place + 1
            while tokens.text(name) in ("alignas", "__align__", "__builtin_align__"):
                name = tokens.partners.get(name + 1, name + 1) + 1
            if tokens.kind(name) == "name":
                found.add(tokens.text(name))
        return frozenset((found | set(self._aliases)) - _WORDS)

    @cached_property
    def _aliases(self) -> dict[str, str]:
        """The last word of the type that a name stands for: `typedef unsigned int u32;`."""
        code = self.tokens.code
        found = {alias: words for words, alias in _TYPEDEF.findall(code)}
        found |= dict(_USING.findall(code))
        return {alias: words.split()[-1] for alias, words in found.items()}

    def _name_behind(self, type_place: int) -> int | None:
        """The name declared with the type at `type_place`; None where nothing is."""
        tokens, place = self.tokens, type_place + 1
        if tokens.text(place) == "<" and self.extents.is_template_bracket(place):
            depth = 0
            while place < len(tokens):
                depth += (tokens.text(place) == "<") - tokens.text(place).count(">")
                place += 1
                if depth <= 0:
                    break
        while tokens.text(place) in ("*", "&", "const", "__restrict__", "int", "long"):
            place += 1
        if tokens.text(place) == "(" and tokens.text(place + 1) == "&":  # a reference to an array
            place += 2
        elif [tokens.text(place + at) for at in (0, 1, 3, 4)] == ["(", "*", ")", "["]:
            place += 2  # a pointer to the rows of one
        is_name = tokens.kind(place) == "name" and tokens.text(place) not in _WORDS | _MODIFIERS
        follows = tokens.text(place + 1)
        is_given = follows == "(" and self._gives_values(place + 1)
        if not is_name or not (is_given or follows in ("=", ";", ",", ")", "[", "{", ":", ">")):
            return None
        is_type = TYPE_NAME.fullmatch(tokens.text(place)) is not None
        if is_type and (tokens.text(place) != "half" or follows not in ("=", ",", ";")):
            return None  # `int half = 0` declares one of two halves
        return place

    def _gives_values(self, opening: int) -> bool:
        """Whether the brackets hold the values that a declared name begins with, `Step next(i, n);`
        and no parameters of a function.
        """
        tokens = self.tokens
        closing = tokens.partners.get(opening, opening)
        around = tokens.enclosing[opening]
        return (
            around >= 0
            and tokens.text(around) == "{"
            and tokens.text(closing + 1) in (";", ",")
            and closing > opening + 1
            and self._name_behind(opening + 1) is None
            and not TYPE_NAME.fullmatch(tokens.text(opening + 1))
        )

    def _declared(self, type_place: int) -> Iterator[DeclaredName]:
        tokens = self.tokens
        opening = tokens.enclosing[type_place]
        in_brackets = opening >= 0 and tokens.text(opening) == "("
        is_loop = in_brackets and tokens.text(opening - 1) in ("for", "if", "while")
        in_template = self._in_template(type_place)
        is_parameter = (in_brackets and not is_loop) or in_template
        last = self._last(type_place, opening, is_loop, is_parameter)
        place: int | None = self._name_behind(type_place)
        while place is not None:
            yield DeclaredName(
                tokens.text(place),
                self._sort(type_place, place),
                place,
                last,
                type_place,
                is_parameter,
            )
            place = None if is_parameter else self._next_declarator(place)

    def _in_template(self, position: int) -> bool:
        tokens, place = self.tokens, position
        while place > 0 and tokens.text(place) not in (";", "{", "}", "(", ")"):
            if tokens.text(place) == "<" and tokens.text(place - 1) == "template":
                return True
            if tokens.text(place) == ">" and place != position:
                return False
            place -= 1
        return False

    def _last(self, type_place: int, opening: int, is_loop: bool, is_parameter: bool) -> int:
        """The last token at which what is declared there can be used."""
        tokens = self.tokens
        if is_loop:
            return self._end_of_statement(tokens.partners.get(opening, opening) + 1)
        if is_parameter:
            place = type_place
            while place < len(tokens) and tokens.text(place) not in ("{", ";"):
                place += 1
            return tokens.partners.get(place, place)
        return tokens.partners.get(opening, len(tokens) - 1) if opening >= 0 else len(tokens) - 1

    def _end_of_statement(self, place: int) -> int:
        """The last token of the statement that begins at `place`."""
        tokens = self.tokens
        if tokens.text(place) in ("for", "if", "while") and place + 1 in tokens.partners:
            end = self._end_of_statement(tokens.partners[place + 1] + 1)
            if tokens.text(end + 1) == "else":
                return self._end_of_statement(end + 2)
            return end
        if tokens.text(place) == "{":
            return tokens.partners.get(place, len(tokens) - 1)
        while place < len(tokens) and tokens.text(place) != ";":
            place = (
                tokens.partners.get(place, place) + 1 if tokens.text(place) in "([{" else place + 1
            )
        return place

    def _next_declarator(self, place: int) -> int | None:
        """The next name of the same declaration."""
        tokens = self.tokens
        place += 1
        if tokens.text(place) == ")" and tokens.text(place - 2) == "&":  # (&rows)[4]
            place += 1
        while place < len(tokens):
            text = tokens.text(place)
            if text in ("(", "[", "{") and place in tokens.partners:
                place = tokens.partners[place]
            elif text in (";", ")", "}", ":"):
                return None
            elif text == ",":
                place += 1
                while tokens.text(place) in ("*", "&", "const", "__restrict__"):
                    place += 1
                if tokens.text(place) == "(" and tokens.text(place + 1) == "&":
                    place += 2
                return place if tokens.kind(place) == "name" else None
            place += 1
        return None

    def _sort(self, type_place: int, place: int) -> str:
        """What sort of value a declared name holds."""
        tokens = self.tokens
        if tokens.text(type_place - 1) == "::":  # such as wmma::fragment
            return tokens.text(type_place)
        if "*" in (tokens.text(place - 1), tokens.text(place - 2)):
            return "pointer"
        if tokens.text(place + 1) == "[" or (
            tokens.text(place - 1) == "&" and (tokens.text(place - 2) == "(")
        ):
            return "array"
        word = self._aliases.get(tokens.text(type_place), tokens.text(type_place))
        if _INTEGERS.fullmatch(word):
            return "int"
        return "float" if _FLOATS.fullmatch(word) else word


def is_grid_name(text: str) -> bool:
    """Whether it is threadIdx, blockIdx, blockDim or gridDim."""
    return text in _GRID
