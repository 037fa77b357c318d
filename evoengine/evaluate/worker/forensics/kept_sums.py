"""Products whose tiles also have the sums of another tile, as where sums are not set back to zero
between the tiles of a block.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.forensics.explained_share import ExplainedShare
from evoengine.evaluate.worker.forensics.implied_products import is_known
from evoengine.evaluate.worker.forensics.implied_values import ImpliedValues, Site
from evoengine.evaluate.worker.forensics.lead import Lead, step_lead
from evoengine.evaluate.worker.forensics.reference_steps import StepRecorder, steps_in_order

SIZES = (128, 64, 32, 16)
LEAST_SIZE = 8
MOST_TILES = 512  # of a product
LEFT = 0.05  # of the squared difference of a tile, where it is the sum of another one
WRONG = 1e-4  # of the power of a tile: less is noise
LEAST = 0.8  # of the wrong tiles
SPOILED = 0.05


@dataclass(frozen=True, eq=False)
class _Tiles:
    """A product in tiles, float64 (tiles, elements): what is missing, what was made, and where both
    are known.
    """

    missing: torch.Tensor
    made: torch.Tensor
    known: torch.Tensor
    height: int
    width: int
    shape: torch.Size

    def whole(self, tiles: torch.Tensor) -> torch.Tensor:
        """`tiles` put together again."""
        rows, columns = -(-self.shape[-2] // self.height), -(-self.shape[-1] // self.width)
        laid = tiles.view(-1, rows, columns, self.height, self.width).transpose(-2, -3)
        laid = laid.reshape(-1, rows * self.height, columns * self.width)
        return laid[:, : self.shape[-2], : self.shape[-1]].reshape(self.shape)


class KeptSums:
    """Looks for tiles of a product that also have the sums of another one."""

    def __init__(
        self,
        implied: ImpliedValues,
        explained: ExplainedShare,
        recorder: StepRecorder,
        tiles: Sequence[int],
    ) -> None:
        """All of the whole case: a window may leave out the other tile."""
        self._implied = implied
        self._explained = explained
        self._recorder = recorder
        # larger ones first: where they fit, smaller ones do as well
        self._sizes = sorted({*(one for one in tiles if one >= LEAST_SIZE), *SIZES}, reverse=True)

    def leads(self) -> Iterator[Lead]:
        """A lead where another tile explains what is missing. Raises TimeUp."""
        steps = [one for one in steps_in_order(self._recorder) if one.name == "matmul"]
        for step in steps[-1:]:
            fit = self._implied.fitted([Site(step.place)])
            if fit is None or fit.values[0].right.dim() < 2:
                continue
            value = fit.values[0]
            known = is_known(value).cpu()
            for height, width in itertools.product(self._sizes, self._sizes):
                tiles = _cut(value.right.cpu(), value.implied.cpu(), known, height, width)
                sources = None if tiles is None else _sources(tiles)
                if tiles is None or sources is None:
                    continue
                kept = torch.where(sources[:, None] >= 0, tiles.made[sources], 0.0)
                product = value.right + tiles.whole(kept).to(value.right.device)
                outputs = self._implied.with_values({Site(step.place): product})
                found = outputs and self._explained.of(outputs)
                if not found or found.share < LEAST or found.spoiled > SPOILED:
                    continue
                words = (
                    f"the sums of {step.result} are not set back to zero between tiles:"
                    f" {_which(sources)} of {height}x{width} also has the products of the tile that"
                    " the same block computed before it (the accumulator is kept, not cleared)"
                )
                yield step_lead(words, found.share, step.words)
                return


def _cut(
    right: torch.Tensor, implied: torch.Tensor, known: torch.Tensor, height: int, width: int
) -> _Tiles | None:
    """None where there is one tile, or too many."""
    rows, columns = -(-right.shape[-2] // height), -(-right.shape[-1] // width)
    planes = right.shape[:-2].numel()
    if not 1 < planes * rows * columns <= MOST_TILES:
        return None

    def tiled(value: torch.Tensor) -> torch.Tensor:
        flat = value.double().reshape(planes, *right.shape[-2:])
        padding = (0, columns * width - right.shape[-1], 0, rows * height - right.shape[-2])
        filled = torch.nn.functional.pad(flat, padding)
        cut = filled.view(planes, rows, height, columns, width).transpose(2, 3)
        return cut.reshape(planes * rows * columns, height * width)

    return _Tiles(tiled(implied - right), tiled(implied), tiled(known), height, width, right.shape)


def _sources(tiles: _Tiles) -> torch.Tensor | None:
    """For each tile the earlier one whose sums it also has, -1 for none; None where not all wrong
    tiles have one.
    """
    missing, made = tiles.missing * tiles.known, tiles.made * tiles.known
    power = missing.square() @ tiles.known.T
    left = power - 2 * missing @ made.T + tiles.known @ made.square().T
    earlier = torch.ones_like(left).tril(-1).bool()
    share = (left / power.clamp_min(1e-300)).masked_fill(~earlier, float("inf"))
    near, source = share.min(1)
    own = missing.square().sum(1)
    wrong = own > WRONG * tiles.made.square().sum(1).mean()
    if not bool(wrong.any()):
        return None
    found = wrong & (near < LEFT)
    if int(found.sum()) < LEAST * int(wrong.sum()) or int(found.sum()) < 2:
        return None
    return torch.where(found, source, torch.full_like(source, -1))


def _which(sources: torch.Tensor) -> str:
    steps = {int(number) - int(one) for number, one in enumerate(sources.tolist()) if one >= 0}
    return "each tile" if len(steps) > 1 else f"from tile {steps.pop()} on each tile"
