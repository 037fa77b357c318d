"""What changes of the sizes, buffers and launches of a plan say, by their kinds."""

from __future__ import annotations

# the kind, and what was wrong in front of the place
PLAN_WORDS = {
    "size of the plan that nothing reads": (
        "too little shared memory: a size is computed that nothing reads, although it is the"
        " larger one (the maximum of both is needed), in"
    ),
    "grid without a factor": (
        "the grid is too small: the kernel divides its block number by a factor that the grid does"
        " not have, so that the last blocks (heads, halves) are missing and never written, in"
    ),
    "grid that lacks a factor": (
        "the grid is too small: a factor of its size is missing (it counts rows and not elements),"
        " so that blocks are missing and what they should write, clear or add is left out, in"
    ),
    "argument of the plan that lacks a factor": (
        "the launch passes too small a number: a factor of the size is missing, in"
    ),
    "size of the plan that lacks a factor": (
        "a size of the launch plan is too small: a factor is missing, in"
    ),
    "factor of the plan too many": (
        "a size of the launch plan has a factor too many, so that the grid, a buffer or a number"
        " that is passed is too small or too large, in"
    ),
    "arguments of the plan moved": (
        "the arguments of a launch are in the wrong order: one of them stands at the wrong end of"
        " the list, so that the kernel takes each for another, in"
    ),
    "root in the plan missing": (
        "the square root (sqrt) of a number that the launch plan passes is missing, in"
    ),
    "axis of scratch missing": (
        "the scratch buffer is too small: it lacks an axis (one plane for each slice or block),"
        " so that writes go beyond its end, in"
    ),
    "scratch without a factor": (
        "the scratch buffer is too small: it lacks a factor that the grid has, in"
    ),
    "buffer of another launch": (
        "the wrong buffer is passed: a launch reads or writes another one of the buffers in turn"
        " (ping-pong), so that the last result is stale or lost, in"
    ),
    "sizes of the launch before": (
        "a launch is given the sizes of the launch before it (copied), not its own number of"
        " parts: it reads too many or too few, in"
    ),
    "scalar of the plan that is alike": (
        "the wrong scalar is passed: that of another launch, whose name is alike (copied), in"
    ),
}
