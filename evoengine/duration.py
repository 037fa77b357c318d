"""Durations as people write and read them."""

from __future__ import annotations

import re

MINUTE_S, HOUR_S = 60, 3600
_UNITS_S = {"s": 1, "m": MINUTE_S, "h": HOUR_S}
_PARTS = re.compile(r"(\d+(?:\.\d+)?)([smh])")


def duration(seconds: float) -> str:
    """`seconds` as text: `45s`, `3m07s`, `2h05m`."""
    whole = max(0, round(seconds))
    if whole < MINUTE_S:
        return f"{whole}s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S}m{whole % MINUTE_S:02d}s"
    return f"{whole // HOUR_S}h{whole % HOUR_S // MINUTE_S:02d}m"


def seconds_of(text: str) -> float:
    """The seconds in a text such as `90`, `45s`, `1h30m` or `2.5h`; raises ValueError for other
    texts and for 0.
    """
    plain = text.strip().lower()
    parts = _PARTS.findall(plain)
    seconds = (
        float(plain)
        if re.fullmatch(r"\d+(\.\d+)?", plain)
        else sum(float(count) * _UNITS_S[unit] for count, unit in parts)
    )
    if not seconds or (parts and "".join(f"{count}{unit}" for count, unit in parts) != plain):
        raise ValueError(f"expected a time such as 90s, 45m, 2h or 1h30m, got {text!r}")
    return seconds
