"""PTX whose blocks stand in another order, as compilers may lay them out, and that ends in a loop
which lanes leave by ending.
"""

from __future__ import annotations

import itertools
import random
import re

_LABEL = re.compile(r"(\$?\w+):")
_ENDS = re.compile(r"(bra|ret|exit|trap)\b")  # without a guard
_DECLARES = re.compile(r"\.(reg|shared|local|param)\b")


def in_another_order(text: str, seed: int) -> str:
    """The PTX of one kernel with its blocks in an order drawn by `seed`; what fell through to the
    next block jumps there. Each instruction and each label of `text` has a line of its own.
    """
    head, body = _head_and_body(text)
    blocks: list[tuple[str, list[str]]] = [("", [])]
    depth = 0  # of the scopes of calls, which have no labels
    for line in body:
        depth += line.count("{") - line.count("}") if line.strip() in ("{", "}") else 0
        label = _LABEL.fullmatch(line.strip())
        if label:
            assert depth == 0
            blocks.append((label[1], []))
        else:
            blocks[-1][1].append(line)
    for (_, lines), (following, _) in itertools.pairwise(blocks):
        if not lines or not _ENDS.match(lines[-1].strip()):
            lines.append(f"    bra {following};")
    first, *others = blocks
    random.Random(seed).shuffle(others)  # noqa: S311 - the same order every time is wanted
    lines = [*head, *first[1]]
    for label, block in others:
        lines += [f"{label}:", *block]
    return "\n".join([*lines, "}"])


def ending_in_a_loop(text: str) -> str:
    """The PTX of one kernel whose last instruction, a `ret`, stands in a loop: all lanes take it,
    but no path leads to the end of the function.
    """
    head, body = _head_and_body(text)
    assert body[-1].strip() == "ret;"
    ends = ["    setp.eq.u32 %last, %tid.x, %tid.x;", "LAST:", "    @%last ret;", "    bra LAST;"]
    return "\n".join([*head, "    .reg .pred %last;", *body[:-1], *ends, "}"])


def _head_and_body(text: str) -> tuple[list[str], list[str]]:
    """The lines up to the kernel's last declaration, and its instructions and labels."""
    lines = [line for line in text.rstrip().splitlines() if line.strip()]
    begin = next(number for number, line in enumerate(lines) if ".entry" in line)
    first = next(
        number
        for number in range(begin + 1, len(lines))
        if lines[number].strip() != "{" and not _DECLARES.match(lines[number].strip())
    )
    assert lines[-1] == "}"
    return lines[:first], lines[first:-1]
