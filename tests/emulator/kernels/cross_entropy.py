"""Cross entropy of half logits, with ignored labels and a total by atomics."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, InOut, Out
from tests.emulator.float64_references import halves, softmax


def cases() -> list[Case]:
    """Eleven rows of 333 classes, two of which are ignored."""
    rows, classes = 11, 333
    logits = halves(1, rows, classes, scale=2.0)
    labels = np.random.default_rng(2).integers(0, classes, rows).astype(np.int32)
    labels[[2, 7]] = -100
    used = labels >= 0
    losses = np.where(used, -np.log(softmax(logits)[np.arange(rows), np.where(used, labels, 0)]), 0)
    buffers = (Out(rows, "float32"), InOut(np.zeros(1, np.float32)), InOut(np.zeros(1, np.int32)))
    args = (In(logits), In(labels), *buffers, np.int32(classes))
    expected = {2: losses, 3: losses.sum(keepdims=True), 4: np.array([used.sum()], np.int32)}
    return [
        Case(
            "rows",
            "cross_entropy",
            (rows, 1, 1),
            (128, 1, 1),
            args,
            expected,
            atol=1e-5,
            rtol=1e-5,
            gpu=Close(1e-5, 1e-5),
        )
    ]
