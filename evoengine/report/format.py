"""Numbers as text for people."""

from __future__ import annotations

from collections.abc import Mapping

from evoengine.duration import duration as duration
from evoengine.records import GpuState, Interval, Usage

KIB = 1024


def speedup(interval: Interval | None) -> str:
    """`1.23x [1.20, 1.26]`; a dash if there is no time."""
    return f"{interval.value:.2f}x [{interval.low:.2f}, {interval.high:.2f}]" if interval else "-"


def rough(interval: Interval | None) -> str:
    """`~0.52`, a figure of a timing that stopped early; a dash if there is none."""
    return f"~{float(f'{interval.value:.2g}'):g}" if interval else "-"


def share(interval: Interval) -> str:
    """`0.981 [0.975, 0.987]`: a time as a share of another."""
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def vs_first(ratio: float | None) -> str:
    """`1.23x`, against the first correct trial's modelled time; a dash if there is none."""
    return f"{ratio:.2f}x" if ratio else "-"


def micros(interval: Interval | None) -> str:
    """A time in microseconds with about four digits, without its unit."""
    return _four_digits(interval.value) if interval else "-"


def micros_interval(interval: Interval | None) -> str:
    """`12.34 [12.30, 12.41]`, in microseconds."""
    return (
        f"{_four_digits(interval.value)} [{_four_digits(interval.low)},"
        f" {_four_digits(interval.high)}]"
        if interval
        else "-"
    )


def error(value: float | None) -> str:
    """An error of a check; NaN and infinity are spelled out."""
    return "-" if value is None else f"{value:.2e}"


def kib(count: int) -> str:
    """Bytes in KiB, precise enough to compare with a limit."""
    return "0" if count == 0 else f"{count / KIB:.1f}"


def size(count: int) -> str:
    """Bytes with the unit that leaves the fewest digits: `512 B`, `3.4 MiB`."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= KIB**power:
            return f"{count / KIB**power:.1f} {unit}"
    return f"{count} B"


def tunables(values: Mapping[str, int]) -> str:
    """`BLOCK_M=64 WARPS=8`; a dash if there are none."""
    return " ".join(f"{name}={value}" for name, value in values.items()) or "-"


def usage(spent: Usage, cost_known: bool = True) -> str:
    """Tokens and cost in one line."""
    cost = (
        f"{spent.cost_usd:.4f} USD"
        if cost_known
        else "cost unknown (set --price to the cost of a million tokens)"
    )
    return f"{spent.prompt_tokens:,} prompt + {spent.completion_tokens:,} completion tokens, {cost}"


def gpu_state(found: GpuState) -> str:
    """`1755-1980 of 1980 MHz, 41 C, 302 of 700 W; throttled: power limit`, as far as known."""
    clock = ""
    if found.sm_clock_mhz is not None:
        low, high = found.sm_clock_mhz
        clock = f"{low if low == high else f'{low}-{high}'}{_of(found.most_sm_clock_mhz)} MHz"
        clock += " while idle" if found.idle else ""
    figures = (
        clock,
        "" if found.temperature_c is None else f"{found.temperature_c} C",
        "" if found.power_w is None else f"{found.power_w:.0f}{_of(found.power_limit_w)} W",
    )
    known = ", ".join(figure for figure in figures if figure)
    return "; ".join((known or "NVML gives no figures of it", *found.remarks))


def _of(most: float | None) -> str:
    return "" if most is None else f" of {most:.0f}"


def _four_digits(value: float) -> str:
    digits = 2 if value < 100 else 1 if value < 1000 else 0
    return f"{value:.{digits}f}"


def printable(text: str) -> str:
    """`text` without characters that control the terminal, because a model may have written it."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )
