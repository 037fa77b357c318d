"""The gates of the packaged tasks pass right outputs, and no others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from evoengine.evaluate.worker.gate import Gate, errors_of, gate_of
from evoengine.evaluate.worker.inputs import Tensors, make_inputs, scalar_inputs
from tests.evaluate.worker.shrunken import CASES, CPU, expected_outputs, shrunken

# torch.compile's back end warns about torch's own use of torch.jit when it is imported
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

Wrong = Callable[..., torch.Tensor]

# the attention tasks share their gates
ALL = [(name, case) for name in CASES if name != "sdpa_h200" for case in CASES[name]]
every_case = pytest.mark.parametrize(
    ("name", "case"), ALL, ids=[f"{name}-{case}" for name, case in ALL]
)


def passes(
    name: str,
    case: str,
    distribution: str,
    seed: int,
    out: torch.Tensor,
    tier: str,
    gate: Gate | None = None,
) -> bool:
    """Whether `out`, rounded to the task's dtype, passes the gate."""
    expected = expected_outputs(name).get(case, distribution, seed)
    gate = gate or expected.gates[tier]["out"]
    rounded = out.to(getattr(torch, shrunken(name).outputs["out"].dtype))
    return gate.passes(errors_of(rounded, expected.reference["out"], gate))


def inputs_of(name: str, case: str, distribution: str, seed: int) -> Tensors:
    return make_inputs(shrunken(name), case, distribution, seed, CPU)


@every_case
def test_the_reference_rounded_to_the_output_passes_every_gate_unwidened(
    name: str, case: str
) -> None:
    task = shrunken(name)
    for distribution in task.distributions:
        for tier_name, tier in task.tiers.items():
            reference = expected_outputs(name).get(case, distribution, 0).reference["out"]
            assert passes(
                name,
                case,
                distribution,
                0,
                reference,
                tier_name,
                gate_of(tier, None),
            )


@every_case
def test_the_trusted_implementation_passes_with_room(name: str, case: str) -> None:
    task = shrunken(name)
    for distribution in task.distributions:
        for seed in task.seeds:
            expected = expected_outputs(name).get(case, distribution, seed)
            for tier, by_output in expected.trusted.items():
                trusted, gate = by_output["out"], expected.gates[tier]["out"]
                assert trusted.nan_count == 0
                assert (
                    trusted.max_abs <= gate.atol / task.tiers[tier].trusted_factor
                    or trusted.max_abs <= task.tiers[tier].atol
                )
                assert trusted.rel_rmse <= gate.rel_rmse
                assert trusted.slice_rel_rmse <= gate.rel_slice


@pytest.mark.parametrize("case", CASES["sdpa_l4"])
def test_attention_in_half_precision_keeps_the_gate_on_normal_inputs(case: str) -> None:
    """|out - float64| <= 1e-3 for N(0,1), which the documents' kernels reached, is not widened
    beyond rounding.
    """
    expected = expected_outputs("sdpa_l4").get(case, "normal", 0)
    assert expected.trusted["fp16"]["out"].max_abs <= 2e-3
    assert expected.trusted["fp16"]["out"].rel_rmse <= 5e-4
    assert 5e-3 <= expected.trusted["fp8"]["out"].rel_rmse <= 6e-2


def test_both_attention_tasks_have_the_same_expected_outputs() -> None:
    first, second = (
        expected_outputs(name).get("causal", "outliers", 2) for name in ("sdpa_l4", "sdpa_h200")
    )
    assert torch.equal(first.reference["out"], second.reference["out"])
    assert first.gates == second.gates


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool
) -> torch.Tensor:
    scores = q @ k.transpose(-2, -1) * scale
    if causal:
        scores = scores.masked_fill(
            torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf
        )
    return torch.softmax(scores, -1) @ v


def _left_out(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool
) -> torch.Tensor:
    out = attention(q, k, v, scale, causal)
    out[..., 56:64, :] = torch.nan
    return out


def _last_row(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool
) -> torch.Tensor:
    out = attention(q, k, v, scale, causal)
    out[-1, 0, -1] = 0
    return out


ATTENTION: dict[str, Wrong] = {
    "zeros": lambda q, k, v, scale, causal: torch.zeros_like(q),
    "ones": lambda q, k, v, scale, causal: torch.ones_like(q),
    "poison": lambda q, k, v, scale, causal: torch.full_like(q, torch.nan),
    "mean of v": lambda q, k, v, scale, causal: v.mean(-2, keepdim=True).expand_as(q),
    "copy of q": lambda q, k, v, scale, causal: q,
    "copy of v": lambda q, k, v, scale, causal: v,
    "scaled twice": lambda q, k, v, scale, causal: attention(q, k, v, scale * scale, causal),
    "not scaled": lambda q, k, v, scale, causal: attention(q, k, v, 1.0, causal),
    "mask forgotten or added": lambda q, k, v, scale, causal: attention(q, k, v, scale, not causal),
    "32 times too small": lambda q, k, v, scale, causal: attention(q, k, v, scale, causal) / 32,
    "heads mixed up": lambda q, k, v, scale, causal: attention(q, k, v.roll(1, 1), scale, causal),
    "keys reversed": lambda q, k, v, scale, causal: attention(q, k.flip(-2), v, scale, causal),
    "last 8 keys left out": lambda q, k, v, scale, causal: attention(
        q, k[..., :-8, :], v[..., :-8, :], scale, False
    ),
    "8 rows of a tile left out": _left_out,
    "one row of zeros": _last_row,
}


