"""Places in tiles: the pitch of another tile, rows for columns, padding, parts of a thread."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.first_value_changes import first_values
from evoengine.evaluate.repair.kinds.moved_changes import last_summand
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

ROW_LOOP = re.compile(r"for \(int (\w+) = (\w+(?:\.x)?); \1 < ([^;]+); \1 \+= ([^)]+)\)")
_LONGEST = 3  # tokens of a coordinate
_MOST_PARTS = 4

Range = tuple[int, int]


def tile_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Every place in a tile, in another order or with another pitch."""
    yield from _pitches(code)
    yield from _turned(code)
    yield from _read_as_written(code)
    yield from _in_turns(code)
    yield from _interleaved(code)
    yield from _rows(code)
    yield from _flat(code)
    yield from _halves(code)
    yield from _neighbours(code)


def _dimensions(code: KernelCode, item: DeclaredName) -> list[Range]:
    """What stands in the brackets with which an array is declared."""
    tokens, place, found = code.tokens, item.position + 1, []
    while tokens.text(place) == "[" and place in tokens.partners:
        end = tokens.partners[place]
        if end > place + 1:
            found.append((place + 1, end - 1))
        place = end + 1
    return found


def _pitches(code: KernelCode) -> Iterator[SourceChange]:
    """`right[now] + row * A_PITCH` made `row * B_PITCH`, where `right[2][ROWS * B_PITCH]`."""
    tokens = code.tokens
    sizes: dict[str, tuple[set[str], str]] = {}
    for item in code.names.all:
        found = _dimensions(code, item) if item.sort == "array" and item.position >= 0 else []
        own = {tokens.text(at) for first, last in found for at in range(first, last + 1)}
        own = {text for text in own if text.isupper()}
        pitch = tokens.text(found[-1][1]) if found else ""
        if pitch in own:
            sizes[item.name] = own, pitch
    for first, last in code.statements:
        current: tuple[set[str], str] | None = None
        for place in range(first, last):
            text = tokens.text(place)
            named = code.names.at(place) if tokens.kind(place) == "name" else None
            if named is not None and named.sort in ("array", "pointer"):
                current = sizes.get(text)
            is_size = tokens.text(place - 1) == "*" and text.isupper() and text.isidentifier()
            if current is not None and is_size and text not in current[0]:
                yield code.replaced(place, place, current[1], "pitch of another array")


def _turned(code: KernelCode) -> Iterator[SourceChange]:
    """`tile[r * PITCH + c]` made `tile[c * PITCH + r]`."""
    tokens, extents = code.tokens, code.extents
    for array, first, last in code.indices:
        own = code.names.at(array)
        if own is None or own.sort != "array":
            continue
        for place in range(first, last + 1):
            if tokens.text(place) != "+" or not extents.is_binary(place):
                continue
            left, right = extents.operand_before(place), extents.operand_behind(place)
            row = last_summand(code, left), left[1] - 2
            is_row = row[0] <= row[1] <= row[0] + _LONGEST and tokens.text(left[1] - 1) == "*"
            is_size = tokens.text(left[1]).isupper() or tokens.text(left[1]).isdigit()
            if not is_row or not is_size or right[1] - right[0] > _LONGEST:
                continue
            if tokens.has_any(*right, {"*"}) or row[0] < first:
                continue
            one, other = tokens.source(*row), tokens.source(*right)
            sized = other if right[0] == right[1] else f"({other})"
            new = f"{sized} * {tokens.text(left[1])} + {one}"
            yield code.replaced(row[0], right[1], new, "row and column of a tile exchanged")


def _read_as_written(code: KernelCode) -> Iterator[SourceChange]:
    """`out[...] = tile[r][x]` made `tile[x][r]`, where the tile was written as `tile[r][x] = ...`:
    a tile that is read as it was written transposes nothing.
    """
    tokens = code.tokens
    blocks = StatementBlocks(code)
    for item in code.names.all:
        if item.sort != "array" or not blocks.is_shared(item):
            continue
        found = re.finditer(rf"\b{item.name}\[([\w.]+)\]\[([\w.]+)\]", tokens.code)
        uses = [use for use in found if use[1] != use[2]]
        written = {use[0] for use in uses if re.match(r" = ", tokens.code[use.end() :])}
        for use in uses:
            if use[0] not in written or re.match(r" [-+*/]?= ", tokens.code[use.end() :]):
                continue
            span = use.start() + code.offset, use.end() + code.offset
            new = f"{item.name}[{use[2]}][{use[1]}]"
            yield SourceChange(*span, new, "tile read as it was written")


def _in_turns(code: KernelCode) -> Iterator[SourceChange]:
    """`c * 32 + lane` made `lane * OWN + c`, where `OWN = D / 32`, and the other way round: a lane
    has neighbours, or every 32nd column.
    """
    kind = "columns in turns or together"
    code_text = code.tokens.code
    for name, number in dict.fromkeys(re.findall(r"\b([A-Z]\w*) = [A-Z]\w* / (\d+)\b", code_text)):
        for one, other in ((name, number), (number, name)):
            for found in re.finditer(rf"\b(\w+) \* {one} \+ (\w+)\b(?! *[*/%.(])", code_text):
                if not found[2].isdigit():
                    span = found.start() + code.offset, found.end() + code.offset
                    yield SourceChange(*span, f"{found[2]} * {other} + {found[1]}", kind)


