"""A scatter plot of two positive quantities on logarithmic axes, as SVG text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

SIZE, MARGIN, LEGEND = 520, 60, 170
# Okabe and Ito, Color Universal Design (2008): told apart with any kind of colour vision
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A00")


@dataclass(frozen=True)
class Point:
    """One mark; `label` is shown where the pointer rests on it."""

    x: float
    y: float
    group: str
    label: str


def scatter(points: Sequence[Point], *, title: str, x: str, y: str) -> str:
    """The plot, with the diagonal on which both are equal; raises ValueError without points."""
    if not points:
        raise ValueError("expected at least one point")
    values = [value for point in points for value in (point.x, point.y)]
    low, high = (
        math.floor(math.log10(min(values)) * 2) / 2,
        math.ceil(math.log10(max(values)) * 2) / 2,
    )
    high = max(high, low + 0.5)
    groups = sorted({point.group for point in points})
    colours = {group: COLOURS[position % len(COLOURS)] for position, group in enumerate(groups)}

    def place(value: float) -> float:
        return (math.log10(value) - low) / (high - low) * (SIZE - 2 * MARGIN)

    near, far = MARGIN, SIZE - MARGIN
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIZE + LEGEND}" height="{SIZE}"'
            ' font-family="sans-serif" font-size="12">'
        ),
        f'<rect width="{SIZE + LEGEND}" height="{SIZE}" fill="white"/>',
        f'<text x="{MARGIN}" y="36" font-size="13">{escape(title)}</text>',
        (
            f'<rect x="{near}" y="{near}" width="{far - near}" height="{far - near}" fill="none"'
            ' stroke="#999"/>'
        ),
        f'<line x1="{near}" y1="{far}" x2="{far}" y2="{near}" stroke="#bbb" stroke-dasharray="4"/>',
        f'<text x="{SIZE / 2}" y="{SIZE - 14}" text-anchor="middle">{escape(x)}</text>',
        (
            f'<text x="16" y="{SIZE / 2}" text-anchor="middle" transform="rotate(-90 16'
            f' {SIZE / 2})">{escape(y)}</text>'
        ),
    ]
    for tick in _ticks(low, high):
        at = place(tick)
        parts.append(
            f'<text x="{near + at:.1f}" y="{far + 16}" text-anchor="middle">{tick:g}</text>'
        )
        parts.append(
            f'<text x="{near - 6}" y="{far - at + 4:.1f}" text-anchor="end">{tick:g}</text>'
        )
    for point in points:
        centre = f'cx="{near + place(point.x):.1f}" cy="{far - place(point.y):.1f}"'
        told = escape(f"{point.label}: {point.x:.2f}, {point.y:.2f}")
        parts.append(
            f'<circle {centre} r="3.5" fill="{colours[point.group]}"'
            f' fill-opacity="0.75"><title>{told}</title></circle>'
        )
    for position, group in enumerate(groups):
        height = MARGIN + 10 + 20 * position
        parts.append(f'<circle cx="{SIZE - 34}" cy="{height}" r="4" fill="{colours[group]}"/>')
        parts.append(f'<text x="{SIZE - 24}" y="{height + 4}">{escape(group)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _ticks(low: float, high: float) -> list[float]:
    candidates = [
        step * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for step in (1, 2, 5)
    ]
    return [tick for tick in candidates if low - 1e-9 <= math.log10(tick) <= high + 1e-9]
