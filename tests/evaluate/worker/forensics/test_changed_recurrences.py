"""Recurrences whose state is lost or handed on wrongly between chunks and rows are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

Tensor = torch.Tensor
CHUNK = 16
RECURRENCE = OwnReference(
    "h = torch.zeros_like(x[:, 0])\n"
    "found = []\n"
    "for t in range(x.shape[1]):\n"
    "    h = a[:, t] * h + x[:, t]\n"
    "    found.append(h)\n"
    "return torch.stack(found, 1)",
    {"B": 3, "T": 56, "C": 12},
    {
        "a": {
            "shape": ["B", "T", "C"],
            "dtype": "float32",
            "draw": {"dist": "uniform", "low": 0.8, "high": 0.98},
        },
        "x": ["B", "T", "C"],
    },
    ["B", "T", "C"],
)


def walked(
    a: Tensor, x: Tensor, begin: Callable[[list[Tensor]], Tensor] | None = None
) -> list[Tensor]:
    """The states after each step; `begin` is what a chunk begins with, from all states before."""
    states: list[Tensor] = []
    for t in range(x.shape[1]):
        h = states[-1] if t else torch.zeros_like(x[:, 0])
        if begin is not None and t and t % CHUNK == 0:
            h = begin(states)
        states.append(a[:, t] * h + x[:, t])
    return states


def chunks(a: Tensor, x: Tensor, keeps_all: bool, decays: bool) -> Tensor:
    """Chunks that are walked by themselves, to which the carry is added."""
    found, carry = [], torch.zeros_like(x[:, :1])
    for factors, values in zip(a.split(CHUNK, 1), x.split(CHUNK, 1), strict=True):
        own = torch.stack(walked(factors, values), 1)
        found.append(own + (factors.cumprod(1) * carry if decays else carry))
        carry = (found[-1] if keeps_all else own)[:, -1:]
    return torch.cat(found, 1)


def kept_between_rows(a: Tensor, x: Tensor) -> Tensor:
    found = [torch.stack(walked(a[:1], x[:1]), 1)]
    for row in range(1, len(x)):
        own = torch.stack(walked(a[row : row + 1], x[row : row + 1]), 1)
        found.append(own + a[row : row + 1].cumprod(1) * found[-1][:, -1:])
    return torch.cat(found)


def decayed_late(a: Tensor, x: Tensor) -> Tensor:
    h, found = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        h = a[:, t] * (h + x[:, t])
        found.append(h)
    return torch.stack(found, 1)


PLANTED: dict[str, tuple[Mutant, str]] = {
    "no carry": (
        lambda a, x: torch.stack(walked(a, x, lambda states: 0 * states[0]), 1),
        "The carry of the chunk before is missing: each chunk of 16 along T begins",
    ),
    "the last element": (
        lambda a, x: torch.stack(walked(a, x, lambda states: states[-2]), 1),
        "leaves out the last element: each chunk of 16 along T",
    ),
    "no decay": (lambda a, x: chunks(a, x, True, False), "carry is added without the decay"),
    "one chunk": (lambda a, x: chunks(a, x, False, True), "carry holds the chunk before alone"),
    "rows": (kept_between_rows, "h is not set back (reset) between rows"),
    "order": (decayed_late, "a[:, t] is multiplied after x[:, t] is added"),
    "direction": (
        lambda a, x: torch.stack(walked(a.flip(1), x.flip(1))[::-1], 1),
        "runs in reverse, from the other end",
    ),
}


READ_OUT = OwnReference(
    "state = h0.clone()\n"
    "found = []\n"
    "for t in range(x.shape[1]):\n"
    "    state = 0.9 * state + x[:, t, :, None] * k[:, t, None, :]\n"
    "    found.append((state * q[:, t, None, :]).sum(-1))\n"
    "return torch.stack(found, 1)",
    {"B": 2, "T": 40, "C": 5, "S": 4},
    {"x": ["B", "T", "C"], "k": ["B", "T", "S"], "q": ["B", "T", "S"], "h0": ["B", "C", "S"]},
    ["B", "T", "C"],
)
FROM_END = OwnReference(
    "g = torch.zeros_like(x[:, 0])\n"
    "found = [g] * x.shape[1]\n"
    "for t in reversed(range(x.shape[1])):\n"
    "    g = x[:, t] + 0.9 * g\n"
    "    found[t] = g\n"
    "return torch.stack(found, 1)",
    {"B": 2, "T": 44, "C": 5},
    {"x": ["B", "T", "C"]},
    ["B", "T", "C"],
)


def read_out(
    x: Tensor, k: Tensor, q: Tensor, h0: Tensor, is_early: bool = False, chunk: int = 1000
) -> Tensor:
    state, found = h0, []
    for t in range(x.shape[1]):
        state = 0 * state if t and t % chunk == 0 else state
        new = 0.9 * state + x[:, t, :, None] * k[:, t, None, :]
        found.append(((state if is_early else new) * q[:, t, None, :]).sum(-1))
        state = new
    return torch.stack(found, 1)


def from_end(x: Tensor) -> Tensor:
    """Chunks of 16 from the start, the last of which is cut off."""
    g, found = torch.zeros_like(x[:, 0]), []
    for t in reversed(range(x.shape[1])):
        g = x[:, t] + 0.9 * (0 * g if (t + 1) % CHUNK == 0 else g)
        found.append(g)
    return torch.stack(found[::-1], 1)


OTHERS: dict[str, tuple[OwnReference, Mutant, str]] = {
    "read early": (
        READ_OUT,
        lambda **given: read_out(**given, is_early=True),
        "state is read before its update",
    ),
    "zero, not the first state": (
        READ_OUT,
        lambda **given: read_out(**given, chunk=16),
        "begins with state at zero, not the first state",
    ),
    "from the end": (FROM_END, from_end, "carry of the chunk before is missing: each chunk of 16"),
}


@of_some
@pytest.mark.parametrize("name", OTHERS)
def test_a_wrong_state_of_another_loop_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = OTHERS[name]
    assert words in first_words(reference.diagnosed(reference.write(tmp_path), mutant))


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_recurrence_is_named(name: str, tmp_path: Path) -> None:
    mutant, words = PLANTED[name]
    found = first_words(RECURRENCE.diagnosed(RECURRENCE.write(tmp_path), mutant))
    assert words in found
