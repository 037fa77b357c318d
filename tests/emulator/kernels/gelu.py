"""GELU with erff and with tanhf."""

import numpy as np
import torch

from tests.emulator.corpus import Case, Close, In, Out


def cases() -> list[Case]:
    return [_case("exact", "false", "none", 1003), _case("tanh", "true", "tanh", 514)]


def _case(name: str, approximate: str, kind: str, n: int) -> Case:
    x = np.concatenate(
        [np.random.default_rng(n).standard_normal(n - 3) * 3, [0.0, -20.0, 20.0]]
    ).astype(np.float32)
    expected = torch.nn.functional.gelu(torch.from_numpy(x).double(), approximate=kind).numpy()
    args = (In(x), Out(n, "float32"), np.int32(n))
    close = Close(atol=5e-7, rtol=2e-6)
    return Case(
        name,
        f"gelu<{approximate}>",
        (-(-n // 256), 1, 1),
        (64, 1, 1),
        args,
        {1: expected},
        atol=1e-6,
        rtol=5e-6,
        gpu=close,
    )
