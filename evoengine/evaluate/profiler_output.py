"""Reads what Nsight Compute writes with `--csv --page raw`: one column a metric, one row a launch.

The row below the names has the units. Numbers may have commas between thousands. Names of metrics:
Nsight Compute documentation, "Metrics Decoder", and its sections SpeedOfLight,
ComputeWorkloadAnalysis, MemoryWorkloadAnalysis, Occupancy and WarpStateStats.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping

from evoengine.records import KernelProfile

REFUSED = "ERR_NVGPUCTRPERM"
SECTIONS = (
    *("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis"),
    *("Occupancy", "WarpStateStats"),
)
_TIME = "gpu__time_duration.sum"
_COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
_MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
_DRAM = (
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
)
_DRAM_BYTES = "dram__bytes.sum.per_second"
_L1_HITS, _L2_HITS = "l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct"
_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
_PIPE = re.compile(
    r"sm__(?:inst_executed_pipe_(?P<issued>\w+)|pipe_(?P<busy>\w+)_cycles_active)"
    r"\.avg\.pct_of_peak_sustained_active"
)
_STALL = re.compile(
    r"smsp__average_warps_issue_stalled_(?P<reason>\w+?)(?P<other>_not_issued)?"
    r"_per_issue_active\.ratio"
)
_US = {
    **{"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0},
    **{"ms": 1e3, "msecond": 1e3, "s": 1e6, "second": 1e6},
}
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BYTES_PER_S = re.compile(r"(?P<prefix>[KMGT]?)byte/s(?:econd)?")


def profiles(text: str, case: str) -> tuple[KernelProfile, ...]:
    """The launches in the profiler's log, in order; () where it holds none."""
    lines = text.splitlines()
    start = next((place for place, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return ()
    table = list(csv.reader(line for line in lines[start:] if line.startswith('"')))
    header, units, rows = table[0], table[1:2], table[2:]
    unit_of = dict(zip(header, units[0], strict=False)) if units else {}
    return tuple(
        _profile(dict(zip(header, row, strict=False)), unit_of, case)
        for row in rows
        if len(row) == len(header)
    )


def _profile(row: Mapping[str, str], units: Mapping[str, str], case: str) -> KernelProfile:
    time, rate = _number(row.get(_TIME)), _number(row.get(_DRAM_BYTES))
    time_unit = _US.get(units.get(_TIME, ""))
    rate_unit = _BYTES_PER_S.fullmatch(units.get(_DRAM_BYTES, ""))
    dram = [value for name in _DRAM if (value := _number(row.get(name))) is not None]
    return KernelProfile(
        case=case,
        kernel=row.get("Kernel Name", ""),
        us=None if time is None or time_unit is None else time * time_unit,
        compute_percent=_number(row.get(_COMPUTE)),
        memory_percent=_number(row.get(_MEMORY)),
        dram_percent=dram[0] if dram else None,
        dram_bytes_per_s=(
            None if rate is None or rate_unit is None else rate * _PREFIX[rate_unit["prefix"]]
        ),
        l1_hit_percent=_number(row.get(_L1_HITS)),
        l2_hit_percent=_number(row.get(_L2_HITS)),
        occupancy_percent=_number(row.get(_OCCUPANCY)),
        pipes=_most_first(_pipes(row)),
        stalls=_most_first(_stalls(row)),
    )


def _pipes(row: Mapping[str, str]) -> Iterable[tuple[str, float]]:
    found: dict[str, float] = {}
    for name, text in row.items():
        match, value = _PIPE.fullmatch(name), _number(text)
        if match and value is not None:
            pipe = match["issued"] or match["busy"]
            found[pipe] = max(found.get(pipe, 0.0), value)
    return found.items()


def _stalls(row: Mapping[str, str]) -> Iterable[tuple[str, float]]:
    for name, text in row.items():
        match, value = _STALL.fullmatch(name), _number(text)
        # a warp that was selected did not wait
        if match and value is not None and not match["other"] and match["reason"] != "selected":
            yield match["reason"], value


def _most_first(items: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((item for item in items if item[1] > 0), key=lambda item: -item[1]))


def _number(text: str | None) -> float | None:
    """None for what is no finite number, as `n/a` and `nan`."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None
