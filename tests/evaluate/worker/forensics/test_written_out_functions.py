"""Functions that are written out give what torch's own give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from evoengine.evaluate.worker.forensics.reference_steps import step_name
from evoengine.evaluate.worker.forensics.written_out_functions import WRITTEN_OUT
from tests.evaluate.worker.forensics.mistakes import of_some


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


ROWS, IMAGE, WAVE = drawn(6, 8), drawn(2, 4, 7, 9), drawn(2, 4, 11)
QUERIES = drawn(2, 3, 5, 8)
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "softmax": (torch.softmax, (ROWS,), {"dim": -1}),
    "log_softmax": (torch.log_softmax, (ROWS, 0), {}),
    "logsumexp": (torch.logsumexp, (ROWS,), {"dim": (0, 1)}),
    "cross_entropy": (functional.cross_entropy, (ROWS, torch.arange(6)), {}),
    "nll_loss": (
        functional.nll_loss,
        (ROWS, torch.arange(6), drawn(8).abs()),
        {"ignore_index": 2},
    ),
    "kl_div": (functional.kl_div, (ROWS, ROWS + 1), {"log_target": True, "reduction": "batchmean"}),
    "layer_norm": (functional.layer_norm, (ROWS, [8], drawn(8), drawn(8)), {"eps": 0.1}),
    "group_norm": (functional.group_norm, (IMAGE, 2, drawn(4), drawn(4)), {}),
    "instance_norm": (functional.instance_norm, (IMAGE,), {}),
    "batch_norm": (functional.batch_norm, (IMAGE, drawn(4), drawn(4).abs(), drawn(4)), {}),
    "rms_norm": (functional.rms_norm, (ROWS, [8]), {"eps": 1e-3}),
    "normalize": (functional.normalize, (ROWS,), {"dim": -1}),
    "vector_norm": (torch.linalg.vector_norm, (ROWS,), {"dim": -1, "keepdim": True}),
    "var": (torch.var, (ROWS,), {"dim": 1, "correction": 0}),
    "std": (torch.std, (ROWS, 1), {}),
    "silu": (functional.silu, (ROWS,), {}),
    "glu": (functional.glu, (ROWS,), {"dim": 0}),
    "softplus": (functional.softplus, (ROWS,), {}),
    "gelu": (functional.gelu, (ROWS,), {"approximate": "tanh"}),
    "elu": (functional.elu, (ROWS, 0.7), {}),
    "leaky_relu": (functional.leaky_relu, (ROWS,), {"negative_slope": 0.2}),
    "linear": (functional.linear, (ROWS, drawn(5, 8), drawn(5)), {}),
    "addmm": (torch.addmm, (drawn(5), ROWS, drawn(8, 5)), {"alpha": 2.0}),
    "scaled_dot_product_attention": (
        functional.scaled_dot_product_attention,
        (QUERIES, QUERIES + 1, QUERIES),
        {"is_causal": True},
    ),
    "conv2d": (
        functional.conv2d,
        (IMAGE, drawn(6, 2, 3, 3), drawn(6)),
        {"padding": 1, "groups": 2},
    ),
    "max_pool2d": (functional.max_pool2d, (IMAGE, 3), {"stride": 2, "padding": 1}),
    "avg_pool2d": (functional.avg_pool2d, (IMAGE, 2), {"padding": 1}),
    "einsum": (torch.einsum, ("bhqd,bhkd->bhqk", QUERIES, QUERIES + 1), {}),
    "conv1d": (functional.conv1d, (WAVE, drawn(6, 4, 3)), {"stride": 2, "padding": (1,)}),
}


def test_every_written_out_function_is_compared() -> None:
    assert set(CALLS) == set(WRITTEN_OUT)


@of_some
@pytest.mark.parametrize("name", CALLS)
def test_a_written_out_function_gives_what_torch_gives(name: str) -> None:
    func, args, kwargs = CALLS[name]
    torch.testing.assert_close(WRITTEN_OUT[name](*args, **kwargs), func(*args, **kwargs))


# (function, as torch hands it on, with all that it may be given)
GIVEN_BY_NAME: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "of instances": (functional.instance_norm, (IMAGE,), {"weight": drawn(4), "eps": 0.1}),
    "of batches in training": (
        functional.batch_norm,
        (IMAGE, None, None, drawn(4), drawn(4)),
        {"training": True},
    ),
    "with all of its arguments": (
        functional.cross_entropy,
        (ROWS, torch.tensor([1, 2, 3, 2, 7, 0])),
        {"weight": drawn(8).abs(), "ignore_index": 2, "label_smoothing": 0.1},
    ),
    "a loss of each row": (
        functional.cross_entropy,
        (ROWS, torch.arange(6)),
        {"reduction": "none"},
    ),
    "dilated in two dimensions": (
        functional.conv2d,
        (IMAGE, drawn(6, 4, 3, 2)),
        {"padding": 2, "dilation": (2, 3)},
    ),
    "dilated": (functional.conv1d, (WAVE, drawn(6, 4, 3)), {"padding": 2, "dilation": 2}),
}


class Handed(TorchFunctionMode):
    """Notes what torch gives to a mode: defaults by name."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> torch.Tensor:
        self.given = func, args, kwargs or {}
        result: torch.Tensor = func(*args, **(kwargs or {}))
        return result


@pytest.mark.parametrize("name", [*CALLS, *GIVEN_BY_NAME])
def test_what_torch_hands_on_is_understood(name: str) -> None:
    function, args, named = {**CALLS, **GIVEN_BY_NAME}[name]
    with Handed() as handed:
        right = function(*args, **named)
        func, given, kwargs = handed.given
    written = WRITTEN_OUT[step_name(func)](*given, **kwargs)
    torch.testing.assert_close(written, right)
