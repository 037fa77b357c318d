"""Where in a kernel a change stands: its statement, loop, index, condition, what it writes."""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.evaluate.repair.expression_extents import ASSIGNMENTS
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.name_roles import roles_of
from evoengine.evaluate.repair.source_change import SourceChange

_MOST_ROLES = 4
_MOST_LOOP_ROLES = 6  # of all that a loop does
_DESCENDING = (">", ">=", "--", "-=", "/=", ">>=")
_LONGEST_BODY = 160  # tokens of a loop that is looked at whole


@dataclass(frozen=True)
class ChangePlace:
    """The surroundings of a change, in names of the kernel; empty where there is nothing."""

    target: str = ""  # the variable that the statement writes
    loop_variable: str = ""  # of the head in which it stands
    loop_part: str = ""  # "begin", "bound" or "step" of that head
    array: str = ""  # in whose index it stands
    function: str = ""  # of whose arguments it is a part
    in_condition: bool = False
    is_reduction: bool = False  # values of other lanes are taken by __shfl
    is_store: bool = False
    names: tuple[str, ...] = ()  # all variables of the statement
    ascends: bool = True  # whether the loop counts upwards
    multiplies: bool = False  # whether its step multiplies or divides
    sign_before: str = ""  # what stands before the change
    is_upper: bool = False  # whether what is changed is at the right of < or <=

    @property
    def words(self) -> str:
        """The place in words, with what its names stand for."""
        return f"{self._what()}{self._roles()}"

    def _what(self) -> str:
        if self.loop_variable:
            return f"the {self.loop_part} of the loop over {self.loop_variable}"
        if self.array:
            of_what = f", which {self.target} takes" if self.target not in ("", self.array) else ""
            if self.is_store and self.target == self.array:
                of_what = ", which is written"
            return f"the index of {self.array}{of_what}"
        if self.in_condition:
            return f"the condition for {self.target}" if self.target else "a condition"
        if self.function and self.target:
            return f"the arguments of {self.function} for {self.target}"
        if self.function:
            return f"the arguments of {self.function}"
        return f"the value of {self.target}" if self.target else "this statement"

    def _roles(self) -> str:
        first = [self.target, self.array, self.loop_variable]
        most = _MOST_LOOP_ROLES if self.loop_variable else _MOST_ROLES
        roles = roles_of([name for name in (*first, *self.names) if name])[:most]
        more = ["a reduction over the lanes of a warp"] if self.is_reduction else []
        said = [*more, *roles]
        return f" ({', '.join(said)})" if said else ""


def place_of(code: KernelCode, change: SourceChange) -> ChangePlace:
    """The place of a change of device code."""
    found = code.token_places(change.start - code.offset, change.end - code.offset)
    if found is None:
        return ChangePlace()
    position = found[0]
    tokens = code.tokens
    first, last = _statement(code, position)
    names = [
        tokens.text(place)
        for place in range(first, last + 1)
        if tokens.kind(place) == "name" and code.names.at(place) is not None
    ]
    loop = code.loop_of(position)
    array = next(
        (
            tokens.text(name)
            for name, begin, end in reversed(code.indices)
            if begin <= position <= end
        ),
        "",
    )
    target = _target(code, first, last, position)
    return ChangePlace(
        target=target,
        loop_variable=code.loop_variable(position),
        loop_part=_loop_part(code, loop, position) if loop is not None else "",
        array=array,
        function=_function(code, position),
        in_condition=any(begin <= position <= end for begin, end in code.conditions),
        is_reduction=any("__shfl" in tokens.text(place) for place in range(first, last + 1)),
        is_store=target == array != "",
        names=tuple(dict.fromkeys(names)),
        ascends=loop is None or not _head_has(code, loop, _DESCENDING),
        multiplies=loop is not None and _head_has(code, loop, ("*=", "/=", ">>=", "<<=")),
        sign_before=tokens.text(position - 1),
        is_upper=any(tokens.text(item) in ("<", "<=") for item in range(position - 4, position)),
    )


def _statement(code: KernelCode, position: int) -> tuple[int, int]:
    """The statement around a token; with the one behind it, if the token stands in the head of a
    loop or of an `if`.
    """
    tokens = code.tokens
    first, last = code.extents.statement(position)
    if tokens.text(first - 1) == "{" and tokens.text(first - 2) == "=":  # a list of values
        first = code.extents.statement(first - 2)[0]
    around = tokens.enclosing[position]
    while around >= 0 and tokens.text(around) in ("(", "["):
        if tokens.text(around - 1) in ("for", "if", "while") and around in tokens.partners:
            begin = min(tokens.partners[around] + 1, len(tokens) - 1)
            end = tokens.partners.get(begin) if tokens.text(begin) == "{" else None
            if end is not None and end - begin < _LONGEST_BODY:
                return around, end
            return around, code.extents.statement(begin)[1]
        around = tokens.enclosing[around]
    return first, last


def _target(code: KernelCode, first: int, last: int, position: int) -> str:
    """The variable that is written by the assignment next before `position`, or by the first one
    behind it, heads of loops left out; empty where there is none.
    """
    tokens = code.tokens
    target = ""
    for place in range(first, last + 1):
        if target and place > position:
            break
        around = tokens.enclosing[place]
        in_head = around >= 0 and tokens.text(around) == "(" and tokens.text(around - 1) == "for"
        if tokens.text(place) in ASSIGNMENTS and not in_head:
            target = _written(code, first, place) or target
        is_call = tokens.kind(place) == "name" and tokens.text(place + 1) == "("
        if not target and is_call and tokens.text(place) in ("store", "atomicAdd", "atomicMax"):
            inside = [item for item in range(place + 2, last) if code.names.at(item) is not None]
            return tokens.text(inside[0]) if inside else ""
    return target


def _written(code: KernelCode, first: int, assignment: int) -> str:
    """The variable at the left of an assignment; of a member the variable that has it."""
    tokens, name = code.tokens, assignment - 1
    while name > first and (
        tokens.text(name) in ("]", ")") or tokens.text(name - 1) in (".", "->")
    ):
        is_member = tokens.kind(name) == "name"
        name = name - 2 if is_member else tokens.partners.get(name, name) - 1
    return tokens.text(name) if tokens.kind(name) == "name" else ""


def _head_has(code: KernelCode, loop: int, signs: tuple[str, ...]) -> bool:
    """Whether one of the operators stands in the head of a loop itself."""
    opening = loop + 1
    closing = code.tokens.partners.get(opening, opening)
    return any(
        code.tokens.text(place) in signs and code.tokens.enclosing[place] == opening
        for place in range(opening, closing)
    )


def _loop_part(code: KernelCode, loop: int, position: int) -> str:
    ends = [
        place
        for place in range(loop + 1, position)
        if code.tokens.text(place) == ";" and code.tokens.enclosing[place] == loop + 1
    ]
    return ("begin", "bound", "step")[min(len(ends), 2)]


def _function(code: KernelCode, position: int) -> str:
    """The function whose arguments a token is among, conversions of types left out."""
    tokens, around = code.tokens, code.tokens.enclosing[position]
    while around >= 0 and tokens.text(around) in ("(", "["):
        name = tokens.text(around - 1)
        is_name = tokens.kind(around - 1) == "name"
        if (
            tokens.text(around) == "("
            and is_name
            and name not in ("size_t", "float", "int", "if", "for")
        ):
            return name
        around = tokens.enclosing[around]
    return ""
