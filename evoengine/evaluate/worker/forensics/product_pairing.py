"""Which elements along the inner dimension a wrong product multiplies with which, and how often.

Recovered by least squares from what the product must have been: of `sum_k a[m, k] b[k, n]` either
each k has a weight, or, in every block of places alike, each place of a meets another one of b.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.forensics.exchanged_places import axis_exchanges, axis_repeats
from evoengine.evaluate.worker.forensics.implied_terms import CountedTerms, counted_terms

FITTED = 0.03  # of the squared difference that may be left
FITTED_COUNT = 0.4  # the same where so few unknowns as a range are fitted to all samples
MOST_PLACES = 24  # in a block: their square is what is solved for
MOST_SAMPLES = 3072
LEAST_SAMPLES = 3  # for each unknown
TRIMS = 4  # rounds in which the samples that fit worst are left out
TRIMMED = 0.85  # of the samples that are kept
ENTRY = 0.2  # of a pairing, from a whole number
SIZES = (8, 16, 4, 2)  # places of a block
WIDTHS = (1, 8, 2, 4, 16, 32, 64)  # neighbours that stay together


@dataclass(frozen=True, eq=False)
class SampledProduct:
    """Some elements of a product: their places, the rows of a and the columns of b that make them,
    float64 (samples, depth), what they are, and what they must have been, (samples,).
    """

    row: torch.Tensor
    column: torch.Tensor
    rows: torch.Tensor
    columns: torch.Tensor
    right: torch.Tensor
    implied: torch.Tensor

    def at(self, chosen: torch.Tensor) -> SampledProduct:
        """Those of the samples that `chosen`, bool of shape (samples,), names."""
        return SampledProduct(
            self.row[chosen],
            self.column[chosen],
            self.rows[chosen],
            self.columns[chosen],
            self.right[chosen],
            self.implied[chosen],
        )

    @property
    def power(self) -> float:
        """The squared difference."""
        return float((self.implied - self.right).square().sum())


def sampled_product(
    a: torch.Tensor,
    b: torch.Tensor,
    right: torch.Tensor,
    implied: torch.Tensor,
    known: torch.Tensor,
) -> SampledProduct | None:
    """MOST_SAMPLES elements of `right` = a @ b, drawn from those that are `known`, bool of its
    shape; None where the operands do not make them.
    """
    batch = right.shape[:-2]
    depth = a.shape[-1]
    if a.dim() < 2 or b.dim() < 2 or b.shape[-2] != depth or right.dim() < 2:
        return None
    first = a.expand(*batch, *a.shape[-2:]).reshape(-1, a.shape[-2], depth)
    second = b.expand(*batch, *b.shape[-2:]).reshape(-1, depth, b.shape[-1])
    usable = known.flatten().nonzero().flatten()
    generator = torch.Generator().manual_seed(0)
    at = usable[torch.randperm(len(usable), generator=generator)[:MOST_SAMPLES]]
    plane, place = (
        at // (right.shape[-2] * right.shape[-1]),
        at % (right.shape[-2] * right.shape[-1]),
    )
    row, column = place // right.shape[-1], place % right.shape[-1]
    return SampledProduct(
        row,
        column,
        first[plane, row],
        second[plane, :, column],
        right.reshape(-1)[at],
        implied.reshape(-1)[at],
    )


def counted_products(sample: SampledProduct, hints: Sequence[int]) -> CountedTerms | None:
    """The products that are missing, or counted more than once."""
    terms = sample.rows * sample.columns
    return counted_terms(terms, sample.implied - sample.right, hints, FITTED_COUNT)


@dataclass(frozen=True, eq=False)
class Pairing:
    """Which places of b each place of a meets, in blocks of `size` places of `width` neighbours.

    `times` (size, size): how often place i of a meets place j of b; the identity is right.
    """

    size: int
    width: int
    times: torch.Tensor

    def of(self, a: torch.Tensor) -> torch.Tensor:
        """The first operand with which a right product gives the wrong one."""
        block = self.size * self.width
        whole = a.shape[-1] // block * block
        cut = a[..., :whole].unflatten(-1, (-1, self.size, self.width))
        mixed = torch.einsum("...iw,ij->...jw", cut, self.times.to(a.device, a.dtype))
        return torch.cat([mixed.flatten(-3), a[..., whole:]], -1)

    def words(self, first: str, second: str) -> str:
        """`in every 16 along the inner dimension (K), 0..7 of a meet 8..15 of b`."""
        known = self._known()
        if known:
            return f"{known}{self._kind()}"
        pairs = [(i, [j for j in range(self.size) if self.times[i, j]]) for i in range(self.size)]
        moved = [(i, js) for i, js in pairs if js != [i]]
        again = [j for j in range(self.size) if float(self.times[:, j].max()) > 1]
        shown = "; ".join(self._meets(i, js, first, second) for i, js in moved[:3])
        if again:
            shown += f"{'; ' if shown else ''}{self._span(again[0])} of {second} counts twice"
        more = ", and so on" if len(moved) > 3 else ""
        block = self.size * self.width
        return f"in every {block} places of K {shown}{more}{self._kind()}"

    def _known(self) -> str:
        """The order in words where it is one of those that kernels mix up."""
        if not bool((self.times.sum(1) == 1).all()):
            return ""
        block = self.size * self.width
        read = self.times.argmax(1)
        order = (read[:, None] * self.width + torch.arange(self.width)).flatten()
        if torch.equal(order, torch.arange(block - 1, -1, -1)):
            return f"with every {block} in reverse order (along K)"
        for exchange in (*axis_exchanges((block,)), *axis_repeats((self.width,))):
            # as a is mixed: place i of b meets the place of a that holds i there
            if torch.equal(exchange.source(block), order):
                return f"{exchange.words} (along K)"
        return ""

    def _meets(self, i: int, js: Sequence[int], first: str, second: str) -> str:
        others = " and ".join(self._span(j) for j in js)
        return (
            f"{self._span(i)} of {first} {f'meets {others} of {second}' if js else 'is left out'}"
        )

    def _span(self, number: int) -> str:
        start = number * self.width
        return f"{start}" if self.width == 1 else f"{start}..{start + self.width - 1}"

    def _kind(self) -> str:
        used = self.times.sum(0)
        each = bool((self.times.sum(1) == 1).all())
        if each and bool((used == 1).all()):
            return ": they are in the wrong order (swapped, permuted)"
        if each:
            return (
                ": some are read again (repeat, stale) in place of the others, which are left out"
            )
        return ""


def pairings(sample: SampledProduct, tiles: Sequence[int]) -> Iterator[Pairing]:
    """Pairings that explain most of the difference, smaller blocks first."""
    depth = sample.rows.shape[1]
    shapes = [(size, width) for width in WIDTHS for size in SIZES]
    shapes += [(depth // tile, tile) for tile in dict.fromkeys((*tiles, 16, 32, 64, 128))]
    shapes.sort(key=lambda shape: (shape[0] * shape[1] > 64, shape[0] ** 2))
    for size, width in dict.fromkeys(shapes):
        if 2 <= size <= MOST_PLACES and size * width <= depth:
            found = one_pairing(sample, size, width)
            if found is not None:
                yield found


def _solved(features: torch.Tensor, difference: torch.Tensor) -> torch.Tensor:
    gram = features.T @ features
    gram += 1e-10 * float(gram.diagonal().mean()) * torch.eye(len(gram), dtype=gram.dtype)
    solved: torch.Tensor = torch.linalg.solve_ex(gram, features.T @ difference).result
    return solved


def one_pairing(
    sample: SampledProduct, size: int, width: int, may_be_right: bool = False
) -> Pairing | None:
    """The pairing of blocks of `size` places of `width`; None where none explains it."""
    block = size * width
    whole = sample.rows.shape[1] // block * block
    needed = LEAST_SAMPLES * size * size + 64
    if needed > len(sample.right):
        return None
    # a few suffice to see that nothing fits
    kept = torch.linspace(0, len(sample.right) - 1, needed).long()
    first = sample.rows[kept, :whole].unflatten(1, (-1, size, width))
    second = sample.columns[kept, :whole].unflatten(1, (-1, size, width))
    made = torch.einsum("stiw,stjw->sij", first, second)
    difference = (sample.implied - sample.right)[kept]
    power = float(difference.square().sum())
    features = made.flatten(1)
    solved = _solved(features, difference)
    for _ in range(TRIMS):  # products that an activation gives twice are outliers
        off = (difference - features @ solved).abs()
        near = off <= off.quantile(TRIMMED)
        solved = _solved(features[near], difference[near])
    left = float((difference - features @ solved)[near].square().sum())
    free = max(1, int(near.sum()) - len(solved))
    scale = float(sample.right[kept].square().sum()) if may_be_right else power
    if scale == 0 or left / free > FITTED * scale / len(kept):
        return None
    times = solved.view(size, size) + torch.eye(size, dtype=solved.dtype)
    whole_times = times.round()
    if float((times - whole_times).abs().max()) > ENTRY:
        return None
    factor = whole_times[0, 0]
    if not may_be_right and torch.equal(whole_times, factor * torch.eye(size, dtype=solved.dtype)):
        return None  # right, or all products alike
    return Pairing(size, width, whole_times)
