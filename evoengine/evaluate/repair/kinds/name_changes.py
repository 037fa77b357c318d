"""Changes of names: another variable of the same sort, another function, another member."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from evoengine.evaluate.repair.declared_names import DeclaredName, is_grid_name
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.header_changes import LISTS, entries_of
from evoengine.evaluate.repair.source_change import SourceChange

_FAMILIES = (
    ("expf", "__expf", "exp2f"),
    ("exp", "exp2"),
    ("logf", "__logf", "log2f", "log10f"),
    ("sqrtf", "rsqrtf"),
    ("fmaxf", "fminf"),
    ("max", "min"),
    ("atomicAdd", "atomicMax", "atomicExch", "atomicMin"),
    ("__shfl_xor_sync", "__shfl_down_sync", "__shfl_up_sync", "__shfl_sync"),
    ("rintf", "floorf", "ceilf", "truncf", "roundf"),
    ("__float2int_rn", "__float2int_rz", "__float2int_rd"),
    ("__syncwarp", "__syncthreads"),
    ("row_major", "col_major"),
    ("mem_row_major", "mem_col_major"),
    ("tanhf", "erff", "expf"),
    ("__any_sync", "__all_sync"),
    ("sinf", "cosf"),
    ("__NV_E4M3", "__NV_E5M2"),
    ("__nv_fp8_e4m3", "__nv_fp8_e5m2"),
)
_FUNCTION = "function of the kernel"
_OF_BLOCKS = ("threadIdx", "blockDim")
_GRID_NAMES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_NO_OBJECTS = frozenset(("int", "float", "pointer", "array"))
_MEMBERS = re.compile(r"[xyzw]")
_ATTRIBUTES = frozenset(("alignas", "__align__", "(", ")"))


def name_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Every use of a name, changed."""
    for first, last, sort in code.atoms():
        if not code.function_places[first]:
            continue
        if first == last:
            yield from _other_variables(code, first, sort)
        if sort == "int":
            yield from _grid_names(code, first, last)
            place = "elsewhere"
            if code.loop_of(first) is not None:
                begins = code.tokens.text(first - 1) == "="
                place = "at the begin of a loop" if begins else "in a loop"
            elif any(begin <= first and last <= end for begin, end in code.conditions):
                place = "in a condition"
            for number in ("0", "1"):
                yield code.replaced(first, last, number, f"number for a name {place}")
    yield from _exchanged(code)
    yield from _functions(code)
    yield from _members(code)


def _other_variables(code: KernelCode, position: int, sort: str) -> Iterator[SourceChange]:
    own = code.names.at(position)
    assert own is not None
    in_statement = _names_nearby(code, position)
    repeats = _repeats(code, position)
    is_of_object = code.tokens.text(position + 1) == "." and sort not in _NO_OBJECTS
    for item in code.visible(position, sort):
        if item.name == own.name:
            continue
        if is_of_object:
            yield code.replaced(position, position, item.name, "member of another object")
            continue
        if sort in ("pointer", "array"):
            kind = f"{sort} for another"
        elif repeats:
            kind = f"{'parameter' if item.is_parameter else 'name'} where its neighbour repeats"
        elif item.declaration == own.declaration:
            kind = "name of the same declaration"
        elif sort == "int" and (_begins(code, item, own) or _begins(code, own, item)):
            kind = "name of another begin"
        elif _are_alike(item.name, own.name):
            kind = "name that is alike"
        elif item.is_parameter and own.is_parameter:
            kind = "parameter for another"
        elif item.name in in_statement:
            kind = "name of the line"
        else:
            of_kernel = "parameter for a name" if item.is_parameter else "name for another"
            kind = f"{of_kernel} {_site(code, position)}"
        yield code.replaced(position, position, item.name, f"{kind}, {sort}")
    if sort == "array":
        for item in code.visible(position, "pointer"):
            yield code.replaced(position, position, item.name, "pointer for an array")


