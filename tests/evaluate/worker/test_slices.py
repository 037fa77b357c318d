"""The error of the worst slice, against arithmetic slice by slice."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evoengine.evaluate.worker import output_errors
from evoengine.evaluate.worker.check import explain
from evoengine.evaluate.worker.gate import Errors, Gate, errors_of, gate_of
from evoengine.evaluate.worker.slices import UNDERFLOW, slice_dims, slice_elements, tiny_of
from evoengine.records import CaseCheck, InputSetCheck
from evoengine.task.schema import Tier
from tests.evaluate.worker.shrunken import CASES, expected_outputs, shrunken

# torch.compile's back end warns about torch's own use of torch.jit when it is imported
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

EXACT = Gate(0.0, 0.0, 0.0, 0.0)
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32]


@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((1, 8, 512, 64), 1),
        ((16, 4, 8), 2),
        ((16, 8, 8), 2),
        ((2, 3, 4, 8), 2),
        ((7, 333), 1),
        ((1, 32), 1),
        ((4, 31), 0),
        ((4096,), 0),
        ((1,), 0),
        ((2, 4, 4), 0),
    ],
)
def test_a_slice_is_the_smallest_trailing_block_of_32_elements(
    shape: tuple[int, ...], dims: int
) -> None:
    assert slice_dims(shape) == dims
    assert slice_elements(shape) == (math.prod(shape[-dims:]) if dims else 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tiny_is_what_rounding_may_cost_where_numbers_underflow(dtype: torch.dtype) -> None:
    tiny = tiny_of(dtype)
    if not dtype.is_floating_point:
        assert tiny == 0
        return
    assert float(torch.tensor(tiny, dtype=torch.float64).to(dtype)) == tiny > 0
    if dtype in (torch.float32, torch.bfloat16):  # as small as what single precision computes with
        assert tiny == UNDERFLOW
    else:
        assert float(torch.tensor(tiny / 2, dtype=torch.float64).to(dtype)) == 0


def test_a_row_whose_weights_underflow_in_single_precision_is_right() -> None:
    """Attention where a sink outweighs all keys: the reference is far below anything that counts."""
    values = 200 * torch.randn(3, 64, dtype=torch.float64)
    weights = torch.tensor([1.0, 3e-41, 2.0], dtype=torch.float64)[:, None]
    single = torch.nn.functional.threshold(weights.float(), 2.0**-126, 0.0)  # flushed to zero
    reference, output = weights * values, single * values.float()
    assert errors_of(output, reference, EXACT).slice_rel_rmse < 1e-6
    assert errors_of(0 * output, reference, EXACT).slice_rel_rmse == pytest.approx(1.0)


def slices_one_by_one(
    out: torch.Tensor, reference: torch.Tensor
) -> Iterator[tuple[float, tuple[int, ...]]]:
    lead = reference.shape[: -slice_dims(tuple(reference.shape))]
    for index in torch.cartesian_prod(*(torch.arange(extent) for extent in lead)).view(
        -1, len(lead)
    ):
        place = tuple(index.tolist())
        difference = (out[place].double() - reference[place]).flatten().tolist()
        rmse = math.sqrt(sum(item * item for item in difference) / len(difference))
        rms = math.sqrt(sum(item**2 for item in reference[place].flatten().tolist()))
        rms /= math.sqrt(len(difference))
        excess = math.inf if math.isnan(rmse) else max(0.0, rmse - tiny_of(out.dtype))
        yield (0.0 if excess == 0 else math.inf if rms == 0 else excess / rms), place


@given(
    st.sampled_from([(3, 40), (2, 3, 5, 8), (5, 2, 33), (2, 200)]),
    st.sampled_from(DTYPES),
    st.integers(0, 1000),
    st.sampled_from([50, 128, 1 << 15]),
)
def test_the_worst_slice_agrees_with_arithmetic_slice_by_slice(
    shape: tuple[int, ...], dtype: torch.dtype, seed: int, piece: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    reference = torch.randn(shape, generator=generator, dtype=torch.float64) * 100
    reference[0] *= 2.0 ** (seed % 40 - 30)
    reference[-1] *= seed % 2
    out = (reference * (1 + 1e-3 * torch.randn(shape, generator=generator))).to(dtype)
    if seed % 7 == 0:
        out[-1] += 1
    if seed % 11 == 0 and dtype.is_floating_point:
        out.view(-1)[seed % out.numel()] = (math.nan, math.inf)[seed % 2]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(output_errors, "PIECE", piece)
        found = errors_of(out, reference, EXACT)
    every = dict((place, value) for value, place in slices_one_by_one(out, reference))
    assert found.slice_rel_rmse == pytest.approx(max(every.values()), rel=1e-9)
    assert every[found.worst_slice] == pytest.approx(max(every.values()), rel=1e-9)


def test_a_tensor_without_slices_has_no_worst_one() -> None:
    errors = errors_of(torch.ones(3, 4), torch.zeros(3, 4).double(), EXACT)
    assert (errors.slice_rel_rmse, errors.worst_slice) == (0.0, ())


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_slice_whose_reference_is_zero_may_hold_only_rounding(dtype: torch.dtype) -> None:
    reference = torch.zeros(2, 64, dtype=torch.float64)
    reference[0] = 1.0
    out = reference.clone().to(dtype)
    gate = Gate(1.0, 0.0, 1.0, 1e9)
    assert gate.passes(errors_of(out, reference, gate))
    out[1] = tiny_of(dtype)
    assert gate.passes(errors_of(out, reference, gate))
    out[1] = max(3 * tiny_of(dtype), 1e-100) if dtype.is_floating_point else 1
    errors = errors_of(out, reference, gate)
    assert (errors.failing, errors.slice_rel_rmse, errors.worst_slice) == (0, math.inf, (1,))
    assert not gate.passes(errors)


def test_a_reference_that_underflows_may_be_rounded() -> None:
    reference = torch.full((2, 64), 1e-8, dtype=torch.float64)  # half of tiny is 3e-8: rounds to 0
    assert errors_of(reference.half(), reference, EXACT).slice_rel_rmse == 0


def test_trusted_errors_widen_the_limit_of_slices_except_where_the_reference_is_zero() -> None:
    tier = Tier(atol=1.0, rel_rmse=1e-3, trusted="a.py:f", trusted_factor=3.0)
    assert gate_of(tier, None).rel_slice == pytest.approx(4e-3)
    wide = Errors(0.0, 1e-4, 0, 1, 0, 0.0, (0,), 0.3)
    assert gate_of(tier, wide).rel_slice == pytest.approx(0.9)
    assert gate_of(tier, Errors(0.0, 1e-2, 0, 1, 0, 0.0)).rel_slice == pytest.approx(0.12)
    reference = torch.tensor([[1.0], [0.0]], dtype=torch.float64).expand(2, 64).contiguous()
    out = reference + torch.tensor([[0.01], [0.01]])
    trusted = errors_of(out, reference, gate_of(tier, None), zero_slices=False)
    assert trusted.slice_rel_rmse == pytest.approx(0.01)
    assert gate_of(tier, trusted).rel_slice == pytest.approx(4 * 3 * trusted.rel_rmse)


TIERS = {"fp16": (2e-3, 1e-3, 5e-4), "fp8": (5e-2, 5e-2, 5e-2), "fp32": (2e-5, 1e-5, 1e-6)}


@pytest.mark.parametrize("tier", TIERS)
def test_one_quiet_row_of_many_cannot_be_left_out(tier: str) -> None:
    """Every element of it is smaller than atol, and its share of the whole than rel_rmse."""
    atol, rtol, rel_rmse = TIERS[tier]
    reference = torch.randn(1024, 256, dtype=torch.float64)
    reference[17] *= atol / 8
    limits = gate_of(Tier(atol=atol, rtol=rtol, rel_rmse=rel_rmse), None)
    out = reference.clone()
    out[17] = 0
    errors = errors_of(out, reference, limits)
    assert errors.failing == 0 and errors.rel_rmse <= limits.rel_rmse
    assert errors.worst_slice == (17,) and errors.slice_rel_rmse == pytest.approx(1)
    assert not limits.passes(errors)


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name in ("sdpa_l4", "matmul_fp16") for case in CASES[name]]
)
def test_no_head_and_no_row_of_wide_inputs_can_be_left_out(name: str, case: str) -> None:
    """A head 2^-6 as loud as the loudest passed every bound of the fp8 tier over all elements."""
    task, left_out = shrunken(name), 0
    dtype = getattr(torch, task.outputs["out"].dtype)
    for seed in task.seeds:
        expected = expected_outputs(name).get(case, "wide", seed)
        reference = expected.reference["out"]
        heads = reference.flatten(0, 1) if reference.ndim > 2 else reference
        for number, head in enumerate(heads):
            out = heads.clone()
            out[number] = 0
            for tier in task.tiers:
                limits = expected.gates[tier]["out"]
                errors = errors_of(out.view(reference.shape).to(dtype), reference, limits)
                assert limits.passes(errors) is not bool(head.any())
                left_out += bool(head.any())
    assert left_out > 3


def test_a_row_that_alone_fails_is_named() -> None:
    item = InputSetCheck(
        distribution="wide",
        seed=1,
        ok=False,
        max_abs=1e-4,
        rel_rmse=1e-5,
        failing_share=0.0,
        worst_index=(0, 3, 17, 2),
        worst_output="out",
        limit_abs=1e-3,
        limit_rel_rmse=1e-3,
        trusted_max_abs=0.0,
        trusted_rel_rmse=0.0,
        slice_rel_rmse=1.0,
        worst_slice_output="out",
        worst_slice=(0, 3, 17),
        limit_slice_rel_rmse=4e-3,
    )
    check = CaseCheck(case="c", hidden=False, ok=False, sets=(item,))
    assert explain(check).endswith("; row out[0, 3, 17]: relative RMSE 1 (allowed 0.004)")
    assert "17" not in explain(check.model_copy(update={"hidden": True}))
    unknown = item.model_copy(update={"worst_index": (), "worst_slice": ()})
    said = explain(check.model_copy(update={"sets": (unknown,)}))
    assert said.endswith(" of elements fail; a row: relative RMSE 1 (allowed 0.004)")
    passing = item.model_copy(update={"slice_rel_rmse": 1e-3})
    assert "row" not in explain(check.model_copy(update={"sets": (passing,)}))
