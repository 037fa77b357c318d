"""Wrong whole numbers: places within a tile, and bytes that the sign of another one overwrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.lead import WHOLE, Lead
from evoengine.records import DiagnosisKind

SIZES = (8, 16, 32, 64, 128, 512, 1024)  # of tiles, besides those of the plan
BYTE = 256  # numbers that are cut to their low byte are no places in a tile
LEAST = 32  # wrong elements: fewer may look so by chance
LEAST_PLACES = 5  # in a tile, that the wrong elements have
WORDS = (4, 8, 2)  # bytes of a word
ALL_BITS = -1.0  # of a byte with a sign


def whole_number_leads(compared: ComparedOutput, tiles: Sequence[int]) -> Iterator[Lead]:
    """What the wrong elements of an output of an integer type are."""
    if compared.dtype.is_floating_point or int(compared.bad.sum()) < LEAST:
        return
    yield from _remainder(compared, tiles)
    if compared.dtype is torch.int8 and compared.value.dim():
        yield from _sign_bits(compared)


def _remainder(compared: ComparedOutput, tiles: Sequence[int]) -> Iterator[Lead]:
    """Numbers of elements or rows without the beginning of their tile."""
    value, reference, bad = compared.value, compared.reference, compared.bad
    cut = bool((value == reference % BYTE)[bad].all()) and BYTE not in tiles
    if float(reference.min()) < 0 or value[bad].unique().numel() < LEAST_PLACES or cut:
        return
    for size in dict.fromkeys((*tiles, *SIZES)):
        if size < LEAST_PLACES or float(reference.max()) < size:
            continue
        share = float((value == reference % size)[bad].double().mean())
        if share >= WHOLE:
            yield Lead(
                DiagnosisKind.moved,
                f"{compared.name} is what it should be modulo {size}: it is counted within a tile,"
                f" block or chunk of {size}, whose beginning (offset, start) is not added.",
                share,
                1.25,
                {"size": size},
            )
            return


def _sign_bits(compared: ComparedOutput) -> Iterator[Lead]:
    """Bytes with all bits set, each behind a negative one in its word."""
    ones = compared.value == ALL_BITS
    bad = compared.bad
    if not bool(ones[bad].all()):
        return
    extent = compared.value.shape[-1]
    for word in WORDS:
        if extent % word:
            continue
        shape = (*compared.value.shape[:-1], extent // word, word)
        negative = (compared.reference < 0).view(shape)
        behind = (negative.cumsum(-1) - negative.long() > 0).view(compared.value.shape)
        if bool(behind[bad].all()) and bool(ones[behind].all()):
            yield Lead(
                DiagnosisKind.changed_step,
                f"A negative value of {compared.name} is not cut to its 8 bits before it is packed"
                f" (the mask, & 0xff, is missing): its sign bits are written over the later ones of"
                f" every {word}, which all hold {ALL_BITS:g}.",
                1.0,
                1.35,
                {"bytes": word},
            )
            return