def _begins(code: KernelCode, one: DeclaredName, other: DeclaredName) -> bool:
    """Whether the first value of the other one is the one and something more."""
    place = other.position
    words = [code.tokens.text(place + away) for away in (1, 2, 3)] if place >= 0 else []
    return words in (["=", one.name, "+"], ["=", one.name, "-"])


def _repeats(code: KernelCode, position: int) -> bool:
    """Whether a name is a whole argument, and the one before or behind it as well."""
    tokens, name = code.tokens, code.tokens.text(position)
    before = tokens.text(position - 1) == "," and tokens.text(position - 2) == name
    behind = tokens.text(position + 1) == "," and tokens.text(position + 2) == name
    return (before and tokens.text(position + 1) in (",", ")")) or (
        behind and tokens.text(position - 1) in (",", "(")
    )


def _site(code: KernelCode, position: int) -> str:
    """Where a name stands, as far as it says how likely it is wrong."""
    before, behind = code.tokens.text(position - 1), code.tokens.text(position + 1)
    if before in ("/", "%"):
        return "as a divisor"
    if before == "[" and behind == "]":
        return "as an index"
    if code.loop_of(position) is not None:
        return "in a loop"
    if before in _COMPARED or behind in _COMPARED:
        return "compared"
    return "as a factor" if "*" in (before, behind) else "elsewhere"


@cache
def _are_alike(one: str, other: str) -> bool:
    """Whether two names share a part: block_row and block_column, key and key_head."""
    first, second = set(one.lower().split("_")), set(other.lower().split("_"))
    return bool(first & second) or one.rstrip("0123456789") == other.rstrip("0123456789")


def _names_nearby(code: KernelCode, position: int) -> set[str]:
    """The names in the same statement."""
    first, last = code.extents.statement(position)
    return {code.tokens.text(place) for place in range(first, last + 1)}


def _grid_names(code: KernelCode, first: int, last: int) -> Iterator[SourceChange]:
    tokens = code.tokens
    if first == last:
        for grid in ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y"):
            if grid in tokens.code:
                yield code.replaced(first, last, grid, "grid for a name")
        return
    name, axis = tokens.text(first), tokens.text(last)
    # what an axis that no launch has would do is what a change does that only switches off
    count = _axes(code.source[: code.offset], "block" if name in _OF_BLOCKS else "grid")
    for other in "xyz"[:count]:
        if other != axis:
            kind = "axis of the grid's size" if name == "gridDim" else "axis of the grid"
            yield code.replaced(last, last, other, kind)
    for grid in _GRID_NAMES:
        if grid != name:
            yield code.replaced(first, first, grid, "block for thread")
    for item in code.visible(first, "int"):
        yield code.replaced(first, last, item.name, "name for the grid")
    yield from _counted_elsewhere(code, first, last)


def _counted_elsewhere(code: KernelCode, first: int, last: int) -> Iterator[SourceChange]:
    """`blockIdx.x * ROWS` made `tile * ROWS`, as the function has it elsewhere."""
    tokens = code.tokens
    is_cast = tokens.text(first - 2) == "int" and tokens.partners.get(first - 1) == last + 1
    sign = last + 1 + is_cast  # behind blockIdx.x, or int(blockIdx.x)
    size = tokens.text(sign + 1)
    if tokens.text(sign) != "*" or tokens.kind(sign + 1) != "name":
        return
    for item in code.visible(first, "int"):
        if re.search(rf"\b{item.name} \* {size}\b", tokens.code):
            yield code.replaced(first, last, item.name, "name of a part for the grid")


@lru_cache(maxsize=64)
def _axes(header: str, name: str) -> int:
    """How many axes the grids or blocks of a plan have at most; 3 where its lists are not read."""
    counts = [len(entries_of(found[2])) for found in LISTS.finditer(header) if found[1] == name]
    return min(3, max(counts, default=3))