@pytest.mark.parametrize("case", CASES["sdpa_l4"])
@pytest.mark.parametrize("wrong", ATTENTION)
def test_no_trivial_or_mistaken_attention_passes(wrong: str, case: str) -> None:
    for tier in shrunken("sdpa_l4").tiers:
        arguments = {
            **scalar_inputs(shrunken("sdpa_l4"), case),
            **inputs_of("sdpa_l4", case, "normal", 0),
        }
        q, k, v = (arguments[name].double() for name in ("q", "k", "v"))
        out = ATTENTION[wrong](q, k, v, arguments["scale"], arguments["causal"])
        assert not passes("sdpa_l4", case, "normal", 0, out, tier)


@pytest.mark.parametrize("case", CASES["sdpa_l4"])
def test_attention_in_8_bits_fails_the_half_precision_gate_and_passes_its_own(case: str) -> None:
    tensors = inputs_of("sdpa_l4", case, "normal", 0)
    out = expected_outputs("sdpa_l4").functions.call("sdpa.py:e4m3", tensors, case)["out"]
    assert passes("sdpa_l4", case, "normal", 0, out, "fp8")
    assert not passes("sdpa_l4", case, "normal", 0, out, "fp16")


def test_a_softmax_without_its_maximum_fails_on_outliers() -> None:
    tensors = inputs_of("sdpa_l4", "full", "outliers", 0)
    q, k, v = (tensors[name].float() for name in ("q", "k", "v"))
    # scores of several hundred, as in long cases
    weights = torch.exp((q * 4) @ k.transpose(-2, -1) * 64**-0.5)
    assert not bool(torch.isfinite(weights @ v / weights.sum(-1, keepdim=True)).all())


def _single_pass(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)
    variance = ((x * x).mean(-1, keepdim=True) - mean * mean).clamp_min(0)
    return (x - mean) / torch.sqrt(variance + 1e-5) * weight + bias


LAYERNORM: dict[str, Wrong] = {
    "zeros": lambda x, weight, bias: torch.zeros_like(x),
    "copy of x": lambda x, weight, bias: x,
    "bias": lambda x, weight, bias: bias.expand_as(x),
    "no statistics": lambda x, weight, bias: x * weight + bias,
    "mean left in": lambda x, weight, bias: (
        x / x.std(-1, keepdim=True, correction=0) * weight + bias
    ),
    "unbiased variance": lambda x, weight, bias: (
        (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) * weight + bias
    ),
    "weight forgotten": lambda x, weight, bias: torch.nn.functional.layer_norm(
        x, x.shape[-1:], None, bias
    ),
    "bias forgotten": lambda x, weight, bias: torch.nn.functional.layer_norm(
        x, x.shape[-1:], weight, None
    ),
    "in half precision": lambda x, weight, bias: torch.nn.functional.layer_norm(
        x, x.shape[-1:], weight, bias
    ).half(),
}


@pytest.mark.parametrize("case", CASES["layernorm"])
@pytest.mark.parametrize("wrong", LAYERNORM)
def test_no_trivial_or_mistaken_layernorm_passes(wrong: str, case: str) -> None:
    tensors = inputs_of("layernorm", case, "normal", 0)
    out = LAYERNORM[wrong](tensors["x"], tensors["weight"], tensors["bias"])
    assert not passes("layernorm", case, "normal", 0, out, "fp32")


@pytest.mark.parametrize("case", CASES["layernorm"])
def test_a_variance_from_one_pass_fails_where_the_mean_is_far_from_zero(case: str) -> None:
    for distribution, right in (("normal", True), ("shifted", False)):
        tensors = inputs_of("layernorm", case, distribution, 0)
        assert passes("layernorm", case, distribution, 0, _single_pass(**tensors), "fp32") is right


MATMUL: dict[str, Wrong] = {
    "zeros": lambda a, b: torch.zeros(a.shape[0], b.shape[1]),
    "poison": lambda a, b: torch.full((a.shape[0], b.shape[1]), torch.nan),
    "last step of K left out": lambda a, b: a[:, :-16] @ b[:-16],
    "one K left out": lambda a, b: a[:, :-1] @ b[:-1],
    "columns mixed up": lambda a, b: (a @ b).roll(1, 1),
    "transposed": lambda a, b: (a @ b).T.reshape(a.shape[0], b.shape[1]),
    "absolute values": lambda a, b: a.abs() @ b.abs(),
    "rounded to 8 bits": lambda a, b: (
        a.to(torch.float8_e4m3fn).double() @ b.to(torch.float8_e4m3fn).double()
    ),
}


@pytest.mark.parametrize("case", CASES["matmul_fp16"])
@pytest.mark.parametrize("wrong", MATMUL)
def test_no_trivial_or_mistaken_product_passes(wrong: str, case: str) -> None:
    tensors = inputs_of("matmul_fp16", case, "normal", 0)
    out = MATMUL[wrong](tensors["a"].double(), tensors["b"].double())
    assert not passes("matmul_fp16", case, "normal", 0, out, "fp16")
