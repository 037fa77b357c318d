from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evoengine.evaluate.worker import gate as gate_module
from evoengine.evaluate.worker import output_errors
from evoengine.evaluate.worker.gate import Errors, Gate, all_pass, compare, gate_of
from evoengine.task.schema import Tier

halves = st.floats(width=16)
finite = st.floats(-1e4, 1e4)
references = finite | st.sampled_from([math.inf, -math.inf])
EXACT = Gate(0.0, 0.0, 0.0, 0.0)
pairs = st.lists(st.tuples(halves, references), min_size=1, max_size=12)


def errors_of(
    outputs: list[float], reference: list[float], atol: float = 0.0, rtol: float = 0.0
) -> Errors:
    return gate_module.errors_of(
        torch.tensor(outputs, dtype=torch.float16),
        torch.tensor(reference, dtype=torch.float64),
        Gate(atol, rtol, 0.0, 0.0),
    )


@given(pairs, st.sampled_from([0.0, 1e-3, 1.0]), st.sampled_from([0.0, 1e-3, 0.5]))
def test_comparison_agrees_with_arithmetic_element_by_element(
    items: list[tuple[float, float]], atol: float, rtol: float
) -> None:
    found = errors_of([out for out, _ in items], [ref for _, ref in items], atol, rtol)
    errors = [error_of(out, ref) for out, ref in items]
    # of an infinite reference nothing is left but whether it is met
    kept = [ref if math.isfinite(ref) else 0.0 for _, ref in items]
    limits = [atol + rtol * abs(ref) for ref in kept]
    assert found.max_abs == max(errors)
    assert found.nan_count == sum(math.isnan(out) for out, _ in items)
    assert found.elements == len(items)
    clear = [
        (error, limit)
        for error, limit in zip(errors, limits, strict=True)
        if not math.isclose(error, limit, rel_tol=1e-12)
    ]
    assert found.failing >= sum(error > limit for error, limit in clear)
    assert found.failing <= len(errors) - sum(error <= limit for error, limit in clear)
    assert errors[found.worst_index[0]] == max(errors)
    needed = max(error - rtol * abs(ref) for error, ref in zip(errors, kept, strict=True))
    assert found.needed_atol == pytest.approx(max(0.0, needed), rel=1e-12, abs=1e-11)
    assert (found.needed_atol > atol) == (found.failing > 0)
    counted = [error for error, (_, ref) in zip(errors, items, strict=True) if math.isfinite(ref)]
    squares = sum(ref**2 for ref in kept) or max(1, len(counted))
    assert found.rel_rmse == pytest.approx(
        math.sqrt(sum(error**2 for error in counted) / squares), nan_ok=True
    )


def error_of(out: float, ref: float) -> float:
    if math.isnan(out):
        return math.inf
    return 0.0 if out == ref else abs(out - ref)


def test_a_quiet_output_that_is_left_out_fails_beside_a_loud_one() -> None:
    reference = {
        "out": torch.full((64, 64), 8.0, dtype=torch.float64),
        "means": torch.full((64,), 1e-3, dtype=torch.float64),  # one dimension: it has no slices
    }
    outputs = {name: value.float() for name, value in reference.items()}
    gates = dict.fromkeys(reference, Gate(atol=2e-3, rtol=0.0, rel_rmse=1e-3, rel_slice=4e-3))
    assert all_pass(compare(outputs, reference, gates), gates)
    outputs["means"] = torch.zeros(64)
    errors = compare(outputs, reference, gates)
    assert (errors["means"].failing, errors["means"].slice_rel_rmse) == (0, 0)
    assert errors["means"].rel_rmse == pytest.approx(1)
    assert not all_pass(errors, gates)


@pytest.mark.parametrize("limit", [1.0, 1e300, math.inf])
def test_nan_never_passes_however_wide_the_gate(limit: float) -> None:
    gate = Gate(atol=limit, rtol=limit, rel_rmse=limit, rel_slice=limit)
    errors = errors_of([1.0, math.nan], [1.0, 1.0], gate.atol, gate.rtol)
    assert errors.failing == 1
    assert errors.nan_count == 1
    assert errors.max_abs == math.inf
    assert not gate.passes(errors)


def test_infinity_never_passes_a_finite_gate() -> None:
    for wrong in (math.inf, -math.inf):
        errors = errors_of([wrong], [65504.0], 1e6, 1.0)
        assert errors.failing == 1
        assert not Gate(1e6, 1.0, 1e6, 1e6).passes(errors)


