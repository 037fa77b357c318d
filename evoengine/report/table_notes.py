"""What is printed below tables to explain them."""

from collections.abc import Iterable, Mapping

from evoengine.emulator.timing_model.combination import BOUNDS, IN_FULL, spent_on

MODELLED = "times are modelled, not measured: they give no speed-up against a library"
COMBINATION = f"from bounds to modelled us: {IN_FULL}"
CHANGED = "tunables: only values that differ from the kernel's defaults"
SPEEDUP = (
    "speed-up: time of the fastest baseline / time of the kernel, with its 95 % interval; below 1"
    " the kernel is slower"
)
ACTIVITY = (
    "kernel activity: kernels, fills and copies alone, as a profiler shows them; replayed times"
    " include what lies between launches, and speed-ups come from these"
)
GPU_REMARKS = (
    "*: timed while the GPU was throttled, below its usual clock or shared; `show --trial` says"
    " which"
)
OVER_TARGET = "!: exceeds a limit of the task's target; `show --trial` says which"
AS_SELECTED = "^: what the search saw; not measured at the end of the run yet"
FINALS = (
    "elites are measured once more at the end of a run, which decides nothing; selected at: what"
    " the search saw"
)
OF_THE_SEARCH = "speed-ups of trials are those that the search saw"


def latency_notes(shares: Mapping[str, Mapping[str, float]]) -> str:
    """What the latency of each case is spent on, by case, a line for each that is known."""
    return "\n".join(
        f"latency of {case}: {spent_on(of_case)}" for case, of_case in shares.items() if of_case
    )


def bound_notes(names: Iterable[str]) -> str:
    """What each of these bounds of a modelled time is, a line for each; a bound of a run of
    another version may be unknown, and has none.
    """
    return "\n".join(f"{name}: {BOUNDS[name]}" for name in dict.fromkeys(names) if name in BOUNDS)
