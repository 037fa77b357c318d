"""One source with many changes in it, of which a number in global memory chooses one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evoengine.evaluate.repair.switched_change import Form, SwitchedChange

SELECT = "evo_select"  # the kernel that sets the number
_PRELUDE = """
extern "C" { __device__ int evo_number; }
template <typename T> struct evo_plain { using type = T; };
template <typename T> struct evo_plain<T&> { using type = T; };
template <typename T> struct evo_plain<const T&> { using type = T; };
template <typename T> struct evo_plain<const T> { using type = T; };
static __device__ __forceinline__ bool evo_is(int number) {
    int chosen;
    asm("ld.global.s32 %0, [evo_number];" : "=r"(chosen));
    return chosen == number;
}
extern "C" __global__ void evo_select(int number) { evo_number = number; }
"""
# Requests to unroll a loop, or not to: two of them at one loop do not compile.
_REQUEST = r"(?:GCC[ \t]+|clang[ \t]+loop[ \t]+)?(?:no)?unroll"
_PRAGMA = re.compile(rf"^[ \t]*#[ \t]*pragma[ \t]+{_REQUEST}[^\n]*$", re.MULTILINE)
_OPERATOR = re.compile(rf'_Pragma[ \t]*\([ \t]*"[ \t]*{_REQUEST}[^"\n]*"[ \t]*\)')
_LOOP = re.compile(r"(?<![\w.])for\s*\(")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[^\n]*$", re.MULTILINE)


@dataclass(frozen=True)
class SwitchedSource:
    """The text, and for each of its lines the numbers of the changes that a compiler's message
    about the line may be about.
    """

    text: str
    line_numbers: tuple[tuple[int, ...], ...]


class _Writer:
    """Writes the source line by line, each with the numbers of the changes there."""

    def __init__(self, source: str, unrolls: bool) -> None:
        self.source = source
        self.lines: list[tuple[str, tuple[int, ...]]] = [("", ())]
        self._unrolls = unrolls

    def write_source(self, start: int, end: int) -> None:
        """What the source has there."""
        text = self.source[start:end]
        self.write(text if self._unrolls else plain_loops(text))

    def write(self, text: str) -> None:
        """More of the last line, and lines of no change."""
        first, *others = text.split("\n")
        last, numbers = self.lines[-1]
        self.lines[-1] = last + first, numbers
        self.lines += [(line, ()) for line in others]

    def write_alternative(self, text: str, number: int) -> None:
        """On a line of its own, so that a compiler's message says which one it is about."""
        self.lines.append((" ".join(text.split("\n")), (number,)))

    def begin_line(self, numbers: tuple[int, ...]) -> None:
        """A new line, whose faults may be those of any of `numbers`."""
        self.lines.append(("", numbers))


def switched_source(
    source: str,
    header_end: int,
    changes: Sequence[tuple[int, SwitchedChange]],
    unrolls: bool = False,
) -> SwitchedSource:
    """`source` with all `changes`, each with its number (from 1). Loops are not unrolled, because
    their code would take long to compile, unless it `unrolls`: then they stay as they are.
    """
    writer = _Writer(source, unrolls)
    includes = list(_INCLUDE.finditer(source))
    after = includes[-1].end() if includes else header_end
    writer.write(source[:header_end])
    _write(writer, header_end, max(after, header_end), [])
    writer.write(_PRELUDE)
    _write(writer, max(after, header_end), len(source), list(changes))
    text = "\n".join(line for line, _ in writer.lines)
    return SwitchedSource(text, tuple(number for _, number in writer.lines))


def plain_loops(code: str) -> str:
    """`code` without requests to unroll loops, line by line the same."""
    return _LOOP.sub('_Pragma("unroll 1") for (', _OPERATOR.sub("", _PRAGMA.sub("", code)))


def _write(
    writer: _Writer, start: int, end: int, changes: list[tuple[int, SwitchedChange]]
) -> None:
    """The source from `start` to `end` with the changes inside of it."""
    place = start
    for group in _outermost(changes):
        first = group[0][1]
        writer.write_source(place, first.start)
        own = [item for item in group if (item[1].start, item[1].end) == (first.start, first.end)]
        inner = [item for item in group if item not in own]
        _write_group(writer, first, own, inner)
        place = first.end
    writer.write_source(place, end)


def _outermost(
    changes: list[tuple[int, SwitchedChange]],
) -> list[list[tuple[int, SwitchedChange]]]:
    """The changes in groups that lie in one another, the outermost first, in order of place. Raises
    ValueError where two have only a part in common, because one of them would be left out unseen.
    """
    ordered = sorted(changes, key=lambda item: (item[1].start, -item[1].end, item[1].form))
    groups: list[list[tuple[int, SwitchedChange]]] = []
    for item in ordered:
        start, end = item[1].start, item[1].end
        outer = groups[-1][0][1] if groups else None
        if outer is not None and (
            (start < outer.end and end <= outer.end) or (start, end) == (outer.start, outer.end)
        ):
            groups[-1].append(item)
        elif outer is None or start >= outer.end:
            groups.append([item])
        else:
            raise ValueError(f"change {item[0]} and another one have only a part in common")
    return groups


def _write_group(
    writer: _Writer,
    outer: SwitchedChange,
    own: list[tuple[int, SwitchedChange]],
    inner: list[tuple[int, SwitchedChange]],
) -> None:
    old = writer.source[outer.start : outer.end]
    insertions = [item for item in own if item[1].form is Form.insertion]
    numbers = tuple(number for number, _ in own)
    if insertions:
        for number, item in insertions:
            writer.write_alternative(f"if (evo_is({number})) {{ {item.new} }}", number)
        writer.begin_line(())
        return
    is_statement = outer.form is Form.statement
    writer.write("{ " if is_statement else "(")
    for number, item in own:
        writer.write_alternative(_alternative(item, number, old), number)
    writer.begin_line(numbers)
    writer.write("{ " if is_statement else "(")
    _write(writer, outer.start, outer.end, inner)
    writer.write(" } }" if is_statement else "))")
    writer.begin_line(())


def _alternative(item: SwitchedChange, number: int, old: str) -> str:
    if item.form is Form.statement:
        return f"if (evo_is({number})) {{ {item.new} }} else"
    if item.form is Form.place:
        return f"evo_is({number}) ? ({item.new}) :"
    plain = " ".join(old.split("\n"))
    cast = f"static_cast<typename evo_plain<decltype(({plain}))>::type>"
    return f"evo_is({number}) ? {cast}({item.new}) :"
