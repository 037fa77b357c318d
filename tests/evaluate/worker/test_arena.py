from __future__ import annotations

import pytest
import torch

from evoengine.evaluate.worker.arena import ALIGN_BYTES, GUARD_BYTES, Arena, Layout
from tests.evaluate.worker.shrunken import CPU

LAYOUT: Layout = {
    "q": (torch.float16, (2, 3, 5)),
    "odd": (torch.int8, (7,)),
    "sums": (torch.float64, (1,)),
    "flags": (torch.bool, (3,)),
    "b": (torch.bfloat16, (513,)),
    "n": (torch.int64, (4,)),
}


@pytest.fixture
def arena() -> Arena:
    return Arena(LAYOUT, CPU)


def test_buffers_have_their_shapes_and_lie_apart(arena: Arena) -> None:
    start = arena.pointer("q")
    ends = start - GUARD_BYTES
    for name, (dtype, shape) in LAYOUT.items():
        tensor = arena.tensors[name]
        assert (tensor.dtype, tuple(tensor.shape)) == (dtype, shape)
        assert (arena.pointer(name) - start) % ALIGN_BYTES == 0
        assert arena.pointer(name) - ends >= GUARD_BYTES
        ends = arena.pointer(name) + tensor.numel() * tensor.element_size()
    assert not arena.guards_broken()


def test_poison_is_nan_in_every_floating_type_and_minus_one_in_every_integer(arena: Arena) -> None:
    arena.poison(list(LAYOUT))
    for name in ("q", "sums", "b"):
        assert bool(arena.tensors[name].isnan().all())
    for name in ("odd", "n"):
        assert bool((arena.tensors[name] == -1).all())
    assert not arena.guards_broken()


def test_poison_and_fill_touch_nothing_but_what_they_name(arena: Arena) -> None:
    arena.poison(list(LAYOUT))
    arena.fill({"odd": torch.arange(7, dtype=torch.int8), "n": torch.arange(4)})
    arena.poison(["n"])
    assert arena.tensors["odd"].tolist() == list(range(7))
    assert arena.tensors["n"].tolist() == [-1] * 4
    assert bool(arena.tensors["q"].isnan().all())
    assert not arena.guards_broken()


@pytest.mark.parametrize("name", LAYOUT)
def test_one_stray_byte_on_either_side_of_any_buffer_is_seen(name: str) -> None:
    for beyond in (-GUARD_BYTES, -1, 0, GUARD_BYTES - 1):
        arena = Arena(LAYOUT, CPU)
        arena.poison(list(LAYOUT))
        offset, size = arena._spans[name]
        place = offset + beyond if beyond < 0 else offset + size + beyond
        assert not arena.guards_broken()
        arena._bytes[place] ^= 1
        assert arena.guards_broken(), f"byte {beyond} of {name}"


def test_a_write_inside_the_buffers_breaks_no_guard(arena: Arena) -> None:
    for tensor in arena.tensors.values():
        tensor.view(torch.uint8).fill_(0)
    assert not arena.guards_broken()


def test_a_buffer_without_dimensions_is_compared_bit_by_bit() -> None:
    arena = Arena({"x": (torch.float32, ())}, CPU)
    arena.fill({"x": torch.tensor(0.0)})
    assert not arena.differs("x", torch.tensor(0.0))
    assert arena.differs("x", torch.tensor(-0.0))
    assert not arena.guards_broken()