def _interleaved(code: KernelCode) -> Iterator[SourceChange]:
    """`tile[x * 4 + i]` made `tile[x + 16 * i]`, as other indices of the kernel are."""
    tokens, kind = code.tokens, "columns in turns or together"
    turns = Counter(re.findall(r"\b\w+ \+ (\d+) \* \w+\b", tokens.code)).most_common(2)
    groups = Counter(re.findall(r"\b\w+ \* (\d+) \+ \w+\b", tokens.code)).most_common(2)
    for _, first, last in code.indices:
        text = tokens.source(first, last)
        for found in re.finditer(r"(?<![\w*] )\b(\w+) \* (\d+) \+ (\w+)$", text):
            for number, _ in turns:
                new = f"{text[: found.start()]}{found[1]} + {number} * {found[3]}"
                yield code.replaced(first, last, new, kind)
        for found in re.finditer(r"(?<![\w*] )\b(\w+) \+ (\d+) \* (\w+)$", text):
            for number, _ in groups:
                new = f"{text[: found.start()]}{found[1]} * {number} + {found[3]}"
                yield code.replaced(first, last, new, kind)


def _rows(code: KernelCode) -> Iterator[SourceChange]:
    """`tile[column]` made `tile[d * PITCH + column]` in a loop of d, where `tile[ROWS * PITCH]`."""
    tokens = code.tokens
    pitches: dict[str, str] = {}
    for item in code.names.all:
        found = _dimensions(code, item) if item.sort == "array" and item.position >= 0 else []
        if found and tokens.text(found[-1][1] - 1) == "*":
            pitches[item.name] = tokens.text(found[-1][1])
    for array, first, last in code.indices:
        pitch = pitches.get(tokens.text(array), "")
        own = code.names.at(array)
        is_whole = tokens.text(last + 2) != "[" and own is not None and own.sort == "array"
        if not pitch or not is_whole or pitch in tokens.source(first, last):
            continue
        used = {tokens.text(at) for at in range(first, last + 1)}
        loops = [it for it in code.visible(first, "int") if code.loop_of(it.position) is not None]
        for item in [it for it in loops if it.name not in used][:_MOST_PARTS]:
            new = f"{item.name} * {pitch} + {tokens.source(first, last)}"
            yield code.replaced(first, last, new, "row of a tile missing")


def _flat(code: KernelCode) -> Iterator[SourceChange]:
    """`sums[i]` made `sums[i / D * PITCH + i % D]` in a loop over all elements of rows of D."""
    tokens = code.tokens
    loops = {found[1]: found[3] for found in ROW_LOOP.finditer(tokens.code)}
    for array, first, last in code.indices:
        name = tokens.text(first)
        if first != last or name not in loops or tokens.text(array - 1) == "&":
            continue
        own = re.escape(tokens.text(array))
        pitches = Counter(re.findall(rf"\b{own}(?:\[| \+ )[^;\]]*?\* ([A-Z]\w*)", tokens.code))
        statement = tokens.source(*code.extents.statement(array))
        lengths = [*re.findall(rf"\b{name} [/%] (\w+)", statement), loops[name].split(" * ")[-1]]
        for pitch, _ in pitches.most_common(2):
            for length in dict.fromkeys(text for text in lengths if text.isidentifier()):
                if length != pitch:
                    new = f"{name} / {length} * {pitch} + {name} % {length}"
                    yield code.replaced(first, last, new, "flat index of padded rows")


def _halves(code: KernelCode) -> Iterator[SourceChange]:
    """`row = y + i` made `y + i % 4 + i / 4 * 64`: a thread's second part lies further on."""
    tokens = code.tokens
    parts = dict.fromkeys(re.findall(r"/ (\d+) \* (\d+)\b", tokens.code))
    for item, value in first_values(code):
        name = tokens.text(value[1])
        is_last = tokens.text(value[1] - 1) == "+" and item.sort == "int"
        own = code.names.at(value[1]) if is_last and tokens.kind(value[1]) == "name" else None
        if own is None or code.loop_of(own.position) is None:
            continue
        for count, step in list(parts)[:_MOST_PARTS]:
            new = f"{name} % {count} + {name} / {count} * {step}"
            yield code.replaced(value[1], value[1], new, "second part of a thread's own")


def _neighbours(code: KernelCode) -> Iterator[SourceChange]:
    """value[0], value[1], value[8] made value[0], value[PITCH], value[8 * PITCH]: neighbours in a
    column, not in a row; and back.
    """
    tokens, kind = code.tokens, "neighbours along the other axis"
    for first, last in code.statements:
        uses: dict[str, list[Range]] = {}
        for array, begin, end in code.indices:
            if first <= array <= last:
                uses.setdefault(tokens.text(array), []).append((begin, end))
        for spots in uses.values():
            texts = [tokens.source(*spot) for spot in spots]
            if len(set(texts)) < 2:
                continue
            if all(text.isdigit() for text in texts):
                near = [name for name in code.sizes(first) if "PITCH" in name or "LD" in name]
                for pitch in near[:2]:
                    yield together(_scaled(code, spots, pitch), kind)
                continue
            names = {text for text in texts if re.fullmatch(r"[A-Z]\w*", text)}
            names |= {
                found[1] for text in texts if (found := re.match(r"\d+ \* ([A-Z]\w*)$", text))
            }
            if len(names) == 1 and all(re.fullmatch(r"\d+|(\d+ \* )?[A-Z]\w*", it) for it in texts):
                name = names.pop()
                pieces = [
                    code.replaced(*spot, "1" if text == name else text.split(" ")[0], "")
                    for spot, text in zip(spots, texts, strict=True)
                    if name in text
                ]
                yield together(pieces, kind)


def _scaled(code: KernelCode, spots: list[Range], pitch: str) -> list[SourceChange]:
    found = []
    for spot in spots:
        text = code.tokens.source(*spot)
        if text != "0":
            found.append(code.replaced(*spot, pitch if text == "1" else f"{text} * {pitch}", ""))
    return found
