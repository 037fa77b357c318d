"""Outputs of kernels with one planted mistake: the mistake is the first or the named finding."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from evoengine.evaluate.worker.forensics.changed_references import LARGE_INPUTS
from evoengine.evaluate.worker.forensics.launch_facts import Relaunch, depends_on_poison
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind as Kind
from tests.evaluate.worker.forensics import attention_mutants as mutants
from tests.evaluate.worker.forensics.attention_mutants import attention, with_weights
from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.mutated import (
    UNWRITTEN,
    Mutant,
    Scalars,
    diagnosed,
    wide,
    wrong_call,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
TILE = {"BLOCK_N": 32}


def layer_norm(tensors: Tensors, scalars: Scalars, **other: Any) -> torch.Tensor:
    x = tensors["x"]
    mean = x.mean(-1, keepdim=True)
    count = x.shape[-1] - other.get("fewer", 0)
    variance = ((x - mean) ** 2).sum(-1, keepdim=True) / count
    root = (variance + scalars["eps"]).sqrt()
    if other.get("outside"):
        root = variance.sqrt() + scalars["eps"]
    weight, bias = other.get("weight", tensors["weight"]), other.get("bias", tensors["bias"])
    return (x - other.get("mean", mean)) / root * weight + bias


def adamw(tensors: Tensors, scalars: Scalars, **other: float) -> Tensors:
    known = {**scalars, **other}
    gradient = tensors["gradient"]
    first = known["beta1"] * tensors["first"] + (1 - known["beta1"]) * gradient
    second = known["beta2"] * tensors["second"] + (1 - known["beta2"]) * gradient * gradient
    size = (second / known["correction2"]).sqrt() + known["eps"]
    kept = tensors["parameter"] * (1 - known["rate"] * known["decay"])
    step = known["rate"] * (first / known["correction1"]) / size
    return {"parameter": kept - step, "first": first, "second": second}


def twice_updated(tensors: Tensors, scalars: Scalars) -> Tensors:
    """A step in packs of four, whose third second moment is left and whose second one has it."""
    new = adamw(tensors, scalars)
    second = new["second"].clone()
    whole = len(second) // 4 * 4
    third, left = second[2:whole:4].clone(), tensors["second"].double()
    second[1:whole:4] = third
    second[2:whole:4] = left[2:whole:4]
    return {**new, "second": second}


def product(tensors: Tensors, _scalars: Scalars) -> torch.Tensor:
    return tensors["a"] @ tensors["b"]


def summed_in(dtype: torch.dtype) -> Mutant:
    """Accumulators of `dtype`, 8 products at a time."""

    def mutant(tensors: Tensors, _scalars: Scalars) -> torch.Tensor:
        a, b = tensors["a"], tensors["b"]
        total = torch.zeros(a.shape[0], b.shape[1], dtype=dtype)
        for start in range(0, a.shape[1], 8):
            part = a[:, start : start + 8] @ b[start : start + 8]
            total = (total.double() + part).to(dtype)
        return total.double()

    return mutant


def stored_with(leading: int) -> Mutant:
    def mutant(tensors: Tensors, scalars: Scalars) -> torch.Tensor:
        right = product(tensors, scalars)
        flat = torch.full((right.numel(),), UNWRITTEN, dtype=torch.float64)
        for row, values in enumerate(right):
            inside = min(len(values), max(0, len(flat) - row * leading))
            flat[row * leading : row * leading + inside] = values[:inside]
        return flat.view_as(right)

    return mutant


def fragments_mixed_up(tensors: Tensors, scalars: Scalars) -> torch.Tensor:
    """In each 16x8 tile, the places (i, j) and (j, i) of the upper half are exchanged."""
    right = product(tensors, scalars)
    tiles = right.view(right.shape[0] // 16, 16, -1, 8).clone()
    tiles[:, :8] = tiles[:, :8].transpose(1, 3)
    return tiles.reshape(right.shape)


def bags(tensors: Tensors, _scalars: Scalars, step: int = 0, mean: bool = False) -> torch.Tensor:
    table, offsets = tensors["table"], tensors["offsets"].long()
    rows = (tensors["indices"].long() + step).clamp(0, len(table) - 1)
    sums = torch.stack([table[rows[a:b]].sum(0) for a, b in itertools.pairwise(offsets)])
    counts = (offsets[1:] - offsets[:-1]).clamp_min(1).view(-1, 1)
    return sums / counts if mean else sums


def first_rows(tensors: Tensors) -> torch.Tensor:
    """The row of the first index of each bag; zeros for an empty one."""
    offsets, rows = tensors["offsets"].long(), tensors["indices"].long()
    first = tensors["table"][rows[offsets[:-1].clamp_max(len(rows) - 1)]]
    return first * (offsets[1:] > offsets[:-1]).view(-1, 1)


def into_one(value: torch.Tensor, width: int, holder: int) -> torch.Tensor:
    """The sum of each `width` neighbours along the last axis at one place of them, else zero."""
    groups = value.unflatten(-1, (-1, width))
    gathered = torch.zeros_like(groups)
    gathered[..., holder] = groups.sum(-1)
    return gathered.flatten(-2)


def columns_of_block_row(value: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Each tile with the columns that begin where its rows do."""
    rows, columns = (torch.arange(extent) for extent in value.shape)
    source = rows[:, None] // height * height + columns % width
    return value.gather(1, source.clamp_max(len(columns) - 1))


