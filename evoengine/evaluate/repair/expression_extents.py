"""Where the operands of binary operators begin and end, found by precedence."""

from __future__ import annotations

import re
from functools import cached_property

from evoengine.evaluate.repair.source_tokens import TokenList

# of C++: what binds more tightly has the higher number
PRECEDENCE = {
    **dict.fromkeys(("*", "/", "%"), 10),
    **dict.fromkeys(("+", "-"), 9),
    **dict.fromkeys(("<<", ">>"), 8),
    **dict.fromkeys(("<", "<=", ">", ">="), 7),
    **dict.fromkeys(("==", "!="), 6),
    "&": 5,
    "^": 4,
    "|": 3,
    "&&": 2,
    "||": 1,
}
ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="))
_ENDS = frozenset((",", ";", "?", ":", "{", "}", "return", "else")) | ASSIGNMENTS
TYPE_NAME = re.compile(
    r"(u?int|unsigned|float|double|(__)?half|bool|u?char|u?short|u?long|size_t|auto|signed"
    r"|(__)?(nv_)?bfloat16|u?int(8|16|32|64)_t|__nv_fp8_e[45]m[23]|void)[1-4]?(_4)?"
)


class Extents:
    """Expressions in a list of tokens."""

    def __init__(self, tokens: TokenList) -> None:
        self.tokens = tokens

    def ends_operand(self, position: int) -> bool:
        """Whether an operand ends with the token at `position`."""
        tokens = self.tokens
        if tokens.kind(position) in ("number", "string"):
            return True
        if tokens.kind(position) == "name":
            return tokens.text(position) not in ("return", "else", "case", "const", "typename")
        if tokens.text(position) == ")":
            return not self.is_cast(position)
        return tokens.text(position) == "]"

    def is_cast(self, position: int) -> bool:
        """Whether the closing bracket at `position` is that of a cast such as (unsigned char)."""
        tokens = self.tokens
        first = tokens.partners.get(position, position)
        inside = [tokens.text(place) for place in range(first + 1, position)]
        return bool(inside) and all(TYPE_NAME.fullmatch(word) for word in inside)

    def is_binary(self, position: int) -> bool:
        """Whether the token is an operator between two operands and no bracket of a template."""
        tokens, text = self.tokens, self.tokens.text(position)
        if text not in PRECEDENCE or not self.ends_operand(position - 1):
            return False
        following = tokens.text(position + 1)
        if following in PRECEDENCE and following not in ("-", "+", "*", "&"):
            return False
        if text in ("<", ">", ">>") and self.is_template_bracket(position):
            return False
        if text in ("*", "&") and self._is_declaration(position):
            return False
        return following not in (")", "]", ",", ";")

    def is_call(self, opening: int) -> bool:
        """Whether the bracket at `opening` holds the arguments of a call, or what is cast by one
        such as static_cast<int>(x).
        """
        before = opening - 1
        return self.tokens.kind(before) == "name" or (
            self.tokens.text(before) == ">" and self.is_template_bracket(before)
        )

    def is_template_bracket(self, position: int) -> bool:
        """Whether < or > belongs to template arguments, such as those of reinterpret_cast."""
        return position in self._template_brackets

    @cached_property
    def template_arguments(self) -> tuple[tuple[int, int], ...]:
        """The positions of each < and > around template arguments."""
        found = []
        for opening in range(len(self.tokens)):
            if self.tokens.text(opening) == "<" and self.tokens.kind(opening - 1) == "name":
                closing = self._template_end(opening)
                if closing is not None:
                    found.append((opening, closing))
        return tuple(found)

    @cached_property
    def _template_brackets(self) -> frozenset[int]:
        return frozenset(place for pair in self.template_arguments for place in pair)

    def _template_end(self, opening: int) -> int | None:
        """The > of the template arguments that may begin at `opening`; None if there are none."""
        tokens, depth, place = self.tokens, 1, opening + 1
        while place < len(tokens):
            text = tokens.text(place)
            if text in ("(", "[") and place in tokens.partners:
                place = tokens.partners[place]
            elif text in (";", "{", "}", ")", "]", "&&", "||", "==", "?") or text in ASSIGNMENTS:
                return None
            elif text == "<":
                depth += 1
            elif text in (">", ">>"):
                depth -= len(text)
                if depth <= 0:
                    following = tokens.text(place + 1)
                    is_name = tokens.kind(place + 1) == "name"
                    is_template = tokens.text(opening - 1) == "template"
                    return (
                        place
                        if is_template
                        or is_name
                        or following in ("(", "*", "&", "::", ">", ",", "{")
                        else None
                    )
            place += 1
        return None

    def _is_declaration(self, position: int) -> bool:
        """Whether * or & is part of a declared pointer: `const half* x`."""
        before = position - 1
        while self.tokens.text(before) in ("const", "*", "__restrict__"):
            before -= 1
        return TYPE_NAME.fullmatch(self.tokens.text(before)) is not None

    def first_of(self, operator: int, precedence: int) -> int:
        """The first token of the operand before `operator`: its operators bind with at least
        `precedence`.
        """
        tokens, place = self.tokens, operator - 1
        while place >= 0:
            text = tokens.text(place)
            if text in (")", "]", "}") and place in tokens.partners:
                place = tokens.partners[place] - 1
                continue
            if text in ("(", "[") or text in _ENDS:
                break
            if text in PRECEDENCE and self.is_binary(place) and PRECEDENCE[text] < precedence:
                break
            place -= 1
        return place + 1

    def last_of(self, operator: int, precedence: int) -> int:
        """The last token of the operand behind `operator`: its operators bind more tightly than
        `precedence`.
        """
        tokens, place = self.tokens, operator + 1
        while place < len(tokens):
            text = tokens.text(place)
            if text in ("(", "[", "{") and place in tokens.partners:
                place = tokens.partners[place] + 1
                continue
            if text in (")", "]") or text in _ENDS:
                break
            if text in PRECEDENCE and self.is_binary(place) and PRECEDENCE[text] <= precedence:
                break
            place += 1
        return place - 1

    def operand_behind(self, operator: int) -> tuple[int, int]:
        """The right operand of a binary operator, first and last token."""
        return operator + 1, self.last_of(operator, PRECEDENCE[self.tokens.text(operator)])

    def operand_before(self, operator: int) -> tuple[int, int]:
        """The left operand of a binary operator, first and last token."""
        return self.first_of(operator, PRECEDENCE[self.tokens.text(operator)]), operator - 1

    def postfix(self, first: int) -> int:
        """The last token of the operand that begins with the name at `first`: calls, indices and
        members belong to it.
        """
        tokens, place = self.tokens, first
        while True:
            following = tokens.text(place + 1)
            if following in ("(", "[") and place + 1 in tokens.partners:
                place = tokens.partners[place + 1]
            elif following in (".", "->", "::") and tokens.kind(place + 2) == "name":
                place += 2
            else:
                return place

    def arguments(self, opening: int) -> list[tuple[int, int]]:
        """First and last token of each argument between the brackets that open at `opening`."""
        tokens = self.tokens
        closing = tokens.partners.get(opening)
        if closing is None or closing == opening + 1:
            return []
        found, first, place = [], opening + 1, opening + 1
        while place < closing:
            if tokens.text(place) in ("(", "[", "{") and place in tokens.partners:
                place = tokens.partners[place]
            elif tokens.text(place) == ",":
                found.append((first, place - 1))
                first = place + 1
            place += 1
        found.append((first, closing - 1))
        return [pair for pair in found if pair[0] <= pair[1]]

    def statement(self, position: int) -> tuple[int, int]:
        """First and last token of the statement around `position`, as far as the next ; { or }."""
        tokens = self.tokens
        first = position
        while first > 0 and tokens.text(first - 1) not in ("{", "}", ";"):
            first -= 1
        last = position
        while last + 1 < len(tokens) and tokens.text(last) not in (";", "{", "}"):
            last += 1
        return first, last
