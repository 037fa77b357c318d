"""What a block, a thread or a step has for its own: its share of the numbers, its part's end, the
number of its tile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.first_value_changes import first_values
from evoengine.evaluate.repair.kinds.header_changes import LISTS, entries_of
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_DIVIDED = re.compile(r"ceil_div\((?:[^()]|\([^()]*\))+?, *(\w+)\)")
_MOST = 4
_CONVERTED = re.compile(r"\b(?:__nv_fp8_\w+|__nv_cvt_\w+|__float2int_\w+|rintf)\(")

Range = tuple[int, int]


def share_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Shares and ends of a block or a thread."""
    yield from _limits(code)
    yield from _own_end(code)
    yield from _behind_last_row(code)
    yield from _loop_steps(code)
    yield from _of_the_plan(code)
    yield from _elements(code)
    yield from _stored(code)
    yield from _units(code)
    yield from _tables(code)
    yield from _of_both_axes(code)


def _of_both_axes(code: KernelCode) -> Iterator[SourceChange]:
    """`counters[blockIdx.x]` made `counters[tile]`, where `tile` is made of both axes."""
    tokens = code.tokens
    numbers = [
        item for item, value in first_values(code) if tokens.source(*value).count("blockIdx") > 1
    ]
    for _, first, last in code.indices:
        if tokens.text(first) == "blockIdx" and last == first + 2:
            for item in numbers:
                if item.position < first <= item.last:
                    yield code.replaced(first, last, item.name, "number of a tile for its column")


def _tables(code: KernelCode) -> Iterator[SourceChange]:
    """`table[page]` made `table[sequence * pages + page]`: a table has a row for each block."""
    tokens = code.tokens
    numbers = [
        item
        for item, value in first_values(code)
        if item.sort == "int" and "blockIdx" in tokens.source(*value)
    ]
    for array, first, last in code.indices:
        table = code.names.at(array)
        if table is None or not table.is_parameter or table.sort != "pointer" or first != last:
            continue
        own = code.names.at(first) if tokens.kind(first) == "name" else None
        is_counted = own is not None and code.loop_of(own.position) is not None
        if not is_counted or "int" not in code.type_words(table):
            continue
        sizes = [it for it in code.visible(first, "int") if it.is_parameter]
        for item in [it for it in numbers if it.position < first <= it.last][:_MOST]:
            for size in sizes[:_MOST]:
                new = f"{item.name} * {size.name} + {tokens.text(first)}"
                yield code.replaced(first, last, new, "row of a table missing")


def _limits(code: KernelCode) -> Iterator[SourceChange]:
    """`count = 256` made `min(256, S - first)`, where `first = blockIdx.x * 256`; and `min(256,
    tiles - group * 256)` where the first one has no name.
    """
    values = first_values(code)
    texts = {item.name: code.tokens.source(*value) for item, value in values}
    for item, value in values:
        own = texts[item.name]
        if item.sort != "int" or value[0] != value[1] or not re.fullmatch(r"\d+|[A-Z]\w*", own):
            continue
        begins = [name for name, text in texts.items() if re.search(rf"\* {own}$", text)]
        visible = code.visible(value[0], "int")
        begins = [name for name in begins if name in {it.name for it in visible}]
        names = {it.name for it in visible if not (it.is_parameter or it.name.isupper())}
        counted = dict.fromkeys(re.findall(rf"\b(\w+) \* {own}\b", code.tokens.code))
        begins += [f"{name} * {own}" for name in counted if name in names]
        for size in [it for it in visible if not it.name.isupper() or it.is_parameter]:
            for begin in begins if size.name != item.name and size.name not in begins else ():
                new = f"min({own}, {size.name} - {begin})"
                of_all = "" if size.is_parameter else ", of what is worked out"
                yield code.replaced(*value, new, f"count of the last part{of_all}")


def _own_end(code: KernelCode) -> Iterator[SourceChange]:
    """`key < S` made `key < end` in a loop that goes to `end`, and `key = start + ...`."""
    tokens = code.tokens
    loops = []
    for place, begins, ends, closing in code.counted_loops():
        if ends - begins == 4 and tokens.text(begins + 2) == "<":
            loops.append((place, code.body(closing)[1], tokens.text(begins + 3)))
    for begin, end, bound in loops:
        item = next((it for it in code.visible(begin, "int") if it.name == bound), None)
        if item is None or item.is_parameter or item.name.isupper():
            continue
        for first, last in code.conditions:
            if not begin < first <= last <= end or code.loop_of(first) is not None:
                continue
            for place in range(first + 1, last + 1):
                own = code.names.at(place) if tokens.kind(place) == "name" else None
                is_size = own is not None and own.is_parameter and own.sort == "int"
                if is_size and tokens.text(place - 1) in ("<", ">="):
                    yield code.replaced(place, place, bound, "end of the loop for a size")


