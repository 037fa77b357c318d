"""Launches missing from a plan or in the wrong order, and what scratch holds before them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import combinations, pairwise, product

from evoengine.evaluate.repair.kinds.header_changes import entries_of
from evoengine.evaluate.repair.source_change import SourceChange

_KERNEL = re.compile(
    r"__global__[^;{}()]*?(?:__launch_bounds__\([^()]*\)\s*)?\b(\w+)\s*\(([^)]*)\)"
)
_LAUNCH = re.compile(r"^([ \t]*)- kernel:[^\n]*\n(?:\1[ \t]+[^\n]*\n)*", re.MULTILINE)
_NAMED = re.compile(r"kernel:\s*\"?(\w+)")
_PART = re.compile(r"\b(grid|block|args):[ \t]*(\[[^\n]*\])")
_PARAMETERS = re.compile(r"(\w+)\s*(?:,|$)")
_SCRATCH = re.compile(r"\{[^{}\n]*\bshape:[^{}\n]*\}")
_INIT = re.compile(r",?\s*init:\s*[^,{}\n]+")
_INITIAL = ("0", "-inf", "inf")


def launch_changes(header: str, code: str) -> Iterator[SourceChange]:
    """Changes of the launches and the scratch of a plan, whose kernels are in `code`."""
    launches = list(_LAUNCH.finditer(header))
    for one, other in pairwise(launches):
        if one.end() == other.start():
            new = f"{other[0]}{one[0]}"
            yield SourceChange(one.start(), other.end(), new, "launches exchanged")
    if launches:
        yield from _missing(launches, code)
    for buffer in _SCRATCH.finditer(header):
        yield from _initial(buffer)


def _missing(launches: list[re.Match[str]], code: str) -> Iterator[SourceChange]:
    """A kernel that nothing launches, launched before or behind the others, with the buffers that
    others have under the names of its parameters.
    """
    parts: dict[str, list[str]] = {"grid": ["[1]"], "block": ["[32]"], "args": []}
    for launch in launches:
        for found in _PART.finditer(launch[0]):
            lists = [found[2]]
            if found[1] == "grid" and (entries := entries_of(found[2][1:-1])):
                lists.append(f"[{found[2][1:-1][slice(*entries[0])]}]")  # without its other axes
            parts[found[1]] += [text for text in lists if text not in parts[found[1]]]
    given = {word for args in parts["args"] for word in re.findall(r"\w+", args)}
    launched = {found[1] for launch in launches for found in _NAMED.finditer(launch[0])}
    places, pad = (launches[0].start(), launches[-1].end()), launches[0][1]
    for kernel in _KERNEL.finditer(code):
        if kernel[1] in launched:
            continue
        names = _PARAMETERS.findall(kernel[2])
        for args in _arguments(names, given):
            for place, grid, block in product(places, parts["grid"], parts["block"]):
                new = (
                    f"{pad}- kernel: {kernel[1]}\n{pad}  grid: {grid}\n{pad}  block: {block}\n"
                    f"{pad}  args: [{', '.join(args)}]\n"
                )
                yield SourceChange(place, place, new, "launch missing")


def _arguments(names: Sequence[str], given: Set[str]) -> Iterator[list[str]]:
    """Arguments for parameters of these names: what is given to others under them; one that has
    another name is a size, or the product of two.
    """
    unknown = [name for name in names if name not in given]
    if not names or len(unknown) > 1:
        return
    if not unknown:
        yield list(names)
        return
    sizes = sorted(name for name in given if name.isupper())
    products = (f"{one}*{other}" for one, other in combinations(sizes, 2))
    for size in (*sizes, *products):
        yield [size if name in unknown else name for name in names]


def _initial(scratch: re.Match[str]) -> Iterator[SourceChange]:
    """What every element of a buffer holds before the first launch: another number, or a number
    where it is not filled.
    """
    found = _INIT.search(scratch[0])
    for value in _INITIAL:
        new = f", init: {value}"
        if found is None:
            yield SourceChange(scratch.end() - 1, scratch.end() - 1, new, "scratch not filled")
        elif found[0].split(":")[1].strip() != value:
            start = scratch.start() + found.start()
            yield SourceChange(start, start + len(found[0]), new, "scratch filled with another")
