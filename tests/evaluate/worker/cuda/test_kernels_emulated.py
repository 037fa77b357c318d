"""Our kernels (kernels.cu) that deal, audit and compare, on the emulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any

import numpy
import pytest
import torch

from evoengine.emulator.device import Emulator, Program
from evoengine.emulator.emulator_errors import CompilerMissing
from evoengine.emulator.front.clang import compile_cuda
from evoengine.evaluate.compile import cubin
from evoengine.evaluate.compile.nvrtc_binding import load_nvrtc
from evoengine.evaluate.worker.arena import GUARD, POISON
from evoengine.evaluate.worker.cuda.harness.harness_kernels import DTYPES, THREADS
from evoengine.evaluate.worker.cuda.output_comparison import _COMPARISON, _FIGURES
from evoengine.evaluate.worker.gate import Gate
from tests.evaluate.worker.cuda.compared_outputs import (
    GATE,
    INFINITE_GATES,
    Pair,
    compared_pairs,
    refuse_other_figures,
    refuse_other_verdicts,
    row_of,
)
from tests.evaluate.worker.infinite_references import FLOATS, infinite_cases
from tests.evaluate.worker.shrunken import CPU

SLOT_BYTES = 16 * 1024
# offset and bytes of each buffer
BUFFERS = ((0, 1), (512, 15), (0, 16), (1024, 4097), (0, SLOT_BYTES), (8192, 8192), (512, 1000))
SHAPES = ((1,), (31,), (2100,), (7, 45), (20, 31), (3, 2, 64), (3, 8, 16), (2, 1500))
KERNELS = ("deal", "unmask", "audit", "compare")
KEY = 0x0123456789ABCDEF


class Device:
    """Our kernels on an emulated device."""

    def __init__(self) -> None:
        self.emulator = Emulator("l4")
        folder = resources.files("evoengine.evaluate.worker.cuda.harness")
        text = folder.joinpath("kernels.cu").read_text(encoding="utf-8")
        # what follows sets the state of caches, which the emulator does not have
        text = text.partition("// " + "-" * 64 + " caches")[0]
        compiled = compile_cuda(text, name="kernels.cu", macros={}, arch="sm_89", kernels=KERNELS)
        self.program: Program = self.emulator.load(compiled.ptx)

    def put(self, data: Any) -> tuple[int, Any]:
        """The address of a copy of `data` on the device, and a view of its bytes."""
        raw = numpy.ascontiguousarray(data).reshape(-1).view(numpy.uint8)
        address = self.emulator.memory.allocate(raw.size)
        view = self.emulator.memory.view(address, raw.size)
        view[:] = raw
        return address, view

    def launch(self, name: str, count: int, *addresses: int) -> None:
        self.program.launch(
            name,
            grid=(2, count, 1),
            block=(THREADS, 1, 1),
            args=[address.to_bytes(8, "little") for address in addresses],
        )


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    try:
        made = Device()
    except CompilerMissing as missing:
        pytest.skip(str(missing))
    yield made
    made.emulator.close()


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_89", "sm_90"])
def test_nvrtc_compiles_all_kernels_without_a_frame_to_speak_of(arch: str) -> None:
    """Comparisons take a part of every verdict: registers that are spilt would slow them down."""
    nvrtc = load_nvrtc()
    source = resources.files("evoengine.evaluate.worker.cuda.harness").joinpath("kernels.cu")
    program = nvrtc.createProgram(source.read_text(encoding="utf-8"), "kernels.cu")
    nvrtc.compileProgram(program, [f"--gpu-architecture={arch}", "-std=c++17"])
    facts = cubin.kernels(cubin.completed(nvrtc.getCUBIN(program)))
    nvrtc.destroyProgram(program)
    assert set(facts) > set(KERNELS)
    assert facts["compare"].registers <= 64 and facts["compare"].local_bytes <= 32


class Slots:
    """A slot for each buffer with a source, and for each without one."""

    def __init__(self, device: Device) -> None:
        chance = numpy.random.default_rng(7)
        self.device, self.views, self.sources, rows = device, [], [], []
        for number, (offset, size) in enumerate([*BUFFERS, *BUFFERS]):
            source = chance.integers(0, 256, size, dtype=numpy.uint8)
            given = source if number < len(BUFFERS) else None
            address = device.put(source)[0] if given is not None else 0
            base, view = device.put(numpy.zeros(SLOT_BYTES, dtype=numpy.uint8))
            self.views.append(view)
            self.sources.append(given)
            rows.append([base, SLOT_BYTES, offset, size, address, GUARD, POISON, 0])
        self.count = len(rows)
        self.table, _ = device.put(numpy.array(rows, dtype=numpy.uint64))
        keyed = [[*row[:-1], KEY + number] for number, row in enumerate(rows)]
        self.keyed, _ = device.put(numpy.array(keyed, dtype=numpy.uint64))
        buffers = [[row[0] + row[2], row[3], row[-1]] for row in keyed]
        self.masked, _ = device.put(numpy.array(buffers, dtype=numpy.uint64))

    def deal(self, masked: bool = False) -> None:
        self.device.launch("deal", self.count, self.keyed if masked else self.table)

    def unmask(self) -> None:
        self.device.launch("unmask", self.count, self.masked)

    def audit(self) -> list[int]:
        flags, view = self.device.put(numpy.zeros(self.count, dtype=numpy.uint32))
        self.device.launch("audit", self.count, self.table, flags)
        return [int(flag) for flag in view.view(numpy.uint32)]


@pytest.fixture(scope="module")
def slots(device: Device) -> Slots:
    return Slots(device)


def test_slots_are_written_whole_at_any_size_and_place(slots: Slots) -> None:
    slots.deal()
    places = [*BUFFERS, *BUFFERS]
    for (offset, size), view, source in zip(places, slots.views, slots.sources, strict=True):
        wanted = numpy.full(SLOT_BYTES, GUARD, dtype=numpy.uint8)
        wanted[offset : offset + size] = POISON if source is None else source
        assert numpy.array_equal(view, wanted), (offset, size)


def test_a_masked_buffer_shows_nothing_until_the_mask_is_taken_away(slots: Slots) -> None:
    slots.deal()
    plain = [view.copy() for view in slots.views]
    slots.deal(masked=True)
    hidden = [view.copy() for view in slots.views]
    places = [*BUFFERS, *BUFFERS]
    for (offset, size), shown, view in zip(places, plain, hidden, strict=True):
        end = offset + -(-size // 16) * 16
        outside = numpy.r_[0:offset, end:SLOT_BYTES]
        assert numpy.array_equal(view[outside], shown[outside])
        same = (view[offset:end] == shown[offset:end]).mean()
        assert same < 0.2 or size < 100, "one byte of 256 is the same by chance"
    # buffers of equal bytes do not look alike, and no 16 bytes come twice
    words = numpy.concatenate(
        [view[o : o + s // 16 * 16] for (o, s), view in zip(places, hidden, strict=True)]
    ).reshape(-1, 16)
    assert len(numpy.unique(words, axis=0)) == len(words)
    slots.unmask()
    assert all(map(numpy.array_equal, slots.views, plain))


@pytest.mark.parametrize("at", ["first", "last", "before", "after", "slot's first", "slot's last"])
def test_an_audit_finds_any_changed_byte_and_says_whose(slots: Slots, at: str) -> None:
    slots.deal()
    assert slots.audit() == [0] * slots.count
    wanted = []
    for number, (offset, size) in enumerate([*BUFFERS, *BUFFERS]):
        end = offset + size
        byte = {
            "first": offset,
            "last": end - 1,
            "before": offset - 1,
            "after": end,
            "slot's first": 0,
            "slot's last": SLOT_BYTES - 1,
        }[at]
        if not 0 <= byte < SLOT_BYTES:
            wanted.append(0)
            continue
        slots.views[number][byte] ^= 0x40
        own = offset <= byte < end
        wanted.append(int(number < len(BUFFERS)) if own else 2)
    assert slots.audit() == wanted


def test_both_kinds_of_changes_are_found_together(slots: Slots) -> None:
    slots.deal()
    for view in slots.views:
        view[:] = 0x11
    whole = (0, SLOT_BYTES)  # has no guard
    wanted = [1 if buffer == whole else 3 for buffer in BUFFERS]
    assert slots.audit() == wanted + [0 if buffer == whole else 2 for buffer in BUFFERS]


@pytest.mark.parametrize("name", DTYPES)
def test_comparisons_have_the_figures_of_the_gate(device: Device, name: str) -> None:
    torch.manual_seed(7)
    pairs = compared_pairs(name, SHAPES, CPU)
    refuse_other_figures(compared(device, pairs, GATE), pairs)


@pytest.mark.parametrize("gate", INFINITE_GATES, ids=["exact", "rtol"])
@pytest.mark.parametrize("name", FLOATS)
def test_an_infinity_passes_only_where_the_reference_is_the_same_one(
    device: Device, name: str, gate: Gate
) -> None:
    cases = infinite_cases(name, CPU)
    raw = compared(device, [(case.output, case.reference) for case in cases], gate)
    refuse_other_verdicts(raw, cases, gate)


def compared(device: Device, pairs: Sequence[Pair], gate: Gate) -> Any:
    """The figures of a comparison of all pairs."""
    rows = []
    for output, reference in pairs:
        addresses = (
            device.put(output.view(-1).view(torch.uint8).numpy())[0],
            device.put(reference.numpy())[0],
        )
        rows.append(row_of(output, reference, *addresses, gate=gate))
    table, _ = device.put(numpy.array(rows, dtype=_COMPARISON))
    figures, view = device.put(numpy.zeros(len(rows), dtype=_FIGURES))
    device.launch("compare", len(rows), table, figures)
    return view.view(_FIGURES)
