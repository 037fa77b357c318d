"""Elements that are taken in another order, at another index or along other axes are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

Tensor = torch.Tensor
CLASSES = {"shape": ["N"], "dtype": "int32", "draw": {"dist": "uniform", "low": 0, "high": 170}}
TARGETS = OwnReference(
    "return torch.nn.functional.cross_entropy(x, y.long(), reduction='none')",
    {"N": 40, "C": 170},
    {"x": ["N", "C"], "y": CLASSES},
    ["N"],
)
TURNED = OwnReference(
    "half = 8\n"
    "a, b, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]\n"
    "t = torch.arange(x.shape[1], dtype=x.dtype, device=x.device)\n"
    "speed = 100.0 ** (-torch.arange(half, dtype=x.dtype, device=x.device) / half)\n"
    "angle = t[:, None] * speed[None, :]\n"
    "return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin(),"
    " rest], -1)",
    {"B": 3, "T": 40, "D": 20},
    {"x": ["B", "T", "D"]},
    ["B", "T", "D"],
)
TAPS = OwnReference(
    "padded = torch.nn.functional.pad(x, (3, 0))\n"
    "out = torch.zeros_like(x)\n"
    "for k in range(4):\n"
    "    out = out + weight[:, k, None] * padded[:, :, k:k + x.shape[2]]\n"
    "return out",
    {"B": 2, "C": 6, "T": 100},
    {"x": ["B", "C", "T"], "weight": ["C", "4"]},
    ["B", "C", "T"],
)
NORMALISED = OwnReference(
    "return torch.nn.functional.batch_norm(x, None, None, weight, training=True)",
    {"B": 6, "C": 5, "P": 30},
    {"x": ["B", "C", "P"], "weight": ["C"]},
    ["B", "C", "P"],
)
LENGTHS = OwnReference(
    "return x / x.square().sum(-1, keepdim=True).sqrt()",
    {"N": 20, "C": 30},
    {"x": ["N", "C"]},
    ["N", "C"],
)
SHUFFLED = OwnReference(
    "return torch.nn.functional.pixel_shuffle(x, 2)",
    {"B": 2, "C": 12, "H": 7, "W": 9},
    {"x": ["B", "C", "H", "W"]},
    ["B", "C // 4", "2 * H", "2 * W"],
)
GROUPS = OwnReference(
    "group = torch.arange(x.shape[-1], device=x.device) // 8\nreturn x * scales[:, group]",
    {"N": 20, "C": 64},
    {"x": ["N", "C"], "scales": ["N", "C // 8"]},
    ["N", "C"],
)
ROLLED = OwnReference(
    "return torch.roll(x, 3, -1) * w",
    {"N": 20, "C": 70},
    {"x": ["N", "C"], "w": ["C"]},
    ["N", "C"],
)
QUANTISED = OwnReference(
    "scale = x.abs().amax(-1, keepdim=True) / 127\nreturn torch.round(x / scale) * scale",
    {"N": 40, "C": 50},
    {"x": ["N", "C"]},
    ["N", "C"],
)


KEPT = OwnReference(
    "kept = x > 0\ncount = kept.sum(-1)\n"
    "return torch.where(kept, x, 0).sum(-1) / count.clamp_min(1)",
    {"N": 40, "C": 50},
    {"x": ["N", "C"]},
    ["N"],
)
ROTATED = OwnReference(
    "h = x.shape[-1] // 2\n"
    "turned = torch.cat((-x[..., h:], x[..., :h]), -1)\n"
    "return x * cos[:, None, :] + turned * sin[:, None, :]",
    {"T": 30, "H": 4, "D": 12},
    {"x": ["T", "H", "D"], "cos": ["T", "D"], "sin": ["T", "D"]},
    ["T", "H", "D"],
)
GATES = OwnReference(
    "best = torch.softmax(x, -1).topk(2, -1)\nvalues = best.values\n"
    "return values / values.sum(-1, keepdim=True)",
    {"N": 40, "E": 9},
    {"x": ["N", "E"]},
    ["N", "2"],
)
LARGEST = OwnReference(
    "return torch.nn.functional.max_pool2d(x, 3, stride=2, padding=1)",
    {"B": 2, "C": 3, "H": 16, "W": 20},
    {"x": ["B", "C", "H", "W"]},
    ["B", "C", "8", "10"],
)


def rotated_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * cos[:, None] + turned * sin[:, None]


def second_best(x: Tensor) -> Tensor:
    values = x.softmax(-1).topk(3, -1).values[:, [0, 2]]
    return values / values.sum(-1, keepdim=True)


def shifted_window(x: Tensor) -> Tensor:
    moved = torch.nn.functional.pad(x, (0, 2, 0, 2), value=-1e30)
    return torch.nn.functional.max_pool2d(moved, 3, stride=2)


def chosen(x: Tensor, y: Tensor) -> Tensor:
    return x.gather(1, y.long().unsqueeze(1)).squeeze(1)


def padded_with_zeros(x: Tensor, y: Tensor) -> Tensor:
    more = torch.zeros(len(x), 6, dtype=x.dtype)
    return torch.cat([x, more], 1).logsumexp(1) - chosen(x, y)


def turned(x: Tensor, is_paired: bool = False, again: int = 1000) -> Tensor:
    a, b = (x[..., :16:2], x[..., 1:16:2]) if is_paired else (x[..., :8], x[..., 8:16])
    t = torch.arange(x.shape[1], dtype=x.dtype) % again
    angle = t[:, None] * 100.0 ** (-torch.arange(8, dtype=x.dtype) / 8)
    made = [a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()]
    both = torch.stack(made, -1).flatten(-2) if is_paired else torch.cat(made, -1)
    return torch.cat([both, x[..., 16:]], -1)


def in_tiles(x: Tensor, weight: Tensor, kept: int) -> Tensor:
    """Tiles of 32 that have the last `kept` of the three columns before them."""
    whole, found = torch.nn.functional.pad(x, (3, 0)), []
    for start in range(0, x.shape[2], 32):
        part = whole[..., start : start + 35].clone()
        part[..., : 3 - kept if start else 0] = 0
        found.append(torch.nn.functional.conv1d(part, weight.unsqueeze(1), groups=6))
    return torch.cat(found, -1)


def of_first_batch(x: Tensor, weight: Tensor) -> Tensor:
    of = x[:1]
    spread = of.var((0, 2), unbiased=False, keepdim=True)
    return (x - of.mean((0, 2), keepdim=True)) / (spread + 1e-5).sqrt() * weight[:, None]


def with_edge(x: Tensor, weight: Tensor) -> Tensor:
    """The padding holds the end of the row before."""
    flat = torch.nn.functional.pad(x.flatten(), (3, 0))
    rows = torch.arange(12).view(-1, 1) * 100 + torch.arange(103)
    return torch.nn.functional.conv1d(flat[rows].view(2, 6, 103), weight.unsqueeze(1), groups=6)


def of_channels(x: Tensor, shape: tuple[int, ...], order: tuple[int, ...]) -> Tensor:
    moved = x.view(2, *shape, 7, 9).permute(0, *order, len(shape) + 1, len(shape) + 2)
    return torch.nn.functional.pixel_shuffle(moved.reshape(x.shape), 2)


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "a target in the rest": (
        TARGETS,
        lambda x, y: x.logsumexp(1) - chosen(x, y) * (y < 160),
        "is not found where it is in the last, cut-off tile beyond a multiple of 32",
    ),
    "padding of zeros": (TARGETS, padded_with_zeros, "are counted in total as scores of zero"),
    "pairs for halves": (
        TURNED,
        lambda x: turned(x, True),
        "neighbouring elements of x (even and odd, interleaved pairs) along D are paired",
    ),
    "positions in a tile": (
        TURNED,
        lambda x: turned(x, again=16),
        "offset of the tile (chunk) is missing, so that it begins again every 16",
    ),
    "no halo": (TAPS, lambda **given: in_tiles(**given, kept=0), "halo before every tile of 32 is"),
    "a short halo": (TAPS, lambda **given: in_tiles(**given, kept=2), "is one column too short"),
    "the row before": (TAPS, with_edge, "window wraps into the end of the row"),
    "the first batch": (NORMALISED, of_first_batch, "taken of the first index alone"),
    "columns": (
        LENGTHS,
        lambda x: x / x.square().sum(0, keepdim=True).sqrt(),
        "taken along the other axis (over columns in place of rows",
    ),
    "channels in turns": (
        SHUFFLED,
        lambda x: of_channels(x, (4, 3), (2, 1)),
        "index along C of x is split the wrong way round, as [4, 3] in place of [3, 4]",
    ),
    "rows for columns": (
        SHUFFLED,
        lambda x: of_channels(x, (3, 2, 2), (1, 3, 2)),
        "row and the column of a 2x2 block are swapped",
    ),
    "a group too early": (
        GROUPS,
        lambda x, scales: x * scales[:, ((torch.arange(64) + 1) // 8).clamp(max=7)],
        "group changes one element too early (off by one)",
    ),
    "the other direction": (ROLLED, lambda x, w: x.roll(-3, -1) * w, "the roll goes in the wrong"),
    "a rotation of pairs": (
        ROTATED,
        rotated_pairs,
        "rotation pairs neighbouring elements (even and odd, interleaved pairs)",
    ),
    "another second": (GATES, second_best, "last of the k largest is the one behind it"),
    "a window of both axes": (LARGEST, shifted_window, "window is shifted by 1 ahead"),
    "the next row": (
        QUANTISED,
        lambda **given: quantised_by_next(**given),
        "scale is taken from the next row",
    ),
    "another divisor": (
        QUANTISED,
        lambda x: quantised(x, 128),
        "divided by the wrong number: by 128 in place of 127",
    ),
    "all in place of those that count": (
        KEPT,
        lambda x: x.relu().sum(-1) / x.shape[-1],
        "divided by the wrong number: by C (50) in place of count.clamp_min(1)",
    ),
}


def quantised(x: Tensor, steps: int) -> Tensor:
    scale = x.abs().amax(-1, keepdim=True) / steps
    return torch.round(x / scale) * scale


def quantised_by_next(x: Tensor) -> Tensor:
    scale = x.abs().amax(-1, keepdim=True) / 127
    return torch.round(x / scale) * scale.roll(-1, 0)


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_another_order_or_index_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    found = first_words(reference.diagnosed(reference.write(tmp_path), mutant))
    assert words.lower() in found.lower()


def test_a_few_numbers_that_are_rounded_explain_no_error(tmp_path: Path) -> None:
    def wrong(x: Tensor, weight: Tensor) -> Tensor:
        spread = x.var((0, 2), unbiased=False, keepdim=True)
        normal = (x - x.mean((0, 2), keepdim=True)) / (spread.sqrt() + 0.1)
        return normal * weight[:, None]

    found = NORMALISED.diagnosed(NORMALISED.write(tmp_path), wrong)
    assert "weight rounded" not in " ".join(one.sentence for one in found.diagnoses)