def _exchanged(code: KernelCode) -> Iterator[SourceChange]:
    """Each two variables of a statement, one in place of the other."""
    for first, last in code.statements:
        uses: dict[str, list[tuple[int, int]]] = {}
        sorts: dict[str, str] = {}
        for begin, end, sort in code.atoms_between(first, last):
            text = code.tokens.source(begin, end)
            uses.setdefault(text, []).append((begin, end))
            sorts[text] = sort
        names = sorted(uses)
        for place, one in enumerate(names):
            for other in names[place + 1 :]:
                if sorts[one] == sorts[other]:
                    pieces = [
                        *((*pair, other) for pair in uses[one]),
                        *((*pair, one) for pair in uses[other]),
                    ]
                    new = code.tokens.rewritten(first, last, pieces)
                    yield code.replaced(first, last, new, f"names exchanged, {sorts[one]}")


def _functions(code: KernelCode) -> Iterator[SourceChange]:
    own = own_functions(code)
    types = _own_types(code)
    for position, token in enumerate(code.tokens.tokens):
        if token.kind != "name" or is_grid_name(token.text):
            continue
        for family in _FAMILIES:
            if token.text in family:
                layout = ", layout" if token.text.endswith("_major") else ""
                for other in family:
                    if other != token.text:
                        kind = f"function of a family{layout}"
                        yield code.replaced(position, position, other, kind)
        if token.text in own and code.function_places[position]:
            for other in own:
                if other != token.text:
                    kind = "function that is alike" if _are_alike(other, token.text) else _FUNCTION
                    yield code.replaced(position, position, other, kind)
        if token.text in types and code.function_places[position]:
            for other in types:
                if other != token.text:
                    yield code.replaced(position, position, other, "type of the kernel")


def own_functions(code: KernelCode) -> list[str]:
    """The functions that the code defines, kernels left out."""
    tokens = code.tokens
    found = set()
    for place in range(len(tokens)):
        closing = tokens.partners.get(place + 1, -2)
        is_head = tokens.text(place + 1) == "(" and tokens.text(closing + 1) == "{"
        if tokens.kind(place) != "name" or not is_head or code.function_places[place]:
            continue
        first, _ = code.extents.statement(place)
        if "__global__" not in {tokens.text(item) for item in range(first, place)}:
            found.add(tokens.text(place))
    return sorted(found)


def _own_types(code: KernelCode) -> list[str]:
    """The types that the code names by `using`."""
    tokens = code.tokens
    return sorted(
        {tokens.text(place + 1) for place in range(len(tokens)) if tokens.text(place) == "using"}
    )


def _members(code: KernelCode) -> Iterator[SourceChange]:
    tokens = code.tokens
    for position in range(2, len(tokens)):
        is_member = tokens.text(position - 1) == "." and _MEMBERS.fullmatch(tokens.text(position))
        if is_member and not is_grid_name(tokens.text(position - 2)):
            for other in "xyzw":
                if other != tokens.text(position):
                    yield code.replaced(position, position, other, "member of a vector")
    yield from _members_of_types(code)


def _members_of_types(code: KernelCode) -> Iterator[SourceChange]:
    """The members of own types: rule.beta1 made rule.beta2."""
    tokens = code.tokens
    types = list(_declared_members(code))
    for position in range(2, len(tokens)):
        member = tokens.text(position)
        if tokens.text(position - 1) not in (".", "->") or not code.function_places[position]:
            continue
        for members in types:
            for other in members if member in members else ():
                if other != member:
                    alike = "that is alike" if _are_alike(other, member) else "of a type"
                    yield code.replaced(position, position, other, f"member {alike}")


def _declared_members(code: KernelCode) -> Iterator[list[str]]:
    """The names of the variables of each type that the code defines."""
    tokens = code.tokens
    for place in range(len(tokens)):
        if tokens.text(place) != "struct":
            continue
        opening = place + 1
        while tokens.text(opening) in _ATTRIBUTES or tokens.kind(opening) == "number":
            opening += 1  # struct alignas(16) Pair {
        opening += 1
        if tokens.text(opening) == "{" and opening in tokens.partners:
            yield [
                tokens.text(at)
                for at in range(opening + 2, tokens.partners[opening])
                if tokens.kind(at) == "name"
                and tokens.enclosing[at] == opening
                and tokens.text(at + 1) in (",", ";", "=", "[")
            ]