# task, case, mutant, expected kind, words of its sentence
PLANTED: dict[str, tuple[str, str, Mutant, Kind, str]] = {
    "scores scaled twice": (
        "sdpa_l4", "full", lambda t, s: attention(t, s, scale=s["scale"] ** 2),
        Kind.changed_scalar, "scale applied twice",
    ),
    "l summed over 32 equal lanes": (
        "sdpa_l4", "full", lambda t, s: attention(t, s) / 32, Kind.ratio, "the warp size",
    ),
    "k not transposed": (
        "sdpa_l4", "full",
        lambda t, s: attention(t, s, k=t["k"].reshape(2, 4, 64, 128).mT.contiguous()),
        Kind.changed_input, "k transposed",
    ),
    "not divided by l": (
        "sdpa_l4", "full", with_weights(mutants.unnormalised),
        Kind.changed_step, "without dividing by the sum",
    ),
    "a band of rows left out": (
        "sdpa_l4", "full", mutants.band_left_out, Kind.never_written, "(56..63) of every 64 along S",
    ),
    "mask missing": (
        "sdpa_l4", "causal", lambda t, s: attention(t, s, causal=False),
        Kind.changed_flag, "causal = false",
    ),
    "mask off by one": (
        "sdpa_l4", "causal", lambda t, s: attention(t, s, diagonal=2),
        Kind.mask, "off by one, fewer",
    ),
    "mask missing in the last rows": (
        "sdpa_l4", "causal", mutants.mask_missing_at_the_end,
        Kind.changed_flag, "equals there the reference with causal = false",
    ),
    "keys and values of a shared head": (
        "sdpa_l4", "full",
        lambda t, s: attention(t, s, k=t["k"][:, [0, 0, 1, 1]], v=t["v"][:, [0, 0, 1, 1]]),
        Kind.changed_input, "k and v read at H i // 2",
    ),
    "accumulator not rescaled": (
        "sdpa_l4", "full", with_weights(mutants.online(32, True)),
        Kind.changed_step, "in tiles of 32 with the accumulator not rescaled",
    ),
    "halves combined without their sums": (
        "sdpa_l4", "full", with_weights(mutants.halves), Kind.changed_step, "in 2 splits",
    ),
    "padding of the last tile counted": (
        "sdpa_l4", "odd", mutants.padding_counted,
        Kind.changed_step, "filled up to a multiple of 32 with zeros that count",
    ),
    "weights in 8 bits": (
        "sdpa_l4", "full", with_weights(mutants.e4m3_weights), Kind.low_precision, "e4m3",
    ),
    "heads and rows swapped in memory": (
        "sdpa_l4", "full", lambda t, s: attention(t, s).transpose(1, 2).reshape(2, 4, 128, 64),
        Kind.moved, "H and S are swapped",
    ),
    "q and k exchanged": (
        "sdpa_l4", "full", lambda t, s: attention(t, s, q=t["k"], k=t["q"]),
        Kind.changed_input, "q and k exchanged",
    ),
    "variance of N - 1": (
        "layernorm", "rows", lambda t, s: layer_norm(t, s, fewer=1),
        Kind.changed_step, "dividing by the count minus 1",
    ),
    "eps outside of the root": (
        "layernorm", "rows", lambda t, s: layer_norm(t, s, outside=True),
        Kind.changed_step, "added outside of the root",
    ),
    "bias left out": (
        "layernorm", "rows", lambda t, s: layer_norm(t, s, bias=0), Kind.changed_step, "bias",
    ),
    "mean not subtracted": (
        "layernorm", "rows", lambda t, s: layer_norm(t, s, mean=0),
        Kind.changed_step, "without subtracting",
    ),
    "rows read in bf16": (
        "layernorm", "rows", lambda t, s: layer_norm({**t, "x": t["x"].bfloat16().double()}, s),
        Kind.low_precision, "x rounded to bf16",
    ),
    "written through bf16": (
        "layernorm", "rows", lambda t, s: layer_norm(t, s).bfloat16().double(),
        Kind.low_precision, "a number of bf16",
    ),
    "tail not stored": (
        "layernorm", "odd",
        lambda t, s: torch.nn.functional.pad(layer_norm(t, s)[:, :320], (0, 13), value=UNWRITTEN),
        Kind.never_written, "the last 13 columns of 333 along C (320..332)",
    ),
    "sign of the decay": (
        "adamw", "odd", lambda t, s: adamw(t, s, decay=-s["decay"]),
        Kind.changed_scalar, "-decay in place of decay",
    ),
    "no bias correction": (
        "adamw", "odd", lambda t, s: adamw(t, s, correction1=1.0, correction2=1.0),
        Kind.changed_scalar, "correction1 and correction2 left out",
    ),
    "one component for another": (
        "adamw", "odd", twice_updated,
        Kind.never_written, "element 2 is never updated and element 1 is wrong instead",
    ),
    "a moment not stored": (
        "adamw", "odd", lambda t, s: {**adamw(t, s), "first": t["first"]},
        Kind.never_written, "of first are never updated",
    ),
    "b transposed": (
        "matmul_fp16", "square", lambda t, s: t["a"] @ t["b"].T,
        Kind.changed_input, "b transposed",
    ),
    "output transposed": (
        "matmul_fp16", "flat", lambda t, s: product(t, s).T.reshape(64, 192),
        Kind.moved, "M and N are swapped",
    ),
    "wrong leading dimension": (
        "matmul_fp16", "square", stored_with(136), Kind.moved, "leading dimension of 136",
    ),
    "b at the row of the block": (
        "matmul_fp16", "square", lambda t, s: columns_of_block_row(product(t, s), 32, 32),
        Kind.moved, "the columns that begin where its rows do",
    ),
    "fragments mixed up": (
        "matmul_fp16", "square", fragments_mixed_up, Kind.fragment_layout, "In every 16x8 tile",
    ),
    "last step along K left out": (
        "matmul_fp16", "flat", lambda t, s: t["a"][:, :-16] @ t["b"][:-16],
        Kind.changed_step, "leaves out the last 16 products",
    ),
    "summed in fp16": (
        "matmul_fp16", "flat", summed_in(torch.float16), Kind.low_precision, "summed in fp16",
    ),
    "zeros": (
        "matmul_fp16", "flat", lambda t, s: 0 * product(t, s), Kind.constant, "hold zero",
    ),
    "opposite sign": (
        "matmul_fp16", "flat", lambda t, s: -product(t, s), Kind.sign, "opposite sign",
    ),
    "next row of the table": (
        "embedding_bag", "bags", lambda t, s: bags(t, s, step=1),
        Kind.changed_input, "indices + 1",
    ),
    "both components to one column": (
        "embedding_bag", "bags", lambda t, s: into_one(bags(t, s), 2, 0),
        Kind.moved, "the sums of all are added into column 0 of the 2, and the other stays zero",
    ),
    "mean in place of sum": (
        "embedding_bag", "bags", lambda t, s: bags(t, s, mean=True),
        Kind.changed_step, "a mean in place of a sum",
    ),
    "blocks of b transposed": (
        "matmul_fp16", "square",
        lambda t, s: t["a"] @ t["b"].view(8, 16, 8, 16).transpose(1, 3).reshape(128, 128),
        Kind.changed_step, "b is loaded with every 16x16 tile transposed",
    ),
    "halves of a fragment swapped along k": (
        "matmul_fp16", "square",
        lambda t, s: t["a"] @ t["b"].view(8, 2, 8, 128).flip(1).reshape(128, 128),
        Kind.changed_step, "the halves of every 16 swapped",
    ),
    "half a warp": (
        "matmul_fp16", "flat",
        lambda t, s: t["a"] * (torch.arange(512) // 16 % 2 == 0) @ t["b"],
        Kind.changed_step, "(half a warp)",
    ),
    "mean of the next row": (
        "layernorm", "odd",
        lambda t, s: layer_norm(t, s, mean=t["x"].mean(-1, keepdim=True).roll(-1, 0)),
        Kind.changed_step, "the next row",
    ),
    "the row length of another table": (
        "embedding_bag", "bags",
        lambda t, s: bags({**t, "table": t["table"].flatten()[
            (torch.arange(300).view(-1, 1) * 32 + torch.arange(36)).flatten()].view(300, 36)}, s),
        Kind.changed_input, "wrong leading dimension (row length, stride), 32 in place of 36",
    ),
    "the first index of each bag left out": (
        "embedding_bag", "bags", lambda t, s: bags(t, s) - first_rows(t),
        Kind.changed_step, "leaves out the first row (off by one)",
    ),
}  # fmt: skip


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_named_first(name: str) -> None:
    task, case, mutant, kind, words = PLANTED[name]
    found = diagnosed(task, case, mutant, macros=TILE)
    first = found.diagnoses[0]
    assert first.kind is kind, found.diagnoses
    assert words in first.sentence
    assert first.share > 0.4
    assert found.error_map is not None


def test_the_mutants_without_a_mistake_are_right() -> None:
    """Else the tests above would be about the definitions here, not about the mistakes."""
    for task, case, honest in (
        ("sdpa_l4", "causal", attention),
        ("layernorm", "odd", layer_norm),
        ("adamw", "odd", adamw),
        ("matmul_fp16", "flat", product),
        ("embedding_bag", "bags", bags),
    ):
        assert wrong_call(task, case, honest)[1].ok, task


def test_every_analysis_says_where_the_output_is_wrong() -> None:
    found = diagnosed("matmul_fp16", "square", lambda t, s: product(t, s).triu(1))
    sentences = " ".join(item.sentence for item in found.diagnoses)
    assert "only on and below the diagonal of M and N" in sentences


@pytest.mark.parametrize(
    ("name", "mutant", "word"),
    [
        ("layernorm", lambda t, s: layer_norm(t, s, fewer=1), "N - 1"),
        ("layernorm", lambda t, s: layer_norm(t, s, mean=0.0), "mean is missing"),
        ("adamw", lambda t, s: adamw(t, s, correction2=1.0), "correction2 is missing"),
    ],
)
def test_a_mistake_is_named_among_millions_of_elements(
    name: str, mutant: Mutant, word: str
) -> None:
    """Where windows are looked at before whole inputs are changed."""
    found = diagnosed(name, "large", mutant)
    assert sum(x.numel() for x in wide(name, "large")[0].values()) > LARGE_INPUTS
    assert word in found.diagnoses[0].sentence


def test_a_search_whose_time_is_up_says_so_and_keeps_what_it_has() -> None:
    mutant = PLANTED["accumulator not rescaled"][2]
    found = diagnosed("sdpa_l4", "full", mutant, seconds=0.0)
    assert found.problem == "the search for its cause ended at its limit, 0 s of the processor"
    assert [item.kind for item in found.diagnoses] == [Kind.region]


def test_noise_that_follows_no_rule_gets_no_explanation() -> None:
    generator = torch.Generator().manual_seed(1)

    def noise(tensors: Tensors, scalars: Scalars) -> torch.Tensor:
        right = product(tensors, scalars)
        return right + torch.randn(right.shape, generator=generator, dtype=torch.float64) * 30

    found = diagnosed("matmul_fp16", "flat", noise)
    assert [item.kind for item in found.diagnoses] == [Kind.region]


def test_an_error_of_the_size_of_a_rounding_is_none_where_a_number_is_infinite() -> None:
    rounded = summed_in(torch.bfloat16)

    def stale(tensors: Tensors, scalars: Scalars) -> torch.Tensor:
        """As large an error as a sum in bf16 has, elsewhere, and some numbers that are none."""
        right = product(tensors, scalars)
        found = right + (rounded(tensors, scalars) - right).roll(7, 0)
        found[::9, ::5] = torch.inf
        return found

    kinds = [item.kind for item in diagnosed("matmul_fp16", "flat", stale).diagnoses]
    assert Kind.low_precision not in kinds and Kind.not_finite in kinds
    first = diagnosed("matmul_fp16", "flat", rounded).diagnoses[0]
    assert first.kind is Kind.low_precision and "bf16" in first.sentence


def relaunched(name: str, case: str, *replays: tuple[int, list[torch.Tensor]]) -> Any:
    """Replays of a task with one output, by their poison."""
    (output,) = wrong_call(name, case, product)[0].outputs
    return tuple(
        Relaunch(tuple({output: value.half()} for value in calls), poison)
        for poison, calls in replays
    )


def test_launches_that_differ_on_one_input_are_a_race() -> None:
    right = product(*wide("matmul_fp16", "flat"))
    racy = right.clone()
    racy[16:32] += 5
    relaunches = relaunched("matmul_fp16", "flat", (0xFF, [right]), (0xFF, [racy]))
    found = diagnosed("matmul_fp16", "flat", lambda t, s: racy, relaunches=relaunches)
    assert found.diagnoses[0].kind is Kind.race
    assert "only rows M 16..31 of 64" in found.diagnoses[0].sentence


def test_a_later_launch_that_is_wrong_is_a_state() -> None:
    right = product(*wide("matmul_fp16", "flat"))
    later = right + 3
    replays = ((0xFF, [right, later]), (0xFF, [right, later]))
    relaunches = relaunched("matmul_fp16", "flat", *replays)
    found = diagnosed("matmul_fp16", "flat", lambda t, s: later, relaunches=relaunches)
    assert found.diagnoses[0].kind is Kind.state


def test_an_output_that_moves_with_the_poison_reads_old_values() -> None:
    right = product(*wide("matmul_fp16", "flat"))
    first, other = right + 2, right + 7
    relaunches = relaunched("matmul_fp16", "flat", (0xFF, [first]), (0x3C, [other]))
    found = diagnosed("matmul_fp16", "flat", lambda t, s: first, relaunches=relaunches)
    assert found.diagnoses[0].kind is Kind.reads_old_values


@pytest.mark.parametrize(
    ("moves", "said"),
    [
        ((), "it adds to its output, or reads scratch or memory"),
        ((False, True), "namely scratch tops: elements of it are read that no launch has written"),
        ((True, True), "namely scratch sums and tops"),
        ((False, False), "and on no scratch: it adds to its output"),
    ],
)
def test_what_scratch_an_output_moves_with_is_named(moves: tuple[bool, ...], said: str) -> None:
    right = product(*wide("matmul_fp16", "flat"))
    first, other = right + 2, right + 7
    relaunches = relaunched("matmul_fp16", "flat", (0xFF, [first]), (0x3C, [other]))
    for name, does in zip(("sums", "tops"), moves, strict=False):
        (one,) = relaunched("matmul_fp16", "flat", (0x3C, [other if does else first]))
        relaunches += (replace(one, scratch=name),)
    found = diagnosed("matmul_fp16", "flat", lambda t, s: first, relaunches=relaunches)
    assert found.diagnoses[0].kind is Kind.reads_old_values
    assert said in found.diagnoses[0].sentence


def test_where_launches_agree_but_for_what_nobody_writes_no_scratch_is_looked_at() -> None:
    right = product(*wide("matmul_fp16", "flat"))
    launched = relaunched("matmul_fp16", "flat", (0xFF, [right]), (0x3C, [right]), (0xFF, [right]))
    assert not depends_on_poison(launched) and not depends_on_poison(launched[:1])
    moved = relaunched("matmul_fp16", "flat", (0xFF, [right]), (0x3C, [right + 1]))
    assert depends_on_poison(moved)


def test_a_case_whose_size_alone_is_odd_is_said_to_have_a_tail() -> None:
    def tail(tensors: Tensors, scalars: Scalars) -> torch.Tensor:
        out = attention(tensors, scalars)
        out[:, :, 64:] = math.nan
        return out

    found = diagnosed("sdpa_l4", "odd", tail, passed=("full", "causal"))
    named = {item.kind: item.sentence for item in found.diagnoses}
    assert "S = 77 is no multiple of 32" in named[Kind.sizes]
    assert "(64..76)" in named[Kind.not_finite]


@pytest.mark.parametrize(
    ("axis", "words"), [(0, "N = 33 is no multiple of 64"), (1, "C = 333 is no multiple of 256")]
)
def test_of_several_odd_sizes_the_one_at_whose_end_it_is_wrong_is_named(
    axis: int, words: str
) -> None:
    def tail(tensors: Tensors, scalars: Scalars) -> torch.Tensor:
        out = layer_norm(tensors, scalars)
        out.narrow(axis, 32, out.shape[axis] - 32).fill_(math.nan)
        return out

    found = diagnosed("layernorm", "odd", tail, passed=("rows",))
    assert words in {item.kind: item.sentence for item in found.diagnoses}[Kind.sizes]
