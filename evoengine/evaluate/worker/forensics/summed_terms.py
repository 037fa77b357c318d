"""Which terms of a sum a wrong kernel adds: not the last, half of each warp, some of them twice."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
ENDS = (2, 4, 8, 16, 32, 64)
SPLITS = (2, 3, 4, 5, 6, 7, 8, 16)
# (place in the sum, number of terms) -> how often each term is added
Times = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class TermChoice:
    """How often a wrong sum adds each of its terms; `words` follow "the sum"."""

    words: str
    times: Times
    weight: float = 1.0


def term_choices(tiles: Sequence[int], noun: str) -> Iterator[TermChoice]:
    """The choices, likelier ones first. A term is called `noun`: "product", "row", "element"."""
    many = f"{noun}s"
    yield TermChoice(f"leaves out the last {noun} (off by one)", lambda at, n: at < n - 1)
    yield TermChoice(f"leaves out the first {noun} (off by one)", lambda at, n: at > 0)
    for size in dict.fromkeys((*ENDS, *tiles)):
        yield TermChoice(
            f"leaves out the last {many} beyond a multiple of {size} (the remainder)",
            lambda at, n, s=size: at < n // s * s,  # type: ignore[misc]
        )
    yield from _parts(many)
    for parts, whole in itertools.product(SPLITS, (1, 2, 8)):
        yield TermChoice(
            f"leaves out the last {many}, as {parts} parts (splits) whose length is rounded down to"
            f" {f'a multiple of {whole}' if whole > 1 else 'a whole number'} do",
            lambda at, n, p=parts, w=whole: at < int(n) // p // w * w * p,  # type: ignore[misc]
        )
    for size in dict.fromkeys((*tiles, *ENDS, 128, 256)):
        yield TermChoice(f"leaves out the last {size} {many}", lambda at, n, s=size: at < n - s)  # type: ignore[misc]
        yield TermChoice(f"leaves out the first {size} {many}", lambda at, n, s=size: at >= s)  # type: ignore[misc]
        yield TermChoice(
            f"adds the first {size} {many} only",
            lambda at, n, s=size: at < s,  # type: ignore[misc]
            0.99,
        )
    for size in dict.fromkeys((*tiles, 16, 32, 64)):
        yield TermChoice(
            f"adds the last tile of {size} {many} (or its rest) only, as sums that are set to zero"
            " in every tile do: what earlier tiles added is lost",
            lambda at, n, s=size: at >= (n - 1) // s * s,  # type: ignore[misc]
        )
    yield from _repeated(tiles, noun)
    yield from _exchanged(many)
    yield from _overlapping(noun)
    yield from _counted_again(tiles, noun)


def _exchanged(many: str) -> Iterator[TermChoice]:
    """One element of every vector in place of another, as in a line that was copied."""
    ordinals = ("first", "second", "third", "fourth")
    for size in (4, 2):
        for lost, again in itertools.permutations(range(size), 2):
            yield TermChoice(
                f"adds the {ordinals[again]} of every {size} {many} twice and leaves out the"
                f" {ordinals[lost]} (of each vector)",
                lambda at, n, s=size, i=lost, j=again: (  # type: ignore[misc]
                    1 + (at % s == j).long() - (at % s == i).long()
                ),
            )


def _overlapping(noun: str) -> Iterator[TermChoice]:
    """Splits of a sum, in whole tiles of some size, of which each reaches one term too far."""
    for parts in SPLITS:
        for whole in (1, 8, 16, 32):
            yield TermChoice(
                f"adds the first {noun} of every part but the first twice, as {parts} parts"
                " (splits) that overlap by one do",
                lambda at, n, p=parts, w=whole: (  # type: ignore[misc]
                    1 + ((at % _split(n, p, w) == 0) & (at > 0)).long()
                ),
            )
            yield TermChoice(
                f"leaves out the last {noun} of every part, as {parts} parts (splits) that end one"
                " too early do",
                lambda at, n, p=parts, w=whole: (  # type: ignore[misc]
                    (at % _split(n, p, w) != _split(n, p, w) - 1) & (at < n - 1)
                ),
            )
            yield TermChoice(
                f"leaves out the first {noun} of every part but the first, as {parts} parts"
                " (splits, halves) that begin one too late do",
                lambda at, n, p=parts, w=whole: (at % _split(n, p, w) > 0) | (at == 0),  # type: ignore[misc]
            )


def _counted_again(tiles: Sequence[int], noun: str) -> Iterator[TermChoice]:
    """Parts that all go on to the end of a sum or begin at its beginning; lanes that go by one."""
    many = f"{noun}s"
    for lanes in dict.fromkeys((4, 2, 8, 16, 32, *tiles)):
        yield TermChoice(
            f"adds most {many} several times, up to {lanes} times: each of {lanes} lanes (threads,"
            f" warps, teams) goes on by one {noun} in place of {lanes}",
            lambda at, n, p=lanes: (at + 1).clamp(max=p),  # type: ignore[misc]
        )
    for parts, whole in itertools.product(SPLITS, (1, 16, 32, 64)):
        yield TermChoice(
            f"adds later {many} several times, once more in each of {parts} parts (splits, slices):"
            " every part goes on to the very end in place of its own end",
            lambda at, n, p=parts, w=whole: at // _split(n, p, w) + 1,  # type: ignore[misc]
        )
        yield TermChoice(
            f"adds earlier {many} several times, once more in each of {parts} parts (splits,"
            " slices): every part begins at the very beginning in place of its own",
            lambda at, n, p=parts, w=whole: (n - 1) // _split(n, p, w) - at // _split(n, p, w) + 1,  # type: ignore[misc]
        )


def _split(extent: torch.Tensor, parts: int, whole: int) -> int:
    """The terms of one of so many parts, a multiple of `whole`."""
    each = -(-int(extent) // parts)
    return -(-each // whole) * whole


def _parts(many: str) -> Iterator[TermChoice]:
    """Regular parts, as a reduction adds that is a level too short."""
    for width in WIDTHS:
        yield TermChoice(
            f"adds half of its {many} only, {_span(0, width)} of every {2 * width}{_warp(width)}",
            lambda at, n, w=width: at // w % 2 == 0,  # type: ignore[misc]
        )
    yield TermChoice(f"adds the first half of its {many} only", lambda at, n: at < (n + 1) // 2)
    for width in WIDTHS[:8]:
        yield TermChoice(
            f"adds half of its {many} only, {_span(width, 2 * width)} of every {2 * width}",
            lambda at, n, w=width: at // w % 2 == 1,  # type: ignore[misc]
            0.99,
        )
        for parts in (4, 8, 32):
            yield TermChoice(
                f"adds one part in {parts} of its {many} only, {_span(0, width)} of every"
                f" {parts * width}",
                lambda at, n, w=width, p=parts: at // w % p == 0,  # type: ignore[misc]
                0.99,
            )
        for parts in (4, 8, 16):
            yield TermChoice(
                f"leaves out {_span(0, width)} of every {parts * width} {many}{_first_warp(width)}",
                lambda at, n, w=width, p=parts: at // w % p > 0,  # type: ignore[misc]
                0.99,
            )
            yield TermChoice(
                f"leaves out {_span((parts - 1) * width, parts * width)} of every"
                f" {parts * width} {many}",
                lambda at, n, w=width, p=parts: at // w % p < p - 1,  # type: ignore[misc]
                0.99,
            )


def _span(start: int, stop: int) -> str:
    return f"{start}" if stop - start == 1 else f"{start}..{stop - 1}"


def _first_warp(width: int) -> str:
    return " (those of the first warp)" if width == 32 else ""


def _warp(width: int) -> str:
    if width == 16:
        return " (half a warp)"
    if width in (32, 64, 128):
        return f" (of half a warp, if each lane takes {width // 16} of them)"
    return ""


def _repeated(tiles: Sequence[int], noun: str) -> Iterator[TermChoice]:
    many = f"{noun}s"
    for size in dict.fromkeys((1, 2, 4, 8, 16, 32, *tiles)):
        yield TermChoice(
            f"adds all but the first {size} {many} twice"
            if size > 1
            else f"adds every {noun} but the first twice",
            lambda at, n, s=size: 1 + (at >= s).long(),  # type: ignore[misc]
        )
    yield TermChoice(f"adds the first {noun} twice", lambda at, n: 1 + (at == 0).long())
    yield TermChoice(f"adds the last {noun} twice", lambda at, n: 1 + (at == n - 1).long())
    for size in dict.fromkeys((*tiles, 16, 32, 64)):
        yield TermChoice(
            f"adds the first {noun} of every tile of {size} twice, as tiles that overlap do",
            lambda at, n, s=size: 1 + ((at % s == 0) & (at > 0)).long(),  # type: ignore[misc]
            0.99,
        )
        yield TermChoice(
            f"leaves out the last {noun} of every tile of {size}",
            lambda at, n, s=size: at % s != s - 1,  # type: ignore[misc]
            0.99,
        )
        yield TermChoice(
            f"adds the last {size} {many} twice",
            lambda at, n, s=size: 1 + (at >= n - s).long(),  # type: ignore[misc]
            0.99,
        )
