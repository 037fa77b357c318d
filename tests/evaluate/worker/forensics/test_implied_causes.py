"""Mistakes that no list has: their causes follow from what intermediate results must have been."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.attention_mutants import attention, with_weights
from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.mutated import Mutant, diagnosed
from tests.evaluate.worker.forensics.own_reference import OwnReference, first_words

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
at = torch.arange
Weights = Callable[[torch.Tensor], torch.Tensor]


def counted(times: torch.Tensor) -> Weights:
    """Keys that count so many times, in the sum of the softmax and of the values."""

    def weights(scores: torch.Tensor) -> torch.Tensor:
        power = (scores - scores.amax(-1, keepdim=True)).exp() * times
        return power / power.sum(-1, keepdim=True)

    return weights


def first_tile_left_out(scores: torch.Tensor) -> torch.Tensor:
    """Rows 64 and up do not see keys 0 to 15."""
    hidden = (at(scores.shape[-2])[:, None] >= 64) & (at(scores.shape[-1])[None, :] < 16)
    return scores.masked_fill(hidden, -torch.inf).softmax(-1)


def registers(depth: int) -> torch.Tensor:
    """An order of every 16 places that no list of exchanges has."""
    order = torch.tensor([0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15])
    return at(depth) // 16 * 16 + order[at(depth) % 16]


def product_of(k_order: torch.Tensor) -> Mutant:
    return lambda t, s: t["a"] @ t["b"][k_order]


def tile_before(depth: int, tile: int) -> torch.Tensor:
    """The second and later tiles take the one before."""
    return torch.where(at(depth) < tile, at(depth), at(depth) - tile)


def overlapping(depth: int, parts: int, slices: int) -> torch.Tensor:
    """How often each product counts where parts run to the end of their last slice."""
    each = -(-depth // parts)
    ends = -(-each // slices) * slices
    return torch.where(at(depth) < each, 1.0, 1.0 + (at(depth) % each < ends - each).double())


def mixed_in_parts(scores: torch.Tensor) -> torch.Tensor:
    """Blocks of 8 x 8 off the diagonal of every 16 x 16 are exchanged, each relative to the maximum
    of its row so far in its part of 48 keys.
    """
    made = torch.empty_like(scores)
    most = scores.amax(-1, keepdim=True)
    for start in range(0, scores.shape[-1], 16):
        part = scores[..., start // 48 * 48 : start + 16].amax(-1, keepdim=True)
        power = (scores[..., start : start + 16] - part).exp()
        cut = power.unflatten(-2, (-1, 2, 8)).unflatten(-1, (2, 8)).clone()
        cut[..., 0, :, 1, :], cut[..., 1, :, 0, :] = (
            cut[..., 1, :, 0, :].clone(),
            cut[..., 0, :, 1, :].clone(),
        )
        made[..., start : start + 16] = cut.flatten(-2).flatten(-4, -2) * (part - most).exp()
    return made / (scores - most).exp().sum(-1, keepdim=True)


def unswizzled(value: torch.Tensor) -> torch.Tensor:
    """Chunk i + r, of every 4, of row r in the place of chunk i."""
    chunk = at(value.shape[-1]) // 8
    places = chunk // 4 * 4 + (chunk + at(value.shape[-2])[:, None]) % 4
    return value.gather(1, places * 8 + at(value.shape[-1]) % 8)


# task, case, mutant, words of the first two findings
ATTENTION_AND_PRODUCTS: dict[str, tuple[str, str, Mutant, str]] = {
    "some keys twice": (
        "sdpa_l4", "full", with_weights(counted(1 + (at(128) % 40 == 7).double())),
        "7, 47, 87, 127 of 128 are counted twice",
    ),
    "a range of keys left out": (
        "sdpa_l4", "full", with_weights(counted(1.0 * ((at(128) < 40) | (at(128) >= 56)))),
        "Keys 40..55 of 128 are left out",
    ),
    "the last keys left out": (
        "sdpa_l4", "full", with_weights(counted(1.0 * (at(128) < 126))),
        "126, 127 of 128 are left out (the tail, what is left over beyond whole tiles",
    ),
    "the last key left out": (
        "sdpa_l4", "full", with_weights(counted(1.0 * (at(128) < 127))),
        "The last key (127 of 128) is left out (the tail",
    ),
    "other keys in every tile of rows": (
        "sdpa_l4", "full", with_weights(first_tile_left_out), "other keys are left out",
    ),
    "registers of q": (
        "sdpa_l4", "full",
        lambda t, s: attention(t, s, q=t["q"][..., registers(64)]),
        "meet wrongly in the products of queries and keys, with every 16 in another order",
    ),
    "registers of b": (
        "matmul_fp16", "flat", product_of(registers(512)), "with every 16 in another order",
    ),
    "a tile that is a step behind": (
        "matmul_fp16", "square", product_of(tile_before(128, 32)),
        "b are read with the tile of 32 before it (stale) in place of each",
    ),
    "a tile of the depth left out": (
        "matmul_fp16", "flat",
        lambda t, s: (t["a"] * (at(512) // 32 % 5 != 3)) @ t["b"], "96..127 of a is left out",
    ),
    "splits that run into the next": (
        "matmul_fp16", "flat",
        lambda t, s: (t["a"] * overlapping(512, 3, 16)) @ t["b"],
        "0..4 of every 171 but the first, as parts (splits) that run into the next one do, twice",
    ),
    "splits that are rounded down": (
        "matmul_fp16", "flat", lambda t, s: (t["a"] * (at(512) < 510)) @ t["b"],
        "as 3 parts (splits) whose length is rounded down",
    ),
    "another swizzle": (
        "matmul_fp16", "square", lambda t, s: unswizzled(t["a"]) @ t["b"],
        "a is read in another order in every row, with a period of",
    ),
}  # fmt: skip


@of_some
@pytest.mark.parametrize("name", ATTENTION_AND_PRODUCTS)
def test_a_wrong_product_or_weight_is_recovered(name: str) -> None:
    task, case, mutant, words = ATTENTION_AND_PRODUCTS[name]
    assert words in first_words(diagnosed(task, case, mutant))


def test_weights_that_are_mixed_up_in_parts_whose_size_the_plan_passes_are_named() -> None:
    found = diagnosed("sdpa_l4", "full", with_weights(mixed_in_parts), numbers=(48,))
    assert "in tiles of 16, parts of 48" in first_words(found)


NORM = OwnReference(
    body=(
        "summed = x + residual\n"
        "mean = summed.mean(dim=-1, keepdim=True)\n"
        "variance = ((summed - mean) ** 2).mean(dim=-1, keepdim=True)\n"
        "return (summed - mean) / torch.sqrt(variance + 1e-5) * weight"
    ),
    dims={"N": 40, "C": 300},
    inputs={"x": ["N", "C"], "residual": ["N", "C"], "weight": ["C"]},
    out=["N", "C"],
)


def norm(mean: Weights, variance: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def out(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        summed = x + residual
        middle = mean(summed)
        return (summed - middle) / (variance(summed, middle, x) + 1e-5).sqrt() * weight

    return out


def mean_of(value: torch.Tensor) -> torch.Tensor:
    return value.mean(-1, keepdim=True)


def spread(summed: torch.Tensor, middle: torch.Tensor, _x: torch.Tensor) -> torch.Tensor:
    return mean_of((summed - middle) ** 2)


STATISTICS = {
    "one warp of eight": (
        norm(lambda v: (v * (at(300) // 32 % 8 != 5)).sum(-1, keepdim=True) / 300, spread),
        "The sum of mean leaves out elements 160..191 of 300",
    ),
    "a tail twice in both": (
        norm(
            lambda v: (v * (1 + (at(300) >= 296))).sum(-1, keepdim=True) / 300,
            lambda v, m, x: ((v - m) ** 2 * (1 + (at(300) >= 296))).sum(-1, keepdim=True) / 300,
        ),
        "adds the last 4 elements (296..299 of 300) twice",
    ),
    "divided by the padded count": (
        norm(mean_of, lambda v, m, x: ((v - m) ** 2).sum(-1, keepdim=True) / 304),
        "variance is divided by the wrong number: by 304 in place of 300",
    ),
    "padding counted": (
        norm(mean_of, lambda v, m, x: spread(v, m, x) + 20 / 300 * m**2),
        "places beyond the end of a row (padding up to a multiple of 32) are counted",
    ),
    "of another tensor": (
        norm(mean_of, lambda v, m, x: x.var(-1, keepdim=True, unbiased=False)),
        "variance is the variance of x",
    ),
    "neighbouring rows": (
        norm(mean_of, lambda v, m, x: spread(v, m, x)[at(40) ^ 1]),
        "variance is taken from the neighbouring row",
    ),
    "not set back": (
        norm(mean_of, lambda v, m, x: spread(v, m, x).view(10, 4, 1).cumsum(1).view(40, 1)),
        "variance is not set back (reset) between the rows of every 4",
    ),
}  # fmt: skip


@of_some
@pytest.mark.parametrize("name", STATISTICS)
def test_a_wrong_statistic_is_recovered(name: str, tmp_path: Path) -> None:
    mutant, words = STATISTICS[name]
    assert words in first_words(NORM.diagnosed(NORM.write(tmp_path), mutant))


SCALED = OwnReference(
    body="return (a * scales.repeat_interleave(16, dim=1)) @ b",
    dims={"M": 48, "N": 64, "K": 96},
    inputs={"a": ["M", "K"], "b": ["K", "N"], "scales": ["M", "K/16"]},
    out=["M", "N"],
)


def scaled(places: torch.Tensor, rows: torch.Tensor) -> Callable[..., torch.Tensor]:
    return lambda a, b, scales: (a * scales[rows][:, places]) @ b


INPUTS = {
    "the scale of the group before": (
        scaled((at(96) // 16 - 1).clamp(min=0), at(48)), "holds the previous column",
    ),
    "the scale of another row": (
        scaled(at(96) // 16, at(48) // 6 * 6), "that of the first of every 6",
    ),
    "a group without scale": (
        lambda a, b, scales: (a * scales.repeat_interleave(16, 1) * (at(96) // 16 != 2)) @ b,
        "leaves out products 32..47 of 96",
    ),
}  # fmt: skip


@of_some
@pytest.mark.parametrize("name", INPUTS)
def test_a_wrong_input_is_recovered(name: str, tmp_path: Path) -> None:
    mutant, words = INPUTS[name]
    assert words in first_words(SCALED.diagnosed(SCALED.write(tmp_path), mutant))


HEADS = OwnReference(
    body="return x @ w.repeat_interleave(3, dim=0)",
    dims={"H": 6, "M": 24, "K": 32, "N": 24, "G": 2},
    inputs={"x": ["H", "M", "K"], "w": ["G", "K", "N"]},
    out=["H", "M", "N"],
)


def test_the_index_that_is_really_read_is_recovered(tmp_path: Path) -> None:
    places = torch.tensor([0, 1, 1, 0, 1, 0])
    found = HEADS.diagnosed(HEADS.write(tmp_path), lambda x, w: x @ w[places])
    assert "w is read from the wrong plane: head 1 reads plane 1, not 0" in first_words(found)


def test_an_honest_low_precision_has_no_wrong_statistic(tmp_path: Path) -> None:
    def rounded(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        right = norm(mean_of, spread)(x, residual, weight)
        return right.to(torch.bfloat16).double()

    found = NORM.diagnosed(NORM.write(tmp_path), rounded)
    assert "low precision" in [one.kind.value for one in found.diagnoses]
    assert not any("all else is right" in one.sentence for one in found.diagnoses)