def test_the_worst_element_of_each_output_is_named_by_its_index() -> None:
    reference = {
        "a": torch.zeros(2, 3, dtype=torch.float64),
        "b": torch.zeros(4, 5, 6, dtype=torch.float64),
    }
    outputs = {name: value.float() for name, value in reference.items()}
    outputs["b"][3, 0, 5] = -2.0
    outputs["a"][1, 1] = 1.0
    errors = compare(outputs, reference, dict.fromkeys(reference, EXACT))
    assert [(item.worst_index, item.max_abs) for item in errors.values()] == [
        ((1, 1), 1.0),
        ((3, 0, 5), 2.0),
    ]
    assert [(item.failing, item.elements) for item in errors.values()] == [(1, 6), (1, 120)]


def test_comparison_leaves_its_arguments_alone() -> None:
    out, reference = torch.randn(50).half(), torch.randn(50).double()
    before = out.clone(), reference.clone()
    gate_module.errors_of(out, reference, Gate(1e-3, 1e-3, 0.0, 0.0))
    assert torch.equal(out, before[0])
    assert torch.equal(reference, before[1])


def test_a_reference_of_zeros_is_judged_by_its_absolute_error() -> None:
    assert errors_of([0.0, 0.0], [0.0, 0.0]).rel_rmse == 0
    assert errors_of([0.0, 2.0], [0.0, 0.0]).rel_rmse == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8, torch.bool, torch.bfloat16])
def test_outputs_of_any_type_are_compared(dtype: torch.dtype) -> None:
    out = torch.tensor([0, 1, 1]).to(dtype)
    reference = torch.tensor([0.0, 1.0, 0.0]).double()
    assert gate_module.errors_of(out, reference, EXACT).failing == 1


def test_a_gate_widens_to_a_multiple_of_the_trusted_error_and_never_narrows() -> None:
    tier = Tier(atol=1e-3, rtol=1e-4, rel_rmse=1e-3, trusted="a.py:f", trusted_factor=3.0)
    assert gate_of(tier, None) == Gate(1e-3, 1e-4, 1e-3, 4e-3)
    assert gate_of(tier, Errors(1e-9, 1e-9, 0, 1, 0, 1e-9)) == Gate(1e-3, 1e-4, 1e-3, 4e-3)
    assert gate_of(tier, Errors(0.5, 0.25, 0, 1, 0, 0.5)) == Gate(1.5, 1e-4, 0.75, 3.0)


@pytest.mark.parametrize(
    ("trusted", "allowed"), [(0.3, 0.6), (0.49, 0.98), (0.5, 2.0), (4.5, 18.0)]
)
def test_noise_is_held_to_a_wider_limit_only_where_a_slice_could_be_left_out_anyway(
    trusted: float, allowed: float
) -> None:
    tier = Tier(atol=1e-3, rtol=1e-4, rel_rmse=1e-3, trusted="a.py:f", trusted_factor=2.0)
    errors = Errors(1e-3, 1e-3, 0, 1, 0, 1e-3, slice_rel_rmse=trusted)
    assert gate_of(tier, errors).rel_slice == allowed


@pytest.mark.parametrize(
    "broken",
    [
        Errors(math.inf, math.inf, 1, 1, 0, math.inf),
        Errors(math.inf, math.inf, 1, 1, 1, math.inf),
        Errors(1.0, math.inf, 1, 1, 0, 1.0),
        Errors(1.0, 1.0, 1, 1, 0, 1.0, (0,), math.inf),
    ],
    ids=["infinite", "nan", "infinite square", "infinite slice"],
)
def test_a_trusted_implementation_that_overflows_does_not_open_the_gate(broken: Errors) -> None:
    tier = Tier(atol=1e-3, rel_rmse=1e-3, trusted="a.py:f")
    assert gate_of(tier, broken) == Gate(1e-3, 0.0, 1e-3, 4e-3)


def test_outputs_larger_than_a_piece_are_compared_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate(1e-3, 1e-3, 0.0, 0.0)
    reference = torch.linspace(-3, 3, 10 * 77, dtype=torch.float64).reshape(10, 77)
    reference[4, 5:], reference[8] = -math.inf, math.inf
    out = reference.half()
    out[2, 5], out[7, 70], out[9, 76] = 100.0, -200.0, 50.0
    whole = gate_module.errors_of(out, reference, gate)
    monkeypatch.setattr(output_errors, "PIECE", 64)
    in_pieces = gate_module.errors_of(out, reference, gate)
    assert in_pieces.rel_rmse == pytest.approx(whole.rel_rmse, rel=1e-12)
    assert in_pieces.slice_rel_rmse == pytest.approx(whole.slice_rel_rmse, rel=1e-12)
    same = {"rel_rmse": whole.rel_rmse, "slice_rel_rmse": whole.slice_rel_rmse}
    assert replace(in_pieces, **same) == whole
    assert whole.failing == 3 and whole.worst_index == (7, 70)
    out[4, 0] = math.nan
    assert gate_module.errors_of(out, reference, gate).worst_index == (4, 0)