def _behind_last_row(code: KernelCode) -> Iterator[SourceChange]:
    """`min(S, int(blockIdx.x) * ROWS)` made `int(blockIdx.x + 1) * ROWS`: the end is behind the
    last row of the block.
    """
    tokens, kind = code.tokens, "end behind the last row"
    for item, value in first_values(code):
        size = tokens.text(value[1])
        of_block = re.fullmatch(rf"blockIdx\.[xyz] \* {re.escape(size)}", tokens.source(*value))
        for place in range(value[1], item.last) if of_block else ():
            around = tokens.enclosing[place]
            in_limit = around > 0 and tokens.text(around - 1) in ("min", "max")
            is_whole = tokens.text(place - 1) in ("(", ",") and tokens.text(place + 1) in (")", ",")
            if in_limit and is_whole and code.names.at(place) == item:
                yield code.inserted(place, f" + {size}", kind)
    for place in range(2, len(tokens)):
        if tokens.text(place) != "blockIdx" or tokens.text(place + 3) not in (")", "*"):
            continue
        is_cast = tokens.text(place - 1) == "(" and tokens.text(place - 2) == "int"
        product = tokens.text(place + 4) if tokens.text(place + 3) == ")" else "*"
        around = tokens.enclosing[place - 2 if is_cast else place]
        in_limit = around > 0 and tokens.text(around - 1) in ("min", "max")
        if product != "*" or not in_limit:
            continue
        own = tokens.source(place, place + 2)
        new = f"{own} + 1" if is_cast else f"({own} + 1)"
        yield code.replaced(place, place + 2, new, kind)


def _loop_steps(code: KernelCode) -> Iterator[SourceChange]:
    """`for (s = warp; s < n; ++s)` made `s += WARPS`: the loop begins with the own number."""
    tokens = code.tokens
    for place, begins, ends, closing in code.counted_loops():
        if tokens.text(begins - 2) != "=":
            continue
        own, name = tokens.text(begins - 1), tokens.text(begins - 3)
        step = tokens.source(ends + 1, closing - 1)
        if step not in (f"++{name}", f"{name}++", f"{name} += 1") or not own.isidentifier():
            continue
        sizes = [it for it in code.sizes(place) if it.lower().startswith(own.lower())]
        sizes += ["32"] if "lane" in own else []
        for size in sizes:
            new = f"{name} += {size}"
            yield code.replaced(ends + 1, closing - 1, new, "step by those that share a loop")


def _of_the_plan(code: KernelCode) -> Iterator[SourceChange]:
    """`blockIdx.x * 256` made `blockIdx.x * 1024`, where the grid has ceil_div(N, 1024) blocks."""
    tokens = code.tokens
    shares: dict[str, dict[str, None]] = {}
    for found in LISTS.finditer(code.source[: code.offset]):
        if found[1] == "grid":
            for (begin, end), axis in zip(entries_of(found[2]), "xyz", strict=False):
                sizes = _DIVIDED.findall(found[2][begin:end])
                shares.setdefault(axis, {}).update(dict.fromkeys(sizes))
    for place in range(len(tokens)):
        if tokens.text(place) != "blockIdx":
            continue
        at = place + 4 if tokens.text(place + 3) != ")" else place + 5
        own = tokens.text(at)
        if tokens.text(at - 1) != "*" or not (own.isdigit() or own.isupper()):
            continue
        for size in shares.get(tokens.text(place + 2), ()):
            is_known = size.isdigit() or size in code.sizes(at)
            is_same = re.search(rf"\b{own} = {size}\b|\b{size} = {own}\b", tokens.code)
            if size != own and is_known and not is_same:
                yield code.replaced(at, at, size, "share of a block in the grid")


def _elements(code: KernelCode) -> Iterator[SourceChange]:
    """`x[at + i]` made `x[at * 4 + i]`, where i counts to 4: as many belong to each."""
    tokens = code.tokens
    counts = dict(re.findall(r"for \(int (\w+) = 0; \1 < (\d+); \+\+\1\)", tokens.code))
    for place in range(1, len(tokens)):
        name = tokens.text(place + 1)
        if tokens.text(place) != "+" or name not in counts or not code.in_index(place):
            continue
        own = code.names.at(place - 1) if tokens.kind(place - 1) == "name" else None
        is_alone = tokens.text(place - 2) in ("[", "(", "+") and tokens.text(place + 2) in (
            "]",
            ")",
        )
        if own is not None and own.sort == "int" and is_alone and not own.is_parameter:
            new = f"{own.name} * {counts[name]}"
            yield code.replaced(place - 1, place - 1, new, "as many of each")


def _stored(code: KernelCode) -> Iterator[SourceChange]:
    """`sum[i] = 0.0f` behind `out[n] = f(sum[i])` in a loop over tiles that goes on adding."""
    tokens = code.tokens
    blocks = StatementBlocks(code)
    loops = list(blocks.loops())
    for first, last in code.statements:
        end = code.extents.postfix(first)
        if tokens.text(end + 1) != "=" or tokens.text(end) != "]" or code.names.at(first) is None:
            continue
        for array, _, _ in code.indices:
            own = code.names.at(array)
            stop = code.extents.postfix(array)
            if not end < array < last or own is None or own.sort != "array":
                continue
            around = [lp for lp in loops if own.position < lp.place < first <= lp.last]
            is_kept = any(code.function_of(lp.place) == code.function_of(first) for lp in around)
            text = tokens.source(array, stop)
            is_set = re.search(rf"\b{own.name}(\[[^\]]*\])+ = (?!\{{)", tokens.code)
            if is_kept and not is_set and not blocks.is_shared(own):
                yield code.inserted(last, f" {text} = 0.0f;", "sum not set back behind its store")


def _units(code: KernelCode) -> Iterator[SourceChange]:
    """`T(value / unit)` made `T(value / unit) * unit`, and `T(value * inverse)` likewise."""
    tokens = code.tokens
    for first, last in code.statements:
        text = tokens.source(first, last)
        found = re.search(r" / (\w+)\)", text)
        if found is None or not _CONVERTED.search(text) or tokens.text(last) != ";":
            continue
        if f"* {found[1]}" not in text and "=" in text:
            yield code.inserted(last - 1, f" * {found[1]}", "unit not multiplied again")
