"""The sizes on which the emulator judges a kernel of a corpus in a second, by task and corpus."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from evoengine.task.schema import Task

Sizes = Mapping[str, Any]  # dimension -> its value
# "cases" and "hidden_cases", as a task file has them: name -> sizes
SmallCases = Mapping[str, Mapping[str, Sizes]]


class Corpus(StrEnum):
    """What the kernels of a corpus need of their cases.

    `cheats`: the shown sizes of the whole task where a cheat looks at them, hidden ones odd as
    there. `honest`: enough blocks that queues, splits and counters have something to do. `bugs`:
    several heads, batches, tiles and slices, so that wrong ones differ from right ones; some shown
    sizes are odd, because a tail that only hidden sizes have may not be explained to a generator.
    """

    cheats = "cheats"
    honest = "honest"
    bugs = "bugs"


_ATTENTION: Mapping[Corpus, SmallCases] = {
    Corpus.cheats: {
        "cases": {"mission": {"B": 1, "H": 3, "S": 512, "D": 64, "causal": False}},
        # enough heads that some are quiet in the distribution of slices that differ in scale
        "hidden_cases": {"odd": {"B": 3, "H": 5, "S": 77, "D": 64, "causal": True}},
    },
    Corpus.honest: {
        "cases": {
            "full": {"B": 1, "H": 3, "S": 128, "D": 64, "causal": False},
            "causal": {"B": 2, "H": 2, "S": 77, "D": 64, "causal": True},
            "wide_head": {"B": 1, "H": 2, "S": 96, "D": 128, "causal": False},
        },
        "hidden_cases": {"single": {"B": 2, "H": 1, "S": 1, "D": 64, "causal": True}},
    },
    Corpus.bugs: {
        "cases": {
            "full": {"B": 2, "H": 3, "S": 192, "D": 64, "causal": False},
            "causal": {"B": 2, "H": 4, "S": 96, "D": 64, "causal": True},
            "wide_head": {"B": 1, "H": 2, "S": 77, "D": 128, "causal": False},
        },
        "hidden_cases": {"odd": {"B": 2, "H": 1, "S": 45, "D": 64, "causal": True}},
    },
}
_FEW_ROWS = {"rows": {"N": 33, "C": 1024}}
_ODD_ROWS = {"odd": {"N": 7, "C": 333}}
_ROWS_OF_BUGS = {
    "cases": {**_FEW_ROWS, "ragged": {"N": 5, "C": 1003}},
    "hidden_cases": _ODD_ROWS,
}
_MATRICES = {"square": {"M": 128, "N": 192, "K": 256}, "flat": {"M": 48, "N": 264, "K": 72}}
_BAGS = {
    "words": {"V": 4096, "D": 128, "T": 512, "BAGS": 48},
    "long_bags": {"V": 256, "D": 64, "T": 1024, "BAGS": 3},
}
SMALL_CASES: Mapping[str, Mapping[Corpus, SmallCases]] = {
    "sdpa_h200": _ATTENTION,
    "sdpa_l4": _ATTENTION,
    "matmul_fp16": {
        Corpus.cheats: {
            "cases": {"square": {"M": 128, "N": 128, "K": 1024}},
            "hidden_cases": {"odd": {"M": 77, "N": 65, "K": 257}},
        },
        Corpus.honest: {"cases": _MATRICES},
        Corpus.bugs: {
            "cases": {**_MATRICES, "ragged": {"M": 70, "N": 65, "K": 131}},
            "hidden_cases": {"odd": {"M": 77, "N": 130, "K": 33}},
        },
    },
    "linear_gelu": {
        Corpus.bugs: {
            "cases": {
                "layer": {"M": 128, "N": 192, "K": 96},
                "ragged": {"M": 70, "N": 65, "K": 72},
            },
            "hidden_cases": {"odd": {"M": 77, "N": 130, "K": 33}},
        },
    },
    "layernorm": {
        Corpus.cheats: {
            "cases": {"rows": {"N": 1024, "C": 1024}},
            "hidden_cases": _ODD_ROWS,
        },
        Corpus.honest: {"cases": {**_FEW_ROWS, "few": {"N": 3, "C": 8192}}},
        Corpus.bugs: _ROWS_OF_BUGS,
    },
    "starter": {
        Corpus.cheats: {"cases": _FEW_ROWS, "hidden_cases": _ODD_ROWS},
        Corpus.honest: {"cases": {**_FEW_ROWS, "broad": {"N": 5, "C": 4096}}},
        Corpus.bugs: _ROWS_OF_BUGS,
    },
    "adamw": {
        Corpus.cheats: {
            "cases": {"layer": {"N": 65536, "STEP": 10}},
            "hidden_cases": {"odd": {"N": 1003, "STEP": 3}},
        },
        Corpus.honest: {
            "cases": {"layer": {"N": 4096, "STEP": 10}, "model": {"N": 5120, "STEP": 64}},
            "hidden_cases": {"odd": {"N": 1003, "STEP": 3}, "single": {"N": 1, "STEP": 1}},
        },
        Corpus.bugs: {
            "cases": {"layer": {"N": 4096, "STEP": 10}, "ragged": {"N": 3001, "STEP": 3}},
            "hidden_cases": {"odd": {"N": 1003, "STEP": 5}},
        },
    },
    "embedding_bag": {
        Corpus.cheats: {  # more rows than a short can count
            "cases": {"words": {"V": 40000, "D": 64, "T": 4096, "BAGS": 256}},
            "hidden_cases": {"odd": {"V": 300, "D": 36, "T": 1111, "BAGS": 97}},
        },
        Corpus.honest: {"cases": _BAGS},
        Corpus.bugs: {
            "cases": {**_BAGS, "ragged": {"V": 300, "D": 36, "T": 111, "BAGS": 97}},
            "hidden_cases": {"odd": {"V": 131, "D": 132, "T": 55, "BAGS": 40}},
        },
    },
}


def on_small_cases(task: Task, corpus: Corpus) -> Task:
    """`task` with its gates, on small cases; its hidden ones stay where the table has none."""
    whole, small = task.model_dump(), SMALL_CASES[task.name][corpus]
    objective = {**whole["objective"], "cases": list(small["cases"])}
    return Task.model_validate({**whole, **small, "objective": objective})
