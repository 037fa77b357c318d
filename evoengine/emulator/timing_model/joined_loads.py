"""Accesses of shared memory that NVIDIA's compiler joins: scalars that follow one another in memory
become one load of 8 or 16 bytes, halves one store of up to 16.

Seen in the machine code that NVRTC 13.0 makes of matmul_shared_tiles, matmul_register_tiles and
sdpa_shared_scores (tests/honest) and of tests/structures/product_register_tiles.cu. The clang that
counts instructions does not know that the arrays are aligned, and leaves the scalars; and it stores
a vector that was put together from halves one by one (tests/structures/matmul_split_two_passes.cu).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from evoengine.emulator.analyse.registers import written
from evoengine.emulator.ptx.syntax import Address, Instruction, Register, Symbol
from evoengine.emulator.timing_model.alignment import OF_VARIABLES
from evoengine.emulator.timing_model.dependency_chains import Step
from evoengine.emulator.timing_model.pipes import is_shared
from evoengine.emulator.timing_model.site_memory import SiteMemory

WORD = 4  # bytes of the scalars that are joined
WIDTHS = (4, 2)  # words of a joined load
HALF = 2  # bytes of the scalars whose stores are joined
STORED_WIDTHS = (8, 4, 2)
# wavefronts of a load of 16 bytes that is the same for all lanes, by docs/measurements/
# h200-rates.json, shared_load16; of 8 bytes one
FEWEST = {4: 2.0, 2: 1.0}
_INTERRUPTS = frozenset(("st", "red", "atom", "bar", "barrier", "cp", "membar", "fence", "wmma"))
_WORDS, _HALVES = frozenset(("b32", "f32", "u32", "s32")), frozenset(("b16", "u16", "s16"))

# a base that is written once more is another one
_Base = tuple[str, int]


def joined(steps: Sequence[Step], alignment: Mapping[str, int]) -> tuple[list[Step], float]:
    """The steps of straight-line code, where the first scalar of each joined access stands for all
    of them and the others reach memory no more; and the wavefronts that one execution has less.
    """
    found = list(steps)
    loads, stores = _runs(steps, _scalar_load), _runs(steps, _scalar_store)
    saved = sum(_join(found, places, alignment, WORD, WIDTHS) for places in loads)
    saved += sum(_join(found, places, alignment, HALF, STORED_WIDTHS) for places in stores)
    return found, saved


def _runs(
    steps: Sequence[Step], scalar: Callable[[Instruction], Address | None]
) -> list[dict[tuple[_Base, int], int]]:
    """Scalar accesses of one kind between two others that they may not pass: position by base and
    offset.
    """
    runs: list[dict[tuple[_Base, int], int]] = [{}]
    writes: dict[str, int] = {}
    for position, step in enumerate(steps):
        item = step.instruction
        address = scalar(item) if step.share == 1.0 else None
        if address is not None and isinstance(address.base, Register | Symbol):
            name = address.base.name
            runs[-1].setdefault(((name, writes.get(name, 0)), address.offset), position)
        elif item.op in _INTERRUPTS or (scalar is _scalar_store and _is_plain(item, "ld")):
            runs.append({})
        for name in written(item):
            writes[name] = writes.get(name, 0) + 1
    return runs


def _scalar_load(item: Instruction) -> Address | None:
    address = item.operands[-1] if _is_plain(item, "ld") and _WORDS & {*item.modifiers} else None
    return address if isinstance(address, Address) else None


def _scalar_store(item: Instruction) -> Address | None:
    address = item.operands[0] if _is_plain(item, "st") and _HALVES & {*item.modifiers} else None
    return address if isinstance(address, Address) else None


def _is_plain(item: Instruction, op: str) -> bool:
    """Whether an instruction accesses shared memory, always, and one value a lane."""
    words = {*item.modifiers}
    return (
        item.op == op
        and item.guard is None
        and is_shared(item.modifiers)
        and not words & {"volatile", "v2", "v4"}
    )


def _join(
    steps: list[Step],
    places: Mapping[tuple[_Base, int], int],
    alignment: Mapping[str, int],
    scalar: int,
    widths: Sequence[int],
) -> float:
    """Joins what follows one another in `places`, each of `scalar` bytes; returns the wavefronts
    that are saved.
    """
    left, saved = dict(places), 0.0
    for width in widths:
        size = width * scalar
        for base, offset in sorted(places):
            own = [(base, offset + scalar * place) for place in range(width)]
            aligned = alignment.get(base[0], OF_VARIABLES) >= size and offset % size == 0
            if aligned and all(key in left for key in own):
                positions = [left.pop(key) for key in own]
                saved += _merge(steps, min(positions), positions, FEWEST.get(size // WORD, 1.0))
    return saved


def _merge(steps: list[Step], first: int, positions: Sequence[int], fewest: float) -> float:
    width = len(positions)
    waves = [memory.wavefronts if (memory := steps[at].memory) else 1.0 for at in positions]
    whole = max(fewest, sum(waves) / width)
    for at in positions:
        memory = SiteMemory(1.0, wavefronts=whole) if at == first else SiteMemory(0.0)
        steps[at] = replace(steps[at], memory=memory)
    return sum(waves) - whole
